//! When writes become durable, and how redo records are packed in the log.

use crate::types::Nanos;

/// When a write becomes durable without a call of `sync`.
///
/// Dropping or closing a store makes all its writes durable. A killed process or a power cut does
/// not: it loses the writes that are not yet durable.
///
/// ```
/// use treering_engine::prelude::*;
///
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let path = folder.path().join("my.store");
/// let store = Store::open_path(&path, |options| options.durability = Durability::Deferred)?;
/// // These return at once. A crash here would lose them.
/// store.put(b"a", b"1")?;
/// let lsn = store.put(b"b", b"2")?;
/// // From here on both survive a crash: `sync` covers all writes up to its LSN.
/// store.sync(lsn)?;
/// # Ok::<(), treering_engine::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// `put` and `delete` return at once, and callers that need durability call `sync`. A crash
    /// loses up to [`crate::Options::log_buffer_bytes`] of log if the store is pumped, and more if
    /// it is not.
    Deferred,
    /// Like `Deferred`, but the log is also flushed when this interval has passed since the last
    /// flush. The next write does this, and reads the clock for it; so does whoever pumps, since
    /// `Task::FlushLog` comes due. If writes stop and nobody pumps, the last writes stay undurable
    /// until the store is synced, closed or dropped.
    Grouped(Nanos),
    /// `put` and `delete` return only when durable. Concurrent callers share a flush.
    PerCommit,
}

impl Durability {
    /// A flush every minute, as measured in the B⁻-tree paper (B⁻-tree §4.2,
    /// "log-flush-per-minute"). A crash may lose the last minute.
    pub const PER_MINUTE: Durability = Durability::Grouped(Nanos(60_000_000_000));
}

/// How redo records are packed in the blocks of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogPacking {
    /// Tightly: consecutive flushes rewrite the last block while it fills.
    Packed,
    /// Each flush fills its last block with zeros, and the next record begins a new block. So a
    /// record is written only once (B⁻-tree §3.3). For drives that compress.
    Sparse,
}

impl LogPacking {
    /// The packings by name.
    pub const NAMED: &[(&'static str, LogPacking)] = &[
        ("packed", LogPacking::Packed),
        ("sparse", LogPacking::Sparse),
    ];

    /// The packing of a name, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<LogPacking> {
        let named = Self::NAMED.iter().find(|(known, _)| *known == name);
        named.map(|(_, packing)| *packing)
    }

    /// The name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LogPacking::Packed => "packed",
            LogPacking::Sparse => "sparse",
        }
    }
}
