//! Counterexamples as text, and as regression tests.

use std::fmt::Write as _;
use std::path::Path;

use super::mirrors;
use super::run::Outcome;
use crate::graph::Step;
use crate::value::{parse_state, state_text};
use crate::{Config, Value};

/// Prints a counterexample as numbered steps: the action, and the variables that it changed.
#[must_use]
pub fn told(outcome: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a string does not fail, here and below.
    let _ = writeln!(
        text,
        "{} {}: {} is violated ({}):",
        outcome.spec,
        outcome.model,
        outcome.property.as_deref().unwrap_or("a property"),
        outcome.checker.name()
    );
    let mut before: &[(String, Value)] = &[];
    for (number, step) in (1..).zip(&outcome.steps) {
        let action = step.action.as_deref().unwrap_or("at first");
        let _ = writeln!(text, "{number:>3}. {action}");
        for (name, value) in step.state.iter().filter(|pair| !before.contains(pair)) {
            let _ = writeln!(text, "       {name} = {value}");
        }
        before = &step.state;
    }
    match outcome.back_to {
        Some(state) if state == outcome.steps.len() => {
            text.push_str("     … and nothing more happens.\n")
        }
        Some(state) => {
            let _ = writeln!(text, "     … and so on from {state}, forever.");
        }
        None => {}
    }
    text
}

/// Prints a counterexample as a Rust test that replays it on the mirror.
#[must_use]
pub fn as_test(outcome: &Outcome, config: &str) -> String {
    let name: String = (format!("{}_{}", outcome.spec, outcome.model).chars())
        .map(|c| {
            if c.is_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    let property = outcome.property.as_deref().unwrap_or_default();
    let mut text = format!(
        "//! Written by `treering check`: a behaviour of {} that violates {property}.\n\n\
         use treering_specs::check::story::replay;\n\n\
         const CONFIG: &str = r##\"{config}\"##;\n\n\
         /// Each step is an action and the state that it leads to.\n\
         const STEPS: [(&str, &str); {}] = [\n",
        outcome.spec,
        outcome.steps.len()
    );
    for step in &outcome.steps {
        let action = step.action.as_deref().unwrap_or_default();
        let state = state_text(&step.state);
        let _ = writeln!(
            text,
            "    (\n        {action:?},\n        r##\"{state}\"##,\n    ),"
        );
    }
    let _ = write!(
        text,
        "];\n\n#[test]\nfn {name}() {{\n    replay({:?}, CONFIG, &STEPS, {property:?}).unwrap();\n}}\n",
        outcome.spec
    );
    text
}

/// Replays a behaviour on the mirror of `spec`. Each step must be one of the mirror's, and the last
/// state must violate `property`.
///
/// # Errors
/// The first step that the mirror does not take, or that `property` holds in the last state.
pub fn replay(
    spec: &str,
    config: &str,
    steps: &[(&str, &str)],
    property: &str,
) -> Result<(), String> {
    let config = Config::parse(Path::new("CONFIG"), config).map_err(|e| e.to_string())?;
    let mirror = mirrors::open(spec, &config).map_err(|e| e.to_string())?;
    let steps: Vec<Step> = steps
        .iter()
        .map(|(action, state)| {
            Ok(Step {
                action: (!action.is_empty()).then(|| (*action).to_owned()),
                state: parse_state(state).map_err(|e| e.to_string())?,
            })
        })
        .collect::<Result<_, String>>()?;
    mirror.walk(&steps, property)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "CONSTANTS\nClients = {c1}\nKeys = {k1}\nValues = {v1}\nAbsent = Absent\nPending = Pending\n\
        MaxTail = 1\nBug = \"none\"\nINVARIANTS DownInv\n";
    const FIRST: &str =
        "base = (k1 :> Absent)\ncall = (c1 :> [op |-> \"none\"])\nphase = \"up\"\ntail = <<>>\n";

    #[test]
    fn a_story_that_the_mirror_cannot_follow_is_refused_with_its_step() {
        let tell = |steps: &[(&str, &str)], property| replay("DurableMap", CONFIG, steps, property);
        let fail = |steps: &[(&str, &str)], property| tell(steps, property).unwrap_err();
        assert_eq!(
            fail(&[("", FIRST)], "DownInv"),
            "DownInv holds in the last state"
        );
        assert_eq!(
            fail(&[("", FIRST), ("Recover", FIRST)], "DownInv"),
            "step 2: no Recover leads to this state"
        );
        assert!(fail(&[("", FIRST)], "TypeInv").contains("is not an invariant"));
        assert!(fail(&[], "DownInv").contains("one step or more"));
        assert!(fail(&[("", "base = ")], "DownInv").contains("expected"));
    }
}
