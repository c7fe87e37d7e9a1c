//! Bugs of mini-pages in a ring.

use treering_oracle::finding::Check;

use crate::mutations::recipe::{BF, BF_COW, Mode, Mutation, mutation};

pub(super) const MINI_PAGES: &[Mutation] = &[
    mutation(
        "bf-page-not-asked-again",
        "MiniPage 1, S5 doradb#351",
        Check::Linearizability,
        Mode::Concurrent,
        BF,
    ),
    mutation(
        "bf-late-promotion",
        "MiniPage 5",
        Check::Linearizability,
        Mode::Concurrent,
        BF,
    ),
    mutation(
        "bf-growth-ignored",
        "MiniPage 4",
        Check::Crash,
        Mode::Crash,
        BF,
    ),
    mutation(
        "bf-merge-some",
        "C4 neondatabase#420",
        Check::Reference,
        Mode::Differential,
        BF,
    ),
    mutation(
        "bf-tombstone-dropped",
        "D10 fjall#241",
        Check::Reference,
        Mode::Differential,
        BF_COW,
    ),
    mutation(
        "bf-dirty-since-newest",
        "D13 topgun#119",
        Check::Crash,
        Mode::Differential,
        BF,
    ),
    mutation(
        "bf-mini-page-outlives-split",
        "R2 orioledb PR#880",
        Check::Scan,
        Mode::Differential,
        BF,
    ),
    mutation(
        "bf-leaf-merge-forgets-mini-page",
        "lost in a merge",
        Check::Reference,
        Mode::Differential,
        BF_COW,
    ),
    mutation(
        "bf-checkpoint-skips-buffered",
        "D13 topgun#119",
        Check::Crash,
        Mode::Crash,
        BF_COW,
    ),
    mutation(
        "bf-scan-leaf-wins",
        "lost update",
        Check::Scan,
        Mode::Differential,
        BF,
    ),
    mutation(
        "bf-mirror-misses-first",
        "lost in a merge",
        Check::Reference,
        Mode::Differential,
        BF,
    ),
    mutation(
        "bf-mirror-outlives-its-records",
        "R2 orioledb PR#880",
        Check::Reference,
        Mode::Differential,
        BF,
    ),
    mutation(
        "bf-phantom-stays",
        "lost update",
        Check::Reference,
        Mode::Differential,
        BF,
    ),
    mutation(
        "bf-first-record-speaks-for-all",
        "C6 Typhon#132",
        Check::Reference,
        Mode::Differential,
        BF_COW,
    ),
    mutation(
        "bf-copy-forgets-lsn",
        "D12 turbodb#54",
        Check::Crash,
        Mode::Differential,
        BF_COW,
    ),
];
