//! The mix of operations: exact counts, in random order.
//!
//! Kinds are drawn like cards from a shuffled deck, without replacement: the next operation is a put with probability
//! (puts left) / (operations left). The counts of a trace are thus known before it starts, and the shares are exact
//! and not only on average, while the order is that of a random shuffle.

use super::params::{GenParams, Workload};
use super::random::Random;

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Get,
    Update,
    Delete,
    Scan,
    /// A put of a record that was never there.
    Insert,
    /// A get and a put of the same key: two operations.
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

/// How many of each action are left.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    left: [u64; ACTIONS.len()],
    total: u64,
}

/// The nearest whole number to a share of `ops`.
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
            // As many pairs as single gets: n / 3 each, since a pair is two operations.
            YcsbF => pairs = part(1.0 / 3.0, ops).min(ops / 2),
            Uniform | Zipf | Latest | Hotspot | Mixgraph | Sequential => {
                let [w, d, s] = params.shares();
                // Rounding the running sums keeps the whole within `ops`.
                let puts = part(w, ops).min(ops);
                deletes = part(w + d, ops).clamp(puts, ops) - puts;
                scans = part(w + d + s, ops).clamp(puts + deletes, ops) - puts - deletes;
                match params.workload {
                    Latest => inserts = puts,
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

    /// Records that come into being after the load.
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
