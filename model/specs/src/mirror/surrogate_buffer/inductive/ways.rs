//! What a stage gives to its variables, in the order in which one depends on the other.

use super::super::constants::{Bug, SurrogateBuffer};
use super::super::row::Row;
use super::super::state::Version;
use super::super::state::{Buffered, CLIENTS, Call, Lock, Node, PENDING, State, Step};
use super::super::words::{Content, Entry, EntryWords, Fence, Header, KEYS, LEAVES};
use super::super::words::{LeafWords, Meta, N, Pair, Replayed, SPACES, Word, place};
use super::conjuncts::{Flight, range};
use super::scrambled::scrambled;
use crate::inductive::Plan;
use crate::mirror::Phase;

/// What a stage gives to its variables.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // Few live at once, and a box would cost each of them more.
pub enum Way {
    /// Whether the store is up.
    Life(Phase),
    /// The leaves of each node.
    Shape(Vec<Vec<Fence>>),
    /// What is known of a log, but for its count.
    Version(Version),
    /// A client's call.
    Call(Call),
    /// The words of an entry.
    Entry(EntryWords),
    /// The entries that are replayed.
    Replayed(Replayed),
    /// A leaf's header without bits, and the pointer that is not in use.
    Header(Header, u8),
    /// A pair of a leaf, and whether its bit is set.
    Slot(Pair, bool),
    /// The buffer of a node.
    Buffer(Row<Buffered, KEYS>),
    /// The node, and the words of all leaves.
    Flush(Box<(Node, [LeafWords; LEAVES])>),
    /// There is no such node.
    Nothing,
    /// What follows from the rest.
    End(Box<End>),
}

/// What follows from the rest.
#[derive(Clone, Debug)]
pub struct End {
    pub(super) clock: N,
    pub(super) version: N,
    pub(super) kept: [Content; KEYS],
    pub(super) valid: [u8; SPACES],
}

impl Way {
    pub(super) fn lives() -> Vec<Self> {
        let all = [Phase::Up, Phase::Cut, Phase::Killed];
        all.into_iter().map(Self::Life).collect()
    }
}

/// All sequences of up to `most` different items.
fn sequences<T: Copy + PartialEq>(items: &[T], most: usize) -> Vec<Vec<T>> {
    let (mut all, mut last) = (vec![Vec::new()], vec![Vec::new()]);
    for _ in 0..most {
        last = last
            .iter()
            .flat_map(|before: &Vec<T>| {
                let rest = items.iter().filter(|item| !before.contains(item));
                rest.map(|item| before.iter().chain([item]).copied().collect())
            })
            .collect();
        all.extend(last.iter().cloned());
    }
    all
}

/// All ways to cut a row in parts that are not empty.
fn partitions<T: Clone>(row: &[T]) -> Vec<Vec<Vec<T>>> {
    let cuts = row.len() - 1;
    let parts = |cut: usize| {
        row.iter()
            .enumerate()
            .fold(Vec::new(), |mut parts: Vec<Vec<T>>, (i, item)| {
                match parts.last_mut() {
                    Some(last) if cut >> (i - 1) & 1 == 0 => last.push(item.clone()),
                    _ => parts.push(vec![item.clone()]),
                }
                parts
            })
    };
    (0..1 << cuts).map(parts).collect()
}

impl SurrogateBuffer {
    fn contents(&self) -> Vec<Content> {
        (0..=self.values).collect()
    }

    fn pairs(&self) -> Vec<Pair> {
        let pair = |key| (0..=self.values).map(move |value| Pair { key, value });
        self.keys().flat_map(pair).collect()
    }

    fn whole_entries(&self) -> Vec<Entry> {
        let of = |pair: &Pair| {
            let pair = *pair;
            (1..=self.values).map(move |number| Entry::new(pair, number))
        };
        self.pairs().iter().flat_map(of).collect()
    }

