//! The mirror as the judge of a recording: it is led step by step, and only its state's size bounds
//! it. What the spec chooses to have fewer states, the engine may choose otherwise: which free
//! slots a flush fills, which free leaf or log is next, to which leaves it flushes and when. Each
//! such step returns whether it is one of the choices that the spec could make.
//!
//! The last steps are not in the spec: leaves and nodes are merged, and chunks of logs are used for
//! something else.

use super::Action;
use super::constants::{Bug, SurrogateBuffer};
use super::flush::{from, puts};
use super::invariants::INVARIANTS;
use super::look::Is;
use super::room::{CLIENTS, ENTRIES, KEYS, LEAVES, SLOTS, SPACES};
use super::row::Row;
use super::state::{At, Call, Lock, Node, PENDING, State, Step};
use super::steps::{in_flight, is_appended};
use super::words::{ABSENT, Content, Entry, EntryWords, Header, Leaf, LeafWords, Leaves, Log, N};
use super::words::{Pair, Set, Word, leaf_at, place};
use crate::Value;
use crate::mirror::Phase;

/// The value of a key that does not exist.
pub const NOTHING: Content = ABSENT;

/// A pair and its slot.
pub type InSlot = (usize, Pair);

/// The sizes of a store.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Slots of an inner node.
    pub slots: usize,
    /// The most leaves of a flush.
    pub t_node: usize,
    /// The most keys that a leaf may have unless it is split.
    pub t_split: usize,
    /// The number of logs.
    pub spaces: usize,
    /// Entries of a log.
    pub log_size: usize,
}

fn pick<T: Copy + Default + std::hash::Hash>(word: &Word<T>, version: usize) -> T {
    word.all().get(version).copied().unwrap_or(word.newest())
}

/// A word without the versions after this one.
fn cut<T: Copy + Default + std::hash::Hash>(word: &mut Word<T>, version: usize) {
    let all = word.all().to_vec();
    *word = Word::durably(all[0]);
    all[1..=version].iter().for_each(|value| word.push(*value));
}

impl SurrogateBuffer {
    /// Leaves, and slots of a leaf, in a state.
    pub const MOST_PLACES: (usize, usize) = (LEAVES, SLOTS);

