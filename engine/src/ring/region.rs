//! The memory of the ring: the only module with raw pointers into it.
//!
//! ```text
//! 0         72              208                                            len
//! +--+------+--+------------+--+------------------------------+--- .. -----+
//! |h | load |h | load       |h | load                         |            |  h: 8-byte header
//! +--+------+--+------------+--+------------------------------+--- .. -----+
//! ```
//!
//! A [`Block`] is a pointer to the beginning of a block. Whoever makes one promises that a block
//! begins there, and that it stays there as long as the pointer is used: headers and payloads share
//! the memory, and what is a header now may be payload on the next lap. There are four ways to know
//! it:
//!
//! - the walk from the head: under the ring's mutex, by the sizes in the headers;
//! - the tail: the block that begins there is the caller's own;
//! - a free list: an offset on it is a block until it is taken off, under the same mutex;
//! - a page's address in the mapping table, read under the page's lock: the head cannot pass the
//!   block before the evictor has that lock.
//!
//! Payloads are handed out as slices under a second promise: shared or exclusive access by the
//! page's lock. No slice ever covers a header, and all are cut from the one base pointer; so
//! headers may be read while payloads are written. An assertion, in every build, refuses a slice
//! that would leave the region, because a wrong size would otherwise reach foreign memory.
//!
//! Memory comes from `mmap`. It is aligned to huge pages with advice to use them (§4.3), zeroed,
//! and untouched until used. Under Miri, and on other systems than Linux, it comes from the
//! allocator. Explorers (loom, shuttle) have atomics that cannot live in our memory, so for them
//! the headers are a separate array with an entry for each [`GRAIN`] bytes. Loom is also told of
//! every slice handed out, so that it finds races between them.

use std::ptr::NonNull;

use super::header::{HEADER, Header};
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
#[cfg(not(any(loom, shuttle)))]
use crate::sync::atomic::{AtomicU32, AtomicU64};

/// Blocks begin at multiples of this number of bytes.
pub(super) const GRAIN: u64 = if cfg!(loom) { 256 } else { 8 };

const HUGE_PAGE: usize = 2 << 20;

/// Number of 64-byte lines that are prefetched together: header, marks and slots of most
/// mini-pages.
#[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
const PREFETCHED_LINES: usize = 4;

/// Zeroed bytes at a fixed address, shared by all threads.
#[derive(Debug)]
pub(super) struct Region {
    base: NonNull<u8>,
    len: usize,
    memory: Memory,
    #[cfg(any(loom, shuttle))]
    explored: explored::Shadow,
}

// SAFETY: the memory belongs to the region alone and never moves. Headers in it are atomics.
// Payloads are reached only through `Block`'s unsafe functions, whose callers promise that nobody
// else writes meanwhile.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Allocates `len` zero bytes.
    pub(super) fn new(len: usize) -> std::io::Result<Self> {
        let (base, memory) = Memory::new(len)?;
        Ok(Self {
            base,
            len,
            memory,
            #[cfg(any(loom, shuttle))]
            explored: explored::Shadow::new(len),
        })
    }

    /// Returns whether the kernel accepted the advice to use huge pages.
    pub(super) fn huge_pages(&self) -> bool {
        self.memory.huge
    }

    /// Returns the block that begins at `offset`.
    ///
    /// # Safety
    /// A block begins there, or will with the caller's next `set_header`. While the `Block` is
    /// used, the head does not pass it and no other block is made there.
    #[inline]
    pub(super) unsafe fn block(&self, offset: u64) -> Block<'_> {
        let at = offset as usize;
        assert!(
            at.is_multiple_of(GRAIN as usize) && at < self.len,
            "NoStraddleInv: no block begins at {offset}"
        );
        Block { region: self, at }
    }

    /// Prefetches the first cache lines of the block at `offset`, so that header and slots arrive
    /// together rather than one after the other.
    #[inline]
    pub(super) fn prefetch(&self, offset: u64) {
        #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
        for line in 0..PREFETCHED_LINES {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let at = (self.base.as_ptr()).wrapping_add(offset as usize + 64 * line);
            // SAFETY: a prefetch is only a hint and reads nothing, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(any(miri, loom)))))]
        let _ = offset;
    }
}

/// A pointer to the beginning of a block.
#[derive(Clone, Copy)]
pub(super) struct Block<'r> {
    region: &'r Region,
    at: usize,
}

