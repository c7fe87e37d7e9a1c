//! The actions of `LeafLayout.tla`, in their order.
//!
//! [`LeafLayout::enabled`] contains the guards, [`LeafLayout::take`] the effects. An action is taken
//! only if it is enabled.

use super::super::wal_recovery::Versions;
use super::pages::Remedy;
use super::room::{N, Set};
use super::state::{ABSENT, Call, Content, Is, Layout, Leaf, PENDING, Phase, Record, State, UP};
use super::{Action, Bug, LeafLayout};
use crate::mirror::Phase as Ended;

fn has(set: Set, member: u8) -> bool {
    set.checked_shr(member.into()).unwrap_or(0) & 1 == 1
}

impl LeafLayout {
    pub(super) fn enabled(&self, s: &State, actions: &mut Vec<Action>) {
        self.enabled_but_crashes(s, actions);
        self.ends(s, actions);
    }

    pub(super) fn enabled_but_crashes(&self, s: &State, actions: &mut Vec<Action>) {
        for c in 0..self.clients.len() as u8 {
            self.client_steps(s, c, actions);
        }
        if s.is_up() && s.durable < s.log_len {
            actions.push(Action::CommitLog);
        }
        let dirty = (1..=self.pages).filter(|p| self.may_write(s, *p));
        actions.extend(dirty.map(Action::WritePage));
        if s.is_up() {
            (1..=self.pages).for_each(|p| self.page_steps(s, p, actions));
        }
        if s.is_up() && s.redo_start < self.swept(s) {
            actions.push(Action::Checkpoint);
        }
        if s.recovers() {
            self.recovery_steps(s, actions);
        }
    }

    /// Whether a page is dirty, and the log durable up to its last change.
    pub(super) fn may_write(&self, s: &State, p: u8) -> bool {
        let leaf = s.page(p);
        let may = leaf.lsn <= s.durable || self.bug == Bug::PageBeforeLog;
        may && leaf.is_there() && s.images(p).last() != Some(leaf)
    }

    pub(super) fn client_steps(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        match s.call[usize::from(c)] {
            Call::Idle if s.is_up() => self.calls(s, c, actions),
            Call::Write { key, value, lsn: 0 } if s.is_up() => {
                let (_, key, leaf) = self.leaf_of(s, key);
                actions.push(match self.takes(leaf, key, value) {
                    true => Action::ChangeLeaf(c),
                    false => match self.remedy(s.allows, leaf, key, value) {
                        Remedy::Relayout(_) if s.log_len >= self.max_log => return,
                        Remedy::Relayout(_) => Action::LayOut(c),
                        Remedy::Split(..) if s.fresh() > self.pages => return,
                        Remedy::Split(at, layout) => {
                            let layouts = self.right_layouts(leaf, at, layout).into_iter();
                            actions.extend(layouts.map(|layout| Action::Divide(c, layout)));
                            return;
                        }
                    },
                });
            }
            Call::Write { lsn, .. }
                if lsn > 0 && (lsn <= s.durable || self.bug == Bug::AcksAtOnce) =>
            {
                actions.push(Action::Acknowledge(c));
            }
            Call::Get { got: PENDING, .. } if s.is_up() => actions.push(Action::ReadLeaf(c)),
            Call::Get { .. } if s.is_up() => actions.push(Action::AnswerGet(c)),
            _ => {}
        }
    }

    /// Conversions and merges that no write asks for.
    pub(super) fn page_steps(&self, s: &State, p: u8, actions: &mut Vec<Action>) {
        let leaf = s.page(p);
        let may = s.log_len < self.max_log && s.is_live(p);
        if may && self.adapts && leaf.layout.is_general() {
            let fits = |layout| self.fits_general(layout, &leaf.map, leaf.fences());
            let others = self.generals.iter().copied();
            let others = others.filter(|layout| *layout != leaf.layout && fits(*layout));
            actions.extend(others.map(|layout| Action::Adapt(p, layout)));
        }
        if !may || !self.merges {
            return;
        }
        if leaf.layout == Layout::Dense
            && self.can_be(leaf, Layout::General)
            && self.fit_together(s, Layout::General, p)
        {
            actions.push(Action::Prepare(p));
        }
        let unprepared = self.bug == Bug::MergeNotPrepared && leaf.layout == Layout::Dense;
        let layout = if unprepared {
            Layout::General
        } else {
            leaf.layout
        };
        if layout.is_general()
            && self.right_neighbour(s, p).is_some()
            && (self.fit_together(s, layout, p) || self.bug == Bug::MergeUnfit)
        {
            actions.push(Action::Merge(p));
        }
    }

    /// The page to the right of a live one (`AreNeighbours`).
    pub(super) fn right_neighbour(&self, s: &State, p: u8) -> Option<u8> {
        let upper = s.page(p).upper;
        (upper < self.top()).then(|| s.owner(upper, s.log_len))
    }

    /// `FitTogether`, with the right neighbour.
    fn fit_together(&self, s: &State, layout: Layout, p: u8) -> bool {
        self.right_neighbour(s, p).is_some_and(|q| {
            let (left, right) = (s.page(p), s.page(q));
            let both = Self::together(&left.map, &right.map);
            self.fits_general(layout, &both, (left.lower, right.upper))
        })
    }

