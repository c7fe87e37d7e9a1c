//! Words that only a conjunct on a step of a flush forbids, to see what that conjunct is for.

use super::super::constants::SurrogateBuffer;
use super::super::state::{At, Node};
use super::super::words::{Header, LEAVES, LeafWords, Pair, Word, place};
use crate::inductive::Plan;

/// The conjuncts that are about the words in each step.
fn conjuncts(at: At) -> &'static [&'static str] {
    match at {
        At::Idle => &["RestInv"],
        At::Cleared => &["ClearedInv"],
        At::Written => &["WrittenInv"],
        At::Marked => &["MarkedInv"],
        At::Prepared => &["RestInv", "PreparedInv"],
        At::Linked => &["PreparedInv", "LinkedInv"],
        At::Switched => &["PreparedInv", "LinkedInv", "SwitchedInv"],
    }
}

/// A word with another value before, after or in place of the newest.
fn others<T: Copy + Default + PartialEq + std::hash::Hash>(
    word: &Word<T>,
    other: T,
) -> [Word<T>; 3] {
    let mut before = Word::durably(other);
    before.push(word.newest());
    let mut after = *word;
    after.push(other);
    let mut instead = Word::durably(word.all()[0]);
    if word.is_unflushed() {
        instead.push(other);
    } else {
        instead = Word::durably(other);
    }
    [before, after, instead]
}

fn other_words(
    model: &SurrogateBuffer,
    words: &LeafWords,
    lows: std::ops::RangeInclusive<u8>,
) -> Vec<LeafWords> {
    let mut all = Vec::new();
    let now = words.header.newest();
    let mut headers: Vec<Header> = (0..1 << model.leaf_slots)
        .map(|bits| Header { bits, ..now })
        .collect();
    headers.push(Header {
        use_n: 1 - now.use_n,
        ..now
    });
    headers.extend((0..=model.values).map(|stamp| Header { stamp, ..now }));
    for header in headers.into_iter().filter(|header| *header != now) {
        all.extend(others(&words.header, header).map(|header| LeafWords { header, ..*words }));
    }
    for low in lows {
        all.extend(others(&words.low, low).map(|low| LeafWords { low, ..*words }));
    }
    for used in 0..2 {
        for next in 0..=model.leaves as u8 {
            all.extend(others(&words.next[used], next).map(|next| {
                let mut words = *words;
                words.next[used] = next;
                words
            }));
        }
    }
    for i in 0..model.leaf_slots {
        for key in model.keys() {
            for value in 0..=model.values {
                let pair = Pair { key, value };
                all.extend(others(&words.slots[i], pair).map(|pair| {
                    let mut words = *words;
                    words.slots[i] = pair;
                    words
                }));
            }
        }
    }
    all
}

/// The node with leaves whose words are others than those of its step, if the conjunct on that step
/// is left out.
pub(super) fn scrambled(
    model: &SurrogateBuffer,
    node: &Node,
    leaf: &[LeafWords; LEAVES],
    plan: &Plan,
) -> Vec<(Node, [LeafWords; LEAVES])> {
    if !conjuncts(node.at).iter().any(|name| plan.is_without(name)) {
        return Vec::new();
    }
    let first = node.todo.first().copied().unwrap_or(node.index[0].leaf);
    let mut all = Vec::new();
    for l in [first, node.fresh].into_iter().filter(|l| *l > 0) {
        // The first leaf begins at 0.
        let lows = if l == 1 { 0..=0 } else { 0..=model.keys };
        for words in other_words(model, &leaf[place(l)], lows) {
            let mut leaf = *leaf;
            leaf[place(l)] = words;
            all.push((*node, leaf));
        }
    }
    all
}
