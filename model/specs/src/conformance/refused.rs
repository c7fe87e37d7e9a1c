//! What the judges of ring, mini-pages and shadowed pages have in common: what is accepted is
//! counted, what is refused is told with the state before it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::{self, Debug, Display};
use std::time::Instant;

use super::Budget;
use treering_oracle::deadline::Deadline;
use treering_oracle::random::Random;
use treering_oracle::{Check, Finding};

/// Something that the mirror does not do.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal<Heard, Action> {
    /// Its number in the recording, from 1.
    pub number: u64,
    /// Whose thread; `None`: nobody's, a pump's or a recovery's.
    pub client: Option<u8>,
    /// What was heard.
    pub heard: Heard,
    /// Why it is refused.
    pub why: String,
    /// The mirror's state before it, as TLA+.
    pub state: String,
    /// What the client could have done.
    pub enabled: Vec<Action>,
}

impl<Heard: Debug, Action: Debug> Refusal<Heard, Action> {
    /// The same in the words that all modes of the oracle share; `what` was run.
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

/// How much was heard, and how often each step was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events accepted.
    pub heard: u64,
    /// Steps taken, by action; what is no action of the spec is in parentheses.
    pub taken: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// One more step.
    pub fn took(&mut self, label: &'static str) {
        *self.taken.entry(label).or_default() += 1;
    }

    /// Adds another one's counts.
    pub fn add(&mut self, other: &Tally) {
        self.heard += other.heard;
        for (label, n) in &other.taken {
            *self.taken.entry(label).or_default() += n;
        }
    }

    /// Those of these actions that were never taken.
    #[must_use]
    pub fn never<'a>(&self, labels: &[&'a str]) -> Vec<&'a str> {
        let never = |label: &&&str| !self.taken.contains_key(**label);
        labels.iter().filter(never).copied().collect()
    }
}

/// What came of some episodes.
#[derive(Clone, Debug)]
pub struct Report<Episode, Refusal> {
    /// Episodes begun.
    pub episodes: u64,
    /// Episodes that the budget cut short.
    pub interrupted: u64,
    /// What was accepted.
    pub tally: Tally,
    /// The first refusal, with its episode.
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
    /// Events accepted.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.tally.heard
    }

    /// Runs episodes until the budget is used up or something is refused. `one` is told which it
    /// is, from 0, its seed, and until when it may take.
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

    /// As [`Report::of`], until an episode cannot be run.
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

/// Clients of one episode after another, if they come in turns: half of the episodes follow from
/// their seeds alone.
pub(super) fn in_turns(episode: u64) -> u8 {
    const CLIENTS: [u8; 6] = [1, 2, 1, 4, 1, 8];
    CLIENTS[(episode % CLIENTS.len() as u64) as usize]
}

/// Nothing, or why the mirror does not do it.
pub type Accepted = Result<(), String>;

/// What the engine says is what the mirror says.
pub(super) fn same<T: PartialEq + Debug>(what: &str, engine: T, mirror: T) -> Accepted {
    if engine == mirror {
        Ok(())
    } else {
        Err(format!(
            "{what}: the engine says {engine:?}, the mirror {mirror:?}"
        ))
    }
}
