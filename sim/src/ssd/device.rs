//! The simulated drive: a data medium, an FTL and counters behind the engine's `BlockDevice`.
//!
//! [`SimSsd::serve`] computes when the requests since the last call are done: with queues
//! ([`TimingMode::Queued`], module `timing`), or with nominal times ([`TimingMode::Counting`]: one
//! call after another, the pages of a call spread over all dies, without delays by garbage
//! collection).

use parking_lot::Mutex;
use treering_engine::device::{
    BlockDevice, BlockRead, BlockWrite, DeviceError, check_range, check_reads, check_request,
    check_writes,
};
use treering_engine::{BLOCK_SIZE, IoClass, Lba, Nanos};

use crate::labels::SizedWrite;
use crate::mean::Mean;
use crate::predict::flash::FlashShape;
use crate::ssd::ftl::{CLASSES, Ftl, FtlConfig, GeometryError};
use crate::ssd::gc::GcPolicy;
use crate::ssd::profile::SsdProfile;
use crate::ssd::timing::{Flash, Recorder, Taken, nominal_ns};

/// How time is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingMode {
    /// Nominal times, no queues.
    Counting,
    /// Channels and dies with queues, including garbage collection.
    Queued,
}

/// Reasons why a drive cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum SsdError {
    /// The flash geometry is invalid.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

/// Completion of recorded I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Completion of the last I/O.
    pub done: Nanos,
    /// Service time on an idle drive.
    pub service_ns: u64,
    /// Waiting time; 0 in counting mode.
    pub queue_ns: u64,
}

impl Served {
    /// Requests that take this long one after another, on an idle drive.
    pub(crate) fn nominal(at: Nanos, service_ns: u64) -> Served {
        Served {
            done: Nanos(at.0 + service_ns),
            service_ns,
            queue_ns: 0,
        }
    }

    /// Requests that took their time in the queues.
    pub(crate) fn queued(at: Nanos, taken: &Taken) -> Served {
        Served {
            done: Nanos(taken.done_ns),
            service_ns: taken.service_ns,
            queue_ns: taken.done_ns - at.0 - taken.service_ns,
        }
    }
}

/// Counters of a drive since they were reset. Arrays are indexed by `IoClass` in the order of
/// `IoClass::ALL`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SsdCounters {
    /// Bytes the host wrote, by class.
    pub host_written: [u64; CLASSES],
    /// Bytes the host read, by class.
    pub host_read: [u64; CLASSES],
    /// Blocks the host trimmed, mapped or not.
    pub trimmed_blocks: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes programmed for the host.
    pub nand_host: u64,
    /// Bytes programmed by GC.
    pub nand_gc: u64,
    /// Bytes programmed by GC, by class of the moved data.
    pub nand_gc_by_class: [u64; CLASSES],
    /// Blocks erased.
    pub erases: u64,
}

/// Wear over the drive's whole life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wear {
    /// Mean erase count of a block.
    pub mean_erases: f64,
    /// Largest erase count of a block.
    pub max_erases: u32,
    /// Host bytes that can be written until the P/E limit at the measured WA: physical bytes × P/E
    /// / WA. `None` before the first write.
    pub lifetime_host_bytes: Option<f64>,
}

struct State {
    medium: Vec<Option<Box<[u8]>>>,
    ftl: Ftl,
    counters: SsdCounters,
    time: Time,
    /// Pages in use after each of the host's writes.
    in_use: Mean,
}

/// Completion time of the calls since the last `serve`.
enum Time {
    /// Nominal nanoseconds of the calls, of one page read and of one page write.
    Counting {
        ns: u64,
    },
    Queued {
        recorder: Recorder,
        flash: Flash,
    },
}

/// A simulated drive.
///
/// ```
/// use treering_engine::device::BlockDevice;
/// use treering_engine::{BLOCK_SIZE, IoClass, Lba, Nanos};
/// use treering_sim::ssd::{SimSsd, TimingMode, builtin};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (_, profile) = builtin("ssd").expect("a built-in profile");
/// let drive = SimSsd::new(&profile, 10_000, TimingMode::Queued, 0)?;
/// drive.write(Lba(7), &[1; BLOCK_SIZE], IoClass::Log)?;
/// let served = drive.serve(Nanos(1_000));
/// assert_eq!(served.done.0, 1_000 + served.service_ns, "nobody else is there to wait for");
/// assert_eq!(drive.counters().nand_host, BLOCK_SIZE as u64);
/// # Ok(())
/// # }
/// ```
pub struct SimSsd {
    profile: SsdProfile,
    blocks: u64,
    nominal: NominalTimes,
    state: Mutex<State>,
}

