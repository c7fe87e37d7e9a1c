//! How often each page is accessed: for the closed forms of other replacement policies, which take
//! accesses for independent.

use treering_engine::Options;

use crate::predict::cache::ClassBuilder;
use crate::predict::policies::OtherPolicies;

/// Accesses of each page in the measured part.
pub(super) struct Visits(Vec<u32>);

impl Visits {
    pub(super) fn new(pages: usize) -> Visits {
        Visits(vec![0; pages])
    }

    #[inline]
    pub(super) fn add(&mut self, page: u32) {
        let count = &mut self.0[page as usize];
        *count = count.saturating_add(1);
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Hit ratios of caches of frames only, under `ops` operations. Each page counts for `weight`.
    pub(super) fn other_policies(&self, options: &Options, ops: f64, weight: f64) -> OtherPolicies {
        let mut classes = ClassBuilder::new(ops);
        for count in self.0.iter().filter(|count| **count > 0) {
            classes.add(weight, f64::from(*count), 0.0);
        }
        let frames = options.cache_bytes / options.page_size as u64;
        OtherPolicies::predict(&classes.finish(), frames as f64)
    }
}
