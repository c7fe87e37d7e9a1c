//! Records that exist before a trace begins.
//!
//! ```text
//! trace ──survey──▶ keys used before they are put ──shuffle──▶ puts ─┐
//!                   (addresses: all keys)                            ├─▶ Input: one source
//! trace ─────────────────────────────────────────────────────────────┘
//! ```
//!
//! A production trace reads records that were written before it began. In an empty store such a get
//! would find no key and read no page. So these records are loaded first, in an order shuffled by
//! the seed, as part of the warm-up. Finding them takes one pass over the trace (the survey):
//! O(operations) time, and at most 19 bytes per distinct key, besides 13 bytes plus the key for
//! each loaded record. A generated trace that begins with its load needs no survey.

mod known;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use treering_traces::{Header, Op, OpKind, OpSource, Reader, TraceError};
use xxhash_rust::xxh3::xxh3_64;

use self::known::Known;
use super::error::ReplayError;
use super::progress::Progress;
use crate::codec::{Decoder, Encoder, malformed};
use crate::predict::workload::reserve;
use crate::report::{Evidence, PreloadReport};

/// Which records to load before the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Preload {
    /// Records of keys that the trace uses before it puts them; all keys if keys are addresses.
    #[default]
    Auto,
    /// None: the store is empty when the trace begins.
    None,
    /// Records of all keys that the trace names.
    All,
    /// Records that another trace's puts leave behind.
    File(PathBuf),
}

impl Preload {
    /// The name in reports.
    pub(super) fn name(&self) -> String {
        match self {
            Preload::Auto => "auto".into(),
            Preload::None => "none".into(),
            Preload::All => "all".into(),
            Preload::File(path) => path.display().to_string(),
        }
    }
}

/// Length of a value if the trace gives no length at all; importers use the same for a block
/// (B⁻-tree §4.1 has records of 128 bytes).
const UNKNOWN_VALUE: u32 = 120;

/// The key was put before any other use.
const PUT_FIRST: u32 = u32::MAX;

/// No put of the key has been seen.
const NO_LENGTH: u32 = u32::MAX;

/// A record to load. Its key starts at `key_at` in the shared buffer; 40 bits.
#[derive(Clone, Copy, Debug)]
struct Record {
    key_at: [u8; 5],
    key_len: [u8; 2],
    value_len: [u8; 4],
}

impl Record {
    fn new(key_at: usize, key_len: usize) -> Record {
        let [a, b, c, d, e, ..] = (key_at as u64).to_le_bytes();
        Record {
            key_at: [a, b, c, d, e],
            key_len: u16::try_from(key_len).unwrap_or(u16::MAX).to_le_bytes(),
            value_len: NO_LENGTH.to_le_bytes(),
        }
    }

    fn key_len(self) -> usize {
        usize::from(u16::from_le_bytes(self.key_len))
    }

    fn key(self) -> std::ops::Range<usize> {
        let [a, b, c, d, e] = self.key_at;
        let at = u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]) as usize;
        at..at + self.key_len()
    }

    fn value_len(self) -> u32 {
        u32::from_le_bytes(self.value_len)
    }

    fn set_value_len(&mut self, len: u32) {
        self.value_len = len.to_le_bytes();
    }
}

/// The records to load, in order.
#[derive(Debug, Default)]
pub(super) struct Loads {
    keys: Vec<u8>,
    records: Vec<Record>,
    pub(super) report: PreloadReport,
}

/// One pass over a trace.
struct Survey {
    loads: Loads,
    /// By hash of the key: the record's number, or [`PUT_FIRST`].
    known: Known,
    /// Whether keys that are put before use are loaded, too.
    all: bool,
    /// Whether each record is still as it was loaded.
    untouched: Vec<bool>,
    puts: u64,
    value_bytes: u64,
    /// Measured gets, and those that only loaded records answer.
    gets: u64,
    gets_of_loaded: u64,
}

