//! Checks the mirror of PageVersions on its configurations: the bugs that it must find, and the
//! invariants that they violate.

mod mirror_configs;

use mirror_configs::Spec;

const SPEC: Spec = Spec("PageVersions", "page_shadowing");

/// Every seeded bug, the invariant that it violates, and the number of states on the shortest path.
const BUGS: [(&str, &str, usize); 9] = [
    ("believes-the-future", "NeverOldInv", 11),
    ("bound-for-exact", "NeverToldWithoutRotInv", 6),
    ("forgets-exactness", "VersionInv", 2),
    ("forgets-version", "NeverOldInv", 7),
    ("judges-end-late", "NeverOldInv", 22),
    ("published_any-image-will-do", "NeverOldInv", 15),
    ("published_believes-lost-writes", "NeverOldInv", 12),
    ("published_log-block-unseen", "NeverOldInv", 13),
    ("snapshots-late", "SnapshotInv", 12),
];

#[test]
fn every_seeded_bug_violates_its_invariant_on_the_shortest_path() {
    SPEC.catches(&BUGS);
}

#[test]
fn correct_models_violate_nothing() {
    SPEC.holds(&[
        ("smoke", 10_736),
        ("slots", 20_156),
        ("log-block", 26_311),
        ("two-pages", 16_723),
        ("log-end", 43_349),
        ("mutation", 4_856),
    ]);
}

#[test]
fn a_configuration_without_bounds_is_refused() {
    SPEC.needs_bound("MayRot");
}

#[test]
fn an_unknown_kind_of_damage_is_refused() {
    let mut config = SPEC.config("mutation").unwrap();
    let unknown = treering_specs::Value::set([treering_specs::Value::str("molten")]);
    config.constants.insert("Becomes".into(), unknown);
    let refused = treering_specs::check::mirrors::open("PageVersions", &config);
    assert!(refused.err().unwrap().to_string().contains("molten"));
}
