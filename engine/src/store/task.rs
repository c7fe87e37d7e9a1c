//! Background work of a store, in steps that the owner or a thread pumps.

/// A kind of background work; see [`crate::Store::pump`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Make the log durable up to its end.
    FlushLog,
    /// Evict pages ahead of need, and write dirty ones in batches.
    WriteBack,
    /// Evict mini-pages ahead of need. The leaves that they are merged into are read in batches.
    Evict,
    /// Run a checkpoint, which bounds what recovery has to redo.
    Checkpoint,
    /// Merge leaves that deletes have left nearly empty.
    Merge,
}
