//! `IndWalRecovery.tla`.

use treering_specs::inductive::{Inductive as _, check};
use treering_specs::mirror::wal_recovery::WalRecovery;

use crate::support::{agrees, mirror, plan, reachable, with_bugs, without};

#[test]
fn no_step_of_log_and_recovery_leads_out() {
    // `smoke` has gets and blocks of two records, which `mutation` has not.
    for (name, actions) in [("smoke", 24), ("mutation", 23), ("full", 24)] {
        let found = check(&mirror::<WalRecovery>(name), &plan(10_000), &|_| {});
        assert_eq!(found.broken, None, "{name}");
        assert_eq!(found.kept, 10_000, "{name}");
        let taken = &found.actions;
        assert!(taken.len() >= actions, "{name}: {taken:?}");
    }
}

/// Bugs that keep the invariant, and why.
const KEEPING: [(&str, &str); 3] = [
    ("acks-when-poisoned", "only a client is told what is not so"),
    ("refused-shows", "only a client is told what is not so"),
    (
        "published_redo-always",
        "it writes pages again, and loses nothing",
    ),
];

#[test]
#[ignore = "slow: run in release: `.ci/run specs` does"]
fn seeded_bugs_of_log_and_recovery_lead_out() {
    let (mut bugs, mut keeping) = (0, 0);
    for (model, found) in with_bugs::<WalRecovery>(6000) {
        let keeps = KEEPING.iter().any(|(name, _)| *name == model.name);
        assert_eq!(found.broken.is_none(), keeps, "{}", model.name);
        // Such a bug breaks a temporal property, or the refinement.
        let holds = model.must_violate().is_none();
        assert!(!keeps || model.is_temporal() || holds, "{}", model.name);
        bugs += usize::from(!keeps);
        keeping += usize::from(keeps);
    }
    assert_eq!((bugs, keeping), (22, KEEPING.len()));
}

/// Conjuncts that follow from others and the types, and are named because they are the protocol's.
const IMPLIED: [&str; 3] = ["TypeInv", "LogKeptInv", "MemoryInv"];

#[test]
#[ignore = "slow: run in release: `.ci/run specs` does"]
fn without_a_conjunct_of_log_and_recovery_a_step_leads_out() {
    let model = mirror::<WalRecovery>("mutation");
    for conjunct in WalRecovery::CONJUNCTS {
        let found = check(&model, &without(conjunct.name, 6000), &|_| {});
        let implied = IMPLIED.contains(&conjunct.name);
        assert_eq!(found.lacking == 0, implied, "{}", conjunct.name);
        assert_eq!(found.broken.is_none(), implied, "{}", conjunct.name);
    }
}

#[test]
fn reachable_states_of_log_and_recovery_have_the_invariant() {
    let visited = reachable(&mirror::<WalRecovery>("smoke"), 20_000);
    assert_eq!(visited, 20_000);
}

#[test]
fn the_text_in_tla_judges_log_and_recovery_as_the_mirror_does() {
    agrees::<WalRecovery>("smoke", "c1, c2, k1, k2", 20, "RestingInv");
}
