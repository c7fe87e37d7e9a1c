//! The actions of `IndexSnapshot.tla`, in their order: checkpoints, crashes and recovery.
//!
//! [`IndexSnapshot::enabled`] contains the guards, [`IndexSnapshot::take`] the effects. An action is
//! taken only if it is enabled.

use super::super::wal_recovery::Versions;
use super::room::{KEYS, LOG, N, SLOTS, Set};
use super::state::{Call, Change, Checkpoint, Entries, Entry, InSlot, Leaf, NO_SLOT, Phase};
use super::state::{Record, Stage, State, Step, Super, at, bit, fences_from, find, has, in_index};
use super::{Action, Apart, Bug, IndexSnapshot};

impl IndexSnapshot {
    /// `Init`.
    pub(super) fn initial(&self) -> State {
        let fences: Vec<u8> = self.keys().filter(|k| has(self.fences, *k)).collect();
        let leaves = fences.len() as u8;
        let mut s = State {
            call: Default::default(),
            log: [Record::default(); LOG],
            log_len: 0,
            durable: 0,
            oldest: 0,
            page: [Leaf::default(); SLOTS],
            version: [0; SLOTS],
            index: [NO_SLOT; KEYS],
            free: 0,
            retired: [0; SLOTS],
            chain: 0,
            newest: Super {
                number: 1,
                redo: 0,
                head: leaves + 1,
                sum: Entries::default(),
            },
            change: Change::default(),
            checkpoint: Checkpoint::default(),
            slot_dev: [Versions::durably(InSlot::Zeros); SLOTS],
            super_dev: Versions::durably(Super::default()),
            phase: Phase::Up,
            redone: 0,
            crashes: 0,
            losses: 0,
        };
        for (p, fence) in (1..).zip(&fences) {
            let leaf = Leaf {
                lower: *fence,
                upper: *fences.get(usize::from(p)).unwrap_or(&self.top()),
                ..Leaf::default()
            };
            s.page[at(p)] = leaf;
            s.index[at(*fence)] = p;
            s.newest.sum.push(Entry {
                fence: *fence,
                page: p,
                version: 0,
            });
            s.slot_dev[at(p)] = Versions::durably(InSlot::Image(leaf));
        }
        let pages: Vec<u8> = (1..=leaves).collect();
        let chunks = pages.chunks(self.per_chunk);
        let last = leaves + chunks.len() as u8;
        for (slot, chunk) in (leaves + 1..).zip(chunks) {
            let mut entries = Entries::default();
            let of = s.newest.sum.all();
            let of = of.filter(|entry| chunk.contains(&entry.page));
            of.for_each(|entry| assert!(entries.push(entry)));
            let next = if slot == last { NO_SLOT } else { slot + 1 };
            s.slot_dev[at(slot)] = Versions::durably(InSlot::Chunk {
                number: 1,
                entries,
                next,
            });
            s.chain |= bit(slot);
        }
        s.super_dev = Versions::durably(s.newest);
        s.free = self.slots().filter(|slot| *slot > last).map(bit).sum();
        s
    }

    pub(super) fn enabled(&self, s: &State, actions: &mut Vec<Action>) {
        self.enabled_but_crashes(s, actions);
        self.crashes(s, actions);
    }

    pub(super) fn enabled_but_crashes(&self, s: &State, actions: &mut Vec<Action>) {
        for c in 0..self.clients.len() as u8 {
            self.client_steps(s, c, actions);
        }
        if s.phase == Phase::Up {
            actions.extend((s.durable + 1..=s.log_len).map(Action::CommitLog));
            self.checkpoint_steps(s, actions);
        }
        self.tree_steps(s, actions);
        self.recovery_steps(s, actions);
    }

    fn checkpoint_steps(&self, s: &State, actions: &mut Vec<Action>) {
        let Checkpoint { begin, next, .. } = s.checkpoint;
        let may_lose = self.may_lose(s);
        match s.checkpoint.at {
            Step::None => {
                let waits =
                    self.apart == Apart::Steps && s.call.iter().any(|call| *call != Call::Idle);
                let may = s.newest.number <= self.max_checkpoints && self.first_life(s);
                if may && !waits && (s.crashes == 0 || self.may_change(s, true)) {
                    actions.push(Action::BeginCheckpoint);
                }
            }
            Step::Sweep => {
                let waits = s.change.at != Stage::None
                    && s.change.lsn <= begin
                    && self.is_latched(s, s.change.page);
                let quiet = !waits || self.bug == Bug::WaitsForNobody;
                let swept = self.bug == Bug::SkipsSweep
                    || !self.slots().any(|p| self.dirty_since(s, p, begin));
                if quiet && swept {
                    actions.extend(self.may_take(s).map(Action::BeginSnapshot));
                }
            }
            Step::Fence if fences_from(&s.index, next).next().is_some() => {
                actions.push(Action::ReadFence);
            }
            Step::Fence => {
                actions.push(Action::EndSnapshot(false));
                if may_lose {
                    actions.push(Action::EndSnapshot(true));
                }
            }
            Step::Version if s.checkpoint.entries.len() < self.per_chunk => {
                actions.push(Action::AddEntry);
            }
            Step::Version => {
                for slot in self.may_take(s) {
                    actions.push(Action::AddChunk(slot, false));
                    if may_lose {
                        actions.push(Action::AddChunk(slot, true));
                    }
                }
            }
            Step::Read => {
                if s.checkpoint.up_to <= s.durable || self.bug == Bug::SnapshotBeforeLog {
                    actions.push(Action::WriteSuper);
                }
            }
            Step::Recorded => actions.push(Action::FinishCheckpoint),
        }
    }

