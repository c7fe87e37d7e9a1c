//! Options of the tree with one buffer for all leaves.

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

    fn logs(&self) -> usize {
        self.logs
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
