//! Crash and recovery, as in `SurrogateBuffer.tla`, and the result of recovering from every outcome
//! of a crash.

use super::Action;
use super::constants::{Bug, SurrogateBuffer};
use super::row::Row;
use super::state::{Buffered, Call, Node, State};
use super::steps::is_appended;
use super::words::{Content, Entry, EntryWords, KEYS, LeafWords, Leaves, Log, N, Replayed};
use super::words::{leaf_at, leaves_left, leaves_ways, place};
use crate::mirror::Phase;

impl SurrogateBuffer {
    pub(super) fn crash_steps(&self, s: &State, actions: &mut Vec<Action>) {
        if s.crashes < self.max_crashes {
            let logs = self.log_left(&s.log).len() as u32;
            for leaves in 0..leaves_ways(&s.leaf) {
                actions.extend((0..logs).map(|entries| Action::Crash(leaves, entries)));
            }
        }
        if s.crashes < self.max_restarts && !self.clients().any(|c| is_appended(s, c)) {
            actions.push(Action::Restart);
        }
    }

    pub(super) fn crash(&self, s: &mut State, leaves: u32, entries: u32) {
        let leaves = self.found(&leaves_left(&s.leaf, leaves));
        let entries = self.log_left(&s.log).into_iter().nth(entries as usize);
        // `crash_steps` counts the outcomes.
        if let Some(entries) = entries {
            self.start_over(s, &leaves, entries, Phase::Cut);
        }
    }

    pub(super) fn restart(&self, s: &mut State) {
        let words = s.leaf;
        let leaves = self.found(&s.leaves_now());
        let entries = s.log.map(|log| log.map(|entry| entry.now()));
        self.start_over(s, &leaves, entries, Phase::Killed);
        if self.bug == Bug::TrustsWhatItReads {
            s.leaf = words;
        }
    }

    /// `StartOver` with these leaves persistent.
    pub(super) fn start_over(&self, s: &mut State, leaves: &Leaves, torn: Log, phase: Phase) {
        let entries = torn.map(|log| log.map(|entry| self.mended(entry)));
        let mut nodes = Row::default();
        nodes.push(Node::new(self.index_of(leaves).iter().copied(), []));
        *s = State {
            call: [Call::Idle; super::CLIENTS],
            nodes,
            versions: self.old_versions(),
            version: self.spaces as N,
            clock: self.clock_after(leaves, &entries),
            leaf: leaves.map(|leaf| LeafWords::durably(&leaf)),
            log: entries.map(|log| log.map(|entry| EntryWords::durably(&entry))),
            phase,
            replayed: Replayed::default(),
            crashes: s.crashes + 1,
            kept: s.kept,
        };
    }

    /// An entry that is cleared if it is torn (`Mended`).
    fn mended(&self, entry: Entry) -> Entry {
        if self.is_whole(&entry) || self.bug == Bug::LeavesTornEntries {
            entry
        } else {
            Entry::default()
        }
    }

    /// The clock after all numbers in leaves and log (`ClockAfter`).
    fn clock_after(&self, leaves: &Leaves, log: &Log) -> N {
        let stamps = leaves.iter().map(|leaf| leaf.header.stamp);
        let stamps = stamps.filter(|_| self.bug != Bug::RestartsNumbers);
        let numbers = log.iter().flatten().map(|entry| entry.meta.number);
        1 + numbers.chain(stamps).max().unwrap_or(0)
    }

    /// The number of an entry in `replayed`.
    pub(super) fn nth(&self, (s, i): (usize, usize)) -> usize {
        s * self.log_size + i
    }

    /// `ToReplay`, log by log.
    pub(super) fn to_replay(&self, s: &State) -> Vec<(usize, usize)> {
        let wanted = |at: &(usize, usize)| {
            let entry = s.entry_at(*at);
            if !self.is_whole(&entry) || s.replayed.has(self.nth(*at)) {
                return false;
            }
            let key = entry.pair.key;
            let leaf = s.nodes[s.node_of(key)].leaf_of(key);
            let beyond = entry.meta.number > s.leaf_now(leaf).header.stamp;
            beyond || self.bug == Bug::ReplaysFlushed
        };
        self.entries().filter(wanted).collect()
    }