impl<'r> Block<'r> {
    #[cfg(not(any(loom, shuttle)))]
    #[inline]
    fn word(self) -> &'r AtomicU64 {
        // SAFETY: `at` is a multiple of 8 below `len`, itself a multiple of 8, so these 8 bytes lie
        // in the region and are aligned. By the promise that made `self`, they are a header: no
        // slice covers them, and all access to them is atomic.
        unsafe { &*self.region.base.as_ptr().add(self.at).cast::<AtomicU64>() }
    }

    #[cfg(any(loom, shuttle))]
    fn word(self) -> &'r crate::sync::atomic::AtomicU64 {
        self.region.explored.header(self.at)
    }

    #[inline]
    pub(super) fn header(self) -> Header {
        Header(self.word().load(Acquire))
    }

    /// Reads the header without ordering. The caller has synchronised with its writer, through the
    /// page's lock or the ring's mutex.
    #[inline]
    pub(super) fn known_header(self) -> Header {
        Header(self.word().load(Relaxed))
    }

    pub(super) fn set_header(self, header: Header) {
        self.word().store(header.0, Release);
    }

    /// Turns former payload, or another block's marks, into a header. This is a plain write,
    /// because mixing atomics of different sizes is defined by hardly any memory model.
    ///
    /// # Safety
    /// The block is the next one at the tail, and the caller holds the ring's mutex.
    pub(super) unsafe fn begin(self) {
        #[cfg(not(any(loom, shuttle)))]
        // SAFETY: place and alignment as in `word`; nobody has a block here before the tail has
        // moved.
        unsafe {
            self.region.base.add(self.at).cast::<u64>().write(0);
        }
    }

    #[inline]
    fn payload(self, skip: u64, footprint: u64) -> (NonNull<u8>, usize) {
        let from = self.at + (HEADER + skip) as usize;
        let len = (footprint - HEADER - skip) as usize;
        assert!(
            from + len <= self.region.len,
            "NoStraddleInv: {footprint} bytes at {} run over the end",
            self.at
        );
        // SAFETY: by the assertion, `from` is at most the length of the region.
        (unsafe { self.region.base.add(from) }, len)
    }

    /// The marks of a block that has some: the first [`MARKS`] bytes of its payload.
    ///
    /// # Safety
    /// During `'r`, no slice covers the marks, neither of this block nor of a later one in the same
    /// place.
    #[cfg(not(any(loom, shuttle)))]
    #[inline]
    pub(super) unsafe fn marks(self) -> &'r AtomicU32 {
        let at = self.at + HEADER as usize;
        assert!(
            at + MARKS as usize <= self.region.len,
            "NoStraddleInv: no marks at {at}"
        );
        // SAFETY: inside the region by the assertion, and aligned as headers are; all access to
        // them is atomic, as the caller promises.
        unsafe { &*self.region.base.as_ptr().add(at).cast::<AtomicU32>() }
    }

    /// The marks of a block, in the explorers' array.
    ///
    /// # Safety
    /// As for the other `marks`.
    #[cfg(any(loom, shuttle))]
    pub(super) unsafe fn marks(self) -> &'r crate::sync::atomic::AtomicU32 {
        self.region.explored.marks(self.at)
    }

    /// Sets the marks of a new block to 0. A plain write, for the same reason as in
    /// [`Block::begin`].
    ///
    /// # Safety
    /// The block belongs to the caller alone, and has marks.
    pub(super) unsafe fn clear_marks(self) {
        #[cfg(not(any(loom, shuttle)))]
        // SAFETY: the block belongs to the caller alone, as the caller promises.
        unsafe { self.bytes_mut(0, HEADER + MARKS) }.fill(0);
        #[cfg(any(loom, shuttle))]
        self.region.explored.marks(self.at).store(0, Relaxed);
    }

    /// The payload of a block of `footprint` bytes, without its first `skip` bytes, to read.
    ///
    /// # Safety
    /// The block has that size, and nobody writes to it during `'r`.
    #[inline]
    pub(super) unsafe fn bytes(self, skip: u64, footprint: u64) -> &'r [u8] {
        let (from, len) = self.payload(skip, footprint);
        #[cfg(loom)]
        self.region.explored.read(self.at);
        // SAFETY: inside the region, which is initialised (zeroed) and outlives 'r. Nobody writes,
        // as the caller promises; headers, which others do write, are not part of the slice.
        unsafe { std::slice::from_raw_parts(from.as_ptr(), len) }
    }

    /// The payload of a block of `footprint` bytes, without its first `skip` bytes, to write.
    ///
    /// # Safety
    /// The block has that size, and nobody else reads or writes it during `'r`.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the caller promises to be alone")]
    pub(super) unsafe fn bytes_mut(self, skip: u64, footprint: u64) -> &'r mut [u8] {
        let (from, len) = self.payload(skip, footprint);
        #[cfg(loom)]
        self.region.explored.write(self.at);
        // SAFETY: as in `bytes`; the caller promises that nobody else has access.
        unsafe { std::slice::from_raw_parts_mut(from.as_ptr(), len) }
    }

    /// Reads the two offsets that a free list keeps in a free block.
    ///
    /// # Safety
    /// The block is free and the caller holds the ring's mutex.
    pub(super) unsafe fn links(self) -> [u64; 2] {
        // SAFETY: free blocks belong to the thread that holds the mutex. No class is smaller than
        // the links.
        let bytes = unsafe { self.bytes(0, HEADER + LINKS) };
        let (next, previous) = bytes.split_at(8);
        [next, previous].map(|link| {
            u64::from_le_bytes(link.try_into().expect("links are two times eight bytes"))
        })
    }

    /// Writes the two offsets of [`Block::links`].
    ///
    /// # Safety
    /// As [`Block::links`].
    pub(super) unsafe fn set_links(self, [next, previous]: [u64; 2]) {
        // SAFETY: as in `links`.
        let bytes = unsafe { self.bytes_mut(0, HEADER + LINKS) };
        bytes[..8].copy_from_slice(&next.to_le_bytes());
        bytes[8..].copy_from_slice(&previous.to_le_bytes());
    }
}

