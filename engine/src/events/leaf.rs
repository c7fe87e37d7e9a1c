//! The steps of a leaf's layout.

use crate::node::PageRef;
use crate::options::PageLayout;
use crate::types::{Lsn, PageId};

/// One step of a leaf that has one of several layouts.
///
/// | event | action of `specs/leaf_layout` | emitted |
/// |---|---|---|
/// | [`Refuses`](Leaf::Refuses) | guard of `LayOut` and `Divide` | under the leaf's latch |
/// | [`Converts`](Leaf::Converts) | `LayOut`, `Adapt`, `Prepare` | under the leaf's latch |
/// | [`Has`](Leaf::Has) | what every change of a page leaves | behind `PageChanged`, `PageRedone` |
///
/// The other steps are those of [`Event`](super::Event) and [`Snapshot`](super::Snapshot):
///
/// | event | action of `specs/leaf_layout` |
/// |---|---|
/// | `LogAppended`, `PageChanged` | `ChangeLeaf` |
/// | `Snapshot::Splits`, `Snapshot::Merges` | `Divide`, `Merge` |
/// | `LogFlushed`, `Acknowledged` | `CommitLog`, `Acknowledge` |
/// | `PageRead` | `ReadLeaf` |
/// | `PageWritten` | `WritePage` |
/// | `SuperblockFlushed` | `Checkpoint` |
/// | `RecordRead`, `RedoEnds` | `RedoRecord`, `FinishRedo` |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leaf {
    /// A leaf has refused a put, for want of room or of a place.
    Refuses {
        /// The leaf.
        page: PageId,
    },
    /// The record of a conversion is in the log buffer.
    Converts {
        /// Its LSN.
        lsn: Lsn,
        /// The leaf.
        page: PageId,
        /// The layout that it gets.
        layout: PageLayout,
    },
    /// What a change has made of a leaf.
    Has {
        /// The leaf.
        page: PageId,
        /// Its LSN, which is that of the change.
        lsn: Lsn,
        /// Its layout.
        layout: PageLayout,
        /// The number of its records.
        records: u32,
        /// The sum of [`record_sum`] of its records.
        sum: u32,
    },
}

impl Leaf {
    /// What a change has made of this leaf.
    pub(crate) fn of(leaf: &PageRef<'_>) -> Leaf {
        let prefix = leaf.prefix();
        let records = leaf.iter();
        let sums = records.map(|(suffix, value)| record_sum(&[prefix, &suffix].concat(), value));
        Leaf::Has {
            page: leaf.page_id(),
            lsn: leaf.lsn(),
            layout: leaf.layout(),
            records: leaf.count() as u32,
            sum: sums.fold(0, u32::wrapping_add),
        }
    }
}

/// A sum over key and value of a record. The sum of these sums does not depend on the order of
/// records, which differs between layouts.
#[must_use]
pub fn record_sum(key: &[u8], value: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&(key.len() as u64).to_le_bytes());
    sum.update(key);
    sum.update(value);
    sum.finalize()
}
