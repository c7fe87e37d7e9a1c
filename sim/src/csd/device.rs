//! The simulated compressing drive: a data medium, a codec, an FTL of extents and counters behind
//! the engine's `BlockDevice`.
//!
//! **What is stored.** Extents exist only as sizes. The codec runs on every block with new content,
//! and the FTL packs and moves the sizes. The data stay in memory uncompressed, without trailing
//! zeros. A read is then a copy, which takes 0.6 µs for a half-random block; inflating it would
//! take 6 µs more (example `csd_codecs`), and a page has two or three blocks. Tests check that the
//! codecs round-trip.
//!
//! **Full medium** ([`DeviceError::Full`]): a refused write changes nothing, because its sizes are
//! known before its first block is placed.
//!
//! [`SimCsd::serve`] works as in [`crate::ssd::SimSsd`]: with queues (module `timing`), or with
//! nominal times.

use parking_lot::Mutex;
use treering_engine::device::{
    BlockDevice, BlockRead, BlockWrite, DeviceError, check_range, check_reads, check_request,
    check_writes,
};
use treering_engine::{BLOCK_SIZE, IoClass, Lba, Nanos};

use super::codec::Codec;
use super::ftl::ExtentFtl;
use super::geometry::{foreign_extent, geometry};
use super::profile::CsdProfile;
use super::sizes::Sizes;
use super::timing::{Pipeline, Recorder};
use crate::labels::SizedWrite;
use crate::mean::Mean;
use crate::predict::flash::{Extents, FlashShape};
use crate::ssd::{CLASSES, GeometryError, Served, SsdCounters, TimingMode, Wear};

/// Allocation granularity of stored blocks, so that new content of similar length fits in place.
const KEEP_STEP: usize = 256;

/// Reasons why a compressing drive cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum CsdError {
    /// The flash geometry is invalid.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The codec does not exist.
    #[error("{0}")]
    Codec(String),
}

/// Compression statistics since the counters were reset. Arrays are indexed by `IoClass` in the
/// order of `IoClass::ALL`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompressionCounters {
    /// Compressed bytes of the host's writes, by class: payloads without extent headers.
    pub stored: [u64; CLASSES],
    /// All-zero blocks that the host wrote.
    pub zero_blocks: u64,
    /// Blocks that the codec compressed.
    pub compressed_blocks: u64,
    /// Blocks whose compressed size was known from equal content before.
    pub remembered_blocks: u64,
    /// Bytes left unused at the ends of erase blocks.
    pub padding: u64,
}

/// A block's content without trailing zeros, and its compressed size.
struct Kept {
    bytes: Box<[u8]>,
    payload: u16,
}

struct State {
    medium: Vec<Option<Kept>>,
    sizes: Sizes,
    /// Payload sizes of the current write.
    payloads: Vec<u16>,
    ftl: ExtentFtl,
    /// Host bytes, trims and flushes; the FTL counts the rest.
    host: SsdCounters,
    compression: CompressionCounters,
    pipeline: Pipeline,
    time: Time,
    /// Live bytes after each of the host's writes.
    live: Mean,
}

/// Completion time of the calls since the last `serve`.
enum Time {
    Counting { ns: u64 },
    Queued(Recorder),
}

/// A simulated drive with transparent compression.
pub struct SimCsd {
    profile: CsdProfile,
    blocks: u64,
    seed: u64,
    state: Mutex<State>,
}

impl SimCsd {
    /// Creates an empty drive with `logical_blocks` addressable blocks.
    ///
    /// # Errors
    /// [`CsdError`] for an invalid geometry or codec.
    pub fn new(
        profile: &CsdProfile,
        logical_blocks: u64,
        mode: TimingMode,
        seed: u64,
    ) -> Result<Self, CsdError> {
        let codec = Codec::parse(&profile.codec, profile.level).map_err(CsdError::Codec)?;
        let ftl = ExtentFtl::new(&geometry(profile, logical_blocks, seed)?)?;
        Ok(SimCsd {
            profile: profile.clone(),
            blocks: logical_blocks,
            seed,
            state: Mutex::new(State {
                medium: (0..logical_blocks).map(|_| None).collect(),
                sizes: Sizes::new(codec),
                payloads: Vec::new(),
                ftl,
                host: SsdCounters::default(),
                compression: CompressionCounters::default(),
                pipeline: Pipeline::new(profile),
                time: match mode {
                    TimingMode::Counting => Time::Counting { ns: 0 },
                    TimingMode::Queued => Time::Queued(Recorder::default()),
                },
                live: Mean::default(),
            }),
        })
    }

