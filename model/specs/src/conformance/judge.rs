//! The judge: takes, for each recorded entry, the step of the mirror that corresponds to it.
//!
//! The first entry for which the mirror has no step, or another outcome, is a [`Refusal`]. The
//! correspondence is described in [`super`], and implemented here.

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

/// The invariants are checked after every crash, and each time after this many events.
const CHECK_EVERY: u64 = 61;

/// An event that the mirror does not allow.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The number of the event in the recording, from 1.
    pub number: u64,
    /// The event.
    pub entry: Entry,
    /// Why it is refused.
    pub why: String,
    /// The mirror's state before the event, as TLA+.
    pub state: String,
    /// The steps that were enabled. (Crashes and restarts are always enabled once the store is
    /// open.)
    pub enabled: Vec<String>,
}

impl Refusal {
    /// The refusal as a finding, in the terms that all modes of the oracle share. `what` was run.
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

/// A page image that has been copied and not written yet.
#[derive(Clone, Copy)]
pub(super) struct Copied {
    pub(super) image: Image,
    /// The LSN of the first change since it was copied. 0 if there is none.
    pub(super) changed: u64,
    /// Whether its write has begun.
    pub(super) writing: bool,
}

/// A flush of the device.
#[derive(Clone, Copy)]
pub(super) enum Flush {
    Log,
    Checkpoint,
}

/// The page versions that a flush in progress need not cover, by key: what was on the device, and
/// what has been written over it since.
type Spared = BTreeMap<u8, Vec<Image>>;

/// A step of the mirror.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// An action without a further choice.
    Take(Action),
    /// A client calls a write (`CallWrite`).
    CallWrite {
        /// The client.
        client: u8,
        /// The key.
        key: u8,
        /// Whether it writes `Absent`.
        absent: bool,
    },
    /// A crash, and what it left (`Crash`).
    Crash(Left),
    /// Not a step of the spec: an older copy of a page is written back.
    WriteBackCopy {
        /// The page.
        key: u8,
    },
    /// Not a step of the spec: a flush did not cover what was written while it was in progress.
    SparedByFlush {
        /// The page.
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

/// Counts of recorded events and of steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events accepted, by kind.
    pub heard: BTreeMap<&'static str, u64>,
    /// Steps taken, by action.
    pub taken: BTreeMap<&'static str, u64>,
    /// Events for which the mirror takes no step, by reason.
    pub stutters: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Adds the counts of another tally.
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
    /// Page images that are copied and not written yet.
    pub(super) copied: Vec<Option<Copied>>,
    /// Flushes in progress: see [`Flush`].
    pub(super) flushes: [Option<Spared>; 2],
    /// For each client, the LSN of a `ChangePage` that was taken before its event.
    pub(super) promised: Vec<Option<u64>>,
    /// Records that the mirror has redone and that the engine, which goes page by page, still has
    /// to redo.
    pub(super) to_redo: Vec<VecDeque<u64>>,
    /// The process has ended. Later events show whether that was a restart or a crash.
    pub(super) restarting: Option<Arc<Survey>>,
    /// What the process that began last has read.
    pub(super) read: Option<Arc<Survey>>,
    /// Something failed that the spec does not model. Until the next opening the engine does less
    /// than the mirror allows.
    pub(super) silent: bool,
    /// Whether the checkpoint in progress has nothing to record.
    pub(super) empty_checkpoint: bool,
    /// The state before an event of several steps.
    pub(super) before: Option<Box<State>>,
    number: u64,
    tally: Tally,
    trace: Option<Vec<(Step, State)>>,
    /// The length of the trace before the latest entry.
    settled: usize,
}

pub(super) type Accepted = Result<(), String>;

impl Judge {
    /// A judge for a store that has just been opened, with nothing in its log after the beginning
    /// of `scale`. `keys` gives the key on each page.
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
            read: None,
            silent: false,
            empty_checkpoint: false,
            before: None,
            number: 0,
            tally: Tally::default(),
            trace: None,
            settled: 0,
        }
    }

    /// Records every step from now on.
    pub(crate) fn keep_trace(&mut self) {
        self.trace = Some(Vec::new());
    }

    /// The recorded steps, each with the state after it.
    #[must_use]
    pub fn trace(&self) -> &[(Step, State)] {
        self.trace.as_deref().unwrap_or_default()
    }

    /// The recorded steps of the entry that was judged last.
    #[must_use]
    pub(super) fn latest(&self) -> Vec<Step> {
        let latest = &self.trace()[self.settled..];
        latest.iter().map(|(step, _)| step.clone()).collect()
    }

    /// The mirror that judges.
    #[must_use]
    pub fn mirror(&self) -> &WalRecovery {
        &self.mirror
    }

    /// The mirror's current state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The counts of accepted events and steps.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Judges the next entries.
    ///
    /// # Errors
    /// The first entry that is refused.
    pub(crate) fn hear(&mut self, entries: Vec<Entry>) -> Result<(), Box<Refusal>> {
        for entry in entries {
            self.number += 1;
            self.before = None;
            self.settled = self.trace().len();
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
        // A client without a call may call anything.
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

    /// Keeps the state for the report of a later refusal.
    pub(super) fn remember(&mut self) {
        self.before = Some(Box::new(self.state));
    }

    /// Takes a step of the mirror.
    pub(super) fn take(&mut self, action: Action) -> Accepted {
        if !self.mirror.try_take(&mut self.state, action) {
            return Err(format!("{action:?} is not enabled"));
        }
        self.took(Step::Take(action));
        Ok(())
    }

    /// Records that the mirror has taken a step.
    pub(super) fn took(&mut self, step: Step) {
        *self.tally.taken.entry(step.label()).or_default() += 1;
        if let Some(trace) = &mut self.trace {
            trace.push((step, self.state));
        }
    }

    /// Counts an event for which the mirror takes no step.
    pub(super) fn stutter(&mut self, why: &'static str) -> Accepted {
        *self.tally.stutters.entry(why).or_default() += 1;
        Ok(())
    }
}
