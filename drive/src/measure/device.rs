//! One drive of a replay: measured, and predicted from the same stream.

use std::sync::Arc;

use hdrhistogram::Histogram;
use treering_engine::device::DeviceError;
use treering_engine::{BLOCK_SIZE, ClassBytes, IoClass, Lba, Nanos};
use treering_sim::csd::Codec;
use treering_sim::drive::{DriveCounters, SimDrive, SizedWrite, before};
use treering_sim::predict::DeviceParams;
use treering_sim::replay::{AskedDrive, BlockPrediction, BlockPredictor, DriveRun, Target};
use treering_sim::ssd::TimingMode;

use super::payloads::Payloads;
use super::settings::Settings;
use super::survey::Looked;
use crate::error::DriveError;
use crate::recording::event::Write;
use crate::recording::{Reader, Recorded};

/// The longest time of a write that is told from longer ones: 100 seconds.
const LONGEST_NS: u64 = 100_000_000_000;
/// Number of causes.
const CAUSES: usize = 256;

/// A drive in a replay.
pub(crate) struct Measured {
    pub(crate) target: Target,
    pub(crate) drive: Arc<dyn SimDrive>,
    /// Only on a drive that compresses.
    payloads: Option<Payloads>,
    predictor: Option<BlockPredictor>,
    before: DriveCounters,
    moved_before: Vec<u64>,
    /// Compressed bytes by cause, in the measured part.
    stored: Vec<u64>,
    written: ClassBytes,
    now: Nanos,
    latency_ns: Option<Histogram<u64>>,
    /// Moved bytes at the last point of the timeline.
    gc_seen: u64,
    /// Sizes of whole blocks, as many as a write ever had.
    whole: Vec<u16>,
}

fn device(name: &str, why: impl std::fmt::Display) -> DriveError {
    DriveError::Parameter {
        name: "device",
        why: format!("{name}: {why}"),
    }
}

impl Measured {
    pub(super) fn new(
        settings: &Settings,
        target: &Target,
        looked: &Looked,
        reader: &Reader,
    ) -> Result<Measured, DriveError> {
        let name = target.name();
        let Some(asked) = target.drive() else {
            return Err(device(
                &name,
                "expected a simulated drive, such as ssd or csd",
            ));
        };
        let blocks = blocks(settings, asked, looked)?;
        let mode = match settings.timing {
            true => TimingMode::Queued,
            false => TimingMode::Counting,
        };
        let drive = asked.profile.build(blocks, mode, settings.seed);
        let drive = drive.map_err(|e| device(&name, e))?;
        let params = DeviceParams {
            before: before(asked.precondition),
            ..drive.params()
        };
        let payloads = match params.compression {
            None => None,
            Some(_) if looked.lacks_contents => {
                let why = "expected a recording with contents, which a drive that compresses \
                           needs; this one has writes without (record it with --record)";
                return Err(device(&name, why));
            }
            Some(compression) => Some(payloads(compression.codec, reader)?),
        };
        let predictor = match settings.predict {
            None => None,
            Some(method) => {
                let made = BlockPredictor::new(&params, method, settings.seed);
                made.map_err(|e| device(&name, e))?
            }
        };
        drive.prepare(asked.precondition, settings.seed);
        let latency = || {
            let made = Histogram::new_with_max(LONGEST_NS, 3);
            made.map_err(|e| device(&name, e))
        };
        Ok(Measured {
            target: target.clone(),
            payloads,
            predictor,
            before: counters(&*drive),
            moved_before: Vec::new(),
            stored: vec![0; CAUSES],
            written: ClassBytes::default(),
            now: Nanos(0),
            latency_ns: settings.timing.then(latency).transpose()?,
            gc_seen: 0,
            whole: Vec::new(),
            drive,
        })
    }

    /// Begins the measured part.
    pub(super) fn begin(&mut self) {
        self.before = counters(&*self.drive);
        self.moved_before = self.drive.moved();
        self.stored.fill(0);
        self.written = ClassBytes::default();
        self.drive.restart_mean();
        self.gc_seen = self.before.flash.nand_gc;
        if let Some(latency) = &mut self.latency_ns {
            latency.reset();
        }
        if let Some(predictor) = &mut self.predictor {
            predictor.begin_measured();
        }
    }

    /// Takes a write: addresses, slots and causes of its blocks.
    pub(super) fn write(
        &mut self,
        recorded: &Recorded,
        write: &Write,
        (lbas, slots, causes): (&[u64], &[u32], &[u8]),
    ) -> Result<(), DriveError> {
        let compresses = self.payloads.is_some();
        let sizes = match (&mut self.payloads, recorded.contents()) {
            (Some(payloads), Some(contents)) => payloads.of(write, contents, lbas)?,
            _ => {
                self.whole
                    .resize(self.whole.len().max(slots.len()), BLOCK_SIZE as u16);
                &self.whole[..slots.len()]
            }
        };
        let mut at = 0;
        while at < slots.len().min(sizes.len()) {
            let len = run(&slots[at..], &causes[at..]).min(sizes.len() - at);
            let (lba, payloads) = (u64::from(slots[at]), &sizes[at..at + len]);
            let sized = SizedWrite {
                lba,
                payloads,
                class: IoClass::Page,
                label: causes[at],
            };
            let written = self.drive.write_sized(sized);
            written.map_err(|e| refused(&self.target.name(), &e))?;
            if let Some(predictor) = &mut self.predictor {
                predictor.write(lba, payloads);
            }
            if compresses {
                let bytes = payloads.iter().map(|p| u64::from(*p)).sum::<u64>();
                self.stored[usize::from(causes[at])] += bytes;
            }
            at += len;
        }
        self.written.page += (slots.len() * BLOCK_SIZE) as u64;
        self.serve();
        Ok(())
    }

