//! Overflow: the results that its configurations must have.

use treering_specs::Value;

use super::Expected;

pub(crate) const EXPECTED: Expected = Expected {
    spec: "Overflow",
    folder: "overflow",
    bugs: &[
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
    ],
    holds: &[
        ("smoke", 7_799),
        ("reuse", 12_172),
        ("two-clients", 20_421),
        ("recovery", 11_544),
        ("mutation", 16_546),
    ],
    bounded: "Size",
};

#[test]
fn a_home_that_is_not_a_key_is_refused() {
    EXPECTED.refuses_constant("Home", Value::model("k9"), "Home");
}
