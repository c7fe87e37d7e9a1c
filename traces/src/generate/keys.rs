//! Keys and value lengths, as functions of a record's position.
//!
//! A trace has M possible records: those loaded and those inserted later. Position p in `0..M` is a
//! record's place in key order. The first eight bytes of its key are the big-endian number
//!
//! ```text
//!   p · stride + jitter(p)      stride = ⌊2^64 / M⌋,  jitter a hash of p below the stride
//! ```
//!
//! so keys ascend with p, are distinct, and are spread over the whole key space with irregular
//! gaps. Longer keys continue with hashed bytes. Shorter ones use 2^(8·size) instead of 2^64, which
//! must be enough for M records. With a density d, the stride is ⌊1/d⌋.

use super::params::{GenParams, ValueSize, Workload};
use super::pareto::Pareto;
use super::random::{derive, mix64, scale, unit};

/// Returns the number of distinct keys of `key_size` bytes, at most 2^64 − 1.
pub(crate) fn key_space(key_size: u32) -> u64 {
    if key_size >= 8 {
        u64::MAX
    } else {
        1 << (8 * key_size)
    }
}

/// Numbers from one key to the next, at this density.
pub(crate) fn stride_at(density: f64) -> u64 {
    // So that 0.1, which is a little more than a tenth, is every tenth number.
    ((1.0 + 1e-9) / density).floor().max(1.0) as u64
}

/// Makes keys and value lengths from positions.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    key_size: usize,
    stride: u64,
    jitter_key: u64,
    value_key: u64,
    values: Values,
}

/// The distribution of value lengths.
#[derive(Clone, Debug)]
enum Values {
    Uniform { min: u32, span: u64 },
    Pareto { law: Pareto, max: u32 },
}

impl Keys {
    pub(crate) fn new(params: &GenParams, positions: u64) -> Self {
        let values = match (params.value_size, params.workload) {
            (None, Workload::Mixgraph) => Values::Pareto {
                law: params.mixgraph.value,
                max: params.mixgraph.max_value_size,
            },
            (size, _) => {
                let ValueSize { min, max } = size.unwrap_or(GenParams::VALUE_SIZE);
                Values::Uniform {
                    min,
                    span: u64::from(max - min) + 1,
                }
            }
        };
        Keys {
            key_size: params.key_bytes() as usize,
            stride: match params.density {
                Some(density) => stride_at(density),
                None => key_space(params.key_bytes()) / positions,
            },
            jitter_key: derive(params.seed, 1),
            value_key: derive(params.seed, 2),
            values,
        }
    }

    /// Writes the key of a position to `key`.
    #[inline]
    pub(crate) fn fill(&self, position: u64, key: &mut Vec<u8>) {
        let jitter = scale(mix64(position ^ self.jitter_key), self.stride);
        let number = position * self.stride + jitter;
        key.clear();
        if self.key_size < 8 {
            key.extend_from_slice(&number.to_be_bytes()[8 - self.key_size..]);
            return;
        }
        key.extend_from_slice(&number.to_be_bytes());
        let mut word = number;
        while key.len() < self.key_size {
            word = mix64(word.wrapping_add(self.jitter_key));
            let rest = (self.key_size - key.len()).min(8);
            key.extend_from_slice(&word.to_le_bytes()[..rest]);
        }
    }

    /// Returns the value length of a position. It is constant, so an update keeps the record's
    /// size.
    #[inline]
    pub(crate) fn value_len(&self, position: u64) -> u32 {
        match &self.values {
            Values::Uniform { min, span: 1 } => *min,
            Values::Uniform { min, span } => {
                min + scale(mix64(position ^ self.value_key), *span) as u32
            }
            // As in db_bench: lengths beyond the maximum wrap around, and the shortest is 10 bytes.
            Values::Pareto { law, max } => {
                let len = law.quantile(unit(mix64(position ^ self.value_key)));
                let len = if len > u64::from(*max) {
                    len % u64::from(*max)
                } else {
                    len
                };
                (len as u32).max(10)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn at_a_density_every_so_manieth_number_is_a_key() {
        for (density, stride) in [(1.0, 1), (0.5, 2), (0.33, 3), (0.1, 10)] {
            let params = GenParams {
                density: Some(density),
                key_size: Some(4),
                ..GenParams::new(Workload::Uniform, 1000)
            };
            let keys = Keys::new(&params, 1000);
            let number = |position| {
                let mut key = Vec::new();
                keys.fill(position, &mut key);
                u64::from(u32::from_be_bytes(key.try_into().expect("four bytes")))
            };
            for position in [0, 1, 999] {
                let range = position * stride..(position + 1) * stride;
                assert!(
                    range.contains(&number(position)),
                    "{density}: {}",
                    number(position)
                );
            }
        }
    }

    proptest! {
        #[test]
        fn keys_ascend_with_their_positions(
            records in 1..GenParams::MAX_RECORDS,
            key_size in 5u32..40,
            seed: u64,
            at: u64,
        ) {
            let mut params = GenParams::new(Workload::Uniform, records);
            (params.seed, params.key_size) = (seed, Some(key_size));
            let keys = Keys::new(&params, records);
            let position = at % records;
            let (mut low, mut high) = (Vec::new(), Vec::new());
            keys.fill(position, &mut low);
            prop_assert_eq!(low.len(), key_size as usize);
            if position + 1 < records {
                keys.fill(position + 1, &mut high);
                prop_assert!(low < high, "{:?} {:?}", low, high);
            }
        }
    }
}