    /// The drive's compression parameters.
    pub fn codec(&self) -> Codec {
        self.state.lock().sizes.codec()
    }

    /// Serves the requests since the last call, as if they began at `at`.
    pub fn serve(&self, at: Nanos) -> Served {
        let State { time, pipeline, .. } = &mut *self.state.lock();
        match time {
            Time::Counting { ns } => Served::nominal(at, std::mem::take(ns)),
            Time::Queued(recorder) => Served::queued(at, &pipeline.serve(recorder, at.0)),
        }
    }

    /// Counters since the last reset. `nand_host` is compressed bytes including extent headers.
    pub fn counters(&self) -> SsdCounters {
        let state = self.state.lock();
        let ftl = state.ftl.counters();
        SsdCounters {
            nand_host: ftl.host,
            nand_gc: ftl.gc,
            nand_gc_by_class: ftl.gc_by_class,
            erases: ftl.erases,
            ..state.host
        }
    }

    /// Compression statistics since the last reset.
    pub fn compression(&self) -> CompressionCounters {
        let state = self.state.lock();
        CompressionCounters {
            compressed_blocks: state.sizes.compressed,
            remembered_blocks: state.compression.remembered_blocks + state.sizes.remembered,
            padding: state.ftl.counters().padding,
            ..state.compression
        }
    }

    /// Resets the counters; data, mapping and wear stay.
    pub fn reset_counters(&self) {
        let mut state = self.state.lock();
        state.host = SsdCounters::default();
        state.compression = CompressionCounters::default();
        (state.sizes.compressed, state.sizes.remembered) = (0, 0);
        state.ftl.reset_counters();
    }

    /// Wear so far, and the lifetime at the measured ratio of flash bytes to host bytes.
    pub fn wear(&self) -> Wear {
        let state = self.state.lock();
        let blocks = state.ftl.erase_counts().len() as f64;
        let host: u64 = state.host.host_written.iter().sum();
        let flash = state.ftl.counters().host + state.ftl.counters().gc;
        let physical = state.ftl.physical_bytes() as f64;
        Wear {
            mean_erases: state.ftl.erase_counts().map(f64::from).sum::<f64>() / blocks,
            max_erases: state.ftl.erase_counts().max().unwrap_or(0),
            lifetime_host_bytes: (self.profile.flash.pe_limit)
                .filter(|_| flash > 0)
                .map(|limit| physical * f64::from(limit) * host as f64 / flash as f64),
        }
    }

    /// Nanoseconds to read this many bytes at once on an idle drive.
    pub fn read_ns(&self, bytes: usize) -> u64 {
        let blocks = (bytes / BLOCK_SIZE) as u64;
        self.state.lock().pipeline.read_ns(blocks, blocks)
    }

    /// Nanoseconds to write this many bytes at once on an idle drive.
    pub fn write_ns(&self, bytes: usize) -> u64 {
        let blocks = (bytes / BLOCK_SIZE) as u64;
        self.state.lock().pipeline.write_ns(blocks)
    }

    /// Bytes of live extents.
    pub fn live_bytes(&self) -> u64 {
        self.state.lock().ftl.live_bytes()
    }

    /// Bytes of live extents, averaged over the host's writes since the mean was restarted; the
    /// current value if there were none.
    pub(crate) fn mean_live_bytes(&self) -> f64 {
        let state = self.state.lock();
        state.live.or(state.ftl.live_bytes())
    }

