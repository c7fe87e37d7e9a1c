//! Determines which places hold long values at the end of the log, and which places redo must not
//! write to before that.
//!
//! ```text
//!   index snapshot ──▶ pages with a mark ─┐
//!   log, first pass ─▶ more marks ────────┼─▶ redo ─▶ marked leaves are read: what they name is
//!                 └──▶ what to keep off ──┘           taken, all else is free
//! ```
//!
//! A leaf that has a pointer at the end either had it when the snapshot's entry for the leaf was
//! made, or got it by a later record: a put, a split or a merge. So the marks of the snapshot and
//! of those records cover all such leaves, and after redo the leaves themselves are decisive.
//!
//! **Fixed places.** Redo and repair write a page only to its own place. Suppose that slot `n`
//! holds a live value at the end and the log names page `n`. Then the page died before the value
//! was written, hence before any record refers to the value. That record is in the log too, or else
//! the page would be named later than the value. So all records of a page are skipped that come
//! before the last record that refers to a value in its slot ([`Seen::is_before_value`]). The page
//! need not be read for that: whatever is left of its image in a corner of the slot belongs to
//! nobody.
//!
//! **Moving pages.** Copy-on-write writes pages to any free slot during redo, so the slots of
//! values that are live at the end are taken before ([`Seen::hold_live`]). A value is live at the
//! end if the last log entry for its key refers to it, or if the log has no entry for the key since
//! the image that refers to it. Dead values are left out, because their slots may be the only free
//! ones.
//!
//! Memory: an entry for each page that the log names. For copy-on-write, also an entry for each key
//! that the log changes in a marked page.

use std::collections::{BTreeMap, HashMap};

use super::values::{Overflow, each_run};
use super::{Pointer, may_have_pointers};
use crate::batch::Batch;
use crate::device::{AlignedBuf, Volume};
use crate::error::{Error, Result};
use crate::layout::{Layout, Slot};
use crate::mutation;
use crate::node::{PageRef, records};
use crate::pages::{Found, PageStore, SlotMap};
use crate::types::{Lsn, PageId};
use crate::wal::{Intent, Record};

/// The findings of the first pass over the log.
pub(crate) struct Seen<'a> {
    volume: &'a Volume,
    layout: &'a Layout,
    /// The pages that the log names, if page names are places.
    pages: BTreeMap<PageId, Named>,
    /// The last log entry for each key, if page names are not places.
    keys: HashMap<Box<[u8]>, (Lsn, Option<Pointer>)>,
    /// The values of the batch that recovery will complete.
    pending: Vec<Pointer>,
}

/// A page that the log names.
#[derive(Default)]
struct Named {
    last: Lsn,
    /// The LSN of the last record that refers to a value in the page's place, if it comes after a
    /// record that names the page.
    value: Lsn,
}

