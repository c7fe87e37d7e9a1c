//! Differential runs: a random program on an engine and on the reference map, side by side; if they part, the shortest program on which they do.

use std::cell::{OnceCell, RefCell};
use std::sync::atomic::Ordering;

use proptest::strategy::Strategy;
use proptest::test_runner::{TestCaseError, TestError};
use proptest_state_machine::ReferenceStateMachine;

use super::Engine;
use super::deadline::Deadline;
use super::finding::Finding;
use super::generate::{Generated, Programs, Trouble, runner};
use super::program::Program;
use super::session::{Tally, execute_until};

/// A program, and what is wrong with the engine that it was run on.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The program.
    pub program: Program,
    /// What it shows.
    pub finding: Finding,
}

/// Runs the program of about `operations` operations that `seed` makes, with such trouble in it; the same seed makes the same program. `found` is told
/// of the first failure, before it is made small: when `until` is over, that ends after a second at
/// most.
///
/// # Errors
/// What was found, with the smallest program that shows it.
pub fn run(
    engine: &dyn Engine,
    seed: u64,
    operations: usize,
    trouble: Trouble,
    until: &Deadline,
    found: &dyn Fn(),
) -> Result<Tally, Box<Failure>> {
    let strategy = Programs::sequential_strategy(operations..=operations);
    // The last failure is that of the smallest program.
    let seen: RefCell<Option<Failure>> = RefCell::new(None);
    let tally: RefCell<Tally> = RefCell::new(Tally::default());
    // Since the first failure.
    let shrinks_until = OnceCell::new();
    let judge = |(shape, steps, counter): Generated| {
        let program = shape.program(&steps, engine, trouble);
        let until = shrinks_until.get().unwrap_or(until);
        if shrinks_until.get().is_some() && until.is_over() {
            return Ok(());
        }
        let finding = match execute_until(engine, &program, until) {
            Ok(done) => {
                *tally.borrow_mut() = done;
                return Ok(());
            }
            Err(finding) => finding,
        };
        let mut seen = seen.borrow_mut();
        // A smaller program that shows something else is another story.
        if seen
            .as_ref()
            .is_some_and(|first| first.finding.check != finding.check)
        {
            return Ok(());
        }
        if let (Some(counter), Some(n)) = (counter, finding.operation) {
            counter.store(n, Ordering::SeqCst);
        }
        if seen.is_none() {
            shrinks_until.get_or_init(|| until.for_shrinking());
            found();
        }
        let said = finding.to_string();
        *seen = Some(Failure { program, finding });
        Err(TestCaseError::fail(said))
    };
    let mut runner = runner(seed);
    // The program that `generate::program` makes of the seed.
    let tree = strategy.new_tree(&mut runner);
    match runner.run_one(tree.expect("nothing is ever rejected"), judge) {
        Ok(_) => Ok(tally.take()),
        Err(TestError::Fail(..)) => {
            let found = seen.take();
            let mut failure = found.expect("a run that failed has found something");
            failure.program.forget_unused_keys();
            Err(Box::new(failure))
        }
        Err(TestError::Abort(why)) => unreachable!("nothing is ever rejected: {why}"),
    }
}
