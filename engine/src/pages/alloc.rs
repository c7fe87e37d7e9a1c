//! Which slots of the page space (or which page names) are taken: a bitmap with a next-fit cursor.
//!
//! Next fit spreads writes over the whole space, is O(1) amortised while the space is not nearly full, and depends on
//! nothing but the calls made, so that runs repeat exactly.

/// A set of taken numbers below a fixed limit.
#[derive(Clone)]
pub(crate) struct SlotMap {
    words: Vec<u64>,
    limit: u64,
    used: u64,
    cursor: u64,
}

impl SlotMap {
    /// All of `0..limit` free.
    pub(crate) fn new(limit: u64) -> SlotMap {
        SlotMap {
            words: vec![0; limit.div_ceil(64) as usize],
            limit,
            used: 0,
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

    pub(crate) fn contains(&self, n: u64) -> bool {
        n < self.limit && self.words[(n / 64) as usize] >> (n % 64) & 1 == 1
    }

    /// Takes `n`; `false` if it was taken already or is out of range.
    pub(crate) fn take(&mut self, n: u64) -> bool {
        if n >= self.limit || self.contains(n) {
            return false;
        }
        self.words[(n / 64) as usize] |= 1 << (n % 64);
        self.used += 1;
        true
    }

    /// Takes the next free number at or after the cursor, wrapping once.
    pub(crate) fn allocate(&mut self) -> Option<u64> {
        if self.used == self.limit {
            return None;
        }
        let words = self.words.len() as u64;
        let mut word = self.cursor / 64;
        // The first word is looked at twice: from the cursor on, and (after wrapping) before it.
        let mut mask = !0u64 << (self.cursor % 64);
        for _ in 0..=words {
            let open = !self.words[word as usize] & mask;
            if open != 0 {
                let n = word * 64 + u64::from(open.trailing_zeros());
                if n < self.limit {
                    self.take(n);
                    self.cursor = (n + 1) % self.limit;
                    return Some(n);
                }
            }
            word = (word + 1) % words;
            mask = !0;
        }
        None
    }

    /// Gives `n` back; `false` if it was free.
    pub(crate) fn release(&mut self, n: u64) -> bool {
        if !self.contains(n) {
            return false;
        }
        self.words[(n / 64) as usize] &= !(1 << (n % 64));
        self.used -= 1;
        true
    }

    /// The numbers that are taken, ascending.
    pub(crate) fn iter_taken(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.limit).filter(|&n| self.contains(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_handed_out_once_and_again_after_release() {
        for limit in [1, 63, 64, 65, 200] {
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
    fn the_cursor_moves_on_before_it_reuses() {
        let mut map = SlotMap::new(100);
        let first = map.allocate().unwrap();
        map.release(first);
        assert_ne!(map.allocate(), Some(first));
    }
}
