//! Concurrent runs: real threads on one store, and a verdict on what they saw.
//!
//! ```text
//! client 0 ── put ─ get ─ scan ─ …  ┐                     auditor ── scan, gets ─ (reopen) ─ scan, gets
//! client 1 ── get ─ delete ─ put …  ├─ one store ─ sync ─┘                    │
//! pump     ── pump_due ─ checkpoint ┘                                         └─ one history ─ linear::check
//! ```
//!
//! Clients record every call ([`Client`]); what they do is in [`Workload`]. When all are done an auditor makes everything durable and reads the
//! whole content, by scan and by get, before and after the store is opened again. Its calls belong to the history, so the
//! check of the history is the check of what is left: each key must hold one of the values that some order of the calls leaves there.
//!
//! Every other history ends in a power cut instead ([`Power`]): what is found then must be what threads were told, and no more than what they wrote.
//!
//! Three kinds of wrong are told apart: a [`Violation`], a panic or an error of the engine, and a hang. A watchdog finds the last: if no call
//! begins or ends for [`Plan::patience`], the threads are left behind (nothing can end them) and the calls on their way reported.

mod client;
mod power;
mod races;
mod slow;
mod threads;
mod workload;

use client::version_of;
pub use client::{Client, Session};
pub use power::Power;
use power::Trouble;
pub use workload::{Shape, Step, Workload};

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use treering_engine::device::{MemPm, RequestKind};
use treering_engine::{Kv, Lsn, Stats};

use super::deadline::Deadline;
use super::edges::Edges;
use super::engine::{Disk, DiskKind, Engine, Promise, Write};
use super::finding::Check;
use super::history::{Action, History, Outcome};
use super::linear::{self, Violation};
use super::medium::{Medium, When};
use super::program::Keep;
use super::random::Random;
use super::reach::Reach;
use super::value::VERSION_BYTES;
use slow::SlowDevice;

/// Of the time until a deadline the clients have at most this share; the rest is for judging.
const CALLS: f64 = 0.7;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Decides what each client does.
    pub seed: u64,
    /// Threads that call.
    pub clients: u32,
    /// Threads that do background work.
    pub pumps: u32,
    /// Calls of a history, all clients together.
    pub calls: u64,
    /// The number of the first history.
    pub first: u64,
    /// Most histories. Each is on a store of its own.
    pub histories: u64,
    /// Every so many-th history ends in a power cut, where the power can be cut; 0: none.
    pub cut_every: u64,
    /// Whether each history has options of its own, see [`Engine::vary`].
    pub vary: bool,
    /// No history begins after this time.
    pub budget: Option<Duration>,
    /// The clients of a history that is under way after so long, from the beginning of all, make no
    /// more calls; what they made is judged.
    pub at_most: Option<Duration>,
    /// How long nothing may happen before it is called a hang.
    pub patience: Duration,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            seed: 0,
            clients: 4,
            pumps: 1,
            calls: 40_000,
            first: 0,
            histories: 3,
            cut_every: 2,
            vary: true,
            budget: None,
            at_most: None,
            patience: Duration::from_secs(30),
        }
    }
}

/// Something that must not be.
#[derive(Debug)]
pub enum Finding {
    /// No order of the calls explains the answers.
    Violation(Box<Violation>),
    /// A thread panicked in the engine.
    Panicked {
        /// Which thread.
        who: String,
        /// What it said.
        message: String,
    },
    /// A call that nothing should have stopped was answered with an error.
    Failed {
        /// Which thread.
        who: String,
        /// The error.
        error: treering_engine::Error,
    },
    /// Nothing happened for too long.
    NoProgress {
        /// For how long.
        patience: Duration,
        /// Threads that are still there, and what they are at.
        stuck: Vec<String>,
    },
    /// The closed store is damaged.
    Damaged(Vec<String>),
    /// After a power cut keys hold what they must not, one sentence each.
    Lost(Vec<String>),
}

impl Finding {
    /// Its name in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Finding::Violation(violation) => violation.kind.name(),
            Finding::Panicked { .. } => "panicked",
            Finding::Failed { .. } => "failed",
            Finding::NoProgress { .. } => "no-progress",
            Finding::Damaged(_) => "damaged",
            Finding::Lost(_) => "lost",
        }
    }
}