    /// Lets the drive do what it was asked for.
    fn serve(&mut self) {
        let served = self.drive.serve(self.now);
        if let Some(latency) = &mut self.latency_ns {
            latency.saturating_record(served.done.0 - self.now.0);
        }
        self.now = served.done;
    }

    /// Takes a discard: addresses, and the slots of those that held something.
    pub(super) fn discard(&mut self, lbas: &[u64], slots: &[u32]) -> Result<(), DriveError> {
        let name = self.target.name();
        let mut at = 0;
        while at < slots.len() {
            let len = run(&slots[at..], &[]);
            let (lba, blocks) = (u64::from(slots[at]), len as u64);
            let trimmed = self.drive.trim(Lba(lba), blocks);
            trimmed.map_err(|e| refused(&name, &e))?;
            if let Some(predictor) = &mut self.predictor {
                predictor.trim(lba, blocks);
            }
            at += len;
        }
        if let Some(payloads) = &mut self.payloads {
            lbas.iter().for_each(|lba| payloads.discard(*lba));
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<(), DriveError> {
        self.drive
            .flush()
            .map_err(|e| refused(&self.target.name(), &e))
    }

    /// Bytes moved since the last call.
    pub(super) fn gc_since(&mut self) -> u64 {
        let gc = self.drive.counters().nand_gc;
        gc - std::mem::replace(&mut self.gc_seen, gc)
    }

    /// The drive with its counters of the measured part.
    pub(crate) fn run(&self) -> Option<DriveRun<'_>> {
        Some(DriveRun {
            drive: &*self.drive,
            asked: self.target.drive()?,
            before: self.before,
            after: counters(&*self.drive),
        })
    }

    /// Bytes that the host wrote in the measured part.
    pub(crate) fn written(&self) -> &ClassBytes {
        &self.written
    }

    /// What was predicted for the measured part.
    pub(crate) fn predicted(&self) -> Option<BlockPrediction> {
        self.predictor.as_ref().map(BlockPredictor::predict)
    }

    /// Bytes moved in the measured part, of a cause.
    pub(crate) fn moved(&self, cause: usize) -> u64 {
        let now = self.drive.moved().get(cause).copied();
        now.unwrap_or(0) - self.moved_before.get(cause).copied().unwrap_or(0)
    }

    /// Compressed bytes written in the measured part, of a cause; `None` if the drive does not
    /// compress.
    pub(crate) fn stored(&self, cause: usize) -> Option<u64> {
        self.payloads.as_ref().map(|_| self.stored[cause])
    }

    /// Times of writes in the measured part, if they were modelled.
    pub(crate) fn latency_ns(&self) -> Option<&Histogram<u64>> {
        self.latency_ns.as_ref()
    }
}

/// The number of consecutive slots with the same cause at the begin.
fn run(slots: &[u32], causes: &[u8]) -> usize {
    let first = (slots[0], causes.first());
    let follows = |i: &usize| {
        slots[*i] == first.0.wrapping_add(*i as u32) && causes.get(*i).or(first.1) == first.1
    };
    (0..slots.len()).take_while(follows).count()
}

fn counters(drive: &dyn SimDrive) -> DriveCounters {
    DriveCounters {
        flash: drive.counters(),
        compression: drive.compression(),
    }
}

fn payloads(codec: Codec, reader: &Reader) -> Result<Payloads, DriveError> {
    Ok(Payloads::new(codec, reader.pieces()?))
}

fn refused(name: &str, why: &DeviceError) -> DriveError {
    device(name, why)
}

/// Blocks of the drive: the capacity that was asked for, or what fits the most live data.
fn blocks(settings: &Settings, asked: AskedDrive<'_>, looked: &Looked) -> Result<u64, DriveError> {
    let most = looked.most_blocks.max(1);
    let Some(bytes) = asked.capacity_bytes else {
        let fitted = (most as f64 / settings.fill).ceil() as u64;
        return Ok(asked.profile.fitted_blocks(fitted));
    };
    let blocks = bytes / BLOCK_SIZE as u64;
    if blocks < most {
        return Err(DriveError::Parameter {
            name: "capacity",
            why: format!(
                "{bytes} bytes; expected at least {}, the most that was live at once",
                most * BLOCK_SIZE as u64
            ),
        });
    }
    Ok(blocks)
}
