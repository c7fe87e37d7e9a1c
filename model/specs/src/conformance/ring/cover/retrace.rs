//! Makes a counterexample of `CircularBuffer` a test of the engine's ring.
//!
//! The mirror finds a shortest counterexample among those whose critical sections no other client
//! interrupts, because one critical section of the ring may be several steps of the spec ([`map`]).
//! The ring then takes these steps, and is compared with the mirror after each. At the end, it is
//! in the state that violates the invariant.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use stateright::{Expectation, Model as _};

use super::map::goes_on;
use super::rig::Rig;
use crate::conformance::case::{Case, CaseError, Ending, Loss, SCHEMA, Step};
use crate::conformance::shortest::shortest;
use crate::mirror::circular_buffer::{Action, Call, CircularBuffer, State};
use crate::value::Value;
use crate::{Config, Mirror};

/// The action after which a client is inside a critical section.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Inside(Option<Action>);

impl Hash for Inside {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.is_some().hash(hasher);
    }
}

/// The steps of a counterexample, with the state before each.
type Way = Vec<(State, Action)>;

/// For a seeded bug of the spec: that of the ring, and what the ring does without it, as a clause
/// about "the engine". Other seeded bugs of the ring deviate in other steps. Other bugs of the spec
/// are in steps that the tree takes which uses the ring.
const BUGS: [(&str, Option<&str>, &str); 13] = [
    (
        "as-published-free-list",
        Some("ring-listed-block-passed"),
        "takes a free block off its list before the head passes it",
    ),
    (
        "as-published-no-padding",
        Some("ring-no-padding"),
        "pads the rest before the end of the memory",
    ),
    (
        "head-out-of-order",
        None,
        "moves the head only behind blocks that are evicted, in their order",
    ),
    (
        "evicted-before-unmapped",
        None,
        "changes the mapping before the head passes a block",
    ),
    (
        "victim-unchecked",
        None,
        "looks again whether the page still points at its victim",
    ),
    (
        "writer-ignores-readers",
        None,
        "lets nobody write a page while there are readers",
    ),
    (
        "copy-without-tombstone",
        None,
        "leaves a tombstone where a mini-page was",
    ),
    (
        "freed-before-published",
        None,
        "frees the old block after the new one is mapped",
    ),
    (
        "reader-without-lock",
        None,
        "reads a mini-page only under its page's lock",
    ),
    (
        "unlocked-while-writing",
        None,
        "keeps the page locked until its record is written",
    ),
    (
        "changed-while-written",
        None,
        "keeps the page locked while its record is written",
    ),
    (
        "dirty-skipped",
        None,
        "writes a dirty record to its leaf before it changes the mapping",
    ),
    (
        "full-ignored",
        None,
        "hands out no block for which there is no room",
    ),
];

fn bug_of(config: &Config) -> String {
    let bug = config.constants.get("Bug");
    bug.map_or("none".into(), |bug| {
        bug.to_string().trim_matches('"').to_owned()
    })
}

fn seeded(bug: &str) -> (Option<&'static str>, &'static str) {
    let known = BUGS.iter().find(|(name, ..)| *name == bug);
    known.map_or((None, "does something else"), |(_, engine, does)| {
        (*engine, *does)
    })
}

