//! Differential runs: a random program on an engine and on the reference map, compared answer by
//! answer. A program on which they differ is reduced to a small one.

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
use super::shrink;

/// A program on which an engine is wrong, and what it shows.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The program.
    pub program: Program,
    /// What is wrong.
    pub finding: Finding,
}

/// Runs the random program of `seed`, which has about `operations` operations. `found` is called
/// after the first failure, before the program is reduced. Once `until` is over, reducing it takes
/// another second at most.
///
/// # Errors
/// What was found, with the reduced program.
pub fn run(
    engine: &dyn Engine,
    seed: u64,
    operations: usize,
    trouble: Trouble,
    until: &Deadline,
    found: &dyn Fn(),
) -> Result<Tally, Box<Failure>> {
    let strategy = Programs::sequential_strategy(operations..=operations);
    // The last failure found is that of the smallest program.
    let seen: RefCell<Option<Failure>> = RefCell::new(None);
    let tally: RefCell<Tally> = RefCell::new(Tally::default());
    // Starts at the first failure.
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
        // A smaller program with a different finding does not count.
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
    // The same program that `generate::program` makes of the seed.
    let tree = strategy.new_tree(&mut runner);
    match runner.run_one(tree.expect("nothing is ever rejected"), judge) {
        Ok(_) => Ok(tally.take()),
        Err(TestError::Fail(..)) => {
            let found = seen.take();
            let mut failure = found.expect("a run that failed has found something");
            let until = shrinks_until.get().unwrap_or(until);
            without_changes(engine, &mut failure, until);
            failure.program.forget_unused_keys();
            Err(Box::new(failure))
        }
        Err(TestError::Abort(why)) => unreachable!("nothing is ever rejected: {why}"),
    }
}

/// Removes changes of batches that the failure does not need. The state machine reduces steps, and
/// a step is a whole batch.
fn without_changes(engine: &dyn Engine, failure: &mut Failure, until: &Deadline) {
    let mut program = failure.program.clone();
    let check = failure.finding.check;
    shrink::without_changes(&mut program, &mut |candidate| {
        if until.is_over() {
            return false;
        }
        match execute_until(engine, candidate, until) {
            Err(finding) if finding.check == check => {
                failure.finding = finding;
                true
            }
            _ => false,
        }
    });
    failure.program = program;
}
