//! Chooses which of the states that a crash may leave are tried: all of them, or a sample.
//!
//! A sample includes the states that are most likely to show mistakes: everything lost, everything
//! kept, one thing lost or kept, and everything up to one kept. The rest is random. In persistent
//! memory whole lines are often lost together, which a choice word by word would hardly ever
//! produce.

use rand::RngExt;
use rand::rngs::SmallRng;

use crate::medium::InDoubt;

/// The ways in which a crash is tried at one point.
pub(super) struct Choices {
    /// Each way has a version for each block or word in doubt.
    pub(super) ways: Vec<Vec<usize>>,
    /// Whether there are no other ways.
    pub(super) all: bool,
}

impl Choices {
    /// All ways if there are at most `most`, else a sample of `sample`, including the ways in which
    /// none and all are kept.
    pub(super) fn of(doubt: &[InDoubt], most: usize, sample: usize, rng: &mut SmallRng) -> Choices {
        if let Some(ways) = every(doubt, most) {
            return Choices { ways, all: true };
        }
        let mut ways = vec![newest(doubt, |_| false), newest(doubt, |_| true)];
        while ways.len() < sample {
            ways.push(one_way(doubt, rng));
        }
        Choices { ways, all: false }
    }
}

/// All ways, or `None` if there are more than `most`.
fn every(doubt: &[InDoubt], most: usize) -> Option<Vec<Vec<usize>>> {
    let product = (doubt.iter()).try_fold(1usize, |product, one| {
        let product = product.checked_mul(one.versions);
        product.filter(|product| *product <= most)
    });
    let nth = |mut number: usize| {
        let digit = |one: &InDoubt| {
            let pick = number % one.versions;
            number /= one.versions;
            pick
        };
        doubt.iter().map(digit).collect()
    };
    product.map(|all| (0..all).map(nth).collect())
}

/// Keeps the newest version of those for which `kept` returns true, by index, and the durable
/// version of the others.
fn newest(doubt: &[InDoubt], mut kept: impl FnMut(usize) -> bool) -> Vec<usize> {
    let all = doubt.iter().enumerate();
    let pick = |(i, one): (usize, &InDoubt)| if kept(i) { one.versions - 1 } else { 0 };
    all.map(pick).collect()
}

/// The unit of each block or word in doubt, counted from 0.
fn units(doubt: &[InDoubt]) -> Vec<usize> {
    let mut number = 0;
    let pairs = doubt.windows(2);
    let later = pairs.map(|pair| {
        number += usize::from(pair[0].unit != pair[1].unit);
        number
    });
    std::iter::once(0).chain(later).collect()
}

/// One way of many: all kept but one, only one kept, all kept up to one, or a random choice. Half
/// of the ways treat a unit with several words as a whole.
fn one_way(doubt: &[InDoubt], rng: &mut SmallRng) -> Vec<usize> {
    let shared = doubt.windows(2).any(|pair| pair[0].unit == pair[1].unit);
    let by_unit = shared && rng.random_range(0..2u8) == 0;
    let part: Vec<usize> = if by_unit {
        units(doubt)
    } else {
        (0..doubt.len()).collect()
    };
    let parts = part.last().map_or(0, |last| last + 1);
    let one = rng.random_range(0..parts);
    match rng.random_range(0..4u8) {
        0 => newest(doubt, |i| part[i] != one),
        1 => newest(doubt, |i| part[i] == one),
        2 => newest(doubt, |i| part[i] <= one),
        _ if by_unit => {
            let kept: Vec<bool> = (0..parts).map(|_| rng.random_range(0..2u8) == 1).collect();
            newest(doubt, |i| kept[part[i]])
        }
        _ => (doubt.iter())
            .map(|one| rng.random_range(0..one.versions))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;

    fn doubt(units: &[u64]) -> Vec<InDoubt> {
        let one = |unit: &u64| InDoubt {
            versions: 3,
            unit: *unit,
        };
        units.iter().map(one).collect()
    }

    #[test]
    fn few_ways_are_all_tried_and_of_many_a_sample() {
        let mut rng = SmallRng::seed_from_u64(0);
        let all = Choices::of(&doubt(&[0, 1, 2]), 27, 8, &mut rng);
        let different: BTreeSet<Vec<usize>> = all.ways.iter().cloned().collect();
        assert!(all.all && all.ways.len() == 27 && different.len() == 27);
        let some = Choices::of(&doubt(&[0, 1, 2]), 26, 8, &mut rng);
        assert!(!some.all && some.ways.len() == 8);
        assert_eq!(some.ways[..2], [vec![0, 0, 0], vec![2, 2, 2]]);
        let nothing = Choices::of(&[], 16, 8, &mut rng);
        assert!(nothing.all && nothing.ways == [Vec::<usize>::new()]);
    }

    #[test]
    fn lines_are_kept_and_lost_whole_in_half_of_a_sample() {
        let mut rng = SmallRng::seed_from_u64(0);
        let lines: Vec<u64> = (0..40).map(|word| 5 + word / 8).collect();
        let sample = Choices::of(&doubt(&lines), 16, 1_000, &mut rng);
        let whole =
            |way: &&Vec<usize>| way.chunks(8).all(|line| line.iter().all(|v| *v == line[0]));
        let by_line = sample.ways.iter().filter(whole);
        assert!((400..700).contains(&by_line.count()));
        // Each of the five lines is lost once.
        let lost = |line: usize| (0..40).map(move |word| if word / 8 == line { 0 } else { 2 });
        for line in 0..5 {
            let way: Vec<usize> = lost(line).collect();
            assert!(sample.ways.contains(&way), "line {line}");
        }
    }
}