impl<'a> Seen<'a> {
    /// Creates an empty set of findings.
    pub(crate) fn new(volume: &'a Volume, layout: &'a Layout) -> Seen<'a> {
        Seen {
            volume,
            layout,
            pages: BTreeMap::new(),
            keys: HashMap::new(),
            pending: Vec::new(),
        }
    }

    fn has_fixed_places(&self) -> bool {
        self.layout.store.table().is_none()
    }

    /// Takes one record, in log order. Marks the pages that get a pointer by it.
    pub(crate) fn take(&mut self, lsn: Lsn, record: &Record<'_>, marks: &Overflow) {
        if self.has_fixed_places() {
            for page in record.pages() {
                self.pages.entry(page).or_default().last = lsn;
            }
        }
        match *record {
            Record::Put { page, key, value } => {
                let pointer = Pointer::of(value);
                if let Some(pointer) = &pointer {
                    marks.mark(page);
                    self.names(lsn, pointer);
                }
                if marks.may_be_in(page) {
                    self.says(key, lsn, pointer);
                }
            }
            Record::Delete { page, key } => {
                if marks.may_be_in(page) {
                    self.says(key, lsn, None);
                }
            }
            Record::Split {
                right: page,
                records,
                ..
            }
            | Record::Merge {
                left: page,
                records,
                ..
            } => {
                if self.moves(records, lsn) {
                    marks.mark(page);
                }
            }
            Record::Batch { .. } | Record::BatchEnd | Record::Relayout { .. } => {}
        }
    }

    /// Takes the values of the batch that recovery will complete. Their places are theirs, although
    /// no leaf may refer to them yet. Called at the end of the log.
    pub(crate) fn take_pending(&mut self, intent: &Intent) {
        self.pending = pointers(&intent.changes);
        for pointer in self.pending.clone() {
            self.names(intent.lsn, &pointer);
        }
    }

    /// Takes records that move to another page. Returns whether there is a pointer among them. The
    /// mark of the page they come from may be missing, because the snapshot may have been made
    /// while it was merged away. Bytes that are not a list of records are left for redo to report.
    fn moves(&mut self, moved: &[u8], lsn: Lsn) -> bool {
        let mut any = false;
        if !may_have_pointers(moved) {
            return false;
        }
        for (key, value) in records::decode(moved).into_iter().flatten() {
            if let Some(pointer) = Pointer::of(value) {
                any = true;
                self.names(lsn, &pointer);
                self.says(&key, lsn, Some(pointer));
            }
        }
        any
    }

    /// Notes that the value of `pointer` is live at `lsn`.
    fn names(&mut self, lsn: Lsn, pointer: &Pointer) {
        if !self.has_fixed_places() || mutation::on("overflow-redo-of-the-dead") {
            return;
        }
        each_run(self.volume, self.layout, pointer, |run| {
            let end = PageId(run.first.0 + run.slots);
            for (_, named) in self.pages.range_mut(PageId(run.first.0)..end) {
                named.value = named.value.max(lsn);
            }
        });
    }

    /// Notes the last log entry for a key so far.
    fn says(&mut self, key: &[u8], lsn: Lsn, pointer: Option<Pointer>) {
        if !self.has_fixed_places() {
            self.keys.insert(key.into(), (lsn, pointer));
        }
    }

    /// Returns whether the record at `lsn` is from a time when the place of `page` belonged to the
    /// page, while a later record refers to a value there.
    pub(crate) fn is_before_value(&self, page: PageId, lsn: Lsn) -> bool {
        self.pages.get(&page).is_some_and(|named| lsn < named.value)
    }

    /// Returns whether a value was written to this place after the last record that names the page
    /// of the place.
    pub(crate) fn has_value(&self, slot: Slot) -> bool {
        let named = self.pages.get(&PageId(slot.0));
        named.is_some_and(|named| named.last < named.value)
    }

    /// Takes the places of values that are live at the end, where redo would otherwise write to
    /// them. `marks` must include the marks of all records.
    ///
    /// # Errors
    /// Device failures, and damage: if a page is damaged, its values are unknown.
    pub(crate) fn hold_live(&self, marks: &Overflow, pages: &dyn PageStore) -> Result<()> {
        if self.has_fixed_places() || mutation::on("overflow-redo-moves-over") {
            return Ok(());
        }
        let hold = |pointer: &Pointer| {
            each_run(self.volume, self.layout, pointer, |run| pages.hold_run(run));
        };
        self.pending.iter().for_each(hold);
        (self
            .keys
            .values()
            .filter_map(|(_, pointer)| pointer.as_ref()))
        .for_each(hold);
        let mut bytes = AlignedBuf::zeroed(self.layout.page_size);
        for page in marks.marked() {
            match pages.read(page, &mut bytes) {
                Ok(Found::Image) => {}
                Ok(Found::Nothing) | Err(Error::Damaged { .. } | Error::MissingPage { .. }) => {
                    continue;
                }
                Err(e) => return Err(e),
            }
            let leaf = PageRef::new(&bytes);
            each_pointer(&leaf, |key, pointer| {
                let later = self.keys.get(key).is_some_and(|(lsn, _)| *lsn > leaf.lsn());
                if !later {
                    hold(&pointer);
                }
            });
        }
        Ok(())
    }
}

/// Calls `each` with the keys and pointers of the long values of a leaf.
pub(crate) fn each_pointer(leaf: &PageRef<'_>, mut each: impl FnMut(&[u8], Pointer)) {
    let prefix = leaf.prefix();
    for (suffix, value) in leaf.iter() {
        if let Some(pointer) = Pointer::of(value) {
            each(&[prefix, &suffix].concat(), pointer);
        }
    }
}

/// The pointers among the changes of a batch.
fn pointers(changes: &Batch) -> Vec<Pointer> {
    if mutation::on("batch-values-not-taken") {
        return Vec::new();
    }
    let values = changes.iter().filter_map(|(_, value)| value);
    values.filter_map(Pointer::of).collect()
}

/// The places of all values that the leaves refer to.
pub(crate) struct Taken<'a> {
    volume: &'a Volume,
    layout: &'a Layout,
    pub(crate) slots: SlotMap,
}

impl<'a> Taken<'a> {
    /// Creates an empty set.
    pub(crate) fn new(volume: &'a Volume, layout: &'a Layout) -> Taken<'a> {
        Taken {
            volume,
            layout,
            slots: SlotMap::new(layout.slots),
        }
    }

    /// Takes the places of the values that a batch refers to. Leaves may refer to them already.
    pub(crate) fn take_pending(&mut self, changes: &Batch) {
        for pointer in pointers(changes) {
            each_run(self.volume, self.layout, &pointer, |run| {
                for slot in run.iter() {
                    self.slots.take(slot);
                }
            });
        }
    }

    /// Takes the places of the values that `leaf` refers to. Returns whether it refers to any
    /// value.
    ///
    /// # Errors
    /// [`Error::Damaged`] if another value already has one of the places.
    pub(crate) fn take(&mut self, leaf: &PageRef<'_>) -> Result<bool> {
        let (mut any, mut twice) = (false, None);
        each_pointer(leaf, |_, pointer| {
            any = true;
            each_run(self.volume, self.layout, &pointer, |run| {
                let taken = run.iter().filter(|slot| !self.slots.take(*slot));
                twice = taken.last().or(twice);
            });
        });
        match twice {
            None => Ok(any),
            Some(slot) => Err(Error::Damaged {
                what: leaf.page_id().to_string(),
                lba: self.layout.slot_lba(Slot(slot)),
                expected: "every place used by one long value".into(),
                found: "two values in one place".into(),
            }),
        }
    }
}
