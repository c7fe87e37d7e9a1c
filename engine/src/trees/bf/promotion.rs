//! Which reads of leaves leave a copy in the ring (Bf-Tree §5.1).
//!
//! What is promoted may answer later reads, each of which would read a page. But it takes room from
//! changes, so that more mini-pages are merged, and each merge writes a page. Which weighs more
//! depends on the workload: on YCSB-B more promotion saves a third of the page reads and costs
//! nothing, and where old records are hardly read again it only costs. So no share is right for
//! all. With [`Promote::Adaptive`] lookups and scans have a share of their own, and every
//! [`WINDOW`] reads of leaves it is weighed anew:
//!
//! ```text
//!   saved  =  reads that mini-pages answered with what the leaf has as well
//!   spent  =  merges x bytes promoted / bytes that the ring's tail has passed
//!   saved > PRICE x spent:  a quarter more is promoted, up to 30 %
//!   otherwise:              a fifth less, down to 0.5 %
//! ```
//!
//! `spent` is the part of the merges that what was promoted has caused: the tail passes so many
//! bytes between two merges, whatever they are for.
//!
//! Cost: one counter for each read of a leaf, and O(1) with two short locks every [`WINDOW`] of
//! them.

use super::counters::Counters;
use crate::mini;
use crate::node::PageRef;
use crate::options::Promote;
use crate::ring::Ring;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// So many answers of clean records weigh as much as one merge.
///
/// A page written counts as four pages read. And of fifty such answers, about one is owed to the
/// promotion: most are given by records that were merged and stayed, or that are written again
/// soon. 100 and 400 give the same page reads and writes within 1 % (`docs/PROMOTION.md`).
const PRICE: f64 = 200.0;

/// The reads of leaves, in per cent, that are promoted at first, at least, and at most.
const FIRST: f64 = 5.0;
const LEAST: f64 = 0.5;
const MOST: f64 = 30.0;

/// Reads of leaves after which the share is weighed again.
const WINDOW: u64 = 512;

/// What has happened in a ring so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromotionTotals {
    /// Reads that mini-pages answered with what the leaf has as well.
    pub answered: u64,
    /// Merges.
    pub merges: u64,
    /// Bytes of records that reads were to leave in mini-pages.
    pub promoted: u64,
    /// Bytes that the tail has passed.
    pub passed: u64,
}

/// The share of the reads of leaves that are promoted, as it adapts.
///
/// ```
/// use treering_engine::{Promotion, PromotionTotals};
///
/// let mut promotion = Promotion::default();
/// let first = promotion.percent();
/// // What was promoted has answered many reads, and caused a twentieth of the merges.
/// let earns = PromotionTotals { answered: 400, merges: 10, promoted: 50, passed: 1000 };
/// promotion.weigh(&earns);
/// assert!(promotion.percent() > first);
/// // Since then it has answered none.
/// promotion.weigh(&PromotionTotals { merges: 20, promoted: 100, passed: 2000, ..earns });
/// assert_eq!(promotion.percent(), first);
/// ```
#[derive(Clone, Debug)]
pub struct Promotion {
    percent: f64,
    last: PromotionTotals,
}

impl Default for Promotion {
    fn default() -> Self {
        Promotion {
            percent: FIRST,
            last: PromotionTotals::default(),
        }
    }
}

impl Promotion {
    /// Reads of leaves after which the share is to be weighed.
    pub const WINDOW: u64 = WINDOW;

