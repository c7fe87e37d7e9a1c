//! What the judges of ring and mini-pages have in common: what is accepted is counted, what is refused is told with the state before it.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};

/// Something that the mirror does not do.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal<Heard, Action> {
    /// Its number in the recording, from 1.
    pub number: u64,
    /// Whose thread.
    pub client: u8,
    /// What was heard.
    pub heard: Heard,
    /// Why it is refused.
    pub why: String,
    /// The mirror's state before it, as TLA+.
    pub state: String,
    /// What the client could have done.
    pub enabled: Vec<Action>,
}

impl<Heard: Debug, Action: Debug> Display for Refusal<Heard, Action> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal {
            number,
            client,
            heard,
            ..
        } = self;
        writeln!(
            f,
            "event {number} of client c{} is refused: {heard:?}",
            client + 1
        )?;
        writeln!(f, "because {}", self.why)?;
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
    /// What was accepted.
    pub tally: Tally,
    /// The first refusal, with its episode.
    pub refusal: Option<(Episode, Box<Refusal>)>,
}

impl<Episode, Refusal> Default for Report<Episode, Refusal> {
    fn default() -> Self {
        Report {
            episodes: 0,
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

    /// Adds what came of an episode.
    pub fn add(&mut self, episode: Episode, (tally, refusal): (Tally, Option<Box<Refusal>>)) {
        self.episodes += 1;
        self.tally.add(&tally);
        self.refusal = refusal.map(|refusal| (episode, refusal));
    }
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
