//! What the judges have in common that lead a mirror step by step along a recording: they take its
//! steps, count them, note the situations and the path, check the invariants now and then, and
//! report what they refuse.

// A clone of a box does not come over the stack, and states are large.
#![allow(clippy::borrowed_box)]

use std::cell::RefCell;
use std::fmt::Debug;
use std::time::Instant;

use stateright::Model;

use super::Budget;
use super::behaviour::{Boxed, Constants, InTla, Path};
use super::module::Module;
use super::paged::{Entry, Heard};
use super::refused::{Accepted, Refusal, Tally};
use super::situations::{Cover, Situations};
use crate::Mirror;
use crate::value::state_text;
use treering_oracle::random::Random;

/// A state of a mirror.
type StateOf<M> = <M as Model>::State;

/// A step of a mirror.
type ActionOf<M> = <M as Model>::Action;

/// A mirror that is led.
pub trait Led: InTla {
    /// Takes a step, if it is enabled. Returns whether it was.
    fn try_take(&self, state: &mut StateOf<Self>, action: &ActionOf<Self>) -> bool;

    /// The steps that are enabled, except the ends of a process.
    fn enabled(&self, state: &StateOf<Self>) -> Vec<ActionOf<Self>>;

    /// The name of an invariant that a state violates.
    fn violated(&self, state: &StateOf<Self>) -> Option<&'static str>;

    /// The situations in which a step is taken.
    fn met(
        &self,
        before: &StateOf<Self>,
        action: &ActionOf<Self>,
        after: &StateOf<Self>,
    ) -> Vec<String>;
}

/// What an event claims of the spec.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    text: String,
    /// Whether it is claimed of the step that was taken last: that step had another outcome.
    instead: bool,
}

/// What a judge notes of the steps of its mirror.
#[derive(Clone, Debug)]
pub struct Notes<M: Mirror> {
    /// The state before the present event, if it is the end of a process.
    before: Option<Boxed<M>>,
    /// The counts of accepted events and steps.
    pub(super) tally: Tally,
    situations: Option<Situations>,
    path: Option<Path<M>>,
    /// What the present event claims, if it is refused.
    claim: RefCell<Option<Claim>>,
}

impl<M: Mirror> Default for Notes<M> {
    fn default() -> Self {
        Notes {
            before: None,
            tally: Tally::default(),
            situations: None,
            path: None,
            claim: RefCell::new(None),
        }
    }
}

impl<M: InTla> Notes<M> {
    /// Notes the situations of steps, and so many of the last steps, from now on.
    pub(super) fn begin(&mut self, steps: usize) {
        self.situations = Some(Situations::new());
        self.keep(steps);
    }

    /// Notes the situations of steps from now on.
    pub(super) fn note_situations(&mut self) {
        self.situations = Some(Situations::new());
    }

    /// Notes so many of the last steps from now on.
    pub(super) fn keep(&mut self, steps: usize) {
        self.path = Some(Path::new(steps));
    }

    /// Notes a step that is not counted.
    pub(super) fn passed(&mut self, action: &ActionOf<M>, (before, after): (&Boxed<M>, &Boxed<M>)) {
        self.claims_nothing();
        if let Some(path) = &mut self.path {
            path.add(before, action, after);
        }
    }

    /// Notes a step that is counted, and that the engine takes in another way than the spec.
    pub(super) fn counted(
        &mut self,
        action: &ActionOf<M>,
        before: &StateOf<M>,
        met: impl FnOnce(&StateOf<M>) -> Vec<String>,
    ) {
        self.claims_nothing();
        let label = M::label(action);
        self.tally.took(label);
        if let Some(situations) = &mut self.situations {
            situations.entry(label).or_default().extend(met(before));
        }
    }

    /// Whether the states before steps are needed.
    pub(super) fn is_noting(&self) -> bool {
        self.situations.is_some() || self.path.is_some()
    }

