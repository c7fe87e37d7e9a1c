//! Tests which contents persistent memory may have after a crash: exact sets for short programs,
//! and the definition for long ones.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use treering_engine::device::{MemPm, PmDevice, PmImage};

/// Returns every image that a crash at this point may leave.
fn every_crash(pm: &MemPm) -> Vec<PmImage> {
    let outcomes = pm.outcomes();
    let all: usize = outcomes.iter().product();
    let nth = |mut number: usize| {
        pm.crash(&mut |n| {
            let pick = number % n;
            number /= n;
            pick
        })
    };
    (0..all).map(nth).collect()
}

/// Returns the first bytes of these words in every state that a crash may leave.
fn left(pm: &MemPm, words: &[usize]) -> BTreeSet<Vec<u8>> {
    let firsts = |image: PmImage| {
        let bytes = image.to_vec();
        words.iter().map(|word| bytes[word * 8]).collect()
    };
    every_crash(pm).into_iter().map(firsts).collect()
}

fn set<const N: usize>(states: &[[u8; N]]) -> BTreeSet<Vec<u8>> {
    states.iter().map(|state| state.to_vec()).collect()
}

fn store(pm: &MemPm, word: u64, value: u8) {
    pm.store(word * 8, &[value; 8]).unwrap();
}

#[test]
fn two_unfenced_words_of_a_line_have_four_outcomes() {
    let pm = MemPm::new(64);
    store(&pm, 0, 1);
    store(&pm, 1, 2);
    let four = set(&[[0, 0], [1, 0], [0, 2], [1, 2]]);
    assert_eq!(left(&pm, &[0, 1]), four);
    pm.clwb(0).unwrap();
    assert_eq!(
        left(&pm, &[0, 1]),
        four,
        "a write-back alone must not make a store durable"
    );
    pm.fence();
    assert_eq!(left(&pm, &[0, 1]), set(&[[1, 2]]));
}

#[test]
fn a_fence_makes_write_backs_durable_but_not_later_stores() {
    let pm = MemPm::new(128);
    store(&pm, 0, 1);
    pm.clwb(0).unwrap();
    store(&pm, 0, 2);
    assert_eq!(left(&pm, &[0]), set(&[[0], [1], [2]]));
    pm.fence();
    assert_eq!(left(&pm, &[0]), set(&[[1], [2]]));
    pm.fence();
    assert_eq!(
        left(&pm, &[0]),
        set(&[[1], [2]]),
        "the 2 was not written back"
    );
    pm.clwb(63).unwrap();
    pm.fence();
    assert_eq!(left(&pm, &[0]), set(&[[2]]));
    // A fence without a write-back, and a write-back of another line, promise nothing.
    store(&pm, 0, 3);
    pm.clwb(64).unwrap();
    pm.fence();
    assert_eq!(left(&pm, &[0]), set(&[[2], [3]]));
}

#[test]
fn long_stores_tear_between_words_but_not_within_a_word() {
    let pm = MemPm::new(64);
    pm.store(0, &[7; 16]).unwrap();
    assert_eq!(
        left(&pm, &[0, 1]),
        set(&[[0, 0], [7, 0], [0, 7], [7, 7]]),
        "sixteen bytes must tear into two words"
    );
    let pm = MemPm::new(64);
    pm.store(6, &[7; 4]).unwrap();
    let states: BTreeSet<Vec<u8>> = (every_crash(&pm).into_iter())
        .map(|image| image.to_vec()[5..11].to_vec())
        .collect();
    assert_eq!(
        states,
        set(&[
            [0, 0, 0, 0, 0, 0],
            [0, 7, 7, 0, 0, 0],
            [0, 0, 0, 7, 7, 0],
            [0, 7, 7, 7, 7, 0]
        ])
    );
}

#[test]
fn a_non_temporal_store_needs_a_fence_and_persists_nothing_else() {
    let pm = MemPm::new(64);
    store(&pm, 0, 1);
    pm.ntstore(8, &[2; 8]).unwrap();
    assert_eq!(left(&pm, &[0, 1]), set(&[[0, 0], [1, 0], [0, 2], [1, 2]]));
    pm.fence();
    assert_eq!(left(&pm, &[0, 1]), set(&[[0, 2], [1, 2]]));
}

#[test]
fn undecided_values_are_distinct_and_ordered_by_age() {
    let pm = MemPm::new(64);
    for value in [1, 2, 1, 2, 1] {
        store(&pm, 0, value);
    }
    assert_eq!(pm.outcomes(), [3]);
    let newest = pm.crash(&mut |n| n - 1).to_vec();
    assert_eq!(newest[0], 1);
    store(&pm, 0, 0);
    assert_eq!(left(&pm, &[0]), set(&[[0], [1], [2]]));
    assert_eq!(pm.crash(&mut |n| n - 1).to_vec()[0], 0);
    // Storing the same value again adds no outcome.
    store(&pm, 1, 0);
    assert_eq!(pm.in_doubt(), [(0, 4)]);
    // A value that is being written back may arrive even if the word is stored again meanwhile.
    let pm = MemPm::new(64);
    store(&pm, 0, 1);
    pm.clwb(0).unwrap();
    store(&pm, 0, 2);
    store(&pm, 0, 1);
    pm.fence();
    assert_eq!(left(&pm, &[0]), set(&[[1], [2]]));
}

