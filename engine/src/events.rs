//! Protocol events: what the engine does, in the words of `specs/wal_recovery`, told where it happens.
//!
//! ```text
//! append   LogAppended ─▶ PageChanged              under the log's mutex; under the page's latch
//! flush    LogFlushBegins ─▶ LogWritten ─▶ LogFlushed | LogFlushFailed       first and last under the log's mutex
//! pages    PageCopied ─▶ PageWriting ─▶ PageWritten                            the first under the page's latch, all under the sweep lock
//!          PageLoaded   PageRead                                              under the page's latch
//! check-   CheckpointBegins ─▶ PagesWritten ─▶ PagesFlushed ─▶ SuperblockWriting ─▶ SuperblockWritten ─▶ SuperblockFlushed ─▶ LogTruncated
//! point                                            under the checkpointer's lock; the first under the log's mutex, too
//! recovery RecoveryBegins ─▶ RecordRead.. ─▶ PageRedone.. ─▶ RedoEnds ─▶ (a checkpoint) ─▶ Opened
//! ```
//!
//! A store of shadowed pages has a protocol of its own, `specs/page_shadowing`, and words for it ([`Shadow`]).
//!
//! An observer is told under the latch or lock that orders the event among those that it could race with, so the order in which it is
//! told is an order in which things happened. It must not call the store and should be quick.
//!
//! Two rules make a recording usable after a crash. What *may* survive is told before it goes to the device (`LogFlushBegins`,
//! `PageWriting`, `SuperblockWriting`); what *must* survive is told after the flush that makes it so (`LogFlushed`, `PagesFlushed`,
//! `SuperblockFlushed`); between the word before that flush (`LogWritten`, `PagesWritten`, `SuperblockWritten`) and the one after it others may
//! write what it does not cover. What makes room for others is told before they can use it (`LogTruncated`).
//!
//! Without an observer the cost is one branch on a field that is never written.

use crate::sync::Arc;
use crate::types::{Lsn, PageId};

/// One step of the log, page write-back, checkpoint or recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A record of one change to one page is in the log buffer.
    LogAppended {
        /// Its LSN.
        lsn: Lsn,
        /// The page.
        page: PageId,
    },
    /// A record of a split or merge is in the log buffer.
    StructureAppended {
        /// Its LSN.
        lsn: Lsn,
    },
    /// The page in memory has the change, and its latch will be released.
    PageChanged {
        /// The page.
        page: PageId,
        /// LSN of the change.
        lsn: Lsn,
    },
    /// A leader has taken all that is appended and will write it out.
    LogFlushBegins {
        /// Durable before.
        from: Lsn,
        /// The end of what is taken.
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
    /// Writing or flushing the log failed: it is poisoned.
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
    /// The copy goes to the device; the log is durable up to its LSN.
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
    /// A get looks at a page.
    PageRead {
        /// The page.
        page: PageId,
        /// LSN of its last change.
        lsn: Lsn,
    },
    /// A caller is told that everything up to here is durable.
    Acknowledged {
        /// What the caller asked for.
        lsn: Lsn,
    },
    /// A write or flush of the page store failed, or another one of those below: the store is poisoned.
    Failed,
    /// A write or flush of the checkpoint's end failed; `Failed` follows.
    CheckpointFailed,
    /// A checkpoint begins: redo will start at the log's end of now.
    CheckpointBegins {
        /// That end.
        begin: Lsn,
    },
    /// All page images that the checkpoint needs are written, but not flushed.
    PagesWritten {
        /// Where it began.
        begin: Lsn,
    },
    /// All page images that the checkpoint needs are durable.
    PagesFlushed {
        /// Where it began.
        begin: Lsn,
    },
    /// The superblock goes to the device.
    SuperblockWriting {
        /// The epoch in it.
        epoch: u32,
        /// The redo start in it.
        redo_start: Lsn,
    },
    /// It is written, but not flushed.
    SuperblockWritten {
        /// The redo start in it.
        redo_start: Lsn,
    },
    /// It is durable.
    SuperblockFlushed {
        /// The redo start in it.
        redo_start: Lsn,
    },
    /// The log before this is given up.
    LogTruncated {
        /// The oldest position still needed.
        redo_start: Lsn,
    },
    /// The superblock is believed, the log's end found, and what a failed flush may have forgotten is durable.
    RecoveryBegins {
        /// The epoch that the log goes on under.
        epoch: u32,
        /// Where redo begins.
        redo_start: Lsn,
        /// Where the log goes on.
        log_start: Lsn,
    },
    /// A record was read back, in the order of the log.
    RecordRead {
        /// Its LSN.
        lsn: Lsn,
        /// The page that it changes; of a split or merge the left one.
        page: PageId,
    },
    /// A record was done again on its page, page by page and in the order of the log within a page.
    PageRedone {
        /// The page.
        page: PageId,
        /// The record's LSN.
        lsn: Lsn,
    },
    /// All records that a page lacked are redone.
    RedoEnds,
    /// The store is up.
    Opened,
    /// A store of shadowed pages did something, or the device did.
    Shadow(Shadow),
}

