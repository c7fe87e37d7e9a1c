//! The memory of the ring: the one room with pointers in it.
//!
//! ```text
//! 0         72              208                                            len
//! +--+------+--+------------+--+------------------------------+--- .. -----+
//! |h | load |h | load       |h | load                         |            |     h: 8-byte header, an atomic
//! +--+------+--+------------+--+------------------------------+--- .. -----+
//! ```
//!
//! A [`Block`] is a pointer to where a block begins. Making one is a promise that this is so, and stays so as long as it is used:
//! headers and payloads share the memory, and what is a header now may be payload on the next lap. Whoever makes one says why:
//!
//! - the walk from the head: under the ring's mutex, by the sizes in the headers;
//! - the tail: the block that begins there is the caller's own;
//! - a free list: what it offers is a block until it is taken off, under the same mutex;
//! - a page's address in the mapping table, read under the page's lock: the head cannot pass it before the evictor has that lock.
//!
//! Payloads come out as slices under a second promise: shared under the page's lock, or alone. No slice ever covers a header, and all
//! are cut from the one base pointer; so headers may be read while payloads are written. A slice that would leave the region is refused
//! by an assertion in every build: a wrong size would otherwise be somebody else's memory.
//!
//! Memory comes from `mmap`, aligned to huge pages and advised to become some (§4.3), zeroed and untouched until used; elsewhere than on
//! Linux, and under Miri, from the allocator. Explorers (loom, shuttle) have atomics that live in no memory of ours, so for them the headers
//! are an array beside it, a place for each [`GRAIN`] bytes; and loom is told of every slice handed out, so that it finds two which race.

use std::ptr::NonNull;

use super::header::{HEADER, Header};
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
#[cfg(not(any(loom, shuttle)))]
use crate::sync::atomic::{AtomicU32, AtomicU64};

/// Blocks begin at multiples of this.
pub(super) const GRAIN: u64 = if cfg!(loom) { 256 } else { 8 };

const HUGE_PAGE: usize = 2 << 20;

/// Lines of 64 bytes that are asked for together: header, marks and slots of most mini-pages.
#[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
const PREFETCHED_LINES: usize = 4;

/// Zeroed bytes at a fixed place, shared by all threads.
#[derive(Debug)]
pub(super) struct Region {
    base: NonNull<u8>,
    len: usize,
    memory: Memory,
    #[cfg(any(loom, shuttle))]
    explored: explored::Shadow,
}

// SAFETY: the memory belongs to the region alone and stays where it is; headers in it are atomics, and payloads are reached through
// `Block`'s unsafe functions only, whose callers promise that nobody else writes meanwhile.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// `len` zero bytes.
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

    /// Whether the kernel took the advice to use huge pages.
    pub(super) fn huge_pages(&self) -> bool {
        self.memory.huge
    }

    /// The block that begins at `offset`.
    ///
    /// # Safety
    /// A block begins there, or will with the caller's next `set_header`; and the head will not pass it, nor anybody make another one
    /// there, while the `Block` is used.
    #[inline]
    pub(super) unsafe fn block(&self, offset: u64) -> Block<'_> {
        let at = offset as usize;
        assert!(
            at.is_multiple_of(GRAIN as usize) && at < self.len,
            "NoStraddleInv: no block begins at {offset}"
        );
        Block { region: self, at }
    }

    /// Asks the processor for the first lines of what begins at `offset`, so that header and slots arrive together and not one after the other.
    #[inline]
    pub(super) fn prefetch(&self, offset: u64) {
        #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
        for line in 0..PREFETCHED_LINES {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let at = (self.base.as_ptr()).wrapping_add(offset as usize + 64 * line);
            // SAFETY: a hint; it reads nothing, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(any(miri, loom)))))]
        let _ = offset;
    }
}

/// Where a block begins.
#[derive(Clone, Copy)]
pub(super) struct Block<'r> {
    region: &'r Region,
    at: usize,
}

impl<'r> Block<'r> {
    #[cfg(not(any(loom, shuttle)))]
    #[inline]
    fn word(self) -> &'r AtomicU64 {
        // SAFETY: `at` is a multiple of 8 below `len`, itself a multiple of 8, so these 8 bytes lie in the region and are aligned. By
        // the promise that made `self` they are a header: no slice covers them, and all access to them is atomic.
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

    /// The header, for one who has synchronised with who wrote it: by the page's lock or the ring's mutex.
    #[inline]
    pub(super) fn known_header(self) -> Header {
        Header(self.word().load(Relaxed))
    }

    pub(super) fn set_header(self, header: Header) {
        self.word().store(header.0, Release);
    }

    /// Makes a header of what was payload, or the marks of another block: a plain write between atomics of different sizes, which hardly
    /// any model of memory has an answer for.
    ///
    /// # Safety
    /// The block is the tail's next one, and the caller holds the ring's mutex.
    pub(super) unsafe fn begin(self) {
        #[cfg(not(any(loom, shuttle)))]
        // SAFETY: place and alignment as in `word`; nobody has a block here before the tail has moved.
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
        // SAFETY: `from` is at most `len` of the region, by the assertion.
        (unsafe { self.region.base.add(from) }, len)
    }

