//! RocksDB's `mixgraph` workload: the key accesses of Facebook's social graph.
//!
//! Cao, Dong, Vemuri and Du, "Characterizing, Modeling, and Benchmarking RocksDB Key-Value
//! Workloads at Facebook", FAST '20, §7: hot keys are not spread evenly but cluster in *key
//! ranges*. A model that only reproduces the popularity of keys overstates the work of a block
//! cache. The steps are those of db_bench (RocksDB pull requests 4788 and 5953):
//!
//! 1. The key space is divided into `keyrange_num` ranges of equal size. Range x in 1..=num has
//!    weight a·exp(b·x) + c·exp(d·x) (`keyrange_dist_a..d`), and the ranges are shuffled. If all
//!    four are 0, there is one range.
//! 2. Within the range, a uniform u becomes ⌈(u / a)^(1/b)⌉ (`key_dist_a`, `key_dist_b`), the
//!    inverse of the power law a·x^b. A hash of that number is the key's offset. If a or b is 0,
//!    the offset is uniform.
//! 3. Values and scan lengths follow generalized Pareto distributions.
//!
//! There are two deviations. db_bench uses one random number for range, offset, operation and
//! sizes, which ties them together. Here they are independent, and a key's value length is a
//! function of the key. The sine wave of the request rate is left out, because it has no meaning in
//! a closed loop. The defaults are those of the example in pull request 5953 (`Prefix_dist`).

use super::pareto::Pareto;
use super::random::{Random, derive, mix64, scale};
use crate::TraceError;

/// The parameters of `mixgraph`, named as in db_bench.
#[derive(Clone, Debug, PartialEq)]
pub struct MixgraphParams {
    /// Weights of key ranges, a·exp(b·x) + c·exp(d·x).
    pub keyrange_dist: [f64; 4],
    /// Number of key ranges.
    pub keyrange_num: u64,
    /// Coefficient a of the power law of keys within a range.
    pub key_dist_a: f64,
    /// Exponent b of the power law of keys within a range.
    pub key_dist_b: f64,
    /// Distribution of value lengths.
    pub value: Pareto,
    /// Longest value in bytes. Longer ones wrap around.
    pub max_value_size: u32,
    /// Distribution of scan lengths.
    pub iter: Pareto,
    /// Longest scan in records. Longer ones wrap around.
    pub max_scan_len: u32,
}

impl MixgraphParams {
    /// `mix_put_ratio` of the example.
    pub(crate) const PUTS: f64 = 0.14;
    /// `mix_seek_ratio` of the example; the rest, 0.85, are gets.
    pub(crate) const SEEKS: f64 = 0.01;
    /// The most key ranges. Their table is the only state.
    const MAX_RANGES: u64 = 1 << 20;

    pub(crate) fn check(&self, records: u64) -> Result<(), TraceError> {
        let most = Self::MAX_RANGES.min(records);
        if self.keyrange_num == 0 || self.keyrange_num > most {
            return Err(TraceError::parameter(
                "keyrange-num",
                format!(
                    "expected 1 to {most} for {records} records, found {}",
                    self.keyrange_num
                ),
            ));
        }
        let weights = self.weights();
        let sum: f64 = weights.iter().sum();
        if weights.iter().any(|w| !w.is_finite() || *w < 0.0) || sum <= 0.0 || !sum.is_finite() {
            return Err(TraceError::parameter(
                "keyrange-dist",
                format!(
                    "the weights a·exp(b·x) + c·exp(d·x) must be 0 or more and not all 0, \
                     found {:?}",
                    self.keyrange_dist
                ),
            ));
        }
        let (a, b) = (self.key_dist_a, self.key_dist_b);
        if !(a >= 0.0 && b >= 0.0 && a.is_finite() && b.is_finite()) {
            return Err(TraceError::parameter(
                "key-dist",
                format!("a and b must be 0 or more, found {a} and {b}"),
            ));
        }
        if self.max_value_size < 10 {
            return Err(TraceError::parameter(
                "mix-max-value-size",
                format!("expected at least 10, found {}", self.max_value_size),
            ));
        }
        if self.max_scan_len == 0 {
            return Err(TraceError::parameter(
                "mix-max-scan-len",
                "expected at least 1, found 0",
            ));
        }
        self.value.check("value-pareto")?;
        self.iter.check("iter-pareto")
    }

