//! A counterexample as a story: who takes each step, what it changes, and the lines of TLA+ and of
//! the engine beside it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::run::Outcome;
use super::sources::{Excerpt, Sources};
use crate::{Config, Value};

/// The lane of what no client does: checkpoints, write-back, recovery.
const BACKGROUND: &str = "background";
/// The lane of the device, and of who ends the process.
const DEVICE: &str = "device";

/// Words in the names of actions of the device.
const DEVICE_WORDS: [&str; 9] = [
    "Crash",
    "Restart",
    "Kill",
    "Power",
    "CompleteFlush",
    "FailFlush",
    "Rot",
    "Persist",
    "Evaporate",
];

/// A part of a variable that a step changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The part, like `call[c1].at`.
    pub path: String,
    /// Its value before; nothing if it is new.
    pub before: Option<String>,
    /// Its value after; nothing if it is gone.
    pub after: Option<String>,
}

/// A step of the story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The action; nothing for the initial state.
    pub action: Option<String>,
    /// The number of its lane.
    pub lane: Option<usize>,
    /// What differs from the state before.
    pub changes: Vec<Change>,
    /// All variables after the step.
    pub state: Vec<(String, String)>,
    /// The action's definition.
    pub tla: Option<Excerpt>,
    /// The engine's functions that its comment names, or else those that emit its events.
    pub engine: Vec<Excerpt>,
}

/// A counterexample as a story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Story {
    /// The spec.
    pub spec: String,
    /// The model.
    pub model: String,
    /// The property that is violated.
    pub property: String,
    /// The definition of the property.
    pub claim: Option<Excerpt>,
    /// The checker that found it.
    pub checker: String,
    /// The names of the lanes, from left to right.
    pub lanes: Vec<String>,
    /// Whether the engine's sources were found.
    pub has_engine: bool,
    /// For an infinite behaviour, the number of the step to which it returns, from 1.
    pub back_to: Option<usize>,
    /// The steps, beginning with the initial state.
    pub steps: Vec<Told>,
}

impl Story {
    /// Tells the counterexample of an outcome. `acted` has the mirror's actions, whose first
    /// parameter is the client, if the mirror takes the steps.
    #[must_use]
    pub fn new(
        outcome: &Outcome,
        config: &Config,
        sources: &Sources,
        acted: &[Option<String>],
    ) -> Story {
        let clients = match config.constants.get("Clients") {
            Some(Value::Set(clients)) => clients.clone(),
            _ => BTreeSet::new(),
        };
        let mut lanes: Vec<String> = clients.iter().map(ToString::to_string).collect();
        lanes.extend([BACKGROUND.to_owned(), DEVICE.to_owned()]);
        let mut steps: Vec<Told> = Vec::new();
        let mut before: &[(String, Value)] = &[];
        for (at, step) in outcome.steps.iter().enumerate() {
            let acted = acted.get(at).and_then(Option::as_deref);
            let tla = step.action.as_deref().and_then(|name| sources.action(name));
            let engine = tla.as_ref().map(|tla| beside(tla, sources));
            let lane = step.action.as_deref().map(|name| {
                let parameters = sources.parameters(name);
                lane(name, &parameters, &clients, acted, [before, &step.state])
            });
            steps.push(Told {
                lane: lane.and_then(|lane| lanes.iter().position(|name| *name == lane)),
                changes: match steps.is_empty() {
                    true => Vec::new(),
                    false => changes(before, &step.state),
                },
                state: (step.state.iter())
                    .map(|(name, value)| (name.clone(), value.to_string()))
                    .collect(),
                action: step.action.clone(),
                engine: engine.unwrap_or_default(),
                tla,
            });
            before = &step.state;
        }
        let property = outcome.property.clone().unwrap_or_default();
        Story {
            spec: outcome.spec.clone(),
            model: outcome.model.clone(),
            claim: sources.action(&property),
            property,
            checker: outcome.checker.name().to_owned(),
            lanes,
            has_engine: sources.has_engine(),
            back_to: outcome.back_to,
            steps,
        }
    }
}