/// Makes a test of the shortest counterexample of a model.
///
/// # Errors
/// The configuration does not fit the mirror, or there is no counterexample.
pub(in crate::conformance) fn case(
    model: &str,
    config: &Config,
    text: &str,
) -> Result<Case, CaseError> {
    let bad = |e: crate::ConfigError| CaseError::Bad(e.to_string());
    let (text, adapted) = enlarged(text);
    let config = &Config::parse(&config.path, &text).map_err(bad)?;
    let mirror = CircularBuffer::from_config(config).map_err(bad)?;
    let bug = bug_of(config);
    if !BUGS.iter().any(|(known, ..)| *known == bug) && config.must_violate().is_some() {
        let temporal = !config
            .invariants
            .iter()
            .any(|i| Some(i.as_str()) == config.must_violate());
        let why = if temporal {
            "the property is about whole behaviours, which only TLC judges"
        } else {
            "the bug is in a step that the tree takes which uses the ring, or that cannot be seen"
        };
        return Err(CaseError::None(format!(
            "CircularBuffer {model}: {why}, so there is no counterexample for the engine"
        )));
    }
    let properties: Vec<_> = (mirror.properties().into_iter())
        .filter(|p| p.expectation == Expectation::Always)
        .collect();
    let broken = |state: &State| {
        let mut all = properties.iter();
        all.find(|p| !(p.condition)(&mirror, state)).map(|p| p.name)
    };
    let found = shortest(
        (mirror.first(), Inside(None)),
        |at, into| undisturbed(&mirror, at, into),
        |(state, _)| broken(state).is_some(),
    );
    let found = found.map(|(way, (end, _))| {
        let way: Way = way.into_iter().map(|((state, _), a)| (state, a)).collect();
        (way, end)
    });
    let Some((way, end)) = found else {
        let why = "the mirror finds no violation with steps that the ring can take";
        return Err(CaseError::None(format!(
            "CircularBuffer {model}: {why}, so there is no counterexample for the engine"
        )));
    };
    let property = broken(&end).unwrap_or_default();
    Ok(Case {
        schema: SCHEMA.into(),
        complete: true,
        spec: CircularBuffer::SPEC.into(),
        model: model.to_owned(),
        title: config.title.clone(),
        adapted,
        property: property.to_owned(),
        engine_bug: seeded(&bug).0.map(str::to_owned),
        bug,
        violated_at: way.len(),
        steps: (way.iter()).map(|(_, action)| step(*action)).collect(),
        loss: Some(loss(&mirror, property, &way, &end)),
        config: text,
    })
}

/// The configuration for a ring that the engine can make, and what was changed.
fn enlarged(text: &str) -> (String, Option<String>) {
    let larger = text.replace("Capacity = 4\n", "Capacity = 5\n");
    if larger == text {
        return (larger, None);
    }
    let larger = larger.replace("InPlace = 3\n", "InPlace = 4\n");
    let adapted = "Capacity is 5 instead of 4, because the engine's ring has at least five units";
    (larger, Some(adapted.into()))
}

/// The steps from a state, after an action of whose critical section they may be a part.
fn undisturbed(
    mirror: &CircularBuffer,
    (state, last): &(State, Inside),
    into: &mut Vec<(Action, (State, Inside))>,
) {
    let mut actions = Vec::new();
    mirror.actions(state, &mut actions);
    let follows = |action: &Action| last.0.is_some_and(|last| goes_on(state, last, *action));
    if actions.iter().any(follows) {
        actions.retain(|action| follows(action));
    }
    for action in actions {
        let next = mirror.next_state(state, action);
        let Some(next) = next.filter(|next| mirror.within_boundary(next)) else {
            continue;
        };
        let mut then = Vec::new();
        mirror.actions(&next, &mut then);
        let is_inside = then.iter().any(|then| goes_on(&next, action, *then));
        into.push((action, (next, Inside(is_inside.then_some(action)))));
    }
}

/// The state in which the counterexample ends, in words.
fn loss(mirror: &CircularBuffer, property: &str, way: &Way, end: &State) -> Loss {
    let text = |state: &State| -> BTreeMap<String, String> {
        let all = mirror.variables(state).into_iter();
        all.map(|(name, value): (&str, Value)| (name.to_owned(), value.to_string()))
            .collect()
    };
    let before = way.last().map(|(state, _)| text(state)).unwrap_or_default();
    let after = text(end);
    let changed = after
        .into_iter()
        .filter(|(name, value)| before.get(name) != Some(value));
    Loss {
        what: format!("the ring is in a state that violates {property}"),
        allowed: Vec::new(),
        found: changed.collect(),
    }
}

fn step(action: Action) -> Step {
    let step = Step::new(CircularBuffer::label(&action));
    let client = |step: Step, c: u8| step.with("client", format!("c{}", c + 1));
    match action {
        Action::Close => step,
        Action::Call(c, call) => match call {
            Call::None => client(step, c),
            Call::Get { key, .. } => client(step, c)
                .with("call", "get")
                .with("page", format!("p{}", key + 1)),
            Call::Write { key, value, .. } => {
                let call = match value {
                    CircularBuffer::ABSENT => "delete".to_owned(),
                    value => format!("put v{}", value + 1),
                };
                client(step, c)
                    .with("call", call)
                    .with("page", format!("p{}", key + 1))
            }
        },
        Action::Create(c, size) | Action::Grow(c, size) | Action::CopyToTail(c, size) => {
            client(step, c).with("units", size)
        }
        Action::PopFreeList(c, offset) => client(step, c).with("offset", offset),
        Action::LockPage(c)
        | Action::Read(c)
        | Action::Write(c)
        | Action::Return(c)
        | Action::Reuse(c)
        | Action::PassOver(c)
        | Action::Allocate(c)
        | Action::Pad(c)
        | Action::Full(c)
        | Action::Copy(c)
        | Action::Publish(c)
        | Action::Deallocate(c)
        | Action::Claim(c)
        | Action::Retry(c)
        | Action::Skip(c)
        | Action::Unlist(c)
        | Action::FindPage(c)
        | Action::LockVictim(c)
        | Action::WriteLeaf(c)
        | Action::Unmap(c)
        | Action::Finish(c) => client(step, c),
    }
}

