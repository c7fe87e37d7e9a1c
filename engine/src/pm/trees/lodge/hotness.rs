//! Splits a last-level inner node into more nodes the hotter it is (LodgeTree §III-C, Figures 7 to
//! 9, equation (1)). This happens in DRAM only and is invisible to crashes.
//!
//! A node remembers the times of its last two splits, and into how many nodes the last one split it
//! (M). A split that comes much sooner than the last one indicates a burst of writes and makes one
//! node more. One that comes much later makes one less. The number is then fitted to the space
//! above, so that the upper node need not split.
//!
//! Where the text is incomplete or contradicts itself (CLAIMS LT-09, LT-10):
//! - The factor t is not given: it is [`crate::LodgeOptions::burst_factor`], 2 by default. Time is
//!   the number of log entries, which counts writes.
//! - Equation (1) is computed as printed, although it could allow one node more: N nodes add N - 1
//!   entries above. So with X = 1 free slots, two nodes fit and the upper one need not split,
//!   contrary to the text; and M = X + 1 would fit, too. X = 0 is undefined there; here the upper
//!   node then splits, and N is 2.
//! - Nothing bounds M. A part with fewer than two leaves would consist almost only of buffer, so N
//!   is at most half the number of leaves, and at least 2.
//! - The upper levels are the engine's index with nodes of 29 entries, the paper's number.

use crate::options::NodeSplit;
use crate::pm::events::lodge::LodgeEvent;
use crate::stats::FLUSH_BINS;
use crate::sync::RwLockWriteGuard;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::PageId;

use super::Lodge;
use super::node::Body;

/// Equation (1): returns how many nodes a split makes that should make `m`, if the upper node has
/// `x` free slots.
fn fitted(m: usize, x: usize) -> usize {
    match x {
        0 | 1 => 2,
        _ if m < x => m,
        _ => x,
    }
}

/// Returns M for a node whose last split made `parts` nodes, with `interval_lp` between its last
/// two splits and `interval_nl` since the last one.
fn judged(parts: usize, interval_lp: u64, interval_nl: u64, factor: u64) -> usize {
    if interval_lp > factor * interval_nl {
        parts + 1
    } else if interval_lp * factor < interval_nl {
        parts - 1
    } else {
        parts
    }
}

impl Lodge {
    fn wanted_parts(&self, body: &Body, low: &[u8]) -> usize {
        if self.options.node_split == NodeSplit::Double {
            return 2;
        }
        let now = self.clock.last().0;
        let parts = usize::from(body.parts);
        // It takes two splits to make an interval.
        let wanted = if body.split_before == 0 {
            parts
        } else {
            let interval_lp = body.split_last - body.split_before;
            let factor = u64::from(self.options.burst_factor);
            judged(parts, interval_lp, now - body.split_last, factor)
        };
        fitted(wanted.max(2), self.index.room(low))
    }

    /// Splits a node that has no room for a buffer. A thread that waits for the node's lock then
    /// has to look up its key again.
    pub(super) fn split_node(&self, mut body: RwLockWriteGuard<'_, Body>) {
        let leaves = body.leaves();
        let low = body.low(0);
        let parts = self.wanted_parts(&body, &low).min(leaves / 2).max(2);
        (body.split_before, body.split_last) = (body.split_last, self.clock.last().0);
        body.parts = parts as u8;
        let bound = |part: usize| part * leaves / parts;
        // Before other threads can find the new nodes.
        self.tell(|| {
            let part = |part| body.part(bound(part)..bound(part + 1)).image();
            LodgeEvent::SplitsNode {
                parts: (0..parts).map(part).collect(),
            }
        });
        // From the right: nodes that the index does not refer to yet are still covered by the old
        // node, which is locked.
        for part in (1..parts).rev() {
            let number = self.nodes.allocate();
            let new = body.part(bound(part)..bound(part + 1));
            let low = new.low(0);
            *self.nodes.node(number).write() = new;
            self.index.insert(&low, PageId(number));
        }
        *body = body.part(0..bound(1));
        self.counters.node_splits[(parts - 2).min(FLUSH_BINS - 1)].fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equation_1_is_as_printed() {
        // LT-10.
        let table = [
            (2, 5, 2),
            (4, 5, 4),
            (5, 5, 5),
            (6, 5, 5),
            (3, 2, 2),
            (2, 2, 2),
            (7, 1, 2),
            (2, 0, 2),
        ];
        for (m, x, n) in table {
            assert_eq!(fitted(m, x), n, "M = {m}, X = {x}");
        }
    }

    #[test]
    fn a_burst_adds_a_node_and_a_pause_takes_one_away() {
        // LT-09.
        assert_eq!(judged(3, 100, 49, 2), 4);
        assert_eq!(judged(3, 100, 50, 2), 3);
        assert_eq!(judged(3, 100, 200, 2), 3);
        assert_eq!(judged(3, 100, 201, 2), 2);
    }
}