    /// Entries whose words are of different writes.
    fn torn_entries(&self) -> Vec<Entry> {
        let whole = self.whole_entries();
        let metas: Vec<Meta> = whole.iter().map(|entry| entry.meta).collect();
        let pairs = self.pairs().into_iter().chain([Pair::default()]);
        let torn = pairs.flat_map(|pair| metas.iter().map(move |&meta| Entry { pair, meta }));
        torn.filter(|entry| entry.meta.sum != entry.pair).collect()
    }

    /// Leaves in a row, the first of which is leaf 1.
    pub(super) fn shapes(&self, plan: &Plan) -> Vec<Way> {
        let any = plan.is_without("RowInv");
        let others: Vec<u8> = (2..=self.leaves as u8).collect();
        let lows: Vec<u8> = self.keys().collect();
        let mut all = Vec::new();
        for leaves in sequences(&others, others.len()) {
            for lows in sequences(&lows, leaves.len()) {
                if lows.len() != leaves.len() || !any && !lows.is_sorted() {
                    continue;
                }
                let fences = lows.iter().zip(&leaves);
                let fences = fences.map(|(&low, &leaf)| Fence { low, leaf });
                let row: Vec<Fence> = [Fence { low: 0, leaf: 1 }]
                    .into_iter()
                    .chain(fences)
                    .collect();
                all.extend(partitions(&row).into_iter().map(Way::Shape));
            }
        }
        all
    }

    /// Nodes with these leaves, whose range is known to them and to the leaves.
    pub(super) fn grow_shape(&self, s: &mut State, nodes: &[Vec<Fence>]) {
        let nodes = nodes
            .iter()
            .map(|index| Node::new(index.iter().copied(), []));
        s.nodes = nodes.collect();
        let row: Vec<Fence> = s
            .nodes
            .iter()
            .flat_map(|n| n.index.iter().copied())
            .collect();
        s.leaf = self.initial().leaf;
        for (i, fence) in row.iter().enumerate() {
            let words = &mut s.leaf[place(fence.leaf)];
            words.low = Word::durably(fence.low);
            words.next[0] = Word::durably(row.get(i + 1).map_or(0, |next| next.leaf));
        }
    }

    pub(super) fn typed_versions(&self, s: &State, space: usize, plan: &Plan) -> Vec<Way> {
        let known = |version: N| s.versions[..space].iter().any(|v| v.version == version);
        let numbers = 1..=self.spaces as N + 1;
        let numbers = numbers.filter(|n| plan.is_without("VersionInv") || !known(*n));
        let old = !s.phase.is_up() && !plan.is_without("PhaseInv");
        let owners: Vec<Option<u8>> = [None].into_iter().chain(self.clients().map(Some)).collect();
        let mut all = Vec::new();
        for version in numbers {
            for owner in owners.iter().filter(|owner| !old || owner.is_none()) {
                for used in 0..=self.log_size as u8 {
                    let valid = 0;
                    let owner = *owner;
                    if !old || usize::from(used) == self.log_size {
                        all.push(Way::Version(Version {
                            version,
                            owner,
                            used,
                            valid,
                        }));
                    }
                }
            }
        }
        all
    }

    pub(super) fn typed_calls(&self, s: &State, plan: &Plan) -> Vec<Way> {
        if !s.phase.is_up() && !plan.is_without("PhaseInv") {
            return vec![Way::Call(Call::Idle)];
        }
        let mut all = vec![Call::Idle];
        for key in self.keys() {
            let got = self.contents().into_iter().chain([PENDING]);
            all.extend(got.map(|got| Call::Get { key, got }));
        }
        for Pair { key, value } in self.pairs() {
            for space in 0..=self.spaces as u8 {
                for step in [Step::Called, Step::Appended, Step::Durable, Step::Done] {
                    all.push(Call::Write {
                        key,
                        value,
                        step,
                        space,
                    });
                }
            }
        }
        all.into_iter().map(Way::Call).collect()
    }

