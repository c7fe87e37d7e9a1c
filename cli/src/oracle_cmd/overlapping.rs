//! Runs what overlaps: calls of several threads, and open transactions.

use std::time::Instant;

use treering_oracle::campaign::Plan;
use treering_oracle::concurrent;
use treering_oracle::{Check, Engine, Tally};

use super::report::Row;
use super::runs::finding;

/// Runs [`Mode::Concurrent`](super::runs::Mode::Concurrent).
pub(super) fn run(engine: &dyn Engine, plan: &Plan, before: u64, row: &mut Row) {
    if engine.is_linearizable() {
        calls(engine, plan, before, row);
    }
    if row.finding.is_none() {
        transactions(engine, plan, before, row);
    }
}

/// The most requests of one run of transactions, whose checks take time.
const MOST_REQUESTS: u64 = 4_000;

/// Runs and judges transactions, if the engine has any: once for each history.
fn transactions(engine: &dyn Engine, plan: &Plan, before: u64, row: &mut Row) {
    let began = Instant::now();
    let requests = (plan.operations as u64).min(MOST_REQUESTS);
    let runs = if engine.is_linearizable() {
        row.runs
    } else {
        plan.runs
    };
    let mut met = 0;
    for n in 0..runs.max(1) {
        let seed = plan.seed.wrapping_add(n);
        let report = match engine.transactions(seed, requests) {
            None => return,
            Some(Ok(report)) => report,
            Some(Err(e)) => {
                let expected = "an answer, or a conflict";
                row.finding = Some(finding(Check::Error, "transactions", expected, e));
                break;
            }
        };
        row.tally.operations += report.requests;
        met += report.met;
        for (what, n) in report.counts {
            match row.counts.iter_mut().find(|(known, _)| known == what) {
                Some((_, sum)) => *sum += n,
                None => row.counts.push((what.into(), n)),
            }
        }
        row.finding = report.finding;
        let late = plan.at_most.is_some_and(|most| began.elapsed() >= most);
        if row.finding.is_some() || late {
            break;
        }
    }
    if !engine.is_linearizable() {
        row.runs = runs;
        row.did = met;
    }
    // Later turns meet too.
    if met == 0 && before == 0 && row.finding.is_none() {
        row.never.push("transactions that met".into());
    }
    row.elapsed += began.elapsed();
}

/// Runs threads on one store. There are more clients than processors, so that their calls overlap.
fn calls(engine: &dyn Engine, plan: &Plan, before: u64, row: &mut Row) {
    let plan = concurrent::Plan {
        // Histories are numbered, and all have the same seed.
        seed: plan.seed.wrapping_sub(before),
        first: before,
        clients: (plan.threads as u32).max(4),
        calls: plan.operations as u64,
        histories: plan.runs,
        budget: plan.budget,
        at_most: plan.at_most,
        ..concurrent::Plan::default()
    };
    let report = match concurrent::run(engine, &plan) {
        Ok(report) => report,
        Err(e) => {
            row.finding = Some(finding(
                Check::Error,
                "open a store for threads",
                "a run",
                e,
            ));
            return;
        }
    };
    if !report.exercised(engine) {
        row.never
            .push("calls that overlap, splits and merges".into());
    }
    row.runs = report.histories;
    row.interrupted = report.interrupted;
    row.did = report.overlapping;
    row.histories = report.histories;
    row.limits = report.limits;
    row.elapsed = report.elapsed;
    row.tally = Tally {
        operations: report.calls,
        splits: report.splits,
        merges: report.merges,
        evictions: report.evictions,
        checkpoints: report.checkpoints,
        log_wraps: report.log_wraps,
        edges: report.edges,
        reach: report.reach,
        ..Tally::default()
    };
    row.counts = vec![
        ("calls that overlapped another".into(), report.overlapping),
        ("histories that a power cut ended".into(), report.cuts),
    ];
    let Some(wrong) = report.wrong else {
        return;
    };
    row.finding = wrong.findings().next();
    row.history = Some((plan.seed.wrapping_add(wrong.number), wrong.history));
}
