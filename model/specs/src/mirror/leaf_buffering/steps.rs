//! The actions of `LeafBuffering.tla`, in their order.
//!
//! [`LeafBuffering::enabled`] contains the guards, [`LeafBuffering::take`] the effects. An action
//! is taken only if it is enabled.

use super::Action;
use super::constants::{Bug, LeafBuffering};
use super::content::unflushed;
use super::memory::{ABSENT, FIRST, Inner, Words};
use super::memory::{chunk_of, kv_of, members, one, stamp_of, time_of};
use super::state::{At, Batch, CLEANER, Call, Cleaning, CleaningAt, Job, LogEnd, N};
use super::state::{PENDING, Phase, RECOVERER, Slot, State, WriteAt};
use super::word::{Kv, Time, Word};
use super::writes::takes_effect;

impl LeafBuffering {
    fn clients(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.clients.len()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = u8> + use<> {
        1..=self.keys as u8
    }

    pub(super) fn enabled(&self, s: &State, actions: &mut Vec<Action>) {
        if s.phase == Phase::Failing {
            match s.first_dirty() {
                Some(word) => actions.extend((0..s.pm[word].all().len() as u8).map(Action::Settle)),
                None => actions.push(Action::Restart),
            }
            return;
        }
        if s.crashes < self.max_crashes {
            actions.push(Action::Crash);
        }
        if s.phase == Phase::Killed {
            let dirty = s.first_dirty().is_some();
            if dirty {
                actions.push(Action::WriteBack);
            }
            if !dirty || self.bug == Bug::TrustsWhatItReads {
                actions.push(Action::Restart);
            }
            return;
        }
        if s.crashes < self.max_kills {
            actions.push(Action::Kill);
        }
        let m = s.visible();
        for c in self.clients() {
            if s.phase == Phase::Up {
                self.client_steps(s, c, actions);
            }
            self.job_steps(s, &m, c, actions);
        }
        self.job_steps(s, &m, RECOVERER, actions);
        match s.phase {
            Phase::Recovery if s.job[RECOVERER].at == At::None => {
                actions.push(match self.missing(s, &m) {
                    Some(_) => Action::Replay,
                    None => Action::DropLogs,
                });
            }
            Phase::Up => self.cleaning_steps(s, &m, actions),
            _ => {}
        }
    }

    fn client_steps(&self, s: &State, c: usize, actions: &mut Vec<Action>) {
        let client = c as u8;
        match s.call[c] {
            Call::Idle => {
                if self.readers >> c & 1 == 1 && self.keys >= 2 {
                    actions.push(Action::CallGet(client, 2));
                }
                if s.asked < self.values {
                    let planned = self.plan.get(usize::from(s.asked)).copied().unwrap_or(0);
                    let keys = self.keys();
                    let keys = keys.filter(|key| planned == 0 || planned >> key & 1 == 1);
                    actions.extend(keys.map(|key| Action::CallWrite(client, key)));
                }
            }
            Call::Get { key, got: PENDING } => {
                if !s.is_latched(s.inner.route(key)) {
                    actions.push(Action::ReadKey(client));
                }
            }
            Call::Get { .. } => actions.push(Action::AnswerGet(client)),
            Call::Write { key, at, .. } => {
                if at == WriteAt::Called && !s.is_latched(s.inner.route(key)) {
                    actions.push(Action::Latch(client));
                }
            }
        }
    }

    fn job_steps(&self, s: &State, m: &Words, w: usize, actions: &mut Vec<Action>) {
        let job = &s.job[w];
        let writer = w as u8;
        match job.at {
            At::None => {}
            At::Log => {
                if self.end_of(s, m, w, job.epoch).is_some() {
                    actions.push(Action::AppendLog(writer));
                }
            }
            At::Logged => {
                actions.push(Action::FenceLog(writer));
                if self.bug == Bug::AcksAtOnce {
                    actions.push(Action::Finish(writer));
                }
            }
            At::Batch if self.fits(s, m, job.leaf, &job.batch) => {
                actions.push(Action::StoreRecords(writer));
            }
            At::Batch => {
                if self.free_leaf(s).is_some() {
                    actions.push(Action::StoreNewLeaf(writer));
                }
            }
            At::Records => actions.push(Action::StoreHeader(writer)),
            At::Header => actions.push(Action::FenceHeader(writer)),
            At::New => actions.push(Action::StoreLink(writer)),
            At::Link => actions.push(Action::FenceLink(writer)),
            At::Flushed if !self.should_merge(s, m, job) => actions.push(Action::Finish(writer)),
            At::Flushed => {
                if !s.is_latched(self.left_of(s, job.leaf)) {
                    actions.push(Action::LatchLeft(writer));
                }
            }
            At::Move => actions.push(Action::MoveRecords(writer)),
            At::Moved => actions.push(Action::StoreMerged(writer)),
            At::Merged => actions.push(Action::FenceMerged(writer)),
            At::Done if w == RECOVERER => actions.push(Action::Open),
            At::Done => actions.push(Action::Finish(writer)),
        }
    }

    fn cleaning_steps(&self, s: &State, m: &Words, actions: &mut Vec<Action>) {
        match s.cleaning.at {
            CleaningAt::Idle => {
                if self.may_flip(s.epoch) {
                    actions.push(Action::FlipEpoch);
                }
            }
            CleaningAt::Scan if s.cleaning.todo == 0 => actions.push(Action::Reclaim),
            CleaningAt::Scan => {
                for leaf in members(s.cleaning.todo).map(|leaf| leaf as u8) {
                    let latched = s.is_latched(leaf) && self.bug != Bug::CopiesUnlatched;
                    let copies = !old_slots(s, leaf).is_empty();
                    if !latched && (!copies || self.end_of(s, m, CLEANER, s.epoch).is_some()) {
                        actions.push(Action::ScanBuffer(leaf));
                    }
                }
            }
            CleaningAt::Reclaim => actions.push(Action::FreeLogs),
        }
    }

    /// `MayClean`.
    fn may_flip(&self, epoch: N) -> bool {
        let flips = self.flips.checked_shr(epoch.into()).unwrap_or(0);
        flips & 1 == 1
    }

    /// The first of `Missing`.
    pub(super) fn missing(&self, s: &State, m: &Words) -> Option<u8> {
        self.keys().find(|key| {
            let leaf = s.inner.route(*key);
            self.recovered_key(m, &s.inner, *key) != self.in_leaf(m, leaf, *key)
        })
    }

    /// The place where a logger appends next in this epoch (`EndOf`).
    pub(super) fn end_of(&self, s: &State, m: &Words, logger: usize, epoch: N) -> Option<LogEnd> {
        let end = s.log[logger];
        if end.epoch == epoch && usize::from(end.used) < self.entries {
            return Some(end);
        }
        self.free_chunk(s, m).map(|chunk| LogEnd {
            chunk,
            used: 0,
            epoch,
        })
    }

    /// Takes an enabled action.
    pub(super) fn take(&self, s: &mut State, action: Action) {
        match action {
            Action::CallGet(c, key) => s.call[usize::from(c)] = Call::Get { key, got: PENDING },
            Action::CallWrite(c, key) => {
                s.asked += 1;
                let delete = self.deletes >> (s.asked - 1) & 1 == 1;
                s.call[usize::from(c)] = Call::Write {
                    key,
                    value: if delete { ABSENT } else { s.asked },
                    at: WriteAt::Called,
                };
            }
            Action::ReadKey(c) => {
                if let Call::Get { key, .. } = s.call[usize::from(c)] {
                    let got = self.lookup(s, &s.visible(), key);
                    s.call[usize::from(c)] = Call::Get { key, got };
                }
            }
            Action::AnswerGet(c) => s.call[usize::from(c)] = Call::Idle,
            Action::Latch(c) => self.latch(s, c.into()),
            Action::Finish(c) => {
                let c = usize::from(c);
                (s.call[c], s.job[c]) = (Call::Idle, Job::default());
            }
            Action::AppendLog(c) => self.append_log(s, c.into()),
            Action::FenceLog(c) => self.fence_log(s, c.into()),
            Action::StoreRecords(w) => self.store_records(s, w.into()),
            Action::StoreHeader(w) => self.store_header(s, w.into()),
            Action::FenceHeader(w) => self.fence_header(s, w.into()),
            Action::StoreNewLeaf(w) => self.store_new_leaf(s, w.into()),
            Action::StoreLink(w) => self.store_link(s, w.into()),
            Action::FenceLink(w) => self.fence_link(s, w.into()),
            Action::LatchLeft(c) => self.latch_left(s, c.into()),
            Action::MoveRecords(c) => self.move_records(s, c.into()),
            Action::StoreMerged(c) => self.store_merged(s, c.into()),
            Action::FenceMerged(c) => self.fence_merged(s, c.into()),
            Action::FlipEpoch => {
                s.epoch += 1;
                s.cleaning = Cleaning {
                    at: CleaningAt::Scan,
                    todo: s.inner.leaves(),
                    chunks: 0,
                };
            }
            Action::ScanBuffer(leaf) => self.scan_buffer(s, leaf),
            Action::Reclaim => self.reclaim(s),
            Action::FreeLogs => {
                s.fence([FIRST]);
                s.cleaning = Cleaning::default();
            }
            Action::Crash => forget(s, Phase::Failing),
            Action::Kill => forget(s, Phase::Killed),
            Action::WriteBack => {
                let word = s.first_dirty();
                s.fence(word);
            }
            Action::Settle(version) => {
                if let Some(place) = s.first_dirty().map(|word| &mut s.pm[word]) {
                    *place = super::memory::Place::durably(place.all()[usize::from(version)]);
                }
            }
            Action::Restart => {
                s.phase = Phase::Recovery;
                s.inner = self.list(&s.visible());
                s.call = [Call::Idle; super::state::CLIENTS];
                s.written = self.recovered(&s.medium());
            }
            Action::Replay => self.replay(s),
            Action::DropLogs => self.drop_logs(s),
            Action::Open => {
                s.fence((1..=self.leaves as u8).map(stamp_of).chain([FIRST]));
                s.job[RECOVERER] = Job::default();
                s.phase = Phase::Up;
                s.epoch = s.visible()[FIRST].as_number();
            }
        }
    }

    fn latch(&self, s: &mut State, c: usize) {
        let Call::Write { key, value, at } = &mut s.call[c] else {
            return;
        };
        *at = WriteAt::Begun;
        let (key, value) = (*key, *value);
        let leaf = s.inner.route(key);
        let mut job = Job {
            at: At::Log,
            leaf,
            epoch: s.epoch,
            ..Job::default()
        };
        let waiting = unflushed(s.buffer(leaf));
        let again = self.bug == Bug::FlushesLoggedKey && waiting.keys >> key & 1 == 1;
        if self.is_trigger(s.buffer(leaf), key) || again {
            job.at = At::Batch;
            job.batch = waiting;
            job.batch.put(key, value);
            job.deletes = job.batch.has_tombstone();
        }
        s.job[c] = job;
    }

    /// Appends a log entry, and returns the new end of the log (`AppendTo`).
    fn append_to(&self, s: &mut State, logger: usize, epoch: N, kv: Kv) -> LogEnd {
        let m = s.visible();
        let mut end = self.end_of(s, &m, logger, epoch).unwrap_or_default();
        let place = usize::from(end.used);
        s.tick += 1;
        let time = Time {
            epoch,
            tick: s.tick,
        };
        s.store(chunk_of(end.chunk), Word::number(epoch));
        s.store(kv_of(end.chunk, place), Word::kv(kv));
        s.store(time_of(end.chunk, place), Word::stamped(time, kv));
        end.used += 1;
        s.log[logger] = end;
        end
    }

    fn append_log(&self, s: &mut State, c: usize) {
        if let Call::Write { key, value, .. } = s.call[c] {
            self.append_to(s, c, s.job[c].epoch, Kv { key, value });
        }
        s.job[c].at = At::Logged;
    }

    fn fence_log(&self, s: &mut State, c: usize) {
        let (end, job) = (s.log[c], s.job[c]);
        let place = usize::from(end.used) - 1;
        if self.bug != Bug::AcksBeforeFence {
            let (kv, time) = (kv_of(end.chunk, place), time_of(end.chunk, place));
            s.fence([chunk_of(end.chunk), kv, time]);
        }
        let twice = self.bug == Bug::ReadsEpochTwice;
        let bit = if twice { s.epoch } else { job.epoch } % 2;
        if let Call::Write { key, value, .. } = s.call[c] {
            self.insert(s.buffer_mut(job.leaf), Slot { key, value, bit });
        }
        takes_effect(s, c);
        s.job[c].at = At::Done;
    }

    fn scan_buffer(&self, s: &mut State, leaf: u8) {
        let old = old_slots(s, leaf);
        if old.len() < 2 {
            s.cleaning.todo &= !one(leaf.into());
        }
        let Some(&i) = old.first() else { return };
        let (epoch, Slot { key, value, .. }) = (s.epoch, s.buffer(leaf).slots[i]);
        let end = self.append_to(s, CLEANER, epoch, Kv { key, value });
        if self.bug != Bug::CopyKeepsBit {
            s.buffer_mut(leaf).slots[i].bit = epoch % 2;
        }
        s.cleaning.chunks |= one(end.chunk.into());
    }

    fn reclaim(&self, s: &mut State) {
        if self.bug != Bug::ReclaimsBeforeFence {
            for chunk in members(s.cleaning.chunks).map(|chunk| chunk as u8) {
                let places = (0..self.entries)
                    .flat_map(|place| [kv_of(chunk, place), time_of(chunk, place)]);
                s.fence(places.chain([chunk_of(chunk)]));
            }
        }
        s.store(FIRST, Word::number(s.epoch));
        s.cleaning = Cleaning {
            at: CleaningAt::Reclaim,
            ..Cleaning::default()
        };
    }

    fn replay(&self, s: &mut State) {
        let m = s.visible();
        let Some(key) = self.missing(s, &m) else {
            return;
        };
        let mut batch = Batch::default();
        batch.put(key, self.recovered_key(&m, &s.inner, key));
        s.job[RECOVERER] = Job {
            at: At::Batch,
            leaf: s.inner.route(key),
            batch,
            ..Job::default()
        };
    }

    /// The epoch of the store's next life (`NextEpoch`).
    pub(super) fn next_epoch(&self, m: &Words) -> N {
        let low = self.bug == Bug::EpochTooLow;
        m[FIRST].as_number() + if low { 1 } else { 2 }
    }

    fn drop_logs(&self, s: &mut State) {
        let next = self.next_epoch(&s.visible());
        s.store(FIRST, Word::number(next));
        if self.bug == Bug::ResetsTimestamps {
            for leaf in 1..=self.leaves as u8 {
                s.store(stamp_of(leaf), Word::time(Time::default()));
            }
        }
        s.job[RECOVERER].at = At::Done;
    }
}

/// The unflushed slots of a leaf that belong to the previous epoch.
pub(super) fn old_slots(s: &State, leaf: u8) -> Vec<usize> {
    let slots = s.buffer(leaf).waiting().iter().enumerate();
    let old = slots.filter(|(_, slot)| slot.bit != s.epoch % 2);
    old.map(|(i, _)| i).collect()
}

/// Volatile memory is lost.
fn forget(s: &mut State, phase: Phase) {
    s.phase = phase;
    s.crashes += 1;
    s.inner = Inner::default();
    s.buffer = Default::default();
    s.job = Default::default();
    s.log = Default::default();
    (s.epoch, s.tick) = (0, 0);
    s.cleaning = Cleaning::default();
}
