//! What happened to the mutants, and the scores.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::mutant::{Mutant, MutantsError};

/// What happened to a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Fate {
    /// A property is violated.
    Killed {
        /// The property, `deadlock`, or a probe that is not violated any more.
        by: String,
        /// The model.
        model: String,
    },
    /// Every judge has the same state graph as without the change.
    Equivalent,
    /// Nothing is violated, and the state graphs differ.
    Alive {
        /// How they differ.
        why: String,
    },
    /// It cannot be evaluated.
    Stillborn {
        /// The checker's message.
        why: String,
    },
}

impl Fate {
    /// The name of the verdict.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Fate::Killed { .. } => "killed",
            Fate::Equivalent => "equivalent",
            Fate::Alive { .. } => "alive",
            Fate::Stillborn { .. } => "stillborn",
        }
    }
}

/// A mutant and what happened to it.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// The mutant's name.
    pub mutant: String,
    /// The spec.
    pub spec: String,
    /// The module that has the change.
    pub module: String,
    /// The changed definition.
    pub definition: String,
    /// What kind of change it is.
    pub operator: &'static str,
    /// The changed text.
    pub before: String,
    /// What it becomes.
    pub after: String,
    /// The lines that have it.
    pub line_before: String,
    /// The same lines of the mutant.
    pub line_after: String,
    /// What happened.
    #[serde(flatten)]
    pub fate: Fate,
    /// Why it survives, from `survivors.tsv`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Processor time of all its runs.
    pub cpu_seconds: f64,
}

impl Trial {
    pub(super) fn new(mutant: &Mutant, fate: Fate, cpu: Duration, known: &[Survivor]) -> Trial {
        let alive = matches!(fate, Fate::Alive { .. });
        let reason = known.iter().find(|s| alive && s.key == mutant.key());
        Trial {
            mutant: mutant.name.clone(),
            spec: mutant.spec.clone(),
            module: mutant.module.clone(),
            definition: mutant.definition.clone(),
            operator: mutant.operator,
            before: mutant.before.clone(),
            after: mutant.after.clone(),
            line_before: mutant.lines_before.clone(),
            line_after: mutant.lines_after.clone(),
            fate,
            reason: reason.map(|survivor| survivor.reason.clone()),
            cpu_seconds: (cpu.as_secs_f64() * 100.0).round() / 100.0,
        }
    }
}

/// The counts of a module.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModuleScore {
    /// The spec.
    pub spec: String,
    /// The module.
    pub module: String,
    /// Mutants that were run.
    pub mutants: usize,
    /// Those that something killed.
    pub killed: usize,
    /// Those that change no state graph.
    pub equivalent: usize,
    /// Those that nothing killed.
    pub alive: usize,
    /// Those that cannot be evaluated.
    pub stillborn: usize,
    /// killed / (killed + alive); `None` if there are neither.
    pub score: Option<f64>,
    /// Processor time of all its mutants.
    pub cpu_seconds: f64,
}

/// Counts the fates of each module, in the order of `trials`.
#[must_use]
pub fn scores(trials: &[Trial]) -> Vec<ModuleScore> {
    let mut scores: Vec<ModuleScore> = Vec::new();
    for trial in trials {
        let found = scores.iter().position(|score| score.module == trial.module);
        let at = found.unwrap_or(scores.len());
        if found.is_none() {
            scores.push(ModuleScore {
                spec: trial.spec.clone(),
                module: trial.module.clone(),
                mutants: 0,
                killed: 0,
                equivalent: 0,
                alive: 0,
                stillborn: 0,
                score: None,
                cpu_seconds: 0.0,
            });
        }
        let score = &mut scores[at];
        score.mutants += 1;
        score.cpu_seconds += trial.cpu_seconds;
        *match trial.fate {
            Fate::Killed { .. } => &mut score.killed,
            Fate::Equivalent => &mut score.equivalent,
            Fate::Alive { .. } => &mut score.alive,
            Fate::Stillborn { .. } => &mut score.stillborn,
        } += 1;
        let judged = score.killed + score.alive;
        score.score = (judged > 0).then(|| score.killed as f64 / judged as f64);
    }
    scores
}

/// A line of `specs/survivors.tsv`: a mutant that is known to live, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Module, definition, operator, text before and text after, with tabs between.
    key: String,
    /// Why nothing kills it.
    pub reason: String,
}

impl Survivor {
    /// Reads `survivors.tsv` in the folder of the specs. There may be none.
    ///
    /// # Errors
    /// The file cannot be read, or a line does not have six columns.
    pub fn read(specs: &Path) -> Result<Vec<Survivor>, MutantsError> {
        let path = specs.join("survivors.tsv");
        if !path.is_file() {
            return Ok(Vec::new());
        }
        let text = std::fs::read_to_string(&path).map_err(|source| MutantsError::Io {
            what: path.display().to_string(),
            source,
        })?;
        Survivor::parse(&text)
    }

    fn parse(text: &str) -> Result<Vec<Survivor>, MutantsError> {
        let lines = (1..).zip(text.lines());
        let lines = lines.filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
        lines
            .map(|(line, text)| match text.rsplit_once('\t') {
                Some((key, reason)) if key.split('\t').count() == 5 => Ok(Survivor {
                    key: key.to_owned(),
                    reason: reason.to_owned(),
                }),
                _ => Err(MutantsError::Survivors {
                    line,
                    why: format!("expected 6 columns, found {}", text.split('\t').count()),
                }),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_survivors_has_six_columns() {
        let wrong = Survivor::parse("# head\nnoted\n").unwrap_err().to_string();
        assert_eq!(wrong, "survivors.tsv, line 2: expected 6 columns, found 1");
        let right = Survivor::parse("# head\nM\tA\tswap\ta\tb\tbecause\n").unwrap();
        assert_eq!((right.len(), &*right[0].reason), (1, "because"));
        assert_eq!(right[0].key, "M\tA\tswap\ta\tb");
    }
}
