//! Counterexamples of the specs as tests of the engine: `treering check --to-oracle FILE` writes
//! one, and `treering oracle --replay FILE` runs it.

use std::fmt::Write as _;

use serde_json::json;
use treering_specs::check::configs::discover;
use treering_specs::check::mirrors;
use treering_specs::check::suite::SuiteError;
use treering_specs::conformance::case::{Case, CaseError, Ending, content};
use treering_specs::conformance::retrace::{self, Stage};

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::output::{self, Output, say};
use crate::specs::specs_folder;

/// The part of the engine that is driven.
fn engine(case: &Case) -> &'static str {
    match case.spec.as_str() {
        "CircularBuffer" => "ring",
        _ => "btree:in-place",
    }
}

impl From<CaseError> for Failure {
    fn from(error: CaseError) -> Failure {
        match error {
            CaseError::Bad(why) => Failure::usage(why),
            CaseError::None(why) => Failure::not_reached(why),
        }
    }
}

/// Runs `treering check SPEC --only MODEL --to-oracle FILE`.
pub(crate) fn write(args: &CheckArgs) -> Result<(), Failure> {
    let file = Output::if_given("--to-oracle", args.to_oracle.as_deref(), &[])?;
    let specs = specs_folder(args.folder.as_deref())?;
    let models = discover(&specs, &mirrors::SPECS).map_err(SuiteError::from)?;
    let [name] = &args.only[..] else {
        return Err(Failure::usage("--to-oracle: expected one --only MODEL"));
    };
    let spec_named = |spec: &String| args.specs.is_empty() || args.specs.contains(spec);
    let mut named = (models.iter()).filter(|m| m.name == *name && spec_named(&m.spec));
    let model = match (named.next(), named.next()) {
        (Some(model), None) => model,
        (None, _) => return Err(Failure::usage(format!("{name}: no model of this name"))),
        (Some(one), Some(other)) => {
            return Err(Failure::usage(format!(
                "{name}: {} and {} have a model of this name; name the spec",
                one.spec, other.spec
            )));
        }
    };
    if !retrace::SPECS.contains(&model.spec.as_str()) {
        return Err(Failure::usage(format!(
            "--to-oracle: the engine cannot be driven step by step along {}; expected one of {}",
            model.spec,
            retrace::SPECS.join(", ")
        )));
    }
    let path = &model.config.path;
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::file(&path.display().to_string(), &e))?;
    let case = retrace::case(&model.spec, &model.name, &model.config, &text)?;
    if let Some(file) = &file {
        file.write(case.text().as_bytes())?;
    }
    if file == Some(Output::Stdout) {
        return Ok(());
    }
    let mut told = story(&case);
    let name = args.to_oracle.as_deref().unwrap_or(path).display();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        told,
        "Written to {name}; `treering oracle --replay {name}` runs it."
    );
    say(told.as_bytes())
}

/// The case in words.
fn story(case: &Case) -> String {
    let mut text = String::new();
    let (spec, model, property) = (&case.spec, &case.model, &case.property);
    let _ = writeln!(text, "{spec} {model}, {} steps:", case.steps.len());
    if let Some(adapted) = &case.adapted {
        let _ = writeln!(text, "  {adapted}.");
    }
    for (number, step) in (1..).zip(&case.steps) {
        let _ = writeln!(text, "{number:>3}. {step}");
        if number == case.violated_at {
            let _ = writeln!(text, "     {property} is violated");
        }
    }
    match &case.loss {
        Some(loss) => {
            let _ = writeln!(text, "In the spec: {}.", loss.what);
        }
        None => text.push_str("In the spec nothing is lost within this model.\n"),
    }
    text
}

/// How a run ended, in a sentence.
fn told(case: &Case, ending: &Ending) -> String {
    let at = |step: &usize| {
        let named = case.steps.get(step - 1).map(ToString::to_string);
        format!("at step {step}, {}", named.unwrap_or_default())
    };
    match ending {
        Ending::Lost(loss) => {
            let mut text = format!("takes all {} steps: {}\n", case.steps.len(), loss.what);
            if loss.allowed.is_empty() {
                let _ = write!(text, "  {}", content(&loss.found));
                return text;
            }
            let allowed: Vec<String> = loss.allowed.iter().map(content).collect();
            let _ = writeln!(text, "  expected: {}", allowed.join("; or "));
            let found = match loss.found.is_empty() {
                true => "a store that does not open".to_owned(),
                false => content(&loss.found),
            };
            let _ = write!(text, "  found:    {found}");
            text
        }
        Ending::Survived if case.bug == "none" => format!(
            "takes all {} steps. The store has what the contract allows",
            case.steps.len()
        ),
        Ending::Survived => format!(
            "takes all {} steps that can be seen on the device, and nothing is lost",
            case.steps.len()
        ),
        Ending::Refused { step, does, seen } => {
            format!("does not follow {}: it {does} ({seen})", at(step))
        }
        Ending::NotTakeable { step, why } => {
            format!("cannot take a step separately, {}: {why}", at(step))
        }
    }
}

