//! The actions of `Overflow.tla`, in their order.
//!
//! [`Overflow::enabled`] contains the guards, [`Overflow::take`] the effects. An action is taken
//! only if it is enabled.

use super::super::wal_recovery::Versions;
use super::room::{N, PARTS, Set};
use super::state::{ABSENT, Block, Call, Content, Entry, Leaf, PENDING, Pointer, Reading};
use super::state::{Phase, Record, Retired, State, Writing, bit, named_by};
use super::{Action, Bug, Discards, Overflow};

fn has(set: Set, member: u8) -> bool {
    set.checked_shr(member.into()).unwrap_or(0) & 1 == 1
}

/// A new get of a key (`CalledGet`).
fn called_get(key: u8) -> Call {
    Call::Get {
        key,
        at: Reading::Called,
        from: Entry::default(),
        parts: 0,
        got: PENDING,
    }
}

impl Overflow {
    fn clients(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.clients.len() as u8
    }

    fn keys(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.keys.len() as u8
    }

    /// Number of blocks of a value; 0 if it is short (`SizeOf`).
    pub(super) fn size_of(&self, value: Content) -> u32 {
        match value {
            ABSENT => 0,
            _ if has(self.shorts, value - 1) => 0,
            _ if has(self.pairs, value - 1) => 2,
            _ => 1,
        }
    }

    pub(super) fn enabled(&self, s: &State, actions: &mut Vec<Action>) {
        if s.is_up() {
            for c in self.clients() {
                self.client_steps(s, c, actions);
            }
            self.free_steps(s, actions);
            self.log_steps(s, actions);
            if s.redo_start < swept(s) {
                actions.push(Action::Checkpoint);
            }
        } else {
            self.recovery_steps(s, actions);
        }
        for k in self.keys() {
            let leaf = &s.leaf[usize::from(k)];
            let dirty = s.leaf_dev[usize::from(k)].newest().lsn != leaf.lsn;
            if dirty && (leaf.lsn <= s.durable || self.bug == Bug::PageBeforeLog) {
                actions.push(Action::WriteBack(k));
            }
        }
        if s.crashes < self.max_crashes {
            for n in s.durable..=s.written {
                actions.extend((0..crash_outcomes(s)).map(|left| Action::Crash(n, left)));
            }
        }
        if s.crashes < self.max_restarts {
            actions.extend((s.durable..=s.written).map(Action::Restart));
        }
    }

    fn client_steps(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        match s.call[usize::from(c)] {
            Call::Idle | Call::Refused => self.calls(s, c, actions),
            Call::Write { value, at, lsn, .. } => match at {
                Writing::Called if self.size_of(value) > 0 => {
                    let size = self.size_of(value);
                    let sets = (1..=s.free).filter(|set| set & !s.free == 0);
                    let fit = sets.filter(|set| set.count_ones() == size);
                    actions.extend(fit.map(|set| Action::WriteBlocks(c, set)));
                }
                Writing::Called | Writing::Stored => actions.push(Action::AppendRecord(c)),
                Writing::Waiting if lsn <= s.durable || self.bug == Bug::AcksAtOnce => {
                    actions.push(Action::Acknowledge(c))
                }
                Writing::Waiting => {}
            },
            Call::Get { at, .. } => actions.push(match at {
                Reading::Called => Action::CopyRecord(c),
                Reading::Reading => Action::ReadBlock(c),
                Reading::Again => Action::LookAgain(c),
                Reading::Read | Reading::Damaged => Action::AnswerGet(c),
            }),
        }
    }

    fn calls(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        if has(self.writers, c) && s.asked < self.values {
            let keys = self.keys();
            let keys = keys.filter(|k| !has(self.at_home, s.asked) || *k == self.home);
            actions.extend(keys.map(|k| Action::CallWrite(c, k)));
        }
        if has(self.readers, c) {
            let keys = self.keys().filter(|k| has(self.read_keys, *k));
            actions.extend(keys.map(|k| Action::CallGet(c, k)));
        }
    }

    fn free_steps(&self, s: &State, actions: &mut Vec<Action>) {
        let at_once = self.bug == Bug::FreedAtOnce;
        let may = s.retired().filter(|r| r.lsn <= s.durable || at_once);
        actions.extend(may.map(|r| Action::FreeValue(r.lsn)));
    }

    fn log_steps(&self, s: &State, actions: &mut Vec<Action>) {
        if s.forcing == 0 && s.written == s.durable && s.durable < s.log_len {
            actions.push(Action::ForceValues);
        }
        if s.forcing != 0 {
            actions.push(Action::WriteLog);
        }
        if s.durable < s.written {
            actions.push(Action::FlushLog);
        }
    }

    fn recovery_steps(&self, s: &State, actions: &mut Vec<Action>) {
        if s.redone < s.log_len {
            actions.push(Action::RedoRecord);
        }
        if s.redone == s.log_len || self.bug == Bug::StopsRedoEarly {
            actions.push(Action::FinishRedo);
        }
        let held = self.held(s);
        for b in 1..=self.blocks {
            let moved = has(self.moved, b - 1) && held & bit(b) == 0;
            if moved && s.place(b).newest() != Block::default() {
                actions.push(Action::RedoPage(b));
            }
        }
    }

