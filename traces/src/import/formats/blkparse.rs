//! The text that blkparse prints for a blktrace recording.
//!
//! ```text
//! maj,min  cpu  seq  time         pid   action  RWBS  sector + count  [process]
//! 8,33     30   1    0.001368096  5025  D       R     540544 + 8      [systemd-udevd]
//! ```
//!
//! Time is in seconds, and sectors have 512 bytes. A request passes through several actions. The
//! imported action is D (issued to the driver). If a recording has no D, it is read a second time
//! and Q (queued) is imported. RWBS letters: R read, W write, D discard, F flush, S sync, M
//! metadata, A read-ahead, N none. Flushes and requests without blocks (passed-through commands)
//! have no counterpart. A device is a `maj,min`. The summary that blkparse prints after the events
//! is skipped.
//!
//! Source: blkparse(1), "Default output"; the kernel's `blktrace_api.h`.

use crate::OpKind;
use crate::import::emit::{Emit, Fault, Request};
use crate::import::fields::{scaled, time, words_of};
use crate::import::plugin::TextFormat;

#[derive(Debug)]
pub(super) struct Blkparse {
    action: &'static [u8],
    /// Whether a Q was found, which matters if no D is.
    queued: bool,
    /// Whether the summary has begun.
    summary: bool,
}

impl Default for Blkparse {
    fn default() -> Self {
        Blkparse {
            action: b"D",
            queued: false,
            summary: false,
        }
    }
}

/// The beginnings of the summary's lines.
const SUMMARY: [&[u8]; 7] = [
    b"CPU",
    b"Total",
    b"Events",
    b"Throughput",
    b"Skips",
    b"Input",
    b"Reads",
];

impl TextFormat for Blkparse {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        const LAYOUT: &str = "`maj,min cpu seq time pid action RWBS sector + count`";
        if self.summary {
            return Ok(());
        }
        let mut words = words_of(line);
        let mut word = || words.next().ok_or_else(|| Fault::bad(LAYOUT, line));
        let device = word()?;
        if SUMMARY.iter().any(|start| device.starts_with(start)) {
            self.summary = true;
            return Ok(());
        }
        let is_digit = |b: &u8| b.is_ascii_digit();
        if !device.iter().all(|b| is_digit(b) || *b == b',') || !device.contains(&b',') {
            return Err(Fault::bad(LAYOUT, line));
        }
        let (_cpu, _seq, at, _pid, action) = (word()?, word()?, word()?, word()?, word()?);
        let time_ns = Some(time(at, 1_000_000_000, "a time in seconds")?);
        if action != self.action {
            self.queued |= action == b"Q";
            return Ok(());
        }
        let rwbs = word()?;
        let kind = if rwbs.contains(&b'D') {
            OpKind::Delete
        } else if rwbs.contains(&b'W') {
            OpKind::Put
        } else if rwbs.contains(&b'R') {
            OpKind::Get
        } else {
            out.leave_out(rwbs);
            return Ok(());
        };
        let sector = word()?;
        let plus = words.next();
        if plus != Some(b"+") {
            // `R 36 (12 00 …) [hdparm]` is a passed-through command, and its number counts bytes,
            // not sectors.
            out.leave_out(&[rwbs, b" without blocks"].concat());
            return Ok(());
        }
        let count = words.next().ok_or_else(|| Fault::bad(LAYOUT, line))?;
        out.request(Request {
            kind,
            device,
            offset: scaled(sector, 512, "a sector")?,
            length: scaled(count, 512, "a number of sectors")?,
            time_ns,
        })
    }

    fn read_again(&mut self) -> bool {
        self.action = b"Q";
        self.summary = false;
        self.queued
    }
}
