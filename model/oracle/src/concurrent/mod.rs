//! Concurrent runs: real threads on one store, and a check of what they saw.
//!
//! ```text
//! client 0 ── put ─ get ─ scan ─ …  ┐                      auditor: scan, gets, reopen, scan, gets
//! client 1 ── get ─ delete ─ put …  ├─ one store ─ sync ──┘         │
//! pump     ── pump_due ─ checkpoint ┘                               └─ one history ─ linear::check
//! ```
//!
//! Clients record every call ([`Client`]); [`Workload`] decides what they do. When all have
//! finished, an auditor syncs and reads the whole content, by scan and by get, before and after the
//! store is reopened. Its calls belong to the history. So the check of the history also covers the
//! final content: each key must hold a value that some order of the calls leaves there.
//!
//! Every other history ends in a power cut instead ([`Power`]). What is left must include what
//! clients were told is durable, and nothing that was never written.
//!
//! A run reports violations, panics, errors, and hangs. A watchdog detects a hang: if no call
//! begins or ends for [`Plan::patience`], it reports the pending calls and abandons the threads,
//! which nothing can stop.

mod client;
mod cut_off;
mod finding;
mod plan;
mod power;
mod races;
mod report;
mod slow;
mod threads;
mod whole;
mod workload;

use std::time::Instant;

pub use client::{Client, Session};
pub use finding::Finding;
pub use plan::{Plan, RunError};
pub use power::Power;
pub use report::{Report, Wrong};
pub use workload::{Group, Shape, Step, Workload};

use crate::deadline::Deadline;
use crate::edges::Edges;
use crate::engine::Engine;
use crate::medium::Medium;
use crate::value::VERSION_BYTES;

/// The share of the time until a deadline for the clients. The rest is for the checks.
const CALLS: f64 = 0.7;

/// Runs the plan on stores of `engine` until something is wrong.
///
/// # Errors
/// The run was impossible; see [`RunError`]. What is wrong with the engine is in the report.
pub fn run(engine: &dyn Engine, plan: &Plan) -> Result<Report, RunError> {
    if plan.clients == 0 {
        return Err(RunError::Plan("the number of clients"));
    }
    let began = Instant::now();
    let mut report = Report {
        limits: Edges::within(&engine.limits()).with_values_from(VERSION_BYTES),
        ..Report::default()
    };
    for number in plan.first..plan.first.saturating_add(plan.histories) {
        if plan.budget.is_some_and(|budget| began.elapsed() >= budget) {
            break;
        }
        let varied = (plan.vary)
            .then(|| engine.vary(plan.seed.wrapping_add(number)))
            .flatten();
        let engine = varied.as_deref().unwrap_or(engine);
        let cut = plan.cut_every > 0 && number % plan.cut_every == plan.cut_every - 1;
        let medium = cut.then(|| Medium::new(engine.disk())).flatten();
        let until = Deadline::at(plan.at_most.map(|most| began + most));
        let calls = until.part(CALLS);
        match medium {
            Some(medium) => cut_off::run(engine, plan, number, &medium, &calls, &mut report)?,
            None => whole::run(engine, plan, number, &calls, &mut report)?,
        }
        report.interrupted += u64::from(calls.has_struck());
        if report.wrong.is_some() {
            break;
        }
    }
    report.elapsed = began.elapsed();
    Ok(report)
}
