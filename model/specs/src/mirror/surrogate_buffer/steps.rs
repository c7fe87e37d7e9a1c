//! The actions of `SurrogateBuffer.tla` except those of flushes: clients, the log, and the guards.
//!
//! [`SurrogateBuffer::enabled`] contains the guards, [`SurrogateBuffer::take`] the effects. An
//! action is taken only if it is enabled.

use super::Action;
use super::constants::{Bug, SurrogateBuffer};
use super::state::{Buffered, Call, Lock, PENDING, State, Step, Version};
use super::words::{ABSENT, Content, Entry, N, Pair, Replayed, Set};
use crate::mirror::Phase;

/// Whether write `n`, counted from 1, is in this set.
fn has(writes: Set, n: N) -> bool {
    let rest = writes.checked_shr(u32::from(n) - 1);
    rest.is_some_and(|rest| rest & 1 == 1)
}

impl SurrogateBuffer {
    pub(super) fn keys(&self) -> impl Iterator<Item = u8> + use<> {
        1..=self.keys
    }

    pub(super) fn clients(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.clients.len() as u8
    }

    fn logs_first(&self) -> bool {
        self.bug == Bug::LogsBeforeLock
    }

    pub(super) fn enabled(&self, s: &State, actions: &mut Vec<Action>) {
        self.crash_steps(s, actions);
        for c in self.clients() {
            self.client_steps(s, c, actions);
        }
        for n in 0..s.nodes.len() {
            self.node_steps(s, n, actions);
        }
        if !s.phase.is_up() {
            self.replay_steps(s, actions);
        }
    }

    pub(super) fn client_steps(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        match s.call[usize::from(c)] {
            Call::Write {
                step: Step::Done, ..
            } => actions.push(Action::Acknowledge(c)),
            Call::Write {
                key,
                step: Step::Appended | Step::Durable,
                ..
            } => {
                if is_appended(s, c) && !self.logs_first() {
                    actions.push(Action::WriteBackEntry(c));
                }
                if is_appended(s, c) && self.bug == Bug::AcksAtOnce {
                    actions.push(Action::Acknowledge(c));
                }
                if !self.logs_first() || self.is_open(&s.nodes[s.node_of(key)]) {
                    actions.push(Action::BufferPair(c));
                }
            }
            _ if !s.phase.is_up() => {}
            Call::Idle => self.calls(s, c, actions),
            Call::Get { key, got: PENDING } => {
                if s.nodes[s.node_of(key)].lock == Lock::Free {
                    actions.push(Action::ReadKey(c));
                }
            }
            Call::Get { .. } => actions.push(Action::AnswerGet(c)),
            Call::Write { key, .. } => {
                if self.current(s, c).is_none() {
                    let free = self.free_spaces(s);
                    let first = if self.any_space { free.len() } else { 1 };
                    let spaces = free.into_iter().take(first);
                    actions.extend(spaces.map(|space| Action::OpenLog(c, space as u8)));
                } else if self.is_open(&s.nodes[s.node_of(key)]) {
                    actions.push(Action::AppendEntry(c));
                }
            }
        }
    }

    /// The value of the next write (`NextValue`).
    fn next_value(&self, s: &State) -> N {
        let waiting = self.clients().filter(|c| s.is_waiting(usize::from(*c)));
        s.clock + waiting.count() as N
    }

    fn calls(&self, s: &State, c: u8, actions: &mut Vec<Action>) {
        if self.readers >> c & 1 == 1 {
            actions.extend(self.keys().map(|key| Action::CallGet(c, key)));
        }
        let n = self.next_value(s);
        if n <= self.values {
            let last = self.to.len() - 1;
            let may = |key: &u8| has(self.to[usize::from(*key - 1).min(last)], n);
            let wanted = self.keys().filter(may);
            actions.extend(wanted.map(|key| Action::CallWrite(c, key)));
        }
    }

