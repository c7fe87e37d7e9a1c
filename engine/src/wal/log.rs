//! Appends to the log, and group commit.
//!
//! ```text
//! append ──▶ active buffer ──(leader: swap)──▶ in flight ──write, flush──▶ durable, wake all
//!            ▲               under the mutex    │
//!            └── copy of the unfinished block ◀─┘
//! ```
//!
//! In the sparse log (B⁻-tree §3.3), the copy is left out: the next flush begins with a new block,
//! and the last block of each flush is marked as closed. So a record is written only once, while a
//! flush still writes the same number of blocks.
//!
//! A thread that needs an LSN durable and finds no flush running becomes the leader, and flushes
//! everything appended by then. The other threads wait, and check again when it is done. All
//! decisions are made under one mutex, and every change of what they depend on wakes all waiters,
//! so no wake-up is lost (BUGS L1). `durable` advances only after the device flush has returned
//! (D5, D12). After a failed write or flush, the log is poisoned for good: the kernel may have
//! dropped the dirty pages, so a successful retry proves nothing.
//!
//! A write for which the device has no room is different: the kernel accepted none of it, and the
//! bytes are still in the buffer. They are not acknowledged as durable. The next thread that wants
//! a flush writes all of them again, before any others.

use std::sync::Arc;

use super::block::{B, Header, behind, block_of};
use super::buffer::{Buffer, Under};
use super::record::{MAX_RECORD_BYTES, Record};
use super::{LogRegion, told};
use crate::device::{AlignedBuf, BlockWrite, Volume};
use crate::error::{Error, Result};
use crate::events::{Event, Redo};
use crate::mutation;
use crate::options::{LogPacking, Options};
use crate::stats::Stats;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex};
use crate::types::{BLOCK_SIZE, IoClass, Lsn};

/// The buffer's room beyond `log_buffer_bytes`, so that the flush that comes due there has time to
/// run in the background. It is as large as `log_buffer_bytes` but at most this, and at least four
/// pages, because a record may be as long as three.
const MOST_SLACK_BYTES: u64 = 256 << 10;

/// The maximum number of blocks that one flush writes: each block stores, in 16 bits, how many
/// blocks before it belong to the same flush.
const MOST_FLUSH_BLOCKS: u64 = 65_535;

pub(super) struct State {
    active: Buffer,
    /// `None` while a flush is in flight.
    spare: Option<Buffer>,
    /// A buffer that the device had no room for, wholly or partly. It is written before anything
    /// else, and none of its records is acknowledged until then.
    refused: Option<Buffer>,
    /// Why nothing may be acknowledged any more.
    poisoned: Option<String>,
    /// Where the intent of the open batch begins, and in which epoch. A checkpoint must not free
    /// it.
    pub(super) batch: Option<(Lsn, u32)>,
    /// Whether a batch makes sure of its room in the log.
    pub(super) batch_ahead: bool,
    records: u64,
    appended_bytes: u64,
    flushes: u64,
}

/// The redo log of one open store.
///
/// ```
/// use std::sync::Arc;
/// use treering_engine::device::{MemDevice, Volume};
/// use treering_engine::wal::{Log, LogRegion, LogStart, Record, replay};
/// use treering_engine::{Lba, Lsn, Options, PageId, Result, StoreId};
///
/// # fn main() -> Result<()> {
/// let volume = Arc::new(Volume::new(Arc::new(MemDevice::new(64))));
/// let region = LogRegion { start: Lba(0), blocks: 64, store: StoreId(7) };
/// let log = Log::create(volume.clone(), region, 1, Lsn(0), &Options::default())?;
/// let lsn = log.append(&Record::Put { page: PageId(3), key: b"apple", value: b"red" })?;
/// log.flush_to(lsn)?; // Durable when this returns.
///
/// let start = LogStart { from: Lsn(0), epoch: 1, flush_blocks: log.flush_blocks() };
/// let mut found = Vec::new();
/// let end = replay(&volume, region, start, |lsn, record| {
///     found.push((lsn, record.pages().collect::<Vec<_>>()));
///     Ok(())
/// })?;
/// assert_eq!(found, [(lsn, vec![PageId(3)])]);
/// assert_eq!((end.end, end.records), (lsn, 1));
/// # Ok(())
/// # }
/// ```
pub struct Log {
    volume: Arc<Volume>,
    region: LogRegion,
    under: Under,
    /// Blocks in a buffer, and so the maximum of a flush.
    flush_blocks: u64,
    /// The position at which this log began to append.
    start: u64,
    pub(super) state: Mutex<State>,
    /// Signalled when a flush ends, successfully or not.
    flushed: Condvar,
    /// Invariant: durable <= end; both only grow. `end` advances after the bytes are in the buffer
    /// (BUGS D12).
    end: AtomicU64,
    durable: AtomicU64,
    redo_start: AtomicU64,
}

