//! The actions of `LeafCountFlush.tla`: the leaf count-based flush, the log-less split of a leaf,
//! the split of an inner node.
//!
//! All are taken under the lock of their node. [`SurrogateBuffer::node_steps`] contains the guards.

use super::Action;
use super::constants::{Bug, SurrogateBuffer};
use super::row::Row;
use super::state::{At, Buffered, Call, Lock, Node, State, Step};
use super::words::{ABSENT, Fence, Header, LEAVES, Leaf, LeafWords, N, Pair, Set};
use super::words::{at, members, place};

/// The keys of some pairs (`KeysOf`).
pub(super) fn keys_of(pairs: &[Buffered]) -> Set {
    pairs.iter().fold(0, |set, pair| set | 1 << pair.key)
}

/// `Puts`, in key order.
pub(super) fn puts(pairs: &[Buffered]) -> Vec<Pair> {
    let puts = pairs.iter().filter(|pair| pair.value != ABSENT);
    let mut puts: Vec<Pair> = puts
        .map(|p| Pair {
            key: p.key,
            value: p.value,
        })
        .collect();
    puts.sort_unstable_by_key(|pair| pair.key);
    puts
}

/// The greatest number of some pairs, which becomes a leaf's stamp (`Stamp`).
fn stamp(pairs: &[Buffered]) -> N {
    pairs.iter().map(|pair| pair.number).max().unwrap_or(0)
}

/// The set of keys from `low` on.
pub(super) fn from(low: u8) -> Set {
    Set::MAX << low
}

/// The smallest key of the upper half (`Separator`), of two keys or more: a leaf with fewer does
/// not exceed `t_split`.
pub(super) fn separator(keys: Set) -> u8 {
    let half = keys.count_ones() as usize / 2;
    members(keys).nth(half).unwrap_or(0) as u8
}

/// Finishes the first leaf of the flush (`NextLeaf`).
fn next_leaf(node: &mut Node) {
    node.todo = node.todo.iter().skip(1).copied().collect();
    if node.todo.is_empty() {
        node.lock = Lock::Free;
    }
}

/// Removes the flushed pairs from the node's buffer (`Without`).
fn without(node: &mut Node, pairs: &[Buffered]) {
    node.buffer.retain(|pair| !pairs.contains(pair));
    node.at = At::Idle;
}

impl SurrogateBuffer {
    pub(super) fn node_steps(&self, s: &State, n: usize, actions: &mut Vec<Action>) {
        let (node, number) = (&s.nodes[n], n as u8);
        if node.lock == Lock::Free {
            if self.must_split(node) {
                actions.push(Action::SplitNode(number));
            } else if !node.buffer.is_empty() && (self.is_full(node) || self.is_squeezed(s)) {
                actions.push(Action::StartFlush(number));
            }
        }
        let Some(&l) = node.todo.first() else { return };
        match node.at {
            At::Idle if self.splits(s, node, l) => {
                if self.free_leaf(s).is_some() {
                    actions.push(Action::PrepareLeaf(number));
                }
            }
            At::Idle if !self.has_room(s, node, l) => actions.push(Action::ClearSlots(number)),
            At::Idle => actions.push(Action::WritePairs(number)),
            At::Cleared => {
                if self.has_room(s, node, l) {
                    actions.push(Action::WritePairs(number));
                }
            }
            At::Written => actions.push(Action::SetBitmap(number)),
            At::Marked => actions.push(Action::FinishMerge(number)),
            At::Prepared => actions.push(Action::LinkLeaf(number)),
            At::Linked => actions.push(Action::SwitchSibling(number)),
            At::Switched => actions.push(Action::FinishSplit(number)),
        }
    }

    /// Whether a client needs a log and no space is free (`IsSqueezed`).
    pub(super) fn is_squeezed(&self, s: &State) -> bool {
        let wants = |c: u8| {
            let called = matches!(
                s.call[usize::from(c)],
                Call::Write {
                    step: Step::Called,
                    ..
                }
            );
            called && self.current(s, c).is_none()
        };
        self.free_spaces(s).is_empty() && self.clients().any(wants)
    }

