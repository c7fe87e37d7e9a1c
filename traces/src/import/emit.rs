//! Turns what a line means into operations: splits requests into blocks, numbers devices, counts
//! time from the first operation, and counts what is left out.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::expire::{Expiries, Ttl};
use super::options::{ImportOptions, ImportReport, Sink};
use crate::blocks::BLOCK;
use crate::error::shorten;
use crate::op::MAX_KEY;
use crate::{Blocks, Op, OpKind, TraceError};

/// The longest accepted request, in bytes. Block layers split requests far below this. A larger
/// number is a damaged line or a wrong unit, and would become millions of operations.
const MAX_REQUEST: u64 = 4 << 30;
/// The addressable bytes: block numbers have 48 bits in a key.
const MAX_ADDRESS: u64 = BLOCK << 48;
/// Devices have 16 bits in a key.
const MAX_DEVICES: u32 = 1 << 16;
/// The most kinds of left-out operations that are named; damaged input can have any number.
const MAX_NAMES: usize = 16;

/// Why a line yields no operation.
#[derive(Debug)]
pub(super) enum Fault {
    /// The line does not match the format. The next one may.
    Bad { expected: String, found: String },
    /// The sink failed, so the import ends.
    Stop(TraceError),
}

impl Fault {
    /// `found` is the text as it stands in the input.
    #[cold]
    pub(super) fn bad(expected: impl Into<String>, found: &[u8]) -> Fault {
        Fault::Bad {
            expected: expected.into(),
            found: shorten(found),
        }
    }
}

/// A request of a block trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) kind: OpKind,
    /// The name of the device in the trace.
    pub(super) device: &'a [u8],
    /// Bytes.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) length: u64,
    /// Nanoseconds since the start of the trace's own clock.
    pub(super) time_ns: Option<u64>,
}

/// An operation of a key-value trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyOp<'a> {
    pub(super) kind: OpKind,
    pub(super) key: &'a [u8],
    /// Value length of a put, in bytes; ignored for other kinds.
    pub(super) value_len: u32,
    /// Records of a scan; ignored for other kinds.
    pub(super) scan_len: u32,
    /// The name of the client in the trace; empty if the trace has none.
    pub(super) client: &'a [u8],
    pub(super) time_ns: Option<u64>,
    /// When a put's key expires; ignored for other kinds.
    pub(super) ttl: Ttl,
}

/// Numbers names from 0 in the order in which they first appear.
#[derive(Debug, Default)]
struct Numbering {
    numbers: FxHashMap<Box<[u8]>, u32>,
    // Names mostly come in runs, so the last answer saves most lookups. Not valid while `numbers`
    // is empty.
    last: Vec<u8>,
    last_number: u32,
}

impl Numbering {
    #[inline]
    fn number(&mut self, name: &[u8]) -> u32 {
        if self.last == name && !self.numbers.is_empty() {
            return self.last_number;
        }
        let next = self.numbers.len() as u32;
        self.last_number = match self.numbers.get(name) {
            Some(&number) => number,
            None => {
                self.numbers.insert(name.into(), next);
                next
            }
        };
        self.last.clear();
        self.last.extend_from_slice(name);
        self.last_number
    }
}

/// Takes the meaning of lines and hands operations to the sink.
pub(super) struct Emit<'a> {
    sink: &'a mut Sink<'a>,
    pub(super) value_size: u32,
    op: Op,
    ops: u64,
    origin: Option<u64>,
    before_origin: u64,
    devices: Numbering,
    clients: Numbering,
    expiries: Expiries,
    expired: u64,
    /// Puts that have a time to live but no time.
    timeless_ttls: u64,
    left_out: BTreeMap<String, u64>,
    left_out_others: u64,
}

impl<'a> Emit<'a> {
    pub(super) fn new(options: &ImportOptions, sink: &'a mut Sink<'a>) -> Self {
        Emit {
            sink,
            value_size: options.value_size,
            op: Op::default(),
            ops: 0,
            origin: None,
            before_origin: 0,
            devices: Numbering::default(),
            clients: Numbering::default(),
            expiries: Expiries::default(),
            expired: 0,
            timeless_ttls: 0,
            left_out: BTreeMap::new(),
            left_out_others: 0,
        }
    }

    pub(super) fn ops(&self) -> u64 {
        self.ops
    }

    /// Emits one operation for each block that the request touches.
    pub(super) fn request(&mut self, request: Request<'_>) -> Result<(), Fault> {
        let Request {
            kind,
            offset,
            length,
            ..
        } = request;
        if length > MAX_REQUEST {
            return Err(Fault::bad(
                format!("a request of at most {MAX_REQUEST} bytes"),
                length.to_string().as_bytes(),
            ));
        }
        let end = offset.saturating_add(length);
        if end > MAX_ADDRESS {
            return Err(Fault::bad(
                format!("an offset in bytes below {MAX_ADDRESS}"),
                offset.to_string().as_bytes(),
            ));
        }
        if length == 0 {
            self.leave_out(b"request of length 0");
            return Ok(());
        }
        let device = self.devices.number(request.device);
        if device >= MAX_DEVICES {
            return Err(Fault::bad(
                format!("at most {MAX_DEVICES} devices"),
                request.device,
            ));
        }
        let device = u64::from(device) << 48;
        self.op.kind = kind;
        self.op.value_len = if kind == OpKind::Put {
            self.value_size
        } else {
            0
        };
        self.op.scan_len = 0;
        self.op.client = 0;
        self.op.time_ns = self.time(request.time_ns);
        self.op.key.resize(8, 0);
        for block in offset / BLOCK..=(end - 1) / BLOCK {
            self.op.key.copy_from_slice(&(device | block).to_be_bytes());
            self.hand_over()?;
        }
        Ok(())
    }