    fn calls(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        let keys = 0..self.keys.len() as u8;
        if has(self.writers, c) && s.asked < N::from(self.values) {
            let plan = self.plan[s.asked as usize];
            let may = keys.clone().filter(|k| has(plan, *k));
            actions.extend(may.map(|k| Action::CallWrite(c, k)));
        }
        if has(self.readers, c) {
            let may = keys.filter(|k| has(self.read_keys, *k));
            actions.extend(may.map(|k| Action::CallGet(c, k)));
        }
    }

    fn ends(&self, s: &State, actions: &mut Vec<Action>) {
        let all = s.leaf_dev.iter().map(|place| place.all().len());
        let left = all.product::<usize>() as u32;
        for n in s.durable..=s.log_len {
            for allows in &self.choices {
                if s.crashes < self.max_crashes {
                    actions.extend((0..left).map(|left| Action::Crash(n, left, *allows)));
                }
                if s.crashes < self.max_restarts {
                    actions.push(Action::Restart(n, *allows));
                }
            }
        }
    }

    pub(super) fn recovery_steps(&self, s: &State, actions: &mut Vec<Action>) {
        if s.redone < s.log_len {
            actions.push(Action::RedoRecord);
        }
        if s.redone == s.log_len || self.bug == Bug::StopsRedoEarly {
            actions.push(Action::FinishRedo);
        }
    }