/// The place where a case runs.
pub(in crate::conformance) struct Stage {
    case: Case,
    mirror: CircularBuffer,
    way: Way,
    end: State,
}

impl Stage {
    /// Reads the steps of a case.
    ///
    /// # Errors
    /// The steps are not those of the spec.
    pub(in crate::conformance) fn new(case: &Case) -> Result<Stage, CaseError> {
        let config = Config::parse(std::path::Path::new("config"), &case.config);
        let config = config.map_err(|e| CaseError::Bad(e.to_string()))?;
        let mirror =
            CircularBuffer::from_config(&config).map_err(|e| CaseError::Bad(e.to_string()))?;
        let mut at = mirror.first();
        let mut way = Way::new();
        for (number, wanted) in (1..).zip(&case.steps) {
            let mut actions = Vec::new();
            mirror.actions(&at, &mut actions);
            let mut same = actions.into_iter();
            let Some(action) = same.find(|action| step(*action) == *wanted) else {
                return Err(CaseError::Bad(format!(
                    "step {number}: the spec has no step {wanted} here"
                )));
            };
            way.push((at, action));
            at = mirror.next_state(&at, action).expect("it is enabled");
        }
        Ok(Stage {
            case: case.clone(),
            mirror,
            way,
            end: at,
        })
    }

    /// The ring's seeded bug.
    #[cfg(feature = "mutations")]
    pub(in crate::conformance) fn engine_bug(&self) -> Option<&str> {
        self.case.engine_bug.as_deref()
    }

    /// As [`Stage::run`], on the ring with its seeded bug, which must be switched on.
    ///
    /// # Errors
    /// As [`Stage::run`].
    #[cfg(feature = "mutations")]
    pub(in crate::conformance) fn run_with_bug(&self) -> Result<Ending, String> {
        let mut rig = Rig::new(&self.mirror).map_err(|e| e.to_string())?;
        rig.passes_listed = self.case.bug == "as-published-free-list";
        self.drive(&mut rig)
    }

    /// Drives the ring through the steps.
    ///
    /// # Errors
    /// The engine cannot make such a ring.
    pub(in crate::conformance) fn run(&self) -> Result<Ending, String> {
        let mut rig = Rig::new(&self.mirror).map_err(|e| e.to_string())?;
        self.drive(&mut rig)
    }

    fn drive(&self, rig: &mut Rig<'_>) -> Result<Ending, String> {
        let mut at = 0;
        while let Some((_, action)) = self.way.get(at) {
            let before = at;
            let (done, taken) = rig.take(*action);
            for action in done {
                // The ring may take steps that the counterexample does not have.
                match self.way.get(at) {
                    Some((_, wanted)) if *wanted == action => at += 1,
                    // The rest of a critical section.
                    None => break,
                    _ => return Ok(self.refused(at, format!("it takes the step {}", step(action)))),
                }
            }
            if let Err(seen) = taken {
                return Ok(self.refused(at, seen));
            }
            if at == before {
                return Ok(Ending::NotTakeable {
                    step: at + 1,
                    why: "the ring does not stop there".into(),
                });
            }
        }
        Ok(Ending::Lost(loss(
            &self.mirror,
            &self.case.property,
            &self.way,
            &self.end,
        )))
    }

    fn refused(&self, at: usize, seen: String) -> Ending {
        let waits = self.case.bug == "head-out-of-order" && seen.contains("stuck");
        let seen = match waits {
            true => "the client waits until the head has passed its block".to_owned(),
            false => seen,
        };
        Ending::Refused {
            step: (at + 1).min(self.way.len()),
            does: seeded(&self.case.bug).1.to_owned(),
            seen,
        }
    }
}
