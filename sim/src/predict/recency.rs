//! An index of burstiness: measures whether keys are accessed at independent moments, as the
//! predictors assume. Real traces seldom do this.
//!
//! If a key is accessed at independent moments, the gaps `g` between its accesses are exponential.
//! Then `(n + 1) sum(g^2) / (2 sum(g)^2)` over `n` gaps has the expectation 1 for every `n`,
//! because the gaps divided by their sum are uniform on a simplex. Bursty accesses give more than
//! 1, accesses at regular intervals as little as one half. The index of a trace is the mean over
//! its keys, weighted by their number of gaps.
//!
//! Only keys whose hash ends with zero bits are tracked, at most 4,096 of them: spatial sampling
//! (Waldspurger et al., SHARDS, FAST'15) with a sample of fixed size.

use rustc_hash::FxHashMap;

/// Maximum number of tracked keys.
const MOST_KEYS: usize = 4096;
/// Minimum number of gaps for a key to count.
const LEAST_GAPS: u64 = 3;

/// Gaps between the accesses of a key.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    last: u64,
    count: u64,
    sum: f64,
    squares: f64,
}

/// The state of the pass over a trace.
#[derive(Debug, Default)]
pub(super) struct Recency {
    keys: FxHashMap<u64, Gaps>,
    /// Number of low hash bits that are zero in tracked keys.
    mask: u64,
}

impl Recency {
    /// Records an access to the key with this hash by operation number `time`.
    pub(super) fn note(&mut self, hash: u64, time: u64) {
        if hash & self.mask != 0 {
            return;
        }
        match self.keys.get_mut(&hash) {
            Some(gaps) => {
                let gap = (time - gaps.last) as f64;
                gaps.last = time;
                gaps.count += 1;
                gaps.sum += gap;
                gaps.squares += gap * gap;
            }
            None => self.enter(hash, time),
        }
    }

    fn enter(&mut self, hash: u64, time: u64) {
        let first = Gaps {
            last: time,
            count: 0,
            sum: 0.0,
            squares: 0.0,
        };
        self.keys.insert(hash, first);
        while self.keys.len() > MOST_KEYS {
            self.mask = self.mask << 1 | 1;
            let mask = self.mask;
            self.keys.retain(|hash, _| hash & mask == 0);
        }
    }

    /// The index; `None` if no key came back often enough.
    pub(super) fn index(&self) -> Option<f64> {
        let (mut all, mut weights) = (0.0, 0.0);
        // In hash order, because the sum of floats must not depend on the map's order.
        let mut keys: Vec<_> = self.keys.iter().collect();
        keys.sort_unstable_by_key(|(hash, _)| **hash);
        for (_, gaps) in keys.into_iter().filter(|(_, g)| g.count >= LEAST_GAPS) {
            let n = gaps.count as f64;
            all += n * (n + 1.0) * gaps.squares / (2.0 * gaps.sum * gaps.sum);
            weights += n;
        }
        (weights > 0.0).then(|| all / weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrambled(n: u64) -> u64 {
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    }

    /// The index of `ops` accesses to 20,000 keys; `which` picks the key of each.
    fn index(ops: u64, which: impl Fn(u64) -> u64) -> f64 {
        let mut recency = Recency::default();
        for op in 0..ops {
            recency.note(scrambled(which(op) % 20_000 + 1), op);
        }
        assert!(recency.keys.len() <= MOST_KEYS);
        recency.index().expect("keys come back")
    }

    #[test]
    fn independent_moments_give_one_bursts_more_and_a_beat_a_half() {
        let mut state = 1u64;
        let mut draws = Vec::new();
        for _ in 0..400_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            draws.push(state >> 33);
        }
        let independent = index(400_000, |op| draws[op as usize]);
        assert!((independent - 1.0).abs() < 0.03, "{independent}");
        let bursts = index(400_000, |op| draws[op as usize / 4]);
        assert!(bursts > 2.0, "{bursts}");
        let beat = index(400_000, |op| op);
        assert!(beat < 0.6, "{beat}");
    }
}
