//! [`SlotMap`], a bitmap of the slots of the page space (or the page names) that are in use. It
//! hands out the smallest free number first.
//!
//! ```text
//! level 2                    word 0                      bit i: word i below is full
//! level 1      word 0        word 1     ...
//! level 0   word 0 word 1 ...                            bit n: number n is taken
//! ```
//!
//! Handing out the smallest number first keeps the slots in use together at the beginning of the
//! space, so a file is at most as long as the most that its store ever held, and not as long as the
//! space it may take. Allocating, releasing and searching are O(log64 n). Words are allocated when
//! they are first used. The result depends only on the sequence of calls, so runs are reproducible.

use std::ops::Range;

use crate::mutation;
use crate::sparse::Sparse;

/// The number of holes examined for a long run.
const HOLES_TRIED: u32 = 64;

/// A set of taken numbers below a fixed limit.
pub(crate) struct SlotMap {
    /// invariant: bit `i` of a level is set exactly if word `i` of the level below is all ones. The
    /// last level is one word.
    levels: Vec<Sparse<u64>>,
    limit: u64,
    used: u64,
    /// One more than the largest number that was ever taken.
    high_water: u64,
    /// The next number to try, for a mutation that hands numbers out in turn.
    cursor: u64,
}

impl SlotMap {
    /// Creates a map with all of `0..limit` free.
    pub(crate) fn new(limit: u64) -> SlotMap {
        let mut words = limit.div_ceil(64).max(1);
        let mut levels = vec![Sparse::new(words)];
        while words > 1 {
            words = words.div_ceil(64);
            levels.push(Sparse::new(words));
        }
        SlotMap {
            levels,
            limit,
            used: 0,
            high_water: 0,
            cursor: 0,
        }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn free(&self) -> u64 {
        self.limit - self.used
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Returns a bound that all numbers ever taken are below.
    pub(crate) fn high_water(&self) -> u64 {
        self.high_water
    }

    /// Raises the high-water mark to that of `before`.
    pub(crate) fn keep_high_water(&mut self, before: &SlotMap) {
        self.high_water = self.high_water.max(before.high_water);
    }

    /// Returns the bytes of memory in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.levels.iter().map(Sparse::bytes).sum()
    }

    fn word(&self, level: usize, at: u64) -> u64 {
        self.levels[level].get(at).copied().unwrap_or(0)
    }

    pub(crate) fn contains(&self, n: u64) -> bool {
        n < self.limit && self.word(0, n / 64) >> (n % 64) & 1 == 1
    }

    /// Takes `n`. Returns `false` if it was already taken or is out of range.
    pub(crate) fn take(&mut self, n: u64) -> bool {
        if n >= self.limit || self.contains(n) {
            return false;
        }
        let mut at = n;
        for level in &mut self.levels {
            let Some(word) = level.make_mut(at / 64) else {
                break;
            };
            *word |= 1 << (at % 64);
            if *word != u64::MAX {
                break;
            }
            at /= 64;
        }
        self.used += 1;
        self.high_water = self.high_water.max(n + 1);
        true
    }

    /// Takes the smallest free number.
    pub(crate) fn allocate(&mut self) -> Option<u64> {
        if mutation::on("places-in-turn") {
            return self.allocate_in_turn();
        }
        let n = self.smallest_free()?;
        self.take(n).then_some(n)
    }

    fn smallest_free(&self) -> Option<u64> {
        // Descend from the single word at the top: its first clear bit leads to a word that is not
        // full.
        let mut at = 0;
        for level in (0..self.levels.len()).rev() {
            let open = !self.word(level, at);
            if open == 0 {
                return None;
            }
            at = at * 64 + u64::from(open.trailing_zeros());
        }
        // The last word of each level extends beyond the limit.
        (at < self.limit).then_some(at)
    }

    /// Takes `count` numbers, all or none, in as few runs as a short search finds: in one of the
    /// first holes if one is large enough, else in numbers never taken before, else in several
    /// holes.
    pub(crate) fn allocate_runs(&mut self, count: u64) -> Option<Vec<Range<u64>>> {
        if count > self.free() {
            return None;
        }
        let runs = match self.find_run(count) {
            Some(run) => vec![run],
            None => self.holes(count),
        };
        for n in runs.iter().cloned().flatten() {
            self.take(n);
        }
        Some(runs)
    }

    fn find_run(&self, count: u64) -> Option<Range<u64>> {
        let mut from = 0;
        for _ in 0..HOLES_TRIED {
            let hole = self.hole(self.next_free(from)?, count);
            if hole.end - hole.start == count {
                return Some(hole);
            }
            from = hole.end;
        }
        let fresh = self.high_water;
        (self.limit - fresh >= count).then_some(fresh..fresh + count)
    }

    /// Returns the first holes that have `count` numbers together. At least `count` numbers must be
    /// free.
    fn holes(&self, count: u64) -> Vec<Range<u64>> {
        let (mut runs, mut left, mut from) = (Vec::new(), count, 0);
        while left > 0
            && let Some(start) = self.next_free(from)
        {
            let hole = self.hole(start, left);
            left -= hole.end - hole.start;
            from = hole.end;
            runs.push(hole);
        }
        runs
    }

    /// Returns the run of free numbers that begins at `start`, limited to `most` numbers. `start`
    /// must be free.
    fn hole(&self, start: u64, most: u64) -> Range<u64> {
        let limit = self.limit.min(start + most);
        let mut end = start;
        while end < limit {
            let taken = self.word(0, end / 64) >> (end % 64);
            if taken != 0 {
                end += u64::from(taken.trailing_zeros());
                break;
            }
            end = (end / 64 + 1) * 64;
        }
        start..end.min(limit)
    }

    /// Returns the smallest free number at or after `from`.
    fn next_free(&self, from: u64) -> Option<u64> {
        let (mut at, mut level) = (from, 0);
        // Ascend to a word with a clear bit at or after `at`, then descend to the first number
        // below that bit.
        loop {
            if level == self.levels.len() || at / 64 >= self.levels[level].len() {
                return None;
            }
            let open = !self.word(level, at / 64) & (u64::MAX << (at % 64));
            if open != 0 {
                at = at / 64 * 64 + u64::from(open.trailing_zeros());
                break;
            }
            at = at / 64 + 1;
            level += 1;
        }
        for below in (0..level).rev() {
            if at >= self.levels[below].len() {
                return None;
            }
            let open = !self.word(below, at);
            at = at * 64 + u64::from(open.trailing_zeros());
        }
        (at < self.limit).then_some(at)
    }

    fn allocate_in_turn(&mut self) -> Option<u64> {
        let from = self.cursor;
        let n = (from..self.limit)
            .chain(0..from)
            .find(|&n| !self.contains(n))?;
        self.cursor = n + 1;
        self.take(n).then_some(n)
    }

    /// Releases `n`. Returns `false` if it was free.
    pub(crate) fn release(&mut self, n: u64) -> bool {
        if !self.contains(n) {
            return false;
        }
        let mut at = n;
        for level in &mut self.levels {
            let Some(word) = level.make_mut(at / 64) else {
                break;
            };
            let was_full = *word == u64::MAX;
            *word &= !(1 << (at % 64));
            if !was_full {
                break;
            }
            at /= 64;
        }
        self.used -= 1;
        true
    }

    /// Returns the numbers in use, ascending.
    pub(crate) fn iter_taken(&self) -> impl Iterator<Item = u64> + '_ {
        let words = self.levels[0].iter().filter(|(_, word)| **word != 0);
        words.flat_map(|(at, word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| at * 64 + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_number_is_handed_out_once_and_again_after_release() {
        for limit in [1, 63, 64, 65, 200, 4096, 4097] {
            let mut map = SlotMap::new(limit);
            let mut all: Vec<u64> = (0..limit).map(|_| map.allocate().unwrap()).collect();
            assert_eq!(
                map.allocate(),
                None,
                "limit {limit}: one more than there are"
            );
            all.sort_unstable();
            assert_eq!(all, (0..limit).collect::<Vec<_>>());
            assert!(map.release(limit / 2));
            assert!(!map.release(limit / 2), "released twice");
            assert_eq!(map.allocate(), Some(limit / 2));
        }
    }

    #[test]
    fn a_number_given_back_is_handed_out_before_one_never_used() {
        let mut map = SlotMap::new(10_000);
        assert!((0..5_000).all(|n| map.allocate() == Some(n)));
        for n in [4_999, 7, 63, 64, 4_095] {
            map.release(n);
        }
        let again: Vec<u64> = (0..6).filter_map(|_| map.allocate()).collect();
        assert_eq!(again, [7, 63, 64, 4_095, 4_999, 5_000]);
        assert_eq!(map.high_water(), 5_001);
    }

    #[test]
    fn a_long_run_lies_together_where_there_is_room_and_in_pieces_where_there_is_none() {
        let mut map = SlotMap::new(1_000);
        let mut take = |count, released: &[u64]| {
            assert!(released.iter().all(|n| map.release(*n)));
            map.allocate_runs(count)
        };
        let one = |run: Range<u64>| Some(Vec::from([run]));
        assert_eq!(take(300, &[]), one(0..300));
        assert_eq!(take(3, &[10, 11, 100, 150, 151, 152]), one(150..153));
        assert_eq!(take(4, &[]), one(300..304));
        assert_eq!(take(695, &[]), one(304..999));
        assert_eq!(take(5, &[]), None, "four are free");
        let pieces = Vec::from([10..12, 100..101, 999..1_000]);
        assert_eq!(take(4, &[]), Some(pieces));
        assert_eq!(map.free(), 0);
    }

    #[test]
    fn a_map_of_a_terabyte_is_small() {
        let mut map = SlotMap::new(1 << 28);
        assert_eq!(map.allocate(), Some(0));
        map.take((1 << 28) - 1);
        assert_eq!(map.iter_taken().collect::<Vec<_>>(), [0, (1 << 28) - 1]);
        assert!(map.bytes() < 256 << 10, "{} bytes", map.bytes());
    }

    proptest! {
        #[test]
        fn it_is_the_set_of_what_is_taken(
            limit in 1u64..20_000,
            steps in proptest::collection::vec((0u8..4, 0u64..20_000), 1..200),
        ) {
            let mut map = SlotMap::new(limit);
            let mut set = BTreeSet::new();
            for (step, n) in steps {
                prop_assert_eq!(map.next_free(n), (n..limit).find(|n| !set.contains(n)));
                match step {
                    0 => prop_assert_eq!(map.take(n), n < limit && set.insert(n)),
                    1 => prop_assert_eq!(map.release(n), set.remove(&n)),
                    2 => match map.allocate_runs(n) {
                        None => prop_assert!(n > limit - set.len() as u64),
                        Some(runs) => {
                            let all: Vec<u64> = runs.into_iter().flatten().collect();
                            prop_assert_eq!(all.len() as u64, n);
                            prop_assert!(all.into_iter().all(|n| n < limit && set.insert(n)));
                        }
                    },
                    _ => {
                        let smallest = (0..limit).find(|n| !set.contains(n));
                        prop_assert_eq!(map.allocate(), smallest);
                        set.extend(smallest);
                    }
                }
                prop_assert_eq!(map.used(), set.len() as u64);
            }
            prop_assert!(map.iter_taken().eq(set.iter().copied()));
        }
    }
}