/// Runs a file of `--to-oracle` on the engine: without its bug, and with it if this build has it.
pub(crate) fn replay(name: &str, text: &str, json: Option<&Output>) -> Result<(), Failure> {
    let case = Case::read(text).map_err(|why| Failure::usage(format!("{name}: {why}")))?;
    without_bug();
    let stage = Stage::new(&case).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
    let broken = |why: String| Failure::cannot_run(format!("{name}: {why}"));
    let plain = stage.run().map_err(broken)?;
    say(story(&case).as_bytes())?;
    say(format!("The engine {}.\n", told(&case, &plain)).as_bytes())?;
    let (with, buggy) = with_bug(&case, &stage).map_err(broken)?;
    let named = case.engine_bug.as_deref().unwrap_or_default();
    if let Some(ending) = &buggy {
        let sentence = told(&case, ending);
        say(format!("The engine with the seeded bug {named} {sentence}.\n").as_bytes())?;
    } else {
        say(with.as_bytes())?;
    }
    if let Some(json) = json {
        json.write(&output::json(&document(&case, &plain, buggy.as_ref()))?)?;
    }
    let (spec, model) = (&case.spec, &case.model);
    match (&plain, &buggy) {
        (Ending::Lost(loss), _) => Err(Failure::found(format!(
            "{spec} {model}: the engine without a seeded bug loses data: {}",
            loss.what
        ))),
        (Ending::NotTakeable { .. }, _) => Err(Failure::not_reached(format!(
            "{spec} {model}: the engine {}",
            told(&case, &plain)
        ))),
        (_, Some(Ending::Lost(loss))) => Err(Failure::found(format!(
            "{spec} {model}: with the seeded bug {named}: {}",
            loss.what
        ))),
        (_, Some(other)) => Err(Failure::not_reached(format!(
            "{spec} {model}: the engine with the seeded bug {named} {}",
            told(&case, other)
        ))),
        (_, None) => Ok(()),
    }
}

fn document(case: &Case, plain: &Ending, buggy: Option<&Ending>) -> serde_json::Value {
    let run = |ending: &Ending, bug: Option<&str>| {
        let lost = matches!(ending, Ending::Lost(_));
        let word = match ending {
            Ending::Lost(_) => "lost",
            Ending::Survived => "survived",
            Ending::Refused { .. } => "refused",
            Ending::NotTakeable { .. } => "not-takeable",
        };
        let step = match ending {
            Ending::Refused { step, .. } | Ending::NotTakeable { step, .. } => Some(*step),
            _ => None,
        };
        json!({
            "engine": engine(case),
            "mode": "counterexample",
            "verdict": if lost { "violated" } else { "holds" },
            "operations": case.steps.len(),
            "crash_states": case.steps.iter().filter(|s| s.action == "Crash").count(),
            "histories": 0,
            "ending": word,
            "step": step,
            "bug": bug,
            "said": told(case, ending),
            "finding": match ending {
                Ending::Lost(loss) => json!({
                    "check": "crash",
                    "operation": case.steps.len(),
                    "what": case.steps.last().map(ToString::to_string),
                    "expected": loss.allowed,
                    "found": loss.what,
                }),
                _ => serde_json::Value::Null,
            },
        })
    };
    let mut runs = vec![run(plain, None)];
    runs.extend(buggy.map(|ending| run(ending, case.engine_bug.as_deref())));
    json!({
        "schema": "treering.oracle/1",
        "complete": true,
        "runs": runs,
        "mutations": [],
        "counterexample": {"spec": case.spec, "model": case.model, "property": case.property},
    })
}

#[cfg(not(feature = "mutations"))]
fn without_bug() {}

/// Switches off a bug that `TREERING_MUTATION` may have switched on.
#[cfg(feature = "mutations")]
fn without_bug() {
    treering_engine::choose_mutation(None);
}

/// Runs the case with its bug. Without an ending, the text says why it was not run.
fn with_bug(case: &Case, stage: &Stage) -> Result<(String, Option<Ending>), String> {
    let Some(bug) = &case.engine_bug else {
        let text = format!(
            "The engine has no seeded bug that takes these steps ({}).\n",
            case.bug
        );
        return Ok((text, None));
    };
    #[cfg(feature = "mutations")]
    {
        let _ = bug;
        Ok((String::new(), Some(stage.run_with_bug()?)))
    }
    #[cfg(not(feature = "mutations"))]
    {
        let _ = stage;
        let text = format!(
            "This build does not have the seeded bug {bug}; to see what it loses, run the file \
             with `cargo run --release --features mutations -- oracle --replay FILE`.\n"
        );
        Ok((text, None))
    }
}
