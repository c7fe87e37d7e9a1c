//! Parts of a spec that no run has reached.
//!
//! TLC's coverage report names lines of the spec. Lines that only a seeded bug enables should not
//! be reached. Any other action that no small model of its spec takes is a mistake in the models. Any
//! other line may need larger bounds than the model's.

use std::fs;
use std::path::Path;

use super::configs::{BoundedModel, Lane};
use super::mirrors;
use super::run::library;
use super::suite::NeverTaken;
use crate::ConfigError;

/// The most lines between the test for a seeded bug and the end of its branch.
const BRANCH: usize = 3;

/// Whether only a seeded bug enables a place that was never reached ("Action, line 7 of module M").
/// That is so if the place itself is in such a branch or, if it is in another definition, every
/// mention of that definition in the action is.
pub(super) fn is_seeded(model: &BoundedModel, place: &str) -> bool {
    let folder = model.module.parent().unwrap_or(Path::new("."));
    let parse = || {
        let (action, rest) = place.split_once(", line ")?;
        let (line, module) = rest.split_once(" of module ")?;
        Some((action, line.parse().ok()?, module))
    };
    let Some((action, line, module)) = parse() else {
        return false;
    };
    // Composed models use modules of other specs.
    let specs = folder.parent().unwrap_or(Path::new("."));
    let mut folders = library(specs).into_iter();
    let file = format!("{module}.tla");
    let folder = match folder.join(&file).is_file() {
        true => folder.to_owned(),
        false => (folders.find(|part| part.join(&file).is_file())).unwrap_or(folder.to_owned()),
    };
    let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    if is_switched(&lines, line) {
        return true;
    }
    let Some(helper) = definition_at(&lines, line).filter(|name| *name != action) else {
        return false;
    };
    let modules = fs::read_dir(&folder).into_iter().flatten().flatten();
    let bodies = modules.filter_map(|module| {
        let text = fs::read_to_string(module.path()).ok()?;
        mentions(&text.lines().collect::<Vec<_>>(), action, helper)
    });
    bodies.min().unwrap_or(false)
}

/// Whether `Bug` is tested in the line, counted from 1, or shortly before, so that the line is in
/// its branch.
fn is_switched(lines: &[&str], line: usize) -> bool {
    let (from, to) = (line.saturating_sub(BRANCH), line.min(lines.len()));
    lines[from.min(to)..to]
        .iter()
        .any(|text| text.contains("Bug"))
}

/// The name that a line of a module defines, if it begins a definition.
fn defined(line: &str) -> Option<&str> {
    let (left, _) = line.split_once("==")?;
    let name = left.split(['(', ' ']).next()?;
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    starts.then_some(name)
}

/// The definition that a line, counted from 1, belongs to.
fn definition_at<'t>(lines: &[&'t str], line: usize) -> Option<&'t str> {
    let before = &lines[..line.min(lines.len())];
    before.iter().rev().find_map(|text| defined(text))
}

/// Whether only seeded bugs enable the mentions of `helper` in the definition of `action`. `None`
/// if it is not mentioned.
fn mentions(lines: &[&str], action: &str, helper: &str) -> Option<bool> {
    let begin = lines
        .iter()
        .position(|text| defined(text) == Some(action))?;
    let rest = &lines[begin + 1..];
    let len = rest
        .iter()
        .position(|text| defined(text).is_some())
        .unwrap_or(rest.len());
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (begin..=begin + len)
        .filter(|at| lines[*at].split(|c| !is_name(c)).any(|word| word == helper))
        .map(|at| is_switched(lines, at + 1))
        .min()
}

/// Whether a small model never takes the action, and another small one of the spec does, by its
/// mirror: a switch of the models may be on in one and off in the other.
pub(super) fn is_taken_elsewhere(models: &[BoundedModel], never: &NeverTaken) -> bool {
    let small = || {
        let of_spec = models.iter().filter(|model| model.spec == never.spec);
        of_spec.filter(|model| model.lane == Lane::Smoke && mirrors::is_mirrored(&model.spec))
    };
    let takes = |model: &BoundedModel| {
        let mirror = mirrors::open(&model.spec, &model.config);
        let labels = mirror.and_then(|mirror| mirror.labels());
        labels.is_ok_and(|labels| labels.contains(&*never.action))
    };
    small().any(|model| model.name == never.model)
        && small().any(|model| model.name != never.model && takes(model))
}

/// The actions that the smoke model takes and the full one does not. Uses the mirrors, whose graphs
/// equal TLC's.
pub(super) fn lost_actions(
    models: &[BoundedModel],
    full: &BoundedModel,
) -> Result<Vec<NeverTaken>, ConfigError> {
    let smoke = models
        .iter()
        .find(|m| mirrors::is_mirrored(&m.spec) && m.spec == full.spec && m.name == "smoke");
    let Some(smoke) = smoke else {
        return Ok(Vec::new());
    };
    let labels = |model: &BoundedModel| {
        mirrors::open(&model.spec, &model.config).and_then(|mirror| mirror.labels())
    };
    let (small, large) = (labels(smoke)?, labels(full)?);
    let lost = small.difference(&large).map(|action| NeverTaken {
        spec: full.spec.clone(),
        model: full.name.clone(),
        action: (*action).to_owned(),
    });
    Ok(lost.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTION: &str = "Helper(c) ==\n    word' = c\n\nAct(c) ==\n    /\\ IF Bug = \"x\"\n       THEN Helper(c)\n       ELSE Other(c)\n\nNext == Act(1)\n";

    #[test]
    fn helpers_used_only_by_seeded_bugs_are_recognised() {
        let lines: Vec<&str> = ACTION.lines().collect();
        assert_eq!(definition_at(&lines, 2), Some("Helper"));
        assert_eq!(mentions(&lines, "Act", "Helper"), Some(true));
        assert_eq!(mentions(&lines, "Act", "Nobody"), None);
        let unswitched = ACTION.replace("Bug", "size");
        let lines: Vec<&str> = unswitched.lines().collect();
        assert_eq!(mentions(&lines, "Act", "Helper"), Some(false));
    }
}
