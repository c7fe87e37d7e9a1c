//! The actions of `SnapshotTree.tla`, in their order: clients, splits and merges, pages.

use super::room::{N, Set};
use super::state::{ABSENT, Call, Change, InSlot, Kind, Leaf, NO_SLOT, PENDING, Phase, Record};
use super::state::{
    Stage, State, Step, at, bit, fence_of, fences_from, find, from, has, in_index, size,
};
use super::{Action, Apart, Bug, IndexSnapshot};

impl IndexSnapshot {
    /// All slots.
    pub(super) fn slots(&self) -> impl Iterator<Item = u8> + use<> {
        1..=self.slots
    }

    /// The set of them.
    pub(super) fn all_slots(&self) -> Set {
        self.slots().fold(0, |set, slot| set | bit(slot))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = u8> + use<> {
        1..=self.keys
    }

    pub(super) fn top(&self) -> u8 {
        self.keys + 1
    }

    /// The slots that may be taken.
    pub(super) fn may_take(&self, s: &State) -> impl Iterator<Item = u8> + use<> {
        let (free, bounded) = (s.free, self.bounded);
        let slots = self.slots().filter(move |slot| has(free, *slot));
        slots.take(if bounded { 1 } else { usize::MAX })
    }

    /// Whether the device may lose a write.
    pub(super) fn may_lose(&self, s: &State) -> bool {
        let kept = match self.apart {
            Apart::No => false,
            Apart::Steps => s.log_len > 0,
            Apart::Lives => {
                let mut left = fences_from(&s.index, s.checkpoint.next);
                s.crashes != 1 || s.checkpoint.at != Step::Fence || left.next().is_some()
            }
        };
        s.losses < self.max_losses && !kept
    }

    pub(super) fn client_steps(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        if s.phase != Phase::Up {
            return;
        }
        match s.call[usize::from(c)] {
            Call::Idle => self.calls(s, c, actions),
            Call::Write { lsn, .. } if lsn > 0 => {
                if lsn <= s.durable || self.bug == Bug::AcksAtOnce {
                    actions.push(Action::Acknowledge(c));
                }
            }
            call if !self.looks_up(&call) => actions.push(Action::Answer(c)),
            call => match call.page() {
                NO_SLOT => actions.push(Action::Descend(c)),
                p if self.is_latched(s, p) => {}
                p if self.is_the_leaf(s, &call) => self.at_leaf(s, c, s.leaf(p), actions),
                _ => actions.push(Action::DescendAgain(c)),
            },
        }
    }

    fn calls(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        let begun = s.newest.number > 1 || s.checkpoint.at != Step::None || s.crashes > 0;
        if self.apart == Apart::Steps && begun {
            return;
        }
        let reads = self.apart != Apart::Lives || s.crashes > 1;
        let client = c + 1;
        for k in self.keys() {
            if reads && has(self.readers, client) && has(self.read_keys, k) {
                actions.push(Action::CallGet(c, k));
            }
        }
        for back in [false, true] {
            let scanners = if back {
                self.back_scanners
            } else {
                self.scanners
            };
            if reads && has(scanners, client) {
                actions.push(Action::CallScan(c, back));
            }
        }
        let value = s.count(Kind::Put) + 1;
        if self.may_change(s, false) && has(self.writers, client) && value <= self.values {
            let keys = self.keys().filter(|k| has(self.write_keys, *k));
            let rest = self.deletes.checked_shr(u32::from(value) - 1);
            let deletes = rest.is_some_and(|rest| rest & 1 == 1);
            for k in keys {
                if !(self.bounded && deletes) {
                    actions.push(Action::CallWrite(c, k, false));
                }
                if !self.bounded || deletes {
                    actions.push(Action::CallWrite(c, k, true));
                }
            }
        }
    }

    /// `LooksUp`: whether a call has still something to look for.
    pub(super) fn looks_up(&self, call: &Call) -> bool {
        match *call {
            Call::Idle => false,
            Call::Get { got, .. } => got == PENDING,
            Call::Write { lsn, .. } => lsn == 0,
            Call::Scan { back, at, .. } => at != if back { 1 } else { self.top() },
        }
    }

    pub(super) fn is_latched(&self, s: &State, p: u8) -> bool {
        let early = s.change.at == Stage::Changed && self.bug == Bug::UnlatchesEarly;
        s.change.at != Stage::None && (p == s.change.page || p == s.change.right) && !early
    }

    /// `IsTheLeaf`: whether the page that a call has reached is the one that it looked for.
    pub(super) fn is_the_leaf(&self, s: &State, call: &Call) -> bool {
        let leaf = s.leaf(call.page());
        let is = match *call {
            Call::Scan {
                back: true,
                fence,
                page,
                ..
            } => {
                let aim = aim(s, call);
                self.bug == Bug::BackTrustsIndex || (fence == aim && page == s.index[at(aim)])
            }
            Call::Scan { at: k, .. } | Call::Get { key: k, .. } | Call::Write { key: k, .. } => {
                self.bug == Bug::TrustsIndex || leaf.covers(k)
            }
            Call::Idle => false,
        };
        !leaf.is_gone() && is
    }

    /// What a call may do with its leaf.
    fn at_leaf(&self, s: &State, c: u8, leaf: &Leaf, actions: &mut Vec<Action>) {
        let is_there = |k: &u8| leaf.map[at(*k)] != ABSENT;
        match s.call[usize::from(c)] {
            Call::Get { .. } => actions.push(Action::ReadLeaf(c)),
            Call::Scan {
                back: false,
                at: low,
                ..
            } => {
                let skips = self.bug == Bug::SkipsFence && leaf.upper != self.top();
                let end = leaf.upper + u8::from(skips);
                let behind = (low..=self.keys).filter(is_there).map(|k| k + 1);
                let behind = behind.filter(|high| *high != end).chain([end]);
                actions.extend(behind.map(|high| Action::CopyLeaf(c, high)));
            }
            Call::Scan {
                at: high, fence, ..
            } => {
                let below = (fence + 1..high).filter(is_there).chain([fence]);
                actions.extend(below.map(|low| Action::CopyBack(c, low)));
            }
            Call::Write { key, value, .. } if leaf.has_room_for(key, value, self.room) => {
                actions.push(Action::ChangeLeaf(c));
            }
            _ => {}
        }
    }

    pub(super) fn tree_steps(&self, s: &State, actions: &mut Vec<Action>) {
        if s.phase == Phase::Up {
            match s.change.at {
                Stage::None => self.appends(s, actions),
                Stage::Logged => actions.push(Action::ChangeLeaves),
                Stage::Changed => actions.push(Action::UpdateIndex),
            }
        }
        for p in self.slots() {
            let lsn = s.leaf(p).lsn;
            let logged = lsn <= s.durable || self.bug == Bug::PageBeforeLog;
            if s.phase != Phase::Damaged && s.is_dirty(p) && !self.is_latched(s, p) && logged {
                actions.push(Action::WritePage(p, false));
                if self.may_lose(s) {
                    actions.push(Action::WritePage(p, true));
                }
            }
            let retired = s.retired[at(p)];
            let logged = retired <= s.durable || self.bug == Bug::FreesAtOnce;
            if s.phase == Phase::Up && retired > 0 && logged {
                actions.push(Action::FreePage(p));
            }
        }
    }

    /// `FirstLife`: whether more may begin than recovery.
    pub(super) fn first_life(&self, s: &State) -> bool {
        !(self.apart == Apart::Steps && s.crashes > 0)
    }

    /// `MayChange`: whether the tree may change before, or after, all merges are made.
    pub(super) fn may_change(&self, s: &State, merged: bool) -> bool {
        let made = || s.count(Kind::Merge) == self.max_merges;
        self.apart != Apart::Lives || s.crashes == 1 && merged == made()
    }

    fn appends(&self, s: &State, actions: &mut Vec<Action>) {
        if !self.first_life(s) {
            return;
        }
        let pages = self.slots().filter(|p| has(in_index(&s.index), *p));
        for p in pages {
            let leaf = s.leaf(p);
            if s.count(Kind::Split) < self.max_splits && self.may_change(s, true) {
                for right in self.may_take(s) {
                    let fences = (leaf.lower + 1..leaf.upper).filter(|f| has(self.split_keys, *f));
                    actions.extend(fences.map(|f| Action::AppendSplit(p, f, right)));
                }
            }
            let may = s.count(Kind::Merge) < self.max_merges && self.may_change(s, false);
            if leaf.upper != self.top() && may {
                let right = s.leaf(find(&s.index, leaf.upper));
                if size(&leaf.map) + size(&right.map) <= self.room {
                    actions.push(Action::AppendMerge(p));
                }
            }
        }
    }

    pub(super) fn take_client(&self, s: &mut State, action: Action) {
        let end = s.log_len;
        match action {
            Action::CallGet(c, key) => {
                s.call[usize::from(c)] = Call::Get {
                    key,
                    got: PENDING,
                    page: NO_SLOT,
                    from: end,
                };
            }
            Action::CallScan(c, back) => {
                let mut got = [ABSENT; super::KEYS];
                got[..usize::from(self.keys)].fill(PENDING);
                s.call[usize::from(c)] = Call::Scan {
                    back,
                    at: if back { self.top() } else { 1 },
                    fence: 0,
                    page: NO_SLOT,
                    got,
                    from: end,
                };
            }
            Action::CallWrite(c, key, delete) => {
                let value = s.count(Kind::Put) + 1;
                s.call[usize::from(c)] = Call::Write {
                    key,
                    value: if delete { ABSENT } else { value },
                    page: NO_SLOT,
                    lsn: 0,
                };
            }
            Action::Descend(c) => descend(s, c),
            Action::DescendAgain(c) => leave(&mut s.call[usize::from(c)]),
            Action::ReadLeaf(c) => {
                let page = s.call[usize::from(c)].page();
                let map = s.leaf(page).map;
                if let Call::Get { key, got, .. } = &mut s.call[usize::from(c)] {
                    *got = map[at(*key)];
                }
                leave(&mut s.call[usize::from(c)]);
            }
            Action::CopyLeaf(c, to) | Action::CopyBack(c, to) => self.copy(s, c, to),
            Action::Answer(c) | Action::Acknowledge(c) => s.call[usize::from(c)] = Call::Idle,
            Action::ChangeLeaf(c) => change_leaf(s, c),
            _ => {}
        }
    }

    fn copy(&self, s: &mut State, c: u8, to: u8) {
        let page = s.call[usize::from(c)].page();
        let map = s.leaf(page).map;
        if let Call::Scan { at: bound, got, .. } = &mut s.call[usize::from(c)] {
            let (low, high) = (to.min(*bound), to.max(*bound));
            for k in self.keys().filter(|k| (low..high).contains(k)) {
                got[at(k)] = map[at(k)];
            }
            *bound = to;
        }
        leave(&mut s.call[usize::from(c)]);
    }

    pub(super) fn take_tree(&self, s: &mut State, action: Action) {
        match action {
            Action::AppendSplit(p, fence, right) => {
                let leaf = *s.leaf(p);
                let lsn = s.append(Record {
                    is: Kind::Split,
                    page: p,
                    key: fence,
                    value: ABSENT,
                    right,
                    upper: leaf.upper,
                    map: from(&leaf.map, fence),
                });
                s.free &= !bit(right);
                s.change = begun(p, right, lsn);
            }
            Action::AppendMerge(p) => {
                let right = find(&s.index, s.leaf(p).upper);
                let leaf = *s.leaf(right);
                let lsn = s.append(Record {
                    is: Kind::Merge,
                    page: p,
                    key: leaf.lower,
                    value: ABSENT,
                    right,
                    upper: leaf.upper,
                    map: leaf.map,
                });
                s.change = begun(p, right, lsn);
            }
            Action::ChangeLeaves => {
                let Change {
                    page, right, lsn, ..
                } = s.change;
                let record = *s.record(lsn);
                s.page[at(page)] = self.applied(*s.leaf(page), &record, lsn);
                if record.is == Kind::Split {
                    s.page[at(right)] = record.built(lsn);
                }
                s.change.at = Stage::Changed;
            }
            Action::UpdateIndex => {
                let Change { right, lsn, .. } = s.change;
                let Record { is, key, .. } = *s.record(lsn);
                if is == Kind::Split {
                    s.index[at(key)] = right;
                } else {
                    s.index[at(key)] = NO_SLOT;
                    s.page[at(right)] = Leaf::default();
                    s.retired[at(right)] = lsn;
                }
                s.change = Change::default();
            }
            Action::WritePage(p, lost) => {
                let leaf = *s.leaf(p);
                self.write(s, p, InSlot::Image(leaf), lost);
                s.version[at(p)] = leaf.lsn;
            }
            Action::FreePage(p) => {
                s.retired[at(p)] = 0;
                self.trim(s, p);
                s.version[at(p)] = 0;
                s.free |= bit(p);
            }
            _ => {}
        }
    }

    /// Writes to a slot, unless the device loses it.
    pub(super) fn write(&self, s: &mut State, slot: u8, block: InSlot, lost: bool) {
        if lost {
            s.losses += 1;
        } else {
            s.slot_dev[at(slot)].push(block);
        }
    }

    /// `Trimmed`, of one slot.
    pub(super) fn trim(&self, s: &mut State, slot: u8) {
        if self.trims {
            s.slot_dev[at(slot)].push(InSlot::Zeros);
        }
    }
}

fn begun(page: u8, right: u8, lsn: N) -> Change {
    Change {
        at: Stage::Logged,
        page,
        right,
        lsn,
    }
}

/// `Aim`: the fence that a descent leads to.
fn aim(s: &State, call: &Call) -> u8 {
    fence_of(
        &s.index,
        match *call {
            Call::Scan { back: true, at, .. } => at - 1,
            Call::Scan { at: k, .. } | Call::Get { key: k, .. } | Call::Write { key: k, .. } => k,
            Call::Idle => 1,
        },
    )
}

fn descend(s: &mut State, c: u8) {
    let to = aim(s, &s.call[usize::from(c)]);
    let found = s.index[at(to)];
    match &mut s.call[usize::from(c)] {
        Call::Scan {
            back: true,
            fence,
            page,
            ..
        } => (*fence, *page) = (to, found),
        Call::Get { page, .. } | Call::Write { page, .. } | Call::Scan { page, .. } => {
            *page = found;
        }
        Call::Idle => {}
    }
}

/// The call has to descend again.
fn leave(call: &mut Call) {
    match call {
        Call::Scan { fence, page, .. } => (*fence, *page) = (0, NO_SLOT),
        Call::Get { page, .. } | Call::Write { page, .. } => *page = NO_SLOT,
        Call::Idle => {}
    }
}

fn change_leaf(s: &mut State, c: u8) {
    let Call::Write {
        key, value, page, ..
    } = s.call[usize::from(c)]
    else {
        return;
    };
    let n = s.append(Record {
        is: Kind::Put,
        page,
        key,
        value,
        ..Record::default()
    });
    let leaf = &mut s.page[at(page)];
    (leaf.map[at(key)], leaf.lsn) = (value, n);
    if let Call::Write { lsn, page, .. } = &mut s.call[usize::from(c)] {
        (*lsn, *page) = (n, NO_SLOT);
    }
}
