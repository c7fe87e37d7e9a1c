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
//! From one change to the next, what is held since `i` grows by the bytes in memory since `i` times
//! the operations between them, and a change adds its bytes for each `i` after the one that it
//! replaces. So the step is the same for all `i`, and none waits for its neighbour.
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

/// Leaves that show which price is best, at least, and how many leaves one of them stands for, at
/// most.
const FEW_LEAVES: usize = 8;
const MOST_FOR_ONE: usize = 8;

/// The changes of a leaf in some rounds.
#[derive(Debug)]
pub(super) struct Repeated {
    changes: Vec<Change>,
    /// See [`replaced`].
    replaced: Vec<usize>,
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
            replaced: replaced(&changes),
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
    /// Mean bytes of memory with which nothing need ever be written.
    enough: f64,
    /// The lowest price: to hold a change for a round is cheaper than a hundredth of a write.
    lowest: f64,
    /// Number of prices, up to one at which to hold a change for one operation is dearer than a
    /// write.
    prices: i32,
    /// The least sum of writes and bytes held in a round, by number of the price, of one leaf in so
    /// many.
    costs: Mutex<BTreeMap<(i32, usize), f64>>,
}

impl Curve {
    /// The curve of these changes if memory holds records.
    pub(super) fn of_records(changes: &Changes) -> Curve {
        let ops = changes.ops.max(1.0);
        let all = || changes.of_leaves.iter().flatten();
        let unit = all().map(|c| c.bytes).sum::<f64>() / f64::max(all().count() as f64, 1.0);
        let held = all().map(|c| c.bytes * (c.next - c.at)).sum::<f64>();
        let leaves = changes.of_leaves.iter();
        let repeated = leaves.map(|leaf| Repeated::new(leaf, ops)).collect();
        Curve::new(Held::Records(repeated), unit, (held / ops, ops))
    }

    /// The curve of these changes if memory holds pages of so many bytes.
    pub(super) fn of_pages(changes: Changes, bytes: f64) -> Curve {
        let ops = changes.ops.max(1.0);
        let enough = bytes * changes.of_leaves.len() as f64;
        Curve::new(Held::Pages(bytes, changes.of_leaves), bytes, (enough, ops))
    }

    /// A curve where a change takes about `unit` bytes.
    fn new(held: Held, unit: f64, (enough, ops): (f64, f64)) -> Curve {
        let unit = unit.max(1.0);
        let lowest = 0.01 / (unit * ops);
        Curve {
            held,
            ops,
            enough,
            lowest,
            prices: (4.0 / (unit * lowest)).log(STEP).ceil() as i32,
            costs: Mutex::default(),
        }
    }

    fn price(&self, number: i32) -> f64 {
        self.lowest * STEP.powi(number)
    }

    /// The least cost at a price, of one leaf in `every`.
    fn cost(&self, number: i32, every: usize) -> f64 {
        *self.costs.lock().entry((number, every)).or_insert_with(|| {
            let price = self.price(number);
            match &self.held {
                Held::Records(leaves) => {
                    let mut table = Table::default();
                    let leaves = leaves.iter().step_by(every);
                    leaves.map(|leaf| table.records(leaf, price)).sum()
                }
                Held::Pages(bytes, leaves) => {
                    let leaves = leaves.iter().step_by(every);
                    leaves
                        .map(|leaf| pages(leaf, price * bytes, self.ops))
                        .sum()
                }
            }
        })
    }

    /// How many leaves one stands for where a few will do, and the part of all changes in those.
    fn few(&self) -> (usize, f64) {
        let changes: Vec<usize> = match &self.held {
            Held::Records(leaves) => leaves.iter().map(|leaf| leaf.round).collect(),
            Held::Pages(_, leaves) => leaves.iter().map(Vec::len).collect(),
        };
        let every = (changes.len() / FEW_LEAVES).clamp(1, MOST_FOR_ONE);
        let few: usize = changes.iter().step_by(every).sum();
        let all: usize = changes.iter().sum();
        (every, few as f64 / all.max(1) as f64)
    }

    /// The least number of writes with so many bytes of memory.
    pub(super) fn least(&self, memory: f64) -> f64 {
        if memory >= self.enough {
            return 0.0;
        }
        let bound = |number, every, part| {
            self.cost(number, every) - part * self.price(number) * memory * self.ops
        };
        // The bound is concave in the price. So a few prices show where it is greatest, from the
        // dearest on, which takes least time, until it falls; then those nearer and nearer. A few
        // of the leaves are enough for that.
        let (every, part) = self.few();
        let mut best = (f64::NEG_INFINITY, 0);
        let mut stride = FIRST_STRIDE;
        for number in (0..=self.prices / stride + 1).rev().map(|n| n * stride) {
            let found = bound(number, every, part);
            if found < best.0 {
                break;
            }
            best = (found, number);
        }
        while stride > 1 {
            stride /= 2;
            for number in [(best.1 - stride).max(0), best.1 + stride] {
                let found = bound(number, every, part);
                if found > best.0 {
                    best = (found, number);
                }
            }
        }
        // From there on, all leaves, as long as the bound grows.
        let at = best.1;
        let start = bound(at, 1, 1.0);
        let climb = |numbers: &mut dyn Iterator<Item = i32>| {
            let mut best = start;
            for found in numbers.map(|number| bound(number, 1, 1.0)) {
                if found <= best {
                    break;
                }
                best = found;
            }
            best
        };
        let dearest = self.prices + FIRST_STRIDE;
        let climbed = [climb(&mut (0..at).rev()), climb(&mut (at + 1..=dearest))];
        climbed.into_iter().fold(0.0, f64::max)
    }
}