impl Log {
    /// Creates a log that continues at `start` (rounded up to a block boundary) under `epoch`. The
    /// epoch must be greater than every epoch in the region, and durable elsewhere (in the
    /// superblock) before the first flush. Writes nothing.
    ///
    /// # Errors
    /// [`Error::BadOption`] if the region has fewer than two blocks or `epoch` is 0.
    pub fn create(
        volume: Arc<Volume>,
        region: LogRegion,
        epoch: u32,
        start: Lsn,
        options: &Options,
    ) -> Result<Log> {
        if region.blocks < 2 || epoch == 0 {
            let why = format!(
                "found {} blocks and epoch {epoch}; expected at least 2 blocks and an epoch above 0",
                region.blocks
            );
            return Err(Error::BadOption { name: "log", why });
        }
        let start = start.0.next_multiple_of(B);
        let slack = options
            .log_buffer_bytes
            .min(MOST_SLACK_BYTES)
            .max(4 * options.page_size as u64);
        let wanted = options.log_buffer_bytes.saturating_add(slack).div_ceil(B);
        let flush_blocks = wanted.min(region.blocks).min(MOST_FLUSH_BLOCKS);
        let blocks = flush_blocks as usize;
        let mutated = mutation::on("log-keeps-epoch") && epoch > 1;
        Ok(Log {
            volume,
            region,
            under: Under {
                store: region.store,
                epoch: if mutated { epoch - 1 } else { epoch },
                epoch_start: if mutated { u64::MAX } else { block_of(start) },
                packing: options.log_packing,
            },
            flush_blocks,
            start,
            state: Mutex::new(State {
                active: Buffer::new(blocks, start),
                spare: Some(Buffer::new(blocks, start)),
                refused: None,
                poisoned: None,
                batch: None,
                batch_ahead: false,
                records: 0,
                appended_bytes: 0,
                flushes: 0,
            }),
            flushed: Condvar::new(),
            end: AtomicU64::new(start),
            durable: AtomicU64::new(start),
            redo_start: AtomicU64::new(start),
        })
    }

    /// Appends a record. It is durable once `flush_to` of the returned LSN has returned. If the
    /// buffer is full, it is flushed first.
    ///
    /// # Errors
    /// [`Error::LogFull`] if the region would overflow, [`Error::RecordTooLarge`] beyond
    /// [`MAX_RECORD_BYTES`], [`Error::Poisoned`], or an error of the flush. Then nothing was
    /// appended. Never [`Error::NoSpace`]: the caller has already changed its page, so the buffer
    /// grows by what the device has no room for.
    pub fn append(&self, record: &Record<'_>) -> Result<Lsn> {
        let appended = self.append_if(record, |_| true)?;
        appended.ok_or_else(|| self.full())
    }

