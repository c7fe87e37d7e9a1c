//! Checks the mirror of PageShadowing on its configurations: the bugs that it must find, and the
//! invariants that they violate.

mod mirror_configs;

use mirror_configs::Spec;

const SPEC: Spec = Spec("PageShadowing", "page_shadowing");

/// Every seeded bug, the invariant that it violates, and the number of states on the shortest path.
const BUGS: [(&str, &str, usize); 18] = [
    ("believes-torn-slot", "ImageInv", 6),
    ("checkpoint-skips-flush", "RedoStartInv", 6),
    ("evicts-dirty", "NotInMemoryInv", 4),
    ("forgets-dirty", "DirtyInv", 13),
    ("forgets-unflushed", "DurableInv", 6),
    ("logs-last-changes", "CleanInv", 16),
    ("names-slot", "CleanInv", 26),
    ("page-before-log", "WalRuleInv", 4),
    ("published_delta-at-once", "KeptInv", 22),
    ("published_nameless-log", "ImageInv", 17),
    ("published_ping-pong-at-once", "KeptInv", 21),
    ("published_resets-log-at-once", "KeptInv", 18),
    ("published_trims-at-once", "KeptInv", 17),
    ("published_trusts-what-it-reads", "KeptInv", 12),
    ("restart-skips-flush", "DurableInv", 6),
    ("takes-first-slot", "BitmapInv", 15),
    ("trims-late", "CleanInv", 9),
    ("trims-live-log", "CleanInv", 12),
];

#[test]
fn every_seeded_bug_violates_its_invariant_on_the_shortest_path() {
    SPEC.catches(&BUGS);
}

#[test]
fn correct_models_violate_nothing() {
    SPEC.holds(&[
        ("recovery", 13_690),
        ("inert", 11_033),
        ("mutation", 31_827),
        ("three-segments", 47_845),
        ("two-pages", 56_059),
    ]);
}

#[test]
fn a_configuration_without_bounds_is_refused() {
    SPEC.needs_bound("MayRestart");
}
