//! The steps of the index snapshot: changes of the structure of leaves, checkpoints, and recovery.

use crc32fast::Hasher;

use crate::options::PageLayout;
use crate::types::{Lsn, PageId};

/// One step of the tree's structure, or of the snapshot of its index.
///
/// | event | action of `specs/index_snapshot` | emitted |
/// |---|---|---|
/// | [`Copies`](Snapshot::Copies) | `CopyLeaf`, `CopyBack` | under the leaf's latch |
/// | [`Splits`](Snapshot::Splits) | `AppendSplit` | under the leaves' latches |
/// | [`Merges`](Snapshot::Merges) | `AppendMerge` | under the leaves' latches |
/// | [`Indexed`](Snapshot::Indexed) | `UpdateIndex` | under the leaves' latches |
/// | [`FreesPage`](Snapshot::FreesPage) | `FreePage` | before the trim |
/// | [`Begins`](Snapshot::Begins) | `BeginSnapshot` | when the first chunk has its slot |
/// | [`ReadsFence`](Snapshot::ReadsFence) | `ReadFence` | before the version is read |
/// | [`AddsEntry`](Snapshot::AddsEntry) | `AddEntry`, part of `AddChunk` | with its version |
/// | [`WritesChunk`](Snapshot::WritesChunk) | `AddChunk`, `EndSnapshot` | before the write |
/// | [`WritesSuper`](Snapshot::WritesSuper) | part of `WriteSuper` | before `SuperblockWriting` |
/// | [`FreesChunk`](Snapshot::FreesChunk) | part of `FinishCheckpoint` | before the trim |
/// | [`Takes`](Snapshot::Takes) | part of `Crash` or `Restart` | when the superblock is chosen |
/// | [`ReadChunk`](Snapshot::ReadChunk) | part of `Crash` or `Restart` | when it is read |
/// | [`Built`](Snapshot::Built) | part of `Crash` or `Restart` | when the chain is checked |
/// | [`Restored`](Snapshot::Restored) | none: the spec has no journal | when it is written |
///
/// The other steps are those of [`Event`](super::Event):
///
/// | event | action of `specs/index_snapshot` |
/// |---|---|
/// | `LogAppended` | `ChangeLeaf` |
/// | `LogFlushed`, `Acknowledged` | `CommitLog`, `Acknowledge` |
/// | `PageRead` | `ReadLeaf` |
/// | `PageChanged`, of a split's right leaf or a merge's left one | `ChangeLeaves` |
/// | `PageWritten` | `WritePage` |
/// | `CheckpointBegins` | `BeginCheckpoint` |
/// | `SuperblockWriting`, `SuperblockFlushed` | `WriteSuper`, `FinishCheckpoint` |
/// | `RecordRead`, `RedoEnds` | `RedoRecord`, `FinishRedo` |
///
/// A `fence` is [`fence_name`] of the leaf's lower fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Snapshot {
    /// A scan has copied the records that it wants of a leaf.
    Copies {
        /// The leaf.
        page: PageId,
        /// Whether it goes downwards.
        back: bool,
    },
    /// The record of a split is in the log buffer. No leaf has changed yet.
    Splits {
        /// Its LSN.
        lsn: Lsn,
        /// The leaf that is split.
        left: PageId,
        /// The new leaf.
        right: PageId,
        /// The new leaf's fence.
        fence: u32,
        /// The new leaf's layout.
        layout: PageLayout,
    },
    /// The record of a merge is in the log buffer. No leaf has changed yet.
    Merges {
        /// Its LSN.
        lsn: Lsn,
        /// The leaf that stays.
        left: PageId,
        /// The leaf that ends.
        right: PageId,
        /// The fence of the leaf that ends.
        fence: u32,
    },
    /// The index has a split or merge; the latches are about to be released.
    Indexed {
        /// LSN of the split or merge.
        lsn: Lsn,
    },
    /// A page that was merged away is about to be freed.
    FreesPage {
        /// The page.
        page: PageId,
    },
    /// The snapshot of a checkpoint begins.
    Begins {
        /// The number of the checkpoint.
        number: u64,
        /// The slot of its first chunk.
        slot: u64,
    },
    /// The next entry of the index was read.
    ReadsFence {
        /// The fence.
        fence: u32,
        /// Its page.
        page: PageId,
    },
    /// The version of its page was read, and the entry is about to be added to the chunk.
    AddsEntry {
        /// The page.
        page: PageId,
        /// LSN of its newest image; 0 if it has none.
        version: Lsn,
    },
    /// A chunk is about to be written.
    WritesChunk {
        /// The number of the checkpoint.
        number: u64,
        /// The slot.
        slot: u64,
        /// The slot of the next chunk.
        next: Option<u64>,
        /// The number of its entries.
        entries: u32,
        /// Its checksum.
        sum: u32,
    },
    /// The superblock of a checkpoint is about to be written.
    WritesSuper {
        /// The number of the checkpoint.
        number: u64,
        /// The slot of the first chunk.
        head: u64,
        /// The number of all entries.
        entries: u64,
        /// [`chain_sum`] of the chunks' checksums.
        sum: u32,
    },
    /// A chunk of a snapshot that no superblock names any more is about to be freed.
    FreesChunk {
        /// The slot.
        slot: u64,
    },
    /// Recovery has chosen the superblock.
    Takes {
        /// The number of the checkpoint whose snapshot it names.
        number: u64,
        /// The slot of the first chunk.
        head: u64,
        /// The number of all entries.
        entries: u64,
        /// The sum of the chunks' checksums.
        sum: u32,
    },
    /// Recovery has read a chunk and found it whole.
    ReadChunk {
        /// The slot.
        slot: u64,
        /// The slot of the next chunk.
        next: Option<u64>,
        /// The number of its entries.
        entries: u32,
    },
    /// Recovery has read all chunks and believes them. The index is about to be built.
    Built {
        /// The number of all entries.
        entries: u64,
    },
    /// Recovery has written a page from the journal to its home, which held no whole page.
    Restored {
        /// The page.
        page: PageId,
        /// LSN of the image.
        lsn: Lsn,
    },
}

/// A short name of a leaf's lower fence: its CRC-32.
#[must_use]
pub fn fence_name(fence: &[u8]) -> u32 {
    crc32fast::hash(fence)
}

/// The sum of a snapshot that the superblock has: the CRC-32 of the chunks' checksums, in their
/// order. Never 0, which says that there is none.
#[must_use]
pub fn chain_sum(chunks: impl IntoIterator<Item = u32>) -> u32 {
    let mut sum = Hasher::new();
    chunks
        .into_iter()
        .for_each(|chunk| sum.update(&chunk.to_le_bytes()));
    sum.finalize().max(1)
}