    pub(super) fn replay_steps(&self, s: &State, actions: &mut Vec<Action>) {
        let all = self.to_replay(s);
        if all.is_empty() {
            actions.push(Action::FinishReplay);
        }
        let node = |at: &(usize, usize)| s.node_of(s.entry_at(*at).pair.key);
        let number = |at: &(usize, usize)| s.entry_at(*at).meta.number;
        for (place, at) in all.iter().enumerate() {
            let mut of_node = all.iter().filter(|other| node(other) == node(at));
            let is_next = match self.bug {
                Bug::ReplaysInParallel => true,
                Bug::ReplaysLogByLog => place == 0,
                _ => of_node.all(|other| number(at) <= number(other)),
            };
            if is_next && self.is_open(&s.nodes[node(at)]) {
                actions.push(Action::ReplayEntry(at.0 as u8, at.1 as u8));
            }
        }
    }

    pub(super) fn replay_entry(&self, s: &mut State, at: (usize, usize)) {
        let entry = s.entry_at(at);
        let pair = Buffered {
            key: entry.pair.key,
            value: entry.pair.value,
            number: entry.meta.number,
            version: s.versions[at.0].version,
        };
        let n = s.node_of(pair.key);
        let there = s.nodes[n].in_buffer(pair.key);
        let is_older = there.is_some_and(|there| there.number > pair.number);
        if !(self.bug == Bug::ReplaysLogByLog && is_older) {
            let gone = s.nodes[n].absorb(pair);
            self.give_way(s, gone);
            s.versions[at.0].valid += 1;
        }
        s.replayed.add(self.nth(at));
    }

    /// `RecoverableInv`: whether recovery from every outcome of a crash would yield `kept`.
    pub(super) fn is_recoverable(&self, s: &State) -> bool {
        let logs = self.log_left(&s.log);
        (0..leaves_ways(&s.leaf)).all(|n| {
            let leaves = self.found(&leaves_left(&s.leaf, n));
            let mut logs = logs.iter();
            logs.all(|entries| self.recovered(s, &leaves, entries) == s.kept)
        })
    }

    /// The map that recovery makes of leaves and log (`Recovered`).
    pub(super) fn recovered(&self, s: &State, leaves: &Leaves, log: &Log) -> [Content; KEYS] {
        let index = self.index_of(leaves);
        let mut map = s.kept;
        for key in self.keys() {
            let words = &leaves[place(leaf_at(&index, key))];
            let believed = self
                .entries()
                .filter(|at| self.believes(s, log, *at) && log[at.0][at.1].pair.key == key);
            let anyway = matches!(self.bug, Bug::ReplaysFlushed | Bug::ReplaysValidLogs);
            let newer = believed
                .map(|at| (self.order_of(s, log, at), log[at.0][at.1].pair.value))
                .filter(|(order, _)| anyway || *order > words.header.stamp);
            let last = newer.max_by_key(|(order, _)| *order);
            map[usize::from(key) - 1] = last.map_or_else(|| words.value_of(key), |(_, v)| v);
        }
        map
    }

    /// Whether recovery considers this entry valid (`Believes`).
    fn believes(&self, s: &State, log: &Log, (space, i): (usize, usize)) -> bool {
        let entry = &log[space][i];
        let is_valid = s.versions[space].valid > 0;
        match self.bug {
            Bug::BelievesStaleEntry => entry.pair.key != 0 && is_valid,
            Bug::ReplaysValidLogs => self.is_whole(entry) && is_valid,
            _ => self.is_whole(entry),
        }
    }

    /// The number by which recovery orders this entry (`OrderOf`).
    fn order_of(&self, s: &State, log: &Log, (space, i): (usize, usize)) -> N {
        if self.bug == Bug::BelievesStaleEntry {
            return s.versions[space].version * self.log_size as N + i as N + 1;
        }
        log[space][i].meta.number
    }
}
