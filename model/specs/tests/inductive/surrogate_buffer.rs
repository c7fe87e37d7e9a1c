//! `IndSurrogateBuffer.tla`.

use treering_specs::inductive::{Inductive as _, check};
use treering_specs::mirror::surrogate_buffer::SurrogateBuffer;

use crate::support::{agrees, mirror, plan, reachable, with_bugs, without};

#[test]
fn no_step_of_surrogate_buffers_leads_out() {
    // `smoke` has gets; `two-leaves` has three keys, and flushes to several leaves.
    for (name, actions) in [
        ("smoke", 23),
        ("two-clients", 21),
        ("two-leaves", 21),
        ("recovery", 21),
    ] {
        let found = check(&mirror::<SurrogateBuffer>(name), &plan(10_000), &|_| {});
        assert_eq!(found.broken, None, "{name}");
        assert_eq!(found.kept, 10_000, "{name}");
        let taken = &found.actions;
        assert!(taken.len() >= actions, "{name}: {taken:?}");
    }
}

#[test]
#[ignore = "slow: run in release: `.ci/run specs` does"]
fn every_seeded_bug_of_surrogate_buffers_leads_out() {
    let all = with_bugs::<SurrogateBuffer>(20_000);
    for (model, found) in &all {
        assert!(found.broken.is_some(), "{}: {}", model.name, found.kept);
    }
    assert_eq!(all.len(), 29);
}

/// Models that together have a step for each conjunct.
const MODELS: [&str; 4] = ["mutation", "two-clients", "two-leaves", "recovery"];

#[test]
#[ignore = "slow: run in release: `.ci/run specs` does"]
fn without_a_conjunct_of_surrogate_buffers_a_step_leads_out() {
    for conjunct in SurrogateBuffer::CONJUNCTS {
        let name = conjunct.name;
        let mut found = MODELS.iter().map(|model| {
            let model = mirror::<SurrogateBuffer>(model);
            check(&model, &without(name, 40_000), &|_| {})
        });
        let broken = found.find(|found| found.broken.is_some());
        assert!(broken.is_some(), "{name}");
        // It is not implied by the others.
        assert!(broken.is_some_and(|found| found.lacking > 0), "{name}");
    }
}

#[test]
fn reachable_states_of_surrogate_buffers_have_the_invariant() {
    for (name, states) in [("recovery", 4771), ("two-clients", 15_000)] {
        let visited = reachable(&mirror::<SurrogateBuffer>(name), 15_000);
        assert_eq!(visited, states, "{name}");
    }
}

#[test]
fn the_text_in_tla_judges_surrogate_buffers_as_the_mirror_does() {
    agrees::<SurrogateBuffer>("recovery", "c1", 20, "CountInv");
    agrees::<SurrogateBuffer>("two-clients", "c1, c2", 20, "LockInv");
}