    /// The protocol for these clients and keys, in a state as large as there is room for. Any
    /// client may call anything.
    ///
    /// # Panics
    /// If the state has no room for as many.
    #[must_use]
    pub fn unbounded(clients: usize, keys: usize, sizes: Sizes) -> Self {
        assert!(
            clients <= CLIENTS
                && keys <= KEYS
                && sizes.spaces <= SPACES
                && sizes.log_size <= ENTRIES,
            "no room"
        );
        let no_enumeration = |(name, _): &&(&'static str, _)| *name != "RecoverableInv";
        Self {
            clients: (1..=clients)
                .map(|c| Value::model(format!("c{c}")))
                .collect(),
            keys: keys as u8,
            leaves: LEAVES,
            leaf_slots: SLOTS,
            spaces: sizes.spaces,
            log_size: sizes.log_size,
            values: N::MAX - 1,
            absent: Value::model("Absent"),
            pending: Value::model("Pending"),
            slots: sizes.slots,
            fanout: sizes.slots - 1,
            t_node: sizes.t_node,
            t_split: sizes.t_split as u32,
            lows: vec![0],
            bug: Bug::None,
            to: [0; 3],
            deletes: 0,
            readers: 0,
            any_space: true,
            max_crashes: N::MAX,
            max_restarts: N::MAX,
            invariants: (INVARIANTS.iter().filter(no_enumeration))
                .map(|(name, _)| *name)
                .collect(),
        }
    }

    /// The first state.
    #[must_use]
    pub fn first(&self) -> State {
        self.initial()
    }

    /// The next life has nodes of so many slots.
    pub fn opens_with(&mut self, slots: usize) {
        (self.slots, self.fanout) = (slots, slots - 1);
    }

    /// What may happen next, other than a call or an end.
    #[must_use]
    pub fn steps(&self, s: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        let calling = self
            .clients()
            .filter(|c| s.call[usize::from(*c)] != Call::Idle);
        calling.for_each(|c| self.client_steps(s, c, &mut actions));
        for n in 0..s.nodes.len() {
            self.node_steps(s, n, &mut actions);
        }
        if !s.phase.is_up() {
            self.replay_steps(s, &mut actions);
        }
        actions
    }

    /// Takes an action if it is enabled. Returns whether it was.
    #[must_use]
    pub fn try_take(&self, s: &mut State, action: Action) -> bool {
        let enabled = self.steps(s).contains(&action);
        if enabled {
            self.take(s, action);
        }
        enabled
    }

    /// `CallGet`, of any key.
    #[must_use]
    pub fn calls_get(&self, s: &mut State, c: usize, key: u8) -> bool {
        let free = s.phase.is_up() && s.call[c] == Call::Idle;
        s.call[c] = Call::Get { key, got: PENDING };
        free
    }

    /// `CallWrite`, of any value.
    #[must_use]
    pub fn calls_write(&self, s: &mut State, c: usize, key: u8, value: Content) -> bool {
        let free = s.phase.is_up() && s.call[c] == Call::Idle;
        s.call[c] = Call::Write {
            key,
            value,
            step: Step::Called,
            space: 0,
        };
        free
    }

    /// `ReadKey` at an earlier time, when the key had this value.
    pub fn has_read(&self, s: &mut State, c: usize, value: Content) {
        if let Call::Get { got, .. } = &mut s.call[c] {
            *got = value;
        }
    }

    /// What `ReadKey` of an outstanding get would read now.
    #[must_use]
    pub fn would_read(&self, s: &State, c: usize) -> Option<Content> {
        match s.call[c] {
            Call::Get { key, got: PENDING } if s.nodes[s.node_of(key)].lock == Lock::Free => {
                Some(s.lookup(key))
            }
            _ => None,
        }
    }

    /// `OpenLog`, in any free space. `shared` says whether clients share partitions: then the log
    /// before may have room that is reserved.
    #[must_use]
    pub fn opens_log(&self, s: &mut State, c: u8, (space, shared): (usize, bool)) -> bool {
        let free = s.phase.is_up()
            && s.is_waiting(c.into())
            && (shared || self.current(s, c).is_none())
            && self.free_spaces(s).contains(&space);
        self.take(s, Action::OpenLog(c, space as u8));
        free
    }

    /// Lets two entries of a log change places, which no step depends on.
    pub fn swaps(&self, s: &mut State, space: usize, places: (usize, usize)) {
        s.log[space].swap(places.0, places.1);
    }

    /// `AppendEntry` to this log. A pair of the key may be in the buffer: it then need not wait for
    /// the flush of a full one. Returns whether the spec would wait, or why the step cannot be.
    ///
    /// # Errors
    /// The log is full, or the node is locked or full.
    pub fn appends(&self, s: &mut State, c: u8, space: usize) -> Result<bool, String> {
        let Call::Write { key, .. } = s.call[usize::from(c)] else {
            return Err("the client does not write".into());
        };
        let node = &s.nodes[s.node_of(key)];
        let log = &s.versions[space];
        if !s.phase.is_up() || !s.is_waiting(c.into()) {
            return Err("the write is not waiting for its entry".into());
        }
        if log.valid == 0 || usize::from(log.used) >= self.log_size {
            return Err(format!("log {space} is not open, or is full"));
        }
        let again = node.in_buffer(key).is_some();
        if node.lock != Lock::Free || self.must_split(node) || self.is_full(node) && !again {
            return Err("AppendEntry is not enabled: the node is locked, or is full".into());
        }
        let waits = !self.is_open(node);
        self.append_to(s, c, space);
        Ok(waits)
    }

    /// The log, the entry and the pair of a client's write.
    #[must_use]
    pub fn entry_of(&self, s: &State, c: u8) -> Option<(usize, usize)> {
        in_flight(s, c).map(|(space, i, _)| (space, i))
    }

    /// The clients, in the order of the numbers of their entries: the last of a key counts.
    #[must_use]
    pub fn in_order(&self, s: &State, clients: u8) -> Vec<u8> {
        let mut all: Vec<u8> = (0..clients).collect();
        all.sort_by_key(|c| {
            in_flight(s, *c).map(|(space, i, _)| s.log[space][i].now().meta.number)
        });
        all
    }

    /// Whether a client's entry is stored and not known to be persistent.
    #[must_use]
    pub fn is_appended(&self, s: &State, c: u8) -> bool {
        is_appended(s, c)
    }

    /// The next entry gets this number.
    pub fn draws(&self, s: &mut State, number: N) {
        s.clock = number;
    }

    /// The entries after that get numbers from this one on, or after the last.
    pub fn draws_after(&self, s: &mut State, number: N) {
        s.clock = s.clock.max(number);
    }

    /// Whether an entry or a leaf has this number.
    #[must_use]
    pub fn is_used(&self, s: &State, number: N) -> bool {
        let stamped = |leaf: &LeafWords| leaf.header.newest().stamp == number;
        let mut entries = self.entries();
        entries.any(|at| s.entry_at(at).meta.number == number) || s.leaf.iter().any(stamped)
    }

    /// Not a step of the spec: a write whose entry was never stored is forgotten.
    pub fn forgets_write(&self, s: &mut State, c: u8) {
        if let Call::Write { space, .. } = s.call[usize::from(c)] {
            s.versions[usize::from(space) - 1].valid -= 1;
        }
        s.call[usize::from(c)] = Call::Idle;
    }

    /// Not a step of the spec: an entry that nobody needs is emptied.
    pub fn empties(&self, s: &mut State, (space, i): (usize, usize)) {
        s.log[space][i] = EntryWords::durably(&Entry::default());
    }

    /// `StartFlush` to these leaves. Returns whether the spec would flush now, and to these; or
    /// why the step cannot be.
    ///
    /// # Errors
    /// The node is locked, or a flush may not go to these leaves.
    pub fn starts_flush(&self, s: &mut State, n: usize, todo: &[u8]) -> Result<bool, String> {
        let node = &s.nodes[n];
        let again = node.lock == Lock::Flushing && node.at == At::Idle;
        if node.lock != Lock::Free && !again {
            return Err(format!(
                "StartFlush is not enabled: {:?} has the lock",
                node.lock
            ));
        }
        let wanted = |l: &u8| {
            let mut leaves = node.buffer.iter().map(|pair| node.leaf_of(pair.key));
            leaves.any(|of| of == *l)
        };
        let once = |l: &u8| todo.iter().filter(|other| *other == l).count() == 1;
        if todo.is_empty() || !todo.iter().all(|l| wanted(l) && once(l)) {
            return Err(format!("a flush to {todo:?} has nothing to do"));
        }
        let splits = todo.iter().any(|l| self.splits(s, node, *l));
        if todo.len() > self.t_node || splits && todo.len() > 1 {
            return Err(format!(
                "a flush does not go to {todo:?}, or splits among others"
            ));
        }
        let due = !self.must_split(node) && (self.is_full(node) || self.is_squeezed(s));
        let todo: Row<u8, LEAVES> = todo.iter().copied().collect();
        let alike = due && todo == self.targets(s, node);
        self.start_flush_to(s, n, todo);
        Ok(alike)
    }

    /// Whether these are all of some pairs, each in a slot of its own that is free.
    fn fit(&self, free: Set, pairs: &[Pair], slots: &[InSlot]) -> Result<Set, String> {
        let mut taken = 0;
        for (i, _) in slots {
            if (free & !taken) >> i & 1 == 0 {
                return Err(format!("slot {i} is not free"));
            }
            taken |= 1 << i;
        }
        let mut told: Vec<Pair> = slots.iter().map(|(_, pair)| *pair).collect();
        told.sort_unstable_by_key(|pair| pair.key);
        if told != pairs {
            return Err(format!("{told:?} are stored, and not {pairs:?}"));
        }
        Ok(taken)
    }

    fn free_slots(&self, header: Header) -> Set {
        self.free_in(header).fold(0, |set, i| set | 1 << i)
    }

    /// `WritePairs`, to these slots. Returns the slots, and whether the spec would split the leaf
    /// once more.
    ///
    /// # Errors
    /// These are not the pairs for the leaf, or the slots are not free.
    pub fn writes_pairs(
        &self,
        s: &mut State,
        n: usize,
        slots: &[InSlot],
    ) -> Result<(Set, bool), String> {
        let node = s.nodes[n];
        if !matches!(node.at, At::Idle | At::Cleared) || node.todo.is_empty() {
            return Err(format!("WritePairs is not enabled at {:?}", node.at));
        }
        let (l, words, group) = self.under_way(s, n);
        if !self.has_room(s, &node, l) {
            return Err("the leaf has too few empty slots".into());
        }
        let splits = node.at == At::Idle && self.splits(s, &node, l);
        let taken = self.fit(self.free_slots(words.header), &puts(&group), slots)?;
        self.write_pairs_to(s, n, slots);
        Ok((taken, splits))
    }

    /// `SetBitmap`, of these slots.
    #[must_use]
    pub fn sets_bitmap(&self, s: &mut State, n: usize, filled: Set) -> bool {
        let free = s.nodes[n].at == At::Written;
        if free {
            self.set_bits(s, n, filled);
        }
        free
    }

    /// `PrepareLeaf`: this leaf, with these pairs. Returns whether the spec splits at the same key.
    ///
    /// # Errors
    /// The leaf is not to be split, or these are not the pairs from `low` on.
    pub fn prepares_leaf(
        &self,
        s: &mut State,
        n: usize,
        ((new, low), slots): ((u8, u8), &[InSlot]),
    ) -> Result<bool, String> {
        let node = s.nodes[n];
        let Some(&l) = node.todo.first() else {
            return Err("PrepareLeaf is not enabled: no flush is under way".into());
        };
        if node.at != At::Idle || !self.splits(s, &node, l) {
            return Err("PrepareLeaf is not enabled: the leaf need not be split".into());
        }
        if s.node_with(new).is_some() {
            return Err(format!("leaf {new} is in use"));
        }
        let keys = self.keys_after(s, &node, l);
        if keys >> low & 1 == 0 || keys & !from(low) == 0 {
            return Err(format!(
                "a leaf with the keys {keys:b} is not split at {low}"
            ));
        }
        self.fit(Set::MAX, &self.moving(s, n, low), slots)?;
        self.prepare_leaf_as(s, n, (new, low), slots);
        let half = keys.count_ones() / 2;
        Ok((keys & !from(low)).count_ones() == half)
    }

    /// `SplitNode` before the leaf `at`, counted from 0.
    pub fn splits_node(&self, s: &mut State, n: usize, at: usize) -> bool {
        let must = s.nodes[n].lock == Lock::Free && self.must_split(&s.nodes[n]);
        self.split_node(s, n, at);
        must
    }

    /// The entries to replay, each with its number and its key.
    #[must_use]
    pub fn replayable(&self, s: &State) -> Vec<((usize, usize), N, u8)> {
        let all = self.to_replay(s).into_iter();
        all.map(|at| (at, s.entry_at(at).meta.number, s.entry_at(at).pair.key))
            .collect()
    }

    /// `ReplayEntry`. Returns whether the spec would have to flush before.
    ///
    /// # Errors
    /// Another entry of the node is next, or the node is locked or full.
    pub fn replays(&self, s: &mut State, at: (usize, usize)) -> Result<bool, String> {
        let all = self.replayable(s);
        let Some((_, number, key)) = all.iter().find(|(there, ..)| *there == at) else {
            return Err("the leaf has this entry already, or it was replayed".into());
        };
        let n = s.node_of(*key);
        let earlier = |(_, other, key): &&(_, N, u8)| s.node_of(*key) == n && other < number;
        if let Some((_, earlier, _)) = all.iter().find(earlier) {
            return Err(format!("entry {earlier} of the node is before {number}"));
        }
        let node = &s.nodes[n];
        let again = node.in_buffer(*key).is_some();
        if node.lock != Lock::Free || self.must_split(node) || self.is_full(node) && !again {
            return Err("ReplayEntry is not enabled: the node is locked, or is full".into());
        }
        let waits = !self.is_open(node);
        self.replay_entry(s, at);
        Ok(waits)
    }

    /// Not a step of the spec: an entry below the log floor is not replayed. Returns whether a
    /// later entry of its key is.
    #[must_use]
    pub fn passes_over(&self, s: &mut State, at: (usize, usize)) -> bool {
        let all = self.replayable(s);
        let this = all.iter().find(|(there, ..)| *there == at);
        let later = this.is_some_and(|(_, number, key)| {
            let mut others = all.iter();
            others.any(|(_, other, of)| of == key && other > number)
        });
        s.replayed.add(self.nth(at));
        later
    }

    /// `Crash`, which leaves these versions of the words.
    pub fn crashes(&self, s: &mut State, version: impl Fn(Is) -> usize) {
        let (leaves, entries) = self.left(s, &version);
        self.start_over(s, &self.found(&leaves), entries, Phase::Cut);
    }

    fn left(&self, s: &State, version: &impl Fn(Is) -> usize) -> (Leaves, Log) {
        let leaf = |l: usize| {
            let (words, l) = (&s.leaf[l], l as u8 + 1);
            Leaf {
                header: pick(&words.header, version(Is::Header(l))),
                low: pick(&words.low, version(Is::Low(l))),
                next: [0, 1].map(|n| pick(&words.next[n], version(Is::Next(l, n)))),
                slots: std::array::from_fn(|i| pick(&words.slots[i], version(Is::Slot(l, i)))),
            }
        };
        let entry = |space: usize, i: usize| Entry {
            pair: pick(&s.log[space][i].pair, version(Is::Pair(space, i))),
            meta: pick(&s.log[space][i].meta, version(Is::Meta(space, i))),
        };
        (
            std::array::from_fn(leaf),
            std::array::from_fn(|space| std::array::from_fn(|i| entry(space, i))),
        )
    }

    /// `RecoverableInv` for one outcome of a crash, in which each word has this version. An entry
    /// that is not fenced must not be whole.
    #[must_use]
    pub fn recovers_from(&self, s: &State, version: impl Fn(Is) -> usize) -> bool {
        let (leaves, entries) = self.left(s, &version);
        self.recovered(s, &self.found(&leaves), &entries) == s.kept
    }

    /// `Restart`, whatever is in progress. No write has an entry in doubt.
    pub fn restarts(&self, s: &mut State) {
        self.take(s, Action::Restart);
    }

    /// Not a step of the spec: the versions of a word after this one were never stored. Returns
    /// whether there are any.
    pub fn goes_back(&self, s: &mut State, is: Is, version: usize) -> bool {
        let there = version + 1 < s.count(is);
        let leaf = |l: u8| place(l);
        match is {
            _ if !there => {}
            Is::Header(l) => cut(&mut s.leaf[leaf(l)].header, version),
            Is::Low(l) => cut(&mut s.leaf[leaf(l)].low, version),
            Is::Next(l, n) => cut(&mut s.leaf[leaf(l)].next[n], version),
            Is::Slot(l, i) => cut(&mut s.leaf[leaf(l)].slots[i], version),
            Is::Pair(space, i) => cut(&mut s.log[space][i].pair, version),
            Is::Meta(space, i) => cut(&mut s.log[space][i].meta, version),
        }
        there
    }

    /// Not a step of the spec: the pairs of a leaf are stored in its left neighbour.
    ///
    /// # Errors
    /// The two are not neighbours in one node, something is buffered for one of them, or these are
    /// not the pairs.
    pub fn moves_pairs(
        &self,
        s: &mut State,
        (right, left): (u8, u8),
        slots: &[InSlot],
    ) -> Result<Set, String> {
        let n = s.node_with(left).ok_or("the left leaf is in no node")?;
        let node = s.nodes[n];
        let at = node.index.iter().position(|fence| fence.leaf == left);
        let behind = at.and_then(|at| node.index.get(at + 1));
        if behind.is_none_or(|fence| fence.leaf != right) || node.lock != Lock::Free {
            return Err(format!(
                "{left} and {right} are no neighbours in one free node"
            ));
        }
        let waits = |key: u8| [left, right].contains(&leaf_at(&node.index, key));
        if node.buffer.iter().any(|pair| waits(pair.key)) {
            return Err("something is buffered for a leaf that is merged".into());
        }
        let (words, from) = (s.leaf_now(left), s.leaf_now(right));
        let mut pairs: Vec<Pair> = from.pairs().collect();
        pairs.sort_unstable_by_key(|pair| pair.key);
        let taken = self.fit(self.free_slots(words.header), &pairs, slots)?;
        for (i, pair) in slots {
            s.leaf[place(left)].slots[*i].push(*pair);
        }
        let spare = 1 - usize::from(words.header.use_n);
        let next = from.next[usize::from(from.header.use_n)];
        s.leaf[place(left)].next[spare].push(next);
        let node = &mut s.nodes[n];
        (node.lock, node.at) = (Lock::Flushing, At::Prepared);
        node.todo = [left].into_iter().collect();
        Ok(taken)
    }

    /// Not a step of the spec: the header of the left neighbour makes the merge valid.
    #[must_use]
    pub fn links_past(&self, s: &mut State, (right, left): (u8, u8), filled: Set) -> bool {
        let Some(n) = s.node_with(left) else {
            return false;
        };
        let free = s.nodes[n].at == At::Prepared && s.nodes[n].fresh == 0;
        let stamp = s.leaf_now(right).header.stamp;
        let words = &mut s.leaf[place(left)];
        words.fence();
        let header = words.header.newest();
        words.header.push(Header {
            bits: header.bits | filled,
            use_n: 1 - header.use_n,
            stamp: header.stamp.max(stamp),
        });
        s.nodes[n].at = At::Switched;
        free
    }

    /// Not a step of the spec: the right leaf is merged into the left one.
    #[must_use]
    pub fn leaves_merged(&self, s: &mut State, (right, left): (u8, u8)) -> bool {
        let Some(n) = s.node_with(left) else {
            return false;
        };
        let free = s.nodes[n].at == At::Switched && s.nodes[n].fresh == 0;
        s.leaf[place(left)] = LeafWords::durably(&s.leaf_now(left).tidied());
        let node = &mut s.nodes[n];
        node.index.retain(|fence| fence.leaf != right);
        (node.lock, node.at, node.todo) = (Lock::Free, At::Idle, Row::default());
        free
    }

    /// Not a step of the spec: a node takes over its right neighbour.
    #[must_use]
    pub fn nodes_merged(&self, s: &mut State, n: usize) -> bool {
        let Some(right) = s.nodes.get(n + 1).copied() else {
            return false;
        };
        let left = s.nodes[n];
        let free = left.lock == Lock::Free && right.lock == Lock::Free;
        let index = left.index.iter().chain(right.index.iter()).copied();
        let buffer = left.buffer.iter().chain(right.buffer.iter()).copied();
        s.nodes[n] = Node::new(index, buffer);
        s.nodes = (s.nodes.iter().enumerate())
            .filter(|(at, _)| *at != n + 1)
            .map(|(_, node)| *node)
            .collect();
        free
    }
}
