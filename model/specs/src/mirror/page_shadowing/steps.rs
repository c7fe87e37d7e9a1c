//! The actions of `PageShadowing.tla`, in their order.
//!
//! [`PageShadowing::enabled`] contains the guards, [`PageShadowing::take`] the effects. An action
//! is taken only if it is enabled.

use super::reading::{self, LOG_SPOT, page_at};
use super::state::{
    ABSENT, Block, Blocks, Call, Is, Known, LOG_BLOCK, N, PENDING, Page, Place, Record,
};
use super::state::{SPOTS, Set, State, key, page_of, segment_of, spot};
use super::{Action, Bug, Discards, PageShadowing};
use crate::mirror::Phase;

/// The members of a bit set of spots.
fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..SPOTS).filter(move |i| set >> i & 1 == 1)
}

/// Whether write `n`, counted from 0, is in this set.
fn has(writes: Set, n: N) -> bool {
    let rest = writes.checked_shr(n.into());
    rest.is_some_and(|rest| rest & 1 == 1)
}

impl PageShadowing {
    pub(super) fn pages(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.pages.len()
    }

    pub(super) fn enabled(&self, s: &State, actions: &mut Vec<Action>) {
        self.crash_steps(s, actions);
        self.enabled_but_crashes(s, actions);
    }

    pub(super) fn enabled_but_crashes(&self, s: &State, actions: &mut Vec<Action>) {
        if s.poisoned {
            return;
        }
        for c in 0..self.clients.len() as u8 {
            self.client_steps(s, c, actions);
        }
        actions.extend((s.durable + 1..=s.log_len).map(Action::CommitLog));
        for p in self.pages() {
            self.page_steps(s, p, actions);
        }
        if s.something_written() {
            actions.push(Action::FlushDevice);
            if self.flushes_fail {
                actions.push(Action::FailFlush);
            }
        }
        if s.phase.is_up() {
            if s.redo_start < swept(s) {
                actions.push(Action::Checkpoint);
            }
        } else if s.redone == s.log_len {
            actions.push(Action::FinishRedo);
        } else if s.mem[page_of(s.log[usize::from(s.redone)].key)].is_some() {
            actions.push(Action::RedoRecord);
        }
    }

    fn crash_steps(&self, s: &State, actions: &mut Vec<Action>) {
        let logs = s.durable..=s.log_len;
        if s.crashes < self.max_crashes {
            let outcomes: u32 = s.dev.iter().map(reading::left_count).product();
            for n in logs.clone() {
                actions.extend((0..outcomes).map(|outcome| Action::Crash(n, outcome)));
            }
        }
        if s.crashes < self.max_restarts {
            let readings: u32 = s.dev.iter().map(reading::read_count).product();
            for n in logs {
                actions.extend((0..readings).map(|reading| Action::Restart(n, reading)));
            }
        }
    }

    fn client_steps(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        let is_in = |key: u8| s.mem[page_of(key)].is_some();
        match s.call[usize::from(c)] {
            Call::Write { lsn, .. } if lsn > 0 => {
                if lsn <= s.durable || self.bug == Bug::AcksAtOnce {
                    actions.push(Action::Acknowledge(c));
                }
            }
            _ if !s.phase.is_up() => {}
            Call::Idle | Call::Refused => self.calls(s, c, actions),
            Call::Get { key, got: PENDING } if is_in(key) => actions.push(Action::ReadPage(c)),
            Call::Get { got: PENDING, .. } => {}
            Call::Get { .. } => actions.push(Action::AnswerGet(c)),
            Call::Write { key, .. } if is_in(key) => actions.push(Action::ChangePage(c)),
            Call::Write { .. } => {}
        }
    }

    fn calls(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        if self.readers >> c & 1 == 1 {
            actions.extend(self.pages().map(|p| Action::CallGet(c, key(p, 0))));
        }
        if s.log_len < self.values {
            let segments = if has(self.narrow, s.log_len) {
                1
            } else {
                self.segments
            };
            for p in self.pages() {
                actions.extend((0..segments).map(|i| Action::CallWrite(c, key(p, i))));
            }
        }
    }

    fn page_steps(&self, s: &State, p: usize, actions: &mut Vec<Action>) {
        let number = p as u8;
        match &s.mem[p] {
            Some(page) => {
                let logged = page.image.lsn <= s.durable || self.bug == Bug::PageBeforeLog;
                if page.is_dirty() && logged {
                    actions.push(if self.is_logged(s, p, page) {
                        Action::WriteDelta(number)
                    } else {
                        Action::WriteWhole(number)
                    });
                }
                let clean = !page.is_dirty() || self.bug == Bug::EvictsDirty;
                if self.evicted >> p & 1 == 1 && clean {
                    actions.push(Action::Evict(number));
                }
            }
            None => {
                let ways = 0..reading::read_count(&s.dev[p]);
                actions.extend(ways.map(|n| Action::Load(number, n)));
            }
        }
        let early = self.bug == Bug::TrimsAtOnce && s.valid[p].is == Is::Written;
        if s.valid[p].is == Is::Durable || early {
            actions.push(Action::Trim(number));
        }
    }

