//! The invariants, by the names of the spec.

use super::constants::SurrogateBuffer;
use super::look::Is;
use super::state::{At, Buffered, Call, Lock, Node, PENDING, State, Step};
use super::words::{Content, Entry, Fence, Pair, at};

type Invariant = fn(&SurrogateBuffer, &State) -> bool;

pub(super) const INVARIANTS: [(&str, Invariant); 13] = [
    ("TypeInv", SurrogateBuffer::type_inv),
    ("NumberInv", SurrogateBuffer::number_inv),
    ("CountInv", SurrogateBuffer::count_inv),
    ("LogInv", SurrogateBuffer::log_inv),
    ("StampInv", SurrogateBuffer::stamp_inv),
    ("LeafInv", SurrogateBuffer::leaf_inv),
    ("IndexInv", SurrogateBuffer::index_inv),
    ("SpaceInv", SurrogateBuffer::space_inv),
    ("FlushInv", SurrogateBuffer::flush_inv),
    ("RoomInv", SurrogateBuffer::room_inv),
    ("DoubtInv", |_, s| Is::all().all(|is| s.count(is) <= 2)),
    ("RecoverableInv", SurrogateBuffer::is_recoverable),
    ("VisibleInv", SurrogateBuffer::visible_inv),
];

fn is_under_way(step: Step) -> bool {
    matches!(step, Step::Appended | Step::Durable)
}

/// All buffered pairs (`BufferedPairs`).
fn buffered_pairs(s: &State) -> impl Iterator<Item = &Buffered> {
    s.nodes.iter().flat_map(|node| node.buffer.iter())
}

impl SurrogateBuffer {
    /// Each value is in the set that its variable ranges over. Holds by construction, except for
    /// contents, keys and counts.
    fn type_inv(&self, s: &State) -> bool {
        let content = |value: Content| value <= self.values;
        let called = |call: &Call| match *call {
            Call::Idle => true,
            Call::Get { got, .. } => got == PENDING || content(got),
            Call::Write { value, .. } => content(value),
        };
        let pair = |pair: &Buffered| (1..=self.keys).contains(&pair.key) && content(pair.value);
        let counts = |count: u8| usize::from(count) <= self.log_size;
        let mut versions = s.versions.iter();
        s.call.iter().all(called)
            && buffered_pairs(s).all(pair)
            && versions.all(|version| counts(version.used) && counts(version.valid))
            && s.kept.iter().all(|value| content(*value))
    }

    pub(super) fn number_inv(&self, s: &State) -> bool {
        let logged = |at: (usize, usize)| s.entry_at(at).meta.number < s.clock;
        let stamped = |fence: &Fence| s.leaf_now(fence.leaf).header.stamp < s.clock;
        let mut nodes = s.nodes.iter();
        self.entries().all(logged) && nodes.all(|node| node.index.iter().all(stamped))
    }

    pub(super) fn count_inv(&self, s: &State) -> bool {
        (0..self.spaces).all(|space| {
            let version = s.versions[space];
            let needs = |pair: &&Buffered| pair.version == version.version;
            let writes = |call: &&Call| match **call {
                Call::Write {
                    step, space: at, ..
                } => usize::from(at) == space + 1 && is_under_way(step),
                _ => false,
            };
            let unused = self.log_size - usize::from(version.used);
            let needed = buffered_pairs(s).filter(needs).count();
            usize::from(version.valid) == unused + needed + s.call.iter().filter(writes).count()
        })
    }

    fn log_inv(&self, s: &State) -> bool {
        buffered_pairs(s).all(|pair| {
            let (key, value) = (pair.key, pair.value);
            let wanted = Entry::new(Pair { key, value }, pair.number);
            self.entries().any(|(space, i)| {
                let is_its = s.versions[space].version == pair.version;
                let words = &s.log[space][i];
                is_its && !words.is_unfenced() && words.now() == wanted
            })
        })
    }

    fn stamp_inv(&self, s: &State) -> bool {
        s.nodes.iter().all(|node| {
            let flushed = match node.todo.first() {
                Some(l) if node.at == At::Marked => self.group_of(node, *l),
                _ => Vec::new(),
            };
            node.buffer.iter().all(|pair| {
                let leaf = s.leaf_now(node.leaf_of(pair.key));
                pair.number > leaf.header.stamp || flushed.contains(pair)
            })
        })
    }

    fn leaf_inv(&self, s: &State) -> bool {
        let index = self.index_of(&s.leaves_now());
        let is_right = |(i, fence): (usize, &Fence)| {
            let words = s.leaf_now(fence.leaf);
            let keys = words.keys();
            let once = keys.count_ones() == words.header.bits.count_ones();
            once && words.pairs().all(|pair| at(&index, pair.key) == i + 1)
        };
        index.iter().enumerate().all(is_right)
    }

    fn index_inv(&self, s: &State) -> bool {
        let mut nodes = s.nodes.iter();
        if nodes.any(|node| node.at == At::Switched) {
            return true;
        }
        let known = s.nodes.iter().flat_map(|node| node.index.iter());
        known.eq(self.index_of(&s.leaves_now()).iter())
    }

    pub(super) fn space_inv(&self, s: &State) -> bool {
        s.nodes.iter().enumerate().all(|(n, node)| {
            let once = |pair: &Buffered| {
                let of_key = node.buffer.iter().filter(|other| other.key == pair.key);
                s.node_of(pair.key) == n && of_key.count() == 1
            };
            node.index.len() + node.buffer.len() <= self.slots && node.buffer.iter().all(once)
        })
    }

    fn flush_inv(&self, s: &State) -> bool {
        s.nodes.iter().all(|node| {
            let splits = matches!(node.at, At::Prepared | At::Linked | At::Switched);
            node.todo.len() <= self.t_node && (!splits || node.todo.len() == 1)
        })
    }

    fn room_inv(&self, s: &State) -> bool {
        let fits = |node: &Node| self.fits(s, node);
        s.nodes.iter().all(fits)
    }

    fn visible_inv(&self, s: &State) -> bool {
        let under_way = |key: u8| {
            let of_key = |call: &Call| matches!(*call, Call::Write { key: k, step, .. } if k == key && is_under_way(step));
            s.call.iter().any(of_key)
        };
        let shows = |key: u8| {
            let is_free = s.nodes[s.node_of(key)].lock == Lock::Free;
            !is_free || under_way(key) || s.lookup(key) == s.kept[usize::from(key) - 1]
        };
        !s.phase.is_up() || self.keys().all(shows)
    }
}
