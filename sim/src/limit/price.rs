//! The least cost of all leaves at a price of memory, and the best price for a memory.
//!
//! The changes of a leaf are `1 … m`, and the leaf is written just after some of them. Between two
//! writes, after `i` and after `j`, memory holds the newest change of each record in between:
//!
//! ```text
//! held(i, j) = Σ over changes s in i+1 … j of bytes(s) · (min(next(s), at(j)) − at(s))
//! cost(j)    = min over i < j of  cost(i) + 1 + p · held(i, j)
//! ```
//!
//! where `next(s)` is when the record of `s` is changed again. `held(i, j') − held(i, j)` is what is
//! held from `j` to `j'`, and that shrinks as `i` grows. So if a later `i` is better for `j`, it is
//! better for all that follows: the best `i` never moves back.
//!
//! # A round of infinitely many
//! The changes are repeated for some rounds. Each `cost(j)` follows from those of the rounds before,
//! by a map that is monotone, and that adds what is added to all of them. So if all costs of some
//! rounds are at least `c` greater than those `d` rounds earlier, they will be so for ever, and no
//! policy gets by with less than `c / d` a round (the lower bound of value iteration). The least
//! such difference gives the cost of the leaf; it may miss a part of one write in `d` rounds.
//!
//! That needs the costs of as many rounds as may be between two writes. What is longer than that, or
//! than [`MOST_BETWEEN`] changes, counts as cut by a write that costs nothing, after which memory is
//! empty again. That makes the bound smaller, never greater.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::changes::{Change, Changes};

/// Changes between two writes that are looked at.
const MOST_BETWEEN: usize = 512;

/// Rounds between two writes that are looked at, least and most, and changes that are enough.
const ROUNDS: (usize, usize) = (3, 15);
const ENOUGH: usize = 256;

/// Most rounds over which costs are compared, and changes that are enough.
const MOST_COMPARED: usize = 12;
const ENOUGH_COMPARED: usize = 512;

/// Ratio of one price to the next, and of how many the first look at all prices tries one.
const STEP: f64 = 1.2;
const FIRST_STRIDE: i32 = 8;

/// The changes of a leaf in some rounds.
#[derive(Debug)]
pub(super) struct Repeated {
    changes: Vec<Change>,
    /// Changes in a round, and at most between two writes.
    round: usize,
    between: usize,
    /// Rounds over which costs are compared.
    compared: usize,
}

/// The changes of each leaf, and what memory holds of them.
#[derive(Debug)]
enum Held {
    Records(Vec<Repeated>),
    /// Each leaf with changes takes so many bytes.
    Pages(f64, Vec<Vec<Change>>),
}

impl Repeated {
    /// Repeats the changes of a round of `ops` operations.
    pub(super) fn new(leaf: &[Change], ops: f64) -> Repeated {
        let round = leaf.len();
        let back = (ENOUGH / round.max(1)).clamp(ROUNDS.0, ROUNDS.1);
        let compared = (ENOUGH_COMPARED / round.max(1)).clamp(1, MOST_COMPARED);
        let rounds = back + compared;
        let mut changes = Vec::with_capacity(rounds * round);
        for n in 0..rounds {
            let later = n as f64 * ops;
            changes.extend(leaf.iter().map(|change| Change {
                at: change.at + later,
                next: change.next + later,
                ..*change
            }));
        }
        Repeated {
            changes,
            round,
            between: (back * round).min(MOST_BETWEEN),
            compared,
        }
    }
}

/// The least cost at any price.
#[derive(Debug)]
pub(super) struct Curve {
    held: Held,
    ops: f64,
    /// The lowest price: to hold a change for a round is cheaper than a hundredth of a write.
    lowest: f64,
    /// Number of prices, up to one at which to hold a change for one operation is dearer than a
    /// write.
    prices: i32,
    /// The least sum of writes and bytes held in a round, by number of the price.
    costs: Mutex<BTreeMap<i32, f64>>,
}

impl Curve {
    /// The curve of these changes if memory holds records.
    pub(super) fn of_records(changes: &Changes) -> Curve {
        let ops = changes.ops.max(1.0);
        let all = changes.of_leaves.iter().flatten();
        let (count, bytes) = all.fold((0.0, 0.0), |(n, bytes), c| (n + 1.0, bytes + c.bytes));
        let leaves = changes.of_leaves.iter();
        let repeated = leaves.map(|leaf| Repeated::new(leaf, ops)).collect();
        Curve::new(Held::Records(repeated), bytes / f64::max(count, 1.0), ops)
    }

