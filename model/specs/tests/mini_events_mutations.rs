//! Seeded bugs of the Bf-tree, and the event at which the judge must refuse each. Needs the feature
//! `mutations`, and a test binary of its own, because a bug is switched on for the whole process.
#![cfg(any(treering_mutations, feature = "mutations"))]

mod behaviour;

use treering_specs::conformance::mini::run;

#[test]
fn every_seeded_bug_of_the_tree_is_refused_for_the_right_reason() {
    /// The bug, the number of clients that it needs, and the refusals that reveal it: the kind of
    /// the event, and a part of the reason.
    const BUGS: [(&str, u8, &[(&str, &str)]); 11] = [
        // The bug shows in the client's first operation on the wrong page.
        (
            "bf-page-not-asked-again",
            4,
            &[
                ("ReadMini", "the page of its key"),
                ("ReadLeaf", "the page of its key"),
                ("Grown", "the page of its key"),
                ("Written", "the page of its key"),
                ("AbsentAlready", "the page of its key"),
                ("Scanned", "the page of its key"),
                ("Split", "the page of its key"),
            ],
        ),
        // A get whose page is gone makes a mini-page, asks for a block, or adds or omits a record.
        (
            "bf-late-promotion",
            1,
            &[
                ("Grown", "has no page"),
                ("Full", "needs no room"),
                ("Promoted", "has no page"),
                ("Declined", "the page"),
            ],
        ),
        ("bf-merge-some", 1, &[("Merged", "the leaf")]),
        ("bf-tombstone-dropped", 1, &[("Merged", "the leaf")]),
        (
            "bf-mini-page-outlives-split",
            1,
            // The leaf holds records of the right-hand page, or has less room than the judge
            // expects.
            &[
                ("Split", "the mini-page"),
                ("Split", "the leaf has room"),
                ("Split", "a mirror"),
            ],
        ),
        (
            "bf-leaf-merge-forgets-mini-page",
            1,
            &[("Joined", "is forgotten")],
        ),
        ("bf-scan-leaf-wins", 1, &[("Rows", "the rows")]),
        ("bf-phantom-stays", 1, &[("Written", "the mini-page")]),
        (
            "bf-first-record-speaks-for-all",
            1,
            &[("Merged", "a dirty record"), ("Split", "a dirty record")],
        ),
        // A mini-page that should hold all records of its leaf lacks one.
        (
            "bf-mirror-misses-first",
            1,
            &[("Mirrored", "the mini-page")],
        ),
        // Cold records are gone, but the mini-page claims to hold all records.
        (
            "bf-mirror-outlives-its-records",
            1,
            &[("Kept", "the mini-page")],
        ),
    ];
    let tlc = behaviour::tlc();
    let mut wrong = Vec::new();
    for (bug, clients, refusals) in BUGS {
        assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
        let report = run(clients, 1, 500_000);
        treering_engine::choose_mutation(None);
        let accepted = report.accepted();
        let (_, refusal) = report
            .refusal
            .unwrap_or_else(|| panic!("{bug} is accepted"));
        let kind = refusal.heard.kind();
        println!("{bug}: after {accepted} events: {kind}: {}", refusal.why);
        let named = |(event, why): &(&str, &str)| kind == *event && refusal.why.contains(why);
        assert!(
            refusals.iter().any(named),
            "{bug}: expected {refusals:?}; found {refusal}"
        );
        let behaviour = &refusal.behaviour;
        wrong.extend(behaviour::wrong(bug, behaviour, tlc.as_ref(), &[]));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