impl Finding {
    /// The same in the words that all modes of the oracle share; `what` was run.
    #[must_use]
    pub fn in_words(&self, what: &str) -> super::Finding {
        let (check, expected) = match self {
            Finding::Violation(_) => (
                Check::Linearizability,
                "answers that one order of the calls explains",
            ),
            Finding::Panicked { .. } => (Check::Panic, "an answer"),
            Finding::Failed { .. } => (Check::Error, "no error"),
            Finding::NoProgress { .. } => (Check::Progress, "calls that end"),
            Finding::Damaged(_) => (Check::Structure, "a store without damage"),
            Finding::Lost(_) => (
                Check::Crash,
                "what threads were told before the power went, and of the rest no more than they wrote",
            ),
        };
        super::Finding {
            check,
            operation: None,
            what: what.to_owned(),
            expected: expected.to_owned(),
            found: self.to_string(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Violation(violation) => violation.fmt(f),
            Finding::Panicked { who, message } => writeln!(f, "{who} panicked: {message}"),
            Finding::Failed { who, error } => writeln!(f, "{who} failed: {error}"),
            Finding::NoProgress { patience, stuck } => {
                writeln!(f, "no progress for {patience:?}; still there:")?;
                stuck.iter().try_for_each(|who| writeln!(f, "  {who}"))
            }
            Finding::Damaged(damage) => {
                writeln!(f, "the closed store is damaged:")?;
                damage.iter().try_for_each(|what| writeln!(f, "  {what}"))
            }
            Finding::Lost(keys) => {
                writeln!(f, "after the power cut:")?;
                let shown = keys.iter().take(4);
                shown.clone().try_for_each(|what| writeln!(f, "  {what}"))?;
                match keys.len() - shown.len() {
                    0 => Ok(()),
                    more => writeln!(f, "  and {more} more"),
                }
            }
        }
    }
}

/// What was found wrong with one history.
#[derive(Debug)]
pub struct Wrong {
    /// Which history of the plan, from 0.
    pub number: u64,
    /// Its shape.
    pub shape: Shape,
    /// All that was found, the plainest first.
    pub findings: Vec<Finding>,
    /// What was recorded; [`History::save`] makes it an artefact, [`linear::check`] judges it again.
    pub history: History,
}

impl Wrong {
    /// What was found, the plainest first, in the words that all modes share.
    pub fn findings(&self) -> impl Iterator<Item = super::Finding> {
        let what = format!("history {}, {:?}", self.number, self.shape);
        (self.findings.iter()).map(move |found| found.in_words(&what))
    }
}

/// What a run did.
#[derive(Debug, Default)]
pub struct Report {
    /// Histories recorded.
    pub histories: u64,
    /// Of these: how many were interrupted, see [`Plan::at_most`].
    pub interrupted: u64,
    /// Calls of all histories.
    pub calls: u64,
    /// Calls that overlapped another one: how concurrent it really was.
    pub overlapping: u64,
    /// Operations on single keys that were judged.
    pub accesses: u64,
    /// Keys about which nothing could be said, see [`linear::MAX_PENDING`].
    pub unjudged_keys: u64,
    /// Time of the run.
    pub elapsed: Duration,
    /// Of that, time to check histories.
    pub checking: Duration,
    /// Leaf splits, as the engine counts them.
    pub splits: u64,
    /// Leaf merges.
    pub merges: u64,
    /// Evictions.
    pub evictions: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Times the log began again at the beginning of its region.
    pub log_wraps: u64,
    /// Histories that a power cut ended.
    pub cuts: u64,
    /// The limits that keys and values have been at.
    pub edges: Edges,
    /// What else was met.
    pub reach: Reach,
    /// The limits that they should be at once there were histories of every shape.
    pub limits: Edges,
    /// The first history with which something is wrong; the run ends there.
    pub wrong: Option<Wrong>,
}

impl Report {
    /// Whether the run of this engine reached what it is for: calls overlapped, and an engine that counts splits and merges counted some of each.
    #[must_use]
    pub fn exercised(&self, engine: &dyn Engine) -> bool {
        let counts = self.splits + self.merges + self.evictions > 0;
        let merged = self.merges > 0 || !engine.merges_leaves();
        self.overlapping > 0 && (!counts || self.splits > 0 && merged)
    }

