//! Damage to a store on a block device.

use treering_engine::device::Image;

use super::harm::{self, Harm};
use super::judge::{self, Use, caught};
use super::state::State;
use super::store::{self, BUILT, Built, fewer};
use super::tally::Tally;
use crate::deadline::Deadline;
use crate::engine::Engine;
use crate::finding::Finding;
use crate::random::Random;

/// The number of cases for each store, each from the same state.
const CASES: u64 = 100;
/// One case in this many uses a real file, with locks, holes and system calls.
const IN_FILE: u64 = 10;

/// Builds the store of a seed, and damages it in a hundred ways.
pub(super) fn run(
    engine: &dyn Engine,
    seed: u64,
    operations: usize,
    until: &Deadline,
) -> Result<Tally, Box<Finding>> {
    let mut random = Random::part(seed, 0);
    let state = State::any(&mut random);
    let inert = random.percent(60);
    let building = until.part(BUILT);
    let built = store::build(engine, state, inert, operations, &mut random, &building)?;
    until.join(&building);
    let mut tally = Tally {
        stores: 1,
        operations: built.operations,
        ..Tally::default()
    };
    for case in 0..CASES {
        if until.is_over() {
            break;
        }
        let mut random = Random::part(seed, case + 1);
        let Some(harm) = harm::pick(&built, &mut random) else {
            continue;
        };
        let usage = Use {
            in_file: case % IN_FILE == 0,
            writes_first: case % 3 == 1,
        };
        one(engine, &built, &harm, usage, &mut tally).map_err(|finding| {
            let discards = if inert { "do nothing" } else { "act" };
            let what = format!(
                "{}, {state}, where discards {discards} (seed {seed}, case {case}{}): {}",
                harm.sentence(&built.image),
                fewer(built.operations, operations),
                finding.what
            );
            Box::new(Finding { what, ..finding })
        })?;
    }
    Ok(tally)
}

/// Judges one case of damage.
fn one(
    engine: &dyn Engine,
    built: &Built,
    harm: &Harm,
    usage: Use,
    tally: &mut Tally,
) -> Result<(), Finding> {
    let harmed: Image = harm.applied(built);
    let usage = Use {
        // An empty file is not a device.
        in_file: usage.in_file && harmed.blocks() > 0,
        ..usage
    };
    let cut_at = harm.cut_short_at(built);
    let judged = caught(|| judge::judge(engine, built, harmed, cut_at, usage))?;
    let kind = &mut tally.harms[harm.kind() as usize];
    *kind = (kind.0 + 1, kind.1 + u64::from(judged.told));
    tally.in_files += u64::from(usage.in_file);
    tally.last_flush += u64::from(cut_at.is_some());
    tally.cut_short += u64::from(judged.cut_short);
    Ok(())
}