    /// `Held`: the blocks that redo must not use.
    fn held(&self, s: &State) -> Set {
        if self.bug == Bug::RedoMovesOver {
            return named_by(&s.leaf);
        }
        named_by(&s.redone_from(s.redone))
    }

    /// Takes an enabled action.
    pub(super) fn take(&self, s: &mut State, action: Action) {
        match action {
            Action::CallWrite(c, key) => self.call_write(s, c, key),
            Action::WriteBlocks(c, places) => self.write_blocks(s, c, places),
            Action::AppendRecord(c) => self.append_record(s, c),
            Action::Acknowledge(c) | Action::AnswerGet(c) => {
                let call = &mut s.call[usize::from(c)];
                let at = Reading::Damaged;
                let damaged = matches!(call, Call::Get { at: now, .. } if *now == at);
                *call = if damaged { Call::Refused } else { Call::Idle };
            }
            Action::CallGet(c, key) => s.call[usize::from(c)] = called_get(key),
            Action::CopyRecord(c) => copy_record(s, c),
            Action::ReadBlock(c) => self.read_block(s, c),
            Action::LookAgain(c) => self.look_again(s, c),
            Action::FreeValue(lsn) => self.free_value(s, lsn),
            Action::ForceValues => {
                s.forcing = s.log_len;
                if self.bug != Bug::NotFlushedBeforeLog {
                    s.device_flush();
                }
            }
            Action::WriteLog => {
                let late = self.bug == Bug::WritesWhatCameLater;
                s.written = if late { s.log_len } else { s.forcing };
                s.forcing = 0;
            }
            Action::FlushLog => {
                s.durable = s.written;
                s.device_flush();
            }
            Action::WriteBack(k) => {
                let k = usize::from(k);
                s.leaf_dev[k].push(s.leaf[k]);
            }
            Action::Checkpoint => {
                s.redo_start = swept(s);
                if self.bug != Bug::CheckpointSkipsFlush {
                    s.device_flush();
                }
            }
            Action::Crash(n, left) => self.crash(s, n, left),
            Action::Restart(n) => self.restart(s, n),
            Action::RedoRecord => {
                let (n, record) = (s.redone + 1, s.log[usize::from(s.redone)]);
                let leaf = &mut s.leaf[usize::from(record.key)];
                if leaf.lsn < n {
                    let entry = record.entry;
                    *leaf = Leaf { entry, lsn: n };
                }
                s.redone = n;
            }
            Action::RedoPage(b) => s.place_mut(b).push(Block::default()),
            Action::FinishRedo => {
                s.free = self.found_free(s);
                (s.phase, s.redone) = (Phase::Up, 0);
            }
        }
    }

    fn call_write(&self, s: &mut State, c: u8, key: u8) {
        let value = match has(self.deletes, s.asked) {
            true => ABSENT,
            false => s.asked + 1,
        };
        s.call[usize::from(c)] = Call::Write {
            key,
            value,
            at: Writing::Called,
            to: Pointer::default(),
            lsn: 0,
        };
        s.asked += 1;
    }

    fn write_blocks(&self, s: &mut State, c: u8, places: Set) {
        let mut pointer = Pointer {
            name: s.named + 1,
            blocks: [0; PARTS],
        };
        let taken = (1..=self.blocks).filter(|b| places & bit(*b) != 0);
        for (place, block) in pointer.blocks.iter_mut().zip(taken) {
            *place = block;
        }
        if let Call::Write { value, at, to, .. } = &mut s.call[usize::from(c)] {
            (*at, *to) = (Writing::Stored, pointer);
            let (value, at) = (*value, pointer);
            for (block, part) in (Entry { value, at }).parts() {
                s.place_mut(block).push(part);
            }
        }
        s.named += 1;
        if self.bug != Bug::TakesLate {
            s.free &= !places;
        }
    }

    fn append_record(&self, s: &mut State, c: u8) {
        let n = s.log_len + 1;
        if let Call::Write {
            key,
            value,
            at,
            to,
            lsn,
        } = &mut s.call[usize::from(c)]
        {
            (*at, *lsn) = (Writing::Waiting, n);
            let (key, value, at) = (*key, *value, *to);
            let entry = Entry { value, at };
            s.log[usize::from(s.log_len)] = Record { key, entry };
            s.log_len = n;
            let leaf = &mut s.leaf[usize::from(key)];
            let old = std::mem::replace(leaf, Leaf { entry, lsn: n });
            if old.entry.at.is_long() {
                let waiting = s.retired().count();
                s.retired[waiting] = Retired {
                    lsn: n,
                    at: old.entry.at,
                };
            }
            if self.bug == Bug::TakesLate {
                s.free &= !at.set();
            }
        }
    }