    /// Restarts the average of live bytes.
    pub(crate) fn restart_live_mean(&self) {
        self.state.lock().live = Mean::default();
    }

    /// Maximum bytes of live extents before the medium is full.
    pub fn capacity_bytes(&self) -> u64 {
        self.state.lock().ftl.capacity_bytes()
    }

    /// Flash bytes of the log, T.
    pub fn log_bytes(&self) -> u64 {
        self.state.lock().ftl.log_bytes()
    }

    /// Compressed size of one block now, without its header; 0 for an all-zero block.
    pub fn stored_bytes(&self, lba: Lba) -> u64 {
        let state = self.state.lock();
        let kept = state.medium.get(lba.0 as usize).and_then(Option::as_ref);
        kept.map_or(0, |kept| u64::from(kept.payload))
    }

    /// The flash, for a miniature of it.
    pub(super) fn shape(&self) -> FlashShape {
        let profile = &self.profile;
        self.state.lock().ftl.shape(Extents {
            header: profile.extent_header_bytes,
            granularity: profile.extent_granularity_bytes,
            largest: profile.max_extent(),
            foreign: foreign_extent(profile),
        })
    }

    /// The seed of all randomness in the drive.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// The drive's profile.
    pub fn profile(&self) -> &CsdProfile {
        &self.profile
    }

    /// Gives access to the FTL without going through the host interface.
    pub(super) fn with_ftl(&self, how: impl FnOnce(&mut ExtentFtl)) {
        how(&mut self.state.lock().ftl);
    }

    /// Checks the FTL's invariants, and that it holds an extent for each block with data; for
    /// tests.
    ///
    /// # Errors
    /// A description of the first violation.
    pub fn check_invariants(&self) -> Result<(), String> {
        let state = self.state.lock();
        state.ftl.check()?;
        for (lba, kept) in state.medium.iter().enumerate() {
            let expected = kept.as_ref().map_or(0, |k| self.profile.extent(k.payload));
            let found = state.ftl.len(lba as u32);
            let foreign = kept.is_none() && found == foreign_extent(&self.profile);
            if found != expected && !foreign {
                return Err(format!(
                    "block {lba}: an extent of {found} bytes, not {expected}"
                ));
            }
        }
        Ok(())
    }
}

/// Length of the content without trailing zeros.
fn significant(block: &[u8; BLOCK_SIZE]) -> usize {
    let (words, _) = block.as_chunks::<8>();
    let zeros = words.iter().rev().take_while(|w| **w == [0; 8]).count();
    BLOCK_SIZE - 8 * zeros
}

impl SimCsd {
    /// As a batch of writes, without contents.
    pub(super) fn write_sized(&self, writes: &[SizedWrite<'_>]) -> Result<(), DeviceError> {
        for write in writes {
            let bytes = write.payloads.len() * BLOCK_SIZE;
            check_request("write", Lba(write.lba), bytes, self.blocks)?;
        }
        let mut state = self.state.lock();
        let mut bytes = 0;
        let mut result = Ok(());
        for write in writes {
            result = state.store_sized(&self.profile, write);
            if result.is_err() {
                break;
            }
            bytes += write.payloads.len() * BLOCK_SIZE;
        }
        state.end_write(bytes);
        result
    }

    /// Appends the compressed sizes of these blocks, 0 for one of zeros.
    pub(super) fn payloads(&self, lba: Lba, blocks: usize, sizes: &mut Vec<u16>) {
        let state = self.state.lock();
        let places = state.medium.iter().skip(lba.0 as usize).take(blocks);
        sizes.extend(places.map(|kept| kept.as_ref().map_or(0, |kept| kept.payload)));
    }

    /// Bytes moved so far, by label.
    pub(super) fn moved(&self) -> Vec<u64> {
        self.state.lock().ftl.moved().to_vec()
    }
}

impl State {
    fn store(
        &mut self,
        profile: &CsdProfile,
        (lba, bytes, class): (Lba, &[u8], IoClass),
    ) -> Result<(), DeviceError> {
        let (blocks, _) = bytes.as_chunks::<BLOCK_SIZE>();
        self.payloads.clear();
        for (i, block) in blocks.iter().enumerate() {
            let payload = self.payload(lba.0 as usize + i, block);
            self.payloads.push(payload);
        }
        self.make_room(profile, lba)?;
        self.begin_write(class);
        for (i, block) in blocks.iter().enumerate() {
            let at = lba.0 as usize + i;
            match self.payloads[i] {
                0 => self.medium[at] = None,
                payload => keep(&mut self.medium[at], block, payload),
            }
            self.place(profile, (at, i), class);
        }
        self.end_placing();
        Ok(())
    }