    /// The page of a key, given by its number, the key, and the leaf.
    pub(super) fn leaf_of<'a>(&self, s: &'a State, key: u8) -> (u8, N, &'a Leaf) {
        let key = self.keys[usize::from(key)];
        let page = s.owner(key, s.log_len);
        (page, key, s.page(page))
    }

    /// `Swept`: the latest position from which redo may begin.
    pub(super) fn swept(&self, s: &State) -> N {
        let stored = |p: u8| s.images(p).last().map_or(0, |image| image.lsn);
        let missing = |n: N, record: &Record| {
            let forgets = self.bug == Bug::CheckpointForgetsRelayouts;
            let lacks = |p| record.names(p) && stored(p) < n && !s.has_ended(p);
            (1..=self.pages).any(lacks) && !(forgets && record.is == Is::Relayout)
        };
        let durable = s.first(s.durable);
        let mut behind = durable.filter(|(n, _)| *n > s.redo_start);
        let first = behind.find(|(n, record)| missing(*n, record));
        first.map_or(s.durable, |(n, _)| n - 1)
    }

    pub(super) fn take(&self, s: &mut State, action: Action) {
        match action {
            Action::CallWrite(c, key) => {
                s.asked += 1;
                let value = match self.deletes >> (s.asked - 1) & 1 == 1 {
                    true => ABSENT,
                    false => s.asked as Content,
                };
                s.call[usize::from(c)] = Call::Write { key, value, lsn: 0 };
            }
            Action::ChangeLeaf(c) => self.change_leaf(s, c),
            Action::LayOut(c) => self.lay_out(s, c),
            Action::Divide(c, layout) => self.divide(s, c, layout),
            Action::Adapt(p, layout) => self.converts(s, p, layout),
            Action::Prepare(p) => self.converts(s, p, Layout::General),
            Action::Merge(p) => self.merge(s, p),
            Action::Acknowledge(c) | Action::AnswerGet(c) => s.call[usize::from(c)] = Call::Idle,
            Action::CallGet(c, key) => {
                s.call[usize::from(c)] = Call::Get { key, got: PENDING };
            }
            Action::ReadLeaf(c) => {
                if let Call::Get { key, .. } = s.call[usize::from(c)] {
                    let got = self.leaf_of(s, key).2.map[usize::from(key)];
                    s.call[usize::from(c)] = Call::Get { key, got };
                }
            }
            Action::CommitLog => {
                s.durable = s.log_len;
                s.device_flush();
            }
            Action::WritePage(p) => {
                let leaf = *s.page(p);
                s.leaf_dev[usize::from(p) - 1].push(leaf);
            }
            Action::Checkpoint => {
                s.redo_start = self.swept(s);
                if self.bug != Bug::CheckpointSkipsFlush {
                    s.device_flush();
                }
            }
            Action::Crash(n, left, allows) => {
                let mut rest = left as usize;
                for place in &mut s.leaf_dev {
                    *place = Versions::durably(picked(place.all(), &mut rest));
                }
                s.durable = n;
                end(s, n, Ended::Cut, allows);
            }
            Action::Restart(n, allows) => {
                if self.bug != Bug::TrustsWhatItReads {
                    s.durable = n;
                    s.device_flush();
                }
                end(s, n, Ended::Killed, allows);
            }
            Action::RedoRecord => {
                let n = s.redone + 1;
                for p in 1..=self.pages {
                    *s.page_mut(p) = self.redone(s, p, s.page(p), n);
                }
                s.redone = n;
            }
            Action::FinishRedo => {
                let mut keys = self.keys.iter();
                let damaged = keys.any(|key| !s.page(s.owner(*key, s.log_len)).is_there());
                s.phase = if damaged { Phase::Damaged } else { UP };
                s.redone = 0;
            }
        }
    }

    /// The leaf's page, the key, the leaf and the value of a client's write.
    fn write_of(&self, s: &State, c: u8) -> Option<(u8, N, Leaf, Content)> {
        match s.call[usize::from(c)] {
            Call::Write { key, value, .. } => {
                let (page, key, leaf) = self.leaf_of(s, key);
                Some((page, key, *leaf, value))
            }
            _ => None,
        }
    }

    fn change_leaf(&self, s: &mut State, c: u8) {
        let Some((page, key, leaf, value)) = self.write_of(s, c) else {
            return;
        };
        let n = s.append(put_of(page, key, value));
        *s.page_mut(page) = self.put(&leaf, key, value).stamped(n);
        wait(&mut s.call[usize::from(c)], n);
    }

    fn lay_out(&self, s: &mut State, c: u8) {
        let Some((page, key, leaf, value)) = self.write_of(s, c) else {
            return;
        };
        let Remedy::Relayout(layout) = self.remedy(s.allows, &leaf, key, value) else {
            return;
        };
        let other = self.relaid(&leaf, layout);
        let relayout = Record {
            is: Is::Relayout,
            page,
            layout,
            ..Record::default()
        };
        let unlogged = matches!(self.bug, Bug::RelayoutNotLogged | Bug::DecidesAnew);
        *s.page_mut(page) = if self.bug == Bug::RelayoutAfterPut && self.takes(&other, key, value) {
            let n = s.append(put_of(page, key, value));
            wait(&mut s.call[usize::from(c)], n);
            self.put(&other, key, value).stamped(s.append(relayout))
        } else if unlogged {
            other
        } else {
            let n = s.append(relayout);
            let keeps = self.bug == Bug::RelayoutKeepsLsn;
            if keeps { other } else { other.stamped(n) }
        };
    }

    /// `Converts`.
    fn converts(&self, s: &mut State, p: u8, layout: Layout) {
        let other = self.relaid(s.page(p), layout);
        let n = s.append(Record {
            is: Is::Relayout,
            page: p,
            layout,
            ..Record::default()
        });
        *s.page_mut(p) = other.stamped(n);
    }

    fn merge(&self, s: &mut State, p: u8) {
        let Some(q) = self.right_neighbour(s, p) else {
            return;
        };
        let (left, right) = (*s.page(p), *s.page(q));
        let too_little = self.bug == Bug::MergeLogsTooLittle;
        let n = s.append(Record {
            is: Is::Merge,
            page: p,
            key: right.lower,
            right: q,
            upper: right.upper,
            map: if too_little {
                self.without_first(&right.map)
            } else {
                right.map
            },
            ..Record::default()
        });
        let left = match left.layout.is_general() {
            true => left,
            false => self.relaid(&left, Layout::General),
        };
        *s.page_mut(p) = Self::absorbed(&left, &right.map, right.upper).stamped(n);
        *s.page_mut(q) = Leaf::default();
    }

    fn divide(&self, s: &mut State, c: u8, layout: Layout) {
        let Some((page, key, leaf, value)) = self.write_of(s, c) else {
            return;
        };
        let Remedy::Split(at, _) = self.remedy(s.allows, &leaf, key, value) else {
            return;
        };
        let moved = self.sides(&leaf.map, at).1;
        let too_little = self.bug == Bug::SplitLogsTooLittle;
        let right = s.fresh();
        let n = s.append(Record {
            is: Is::Split,
            page,
            key: at,
            layout,
            right,
            upper: leaf.upper,
            map: if too_little {
                self.without_first(&moved)
            } else {
                moved
            },
            ..Record::default()
        });
        *s.page_mut(page) = self.truncated(&leaf, at).stamped(n);
        *s.page_mut(right) = self.built(layout, moved, at, leaf.upper).stamped(n);
    }
}

/// `PutOf`.
fn put_of(page: u8, key: N, value: Content) -> Record {
    Record {
        page,
        key,
        value,
        ..Record::default()
    }
}

/// A write waits for its record to be durable.
fn wait(call: &mut Call, n: N) {
    if let Call::Write { lsn, .. } = call {
        *lsn = n;
    }
}

/// Ends a life, with `n` records in the log: memory is lost, and the pages are read again.
pub(super) fn end(s: &mut State, n: N, how: Ended, allows: bool) {
    s.leaf = s.leaf_dev.map(|place| place.newest());
    s.log[n as usize..].fill(Record::default());
    s.log_len = n;
    s.call.fill(Call::Idle);
    s.allows = allows;
    (s.phase, s.redone) = (Phase::Goes(how), s.redo_start);
    s.crashes += 1;
}

/// Takes the next digit of `rest`, in base of the number of versions, and returns that version.
fn picked<T: Copy>(versions: &[T], rest: &mut usize) -> T {
    let version = versions[*rest % versions.len()];
    *rest /= versions.len();
    version
}