impl Loads {
    /// Finds the records to load before the first `limit` operations of `trace`; the first `warmup`
    /// of these are not measured.
    pub(super) fn find(
        preload: &Preload,
        (trace, header): (&Path, &Header),
        (limit, warmup): (u64, u64),
        seed: u64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Loads, ReplayError> {
        let mut loads = match preload {
            _ if !Loads::may_exist(preload, header) => Loads::default(),
            Preload::None => Loads::default(),
            Preload::Auto | Preload::All => {
                let all = *preload == Preload::All || header.addresses;
                Survey::of(trace, (limit, warmup), all, progress)?.finish()
            }
            Preload::File(path) => {
                let reader = treering_traces::open(path)?;
                let ops = reader.header().ops;
                let mut survey = Survey::of(path, (ops, ops), true, progress)?;
                survey.forget_unwritten();
                survey.finish()
            }
        };
        loads.records.shuffle(&mut StdRng::seed_from_u64(seed));
        loads.report.mode = preload.name();
        Ok(loads)
    }

    /// Whether there may be records to load. A generator's load includes everything that the trace
    /// uses.
    pub(super) fn may_exist(preload: &Preload, header: &Header) -> bool {
        let loads_itself = header.seed.is_some() && header.warmup_ops > 0;
        match preload {
            Preload::None => false,
            Preload::Auto => !loads_itself,
            Preload::All | Preload::File(_) => true,
        }
    }

    /// Writes records and report.
    pub(super) fn save(&self, out: &mut Encoder<'_>) -> io::Result<()> {
        let report = &self.report;
        out.bytes(report.mode.as_bytes())?;
        for n in [
            report.keys,
            report.bytes,
            report.evidence.put,
            report.evidence.mean,
        ] {
            out.number(n)?;
        }
        out.maybe(report.evidence.mean_value_bytes.map(u64::from))?;
        out.maybe(report.share_of_reads.map(f64::to_bits))?;
        out.bytes(&self.keys)?;
        out.number(self.len())?;
        for record in &self.records {
            out.number(record.key().start as u64)?;
            out.number((record.key_len() as u64) << 32 | u64::from(record.value_len()))?;
        }
        Ok(())
    }

    /// Reads what [`Loads::save`] wrote.
    pub(super) fn load(from: &mut Decoder<'_>) -> io::Result<Loads> {
        let mode = String::from_utf8_lossy(&from.bytes()?).into_owned();
        let report = PreloadReport {
            mode,
            keys: from.number()?,
            bytes: from.number()?,
            evidence: Evidence {
                put: from.number()?,
                mean: from.number()?,
                mean_value_bytes: from.maybe()?.map(|n| n as u32),
            },
            share_of_reads: from.maybe()?.map(f64::from_bits),
        };
        let mut loads = Loads {
            keys: from.bytes()?,
            records: Vec::new(),
            report,
        };
        for _ in 0..from.number()? {
            let (at, lens) = (from.small()?, from.number()?);
            let mut record = Record::new(at, (lens >> 32) as usize);
            record.set_value_len(lens as u32);
            if loads.keys.len() < record.key().end {
                return Err(malformed("a key is beyond the keys"));
            }
            reserve(&mut loads.records, 1);
            loads.records.push(record);
        }
        Ok(loads)
    }

    /// Number of records to load.
    pub(super) fn len(&self) -> u64 {
        self.records.len() as u64
    }

    /// Bytes of memory that they take until the replay ends.
    pub(super) fn bytes(&self) -> usize {
        self.keys.capacity() + self.records.capacity() * size_of::<Record>()
    }
}

impl Survey {
    fn of(
        trace: &Path,
        (limit, warmup): (u64, u64),
        all: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Survey, TraceError> {
        let mut survey = Survey {
            loads: Loads::default(),
            known: Known::new(),
            all,
            untouched: Vec::new(),
            puts: 0,
            value_bytes: 0,
            gets: 0,
            gets_of_loaded: 0,
        };
        let mut reader = treering_traces::open(trace)?;
        let mut op = Op::default();
        for number in 0..limit {
            if !reader.next_op(&mut op)? {
                break;
            }
            if number & 0xffff == 0xffff {
                progress(Progress::Survey(number, limit));
            }
            survey.take(&op, number >= warmup);
        }
        Ok(survey)
    }

    fn take(&mut self, op: &Op, measured: bool) {
        let is_put = op.kind == OpKind::Put;
        let hash = xxh3_64(&op.key);
        let loads = &mut self.loads;
        let known = self.known.number(hash, || {
            if is_put && !self.all {
                return PUT_FIRST;
            }
            let number = loads.records.len() as u32;
            reserve(&mut loads.records, 1);
            reserve(&mut loads.keys, op.key.len());
            reserve(&mut self.untouched, 1);
            loads
                .records
                .push(Record::new(loads.keys.len(), op.key.len()));
            loads.keys.extend_from_slice(&op.key);
            self.untouched.push(true);
            number
        });
        let at = known as usize;
        if is_put {
            self.puts += 1;
            self.value_bytes += u64::from(op.value_len);
        }
        if op.kind == OpKind::Get && measured {
            self.gets += 1;
            self.gets_of_loaded += u64::from(self.untouched.get(at).is_some_and(|is| *is));
        }
        let Some(record) = loads.records.get_mut(at) else {
            return;
        };
        if is_put && record.value_len() == NO_LENGTH {
            record.set_value_len(op.value_len);
        }
        if matches!(op.kind, OpKind::Put | OpKind::Delete) {
            self.untouched[at] = false;
        }
    }

    /// In another trace, keys that it reads but never puts are not loaded.
    fn forget_unwritten(&mut self) {
        self.loads
            .records
            .retain(|record| record.value_len() != NO_LENGTH);
        self.gets = 0;
    }

    fn finish(self) -> Loads {
        let mut loads = self.loads;
        let mean = self.value_bytes.checked_div(self.puts);
        let mean = mean.map_or(UNKNOWN_VALUE, |mean| mean as u32);
        let report = &mut loads.report;
        for record in &mut loads.records {
            match record.value_len() {
                NO_LENGTH => {
                    record.set_value_len(mean);
                    report.evidence.mean += 1;
                }
                _ => report.evidence.put += 1,
            }
            report.bytes += record.key_len() as u64 + u64::from(record.value_len());
        }
        report.keys = loads.records.len() as u64;
        report.evidence.mean_value_bytes = (report.evidence.mean > 0).then_some(mean);
        let share = self.gets_of_loaded as f64 / self.gets as f64;
        report.share_of_reads = (self.gets > 0).then_some(share);
        loads
    }
}

/// The loaded records, then the trace.
pub(super) struct Input {
    loads: Arc<Loads>,
    next: usize,
    trace: Reader,
}

impl Input {
    pub(super) fn open(trace: &Path, loads: &Arc<Loads>) -> Result<Input, TraceError> {
        Ok(Input {
            loads: Arc::clone(loads),
            next: 0,
            trace: treering_traces::open(trace)?,
        })
    }
}

impl OpSource for Input {
    #[inline]
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let Some(record) = self.loads.records.get(self.next) else {
            return self.trace.next_op(op);
        };
        self.next += 1;
        op.kind = OpKind::Put;
        op.key.clear();
        op.key.extend_from_slice(&self.loads.keys[record.key()]);
        op.value_len = record.value_len();
        (op.scan_len, op.client, op.time_ns, op.zeros) = (0, 0, None, None);
        Ok(true)
    }
}