    /// The share, in per cent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        self.percent
    }

    /// Weighs the share by what has happened since the last time.
    pub fn weigh(&mut self, now: &PromotionTotals) {
        let since = |count: fn(&PromotionTotals) -> u64| {
            count(now).saturating_sub(count(&self.last)) as f64
        };
        let promoted = since(|totals| totals.promoted);
        let part = (promoted / since(|totals| totals.passed).max(1.0)).min(1.0);
        let spent = since(|totals| totals.merges) * part;
        // Nothing was promoted, so nothing is known.
        if promoted > 0.0 {
            self.percent = match since(|totals| totals.answered) > PRICE * spent {
                true => (self.percent * 1.25).min(MOST),
                false => (self.percent / 1.25).max(LEAST),
            };
        }
        self.last = *now;
    }

    /// The share of such reads in per cent, if it is fixed.
    #[must_use]
    pub fn fixed(promote: Promote, of: LeafReads) -> Option<f64> {
        let percent = promote.percent()?;
        Some(f64::from(match of {
            LeafReads::Lookups => percent,
            // A mirror takes as much of the ring as many records do. Making a mirror in every third
            // scan costs no more reads, and much less work.
            LeafReads::Scans => percent / 3,
        }))
    }

    /// Whether the `n`th read is one of this share, in per cent. The fractional parts of the golden
    /// ratio's multiples are evenly spread, whatever the order of keys.
    #[must_use]
    pub fn falls_on(n: u64, percent: f64) -> bool {
        let spread = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        ((spread * 100) as f64) < percent * 4_294_967_296.0
    }
}

/// A kind of reads of leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafReads {
    /// For one key.
    Lookups,
    /// Of all records in a range.
    Scans,
}

/// The promotion of one kind of reads.
#[derive(Default)]
struct Side {
    reads: AtomicU64,
    promoted: AtomicU64,
    weighed: Mutex<Promotion>,
    /// The bits of its share, for threads that do not hold the lock.
    percent: AtomicU64,
}

impl Side {
    fn new() -> Side {
        let first = AtomicU64::new(FIRST.to_bits());
        Side {
            percent: first,
            ..Side::default()
        }
    }

    /// The share as it is now. When it is time, it is weighed by `totals` of the bytes promoted.
    fn adapted(&self, totals: impl FnOnce(u64) -> PromotionTotals) -> f64 {
        let n = self.reads.fetch_add(1, Ordering::Relaxed) + 1;
        // If another thread is weighing it, that will do.
        if n.is_multiple_of(WINDOW)
            && let Some(mut promotion) = self.weighed.try_lock()
        {
            promotion.weigh(&totals(self.promoted.load(Ordering::Relaxed)));
            let bits = promotion.percent().to_bits();
            self.percent.store(bits, Ordering::Relaxed);
        }
        f64::from_bits(self.percent.load(Ordering::Relaxed))
    }
}

/// Decides which reads of leaves are promoted.
pub(super) struct Promoter {
    promote: Promote,
    /// Advances only on reads of leaves.
    chance: AtomicU64,
    lookups: Side,
    scans: Side,
}

impl Promoter {
    pub(super) fn new(promote: Promote) -> Promoter {
        Promoter {
            promote,
            chance: AtomicU64::new(0),
            lookups: Side::new(),
            scans: Side::new(),
        }
    }

    fn side(&self, of: LeafReads) -> &Side {
        match of {
            LeafReads::Lookups => &self.lookups,
            LeafReads::Scans => &self.scans,
        }
    }

    /// Whether this read of a leaf is to leave a copy in `ring`, which takes `bytes` of it.
    pub(super) fn wants(
        &self,
        of: LeafReads,
        (counters, ring): (&Counters, &Ring),
        bytes: impl FnOnce() -> usize,
    ) -> bool {
        let totals = |promoted| PromotionTotals {
            answered: match of {
                LeafReads::Lookups => counters.clean_hits(),
                LeafReads::Scans => counters.mirror_scans.load(Ordering::Relaxed),
            },
            merges: counters.all_merges(),
            promoted,
            passed: ring.passed(),
        };
        let percent = Promotion::fixed(self.promote, of);
        let percent = percent.unwrap_or_else(|| self.side(of).adapted(totals));
        let n = self.chance.fetch_add(1, Ordering::Relaxed);
        let wants = Promotion::falls_on(n, percent);
        if wants && self.promote == Promote::Adaptive {
            Counters::add(&self.side(of).promoted, bytes() as u64);
        }
        wants
    }
}

/// Bytes that the records of a leaf take in a mini-page.
pub(super) fn bytes_of(leaf: &PageRef<'_>) -> usize {
    let prefix = leaf.prefix().len();
    let records = leaf.iter_from(b"");
    records.fold(0, |sum, (suffix, value)| {
        sum + mini::META + prefix + suffix.len() + value.len()
    })
}
