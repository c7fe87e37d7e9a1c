//! Means and lines through the sizes of sampled blocks, and where slots lie in them.

use treering_engine::node::PageRef;

use crate::predict::played::PageSize;

/// Means from sums and counts. A number without a measurement is between its neighbours.
pub(super) fn means(sums: &[(f64, f64)]) -> Vec<f64> {
    let known: Vec<(usize, f64)> = (sums.iter().enumerate())
        .filter(|(_, (_, n))| *n > 0.0)
        .map(|(i, (sum, n))| (i, sum / n))
        .collect();
    let at = |i: usize| {
        let next = known.partition_point(|(j, _)| *j < i);
        match (next.checked_sub(1).map(|p| known[p]), known.get(next)) {
            (_, Some((j, size))) if *j == i => *size,
            (Some((low, from)), Some((high, to))) => {
                from + (to - from) * (i - low) as f64 / (high - low) as f64
            }
            (Some((_, size)), None) | (None, Some(&(_, size))) => size,
            (None, None) => 0.0,
        }
    };
    (0..sums.len()).map(at).collect()
}

/// A line through points, by least squares.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    points: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Line {
    pub(super) fn add(&mut self, x: f64, y: f64) {
        self.points += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    pub(super) fn fit(&self) -> PageSize {
        let points = self.points.max(1.0);
        let (x, mean) = (self.x / points, self.y / points);
        let spread = self.xx / points - x * x;
        let per_byte = match spread > 1.0 {
            true => ((self.xy / points - x * mean) / spread).max(0.0),
            // All pages are alike.
            false => mean / x.max(1.0),
        };
        PageSize {
            mean,
            empty: mean - per_byte * x,
            per_byte,
            per_repeated: 0.0,
        }
    }
}

/// The number of segments with header or slots in a page.
pub(super) fn slot_segments(page: &[u8], segment: usize) -> usize {
    let page = PageRef::new(page);
    let slots = page.layout().slots_bytes(page.count());
    (page.layout().header_bytes() + slots).div_ceil(segment)
}
