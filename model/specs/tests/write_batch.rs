//! Checks the mirror of WriteBatch on its configurations: the bugs it must find, and the
//! invariants that they violate.

mod mirror_configs;

use mirror_configs::Spec;

const SPEC: Spec = Spec("WriteBatch", "write_batch");

/// Every seeded bug, the invariant that it violates, and the number of states until then.
const BUGS: [(&str, &str, usize); 12] = [
    ("batch-does-not-wait", "AloneInv", 7),
    ("batch-ends-early", "RecoverInv", 14),
    ("batch-happens-incomplete", "RecoverInv", 5),
    ("batch-made-before-intent", "RecoverInv", 6),
    ("batch-moves-before-intent", "RecoverInv", 13),
    ("batch-never-ends", "RecoverInv", 18),
    ("batch-shown-piecemeal", "VisibleInv", 7),
    ("checkpoint-ignores-batch", "IntentKeptInv", 7),
    ("recovery-forgets-batch", "RecoverInv", 6),
    ("recovery-skips-epoch", "EpochInv", 11),
    ("unfinished-batch-forgotten", "AloneInv", 11),
    ("writers-pass-closed-gate", "AloneInv", 7),
];

/// What must be reachable, so that the models show it.
const PROBES: [(&str, &str, usize); 4] = [
    ("reach-help", "ReachHelp", 15),
    ("reach-renewal", "ReachRenewal", 10),
    ("reach-second-crash", "ReachSecondCrash", 21),
    ("renews-each-time", "RoomInv", 19),
];

#[test]
fn every_seeded_bug_is_caught_by_its_invariant_on_the_shortest_way() {
    SPEC.catches(&BUGS);
}

#[test]
fn renewal_help_and_repeated_crashes_are_reached() {
    SPEC.catches(&PROBES);
}

#[test]
fn without_a_bug_nothing_is_violated() {
    SPEC.holds(&[("smoke", 13_143), ("resumes", 5_486), ("mutation", 4_364)]);
}

#[test]
fn a_configuration_without_bounds_is_refused() {
    SPEC.needs_bound("MayStop");
}
