//! Writes, reads and frees long values.

use super::block::{self, Header, Run, key_sum};
use super::{MAX_VALUE_BYTES, Name, Pointer, overflow_blocks};
use crate::device::{AlignedBuf, Volume};
use crate::error::{Error, Result};
use crate::layout::{Layout, Slot};
use crate::mutation;
use crate::pages::SlotRun;
use crate::sparse::Sparse;
use crate::stats::OverflowStats;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::types::{BLOCK_SIZE, IoClass, Lba, Lsn, PageId, StoreId};

/// The greatest number of blocks in one request.
const PIECE: usize = 256;

/// The state of long values in a running store. Their places are recorded in the leaves only.
pub(crate) struct Overflow {
    /// The epoch of this session's log.
    epoch: u32,
    next_number: AtomicU64,
    /// Pages that may have a pointer in their leaf or mini-page. A mark is set before the record
    /// with the pointer is appended, and cleared when the page is freed.
    marks: Sparse<AtomicBool>,
    /// Values to which no record refers any more, each with the LSN from which on that is true.
    retired: Mutex<Vec<(Lsn, Pointer)>>,
    /// Places of live values and of values in `retired`.
    places: AtomicU64,
    values_written: AtomicU64,
    bytes_written: AtomicU64,
    bytes_read: AtomicU64,
    values_freed: AtomicU64,
}

impl Overflow {
    /// Creates the state for a session that writes its log in `epoch`, with page names below
    /// `pages`.
    pub(crate) fn new(epoch: u32, pages: u64) -> Overflow {
        Overflow {
            epoch,
            next_number: AtomicU64::new(0),
            marks: Sparse::new(pages),
            retired: Mutex::new(Vec::new()),
            places: AtomicU64::new(0),
            values_written: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            values_freed: AtomicU64::new(0),
        }
    }

    /// Returns whether `page` may have a pointer.
    #[inline]
    pub(crate) fn may_be_in(&self, page: PageId) -> bool {
        let mark = self.marks.get(page.0);
        mark.is_some_and(|mark| mark.load(Ordering::Acquire))
    }

    /// Notes that `page` may have a pointer from now on.
    pub(crate) fn mark(&self, page: PageId) {
        if let Some(mark) = self.marks.make(page.0) {
            mark.store(true, Ordering::Release);
        }
    }

    /// Marks `page` if `from` is marked, because `page` receives records of `from`.
    pub(crate) fn mark_as(&self, page: PageId, from: PageId) {
        if self.may_be_in(from) {
            self.mark(page);
        }
    }

    /// Notes that `page` has no pointer, because it was freed or has just been searched.
    pub(crate) fn unmark(&self, page: PageId) {
        if let Some(mark) = self.marks.get(page.0) {
            mark.store(false, Ordering::Release);
        }
    }

    /// Returns the pages that may have a pointer, ascending.
    pub(crate) fn marked(&self) -> Vec<PageId> {
        let marks = self.marks.iter();
        let set = marks.filter(|(_, mark)| mark.load(Ordering::Acquire));
        set.map(|(page, _)| PageId(page)).collect()
    }

    /// Sets the number of places of live values, as found by recovery.
    pub(crate) fn found_places(&self, places: u64) {
        self.places.store(places, Ordering::Relaxed);
    }

    pub(crate) fn map_bytes(&self) -> u64 {
        self.marks.bytes()
    }

    pub(crate) fn stats(&self) -> OverflowStats {
        OverflowStats {
            values_written: self.values_written.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            values_freed: self.values_freed.load(Ordering::Relaxed),
            places: self.places.load(Ordering::Relaxed),
        }
    }

