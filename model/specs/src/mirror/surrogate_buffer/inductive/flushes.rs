//! The conjuncts on the words that a flush is changing, one for each of its steps.

use super::super::constants::SurrogateBuffer;
use super::super::flush::{from, keys_of, puts, separator};
use super::super::state::{At, Buffered, Node, State};
use super::super::words::{Leaf, LeafWords, N, Pair, Set, Word, members, place};

/// A flush at work on a leaf.
pub(super) struct Flush<'a> {
    node: &'a Node,
    words: &'a LeafWords,
    before: Leaf,
    now: Leaf,
    group: Vec<Buffered>,
}

impl Flush<'_> {
    /// All pairs that the leaf is to have, or both leaves if it is split (`AllAfter`).
    fn all_after(&self) -> Vec<Pair> {
        let gone = keys_of(&self.group);
        let stay = self.before.pairs().filter(|p| gone >> p.key & 1 == 0);
        let mut all: Vec<Pair> = stay.chain(puts(&self.group)).collect();
        all.sort_unstable_by_key(|pair| (pair.key, pair.value));
        all.dedup();
        all
    }

    fn stamp(&self) -> N {
        let numbers = self.group.iter().map(|pair| pair.number);
        numbers.max().unwrap_or(0)
    }

    /// The pointer that is not in use.
    fn spare(&self) -> &Word<u8> {
        &self.words.next[1 - usize::from(self.before.header.use_n)]
    }

    fn fresh<'a>(&self, s: &'a State) -> Option<&'a LeafWords> {
        let l = usize::from(self.node.fresh).checked_sub(1)?;
        s.leaf.get(l)
    }
}

/// The valid pairs of a leaf, by their keys.
fn sorted(leaf: &Leaf) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = leaf.pairs().collect();
    pairs.sort_unstable_by_key(|pair| (pair.key, pair.value));
    pairs
}

impl SurrogateBuffer {
    fn flush_at<'a>(&self, s: &'a State, n: usize, at: &[At]) -> Option<Flush<'a>> {
        let node = s.nodes.get(n).filter(|node| at.contains(&node.at))?;
        let l = *node.todo.first()?;
        let words = &s.leaf[place(l)];
        Some(Flush {
            node,
            words,
            before: words.before(),
            now: words.now(),
            group: self.group_of(node, l),
        })
    }

    /// Where the leaf is being split, or is about to be.
    pub(super) fn separator(&self, s: &State, node: &Node, l: u8) -> Option<u8> {
        match node.at {
            At::Prepared | At::Linked | At::Switched => Some(s.leaf_now(node.fresh).low),
            At::Idle if self.splits(s, node, l) => Some(separator(self.keys_after(s, node, l))),
            _ => None,
        }
    }

    /// Bits are cleared of keys whose new pairs are in the log.
    pub(super) fn cleared_inv(&self, s: &State, n: usize) -> bool {
        self.flush_at(s, n, &[At::Cleared]).is_none_or(|flush| {
            let gone = flush.before.slots_of(keys_of(&flush.group));
            let mut after = flush.before.header;
            after.bits &= !gone;
            let header = flush.words.header.all();
            flush.words.all_but_header() && *header == [flush.before.header, after]
        })
    }

    /// The pairs are in slots whose bits are clear.
    pub(super) fn written_inv(&self, s: &State, n: usize) -> bool {
        self.flush_at(s, n, &[At::Written]).is_none_or(|flush| {
            let words = flush.words;
            let puts = puts(&flush.group);
            let free: Vec<usize> = self.free_in(flush.now.header).collect();
            let written = |(i, pair): (&usize, &Pair)| flush.now.slots[*i] == *pair;
            let mut set = members(flush.now.header.bits);
            puts.len() <= free.len()
                && free.iter().zip(&puts).all(written)
                && set.all(|i| !words.slots[i].is_unflushed())
                && !words.header.is_unflushed()
                && !words.low.is_unflushed()
                && !words.next.iter().any(Word::is_unflushed)
        })
    }

    /// The bits and the stamp are set in one word.
    pub(super) fn marked_inv(&self, s: &State, n: usize) -> bool {
        self.flush_at(s, n, &[At::Marked]).is_none_or(|flush| {
            let (old, new) = (flush.before.header, flush.now.header);
            flush.words.all_but_header()
                && flush.words.header.all().len() == 2
                && new.use_n == old.use_n
                && new.stamp == flush.stamp()
                && sorted(&flush.now) == flush.all_after()
        })
    }

    /// The new leaf has the upper half of all pairs, and the stamp.
    pub(super) fn prepared_inv(&self, s: &State, n: usize) -> bool {
        let all = [At::Prepared, At::Linked, At::Switched];
        self.flush_at(s, n, &all).is_none_or(|flush| {
            let Some(fresh) = flush.fresh(s).map(LeafWords::now) else {
                return false;
            };
            let all = flush.all_after();
            let count = all.len();
            let keys = all.iter().fold(0, |set: Set, pair| set | 1 << pair.key);
            let next = |leaf: &Leaf| leaf.next[usize::from(leaf.header.use_n)];
            let upper = all.into_iter().filter(|pair| pair.key >= fresh.low);
            count > self.t_split as usize
                && fresh.low == separator(keys)
                && sorted(&fresh) == upper.collect::<Vec<_>>()
                && fresh.header.stamp == flush.stamp()
                && next(&fresh) == next(&flush.before)
        })
    }

    /// The new leaf is persistent, and the pointer to it is not in use.
    pub(super) fn linked_inv(&self, s: &State, n: usize) -> bool {
        let linked = self.flush_at(s, n, &[At::Linked, At::Switched]);
        linked.is_none_or(|flush| {
            let whole = |fresh: &LeafWords| fresh.all_but_header() && !fresh.header.is_unflushed();
            let used = usize::from(flush.before.header.use_n);
            let mut slots = flush.words.slots.iter();
            flush.fresh(s).is_some_and(whole)
                && flush.spare().newest() == flush.node.fresh
                && !flush.words.next[used].is_unflushed()
                && !flush.words.low.is_unflushed()
                && !slots.any(Word::is_unflushed)
                && (flush.node.at == At::Switched || !flush.words.header.is_unflushed())
        })
    }

    /// The range, the pairs and the pointer move in one word. The stamp stays.
    pub(super) fn switched_inv(&self, s: &State, n: usize) -> bool {
        self.flush_at(s, n, &[At::Switched]).is_none_or(|flush| {
            let Some(fresh) = flush.fresh(s).map(LeafWords::now) else {
                return false;
            };
            let before = flush.before.header;
            let mut after = before;
            after.bits &= !flush.before.slots_of(from(fresh.low));
            after.use_n = 1 - before.use_n;
            let persistent = !flush.spare().is_unflushed();
            persistent && *flush.words.header.all() == [before, after]
        })
    }
}
