//! The actions: `GroupCommit.tla` and `WalRecovery.tla`, in their order.
//!
//! [`WalRecovery::enabled`] contains the guards, [`WalRecovery::take`] the effects. An action is
//! taken only if it is enabled.

use super::room::{N, Set};
use super::state::{
    At, Block, Call, Checkpoint, Content, Image, Lost, Medium, PENDING, Phase, Record,
};
use super::state::{State, Superblock};
use super::{Action, Bug, Reads, WalRecovery};

impl WalRecovery {
    fn clients(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.clients.len() as u8
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.keys.len() as u8
    }

    pub(super) fn enabled(&self, s: &State, actions: &mut Vec<Action>) {
        self.enabled_but_crashes(s, actions);
        if !s.it.phase.is_down() && s.it.crashes < self.max_crashes {
            actions.extend((0..crash_outcomes(s)).map(Action::Crash));
            actions.push(Action::Restart);
        }
    }

    /// Lists the steps of [`WalRecovery::enabled`] except crashes, which are too many if there are
    /// many places.
    pub(super) fn enabled_but_crashes(&self, s: &State, actions: &mut Vec<Action>) {
        for c in self.clients() {
            self.client_steps(s, c, actions);
        }
        self.flush_steps(s, actions);
        for key in self.keys() {
            self.page_steps(s, key, actions);
        }
        self.checkpoint_steps(s, actions);
        self.recovery_steps(s, actions);
    }

    pub(super) fn client_steps(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        if s.it.phase != Phase::Up {
            return;
        }
        match s.call[usize::from(c)] {
            Call::Idle | Call::Refused | Call::Unknown => self.calls(s, c, actions),
            Call::Get { key, got: PENDING } => {
                let k = usize::from(key);
                let late = self.reads == Reads::Wait && s.page[k].lsn > s.it.durable;
                if !s.latched(k) && !late {
                    actions.push(Action::ReadPage(c));
                }
            }
            Call::Get { .. } => actions.push(Action::AnswerGet(c)),
            Call::Write { key, at, lsn, .. } => match at {
                At::Called if s.it.poisoned => actions.push(Action::ReportFailure(c)),
                At::Called => {
                    let limit = self.block_of(s.it.oldest) + self.ring_blocks;
                    let room = self.block_of(self.end(s)) < limit || self.bug == Bug::OverrunsLog;
                    if room && !s.latched(usize::from(key)) {
                        actions.push(Action::AppendLog(c));
                    }
                }
                At::Logged => actions.push(Action::ChangePage(c)),
                At::Waiting => self.waiting_steps(s, c, lsn, actions),
                At::Asleep => {}
            },
        }
    }

    fn calls(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        if self.readers >> c & 1 == 1 {
            let keys = self.keys().filter(|k| self.read_keys >> k & 1 == 1);
            actions.extend(keys.map(|k| Action::CallGet(c, k)));
        }
        if s.it.asked < self.values {
            let odd_turn = s.it.asked.is_multiple_of(2);
            let may = |set: Set, member: u8| self.odd == 0 || (set >> member & 1 == 1) == odd_turn;
            if may(self.odd, c) {
                let keys = self.keys().filter(|k| may(self.odd_keys, *k));
                actions.extend(keys.map(|k| Action::CallWrite(c, k)));
            }
        }
    }

    fn waiting_steps(&self, s: &State, c: u8, lsn: N, actions: &mut Vec<Action>) {
        let early = match self.bug {
            Bug::AcksBeforeFlush => true,
            Bug::AcksWhenPoisoned => s.it.poisoned,
            _ => false,
        };
        if lsn <= s.it.durable || early {
            actions.push(Action::Acknowledge(c));
        }
        if lsn > s.it.durable {
            let enough = self.bug != Bug::WaitsForFullBuffer || s.it.buffer_len > self.per_block;
            if s.it.poisoned {
                actions.push(Action::ReportFailure(c));
            } else if s.it.durable == s.it.flushing && enough {
                actions.push(Action::FlushLog(c));
            }
        }
    }

    pub(super) fn flush_steps(&self, s: &State, actions: &mut Vec<Action>) {
        if s.it.poisoned {
            return;
        }
        let flushing = s.it.durable < s.it.flushing;
        if flushing {
            actions.push(Action::CompleteFlush);
        }
        let checkpoint = matches!(s.it.checkpoint, Checkpoint::Sweep | Checkpoint::Written);
        if self.flushes_fail && (flushing || checkpoint) {
            actions.push(Action::FailFlush);
        }
    }

