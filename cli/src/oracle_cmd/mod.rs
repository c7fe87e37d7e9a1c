//! `treering oracle`: tries to break key-value engines.
//!
//! | module | contents |
//! |---|---|
//! | [`adapter`] | our trees behind `--as-adapter` |
//! | [`behaviour`] | findings of the mode `events` as TLA+ |
//! | [`engines`] | engines by name |
//! | [`foreign`] | engines behind `--exec` |
//! | [`power`] | engines behind `--exec` on a drive, and power cuts |
//! | [`rounds`], [`turns`] | scheduling of modes and engines within the time budget |
//! | [`runs`] | running one mode on one engine |
//! | [`overlapping`] | the mode `concurrent` |
//! | [`kills`] | seeded bugs and the checks that catch them |
//! | [`report`] | text and JSON reports |
//! | [`coverage`] | the page of what the runs have met |

mod adapter;
mod behaviour;
mod block_events;
mod coverage;
mod engines;
mod foreign;
mod judged;
mod kills;
mod overlapping;
mod pm_events;
mod power;
mod report;
mod rounds;
mod runs;
mod turns;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use treering_oracle::campaign::Plan;
use treering_oracle::differential::Failure as Found;
use treering_oracle::history::History;
use treering_oracle::linear;
use treering_oracle::{Engine, Finding, Program, concurrent, crash, execute, session};

use treering_specs::conformance::case::Case;

use crate::args::{ModeArg, OracleArgs};
use crate::counterexample;
use crate::failure::Failure;
use crate::glossary;
use crate::interrupt;
use crate::output::{Output, say};
use report::{Report, Row, Spent};

/// Runs the command.
pub(crate) fn run(args: &OracleArgs) -> Result<(), Failure> {
    treering_oracle::deadline::end_with(interrupt::flag());
    let began = Instant::now();
    let json = Output::if_given("--json", args.json.as_deref(), &[])?;
    let coverage = Output::if_given("--coverage", args.coverage.as_deref(), &[])?;
    let save = Output::if_given("--save", args.save.as_deref(), &[])?;
    if args.as_adapter {
        return adapter::run(args);
    }
    if args.mutations {
        return kills::run(args, json.as_ref());
    }
    if args.check_state {
        return power::check(args);
    }
    if let Some(fs) = args.fs {
        return power::run(args, fs.face(), json.as_ref());
    }
    if args.self_test {
        return foreign::self_test(args, json.as_ref());
    }
    let foreign = foreign::Foreign::of(args)?;
    if let Some(folder) = &args.tla {
        crate::behaviour::check_folder(folder)?;
    }
    if let Some(file) = &args.replay {
        return replay(
            file,
            args.engine.as_deref(),
            foreign.as_ref(),
            json.as_ref(),
        );
    }
    let engines = match &foreign {
        Some(foreign) => vec![foreign.engine()],
        None => engines::selected(args.tree.as_deref(), args.engine.as_deref())?,
    };
    let modes = match args.mode {
        ModeArg::All => runs::Mode::ALL.to_vec(),
        ModeArg::Differential => vec![runs::Mode::Differential],
        ModeArg::Crash => vec![runs::Mode::Crash],
        ModeArg::Concurrent => vec![runs::Mode::Concurrent],
        ModeArg::Events => vec![runs::Mode::Events],
        ModeArg::Damage => vec![runs::Mode::Damage],
    };
    let mut jobs = Vec::new();
    let mut skipped = Vec::new();
    for engine in &engines {
        for mode in &modes {
            match mode.judges(engine.as_ref()) {
                Ok(()) => jobs.push((engine.as_ref(), *mode)),
                Err(why) => skipped.push((engine.as_ref(), *mode, why)),
            }
        }
    }
    rounds::mix(&mut jobs);
    // If only some of the modes can run on the engine, the others are reported as skipped. If none
    // can, the request is an error.
    for (engine, mode, why) in skipped {
        if jobs.is_empty() {
            return Err(Failure::usage(format!("{}: {why}", engine.name())));
        }
        say_skipped(engine, mode, why)?;
    }
    let mut report = Report::default();
    for row in rounds::run(args, jobs, &mut |engine, row| {
        // What an adapter answers that breaks the protocol says nothing about its engine.
        foreign
            .as_ref()
            .map_or(Ok(()), foreign::Foreign::unbroken)?;
        tell(engine, row, foreign.as_ref(), save.as_ref())?;
        match &args.tla {
            Some(folder) => behaviour::write(engine, row, folder),
            None => Ok(()),
        }
    })? {
        if row.finding.is_none() {
            say(row.line().as_bytes())?;
        }
        report.rows.push(row);
    }
    if interrupt::stopped().is_some() {
        interrupt::take_over();
    }
    report.budget = args.budget.map(|budget| Spent {
        wanted: Duration::from_nanos(budget),
        took: began.elapsed(),
    });
    if let Some(account) = report.account() {
        say(account.as_bytes())?;
    }
    say(glossary::SEE.as_bytes())?;
    if let Some(json) = &json {
        json.write(&report.json())?;
    }
    if let Some(coverage) = &coverage {
        coverage.write(coverage::page(&report).as_bytes())?;
    }
    interrupt::check(|| {
        let runs: u64 = report.rows.iter().map(|row| row.runs).sum();
        format!("{runs} programs were run")
    })?;
    verdict(&report)
}

