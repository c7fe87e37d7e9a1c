//! The conjuncts on nodes, log and clients, and on leaves that no flush is changing.

use super::super::constants::SurrogateBuffer;
use super::super::flush::{from, separator};
use super::super::state::{At, Buffered, Call, Lock, Node, State, Step};
use super::super::words::{Entry, EntryWords, Fence, Leaf, LeafWords, N, NO_LEAF, Pair, Set};
use super::super::words::{Word, place};

impl LeafWords {
    /// What is persistent for certain: the first version of each word (`Before`).
    pub(super) fn before(&self) -> Leaf {
        Leaf {
            header: self.header.all()[0],
            low: self.low.all()[0],
            next: self.next.map(|word| word.all()[0]),
            slots: self.slots.map(|word| word.all()[0]),
        }
    }

    /// Whether each word but the header has one version.
    pub(super) fn all_but_header(&self) -> bool {
        let one = !self.low.is_unflushed() && !self.next.iter().any(Word::is_unflushed);
        one && !self.slots.iter().any(Word::is_unflushed)
    }
}

impl EntryWords {
    /// The first version of both words (`Before`).
    pub(super) fn before(&self) -> Entry {
        Entry {
            pair: self.pair.all()[0],
            meta: self.meta.all()[0],
        }
    }
}

/// A write whose node is locked for it (`InFlight`).
#[derive(Clone, Copy)]
pub(super) struct Flight {
    pub(super) client: u8,
    pub(super) pair: Pair,
    pub(super) is_durable: bool,
    /// The space, counted from 1, or 0.
    space: u8,
}

impl Flight {
    pub(super) fn of(s: &State, c: u8) -> Option<Self> {
        let Call::Write {
            key,
            value,
            step,
            space,
        } = s.call[usize::from(c)]
        else {
            return None;
        };
        matches!(step, Step::Appended | Step::Durable).then_some(Self {
            client: c,
            pair: Pair { key, value },
            is_durable: step == Step::Durable,
            space,
        })
    }

    /// Where its entry is (`OwnEntry`).
    pub(super) fn entry(&self, s: &State) -> Option<(usize, usize)> {
        let space = usize::from(self.space).checked_sub(1)?;
        let i = usize::from(s.versions[space].used).checked_sub(1)?;
        Some((space, i))
    }
}

/// The leaves' range: the lowest key, and the lowest key of the next.
pub(super) fn range(s: &State, leaf: u8) -> Option<Set> {
    let mut index = s.nodes.iter().flat_map(|node| node.index.iter());
    let own = index.find(|fence| fence.leaf == leaf)?;
    let upper = index.next().map_or(0, |next| from(next.low));
    Some(from(own.low) & !upper)
}

impl SurrogateBuffer {
    pub(super) fn flights<'a>(&'a self, s: &'a State) -> impl Iterator<Item = Flight> + 'a {
        self.clients().filter_map(|c| Flight::of(s, c))
    }

    /// The leaves in key order, as far as nodes know them. They are what recovery would find if
    /// nothing more became persistent.
    pub(super) fn row_inv(&self, s: &State) -> bool {
        let index: Vec<Fence> = s
            .nodes
            .iter()
            .flat_map(|n| n.index.iter().copied())
            .collect();
        let before = s.leaf.map(|leaf| leaf.before());
        let ascend = index.windows(2).all(|two| two[0].low < two[1].low);
        let begin = index.first().is_some_and(|fence| fence.low == 0);
        let mut nodes = s.nodes.iter();
        let known = self.index_of(&before);
        begin && ascend && nodes.all(|node| !node.index.is_empty()) && *index == *known
    }

    pub(super) fn phase_inv(&self, s: &State) -> bool {
        if s.phase.is_up() {
            return s.replayed.entries().next().is_none();
        }
        let old = |space: usize| {
            let version = s.versions[space];
            usize::from(version.used) == self.log_size && version.owner.is_none()
        };
        s.call.iter().all(|call| *call == Call::Idle) && (0..self.spaces).all(old)
    }

    /// A write that is under way has the last entry of a log of its client.
    pub(super) fn call_inv(&self, s: &State) -> bool {
        self.flights(s).all(|flight| {
            let own = |(space, _): (usize, usize)| s.versions[space].owner == Some(flight.client);
            flight.entry(s).is_some_and(own)
        })
    }

