//! `treering oracle --exec … --fs …`: an engine in any language on a simulated drive, cut off by
//! power cuts.
//!
//! ```text
//! steps ──▶ adapter, in a drive that is recorded ──▶ recording
//!              `try N …`, `did N`, `durable N` in $TREERING_ACKS
//!           checker: the same adapter on each state ◀── treering_drive::cuts
//! ```
//!
//! The checker is this program again, with `--check-state`: it opens the store that is left and
//! compares its content with what was acknowledged, as `treering cuts --check exec:…` does.

mod steps;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use treering_drive::cuts::{self, Cuts};
use treering_drive::face::{Face, MountOptions, PageCache};
use treering_drive::faults::{FaultPlan, Faults};
use treering_drive::recording::Contents;
use treering_drive::session::{Plan, Session};
use treering_oracle::exec::{Claims, Command, Durable, ExecError, Has, Process, Request};

use self::steps::{Step, Steps};
use super::foreign;
use crate::acks::{FAILED, attempt};
use crate::args::OracleArgs;
use crate::checkers::{Check, Ready};
use crate::cuts_cmd;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Output, say};
use crate::progress::Progress as Bar;

/// Steps of a program, programs, and states of each, if nobody says otherwise.
const OPS: u32 = 60;
const RUNS: u64 = 3;
const STATES: u64 = 2000;
/// Size of the drive for the engine.
const CAPACITY_BLOCKS: u64 = (4 << 30) / 4096;
/// A checker may take so many limits of one answer; only the first few answers take long.
const ANSWERS: u32 = 3;

/// Checks one state: what `--check-state` does.
pub(super) fn check(args: &OracleArgs) -> Result<(), Failure> {
    cuts_cmd::state(&checker(args)?)
}

fn checker(args: &OracleArgs) -> Result<Check, Failure> {
    let line = args.exec.as_deref().unwrap_or_default();
    Ok(Check::by_adapter(line, command(args)?))
}

fn command(args: &OracleArgs) -> Result<Command, Failure> {
    match foreign::command(args) {
        Some(command) => command,
        None => Err(Failure::usage("--fs: expected --exec 'PROGRAM ARGS'")),
    }
}

/// Runs programs on a drive and cuts the power.
pub(super) fn run(args: &OracleArgs, face: Face, json: Option<&Output>) -> Result<(), Failure> {
    let engine = Judged::new(args)?;
    interrupt::take_over();
    let began = Instant::now();
    let budget = args.budget.map(Duration::from_nanos);
    let runs = args
        .runs
        .unwrap_or(if budget.is_some() { u64::MAX } else { RUNS });
    let mut rows = Vec::new();
    let mut found = None;
    let mut stopped = None;
    for run in 0..runs {
        let left = budget.map(|budget| budget.saturating_sub(began.elapsed()));
        if left.is_some_and(|left| left.is_zero()) || interrupt::stopped().is_some() {
            break;
        }
        let seed = args.seed.wrapping_add(run);
        let here = std::env::current_dir().map_err(|e| Failure::file("this folder", &e))?;
        let place = tempfile::Builder::new()
            .prefix("oracle-cuts-")
            .tempdir_in(here);
        let place = place.map_err(|e| Failure::file("a folder for the recording", &e))?;
        let faults = Arc::new(faults(args, face, run)?);
        let plan = (seed, place.path(), left);
        let (name, report) = match campaign(args, (face, &faults), &engine, plan) {
            Ok(done) => done,
            // What earlier programs have shown must not be lost.
            Err(failure) => {
                stopped = Some(failure);
                break;
            }
        };
        say(line(&name, face, seed, (&report, &faults)).as_bytes())?;
        let violated = report.is_violated();
        if violated {
            say(report.text().as_bytes())?;
            let kept = place.keep();
            say(format!("kept: {}\n", kept.display()).as_bytes())?;
            found.get_or_insert(format!("{name}: {}", report.findings_in_words()));
        }
        rows.push(json!({
            "engine": name,
            "mode": "power-cuts",
            "face": face.name(),
            "seed": seed,
            "faults": faults.told().into_iter().map(|told| told.0).collect::<Vec<_>>(),
            "verdict": report.verdict,
            "cuts": report,
        }));
        if violated && args.fail_fast {
            break;
        }
    }
    let told = json.filter(|_| stopped.is_none() || !rows.is_empty());
    if let Some(json) = told {
        let document = json!({
            "schema": "treering.oracle/1",
            "complete": stopped.is_none() && interrupt::stopped().is_none(),
            "runs": rows,
            "mutations": [],
        });
        json.write(&output::json(&document)?)?;
    }
    // Nothing can be reported if stdout is gone.
    let _ = std::io::stdout().flush();
    if let Some(found) = found {
        if let Some(failure) = stopped {
            output::warn(&failure.message);
        }
        return Err(Failure::found(found));
    }
    if let Some(failure) = stopped {
        return Err(failure);
    }
    interrupt::check(|| format!("{} programs were cut", rows.len()))?;
    match rows.iter().any(|row| row["verdict"] == "holds") {
        true => Ok(()),
        false => Err(Failure::not_reached(
            "no program had anything that a power cut could lose",
        )),
    }
}

