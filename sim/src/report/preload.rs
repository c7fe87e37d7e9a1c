//! The records that were loaded before the trace.

use serde::Serialize;

use super::numbers::{bytes, grouped};

/// What was loaded, and the evidence for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PreloadReport {
    /// `auto`, `none`, `all`, or the file.
    pub mode: String,
    /// Keys whose records were loaded before the trace, as part of the warm-up.
    pub keys: u64,
    /// Bytes of these keys and their values.
    pub bytes: u64,
    /// The evidence for the lengths of values.
    pub evidence: Evidence,
    /// Share of the measured gets that read records that only the preload wrote; `null` without
    /// gets, or if this was not analysed.
    pub share_of_reads: Option<f64>,
}

/// The evidence for the lengths of loaded values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// Keys with the value length of their first later put in the trace.
    pub put: u64,
    /// Keys that are never put. Their values have the mean length of all puts or, in a trace
    /// without puts, 120 bytes.
    pub mean: u64,
    /// That length, in bytes.
    pub mean_value_bytes: Option<u32>,
}

/// A sentence on what was loaded before the trace; `None` if nothing was.
pub(crate) fn preloaded(p: &PreloadReport) -> Option<String> {
    if p.keys == 0 {
        return None;
    }
    let (records, size) = (grouped(p.keys), bytes(p.bytes as f64));
    let mut sentence = format!(
        "{records} records ({size}) loaded before the trace, as warm-up (--preload {})",
        p.mode
    );
    if let Some(mean) = p.evidence.mean_value_bytes {
        let sized = grouped(p.evidence.mean);
        sentence += &format!("; {sized} of them, which are never put, have values of {mean} bytes");
    }
    if let Some(share) = p.share_of_reads {
        sentence += &format!("; {:.1} % of gets read only preloaded data", 100.0 * share);
    }
    Some(sentence)
}