    /// The curve of these changes if memory holds pages of so many bytes.
    pub(super) fn of_pages(changes: Changes, bytes: f64) -> Curve {
        let ops = changes.ops.max(1.0);
        Curve::new(Held::Pages(bytes, changes.of_leaves), bytes, ops)
    }

    /// A curve where a change takes about `unit` bytes.
    fn new(held: Held, unit: f64, ops: f64) -> Curve {
        let unit = unit.max(1.0);
        let lowest = 0.01 / (unit * ops);
        Curve {
            held,
            ops,
            lowest,
            prices: (4.0 / (unit * lowest)).log(STEP).ceil() as i32,
            costs: Mutex::default(),
        }
    }

    fn price(&self, number: i32) -> f64 {
        self.lowest * STEP.powi(number)
    }

    fn cost(&self, number: i32) -> f64 {
        *self.costs.lock().entry(number).or_insert_with(|| {
            let price = self.price(number);
            match &self.held {
                Held::Records(leaves) => {
                    let mut table = Table::default();
                    leaves.iter().map(|leaf| table.records(leaf, price)).sum()
                }
                Held::Pages(bytes, leaves) => {
                    let costs = leaves
                        .iter()
                        .map(|leaf| pages(leaf, price * bytes, self.ops));
                    costs.sum()
                }
            }
        })
    }

    /// The least number of writes with so many bytes of memory.
    pub(super) fn least(&self, memory: f64) -> f64 {
        let bound = |number| self.cost(number) - self.price(number) * memory * self.ops;
        // The bound is concave in the price: look at a few, and then nearer and nearer at the best.
        let (mut best, mut at) = (0.0, 0);
        let mut stride = FIRST_STRIDE;
        for number in (0..=self.prices + stride).step_by(stride as usize) {
            let found = bound(number);
            if found > best {
                (best, at) = (found, number);
            }
        }
        while stride > 1 {
            stride /= 2;
            for number in [at - stride, at + stride] {
                let found = bound(number);
                if found > best {
                    (best, at) = (found, number);
                }
            }
        }
        best
    }
}

/// The costs of one leaf: the least if it is written after so many changes.
#[derive(Default)]
pub(super) struct Table(Vec<f64>);

impl Table {
    /// The least cost of a round if memory holds records.
    pub(super) fn records(&mut self, leaf: &Repeated, price: f64) -> f64 {
        self.costs(&leaf.changes, price, leaf.between);
        self.of_a_round(leaf)
    }

    /// Fills the table for memory that holds records, with at most `between` changes between two
    /// writes.
    pub(super) fn costs(&mut self, changes: &[Change], price: f64, between: usize) -> &[f64] {
        let cost = &mut self.0;
        cost.clear();
        cost.push(0.0);
        let mut first = 0;
        for (j, last) in changes.iter().enumerate() {
            let (mut best, mut held, mut from) = (f64::INFINITY, 0.0, j);
            let least = (j + 1).saturating_sub(between);
            for i in (first.max(least)..=j).rev() {
                let change = &changes[i];
                held += change.bytes * (change.next.min(last.at) - change.at);
                let all = cost[i] + 1.0 + price * held;
                if all < best {
                    (best, from) = (all, i);
                }
            }
            // Perhaps the leaf was last written before these.
            if least > 0 && first <= least && cost[least] + price * held < best {
                (best, from) = (cost[least] + price * held, least);
            }
            first = from;
            cost.push(best);
        }
        cost
    }

    fn of_a_round(&self, leaf: &Repeated) -> f64 {
        let later = leaf.compared * leaf.round;
        let pairs = self.0.iter().zip(&self.0[later..]);
        let differences = pairs.map(|(before, after)| after - before);
        differences.fold(f64::INFINITY, f64::min).max(0.0) / leaf.compared as f64
    }
}

/// The least cost of a round if memory holds the leaf as a whole, for `price` an operation: from
/// each change to the next it is held, or written and read again.
pub(super) fn pages(leaf: &[Change], price: f64, ops: f64) -> f64 {
    let Some(first) = leaf.first() else {
        return 0.0;
    };
    let ends = leaf.iter().skip(1).map(|change| change.at);
    let ends = ends.chain([first.at + ops]);
    let gaps = leaf.iter().zip(ends).map(|(change, end)| end - change.at);
    gaps.map(|gap| (price * gap).min(1.0)).sum()
}
