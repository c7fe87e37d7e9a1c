//! The distribution of lengths or of intervals, exact below 64 Ki and within 3 % above.

use serde::Serialize;

/// Lengths below this are counted individually.
const EXACT: usize = 1 << 16;
/// Cells per doubling above [`EXACT`].
const STEPS: u64 = 32;

/// Counts lengths, or intervals of time.
#[derive(Default)]
pub(crate) struct Sizes {
    /// Counts by length. Grows to the longest length seen, at most [`EXACT`].
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
    /// The median (above 64 KiB: within 3 %).
    pub p50: u64,
    /// The 99th percentile (above 64 KiB: within 3 %).
    pub p99: u64,
    /// The longest.
    pub max: u64,
    /// Counts by powers of two, without empty bins.
    pub histogram: Vec<SizeBin>,
}

impl Sizes {
    #[inline]
    pub(crate) fn add(&mut self, len: u32) {
        self.add_many(u64::from(len), 1);
    }

    /// Adds a length `count` times.
    #[inline]
    pub(crate) fn add_many(&mut self, len: u64, count: u64) {
        if self.count == 0 {
            self.min = len;
        }
        self.count += count;
        self.sum += u128::from(len) * u128::from(count);
        self.min = self.min.min(len);
        self.max = self.max.max(len);
        if len < EXACT as u64 {
            let at = len as usize;
            if at >= self.small.len() {
                self.small.resize((at + 1).next_power_of_two(), 0);
            }
            self.small[at] += count;
        } else {
            let cell = Self::cell(len);
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

    /// Returns the cell of a length of at least [`EXACT`].
    fn cell(len: u64) -> usize {
        let doubling = u64::from(len.ilog2()) - 16;
        (doubling * STEPS + ((len >> (doubling + 11)) & (STEPS - 1))) as usize
    }

    /// Returns the largest length in a cell.
    fn cell_end(cell: usize) -> u64 {
        let (doubling, step) = (cell as u64 / STEPS, cell as u64 % STEPS);
        ((STEPS + step + 1) << (doubling + 11)) - 1
    }

    /// Yields (largest length, count) of every cell, ascending.
    fn cells(&self) -> impl Iterator<Item = (u64, u64)> {
        let small = self.small.iter().enumerate();
        let large = self.large.iter().enumerate();
        small
            .map(|(len, &count)| (len as u64, count))
            .chain(large.map(|(cell, &count)| (Self::cell_end(cell), count)))
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
    pub(crate) fn stats(&self) -> Option<SizeStats> {
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
        assert!((0.0..0.04).contains(&error), "{error}");
        assert_eq!(stats.max, 4_000_000_000);
    }

    #[test]
    fn a_length_lies_in_its_cell() {
        for len in [65_536u64, 65_537, 100_000, 1 << 20, u64::from(u32::MAX)] {
            let end = Sizes::cell_end(Sizes::cell(len));
            assert!(len <= end && end as f64 <= len as f64 * 1.04, "{len} {end}");
        }
    }
}
