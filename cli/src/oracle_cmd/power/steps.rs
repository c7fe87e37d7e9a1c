//! The program that is cut off: a few keys, overwritten often, so that what is old is told from
//! what is new.

use std::collections::BTreeMap;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use treering_oracle::exec::Claims;

use super::is_possible;

/// Keys of a program.
const KEYS: usize = 12;

/// What a program does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Batch(Vec<(Vec<u8>, Option<Vec<u8>>)>),
    Sync,
    Reopen,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) steps: Vec<Step>,
}

impl Steps {
    /// Draws a program within the limits of an engine.
    pub(super) fn draw(seed: u64, count: u32, claims: &Claims) -> Steps {
        let mut rng = SmallRng::seed_from_u64(seed);
        let limits = claims.limits();
        let longest_key = limits.max_key.clamp(1, 24);
        let mut keys: Vec<Vec<u8>> = Vec::new();
        while keys.len() < KEYS {
            let len = rng.random_range(1..=longest_key);
            let key: Vec<u8> = (0..len).map(|_| rng.random()).collect();
            if !keys.contains(&key) {
                keys.push(key);
            }
            // There are few keys of one byte.
            if longest_key == 1 && keys.len() == 8 {
                break;
            }
        }
        let mut steps = Vec::new();
        while steps.len() < count as usize {
            let number = steps.len();
            let step = match rng.random_range(0..100) {
                0..60 => {
                    let key = pick(&mut rng, &keys);
                    let value = value(&mut rng, number, limits.max_record - key.len());
                    Step::Put(key, value)
                }
                60..75 => Step::Delete(pick(&mut rng, &keys)),
                75..87 => {
                    let mut changes: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
                    for _ in 0..rng.random_range(2..6) {
                        let key = pick(&mut rng, &keys);
                        let room = limits.max_record - key.len();
                        let put = rng.random_bool(0.7);
                        let value = put.then(|| value(&mut rng, number, room));
                        changes.insert(key, value);
                    }
                    Step::Batch(changes.into_iter().collect())
                }
                87..97 => Step::Sync,
                _ => Step::Reopen,
            };
            if is_possible(&step, |what| claims.has(what)) {
                steps.push(step);
            }
        }
        Steps { steps }
    }
}

impl Step {
    /// What it changes.
    pub(super) fn changes(&self) -> Vec<(&[u8], Option<&[u8]>)> {
        match self {
            Step::Put(key, value) => vec![(key, Some(value))],
            Step::Delete(key) => vec![(key, None)],
            Step::Batch(changes) => {
                let changes = changes.iter();
                changes
                    .map(|(key, value)| (&key[..], value.as_deref()))
                    .collect()
            }
            Step::Sync | Step::Reopen => Vec::new(),
        }
    }
}

fn pick(rng: &mut SmallRng, keys: &[Vec<u8>]) -> Vec<u8> {
    keys[rng.random_range(0..keys.len())].clone()
}

/// A value that no other step writes, mostly short, sometimes longer than a page.
fn value(rng: &mut SmallRng, step: usize, room: usize) -> Vec<u8> {
    let longest = match rng.random_range(0..10) {
        0 => 9000,
        1..4 => 1500,
        _ => 120,
    };
    let len = rng.random_range(0..=longest.min(room)).max(8.min(room));
    let mut value: Vec<u8> = (0..len).map(|_| rng.random()).collect();
    let stamp = (step as u64).to_be_bytes();
    let stamped = stamp.len().min(len);
    value[..stamped].copy_from_slice(&stamp[..stamped]);
    value
}
