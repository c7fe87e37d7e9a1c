//! Protocol events: the engine's steps, named after the actions of `specs/wal_recovery` and emitted
//! where they happen.
//!
//! ```text
//! append   LogAppended ─▶ PageChanged                       log's mutex; page's latch
//! flush    LogFlushBegins ─▶ LogWritten ─▶ LogFlushed | LogFlushFailed
//!                                                           first and last under the log's mutex
//! pages    PageCopied ─▶ PageWriting ─▶ PageWritten         first under the page's latch,
//!                                                           all under the sweep lock
//!          PageLoaded   PageRead                            page's latch
//! check-   CheckpointBegins ─▶ PagesWritten ─▶ PagesFlushed ─▶ SuperblockWriting
//! point        ─▶ SuperblockWritten ─▶ SuperblockFlushed ─▶ LogTruncated
//!                                                           checkpointer's lock;
//!                                                           the first also under the log's mutex
//! recovery RecoveryBegins ─▶ RecordRead.. ─▶ PageRedone.. ─▶ RedoEnds ─▶ (a checkpoint) ─▶ Opened
//! ```
//!
//! A store with page shadowing has a protocol of its own, `specs/page_shadowing`, with its own
//! events ([`Shadow`]). So has the copy-on-write store, `specs/copy_on_write` ([`Cow`]), the log's
//! blocks, `specs/redo_log` ([`Redo`]), the structure of the tree with the snapshot of its index,
//! `specs/index_snapshot` ([`Snapshot`]), and the layouts of leaves, `specs/leaf_layout`
//! ([`Leaf`]).
//!
//! An observer is called under the latch or lock that orders the event among those that it could
//! race with. So the order of calls is an order in which things happened. The observer must not
//! call the store and should be quick.
//!
//! Two rules make a recording usable after a crash. What *may* survive is reported before it goes
//! to the device (`LogFlushBegins`, `PageWriting`, `SuperblockWriting`). What *must* survive is
//! reported after the flush that makes it durable (`LogFlushed`, `PagesFlushed`,
//! `SuperblockFlushed`). Between the event before that flush (`LogWritten`, `PagesWritten`,
//! `SuperblockWritten`) and the one after it, other threads may write data that the flush does not
//! cover. The release of space is reported before others can use it (`LogTruncated`).
//!
//! Without an observer, the cost is one branch on a field that is never written.

mod leaf;
mod redo;
mod snapshot;

pub use self::leaf::{Leaf, record_sum};
pub use self::redo::Redo;
pub use self::snapshot::{Snapshot, chain_sum, fence_name};
use crate::sync::Arc;
use crate::types::{Lsn, PageId};

