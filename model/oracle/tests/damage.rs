//! Damages a block of pages after a power cut: an error must report it, or all reads must be right.

use treering_oracle::campaign::{self, Plan};
use treering_oracle::crash::Effort;
use treering_oracle::damage;
use treering_oracle::engines::{BTree, Geometry, PmTree};
use treering_oracle::generate::Trouble;

#[test]
fn damage_after_a_power_cut_is_reported_or_harmless() {
    let runs = std::env::var("TREERING_DAMAGE_RUNS").map_or(3, |n| n.parse().expect("a number"));
    let effort = Effort {
        again: 0,
        go_on: 0,
        damage: 1,
        ..Effort::default()
    };
    let plan = Plan {
        runs,
        threads: 2,
        trouble: Trouble {
            reopen: false,
            power: true,
            failures: false,
        },
        ..Plan::default()
    };
    for name in BTree::names() {
        let engine = BTree::named(name, Geometry::Tiny).expect("one of ours");
        let outcome = campaign::crashes(&engine, &plan, effort, &|_| {});
        if let Some((seed, failure)) = outcome.failure {
            let program = failure.program.save(name, None);
            panic!("{name}, seed {seed}: {}\n{program}", failure.finding);
        }
        let (damaged, told) = (outcome.done.damaged, outcome.done.told);
        eprintln!("{name}: {damaged} blocks damaged, {told} told");
        assert!(
            told > 100 && told < damaged,
            "{name}: {damaged} blocks damaged, {told} told"
        );
    }
}

#[test]
fn truncating_a_persistent_memory_to_nothing_is_reported() {
    let engine = PmTree::named("ccl/cramped", Geometry::Medium).expect("one of ours");
    // Case 21 of this seed leaves no line.
    let done = damage::run(&engine, 424, 1_500);
    done.unwrap_or_else(|finding| panic!("{finding}"));
}
