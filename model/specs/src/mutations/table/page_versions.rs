//! Bugs of shadowed pages, of modification logs, and of the sparse redo log.

use treering_oracle::finding::Check;

use crate::mutations::recipe::{
    BMINUS, COW_LOGGED, IN_PLACE_LOGGED, Mode, Mutation, SHADOW_LARGE, mutation,
};

pub(super) const PAGE_VERSIONS: &[Mutation] = &[
    mutation(
        "believes-torn-slot",
        "torn pages",
        Check::Crash,
        Mode::Crash,
        SHADOW_LARGE,
    ),
    mutation(
        "takes-first-slot",
        "D2 redb#1290",
        Check::Crash,
        Mode::Crash,
        BMINUS,
    ),
    mutation(
        "trims-at-once",
        "PageShadowing 1, D1 redb dbebb441",
        Check::Crash,
        Mode::Crash,
        BMINUS,
    ),
    mutation(
        "resets-log-at-once",
        "PageShadowing 2",
        Check::Crash,
        Mode::Crash,
        BMINUS,
    ),
    mutation(
        "delta-at-once",
        "PageShadowing 2",
        Check::Reference,
        Mode::Differential,
        IN_PLACE_LOGGED,
    ),
    mutation(
        "nameless-log",
        "PageShadowing 3",
        Check::Crash,
        Mode::Crash,
        BMINUS,
    ),
    mutation(
        "restart-trusts-slots",
        "PageShadowing 5, D5 across a restart",
        Check::InjectedFailure,
        Mode::Differential,
        BMINUS,
    ),
    mutation(
        "restart-trusts-log-blocks",
        "D5 across a restart",
        Check::InjectedFailure,
        Mode::Differential,
        IN_PLACE_LOGGED,
    ),
    mutation(
        "trims-live-log",
        "D1 redb dbebb441",
        Check::Crash,
        Mode::Crash,
        BMINUS,
    ),
    mutation(
        "forgets-dirty",
        "lost update",
        Check::Reference,
        Mode::Differential,
        COW_LOGGED,
    ),
    mutation(
        "logs-last-changes",
        "lost update",
        Check::Reference,
        Mode::Differential,
        BMINUS,
    ),
    mutation(
        "sparse-reader-knows-no-closed",
        "D9 nomt#638",
        Check::Crash,
        Mode::Crash,
        BMINUS,
    ),
    mutation(
        "sparse-goes-on-in-block",
        "D9 nomt#638",
        Check::Crash,
        Mode::Crash,
        BMINUS,
    ),
    mutation(
        "sparse-closed-block-suspected",
        "a torn tail taken for damage",
        Check::Crash,
        Mode::Crash,
        BMINUS,
    ),
];
