//! Explores turns under every schedule that loom finds: the number of threads with a turn never
//! exceeds the number of places, and every turn that ends is passed on.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --release -p treering-engine --test loom_turns \
//!   --target-dir target/loom
//! ```
//!
//! Mutation check: with `TREERING_MUTATION=turn-ends-unheard RUSTFLAGS="--cfg loom --cfg
//! treering_mutations"` this must fail (BUGS L1).
#![cfg(loom)]

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use treering_engine::sync::Turns;

/// Three threads, each of which has a turn `times` times.
fn explore(places: u64, times: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let turns = Arc::new(Turns::new(places));
        let inside = Arc::new(AtomicU64::new(0));
        let take = move |turns: &Turns, inside: &AtomicU64| {
            for _ in 0..times {
                let turn = turns.wait();
                let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                assert!(now <= places, "{now} threads have a turn at the same time");
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(turn);
            }
        };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (turns, inside) = (Arc::clone(&turns), Arc::clone(&inside));
                thread::spawn(move || take(&turns, &inside))
            })
            .collect();
        take(&turns, &inside);
        for other in others {
            other.join().expect("a thread ended");
        }
        assert!(turns.try_now().is_some(), "all turns must have ended");
    });
}

#[test]
fn a_single_turn_is_passed_from_thread_to_thread() {
    explore(1, 1);
}

#[test]
fn two_concurrent_turns_are_passed_on() {
    explore(2, 1);
}