    pub(super) fn page_steps(&self, s: &State, key: u8, actions: &mut Vec<Action>) {
        let (phase, k) = (s.it.phase, usize::from(key));
        if phase.is_down() || s.latched(k) {
            return;
        }
        let dirty = s.dirtied[k] != 0;
        let logged = s.page[k].lsn <= s.it.durable || self.bug == Bug::PageBeforeLog;
        if dirty && logged && !s.it.poisoned {
            actions.push(Action::WriteBack(key));
        }
        if phase == Phase::Up && (!dirty || self.bug == Bug::EvictsDirty) {
            actions.push(Action::Reload(key));
        }
    }

    pub(super) fn recovery_steps(&self, s: &State, actions: &mut Vec<Action>) {
        match s.it.phase {
            Phase::Cut | Phase::Killed => actions.push(Action::LoadSuperblock),
            Phase::Redo => {
                let end = self.to_redo_end(s);
                if s.it.redone < end {
                    actions.push(Action::RedoRecord);
                }
                if s.it.redone == end || self.bug == Bug::StopsRedoEarly {
                    actions.push(Action::FinishRedo);
                }
            }
            Phase::Up | Phase::Opening => {}
        }
    }

    pub(super) fn checkpoint_steps(&self, s: &State, actions: &mut Vec<Action>) {
        let phase = s.it.phase;
        if phase.is_down() || s.it.poisoned {
            return;
        }
        match s.it.checkpoint {
            Checkpoint::Idle if phase == Phase::Up && s.it.oldest < self.end(s) => {
                actions.push(Action::BeginCheckpoint);
            }
            Checkpoint::Idle => {}
            Checkpoint::Sweep if self.swept(s) => actions.push(Action::FlushPages),
            Checkpoint::Sweep => {}
            Checkpoint::Forced => actions.push(Action::WriteSuperblock),
            Checkpoint::Written => actions.push(Action::FlushSuperblock),
            Checkpoint::Recorded if phase == Phase::Up => actions.push(Action::TruncateLog),
            Checkpoint::Recorded => actions.push(Action::FinishRecovery),
        }
    }

    fn swept(&self, s: &State) -> bool {
        let begin = s.it.begin;
        let out_of_the_way = |call: &Call| match *call {
            Call::Write { at, lsn, .. } => match at {
                At::Logged => lsn > begin || self.bug == Bug::SkipsQuiesce,
                At::Called => self.bug != Bug::QuiescesWhoWaitsForRoom,
                At::Waiting | At::Asleep => true,
            },
            _ => true,
        };
        s.dirtied.iter().all(|n| *n == 0 || *n > begin) && s.call.iter().all(out_of_the_way)
    }

    /// The end of the log that recovery replays (`ToRedoEnd`).
    fn to_redo_end(&self, s: &State) -> N {
        let medium = s.newest();
        medium.superblock.redo + self.log_found(&medium).len()
    }

    /// Takes an enabled action.
    pub(super) fn take(&self, s: &mut State, action: Action) {
        match action {
            Action::CallGet(c, key) => {
                s.call[usize::from(c)] = Call::Get { key, got: PENDING };
            }
            Action::CallWrite(c, key) => call_write(s, c, key, self.next_value(s)),
            Action::ReadPage(c) => {
                if let Call::Get { key, got } = &mut s.call[usize::from(c)] {
                    *got = s.page[usize::from(*key)].value;
                }
            }
            Action::AnswerGet(c) | Action::Acknowledge(c) => s.call[usize::from(c)] = Call::Idle,
            Action::ReportFailure(c) => {
                let call = &mut s.call[usize::from(c)];
                *call = match call {
                    Call::Write { at: At::Called, .. } => Call::Refused,
                    _ if self.bug == Bug::RefusedShows => Call::Refused,
                    _ => Call::Unknown,
                };
            }
            Action::AppendLog(c) => self.append_log(s, c),
            Action::ChangePage(c) => self.change_page(s, c),
            Action::FlushLog(_) => self.flush_log(s),
            Action::CompleteFlush => self.complete_flush(s),
            Action::FailFlush => self.fail_flush(s),
            Action::WriteBack(k) => self.write_back(s, k),
            Action::Reload(k) => {
                let k = usize::from(k);
                s.page[k] = s.page_dev[k].newest();
                s.dirtied[k] = 0;
            }
            Action::BeginCheckpoint => {
                s.it.checkpoint = Checkpoint::Sweep;
                s.it.begin = self.end(s);
            }
            Action::FlushPages => self.flush_pages(s),
            Action::WriteSuperblock => {
                let late = self.bug == Bug::RedoStartsLate;
                s.super_dev.push(Superblock {
                    epoch: s.it.epoch,
                    redo: if late { s.it.durable } else { s.it.begin },
                });
                s.it.lost.superblock = false;
                s.it.checkpoint = Checkpoint::Written;
            }
            Action::FlushSuperblock => {
                s.device_flush();
                s.it.checkpoint = Checkpoint::Recorded;
            }
            Action::TruncateLog | Action::FinishRecovery => {
                s.it.phase = Phase::Up;
                s.it.oldest = s.it.begin;
                (s.it.checkpoint, s.it.begin) = (Checkpoint::Idle, 0);
            }
            Action::Crash(outcome) => self.crash(s, outcome),
            Action::Restart => self.restart(s),
            Action::LoadSuperblock => self.load_superblock(s),
            Action::RedoRecord => self.redo_record(s),
            Action::FinishRedo => {
                (s.it.phase, s.it.redone) = (Phase::Opening, 0);
                (s.it.checkpoint, s.it.begin) = (Checkpoint::Sweep, s.it.durable);
            }
        }
    }