    /// `GroupOf`, in buffer order.
    pub(super) fn group_of(&self, node: &Node, l: u8) -> Vec<Buffered> {
        let ends = self.bug == Bug::FlushesHalfALeaf && !node.todo.is_empty();
        let is_other = |pair: &Buffered| !node.todo.contains(&node.leaf_of(pair.key));
        let pairs = node
            .buffer
            .iter()
            .take_while(|pair| !(ends && is_other(pair)));
        let wanted = pairs.filter(|pair| node.leaf_of(pair.key) == l);
        wanted.copied().collect()
    }

    /// The keys that a leaf would have after the merge (`KeysAfter`).
    pub(super) fn keys_after(&self, s: &State, node: &Node, l: u8) -> Set {
        let group = self.group_of(node, l);
        let put = puts(&group).iter().fold(0, |set, pair| set | 1 << pair.key);
        s.leaf_now(l).keys() & !keys_of(&group) | put
    }

    /// Whether a leaf would have more than t_split pairs (`Splits`).
    pub(super) fn splits(&self, s: &State, node: &Node, l: u8) -> bool {
        if self.bug == Bug::CountsLeafAlone {
            return s.leaf_now(l).keys().count_ones() >= self.t_split;
        }
        self.keys_after(s, node, l).count_ones() > self.t_split
    }

    /// `RoomInv` for one node.
    pub(super) fn fits(&self, s: &State, node: &Node) -> bool {
        let Some(&l) = node.todo.first() else {
            return true;
        };
        let merges = node.at == At::Idle && !self.splits(s, node, l);
        !merges || self.keys_after(s, node, l).count_ones() as usize <= self.leaf_slots
    }

    /// The leaves that a flush goes to (`Targets`).
    pub(super) fn targets(&self, s: &State, node: &Node) -> Row<u8, LEAVES> {
        let mut wanted: Row<u8, LEAVES> = Row::default();
        for l in node.buffer.iter().map(|pair| node.leaf_of(pair.key)) {
            if !wanted.contains(&l) {
                wanted.push(l);
            }
        }
        let wanted = wanted.iter().copied();
        let splits = |l: &u8| self.splits(s, node, *l);
        if self.bug == Bug::SplitsAmongOthers {
            return wanted.take(self.t_node).collect();
        }
        let before = wanted.clone().take(self.t_node);
        let before: Row<u8, LEAVES> = before.take_while(|l| !splits(l)).collect();
        if before.is_empty() {
            return wanted.take(1).collect();
        }
        before
    }

    pub(super) fn start_flush(&self, s: &mut State, n: usize) {
        let todo = self.targets(s, &s.nodes[n]);
        self.start_flush_to(s, n, todo);
    }

    /// `StartFlush` to these leaves.
    pub(super) fn start_flush_to(&self, s: &mut State, n: usize, todo: Row<u8, LEAVES>) {
        let node = &mut s.nodes[n];
        (node.lock, node.todo) = (Lock::Flushing, todo);
    }

    /// `FreeIn`, in ascending order.
    pub(super) fn free_in(&self, header: Header) -> impl Iterator<Item = usize> + use<> {
        (0..self.leaf_slots).filter(move |i| header.bits >> i & 1 == 0)
    }

    /// `HasRoom` for the pairs that are flushed to leaf `l`.
    pub(super) fn has_room(&self, s: &State, node: &Node, l: u8) -> bool {
        let free = self.free_in(s.leaf_now(l).header).count();
        puts(&self.group_of(node, l)).len() <= free
    }

    /// The subject of a flush step: the first leaf still to be flushed, by number and contents, and
    /// the pairs.
    pub(super) fn under_way(&self, s: &State, n: usize) -> (u8, Leaf, Vec<Buffered>) {
        let node = &s.nodes[n];
        // All callers' guards require that a flush is in progress.
        let l = node.todo[0];
        (l, s.leaf_now(l), self.group_of(node, l))
    }