    /// Emits an operation on a key, `times` times. First emits the deletes of all keys that have
    /// expired since the previous operation.
    pub(super) fn key_op(&mut self, op: KeyOp<'_>, times: u64) -> Result<(), Fault> {
        if op.key.len() > MAX_KEY {
            return Err(Fault::bad(
                format!("a key of at most {MAX_KEY} bytes"),
                op.key,
            ));
        }
        let time_ns = self.time(op.time_ns);
        self.expire(time_ns)?;
        self.op.kind = op.kind;
        self.op.value_len = if op.kind == OpKind::Put {
            op.value_len
        } else {
            0
        };
        self.op.scan_len = if op.kind == OpKind::Scan {
            op.scan_len
        } else {
            0
        };
        self.op.client = if op.client.is_empty() {
            0
        } else {
            self.clients.number(op.client)
        };
        self.op.time_ns = time_ns;
        self.op.key.clear();
        self.op.key.extend_from_slice(op.key);
        for _ in 0..times {
            self.hand_over()?;
        }
        match (op.kind, op.ttl) {
            (OpKind::Put, Ttl::After(ttl_ns)) => match time_ns {
                Some(now) => {
                    let due_ns = now.saturating_add(ttl_ns);
                    self.expiries.set(op.key, self.op.client, due_ns);
                }
                None => self.timeless_ttls += 1,
            },
            (OpKind::Put, Ttl::Never) | (OpKind::Delete, _) => self.expiries.cancel(op.key),
            _ => {}
        }
        Ok(())
    }

    /// Emits the deletes of all keys that have expired. A key is gone exactly when its time to live
    /// has passed: an operation at that time no longer finds it.
    #[inline]
    fn expire(&mut self, time_ns: Option<u64>) -> Result<(), Fault> {
        let Some(now_ns) = time_ns else {
            return Ok(());
        };
        while let Some(expired) = self.expiries.next(now_ns) {
            self.op.kind = OpKind::Delete;
            self.op.value_len = 0;
            self.op.scan_len = 0;
            self.op.client = expired.client;
            self.op.time_ns = Some(expired.time_ns);
            self.op.key.clear();
            self.op.key.extend_from_slice(&expired.key);
            self.hand_over()?;
            self.expired += 1;
        }
        Ok(())
    }

    /// Counts an operation that has no counterpart.
    #[cold]
    pub(super) fn leave_out(&mut self, name: &[u8]) {
        let name = String::from_utf8_lossy(&name[..name.len().min(40)]).into_owned();
        if self.left_out.len() < MAX_NAMES || self.left_out.contains_key(&name) {
            *self.left_out.entry(name).or_default() += 1;
        } else {
            self.left_out_others += 1;
        }
    }

    #[inline]
    fn hand_over(&mut self) -> Result<(), Fault> {
        (self.sink)(&self.op).map_err(Fault::Stop)?;
        self.ops += 1;
        Ok(())
    }

    #[inline]
    fn time(&mut self, time_ns: Option<u64>) -> Option<u64> {
        let time = time_ns?;
        let origin = *self.origin.get_or_insert(time);
        if time < origin {
            self.before_origin += 1;
        }
        Some(time.saturating_sub(origin))
    }

    /// Forgets what was left out, because the input will be read again.
    pub(super) fn forget_left_out(&mut self) {
        self.left_out.clear();
        self.left_out_others = 0;
    }

    /// Fills in the report: counts, and warnings for the user.
    pub(super) fn report(&self, report: &mut ImportReport) {
        report.ops = self.ops;
        report.expired = self.expired;
        report.devices = self.devices.numbers.len() as u64;
        // Only block requests name a device.
        let of_blocks = report.devices > 0;
        report.blocks = of_blocks.then(|| Blocks::with_values_of(self.value_size.into()));
        report.left_out = self.left_out.values().sum::<u64>() + self.left_out_others;
        if report.left_out > 0 {
            let mut names: Vec<String> = self
                .left_out
                .iter()
                .map(|(name, n)| format!("{n} × {name}"))
                .collect();
            if self.left_out_others > 0 {
                names.push(format!("{} × others", self.left_out_others));
            }
            report.warnings.push(format!(
                "{} operations have no counterpart and were left out: {}",
                report.left_out,
                names.join(", ")
            ));
        }
        if self.timeless_ttls > 0 {
            report.warnings.push(format!(
                "{} puts have a time to live but no time to count it from: \
                 their keys do not expire",
                self.timeless_ttls
            ));
        }
        if self.before_origin > 0 {
            report.warnings.push(format!(
                "{} requests are stamped earlier than the first one; their time is set to 0",
                self.before_origin
            ));
        }
    }
}
