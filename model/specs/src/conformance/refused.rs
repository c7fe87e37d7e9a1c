//! What the judges of ring, mini-pages and shadowed pages have in common: they count what they
//! accept, and report what they refuse with the state before it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::{self, Debug, Display};
use std::time::Instant;

use super::Budget;
use super::module::Module;
use treering_oracle::deadline::Deadline;
use treering_oracle::random::Random;
use treering_oracle::{Check, Finding};

/// An event that the mirror does not allow.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal<Heard, Action> {
    /// The number of the event in the recording, from 1.
    pub number: u64,
    /// The client whose thread it is. `None` for background work and recovery.
    pub client: Option<u8>,
    /// The event.
    pub heard: Heard,
    /// Why it is refused.
    pub why: String,
    /// The mirror's state before the event, as TLA+.
    pub state: String,
    /// The steps that the client could have taken.
    pub enabled: Vec<Action>,
    /// The steps before the event, and what it claims, as a TLA+ behaviour that TLC rejects; or why
    /// there is none.
    pub behaviour: Result<Module, String>,
}

impl<Heard: Debug, Action: Debug> Refusal<Heard, Action> {
    /// The refusal as a finding of the oracle, in the terms that all modes share. `what` was run.
    #[must_use]
    pub fn in_words(&self, what: &str) -> Finding {
        Finding {
            check: Check::Conformance,
            operation: None,
            what: what.to_owned(),
            expected: "an event that the mirror allows".to_owned(),
            found: self.to_string(),
        }
    }
}

impl<Heard: Debug, Action: Debug> Display for Refusal<Heard, Action> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal {
            number,
            client,
            heard,
            ..
        } = self;
        let who = client.map(|c| format!(" of client c{}", c + 1));
        writeln!(
            f,
            "event {number}{} is refused because {}",
            who.unwrap_or_default(),
            self.why
        )?;
        writeln!(f, "heard: {heard:?}")?;
        writeln!(f, "enabled: {:?}", self.enabled)?;
        writeln!(f, "the state before it:\n{}", self.state)
    }
}

/// Counts of accepted events and of the mirror's steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events accepted.
    pub heard: u64,
    /// Steps taken, by action. Steps that are not actions of the spec are in parentheses.
    pub taken: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Counts a step.
    pub fn took(&mut self, label: &'static str) {
        *self.taken.entry(label).or_default() += 1;
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Tally) {
        self.heard += other.heard;
        for (label, n) in &other.taken {
            *self.taken.entry(label).or_default() += n;
        }
    }

    /// Returns the given actions that were never taken.
    #[must_use]
    pub fn never<'a>(&self, labels: &[&'a str]) -> Vec<&'a str> {
        let never = |label: &&&str| !self.taken.contains_key(**label);
        labels.iter().filter(never).copied().collect()
    }
}

/// The result of episodes.
#[derive(Clone, Debug)]
pub struct Report<Episode, Refusal> {
    /// Episodes that started.
    pub episodes: u64,
    /// Episodes that the budget interrupted.
    pub interrupted: u64,
    /// Counts of accepted events and steps.
    pub tally: Tally,
    /// The first refused event, with its episode.
    pub refusal: Option<(Episode, Box<Refusal>)>,
}

impl<Episode, Refusal> Default for Report<Episode, Refusal> {
    fn default() -> Self {
        Report {
            episodes: 0,
            interrupted: 0,
            tally: Tally::default(),
            refusal: None,
        }
    }
}

impl<Episode, Refusal> Report<Episode, Refusal> {
    /// The number of accepted events.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.tally.heard
    }

    /// Runs episodes until the budget is used up or an event is refused. `one` gets the number of
    /// the episode, from 0, its seed and its deadline.
    pub(super) fn of(
        seed: u64,
        budget: Budget,
        mut one: impl FnMut(u64, u64, &Deadline) -> (Episode, (Tally, Option<Box<Refusal>>)),
    ) -> Self {
        let Ok(report) = Self::try_of(seed, budget, |n, seed, until| {
            Ok::<_, Infallible>(one(n, seed, until))
        });
        report
    }

    /// Like [`Report::of`], but stops at the first episode that cannot run.
    pub(super) fn try_of<E>(
        seed: u64,
        budget: Budget,
        mut one: impl FnMut(u64, u64, &Deadline) -> Result<(Episode, (Tally, Option<Box<Refusal>>)), E>,
    ) -> Result<Self, E> {
        let began = Instant::now();
        let mut seeds = Random::new(seed);
        let mut report = Report::default();
        loop {
            if budget.is_used_up(report.episodes, report.accepted(), began)
                || report.refusal.is_some()
            {
                return Ok(report);
            }
            let until = budget.deadline(began);
            let (episode, (tally, refusal)) = one(report.episodes, seeds.word(), &until)?;
            report.episodes += 1;
            report.interrupted += u64::from(until.has_struck());
            report.tally.add(&tally);
            report.refusal = refusal.map(|refusal| (episode, refusal));
        }
    }
}

/// The number of clients of an episode, if the numbers alternate. Half of the episodes have a
/// single client, so that their seeds determine them.
pub(super) fn in_turns(episode: u64) -> u8 {
    const CLIENTS: [u8; 6] = [1, 2, 1, 4, 1, 8];
    CLIENTS[(episode % CLIENTS.len() as u64) as usize]
}

/// `Ok`, or why the mirror does not allow it.
pub type Accepted = Result<(), String>;

/// Checks that the engine and the mirror agree on a value.
pub(super) fn same<T: PartialEq + Debug>(what: &str, engine: T, mirror: T) -> Accepted {
    if engine == mirror {
        Ok(())
    } else {
        Err(format!(
            "{what}: the engine says {engine:?}, the mirror {mirror:?}"
        ))
    }
}
