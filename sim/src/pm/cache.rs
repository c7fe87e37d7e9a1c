//! The CPU cache as far as it affects persistent memory: which lines it holds, and which of them
//! are dirty.
//!
//! The cache is set-associative with LRU replacement. A hash maps addresses to sets, as in the
//! shared caches of current processors; so the headers of leaves, which all lie on multiples of 256
//! bytes, do not crowd a few sets. Only lines of persistent memory are modelled: the program's data
//! in DRAM takes no space here.

/// The set of lines that the CPU cache holds; their contents are stored elsewhere.
pub(super) struct CpuCache {
    sets: u32,
    ways: usize,
    /// The sets one after another, each with the most recently used line first: `(line + 1) << 1 |
    /// dirty`, or 0 for an empty way.
    entries: Vec<u32>,
}

/// Result of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) hit: bool,
    /// A dirty line that was evicted.
    pub(super) written_back: Option<u32>,
}

/// Maximum number of lines that can be represented.
pub(super) const MAX_LINES: u64 = (1 << 31) - 2;

impl CpuCache {
    /// Creates an empty cache of this size.
    pub(super) fn new(bytes: u64, ways: u32) -> CpuCache {
        let lines = bytes / treering_engine::device::LINE_SIZE as u64;
        let sets = (lines / u64::from(ways)).max(1);
        CpuCache {
            sets: sets as u32,
            ways: ways as usize,
            entries: vec![0; sets as usize * ways as usize],
        }
    }

    fn set(&mut self, line: u32) -> &mut [u32] {
        // Fibonacci hashing spreads neighbours; the high half of the product is uniform in 0..sets.
        let hash = u64::from(line).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let set = (hash * u64::from(self.sets)) >> 32;
        &mut self.entries[set as usize * self.ways..][..self.ways]
    }

    /// Loads a line, or stores to it.
    pub(super) fn touch(&mut self, line: u32, store: bool) -> Touched {
        let set = self.set(line);
        let wanted = (line + 1) << 1;
        let found = set.iter().position(|entry| entry & !1 == wanted);
        let (at, before) = match found {
            Some(at) => (at, set[at]),
            None => (set.len() - 1, set[set.len() - 1]),
        };
        set.copy_within(..at, 1);
        match found {
            Some(_) => set[0] = before | u32::from(store),
            None => set[0] = wanted | u32::from(store),
        }
        Touched {
            hit: found.is_some(),
            written_back: (found.is_none() && before & 1 == 1).then(|| (before >> 1) - 1),
        }
    }

    /// Writes a line back, and removes it unless `keep`; returns whether it was dirty.
    pub(super) fn clean(&mut self, line: u32, keep: bool) -> bool {
        let set = self.set(line);
        let wanted = (line + 1) << 1;
        let Some(at) = set.iter().position(|entry| entry & !1 == wanted) else {
            return false;
        };
        let dirty = set[at] & 1 == 1;
        if keep {
            set[at] = wanted;
        } else {
            set.copy_within(at + 1.., at);
            set[set.len() - 1] = 0;
        }
        dirty
    }

    /// Bytes of memory for the table.
    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.len() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One set of two ways.
    fn cache() -> CpuCache {
        CpuCache::new(128, 2)
    }

    #[test]
    fn the_least_recently_used_line_leaves_and_only_a_dirty_one_is_written_back() {
        let mut cache = cache();
        let miss = |written_back| Touched {
            hit: false,
            written_back,
        };
        assert_eq!(cache.touch(0, true), miss(None));
        assert_eq!(cache.touch(7, false), miss(None));
        assert!(cache.touch(0, false).hit, "a load leaves it dirty");
        assert_eq!(cache.touch(9, false), miss(None), "7 was clean");
        assert_eq!(cache.touch(7, true), miss(Some(0)));
        assert!(cache.touch(9, false).hit);
    }

    #[test]
    fn a_line_that_was_written_back_is_clean_and_may_be_gone() {
        let mut cache = cache();
        cache.touch(3, true);
        assert!(cache.clean(3, true));
        assert!(!cache.clean(3, true), "clean already");
        assert!(cache.touch(3, true).hit);
        assert!(cache.clean(3, false));
        assert!(!cache.touch(3, false).hit);
        assert!(!cache.clean(5, false), "never there");
    }

    #[test]
    fn lines_at_the_same_place_of_their_xplines_spread_over_the_sets() {
        let mut cache = CpuCache::new(1 << 20, 16);
        // Half as many lines as there are ways. If they were crowded into a quarter of the sets,
        // half of them would have been evicted.
        let headers = (0..8192).map(|xpline| 4 * xpline);
        for line in headers.clone() {
            cache.touch(line, false);
        }
        let kept = headers.filter(|&line| cache.clean(line, true) || cache.touch(line, false).hit);
        assert!(kept.count() > 8000);
    }
}