    /// As `store`, with sizes instead of contents.
    fn store_sized(
        &mut self,
        profile: &CsdProfile,
        write: &SizedWrite<'_>,
    ) -> Result<(), DeviceError> {
        self.payloads.clear();
        self.payloads.extend_from_slice(write.payloads);
        self.make_room(profile, Lba(write.lba))?;
        self.begin_write(write.class);
        for (i, (lba, &payload)) in (write.lba..).zip(write.payloads).enumerate() {
            self.medium[lba as usize] = (payload > 0).then(|| Kept {
                bytes: Box::default(),
                payload,
            });
            self.ftl.label(lba as u32, write.label);
            self.place(profile, (lba as usize, i), write.class);
        }
        self.end_placing();
        Ok(())
    }

    /// Counts a write of the blocks whose payload sizes are known now.
    fn begin_write(&mut self, class: IoClass) {
        let blocks = self.payloads.len();
        self.host.host_written[class as usize] += (blocks * BLOCK_SIZE) as u64;
        if let Time::Queued(recorder) = &mut self.time {
            recorder.compress(blocks as u32);
        }
    }

    /// Places the block at `at`, the `i`-th of the write.
    fn place(&mut self, profile: &CsdProfile, (at, i): (usize, usize), class: IoClass) {
        let payload = self.payloads[i];
        if payload == 0 {
            self.compression.zero_blocks += 1;
            self.ftl.trim(at as u32);
            return;
        }
        self.compression.stored[class as usize] += u64::from(payload);
        let len = profile.extent(payload);
        match &mut self.time {
            Time::Counting { .. } => self.ftl.write(at as u32, len, class as u8, &mut ()),
            Time::Queued(recorder) => self.ftl.write(at as u32, len, class as u8, recorder),
        }
    }

    /// All blocks of a write are placed.
    fn end_placing(&mut self) {
        self.live.add(self.ftl.live_bytes());
    }

    /// Refuses a write, whose payload sizes are known, if the live bytes would exceed the capacity
    /// at any of its blocks.
    fn make_room(&self, profile: &CsdProfile, lba: Lba) -> Result<(), DeviceError> {
        // Changes of the live bytes by the blocks so far: bytes added and bytes freed.
        let (mut more, mut less) = (0, 0);
        for (at, &payload) in (lba.0..).zip(&self.payloads) {
            more += match payload {
                0 => 0,
                payload => u64::from(profile.extent(payload)),
            };
            less += u64::from(self.ftl.len(at as u32));
            let needed = self.ftl.live_bytes() + more - less;
            if payload > 0 && needed > self.ftl.capacity_bytes() {
                return Err(DeviceError::Full {
                    lba: Lba(at),
                    needed,
                    capacity: self.ftl.capacity_bytes(),
                });
            }
        }
        Ok(())
    }

    /// Compressed size of `block` at `at`; 0 if it is all zeros.
    fn payload(&mut self, at: usize, block: &[u8; BLOCK_SIZE]) -> u16 {
        let end = significant(block);
        if end == 0 {
            return 0;
        }
        match &self.medium[at] {
            Some(kept) if kept.holds(block, end) => {
                self.compression.remembered_blocks += 1;
                kept.payload
            }
            _ => self.sizes.of(block),
        }
    }

