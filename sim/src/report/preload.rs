//! What was loaded before the trace.

use serde::Serialize;

use super::numbers::{bytes, grouped};

/// What was loaded, from what evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PreloadReport {
    /// `auto`, `none`, `all`, or the file.
    pub mode: String,
    /// Keys whose records were loaded before the trace, as part of the warm-up.
    pub keys: u64,
    /// Bytes of these keys and their values.
    pub bytes: u64,
    /// From what is known how long the values are.
    pub evidence: Evidence,
    /// Share of the measured gets that read what only the load wrote; `null` without gets, or if
    /// nobody looked.
    pub share_of_reads: Option<f64>,
}

/// From what is known how long the values are that are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// Keys with the value length of their first later put in the trace.
    pub put: u64,
    /// Keys that are never put: their values are as long as those of all puts in the mean, or, in a
    /// trace without puts, 120 bytes.
    pub mean: u64,
    /// The value length of those, in bytes.
    pub mean_value_bytes: Option<u32>,
}

/// What was loaded before the trace, in a sentence; nothing if nothing was, or would have been.
pub(crate) fn preloaded(p: &PreloadReport) -> Option<String> {
    if p.keys == 0 {
        return None;
    }
    let (records, size) = (grouped(p.keys), bytes(p.bytes as f64));
    let mut sentence = format!(
        "{records} records ({size}) loaded before it, as warm-up (--preload {})",
        p.mode
    );
    if let Some(mean) = p.evidence.mean_value_bytes {
        let sized = grouped(p.evidence.mean);
        sentence += &format!("; {sized} of them, which it never puts, with values of {mean} bytes");
    }
    if let Some(share) = p.share_of_reads {
        sentence += &format!(
            "; {:.1} % of its gets read what only these wrote",
            100.0 * share
        );
    }
    Some(sentence)
}
