//! `treering check --mutate`: small changes of the protocols, and whether the specs notice them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use treering_specs::check::abandon;
use treering_specs::mutants::{
    self, Fate, ModuleScore, MutantsError, Report, Request, Selection, Step, Trial,
};

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Output, say};
use crate::specs::specs_folder;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    complete: bool,
    modules: &'a [ModuleScore],
    mutants: &'a [Trial],
    not_run: usize,
}

impl From<MutantsError> for Failure {
    fn from(error: MutantsError) -> Failure {
        match error {
            MutantsError::Missing(_) | MutantsError::Io { .. } => {
                Failure::cannot_run(error.to_string())
            }
            _ => Failure::usage(error.to_string()),
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let json = Output::if_given("--json", args.json.as_deref(), &[])?;
    let request = Request {
        specs: specs_folder(args.folder.as_deref())?,
        only_specs: args.specs.clone(),
        selection: match (&args.mutant[..], args.sample) {
            ([], None) => Selection::All,
            ([], Some(n)) => Selection::Sample(n),
            (names, _) => Selection::Named(names.to_vec()),
        },
        budget: args.budget.map(Duration::from_nanos),
    };
    if args.list {
        return list(&request);
    }
    let began = Instant::now();
    let so_far = Arc::new(Mutex::new(Report::default()));
    let (to, told) = (json.clone(), Arc::clone(&so_far));
    interrupt::at_end(move || stopped(&locked(&told), to.as_ref()));
    let report = mutants::run(&request, &|step| match step {
        Step::Line(line) => tell(began, line),
        Step::Judged(trial) => {
            tell(began, &format!("{}: {}", trial.mutant, trial.fate.word()));
            locked(&so_far).trials.push(trial.clone());
        }
    });
    // First, for a run whose checkers were ended by a signal fails, too.
    interrupt::finished();
    let report = report?;
    let scores = mutants::scores(&report.trials);
    if let Some(json) = &json {
        json.write(&output::json(&document(
            &report,
            &scores,
            report.not_run == 0,
        ))?)?;
    }
    if json != Some(Output::Stdout) {
        say(text(&report, &scores).as_bytes())?;
        say(crate::glossary::SEE.as_bytes())?;
    }
    judged(&scores, args.at_least)
}

fn locked(report: &Mutex<Report>) -> MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Progress. Nothing can be reported if stderr is gone.
fn tell(began: Instant, line: &str) {
    let seconds = began.elapsed().as_secs();
    let _ = writeln!(std::io::stderr(), "{seconds} s: {line}");
}

/// Prints the names of the mutants, and the changes.
fn list(request: &Request) -> Result<(), Failure> {
    let mut text = String::new();
    for mutant in mutants::list(request)? {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            text,
            "{}  {} -> {}",
            mutant.name,
            short(&mutant.before),
            short(&mutant.after)
        );
    }
    say(text.as_bytes())
}

fn stopped(report: &Report, json: Option<&Output>) -> String {
    abandon();
    let scores = mutants::scores(&report.trials);
    output::write_partial(json, &document(report, &scores, false));
    if json != Some(&Output::Stdout) {
        // Nothing can be reported if the output fails.
        let _ = say(text(report, &scores).as_bytes());
    }
    format!("{} mutants were judged", report.trials.len())
}

fn document<'a>(report: &'a Report, scores: &'a [ModuleScore], complete: bool) -> Document<'a> {
    Document {
        schema: "treering.mutants-of-specs/1",
        complete,
        modules: scores,
        mutants: &report.trials,
        not_run: report.not_run,
    }
}

/// A score, rounded down, so that only a perfect one is 100 %.
fn percent(score: f64) -> String {
    format!("{:.1}%", (score * 1000.0).floor() / 10.0)
}

/// Fewer killed and living mutants say little about a module, as in a sample.
const FEW: usize = 10;

fn judged(scores: &[ModuleScore], at_least: Option<f64>) -> Result<(), Failure> {
    let Some(at_least) = at_least else {
        return Ok(());
    };
    // Small modules count together, spec by spec, if that is enough to say something.
    let mut groups: Vec<(String, usize, usize)> = Vec::new();
    for module in scores {
        let few = module.killed + module.alive < FEW;
        let name = match few {
            true => format!("the small modules of {}", module.spec),
            false => module.module.clone(),
        };
        match groups.iter_mut().find(|(group, ..)| *group == name) {
            Some((_, killed, alive)) => {
                *killed += module.killed;
                *alive += module.alive;
            }
            None => groups.push((name, module.killed, module.alive)),
        }
    }
    let below: Vec<String> = (groups.iter())
        .filter(|(_, killed, alive)| killed + alive >= FEW)
        .map(|(name, killed, alive)| (name, *killed as f64 / (killed + alive) as f64))
        .filter(|(_, score)| *score < at_least)
        .map(|(name, score)| format!("{name} {}", percent(score)))
        .collect();
    if below.is_empty() {
        return Ok(());
    }
    Err(Failure::found(format!(
        "expected a score of at least {} for each module; below it: {}",
        percent(at_least),
        below.join(", ")
    )))
}

fn text(report: &Report, scores: &[ModuleScore]) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:<18}{:<18}{:>8}{:>8}{:>12}{:>7}{:>11}{:>8}{:>8}",
        "spec", "module", "mutants", "killed", "equivalent", "alive", "stillborn", "score", "CPU-s"
    );
    for module in scores {
        let _ = writeln!(
            text,
            "{:<18}{:<18}{:>8}{:>8}{:>12}{:>7}{:>11}{:>8}{:>8.0}",
            module.spec,
            module.module,
            module.mutants,
            module.killed,
            module.equivalent,
            module.alive,
            module.stillborn,
            module.score.map_or("-".into(), percent),
            module.cpu_seconds
        );
    }
    if report.not_run > 0 {
        let _ = writeln!(
            text,
            "Not begun when the time was up: {} mutants",
            report.not_run
        );
    }
    let named = report.trials.len() == 1;
    for trial in &report.trials {
        match &trial.fate {
            Fate::Alive { why } => survivor(&mut text, trial, why),
            Fate::Killed { by, model } if named => {
                let _ = writeln!(
                    text,
                    "\n{}: killed by {by} in the model {model}",
                    trial.mutant
                );
                changed(&mut text, trial);
            }
            Fate::Stillborn { why } if named => {
                let _ = writeln!(text, "\n{}: stillborn: {why}", trial.mutant);
                changed(&mut text, trial);
            }
            Fate::Equivalent if named => {
                let _ = writeln!(text, "\n{}: equivalent", trial.mutant);
                changed(&mut text, trial);
            }
            _ => {}
        }
    }
    text
}

fn survivor(text: &mut String, trial: &Trial, why: &str) {
    let _ = writeln!(
        text,
        "\n{} ({}): alive; {why}",
        trial.mutant, trial.definition
    );
    changed(text, trial);
    if let Some(reason) = &trial.reason {
        let _ = writeln!(text, "  known: {reason}");
    }
}

fn changed(text: &mut String, trial: &Trial) {
    let _ = writeln!(text, "  before: {}", short(&trial.line_before));
    let _ = writeln!(text, "  after:  {}", short(&trial.line_after));
}

/// The text, or its beginning if it is longer than a line or two.
fn short(text: &str) -> String {
    const LONGEST: usize = 160;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{} …", &text[..at]),
        None => text.to_owned(),
    }
}
