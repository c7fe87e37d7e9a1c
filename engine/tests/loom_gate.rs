//! Explores the gate under every schedule that loom finds: a thread that has closed the gate runs
//! alone, and no thread waits forever.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --release -p treering-engine --test loom_gate \
//!   --target-dir target/loom
//! ```
//!
//! Mutation check: with `TREERING_MUTATION=writers-pass-closed-gate RUSTFLAGS="--cfg loom --cfg
//! treering_mutations"` this must fail.
#![cfg(loom)]

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use treering_engine::sync::Gate;

/// Set while a thread has the gate closed. The low bits count the threads inside.
const ALONE: u64 = 1 << 32;

fn pass(gate: &Gate, inside: &AtomicU64) {
    let pass = gate.pass();
    let before = inside.fetch_add(1, Ordering::SeqCst);
    assert!(before < ALONE, "a thread passed a closed gate");
    inside.fetch_sub(1, Ordering::SeqCst);
    drop(pass);
}

fn close(gate: &Gate, inside: &AtomicU64) {
    let closed = gate.close();
    assert_eq!(
        inside.swap(ALONE, Ordering::SeqCst),
        0,
        "no other thread may be inside"
    );
    inside.store(0, Ordering::SeqCst);
    drop(closed);
}

fn explore(others: &'static [fn(&Gate, &AtomicU64)], mine: fn(&Gate, &AtomicU64)) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let (gate, inside) = (Arc::new(Gate::new()), Arc::new(AtomicU64::new(0)));
        let others: Vec<_> = (others.iter())
            .map(|other| {
                let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
                thread::spawn(move || other(&gate, &inside))
            })
            .collect();
        mine(&gate, &inside);
        for other in others {
            other.join().expect("a thread ended");
        }
    });
}

#[test]
fn the_closing_thread_runs_alone() {
    explore(&[pass, pass], close);
}

#[test]
fn two_closing_threads_run_one_after_the_other() {
    explore(&[close, pass], close);
}
