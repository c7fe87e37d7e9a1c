//! SurrogateBuffer: the results that its configurations must have.

use treering_specs::Value;

use super::Expected;

pub(crate) const EXPECTED: Expected = Expected {
    spec: "SurrogateBuffer",
    folder: "surrogate_buffer",
    bugs: &[
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
    ],
    holds: &[
        ("smoke", 5_008),
        ("mutation", 11_320),
        ("two-clients", 23_347),
        ("two-leaves", 11_969),
        ("recovery", 4_129),
    ],
    bounded: "MayRestart",
};

#[test]
fn a_configuration_where_one_split_frees_too_little_is_refused() {
    let mut config = EXPECTED.config("recovery").unwrap();
    let one = Value::int(1);
    config.constants.insert("LeafSlots".into(), one.clone());
    config.constants.insert("TSplit".into(), one);
    EXPECTED.refuses(&config, "one split");
}
