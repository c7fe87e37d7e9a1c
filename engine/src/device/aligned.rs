//! Buffers that direct I/O accepts.
//!
//! `O_DIRECT` wants memory aligned to the logical block. The buffer owns up to one block more than asked for and
//! shows the aligned part of it; no `unsafe` is needed, and large buffers stay untouched (hence unallocated) until used.

use std::ops::{Deref, DerefMut};

use crate::types::BLOCK_SIZE;

/// Bytes whose first one lies at a multiple of [`BLOCK_SIZE`] in memory.
pub struct AlignedBuf {
    /// Never grows, so its address never changes.
    bytes: Box<[u8]>,
    start: usize,
    len: usize,
}

impl AlignedBuf {
    /// `len` zeros. Any length will do; only the beginning is aligned.
    pub fn zeroed(len: usize) -> AlignedBuf {
        let bytes = vec![0u8; len + BLOCK_SIZE - 1].into_boxed_slice();
        let start = bytes.as_ptr().addr().wrapping_neg() % BLOCK_SIZE;
        AlignedBuf { bytes, start, len }
    }

    /// Whether direct I/O accepts `bytes` as it is.
    pub fn is_aligned(bytes: &[u8]) -> bool {
        bytes.as_ptr().addr().is_multiple_of(BLOCK_SIZE)
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

impl Clone for AlignedBuf {
    fn clone(&self) -> AlignedBuf {
        let mut copy = AlignedBuf::zeroed(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl std::fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.len)
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
}