#[test]
fn a_word_that_is_never_written_back_uses_bounded_memory() {
    let pm = MemPm::new(64);
    for value in 1..=10_000u64 {
        pm.store(0, &value.to_le_bytes()).unwrap();
    }
    assert!(pm.outcomes()[0] <= 65);
    let newest = pm.crash(&mut |n| n - 1).to_vec();
    assert_eq!(newest[..8], 10_000u64.to_le_bytes());
    assert_eq!(pm.crash(&mut |_| 0).to_vec(), vec![0; 64]);
}

#[test]
fn after_a_power_cut_stores_have_no_effect_and_loads_continue() {
    let pm = MemPm::new(64);
    pm.cut_power_in(3);
    store(&pm, 0, 1);
    pm.clwb(0).unwrap();
    pm.fence();
    assert!(!pm.power_is_cut(), "the power must not be cut yet");
    store(&pm, 0, 2);
    pm.clwb(0).unwrap();
    pm.fence();
    assert!(pm.power_is_cut());
    let mut seen = [0];
    pm.load(0, &mut seen).unwrap();
    assert_eq!(seen, [2]);
    assert_eq!(left(&pm, &[0]), set(&[[1]]));
    assert_eq!(pm.requests(), 3);
}

#[test]
fn requests_outside_the_device_are_refused() {
    let pm = MemPm::new(100);
    assert_eq!(pm.len(), 128, "whole lines");
    assert!(pm.store(125, &[0; 4]).is_err());
    assert!(pm.ntstore(u64::MAX, &[0; 4]).is_err());
    assert!(pm.load(129, &mut []).is_err());
    assert!(pm.clwb(128).is_err());
    assert!(pm.store(128, &[]).is_ok());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Store(u64, u8),
    NtStore(u64, u8),
    Clwb(u64),
    Fence,
}

fn step() -> impl Strategy<Value = Step> {
    // Two words of one line, and one word of another line.
    let word = prop_oneof![Just(0u64), Just(1), Just(8)];
    prop_oneof![
        4 => (word.clone(), 0u8..3).prop_map(|(w, v)| Step::Store(w, v)),
        1 => (word.clone(), 0u8..3).prop_map(|(w, v)| Step::NtStore(w, v)),
        2 => word.prop_map(Step::Clwb),
        2 => Just(Step::Fence),
    ]
}

fn take(pm: &MemPm, step: Step) {
    match step {
        Step::Store(word, value) => store(pm, word, value),
        Step::NtStore(word, value) => pm.ntstore(word * 8, &[value; 8]).unwrap(),
        Step::Clwb(word) => pm.clwb(word * 8).unwrap(),
        Step::Fence => pm.fence(),
    }
}

/// A word by the definition: all values that it ever had, how many of them a write-back covers, and
/// how many a write-back followed by a fence covers.
#[derive(Default)]
struct Told {
    values: Vec<u8>,
    written_back: usize,
    fenced: usize,
}

proptest! {
    /// After a crash, a word has the value of its last fenced write-back, or any value stored
    /// since, independently of all other words. A twin that applies the recorded requests one by
    /// one allows the same outcomes after each.
    #[test]
    fn crash_outcomes_match_the_contract(
        steps in proptest::collection::vec(step(), 0..20),
    ) {
        let pm = MemPm::new(128);
        pm.record();
        let twin = MemPm::new(128);
        let mut told: BTreeMap<u64, Told> = [0, 1, 8].map(|word| (word, Told::default())).into();
        for (n, step) in steps.into_iter().enumerate() {
            take(&pm, step);
            for (word, told) in &mut told {
                match step {
                    Step::Store(w, value) if w == *word => told.values.push(value),
                    Step::NtStore(w, value) if w == *word => {
                        told.values.push(value);
                        told.written_back = told.values.len();
                    }
                    Step::Clwb(w) if w / 8 == *word / 8 => told.written_back = told.values.len(),
                    Step::Fence => told.fenced = told.written_back,
                    _ => {}
                }
            }
            let may_be = told.values().map(|told| {
                let durable = told.fenced.checked_sub(1).map_or(0, |last| told.values[last]);
                let since = told.values[told.fenced..].iter().copied();
                since.chain([durable]).collect::<BTreeSet<u8>>()
            });
            let mut allowed = BTreeSet::from([Vec::new()]);
            for values in may_be {
                let longer = |state: &Vec<u8>| {
                    let with = |value: &u8| [state.as_slice(), &[*value]].concat();
                    values.iter().map(with).collect::<Vec<_>>()
                };
                allowed = allowed.iter().flat_map(longer).collect();
            }
            prop_assert_eq!(left(&pm, &[0, 1, 8]), allowed);
            let requests = pm.take_recording();
            prop_assert_eq!(requests.len(), 1);
            twin.apply(&requests[0]);
            prop_assert_eq!(twin.requests(), n as u64 + 1);
            prop_assert_eq!(twin.in_doubt(), pm.in_doubt());
            let seed = n as u64;
            prop_assert_eq!(
                twin.crash_seeded(seed).fingerprint(),
                pm.crash_seeded(seed).fingerprint()
            );
        }
    }
}
