//! A refused event as a TLA+ behaviour that TLC rejects.

use treering_engine::Result;

use super::episode::Length;
use super::setup::Setup;
use super::tla::{self, Module};
use super::traced;

/// The lengths of episodes that are tried, the shortest first. An episode of some seed begins in
/// the same way, whatever its length.
const LENGTHS: [Length; 6] = [
    Length {
        lives: 1,
        steps: 12,
    },
    Length {
        lives: 1,
        steps: 40,
    },
    Length {
        lives: 2,
        steps: 40,
    },
    Length {
        lives: 3,
        steps: 60,
    },
    Length {
        lives: 1,
        steps: 220,
    },
    Length {
        lives: 4,
        steps: 220,
    },
];

/// How many further seeds are tried for a short episode.
const SEEDS: u64 = 60;

/// Writes a short episode in which an event is refused as a module and its configuration. The
/// episode of `seed` has one, on one thread. Shorter ones of other seeds are tried first.
///
/// # Errors
/// The engine's own, while a device is read. Inside, why there is no module: the spec has nothing
/// that the event could be compared with, or nothing is refused any more.
pub fn behaviour(setup: &Setup, seed: u64) -> Result<std::result::Result<Module, String>> {
    let mut why = "the episode is accepted when it runs again".to_owned();
    for length in LENGTHS {
        let seeds = std::iter::once(seed).chain(0..SEEDS);
        let seeds = seeds.take(if length.steps < 220 { usize::MAX } else { 1 });
        for seed in seeds {
            let (judge, refusal) = traced(setup, seed, length)?;
            let Some(refusal) = refusal else { continue };
            match tla::refused(&judge, &refusal) {
                Ok(module) => return Ok(Ok(module)),
                Err(reason) => why = reason,
            }
        }
    }
    Ok(Err(why))
}
