//! Mirrors: mini-pages that have all records of their leaf (Bf-Tree §3.1 "Caching range gaps",
//! §5.3).
//!
//! ```text
//!   mini-page  [  b*    e†  ]   + leaf [ a b c d e ]   ->   mirror [ a b* c d e† ]
//!                                                           * newer, † deleted
//! ```
//!
//! A mirror answers scans, and gets of absent keys, without the leaf. It is made from a mini-page
//! that has become too large (§5.5). It is also made, with some probability, when the leaf was read
//! by a scan, or by a get whose record would make the mini-page too large. A mirror is a mini-page
//! like any other: it is changed in place, and merged at checkpoints and when the leaf has no room.
//! When it comes near the head, it is moved unchanged if it was used as a whole in the meantime;
//! otherwise only its used records are kept. When its leaf is split, the mirror is split, too.
//!
//! Cost: O(records of the leaf), and no I/O beside the read of the leaf.

use super::BfTree;
use super::counters::Counters;
use super::page::{address, image, marks_of, set_marks};
use crate::cache::ReadGuard;
use crate::error::Result;
use crate::mini::events::Event as Told;
use crate::mini::{self, Kind, Leaf, Marks, MiniMut, MiniRef};
use crate::mutation;
use crate::node::PageRef;
use crate::ring::{Exclusive, NoBlock, Shared};

/// Calls `each` with the records of a leaf and its mini-page from `from` on, in key order. If both
/// have a key, the mini-page's record wins.
pub(super) fn both(
    leaf: &PageRef<'_>,
    mini: Option<MiniRef<'_>>,
    from: &[u8],
    mut each: impl FnMut(Kind, &[u8], &[u8]),
) {
    let first = mini.map_or(0, |mini| mini.search(from).unwrap_or_else(|place| place));
    let mut newer = mini
        .into_iter()
        .flat_map(|mini| (first..mini.count()).map(move |index| mini.entry(index)))
        .peekable();
    let mut key = leaf.prefix().to_vec();
    let prefix = key.len();
    // Not `for`: see `Records::fold`.
    leaf.iter_from(from).for_each(|(suffix, value)| {
        key.truncate(prefix);
        key.extend_from_slice(&suffix);
        while let Some(entry) = newer.next_if(|entry| entry.key < &key[..]) {
            each(entry.kind, entry.key, entry.value);
        }
        match newer.next_if(|entry| entry.key == key) {
            Some(entry) if !mutation::on("bf-scan-leaf-wins") => {
                each(entry.kind, entry.key, entry.value);
            }
            _ => each(Kind::Cache, &key, value),
        }
    });
    for entry in newer {
        each(entry.kind, entry.key, entry.value);
    }
}