fn line(name: &str, face: Face, seed: u64, (report, faults): (&Cuts, &Faults)) -> String {
    let faults = faults
        .told()
        .into_iter()
        .map(|told| format!(", {}", told.0));
    let faults: String = faults.collect();
    format!(
        "{name} power cuts on {}: {} states at {} points, seed {seed}{faults}: {}\n",
        face.name(),
        report.states.distinct,
        report.states.covered.points,
        report.verdict
    )
}

/// The errors that the drive gives on purpose while a program runs.
fn faults(args: &OracleArgs, face: Face, run: u64) -> Result<Faults, Failure> {
    let which = |given: Option<u64>| given.map(|n| if n == 0 { run + 1 } else { n });
    let plan = FaultPlan {
        flush: which(args.fail_fsync),
        space: which(args.fail_space),
        read: which(args.fail_read),
    };
    Ok(Faults::on(face, plan)?)
}

/// The engine, ready to run and to be checked.
struct Judged {
    command: Command,
    check: Check,
    ready: Ready,
}

impl Judged {
    fn new(args: &OracleArgs) -> Result<Judged, Failure> {
        let check = checker(args)?;
        Ok(Judged {
            command: command(args)?,
            ready: check.prepare(None)?,
            check,
        })
    }
}

/// Records one program, and cuts its recording. Returns the engine's name, too.
fn campaign(
    args: &OracleArgs,
    (face, faults): (Face, &Arc<Faults>),
    engine: &Judged,
    (seed, place, left): (u64, &Path, Option<Duration>),
) -> Result<(String, Cuts), Failure> {
    let log = place.join("drive.rec");
    let claims = record(args, (face, faults), &engine.command, (seed, &log))?;
    let name = format!("exec:{}", claims.name);
    let this = std::env::current_exe().map_err(|e| Failure::file("this program", &e))?;
    let mut checker: Vec<OsString> = vec![this.into(), "oracle".into(), "--check-state".into()];
    checker.extend([
        "--exec".into(),
        args.exec.clone().unwrap_or_default().into(),
    ]);
    if let Some(nanos) = args.timeout {
        checker.extend([
            "--timeout".into(),
            format!("{}ms", nanos / 1_000_000).into(),
        ]);
    }
    let plan = cuts::Plan {
        log: log.clone(),
        checker,
        quick: engine.check.quick(),
        env: engine.ready.env.clone(),
        named: Some(cuts::Named {
            name: engine.check.name().into(),
            tool: engine.ready.version.clone(),
        }),
        model: args.model,
        from: args.from.clone(),
        torn_bytes: args.torn.map_or(claims.atomic, |torn| torn.bytes),
        tears: args.torn.is_none_or(|torn| torn.tears),
        window: 10_000,
        seed,
        jobs: cuts_cmd::jobs(args.threads),
        states: args
            .states
            .unwrap_or(if left.is_some() { u64::MAX } else { STATES }),
        time: left.unwrap_or(Duration::MAX),
        limit: ANSWERS * engine.command.timeout,
        recovery: if args.recovery_cuts { 10 } else { 0 },
        found: place.join("found"),
        keep: None,
    };
    let mut bar = Bar::new();
    let total = plan.states;
    let mut told = |progress: cuts::Progress| {
        bar.tell("checking states", progress.checked, total.min(1 << 40));
    };
    let report = cuts::explore(&plan, &mut told, &|| interrupt::stopped().is_some())?;
    Ok((name, report))
}

/// Runs the steps of a program on a drive that is recorded. Returns what the engine claims.
fn record(
    args: &OracleArgs,
    (face, faults): (Face, &Arc<Faults>),
    command: &Command,
    (seed, log): (u64, &Path),
) -> Result<Claims, Failure> {
    let dir = tempfile::Builder::new()
        .prefix("treering-oracle-")
        .tempdir();
    let dir = dir.map_err(|e| Failure::file("a temporary folder", &e))?;
    let session = Session::begin(&Plan {
        face,
        mount: MountOptions {
            dir: dir.path().to_path_buf(),
            capacity_blocks: match face {
                Face::Files => CAPACITY_BLOCKS,
                Face::Disk(_) => CAPACITY_BLOCKS / 16,
            },
            keep: None,
            page_cache: match face {
                Face::Files => PageCache::WriteThrough,
                Face::Disk(_) => PageCache::WriteBack,
            },
            threads: 1,
            faults: Arc::clone(faults),
        },
        log: log.to_path_buf(),
        contents: Contents::All,
        command: vec![args.exec.clone().unwrap_or_default()],
    })?;
    let ran = run_steps(args, command, (&session, faults), seed);
    let ended = session.end()?;
    if let Some(busy) = ended.busy {
        output::warn(&busy);
    }
    ran
}

