//! Which places have long values when the log ends, and which redo must not touch before.
//!
//! ```text
//!   index snapshot ──▶ pages with a mark ─┐
//!   log, first pass ─▶ more marks ────────┼─▶ redo ─▶ marked leaves are read: what they name is
//!                 └──▶ what to keep off ──┘           taken, all else is free
//! ```
//!
//! A leaf has a pointer at the end because it had one when the snapshot's entry for it was made, or
//! because a record since then put one there: a put, a split, a merge. So the marks of the snapshot
//! and of those records are all there are, and after redo their leaves are the truth.
//!
//! **Fixed places.** Redo and repair write a page to its own place only. Slot `n` has a live value
//! at the end, and the log names page `n`: then the page died before the value was written, hence
//! before any record names the value, and that record is in the log, too, for else the page would
//! be named later than the value. So what the log says of a page before the last record that names
//! a value in its slot is left out ([`Seen::is_before_value`]). The page need not be read for that:
//! what is left of its image in a corner of the slot is nobody's.
//!
//! **Moving pages.** Copy-on-write takes any free slot for what redo writes, so the slots of the
//! values that are live at the end are taken before ([`Seen::hold_live`]). A value is live at the
//! end if the log's last word on its key names it; or if the log says nothing of the key since the
//! image that names it. Dead ones are left out, for their slots may be all that is free.
//!
//! Memory: an entry for each page that the log names; copy-on-write, also for each key that it
//! changes in a page with a mark.

use std::collections::{BTreeMap, HashMap};

use super::values::{Overflow, each_run};
use super::{Pointer, may_have_pointers};
use crate::device::{AlignedBuf, Volume};
use crate::error::{Error, Result};
use crate::layout::{Layout, Slot};
use crate::mutation;
use crate::node::{PageRef, records};
use crate::pages::{Found, PageStore, SlotMap};
use crate::types::{Lsn, PageId};
use crate::wal::Record;

/// What the log's first pass has seen.
pub(crate) struct Seen<'a> {
    volume: &'a Volume,
    layout: &'a Layout,
    /// Where names are places: the pages that the log names.
    pages: BTreeMap<PageId, Named>,
    /// Where they are not: the last that the log says of a key.
    keys: HashMap<Box<[u8]>, (Lsn, Option<Pointer>)>,
}

/// A page that the log names.
#[derive(Default)]
struct Named {
    last: Lsn,
    /// Of the last record behind one that names the page that names a value in its place.
    value: Lsn,
}

impl<'a> Seen<'a> {
    /// Nothing yet.
    pub(crate) fn new(volume: &'a Volume, layout: &'a Layout) -> Seen<'a> {
        Seen {
            volume,
            layout,
            pages: BTreeMap::new(),
            keys: HashMap::new(),
        }
    }

    fn has_fixed_places(&self) -> bool {
        self.layout.store.table().is_none()
    }

    /// Takes one record, in log order. Pages that get a pointer by it are marked.
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
            Record::Relayout { .. } => {}
        }
    }

    /// Records that come to another page; says whether there is a pointer among them. The mark of
    /// the page they come from may be gone: the snapshot may have been made while it was merged
    /// away. What is no list of records redo will say.
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

    /// The value of `pointer` is live at `lsn`.
    fn names(&mut self, lsn: Lsn, pointer: &Pointer) {
        if !self.has_fixed_places() || mutation::on("overflow-redo-of-the-dead") {
            return;
        }
        each_run(self.volume, self.layout, pointer, |run| {
            let end = PageId(run.first.0 + run.slots);
            for (_, named) in self.pages.range_mut(PageId(run.first.0)..end) {
                named.value = lsn;
            }
        });
    }

    /// The log's last word on a key, as far as it has been read.
    fn says(&mut self, key: &[u8], lsn: Lsn, pointer: Option<Pointer>) {
        if !self.has_fixed_places() {
            self.keys.insert(key.into(), (lsn, pointer));
        }
    }

    /// Whether the record at `lsn` is of a time when the place of `page` was the page's, while a
    /// later one names a value there.
    pub(crate) fn is_before_value(&self, page: PageId, lsn: Lsn) -> bool {
        self.pages.get(&page).is_some_and(|named| lsn < named.value)
    }

    /// Whether a value came to this place after the last record that names the page of the place.
    pub(crate) fn has_value(&self, slot: Slot) -> bool {
        let named = self.pages.get(&PageId(slot.0));
        named.is_some_and(|named| named.last < named.value)
    }

    /// Holds the places of the values that are live at the end, where redo would write to them.
    /// `marks` are those of all records.
    ///
    /// # Errors
    /// Device failures. Of a page that is damaged nobody knows what it names.
    pub(crate) fn hold_live(&self, marks: &Overflow, pages: &dyn PageStore) -> Result<()> {
        if self.has_fixed_places() || mutation::on("overflow-redo-moves-over") {
            return Ok(());
        }
        let hold = |pointer: &Pointer| {
            each_run(self.volume, self.layout, pointer, |run| pages.hold_run(run));
        };
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

/// The places of all values that the leaves name.
pub(crate) struct Taken<'a> {
    volume: &'a Volume,
    layout: &'a Layout,
    pub(crate) slots: SlotMap,
}

impl<'a> Taken<'a> {
    /// None yet.
    pub(crate) fn new(volume: &'a Volume, layout: &'a Layout) -> Taken<'a> {
        Taken {
            volume,
            layout,
            slots: SlotMap::new(layout.slots),
        }
    }

    /// Takes the places of what `leaf` names; says whether it names any value.
    ///
    /// # Errors
    /// [`Error::Damaged`] if another value has one of them.
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
                expected: "long values with places of their own".into(),
                found: "two in one place".into(),
            }),
        }
    }
}
