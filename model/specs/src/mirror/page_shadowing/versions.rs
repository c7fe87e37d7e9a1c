//! The mirror of `specs/page_shadowing/PageVersions.tla`: shadowed pages on a medium that decays,
//! and the page versions that reveal it.
//!
//! ```text
//! versions.rs             variables and actions
//! versions/steps.rs       guards and effects
//! versions/invariants.rs  the invariants
//! ```
//!
//! [`PageShadowing`] does everything that does not concern versions.

mod invariants;
mod steps;

use stateright::{Model, Property};
use strum::EnumCount;

use self::invariants::INVARIANTS;
use super::state::{N, PAGES, Set, State as Shadow};
use super::{Action as Shadowing, Mirror, PageShadowing, bounded, listed};
use crate::{Config, ConfigError, Value};

/// A step. Pages, blocks and versions are numbered as in [`Shadow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A step of the protocol without versions, which may set some.
    Of(Shadowing),
    /// A client's page is damaged, and the client is told so.
    Refuse(u8),
    /// A page, in one of the ways in which it may be read, is reported as damaged.
    Tell(u8),
    /// A checkpoint takes the redo start and the versions.
    BeginCheckpoint,
    /// The device is flushed, and the redo start and versions are recorded.
    EndCheckpoint,
    /// A block of a page turns into this.
    Rot(u8, u8, Becomes),
    /// The redo log seems to end here.
    FindEndEarly(N),
}

/// The content of a block after it has decayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumCount, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Becomes {
    /// Its checksum fails.
    NotWhole,
    /// The block reads as zeros.
    Zeros,
    /// The version before the last write.
    Older,
}

/// A checkpoint in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Taken {
    redo_start: N,
    versions: [N; PAGES],
}

/// The variables of the module. Sets contain pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct State {
    shadow: Shadow,
    version: [N; PAGES],
    exact: Set,
    snapshot: [N; PAGES],
    taken: Option<Taken>,
    told: Set,
    spoilt: N,
}

/// The module with its constants.
#[derive(Clone, Debug)]
pub struct PageVersions {
    base: PageShadowing,
    becomes: Vec<Becomes>,
    max_rots: N,
    max_lost_ends: N,
}

impl Model for PageVersions {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            shadow: Shadow::initial(),
            version: [0; PAGES],
            exact: self.set_of(|_| true),
            snapshot: [0; PAGES],
            taken: None,
            told: 0,
            spoilt: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.enabled(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = *state;
        self.take(&mut next, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        crate::mirror::properties(&INVARIANTS, &self.base.invariants)
    }
}

impl Mirror for PageVersions {
    const SPEC: &'static str = "PageVersions";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        bounded(config, &["MayRot", "MayBecome", "MayLoseEnd"])?;
        let becomes = config.members("Becomes", Becomes::COUNT)?;
        let of_name = |name: &Value| {
            let known = match name {
                Value::Str(name) => name.parse().ok(),
                _ => None,
            };
            let unknown = || config.wrong("Becomes", format!("the mirror does not know {name}"));
            known.ok_or_else(unknown)
        };
        let mut base = PageShadowing::of(config, listed(config, &INVARIANTS)?)?;
        base.rotten = config.constant_value("Rotten")?.clone();
        Ok(Self {
            base,
            becomes: becomes.iter().map(of_name).collect::<Result<_, _>>()?,
            max_rots: N::from(config.int("MaxRots", u8::MAX)?),
            max_lost_ends: N::from(config.int("MaxLostEnds", u8::MAX)?),
        })
    }

    fn label(action: &Action) -> &'static str {
        match action {
            Action::Of(step) => match step {
                Shadowing::CallGet(..) | Shadowing::CallWrite(..) => "Ask",
                Shadowing::ReadPage(_) => "LookAtPage",
                Shadowing::AnswerGet(_) | Shadowing::Acknowledge(_) => "GiveAnswer",
                Shadowing::ChangePage(_) => "Change",
                Shadowing::CommitLog(_) => "Commit",
                Shadowing::WriteDelta(_) | Shadowing::WriteWhole(_) => "WriteBack",
                Shadowing::Trim(_) => "Discard",
                Shadowing::Evict(_) => "Drop",
                Shadowing::Load(..) => "Accept",
                Shadowing::FlushDevice | Shadowing::FailFlush => "Flush",
                Shadowing::Checkpoint => "Checkpoint",
                Shadowing::Crash(..) => "LosePower",
                Shadowing::Restart(..) => "StartAgain",
                Shadowing::RedoRecord => "Redo",
                Shadowing::FinishRedo => "EndRedo",
            },
            Action::Refuse(_) => "Refuse",
            Action::Tell(_) => "Tell",
            Action::BeginCheckpoint => "BeginCheckpoint",
            Action::EndCheckpoint => "EndCheckpoint",
            Action::Rot(..) => "Rot",
            Action::FindEndEarly(_) => "FindEndEarly",
        }
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        let mut all = self.base.values_of(&state.shadow);
        let taken = match &state.taken {
            None => Value::record([("at", Value::str("none"))]),
            Some(taken) => Value::record([
                ("at", Value::str("taken")),
                ("redoStart", Value::int(taken.redo_start)),
                ("versions", self.lsns(&taken.versions)),
            ]),
        };
        all.extend([
            ("version", self.lsns(&state.version)),
            ("exact", self.page_set(state.exact)),
            ("snapshot", self.lsns(&state.snapshot)),
            ("taken", taken),
            ("told", self.page_set(state.told)),
            ("spoilt", Value::int(state.spoilt)),
        ]);
        all
    }
}

impl PageVersions {
    fn lsns(&self, lsns: &[N; PAGES]) -> Value {
        self.base.by_page(lsns, |lsn| Value::int(*lsn))
    }

    fn page_set(&self, set: Set) -> Value {
        let pages = self.base.pages().filter(|p| set >> p & 1 == 1);
        Value::set(pages.map(|p| self.base.pages[p].clone()))
    }
}
