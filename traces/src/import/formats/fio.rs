//! fio I/O logs, versions 2 and 3.
//!
//! ```text
//! fio version 2 iolog                    fio version 3 iolog
//! /dev/sda add                           2 nvme0n1 add
//! /dev/sda open                          872 nvme0n1 open
//! /dev/sda read 0 4096                   878 nvme0n1 write 0 16384
//! /dev/sda wait 1000 0
//! ```
//!
//! A header line, then `[timestamp] filename action [offset length]`. Offset and length are in
//! bytes. The timestamp exists in version 3 only (fio 3.31 and newer) and counts us since the run
//! began. Version 2 has only waits: their offset is in us since the previous wait, as fio's HOWTO
//! defines it, although fio's own replayer has treated it differently over time. So operations of
//! version 2 have a time from the first wait on.
//!
//! fio appends to an existing log, so one log may hold several runs. Each begins with a header
//! line, and its times continue from the last time of the previous run.
//!
//! add, open, close and unlink do not touch data and are skipped. trim is a delete. sync, datasync
//! and sync_file_range have no counterpart. A device is a file name.
//!
//! Source: fio HOWTO, "Trace file format v2" and "v3"; fio `iolog.c`.

use crate::OpKind;
use crate::import::emit::{Emit, Fault, Request};
use crate::import::fields::{number, scaled, words_of};
use crate::import::plugin::TextFormat;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

#[derive(Debug, Default)]
pub(super) struct Fio {
    /// `None` before the header line.
    version: Option<Version>,
    /// Sum of the waits of version 2, in ns; `None` before the first.
    waited_ns: Option<u64>,
    /// The origin of the times of version 3, in ns: the last time of the previous run.
    run_ns: u64,
    /// The last time of version 3, in ns.
    last_ns: u64,
}

fn version_of(line: &[u8]) -> Option<Version> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Some(Version::Two),
        b"fio version 3 iolog" => Some(Version::Three),
        _ => None,
    }
}

impl TextFormat for Fio {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        if let Some(version) = version_of(line) {
            self.version = Some(version);
            self.run_ns = self.last_ns.max(self.waited_ns.unwrap_or(0));
            return Ok(());
        }
        let Some(version) = self.version else {
            return Err(Fault::bad("`fio version 2 iolog` or 3", line));
        };
        let layout = match version {
            Version::Two => "`filename action [offset length]`",
            Version::Three => "`timestamp filename action [offset length]`",
        };
        let mut words = words_of(line);
        let mut word = || words.next().ok_or_else(|| Fault::bad(layout, line));
        let stamp = match version {
            Version::Two => None,
            Version::Three => {
                let stamp = scaled(word()?, 1000, "a timestamp in us")?;
                self.last_ns = self.run_ns.saturating_add(stamp);
                Some(self.last_ns)
            }
        };
        let (device, action) = (word()?, word()?);
        let kind = match action {
            b"add" | b"open" | b"close" | b"unlink" => return Ok(()),
            b"read" => OpKind::Get,
            b"write" => OpKind::Put,
            b"trim" => OpKind::Delete,
            b"wait" if version == Version::Two => {
                let wait = scaled(word()?, 1000, "a wait in us")?;
                self.waited_ns = Some(self.waited_ns.unwrap_or(0).saturating_add(wait));
                return Ok(());
            }
            b"sync" | b"datasync" | b"sync_file_range" => {
                out.leave_out(action);
                return Ok(());
            }
            _ => {
                return Err(Fault::bad(
                    "a fio action (read, write, trim, sync, …)",
                    action,
                ));
            }
        };
        let offset = number(word()?, "an offset in bytes")?;
        let length = number(word()?, "a length in bytes")?;
        if words.next().is_some() {
            return Err(Fault::bad(layout, line));
        }
        let time_ns = match version {
            Version::Two => self.waited_ns,
            Version::Three => stamp,
        };
        out.request(Request {
            kind,
            device,
            offset,
            length,
            time_ns,
        })
    }
}