    pub(super) fn typed_entries(&self, s: &State, at: (usize, usize), plan: &Plan) -> Vec<Way> {
        let any = plan.is_without("EntryInv");
        let mut before = vec![Entry::default()];
        before.extend(self.whole_entries());
        if any {
            before.extend(self.torn_entries());
        }
        let one = |entry: &Entry| EntryWords::durably(entry);
        let flights: Vec<Flight> = self.clients().filter_map(|c| Flight::of(s, c)).collect();
        let Some(own) = flights.iter().find(|flight| flight.entry(s) == Some(at)) else {
            return before.iter().map(|entry| Way::Entry(one(entry))).collect();
        };
        let now = (1..=self.values).map(|number| Entry::new(own.pair, number));
        if own.is_durable {
            return now.map(|entry| Way::Entry(one(&entry))).collect();
        }
        let both = |entry: Entry| {
            let stored = move |old: &Entry| {
                let mut words = EntryWords::durably(old);
                words.store(&entry);
                Way::Entry(words)
            };
            before.iter().map(stored).collect::<Vec<Way>>()
        };
        now.flat_map(both).collect()
    }

    pub(super) fn typed_replayed(&self, s: &State, plan: &Plan) -> Vec<Way> {
        let entries = self.spaces * self.log_size;
        let some = !s.phase.is_up() || plan.is_without("PhaseInv");
        let sets = 0..if some { 1_u32 << entries } else { 1 };
        let set = |set: u32| {
            let mut replayed = Replayed::default();
            let members = (0..entries).filter(|entry| set >> entry & 1 == 1);
            members.for_each(|entry| replayed.add(entry));
            Way::Replayed(replayed)
        };
        sets.map(set).collect()
    }

    pub(super) fn headers(&self) -> Vec<Way> {
        let mut all = Vec::new();
        for stamp in 0..=self.values {
            for use_n in 0..=1 {
                let header = Header {
                    bits: 0,
                    use_n,
                    stamp,
                };
                all.extend((0..=self.leaves as u8).map(|spare| Way::Header(header, spare)));
            }
        }
        all
    }

    /// Pairs of a slot: those of the leaf's range if its bit is set, or all.
    pub(super) fn slots_of(&self, s: &State, l: usize, plan: &Plan) -> Vec<Way> {
        let any = plan.is_without("RangeInv");
        let range = range(s, l as u8 + 1).filter(|_| !any);
        let keys = s.leaf[l].now().keys();
        let right = |pair: &Pair| range.is_none_or(|range| (range & !keys) >> pair.key & 1 == 1);
        let pairs = self.pairs();
        let set = pairs
            .iter()
            .filter(|pair| right(pair))
            .map(|pair| Way::Slot(*pair, true));
        let clear = pairs.iter().map(|pair| Way::Slot(*pair, false));
        let nothing = Way::Slot(Pair::default(), false);
        set.chain(clear).chain([nothing]).collect()
    }

    /// Buffers of entries in the log.
    pub(super) fn buffers(&self, s: &State, n: usize, plan: &Plan) -> Vec<Way> {
        if n >= s.nodes.len() {
            return vec![Way::Nothing];
        }
        let any = plan.is_without("PlacedInv");
        let foreign = plan.is_without("SpaceInv");
        let mut all: Vec<Vec<Buffered>> = vec![Vec::new()];
        let least = s.nodes[n].index[0].low;
        let may = |key: &u8| s.node_of(*key) == n || foreign && *key >= least;
        for key in self.keys().filter(may) {
            let of_key = |at: &(usize, usize)| {
                let entry = s.entry_at(*at);
                let used = at.1 < usize::from(s.versions[at.0].used);
                let placed = used && !s.log[at.0][at.1].is_unfenced();
                entry.pair.key == key && entry.meta.number > 0 && (any || placed)
            };
            let pair = |(space, i): (usize, usize)| {
                let entry = s.log[space][i].now();
                Buffered {
                    key,
                    value: entry.pair.value,
                    number: entry.meta.number,
                    version: s.versions[space].version,
                }
            };
            let pairs: Vec<Buffered> = self.entries().filter(of_key).map(pair).collect();
            let with = |before: &Vec<Buffered>| {
                let before = before.clone();
                let more = pairs
                    .iter()
                    .map(move |pair| [&before[..], &[*pair]].concat());
                more.collect::<Vec<_>>()
            };
            all.extend(all.iter().flat_map(with).collect::<Vec<_>>());
        }
        let orders = |pairs: Vec<Buffered>| {
            let len = pairs.len();
            let orders = sequences(&pairs, len).into_iter();
            orders.filter(move |order| order.len() == len)
        };
        let row = |order: Vec<Buffered>| Way::Buffer(order.into_iter().collect());
        all.into_iter().flat_map(orders).map(row).collect()
    }