    fn fetch(&mut self, cost: &mut ReadCost, (lba, buf, class): (Lba, &mut [u8], IoClass)) {
        self.host.host_read[class as usize] += buf.len() as u64;
        let (blocks, _) = buf.as_chunks_mut::<BLOCK_SIZE>();
        for (i, out) in blocks.iter_mut().enumerate() {
            let at = lba.0 as usize + i;
            let Some(kept) = &self.medium[at] else {
                out.fill(0);
                continue;
            };
            out[..kept.bytes.len()].copy_from_slice(&kept.bytes);
            out[kept.bytes.len()..].fill(0);
            cost.blocks += 1;
            let pages = self.ftl.pages(at as u32);
            for page in pages.into_iter().flat_map(|(first, last)| first..=last) {
                cost.pages += u64::from(cost.last != Some(page));
                cost.last = Some(page);
                if let Time::Queued(recorder) = &mut self.time {
                    recorder.read(page);
                }
            }
        }
    }

    /// Records that a read has returned, so that the next call begins after it.
    fn end_read(&mut self, cost: &ReadCost) {
        match &mut self.time {
            Time::Counting { ns } => *ns += self.pipeline.read_ns(cost.blocks, cost.pages),
            Time::Queued(recorder) => {
                recorder.decompress(cost.blocks as u32);
                recorder.end_call();
            }
        }
    }

    /// Records that a write of this many bytes has returned.
    fn end_write(&mut self, bytes: usize) {
        match &mut self.time {
            Time::Counting { ns } => {
                *ns += self.pipeline.write_ns((bytes / BLOCK_SIZE) as u64);
            }
            Time::Queued(recorder) => recorder.end_call(),
        }
    }
}

impl Kept {
    /// Whether the content equals `block`, whose last non-zero byte lies before `end`.
    fn holds(&self, block: &[u8; BLOCK_SIZE], end: usize) -> bool {
        let len = self.bytes.len();
        end <= len && self.bytes[..] == block[..len]
    }
}

fn keep(place: &mut Option<Kept>, block: &[u8; BLOCK_SIZE], payload: u16) {
    let len = significant(block).next_multiple_of(KEEP_STEP);
    match place {
        Some(kept) if kept.bytes.len() == len => {
            kept.bytes.copy_from_slice(&block[..len]);
            kept.payload = payload;
        }
        other => {
            *other = Some(Kept {
                bytes: block[..len].into(),
                payload,
            });
        }
    }
}

/// The work of one read call: blocks with data, and flash pages.
#[derive(Default)]
struct ReadCost {
    blocks: u64,
    pages: u64,
    last: Option<u64>,
}

impl BlockDevice for SimCsd {
    fn capacity_blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        self.read_batch(&mut [BlockRead { lba, buf, class }])
    }

    fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> Result<(), DeviceError> {
        check_reads(reads, self.blocks)?;
        let mut state = self.state.lock();
        let mut cost = ReadCost::default();
        for read in reads {
            state.fetch(&mut cost, (read.lba, read.buf, read.class));
        }
        state.end_read(&cost);
        Ok(())
    }

    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        self.write_batch(&[BlockWrite { lba, bytes, class }])
    }

    /// Each write of the batch is applied completely or not at all; if one does not fit, those
    /// before it stay applied.
    fn write_batch(&self, writes: &[BlockWrite<'_>]) -> Result<(), DeviceError> {
        check_writes(writes, self.blocks)?;
        let mut state = self.state.lock();
        let mut bytes = 0;
        let mut result = Ok(());
        for write in writes {
            result = state.store(&self.profile, (write.lba, write.bytes, write.class));
            if result.is_err() {
                break;
            }
            bytes += write.bytes.len();
        }
        state.end_write(bytes);
        result
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        check_range("trim", lba, blocks, self.blocks)?;
        let mut state = self.state.lock();
        state.host.trimmed_blocks += blocks;
        for at in lba.0..lba.0 + blocks {
            state.medium[at as usize] = None;
            state.ftl.trim(at as u32);
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.state.lock().host.flushes += 1;
        Ok(())
    }
}
