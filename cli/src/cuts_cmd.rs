//! `treering cuts`: power cuts over a recording of `treering drive`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use treering_drive::cuts::{Named, Plan, Progress, explore, replay};
use treering_drive::recording::{Event, Reader, Recorded};

use crate::acks::Acks;
use crate::args::CutsArgs;
use crate::checkers::{Check, Ready};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Documents, Output};
use crate::program::found_from_here;
use crate::progress::Progress as Bar;

/// States that are explored if neither their number nor the time is given.
const STATES: u64 = 10_000;
/// Longer than anybody waits.
const FOREVER: Duration = Duration::from_secs(1 << 40);

/// Runs the command; `again` is the command line that repeats it.
pub(crate) fn run(args: &CutsArgs, again: &str) -> Result<(), Failure> {
    if let (Some(check), true) = (&args.check, args.check_state) {
        return state(check);
    }
    if let Some(found) = &args.replay {
        let ready = args
            .check
            .as_ref()
            .map(|check| check.prepare(None))
            .transpose()?;
        let plan = plan(args, PathBuf::new(), ready.as_ref())?;
        let (ended, printed, good) = replay(found, &plan)?;
        output::say(printed.as_bytes())?;
        output::say(format!("{}: {ended}\n", found.display()).as_bytes())?;
        return match good {
            true => Ok(()),
            false => Err(Failure::found(format!("{ended} on {}", found.display()))),
        };
    }
    let log = args.log.clone().unwrap_or_default();
    let paths = [args.json.as_deref(), args.html.as_deref(), None];
    let outputs = Documents::new(paths, &[&log])?;
    let ready = match &args.check {
        Some(check) => Some(check.prepare(Some(&acknowledged(&log)?))?),
        None => None,
    };
    let plan = plan(args, log, ready.as_ref())?;
    // What is mounted must be unmounted, and what was found so far is reported.
    interrupt::take_over();
    let (mut bar, began) = (Bar::new(), Instant::now());
    let mut told = |progress: Progress| match (progress.kinds, plan.states) {
        (1.., _) => bar.tell("making failures small", progress.kinds, progress.all_kinds),
        (0, u64::MAX) => {
            let (done, all) = (began.elapsed().as_millis(), plan.time.as_millis());
            bar.tell("checking states", done as u64, all as u64);
        }
        (0, states) => bar.tell("checking states", progress.checked, states),
    };
    let stop = || interrupt::stopped().is_some();
    let report = explore(&plan, &mut told, &stop)?;
    drop(bar);
    if let Some(to) = &outputs.html {
        to.write(report.html(Some(again)).as_bytes())?;
    }
    if let Some(to) = &outputs.json {
        to.write(&output::json(&report)?)?;
    }
    if !matches!(outputs.json, Some(Output::Stdout)) {
        output::say(report.text().as_bytes())?;
    }
    if report.is_violated() {
        let (failed, states) = (report.states.failed, report.states.distinct);
        return Err(Failure::found(format!(
            "{failed} of {states} states are not what the checker can live with"
        )));
    }
    interrupt::check(|| format!("{} states were checked", report.states.distinct))?;
    match report.is_exercised() {
        true => Ok(()),
        false => Err(Failure::not_reached(
            "nothing in the recording could be lost: everything was durable at once",
        )),
    }
}

/// Checks one state: what `--check-state` does.
pub(crate) fn state(check: &Check) -> Result<(), Failure> {
    match check.state()? {
        None => Ok(()),
        Some(wrong) => {
            output::say(format!("{wrong}\n").as_bytes())?;
            Err(Failure::found("the state breaks what the engine promises"))
        }
    }
}

/// What the recorded program has acknowledged.
fn acknowledged(log: &Path) -> Result<Acks, Failure> {
    let (mut reader, mut event) = (Reader::open(log)?, Recorded::default());
    let mut text = Vec::new();
    while reader.next(&mut event)? {
        if let Event::Mark { line } = &event.event {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
    }
    let acks = Acks::read(&String::from_utf8_lossy(&text));
    acks.map_err(|e| Failure::usage(format!("{}: acknowledgements: {e}", log.display())))
}

/// The command that checks a state.
fn checker(args: &CutsArgs) -> Result<Vec<OsString>, Failure> {
    let Some(check) = &args.check else {
        return Ok(found_from_here(&args.checker));
    };
    let this = std::env::current_exe().map_err(|e| Failure::file("this program", &e))?;
    let flag = ["cuts", "--check-state", "--check", check.name()].map(OsString::from);
    Ok([vec![this.into()], flag.to_vec()].concat())
}

fn plan(args: &CutsArgs, log: PathBuf, ready: Option<&Ready>) -> Result<Plan, Failure> {
    let states = match (args.states, args.budget) {
        (Some(states), _) => states,
        (None, Some(_)) => u64::MAX,
        (None, None) => STATES,
    };
    let mut beside = log.clone().into_os_string();
    beside.push(".cuts");
    let named = |check: &Check| Named {
        name: check.name().into(),
        tool: ready.and_then(|ready| ready.version.clone()),
    };
    Ok(Plan {
        log,
        checker: checker(args)?,
        quick: args.check.as_ref().and_then(Check::quick),
        env: ready.map_or_else(Vec::new, |ready| ready.env.clone()),
        named: args.check.as_ref().map(named),
        model: args.model,
        from: args.from.clone(),
        torn_bytes: args.torn.bytes,
        tears: args.torn.tears,
        window: args.window as usize,
        seed: args.seed,
        jobs: jobs(args.jobs),
        states,
        time: args.budget.map_or(FOREVER, Duration::from_nanos),
        limit: Duration::from_nanos(args.timeout),
        recovery: args.recovery_cuts.unwrap_or(0) as usize,
        found: args.found.clone().unwrap_or_else(|| beside.into()),
        keep: args.keep.clone(),
    })
}

/// States at once, by default as many as there are processors.
pub(crate) fn jobs(given: Option<u32>) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    given.map_or_else(processors, |jobs| jobs as usize)
}
