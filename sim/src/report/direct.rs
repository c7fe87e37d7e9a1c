//! The drive without a tree in a report.

use serde::Serialize;

use super::numbers::{bytes, grouped};

/// A replay of the trace's own writes on a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DirectReport {
    /// Blocks of 4 KiB of all records.
    pub data_blocks: u64,
    /// How the drive was predicted; `null` if it was not.
    pub miniature: Option<MiniatureReport>,
}

/// A prediction by miniatures of a drive's flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MiniatureReport {
    /// Number of blocks for one that a miniature samples.
    pub sample: u32,
    /// Number of miniatures.
    pub miniatures: u32,
    /// Predicted bytes moved by garbage collection per byte programmed for the host.
    pub gc_over_host: f64,
    /// Standard error of that, from the spread of the miniatures.
    pub standard_error: f64,
}

impl DirectReport {
    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let data = format!(
            "{} blocks, {}",
            grouped(self.data_blocks),
            bytes(self.data_blocks as f64 * 4096.0)
        );
        let mut rows = vec![("Data:", data)];
        rows.extend(self.miniature.map(|m| {
            let said = format!(
                "from {} miniatures, each of one block in {}; flash over host {:.3} ± {:.3}",
                m.miniatures,
                m.sample,
                1.0 + m.gc_over_host,
                m.standard_error
            );
            ("Predicted:", said)
        }));
        rows
    }
}