fn say_skipped(engine: &dyn Engine, mode: runs::Mode, why: &str) -> Result<(), Failure> {
    say(format!("{} {}: skipped: {why}\n", engine.name(), mode.name()).as_bytes())
}

/// Reports a finding of a run at once.
fn tell(
    engine: &dyn Engine,
    row: &Row,
    foreign: Option<&foreign::Foreign>,
    save: Option<&Output>,
) -> Result<(), Failure> {
    let again = |file: &str| foreign.map_or(file.to_owned(), |foreign| foreign.again(file));
    say(row.line().as_bytes())?;
    if let Some((seed, found)) = &row.failure {
        let roomy = runs::roomy(engine, row.mode);
        let engine = roomy.as_ref().map_or(engine, |roomy| roomy as &dyn Engine);
        let plan = Plan {
            grown: row.mode.grows(),
            ..Plan::default()
        };
        let varied = plan.engine(engine, *seed);
        let file = keep(&*varied, *seed, found, save)?;
        say(report::story(&found.program, &found.finding, &again(&file)).as_bytes())?;
    } else if let Some(finding) = &row.finding {
        let file = (row.history.as_ref())
            .map(|(seed, history)| keep_history(engine, *seed, history, save))
            .transpose()?;
        say(report::tale(finding, file.as_deref()).as_bytes())?;
    }
    Ok(())
}

/// Saves the program that shows a violation.
fn keep(
    engine: &dyn Engine,
    seed: u64,
    found: &Found,
    save: Option<&Output>,
) -> Result<String, Failure> {
    let text = (found.program).save(&engine.name(), Some(&found.finding.to_string()));
    let default = format!(
        "oracle-{}-{seed}.program",
        engine.name().replace([':', '/'], "-")
    );
    let (target, name) = match save {
        Some(Output::File(path)) => (Output::File(path.clone()), path.display().to_string()),
        Some(Output::Stdout) => (Output::Stdout, "-".into()),
        None => (Output::File(PathBuf::from(&default)), default),
    };
    target.write(text.as_bytes())?;
    Ok(name)
}

/// Saves a history that is not linearizable.
fn keep_history(
    engine: &dyn Engine,
    seed: u64,
    history: &History,
    save: Option<&Output>,
) -> Result<String, Failure> {
    let mut text = Vec::new();
    let default = format!("oracle-{}-{seed}.history", engine.name().replace(':', "-"));
    history
        .save(&mut text)
        .map_err(|e| Failure::file(&default, &e))?;
    let (target, name) = match save {
        Some(Output::File(path)) => (Output::File(path.clone()), path.display().to_string()),
        Some(Output::Stdout) => (Output::Stdout, "-".into()),
        None => (Output::File(PathBuf::from(&default)), default),
    };
    target.write(&text)?;
    Ok(name)
}

