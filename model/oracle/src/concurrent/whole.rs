//! One history that ends without a power cut.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use treering_engine::device::MemPm;
use treering_engine::{Kv, Lsn};

use super::client::{Client, Session};
use super::finding::Finding;
use super::plan::{Plan, RunError};
use super::report::{Report, Wrong};
use super::slow::SlowDevice;
use super::threads;
use super::workload::{Shape, Workload};
use crate::deadline::Deadline;
use crate::engine::{Disk, DiskKind, Engine};
use crate::history::{History, Outcome};
use crate::random::Random;

/// Runs the history, checks it, and adds it to the report.
pub(super) fn run(
    engine: &dyn Engine,
    plan: &Plan,
    number: u64,
    until: &Deadline,
    report: &mut Report,
) -> Result<(), RunError> {
    let shape = Shape::of(number, plan.cut_every);
    let work = Workload::of(engine, plan, shape);
    let folder;
    let disk = match engine.disk() {
        DiskKind::Blocks(blocks) => Disk::Blocks(Arc::new(SlowDevice::new(blocks))),
        DiskKind::Pm(bytes) => Disk::Pm(Arc::new(MemPm::new(bytes))),
        DiskKind::Folder => {
            folder = tempfile::tempdir()?;
            Disk::Folder(folder.path().to_owned())
        }
    };
    let kv = engine.open(&disk).map_err(|error| RunError::Open {
        engine: engine.name(),
        error,
    })?;
    // The auditor is one more client.
    let session = Arc::new(Session::new(work, plan.clients + 1).on(engine));
    let seed = Random::part(plan.seed, number).word();
    let mut findings = threads::run(plan, seed, &session, &kv, until)?;
    let stats = kv.stats();
    if findings.is_empty() {
        findings = audit(engine, &disk, kv, plan, seed, &session)?;
    } else if findings.iter().all(|f| matches!(f, Finding::Failed { .. })) {
        // A store that refuses writes can still be read, and the content may show why.
        let auditor = Client::new(Arc::clone(&session), plan.clients, seed);
        let more = threads::watched(plan, &session, &kv, auditor, None)?;
        findings.extend(
            more.into_iter()
                .filter(|f| !matches!(f, Finding::Failed { .. })),
        );
    }
    let history = History::merge(session.recorded());
    report.count(engine, &session, &stats, &history);
    if let Err(violation) = report.check(&history) {
        findings.insert(0, violation);
    }
    for finding in &mut findings {
        if let Finding::NoProgress { stuck, .. } = finding {
            say_where(stuck, &history);
        }
    }
    if !findings.is_empty() {
        report.wrong = Some(Wrong {
            number,
            shape,
            findings,
            history,
        });
    }
    Ok(())
}

/// Adds its pending call to each stuck client.
fn say_where(stuck: &mut [String], history: &History) {
    for who in stuck {
        let Some(number) = who.strip_prefix("client ") else {
            continue;
        };
        let pending = history.calls().iter().find(|call| {
            call.outcome == Outcome::Pending && number == call.client.to_string().as_str()
        });
        *who += &pending.map_or(" at sync".into(), |call| {
            format!(" at {}", history.describe(call))
        });
    }
}

/// Reads everything, reopens the store, and reads everything again.
fn audit(
    engine: &dyn Engine,
    disk: &Disk,
    kv: Arc<dyn Kv>,
    plan: &Plan,
    seed: u64,
    session: &Arc<Session>,
) -> Result<Vec<Finding>, RunError> {
    let auditor = || Client::new(Arc::clone(session), plan.clients, seed);
    let failed = |who: &str, error| {
        let who = who.to_string();
        Ok(vec![Finding::Failed { who, error }])
    };
    let last = Lsn(session.last.load(Ordering::SeqCst));
    let findings = threads::watched(plan, session, &kv, auditor(), Some(last))?;
    if !findings.is_empty() {
        return Ok(findings);
    }
    drop(kv);
    match engine.damage(disk) {
        Ok(damage) if damage.is_empty() => {}
        Ok(damage) => return Ok(vec![Finding::Damaged(damage)]),
        Err(error) => return failed("the check of the closed store", error),
    }
    match engine.open_again(disk, 1 + seed % 1_000) {
        Ok(kv) => threads::watched(plan, session, &kv, auditor(), None),
        Err(error) => failed("opening the store again", error),
    }
}
