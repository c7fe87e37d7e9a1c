//! Seeded bugs of leaves that change their layout, and of their recovery, and the event at which
//! the judge must refuse each; and seeds that do no harm, of which it must refuse none. Needs the
//! feature `mutations`, and a test binary of its own, because a bug is switched on for the whole
//! process.
#![cfg(any(treering_mutations, feature = "mutations"))]

mod behaviour;

use treering_specs::conformance::Budget;
use treering_specs::conformance::layout::{Setup, run_on, setups};
use treering_specs::conformance::module::Module;

/// The bug, and the refusals that reveal it: the kind of the event, and a part of the reason.
type Bug = (&'static str, &'static [(&'static str, &'static str)]);

const BUGS: [Bug; 22] = [
    // What a leaf takes.
    (
        "dense-cuts-value",
        &[("PageChanged", "ChangeLeaf"), ("Converts", "LayOut")],
    ),
    ("dense-delete-keeps-bit", &[("Has", "the records' sum")]),
    ("same-length-same-value", &[("Has", "the records' sum")]),
    // What is done with a leaf that refuses a record.
    (
        "dense-split-unfit",
        &[("Splits", "Divide"), ("Failed", "nothing has failed")],
    ),
    ("adaptive-split-unfit", &[("Splits", "Divide")]),
    ("dense-never-back", &[("Splits", "Divide")]),
    (
        "semi-dense-counts-the-old",
        &[("Refuses", "has room and a place")],
    ),
    ("partition-leaves-places", &[("Splits", "its fence is not")]),
    ("conversion-drops-record", &[("Has", "the records")]),
    ("relayout-not-logged", &[("Has", "the layout")]),
    ("relayout-keeps-lsn", &[("Has", "the page's LSN")]),
    ("merge-not-prepared", &[("Merges", "Merge(")]),
    // What the log says.
    (
        "split-logs-its-layout",
        &[("Has", "the layout"), ("RedoEnds", "still lacks")],
    ),
    ("split-logs-too-little", &[("Has", "the records")]),
    ("merge-drops-first", &[("Has", "the records")]),
    // Pages and checkpoints.
    ("page-before-log", &[("PageWritten", "WritePage")]),
    (
        "checkpoint-skips-pages",
        &[("SuperblockFlushed", "lacks a record")],
    ),
    // Redo.
    (
        "redo-skips-relayouts",
        &[("Has", "the layout"), ("RedoEnds", "still lacks")],
    ),
    ("redo-builds-general", &[("Has", "the layout")]),
    ("redo-ignores-page-lsn", &[("PageRedone", "has record")]),
    ("redo-skips-deletes", &[("Has", "the records")]),
    ("split-skips-right", &[("RedoEnds", "still lacks")]),
];

/// A refused event as a behaviour; or why there is none.
type Behaviour = Result<Module, String>;

fn with<T>(
    bug: &str,
    setups: &[Setup],
    episodes: u64,
    then: impl FnOnce(&str, u64, Option<&Behaviour>) -> T,
) -> T {
    assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
    let report = run_on(setups, 1, Budget::Episodes(episodes));
    treering_engine::choose_mutation(None);
    let report = report.unwrap();
    let heard = report.accepted();
    match report.refusal {
        None => then("", heard, None),
        Some((_, refusal)) => {
            let found = format!("{}: {:.300}", refusal.heard.kind(), refusal.why);
            println!("{bug}: after {heard} events at {found}");
            then(&found, heard, Some(&refusal.behaviour))
        }
    }
}

#[test]
fn every_seeded_bug_of_layouts_is_refused_for_the_right_reason_and_no_harmless_one() {
    let setups = setups().unwrap();
    /// Only the sum of the records tells these, and the spec has no sums.
    const SUMS: [&str; 2] = ["dense-delete-keeps-bit", "same-length-same-value"];
    let tlc = behaviour::tlc();
    let mut wrong = Vec::new();
    for (bug, expected) in BUGS {
        with(bug, &setups, 1500, |found, heard, behaviour| match found {
            "" => wrong.push(format!("{bug} is accepted, in {heard} events")),
            found => {
                if let Some(behaviour) = behaviour {
                    wrong.extend(behaviour::wrong(bug, behaviour, tlc.as_ref(), &SUMS));
                }
                let is_it =
                    |(kind, why): &(&str, &str)| found.starts_with(kind) && found.contains(why);
                if !expected.iter().any(is_it) {
                    wrong.push(format!(
                        "{bug}: expected one of {expected:?}, found {found}"
                    ));
                }
            }
        });
    }
    for seed in treering_engine::HARMLESS {
        with(seed, &setups, 40, |found, _, _| {
            if !found.is_empty() {
                wrong.push(format!("{seed} does no harm, but is refused at {found}"));
            }
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
