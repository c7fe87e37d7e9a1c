//! Runs one mutant on the judges of its spec.

use std::path::Path;
use std::time::Duration;

use super::checker::{Counts, Folder, failed};
use super::judges::Judge;
use super::mutant::{Mutant, MutantsError};
use super::report::Fate;
use super::scope::Scope;
use super::twin;

/// Judges a mutant. The second value is the processor time.
pub(super) fn judge(
    tla_mc: &Path,
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
    for judge in judges {
        let model = &judge.model;
        let ran = folder.run(tla_mc, specs, model, &model.config.path, Some(judge.limit))?;
        spent += ran.cpu;
        let violated = ran.violated(model);
        let wanted = model.must_violate();
        if ran.unfinished {
            let why = format!(
                "its states in the model {} were too many to count",
                model.name
            );
            differs.get_or_insert(why);
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
        return Ok((Fate::Alive { why }, spent));
    }
    let (same, more) = compare(tla_mc, specs, scope, judges, mutant)?;
    let fate = match same {
        None => Fate::Equivalent,
        Some(why) => Fate::Alive { why },
    };
    Ok((fate, spent + more))
}

/// Why the state graphs of the judges are not known to be equal to those of the unchanged
/// protocol, and the processor time.
fn compare(
    tla_mc: &Path,
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
        let ran = folder.run(tla_mc, specs, model, &config, limit)?;
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
