//! `treering check`: checks the specs with TLC, tla-mc and the mirrors.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use treering_specs::check::abandon;
use treering_specs::check::configs::{Lane, discover};
use treering_specs::check::frontier::MEMORY;
use treering_specs::check::mirrors::SPECS;
use treering_specs::check::run::{Checker, Outcome, Verdict};
use treering_specs::check::story;
use treering_specs::check::suite::{
    self, GraphReport, NeverTaken, Report, Request, Step, SuiteError,
};

use crate::args::{CheckArgs, CheckerArg, ModelSize};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Output, say};
use crate::specs::specs_folder;

/// Disk space that TLC and the tools it needs may use: state graphs (300,000 states of about 530
/// bytes), TLC's state files, and what Maven fetches.
const TLC_ROOM: u64 = 512 << 20;

/// A check that is shorter than this prints no progress.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    complete: bool,
    results: &'a [Outcome],
    never_taken: &'a [NeverTaken],
    graphs: &'a [GraphReport],
    complaints: &'a [String],
}

pub(crate) fn request(args: &CheckArgs) -> Result<Request, Failure> {
    let mut lanes = match args.model {
        ModelSize::Smoke => vec![Lane::Smoke],
        ModelSize::Full => vec![Lane::Full],
        ModelSize::Large => vec![Lane::Large],
    };
    if args.mutations {
        lanes.push(Lane::Mutation);
    }
    let checkers = match args.checker {
        CheckerArg::Tlc => vec![Checker::Tlc],
        CheckerArg::TlaMc => vec![Checker::TlaMc],
        CheckerArg::Mirror => vec![Checker::Mirror],
        CheckerArg::All => vec![Checker::Tlc, Checker::TlaMc, Checker::Mirror],
    };
    if args.graph && args.checker != CheckerArg::All {
        return Err(Failure::usage(
            "--graph: needs TLC and the mirror; expected --checker all",
        ));
    }
    if args.record && matches!(args.checker, CheckerArg::TlaMc | CheckerArg::Mirror) {
        return Err(Failure::usage(
            "--record: records the results of TLC; expected --checker tlc or all",
        ));
    }
    Ok(Request {
        specs: specs_folder(args.folder.as_deref())?,
        only_specs: args.specs.clone(),
        only_models: args.only.clone(),
        lanes,
        checkers,
        graphs: args.graph,
        walks: args.walks,
        memory: args.memory.unwrap_or(MEMORY),
        record: args.record,
    })
}

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    if args.against_engine {
        return crate::against_cmd::run(args);
    }
    if args.ghosts {
        return crate::ghosts_cmd::run(args);
    }
    if args.inductive {
        return crate::inductive_cmd::run(args);
    }
    if args.mutate {
        return crate::mutate_cmd::run(args);
    }
    if args.to_oracle.is_some() {
        return crate::counterexample::write(args);
    }
    if args.budget.is_some() {
        return Err(Failure::usage(
            "--budget: expected --against-engine or --mutate, whose time it limits",
        ));
    }
    let json = Output::if_given("--json", args.json.as_deref(), &[])?;
    let test = Output::if_given("--save-test", args.save_test.as_deref(), &[])?;
    let request = request(args)?;
    if request.checkers.contains(&Checker::Tlc) {
        // TLC keeps its state files and graphs there.
        output::check_room("check", &std::env::temp_dir(), TLC_ROOM)?;
        output::check_room("check", &request.specs, TLC_ROOM)?;
    }
    let began = Instant::now();
    let so_far = Arc::new(Mutex::new(Report::default()));
    let (to, told) = (json.clone(), Arc::clone(&so_far));
    interrupt::at_end(move || stopped(&so_far_of(&told), to.as_ref()));
    let checked = suite::check(&request, &|step| match step {
        Step::Line(line) if began.elapsed() >= PATIENCE => {
            // Nothing can be reported if stderr is gone.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
        Step::Line(_) => {}
        Step::Checked(outcome) => so_far_of(&so_far).outcomes.push(outcome.clone()),
        Step::Compared(graph) => so_far_of(&so_far).graphs.push(graph.clone()),
    });
    // First, for a check whose checkers were ended by a signal fails, too.
    interrupt::finished();
    let report = checked?;
    if let Some(test) = test {
        save_test(&report, &request, &test)?;
    }
    if let Some(json) = &json {
        let document = document(&report, true);
        json.write(&output::json(&document)?)?;
    }
    if json != Some(Output::Stdout) {
        say(text(&report, !args.only.is_empty()).as_bytes())?;
        say(crate::glossary::SEE.as_bytes())?;
    }
    match report.complaints.len() {
        0 => Ok(()),
        1 => Err(Failure::found(report.complaints[0].clone())),
        n => Err(Failure::found(format!(
            "{n} things are not as expected; see above"
        ))),
    }
}

fn so_far_of(report: &Mutex<Report>) -> MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports what was checked before a signal came, and ends the checkers.
fn stopped(report: &Report, json: Option<&Output>) -> String {
    abandon();
    output::write_partial(json, &document(report, false));
    if json != Some(&Output::Stdout) {
        // Nothing can be reported if the output fails.
        let _ = say(text(report, false).as_bytes());
    }
    format!("{} models were checked", report.outcomes.len())
}