    pub(super) fn take(&self, s: &mut State, action: Action) {
        match action {
            Action::CallGet(c, key) => s.call[usize::from(c)] = Call::Get { key, got: PENDING },
            Action::CallWrite(c, key) => {
                let n = self.next_value(s);
                s.call[usize::from(c)] = Call::Write {
                    key,
                    value: if has(self.deletes, n) { ABSENT } else { n },
                    step: Step::Called,
                    space: 0,
                };
            }
            Action::ReadKey(c) => {
                if let Call::Get { key, .. } = s.call[usize::from(c)] {
                    let got = s.lookup(key);
                    s.call[usize::from(c)] = Call::Get { key, got };
                }
            }
            Action::AnswerGet(c) | Action::Acknowledge(c) => s.call[usize::from(c)] = Call::Idle,
            Action::OpenLog(c, space) => {
                s.version += 1;
                s.versions[usize::from(space)] = Version {
                    version: s.version,
                    owner: Some(c),
                    used: 0,
                    valid: self.log_size as u8,
                };
            }
            Action::AppendEntry(c) => self.append_entry(s, c),
            Action::WriteBackEntry(c) => write_back_entry(s, c),
            Action::BufferPair(c) => self.buffer_pair(s, c),
            Action::StartFlush(n) => self.start_flush(s, n.into()),
            Action::ClearSlots(n) => self.clear_slots(s, n.into()),
            Action::WritePairs(n) => self.write_pairs(s, n.into()),
            Action::SetBitmap(n) => self.set_bitmap(s, n.into()),
            Action::FinishMerge(n) => self.finish_merge(s, n.into()),
            Action::PrepareLeaf(n) => self.prepare_leaf(s, n.into()),
            Action::LinkLeaf(n) => self.link_leaf(s, n.into()),
            Action::SwitchSibling(n) => self.switch_sibling(s, n.into()),
            Action::FinishSplit(n) => self.finish_split(s, n.into()),
            Action::SplitNode(n) => {
                let half = s.nodes[usize::from(n)].index.len() / 2;
                self.split_node(s, n.into(), half);
            }
            Action::Crash(leaves, entries) => self.crash(s, leaves, entries),
            Action::Restart => self.restart(s),
            Action::ReplayEntry(space, i) => self.replay_entry(s, (space.into(), i.into())),
            Action::FinishReplay => (s.phase, s.replayed) = (Phase::Up, Replayed::default()),
        }
    }

    fn append_entry(&self, s: &mut State, c: u8) {
        if let Some(space) = self.current(s, c) {
            self.append_to(s, c, space);
        }
    }

    /// `AppendEntry` to this log.
    pub(super) fn append_to(&self, s: &mut State, c: u8, space: usize) {
        let Call::Write {
            key,
            value,
            step,
            space: at,
        } = &mut s.call[usize::from(c)]
        else {
            return;
        };
        let (pair, key) = (
            Pair {
                key: *key,
                value: *value,
            },
            *key,
        );
        (*step, *at) = (Step::Appended, space as u8 + 1);
        let version = &mut s.versions[space];
        let i = usize::from(version.used);
        version.used += 1;
        let by_version = matches!(self.bug, Bug::OrdersByVersion | Bug::BelievesStaleEntry);
        let number = if by_version {
            version.version * self.log_size as N + N::from(version.used)
        } else {
            s.clock
        };
        s.log[space][i].store(&Entry::new(pair, number));
        if !self.logs_first() {
            let n = s.node_of(key);
            s.nodes[n].lock = Lock::Client(c);
        }
        s.clock += 1;
    }

    fn buffer_pair(&self, s: &mut State, c: u8) {
        let Some((space, i, pair)) = in_flight(s, c) else {
            return;
        };
        let buffered = Buffered {
            key: pair.key,
            value: pair.value,
            number: s.log[space][i].meta.newest().number,
            version: s.versions[space].version,
        };
        let n = s.node_of(pair.key);
        let gone = s.nodes[n].absorb(buffered);
        s.nodes[n].lock = Lock::Free;
        self.give_way(s, gone);
        if self.bug != Bug::BuffersBeforeFence {
            s.log[space][i].fence();
            keep(s, pair);
        }
        if let Call::Write { step, .. } = &mut s.call[usize::from(c)] {
            *step = Step::Done;
        }
    }

    /// Removes a replaced pair from the counts of its log (`GivingWay`).
    pub(super) fn give_way(&self, s: &mut State, gone: Option<Buffered>) {
        if self.bug != Bug::CountsFlushesOnly {
            s.uncount(gone);
        }
    }
}

/// Whether a client's log entry is stored but not known to be persistent.
pub(super) fn is_appended(s: &State, c: u8) -> bool {
    matches!(
        s.call[usize::from(c)],
        Call::Write {
            step: Step::Appended,
            ..
        }
    )
}

/// The log, the entry and the pair of a client's write.
pub(super) fn in_flight(s: &State, c: u8) -> Option<(usize, usize, Pair)> {
    let Call::Write {
        key, value, space, ..
    } = s.call[usize::from(c)]
    else {
        return None;
    };
    let pair = Pair { key, value };
    let space = usize::from(space).checked_sub(1)?;
    // The last one there. In a recording, a client that shares the log may be ahead.
    let used = usize::from(s.versions[space].used);
    let is_its = |i: &usize| s.log[space][*i].pair.newest() == pair;
    let last = (0..used).rev().find(is_its)?;
    Some((space, last, pair))
}

/// `KeptWith`. Changes nothing if the write is durable already.
fn keep(s: &mut State, pair: Pair) {
    let kept: &mut Content = &mut s.kept[usize::from(pair.key) - 1];
    *kept = pair.value;
}

pub(super) fn write_back_entry(s: &mut State, c: u8) {
    if let Some((space, i, pair)) = in_flight(s, c) {
        s.log[space][i].fence();
        keep(s, pair);
    }
    if let Call::Write { step, .. } = &mut s.call[usize::from(c)] {
        *step = Step::Durable;
    }
}