    /// `DirtySince`: a page whose first change that is not written was logged by then.
    fn dirty_since(&self, s: &State, p: u8, n: N) -> bool {
        let lsn = s.leaf(p).lsn;
        let mut changes = s
            .records()
            .filter(|(m, _)| *m > s.version[at(p)] && *m <= n);
        s.is_dirty(p)
            && changes.any(|(m, record)| {
                let mut later = s.records().filter(|(l, _)| (m..=lsn).contains(l));
                m <= lsn && record.names(p) && !later.any(|(_, record)| record.ends(p))
            })
    }

    /// Takes an enabled action.
    pub(super) fn take(&self, s: &mut State, action: Action) {
        match action {
            Action::CommitLog(n) => s.durable = n,
            Action::BeginCheckpoint => {
                s.checkpoint = Checkpoint {
                    at: Step::Sweep,
                    begin: s.log_len,
                    ..Checkpoint::default()
                };
            }
            Action::BeginSnapshot(slot) => {
                s.free &= !bit(slot);
                s.checkpoint = Checkpoint {
                    at: Step::Fence,
                    head: slot,
                    last: slot,
                    slots: bit(slot),
                    next: 1,
                    ..s.checkpoint
                };
            }
            Action::ReadFence => {
                let next = fences_from(&s.index, s.checkpoint.next).next();
                let next = next.unwrap_or(s.checkpoint.next);
                s.checkpoint.at = Step::Version;
                (s.checkpoint.next, s.checkpoint.page) = (next, s.index[at(next)]);
            }
            Action::AddEntry => self.add_entry(s),
            Action::AddChunk(slot, lost) => {
                self.write_chunk(s, slot, lost);
                s.free &= !bit(slot);
                s.checkpoint.last = slot;
                s.checkpoint.slots |= bit(slot);
                s.checkpoint.entries = Entries::default();
                self.add_entry(s);
            }
            Action::EndSnapshot(lost) => {
                self.write_chunk(s, NO_SLOT, lost);
                s.checkpoint.at = Step::Read;
                s.checkpoint.up_to = s.log_len;
                s.checkpoint.entries = Entries::default();
            }
            Action::WriteSuper => {
                if self.bug != Bug::SuperBeforeFlush {
                    s.slot_dev.iter_mut().for_each(Versions::flush);
                }
                s.super_dev.push(self.new_super(s));
                s.checkpoint.at = Step::Recorded;
            }
            Action::FinishCheckpoint => self.finish_checkpoint(s),
            Action::Crash(n, left) => self.crash(s, n, left),
            Action::Restart(n) => {
                s.slot_dev.iter_mut().for_each(Versions::flush);
                s.super_dev.flush();
                self.reads(s, n);
                s.phase = Phase::Killed;
            }
            Action::RedoRecord => self.redo_record(s),
            Action::FinishRedo => self.finish_redo(s),
            Action::FindDamage => s.phase = Phase::Damaged,
            _ => {
                self.take_client(s, action);
                self.take_tree(s, action);
            }
        }
    }

    /// Adds the entry that was read to the chunk in memory.
    fn add_entry(&self, s: &mut State) {
        let Checkpoint { next, page, .. } = s.checkpoint;
        let version = match self.bug {
            Bug::VersionOfMemory => s.leaf(page).lsn,
            _ => s.version[at(page)],
        };
        let entry = Entry {
            fence: next,
            page,
            version,
        };
        s.checkpoint.entries.push(entry);
        s.checkpoint.sum.push(entry);
        s.checkpoint = Checkpoint {
            at: Step::Fence,
            next: next + 1,
            page: NO_SLOT,
            ..s.checkpoint
        };
    }

    fn write_chunk(&self, s: &mut State, next: u8, lost: bool) {
        let chunk = InSlot::Chunk {
            number: s.newest.number + 1,
            entries: s.checkpoint.entries,
            next,
        };
        self.write(s, s.checkpoint.last, chunk, lost);
    }

    /// `NewSuper`: the superblock of the checkpoint.
    fn new_super(&self, s: &State) -> Super {
        Super {
            number: s.newest.number + 1,
            redo: match self.bug {
                Bug::RedoFromSnapshot => s.checkpoint.up_to,
                _ => s.checkpoint.begin,
            },
            head: s.checkpoint.head,
            sum: s.checkpoint.sum,
        }
    }