/// Which change the record had before, for each change: the number of that one and 1; 0 if there is
/// none.
pub(super) fn replaced(changes: &[Change]) -> Vec<usize> {
    let mut replaced = vec![0; changes.len()];
    for (i, change) in changes.iter().enumerate() {
        let next = changes.partition_point(|other| other.at < change.next);
        if changes
            .get(next)
            .is_some_and(|other| other.at == change.next)
        {
            replaced[next] = i + 1;
        }
    }
    replaced
}

/// The costs of one leaf.
#[derive(Default)]
pub(super) struct Table {
    /// The least cost if the leaf is written after so many changes.
    costs: Vec<f64>,
    /// Bytes held since such a write, summed over time.
    held: Vec<f64>,
    /// Bytes of changes in memory now, if that was the last write.
    bytes: Vec<f64>,
}

impl Table {
    /// The least cost of a round if memory holds records.
    pub(super) fn records(&mut self, leaf: &Repeated, price: f64) -> f64 {
        self.costs(&leaf.changes, &leaf.replaced, (price, leaf.between));
        self.of_a_round(leaf)
    }

    /// Fills the table for memory that holds records, with at most `between` changes between two
    /// writes.
    pub(super) fn costs(
        &mut self,
        changes: &[Change],
        replaced: &[usize],
        (price, between): (f64, usize),
    ) -> &[f64] {
        let count = changes.len();
        for column in [&mut self.costs, &mut self.held, &mut self.bytes] {
            column.clear();
            column.resize(count + 1, 0.0);
        }
        let mut first = 0;
        let mut before = 0.0;
        for (j, (change, &replaced)) in changes.iter().zip(replaced).enumerate() {
            let least = (j + 1).saturating_sub(between);
            let start = first.max(least);
            let costs = &self.costs[start..=j];
            let held = &mut self.held[start..=j];
            let bytes = &mut self.bytes[start..=j];
            let passed = change.at - before;
            let best = hold(held, bytes, (costs, price), passed);
            before = change.at;
            // Perhaps the leaf was last written before these.
            let cut = costs[0] + price * held[0];
            self.costs[j + 1] = if least > first && cut < best + 1.0 {
                first = least;
                cut
            } else {
                let all = costs.iter().zip(&*held);
                let mut all = all.map(|(cost, held)| cost + price * held);
                first = start + all.position(|all| all == best).unwrap_or(0);
                best + 1.0
            };
            // From now on memory holds this change, and no longer the one that it replaces.
            let (both, this) = bytes.split_at_mut(replaced.saturating_sub(start));
            if let Some(old) = replaced.checked_sub(1)
                && changes[old].bytes != change.bytes
            {
                let more = change.bytes - changes[old].bytes;
                both.iter_mut().for_each(|bytes| *bytes += more);
            }
            this.iter_mut().for_each(|bytes| *bytes += change.bytes);
        }
        &self.costs
    }

    fn of_a_round(&self, leaf: &Repeated) -> f64 {
        let later = leaf.compared * leaf.round;
        let pairs = self.costs.iter().zip(&self.costs[later..]);
        let differences = pairs.map(|(before, after)| after - before);
        differences.fold(f64::INFINITY, f64::min).max(0.0) / leaf.compared as f64
    }
}

/// Lets time pass with so many `bytes` in memory, and returns the least sum of cost and what is held
/// at this price.
fn hold(held: &mut [f64], bytes: &[f64], (costs, price): (&[f64], f64), passed: f64) -> f64 {
    /// Minima that do not wait for each other.
    const LANES: usize = 8;
    let step = |held: &mut f64, bytes: f64, cost: f64, best: &mut f64| {
        *held += passed * bytes;
        let all = cost + price * *held;
        *best = if all < *best { all } else { *best };
    };
    let mut best = [f64::INFINITY; LANES];
    let (held, held_rest) = held.as_chunks_mut::<LANES>();
    let (bytes, bytes_rest) = bytes.as_chunks::<LANES>();
    let (costs, costs_rest) = costs.as_chunks::<LANES>();
    for ((held, bytes), costs) in held.iter_mut().zip(bytes).zip(costs) {
        for lane in 0..LANES {
            step(&mut held[lane], bytes[lane], costs[lane], &mut best[lane]);
        }
    }
    for ((held, bytes), cost) in held_rest.iter_mut().zip(bytes_rest).zip(costs_rest) {
        step(held, *bytes, *cost, &mut best[0]);
    }
    best.into_iter().fold(f64::INFINITY, f64::min)
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
