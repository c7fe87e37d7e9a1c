//! A set of small numbers that finds neighbours: three or four words per search.

/// A set of the numbers below a limit. Level 0 has a bit for each number, each level above one for
/// each word below that is not empty.
#[derive(Debug)]
pub(in crate::predict) struct Marks {
    levels: Vec<Vec<u64>>,
}

impl Marks {
    pub(in crate::predict) fn new(limit: usize) -> Marks {
        let mut words = limit.div_ceil(64).max(1);
        let mut levels = vec![vec![0; words]];
        while words > 1 {
            words = words.div_ceil(64);
            levels.push(vec![0; words]);
        }
        Marks { levels }
    }

    pub(in crate::predict) fn insert(&mut self, n: usize) {
        let mut at = n;
        for level in &mut self.levels {
            level[at / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    pub(in crate::predict) fn remove(&mut self, n: usize) {
        let mut at = n;
        for level in &mut self.levels {
            level[at / 64] &= !(1 << (at % 64));
            if level[at / 64] != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// The largest number in the set that is not above `n`.
    #[inline]
    pub(in crate::predict) fn at_or_below(&self, n: usize) -> Option<usize> {
        let mut at = n;
        for (height, level) in self.levels.iter().enumerate() {
            let bits = level[at / 64] & (u64::MAX >> (63 - at % 64));
            if bits != 0 {
                let found = at / 64 * 64 + 63 - bits.leading_zeros() as usize;
                return Some(self.descend(height, found, |word| 63 - word.leading_zeros()));
            }
            // The words before this one.
            at = (at / 64).checked_sub(1)?;
        }
        None
    }

    /// The smallest number in the set that is not below `n`.
    pub(in crate::predict) fn at_or_above(&self, n: usize) -> Option<usize> {
        let mut at = n;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(at / 64)?;
            let bits = word & (u64::MAX << (at % 64));
            if bits != 0 {
                let found = at / 64 * 64 + bits.trailing_zeros() as usize;
                return Some(self.descend(height, found, u64::trailing_zeros));
            }
            at = at / 64 + 1;
        }
        None
    }

    fn descend(&self, height: usize, mut at: usize, pick: impl Fn(u64) -> u32) -> usize {
        for level in self.levels[..height].iter().rev() {
            at = at * 64 + pick(level[at]) as usize;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::ssd::gc::SplitMix;

    #[test]
    fn neighbours_are_those_of_an_ordered_set() {
        let mut random = SplitMix(3);
        for limit in [1, 63, 64, 65, 5_000, 300_000] {
            let (mut marks, mut set) = (Marks::new(limit), BTreeSet::new());
            for _ in 0..3_000 {
                let n = random.below(limit as u64) as usize;
                match random.below(3) {
                    0 => {
                        marks.remove(n);
                        set.remove(&n);
                    }
                    _ => {
                        marks.insert(n);
                        set.insert(n);
                    }
                }
                let n = random.below(limit as u64) as usize;
                assert_eq!(marks.at_or_below(n), set.range(..=n).next_back().copied());
                assert_eq!(marks.at_or_above(n), set.range(n..).next().copied());
            }
        }
    }
}
