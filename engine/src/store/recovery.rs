//! Recovery: brings a store from whatever state a crash left to the one that the durable log
//! describes.
//!
//! ```text
//! superblock -> index snapshot -> log's end -> page table / journal repair -> flush
//!   -> redo from `redo start` -> live pages -> checkpoint
//! ```
//!
//! # What recovery reads may not be durable
//!
//! Recovery does not always follow a power cut: the process may have stopped because a flush
//! failed. In that case, reads still return the data that the flush failed to make durable. No
//! later flush makes it durable either, and the next power cut loses it (BUGS D5). Redo would skip
//! a page because its LSN is new, and the checkpoint at the end would free the log that could
//! restore it.
//!
//! So recovery first rewrites, unchanged, the blocks that it builds on and that no flush is known
//! to have made durable. Then it flushes. The result is as if the power had gone and the newest
//! version of every block had survived. These blocks are:
//!
//! - both superblocks, because the flush or write that failed may have been theirs (what the chosen
//!   one names was flushed before it was written);
//! - the log's last flush ([`crate::wal::LogEnd::doubtful`]), because everything before it was
//!   durable when it began;
//! - in place: the homes of those pages in the journal that the checkpoint does not cover, which
//!   are those of the last batches;
//! - copy-on-write: the page table (the images that it names were flushed before it was written);
//! - shadowed: the valid slots of the pages that the log names;
//! - the modification logs of the pages that the log names, if they have any.
//!
//! A record that is not read may be there after the next power cut, if its write failed. So a block
//! behind the log's end is written then, and flushed ([`crate::wal::Log::mark_end`]).
//!
//! After a clean close, this costs two superblock blocks, the mark of the end, and, with
//! copy-on-write, the table: 8 bytes for each page id in use. After a crash, it also costs the log
//! blocks of one flush and, in place, at most the pages of two batches, or, shadowed, the pages that
//! the log names. There are two flushes.
//!
//! # Redo
//!
//! Redo works page by page and is idempotent: a record is applied to a page exactly if the page's
//! LSN is smaller. Pages that redo changes may be evicted and written while it runs. So after a
//! crash during recovery, the next recovery merely finds some pages further on.
//!
//! Split and merge records carry the records that move, so no page's redo needs another page. This
//! allows records to be gathered and sorted by page. Each page is read and written once per
//! gathering, however small the cache is. The work is O(records + distinct pages), and
//! [`GATHER_BYTES`] bounds the memory.
//!
//! A record may name a page that has no image, or whose place holds another page's bytes. This is
//! legal in one case: a later record merges the page away and carries its content, and its place
//! was trimmed or reused after that. Such a page is noted as *lost*. It must not be in the index
//! when the log ends. A split that builds the page anew removes the note.
//!
//! The index is replayed as well. The snapshot may already contain later changes, but the log
//! repeats all of them in order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::cache::{Fix, WriteGuard};
use crate::error::{Error, Result};
use crate::events::{Event, Leaf};
use crate::index::Index;
use crate::layout::Slot;
use crate::mutation;
use crate::node::{PageLayout, Refused, records};
use crate::overflow::recover::{Seen, Taken};
use crate::pager::Pager;
use crate::pages::{PageStore, SlotMap};
use crate::types::{Lsn, PageId};
use crate::wal::{Intent, Record};

/// Bytes of record content gathered before it is applied page by page.
const GATHER_BYTES: usize = 32 << 20;

/// What recovery did when a store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Torn pages restored from the journal.
    pub pages_repaired: u64,
    /// Log records read.
    pub records_read: u64,
    /// Page changes redone.
    pub changes_redone: u64,
    /// Batches completed whose changes a crash had cut short: none or one.
    pub batches_completed: u64,
    /// LSN at which the durable log ended.
    pub log_end: Lsn,
}

/// What redo found.
pub(crate) struct Recovered {
    pub(crate) report: RecoveryReport,
    /// The sparse pages that the log names.
    pub(crate) sparse: BTreeSet<PageId>,
}

/// The effect of one record on one page.
enum Change {
    Put {
        key: Range<usize>,
        value: Range<usize>,
    },
    Delete {
        key: Range<usize>,
    },
    /// The left page of a split loses its upper part.
    Truncate {
        separator: Range<usize>,
    },
    /// The right page of a split is built.
    Build {
        layout: PageLayout,
        lower: Range<usize>,
        upper: Option<Range<usize>>,
        records: Range<usize>,
    },
    /// The left page of a merge absorbs its neighbour.
    Absorb {
        upper: Option<Range<usize>>,
        records: Range<usize>,
    },
    /// The right page of a merge is gone.
    Forget,
    Relayout {
        layout: PageLayout,
    },
}

