//! `treering replay`: runs a replay and writes its report.

use treering_sim::replay::{self, Target};
use treering_sim::report::{ReplayReport, html, text};

use crate::args::ReplayArgs;
use crate::failure::Failure;
use crate::interrupt::{self, Ours};
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::replay_config;
use crate::replay_early::Early;

/// The outputs of the report.
struct Outputs {
    json: Option<Output>,
    html: Option<Output>,
}

/// Replays and writes the report; `again` is the command line that repeats the run.
pub(crate) fn run(args: &ReplayArgs, again: &str) -> Result<(), Failure> {
    let config = replay_config::of(args)?;
    let outputs = outputs(args)?;
    let ours = match &config.target {
        // `replay_config` has checked that the file did not exist, so it may be removed.
        Target::File(path, _) => Some((path, Ours::new(path))),
        _ => None,
    };
    let run = |progress: &mut dyn FnMut(_)| replay::run(&config, progress);
    let ran = watched(args, &outputs, run);
    if let Some((path, _ours)) = ours
        && !ran.as_ref().is_ok_and(|report| report.complete)
    {
        let _ = std::fs::remove_file(path);
    }
    let report = ran?;
    finish(&report, &outputs, again)?;
    if args.explain_wa && outputs.json != Some(Output::Stdout) {
        output::say(text::waterfall(&report).as_bytes())?;
    }
    if args.strict {
        check_reached(&report)?;
    }
    Ok(())
}

/// Writes the report, also if the replay was stopped by a signal.
fn finish(report: &ReplayReport, outputs: &Outputs, again: &str) -> Result<(), Failure> {
    if report.complete {
        return write(report, outputs, again);
    }
    interrupt::take_over();
    write(report, outputs, again)?;
    interrupt::check(|| format!("{} operations were replayed", report.trace.ops))
}

/// Runs the replay with a progress bar, and a report of its own if a signal comes before the first
/// operation.
fn watched<T>(
    args: &ReplayArgs,
    outputs: &Outputs,
    run: impl FnOnce(&mut dyn FnMut(replay::Progress)) -> T,
) -> T {
    let mut progress = Progress::new();
    let mut early = Early::begin(&args.trace, outputs.json.clone());
    run(&mut |at| {
        early.note(at);
        match at {
            replay::Progress::Survey(done, total) => {
                progress.tell("reading the initial keys", done, total);
            }
            replay::Progress::Analyse(done, total) => progress.tell("analysing", done, total),
            replay::Progress::Replay(done, total) => progress.tell("replaying", done, total),
            replay::Progress::Ignored(why) => replay_config::warn_of_statistics(args, why),
        }
    })
}

fn outputs(args: &ReplayArgs) -> Result<Outputs, Failure> {
    let open = |flag, path| Output::if_given(flag, path, &[&args.trace]);
    let json = open("--json", args.json.as_deref())?;
    let html = open("--html", args.html.as_deref())?;
    if html == Some(Output::Stdout) {
        return Err(Failure::usage(
            "--html -: expected a file name, as HTML cannot go to stdout",
        ));
    }
    if json.is_some() && json == html {
        return Err(Failure::usage(
            "--html and --json: expected two different files",
        ));
    }
    Ok(Outputs { json, html })
}

fn write(report: &ReplayReport, outputs: &Outputs, again: &str) -> Result<(), Failure> {
    if let Some(to) = &outputs.html {
        to.write(html::render(report, Some(again)).as_bytes())?;
    }
    if let Some(to) = &outputs.json {
        to.write(&output::json(report)?)?;
    }
    if outputs.json == Some(Output::Stdout) {
        report.warnings.iter().for_each(|w| output::warn(w));
        return Ok(());
    }
    output::say(text::render(report).as_bytes())?;
    output::say(crate::glossary::SEE.as_bytes())
}

/// Checks `--strict`: fails if the run never reached what its figures are about.
pub(crate) fn check_reached(report: &ReplayReport) -> Result<(), Failure> {
    if report.device.gc_reached == Some(false) {
        return Err(Failure::not_reached(
            "--strict: garbage collection was never reached; expected a longer trace or a \
             smaller --capacity",
        ));
    }
    // A drive alone has no cache.
    if report.direct.is_some() {
        return Ok(());
    }
    if let Some(mini_pages) = &report.cache.mini_pages
        && mini_pages.evictions == 0
    {
        return Err(Failure::not_reached(
            "--strict: no mini-page was ever evicted; expected a longer trace or a smaller --cache",
        ));
    }
    if report.cache.evictions == 0 {
        return Err(Failure::not_reached(
            "--strict: no page was ever evicted; expected a longer trace or a smaller --cache",
        ));
    }
    Ok(())
}
