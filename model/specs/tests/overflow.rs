//! Checks the mirror of Overflow on its configurations: the bugs that it must find, and the
//! invariants that they violate.

mod mirror_configs;

use mirror_configs::Spec;

const SPEC: Spec = Spec("Overflow", "overflow");

/// Every seeded bug, the invariant that it violates, and the number of states on the shortest path.
const BUGS: [(&str, &str, usize); 14] = [
    ("block-unchecked", "ReaderInv", 17),
    ("checkpoint-skips-flush", "RedoStartInv", 9),
    ("freed-at-once", "KeptInv", 9),
    ("names-again", "ReaderInv", 21),
    ("not-flushed-before-log", "ForcedInv", 6),
    ("only-first-checked", "ReaderInv", 18),
    ("page-before-log", "WalRuleInv", 5),
    ("redo-moves-over", "KeptInv", 8),
    ("stops-redo-early", "MemoryInv", 8),
    ("takes-late", "OneOwnerInv", 11),
    ("takes-redone-only", "FreeInv", 11),
    ("takes-what-looks-so", "LeakInv", 5),
    ("tells-at-once", "DamagedInv", 18),
    ("writes-what-came-later", "ForcedInv", 8),
];

#[test]
fn every_seeded_bug_violates_its_invariant_on_the_shortest_path() {
    SPEC.catches(&BUGS);
}

#[test]
fn correct_models_violate_nothing() {
    SPEC.holds(&[
        ("smoke", 7_799),
        ("reuse", 12_172),
        ("two-clients", 20_421),
        ("recovery", 11_544),
        ("mutation", 16_546),
    ]);
}

#[test]
fn a_configuration_without_bounds_is_refused() {
    SPEC.needs_bound("Size");
}

#[test]
fn a_home_that_is_not_a_key_is_refused() {
    let mut config = SPEC.config("mutation").unwrap();
    let nobody = treering_specs::Value::model("k9");
    config.constants.insert("Home".into(), nobody);
    let refused = treering_specs::check::mirrors::open("Overflow", &config);
    assert!(refused.err().unwrap().to_string().contains("Home"));
}
