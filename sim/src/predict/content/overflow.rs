//! Long values: their overflow blocks, and the pointers that leaves and log have of them.

use treering_engine::{BLOCK_SIZE, POINTER_BYTES, is_long, node, overflow_blocks};

use super::Sampler;

/// Number of long values that are made.
const VALUES: usize = 48;
/// Bytes of a block's header.
const HEADER: usize = 48;

impl Sampler<'_> {
    /// Mean size of an overflow block after compression; `None` if no value is long.
    ///
    /// Values of all lengths are made. A line through their sizes, `a` for each block and `b` for
    /// each byte of a value, gives the mean for the blocks and bytes that the trace writes.
    pub(super) fn overflow(&mut self) -> Option<f64> {
        let page_size = self.options.page_size;
        let limits = node::limits(page_size);
        let lens = (0..self.workload.keys.len() as u32).map(|key| self.workload.keys.lens(key));
        let long = lens.filter(|(key, value)| is_long(&limits, *key, *value));
        let mut lens: Vec<usize> = long.map(|(_, value)| value).collect();
        lens.sort_unstable();
        let (mut blocks, mut bytes, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        for len in lens.iter().step_by((lens.len() / VALUES).max(1)) {
            blocks.push(overflow_blocks(*len) as f64);
            bytes.push(*len as f64);
            sizes.push(self.value_blocks(*len));
        }
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let sum = |x: &[f64]| x.iter().sum::<f64>();
        let (all_blocks, all_bytes) = self
            .written(page_size)
            .unwrap_or((sum(&blocks), sum(&bytes)));
        let (nn, nb, bb) = (
            dot(&blocks, &blocks),
            dot(&blocks, &bytes),
            dot(&bytes, &bytes),
        );
        let (ns, bs) = (dot(&blocks, &sizes), dot(&bytes, &sizes));
        let determinant = nn * bb - nb * nb;
        let mean = match determinant > 1e-6 * nn * bb {
            true => {
                let a = (ns * bb - bs * nb) / determinant;
                let b = (bs * nn - ns * nb) / determinant;
                a + b * all_bytes / all_blocks
            }
            // All are alike.
            false => sum(&sizes) / sum(&blocks),
        };
        (!sizes.is_empty()).then_some(mean.clamp(0.0, BLOCK_SIZE as f64))
    }

    /// Overflow blocks that the trace writes, and the bytes of values in them.
    fn written(&self, page_size: usize) -> Option<(f64, f64)> {
        let parts = [&self.workload.measured, &self.workload.warmup];
        let of = parts.map(|part| {
            let blocks = part.overflow_bytes(page_size) as f64 / BLOCK_SIZE as f64;
            (blocks, part.overflow_value_bytes(page_size) as f64)
        });
        of.into_iter().find(|(blocks, _)| *blocks > 0.0)
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
            for at in (0..4).chain(8..11).chain(40..48) {
                block[at] = self.below(256) as u8;
            }
            block[20] = index as u8;
            block[36..40].copy_from_slice(&(len as u32).to_le_bytes());
            block[HEADER..HEADER + part.len()].copy_from_slice(part);
            size += self.size(&block).0;
        }
        size
    }

    /// A pointer to a value of this length.
    pub(super) fn pointer(&mut self, len: usize) -> [u8; POINTER_BYTES] {
        let mut pointer = [0; POINTER_BYTES];
        pointer[..4].copy_from_slice(&[0xfd, b'O', b'V', 1]);
        pointer[4..8].copy_from_slice(&(len as u32).to_le_bytes());
        pointer[8] = 1;
        let (number, first) = (self.below(1 << 17), self.below(1 << 17));
        pointer[12..20].copy_from_slice(&(number as u64).to_le_bytes());
        pointer[20..28].copy_from_slice(&(first as u64).to_le_bytes());
        pointer[28] = overflow_blocks(len) as u8;
        for byte in &mut pointer[32..] {
            *byte = self.below(256) as u8;
        }
        pointer
    }
}