    pub(super) fn clear_slots(&self, s: &mut State, n: usize) {
        let (l, words, group) = self.under_way(s, n);
        s.leaf[place(l)].header.push(Header {
            bits: words.header.bits & !words.slots_of(keys_of(&group)),
            ..words.header
        });
        s.nodes[n].at = At::Cleared;
    }

    pub(super) fn write_pairs(&self, s: &mut State, n: usize) {
        let (_, words, group) = self.under_way(s, n);
        let slots: Vec<(usize, Pair)> = self.free_in(words.header).zip(puts(&group)).collect();
        self.write_pairs_to(s, n, &slots);
    }

    /// `WritePairs` to these slots.
    pub(super) fn write_pairs_to(&self, s: &mut State, n: usize, slots: &[(usize, Pair)]) {
        let leaf = &mut s.leaf[place(s.nodes[n].todo[0])];
        if s.nodes[n].at == At::Cleared {
            leaf.fence();
        }
        for (i, pair) in slots {
            leaf.slots[*i].push(*pair);
        }
        s.nodes[n].at = At::Written;
    }

    pub(super) fn set_bitmap(&self, s: &mut State, n: usize) {
        let (_, words, group) = self.under_way(s, n);
        let free = self.free_in(words.header);
        let filled = free.zip(puts(&group)).fold(0, |set, (i, _)| set | 1 << i);
        self.set_bits(s, n, filled);
    }

    /// `SetBitmap` of these slots.
    pub(super) fn set_bits(&self, s: &mut State, n: usize, filled: Set) {
        let (l, words, group) = self.under_way(s, n);
        let gone = if self.bug == Bug::OnlySetsBits {
            0
        } else {
            words.slots_of(keys_of(&group))
        };
        let leaf = &mut s.leaf[place(l)];
        if self.bug != Bug::BitmapBeforePairs {
            leaf.fence();
        }
        leaf.header.push(Header {
            bits: words.header.bits & !gone | filled,
            use_n: words.header.use_n,
            stamp: stamp(&group),
        });
        s.nodes[n].at = At::Marked;
    }

    pub(super) fn finish_merge(&self, s: &mut State, n: usize) {
        let (l, words, group) = self.under_way(s, n);
        s.leaf[place(l)] = LeafWords::durably(&words.tidied());
        without(&mut s.nodes[n], &group);
        next_leaf(&mut s.nodes[n]);
        s.uncount(group);
    }

    /// The first leaf that no pointer leads to (`Least(FreeLeaves)`).
    fn free_leaf(&self, s: &State) -> Option<u8> {
        let is_used = |l: u8| {
            let in_node =
                |node: &Node| node.fresh == l || node.index.iter().any(|fence| fence.leaf == l);
            s.nodes.iter().any(in_node)
        };
        (1..=self.leaves as u8).find(|l| !is_used(*l))
    }

    pub(super) fn prepare_leaf(&self, s: &mut State, n: usize) {
        let (l, ..) = self.under_way(s, n);
        let Some(new) = self.free_leaf(s) else { return };
        let keys = self.keys_after(s, &s.nodes[n], l);
        let low = separator(keys);
        let slots: Vec<(usize, Pair)> = (0..).zip(self.moving(s, n, low)).collect();
        self.prepare_leaf_as(s, n, (new, low), &slots);
    }

    /// The pairs of the new leaf that begins at `low`, in key order.
    pub(super) fn moving(&self, s: &State, n: usize, low: u8) -> Vec<Pair> {
        let (_, words, group) = self.under_way(s, n);
        let upper = from(low);
        let moves = upper & !keys_of(&group);
        let moved = words.pairs().filter(|pair| moves >> pair.key & 1 == 1);
        let put = puts(&group).into_iter();
        let mut pairs: Vec<Pair> = moved
            .chain(put.filter(|pair| upper >> pair.key & 1 == 1))
            .collect();
        pairs.sort_unstable_by_key(|pair| pair.key);
        pairs
    }