/// One step of the log, page write-back, checkpoint or recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The record of one change to one page is in the log buffer.
    LogAppended {
        /// Its LSN.
        lsn: Lsn,
        /// The page.
        page: PageId,
    },
    /// The record of a split or merge is in the log buffer.
    StructureAppended {
        /// Its LSN.
        lsn: Lsn,
    },
    /// The page in memory has the change; its latch is about to be released.
    PageChanged {
        /// The page.
        page: PageId,
        /// LSN of the change.
        lsn: Lsn,
    },
    /// A leader has taken everything appended and will write it.
    LogFlushBegins {
        /// The durable position before.
        from: Lsn,
        /// The end of what was taken.
        to: Lsn,
    },
    /// The log's blocks are written, but not flushed.
    LogWritten {
        /// The end of what was taken.
        to: Lsn,
    },
    /// The log is durable up to here.
    LogFlushed {
        /// The end of what was taken.
        to: Lsn,
    },
    /// Writing or flushing the log failed: the log is poisoned.
    LogFlushFailed {
        /// The end of what was taken.
        to: Lsn,
    },
    /// A dirty page was copied out of its frame and counts as clean.
    PageCopied {
        /// The page.
        page: PageId,
        /// LSN of its last change.
        lsn: Lsn,
    },
    /// The copy is about to be written; the log is durable up to its LSN.
    PageWriting {
        /// The page.
        page: PageId,
        /// LSN of its last change.
        lsn: Lsn,
    },
    /// The copy has been written, but not flushed.
    PageWritten {
        /// The page.
        page: PageId,
        /// LSN of its last change.
        lsn: Lsn,
    },
    /// A page was read into memory.
    PageLoaded {
        /// The page.
        page: PageId,
        /// LSN of its last change.
        lsn: Lsn,
    },
    /// A get reads a page.
    PageRead {
        /// The page.
        page: PageId,
        /// LSN of its last change.
        lsn: Lsn,
    },
    /// A caller is told that everything up to here is durable.
    Acknowledged {
        /// The position that the caller asked for.
        lsn: Lsn,
    },
    /// A write or flush failed, in the page store or as reported by one of the events below: the
    /// store is poisoned.
    Failed,
    /// A write or flush at the end of a checkpoint failed; `Failed` follows.
    CheckpointFailed,
    /// A checkpoint begins: redo will start at the log's present end.
    CheckpointBegins {
        /// The log's end.
        begin: Lsn,
    },
    /// All page images that the checkpoint needs are written, but not flushed.
    PagesWritten {
        /// The position at which the checkpoint began.
        begin: Lsn,
    },
    /// All page images that the checkpoint needs are durable.
    PagesFlushed {
        /// The position at which the checkpoint began.
        begin: Lsn,
    },
    /// The superblock is about to be written.
    SuperblockWriting {
        /// The epoch in the superblock.
        epoch: u32,
        /// The redo start in the superblock.
        redo_start: Lsn,
    },
    /// The superblock is written, but not flushed.
    SuperblockWritten {
        /// The redo start in the superblock.
        redo_start: Lsn,
    },
    /// The superblock is durable.
    SuperblockFlushed {
        /// The redo start in the superblock.
        redo_start: Lsn,
    },
    /// The log before this position has been freed.
    LogTruncated {
        /// The oldest position still needed.
        redo_start: Lsn,
    },
    /// Recovery has accepted the superblock and found the log's end, and what a failed flush may
    /// have lost is durable.
    RecoveryBegins {
        /// The epoch under which the log continues.
        epoch: u32,
        /// The position at which redo begins.
        redo_start: Lsn,
        /// The position at which the log continues.
        log_start: Lsn,
    },
    /// A record was read back, in log order.
    RecordRead {
        /// Its LSN.
        lsn: Lsn,
        /// The page that it changes; for a split or merge, the left one.
        page: PageId,
    },
    /// A record was redone on its page. Redo goes page by page, and in log order within a page.
    PageRedone {
        /// The page.
        page: PageId,
        /// The record's LSN.
        lsn: Lsn,
    },
    /// All records that pages lacked have been redone.
    RedoEnds,
    /// The store is open.
    Opened,
    /// A step of a store with page shadowing, or of its device.
    Shadow(Shadow),
    /// A step of a copy-on-write store.
    Cow(Cow),
    /// A step of the log with its blocks.
    Redo(Redo),
    /// A step of the tree's structure, or of the index snapshot.
    Snapshot(Snapshot),
    /// A step of a leaf's layout.
    Leaf(Leaf),
}

