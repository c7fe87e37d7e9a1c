//! The least that a memory allows: a lower bound of page writes, for any policy, even one that
//! knows the future.
//!
//! ```text
//! accesses ─▶ changes of each leaf ─▶ at a price of memory: when to write it ─▶ the best price
//!             in order of time         (a sum over leaves, each for itself)      for this memory
//! ```
//!
//! # What is bounded
//! A tree keeps changes in memory until it writes the leaf that they belong to. What it holds of
//! the leaf until then is either the newest change of each record, key and value and nothing beside
//! them ([`Unit::Records`]), or the whole page ([`Unit::Pages`]). Memory never holds more than `M`
//! bytes of that. So its mean over the measured part is at most `M`, too.
//!
//! # The bound
//! Give memory a price `p`, in page writes for a byte held during one operation. For any policy,
//!
//! ```text
//! writes  ≥  Σ over leaves ( writes + p · bytes held )  −  p · M · T
//!         ≥  Σ over leaves  min ( writes + p · bytes held )  −  p · M · T
//! ```
//!
//! with `T` operations, because what is held sums to at most `M · T`. The minimum of a leaf needs no
//! other leaf: it is a shortest path over its changes, see `price`. The inequality holds for every
//! `p ≥ 0` (weak duality), so the greatest of all right-hand sides is a bound. Coarse prices make
//! it smaller, never wrong. That memory counts by its mean alone is also how the optimum is bounded
//! for caches of objects of different sizes (PFOO-L: Berger, Beckmann, Harchol-Balter, *Practical
//! Bounds on Optimal Caching with Variable Object Sizes*, POMACS 2018). Here changes must be written
//! before they leave memory.
//!
//! The measured part is taken as repeated for ever, and `T` and the writes are those of one round:
//! what is in memory at the end of a round is there at the beginning of the next. Otherwise a short
//! run would leave much of what it wrote in memory, unpaid.
//!
//! # What is assumed
//! - Leaves are ranges of neighbouring keys with equally many bytes, the same from the beginning to
//!   the end. A tree that grows has fewer of them at first, so a load may get by with less.
//! - All of the memory is there for changes. Frames for reads, inner nodes, headers and free space
//!   are none of it.
//! - The log has each change once: keys and values.
//! - Values on blocks of their own are not counted.
//!
//! # Cost
//! `O(c · k)` for each price, with `c` changes and `k` changes between two writes of a leaf. Of many
//! changes, some 4,096 are looked at: those of a sample of the leaves, with memory
//! reduced like them, and, where leaves are few, those at the beginning. Then the bound is an
//! estimate.

mod changes;
mod price;
#[cfg(test)]
mod tests;

use std::hash::Hash as _;
use std::io;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use self::changes::Changes;
use self::price::Curve;
use crate::predict::Workload;

/// Approximate number of changes above which leaves are sampled.
const MOST_CHANGES: u64 = 1 << 12;

/// What memory holds of a leaf until it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The newest change of each record: key and value.
    Records,
    /// The whole page.
    Pages,
}

/// The leaves of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leaves {
    /// Size of a page in bytes.
    pub page_size: usize,
    /// Number of leaves; `None` for as few as keys and values can fill.
    pub count: Option<f64>,
}

/// Lower bounds of page writes, by memory.
#[derive(Debug)]
pub struct Limit {
    records: Curve,
    pages: Curve,
    /// How many leaves one that was looked at stands for.
    one_in: f64,
    /// The part of the time that was looked at.
    share: f64,
    /// Number of leaves.
    pub leaves: f64,
    /// Number of changes of the measured part.
    pub changes: f64,
}

impl Limit {
    /// Bounds for the measured part of `workload` on a tree with such leaves.
    ///
    /// # Errors
    /// The list of accesses is in a file that cannot be read.
    pub fn new(workload: &Workload, leaves: Leaves) -> io::Result<Limit> {
        let changes = Changes::of(workload, leaves, MOST_CHANGES)?;
        Ok(Limit {
            records: Curve::of_records(&changes),
            one_in: changes.one_in,
            share: changes.share,
            leaves: changes.leaves,
            changes: changes.total,
            pages: Curve::of_pages(changes, leaves.page_size as f64),
        })
    }

    /// As [`Limit::new`], or what that returned for these leaves before: runs of one tree on several
    /// drives have the same. A limit is at most some megabytes.
    ///
    /// # Errors
    /// Those of [`Limit::new`].
    pub(crate) fn kept(workload: &Workload, leaves: Leaves) -> io::Result<Arc<Limit>> {
        let count = leaves.count.map(f64::to_bits);
        let mut hasher = Xxh3::new();
        (leaves.page_size, count).hash(&mut hasher);
        let of = hasher.digest128();
        (workload.limits).get_or_make(of, || Limit::new(workload, leaves))
    }

    /// The least number of page writes with `memory` bytes for changes, of which it holds units.
    #[must_use]
    pub fn writes(&self, unit: Unit, memory: f64) -> f64 {
        let curve = match unit {
            Unit::Records => &self.records,
            Unit::Pages => &self.pages,
        };
        curve.least(memory / self.one_in) * self.one_in / self.share
    }

    /// Whether only a sample of the changes was looked at.
    #[must_use]
    pub fn is_estimated(&self) -> bool {
        self.one_in > 1.0 || self.share < 1.0
    }
}