/// One step of a store of shadowed pages.
///
/// | event | action of the spec | told |
/// |---|---|---|
/// | [`Chose`](Shadow::Chose) | a part of `Load`, or of `Restart` | both slots were read for the first time |
/// | [`Loaded`](Shadow::Loaded) | `Load` | behind `Chose`, if that was due; `PageLoaded` follows if the page passes its check |
/// | [`WritesDelta`](Shadow::WritesDelta), [`WritesWhole`](Shadow::WritesWhole) | `WriteDelta`, `WriteWhole` | before the write; `PageWritten` follows |
/// | [`Trims`](Shadow::Trims) | `Trim` | before the trim |
/// | [`Evicted`](Shadow::Evicted) | `Evict` | under the page's latch |
/// | [`DeviceFlushed`](Shadow::DeviceFlushed), [`DeviceFlushFailed`](Shadow::DeviceFlushFailed) | `FlushDevice`, `FailFlush` | behind a flush of the device, whoever asked for it, of all that was written when it began |
///
/// Writes and trims are told under the store's write lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shadow {
    /// Of what both slots and the log block hold, this is the page.
    Chose {
        /// The page.
        page: PageId,
        /// The valid slot.
        slot: u8,
        /// LSN of the page, with Δ.
        lsn: Lsn,
        /// |Δ| in bytes, if the log block is over that image.
        delta: Option<u32>,
        /// Whether something else is left of the page, which is to be trimmed.
        leftover: bool,
    },
    /// A page was read.
    Loaded {
        /// The page.
        page: PageId,
        /// The slot that it was read from.
        slot: u8,
        /// LSN of the image there.
        base: Lsn,
        /// |Δ| in bytes, if there is one.
        delta: Option<u32>,
    },
    /// What differs of a page goes to its log block.
    WritesDelta {
        /// The page.
        page: PageId,
        /// LSN of its last change.
        lsn: Lsn,
        /// LSN of the image that it is to be laid over.
        base: Lsn,
        /// |Δ| in bytes.
        delta: u32,
    },
    /// A page goes to a slot.
    WritesWhole {
        /// The page.
        page: PageId,
        /// LSN of its last change.
        lsn: Lsn,
        /// The slot.
        slot: u8,
    },
    /// What the newest image of a page replaced is trimmed.
    Trims {
        /// The page.
        page: PageId,
        /// The slot that is trimmed.
        slot: u8,
        /// Whether the log block is, too.
        log: bool,
    },
    /// A page leaves memory.
    Evicted {
        /// The page.
        page: PageId,
    },
    /// The device was flushed.
    DeviceFlushed,
    /// A flush of the device failed.
    DeviceFlushFailed,
}

/// Is told what a store does, by whatever thread does it; or what a part does that has events of its own ([`crate::ring::Event`]).
pub trait Observer<E = Event>: Send + Sync {
    /// Something happened.
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

    /// Whether anybody listens.
    #[inline]
    pub(crate) fn is_heard(&self) -> bool {
        self.0.is_some()
    }

    /// Tells the observer, if there is one; the event is not made otherwise.
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
