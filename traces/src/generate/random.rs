//! Random numbers that are the same on every machine and in every release.
//!
//! A seed identifies a trace, so the random sequence is part of the format. It is xoshiro256++
//! (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", TOMS 47:4, 2021), seeded
//! by SplitMix64 as its authors recommend. All arithmetic is on integers, except [`Random::unit`],
//! which is exact.

/// The Weyl increment of SplitMix64: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Scatters 64-bit words. A bijection: the output function of SplitMix64.
#[inline]
pub(crate) fn mix64(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Derives a key for one purpose from the trace's seed. Different purposes get unrelated keys.
pub(crate) fn derive(seed: u64, purpose: u64) -> u64 {
    mix64(mix64(seed.wrapping_add(GOLDEN)).wrapping_add(purpose.wrapping_mul(GOLDEN)))
}

/// Maps a random word to `0..n` by its high bits, with a bias below n / 2^64.
#[inline]
pub(crate) fn scale(word: u64, n: u64) -> u64 {
    ((u128::from(word) * u128::from(n)) >> 64) as u64
}

/// Maps the upper 53 bits of a word to a uniform number in [0, 1).
#[inline]
pub(crate) fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// xoshiro256++.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let word = |i: u64| mix64(seed.wrapping_add(GOLDEN.wrapping_mul(i + 1)));
        Random {
            state: [word(0), word(1), word(2), word(3)],
        }
    }

    #[inline]
    pub(crate) fn word(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a uniform number in `0..n`, without bias (Lemire, "Fast Random Integer Generation in
    /// an Interval", 2019).
    #[inline]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        let mut m = u128::from(self.word()) * u128::from(n);
        if (m as u64) < n {
            let floor = n.wrapping_neg() % n;
            while (m as u64) < floor {
                m = u128::from(self.word()) * u128::from(n);
            }
        }
        (m >> 64) as u64
    }

    /// Returns a uniform number in [0, 1), a multiple of 2^-53.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        unit(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        // The first outputs for state 1, 2, 3, 4, as published with the reference implementation.
        let mut random = Random {
            state: [1, 2, 3, 4],
        };
        let got: Vec<u64> = (0..4).map(|_| random.word()).collect();
        assert_eq!(
            got,
            [41943041, 58720359, 3588806011781223, 3591011842654386]
        );
    }

    #[test]
    fn below_reaches_every_value_equally_often() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[random.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| n.abs_diff(10_000) < 400), "{seen:?}");
    }
}