    /// `PrepareLeaf`: this new leaf, with the pairs in these slots.
    pub(super) fn prepare_leaf_as(
        &self,
        s: &mut State,
        n: usize,
        (new, low): (u8, u8),
        slots: &[(usize, Pair)],
    ) {
        let (_, words, group) = self.under_way(s, n);
        let mut image = Leaf {
            low,
            next: [words.next[usize::from(words.header.use_n)], 0],
            ..Leaf::default()
        };
        for (i, pair) in slots {
            image.slots[*i] = *pair;
            image.header.bits |= 1 << i;
        }
        if self.bug != Bug::NewLeafWithoutStamp {
            image.header.stamp = stamp(&group);
        }
        s.leaf[place(new)].store(&image, self.leaf_slots);
        (s.nodes[n].at, s.nodes[n].fresh) = (At::Prepared, new);
    }

    pub(super) fn link_leaf(&self, s: &mut State, n: usize) {
        let (l, words, _) = self.under_way(s, n);
        let fresh = s.nodes[n].fresh;
        if self.bug != Bug::LinksBeforeFence {
            s.leaf[place(fresh)].fence();
        }
        let spare = 1 - usize::from(words.header.use_n);
        s.leaf[place(l)].next[spare].push(fresh);
        s.nodes[n].at = At::Linked;
    }

    pub(super) fn switch_sibling(&self, s: &mut State, n: usize) {
        let (l, words, group) = self.under_way(s, n);
        let word = words.header;
        let low = s.leaf_now(s.nodes[n].fresh).low;
        let stays = word.bits & !words.slots_of(from(low));
        let use_n = 1 - word.use_n;
        let leaf = &mut s.leaf[place(l)];
        if self.bug != Bug::SwitchesBeforeFence {
            leaf.fence();
        }
        if self.bug == Bug::TwoWords {
            leaf.header.push(Header {
                bits: stays,
                ..word
            });
            leaf.header.push(Header { use_n, ..word });
        }
        leaf.header.push(Header {
            bits: stays,
            use_n,
            stamp: if self.bug == Bug::StampsAtSwitch {
                stamp(&group)
            } else {
                word.stamp
            },
        });
        s.nodes[n].at = At::Switched;
    }

    pub(super) fn finish_split(&self, s: &mut State, n: usize) {
        let (l, words, group) = self.under_way(s, n);
        let fresh = s.nodes[n].fresh;
        let low = s.leaf_now(fresh).low;
        let upper = group.iter().filter(|pair| pair.key >= low);
        let flushed: Vec<Buffered> = upper.copied().collect();
        s.leaf[place(l)] = LeafWords::durably(&words.tidied());
        let node = &mut s.nodes[n];
        without(node, &flushed);
        if self.bug != Bug::ForgetsNewLeaf {
            let after = at(&node.index, low);
            node.index.insert(after, Fence { low, leaf: fresh });
        }
        node.fresh = 0;
        if flushed.len() == group.len() {
            next_leaf(node);
        }
        s.uncount(flushed);
    }

    /// Splits a node before its leaf `half`, counted from 0.
    pub(super) fn split_node(&self, s: &mut State, n: usize, half: usize) {
        let node = s.nodes[n];
        let low = node.index[half].low;
        let (left, right) = node.index.split_at(half);
        let (lower, upper): (Vec<_>, Vec<_>) = node.buffer.iter().partition(|pair| pair.key < low);
        let forgets = self.bug == Bug::SplitForgetsVersion;
        let moved = upper.into_iter().map(|pair: Buffered| Buffered {
            version: if forgets { 0 } else { pair.version },
            ..pair
        });
        s.nodes[n] = Node::new(left.iter().copied(), lower);
        s.nodes
            .insert(n + 1, Node::new(right.iter().copied(), moved));
    }
}
