//! The actions of `PageVersions.tla`, in their order, and the effects on versions of the actions of
//! `PageShadowing.tla`.

use super::super::reading::{self, is_named};
use super::super::state::{
    Block, Blocks, Call, Is, LOG_BLOCK, N, PENDING, Place, ROTTEN, page_of, spot,
};
use super::super::steps::swept;
use super::super::{Action as Shadowing, Bug};
use super::{Action, Becomes, PageVersions, Set, State, Taken};

fn has(set: Set, p: usize) -> bool {
    set >> p & 1 == 1
}

impl PageVersions {
    /// Whether a page that reads like this has an acceptable version (`Accepts`).
    pub(super) fn accepts(&self, s: &State, p: usize, blocks: &Blocks) -> bool {
        let lsn = self.base.found(&s.shadow, p, blocks).image.lsn;
        let (exact, bug) = (has(s.exact, p), self.base.bug);
        if bug == Bug::AnyImageWillDo {
            return lsn != 0 || !exact || s.version[p] == 0;
        }
        let fits = if exact || bug == Bug::BoundForExact {
            lsn == s.version[p]
        } else {
            s.version[p] <= lsn
        };
        fits && (lsn <= s.shadow.log_len || bug == Bug::BelievesTheFuture)
    }

    pub(super) fn enabled(&self, s: &State, actions: &mut Vec<Action>) {
        let mut steps = Vec::new();
        self.base.enabled(&s.shadow, &mut steps);
        let may = |step: &Shadowing| match *step {
            Shadowing::Checkpoint => false,
            Shadowing::Load(p, n) => {
                let p = usize::from(p);
                let blocks = reading::read(&s.shadow.dev[p], n);
                !has(s.told, p) && self.accepts(s, p, &blocks)
            }
            Shadowing::FinishRedo => self.beyond(s) == 0,
            _ => true,
        };
        actions.extend(steps.into_iter().filter(may).map(Action::Of));
        if !s.shadow.poisoned {
            self.while_serving(s, actions);
        }
        if s.spoilt < self.max_rots {
            self.rots(s, actions);
        }
        if s.spoilt < self.max_lost_ends {
            self.lost_ends(s, actions);
        }
    }

    fn while_serving(&self, s: &State, actions: &mut Vec<Action>) {
        let shadow = &s.shadow;
        for p in self.base.pages().filter(|p| shadow.mem[*p].is_none()) {
            let mut read = reading::all_readings(&shadow.dev[p]);
            if !has(s.told, p) && !read.all(|blocks| self.accepts(s, p, &blocks)) {
                actions.push(Action::Tell(p as u8));
            }
        }
        if !shadow.phase.is_up() {
            return;
        }
        for c in 0..self.base.clients.len() {
            let key = match shadow.call[c] {
                Call::Get { key, got: PENDING } | Call::Write { key, lsn: 0, .. } => Some(key),
                Call::Write { key, .. } if self.base.bug == Bug::RefusedShows => Some(key),
                _ => None,
            };
            if key.is_some_and(|key| has(s.told, page_of(key))) {
                actions.push(Action::Refuse(c as u8));
            }
        }
        if s.taken.is_some() {
            actions.push(Action::EndCheckpoint);
        } else if shadow.redo_start < swept(shadow) {
            actions.push(Action::BeginCheckpoint);
        }
    }

    fn rots(&self, s: &State, actions: &mut Vec<Action>) {
        for p in self.base.pages() {
            let slots = [0, 1].into_iter();
            let slots = slots.flat_map(|slot| (0..self.base.segments).map(move |i| spot(slot, i)));
            for at in slots.chain([LOG_BLOCK]) {
                actions.extend(self.becomes.iter().filter_map(|&becomes| {
                    let block = self.spoils(&s.shadow.dev[p][at], at, becomes)?;
                    let changes = s.shadow.dev[p][at].all() != [block];
                    changes.then_some(Action::Rot(p as u8, at as u8, becomes))
                }));
            }
        }
    }

    fn lost_ends(&self, s: &State, actions: &mut Vec<Action>) {
        let shadow = &s.shadow;
        let untouched = |p: usize| shadow.mem[p].is_none() && shadow.valid[p].is == Is::Unknown;
        let begins = !shadow.phase.is_up() && shadow.redone == shadow.redo_start && s.told == 0;
        if begins && self.base.pages().all(untouched) {
            actions.extend((shadow.redo_start..shadow.durable).map(Action::FindEndEarly));
        }
    }