    /// Appends the record if it may be, as [`Log::append`].
    pub(super) fn append_if(
        &self,
        record: &Record<'_>,
        may: impl Fn(&State) -> bool,
    ) -> Result<Option<Lsn>> {
        let entry = record;
        let record = record.encode();
        let len = record.len();
        loop {
            let mut state = self.state.lock();
            check_poison(&state)?;
            if !may(&state) {
                return Ok(None);
            }
            let pos = state.active.pos();
            let end = behind(pos, len);
            if len > MAX_RECORD_BYTES || len > state.active.max_record() {
                let max = MAX_RECORD_BYTES.min(state.active.max_record());
                return Err(Error::RecordTooLarge {
                    len,
                    max,
                    page_size: 65536,
                });
            }
            if end > self.limit() {
                return Err(self.full());
            }
            if !state.active.fits(end) {
                drop(state);
                match self.flush_to(Lsn(pos)) {
                    Err(e) if e.is_no_space() => self.state.lock().active.grow(len),
                    flushed => flushed?,
                }
                continue;
            }
            state.active.push(&record, end);
            state.records += 1;
            state.appended_bytes += len as u64;
            self.volume.tell(|| told::appended(entry, Lsn(end)));
            self.end.store(end, Ordering::Release);
            return Ok(Some(Lsn(end)));
        }
    }

    /// Returns when everything up to `lsn` (or up to the end, if that comes first) is durable.
    /// Flushes everything appended by then: from the block with the first unflushed byte through
    /// the last block, 4 KiB each.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if this or an earlier flush failed. [`Error::NoSpace`] if the device had
    /// no room: the records stay in memory, and the next call tries again.
    pub fn flush_to(&self, lsn: Lsn) -> Result<()> {
        if lsn.0 <= self.durable.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut state = self.state.lock();
        let lsn = lsn.0.min(self.end.load(Ordering::Acquire));
        loop {
            if lsn <= self.durable.load(Ordering::Acquire) {
                return Ok(());
            }
            check_poison(&state)?;
            let Some(full) = self.take_full(&mut state) else {
                self.flushed.wait(&mut state);
                continue;
            };
            drop(state);
            let (full, outcome) = self.write_out(full);
            state = self.state.lock();
            let finished = self.finish(&mut state, full, outcome);
            if !mutation::on("log-sleeps-through") {
                self.flushed.notify_all();
            }
            finished?;
        }
    }

    /// Takes the buffer to be flushed next: the one that was refused the last time, or else
    /// everything appended. Returns `None` if a flush is in flight.
    fn take_full(&self, state: &mut State) -> Option<Buffer> {
        if let Some(refused) = state.refused.take() {
            // To other threads, the refused flush still looks in flight.
            return Some(refused);
        }
        let mut next = state.spare.take()?;
        next.continue_after(&state.active, self.under.packing);
        let full = std::mem::replace(&mut state.active, next);
        self.volume.tell(|| Event::LogFlushBegins {
            from: self.durable(),
            to: Lsn(full.pos()),
        });
        Some(full)
    }

    /// Flushes if at least `threshold` bytes are unflushed. Returns whether it did.
    ///
    /// # Errors
    /// As [`Log::flush_to`].
    pub fn flush_if(&self, threshold: u64) -> Result<bool> {
        let due = self.unflushed_bytes() >= threshold.max(1);
        if due {
            self.flush_to(self.end())?;
        }
        Ok(due)
    }

    /// Writes a buffer, as the leader and without the mutex. Meanwhile, appends go to the other
    /// buffer.
    fn write_out(&self, mut full: Buffer) -> (Buffer, Result<()>) {
        if mutation::on("log-acks-before-flush") {
            self.durable.store(full.pos(), Ordering::Release);
        }
        let (first, to) = (full.first_block(), Lsn(full.pos()));
        let bytes = full.seal(self.under);
        told::blocks(&self.volume, bytes);
        // The region is circular. There is at most one wrap, because the buffer is no larger than
        // the region.
        let before_wrap = (self.region.blocks - first % self.region.blocks) as usize * BLOCK_SIZE;
        let (a, b) = bytes.split_at(before_wrap.min(bytes.len()));
        let write = |index, bytes| BlockWrite {
            lba: self.region.lba(index),
            bytes,
            class: IoClass::Log,
        };
        let writes = [write(first, a), write(0, b)];
        let writes = if b.is_empty() {
            &writes[..1]
        } else {
            &writes[..]
        };
        // Flush long values first. Otherwise a record could survive a crash while the value it
        // points to does not.
        let before = match mutation::on("overflow-not-synced-before-log") {
            true => Ok(()),
            false => self.volume.flush_before_log(),
        };
        let outcome = before.and_then(|()| {
            self.volume.write_batch(writes)?;
            self.volume.tell(|| Event::LogWritten { to });
            self.volume.flush()
        });
        (full, outcome)
    }

