//! Bugs of trees in persistent memory.

use treering_oracle::finding::Check;

use crate::mutations::recipe::{CCL, CCL_1, CCL_6, Mode, Mutation, PMTREE, mutation};

pub(super) const PERSISTENT_MEMORY: &[Mutation] = &[
    mutation(
        "pm-header-before-data",
        "P1 FAST_FAIR PR#15",
        Check::Crash,
        Mode::Crash,
        PMTREE,
    ),
    mutation(
        "pm-data-not-fenced",
        "P1 FAST_FAIR PR#15",
        Check::Crash,
        Mode::Crash,
        PMTREE,
    ),
    mutation(
        "pm-split-header-first",
        "P1 FAST_FAIR PR#15",
        Check::Crash,
        Mode::Crash,
        PMTREE,
    ),
    mutation(
        "pm-magic-first",
        "P1 FAST_FAIR PR#15",
        Check::Crash,
        Mode::Crash,
        PMTREE,
    ),
    mutation(
        "pm-anchor-dropped",
        "LeafBuffering 6",
        Check::Crash,
        Mode::Differential,
        CCL,
    ),
    mutation(
        "pm-record-reused-at-once",
        "D1 redb dbebb441",
        Check::Crash,
        Mode::Crash,
        CCL,
    ),
    mutation(
        "pm-log-over-records",
        "LeafBuffering 9, D9 nomt#638",
        Check::Reference,
        Mode::Differential,
        CCL_1,
    ),
    mutation(
        "ccl-early-timestamp",
        "LeafBuffering 1",
        Check::Crash,
        Mode::Crash,
        CCL_1,
    ),
    mutation(
        "ccl-timestamp-not-stored",
        "D10 fjall#241",
        Check::Crash,
        Mode::Crash,
        CCL_1,
    ),
    mutation(
        "ccl-replay-ignores-timestamp",
        "D7 arcadedb#5054",
        Check::Crash,
        Mode::Crash,
        CCL_1,
    ),
    mutation(
        "ccl-merge-keeps-timestamp",
        "LeafBuffering 7",
        Check::Crash,
        Mode::Differential,
        CCL_1,
    ),
    mutation(
        "ccl-trigger-acked-early",
        "P2 SEPH#3",
        Check::Crash,
        Mode::Crash,
        CCL_1,
    ),
    mutation(
        "ccl-log-not-fenced",
        "D5 turso#2091, P2 SEPH#3",
        Check::Crash,
        Mode::Crash,
        CCL,
    ),
    mutation(
        "ccl-reclaim-before-copy",
        "D8 mini-lsm#124",
        Check::Crash,
        Mode::Crash,
        CCL_6,
    ),
    mutation(
        "ccl-copy-keeps-epoch",
        "LeafBuffering 3",
        Check::Crash,
        Mode::Crash,
        CCL_6,
    ),
    mutation(
        "ccl-floor-not-stored",
        "LeafBuffering 5",
        Check::Crash,
        Mode::Differential,
        CCL,
    ),
    mutation(
        "ccl-stale-copy-cached",
        "LeafBuffering 2",
        Check::Reference,
        Mode::Differential,
        CCL_6,
    ),
];