fn run_steps(
    args: &OracleArgs,
    command: &Command,
    (session, faults): (&Session, &Faults),
    seed: u64,
) -> Result<Claims, Failure> {
    let failed = |error: ExecError| Failure::from(&error);
    let mut process = command.start().map_err(failed)?;
    let claims = process.claims().clone();
    let steps = Steps::draw(seed, args.ops.unwrap_or(OPS), &claims);
    let acks = session.acks().map(Path::to_path_buf).unwrap_or_default();
    let mut acks = Acks::open(&acks)?;
    let store = store_dir(session.dir());
    // Only after a fault may the engine fail.
    let excused = |error: &ExecError| {
        !error.is_broken() && faults.told().iter().any(|(_, happened)| *happened)
    };
    let open = |process: &Process| process.done(&Request::Open(&store));
    match open(&process) {
        Err(error) if excused(&error) => match again(command, &mut process, &error, &open) {
            true => {}
            false => return Ok(claims),
        },
        opened => opened.map_err(failed)?,
    }
    let promise = args.promise.unwrap_or(claims.durable);
    let mut failures = 0;
    for (number, step) in steps.steps.iter().enumerate() {
        acks.say(&attempt(number, step.changes()))?;
        match take(&process, step, &store, promise) {
            Ok(durable) => {
                let word = if durable { "durable" } else { "did" };
                acks.say(&format!("{word} {number}"))?;
            }
            Err(error) if excused(&error) => {
                acks.say(&format!("failed {number}"))?;
                failures += 1;
                let is_open = match (&error, step) {
                    (ExecError::Answered { .. }, Step::Reopen) => open(&process).is_ok(),
                    (ExecError::Answered { .. }, _) => true,
                    _ => again(command, &mut process, &error, &open),
                };
                if !is_open || failures == FAILED {
                    return Ok(claims);
                }
            }
            Err(error) => return Err(failed(error)),
        }
        if interrupt::stopped().is_some() {
            break;
        }
    }
    match process.done(&Request::Close) {
        Err(error) if !excused(&error) => Err(failed(error)),
        _ => Ok(claims),
    }
}

/// Opens the store once more, in a new process if the old one has ended. Whether it is open.
fn again(
    command: &Command,
    process: &mut Process,
    error: &ExecError,
    open: &dyn Fn(&Process) -> Result<(), ExecError>,
) -> bool {
    if !matches!(error, ExecError::Answered { .. }) {
        match command.start() {
            Ok(new) => *process = new,
            Err(_) => return false,
        }
    }
    open(process).is_ok()
}

/// The folder of the store: the drive's own, which is always there.
fn store_dir(dir: &Path) -> String {
    dir.display().to_string()
}

/// Takes a step. Returns whether all writes so far are durable then.
fn take(process: &Process, step: &Step, store: &str, durable: Durable) -> Result<bool, ExecError> {
    let on_return = durable == Durable::Return;
    match step {
        Step::Put(key, value) => process.done(&Request::Put {
            key,
            value,
            tx: None,
        })?,
        Step::Delete(key) => process.done(&Request::Delete { key, tx: None })?,
        Step::Batch(changes) => {
            let changes = changes.iter();
            let changes: Vec<_> = changes.map(|(k, v)| (k.as_slice(), v.as_deref())).collect();
            process.done(&Request::Batch(&changes))?;
        }
        Step::Sync => {
            process.done(&Request::Sync)?;
            return Ok(durable != Durable::Close);
        }
        Step::Reopen => {
            process.done(&Request::Close)?;
            process.done(&Request::Open(store))?;
            // One that promises to keep what was synced promises nothing of a close.
            return Ok(durable != Durable::Sync);
        }
    }
    Ok(on_return)
}

/// The file of acknowledgements.
struct Acks(std::fs::File, PathBuf);

impl Acks {
    fn open(path: &Path) -> Result<Acks, Failure> {
        let file = std::fs::OpenOptions::new().append(true).open(path);
        let file = file.map_err(|e| Failure::file(&path.display().to_string(), &e))?;
        Ok(Acks(file, path.to_path_buf()))
    }

    fn say(&mut self, line: &str) -> Result<(), Failure> {
        let written = self.0.write_all(format!("{line}\n").as_bytes());
        written.map_err(|e| Failure::file(&self.1.display().to_string(), &e))
    }
}

/// Whether the engine has what a step needs.
fn is_possible(step: &Step, has: impl Fn(Has) -> bool) -> bool {
    match step {
        Step::Batch(_) => has(Has::Batch),
        Step::Sync => has(Has::Sync),
        _ => true,
    }
}