    /// Returns the flags of the parameters that differ from the default, each after a space.
    pub(crate) fn flags(&self) -> String {
        let plain = MixgraphParams::default();
        let [a, b, c, d] = self.keyrange_dist;
        let key_dist = (self.key_dist_a, self.key_dist_b);
        let flags = [
            (
                self.keyrange_dist != plain.keyrange_dist,
                format!(" --keyrange-dist {a},{b},{c},{d}"),
            ),
            (
                self.keyrange_num != plain.keyrange_num,
                format!(" --keyrange-num {}", self.keyrange_num),
            ),
            (
                key_dist != (plain.key_dist_a, plain.key_dist_b),
                format!(" --key-dist {},{}", key_dist.0, key_dist.1),
            ),
            (
                self.value != plain.value,
                format!(" --value-pareto {}", self.value),
            ),
            (
                self.max_value_size != plain.max_value_size,
                format!(" --mix-max-value-size {}", self.max_value_size),
            ),
            (
                self.iter != plain.iter,
                format!(" --iter-pareto {}", self.iter),
            ),
            (
                self.max_scan_len != plain.max_scan_len,
                format!(" --mix-max-scan-len {}", self.max_scan_len),
            ),
        ];
        flags
            .into_iter()
            .filter_map(|(changed, flag)| changed.then_some(flag))
            .collect()
    }

    fn weights(&self) -> Vec<f64> {
        let [a, b, c, d] = self.keyrange_dist;
        if self.keyrange_dist == [0.0; 4] {
            return vec![1.0];
        }
        (1..=self.keyrange_num)
            .map(|x| {
                let weight = a * libm::exp(b * x as f64) + c * libm::exp(d * x as f64);
                // db_bench cuts off rounding noise in the same way.
                if weight.abs() < 1e-16 { 0.0 } else { weight }
            })
            .collect()
    }
}

impl Default for MixgraphParams {
    fn default() -> Self {
        MixgraphParams {
            keyrange_dist: [14.18, -2.917, 0.0164, -0.08082],
            keyrange_num: 30,
            key_dist_a: 0.002312,
            key_dist_b: 0.3467,
            value: Pareto {
                theta: 0.0,
                k: 0.2615,
                sigma: 25.45,
            },
            max_value_size: 1024,
            iter: Pareto {
                theta: 0.0,
                k: 2.517,
                sigma: 14.236,
            },
            max_scan_len: 10_000,
        }
    }
}

/// Draws positions: first a key range by its weight, then a key within it.
#[derive(Clone, Debug)]
pub(crate) struct KeyRanges {
    /// The end of each range's share of the 64-bit numbers, ascending. The last is `u64::MAX`.
    ends: Vec<u64>,
    range_keys: u64,
    power: Option<(f64, f64)>,
    salt: u64,
}

impl KeyRanges {
    pub(crate) fn new(params: &MixgraphParams, records: u64, seed: u64) -> Self {
        let mut weights = params.weights();
        let mut random = Random::new(derive(seed, 0x6b72_616e));
        for i in (1..weights.len()).rev() {
            weights.swap(i, random.below(i as u64 + 1) as usize);
        }
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let mut ends: Vec<u64> = weights
            .iter()
            .map(|weight| {
                sum += weight;
                (sum / total * u64::MAX as f64) as u64
            })
            .collect();
        // The last range that has a weight takes the rounding error, so that an empty range does
        // not.
        if let Some(last) = weights.iter().rposition(|&weight| weight > 0.0) {
            ends[last..].fill(u64::MAX);
        }
        let power = (params.key_dist_a > 0.0 && params.key_dist_b > 0.0)
            .then(|| (1.0 / params.key_dist_a, 1.0 / params.key_dist_b));
        KeyRanges {
            range_keys: records / ends.len() as u64,
            ends,
            power,
            salt: derive(seed, 0x6b73_6565),
        }
    }

    #[inline]
    pub(crate) fn sample(&self, random: &mut Random) -> u64 {
        let word = random.word();
        let range = self.ends.partition_point(|&end| end <= word) as u64;
        // `word` may be u64::MAX itself.
        let range = range.min(self.ends.len() as u64 - 1);
        let slot = random.below(self.range_keys);
        let offset = match self.power {
            None => slot,
            Some((inverse_a, inverse_b)) => {
                let u = slot as f64 / self.range_keys as f64;
                let seed = libm::ceil(libm::pow(u * inverse_a, inverse_b)) as u64;
                scale(mix64(seed ^ self.salt), self.range_keys)
            }
        };
        range * self.range_keys + offset
    }
}
