//! The distribution of lengths or of intervals, exact if they are short and within
//! 1 % above.

use serde::Serialize;

/// Lengths of fewer bits are counted individually.
const LENGTH_BITS: u32 = 16;
/// Intervals of fewer bits are counted individually. They vary more than lengths, and so few counts
/// stay in the processor's cache.
const INTERVAL_BITS: u32 = 12;
/// Cells for each doubling of longer ones: 2^7.
const STEP_BITS: u32 = 7;

/// Counts lengths, or intervals of time.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Lengths of fewer bits are counted individually.
    bits: u32,
    /// Counts by length, up to the longest such length seen.
    small: Vec<u64>,
    /// Counts of longer lengths, by doubling and step.
    large: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// A bin of a histogram. Each covers one doubling of the length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeBin {
    /// Smallest length in the bin.
    pub from: u64,
    /// Largest length in the bin.
    pub to: u64,
    /// Number of lengths in the bin.
    pub count: u64,
}

/// A distribution of lengths in bytes (for scans, in records; for intervals, in operations).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeStats {
    /// Number of lengths measured.
    pub count: u64,
    /// The shortest.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The median (above 64 KiB, and of intervals above 4,096: within 1 %).
    pub p50: u64,
    /// The 99th percentile (above 64 KiB, and of intervals above 4,096: within 1 %).
    pub p99: u64,
    /// The longest.
    pub max: u64,
    /// Counts by powers of two, without empty bins.
    pub histogram: Vec<SizeBin>,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes::exact_below(LENGTH_BITS)
    }
}

impl Sizes {
    /// For intervals: exact below 4,096.
    #[must_use]
    pub fn of_intervals() -> Sizes {
        Sizes::exact_below(INTERVAL_BITS)
    }

    fn exact_below(bits: u32) -> Sizes {
        Sizes {
            bits,
            small: Vec::new(),
            large: Vec::new(),
            count: 0,
            sum: 0,
            min: 0,
            max: 0,
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, len: u32) {
        self.add_many(u64::from(len), 1);
    }

    /// Adds a length `count` times.
    #[inline]
    pub fn add_many(&mut self, len: u64, count: u64) {
        if self.count == 0 {
            self.min = len;
        }
        self.count += count;
        self.sum += u128::from(len) * u128::from(count);
        self.min = self.min.min(len);
        self.max = self.max.max(len);
        if len >> self.bits == 0 {
            let at = len as usize;
            if at >= self.small.len() {
                self.small.resize((at + 1).next_power_of_two(), 0);
            }
            self.small[at] += count;
        } else {
            let cell = self.cell(len);
            if cell >= self.large.len() {
                self.large.resize(cell + 1, 0);
            }
            self.large[cell] += count;
        }
    }

    /// Returns the sum of the lengths, each cut to at most `most`.
    pub(crate) fn sum_up_to(&self, most: u64) -> u128 {
        let cut = |(len, count): (u64, u64)| u128::from(len.min(most)) * u128::from(count);
        self.cells().map(cut).sum()
    }

    /// Returns the cell of a length that is not counted individually.
    fn cell(&self, len: u64) -> usize {
        let doubling = len.ilog2() - self.bits;
        let step = (len >> (doubling + self.bits - STEP_BITS)) & ((1 << STEP_BITS) - 1);
        ((doubling as usize) << STEP_BITS) + step as usize
    }

    /// Returns the largest length in a cell.
    fn cell_end(&self, cell: usize) -> u64 {
        let (doubling, step) = ((cell >> STEP_BITS) as u32, cell & ((1 << STEP_BITS) - 1));
        let next = (1_u128 << STEP_BITS) + step as u128 + 1;
        ((next << (doubling + self.bits - STEP_BITS)) - 1) as u64
    }

    /// Yields (largest length, count) of every cell, ascending.
    fn cells(&self) -> impl Iterator<Item = (u64, u64)> {
        let small = self.small.iter().enumerate();
        let large = self.large.iter().enumerate();
        small
            .map(|(len, &count)| (len as u64, count))
            .chain(large.map(|(cell, &count)| (self.cell_end(cell), count)))
    }

    fn quantile(&self, share: f64) -> u64 {
        let rank = (share * self.count as f64).ceil() as u64;
        let mut seen = 0;
        for (len, count) in self.cells() {
            seen += count;
            if seen >= rank {
                return len.min(self.max);
            }
        }
        self.max
    }

    /// Returns `None` if nothing was measured.
    #[must_use]
    pub fn stats(&self) -> Option<SizeStats> {
        if self.count == 0 {
            return None;
        }
        let mut bins: Vec<SizeBin> = Vec::new();
        for (len, count) in self.cells().filter(|&(_, count)| count > 0) {
            // 0 | 1 | 2-3 | 4-7 | …
            let (from, to) = match len {
                0 => (0, 0),
                _ => (1 << len.ilog2(), (2 << len.ilog2()) - 1),
            };
            match bins.last_mut() {
                Some(bin) if bin.from == from => bin.count += count,
                _ => bins.push(SizeBin { from, to, count }),
            }
        }
        Some(SizeStats {
            count: self.count,
            min: self.min,
            mean: self.sum as f64 / self.count as f64,
            p50: self.quantile(0.5),
            p99: self.quantile(0.99),
            max: self.max,
            histogram: bins,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_below_and_close_above() {
        let mut sizes = Sizes::default();
        (0..=100).for_each(|len| sizes.add(len));
        let stats = sizes.stats().expect("measured");
        assert_eq!(
            (stats.min, stats.p50, stats.p99, stats.max),
            (0, 50, 99, 100)
        );
        assert_eq!(stats.mean, 50.0);
        assert_eq!(
            stats.histogram.iter().map(|bin| bin.count).sum::<u64>(),
            101
        );

        let mut sizes = Sizes::default();
        (1..=1000).for_each(|i| sizes.add(i * 4_000_000));
        let stats = sizes.stats().expect("measured");
        let error = stats.p50 as f64 / 2e9 - 1.0;
        assert!((0.0..0.01).contains(&error), "{error}");
        assert_eq!(stats.max, 4_000_000_000);
    }

    #[test]
    fn a_length_lies_in_its_cell() {
        for len in [
            65_536u64,
            65_537,
            100_000,
            1 << 20,
            u32::MAX.into(),
            u64::MAX,
        ] {
            for sizes in [Sizes::default(), Sizes::of_intervals()] {
                let end = sizes.cell_end(sizes.cell(len));
                assert!(len <= end && end as f64 <= len as f64 * 1.01, "{len} {end}");
            }
        }
    }
}