struct Gathered {
    page: PageId,
    lsn: Lsn,
    change: Change,
}

/// Replays the log over the pages and the index.
pub(crate) struct Redo<'a> {
    pager: &'a Pager,
    index: &'a Index,
    gathered: Vec<Gathered>,
    /// The buffer that the ranges in `gathered` point into.
    bytes: Vec<u8>,
    /// Slots of the snapshot that recovery started from. In a store with fixed places, a page with
    /// the number of such a slot is dead by the end of the log. It must not be written, nor read:
    /// another crash needs the snapshot chunk in its place until the next superblock, and a shadowed
    /// page whose old image is still in the other half would have that chunk trimmed.
    snapshot: BTreeSet<u64>,
    /// What the first pass over the log found about long values.
    seen: &'a Seen<'a>,
    /// Pages whose image is missing or belongs to another page, with the error.
    lost: BTreeMap<PageId, Error>,
    /// Sparse pages that the log names. Nothing else records that they may need a merge.
    sparse: BTreeSet<PageId>,
    /// The batch that the log ends in, which must be completed.
    pending: Option<&'a Intent>,
    pub(crate) report: RecoveryReport,
}

impl<'a> Redo<'a> {
    pub(crate) fn new(
        pager: &'a Pager,
        index: &'a Index,
        snapshot: &'a [Slot],
        seen: &'a Seen<'a>,
        pending: Option<&'a Intent>,
    ) -> Redo<'a> {
        Redo {
            pager,
            index,
            snapshot: snapshot.iter().map(|slot| slot.0).collect(),
            seen,
            gathered: Vec::new(),
            bytes: Vec::new(),
            lost: BTreeMap::new(),
            sparse: BTreeSet::new(),
            pending,
            report: RecoveryReport::default(),
        }
    }

    /// Takes one record. Called in log order.
    pub(crate) fn take(&mut self, lsn: Lsn, record: &Record<'_>) -> Result<()> {
        self.report.records_read += 1;
        self.report.log_end = lsn;
        if let Some(page) = record.pages().next() {
            self.pager.volume.tell(|| Event::RecordRead { lsn, page });
        }
        match *record {
            Record::Put { page, key, value } => {
                let (key, value) = (self.keep(key), self.keep(value));
                self.gather(page, lsn, Change::Put { key, value });
            }
            Record::Delete { page, key } => {
                let key = self.keep(key);
                self.gather(page, lsn, Change::Delete { key });
            }
            Record::Split {
                layout,
                left,
                right,
                separator,
                upper,
                records,
            } => {
                if !mutation::on("redo-skips-new-fences") {
                    self.index.insert(separator, right);
                }
                let (lower, records) = (self.keep(separator), self.keep(records));
                let upper = upper.map(|u| self.keep(u));
                self.gather(
                    left,
                    lsn,
                    Change::Truncate {
                        separator: lower.clone(),
                    },
                );
                if !mutation::on("split-skips-right") {
                    self.gather(
                        right,
                        lsn,
                        Change::Build {
                            layout,
                            lower,
                            upper,
                            records,
                        },
                    );
                }
            }
            Record::Merge {
                left,
                right,
                right_lower,
                upper,
                records,
            } => {
                if !mutation::on("redo-keeps-gone-fences") {
                    self.index.remove(right_lower);
                }
                let records = self.keep(records);
                let upper = upper.map(|u| self.keep(u));
                self.gather(left, lsn, Change::Absorb { upper, records });
                self.gather(right, lsn, Change::Forget);
            }
            // The first pass has taken them.
            Record::Batch { .. } | Record::BatchEnd => {}
            Record::Relayout { page, layout } => {
                if !mutation::on("redo-skips-relayouts") {
                    self.gather(page, lsn, Change::Relayout { layout });
                }
            }
        }
        if self.bytes.len() >= GATHER_BYTES {
            self.apply_gathered()
        } else {
            Ok(())
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    fn gather(&mut self, page: PageId, lsn: Lsn, change: Change) {
        self.gathered.push(Gathered { page, lsn, change });
    }

    /// Applies the gathered changes page by page, in log order within each page.
    fn apply_gathered(&mut self) -> Result<()> {
        let mut gathered = std::mem::take(&mut self.gathered);
        let mut bytes = std::mem::take(&mut self.bytes);
        // The sort is stable, so a page's changes stay in log order.
        gathered.sort_by_key(|g| g.page);
        for group in gathered.chunk_by(|a, b| a.page == b.page) {
            self.apply_to_page(group[0].page, group, &bytes)?;
        }
        gathered.clear();
        bytes.clear();
        (self.gathered, self.bytes) = (gathered, bytes);
        Ok(())
    }

    fn apply_to_page(&mut self, page: PageId, group: &[Gathered], bytes: &[u8]) -> Result<()> {
        let mut leaf: Option<WriteGuard<'a>> = None;
        for Gathered { lsn, change, .. } in group {
            if self.is_below_snapshot(page) || self.seen.is_before_value(page, *lsn) {
                drop(leaf.take());
                self.lost.insert(page, Error::MissingPage { page });
                continue;
            }
            match change {
                Change::Build {
                    layout,
                    lower,
                    upper,
                    records,
                } => {
                    drop(leaf.take());
                    let upper = upper.clone().map(|u| &bytes[u]);
                    let fences = (&bytes[lower.clone()], upper);
                    leaf = self.build(page, *lsn, *layout, fences, &bytes[records.clone()])?;
                }
                Change::Forget => {
                    drop(leaf.take());
                    self.forget(page);
                }
                other => {
                    if leaf.is_none() {
                        leaf = self.latch(page)?;
                    }
                    let behind = leaf.take_if(|leaf| {
                        leaf.view().lsn() < *lsn || mutation::on("redo-ignores-page-lsn")
                    });
                    if let Some(mut behind) = behind {
                        let done = self.apply(&mut behind, page, other, bytes)?;
                        leaf = self.stamp(page, behind, *lsn, done);
                    }
                }
            }
        }
        let sparse = leaf.is_some_and(|leaf| leaf.view().is_three_quarters_free());
        if sparse && !mutation::on("recovery-forgets-sparse") {
            self.sparse.insert(page);
        } else {
            self.sparse.remove(&page);
        }
        Ok(())
    }

    /// Whether a chunk of the snapshot is in the place of this page.
    fn is_below_snapshot(&self, page: PageId) -> bool {
        let fixed = self.pager.layout.store.table().is_none();
        let below = fixed && self.snapshot.contains(&page.0);
        below && !mutation::on("redo-reads-below-snapshot")
    }

    /// Latches the page. Returns `None` if it is lost.
    fn latch(&mut self, page: PageId) -> Result<Option<WriteGuard<'a>>> {
        if self.lost.contains_key(&page) {
            return Ok(None);
        }
        match self.pager.write(page) {
            Ok(Fix::Got(leaf)) => Ok(Some(leaf)),
            Ok(Fix::Gone) => Ok(None),
            Err(e @ (Error::MissingPage { .. } | Error::Damaged { .. })) => {
                self.lost.insert(page, e);
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    fn apply(
        &self,
        leaf: &mut WriteGuard<'a>,
        page: PageId,
        change: &Change,
        bytes: &[u8],
    ) -> Result<Result<(), Refused>> {
        let mut edit = leaf.edit();
        Ok(match change {
            Change::Put { key, value } => edit
                .put(&bytes[key.clone()], &bytes[value.clone()])
                .map(drop),
            Change::Delete { .. } if mutation::on("redo-skips-deletes") => Ok(()),
            Change::Delete { key } => {
                edit.delete(&bytes[key.clone()]);
                Ok(())
            }
            Change::Truncate { separator } => edit.truncate_to(&bytes[separator.clone()]),
            Change::Absorb { upper, records } => {
                let moved = self.decode(page, &bytes[records.clone()])?;
                edit.absorb(upper.clone().map(|u| &bytes[u]), moved)
            }
            Change::Relayout { layout } => edit.relayout(*layout),
            Change::Build { .. } | Change::Forget => Ok(()),
        })
    }

    /// Sets the LSN of a page after its change. If the page refused the change, its image is not
    /// the one that the log expects, but belongs to an earlier page with this id. That is damage if
    /// the page is live when the log ends.
    fn stamp(
        &mut self,
        page: PageId,
        mut leaf: WriteGuard<'a>,
        lsn: Lsn,
        change: Result<(), Refused>,
    ) -> Option<WriteGuard<'a>> {
        match change {
            Ok(()) => {
                leaf.changed(lsn);
                self.pager.volume.tell(|| Event::PageRedone { page, lsn });
                (self.pager.volume).tell(|| Event::Leaf(Leaf::of(&leaf.view())));
                self.report.changes_redone += 1;
                Some(leaf)
            }
            Err(refused) => {
                self.pager.cache.discard(leaf, false);
                let lost = Error::Damaged {
                    what: page.to_string(),
                    lba: self.pager.pages.place(page),
                    expected: format!("a page that the log record at {} applies to", lsn.0),
                    found: refused.to_string(),
                };
                self.lost.insert(page, lost);
                None
            }
        }
    }

    /// Builds the right page of a split, unless the page is already there and at least as new.
    /// Overwrites anything else in its place.
    fn build(
        &mut self,
        page: PageId,
        lsn: Lsn,
        layout: PageLayout,
        (lower, upper): (&[u8], Option<&[u8]>),
        moved: &[u8],
    ) -> Result<Option<WriteGuard<'a>>> {
        let records = self.decode(page, moved)?;
        // If the page was lost before this record, that was an earlier page with this id.
        self.lost.remove(&page);
        let mut leaf = match self.pager.write(page) {
            Ok(Fix::Got(leaf)) if leaf.view().lsn() >= lsn => return Ok(Some(leaf)),
            Ok(Fix::Got(leaf)) => leaf,
            Ok(Fix::Gone) | Err(Error::MissingPage { .. } | Error::Damaged { .. }) => {
                self.pager.create(page, self.pager.spare()?)?
            }
            Err(e) => return Err(e),
        };
        let layout = match mutation::on("redo-builds-general") {
            true => PageLayout::Hints,
            false => layout,
        };
        let built = leaf.edit().build(layout, page, lower, upper, lsn, records);
        Ok(self.stamp(page, leaf, lsn, built))
    }

    /// Forgets a page that was merged away: drops its cached image and its note as lost.
    fn forget(&mut self, page: PageId) {
        self.lost.remove(&page);
        if let Some(leaf) = self.pager.cache.try_resident(page) {
            self.pager.cache.discard(leaf, false);
        }
    }

    fn decode<'r>(&self, page: PageId, list: &'r [u8]) -> Result<records::RecordList<'r>> {
        records::decode(list).map_err(|damage| self.bad_record(page, "a list of records", damage))
    }

    fn bad_record(
        &self,
        about: impl std::fmt::Display,
        expected: &str,
        found: impl std::fmt::Display,
    ) -> Error {
        Error::Damaged {
            what: format!("a log record about {about}"),
            lba: self.pager.layout.log_start(),
            expected: expected.into(),
            found: found.to_string(),
        }
    }

    /// Completes recovery after the last record. Checks that every page of the index is there, and
    /// tells the cache and the page store which pages are live.
    pub(crate) fn finish(mut self) -> Result<Recovered> {
        self.apply_gathered()?;
        self.pager.volume.tell(|| Event::RedoEnds);
        let mut live = SlotMap::new(self.pager.pages.page_limit());
        let mut twice = None;
        self.index.for_each(|_, page| {
            if !live.take(page.0) {
                twice = Some(page);
            }
        });
        if let Some(page) = twice {
            return Err(Error::Damaged {
                what: "index".into(),
                lba: self.pager.pages.place(page),
                expected: "every page under one fence, and inside the store".into(),
                found: format!("{page} twice or outside"),
            });
        }
        for (page, why) in std::mem::take(&mut self.lost) {
            if live.contains(page.0) {
                return Err(why);
            }
        }
        let values = self.values(&live)?;
        let others = self.snapshot.iter().copied();
        let mut others = others.chain(values.iter_taken()).map(Slot);
        self.pager
            .pages
            .set_live(&mut live.iter_taken().map(PageId), &mut others)?;
        // Do this before anything else is written: the table on the device still names dead pages.
        self.pager.pages.persist_table()?;
        self.pager.cache.set_live(&live);
        self.sparse.retain(|page| live.contains(page.0));
        self.report.batches_completed = self.pending.is_some().into();
        Ok(Recovered {
            report: self.report,
            sparse: self.sparse,
        })
    }

    /// Returns the places of long values, read from the leaves that may point to some. The pointers
    /// in an unreadable leaf stay unknown; reads of its keys report the damage.
    fn values(&self, live: &SlotMap) -> Result<SlotMap> {
        let (pager, overflow) = (self.pager, &self.pager.overflow);
        let mut taken = Taken::new(&pager.volume, &pager.layout);
        for page in overflow.marked() {
            let leaf = match live.contains(page.0).then(|| pager.read(page)) {
                Some(Ok(Fix::Got(leaf))) => leaf,
                None | Some(Ok(Fix::Gone)) => {
                    overflow.unmark(page);
                    continue;
                }
                Some(Err(Error::Damaged { .. } | Error::MissingPage { .. })) => continue,
                Some(Err(e)) => return Err(e),
            };
            if !taken.take(&leaf.view())? {
                overflow.unmark(page);
            }
        }
        if let Some(intent) = self.pending {
            taken.take_pending(&intent.changes);
        }
        overflow.found_places(taken.slots.used());
        Ok(taken.slots)
    }
}
