//! The table: each seeded bug with its recipe.

use super::{Check, Mode, Mutation, Trouble};

impl Mutation {
    const fn with(self, trouble: Trouble) -> Mutation {
        Mutation { trouble, ..self }
    }
}

/// For what only a scan shows: opening looks at the whole content, too.
const OPEN: Trouble = Trouble {
    reopen: false,
    power: false,
    failures: false,
};
/// For what a store shows while it is open, or when it is closed and opened again.
const REOPENED: Trouble = Trouble {
    reopen: true,
    power: false,
    failures: false,
};
/// For what only a power cut shows.
const CUT: Trouble = Trouble {
    reopen: false,
    power: true,
    failures: false,
};

const fn mutation(
    name: &'static str,
    bug: &'static str,
    check: Check,
    mode: Mode,
    engine: &'static str,
) -> Mutation {
    Mutation {
        name,
        bug,
        check,
        mode,
        engine,
        trouble: match check {
            Check::Scan => OPEN,
            Check::Reference | Check::Structure => REOPENED,
            Check::Crash | Check::CrashInRecovery | Check::Damage => CUT,
            _ => Trouble::ANY,
        },
    }
}

pub(super) const IN_PLACE: &str = "btree:in-place";
const LARGE_PAGES: &str = "btree:in-place-16k";
pub(super) const COW: &str = "btree:cow";
const BF: &str = "bf:in-place";
const BF_COW: &str = "bf:cow";
const SHADOW: &str = "btree:shadow";
const SHADOW_LARGE: &str = "btree:shadow-16k";
const BMINUS: &str = "bminus-small";
const IN_PLACE_LOGGED: &str = "btree:in-place-logged";
const COW_LOGGED: &str = "btree:cow-logged";
const PMTREE: &str = "pmtree";
const CCL: &str = "ccl";
const CCL_1: &str = "ccl:1";
const CCL_6: &str = "ccl:6";

/// All that these modes can catch. Those of `treering_engine::MUTATIONS` that are not here are the business of the test that is named beside them
/// (loom's, mostly).
pub const TABLE: &[Mutation] = &[
    mutation(
        "equal-heads-equal-keys",
        "S1 bf-tree#17",
        Check::Reference,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "same-length-same-value",
        "lost update",
        Check::Reference,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "empty-value-is-absent",
        "empty values",
        Check::Reference,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "merge-drops-first",
        "lost in a merge",
        Check::Reference,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "clean-without-write",
        "C3 zero#10, C6 Typhon#132",
        Check::Reference,
        Mode::Differential,
        COW,
    ),
    mutation(
        "scan-skips-fence",
        "R2 orioledb PR#880",
        Check::Scan,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "scan-repeats-last",
        "R2 orioledb PR#880",
        Check::Scan,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "scan-ignores-break",
        "bounds ignored",
        Check::Scan,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "scan-back-skips-page",
        "R2 orioledb PR#880",
        Check::Scan,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "page-before-log",
        "D12 turbodb#54",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "truncate-before-superblock",
        "D8 mini-lsm#124",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "journal-not-flushed",
        "torn pages",
        Check::Crash,
        Mode::Crash,
        LARGE_PAGES,
    ),
    mutation(
        "redo-ignores-page-lsn",
        "D7 arcadedb#5054",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "free-before-durable",
        "D1 redb dbebb441",
        Check::Crash,
        Mode::Differential,
        COW,
    ),
    mutation(
        "table-before-page",
        "D12 turbodb#54",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "split-skips-right",
        "S4 Typhon#297",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "log-acks-before-flush",
        "D5 turso#2091",
        Check::Crash,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "log-keeps-epoch",
        "D11 cqlite#1379, D9 nomt#638",
        Check::CrashInRecovery,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "delete-not-logged",
        "D10 fjall#241",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "redo-skips-deletes",
        "D10 fjall#241",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "split-logs-too-little",
        "S2 sled#717",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "checkpoint-skips-pages",
        "D13 topgun#119",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "failed-write-stays-clean",
        "D4 redb 511b0f86",
        Check::Reference,
        Mode::Differential,
        IN_PLACE,
    )
    .with(Trouble::ANY),
    mutation(
        "restart-trusts-homes",
        "D5 across a restart",
        Check::InjectedFailure,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "restart-trusts-table",
        "D5 across a restart",
        Check::InjectedFailure,
        Mode::Differential,
        COW,
    ),
    mutation(
        "restart-trusts-log",
        "D5 across a restart",
        Check::InjectedFailure,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "failed-store-goes-on",
        "D3 redb 3ca4467e",
        Check::InjectedFailure,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "truncate-to-end",
        "D13 topgun#119",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "older-superblock",
        "D2 redb#1290",
        Check::Reference,
        Mode::Differential,
        COW,
    ),
    mutation(
        "any-image-will-do",
        "a lost write, an old image believed",
        Check::Damage,
        Mode::Damage,
        SHADOW,
    ),
    mutation(
        "pm-blank-by-magic",
        "a lost superblock, a store formatted over",
        Check::Damage,
        Mode::Damage,
        PMTREE,
    ),
    mutation(
        "pm-record-anywhere",
        "a line of zeros read as an empty value",
        Check::Damage,
        Mode::Damage,
        PMTREE,
    ),
    mutation(
        "clean-after-write",
        "C3 zero#10, C4 neondatabase#420",
        Check::Linearizability,
        Mode::Concurrent,
        COW,
    ),
    mutation(
        "evict-picked-page",
        "C6 Typhon#132",
        Check::Linearizability,
        Mode::Concurrent,
        COW,
    ),
    mutation(
        "trust-index",
        "S5 doradb#351",
        Check::Linearizability,
        Mode::Concurrent,
        IN_PLACE,
    ),
    mutation(
        "log-sleeps-through",
        "L1 bf-tree#14",
        Check::Progress,
        Mode::Concurrent,
        IN_PLACE,
    ),
    mutation(
        "log-retries-failed-flush",
        "D5 turso#2091",
        Check::Conformance,
        Mode::Events,
        IN_PLACE,
    ),
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
        "believes-log-block",
        "damage followed",
        Check::Damage,
        Mode::Crash,
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