    fn is_logged(&self, s: &State, p: usize, page: &Page) -> bool {
        page.base != 0
            && page.dirty.count_ones() <= self.threshold
            && (s.valid[p].is != Is::Written || self.bug == Bug::DeltaAtOnce)
    }

    /// Takes an enabled action.
    pub(super) fn take(&self, s: &mut State, action: Action) {
        match action {
            Action::CallGet(c, key) => s.call[usize::from(c)] = Call::Get { key, got: PENDING },
            Action::CallWrite(c, key) => {
                let value = if has(self.deletes, s.log_len) {
                    ABSENT
                } else {
                    s.log_len + 1
                };
                s.call[usize::from(c)] = Call::Write { key, value, lsn: 0 };
            }
            Action::ReadPage(c) => {
                if let Call::Get { key, got } = &mut s.call[usize::from(c)]
                    && let Some(page) = &s.mem[page_of(*key)]
                {
                    *got = page.image.values[segment_of(*key)];
                }
            }
            Action::AnswerGet(c) | Action::Acknowledge(c) => s.call[usize::from(c)] = Call::Idle,
            Action::ChangePage(c) => change_page(s, c),
            Action::CommitLog(n) => s.durable = n,
            Action::WriteDelta(p) => self.write_delta(s, usize::from(p)),
            Action::WriteWhole(p) => self.write_whole(s, usize::from(p)),
            Action::Trim(p) => self.trim(s, usize::from(p)),
            Action::Evict(p) => {
                let p = usize::from(p);
                s.mem[p] = None;
                if self.bug == Bug::ForgetsUnflushed && s.valid[p].is == Is::Written {
                    s.valid[p].is = Is::Durable;
                }
            }
            Action::Load(p, n) => self.load(s, usize::from(p), n),
            Action::FlushDevice => {
                s.device_flush();
                s.after_flush();
            }
            Action::FailFlush => fail_flush(s),
            Action::Checkpoint => {
                s.redo_start = swept(s);
                if self.bug != Bug::CheckpointSkipsFlush {
                    s.device_flush();
                    s.after_flush();
                }
            }
            Action::Crash(n, outcome) => self.crash(s, n, outcome),
            Action::Restart(n, reading) => self.restart(s, n, reading),
            Action::RedoRecord => redo_record(s),
            Action::FinishRedo => (s.phase, s.redone) = (Phase::Up, 0),
        }
    }

    fn write_delta(&self, s: &mut State, p: usize) {
        let Some(page) = s.mem[p] else { return };
        let before = page_at(s, p, page.stored);
        let (values, mut dirty) = (page.image.values, page.dirty);
        if self.bug == Bug::LogsLastChanges {
            let same = |i: &usize| values[*i] == before[*i];
            dirty &= !(0..values.len())
                .filter(same)
                .fold(0, |set, i| set | 1 << i);
        }
        let names_slot = self.bug == Bug::NamesSlot;
        let base = if names_slot {
            N::from(s.valid[p].slot) + 1
        } else {
            page.base
        };
        s.dev[p][LOG_BLOCK].push(Block::delta(page.image.lsn, base, dirty, &values));
        s.lost[p] &= !LOG_SPOT;
        s.mem[p] = Some(Page {
            stored: page.image.lsn,
            ..page
        });
        s.valid[p].logged = true;
    }

    fn write_whole(&self, s: &mut State, p: usize) {
        let Some(page) = s.mem[p] else { return };
        let Known { slot, is, .. } = s.valid[p];
        let again = is == Is::Written && self.bug != Bug::PingPongAtOnce;
        let slot = if again { slot } else { 1 - slot };
        let late = self.bug == Bug::TrimsLate && is == Is::Durable;
        for i in 0..self.segments {
            let place = &mut s.dev[p][spot(usize::from(slot), i)];
            place.push(match i {
                0 => Block::first(&page.image),
                _ => Block::segment(page.image.values[i]),
            });
            if late {
                place.push(Block::TRIMMED);
            }
        }
        s.lost[p] &= !self.spots_of(slot);
        if self.bug == Bug::ResetsLogAtOnce {
            s.dev[p][LOG_BLOCK].push(Block::default());
            s.lost[p] &= !LOG_SPOT;
        }
        s.valid[p] = Known {
            slot,
            is: Is::Written,
            logged: false,
        };
        let lsn = page.image.lsn;
        s.mem[p] = Some(Page {
            image: page.image,
            dirty: 0,
            base: lsn,
            stored: lsn,
        });
    }

    fn trim(&self, s: &mut State, p: usize) {
        let known = &mut s.valid[p];
        let keeps_log = known.logged && self.bug != Bug::TrimsLiveLog;
        let log = if keeps_log { 0 } else { LOG_SPOT };
        known.is = Is::Alone;
        if self.discards == Discards::Inert {
            return;
        }
        for i in members(self.spots_of(1 - known.slot) | log) {
            if s.dev[p][i].newest() != Block::TRIMMED {
                s.dev[p][i].push(Block::TRIMMED);
                s.lost[p] &= !(1 << i);
            }
        }
    }

