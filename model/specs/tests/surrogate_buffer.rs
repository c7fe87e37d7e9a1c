//! Checks the mirror of SurrogateBuffer on its configurations: the bugs that it must find, and the
//! invariants that they violate.

mod mirror_configs;

use mirror_configs::Spec;
use treering_specs::check::mirrors;

const SPEC: Spec = Spec("SurrogateBuffer", "surrogate_buffer");

/// Every seeded bug, the invariant that it violates, and the number of states on the shortest path.
const BUGS: [(&str, &str, usize); 28] = [
    ("believes-torn-entry", "RecoverableInv", 14),
    ("bitmap-before-pairs", "RecoverableInv", 17),
    ("buffers-before-fence", "LogInv", 5),
    ("flushes-half-a-leaf", "StampInv", 23),
    ("forgets-new-leaf", "IndexInv", 15),
    ("leaves-torn-entries", "RecoverableInv", 15),
    ("links-before-fence", "RecoverableInv", 14),
    ("new-leaf-without-stamp", "RecoverableInv", 28),
    ("no-designated-slot", "SpaceInv", 19),
    ("published_believes-stale-entry", "RecoverableInv", 23),
    ("published_counts-flushes-only", "CountInv", 10),
    ("published_counts-leaf-alone", "RoomInv", 11),
    ("published_logs-before-lock", "RecoverableInv", 9),
    ("published_only-sets-bits", "LeafInv", 17),
    ("published_orders-by-version", "RecoverableInv", 9),
    ("published_replays-flushed", "RecoverableInv", 23),
    ("published_replays-in-parallel", "VisibleInv", 14),
    ("published_replays-valid-logs", "RecoverableInv", 33),
    ("published_separators-from-keys", "RecoverableInv", 22),
    ("published_trusts-what-it-reads", "RecoverableInv", 13),
    ("published_two-words", "RecoverableInv", 18),
    ("replays-log-by-log", "RecoverableInv", 21),
    ("restarts-numbers", "NumberInv", 24),
    ("reuses-live-log", "LogInv", 8),
    ("split-forgets-version", "CountInv", 24),
    ("splits-among-others", "FlushInv", 29),
    ("stamps-at-switch", "StampInv", 14),
    ("switches-before-fence", "RecoverableInv", 18),
];

#[test]
fn every_seeded_bug_violates_its_invariant_on_the_shortest_path() {
    SPEC.catches(&BUGS);
}

#[test]
fn correct_models_violate_nothing() {
    SPEC.holds(&[
        ("smoke", 5_008),
        ("mutation", 11_320),
        ("two-clients", 23_347),
        ("two-leaves", 11_969),
        ("recovery", 4_129),
    ]);
}

#[test]
fn a_configuration_without_bounds_is_refused() {
    SPEC.needs_bound("MayRestart");
}

#[test]
fn a_configuration_where_one_split_frees_too_little_is_refused() {
    let mut config = SPEC.config("recovery").unwrap();
    let one = treering_specs::Value::int(1);
    config.constants.insert("LeafSlots".into(), one.clone());
    config.constants.insert("TSplit".into(), one);
    let refused = mirrors::open(SPEC.0, &config).err().unwrap();
    assert!(refused.to_string().contains("one split"), "{refused}");
}
