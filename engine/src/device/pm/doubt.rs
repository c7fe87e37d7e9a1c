//! What a crash may leave of words that were stored and not yet fenced.
//!
//! ```text
//!            stores           clwb          stores          fence
//! durable ───────────▶ a b c ──────▶ a b c* ───────▶ a b c* d e ─────▶ durable: c    in doubt: d e
//!                                                    any one of: durable, a, b, c, d, e
//! ```
//!
//! Values are kept once, at the place of their last store: it is the later stores that outlive a fence.

use std::collections::{BTreeMap, BTreeSet};

use super::image::PmImage;
use super::{LINE_SIZE, WORD_SIZE};

const LINE_WORDS: u64 = (LINE_SIZE / WORD_SIZE) as u64;

/// Values of a word that are kept; of more, one from the middle is let go. A word that is stored without end and never written back would take
/// memory without end.
pub(super) const MOST_VERSIONS: usize = 64;

#[derive(Default)]
struct Word {
    /// Distinct, in the order of their last stores; the last one is what a load returns.
    versions: Vec<u64>,
    /// So many of them are older than the value on its way, or it.
    covered: usize,
    /// As of the last write-back that no fence has followed.
    on_its_way: Option<u64>,
}

impl Word {
    fn store(&mut self, value: u64) {
        if let Some(i) = self.versions.iter().position(|v| *v == value) {
            self.forget(i);
        } else if self.versions.len() == MOST_VERSIONS {
            self.forget(MOST_VERSIONS / 2);
        }
        self.versions.push(value);
    }

    fn forget(&mut self, i: usize) {
        self.versions.remove(i);
        self.covered -= usize::from(i < self.covered);
    }

    /// The outcomes other than what is durable, the newest last. A word that went back to what is durable has that as an outcome, too, but not if
    /// it was never anything else.
    fn outcomes(&self, durable: u64) -> Vec<u64> {
        let others = self.versions.iter().filter(|v| **v != durable);
        let mut outcomes: Vec<u64> = others.copied().collect();
        if !outcomes.is_empty() && self.versions.last() == Some(&durable) {
            outcomes.push(durable);
        }
        outcomes
    }
}

/// All words in doubt, by their number.
#[derive(Default)]
pub(super) struct Doubt {
    words: BTreeMap<u64, Word>,
    /// Those with a value on its way.
    leaving: BTreeSet<u64>,
}

impl Doubt {
    /// Word `word` was stored; it had another value before.
    pub(super) fn store(&mut self, word: u64, value: u64) {
        self.words.entry(word).or_default().store(value);
    }

    /// The words of a line, as they are now, are on their way.
    pub(super) fn write_back_line(&mut self, line: u64) {
        self.write_back(line * LINE_WORDS..(line + 1) * LINE_WORDS);
    }

    /// These words, as they are now, are on their way.
    pub(super) fn write_back(&mut self, words: std::ops::Range<u64>) {
        for (number, word) in self.words.range_mut(words) {
            word.covered = word.versions.len();
            word.on_its_way = word.versions.last().copied();
            self.leaving.insert(*number);
        }
    }

    /// What is on its way has arrived.
    pub(super) fn fence(&mut self, durable: &mut PmImage) {
        for number in std::mem::take(&mut self.leaving) {
            let Some(word) = self.words.get_mut(&number) else {
                continue;
            };
            if let Some(value) = word.on_its_way.take() {
                durable.set_word(number, value);
                word.versions.drain(..word.covered);
                word.covered = 0;
            }
            if word.versions.is_empty() {
                self.words.remove(&number);
            }
        }
    }

    /// For each word in doubt, in order of address: its number, and what it may be other than what is durable.
    pub(super) fn outcomes(&self, durable: &PmImage) -> impl Iterator<Item = (u64, Vec<u64>)> {
        let all = self.words.iter();
        let all = all.map(|(number, word)| (*number, word.outcomes(durable.word(*number))));
        all.filter(|(_, outcomes)| !outcomes.is_empty())
    }
}
