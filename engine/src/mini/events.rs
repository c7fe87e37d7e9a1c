//! Events of the Bf-Tree's mini-pages, named after the actions of `specs/mini_page` and emitted
//! where they happen.
//!
//! | event | actions of the spec | emitted under |
//! |---|---|---|
//! | [`Descends`](Event::Descends) | `ReadVersion`, `ReadChild` | no lock, before the lookup |
//! | [`Restarted`](Event::Restarted) | `Restart` | lock of the wrong page |
//! | [`ReadMini`](Event::ReadMini) | `LockPage`, `ReadMini` | page lock |
//! | [`ReadLeaf`](Event::ReadLeaf) | `LockPage`, `ReadLeaf` | page lock |
//! | [`Declined`](Event::Declined) | `Decline` | page lock |
//! | [`Promoted`](Event::Promoted) | `Upgrade` unless it has grown; `Promote` | exclusive |
//! | [`Grown`](Event::Grown) | `LockPage` of a write, `Upgrade` of a get; `Grow` | exclusive |
//! | [`Full`](Event::Full) | `Decline` of a get; none for a write | exclusive, before release |
//! | [`Written`](Event::Written) | `LockPage` unless it has grown; `WriteRecord` | exclusive |
//! | [`AbsentAlready`](Event::AbsentAlready) | `LockPage`; then none: nothing changes | exclusive |
//! | [`Scanned`](Event::Scanned) | `LockPage`, `ScanPage` | page lock |
//! | [`Merged`](Event::Merged) | `EvictMini` of an eviction; else see below | exclusive |
//! | [`Kept`](Event::Kept) | `CopyToTail` | exclusive |
//! | [`Mirrored`](Event::Mirrored) | `GrowToMirror`, `MergeToMirror` (not the merge) | exclusive |
//! | [`Dropped`](Event::Dropped) | `EvictMini` | exclusive |
//! | [`Split`](Event::Split) | see below | exclusive |
//! | [`Joined`](Event::Joined) | see below | both pages' locks |
//!
//! - `Merged`, if not by an eviction, belongs to what follows it: `CopyToTail`, a part of a join,
//!   or nothing, and then everything stays.
//! - `Split` stands for `EvictMini`, if there is a mini-page; `LockPage`, `LockInner`,
//!   `AllocateRight`, `ShortenLeft`, `InsertSeparator`. It is emitted before any other thread can
//!   lock the right-hand page.
//! - `Joined` stands for `LockLeft`, `LockRight`, `LockInnerToJoin`, `MoveRecords`,
//!   `RemoveSeparator`.
//! - A descending scan has no steps in the spec. It is reported like an ascending one, page by
//!   page, and each page counts as a scan of its own.
//!
//! Each event but `Descends` is emitted under a lock that orders it among the events that it could
//! race with. So the order of emission is an order in which things happened. `Descends` precedes
//! the lookup that it announces: what the tree then finds may be newer, never older.
//!
//! Events carry the resulting content of the pages, so that a listener need not guess. Without a
//! listener, the cost is one branch on a field that is never written.

use std::fmt;

pub use super::Kind;
use super::{Marks, MiniRef};
use crate::node::PageRef;
use crate::types::PageId;

/// Why a mini-page is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The ring's head has reached it.
    Eviction,
    /// It is copied to the tail, and a cold record is dirty.
    CopyOnAccess,
    /// The mini-page or its leaf has no room.
    Room,
    /// A checkpoint.
    Checkpoint,
    /// Its leaf is merged with a neighbour.
    LeafMerge,
}

/// A record of a mini-page.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MiniRecord {
    /// Its kind (Table 1).
    pub kind: Kind,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value; empty if the key does not exist.
    pub value: Vec<u8>,
    /// Its reference bit.
    pub used: bool,
}

/// The content of a mini-page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MiniImage {
    /// Bytes for records, their metadata and the header.
    pub bytes: usize,
    /// Whether it is a mirror of its leaf.
    pub whole: bool,
    /// The records in key order.
    pub records: Vec<MiniRecord>,
}

impl MiniImage {
    pub(crate) fn of(bytes: &[u8], marks: Marks) -> MiniImage {
        let mini = MiniRef::new(bytes);
        let record = |(index, entry): (usize, super::Entry<'_>)| MiniRecord {
            kind: entry.kind,
            key: entry.key.to_vec(),
            value: entry.value.to_vec(),
            used: marks.is_hot(index, mini.is_whole()),
        };
        MiniImage {
            bytes: bytes.len(),
            whole: mini.is_whole(),
            records: mini.entries().enumerate().map(record).collect(),
        }
    }
}