/// One step of a store with page shadowing.
///
/// | event | action of the spec | emitted |
/// |---|---|---|
/// | [`Chose`](Shadow::Chose) | part of `Load` or `Restart` | when both slots were first read |
/// | [`Loaded`](Shadow::Loaded) | `Load` | see below |
/// | [`WritesDelta`](Shadow::WritesDelta) | `WriteDelta` | before the write |
/// | [`WritesWhole`](Shadow::WritesWhole) | `WriteWhole` | before the write |
/// | [`Trims`](Shadow::Trims) | `Trim` | before the trim |
/// | [`Evicted`](Shadow::Evicted) | `Evict` | under the page's latch |
/// | [`DeviceFlushed`](Shadow::DeviceFlushed) | `FlushDevice` | after a device flush |
/// | [`DeviceFlushFailed`](Shadow::DeviceFlushFailed) | `FailFlush` | after a device flush |
///
/// `Loaded` comes after `Chose`, if that was due; `PageLoaded` follows if the page passes its
/// check. `PageWritten` follows each write. A device flush, whoever requested it, covers everything
/// that was written when it began. Writes and trims are reported under the store's write lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shadow {
    /// Both slots and the log block were examined, and this is the page.
    Chose {
        /// The page.
        page: PageId,
        /// The valid slot.
        slot: u8,
        /// LSN of the page, with Δ.
        lsn: Lsn,
        /// |Δ| in bytes, if the log block belongs to that image.
        delta: Option<u32>,
        /// Whether a leftover of the page remains, which must be trimmed.
        leftover: bool,
    },
    /// A page was read.
    Loaded {
        /// The page.
        page: PageId,
        /// The slot that was read.
        slot: u8,
        /// LSN of the image in that slot.
        base: Lsn,
        /// |Δ| in bytes, if there is one.
        delta: Option<u32>,
    },
    /// The changed parts of a page are about to be written to its log block.
    WritesDelta {
        /// The page.
        page: PageId,
        /// LSN of its last change.
        lsn: Lsn,
        /// LSN of the image that the delta belongs to.
        base: Lsn,
        /// |Δ| in bytes.
        delta: u32,
    },
    /// A whole page is about to be written to a slot.
    WritesWhole {
        /// The page.
        page: PageId,
        /// LSN of its last change.
        lsn: Lsn,
        /// The slot.
        slot: u8,
    },
    /// What the newest image of a page replaced is about to be trimmed.
    Trims {
        /// The page.
        page: PageId,
        /// The slot to be trimmed.
        slot: u8,
        /// Whether the log block is trimmed, too.
        log: bool,
    },
    /// A page was evicted from memory.
    Evicted {
        /// The page.
        page: PageId,
    },
    /// The device was flushed.
    DeviceFlushed,
    /// A flush of the device failed.
    DeviceFlushFailed,
}

/// One step of a copy-on-write store.
///
/// | event | action of the spec | emitted |
/// |---|---|---|
/// | [`WritesImage`](Cow::WritesImage) | `WriteImage` | before the write |
/// | [`WritesTable`](Cow::WritesTable) | `NameImage`, `WriteTable`, part of `FreePage` | before the
/// write, after the flush that precedes it |
/// | [`TableWritten`](Cow::TableWritten) | `FinishTable` | after the flush, before the places left
/// are trimmed |
///
/// They are reported under the store's write lock. The chunks of a snapshot share its places:
/// [`Snapshot::WritesChunk`] is `WriteSnapshot`. The superblock's steps are those of [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cow {
    /// A page is about to be written to a free slot.
    WritesImage {
        /// The page.
        page: PageId,
        /// LSN of its last change.
        lsn: Lsn,
        /// The slot.
        slot: u64,
    },
    /// Blocks of the page table are about to be written.
    WritesTable,
    /// The blocks are durable.
    TableWritten,
}

/// Receives the steps of a store, from whichever thread performs them; or those of a part with its
/// own events ([`crate::ring::Event`]).
pub trait Observer<E = Event>: Send + Sync {
    /// Called for each event.
    fn event(&self, event: E);
}

/// An observer, or none.
pub(crate) struct Hook<E = Event>(Option<Arc<dyn Observer<E>>>);

impl<E> Clone for Hook<E> {
    fn clone(&self) -> Self {
        Hook(self.0.clone())
    }
}

impl<E> Default for Hook<E> {
    fn default() -> Self {
        Hook(None)
    }
}

impl<E> Hook<E> {
    pub(crate) fn new(observer: Option<Arc<dyn Observer<E>>>) -> Self {
        Hook(observer)
    }

    /// Returns whether there is an observer.
    #[inline]
    pub(crate) fn is_heard(&self) -> bool {
        self.0.is_some()
    }

    /// Reports an event to the observer, if there is one; otherwise the event is not made.
    #[inline]
    pub(crate) fn tell(&self, event: impl FnOnce() -> E) {
        if let Some(observer) = &self.0 {
            tell(&**observer, event());
        }
    }
}

#[cold]
fn tell<E>(observer: &dyn Observer<E>, event: E) {
    observer.event(event);
}
