//! What the Bf-Tree does with mini-pages, in the words of `specs/mini_page`, told where it happens.
//!
//! | event | actions of the spec | told |
//! |---|---|---|
//! | [`Descends`](Event::Descends) | `ReadVersion`, `ReadChild` | before the index is asked, with no lock |
//! | [`Restarted`](Event::Restarted) | `Restart` | under the lock of the page that is the key's no longer |
//! | [`ReadMini`](Event::ReadMini) | `LockPage`, `ReadMini` | under the page's lock |
//! | [`ReadLeaf`](Event::ReadLeaf) | `LockPage`, `ReadLeaf` | under the page's lock |
//! | [`Declined`](Event::Declined) | `Decline` | under the page's lock |
//! | [`Promoted`](Event::Promoted) | `Upgrade`, if it has not grown; `Promote` | under the page's lock, held alone |
//! | [`Grown`](Event::Grown) | `LockPage` of a write, `Upgrade` of a get; `Grow` | the same |
//! | [`Full`](Event::Full) | `Decline` of a get; a write has not happened | the same, just before it is given back |
//! | [`Written`](Event::Written) | `LockPage`, if it has not grown; `WriteRecord` | the same |
//! | [`AbsentAlready`](Event::AbsentAlready) | `LockPage`; then none, for nothing changes | under the page's lock, held alone |
//! | [`Scanned`](Event::Scanned) | `LockPage`, `ScanPage` | under the page's lock |
//! | [`Merged`](Event::Merged) | `EvictMini` for an eviction; else what follows says: `CopyToTail`, a part of a join, or none, and all stays | under the page's lock, held alone |
//! | [`Kept`](Event::Kept) | `CopyToTail` | the same |
//! | [`Mirrored`](Event::Mirrored) | `GrowToMirror`, `MergeToMirror`, but for their merge | the same |
//! | [`Dropped`](Event::Dropped) | `EvictMini` | the same |
//! | [`Split`](Event::Split) | `EvictMini`, if there is a mini-page; `LockPage`, `LockInner`, `AllocateRight`, `ShortenLeft`, `InsertSeparator` | the same, before anybody can lock the right-hand page |
//! | [`Joined`](Event::Joined) | `LockLeft`, `LockRight`, `LockInnerToJoin`, `MoveRecords`, `RemoveSeparator` | under the locks of both |
//!
//! A scan down has no steps in the spec: it is told as one up is, page by page, and each page is a scan of its own.
//!
//! Each event but `Descends` is told under a lock that orders it among those that it could race with, so the order of telling is an order in
//! which things happened. `Descends` comes before what it tells of: what the tree then finds may be newer, never older.
//!
//! Events carry what the pages hold behind them, so that a listener need not guess. Without one the cost is one branch on a field that is never
//! written.

use std::fmt;

pub use super::Kind;
use super::{Marks, MiniRef};
use crate::node::PageRef;
use crate::types::PageId;

/// Why a mini-page is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The ring's head has come to it.
    Eviction,
    /// It is copied to the tail, and a cold record is dirty.
    CopyOnAccess,
    /// It, or its leaf, has no room.
    Room,
    /// A checkpoint.
    Checkpoint,
    /// Its leaf is merged with a neighbour.
    LeafMerge,
}

/// A record of a mini-page.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MiniRecord {
    /// Which of Table 1.
    pub kind: Kind,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value; empty if the key does not exist.
    pub value: Vec<u8>,
    /// Its reference bit.
    pub used: bool,
}

/// A mini-page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MiniImage {
    /// Room for records, their metas and the header.
    pub bytes: usize,
    /// Whether it is a mirror of its leaf.
    pub whole: bool,
    /// In the order of keys.
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

/// A leaf.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LeafImage {
    /// The first key that may lie here.
    pub lower: Vec<u8>,
    /// The first key beyond it; `None`: there is none.
    pub upper: Option<Vec<u8>>,
    /// Keys and values, in order.
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

/// Bytes to be read by people: text where it is text, and not much of it.
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
    /// Somebody asks the index for the page of a key, or, on a scan down, for the last page below one.
    Descends,
    /// The page was split or merged meanwhile.
    Restarted {
        /// The page that was locked.
        page: PageId,
    },
    /// A get finds its key in the mini-page.
    ReadMini {
        /// The page.
        page: PageId,
        /// Its mini-page. The reference bits are those of now: another reader may be setting one.
        mini: Option<MiniImage>,
    },
    /// A get has read the leaf.
    ReadLeaf {
        /// The page.
        page: PageId,
    },
    /// What was read does not get into the mini-page.
    Declined {
        /// The page.
        page: PageId,
    },
    /// What was read has got into the mini-page.
    Promoted {
        /// The page.
        page: PageId,
        /// Its mini-page.
        mini: Option<MiniImage>,
    },
    /// A mini-page is made, or becomes larger, for a record to come.
    Grown {
        /// The page.
        page: PageId,
        /// Its mini-page.
        mini: Option<MiniImage>,
    },
    /// The ring has no block for that.
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
    /// A delete of a key that the mini-page knows to be absent is done.
    AbsentAlready {
        /// The page.
        page: PageId,
    },
    /// A scan has copied what the page has.
    Scanned {
        /// The page.
        page: PageId,
    },
    /// The leaf has all that the mini-page has.
    Merged {
        /// The page.
        page: PageId,
        /// Why.
        cause: Cause,
        /// Its mini-page; reference bits are not told.
        mini: MiniImage,
        /// Its leaf, if that was written: if something was dirty.
        leaf: Option<LeafImage>,
    },
    /// The used records of a mini-page stay, the others go.
    Kept {
        /// The page.
        page: PageId,
        /// Its mini-page; `None`: nothing was used.
        mini: Option<MiniImage>,
    },
    /// A mini-page has become a mirror: all that its leaf has is in it, dirty records as they were.
    Mirrored {
        /// The page.
        page: PageId,
        /// Its mini-page.
        mini: Option<MiniImage>,
    },
    /// A mini-page, merged before, is given up.
    Dropped {
        /// The page.
        page: PageId,
    },
    /// A leaf is split.
    Split {
        /// The page.
        page: PageId,
        /// The new one.
        right: PageId,
        /// The mini-pages of both.
        minis: [Option<MiniImage>; 2],
        /// Both leaves; `None`: one of them could not be read.
        leaves: Option<[LeafImage; 2]>,
    },
    /// A leaf has taken over the records of its neighbour, which is no more.
    Joined {
        /// The page.
        page: PageId,
        /// The neighbour.
        right: PageId,
        /// The leaf; `None`: it could not be read.
        leaf: Option<LeafImage>,
    },
}