    /// Entries are whole or were never written; the last one of a write that is under way has both
    /// its old and its new words.
    pub(super) fn entry_inv(&self, s: &State) -> bool {
        self.entries().all(|at| {
            let words = &s.log[at.0][at.1];
            let before = words.before();
            let versions = (words.pair.all().len(), words.meta.all().len());
            let own = || self.flights(s).filter(|flight| flight.entry(s) == Some(at));
            let now = words.now();
            let whole = |flight: Flight| {
                let number = now.meta.number;
                number > 0 && now == Entry::new(flight.pair, number)
            };
            let count = if own().any(|flight| !flight.is_durable) {
                2
            } else {
                1
            };
            let known = before == Entry::default() || self.is_whole(&before);
            known && own().all(whole) && versions == (count, count)
        })
    }

    /// No two entries have the same number.
    pub(super) fn order_inv(&self, s: &State) -> bool {
        let numbers = |(space, i): (usize, usize)| {
            let words = s.log[space][i];
            [words.before().meta.number, words.now().meta.number]
        };
        let all: Vec<[N; 2]> = self.entries().map(numbers).collect();
        all.iter().enumerate().all(|(i, one)| {
            let mut others = all[..i].iter().flatten();
            !others.any(|number| *number > 0 && one.contains(number))
        })
    }

    /// Versions are different, and the global one is the greatest.
    pub(super) fn version_inv(&self, s: &State) -> bool {
        (0..self.spaces).all(|i| {
            let version = s.versions[i].version;
            let mut before = s.versions[..i].iter();
            version <= s.version && !before.any(|other| other.version == version)
        })
    }

    /// A leaf has each key once, and only keys of its range.
    pub(super) fn range_inv(&self, s: &State, l: usize) -> bool {
        let Some(range) = range(s, l as u8 + 1) else {
            return true;
        };
        let words = s.leaf[l].before();
        let keys = words.keys();
        keys & !range == 0 && keys.count_ones() == words.header.bits.count_ones()
    }

    /// The words of a leaf have one version each, except in those steps of a flush that have a
    /// conjunct of their own.
    pub(super) fn rest_inv(&self, s: &State, l: usize) -> bool {
        let leaf = l as u8 + 1;
        let changing = |node: &Node| {
            let first = node.todo.first() == Some(&leaf);
            first && !matches!(node.at, At::Idle | At::Prepared)
        };
        let words = &s.leaf[l];
        range(s, leaf).is_none()
            || s.nodes.iter().any(changing)
            || words.all_but_header() && !words.header.is_unflushed()
    }

    /// `LogInv`, and the entry is one of those that its log has used.
    pub(super) fn placed_inv(&self, s: &State, n: usize) -> bool {
        let Some(node) = s.nodes.get(n) else {
            return true;
        };
        node.buffer.iter().all(|buffered| {
            let (key, value) = (buffered.key, buffered.value);
            let wanted = Entry::new(Pair { key, value }, buffered.number);
            self.entries().any(|(space, i)| {
                let version = s.versions[space];
                let words = &s.log[space][i];
                version.version == buffered.version
                    && i < usize::from(version.used)
                    && !words.is_unfenced()
                    && words.now() == wanted
            })
        })
    }

    /// Buffered pairs are beyond the stamp of their leaf.
    pub(super) fn beyond_inv(&self, s: &State, n: usize) -> bool {
        let Some(node) = s.nodes.get(n) else {
            return true;
        };
        let stamp = |pair: &Buffered| s.leaf[place(node.leaf_of(pair.key))].before().header.stamp;
        node.buffer.iter().all(|pair| pair.number > stamp(pair))
    }

    /// An entry that its leaf does not have is in the buffer, or a later one of its key. In
    /// recovery, it may be one that is still to be replayed, after all that are in the buffer. Or
    /// its write is about to buffer it.
    pub(super) fn needed_inv(&self, s: &State, n: usize) -> bool {
        let Some(node) = s.nodes.get(n) else {
            return true;
        };
        self.entries().all(|at| {
            let entry = s.log[at.0][at.1].before();
            let (key, number) = (entry.pair.key, entry.meta.number);
            if !self.is_whole(&entry) || s.node_of(key) != n {
                return true;
            }
            let stamp = s.leaf[place(node.leaf_of(key))].before().header.stamp;
            if number <= stamp {
                return true;
            }
            if !s.phase.is_up() && !s.replayed.has(self.nth(at)) {
                return node.buffer.iter().all(|pair| pair.number < number);
            }
            let buffered = node.in_buffer(key);
            let mut flights = self.flights(s);
            buffered.is_some_and(|pair| pair.number >= number)
                || flights.any(|flight| flight.is_durable && flight.entry(s) == Some(at))
        })
    }