impl SimSsd {
    /// Creates an empty drive of `logical_blocks` blocks.
    ///
    /// # Errors
    /// [`SsdError`] for an invalid geometry.
    pub fn new(
        profile: &SsdProfile,
        logical_blocks: u64,
        mode: TimingMode,
        seed: u64,
    ) -> Result<Self, SsdError> {
        let policy = GcPolicy::named(&profile.gc)?;
        let mut config = FtlConfig::new(
            logical_blocks,
            profile.pages_per_block,
            profile.over_provisioning,
            policy,
        );
        config.reserve_blocks = profile.reserve_blocks;
        config.seed = seed;
        let ftl = Ftl::new(&config)?;
        Ok(SimSsd {
            profile: profile.clone(),
            blocks: logical_blocks,
            state: Mutex::new(State {
                medium: (0..logical_blocks).map(|_| None).collect(),
                ftl,
                counters: SsdCounters::default(),
                time: match mode {
                    TimingMode::Counting => Time::Counting { ns: 0 },
                    TimingMode::Queued => Time::Queued {
                        recorder: Recorder::default(),
                        flash: Flash::new(profile),
                    },
                },
                in_use: Mean::default(),
            }),
            nominal: NominalTimes::new(profile),
        })
    }

    /// Lets `change` modify the map before there is any data; this is not counted.
    pub(super) fn prepare(&self, change: impl FnOnce(&mut Ftl)) {
        let mut state = self.state.lock();
        change(&mut state.ftl);
        state.ftl.reset_counters();
    }

    /// Serves the requests since the last call, beginning at `at`.
    pub fn serve(&self, at: Nanos) -> Served {
        match &mut self.state.lock().time {
            Time::Counting { ns } => Served::nominal(at, std::mem::take(ns)),
            Time::Queued { recorder, flash } => Served::queued(at, &flash.serve(recorder, at.0)),
        }
    }

    /// Counters since the last reset.
    pub fn counters(&self) -> SsdCounters {
        let state = self.state.lock();
        let ftl = state.ftl.counters();
        let block = BLOCK_SIZE as u64;
        SsdCounters {
            nand_host: ftl.host_writes * block,
            nand_gc: ftl.gc_writes * block,
            nand_gc_by_class: ftl.gc_by_class.map(|pages| pages * block),
            erases: ftl.erases,
            ..state.counters
        }
    }

    /// Resets the counters; data, mapping and wear stay.
    pub fn reset_counters(&self) {
        let mut state = self.state.lock();
        state.counters = SsdCounters::default();
        state.ftl.reset_counters();
    }

    /// Wear so far, and the lifetime at the measured write amplification.
    pub fn wear(&self) -> Wear {
        let state = self.state.lock();
        let counts = state.ftl.erase_counts();
        let physical = state.ftl.physical_pages() as f64 * BLOCK_SIZE as f64;
        Wear {
            mean_erases: counts.iter().map(|&c| f64::from(c)).sum::<f64>() / counts.len() as f64,
            max_erases: counts.iter().copied().max().unwrap_or(0),
            lifetime_host_bytes: state
                .ftl
                .counters()
                .write_amplification()
                .zip(self.profile.pe_limit)
                .map(|(wa, limit)| physical * f64::from(limit) / wa),
        }
    }

    /// The drive's profile.
    pub fn profile(&self) -> &SsdProfile {
        &self.profile
    }

    /// Nanoseconds to read this many bytes at once on an idle drive.
    pub fn read_ns(&self, bytes: usize) -> u64 {
        self.nominal.read(bytes)
    }

    /// Nanoseconds to write this many bytes at once on an idle drive.
    pub fn write_ns(&self, bytes: usize) -> u64 {
        self.nominal.write(bytes)
    }

    /// Logical pages that hold data now.
    pub fn in_use_pages(&self) -> u64 {
        self.state.lock().ftl.in_use()
    }

    /// Pages in use, averaged over the host's writes since the counters were reset; the current
    /// value if there were none.
    pub(crate) fn mean_in_use_pages(&self) -> f64 {
        let state = self.state.lock();
        state.in_use.or(state.ftl.in_use())
    }

    /// Restarts the average of pages in use.
    pub(crate) fn restart_in_use_mean(&self) {
        self.state.lock().in_use = Mean::default();
    }

    /// Effective α = T/U.
    pub fn alpha(&self) -> f64 {
        self.state.lock().ftl.alpha()
    }

    /// The flash, for a miniature of it.
    pub(super) fn shape(&self) -> FlashShape {
        FlashShape::of_pages(&self.state.lock().ftl.config())
    }

    /// Whether garbage collection ever ran.
    pub fn gc_reached(&self) -> bool {
        self.state.lock().ftl.gc_reached()
    }
}