    /// The node with its lock, and the words that its flush is changing.
    pub(super) fn flushes(&self, s: &State, n: usize, plan: &Plan) -> Vec<Way> {
        let Some(node) = s.nodes.get(n) else {
            return vec![Way::Nothing];
        };
        let mut all = vec![(*node, s.leaf)];
        for todo in self.typed_todo(node, plan) {
            let mut flushing = *s;
            let node = &mut flushing.nodes[n];
            (node.lock, node.todo) = (Lock::Flushing, todo);
            all.extend(self.steps_of(&flushing, n));
        }
        let holders = (0..CLIENTS as u8).filter(|c| Flight::of(s, *c).is_some());
        let held = holders.map(|c| {
            (
                Node {
                    lock: Lock::Client(c),
                    ..*node
                },
                s.leaf,
            )
        });
        let held: Vec<_> = held.collect();
        all.extend(held);
        if plan.is_without("LockInv") {
            let wrong = |(node, leaf): &(Node, [LeafWords; LEAVES])| {
                let lock = if node.lock == Lock::Free {
                    Lock::Flushing
                } else {
                    Lock::Free
                };
                (Node { lock, ..*node }, *leaf)
            };
            let wrong: Vec<_> = all.iter().map(wrong).collect();
            all.extend(wrong);
        }
        let mut more = Vec::new();
        for (node, leaf) in &all {
            more.extend(scrambled(self, node, leaf, plan));
        }
        all.extend(more);
        all.into_iter()
            .map(|way| Way::Flush(Box::new(way)))
            .collect()
    }

    /// Leaves for which pairs are buffered.
    fn typed_todo(&self, node: &Node, plan: &Plan) -> Vec<Row<u8, LEAVES>> {
        let any = plan.is_without("TodoInv");
        let wanted = |l: &u8| any || node.buffer.iter().any(|pair| node.leaf_of(pair.key) == *l);
        let leaves = node.index.iter().map(|fence| fence.leaf).filter(wanted);
        let leaves: Vec<u8> = leaves.collect();
        let most = if any { leaves.len() } else { self.t_node };
        let all = sequences(&leaves, most).into_iter();
        all.filter(|todo| !todo.is_empty())
            .map(|todo| todo.into_iter().collect())
            .collect()
    }

    /// What the steps of a flush make of the words, by the protocol without a bug.
    fn steps_of(&self, s: &State, n: usize) -> Vec<(Node, [LeafWords; LEAVES])> {
        let clean = Self {
            bug: Bug::None,
            ..self.clone()
        };
        let node = &s.nodes[n];
        let l = node.todo[0];
        let mut all = vec![(*node, s.leaf)];
        let mut keep = |s: &State| all.push((s.nodes[n], s.leaf));
        let mut merge = |s: &State| {
            let mut next = *s;
            clean.write_pairs(&mut next, n);
            keep(&next);
            clean.set_bitmap(&mut next, n);
            keep(&next);
        };
        if !clean.splits(s, node, l) {
            if clean.has_room(s, node, l) {
                merge(s);
                return all;
            }
            let mut cleared = *s;
            clean.clear_slots(&mut cleared, n);
            merge(&cleared);
            all.push((cleared.nodes[n], cleared.leaf));
            return all;
        }
        let keys = clean.keys_after(s, node, l);
        let Some(low) = clean
            .separator(s, node, l)
            .filter(|_| keys.count_ones() > 1)
        else {
            return all;
        };
        let used =
            |fresh: u8| range(s, fresh).is_some() || s.nodes.iter().any(|o| o.fresh == fresh);
        for fresh in (1..=self.leaves as u8).filter(|fresh| !used(*fresh)) {
            let mut next = *s;
            let slots: Vec<(usize, Pair)> = (0..).zip(clean.moving(s, n, low)).collect();
            clean.prepare_leaf_as(&mut next, n, (fresh, low), &slots);
            all.push((next.nodes[n], next.leaf));
            clean.link_leaf(&mut next, n);
            all.push((next.nodes[n], next.leaf));
            clean.switch_sibling(&mut next, n);
            all.push((next.nodes[n], next.leaf));
        }
        all
    }