    /// The noted situations.
    pub(super) fn situations(&self) -> Situations {
        self.situations.clone().unwrap_or_default()
    }

    /// Takes over the notes of another judge, which has followed the same events.
    pub(super) fn learn(&mut self, other: &Notes<M>) {
        self.tally = other.tally.clone();
        self.situations.clone_from(&other.situations);
    }

    /// An event comes. Nothing is claimed of it yet.
    pub(super) fn hears(&mut self) {
        self.before = None;
        self.claims_nothing();
    }

    /// Nothing is claimed yet.
    pub(super) fn claims_nothing(&self) {
        self.claim.replace(None);
    }

    /// Notes a step, and how it is counted.
    pub(super) fn took(
        &mut self,
        action: &ActionOf<M>,
        (before, after): (Option<&Boxed<M>>, &Boxed<M>),
        met: impl FnOnce(&StateOf<M>) -> Vec<String>,
    ) {
        self.claims_nothing();
        let label = M::label(action);
        self.tally.took(label);
        let Some(before) = before else { return };
        if let Some(path) = &mut self.path {
            path.add(before, action, after);
        }
        if let Some(situations) = &mut self.situations {
            situations.entry(label).or_default().extend(met(before));
        }
    }

    /// Notes what is claimed of the spec by an event that is refused for `accepted`: a step, or a
    /// property of the state. The last claim of an event counts.
    pub(super) fn claim<T>(
        &self,
        accepted: Result<T, String>,
        claim: impl FnOnce() -> String,
    ) -> Result<T, String> {
        self.claim_if(accepted, false, claim)
    }

    /// As `Notes::claim`, of an event that the last step stands for: what it claims should have
    /// been possible instead of that.
    pub(super) fn instead<T>(
        &self,
        accepted: Result<T, String>,
        claim: impl FnOnce() -> String,
    ) -> Result<T, String> {
        self.claim_if(accepted, true, claim)
    }

    fn claim_if<T>(
        &self,
        accepted: Result<T, String>,
        instead: bool,
        claim: impl FnOnce() -> String,
    ) -> Result<T, String> {
        if accepted.is_err() && self.path.is_some() {
            let text = claim();
            self.claim.replace(Some(Claim { text, instead }));
        }
        accepted
    }

    /// The event that is refused as a behaviour.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn finding(
        &self,
        (mirror, state): (&M, &Boxed<M>),
        constants: Constants,
        told: &[String],
    ) -> Result<Module, String> {
        let path = self.path.as_ref().ok_or("the episode does not repeat")?;
        let claim = self.claim.borrow();
        let claim = claim.as_ref();
        let claim = claim.ok_or("the spec has nothing that the event could be compared with")?;
        let path = path.up_to(state, claim.instead)?;
        Ok(path.finding(mirror, constants, (told, &claim.text)))
    }

    /// The path as a behaviour, and the labels of its steps. `None` if nothing was noted.
    pub(super) fn recording(&self, mirror: &M, constants: Constants) -> Option<Recorded> {
        let path = self.path.as_ref()?;
        let (actions, others) = path.actions();
        Some(Recorded {
            module: path.recording(mirror, constants)?,
            actions: actions.into_iter().collect(),
            others,
        })
    }
}

/// The steps of an episode as a behaviour.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The files.
    pub module: Module,
    /// The actions that are taken.
    pub actions: Vec<&'static str>,
    /// The number of steps that are not the spec's.
    pub others: usize,
}

/// Nothing happens, and this holds.
pub(super) fn holds(what: &str) -> String {
    format!("({what}) /\\ UNCHANGED vars")
}

/// What is said of a refused event in its behaviour.
pub(super) fn told(number: u64, why: &str, heard: &impl Debug) -> [String; 2] {
    const MOST: usize = 600;
    let heard: String = format!("{heard:?}").chars().take(MOST).collect();
    [
        format!("Event {number} of the engine is refused because {why}."),
        format!("It is {heard}."),
    ]
}