    /// Records the outcome of a flush. Returns an error only if the flush was refused for want of
    /// room; any other failure is stored in `state`.
    fn finish(&self, state: &mut State, full: Buffer, outcome: Result<()>) -> Result<()> {
        let to = Lsn(full.pos());
        match outcome {
            Ok(()) => {
                state.flushes += 1;
                self.volume.tell(|| Event::LogFlushed { to });
                self.durable.store(full.pos(), Ordering::Release);
            }
            Err(e) if e.is_no_space() => {
                if mutation::on("enospc-acknowledges") {
                    self.durable.store(full.pos(), Ordering::Release);
                    state.spare = Some(full);
                    return Ok(());
                }
                state.refused = Some(full);
                return Err(e);
            }
            Err(e) => {
                self.volume.tell(|| Event::LogFlushFailed { to });
                if mutation::on("log-retries-failed-flush") {
                    // fsyncgate: flushed once more, and this time it "succeeds".
                    self.durable.store(full.pos(), Ordering::Release);
                } else {
                    state.poisoned = Some(format!("writing the log failed: {e}"));
                }
            }
        }
        state.spare = Some(full);
        Ok(())
    }

    /// Writes a witness: a block behind the end of the log which states that everything before it
    /// is durable, as it must be by now. Nothing may be appended afterwards. With it, damage to the
    /// last flush cannot be mistaken for a flush that a power cut interrupted. Does nothing if this
    /// log has not flushed anything, if recovery will not read it, or if there is no room.
    ///
    /// # Errors
    /// Device failures.
    pub fn witness(&self) -> Result<()> {
        let state = self.state.lock();
        check_poison(&state)?;
        let end = self.end().0;
        let read = end > self.redo_start().0 && end == self.durable().0;
        let index = block_of(end.next_multiple_of(B));
        if state.flushes == 0 || !read || (index + 1) * B > self.limit() {
            return Ok(());
        }
        let header = Header {
            witness: true,
            ..Header::bare(self.under.epoch, index)
        };
        let mut block = AlignedBuf::zeroed(BLOCK_SIZE);
        header.seal(&mut block, self.region.store);
        let epoch = header.epoch;
        let told = Redo::WritesWitness { epoch, index };
        self.volume.tell(|| Event::Redo(told));
        self.volume
            .write(self.region.lba(index), &block, IoClass::Log)?;
        self.volume.flush()?;
        self.volume.tell(|| Event::Redo(Redo::WitnessWritten));
        Ok(())
    }

    /// Bytes of memory that the buffers take.
    pub fn buffer_bytes(&self) -> u64 {
        let state = self.state.lock();
        let others = [&state.spare, &state.refused];
        let others = others.into_iter().flatten().map(Buffer::bytes);
        state.active.bytes() + others.sum::<u64>()
    }

    /// Returns the position at which redo will begin, and the epoch there: the end of the log, or
    /// where the open batch begins. No record can be appended while the event of the checkpoint's
    /// beginning is emitted.
    pub(crate) fn begin_checkpoint(&self) -> (Lsn, u32) {
        let state = self.state.lock();
        let pin = (state.batch).filter(|_| !mutation::on("checkpoint-ignores-batch"));
        let begin = pin.unwrap_or_else(|| (self.end(), self.epoch()));
        self.volume
            .tell(|| Event::CheckpointBegins { begin: begin.0 });
        begin
    }

    /// The position behind the last record appended.
    pub fn end(&self) -> Lsn {
        Lsn(self.end.load(Ordering::Acquire))
    }

    /// Everything up to this position survives a crash.
    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// Bytes between [`Log::durable`] and [`Log::end`], including block headers.
    pub fn unflushed_bytes(&self) -> u64 {
        let durable = self.durable.load(Ordering::Acquire);
        self.end.load(Ordering::Acquire).saturating_sub(durable)
    }