    fn append_log(&self, s: &mut State, c: u8) {
        let end = self.end(s);
        if let Call::Write {
            key,
            value,
            at,
            lsn,
        } = &mut s.call[usize::from(c)]
        {
            s.buffer[usize::from(s.it.buffer_len)] = Record::new(*key, *value);
            s.it.buffer_len += 1;
            (*at, *lsn) = (At::Logged, end + 1);
        }
    }

    fn change_page(&self, s: &mut State, c: u8) {
        let (durable, flushing) = (s.it.durable, s.it.flushing);
        if let Call::Write {
            key,
            value,
            at,
            lsn,
        } = &mut s.call[usize::from(c)]
        {
            let (k, n) = (usize::from(*key), *lsn);
            s.page[k] = Image {
                value: *value,
                lsn: n,
            };
            if s.dirtied[k] == 0 || self.bug == Bug::DirtiedMoves {
                s.dirtied[k] = n;
            }
            let sleep = durable < n && durable < flushing;
            *at = if sleep { At::Asleep } else { At::Waiting };
        }
    }

    fn flush_log(&self, s: &mut State) {
        let first = self.block_of(s.it.durable);
        let buffer = s.buffer;
        let blocks = buffer[..usize::from(s.it.buffer_len)].chunks(usize::from(self.per_block));
        let mut written: Set = 0;
        for (index, chunk) in (first..).zip(blocks) {
            let place = self.place(index);
            // A place occurs twice only if the log overruns its ring. The spec then writes the
            // first block.
            if written >> place & 1 == 1 {
                continue;
            }
            written |= 1 << place;
            let mut block = Block {
                epoch: s.it.epoch,
                index,
                ..Block::default()
            };
            block.records[..chunk.len()].copy_from_slice(chunk);
            s.log_dev[place].push(block);
        }
        s.it.lost.log &= !written;
        s.it.flushing = self.end(s);
        let durable = s.it.durable;
        for call in &mut s.call {
            if let Call::Write { at, lsn, .. } = call
                && *at == At::Waiting
                && durable < *lsn
            {
                *at = At::Asleep;
            }
        }
    }

    fn complete_flush(&self, s: &mut State) {
        s.device_flush();
        let later = self.bug == Bug::AcksWhatCameLater;
        let end = if later { self.end(s) } else { s.it.flushing };
        s.base = self.base_after(s, end - s.it.durable);
        let gone = self.block_start(end) - self.buffer_start(s);
        s.buffer.copy_within(usize::from(gone).., 0);
        s.it.buffer_len -= gone;
        s.buffer[usize::from(s.it.buffer_len)..].fill(Record::default());
        (s.it.durable, s.it.flushing) = (end, end);
        self.wake_all(s, end);
    }

    fn wake_all(&self, s: &mut State, up_to: N) {
        for call in &mut s.call {
            if let Call::Write { at, lsn, .. } = call
                && *at == At::Asleep
                && (self.bug != Bug::SleepsThrough || *lsn <= up_to)
            {
                *at = At::Waiting;
            }
        }
    }

