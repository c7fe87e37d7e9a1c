//! Runs one mutant on the judges of its spec.

use std::path::Path;
use std::time::Duration;

use super::checker::{self, Counts, Folder, Tools};
use super::judges::Judge;
use super::mutant::{Mutant, MutantsError};
use super::report::Fate;
use super::scope::Scope;

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
    let folder = Folder::new(scope, &first.model, &replaced)?;
    // A step that is dropped is rarely noticed otherwise, and judges cost more than TLC.
    if mutant.operator == "skip-step"
        && let Some(killed) = lost_action(tools, specs, &folder, judges, &mut spent)?
    {
        return Ok((killed, spent));
    }
    let mut differs = None;
    // The same states in every model, as far as the counts say.
    let mut same_states = true;
    for judge in judges {
        let model = &judge.model;
        let ran = folder.run(&tools.tla_mc, specs, model, Some(judge.limit))?;
        spent += ran.cpu;
        let violated = ran.violated(model);
        let wanted = model.must_violate();
        let killed = |by: String| Fate::Killed {
            by,
            model: model.name.clone(),
        };
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
            return Ok((killed(property), spent));
        }
        if let Some(why) = ran.findings.error.clone() {
            return Ok((Fate::Stillborn { why }, spent));
        }
        if let Some(probe) = wanted.filter(|_| ran.findings.holds) {
            return Ok((killed(format!("{probe}, which holds")), spent));
        }
        if wanted.is_none() && ran.counts() != Some(judge.counts) {
            let distinct = ran.counts().map(|counts| counts.distinct);
            same_states &= distinct == Some(judge.counts.distinct);
            differs.get_or_insert_with(|| difference(judge, ran.counts()));
        }
    }
    if differs.is_some()
        && mutant.operator != "skip-step"
        && let Some(killed) = lost_action(tools, specs, &folder, judges, &mut spent)?
    {
        return Ok((killed, spent));
    }
    // Two actions may make the same step, and then the steps are counted twice.
    let fate = match (same_states, differs) {
        (false, Some(why)) => Fate::Alive { why },
        _ => match other_steps(tools, specs, &folder, judges, &mut spent)? {
            Some(why) => Fate::Alive { why },
            None => Fate::Equivalent,
        },
    };
    Ok((fate, spent))
}

/// How the state graph of a mutant differs from that of the unchanged protocol.
fn difference(judge: &Judge, counts: Option<Counts>) -> String {
    let told = |counts: Option<Counts>| {
        counts.map_or("?".into(), |c| format!("{}/{}", c.distinct, c.generated))
    };
    let (old, new) = (told(Some(judge.counts)), told(counts));
    let name = &judge.model.name;
    format!("states/steps in the model {name}: {old} before, {new} now")
}

/// Where the mutant is not known to have the steps of the unchanged protocol. Adds the processor
/// time to `spent`, as does [`lost_action`].
fn other_steps(
    tools: &Tools,
    specs: &Path,
    folder: &Folder,
    judges: &[Judge],
    spent: &mut Duration,
) -> Result<Option<String>, MutantsError> {
    for judge in judges.iter().filter(|judge| judge.graph.is_some()) {
        let model = &judge.model;
        // To print a step takes less than to find it.
        let limit = Some(judge.limit * 2);
        let ran = folder.run_noting_steps(&tools.tla_mc, specs, model, limit)?;
        *spent += ran.cpu;
        if ran.graph.is_none() {
            let why = format!("its steps in the model {} could not be noted", model.name);
            return Ok(Some(why));
        }
        if ran.graph != judge.graph {
            return Ok(Some(format!("has other steps in the model {}", model.name)));
        }
    }
    Ok(None)
}

/// An action that the mutant never takes and the unchanged protocol does.
fn lost_action(
    tools: &Tools,
    specs: &Path,
    folder: &Folder,
    judges: &[Judge],
    spent: &mut Duration,
) -> Result<Option<Fate>, MutantsError> {
    for judge in judges {
        let Some(known) = &judge.taken else {
            continue;
        };
        let model = &judge.model;
        let config = folder.write("bare.cfg", &checker::bare(model)?)?;
        // TLC needs some seconds to begin.
        let limit = Some(judge.limit + Duration::from_secs(20));
        let (taken, more) = folder.taken(&tools.tlc, specs, model, &config, limit)?;
        *spent += more;
        let lost = taken.and_then(|taken| known.difference(&taken).next().cloned());
        if let Some(action) = lost {
            return Ok(Some(Fate::Killed {
                by: format!("{action}, which is never taken"),
                model: model.name.clone(),
            }));
        }
    }
    Ok(None)
}
