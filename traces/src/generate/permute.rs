//! A random permutation of N things in O(1) memory.
//!
//! Loading a billion records in random order must not need a list of a billion numbers. A Feistel
//! network over the mixed radix a × b is a bijection of `0..a·b` (Black and Rogaway, "Ciphers with
//! Arbitrary Finite Domains", 2002, §4). With a = ⌈√n⌉ and b = ⌈n / a⌉, a·b exceeds n by at most a
//! − 1. A result of n or more is encrypted again until it is below n ("cycle walking", §3), which
//! keeps it a bijection of `0..n`:
//!
//! ```text
//!   x = left + a · right        left in 0..a, right in 0..b
//!   left  := left  + F1(right)  mod a
//!   right := right + F2(left)   mod b      … four rounds; each can be undone, so the whole can
//! ```

use super::random::derive;

const ROUNDS: usize = 4;

/// A seeded bijection of `0..n`.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    n: u64,
    a: u64,
    b: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Creates a permutation of `0..n`, where 1 <= n <= 2^62.
    pub(crate) fn new(n: u64, seed: u64) -> Self {
        debug_assert!(n > 0 && n <= 1 << 62);
        let a = match n.isqrt() {
            root if root * root < n => root + 1,
            root => root,
        };
        let mut keys = [0; ROUNDS];
        for (i, key) in keys.iter_mut().enumerate() {
            *key = derive(seed, 0x7065_726d + i as u64);
        }
        Permutation {
            n,
            a,
            b: n.div_ceil(a),
            keys,
        }
    }

    /// Returns the image of `x`, where `x < n`.
    #[inline]
    pub(crate) fn apply(&self, x: u64) -> u64 {
        debug_assert!(x < self.n);
        let mut y = self.encrypt(x);
        while y >= self.n {
            y = self.encrypt(y);
        }
        y
    }

    #[inline]
    fn encrypt(&self, x: u64) -> u64 {
        let (mut left, mut right) = (x % self.a, x / self.a);
        for pair in self.keys.chunks_exact(2) {
            left += round(right, pair[0], self.a);
            if left >= self.a {
                left -= self.a;
            }
            right += round(left, pair[1], self.b);
            if right >= self.b {
                right -= self.b;
            }
        }
        left + self.a * right
    }
}

/// A pseudorandom function of `half` into `0..radix`, where `radix` < 2^32.
#[inline]
fn round(half: u64, key: u64, radix: u64) -> u64 {
    let x = (half ^ key).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x >> 32) * radix) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_hit_exactly_once() {
        for n in (1..200).chain([255, 256, 257, 9_999, 10_000, 10_001, 65_537]) {
            let permutation = Permutation::new(n, n ^ 5);
            let mut seen = vec![false; n as usize];
            for x in 0..n {
                let y = permutation.apply(x) as usize;
                assert!(!seen[y], "n {n}: {y} is hit twice");
                seen[y] = true;
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn no_two_values_meet_in_large_ranges(n in 2u64..1 << 40, seed: u64, x: u64, y: u64) {
            let permutation = Permutation::new(n, seed);
            let (x, y) = (x % n, y % n);
            let (to_x, to_y) = (permutation.apply(x), permutation.apply(y));
            proptest::prop_assert!(to_x < n && to_y < n);
            proptest::prop_assert_eq!(x == y, to_x == to_y);
        }
    }

    #[test]
    fn neighbours_are_torn_apart() {
        let n = 100_000;
        let permutation = Permutation::new(n, 1);
        let near = (1..n)
            .filter(|&x| permutation.apply(x).abs_diff(permutation.apply(x - 1)) < n / 100)
            .count();
        // A random order has about 2 % of its neighbours within 1 % of the range.
        assert!((1_500..2_500).contains(&near), "{near}");
    }

    #[test]
    fn the_seed_decides_the_order() {
        let order = |seed| {
            let p = Permutation::new(1000, seed);
            (0..1000).map(|x| p.apply(x)).collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }
}