/// The content of a leaf.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LeafImage {
    /// The smallest key that may be in it.
    pub lower: Vec<u8>,
    /// The smallest key beyond it; `None` if it has no upper bound.
    pub upper: Option<Vec<u8>>,
    /// Keys and values, in key order.
    pub records: Vec<(Vec<u8>, Vec<u8>)>,
}

impl LeafImage {
    pub(crate) fn of(view: &PageRef<'_>) -> LeafImage {
        let record = |index| (view.key(index), view.value(index).to_vec());
        LeafImage {
            lower: view.lower_fence().to_vec(),
            upper: view.upper_fence().map(<[u8]>::to_vec),
            records: (0..view.count()).map(record).collect(),
        }
    }
}

/// A readable form of some bytes: text where they are text, and abbreviated.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 16;
    match bytes.get(..MOST) {
        Some(first) => format!("{}.. ({} bytes)", first.escape_ascii(), bytes.len()),
        None => bytes.escape_ascii().to_string(),
    }
}

impl fmt::Debug for MiniRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = if self.used { ", used" } else { "" };
        let (key, value) = (shown(&self.key), shown(&self.value));
        write!(f, "{:?} {key} = {value}{used}", self.kind)
    }
}

impl fmt::Debug for LeafImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upper = self.upper.as_deref().map(shown);
        let records = self.records.iter();
        f.debug_struct("LeafImage")
            .field("lower", &shown(&self.lower))
            .field("upper", &upper)
            .field(
                "records",
                &records
                    .map(|(key, value)| (shown(key), shown(value)))
                    .collect::<Vec<_>>(),
            )
            .finish()
    }
}

/// One step of the tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A thread is about to look up the page of a key or, in a descending scan, the last page below
    /// a key.
    Descends,
    /// The page was split or merged meanwhile.
    Restarted {
        /// The page that was locked.
        page: PageId,
    },
    /// A get found its key in the mini-page.
    ReadMini {
        /// The page.
        page: PageId,
        /// Its mini-page. The reference bits are a snapshot: another reader may be setting one.
        mini: Option<MiniImage>,
    },
    /// A get read the leaf.
    ReadLeaf {
        /// The page.
        page: PageId,
    },
    /// The record that was read is not cached in the mini-page.
    Declined {
        /// The page.
        page: PageId,
    },
    /// The record that was read is now cached in the mini-page.
    Promoted {
        /// The page.
        page: PageId,
        /// Its mini-page.
        mini: Option<MiniImage>,
    },
    /// A mini-page was made or enlarged for a record to come.
    Grown {
        /// The page.
        page: PageId,
        /// Its mini-page.
        mini: Option<MiniImage>,
    },
    /// The ring had no block for a new or larger mini-page.
    Full {
        /// The page.
        page: PageId,
    },
    /// A put or delete is done.
    Written {
        /// The page.
        page: PageId,
        /// Its mini-page.
        mini: Option<MiniImage>,
    },
    /// A delete is done whose key the mini-page already knew to be absent.
    AbsentAlready {
        /// The page.
        page: PageId,
    },
    /// A scan copied the page's records.
    Scanned {
        /// The page.
        page: PageId,
    },
    /// The leaf now has everything that the mini-page has.
    Merged {
        /// The page.
        page: PageId,
        /// Why it was merged.
        cause: Cause,
        /// Its mini-page, without reference bits.
        mini: MiniImage,
        /// Its leaf, if it was written, because something was dirty.
        leaf: Option<LeafImage>,
    },
    /// A checkpoint logged the dirty records of a mini-page again. It is as before.
    LoggedAgain {
        /// The page.
        page: PageId,
        /// Its mini-page, if it still has one.
        mini: Option<MiniImage>,
    },
    /// The recently used records of a mini-page were kept, and perhaps its changes, and the others
    /// dropped.
    Kept {
        /// The page.
        page: PageId,
        /// Its mini-page; `None` if no record was kept.
        mini: Option<MiniImage>,
    },
    /// A mini-page became a mirror: it has all records of its leaf; dirty records are unchanged.
    Mirrored {
        /// The page.
        page: PageId,
        /// Its mini-page.
        mini: Option<MiniImage>,
    },
    /// A mini-page was dropped after its merge.
    Dropped {
        /// The page.
        page: PageId,
    },
    /// A leaf was split.
    Split {
        /// The page.
        page: PageId,
        /// The new page.
        right: PageId,
        /// The mini-pages of both.
        minis: [Option<MiniImage>; 2],
        /// Both leaves; `None` if one of them could not be read.
        leaves: Option<[LeafImage; 2]>,
    },
    /// A leaf absorbed the records of its neighbour, which was freed.
    Joined {
        /// The page.
        page: PageId,
        /// The neighbour.
        right: PageId,
        /// The leaf; `None` if it could not be read.
        leaf: Option<LeafImage>,
    },
}
