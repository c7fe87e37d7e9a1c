//! One history that ends in a power cut.

use std::sync::Arc;

use treering_engine::device::RequestKind;

use super::client::Session;
use super::finding::Finding;
use super::plan::{Plan, RunError};
use super::power::{self, Power, Trouble};
use super::races;
use super::report::{Report, Wrong};
use super::slow::SlowDevice;
use super::threads;
use super::workload::{Shape, Workload};
use crate::deadline::Deadline;
use crate::engine::{Disk, DiskKind, Engine};
use crate::history::History;
use crate::medium::{Medium, When};
use crate::program::Keep;
use crate::random::Random;

/// Runs the history, checks it, and adds it to the report.
pub(super) fn run(
    engine: &dyn Engine,
    plan: &Plan,
    number: u64,
    medium: &Medium,
    until: &Deadline,
    report: &mut Report,
) -> Result<(), RunError> {
    let shape = Shape::of(number, plan.cut_every);
    let work = Workload::of(engine, plan, shape);
    let disk = match medium.disk() {
        Disk::Blocks(device) => Disk::Blocks(Arc::new(SlowDevice::over(device))),
        other => other,
    };
    let seed = Random::part(plan.seed, number).word();
    let mut random = Random::part(seed, u64::MAX);
    let kv = engine.open(&disk).map_err(|error| RunError::Open {
        engine: engine.name(),
        error,
    })?;
    let in_memory = matches!(engine.disk(), DiskKind::Pm(_));
    medium.cut_power_in(power::cut_after(&mut random, in_memory));
    let trouble = match (medium.blocks(), random.below(8)) {
        (None, _) | (_, 0..3) => Trouble::None,
        (_, 3..5) => Trouble::NoRoom,
        _ => Trouble::Failure,
    };
    if let Some(device) = medium.blocks().filter(|_| trouble == Trouble::Failure) {
        let kind = RequestKind::ALL[random.below(RequestKind::ALL.len() as u64) as usize];
        // There are more reads and writes than flushes and trims.
        let most = 20 << random.below(6);
        device.fail_in(kind, random.below(most));
    }
    let power = power::power_of(medium, trouble);
    let session = Session::new(work, plan.clients)
        .on(engine)
        .with_power(Arc::clone(&power));
    let session = Arc::new(session);
    let mut findings = threads::run(plan, seed, &session, &kv, until)?;
    medium.note(When::InUse, &mut report.reach);
    if power.is_cut() {
        let now = session.ticks.next();
        session.deeds.note(races::Deed::PowerCut, now, now + 1);
    }
    // Calls without power, or on a failing medium, return errors.
    let told = power.is_cut() || trouble != Trouble::None;
    findings.retain(|finding| !(told && matches!(finding, Finding::Failed { .. })));
    let stats = kv.stats();
    let keep = match random.below(4) {
        0 => Keep::Oldest,
        1 => Keep::Newest,
        _ => Keep::Seeded(random.word()),
    };
    // Before the store is dropped, which may write.
    let after = Medium::holding(medium.crash_keeping(keep));
    drop(kv);
    let history = History::merge(session.recorded());
    report.count(engine, &session, &stats, &history);
    report.cuts += 1;
    if let Err(violation) = report.check(&history) {
        findings.insert(0, violation);
    }
    if findings.is_empty() {
        findings = after_the_cut(engine, &after, number, &session, &power, &history);
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

/// Checks what a power cut left.
fn after_the_cut(
    engine: &dyn Engine,
    medium: &Medium,
    number: u64,
    session: &Session,
    power: &Power,
    history: &History,
) -> Vec<Finding> {
    let disk = medium.disk();
    let failed = |who: &str, error| {
        let who = who.to_string();
        vec![Finding::Failed { who, error }]
    };
    let kv = match engine.open_again(&disk, 1 + number) {
        Ok(kv) => kv,
        Err(error) => return failed("recovery from the power cut", error),
    };
    let found = match power::contents(&*kv, &session.work) {
        Ok(found) => found,
        Err(finding) => return vec![finding],
    };
    let wrong = power::judge(history, power, engine.promise(), &session.work, &found);
    if !wrong.is_empty() {
        return vec![Finding::Lost(wrong)];
    }
    drop(kv);
    match engine.damage(&disk) {
        Ok(damage) if damage.is_empty() => Vec::new(),
        Ok(damage) => vec![Finding::Damaged(damage)],
        Err(error) => failed("the check of the closed store", error),
    }
}
