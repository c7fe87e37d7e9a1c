//! Options of the tree with one buffer for all leaves.

use super::ccl::Cleaning;
use super::facts::{PmBuffer, PmFacts};
use super::part::PmPart;
use crate::error::{Error, Result};
use crate::options::param::{Param, number, percent, show, show_percent};

/// Options of a global buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobalOptions {
    /// Size at which the buffer is full, as a percentage of the leaves' bytes. Each buffered change
    /// counts as 16 bytes. Default: 10.
    pub buffer_percent: u8,
    /// Number of logs, which threads share. Default: 8.
    pub logs: usize,
}

impl PmPart for GlobalOptions {
    const NAME: &'static str = "pmtree-global";
    const ABOUT: &'static str = "one buffer for all leaves, in the manner of DPTree";
    const SOURCE: &'static str = "CCL-BTree §3.2";
    const PARAMS: &'static [Param<GlobalOptions>] = &[
        Param {
            name: "buffer-share",
            about: "size of the buffer as a share of the leaves",
            get: |global| show_percent(global.buffer_percent),
            set: |global, text| percent(&mut global.buffer_percent, text),
        },
        Param {
            name: "logs",
            about: "logs that threads share",
            get: |global| show(global.logs),
            set: |global, text| number(&mut global.logs, text),
        },
    ];

    fn facts(&self) -> PmFacts {
        PmFacts {
            buffer: PmBuffer::Shared,
            // A flush of the whole buffer frees the log, and everybody waits for it (§3.2:
            // "foreground threads can be stalled").
            cleaning: Some(Cleaning::Naive),
            logs: self.logs,
            // One entry of 24 bytes for each change of sixteen.
            log_share: 2.0 * 1.5 * f64::from(self.buffer_percent) / 100.0,
            ..PmFacts::PLAIN
        }
    }

    fn check(&self, _chunk_bytes: u64) -> Result<()> {
        match self.buffer_percent {
            0 => Err(Error::BadOption {
                name: "buffer-share",
                why: "0 %; expected 1 to 255".into(),
            }),
            _ => Ok(()),
        }
    }
}

impl Default for GlobalOptions {
    fn default() -> Self {
        GlobalOptions {
            buffer_percent: 10,
            logs: 8,
        }
    }
}