/// The engine's functions that an action's comment names, or else those that emit its events.
fn beside(tla: &Excerpt, sources: &Sources) -> Vec<Excerpt> {
    let named = sources.named_in(&tla.text);
    let folder = tla.file.rsplit('/').nth(1).unwrap_or_default();
    match named.is_empty() {
        true => sources.emitting(folder, &tla.item),
        false => named,
    }
}

/// The lane of a step. If the mirror does not tell the client, it is the one whose part of some
/// variable changes.
fn lane(
    action: &str,
    parameters: &[String],
    clients: &BTreeSet<Value>,
    acted: Option<&str>,
    [before, after]: [&[(String, Value)]; 2],
) -> String {
    if DEVICE_WORDS.iter().any(|word| action.contains(word)) {
        return DEVICE.to_owned();
    }
    let is_client = |name: &String| ["c", "t", "client", "thread"].contains(&name.as_str());
    if !parameters.first().is_some_and(is_client) {
        return BACKGROUND.to_owned();
    }
    let number = acted.and_then(|action| {
        let (_, rest) = action.split_once('(')?;
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[..end].parse::<usize>().ok()
    });
    if let Some(client) = number.and_then(|number| clients.iter().nth(number)) {
        return client.to_string();
    }
    let by_client = |value: &Value| match value {
        Value::Fun(map) if !map.is_empty() && map.keys().all(|key| clients.contains(key)) => {
            Some(map.clone())
        }
        _ => None,
    };
    for ((_, old), (_, new)) in before.iter().zip(after) {
        let (Some(old), Some(new)) = (by_client(old), by_client(new)) else {
            continue;
        };
        let changed = |client: &&Value| old.get(*client) != new.get(*client);
        if let Some(client) = new.keys().find(changed) {
            return client.to_string();
        }
    }
    BACKGROUND.to_owned()
}

fn changes(before: &[(String, Value)], after: &[(String, Value)]) -> Vec<Change> {
    let mut found = Vec::new();
    for (name, new) in after {
        let old = before.iter().find(|(known, _)| known == name);
        compare(name, old.map(|(_, value)| value), Some(new), &mut found);
    }
    found
}

/// Lists the parts of a value that differ.
fn compare(path: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<Change>) {
    if old == new {
        return;
    }
    let (Some(Value::Fun(before)), Some(Value::Fun(after))) = (old, new) else {
        found.push(Change {
            path: path.to_owned(),
            before: old.map(ToString::to_string),
            after: new.map(ToString::to_string),
        });
        return;
    };
    let keys: BTreeSet<&Value> = before.keys().chain(after.keys()).collect();
    let same_shape = before.keys().eq(after.keys());
    // A record that has become another kind of record is easier to read as a whole.
    let is_record = keys.iter().all(|key| matches!(key, Value::Str(_)));
    if keys.is_empty() || is_record && !same_shape {
        found.push(Change {
            path: path.to_owned(),
            before: old.map(ToString::to_string),
            after: new.map(ToString::to_string),
        });
        return;
    }
    for key in keys {
        let path = match key {
            Value::Str(field) => format!("{path}.{field}"),
            other => format!("{path}[{other}]"),
        };
        compare(&path, before.get(key), after.get(key), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(before: &str, after: &str) -> Vec<(String, Option<String>, Option<String>)> {
        let state = |text: &str| vec![("x".to_owned(), Value::parse(text).unwrap())];
        let found = changes(&state(before), &state(after));
        let parts = found.into_iter().map(|c| (c.path, c.before, c.after));
        parts.collect()
    }

    #[test]
    fn the_changed_part_of_a_value_is_named() {
        let (one, two) = (Some("1".to_owned()), Some("2".to_owned()));
        assert_eq!(
            changed("(c1 :> [at |-> 1, n |-> 0])", "(c1 :> [at |-> 2, n |-> 0])"),
            [("x[c1].at".to_owned(), one.clone(), two.clone())]
        );
        assert_eq!(
            changed("<<1>>", "<<1, 2>>"),
            [("x[2]".to_owned(), None, two)]
        );
        assert_eq!(changed("{1}", "{1}"), []);
    }
}