    fn count(&mut self, engine: &dyn Engine, session: &Session, stats: &Stats, history: &History) {
        self.reach.steps(stats, true);
        // What is durable when it returns needs no sync, nor waits for one.
        let syncs = engine.promise() == Promise::OnSync;
        let can_be = (session.can_be_cut(), syncs);
        races::count(history, &session.deeds, can_be, &mut self.reach);
        let (limits, work) = (engine.limits(), &session.work);
        for call in history.calls() {
            if let Action::Put { key, version } = call.action {
                let key = work.keys()[key.0 as usize].len();
                self.edges.met(&limits, key, work.len_of(key, version.0));
            }
        }
        self.histories += 1;
        self.calls += history.calls().len() as u64;
        self.splits += stats.splits;
        self.merges += stats.merges;
        self.evictions += stats.evictions;
        self.checkpoints += stats.checkpoints;
        self.log_wraps += stats.log_wraps;
        let mut latest = 0;
        for call in history.calls() {
            self.overlapping += u64::from(call.invoke < latest);
            latest = latest.max(call.end);
        }
    }
}

/// A run that could not be.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The engine did not open an empty store.
    #[error("{engine} does not open an empty store: {error}")]
    Open {
        /// Its name.
        engine: String,
        /// Why.
        error: treering_engine::Error,
    },
    /// There is no folder to put a store in, or no thread to be had.
    #[error("cannot run: {0}")]
    System(#[from] std::io::Error),
    /// The plan makes no sense.
    #[error("{0} must be at least 1")]
    Plan(&'static str),
}

/// Runs the plan on stores of `engine`, until something is wrong.
///
/// # Errors
/// The run could not be: [`RunError`]. What is wrong with the engine is in the report.
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
            Some(medium) => one_cut_off(engine, plan, number, &medium, &calls, &mut report)?,
            None => one(engine, plan, number, &calls, &mut report)?,
        }
        report.interrupted += u64::from(calls.has_struck());
        if report.wrong.is_some() {
            break;
        }
    }
    report.elapsed = began.elapsed();
    Ok(report)
}

/// One history that a power cut ends, made, judged, counted.
fn one_cut_off(
    engine: &dyn Engine,
    plan: &Plan,
    number: u64,
    medium: &Medium,
    until: &Deadline,
    report: &mut Report,
) -> Result<(), RunError> {
    let shape = Shape::of(number, plan.cut_every);
    let work = Workload::new(
        shape,
        engine.limits(),
        engine.disk(),
        u64::from(plan.clients),
        engine.may_refuse(&Write::Put),
    )
    .with_long(engine.long_values());
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
    // Whoever asks for something in the dark, or of a medium that fails, gets an error.
    let told = power.is_cut() || trouble != Trouble::None;
    findings.retain(|finding| !(told && matches!(finding, Finding::Failed { .. })));
    let stats = kv.stats();
    let keep = match random.below(4) {
        0 => Keep::Oldest,
        1 => Keep::Newest,
        _ => Keep::Seeded(random.word()),
    };
    // Before the store is let go of, which may write on its way out.
    let after = Medium::holding(medium.crash_keeping(keep));
    drop(kv);
    let history = History::merge(session.recorded());
    report.count(engine, &session, &stats, &history);
    report.cuts += 1;
    if let Err(violation) = check(&history, report) {
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

/// What is wrong with what a power cut left.
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

/// Judges a history and counts what that took.
fn check(history: &History, report: &mut Report) -> Result<(), Finding> {
    let checking = Instant::now();
    let judged = linear::check(history);
    report.checking += checking.elapsed();
    let judged = judged.map_err(Finding::Violation)?;
    report.accesses += judged.accesses;
    report.unjudged_keys += judged.unjudged.len() as u64;
    Ok(())
}

/// One history: made, judged, counted.
fn one(
    engine: &dyn Engine,
    plan: &Plan,
    number: u64,
    until: &Deadline,
    report: &mut Report,
) -> Result<(), RunError> {
    let shape = Shape::of(number, plan.cut_every);
    let work = Workload::new(
        shape,
        engine.limits(),
        engine.disk(),
        u64::from(plan.clients),
        engine.may_refuse(&Write::Put),
    )
    .with_long(engine.long_values());
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
    // One more client: the auditor.
    let session = Arc::new(Session::new(work, plan.clients + 1).on(engine));
    let seed = Random::part(plan.seed, number).word();
    let mut findings = threads::run(plan, seed, &session, &kv, until)?;
    let stats = kv.stats();
    if findings.is_empty() {
        findings = audit(engine, &disk, kv, plan, seed, &session)?;
    } else if findings.iter().all(|f| matches!(f, Finding::Failed { .. })) {
        // A store that refuses writes can still be read, and may show why it did.
        let auditor = Client::new(Arc::clone(&session), plan.clients, seed);
        let more = threads::watched(plan, &session, &kv, auditor, None)?;
        findings.extend(
            more.into_iter()
                .filter(|f| !matches!(f, Finding::Failed { .. })),
        );
    }
    let history = History::merge(session.recorded());
    report.count(engine, &session, &stats, &history);
    if let Err(violation) = check(&history, report) {
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

/// Says of clients that are stuck in which call.
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

/// Reads everything, opens the store again, reads everything again.
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
