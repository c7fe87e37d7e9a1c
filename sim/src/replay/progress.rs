//! Progress reports of a replay.

/// Progress of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Survey of the records that exist before the trace: operations so far, and in total.
    Survey(u64, u64),
    /// Analysis of the trace: operations so far, and in total.
    Analyse(u64, u64),
    /// Replay: operations so far, and in total. First reported with 0 while device and store are
    /// created.
    Replay(u64, u64),
}
