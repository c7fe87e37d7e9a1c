//! `IndLeafBuffering.tla`.

use treering_specs::inductive::{Inductive as _, check};
use treering_specs::mirror::leaf_buffering::LeafBuffering;

use crate::support::{agrees, mirror, plan, reachable, with_bugs, without};

#[test]
fn no_step_of_leaf_buffers_leads_out() {
    // `smoke` has gets and deletes; `two-clients` has two logs; `kill` has both kinds of ends;
    // `two-splits` has the most leaves.
    for (name, actions) in [
        ("smoke", 29),
        ("two-clients", 25),
        ("two-clients-split", 22),
        ("recovery-split", 25),
        ("kill", 25),
        ("reuse", 23),
        ("two-splits", 26),
    ] {
        let found = check(&mirror::<LeafBuffering>(name), &plan(10_000), &|_| {});
        assert_eq!(found.broken, None, "{name}");
        assert_eq!(found.kept, 10_000, "{name}");
        let taken = &found.actions;
        assert!(taken.len() >= actions, "{name}: {} {taken:?}", taken.len());
    }
}

#[test]
#[ignore = "slow: run in release: `.ci/run specs` does"]
fn every_seeded_bug_of_leaf_buffers_leads_out() {
    let all = with_bugs::<LeafBuffering>(40_000);
    for (model, found) in &all {
        assert!(found.broken.is_some(), "{}: {}", model.name, found.kept);
    }
    assert_eq!(all.len(), 30);
}

/// Models that together have a step for each conjunct.
const MODELS: [&str; 3] = ["smoke", "two-clients", "recovery-split"];

#[test]
#[ignore = "slow: run in release: `.ci/run specs` does"]
fn without_a_conjunct_of_leaf_buffers_a_step_leads_out() {
    for conjunct in LeafBuffering::CONJUNCTS {
        let name = conjunct.name;
        let mut found = MODELS.iter().map(|model| {
            let model = mirror::<LeafBuffering>(model);
            check(&model, &without(name, 6_000), &|_| {})
        });
        let broken = found.find(|found| found.broken.is_some());
        // It is not implied by the others.
        assert!(broken.is_some_and(|found| found.lacking > 0), "{name}");
    }
}

#[test]
fn reachable_states_of_leaf_buffers_have_the_invariant() {
    for (name, states) in [
        ("smoke", 15_000),
        ("two-clients", 15_000),
        ("two-clients-split", 7_035),
        ("recovery-split", 1_536),
        ("kill", 15_000),
        ("reuse", 13_348),
        ("merge-fills", 56),
        ("two-splits", 15_000),
    ] {
        let visited = reachable(&mirror::<LeafBuffering>(name), 15_000);
        assert_eq!(visited, states, "{name}");
    }
}

#[test]
fn the_text_in_tla_judges_leaf_buffers_as_the_mirror_does() {
    agrees::<LeafBuffering>("recovery", "c1", 20, "EndInv");
    agrees::<LeafBuffering>("two-clients", "c1, c2", 20, "ChunkInv");
}
