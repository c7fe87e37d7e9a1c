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
    /// The file with the trace's statistics is ignored.
    Ignored(Unfit),
}

/// Why a file with statistics is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The file is not one of this version.
    #[error("it has no statistics of this version")]
    OtherVersion,
    /// The trace has another hash.
    #[error("the trace has changed since, or is another one")]
    OtherTrace,
    /// The statistics depend on options that are now different.
    #[error("it was made with other options: limit, warm-up, preload, oversize, page or tree")]
    OtherOptions,
    /// The checksum or the contents are wrong.
    #[error("it is damaged")]
    Damaged,
    /// The file cannot be opened.
    #[error("it cannot be opened")]
    Unreadable,
}
