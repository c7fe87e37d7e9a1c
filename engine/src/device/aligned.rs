//! [`AlignedBuf`], a buffer that direct I/O accepts.
//!
//! `O_DIRECT` needs memory that is aligned to the logical block. Each allocation is up to one block
//! larger than requested, and the buffer is the aligned part of it. The pages of a large buffer
//! stay untouched, and hence unallocated, until they are used. Many small buffers should come out
//! of one allocation ([`AlignedBuf::many`]); allocated one by one, each would take twice its size.

use std::ops::{Deref, DerefMut};

use bytes::{Buf, BytesMut};

use crate::types::BLOCK_SIZE;

/// A byte buffer whose address is a multiple of [`BLOCK_SIZE`].
pub struct AlignedBuf {
    /// Never grows, so its address does not change.
    bytes: BytesMut,
}

impl AlignedBuf {
    /// Allocates a buffer of `len` zeros. Any length is allowed; only the start is aligned.
    pub fn zeroed(len: usize) -> AlignedBuf {
        let mut bytes = BytesMut::zeroed(len + BLOCK_SIZE - 1);
        let start = bytes.as_ptr().addr().wrapping_neg() % BLOCK_SIZE;
        bytes.advance(start);
        bytes.truncate(len);
        AlignedBuf { bytes }
    }

    /// Allocates `count` adjacent buffers of `len` zeros each.
    ///
    /// # Panics
    /// If `len` is not a whole number of blocks.
    pub fn many(count: usize, len: usize) -> impl Iterator<Item = AlignedBuf> {
        assert!(len.is_multiple_of(BLOCK_SIZE), "only then all are aligned");
        let mut all = AlignedBuf::zeroed(count * len).bytes;
        (0..count).map(move |_| AlignedBuf {
            bytes: all.split_to(len),
        })
    }

    /// Returns whether direct I/O accepts `bytes` without a copy.
    pub fn is_aligned(bytes: &[u8]) -> bool {
        bytes.as_ptr().addr().is_multiple_of(BLOCK_SIZE)
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Clone for AlignedBuf {
    fn clone(&self) -> AlignedBuf {
        let mut copy = AlignedBuf::zeroed(self.len());
        copy.copy_from_slice(self);
        copy
    }
}

impl std::fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zero_and_keep_what_is_written_when_moved() {
        for len in [0, 1, 4095, 4096, 4097, 65536] {
            let mut buf = AlignedBuf::zeroed(len);
            assert_eq!(buf.len(), len);
            assert!(AlignedBuf::is_aligned(&buf));
            assert!(buf.iter().all(|b| *b == 0));
            buf.fill(7);
            let moved = Box::new(buf);
            assert!(AlignedBuf::is_aligned(&moved));
            assert!(moved.clone().iter().all(|b| *b == 7));
        }
    }
    #[test]
    fn buffers_side_by_side_are_apart() {
        let mut all: Vec<_> = AlignedBuf::many(5, 2 * BLOCK_SIZE).collect();
        for (n, buf) in all.iter_mut().enumerate() {
            assert!(AlignedBuf::is_aligned(buf) && buf.len() == 2 * BLOCK_SIZE);
            buf.fill(n as u8 + 1);
        }
        let last = all.pop().expect("five");
        drop(all);
        assert!(last.iter().all(|b| *b == 5));
    }
}