impl SimSsd {
    /// As a batch of writes, without contents.
    pub(super) fn write_sized(&self, writes: &[SizedWrite<'_>]) -> Result<(), DeviceError> {
        for write in writes {
            let bytes = write.payloads.len() * BLOCK_SIZE;
            check_request("write", Lba(write.lba), bytes, self.blocks)?;
        }
        let mut state = self.state.lock();
        let mut all = 0;
        for write in writes {
            let (lba, bytes) = (write.lba, write.payloads.len() * BLOCK_SIZE);
            state.counters.host_written[write.class as usize] += bytes as u64;
            for page in lba as u32..(lba + write.payloads.len() as u64) as u32 {
                state.ftl.label(page, write.label);
                state.place(page, write.class);
            }
            let in_use = state.ftl.in_use();
            state.in_use.add(in_use);
            all += bytes;
        }
        state.end_call(self.nominal.write(all));
        Ok(())
    }

    /// Bytes moved so far, by label.
    pub(super) fn moved(&self) -> Vec<u64> {
        let state = self.state.lock();
        let pages = state.ftl.moved().iter();
        pages.map(|pages| pages * BLOCK_SIZE as u64).collect()
    }
}

impl State {
    /// Lets the FTL place a page. `FtlConfig` was checked to hold fewer than 2^30 logical pages.
    #[inline]
    fn place(&mut self, page: u32, class: IoClass) {
        match &mut self.time {
            Time::Counting { .. } => self.ftl.write_with(page, class as u8, &mut ()),
            Time::Queued { recorder, .. } => self.ftl.write_with(page, class as u8, recorder),
        }
    }

    fn store(&mut self, lba: Lba, bytes: &[u8], class: IoClass) {
        self.counters.host_written[class as usize] += bytes.len() as u64;
        for (i, new) in bytes.chunks_exact(BLOCK_SIZE).enumerate() {
            let at = lba.0 as usize + i;
            match &mut self.medium[at] {
                Some(block) => block.copy_from_slice(new),
                empty => *empty = Some(new.into()),
            }
            self.place(at as u32, class);
        }
        self.in_use.add(self.ftl.in_use());
    }

    fn fetch(&mut self, lba: Lba, buf: &mut [u8], class: IoClass) {
        self.counters.host_read[class as usize] += buf.len() as u64;
        for (i, out) in buf.chunks_exact_mut(BLOCK_SIZE).enumerate() {
            if let Time::Queued { recorder, .. } = &mut self.time {
                // Reading a block that was never written needs only the map.
                self.ftl
                    .lookup((lba.0 + i as u64) as u32)
                    .into_iter()
                    .for_each(|p| recorder.read(p));
            }
            match &self.medium[lba.0 as usize + i] {
                Some(block) => out.copy_from_slice(block),
                None => out.fill(0),
            }
        }
    }

    /// Records that a call has returned, so that the next one begins after it.
    fn end_call(&mut self, nominal_ns: u64) {
        match &mut self.time {
            Time::Counting { ns } => *ns += nominal_ns,
            Time::Queued { recorder, .. } => recorder.end_call(),
        }
    }
}

/// Duration of a call on an idle drive, by number of pages; computed once.
struct NominalTimes {
    reads: Vec<u64>,
    writes: Vec<u64>,
}

/// Maximum number of pages for which times are tabulated; longer calls are extrapolated.
const TABULATED: usize = 1024;

impl NominalTimes {
    fn new(profile: &SsdProfile) -> NominalTimes {
        NominalTimes {
            reads: (0..=TABULATED as u64)
                .map(|n| nominal_ns(profile, n, 0))
                .collect(),
            writes: (0..=TABULATED as u64)
                .map(|n| nominal_ns(profile, 0, n))
                .collect(),
        }
    }

    fn read(&self, bytes: usize) -> u64 {
        of_table(&self.reads, bytes / BLOCK_SIZE)
    }

    fn write(&self, bytes: usize) -> u64 {
        of_table(&self.writes, bytes / BLOCK_SIZE)
    }
}

fn of_table(table: &[u64], pages: usize) -> u64 {
    (pages / TABULATED) as u64 * table[TABULATED] + table[pages % TABULATED]
}

impl BlockDevice for SimSsd {
    fn capacity_blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        check_request("read", lba, buf.len(), self.blocks)?;
        let mut state = self.state.lock();
        state.fetch(lba, buf, class);
        state.end_call(self.nominal.read(buf.len()));
        Ok(())
    }

    fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> Result<(), DeviceError> {
        check_reads(reads, self.blocks)?;
        let mut state = self.state.lock();
        let mut bytes = 0;
        for read in reads {
            state.fetch(read.lba, read.buf, read.class);
            bytes += read.buf.len();
        }
        state.end_call(self.nominal.read(bytes));
        Ok(())
    }

    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        check_request("write", lba, bytes.len(), self.blocks)?;
        let mut state = self.state.lock();
        state.store(lba, bytes, class);
        state.end_call(self.nominal.write(bytes.len()));
        Ok(())
    }

    fn write_batch(&self, writes: &[BlockWrite<'_>]) -> Result<(), DeviceError> {
        check_writes(writes, self.blocks)?;
        let mut state = self.state.lock();
        let mut bytes = 0;
        for write in writes {
            state.store(write.lba, write.bytes, write.class);
            bytes += write.bytes.len();
        }
        state.end_call(self.nominal.write(bytes));
        Ok(())
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        check_range("trim", lba, blocks, self.blocks)?;
        let mut state = self.state.lock();
        state.counters.trimmed_blocks += blocks;
        for at in lba.0..lba.0 + blocks {
            state.medium[at as usize] = None;
            state.ftl.trim(at as u32);
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.state.lock().counters.flushes += 1;
        Ok(())
    }
}
