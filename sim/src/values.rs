//! Generated values: traces give sizes, not contents, so contents are derived from a seed.
//!
//! The bytes are a function of `(seed, number)`, where the caller numbers its writes, so a checker
//! can generate any value again. A given share of each value is a contiguous run of zeros at its
//! end. This is the shape of the "half zero, half random" records in B⁻-tree §4.1, and determines
//! how well a drive can compress them:
//!
//! ```text
//! | splitmix64 stream started at mix(seed, number)        | 0 0 0 … |
//!   <-------------- size - zeros(size) ----------------->   <-- zeros(size) -->
//! zeros(size) = size × share, rounded down
//! ```

/// The step of the counter: 2^64 divided by the golden ratio. It is odd, so the counter visits
/// every word.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection that mixes all bits.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Converts a share to units of 2^-32. Shares outside 0..=1 are clamped; NaN counts as 0.
fn in_2_32nds(share: f64) -> u64 {
    let share = if share.is_nan() {
        0.0
    } else {
        share.clamp(0.0, 1.0)
    };
    (share * (1u64 << 32) as f64).round() as u64
}

/// Generates values into a buffer that it reuses.
///
/// ```
/// use treering_sim::values::Values;
///
/// let mut values = Values::new(42, 0.5);
/// let seventh = values.make(7, 100).to_vec();
/// values.make(8, 100);
/// assert_eq!(values.make(7, 100), seventh, "a function of seed and number");
/// assert!(seventh[50..].iter().all(|byte| *byte == 0), "half of it zeros");
/// ```
#[derive(Clone, Debug)]
pub struct Values {
    seed: u64,
    /// Share of zero bytes in units of 2^-32, so that the count of zeros is exact integer
    /// arithmetic.
    zeros: u64,
    buffer: Vec<u8>,
}

impl Values {
    /// A generator with this seed, in whose values `zero_share` of the bytes are zero. Shares
    /// outside 0..=1 are clamped; NaN counts as 0.
    pub fn new(seed: u64, zero_share: f64) -> Self {
        Values {
            seed: mix(seed.wrapping_add(STEP)),
            zeros: in_2_32nds(zero_share),
            buffer: Vec::new(),
        }
    }

    /// The value of write `number`, `size` bytes long; valid until the next call.
    pub fn make(&mut self, number: u64, size: usize) -> &[u8] {
        self.make_sharing(number, size, self.zeros)
    }

    /// As [`Values::make`], with a share of zero bytes of its own.
    pub fn make_with(&mut self, number: u64, size: usize, zero_share: f64) -> &[u8] {
        self.make_sharing(number, size, in_2_32nds(zero_share))
    }

    fn make_sharing(&mut self, number: u64, size: usize, zeros: u64) -> &[u8] {
        let zeros = ((size as u128 * u128::from(zeros)) >> 32) as usize;
        let random = size - zeros;
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
        let value = &mut self.buffer[..size];
        let mut counter = mix(self.seed ^ number.wrapping_mul(STEP));
        let mut next = || {
            counter = counter.wrapping_add(STEP);
            mix(counter).to_le_bytes()
        };
        let (head, tail) = value.split_at_mut(random);
        let mut words = head.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&next());
        }
        let rest = words.into_remainder();
        if !rest.is_empty() {
            let length = rest.len();
            rest.copy_from_slice(&next()[..length]);
        }
        tail.fill(0);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_depends_on_seed_and_number_and_on_nothing_made_before() {
        let mut one = Values::new(1, 0.0);
        let first = one.make(7, 120).to_vec();
        one.make(8, 4000);
        assert_eq!(one.make(7, 120), first);
        assert_ne!(one.make(8, 120), first);
        assert_ne!(Values::new(2, 0.0).make(7, 120), first);
    }

    #[test]
    fn the_stated_share_is_one_run_of_zeros_at_the_end() {
        let mut values = Values::new(3, 0.5);
        values.make(0, 4096);
        let value = values.make(1, 120);
        assert!(value[60..].iter().all(|&b| b == 0));
        assert!(value[..60].iter().filter(|&&b| b == 0).count() < 10);
        assert!(Values::new(3, 1.0).make(1, 33).iter().all(|&b| b == 0));
        assert!(Values::new(3, 0.5).make(1, 0).is_empty());
    }
}
