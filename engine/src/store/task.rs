//! Background work of a store, as pieces that somebody pumps.

/// A kind of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Make the log durable up to its end.
    FlushLog,
    /// Evict pages ahead of need, writing dirty ones in batches.
    WriteBack,
    /// Evict mini-pages ahead of need, reading the leaves that they are merged into in batches.
    Evict,
    /// Bound what recovery has to redo.
    Checkpoint,
    /// Merge leaves that deletes have left nearly empty.
    Merge,
}