    /// `Spoils`: what the block at a place turns into. `None` if it cannot turn into that.
    fn spoils(&self, place: &Place, at: usize, becomes: Becomes) -> Option<Block> {
        match becomes {
            Becomes::NotWhole if at == LOG_BLOCK => {
                let mut values = [0; super::super::SEGMENTS];
                values[0] = ROTTEN;
                Some(Block::delta(0, 0, 1, &values))
            }
            Becomes::NotWhole if at == spot(0, 0) || at == spot(1, 0) => {
                let mut values = [0; super::super::SEGMENTS];
                values[..self.base.segments].fill(ROTTEN);
                Some(Block::new(0, 0, 0, values))
            }
            Becomes::NotWhole => Some(Block::segment(ROTTEN)),
            Becomes::Zeros => (at == LOG_BLOCK).then_some(Block::TRIMMED),
            Becomes::Older => place.all().iter().rev().nth(1).copied(),
        }
    }

    /// Takes an enabled action.
    pub(super) fn take(&self, s: &mut State, action: Action) {
        match action {
            Action::Of(step) => {
                self.base.take(&mut s.shadow, step);
                self.set_versions(s, step);
            }
            Action::Refuse(c) => s.shadow.call[usize::from(c)] = Call::Refused,
            Action::Tell(p) => s.told |= 1 << p,
            Action::BeginCheckpoint => {
                s.taken = Some(Taken {
                    redo_start: swept(&s.shadow),
                    versions: s.version,
                });
                if self.base.bug == Bug::SnapshotsLate {
                    s.shadow.device_flush();
                    s.shadow.after_flush();
                }
            }
            Action::EndCheckpoint => self.end_checkpoint(s),
            Action::Rot(p, at, becomes) => {
                let place = &mut s.shadow.dev[usize::from(p)][usize::from(at)];
                if let Some(block) = self.spoils(place, at.into(), becomes) {
                    *place = Place::durably(block);
                }
                s.spoilt += 1;
            }
            Action::FindEndEarly(n) => {
                s.shadow.cut_log(n);
                self.take_snapshot_versions(s);
                s.spoilt += 1;
            }
        }
    }

    fn set_versions(&self, s: &mut State, step: Shadowing) {
        match step {
            Shadowing::WriteDelta(p) | Shadowing::WriteWhole(p) | Shadowing::Load(p, _) => {
                if let Some(page) = &s.shadow.mem[usize::from(p)] {
                    s.version[usize::from(p)] = page.image.lsn;
                    s.exact |= 1 << p;
                }
            }
            Shadowing::Evict(p) if self.base.bug == Bug::ForgetsVersion => {
                s.version[usize::from(p)] = s.snapshot[usize::from(p)];
                s.exact &= !(1 << p);
            }
            Shadowing::Crash(..) | Shadowing::Restart(..) => self.take_snapshot_versions(s),
            _ => {}
        }
    }

    fn end_checkpoint(&self, s: &mut State) {
        let Some(taken) = s.taken.take() else { return };
        s.shadow.redo_start = taken.redo_start;
        if self.base.bug == Bug::SnapshotsLate {
            s.snapshot = s.version;
        } else {
            s.snapshot = taken.versions;
            s.shadow.device_flush();
            s.shadow.after_flush();
        }
    }

    /// Sets the versions to those of the last checkpoint's snapshot (`FromSnapshot`).
    fn take_snapshot_versions(&self, s: &mut State) {
        let not_named = self.set_of(|p| !is_named(&s.shadow, p));
        (s.version, s.exact, s.taken) = (s.snapshot, not_named, None);
        s.told = self.beyond(s);
    }

    /// `Beyond`: the pages that are newer than the log.
    fn beyond(&self, s: &State) -> Set {
        match self.base.bug {
            Bug::JudgesEndLate => 0,
            _ => self.set_of(|p| s.snapshot[p] > s.shadow.durable),
        }
    }

    /// The pages for which `is` is true.
    pub(super) fn set_of(&self, is: impl Fn(usize) -> bool) -> Set {
        let pages = self.base.pages().filter(|p| is(*p));
        pages.fold(0, |set, p| set | 1 << p)
    }
}

/// The last record up to which all records are redone: part of `IsNewest`.
pub(super) fn done(s: &State) -> N {
    if s.shadow.phase.is_up() {
        s.shadow.log_len
    } else {
        s.shadow.redone
    }
}