/// Judges a saved history again.
fn replay_history(name: &str, text: &str, json: Option<&Output>) -> Result<(), Failure> {
    let history =
        History::load(name, &mut text.as_bytes()).map_err(|e| Failure::usage(e.to_string()))?;
    let mut row = Row::new("-".into(), runs::Mode::Concurrent);
    row.runs = 1;
    row.histories = 1;
    row.tally.operations = history.calls().len() as u64;
    if let Err(violation) = linear::check(&history) {
        let violation = concurrent::Finding::Violation(violation);
        row.finding = Some(violation.in_words(name));
    }
    one_row(row, json, |finding| report::tale(finding, Some(name)))
}

/// Reports the only run. `tell` describes its finding, if there is one.
fn one_row(
    row: Row,
    json: Option<&Output>,
    tell: impl FnOnce(&Finding) -> String,
) -> Result<(), Failure> {
    say(row.line().as_bytes())?;
    let report = Report {
        rows: vec![row],
        budget: None,
    };
    if let Some(json) = json {
        json.write(&report.json())?;
    }
    if let Some(finding) = &report.rows[0].finding {
        say(tell(finding).as_bytes())?;
    }
    verdict(&report)
}

fn verdict(report: &Report) -> Result<(), Failure> {
    let rows = &report.rows;
    if let Some(row) = rows.iter().find(|row| row.finding.is_some()) {
        let (engine, mode) = (&row.engine, row.mode.name());
        let said = row.finding.as_ref().map(in_brief).unwrap_or_default();
        return Err(Failure::found(format!("{engine} {mode}: {said}")));
    }
    if rows.iter().any(|row| row.lenient) {
        let idle = report.idle_modes().into_iter();
        let idle: Vec<String> = idle
            .map(|mode| format!("{}: never reached: {}", mode.name(), mode.purpose()))
            .collect();
        return match idle.is_empty() {
            true => Ok(()),
            false => Err(Failure::not_reached(idle.join("; "))),
        };
    }
    let missing: Vec<String> = (rows.iter().filter(|row| !row.never_reached().is_empty()))
        .map(|row| {
            let (engine, mode) = (&row.engine, row.mode.name());
            let never = row.never_reached().join(", ");
            format!("{engine} {mode}: never reached: {never}")
        })
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::not_reached(missing.join("; ")))
}

/// The first line of a finding, shortened; the full finding was printed before.
fn in_brief(finding: &Finding) -> String {
    const MOST: usize = 300;
    let text = finding.to_string();
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line.to_owned(),
    }
}

/// Runs a saved program on the engine on which it failed, or on another.
fn replay(
    file: &Path,
    other: Option<&str>,
    foreign: Option<&foreign::Foreign>,
    json: Option<&Output>,
) -> Result<(), Failure> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|e| Failure::file(&name, &e))?;
    if text
        .lines()
        .next()
        .is_some_and(|line| line.contains("\"treering.history/1\""))
    {
        return replay_history(&name, &text, json);
    }
    if Case::is_one(&text) {
        return counterexample::replay(&name, &text, json);
    }
    let saved = Program::parse(&text).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
    let engine = match foreign {
        Some(foreign) => foreign.named(&saved.engine)?,
        None => engines::named(other.unwrap_or(&saved.engine))?,
    };
    let program = &saved.program;
    let mode = runs::Mode::of(program);
    let roomy = runs::roomy(engine.as_ref(), mode);
    let engine = roomy.map_or(engine, |roomy| Box::new(roomy));
    session::fits(engine.as_ref(), program).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
    let result = if program.crashes.is_empty() {
        execute(engine.as_ref(), program).map(drop)
    } else {
        runs::Mode::Crash
            .judges(engine.as_ref())
            .map_err(|why| Failure::usage(format!("{name}: {}: {why}", engine.name())))?;
        crash::replay(engine.as_ref(), program)
    };
    if let Some(foreign) = foreign {
        foreign.unbroken()?;
    }
    let again = foreign.map_or(name.clone(), |foreign| foreign.again(&name));
    let row = Row::replayed(engine.name(), program, result.err());
    one_row(row, json, |finding| report::story(program, finding, &again))
}