/// Bytes of a block's marks, if the ring has marks.
pub(super) const MARKS: u64 = 4;

/// Bytes of a free block's links: the smallest payload.
pub(super) const LINKS: u64 = 16;

/// The mapping, to be unmapped on drop.
#[derive(Debug)]
struct Memory {
    /// The start of the mapping before alignment, and its length.
    #[cfg(all(target_os = "linux", not(miri)))]
    mapped: (NonNull<u8>, usize),
    huge: bool,
}

#[cfg(all(target_os = "linux", not(miri)))]
impl Memory {
    fn new(len: usize) -> std::io::Result<(NonNull<u8>, Self)> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
        let wants_huge = len >= HUGE_PAGE;
        let mapped = if wants_huge { len + HUGE_PAGE } else { len };
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped, access, flags) }?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let skip = if wants_huge {
            start.addr().get().wrapping_neg() % HUGE_PAGE
        } else {
            0
        };
        // SAFETY: less than `HUGE_PAGE` further, and the mapping is that much longer than `len`.
        let base = unsafe { start.add(skip) };
        // SAFETY: the mapping is our own, and advice about page sizes does not change its content.
        let advised = wants_huge
            && unsafe { madvise(base.as_ptr().cast(), len, Advice::LinuxHugepage) }.is_ok();
        let mapped = (start, mapped);
        Ok((
            base,
            Self {
                mapped,
                huge: advised,
            },
        ))
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
impl Drop for Region {
    fn drop(&mut self) {
        let (start, len) = self.memory.mapped;
        // SAFETY: mapped by `Memory::new`, and no pointer into it is left, because blocks borrow
        // the region. Unmapping an existing mapping cannot fail; if it did, memory would leak, no
        // more.
        let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), len) };
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
fn layout(len: usize) -> std::io::Result<std::alloc::Layout> {
    std::alloc::Layout::from_size_align(len, 4096)
        .map_err(|_| std::io::Error::from(std::io::ErrorKind::OutOfMemory))
}

#[cfg(any(not(target_os = "linux"), miri))]
impl Memory {
    fn new(len: usize) -> std::io::Result<(NonNull<u8>, Self)> {
        assert!(len > 0, "a ring has a least size");
        // SAFETY: `len` is not zero.
        let base = unsafe { std::alloc::alloc_zeroed(layout(len)?) };
        let base = NonNull::new(base).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let _ = HUGE_PAGE;
        Ok((base, Self { huge: false }))
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
impl Drop for Region {
    fn drop(&mut self) {
        if let Ok(layout) = layout(self.len) {
            // SAFETY: allocated by `Memory::new` with this layout; blocks borrow the region.
            unsafe { std::alloc::dealloc(self.base.as_ptr(), layout) };
        }
    }
}

/// The stand-in for the memory under an explorer.
#[cfg(any(loom, shuttle))]
mod explored {
    use super::GRAIN;
    use crate::sync::atomic::{AtomicU32, AtomicU64};

    #[derive(Debug)]
    pub(super) struct Shadow {
        headers: Box<[AtomicU64]>,
        marks: Box<[AtomicU32]>,
        #[cfg(loom)]
        payloads: Box<[loom::cell::UnsafeCell<()>]>,
    }

    impl Shadow {
        pub(super) fn new(len: usize) -> Self {
            let places = 0..len / GRAIN as usize;
            Self {
                headers: places.clone().map(|_| AtomicU64::new(0)).collect(),
                marks: places.clone().map(|_| AtomicU32::new(0)).collect(),
                #[cfg(loom)]
                payloads: places.map(|_| loom::cell::UnsafeCell::new(())).collect(),
            }
        }

        pub(super) fn header(&self, at: usize) -> &AtomicU64 {
            &self.headers[at / GRAIN as usize]
        }

        pub(super) fn marks(&self, at: usize) -> &AtomicU32 {
            &self.marks[at / GRAIN as usize]
        }

        /// Makes loom panic if a write is not ordered before this read.
        #[cfg(loom)]
        pub(super) fn read(&self, at: usize) {
            self.payloads[at / GRAIN as usize].with(|_| ());
        }

        /// Makes loom panic if any access is not ordered before this write.
        #[cfg(loom)]
        pub(super) fn write(&self, at: usize) {
            self.payloads[at / GRAIN as usize].with_mut(|_| ());
        }
    }
}