    fn fail_flush(&self, s: &mut State) {
        let set = |unflushed: &mut dyn Iterator<Item = bool>| {
            (0u8..)
                .zip(unflushed)
                .fold(0, |set, (i, is)| set | Set::from(is) << i)
        };
        s.it.lost = Lost {
            log: set(&mut s.log_dev.iter().map(|place| place.is_unflushed())),
            pages: set(&mut s.page_dev.iter().map(|place| place.is_unflushed())),
            superblock: s.super_dev.is_unflushed(),
        };
        if self.bug != Bug::RetriesFailedFlush {
            self.wake_all(s, s.it.flushing);
            s.it.poisoned = true;
            s.it.flushing = s.it.durable;
        }
    }

    fn write_back(&self, s: &mut State, key: u8) {
        let k = usize::from(key);
        s.dirtied[k] = 0;
        if self.bug != Bug::CleanWithoutWrite {
            s.page_dev[k].push(s.page[k]);
        }
        s.it.lost.pages &= !(1 << key);
    }

    fn flush_pages(&self, s: &mut State) {
        let skips = match s.it.phase {
            Phase::Up => self.bug == Bug::CheckpointSkipsFlush,
            _ => self.bug == Bug::RecoverySkipsFlush,
        };
        if !skips {
            s.device_flush();
        }
        s.it.checkpoint = Checkpoint::Forced;
        if self.bug == Bug::TruncatesEarly {
            s.it.oldest = s.it.begin;
        }
    }

    fn crash(&self, s: &mut State, outcome: u16) {
        self.crash_leaving(s, &picked(s, outcome));
    }

    /// A crash that leaves `left`, which is one of the versions of every block.
    pub(super) fn crash_leaving(&self, s: &mut State, left: &Medium) {
        (s.base, s.it.verdict) = self.judge(s, left);
        s.leave(left);
        s.forget_memory(Phase::Cut);
    }

    fn restart(&self, s: &mut State) {
        let read = s.newest();
        (s.base, s.it.verdict) = self.judge(s, &read);
        if self.bug == Bug::TrustsWhatItReads {
            s.device_flush();
        } else {
            s.leave(&read);
        }
        s.forget_memory(Phase::Killed);
    }

    fn load_superblock(&self, s: &mut State) {
        let medium = s.newest();
        let superblock = medium.superblock;
        let end = self.next_block_start(self.to_redo_end(s));
        let keeps = self.bug == Bug::KeepsEpoch;
        s.it.phase = Phase::Redo;
        s.it.redone = superblock.redo;
        s.it.epoch = superblock.epoch + N::from(!keeps);
        (s.it.durable, s.it.flushing) = (end, end);
        s.it.oldest = superblock.redo;
        s.page = medium.pages;
    }

    fn redo_record(&self, s: &mut State) {
        let medium = s.newest();
        let at = s.it.redone - medium.superblock.redo;
        let record = self.log_found(&medium).all()[usize::from(at)];
        let (k, n) = (record.key(), s.it.redone + 1);
        let before = s.page[k];
        self.redo_one(&mut s.page, record, n);
        if s.page[k] != before && s.dirtied[k] == 0 {
            s.dirtied[k] = n;
        }
        s.it.redone = n;
    }
}

/// Client `c` calls the next write: of `value`, to `key`.
pub(super) fn call_write(s: &mut State, c: u8, key: u8, value: Content) {
    let (at, lsn) = (At::Called, 0);
    s.call[usize::from(c)] = Call::Write {
        key,
        value,
        at,
        lsn,
    };
    s.it.asked += 1;
}

/// The number of combinations of versions that a crash may leave.
fn crash_outcomes(s: &State) -> u16 {
    let log = s.log_dev.iter().map(|place| place.all().len());
    let pages = s.page_dev.iter().map(|place| place.all().len());
    let all = log.chain(pages).chain([s.super_dev.all().len()]);
    all.fold(1, |product, versions| product * versions as u16)
}

/// The combination with number `outcome`.
fn picked(s: &State, outcome: u16) -> Medium {
    let mut rest = usize::from(outcome);
    let mut digit = |versions: usize| {
        let digit = rest % versions;
        rest /= versions;
        digit
    };
    Medium {
        log: s
            .log_dev
            .each_ref()
            .map(|place| place.all()[digit(place.all().len())]),
        pages: s
            .page_dev
            .each_ref()
            .map(|place| place.all()[digit(place.all().len())]),
        superblock: s.super_dev.all()[digit(s.super_dev.all().len())],
    }
}