    fn finish_checkpoint(&self, s: &mut State) {
        if self.bug != Bug::FreesBeforeSuper {
            s.slot_dev.iter_mut().for_each(Versions::flush);
            s.super_dev.flush();
        }
        let old = s.chain;
        for slot in self.slots().filter(|slot| has(old, *slot)) {
            self.trim(s, slot);
        }
        s.free |= old;
        s.chain = s.checkpoint.slots;
        s.newest = self.new_super(s);
        s.oldest = s.newest.redo;
        s.checkpoint = Checkpoint::default();
    }

    fn crashes(&self, s: &State, actions: &mut Vec<Action>) {
        let slots = s.slot_dev.iter().map(|place| place.all().len());
        let outcomes = slots.product::<usize>() * s.super_dev.all().len();
        let may = match (self.apart, s.crashes) {
            (Apart::Lives, 0) => s.checkpoint.at == Step::Read,
            (Apart::Lives, _) => {
                let written = s.checkpoint.at == Step::Recorded || s.newest.number > 1;
                s.losses == self.max_losses && written
            }
            _ => true,
        };
        for n in s.durable..=s.log_len {
            if s.crashes < self.max_crashes && may {
                actions.extend((0..outcomes as u32).map(|left| Action::Crash(n, left)));
            }
            if s.crashes < self.max_restarts {
                actions.push(Action::Restart(n));
            }
        }
    }

    /// The power fails, and the digits of `left` select what is left.
    fn crash(&self, s: &mut State, n: N, left: u32) {
        let mut rest = left as usize;
        for place in &mut s.slot_dev {
            *place = Versions::durably(picked(place.all(), &mut rest));
        }
        s.super_dev = Versions::durably(picked(s.super_dev.all(), &mut rest));
        self.reads(s, n);
        s.phase = Phase::Cut;
    }

    /// `CutLog`, `Reads` and `ForgetMemory`.
    pub(super) fn reads(&self, s: &mut State, n: N) {
        s.log[usize::from(n)..].fill(Record::default());
        (s.log_len, s.durable) = (n, n);
        let chosen = s.super_dev.newest();
        let chain = self.chain_of(&s.slot_dev, chosen);
        s.newest = chosen;
        s.chain = chain.slots;
        s.index = chain.index();
        for p in self.slots() {
            let leaf = self.leaf_in(s.place(p).newest(), chain.version(p));
            (s.page[at(p)], s.version[at(p)]) = (leaf, leaf.lsn);
        }
        (s.oldest, s.redone) = (chosen.redo, chosen.redo);
        s.call.fill(Call::Idle);
        s.free = 0;
        s.retired.fill(0);
        s.change = Change::default();
        s.checkpoint = Checkpoint::default();
        s.crashes += 1;
    }

    fn recovery_steps(&self, s: &State, actions: &mut Vec<Action>) {
        if !s.recovering() {
            return;
        }
        if s.is_readable() && s.redone < s.log_len {
            actions.push(Action::RedoRecord);
        }
        let ends = s.redone == s.log_len || !s.is_readable();
        let is_sound = self.is_sound(s);
        if is_sound && (ends || self.bug == Bug::StopsRedoEarly) {
            actions.push(Action::FinishRedo);
        }
        if !is_sound && ends {
            actions.push(Action::FindDamage);
        }
    }

    /// `IsSound`: every fence has a page that is there, and no page has two.
    fn is_sound(&self, s: &State) -> bool {
        let mut seen: Set = 0;
        s.is_readable()
            && fences_from(&s.index, 1).all(|f| {
                let page = s.index[at(f)];
                let first = !has(seen, page);
                seen |= bit(page);
                first && !s.leaf(page).is_gone()
            })
    }

    fn redo_record(&self, s: &mut State) {
        let n = s.redone + 1;
        let mut record = *s.record(n);
        if self.bug == Bug::FindsPage && record.is == super::Kind::Put {
            record.page = find(&s.index, record.key);
        }
        for p in self.slots() {
            let leaf = self.redone(p, *s.leaf(p), &record, n, s.chain);
            s.page[at(p)] = leaf;
            if leaf.is_gone() {
                s.version[at(p)] = 0;
            }
        }
        self.reindex(&mut s.index, &record);
        s.redone = n;
    }

    fn finish_redo(&self, s: &mut State) {
        let live = in_index(&s.index);
        for p in self.slots().filter(|p| !has(live, *p)) {
            (s.page[at(p)], s.version[at(p)]) = (Leaf::default(), 0);
        }
        let taken = live | s.chain;
        s.free = self.all_slots() & !taken;
        s.phase = Phase::Up;
        s.redone = 0;
    }
}

/// Takes the next digit of `rest`, in base of the number of versions, and returns that version.
fn picked<T: Copy>(versions: &[T], rest: &mut usize) -> T {
    let version = versions[*rest % versions.len()];
    *rest /= versions.len();
    version
}