/// A judge of a store on a block device, which leads a mirror.
pub trait Leads {
    /// The mirror.
    type Mirror: Led;
    /// What is read off a device.
    type Found: Debug;

    /// The invariants are checked after every end, and each time after this many events.
    const CHECK_EVERY: u64;

    /// The mirror, its state, and the notes.
    #[allow(clippy::type_complexity)] // A name would say less.
    fn led(&self) -> (&Self::Mirror, &Boxed<Self::Mirror>, &Notes<Self::Mirror>);

    /// The same, to take a step.
    #[allow(clippy::type_complexity)] // A name would say less.
    fn led_mut(
        &mut self,
    ) -> (
        &mut Self::Mirror,
        &mut Boxed<Self::Mirror>,
        &mut Notes<Self::Mirror>,
    );

    /// The constants of the spec in this episode.
    fn constants(&self) -> Constants;

    /// Whether a step is one of so many alike that a refusal does not list it.
    fn is_one_of_many(_action: &ActionOf<Self::Mirror>) -> bool {
        false
    }

    /// Takes the steps of an event.
    ///
    /// # Errors
    /// Why the mirror does not allow it.
    fn accept(&mut self, client: Option<u8>, heard: &Heard<Self::Found>) -> Accepted;

    /// Notes the situations of steps, and so many of the last steps, from now on.
    fn note(&mut self, steps: usize) {
        self.led_mut().2.begin(steps);
    }

    /// The noted steps as a behaviour.
    fn recorded(&self) -> Option<Recorded> {
        let (mirror, _, notes) = self.led();
        notes.recording(mirror, self.constants())
    }

    /// The noted situations.
    fn situations(&self) -> Situations {
        self.led().2.situations()
    }

    /// The counts of accepted events and steps.
    fn tally(&self) -> &Tally {
        &self.led().2.tally
    }

    /// Judges the next entries.
    ///
    /// # Errors
    /// The first entry that is refused.
    fn hear(&mut self, entries: Vec<Entry<Self::Found>>) -> Result<(), Box<RefusalOf<Self>>> {
        for Entry { client, heard } in entries {
            self.led_mut().2.hears();
            if let Err(why) = self.accept(client, &heard).and_then(|()| self.check()) {
                return Err(Box::new(self.refuse(client, heard, why)));
            }
            self.led_mut().2.tally.heard += 1;
        }
        Ok(())
    }

    /// Checks the invariants, if it is time.
    ///
    /// # Errors
    /// The one that is violated.
    fn check(&self) -> Accepted {
        let (mirror, state, notes) = self.led();
        let is_time = notes.tally.heard.is_multiple_of(Self::CHECK_EVERY);
        if notes.before.is_none() && !is_time {
            return Ok(());
        }
        match mirror.violated(state) {
            None => Ok(()),
            Some(invariant) => notes.claim(
                Err(format!("it leads to a state that violates {invariant}")),
                || holds(invariant),
            ),
        }
    }

    /// The refusal of an event.
    fn refuse(
        &self,
        client: Option<u8>,
        heard: Heard<Self::Found>,
        why: String,
    ) -> RefusalOf<Self> {
        let (mirror, state, notes) = self.led();
        let number = notes.tally.heard + 1;
        let told = told(number, &why, &heard);
        let behaviour = notes.finding((mirror, state), self.constants(), &told);
        let before = notes.before.as_ref().unwrap_or(state);
        let mut enabled = mirror.enabled(before);
        enabled.retain(|action| !Self::is_one_of_many(action));
        Refusal {
            number,
            client,
            state: state_text(&mirror.variables(before)),
            enabled,
            heard,
            why,
            behaviour,
        }
    }

    /// Keeps the state for the report of a later refusal.
    fn remember(&mut self) {
        let (_, state, notes) = self.led_mut();
        notes.before = Some(state.clone());
    }

