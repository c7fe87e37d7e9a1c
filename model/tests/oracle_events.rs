//! What the engine does is what `WalRecovery` allows, and what a broken one does is not.

use treering_model::oracle::events::{Budget, Variant, run};

#[test]
fn episodes_are_accepted_event_by_event() {
    for variant in Variant::ALL {
        let report = run(variant, 1, Budget::Episodes(400)).unwrap();
        if let Some((seed, refusal)) = &report.refusal {
            panic!("{variant:?}, episode of seed {seed}: {refusal}");
        }
        println!("{report:#?} {}", report.accepted());
    }
}
