//! `IndPageShadowing.tla`.

use treering_specs::inductive::{Inductive as _, check};
use treering_specs::mirror::page_shadowing::PageShadowing;

use crate::support::{agrees, mirror, plan, reachable, with_bugs, without};
use treering_specs::inductive::Plan;

#[test]
fn no_step_of_shadowed_pages_leads_out() {
    // `smoke` has gets, which `mutation` has not; `recovery` has short logs.
    for (name, actions) in [("smoke", 19), ("recovery", 19), ("two-pages", 14)] {
        let found = check(&mirror::<PageShadowing>(name), &plan(2000), &|_| {});
        assert_eq!(found.broken, None, "{name}");
        assert_eq!(found.kept, 2000, "{name}");
        let taken = &found.actions;
        assert!(taken.len() >= actions, "{name}: {taken:?}");
    }
}

#[test]
fn searches_with_one_seed_are_the_same() {
    let model = mirror::<PageShadowing>("recovery");
    let first = check(&model, &plan(300), &|_| {});
    assert_eq!(check(&model, &plan(300), &|_| {}), first);
    let seed = Plan {
        seed: 2,
        ..plan(300)
    };
    assert_ne!(check(&model, &seed, &|_| {}).tried, first.tried);
}

#[test]
#[ignore = "slow: run in release: `.ci/run specs` does"]
fn every_seeded_bug_of_shadowed_pages_leads_out() {
    let mut bugs = 0;
    for (model, found) in with_bugs::<PageShadowing>(6000) {
        if model.name == "published_leaves-leftovers" {
            // It wastes space, and loses nothing.
            assert!(model.is_temporal() && found.broken.is_none());
            continue;
        }
        assert!(found.broken.is_some(), "{}", model.name);
        bugs += 1;
    }
    assert_eq!(bugs, 21);
}

/// Conjuncts without which no step leads out in this sample, and why they are there.
const DISPENSABLE: [(&str, &str); 5] = [
    ("PositionsInv", "TypeInv and AckInv have the rest of it"),
    ("CallInv", "the mapping to the contract needs it"),
    (
        "UnknownInv",
        "needed with three versions of a block: WholeInv breaks",
    ),
    ("TrimInv", "no step is known that needs it"),
    ("WrittenInv", "no step is known that needs it"),
];

#[test]
#[ignore = "slow: run in release: `.ci/run specs` does"]
fn without_a_conjunct_of_shadowed_pages_a_step_leads_out() {
    let model = mirror::<PageShadowing>("mutation");
    for conjunct in PageShadowing::CONJUNCTS {
        let found = check(&model, &without(conjunct.name, 2500), &|_| {});
        // It is not implied by the others.
        assert!(found.lacking > 0, "{}", conjunct.name);
        let needed = DISPENSABLE.iter().all(|(name, _)| *name != conjunct.name);
        assert_eq!(found.broken.is_some(), needed, "{}", conjunct.name);
    }
}

#[test]
fn reachable_states_of_shadowed_pages_have_the_invariant() {
    let visited = reachable(&mirror::<PageShadowing>("recovery"), 20_000);
    assert!(visited > 10_000, "{visited}");
}

#[test]
fn the_text_in_tla_judges_shadowed_pages_as_the_mirror_does() {
    agrees::<PageShadowing>("smoke", "c1, p1", 20, "PageInv");
}
