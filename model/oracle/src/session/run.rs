//! Runs a whole program.

use super::{Session, Tally};
use crate::deadline::Deadline;
use crate::engine::Engine;
use crate::finding::{Check, Finding};
use crate::program::Program;

/// Runs a program and compares every answer with the reference map.
///
/// # Errors
/// The first violation.
pub fn execute(engine: &dyn Engine, program: &Program) -> Result<Tally, Finding> {
    execute_until(engine, program, &Deadline::never())
}

/// As [`execute`], but stops between two operations, without the final checks, once `until` is
/// over.
///
/// # Errors
/// The first violation.
pub fn execute_until(
    engine: &dyn Engine,
    program: &Program,
    until: &Deadline,
) -> Result<Tally, Finding> {
    let Some(ahead) = engine.ahead(program) else {
        return execute_on(engine, program, until);
    };
    let seen = execute_on(&*ahead, program, until);
    drop(ahead);
    match seen {
        // Step by step, since a wrong answer changes what a program does next. An engine that is
        // wrong only now and then is wrong nevertheless.
        Err(finding) => execute_on(engine, program, until).and(Err(finding)),
        Ok(tally) => Ok(tally),
    }
}

/// As [`execute_until`], each call made when its turn comes.
fn execute_on(engine: &dyn Engine, program: &Program, until: &Deadline) -> Result<Tally, Finding> {
    let mut at = 0;
    let run = || {
        let mut session = Session::start(engine, program)?;
        for i in 0..program.ops.len() {
            if until.is_over() {
                return Ok(session.end());
            }
            at = i;
            session.step(i)?;
        }
        if until.is_over() {
            return Ok(session.end());
        }
        session.finish()
    };
    match crate::panics::catch(run) {
        Ok(result) => result,
        Err(said) => Err(Finding {
            check: Check::Panic,
            operation: Some(at + 1),
            what: (program.ops.get(at)).map_or_else(|| "open".into(), |op| program.line(op)),
            expected: "an answer".into(),
            found: said,
        }),
    }
}