    fn read_block(&self, s: &mut State, c: u8) {
        let Call::Get {
            at,
            from,
            parts,
            got,
            ..
        } = &mut s.call[usize::from(c)]
        else {
            return;
        };
        let i = usize::from(*parts);
        let found = s.block_dev[usize::from(from.at.blocks[i]) - 1].newest();
        let is = found.name == from.at.name && found.part == *parts + 1;
        let checked = match self.bug {
            Bug::BlockUnchecked => false,
            Bug::OnlyFirstChecked => i == 0,
            _ => true,
        };
        if checked && !is {
            (*at, *got) = (Reading::Again, PENDING);
            return;
        }
        if from.at.is_last(i) {
            *at = Reading::Read;
        }
        *parts += 1;
        if found.value != from.value {
            *got = found.value;
        }
    }

    fn look_again(&self, s: &mut State, c: u8) {
        let call = &mut s.call[usize::from(c)];
        if let Call::Get { key, at, from, .. } = call {
            let still = s.leaf[usize::from(*key)].entry.at == from.at;
            if still || self.bug == Bug::TellsAtOnce {
                *at = Reading::Damaged;
            } else {
                *call = called_get(*key);
            }
        }
    }

    fn free_value(&self, s: &mut State, lsn: N) {
        let waiting = s.retired().count();
        let Some(place) = s.retired().position(|retired| retired.lsn == lsn) else {
            return;
        };
        let at = s.retired[place].at;
        s.retired.copy_within(place + 1..waiting, place);
        s.retired[waiting - 1] = Retired::default();
        if self.discards == Discards::Act {
            for block in at.blocks() {
                s.place_mut(block).push(Block::default());
            }
        }
        s.free |= at.set();
    }

    fn crash(&self, s: &mut State, n: N, left: u32) {
        let mut rest = left as usize;
        for place in &mut s.leaf_dev {
            *place = Versions::durably(picked(place.all(), &mut rest));
        }
        for place in &mut s.block_dev {
            *place = Versions::durably(picked(place.all(), &mut rest));
        }
        s.durable = n;
        self.end(s, n, Phase::Cut);
    }

    fn restart(&self, s: &mut State, n: N) {
        if self.bug != Bug::TrustsWhatItReads {
            s.durable = n;
            s.device_flush();
        }
        self.end(s, n, Phase::Killed);
    }

    /// Ends a life, with `n` records in the log: memory is lost, and the leaves are read again.
    fn end(&self, s: &mut State, n: N, how: Phase) {
        s.leaf = s.leaf_dev.map(|place| place.newest());
        s.log[usize::from(n)..].fill(Record::default());
        (s.log_len, s.written, s.forcing) = (n, n, 0);
        s.call.fill(Call::Idle);
        s.free = 0;
        s.retired.fill(Retired::default());
        (s.phase, s.redone) = (how, s.redo_start);
        if self.bug == Bug::NamesAgain {
            s.named = 0;
        }
        s.crashes += 1;
    }

    /// The blocks that recovery finds to be free.
    fn found_free(&self, s: &State) -> Set {
        let all = self.all_blocks();
        match self.bug {
            Bug::TakesRedoneOnly => {
                let redone = s.records().skip(usize::from(s.redo_start));
                all & !redone.fold(0, |set, (_, record)| set | record.entry.at.set())
            }
            Bug::TakesWhatLooksSo => {
                let looks = |b: &u8| s.place(*b).newest() == Block::default();
                let free = (1..=self.blocks).filter(looks);
                free.fold(0, |set, b| set | bit(b))
            }
            _ => all & !named_by(&s.leaf),
        }
    }
}

fn copy_record(s: &mut State, c: u8) {
    if let Call::Get {
        key, at, from, got, ..
    } = &mut s.call[usize::from(c)]
    {
        *from = s.leaf[usize::from(*key)].entry;
        *got = from.value;
        *at = match from.at.is_long() {
            true => Reading::Reading,
            false => Reading::Read,
        };
    }
}

/// `Swept`: the latest position from which redo may begin.
fn swept(s: &State) -> N {
    let mut durable = s.records().take(usize::from(s.durable));
    let missing = durable.find(|(n, record)| {
        let stored = s.leaf_dev[usize::from(record.key)].newest().lsn;
        *n > s.redo_start && stored < *n
    });
    missing.map_or(s.durable, |(n, _)| n - 1)
}

/// The number of combinations of versions that a crash may leave.
fn crash_outcomes(s: &State) -> u32 {
    let leaves = s.leaf_dev.iter().map(|place| place.all().len());
    let blocks = s.block_dev.iter().map(|place| place.all().len());
    leaves.chain(blocks).product::<usize>() as u32
}

/// Takes the next digit of `rest`, in base of the number of versions, and returns that version.
fn picked<T: Copy>(versions: &[T], rest: &mut usize) -> T {
    let version = versions[*rest % versions.len()];
    *rest /= versions.len();
    version
}
