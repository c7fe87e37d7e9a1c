//! Runs one mutant on the judges of its spec.

use std::path::Path;
use std::time::Duration;

use super::checker::{self, Counts, Folder, Tools, failed};
use super::judges::Judge;
use super::mutant::{Mutant, MutantsError};
use super::report::Fate;
use super::scope::Scope;
use super::twin;

/// Judges a mutant. The second value is the processor time.
pub(super) fn judge(
    tools: &Tools,
    specs: &Path,
    scope: &Scope,
    judges: &[Judge],
    mutant: &Mutant,
) -> Result<(Fate, Duration), MutantsError> {
    let mut spent = Duration::ZERO;
    let Some(first) = judges.first() else {
        return Err(MutantsError::Spec {
            spec: mutant.spec.clone(),
            why: "no small model judges its mutants".into(),
        });
    };
    let replaced = [(mutant.module.clone(), mutant.text.clone())];
    let folder = Folder::new(&first.model, &replaced)?;
    let mut differs = None;
    // The same states in every model, as far as the counts say.
    let mut same_states = true;
    for judge in judges {
        let model = &judge.model;
        let ran = folder.run(
            &tools.tla_mc,
            specs,
            model,
            &model.config.path,
            Some(judge.limit),
        )?;
        spent += ran.cpu;
        let violated = ran.violated(model);
        let wanted = model.must_violate();
        if ran.unfinished {
            let why = format!(
                "its states in the model {} were too many to count",
                model.name
            );
            differs.get_or_insert(why);
            same_states = false;
            continue;
        }
        if let Some(property) = violated.filter(|found| Some(found.as_str()) != wanted) {
            let model = model.name.clone();
            return Ok((
                Fate::Killed {
                    by: property,
                    model,
                },
                spent,
            ));
        }
        if let Some(why) = ran.findings.error.clone() {
            return Ok((Fate::Stillborn { why }, spent));
        }
        if let Some(probe) = wanted.filter(|_| ran.findings.holds) {
            let by = format!("{probe}, which holds");
            let model = model.name.clone();
            return Ok((Fate::Killed { by, model }, spent));
        }
        if wanted.is_none() && ran.counts() != Some(judge.counts) {
            let distinct = ran.counts().map(|counts| counts.distinct);
            same_states &= distinct == Some(judge.counts.distinct);
            let told = |counts: Option<Counts>| {
                counts.map_or("?".into(), |c| format!("{}/{}", c.distinct, c.generated))
            };
            differs.get_or_insert_with(|| {
                let (old, new) = (told(Some(judge.counts)), told(ran.counts()));
                format!(
                    "states/steps in the model {}: {old} before, {new} now",
                    model.name
                )
            });
        }
    }
    if let Some(why) = differs {
        let (lost, more) = lost_action(tools, specs, &folder, judges)?;
        spent += more;
        if let Some((by, model)) = lost {
            return Ok((Fate::Killed { by, model }, spent));
        }
        // Two actions may make the same step, and then the steps are counted twice.
        if !same_states {
            return Ok((Fate::Alive { why }, spent));
        }
    }
    let (same, more) = compare(tools, specs, scope, judges, mutant)?;
    let fate = match same {
        None => Fate::Equivalent,
        Some(why) => Fate::Alive { why },
    };
    Ok((fate, spent + more))
}

/// An action that the mutant never takes and the unchanged protocol does, with the model, and the
/// processor time.
fn lost_action(
    tools: &Tools,
    specs: &Path,
    folder: &Folder,
    judges: &[Judge],
) -> Result<(Option<(String, String)>, Duration), MutantsError> {
    let mut spent = Duration::ZERO;
    for judge in judges {
        let Some(known) = &judge.taken else {
            continue;
        };
        let model = &judge.model;
        let config = folder.write("bare.cfg", &checker::bare(model)?)?;
        // TLC needs some seconds to begin.
        let limit = Some(judge.limit + Duration::from_secs(20));
        let (taken, more) = folder.taken(&tools.tlc, specs, model, &config, limit)?;
        spent += more;
        let lost = taken.and_then(|taken| known.difference(&taken).next().cloned());
        if let Some(action) = lost {
            let by = format!("{action}, which is never taken");
            return Ok((Some((by, model.name.clone())), spent));
        }
    }
    Ok((None, spent))
}

/// Why the state graphs of the judges are not known to be equal to those of the unchanged
/// protocol, and the processor time.
fn compare(
    tools: &Tools,
    specs: &Path,
    scope: &Scope,
    judges: &[Judge],
    mutant: &Mutant,
) -> Result<(Option<String>, Duration), MutantsError> {
    let mut spent = Duration::ZERO;
    let Some(modules) = twin::modules(scope, mutant)? else {
        return Ok((Some("its steps could not be compared".into()), spent));
    };
    for judge in judges.iter().filter(|j| j.model.must_violate().is_none()) {
        let model = &judge.model;
        let folder = Folder::new(model, &modules)?;
        let path = &model.config.path;
        let config = std::fs::read_to_string(path).map_err(failed(path))?;
        let config = folder.write("twin.cfg", &twin::config(&config))?;
        // Each step is judged by both protocols.
        let limit = Some(judge.limit * 8);
        let ran = folder.run(&tools.tla_mc, specs, model, &config, limit)?;
        spent += ran.cpu;
        if ran.findings.violated.is_some() {
            let why = format!("has other steps in the model {}", model.name);
            return Ok((Some(why), spent));
        }
        if !ran.findings.holds {
            let why = match ran.findings.error.filter(|_| !ran.unfinished) {
                Some(error) => format!("its steps could not be compared: {error}"),
                None => format!(
                    "its steps in the model {} took too long to compare",
                    model.name
                ),
            };
            return Ok((Some(why), spent));
        }
    }
    Ok((None, spent))
}
