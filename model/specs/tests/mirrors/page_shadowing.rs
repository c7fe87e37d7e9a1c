//! PageShadowing: the results that its configurations must have.

use super::Expected;

pub(crate) const EXPECTED: Expected = Expected {
    spec: "PageShadowing",
    folder: "page_shadowing",
    bugs: &[
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
    ],
    holds: &[
        ("recovery", 13_690),
        ("inert", 11_033),
        ("mutation", 31_827),
        ("three-segments", 47_845),
        ("two-pages", 56_059),
    ],
    bounded: "MayRestart",
};
