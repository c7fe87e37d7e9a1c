//! Recordings of blktrace: binary, in the byte order of the recording machine.
//!
//! ```text
//! 0       4          8      16       24      28       32    36       40    44      46        48
//! | magic | sequence | time | sector | bytes | action | pid | device | cpu | error | pdu_len | pdu
//! ```
//!
//! The magic is 0x65617407: `eat` and version 7. Time is in ns, the sector counts units of 512
//! bytes, and the device is major << 20 | minor. A record is followed by pdu_len bytes (names of
//! processes, commands of passed-through requests, cgroups), which are skipped. The lower 16 bits
//! of action say what happened (bit 8: a cgroup is named), and the upper 16 are a set of
//! categories.
//!
//! A request passes through several actions. As with `blkparse` text, the imported action is 7
//! (issued to the driver), or 1 (queued) if the recording has no 7. Discards are deletes. Flushes,
//! other requests without data, and passed-through commands have no counterpart. Notifications are
//! skipped.
//!
//! blktrace writes one file per CPU; `blkparse -i sda -d sda.bin` merges them in time order.
//!
//! Source: the kernel's `include/uapi/linux/blktrace_api.h`; blkparse(1), `-d`.

use crate::OpKind;
use crate::import::binary::bytes;
use crate::import::emit::{Emit, Fault, Request};
use crate::import::plugin::BinaryFormat;

/// The magic number without the version, which is the lowest byte.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const RECORD: usize = 48;

/// Basic actions, `enum blktrace_act`.
mod act {
    pub(super) const QUEUE: u32 = 1;
    pub(super) const ISSUE: u32 = 7;
    /// Set in addition to the action: the tail names a cgroup.
    pub(super) const CGROUP: u32 = 1 << 8;
}

/// Categories, `enum blktrace_cat`.
mod category {
    pub(super) const WRITE: u32 = 1 << 1;
    pub(super) const PASSED_THROUGH: u32 = 1 << 9;
    pub(super) const NOTIFY: u32 = 1 << 10;
    pub(super) const DISCARD: u32 = 1 << 13;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Little,
    Big,
}

impl Order {
    /// Returns the byte order in which a recording's first bytes are the magic number.
    fn of(start: &[u8]) -> Option<Order> {
        let word = *start.first_chunk::<4>()?;
        match (u32::from_le_bytes(word), u32::from_be_bytes(word)) {
            (little, _) if little & !0xff == MAGIC => Some(Order::Little),
            (_, big) if big & !0xff == MAGIC => Some(Order::Big),
            _ => None,
        }
    }

    fn u16(self, record: &[u8], at: usize) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(bytes(record, at)),
            Order::Big => u16::from_be_bytes(bytes(record, at)),
        }
    }

    fn u32(self, record: &[u8], at: usize) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(bytes(record, at)),
            Order::Big => u32::from_be_bytes(bytes(record, at)),
        }
    }

    fn u64(self, record: &[u8], at: usize) -> u64 {
        match self {
            Order::Little => u64::from_le_bytes(bytes(record, at)),
            Order::Big => u64::from_be_bytes(bytes(record, at)),
        }
    }
}

/// Whether `start` is the beginning of a recording.
pub(super) fn begins(start: &[u8]) -> bool {
    Order::of(start).is_some()
}

#[derive(Debug)]
pub(super) struct Blktrace {
    order: Order,
    /// The action to import.
    action: u32,
    /// Whether a queued request was found, which matters if none was issued.
    queued: bool,
}

impl Default for Blktrace {
    fn default() -> Self {
        Blktrace {
            order: Order::default(),
            action: act::ISSUE,
            queued: false,
        }
    }
}

impl Blktrace {
    fn is_of_version(&self, record: &[u8]) -> bool {
        self.order.u32(record, 0) == MAGIC | VERSION
    }
}

impl BinaryFormat for Blktrace {
    fn record_len(&mut self, start: &[u8]) -> Result<usize, Fault> {
        match Order::of(start) {
            Some(order) => self.order = order,
            None => {
                let expected = "a blktrace record, which begins with 0x65617407";
                return Err(Fault::bad(expected, &start[..start.len().min(4)]));
            }
        }
        Ok(RECORD)
    }

    fn tail_len(&self, record: &[u8]) -> usize {
        // A record of another kind has no valid tail length.
        match self.is_of_version(record) {
            true => self.order.u16(record, 46).into(),
            false => 0,
        }
    }

    fn record(&mut self, record: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        if !self.is_of_version(record) {
            let magic = self.order.u32(record, 0);
            return Err(Fault::Bad {
                expected: "a blktrace record of version 7, which begins with 0x65617407".into(),
                found: format!("{magic:#010x}"),
            });
        }
        let (sector, length) = (self.order.u64(record, 16), self.order.u32(record, 24));
        let (action, device) = (self.order.u32(record, 28), self.order.u32(record, 36));
        let categories = action >> 16;
        let action = action & 0xffff & !act::CGROUP;
        if categories & category::NOTIFY != 0 {
            return Ok(());
        }
        if action != self.action {
            self.queued |= action == act::QUEUE;
            return Ok(());
        }
        if categories & category::PASSED_THROUGH != 0 {
            out.leave_out(b"passed-through command");
            return Ok(());
        }
        if length == 0 {
            out.leave_out(b"request without data");
            return Ok(());
        }
        let kind = if categories & category::DISCARD != 0 {
            OpKind::Delete
        } else if categories & category::WRITE != 0 {
            OpKind::Put
        } else {
            OpKind::Get
        };
        let offset = sector.checked_mul(512).ok_or_else(|| Fault::Bad {
            expected: "a sector that a device can have".into(),
            found: sector.to_string(),
        })?;
        out.request(Request {
            kind,
            device: &device.to_be_bytes(),
            offset,
            length: length.into(),
            time_ns: Some(self.order.u64(record, 8)),
        })
    }

    fn read_again(&mut self) -> bool {
        self.action = act::QUEUE;
        self.queued
    }
}
