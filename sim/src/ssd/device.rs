//! The simulated drive: a data medium, an FTL and counters behind the engine's `BlockDevice`.
//!
//! Only counting is modelled so far: [`SimSsd::serve`] returns nominal time, without queueing and without GC.
//! Reads of one call follow one another (tR and transfer each); writes spread evenly over dies and channels.

use parking_lot::Mutex;
use treering_engine::device::{BlockDevice, DeviceError};
use treering_engine::{BLOCK_SIZE, IoClass, Lba, Nanos};

use crate::ssd::ftl::{CLASSES, Ftl, FtlConfig, GeometryError};
use crate::ssd::gc::GcPolicy;
use crate::ssd::profile::SsdProfile;

/// How time is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingMode {
    /// Nominal times, no queues.
    Counting,
    /// Channels and dies with queues. Refused by [`SimSsd::new`] for now.
    Queued,
}

/// Why a drive cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum SsdError {
    /// The geometry cannot work.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// Queued timing is not modelled yet.
    #[error("queued timing is not modelled yet: use counting")]
    QueuedUnsupported,
}

/// When recorded I/O completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Completion of the last I/O.
    pub done: Nanos,
    /// Time on an idle drive.
    pub service_ns: u64,
    /// Time spent waiting; 0 when counting.
    pub queue_ns: u64,
}

/// What the drive has done since its counters were reset. Arrays are indexed by `IoClass` in the order of `IoClass::ALL`.
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
    /// Host bytes writable until the P/E limit at the counted WA: physical bytes × P/E / WA. `None` before the first write.
    pub lifetime_host_bytes: Option<f64>,
}

struct State {
    medium: Vec<Option<Box<[u8]>>>,
    ftl: Ftl,
    counters: SsdCounters,
    reads: u64,
    writes: u64,
}

/// A simulated drive.
pub struct SimSsd {
    profile: SsdProfile,
    blocks: u64,
    state: Mutex<State>,
}

impl SimSsd {
    /// An empty drive of `logical_blocks` blocks.
    ///
    /// # Errors
    /// [`SsdError`] for a geometry that cannot work and for [`TimingMode::Queued`].
    pub fn new(
        profile: &SsdProfile,
        logical_blocks: u64,
        mode: TimingMode,
        seed: u64,
    ) -> Result<Self, SsdError> {
        if mode == TimingMode::Queued {
            return Err(SsdError::QueuedUnsupported);
        }
        let policy = GcPolicy::parse(&profile.gc).ok_or_else(|| GeometryError {
            name: "GC policy",
            found: profile.gc.clone(),
            expected: "a policy that GcPolicy::parse reads".into(),
        })?;
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
                reads: 0,
                writes: 0,
            }),
        })
    }

    /// Serves what was asked of the drive since the last call, beginning at `at`.
    pub fn serve(&self, at: Nanos) -> Served {
        let mut state = self.state.lock();
        let (reads, writes) = (
            std::mem::take(&mut state.reads),
            std::mem::take(&mut state.writes),
        );
        let p = &self.profile;
        let transfer_us = BLOCK_SIZE as f64 / p.channel_mb_per_s;
        let read_us = reads as f64 * (p.read_us + transfer_us);
        let write_us = writes.div_ceil(u64::from(p.dies())) as f64 * p.program_us
            + writes.div_ceil(u64::from(p.channels)) as f64 * transfer_us;
        let service_ns = ((read_us + write_us) * 1000.0).round() as u64;
        Served {
            done: Nanos(at.0 + service_ns),
            service_ns,
            queue_ns: 0,
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

    /// Sets the counters to zero; data, mapping and wear stay.
    pub fn reset_counters(&self) {
        let mut state = self.state.lock();
        state.counters = SsdCounters::default();
        state.ftl.reset_counters();
    }

    /// Wear so far, and the lifetime at the counted write amplification.
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
                .map(|wa| physical * f64::from(self.profile.pe_limit) / wa),
        }
    }

    /// Logical pages that hold data now.
    pub fn in_use_pages(&self) -> u64 {
        self.state.lock().ftl.in_use()
    }

    /// Effective α = T/U.
    pub fn alpha(&self) -> f64 {
        self.state.lock().ftl.alpha()
    }

    /// Whether garbage collection ever ran.
    pub fn gc_reached(&self) -> bool {
        self.state.lock().ftl.gc_reached()
    }

    fn check(&self, what: &'static str, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        if lba
            .0
            .checked_add(blocks)
            .is_some_and(|end| end <= self.blocks)
        {
            return Ok(());
        }
        Err(DeviceError::OutOfRange {
            what,
            lba,
            blocks,
            capacity: self.blocks,
        })
    }

    fn check_bytes(&self, what: &'static str, lba: Lba, bytes: usize) -> Result<(), DeviceError> {
        if bytes == 0 || !bytes.is_multiple_of(BLOCK_SIZE) {
            return Err(DeviceError::Misaligned { what, lba, bytes });
        }
        self.check(what, lba, (bytes / BLOCK_SIZE) as u64)
    }
}

impl BlockDevice for SimSsd {
    fn capacity_blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        self.check_bytes("read", lba, buf.len())?;
        let mut state = self.state.lock();
        state.counters.host_read[class as usize] += buf.len() as u64;
        for (i, out) in buf.chunks_exact_mut(BLOCK_SIZE).enumerate() {
            state.reads += 1;
            match &state.medium[lba.0 as usize + i] {
                Some(block) => out.copy_from_slice(block),
                None => out.fill(0),
            }
        }
        Ok(())
    }

    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        self.check_bytes("write", lba, bytes.len())?;
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.counters.host_written[class as usize] += bytes.len() as u64;
        for (i, new) in bytes.chunks_exact(BLOCK_SIZE).enumerate() {
            let at = lba.0 as usize + i;
            match &mut state.medium[at] {
                Some(block) => block.copy_from_slice(new),
                empty => *empty = Some(new.into()),
            }
            // `FtlConfig` was checked to hold fewer than 2^30 logical pages.
            state.ftl.write_with(at as u32, class as u8, &mut ());
            state.writes += 1;
        }
        Ok(())
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        self.check("trim", lba, blocks)?;
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
