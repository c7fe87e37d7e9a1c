//! Seeded random numbers: SplitMix64, the same on every machine.

/// A stream of random numbers (Steele, Lea, Flood, OOPSLA 2014).
///
/// ```
/// use treering_oracle::random::Random;
///
/// let draw = |part| Random::part(7, part).below(1_000);
/// assert_eq!(draw(0), draw(0));
/// assert_ne!(draw(0), draw(1), "parts of one seed are independent");
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// An independent stream for part number `part` of a run with this seed.
    #[must_use]
    pub fn part(seed: u64, part: u64) -> Random {
        let mut parent = Random(seed ^ part.wrapping_mul(0xd134_2543_de82_ef95));
        Random(parent.word())
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(end)) >> 64) as u64
    }

    /// `true` once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// `true` with a probability of `percent` in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one_and_parts_differ() {
        // The first outputs of the reference implementation for seed 0.
        let mut random = Random::new(0);
        assert_eq!(random.word(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.word(), 0x6e78_9e6a_a1b9_65f4);
        assert_ne!(Random::part(1, 0).word(), Random::part(1, 1).word());
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
