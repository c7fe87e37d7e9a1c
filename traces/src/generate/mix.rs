//! The mix of operations: exact counts, in random order.
//!
//! Kinds are drawn like cards from a shuffled deck, without replacement: the next operation is a
//! put with probability (puts left) / (operations left). So the counts of a trace are known before
//! it starts and its shares are exact, not only on average, while the order is a random shuffle.

use super::params::{GenParams, Workload};
use super::random::Random;

/// A client's next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Get,
    Update,
    Delete,
    Scan,
    /// A put of a new record.
    Insert,
    /// A get and a put of the same key, which are two operations.
    ReadModifyWrite,
}

const ACTIONS: [Action; 6] = [
    Action::Get,
    Action::Update,
    Action::Delete,
    Action::Scan,
    Action::Insert,
    Action::ReadModifyWrite,
];

/// The number of each action that is left.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    left: [u64; ACTIONS.len()],
    total: u64,
}

/// Returns a share of `ops` as the nearest whole number.
fn part(share: f64, ops: u64) -> u64 {
    libm::round(share * ops as f64) as u64
}

impl Mix {
    pub(crate) fn new(params: &GenParams) -> Self {
        use Workload::*;
        let ops = params.operations();
        let [mut updates, mut deletes, mut scans, mut inserts, mut pairs] = [0; 5];
        match params.workload {
            YcsbA => updates = part(0.5, ops),
            YcsbB => updates = part(0.05, ops),
            YcsbC | Load => {}
            YcsbD => inserts = part(0.05, ops),
            YcsbE => {
                inserts = part(0.05, ops);
                scans = ops - inserts;
            }
            // As many pairs as single gets, n / 3 each, because a pair is two operations.
            YcsbF => pairs = part(1.0 / 3.0, ops).min(ops / 2),
            Uniform | Zipf | Latest | Hotspot | Mixgraph | Sequential | Shifting | Log => {
                let [w, d, s] = params.shares();
                // The running sums are rounded, so that the parts never exceed `ops`.
                let puts = part(w, ops).min(ops);
                deletes = part(w + d, ops).clamp(puts, ops) - puts;
                scans = part(w + d + s, ops).clamp(puts + deletes, ops) - puts - deletes;
                match params.workload {
                    Latest | Log => inserts = puts,
                    _ => updates = puts,
                }
            }
        }
        let gets = ops - updates - deletes - scans - inserts - 2 * pairs;
        let left = [gets, updates, deletes, scans, inserts, pairs];
        Mix {
            left,
            total: left.iter().sum(),
        }
    }

    /// Returns the number of records inserted after the load.
    pub(crate) fn inserts(&self) -> u64 {
        self.left[4]
    }

    #[inline]
    pub(crate) fn draw(&mut self, random: &mut Random) -> Option<Action> {
        if self.total == 0 {
            return None;
        }
        let mut card = random.below(self.total);
        self.total -= 1;
        for (left, action) in self.left.iter_mut().zip(ACTIONS) {
            if card < *left {
                *left -= 1;
                return Some(action);
            }
            card -= *left;
        }
        None
    }
}
