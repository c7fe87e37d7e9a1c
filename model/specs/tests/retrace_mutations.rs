//! Counterexamples of specs on the engine with the seeded bug that corresponds to them: it
//! takes all their steps, and loses something. Needs the feature `mutations`, and a test binary of
//! its own, because a bug is switched on for the whole process.
#![cfg(any(treering_mutations, feature = "mutations"))]

use std::path::Path;

use treering_specs::Config;
use treering_specs::conformance::case::Ending;
use treering_specs::conformance::retrace::{Stage, case};

/// The model, the seeded bug of the engine, and what is found after the last step. Nothing is found
/// if the store does not open.
const LOSSES: [(&str, &str, &str); 10] = [
    (
        "published_free_list",
        "ring-listed-block-passed",
        "in a state that violates FreeListInv",
    ),
    (
        "published_no_padding",
        "ring-no-padding",
        "in a state that violates NoStraddleInv",
    ),
    (
        "published_no-epoch",
        "log-keeps-epoch",
        "after recovery the store has k1 = 3, k2 = 2",
    ),
    (
        "published_no-wal-rule",
        "page-before-log",
        "the store does not open: page 2",
    ),
    (
        "published_trusts-what-it-reads",
        "restart-trusts-homes",
        "the store does not open: page 0",
    ),
    (
        "clean-without-write",
        "clean-without-write",
        "after recovery the store has k1 = Absent",
    ),
    (
        "page-before-log",
        "page-before-log",
        "the store does not open: page 2",
    ),
    (
        "retries-failed-flush",
        "log-retries-failed-flush",
        "after recovery the store has k1 = Absent",
    ),
    (
        "truncates-early",
        "truncate-before-superblock",
        "the store does not open: log block",
    ),
    (
        "trusts-what-it-reads",
        "restart-trusts-log",
        "after recovery the store has k1 = Absent",
    ),
];

#[test]
fn the_engine_with_the_bug_follows_a_counterexample_to_its_loss() {
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs");
    for (model, bug, what) in LOSSES {
        let (spec, folder) = match bug.starts_with("ring-") {
            true => ("CircularBuffer", "circular_buffer"),
            false => ("WalRecovery", "wal_recovery"),
        };
        let path = specs.join(format!("{folder}/MC{spec}_{model}.cfg"));
        let text = std::fs::read_to_string(&path).unwrap();
        let config = Config::parse(&path, &text).unwrap();
        let case = case(spec, model, &config, &text).unwrap();
        assert_eq!(case.engine_bug.as_deref(), Some(bug), "{model}");
        let stage = Stage::new(&case).unwrap();
        match stage.run_with_bug().unwrap() {
            Ending::Lost(loss) => assert!(loss.what.contains(what), "{model}: {}", loss.what),
            other => panic!("{model}: {other:?}"),
        }
        // And not without it.
        let ending = stage.run().unwrap();
        assert!(!matches!(ending, Ending::Lost(_)), "{model}: {ending:?}");
    }
}