    fn load(&self, s: &mut State, p: usize, n: u32) {
        let blocks = reading::read(&s.dev[p], n);
        let found = self.found(s, p, &blocks);
        s.valid[p] = self.known_with(s, p, &blocks);
        let forgets = self.bug == Bug::ForgetsDirty;
        s.mem[p] = Some(Page {
            image: found.image,
            dirty: if forgets { 0 } else { found.dirty },
            base: found.base,
            stored: found.image.lsn,
        });
    }

    fn crash(&self, s: &mut State, n: N, mut outcome: u32) {
        let left = s.dev.map(|places| {
            let ways = reading::left_count(&places);
            let left = reading::left(&places, outcome % ways);
            outcome /= ways;
            left
        });
        self.crash_leaving(s, n, &left);
    }

    /// `Crash`, leaving these blocks.
    pub(super) fn crash_leaving(&self, s: &mut State, n: N, left: &[Blocks]) {
        s.cut_log(n);
        for p in self.pages() {
            s.dev[p] = left[p].map(Place::durably);
            s.valid[p] = Known::UNKNOWN;
        }
        s.lost = Default::default();
        self.forget_memory(s, Phase::Cut);
    }

    /// Loses everything in memory (`ForgetMemory`).
    fn forget_memory(&self, s: &mut State, phase: Phase) {
        s.call = [Call::Idle; super::CLIENTS];
        s.mem[..self.pages.len()].fill(None);
        s.poisoned = false;
        (s.phase, s.redone) = (phase, s.redo_start);
        s.crashes += 1;
    }

    fn restart(&self, s: &mut State, n: N, mut reading: u32) {
        let read = s.dev.map(|places| {
            let ways = reading::read_count(&places);
            let read = reading::read(&places, reading % ways);
            reading /= ways;
            read
        });
        self.restart_reading(s, n, &read);
    }

    /// `Restart`, reading these blocks.
    pub(super) fn restart_reading(&self, s: &mut State, n: N, read: &[Blocks]) {
        s.cut_log(n);
        for p in self.pages() {
            let blocks = read[p];
            let named = reading::is_named(s, p);
            s.valid[p] = if named {
                self.known_after(&blocks)
            } else {
                Known::UNKNOWN
            };
            if self.bug != Bug::RestartSkipsFlush {
                self.write_again(s, p, &blocks, named);
            }
        }
        self.forget_memory(s, Phase::Killed);
    }

    /// Writes the chosen image of a page again during a restart (`WrittenAgain`).
    fn write_again(&self, s: &mut State, p: usize, blocks: &Blocks, named: bool) {
        let again = if named && self.bug != Bug::TrustsWhatItReads {
            let log = self.read_both(blocks).logged;
            self.spots_of(self.valid_slot(blocks)) | if log { LOG_SPOT } else { 0 }
        } else {
            0
        };
        for (i, place) in s.dev[p].iter_mut().enumerate() {
            if again >> i & 1 == 1 {
                *place = Place::durably(blocks[i]);
            } else if s.lost[p] >> i & 1 == 0 {
                place.flush();
            }
        }
        s.lost[p] &= !again;
    }
}

fn change_page(s: &mut State, c: u8) {
    let n = s.log_len + 1;
    if let Call::Write { key, value, lsn } = &mut s.call[usize::from(c)]
        && let Some(page) = &mut s.mem[page_of(*key)]
    {
        page.change(segment_of(*key), *value, n);
        let (key, value) = (*key, *value);
        s.log[usize::from(s.log_len)] = Record { key, value };
        s.log_len = n;
        *lsn = n;
    }
}

fn fail_flush(s: &mut State) {
    for (places, lost) in s.dev.iter().zip(&mut s.lost) {
        let unflushed = |i: &usize| places[*i].is_unflushed();
        *lost = (0..SPOTS).filter(unflushed).fold(0, |set, i| set | 1 << i);
    }
    s.poisoned = true;
}

/// `Swept`: the latest position from which redo may begin.
pub(super) fn swept(s: &State) -> N {
    let missing = |record: Record, n: N| {
        let page = &s.mem[page_of(record.key)];
        page.is_some_and(|page| page.stored < n)
    };
    let mut log = s.records().take(usize::from(s.durable));
    let first = log.find(|(n, record)| *n > s.redo_start && missing(*record, *n));
    first.map_or(s.durable, |(n, _)| n - 1)
}

fn redo_record(s: &mut State) {
    let record = s.log[usize::from(s.redone)];
    let n = s.redone + 1;
    if let Some(page) = &mut s.mem[page_of(record.key)]
        && page.image.lsn < n
    {
        page.change(segment_of(record.key), record.value, n);
    }
    s.redone = n;
}