impl BfTree {
    /// Makes the page's mini-page a mirror of its leaf, with `spare` bytes left for a change.
    /// Records that were used stay marked as used.
    pub(super) fn widen<'a>(
        &self,
        guard: Exclusive<'a>,
        leaf: &PageRef<'_>,
        spare: usize,
    ) -> std::result::Result<Exclusive<'a>, NoBlock<'a>> {
        let marks = marks_of(guard.marks());
        let mut needed = mini::bytes_for(0, 0) + spare;
        let old = guard.bytes().map(MiniRef::new);
        both(leaf, old, b"", |kind, key, value| {
            // A key that neither has needs no record.
            if kind != Kind::Phantom {
                needed += mini::bytes_for(1, key.len() + value.len()) - mini::bytes_for(0, 0);
            }
        });
        let mut fresh = guard.allocate(needed)?;
        let (old, new) = fresh.both();
        let old = old.map(MiniRef::new);
        let known = old.map_or_else(|| Leaf::of(leaf), MiniRef::leaf);
        let mut mini = MiniMut::init(new, known);
        let mut skipped = mutation::on("bf-mirror-misses-first");
        both(leaf, old, b"", |kind, key, value| {
            if kind == Kind::Cache && std::mem::take(&mut skipped) {
                return;
            }
            if kind != Kind::Phantom {
                mini.push(kind, key, value);
            }
        });
        mini.set_whole(true);
        let mut hot = 0;
        match old {
            Some(old) => {
                mini.inherit(old);
                let whole = old.is_whole();
                let used = (0..old.count()).filter(|index| marks.is_hot(*index, whole));
                for index in used {
                    if let Ok(index) = mini.view().search(old.entry(index).key) {
                        hot |= mini.view().mark(index);
                    }
                }
            }
            None => mini.set_lsn(leaf.lsn()),
        }
        let guard = fresh.publish();
        set_marks(guard.marks(), Marks(hot));
        Counters::add(&self.counters.mirrors, 1);
        self.hook.tell(|| Told::Mirrored {
            page: guard.page(),
            mini: image(guard.bytes(), guard.marks()),
        });
        Ok(guard)
    }

    /// Makes a mirror of a leaf that a scan has read, if that is possible at once, as
    /// [`BfTree::promote`] does with one record.
    pub(super) fn promote_all(&self, guard: Shared<'_>, leaf: ReadGuard<'_>) {
        let Ok(guard) = guard.try_upgrade() else {
            return;
        };
        if let Err(none) = self.widen(guard, &leaf.view(), 0) {
            let full = none.give_back();
            drop(leaf);
            // The scan succeeds without a mirror.
            drop(self.make_room(&full));
        }
    }

    /// Divides a clean mini-page after its leaf was split. `right` is the new page, which no other
    /// thread has seen yet.
    pub(super) fn divide_mini(&self, mut left: Exclusive<'_>, right: Exclusive<'_>) -> Result<()> {
        if mutation::on("bf-mini-page-outlives-split") {
            self.tell_split(&left, &right);
            return Ok(());
        }
        let old = left.bytes().map(<[u8]>::to_vec);
        // The old mini-page may have records that now belong to the right page.
        left.set_leaf(address(None));
        let (separator, right_leaf) = {
            let leaf = self.read_leaf(right.page())?;
            (leaf.view().lower_fence().to_vec(), Leaf::of(&leaf.view()))
        };
        let left_leaf = Leaf::of(&self.read_leaf(left.page())?.view());
        let old = old.as_deref().map(MiniRef::new);
        let at = old.map_or(0, |old| {
            old.search(&separator).unwrap_or_else(|place| place)
        });
        let left = give_part(old, left, left_leaf, |index| index < at);
        let right = give_part(old, right, right_leaf, |index| index >= at);
        self.tell_split(&left, &right);
        Ok(())
    }

    fn tell_split(&self, left: &Exclusive<'_>, right: &Exclusive<'_>) {
        let (page, other) = (left.page(), right.page());
        self.hook.tell(|| Told::Split {
            page,
            right: other,
            minis: [left, right].map(|guard| image(guard.bytes(), guard.marks())),
            leaves: (self.leaf_image(page))
                .zip(self.leaf_image(other))
                .map(<[_; 2]>::from),
        });
    }
}

/// Gives a page, whose leaf is described by `leaf`, a mini-page of the records of `old` that `part`
/// selects, if there are any and a block is available at once.
pub(super) fn give_part<'a>(
    old: Option<MiniRef<'_>>,
    mut page: Exclusive<'a>,
    leaf: Leaf,
    part: impl Fn(usize) -> bool,
) -> Exclusive<'a> {
    page.set_leaf(address(Some(leaf)));
    let Some(old) = old.filter(|old| old.is_whole() || (0..old.count()).any(&part)) else {
        return page;
    };
    match page.allocate(old.bytes_of(&part)) {
        Ok(mut fresh) => {
            let mut mini = MiniMut::init(fresh.bytes_mut(), leaf);
            mini.copy_from(old, part);
            mini.set_whole(old.is_whole());
            fresh.publish()
        }
        Err(none) => none.page,
    }
}