fn document(report: &Report, complete: bool) -> Document<'_> {
    Document {
        schema: "treering.check/1",
        complete,
        results: &report.outcomes,
        never_taken: &report.never_taken,
        graphs: &report.graphs,
        complaints: &report.complaints,
    }
}

fn save_test(report: &Report, request: &Request, output: &Output) -> Result<(), Failure> {
    let violated = |checker| {
        let mut outcomes = report.outcomes.iter();
        outcomes.find(|o| o.violated() && o.checker == checker)
    };
    let found = violated(Checker::Mirror).or_else(|| violated(Checker::Tlc));
    let Some(outcome) = found else {
        return Err(Failure::not_reached(
            "--save-test: no property is violated, so there is no counterexample to save",
        ));
    };
    let models = discover(&request.specs, &SPECS).map_err(SuiteError::from)?;
    let model = (models.iter()).find(|m| m.spec == outcome.spec && m.name == outcome.model);
    let path = model.map(|m| m.config.path.clone()).unwrap_or_default();
    let config = std::fs::read_to_string(&path)
        .map_err(|e| Failure::file(&path.display().to_string(), &e))?;
    output.write(story::as_test(outcome, &config).as_bytes())
}

fn text(report: &Report, tell: bool) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "{:<16}{:<34}{:<8}{:<16}{:>11}{:>7}{:>9}{:>14}",
        "spec", "model", "checker", "verdict", "distinct", "depth", "seconds", "states/CPU-s"
    );
    for outcome in &report.outcomes {
        line(&mut text, outcome);
    }
    for graph in &report.graphs {
        let verdict = if graph.equal { "equal" } else { "DIFFERENT" };
        let _ = writeln!(
            text,
            "{:<16}{:<34}graphs  {verdict}: {} states, {} labelled edges",
            graph.spec, graph.model, graph.states, graph.edges
        );
    }
    speed(&mut text, report);
    for never in &report.never_taken {
        let (spec, model, action) = (&never.spec, &never.model, &never.action);
        let _ = writeln!(text, "Never taken: {action} ({spec} {model})");
    }
    let unexpected = |o: &&Outcome| o.violated() && (tell || o.verdict == Verdict::Violated);
    let told_by = |o: &&Outcome| o.checker == Checker::Mirror || tell;
    let mut stories: Vec<&Outcome> = (report.outcomes.iter()).filter(unexpected).collect();
    if !tell {
        // The manifest expects this violation, so its counterexample is printed only on request.
        let complained = |o: &&Outcome| {
            let name = format!("{} {},", o.spec, o.model);
            report.complaints.iter().any(|c| c.starts_with(&name))
        };
        stories.retain(complained);
    }
    stories.sort_by_key(|o| !told_by(o));
    if let Some(outcome) = stories.first() {
        let _ = write!(text, "\n{}", story::told(outcome));
    }
    for complaint in &report.complaints {
        let _ = writeln!(text, "Not as expected: {complaint}");
    }
    text
}

fn line(text: &mut String, outcome: &Outcome) {
    let number = |n: Option<u64>| n.map_or("-".into(), |n| n.to_string());
    let mut verdict = outcome.verdict.word().to_owned();
    if let Some(length) = outcome.trace_length {
        let _ = write!(verdict, " in {length}");
    }
    let speed = outcome
        .states_per_cpu_second()
        .map_or("-".into(), |s| format!("{s:.0}"));
    let _ = writeln!(
        text,
        "{:<16}{:<34}{:<8}{verdict:<16}{:>11}{:>7}{:>9.1}{speed:>14}{}",
        outcome.spec,
        outcome.model,
        outcome.checker.name(),
        match outcome.walked {
            Some(states) => format!("~{states}"),
            None => number(outcome.distinct),
        },
        number(outcome.depth),
        outcome.seconds,
        match (&outcome.property, &outcome.error) {
            (Some(property), _) => format!("  {property}"),
            (None, Some(error)) => format!("  {error}"),
            (None, None) => String::new(),
        }
    );
}

/// Reports how much faster a mirror is than TLC, where both passed and ran long enough to compare.
fn speed(text: &mut String, report: &Report) {
    for mirror in report
        .outcomes
        .iter()
        .filter(|o| o.checker == Checker::Mirror)
    {
        let tlc = (report.outcomes.iter()).find(|o| {
            o.checker == Checker::Tlc && o.spec == mirror.spec && o.model == mirror.model
        });
        let speeds = (|| {
            Some((
                mirror.states_per_cpu_second()?,
                tlc?.states_per_cpu_second()?,
            ))
        })();
        if let Some((fast, slow)) = speeds.filter(|(fast, _)| *fast > 0.0)
            && mirror.verdict == Verdict::Holds
        {
            let _ = writeln!(
                text,
                "{:<16}{:<34}the mirror checks {:.0} x as many states per CPU-second as TLC",
                mirror.spec,
                mirror.model,
                fast / slow
            );
        }
    }
}
