//! Anonymous memory that is as large as a drive and takes only as much as was written.
//!
//! The bytes of a drive in memory. A mapping saves a system call for each read and write, which a
//! file without a disk would need, and the kernel's work for each page of it.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Zeroed memory. Pages that were never written, or forgotten, take no room.
#[derive(Debug)]
pub(crate) struct Memory {
    // invariant: a mapping of `len` readable and writable bytes that nobody else has.
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone, and to no thread.
unsafe impl Send for Memory {}
// SAFETY: a shared reference only reads.
unsafe impl Sync for Memory {}

impl Memory {
    /// `len` zeros.
    pub(crate) fn new(len: usize) -> io::Result<Memory> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, at a place of the kernel's choice, changes nothing that exists.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Memory { start, len })
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the invariant; anonymous memory is initialised with zeros, and nobody writes
        // while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// All bytes, to change them.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `self` is borrowed by nobody else.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Makes zeros of whole pages, and gives their room back.
    pub(crate) fn forget(&mut self, at: usize, len: usize) -> io::Result<()> {
        let range = &mut self.bytes_mut()[at..][..len];
        // SAFETY: the range lies in the mapping and is borrowed by nobody else; it becomes zeros,
        // which are bytes like others.
        Ok(unsafe { madvise(range.as_mut_ptr().cast(), len, Advice::LinuxDontNeed) }?)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the invariant; nothing borrows from a value that is dropped. It cannot fail for a
        // mapping that exists.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Lets the allocator take large blocks from the kernel each time, as zeros, whatever was freed
/// before. A mount needs two of 16 MiB, and to fill blocks that were used with zeros took half the
/// time of a state. Not for other allocators than glibc's.
pub(crate) fn map_large_blocks() {
    #[cfg(target_env = "gnu")]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            // SAFETY: it sets a number of the allocator, under the allocator's own lock.
            unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20) };
        });
    }
}
