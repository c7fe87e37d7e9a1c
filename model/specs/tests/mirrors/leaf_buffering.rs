//! LeafBuffering: the results that its configurations must have.

use treering_specs::Value;

use super::Expected;

pub(crate) const EXPECTED: Expected = Expected {
    spec: "LeafBuffering",
    folder: "leaf_buffering",
    bugs: &[
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
    ],
    holds: &[
        ("smoke", 48_244),
        ("recovery", 43_671),
        ("recovery-split", 1_536),
        ("reuse", 13_348),
        ("two-clients", 79_115),
        ("two-clients-split", 7_035),
        ("mutation", 25_769),
    ],
    bounded: "MayCrash",
};

#[test]
fn an_impossible_plan_is_refused() {
    let plan = Value::set([Value::Int(19)]);
    EXPECTED.refuses_constant("Plan", plan, "10 n + k");
}