    /// Bytes that a record may take in the log beside itself: the rest of a block, if a flush
    /// follows.
    pub fn padding(&self) -> u64 {
        match self.under.packing {
            LogPacking::Packed => 0,
            LogPacking::Sparse => B,
        }
    }

    /// Bytes of records that can still be appended before the log must be truncated, without
    /// [`Log::padding`].
    pub fn space_left(&self) -> u64 {
        let end = match self.under.packing {
            LogPacking::Packed => self.end.load(Ordering::Acquire),
            LogPacking::Sparse if mutation::on("sparse-closed-room-counts") => {
                self.end.load(Ordering::Acquire)
            }
            LogPacking::Sparse => self.end.load(Ordering::Acquire).next_multiple_of(B),
        };
        let raw = self.limit().saturating_sub(end);
        let headers = raw.div_ceil(B) * super::BLOCK_HEADER as u64;
        raw.saturating_sub(headers)
    }

    /// The maximum number of record bytes that the region holds.
    pub fn capacity(&self) -> u64 {
        self.region.blocks * super::BLOCK_PAYLOAD as u64
    }

    /// The oldest position still needed.
    pub fn redo_start(&self) -> Lsn {
        Lsn(self.redo_start.load(Ordering::Acquire))
    }

    /// The epoch under which this log writes.
    pub fn epoch(&self) -> u32 {
        self.under.epoch
    }

    /// The maximum number of blocks that one flush writes.
    pub fn flush_blocks(&self) -> u64 {
        self.flush_blocks
    }

    /// Keeps the log from `redo_start` on, which lies before this log's own start, because recovery
    /// still needs it.
    pub fn keep_from(&self, redo_start: Lsn) {
        self.redo_start.fetch_min(redo_start.0, Ordering::AcqRel);
    }

    /// Frees the log before `redo_start`, which must already be durable elsewhere as the start of
    /// recovery. Trims the blocks before they can be reused. Only one thread may call this at a
    /// time.
    ///
    /// # Errors
    /// Device failures.
    pub fn truncate(&self, redo_start: Lsn) -> Result<()> {
        let old = self.redo_start.load(Ordering::Acquire);
        let durable = self.durable.load(Ordering::Acquire);
        let new = if mutation::on("truncate-to-end") {
            durable
        } else {
            redo_start.0.min(durable)
        };
        if new <= old {
            return Ok(());
        }
        let (mut at, end) = (block_of(old), block_of(new));
        while at < end {
            // The region's first block is kept: a store that is made here later gets a different id
            // because of it (`StoreId::draw`).
            if at.is_multiple_of(self.region.blocks) && !mutation::on("log-gives-first-block-up") {
                at += 1;
                continue;
            }
            let run = (end - at).min(self.region.blocks - at % self.region.blocks);
            self.volume.trim(self.region.lba(at), run)?;
            at += run;
        }
        let redo_start = Lsn(new);
        self.volume.tell(|| Event::LogTruncated { redo_start });
        self.redo_start.store(new, Ordering::Release);
        Ok(())
    }

    /// Returns `io` with this log's counters filled in.
    pub fn stats(&self, io: Stats) -> Stats {
        let state = self.state.lock();
        Stats {
            log_records: state.records,
            log_appended_bytes: state.appended_bytes,
            log_flushes: state.flushes,
            log_wraps: self.wraps(state.active.pos()),
            ..io
        }
    }

    /// Positions only grow, so the block index tells how often the region was filled.
    fn wraps(&self, pos: u64) -> u64 {
        block_of(pos) / self.region.blocks - block_of(self.start) / self.region.blocks
    }

    /// The position that `end` must not pass.
    fn limit(&self) -> u64 {
        (block_of(self.redo_start.load(Ordering::Acquire)) + self.region.blocks) * B
    }

    #[cold]
    fn full(&self) -> Error {
        Error::LogFull {
            capacity: self.capacity(),
            redo_start: self.redo_start(),
        }
    }
}

fn check_poison(state: &State) -> Result<()> {
    match &state.poisoned {
        None => Ok(()),
        Some(why) => Err(Error::Poisoned { why: why.clone() }),
    }
}
