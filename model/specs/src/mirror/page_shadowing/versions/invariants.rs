//! The invariants, by the names of the spec.

use super::super::reading::{all_readings, as_read, left, left_count, page_at, redone};
use super::super::state::{Blocks, Image};
use super::steps::done;
use super::{PageVersions, State};

type Invariant = fn(&PageVersions, &State) -> bool;

pub(super) const INVARIANTS: [(&str, Invariant); 7] = [
    ("TypeInv", |model, s| model.base.type_inv(&s.shadow)),
    ("VersionTypeInv", PageVersions::version_type_inv),
    ("NeverOldInv", PageVersions::never_old_inv),
    (
        "NeverToldWithoutRotInv",
        PageVersions::never_told_without_rot_inv,
    ),
    ("SnapshotInv", PageVersions::snapshot_inv),
    ("VersionInv", PageVersions::version_inv),
    ("ReachTold", |_, s| s.told == 0),
];

impl PageVersions {
    /// Holds by construction, except that the sets must contain only pages of the model.
    fn version_type_inv(&self, s: &State) -> bool {
        (s.exact | s.told) & !self.set_of(|_| true) == 0
    }

    fn is_newest(s: &State, p: usize, image: Image) -> bool {
        let image = redone(&s.shadow, p, image, done(s));
        image.values == page_at(&s.shadow, p, s.shadow.log_len)
    }

    fn never_old_inv(&self, s: &State) -> bool {
        self.base.pages().all(|p| match &s.shadow.mem[p] {
            Some(page) => Self::is_newest(s, p, page.image),
            None => {
                let is = |blocks: Blocks| {
                    let image = self.base.found(&s.shadow, p, &blocks).image;
                    !self.accepts(s, p, &blocks) || Self::is_newest(s, p, image)
                };
                s.told >> p & 1 == 1 || all_readings(&s.shadow.dev[p]).all(is)
            }
        })
    }

    fn never_told_without_rot_inv(&self, s: &State) -> bool {
        let passes = |p: usize| {
            let mut read = all_readings(&s.shadow.dev[p]);
            s.shadow.mem[p].is_some() || read.all(|blocks| self.accepts(s, p, &blocks))
        };
        s.spoilt > 0 || s.told == 0 && self.base.pages().all(passes)
    }

    fn snapshot_inv(&self, s: &State) -> bool {
        let keeps = |p: usize| {
            let places = &s.shadow.dev[p];
            (0..left_count(places)).all(|n| {
                let image = self.base.read_both(&as_read(&left(places, n))).image;
                s.snapshot[p] <= image.lsn
            })
        };
        s.spoilt > 0 || self.base.pages().all(keeps)
    }

    fn version_inv(&self, s: &State) -> bool {
        let is = |p: usize| {
            all_readings(&s.shadow.dev[p]).all(|blocks| {
                let lsn = self.base.found(&s.shadow, p, &blocks).image.lsn;
                if s.exact >> p & 1 == 1 {
                    lsn == s.version[p]
                } else {
                    s.version[p] <= lsn
                }
            })
        };
        (!s.shadow.phase.is_up() || s.exact | s.told == self.set_of(|_| true))
            && (s.spoilt > 0 || self.base.pages().all(is))
    }
}
