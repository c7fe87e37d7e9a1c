//! What a crash may leave of words that were stored and not yet fenced.
//!
//! ```text
//!            stores           clwb          stores          fence
//! durable ───────────▶ a b c ──────▶ a b c* ───────▶ a b c* d e ─────▶ durable: c    in doubt: d e
//!                                                    any one of: durable, a, b, c, d, e
//! ```
//!
//! Each value is kept once, at the position of its last store, because the later stores are the
//! ones that outlive a fence.

use std::collections::{BTreeMap, BTreeSet};

use super::image::PmImage;
use super::{LINE_SIZE, WORD_SIZE};

const LINE_WORDS: u64 = (LINE_SIZE / WORD_SIZE) as u64;

/// The greatest number of values kept for a word; beyond it, one from the middle is dropped.
/// Otherwise a word that is stored forever and never written back would need unlimited memory.
pub(super) const MOST_VERSIONS: usize = 64;

#[derive(Default)]
struct Word {
    /// Distinct values in the order of their last stores. The last one is what a load returns.
    versions: Vec<u64>,
    /// The number of values that are not newer than the value being written back.
    covered: usize,
    /// The value as of the last write-back that no fence has followed yet.
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

    /// Returns the outcomes other than the durable value, the newest last. A word that was changed
    /// back to its durable value has that as an outcome too, but not a word that never had another
    /// value.
    fn outcomes(&self, durable: u64) -> Vec<u64> {
        let others = self.versions.iter().filter(|v| **v != durable);
        let mut outcomes: Vec<u64> = others.copied().collect();
        if !outcomes.is_empty() && self.versions.last() == Some(&durable) {
            outcomes.push(durable);
        }
        outcomes
    }
}

/// All words in doubt, by number.
#[derive(Default)]
pub(super) struct Doubt {
    words: BTreeMap<u64, Word>,
    /// The words that have a value being written back.
    leaving: BTreeSet<u64>,
}

impl Doubt {
    /// Records that word `word`, which had another value before, was stored.
    pub(super) fn store(&mut self, word: u64, value: u64) {
        self.words.entry(word).or_default().store(value);
    }

    /// Starts the write-back of the current values of a line's words.
    pub(super) fn write_back_line(&mut self, line: u64) {
        self.write_back(line * LINE_WORDS..(line + 1) * LINE_WORDS);
    }

    /// Starts the write-back of the current values of these words.
    pub(super) fn write_back(&mut self, words: std::ops::Range<u64>) {
        for (number, word) in self.words.range_mut(words) {
            word.covered = word.versions.len();
            word.on_its_way = word.versions.last().copied();
            self.leaving.insert(*number);
        }
    }

    /// Makes all values being written back durable.
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

    /// Returns, for each word in doubt, in order of address: its number, and the values it may have
    /// other than the durable one.
    pub(super) fn outcomes(&self, durable: &PmImage) -> impl Iterator<Item = (u64, Vec<u64>)> {
        let all = self.words.iter();
        let all = all.map(|(number, word)| (*number, word.outcomes(durable.word(*number))));
        all.filter(|(_, outcomes)| !outcomes.is_empty())
    }
}
