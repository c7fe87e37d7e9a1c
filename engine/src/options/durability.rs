//! When writes become durable, and how their records lie in the log.

use crate::types::Nanos;

/// When a write is durable that nobody calls `sync` for. Dropping or closing a store makes all of
/// them durable; a killed process or a power cut does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// `put` and `delete` return at once; whoever needs durability calls `sync`. A crash loses up
    /// to [`Options::log_buffer_bytes`] of log if somebody pumps, more if nobody does.
    Deferred,
    /// As `Deferred`, and the log is flushed this long after the flush before at the latest: by the
    /// next write, which reads the clock for that, or by whoever pumps (`Task::FlushLog` comes
    /// due). A store in which nobody writes any more, and that nobody pumps, keeps its last writes
    /// undurable until it is synced, closed or dropped.
    Grouped(Nanos),
    /// `put` and `delete` return only when durable; concurrent callers share a flush.
    PerCommit,
}

impl Durability {
    /// Flushed once a minute, as the B⁻-tree paper measures (B⁻-tree §4.2, "log-flush-per-minute"):
    /// a crash may lose the last minute.
    pub const PER_MINUTE: Durability = Durability::Grouped(Nanos(60_000_000_000));
}

/// How redo records lie in the blocks of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogPacking {
    /// Tightly: consecutive flushes write the last block again while it fills.
    Packed,
    /// Every flush ends with zeros up to the block's end, and the next record begins another block, so that a record is written once
    /// (B⁻-tree §3.3). For drives that compress.
    Sparse,
}

impl LogPacking {
    /// The packings by name.
    pub const NAMED: &[(&'static str, LogPacking)] = &[
        ("packed", LogPacking::Packed),
        ("sparse", LogPacking::Sparse),
    ];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LogPacking::Packed => "packed",
            LogPacking::Sparse => "sparse",
        }
    }
}