    /// The marks of a block that has some: the first [`MARKS`] bytes of its payload.
    ///
    /// # Safety
    /// During `'r` no slice covers them, neither of this block nor of one that is here later.
    #[cfg(not(any(loom, shuttle)))]
    #[inline]
    pub(super) unsafe fn marks(self) -> &'r AtomicU32 {
        let at = self.at + HEADER as usize;
        assert!(
            at + MARKS as usize <= self.region.len,
            "NoStraddleInv: no marks at {at}"
        );
        // SAFETY: inside the region by the assertion, and aligned as headers are; all access to them is atomic, as the caller promises.
        unsafe { &*self.region.base.as_ptr().add(at).cast::<AtomicU32>() }
    }

    /// As above, in the explorers' array.
    ///
    /// # Safety
    /// As above.
    #[cfg(any(loom, shuttle))]
    pub(super) unsafe fn marks(self) -> &'r crate::sync::atomic::AtomicU32 {
        self.region.explored.marks(self.at)
    }

    /// Marks of a new block, all 0; a plain write for the reason of [`Block::begin`].
    ///
    /// # Safety
    /// The block is the caller's alone, and has marks.
    pub(super) unsafe fn clear_marks(self) {
        #[cfg(not(any(loom, shuttle)))]
        // SAFETY: nobody else has any of it, as the caller promises.
        unsafe { self.bytes_mut(0, HEADER + MARKS) }.fill(0);
        #[cfg(any(loom, shuttle))]
        self.region.explored.marks(self.at).store(0, Relaxed);
    }

    /// The payload of a block of `footprint` bytes behind the first `skip`, to read.
    ///
    /// # Safety
    /// It has that size, and nobody writes to it during `'r`.
    #[inline]
    pub(super) unsafe fn bytes(self, skip: u64, footprint: u64) -> &'r [u8] {
        let (from, len) = self.payload(skip, footprint);
        #[cfg(loom)]
        self.region.explored.read(self.at);
        // SAFETY: inside the region, which is initialised (zeroed) and outlives 'r; nobody writes, as the caller promises, and
        // headers, which others do write, are not part of it.
        unsafe { std::slice::from_raw_parts(from.as_ptr(), len) }
    }

    /// The payload of a block of `footprint` bytes behind the first `skip`, to write.
    ///
    /// # Safety
    /// It has that size, and nobody else reads or writes it during `'r`.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the caller promises to be alone")]
    pub(super) unsafe fn bytes_mut(self, skip: u64, footprint: u64) -> &'r mut [u8] {
        let (from, len) = self.payload(skip, footprint);
        #[cfg(loom)]
        self.region.explored.write(self.at);
        // SAFETY: as in `bytes`; that nobody else has any of it, the caller promises.
        unsafe { std::slice::from_raw_parts_mut(from.as_ptr(), len) }
    }

    /// The two offsets that a free list keeps in a free block.
    ///
    /// # Safety
    /// The block is free and the caller holds the ring's mutex.
    pub(super) unsafe fn links(self) -> [u64; 2] {
        // SAFETY: free blocks belong to who holds the mutex. No class is smaller than the links.
        let bytes = unsafe { self.bytes(0, HEADER + LINKS) };
        let (next, previous) = bytes.split_at(8);
        [next, previous].map(|link| {
            u64::from_le_bytes(link.try_into().expect("links are two times eight bytes"))
        })
    }

    /// Writes them.
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

/// The mapping to give back.
#[derive(Debug)]
struct Memory {
    /// Where the mapping begins, before alignment.
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
        // SAFETY: a new mapping at a place of the kernel's choice overlaps nothing.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped, access, flags) }?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let skip = if wants_huge {
            start.addr().get().wrapping_neg() % HUGE_PAGE
        } else {
            0
        };
        // SAFETY: less than `HUGE_PAGE` further, and the mapping is that much longer than `len`.
        let base = unsafe { start.add(skip) };
        // SAFETY: our own mapping, and advice about page sizes does not change what is in it.
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
        // SAFETY: mapped by `Memory::new`, and nobody can have a pointer into it: blocks borrow the region. It cannot fail for a
        // mapping that exists; if it did, memory would leak, no more.
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

/// What explorers see instead of the memory.
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

        /// Loom panics if a write is not ordered before this read.
        #[cfg(loom)]
        pub(super) fn read(&self, at: usize) {
            self.payloads[at / GRAIN as usize].with(|_| ());
        }

        /// Loom panics if any access is not ordered before this write.
        #[cfg(loom)]
        pub(super) fn write(&self, at: usize) {
            self.payloads[at / GRAIN as usize].with_mut(|_| ());
        }
    }
}
