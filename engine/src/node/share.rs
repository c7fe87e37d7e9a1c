//! Distributes a page over its two neighbours, so that three pages become two.

use super::envelope::common_prefix;
use super::split::SplitPlan;
use super::view::PageRef;
use crate::options::layout::GENERAL;

impl PageRef<'_> {
    /// Chooses where to split this page so that `left` absorbs the left part and the right part
    /// absorbs `right`. Picks the boundary at which the two resulting pages have the most similar
    /// sizes. Returns `None` if the three pages do not fit two, or if this page is dense, because
    /// dense pages are not limited by bytes.
    ///
    /// The neighbours may be outdated copies: then the plan is a split like any other.
    ///
    /// O(n) for n records, with a copy of each key.
    #[must_use]
    pub fn choose_share(&self, left: &PageRef<'_>, right: &PageRef<'_>) -> Option<SplitPlan> {
        let size = self.page_size();
        // A sum of the used bytes is cheap and often suffices to say no.
        let least = |page: &PageRef<'_>| match page.layout().is_dense() {
            true => 0,
            false => page.used_bytes().saturating_sub(page.heading_bytes()),
        };
        let all = [left, self, right];
        if self.layout().is_dense() || all.map(least).iter().sum::<usize>() > 2 * size {
            return None;
        }
        let prefix = self.prefix().len();
        let records: Vec<usize> = (self.iter())
            .map(|(suffix, value)| prefix + suffix.len() + value.len())
            .collect();
        let (count, whole) = (records.len(), records.iter().sum::<usize>());
        let mut taken = 0;
        let mut key = if count < 2 { return None } else { self.key(0) };
        let mut best: Option<(usize, SplitPlan)> = None;
        for at in 1..count {
            taken += records.get(at - 1).copied().unwrap_or_default();
            let next = self.key(at);
            let cut = common_prefix(&key, &next);
            key = next;
            let Some(separator) = key.get(..=cut) else {
                continue;
            };
            let (first, second) = (
                left.bytes_with(left.lower_fence(), Some(separator), at, taken),
                right.bytes_with(separator, right.upper_fence(), count - at, whole - taken),
            );
            let apart = first.abs_diff(second);
            let better = best.as_ref().is_none_or(|(least, _)| apart < *least);
            if first.max(second) <= size && better {
                let plan = SplitPlan {
                    separator: separator.to_vec(),
                    at,
                    right: self.layout(),
                };
                best = Some((apart, plan));
            }
        }
        best.map(|(_, plan)| plan)
    }

    /// Bytes of header and fences.
    fn heading_bytes(&self) -> usize {
        let upper = self.upper_fence().map_or(0, <[u8]>::len);
        self.layout().header_bytes() + self.lower_fence().len() + upper
    }

    /// The size of the page with these fences, which are no narrower than its own, and `count` more
    /// records of `bytes` in all.
    fn bytes_with(&self, lower: &[u8], upper: Option<&[u8]>, count: usize, bytes: usize) -> usize {
        let layout = match self.layout().is_dense() {
            true => GENERAL,
            false => self.layout(),
        };
        let prefix = layout.prefix_bytes(lower, upper);
        layout.header_bytes()
            + layout.slots_bytes(self.count() + count)
            + lower.len()
            + upper.map_or(0, <[u8]>::len)
            + self.payload_bytes(prefix)
            + bytes.saturating_sub(count * prefix)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use crate::node::{ChangeMap, PageLayout, PageMut, PageRef};
    use crate::types::{Lsn, PageId};

    type Rows = Vec<(Vec<u8>, Vec<u8>)>;

    fn page(layout: PageLayout, lower: &[u8], upper: Option<&[u8]>, rows: &Rows) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        let rows = rows.iter().map(|(key, value)| (key, value));
        PageMut::new(&mut bytes, &mut ChangeMap::new())
            .build(layout, PageId(1), lower, upper, Lsn(1), rows)
            .expect("they fit");
        bytes
    }

    /// Rows of one page, three quarters full: keys with a common beginning, values of any size.
    fn rows(rng: &mut StdRng, first: u8, bytes: usize) -> Rows {
        let (mut rows, mut taken, mut number) = (Rows::new(), 0, 0u32);
        let shared = rng.random_range(0..20);
        loop {
            number += rng.random_range(1..1_000_000);
            let key = [&[first][..], &vec![b'-'; shared], &number.to_be_bytes()].concat();
            let value = vec![1; rng.random_range(0..400)];
            taken += key.len() + value.len() + 12;
            if taken > bytes {
                return rows;
            }
            rows.push((key, value));
        }
    }

    #[test]
    fn what_is_planned_fits_and_there_is_a_plan_where_three_pages_fit_two() {
        let mut rng = StdRng::seed_from_u64(3);
        let (mut planned, mut tight) = (0, 0);
        let general = PageLayout::ALL.iter().filter(|layout| !layout.is_dense());
        for layout in general.copied().cycle().take(1_200) {
            let all = [1, 2, 3].map(|first| {
                let bytes = rng.random_range(500..3_800);
                rows(&mut rng, first, bytes)
            });
            let fences: [(&[u8], Option<&[u8]>); 3] =
                [(b"", Some(&[2])), (&[2], Some(&[3])), (&[3], None)];
            let [mut left, mut middle, right] =
                [0, 1, 2].map(|n| page(layout, fences[n].0, fences[n].1, &all[n]));
            let plan =
                PageRef::new(&middle).choose_share(&PageRef::new(&left), &PageRef::new(&right));
            let used = |page: &[u8]| PageRef::new(page).used_bytes();
            let sum = used(&left) + used(&middle) + used(&right);
            let Some(plan) = plan else {
                // Two of the pages fit one, so no plan is needed.
                let [l, m, r] = [&left, &middle, &right].map(|bytes| PageRef::new(bytes));
                let merges = l.can_absorb(&m) || m.can_absorb(&r);
                // Below two pages minus the width of a record, there is always a boundary.
                assert!(merges || sum > 2 * 4096 - 600, "{layout:?}: {sum} bytes");
                continue;
            };
            planned += 1;
            tight += usize::from(sum > 2 * 4096 - 500);
            let mut behind = vec![0; 4096];
            let (mut a, mut b) = (ChangeMap::new(), ChangeMap::new());
            PageMut::new(&mut middle, &mut a)
                .split_into(&mut PageMut::new(&mut behind, &mut b), PageId(2), &plan)
                .expect("the plan is one of this page");
            for (page, next) in [(&mut left, &middle), (&mut behind, &right)] {
                let next = PageRef::new(next);
                assert!(
                    PageRef::new(page).can_absorb(&next),
                    "{layout:?}: {sum} bytes"
                );
                let moved: Rows = (0..next.count())
                    .map(|at| (next.key(at), next.value(at).to_vec()))
                    .collect();
                PageMut::new(page, &mut ChangeMap::new())
                    .absorb(next.upper_fence(), moved)
                    .expect("as was asked");
            }
            let records = PageRef::new(&left).count() + PageRef::new(&behind).count();
            assert_eq!(records, all.iter().map(Vec::len).sum::<usize>());
        }
        assert!(
            planned > 300 && tight > 5,
            "{planned} planned, {tight} of them tight"
        );
    }
}
