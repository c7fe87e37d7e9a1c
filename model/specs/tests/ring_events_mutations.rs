//! Seeded bugs of the ring, and the event at which the judge must refuse each. Needs the feature
//! `mutations`, and a test binary of its own, because a bug is switched on for the whole process.
#![cfg(any(treering_mutations, feature = "mutations"))]

mod behaviour;

use treering_specs::conformance::ring::{Heard, run};

#[test]
fn every_seeded_bug_of_the_ring_is_refused_for_the_right_reason() {
    /// The bug, the event that reveals it, and a part of the reason.
    const BUGS: [(&str, &str, &str); 4] = [
        // The list offers a block that the head has passed, or one that it has already offered.
        ("ring-listed-block-passed", "Reused", "PopFreeList"),
        ("ring-pop-unchecked", "Reused", "PopFreeList"),
        ("ring-no-padding", "Allocated", "Allocate"),
        (
            "ring-evicted-before-unmapped",
            "Passed",
            "nobody has evicted",
        ),
    ];
    let tlc = behaviour::tlc();
    let mut wrong = Vec::new();
    for (bug, event, why) in BUGS {
        assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
        let report = run(1, 1, 500_000);
        treering_engine::choose_mutation(None);
        let accepted = report.accepted();
        let (_, refusal) = report
            .refusal
            .unwrap_or_else(|| panic!("{bug} is accepted"));
        println!("{bug}: after {accepted} events: {refusal}");
        let behaviour = &refusal.behaviour;
        wrong.extend(behaviour::wrong(bug, behaviour, tlc.as_ref(), &[]));
        let Heard::Ring(heard) = refusal.heard else {
            panic!("{bug} is refused at {:?}", refusal.heard)
        };
        assert!(
            format!("{heard:?}").starts_with(event) && refusal.why.contains(why),
            "{bug}: expected {event}, {why}; found {refusal}"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
