//! The judge: takes, for everything that was heard, the step of the mirror that it is.
//!
//! The first thing heard for which the mirror has no step, or another outcome, is a [`Refusal`].
//! What stands for what is said in [`super`]; here is how.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use treering_engine::{PageId, Survey};

use super::record::Entry;
use super::scale::Scale;
use crate::Mirror;
use crate::mirror::wide::wal_recovery::unbounded::Left;
use crate::mirror::wide::wal_recovery::{Action, Image, State, WalRecovery};
use crate::value::state_text;
use treering_oracle::{Check, Finding};

/// The invariants are looked at after every crash and after so many events.
const CHECK_EVERY: u64 = 61;

/// Something that the mirror does not do.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Its number in the recording, from 1.
    pub number: u64,
    /// What was heard.
    pub entry: Entry,
    /// Why it is refused.
    pub why: String,
    /// The mirror's state before it, as TLA+.
    pub state: String,
    /// The steps that were enabled (crashes and restarts always are, once the store is up).
    pub enabled: Vec<String>,
}

impl Refusal {
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

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Refusal { number, why, .. } = self;
        let entry = &self.entry;
        let who = entry.client.map(|c| format!(" of client c{}", c + 1));
        writeln!(
            f,
            "event {number}{} is refused because {why}",
            who.unwrap_or_default(),
        )?;
        writeln!(f, "heard: {:?}", entry.heard)?;
        writeln!(f, "enabled: {}", self.enabled.join(", "))?;
        writeln!(f, "the state before it:\n{}", self.state)
    }
}

/// A page image on its way to the device.
#[derive(Clone, Copy)]
pub(super) struct Copied {
    pub(super) image: Image,
    /// LSN of the first change since it was copied; 0: none.
    pub(super) changed: u64,
    /// It is on its way to the device.
    pub(super) writing: bool,
}

/// A flush of the device.
#[derive(Clone, Copy)]
pub(super) enum Flush {
    Log,
    Checkpoint,
}

/// What a flush on its way need not cover, by key: what was on the device, and what was written
/// over it since.
type Spared = BTreeMap<u8, Vec<Image>>;

/// A step of the mirror.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// One without a choice.
    Take(Action),
    /// `CallWrite`.
    CallWrite {
        /// Which client.
        client: u8,
        /// Which key.
        key: u8,
        /// Whether it writes `Absent`.
        absent: bool,
    },
    /// `Crash`.
    Crash(Left),
    /// No step of the spec: an older copy of a page is written back.
    WriteBackCopy {
        /// Which page.
        key: u8,
    },
    /// No step of the spec: a flush did not cover what was written while it was on its way.
    SparedByFlush {
        /// Which page.
        key: u8,
    },
}

impl Step {
    /// The action's name.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Step::Take(action) => WalRecovery::label(action),
            Step::CallWrite { .. } => "CallWrite",
            Step::Crash(_) => "Crash",
            Step::WriteBackCopy { .. } => "(WriteBackCopy)",
            Step::SparedByFlush { .. } => "(SparedByFlush)",
        }
    }
}

/// How often each thing was heard and each step taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events accepted, by kind.
    pub heard: BTreeMap<&'static str, u64>,
    /// Steps taken, by action.
    pub taken: BTreeMap<&'static str, u64>,
    /// Events for which the mirror has no step, by the reason.
    pub stutters: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Adds another one's counts.
    pub fn add(&mut self, other: &Tally) {
        let pairs = [
            (&mut self.heard, &other.heard),
            (&mut self.taken, &other.taken),
            (&mut self.stutters, &other.stutters),
        ];
        for (mine, theirs) in pairs {
            for (name, n) in theirs {
                *mine.entry(name).or_default() += n;
            }
        }
    }
}

/// Judges one recording.
pub struct Judge {
    pub(super) mirror: WalRecovery,
    pub(super) state: State,
    pub(super) scale: Scale,
    pub(super) keys: BTreeMap<PageId, u8>,
    /// Pages on their way to the device.
    pub(super) copied: Vec<Option<Copied>>,
    /// Flushes on their way: see [`Flush`].
    pub(super) flushes: [Option<Spared>; 2],
    /// `ChangePage` taken before it was heard, by client: the LSN.
    pub(super) promised: Vec<Option<u64>>,
    /// Records that the mirror has redone and the engine, which goes page by page, still has to.
    pub(super) to_redo: Vec<VecDeque<u64>>,
    /// The process ended; whether that was a restart or a crash shows later.
    pub(super) restarting: Option<Arc<Survey>>,
    /// Something failed of which the spec does not know: until the next opening the engine does
    /// less than the mirror may.
    pub(super) silent: bool,
    /// The checkpoint on its way has nothing to record.
    pub(super) empty_checkpoint: bool,
    /// The state before an event of several steps.
    pub(super) before: Option<Box<State>>,
    number: u64,
    tally: Tally,
    trace: Option<Vec<(Step, State)>>,
}

