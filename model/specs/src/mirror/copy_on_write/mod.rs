//! The mirror of `specs/copy_on_write/CopyOnWrite.tla`: the copy-on-write page store with its page
//! table, and the superblock in two places (`engine/src/pages/cow.rs`, `engine/src/layout.rs`).
//!
//! ```text
//! state.rs       the variables (CowState.tla)
//! reading.rs     what recovery reads, and what a crash may leave (CowState.tla)
//! steps.rs       the actions (CowPages.tla, CopyOnWrite.tla)
//! crash.rs       crashes, restarts and recovery (CopyOnWrite.tla)
//! invariants.rs  the invariants, and what must be reachable
//! values.rs      a state as TLA+ values
//! situation.rs   describes the part of a state that a step depends on
//! unbounded.rs   the mirror as the judge of a recording
//! ```

mod crash;
mod invariants;
mod reading;
mod situation;
mod state;
mod steps;
pub mod unbounded;
mod values;

use super::copy_on_write_room as room;

use self::invariants::INVARIANTS;
pub use self::state::{
    Call, Checkpoint, Content, InSlot, Kind, Phase, Record, State, Step, Super, Writing,
};
use super::{Discards, Mirror, bounded, count, listed, named, properties, subset};
use crate::{Config, ConfigError, Value};
use room::{BLOCKS, CLIENTS, LOG, N, PAGES, SLOTS, Set};

/// A step. Clients, pages and blocks are numbered from 0, slots from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
pub enum Action {
    /// A client calls a get of a page's key.
    CallGet(u8, u8),
    /// A client calls a put of a page's key; if the last is set, a delete.
    CallWrite(u8, u8, bool),
    /// A get reads its page.
    ReadPage(u8),
    /// A get returns.
    AnswerGet(u8),
    /// A put takes effect that makes its page.
    BuildPage(u8),
    /// A put takes effect.
    ChangePage(u8),
    /// A delete takes effect.
    DropPage(u8),
    /// A write is durable, and its client is told.
    Acknowledge(u8),
    /// After a failed flush, a client is told that its call has failed.
    FailCall(u8),
    /// The log is durable up to here.
    CommitLog(N),
    /// A page is written to this slot.
    WriteImage(u8, u8),
    /// A page that exists no more is freed.
    FreePage(u8),
    /// The table block that names the image is written, after a flush.
    NameImage,
    /// The changed blocks of the table are written, after a flush.
    WriteTable,
    /// The table is flushed.
    FinishTable,
    /// Everything that was written becomes durable.
    FlushDevice,
    /// A flush fails.
    FailFlush,
    /// A checkpoint begins.
    BeginCheckpoint,
    /// The snapshot is written to this slot.
    WriteSnapshot(u8),
    /// The table names the images that the checkpoint needs.
    PersistTable,
    /// The superblock is written, after a flush.
    WriteSuper,
    /// The superblock is flushed.
    FinishCheckpoint,
    /// A power failure. The log is left up to the first number. The digits of the second select the
    /// version of each place that is left, in base of the number of its versions.
    Crash(N, u32),
    /// The process is restarted. It finds the log up to this LSN.
    Restart(N),
    /// Recovery redoes a record.
    RedoRecord,
    /// Redo is complete: dead pages are struck off the table.
    FinishRedo,
    /// The store is up.
    Open,
}

/// The names of all actions.
pub const LABELS: &[&str] = <Action as strum::VariantNames>::VARIANTS;

/// The seeded bugs. See the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Bug {
    None,
    AcksAtOnce,
    RefusedShows,
    PageBeforeLog,
    TrimsLate,
    TableBeforePage,
    ReusesPersisted,
    ReusesDead,
    FreesBeforeTable,
    FreesBeforeLog,
    FreesBeforeSuper,
    SkipsSweep,
    SkipsTable,
    SnapshotBeforeLog,
    SuperBeforeSnapshot,
    TakesOlder,
    OnePlace,
    TrustsTable,
    TrustsSuperblock,
    TrustsWhatItReads,
    RestartSkipsFlush,
    StopsRedoEarly,
}

/// The module with its constants. Sets of clients, pages and writes are bit sets.
#[derive(Clone, Debug)]
pub struct CopyOnWrite {
    clients: Vec<Value>,
    pages: Vec<Value>,
    blocks: usize,
    slots: u8,
    values: N,
    absent: Value,
    pending: Value,
    /// Whether there is a store whose table is written each time, and one whose table is written at
    /// checkpoints.
    each: bool,
    checkpoints: bool,
    tears: bool,
    discards: Discards,
    bug: Bug,
    second: Set,
    deletes: Set,
    either: Set,
    home: u8,
    at_home: Set,
    readers: Set,
    max_crashes: N,
    max_restarts: N,
    flushes_fail: bool,
    /// Whether only the first free slot may be taken, and checkpoints need something to give up.
    bounded: bool,
    invariants: Vec<&'static str>,
}

impl stateright::Model for CopyOnWrite {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let persists = [(true, self.each), (false, self.checkpoints)];
        let persists = persists.into_iter().filter(|(_, is)| *is);
        persists.map(|(each, _)| self.initial(each)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.enabled(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = *state;
        self.take(&mut next, action);
        Some(next)
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        properties(&INVARIANTS, &self.invariants)
    }
}

impl Mirror for CopyOnWrite {
    const SPEC: &'static str = "CopyOnWrite";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        bounded(
            config,
            &[
                "BlockOf",
                "MayGet",
                "MayWrite",
                "MayTake",
                "MayCheckpoint",
                "MayFail",
                "MayCrash",
                "MayRestart",
            ],
        )?;
        let clients = config.members("Clients", CLIENTS)?;
        let pages = config.members("Pages", PAGES)?;
        // A client whose call is outstanding may add one more record after the last number.
        let values = count(config, "Values", LOG + 1 - CLIENTS)?;
        let writes: Vec<Value> = (1..=values as i64).map(Value::Int).collect();
        let home = config.constant_value("Home")?;
        let home = pages.iter().position(|page| page == home);
        let kinds = ["each", "checkpoints"].map(Value::str);
        let persists: Set = subset(config, "Persists", &kinds)?;
        Ok(Self {
            blocks: count(config, "Blocks", BLOCKS)?,
            slots: count(config, "Slots", SLOTS)? as u8,
            values: values as N,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            each: persists & 1 != 0,
            checkpoints: persists & 2 != 0,
            tears: config.bool("Tears")?,
            discards: named(config, "Discards")?,
            bug: named(config, "Bug")?,
            second: subset(config, "Second", &pages)?,
            deletes: subset(config, "Deletes", &writes)?,
            either: subset(config, "Either", &writes)?,
            home: home.ok_or_else(|| config.wrong("Home", "expected one of Pages"))? as u8,
            at_home: subset(config, "AtHome", &writes)?,
            readers: subset(config, "Readers", &clients)?,
            max_crashes: N::from(config.int("MaxCrashes", u8::MAX)?),
            max_restarts: N::from(config.int("MaxRestarts", u8::MAX)?),
            flushes_fail: config.bool("FlushesFail")?,
            bounded: true,
            invariants: listed(config, &INVARIANTS)?,
            clients,
            pages,
        })
    }

    fn label(action: &Action) -> &'static str {
        action.into()
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        self.values_of(state)
    }
}
