//! Recovery: from whatever a crash left to the state that the durable log describes.
//!
//! ```text
//! superblock -> index snapshot -> page table / journal repair -> redo from `redo start` -> what is live -> checkpoint
//! ```
//!
//! Redo is page-wise and idempotent: a record is applied to a page exactly if the page's LSN is smaller. Pages that redo
//! changes may be evicted and written while it runs, so a crash during recovery only means that the next one finds some
//! pages further on.
//!
//! A record may name a page that has no image, or another page's bytes in its place. That is legal in one case: a later
//! record merges the page away (and carries what it held), after which its place was trimmed or reused. So such a page is
//! noted as *lost* and must not be in the index when the log ends; a split or merge that builds it anew finds it again.
//!
//! The index is replayed along: the snapshot may already contain later changes, but the log repeats all of them in order.

use std::collections::BTreeMap;

use crate::cache::{Fix, WriteGuard};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::layout::Slot;
use crate::node::{Refused, records};
use crate::pager::Pager;
use crate::pages::SlotMap;
use crate::types::{Lsn, PageId};
use crate::wal::Record;

/// What recovery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Torn pages restored from the journal.
    pub pages_repaired: u64,
    /// Log records read.
    pub records_read: u64,
    /// Page changes made again.
    pub changes_redone: u64,
    /// Where the durable log ended.
    pub log_end: Lsn,
}

/// Replays the log over the pages and the index.
pub(crate) struct Redo<'a> {
    pub(crate) pager: &'a Pager,
    pub(crate) index: &'a Index,
    /// Pages whose image is missing or not theirs, with the reason.
    lost: BTreeMap<PageId, Error>,
    pub(crate) report: RecoveryReport,
}

impl<'a> Redo<'a> {
    pub(crate) fn new(pager: &'a Pager, index: &'a Index) -> Redo<'a> {
        Redo { pager, index, lost: BTreeMap::new(), report: RecoveryReport::default() }
    }

    /// Applies one record.
    pub(crate) fn apply(&mut self, lsn: Lsn, record: &Record<'_>) -> Result<()> {
        self.report.records_read += 1;
        self.report.log_end = lsn;
        match *record {
            Record::Put { page, key, value } => {
                if let Some(mut leaf) = self.behind(page, lsn)? {
                    let put = leaf.edit().put(key, value).map(drop);
                    self.redone(page, leaf, lsn, put)?;
                }
            }
            Record::Delete { page, key } => {
                if let Some(mut leaf) = self.behind(page, lsn)? {
                    leaf.edit().delete(key);
                    self.redone(page, leaf, lsn, Ok(()))?;
                }
            }
            Record::Split { left, right, separator, upper, records } => {
                if let Some(mut leaf) = self.behind(left, lsn)? {
                    let cut = leaf.edit().truncate_to(separator);
                    self.redone(left, leaf, lsn, cut)?;
                }
                self.rebuild(right, lsn, separator, upper, records)?;
                self.index.insert(separator, right);
            }
            Record::Merge { left, right, right_lower, upper, records } => {
                let moved = self.decode(left, records)?;
                if let Some(mut leaf) = self.behind(left, lsn)? {
                    let absorbed = leaf.edit().absorb(upper, moved);
                    self.redone(left, leaf, lsn, absorbed)?;
                }
                self.forget(right)?;
                self.index.remove(right_lower);
            }
        }
        Ok(())
    }

    /// The page, latched, if the record at `lsn` is not in it yet.
    fn behind(&mut self, page: PageId, lsn: Lsn) -> Result<Option<WriteGuard<'a>>> {
        if self.lost.contains_key(&page) {
            return Ok(None);
        }
        match self.pager.write(page) {
            Ok(Fix::Got(leaf)) => Ok((leaf.view().lsn() < lsn).then_some(leaf)),
            Ok(Fix::Gone) => Ok(None),
            Err(e @ (Error::MissingPage { .. } | Error::Damaged { .. })) => {
                self.lost.insert(page, e);
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Stamps a page after its change. A change that the page refuses means that its image is not what the log believes: some
    /// older tenant's. If it is live at the end, that is damage.
    fn redone(
        &mut self,
        page: PageId,
        mut leaf: WriteGuard<'a>,
        lsn: Lsn,
        change: Result<(), Refused>,
    ) -> Result<()> {
        match change {
            Ok(()) => {
                leaf.changed(lsn);
                self.report.changes_redone += 1;
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
            }
        }
        Ok(())
    }

    /// Builds the right page of a split, whatever its place holds, unless it is there and newer.
    fn rebuild(
        &mut self,
        page: PageId,
        lsn: Lsn,
        lower: &[u8],
        upper: Option<&[u8]>,
        moved: &[u8],
    ) -> Result<()> {
        let records = self.decode(page, moved)?;
        // A page lost before this record is a former tenant's business.
        self.lost.remove(&page);
        let mut leaf = match self.pager.write(page) {
            Ok(Fix::Got(leaf)) if leaf.view().lsn() >= lsn => return Ok(()),
            Ok(Fix::Got(leaf)) => leaf,
            Ok(Fix::Gone) | Err(Error::MissingPage { .. } | Error::Damaged { .. }) => {
                self.pager.create(page)?
            }
            Err(e) => return Err(e),
        };
        let built = leaf.edit().build(page, lower, upper, lsn, records);
        self.redone(page, leaf, lsn, built)
    }

    /// A merged page: its cached image and its troubles are nobody's concern any more.
    fn forget(&mut self, page: PageId) -> Result<()> {
        self.lost.remove(&page);
        if let Some(leaf) = self.pager.cache.try_fix_exclusive(page) {
            self.pager.cache.discard(leaf, false);
        }
        Ok(())
    }

    fn decode<'r>(&self, page: PageId, list: &'r [u8]) -> Result<records::RecordList<'r>> {
        records::decode(list).map_err(|damage| Error::Damaged {
            what: format!("a log record about {page}"),
            lba: self.pager.layout.log_start(),
            expected: "a list of records".into(),
            found: damage.to_string(),
        })
    }

    /// After the last record: every page of the index must be there. Tells cache and page store what is live.
    pub(crate) fn finish(self, snapshot_slots: &[Slot]) -> Result<RecoveryReport> {
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
        for (page, why) in self.lost {
            if live.contains(page.0) {
                return Err(why);
            }
        }
        self.pager.pages.set_live(&mut live.iter_taken().map(PageId), snapshot_slots)?;
        // Before anything is written: the table on the device still names the dead.
        self.pager.pages.persist_table()?;
        self.pager.cache.set_live(&|page| live.contains(page.0));
        Ok(self.report)
    }
}
