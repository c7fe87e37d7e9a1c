//! Bugs of write batches: their intent in the log, recovery, readers, long values.

use treering_oracle::finding::Check;
use treering_oracle::generate::Trouble;

use crate::mutations::recipe::{COW, IN_PLACE, Mode, Mutation, mutation};

/// Requests fail, and nothing else that would end a store's life happens.
const FAILING: Trouble = Trouble {
    reopen: false,
    power: false,
    failures: true,
};

pub(super) const BATCHES: &[Mutation] = &[
    mutation(
        "batch-made-before-intent",
        "a batch in part after a crash",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "batch-happens-incomplete",
        "an intent cut short counts",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "batch-never-ends",
        "a batch over later writes",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "recovery-forgets-batch",
        "a batch in part after a crash",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "batch-ends-early",
        "the last change of a batch is lost",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "checkpoint-ignores-batch",
        "an intent is freed too early",
        Check::CrashInRecovery,
        Mode::Crash,
        COW,
    ),
    mutation(
        "batch-moves-before-intent",
        "an intent is freed before the next",
        Check::CrashInRecovery,
        Mode::Crash,
        COW,
    ),
    mutation(
        "batch-values-not-taken",
        "a place given away twice",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "batch-retires-its-own-value",
        "a live value is freed",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "batch-shown-piecemeal",
        "a batch is not isolated",
        Check::Linearizability,
        Mode::Concurrent,
        IN_PLACE,
    ),
    mutation(
        "unfinished-batch-forgotten",
        "a batch over later writes",
        Check::Reference,
        Mode::Differential,
        IN_PLACE,
    )
    .with(FAILING),
    mutation(
        "refused-batch-keeps-values",
        "space leaks",
        Check::Room,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "writers-pass-closed-gate",
        "a write is lost under a batch",
        Check::Linearizability,
        Mode::Concurrent,
        IN_PLACE,
    ),
];