    fn name(&self) -> Name {
        Name {
            epoch: self.epoch,
            number: self.next_number.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Counts a value that was written to `slots` places.
    pub(crate) fn written(&self, slots: u64, bytes: u64) {
        self.places.fetch_add(slots, Ordering::Relaxed);
        self.values_written.fetch_add(1, Ordering::Relaxed);
        self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts `bytes` of a value that were read.
    pub(crate) fn read(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that no record refers to this value from `lsn` on.
    pub(crate) fn retire(&self, pointer: Pointer, lsn: Lsn) {
        self.retired.lock().push((lsn, pointer));
    }

    /// Returns whether values are waiting for the records that retired them to become durable.
    pub(crate) fn has_retired(&self) -> bool {
        !self.retired.lock().is_empty()
    }

    /// Removes and returns the retired values to which no durable record refers, given that the log
    /// is durable up to `durable`. The caller frees their places.
    pub(crate) fn take_free(&self, durable: Lsn) -> Vec<Pointer> {
        let mut retired = self.retired.lock();
        let at_once = mutation::on("overflow-freed-at-once");
        let free = retired.extract_if(.., |(lsn, _)| *lsn <= durable || at_once);
        free.map(|(_, pointer)| pointer).collect()
    }

    /// Counts a retired value whose places were freed.
    pub(crate) fn freed(&self) {
        self.values_freed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts `slots` places that were freed.
    pub(crate) fn gave_back(&self, slots: u64) {
        self.places.fetch_sub(slots, Ordering::Relaxed);
    }

    /// Writes the value of `key` to `places`, which have room for it.
    ///
    /// # Errors
    /// Device failures.
    pub(crate) fn write(
        &self,
        volume: &Volume,
        layout: &Layout,
        (key, value): (&[u8], &[u8]),
        places: &[SlotRun],
    ) -> Result<Pointer> {
        let runs = runs_of(layout, places, overflow_blocks(value.len()));
        let name = self.name();
        let mut writer = Writer {
            volume,
            store: layout.id,
            header: Header {
                name,
                index: 0,
                next: None,
                len: value.len() as u32,
                key: key_sum(key),
            },
            value,
        };
        for (at, run) in runs.iter().enumerate() {
            writer.write(*run, runs.get(at + 1).copied())?;
        }
        volume.durable_before_log();
        Ok(Pointer {
            len: value.len() as u32,
            name,
            first: runs[0].first,
            blocks: runs[0].blocks,
            sum: xxhash_rust::xxh3::xxh3_64(value),
        })
    }
}

/// Writes the blocks of one value.
struct Writer<'a> {
    volume: &'a Volume,
    store: StoreId,
    header: Header,
    /// The bytes not yet written.
    value: &'a [u8],
}

impl Writer<'_> {
    /// Writes the next blocks to `run`, which is followed by the run `next`.
    fn write(&mut self, run: Run, next: Option<Run>) -> Result<()> {
        let mut buffer = AlignedBuf::zeroed(PIECE.min(run.blocks as usize) * BLOCK_SIZE);
        let (mut at, mut left) = (run.first.0, run.blocks as usize);
        self.header.next = next;
        while left > 0 {
            let piece = left.min(PIECE);
            let bytes = &mut buffer[..piece * BLOCK_SIZE];
            for block in bytes.chunks_exact_mut(BLOCK_SIZE) {
                let (payload, rest) = self.value.split_at(self.value.len().min(block::PAYLOAD));
                self.header.seal(block, payload, self.store);
                self.header.index += 1;
                self.header.next = None;
                self.value = rest;
            }
            self.volume.write(Lba(at), bytes, IoClass::Page)?;
            at += piece as u64;
            left -= piece;
        }
        Ok(())
    }
}

/// Returns the runs that a value of `blocks` blocks takes of these places, in order.
fn runs_of(layout: &Layout, places: &[SlotRun], blocks: u64) -> Vec<Run> {
    let mut left = blocks;
    let runs = places.iter().map(|run| {
        let here = left.min(run.slots * layout.blocks_per_slot());
        left -= here;
        Run {
            first: layout.slot_lba(run.first),
            blocks: here as u32,
        }
    });
    runs.collect()
}

/// Returns the places that a run takes, or `None` if a store of this layout could not have written
/// it.
pub(super) fn places_of(layout: &Layout, run: Run) -> Option<SlotRun> {
    let per_slot = layout.blocks_per_slot();
    let from = run.first.0.checked_sub(layout.slot_lba(Slot(0)).0)?;
    let slots = u64::from(run.blocks).div_ceil(per_slot);
    let first = from / per_slot;
    let fits = from % per_slot == 0 && slots > 0 && first.checked_add(slots)? <= layout.slots;
    fits.then_some(SlotRun {
        first: Slot(first),
        slots,
    })
}

/// Returns the run after `run`, which the first block of `run` names.
pub(super) fn next_run(volume: &Volume, store: StoreId, run: Run, name: Name) -> Option<Run> {
    let mut bytes = AlignedBuf::zeroed(BLOCK_SIZE);
    volume.read(run.first, &mut bytes, IoClass::Page).ok()?;
    let header = Header::read(&bytes, store)?;
    header.next.filter(|_| header.name == name)
}

/// Calls `each` with the runs of a value, as far as its blocks can still be followed.
pub(crate) fn each_run(
    volume: &Volume,
    layout: &Layout,
    pointer: &Pointer,
    mut each: impl FnMut(SlotRun),
) {
    let mut run = Some(Run {
        first: pointer.first,
        blocks: pointer.blocks,
    });
    let mut left = pointer.all_blocks();
    while let Some(here) = run.take() {
        let Some(places) = places_of(layout, here) else {
            return;
        };
        each(places);
        left = left.saturating_sub(u64::from(here.blocks));
        if left > 0 {
            run = next_run(volume, layout.id, here, pointer.name);
        }
    }
}

/// Appends the value of `key` to which `pointer` refers to `value`.
///
/// # Errors
/// [`Error::Damaged`] if the blocks are not this value's, and device failures. The contents of
/// `value` are then meaningless.
pub(crate) fn read(
    volume: &Volume,
    store: StoreId,
    key: &[u8],
    pointer: &Pointer,
    value: &mut Vec<u8>,
) -> Result<()> {
    let before = value.len();
    let len = pointer.len as usize;
    if len > MAX_VALUE_BYTES {
        return Err(damaged(pointer, pointer.first, "a value of 16 MiB at most"));
    }
    let mut expected = Header {
        name: pointer.name,
        index: 0,
        next: None,
        len: pointer.len,
        key: key_sum(key),
    };
    let mut run = Run {
        first: pointer.first,
        blocks: pointer.blocks,
    };
    let mut left = pointer.all_blocks();
    value.reserve(len);
    while left > 0 {
        let blocks = left.min(u64::from(run.blocks));
        let end = run.first.0.checked_add(blocks);
        if blocks == 0 || end.is_none_or(|end| end > volume.capacity_blocks()) {
            return Err(damaged(
                pointer,
                run.first,
                "a run of blocks inside the device",
            ));
        }
        let next = read_run(
            volume,
            store,
            pointer,
            &mut expected,
            (run.first, blocks),
            value,
        )?;
        left -= blocks;
        if left > 0 {
            run = next
                .ok_or_else(|| damaged(pointer, run.first, "the place of the value's next run"))?;
        }
    }
    value.truncate(before + len);
    let whole = xxhash_rust::xxh3::xxh3_64(&value[before..]) == pointer.sum;
    if !whole && !mutation::on("overflow-block-unchecked") {
        return Err(damaged(
            pointer,
            pointer.first,
            "the value's checksum to match",
        ));
    }
    Ok(())
}

/// Appends the bytes in the blocks of one run, and returns the place of the next run.
fn read_run(
    volume: &Volume,
    store: StoreId,
    pointer: &Pointer,
    expected: &mut Header,
    (first, blocks): (Lba, u64),
    value: &mut Vec<u8>,
) -> Result<Option<Run>> {
    let mut buffer = AlignedBuf::zeroed(PIECE.min(blocks as usize) * BLOCK_SIZE);
    let mut next = None;
    for at in (0..blocks).step_by(PIECE) {
        let piece = (blocks - at).min(PIECE as u64);
        let bytes = &mut buffer[..piece as usize * BLOCK_SIZE];
        volume.read(Lba(first.0 + at), bytes, IoClass::Page)?;
        for (block, lba) in bytes.chunks_exact(BLOCK_SIZE).zip(first.0 + at..) {
            let found = Header::read(block, store);
            let says = found.and_then(|found| found.next);
            let found = found.map(|found| Header {
                next: None,
                ..found
            });
            if found != Some(*expected) && !mutation::on("overflow-block-unchecked") {
                return Err(damaged(pointer, Lba(lba), "the next block of the value"));
            }
            if lba == first.0 {
                next = says;
            }
            expected.index += 1;
            value.extend_from_slice(block::payload(block));
        }
    }
    Ok(next)
}

#[cold]
fn damaged(pointer: &Pointer, lba: Lba, expected: &str) -> Error {
    let Name { epoch, number } = pointer.name;
    Error::Damaged {
        what: format!("long value {number} of epoch {epoch}"),
        lba,
        expected: expected.into(),
        found: "other bytes".into(),
    }
}