    /// What follows from the rest: counts, the clock, the map.
    pub(super) fn ends(&self, s: &State, plan: &Plan) -> Vec<Way> {
        let greatest = self.greatest_number(s);
        let clocks: Vec<N> = match plan.is_without("NumberInv") {
            true => (1..=self.values + 1).collect(),
            false => (greatest + 1..=self.values.max(greatest) + 1).collect(),
        };
        let newest = s.versions.iter().map(|v| v.version).max().unwrap_or(0);
        let versions: Vec<N> = match plan.is_without("VersionInv") {
            true => (1..=newest).collect(),
            false => vec![newest, newest + 1],
        };
        let leaves = self.found(&s.leaf.map(|leaf| leaf.before()));
        let entries = s.log.map(|log| log.map(|words| words.before()));
        let mut maps = vec![self.recovered(s, &leaves, &entries)];
        if plan.is_without("RecoverableInv") {
            for key in 0..usize::from(self.keys) {
                let other = |value: Content| {
                    let mut map = maps[0];
                    map[key] = value;
                    map
                };
                let others: Vec<_> = self.contents().into_iter().map(other).collect();
                maps.extend(others);
            }
        }
        let counts = self.counts(s, plan);
        let mut all = Vec::new();
        for clock in clocks {
            for &version in &versions {
                for kept in &maps {
                    let end = |valid: &[u8; SPACES]| End {
                        clock,
                        version,
                        kept: *kept,
                        valid: *valid,
                    };
                    all.extend(counts.iter().map(|valid| Way::End(Box::new(end(valid)))));
                }
            }
        }
        all
    }

    fn greatest_number(&self, s: &State) -> N {
        let logged = self.entries().map(|at| s.entry_at(at).meta.number);
        let indexed = s.nodes.iter().flat_map(|node| node.index.iter());
        let stamps = indexed.map(|fence| s.leaf_now(fence.leaf).header.stamp);
        logged.chain(stamps).max().unwrap_or(0)
    }

    /// By `CountInv`, the number of pairs that need each log.
    fn counts(&self, s: &State, plan: &Plan) -> Vec<[u8; SPACES]> {
        let right: [u8; SPACES] = std::array::from_fn(|space| {
            let version = s.versions[space];
            let buffered = s.nodes.iter().flat_map(|node| node.buffer.iter());
            let needed = buffered
                .filter(|pair| pair.version == version.version)
                .count();
            let mut flights = self.clients().filter_map(|c| Flight::of(s, c));
            let own = flights.any(|f| f.entry(s).is_some_and(|at| at.0 == space));
            let unused = self.log_size.saturating_sub(usize::from(version.used));
            if space < self.spaces {
                (unused + needed + usize::from(own)) as u8
            } else {
                0
            }
        });
        let mut all = vec![right];
        if plan.is_without("CountInv") {
            for space in 0..self.spaces {
                for valid in 0..=self.log_size as u8 {
                    let mut counts = right;
                    counts[space] = valid;
                    all.push(counts);
                }
            }
        }
        all
    }
}