    /// A write that is under way has a later number than all pairs of its node, and than the stamp
    /// of its leaf.
    pub(super) fn newest_inv(&self, s: &State, n: usize) -> bool {
        let Some(node) = s.nodes.get(n) else {
            return true;
        };
        self.flights(s)
            .filter(|flight| s.node_of(flight.pair.key) == n)
            .all(|flight| {
                let Some(at) = flight.entry(s) else {
                    return true;
                };
                let number = s.entry_at(at).meta.number;
                let leaf = &s.leaf[place(node.leaf_of(flight.pair.key))];
                number > leaf.before().header.stamp
                    && node.buffer.iter().all(|pair| pair.number < number)
            })
    }

    /// Who holds a node's lock, and how far its flush is.
    pub(super) fn lock_inv(&self, s: &State, n: usize) -> bool {
        let Some(node) = s.nodes.get(n) else {
            return true;
        };
        let mut flights = self.flights(s).filter(|f| s.node_of(f.pair.key) == n);
        let holder = match node.lock {
            Lock::Client(c) => {
                flights.next().is_some_and(|f| f.client == c) && flights.next().is_none()
            }
            _ => flights.next().is_none(),
        };
        let splits = matches!(node.at, At::Prepared | At::Linked | At::Switched);
        let mut others = (0..s.nodes.len()).filter(|m| *m != n).map(|m| &s.nodes[m]);
        let used = range(s, node.fresh).is_some() || others.any(|o| o.fresh == node.fresh);
        holder
            && (node.lock == Lock::Flushing) != node.todo.is_empty()
            && (node.at == At::Idle || !node.todo.is_empty())
            && splits == (node.fresh != NO_LEAF)
            && !(splits && used)
    }

    /// The leaves to which a flush goes: different ones of its node, each with pairs. If there are
    /// several, none is split.
    pub(super) fn todo_inv(&self, s: &State, n: usize) -> bool {
        let Some(node) = s.nodes.get(n) else {
            return true;
        };
        let todo = &node.todo;
        let is_good = |(i, l): (usize, &u8)| {
            let mut index = node.index.iter();
            index.any(|fence| fence.leaf == *l)
                && !todo[..i].contains(l)
                && !self.group_of(node, *l).is_empty()
                && (todo.len() == 1 || !self.splits(s, node, *l))
        };
        let splits = matches!(node.at, At::Prepared | At::Linked | At::Switched);
        todo.len() <= self.t_node
            && todo.iter().enumerate().all(is_good)
            && !(splits && todo.len() > 1)
    }

    /// There is a slot for the separator of a split of a leaf that is to have these keys, and for
    /// each that follows because a lower half is split again.
    fn has_slots(
        &self,
        keys: Set,
        low: u8,
        group: &[Buffered],
        (leaves, buffered): (usize, usize),
    ) -> bool {
        let (flushed, rest): (Vec<Buffered>, Vec<Buffered>) =
            group.iter().partition(|pair| pair.key >= low);
        let (leaves, left) = (leaves + 1, buffered - flushed.len());
        let lower = keys & !from(low);
        if rest.is_empty() {
            let spare = left == 0 || leaves >= self.fanout;
            return leaves + left < self.slots || leaves + left == self.slots && spare;
        }
        let splits = lower.count_ones() > self.t_split;
        leaves + left <= self.slots
            && (!splits || self.has_slots(lower, separator(lower), &rest, (leaves, left)))
    }

    /// A node has a slot for the separator of a split. A split takes it, and the flush frees one
    /// again. Recovery may put more leaves in a node, which is split or has no buffer then.
    pub(super) fn capacity_inv(&self, s: &State, n: usize) -> bool {
        let Some(node) = s.nodes.get(n) else {
            return true;
        };
        let taken = node.index.len() + node.buffer.len();
        match (node.lock, node.todo.first()) {
            (Lock::Client(_), _) => taken + 1 < self.slots,
            (Lock::Flushing, Some(&l)) if node.todo.len() == 1 => {
                let sizes = (node.index.len(), node.buffer.len());
                let has_slots = |low| {
                    let keys = self.keys_after(s, node, l);
                    self.has_slots(keys, low, &self.group_of(node, l), sizes)
                };
                taken <= self.slots && self.separator(s, node, l).is_none_or(has_slots)
            }
            _ => {
                let spare = self.must_split(node) || node.buffer.is_empty();
                taken < self.slots || taken == self.slots && spare
            }
        }
    }
}
