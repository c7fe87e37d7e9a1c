//! Seeded bugs of the tree, of the snapshot of its index and of recovery from it, and the event at
//! which the judge must refuse each. Needs the feature `mutations`, and a test binary of its own,
//! because a bug is switched on for the whole process.
#![cfg(any(treering_mutations, feature = "mutations"))]

mod behaviour;

use treering_specs::conformance::Budget;
use treering_specs::conformance::snapshot::{Setup, run_losing_on, run_on};

/// Bugs that do no harm unless a write is lost.
const BELIEVES: [&str; 3] = [
    "snapshot-believed",
    "snapshot-sum-unchecked",
    "any-image-will-do",
];

#[test]
fn every_seeded_bug_of_the_snapshot_is_refused_for_the_right_reason() {
    /// The bug, and the refusals that reveal it: the kind of the event, and a part of the reason.
    const BUGS: [(&str, &[(&str, &str)]); 19] = [
        // The snapshot, and the superblock that names it.
        (
            "snapshot-not-flushed",
            &[("SuperblockWriting", "is not durable")],
        ),
        (
            "snapshot-before-log",
            &[("SuperblockWritten", "WriteSuper is not enabled")],
        ),
        ("snapshot-version-ahead", &[("AddsEntry", "")]),
        ("snapshot-freed-early", &[("FreesChunk", "may still need")]),
        (
            "redo-from-snapshot",
            &[("SuperblockWriting", "the redo start")],
        ),
        ("checkpoint-skips-pages", &[("Begins", "BeginSnapshot")]),
        (
            "truncate-before-superblock",
            &[("LogTruncated", "the oldest record")],
        ),
        // What recovery believes.
        (BELIEVES[0], &[("Built", "not those that")]),
        (BELIEVES[1], &[("Built", "not those that")]),
        (BELIEVES[2], &[("PageRedone", "has record")]),
        // Redo.
        (
            "redo-skips-new-fences",
            &[("ReadsFence", ""), ("Begins", "BeginSnapshot")],
        ),
        ("redo-keeps-gone-fences", &[("ReadsFence", "")]),
        ("redo-ignores-page-lsn", &[("PageRedone", "has record")]),
        ("split-skips-right", &[("RedoEnds", "still lacks")]),
        // Splits and merges, and the pages that they leave.
        ("free-before-durable", &[("FreesPage", "FreePage")]),
        ("page-before-log", &[("PageWritten", "WritePage")]),
        // A scan may tell before a crash does.
        (
            "split-logs-too-little",
            &[("Crashed", "slot"), ("Scanned", "the records")],
        ),
        (
            "merge-drops-first",
            &[
                ("Crashed", "slot"),
                ("Restarted", "slot"),
                ("Scanned", "the records"),
            ],
        ),
        // Clients.
        ("scan-back-skips-page", &[("Copies", "")]),
    ];
    let setup = Setup::new().unwrap();
    let tlc = behaviour::tlc();
    let mut wrong = Vec::new();
    for (bug, expected) in BUGS {
        assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
        let report = match BELIEVES.contains(&bug) {
            true => run_losing_on(&setup, 1, 30, Budget::Episodes(3000)),
            false => run_on(&setup, 1, Budget::Episodes(500)),
        };
        treering_engine::choose_mutation(None);
        let report = report.unwrap();
        let (episodes, heard) = (report.episodes, report.accepted());
        let Some((_, refusal)) = report.refusal else {
            wrong.push(format!("{bug} is accepted, in {heard} events"));
            continue;
        };
        let (kind, why) = (refusal.heard.kind(), &refusal.why);
        println!("{bug}: after {episodes} episodes and {heard} events at {kind}: {why:.300}");
        if !expected.iter().any(|(k, w)| *k == kind && why.contains(w)) {
            wrong.push(format!(
                "{bug}: expected one of {expected:?}, found {kind}: {why:.300}"
            ));
        }
        let behaviour = &refusal.behaviour;
        wrong.extend(behaviour::wrong(bug, behaviour, tlc.as_ref(), &[]));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