pub(super) type Accepted = Result<(), String>;

impl Judge {
    /// A judge for a store that has just been opened, with nothing in its log behind the beginning
    /// of `scale`. `keys` says which page holds which key.
    #[must_use]
    pub fn new(clients: usize, keys: BTreeMap<PageId, u8>, scale: Scale) -> Judge {
        let n = keys.len();
        Judge {
            mirror: WalRecovery::unbounded(clients, n, scale.per_block as usize),
            state: State::first(),
            scale,
            keys,
            copied: vec![None; n],
            flushes: [None, None],
            promised: vec![None; clients],
            to_redo: vec![VecDeque::new(); n],
            restarting: None,
            silent: false,
            empty_checkpoint: false,
            before: None,
            number: 0,
            tally: Tally::default(),
            trace: None,
        }
    }

    /// Keeps every step from now on.
    pub fn keep_trace(&mut self) {
        self.trace = Some(Vec::new());
    }

    /// The steps kept, each with the state after it.
    #[must_use]
    pub fn trace(&self) -> &[(Step, State)] {
        self.trace.as_deref().unwrap_or_default()
    }

    /// The mirror that judges.
    #[must_use]
    pub fn mirror(&self) -> &WalRecovery {
        &self.mirror
    }

    /// The mirror's state now.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What was accepted.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Judges the next things heard.
    ///
    /// # Errors
    /// The first that is refused.
    pub fn hear(&mut self, entries: Vec<Entry>) -> Result<(), Box<Refusal>> {
        for entry in entries {
            self.number += 1;
            self.before = None;
            if let Err(why) = self.accept(&entry).and_then(|()| self.check()) {
                return Err(Box::new(self.refuse(entry, why)));
            }
            *self.tally.heard.entry(entry.heard.kind()).or_default() += 1;
        }
        Ok(())
    }

    fn check(&self) -> Accepted {
        if self.before.is_none() && !self.number.is_multiple_of(CHECK_EVERY) {
            return Ok(());
        }
        match self.mirror.broken(&self.state) {
            None => Ok(()),
            Some(invariant) => Err(format!("it leads to a state that violates {invariant}")),
        }
    }

    fn refuse(&self, entry: Entry, why: String) -> Refusal {
        let before = self.before.as_deref().unwrap_or(&self.state);
        let mut enabled: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for action in self.mirror.steps(before) {
            let steps = enabled.entry(WalRecovery::label(&action)).or_default();
            steps.push(format!("{action:?}"));
        }
        // A client that asks for nothing may ask for anything.
        let brief = |(label, steps): (&str, Vec<String>)| match steps.len() {
            0..=4 => steps.join(", "),
            n => format!("{label} in {n} ways"),
        };
        Refusal {
            number: self.number,
            entry,
            why,
            state: state_text(&self.mirror.variables(before)),
            enabled: enabled.into_iter().map(brief).collect(),
        }
    }

    /// Keeps the state for a report of what follows.
    pub(super) fn remember(&mut self) {
        self.before = Some(Box::new(self.state));
    }

    /// The mirror takes a step.
    pub(super) fn take(&mut self, action: Action) -> Accepted {
        if !self.mirror.try_take(&mut self.state, action) {
            return Err(format!("{action:?} is not enabled"));
        }
        self.took(Step::Take(action));
        Ok(())
    }

    /// The mirror has taken a step.
    pub(super) fn took(&mut self, step: Step) {
        *self.tally.taken.entry(step.label()).or_default() += 1;
        if let Some(trace) = &mut self.trace {
            trace.push((step, self.state));
        }
    }

    /// The mirror has no step for this.
    pub(super) fn stutter(&mut self, why: &'static str) -> Accepted {
        *self.tally.stutters.entry(why).or_default() += 1;
        Ok(())
    }
}
