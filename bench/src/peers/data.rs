//! Keys and values of 16 bytes, computed from a record's number and version.
//!
//! ```text
//!   key     number × stride, big-endian (8)  │  mix(number) (8)
//!           in the order of the numbers, spread over all of 2^64
//!   value   version, big-endian (8)          │  mix(number, version) (8)
//! ```
//!
//! So the right answer of a scan is known without a sorted list, and a value tells its record and
//! its age.

use rand::RngExt;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};

/// Bytes of a key, and of a value.
pub const WIDTH: usize = 16;

/// User bytes of a record.
pub const RECORD_BYTES: u64 = 2 * WIDTH as u64;

/// A key.
pub type Key = [u8; WIDTH];

/// A value.
pub type Value = [u8; WIDTH];

/// The finalizer of splitmix64, a bijection.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn join(high: u64, low: u64) -> [u8; WIDTH] {
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

/// The records `0..records`.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    records: u64,
    stride: u64,
}

impl Data {
    /// Returns `records` records, at least one.
    #[must_use]
    pub fn new(records: u64) -> Data {
        Data {
            records,
            stride: u64::MAX / records,
        }
    }

    /// Returns the number of records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the key of a record.
    #[must_use]
    pub fn key(&self, record: u64) -> Key {
        join(record * self.stride, mix(record))
    }

    /// Returns the value of a version of a record.
    #[must_use]
    pub fn value(&self, record: u64, version: u32) -> Value {
        let version = u64::from(version);
        join(version, mix(record ^ mix(version)))
    }

    /// Returns the version of a record's value, or `None` if it is not a value of this record.
    #[must_use]
    pub fn version(&self, record: u64, value: &[u8]) -> Option<u32> {
        let version = u64::from_be_bytes(value.get(..8)?.try_into().ok()?);
        let version = u32::try_from(version).ok()?;
        (self.value(record, version) == value).then_some(version)
    }
}

/// A pseudorandom permutation of `0..n`: four Feistel rounds over the next power of four, repeated
/// until the result is in range.
#[derive(Clone, Copy, Debug)]
pub struct Shuffle {
    n: u64,
    half_bits: u32,
    seed: u64,
}

impl Shuffle {
    /// Returns the permutation of `0..n` for `seed`.
    #[must_use]
    pub fn new(n: u64, seed: u64) -> Shuffle {
        let bits = u64::BITS - (n.max(2) - 1).leading_zeros();
        Shuffle {
            n,
            half_bits: bits.div_ceil(2),
            seed: mix(seed),
        }
    }

    /// Returns the image of `x`.
    #[must_use]
    pub fn at(&self, x: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let mut y = x;
        loop {
            let (mut left, mut right) = (y >> self.half_bits, y & mask);
            for round in 0..4 {
                let scrambled = mix(right ^ self.seed.wrapping_add(round << 40)) & mask;
                (left, right) = (right, left ^ scrambled);
            }
            y = left << self.half_bits | right;
            if y < self.n {
                return y;
            }
        }
    }
}

/// Chooses the record of an operation.
pub enum Choose {
    /// All records are equally popular.
    Uniform,
    /// Popularity falls with the rank. Ranks are scattered over the keys.
    Zipf(Zipf<f64>, Shuffle),
}

impl Choose {
    /// Returns Zipf's law with this exponent over `n` records.
    ///
    /// # Panics
    /// If the exponent is negative or `n` is 0.
    #[must_use]
    pub fn zipf(n: u64, theta: f64) -> Choose {
        let law = Zipf::new(n as f64, theta).expect("an exponent of zero or more");
        // Loading uses another seed.
        Choose::Zipf(law, Shuffle::new(n, 0x2000))
    }

    /// Draws a record from `0..n`.
    pub fn draw(&self, n: u64, random: &mut SmallRng) -> u64 {
        match self {
            Choose::Uniform => random.random_range(0..n),
            Choose::Zipf(law, order) => {
                let rank = law.sample(random) as u64;
                order.at(rank.clamp(1, n) - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_their_records_are() {
        for records in [1, 2, 3, 1000, 5_000_000] {
            let data = Data::new(records);
            let keys: Vec<_> = (0..records.min(1000)).map(|i| data.key(i)).collect();
            assert!(keys.is_sorted_by(|a, b| a < b), "{records} records");
            assert!(data.key(records - 1) >= keys[keys.len() - 1]);
        }
    }

    #[test]
    fn a_value_is_that_of_one_record_and_version() {
        let data = Data::new(1000);
        let value = data.value(7, 3);
        assert_eq!(data.version(7, &value), Some(3));
        assert_eq!(data.version(8, &value), None);
        assert_eq!(data.version(7, &value[..15]), None);
        assert_eq!(data.version(7, &[]), None);
        for bit in 0..8 * WIDTH {
            let mut torn = value;
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(data.version(7, &torn), None, "bit {bit}");
        }
    }

    #[test]
    fn a_shuffle_has_each_number_once() {
        for n in [1, 2, 3, 4, 5, 100, 1023, 1024, 1025, 50_000] {
            let shuffle = Shuffle::new(n, n);
            let mut seen: Vec<_> = (0..n).map(|x| shuffle.at(x)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..n), "{n}");
        }
    }
}
