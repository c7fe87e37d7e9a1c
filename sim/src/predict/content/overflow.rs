//! Overflow blocks of long values.

use treering_engine::{BLOCK_SIZE, is_long, node, overflow_blocks};

use super::Sampler;

/// Number of long values that are made.
const VALUES: usize = 48;
/// Bytes of a block's header.
const HEADER: usize = 48;

impl Sampler<'_> {
    /// Mean size of an overflow block after compression; `None` if no value is long.
    pub(super) fn overflow(&mut self) -> Option<f64> {
        let limits = node::limits(self.options.page_size);
        let keys = &self.workload.keys;
        let long = |key: &u32| {
            let (key_len, value_len) = keys.lens(*key);
            is_long(&limits, key_len, value_len)
        };
        let all = (0..keys.len() as u32).filter(long).count();
        let some = (0..keys.len() as u32).filter(long);
        let some: Vec<u32> = some.step_by((all / VALUES).max(1)).collect();
        let (mut size, mut blocks) = (0.0, 0.0);
        for key in some {
            let weight = 1.0 + f64::from(self.workload.keys.writes(key));
            let (_, len) = self.workload.keys.lens(key);
            size += weight * self.value_blocks(len);
            blocks += weight * overflow_blocks(len) as f64;
        }
        (blocks > 0.0).then(|| size / blocks)
    }

    /// The size of a value's blocks.
    fn value_blocks(&mut self, len: usize) -> f64 {
        self.number += 1;
        let value = self.values.make(self.number, len).to_vec();
        let mut size = 0.0;
        for (index, part) in value.chunks(BLOCK_SIZE - HEADER).enumerate() {
            let mut block = vec![0; BLOCK_SIZE];
            block[4..8].copy_from_slice(b"OVFL");
            // Checksum, low bytes of the value's number, hash of the key.
            for at in [0, 1, 2, 3, 8, 9, 10, 40, 41, 42, 43, 44, 45, 46, 47] {
                block[at] = self.below(256) as u8;
            }
            block[20] = index as u8;
            block[36..40].copy_from_slice(&(len as u32).to_le_bytes());
            block[HEADER..HEADER + part.len()].copy_from_slice(part);
            size += self.size(&block).0;
        }
        size
    }
}