    /// Takes a step.
    ///
    /// # Errors
    /// It is not enabled.
    fn take(&mut self, action: ActionOf<Self::Mirror>) -> Accepted {
        let may = self.step(&action, |mirror, state| mirror.try_take(state, &action));
        let may = may
            .then_some(())
            .ok_or_else(|| format!("{action:?} is not enabled"));
        self.claim(may, || Self::Mirror::formula(&action))
    }

    /// Takes a step through `by`, which returns whether it was enabled. `action` is its name.
    fn step(
        &mut self,
        action: &ActionOf<Self::Mirror>,
        by: impl FnOnce(&mut Self::Mirror, &mut StateOf<Self::Mirror>) -> bool,
    ) -> bool {
        let (mirror, state, notes) = self.led_mut();
        let before = notes.is_noting().then(|| state.clone());
        let may = by(mirror, state);
        if may {
            self.took(action, before.as_ref());
        }
        may
    }

    /// Notes that the mirror has taken a step from `before`.
    fn took(&mut self, action: &ActionOf<Self::Mirror>, before: Option<&Boxed<Self::Mirror>>) {
        let (mirror, state, notes) = self.led_mut();
        notes.took(action, (before, state), |before| {
            mirror.met(before, action, state)
        });
    }

    /// See `Notes::instead`.
    fn instead<T>(
        &self,
        accepted: Result<T, String>,
        claim: impl FnOnce() -> String,
    ) -> Result<T, String> {
        self.led().2.instead(accepted, claim)
    }

    /// See `Notes::claim`.
    fn claim<T>(
        &self,
        accepted: Result<T, String>,
        claim: impl FnOnce() -> String,
    ) -> Result<T, String> {
        self.led().2.claim(accepted, claim)
    }
}

/// What a judge refuses.
pub type RefusalOf<J> =
    Refusal<Heard<<J as Leads>::Found>, <<J as Leads>::Mirror as Model>::Action>;

/// What a judge has counted, and what it has refused.
pub(super) type Told<J> = (Tally, Option<Box<RefusalOf<J>>>);

/// A judge, and what it has refused.
pub(super) type Judged<J> = (J, Option<Box<RefusalOf<J>>>);

/// Runs the episode again whose event was refused, with notes, so that it is told as a behaviour.
///
/// # Errors
/// That of the second run.
pub(super) fn told_again<J: Leads, E>(
    (judge, refusal): Judged<J>,
    again: impl FnOnce() -> Result<Judged<J>, E>,
) -> Result<Told<J>, E> {
    let tally = judge.tally().clone();
    let Some(refusal) = refusal else {
        return Ok((tally, None));
    };
    let second = again()?
        .1
        .filter(|second| second.number == refusal.number && second.why == refusal.why);
    Ok((tally, Some(second.unwrap_or(refusal))))
}

/// Records episodes on `stores` stores in turn until the budget is used up or one is refused, and
/// notes in `cover` what they have covered; none is interrupted. `record` runs the episode of a
/// store and a seed.
///
/// # Errors
/// That of `record`.
pub(super) fn cover_with<J: Leads, E>(
    cover: &mut Cover<(usize, u64), RefusalOf<J>>,
    (seed, budget): (u64, Budget),
    stores: usize,
    record: impl Fn(usize, u64) -> Result<Judged<J>, E>,
) -> Result<(), E> {
    let began = Instant::now();
    let mut seeds = Random::new(seed);
    let mut heard = Situations::new();
    for n in 0_usize.. {
        if budget.is_used_up(n as u64, cover.events, began) || cover.refusal.is_some() {
            break;
        }
        let of = (n % stores, seeds.word());
        let (judge, refusal) = record(of.0, of.1)?;
        cover.events += judge.tally().heard;
        cover.refusal = refusal.map(|refusal| (of, refusal));
        for (label, situations) in judge.situations() {
            heard.entry(label).or_default().extend(situations);
        }
    }
    cover.hear(heard);
    Ok(())
}
