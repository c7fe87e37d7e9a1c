//! [`PmImage`], the bytes of a persistent memory. Chunks are shared until they change, so a copy
//! costs one pointer per chunk.
//!
//! The image of a block device ([`super::super::Image`]) changes by whole blocks and hashes each
//! once. Here single words change, so the fingerprint is a sum over words that is updated word by
//! word.

use super::WORD_SIZE;
use crate::sync::Arc;

/// Bytes per chunk, copied when the first of them changes. Larger chunks make copies of images
/// cheaper and changes more expensive.
const CHUNK: usize = 1024;

/// The contents of a persistent memory.
#[derive(Clone, Debug)]
pub struct PmImage {
    len: u64,
    /// `None` is a chunk of zeros.
    chunks: Vec<Option<Arc<[u8; CHUNK]>>>,
    // invariant: the sum of `share` over all words.
    fingerprint: u64,
}

/// Returns what a word adds to the fingerprint. A zero adds nothing, so the fingerprint of a zeroed
/// image is known without visiting its words.
fn share(word: u64, value: u64) -> u64 {
    let mix = |mut z: u64| {
        z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    if value == 0 {
        0
    } else {
        mix(mix(word) ^ value)
    }
}

impl PmImage {
    /// Creates an image of `len` zero bytes.
    pub fn zeroed(len: u64) -> PmImage {
        PmImage {
            len,
            chunks: vec![None; (len as usize).div_ceil(CHUNK)],
            fingerprint: 0,
        }
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the image has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies the bytes from `offset` on into `buf`. The range must lie inside the image.
    pub fn read(&self, offset: u64, mut buf: &mut [u8]) {
        let mut at = offset as usize;
        while !buf.is_empty() {
            let n = (CHUNK - at % CHUNK).min(buf.len());
            let (now, later) = buf.split_at_mut(n);
            match &self.chunks[at / CHUNK] {
                Some(chunk) => now.copy_from_slice(&chunk[at % CHUNK..][..n]),
                None => now.fill(0),
            }
            at += n;
            buf = later;
        }
    }

    /// Returns a copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len as usize];
        self.read(0, &mut bytes);
        bytes
    }

    /// Returns a hash of all bytes. Images with different bytes have equal hashes with a
    /// probability of one in 2^64. O(1).
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Returns word number `word`.
    pub(super) fn word(&self, word: u64) -> u64 {
        let mut bytes = [0; WORD_SIZE];
        self.read(word * WORD_SIZE as u64, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    pub(super) fn set_word(&mut self, word: u64, value: u64) {
        let before = self.word(word);
        if before == value {
            return;
        }
        let at = word as usize * WORD_SIZE;
        let chunk = self.chunks[at / CHUNK].get_or_insert_with(|| Arc::new([0; CHUNK]));
        let bytes = &mut Arc::make_mut(chunk)[at % CHUNK..][..WORD_SIZE];
        bytes.copy_from_slice(&value.to_le_bytes());
        self.fingerprint = self
            .fingerprint
            .wrapping_sub(share(word, before))
            .wrapping_add(share(word, value));
    }
}

impl From<Vec<u8>> for PmImage {
    /// The length must be a whole number of words.
    fn from(bytes: Vec<u8>) -> PmImage {
        assert!(bytes.len().is_multiple_of(WORD_SIZE), "whole words");
        let mut image = PmImage::zeroed(bytes.len() as u64);
        for (word, bytes) in bytes.chunks_exact(WORD_SIZE).enumerate() {
            let value = u64::from_le_bytes(bytes.try_into().expect("one word"));
            image.set_word(word as u64, value);
        }
        image
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_have_equal_fingerprints_however_they_came_about() {
        let mut image = PmImage::zeroed(4096);
        let zeros = image.fingerprint();
        image.set_word(3, 7);
        let seven = image.fingerprint();
        let copy = image.clone();
        image.set_word(200, 7);
        image.set_word(3, 0);
        assert_ne!(image.fingerprint(), seven, "the place counts");
        image.set_word(200, 0);
        assert_eq!(image.fingerprint(), zeros);
        assert_eq!(PmImage::from(copy.to_vec()).fingerprint(), seven);
        assert_eq!((copy.word(3), image.word(3)), (7, 0), "copies are apart");
        let mut across = [9; 16];
        copy.read(20, &mut across);
        assert_eq!(across, [0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
