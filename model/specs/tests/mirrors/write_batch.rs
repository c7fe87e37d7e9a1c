//! WriteBatch: the results that its configurations must have.

use super::Expected;

pub(crate) const EXPECTED: Expected = Expected {
    spec: "WriteBatch",
    folder: "write_batch",
    bugs: &[
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
    ],
    holds: &[("smoke", 13_143), ("resumes", 5_486), ("mutation", 4_364)],
    bounded: "MayStop",
};

/// What must be reachable, so that the models show it.
const PROBES: [(&str, &str, usize); 4] = [
    ("reach-help", "ReachHelp", 15),
    ("reach-renewal", "ReachRenewal", 10),
    ("reach-second-crash", "ReachSecondCrash", 21),
    ("renews-each-time", "RoomInv", 19),
];

#[test]
fn renewal_help_and_repeated_crashes_are_reached() {
    EXPECTED.violates(&PROBES);
}
