//! Checks the mirror of LeafBuffering on its configurations: the bugs that it must find, and the
//! invariants that they violate.

mod mirror_configs;

use mirror_configs::Spec;
use treering_specs::check::mirrors;

const SPEC: Spec = Spec("LeafBuffering", "leaf_buffering");

/// Every seeded bug, the invariant that it violates, and the number of states on the shortest path.
const BUGS: [(&str, &str, usize); 28] = [
    ("acks-before-fence", "KeptInv", 5),
    ("copies-unlatched", "BitInv", 9),
    ("epoch-too-low", "KeptInv", 18),
    ("flushes-logged-key", "KeptInv", 11),
    ("header-before-records", "KeptInv", 11),
    ("keeps-cache", "LookupInv", 44),
    ("links-before-fence", "KeptInv", 22),
    ("merges-under-one-fence", "KeptInv", 38),
    ("new-leaf-unstamped", "KeptInv", 37),
    ("published_appends-duplicates", "LookupInv", 11),
    ("published_believes-old-entries", "KeptInv", 27),
    ("published_believes-torn-entries", "KeptInv", 22),
    ("published_clears-smallest", "KeptInv", 34),
    ("published_copy-keeps-bit", "KeptInv", 14),
    ("published_log-by-log", "KeptInv", 15),
    ("published_merge-keeps-timestamp", "KeptInv", 49),
    ("published_merge-without-flush", "KeptInv", 42),
    ("published_resets-timestamps", "KeptInv", 31),
    ("published_split-stamps-old-leaf", "KeptInv", 22),
    ("published_stamps-while-replaying", "KeptInv", 15),
    ("published_timestamp-with-bitmap", "KeptInv", 13),
    ("reads-epoch-twice", "BitInv", 7),
    ("reclaims-before-fence", "KeptInv", 10),
    ("recovery-stamps-new-leaf", "KeptInv", 49),
    ("reuses-early", "KeptInv", 28),
    ("separator-between", "ListInv", 22),
    ("skips-tombstones", "KeptInv", 10),
    ("stamps-ahead", "StampInv", 16),
];

#[test]
fn every_seeded_bug_violates_its_invariant_on_the_shortest_path() {
    SPEC.catches(&BUGS);
}

#[test]
fn correct_models_violate_nothing() {
    SPEC.holds(&[
        ("smoke", 48_244),
        ("recovery", 43_671),
        ("recovery-split", 1_536),
        ("reuse", 13_348),
        ("two-clients", 79_115),
        ("two-clients-split", 7_035),
        ("mutation", 25_769),
    ]);
}

#[test]
fn a_configuration_without_bounds_or_with_an_impossible_plan_is_refused() {
    SPEC.needs_bound("MayCrash");

    let mut unplanned = SPEC.config("mutation").unwrap();
    let plan = treering_specs::Value::set([treering_specs::Value::Int(19)]);
    unplanned.constants.insert("Plan".into(), plan);
    let refused = mirrors::open(SPEC.0, &unplanned).err().unwrap();
    assert!(refused.to_string().contains("10 n + k"), "{refused}");
}
