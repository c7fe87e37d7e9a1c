//! The mirror of `specs/leaf_layout/LeafLayout.tla`: leaves that change their layout, under the redo
//! log (B-Trees Are Back §3.5).
//!
//! ```text
//! state.rs       the variables, and what follows from the log (LayoutState.tla)
//! pages.rs       what a page takes, and what to do with one that refuses a record
//! steps.rs       the actions (LeafLayout.tla)
//! invariants.rs  the invariants
//! values.rs      a state as TLA+ values
//! ```

mod invariants;
mod pages;
mod state;
mod steps;
mod values;

use self::invariants::INVARIANTS;
pub use self::state::{Call, Is, Layout, Leaf, Phase, Record, State};
use super::leaf_layout_room as room;
use super::{Mirror, bounded, count, listed, model, named, subset};
use crate::{Config, ConfigError, Value};
use room::{CLIENTS, KEYS, LOG, N, PAGES, Set, WRITES};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
pub enum Action {
    /// A client calls the next write, of this key.
    CallWrite(u8, u8),
    /// A write takes effect: its record is in the log and in the leaf.
    ChangeLeaf(u8),
    /// The leaf of a write refuses it, and is converted.
    LayOut(u8),
    /// The leaf of a write refuses it, and is split.
    Divide(u8),
    /// A write is durable, and its client is told.
    Acknowledge(u8),
    /// A client calls a get of a key.
    CallGet(u8, u8),
    /// A get reads the record.
    ReadLeaf(u8),
    /// A get returns.
    AnswerGet(u8),
    /// The log is written and flushed.
    CommitLog,
    /// A dirty page is written.
    WritePage(u8),
    /// The redo start moves forward.
    Checkpoint,
    /// A power failure. The log is left up to the first number. The digits of the second, in base
    /// of the number of each page's versions, select the version of each page that is left. The
    /// last says whether the next life allows dense pages.
    Crash(N, u32, bool),
    /// The process ends and is restarted, and the device lives on. The log is left up to this
    /// number. The last says whether the next life allows dense pages.
    Restart(N, bool),
    /// Recovery redoes a record.
    RedoRecord,
    /// Redo is complete. If a page of the index is lost, the store does not open.
    FinishRedo,
}

/// The seeded bugs. See the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Bug {
    /// The correct protocol.
    None,
    /// A conversion is not logged.
    RelayoutNotLogged,
    /// A conversion is logged after the put that needs it.
    RelayoutAfterPut,
    /// A conversion does not raise the page's LSN.
    RelayoutKeepsLsn,
    /// Redo leaves conversions out.
    RedoSkipsRelayouts,
    /// Conversions are not logged, and redo decides about them.
    DecidesAnew,
    /// Redo builds the right page of a split in the general layout.
    RedoBuildsGeneral,
    /// A dense page is split at the middle, also if the right page has too few places.
    SplitUnfit,
    /// Redo does not ask whether a page has a record already.
    RedoIgnoresPageLsn,
    /// The record of a split lacks a record that moves.
    SplitLogsTooLittle,
    /// No WAL rule.
    PageBeforeLog,
    /// A dense page takes a value of another length, and cuts it.
    CutsValue,
    /// A dense page puts a key without a place into the place of another.
    PlaceWraps,
    /// A delete does not free the place.
    DeleteKeepsBit,
    /// A conversion drops what does not fit.
    ConversionDropsRecord,
    /// A general page takes more than fits.
    Overfills,
    /// A page is converted back whether or not the new record will fit.
    ConvertsInVain,
    /// The redo start moves past conversions that no page on the device has.
    CheckpointForgetsRelayouts,
    /// The redo start moves before the pages are durable.
    CheckpointSkipsFlush,
    /// Some records are not redone.
    StopsRedoEarly,
    /// After the end of the process, what recovery reads is not flushed.
    TrustsWhatItReads,
    /// A write is acknowledged as soon as its record is appended.
    AcksAtOnce,
}

/// The module with its constants. Sets of clients, keys and writes are bit sets.
#[derive(Clone, Debug)]
pub struct LeafLayout {
    clients: Vec<Value>,
    /// In ascending order.
    keys: Vec<N>,
    values: N,
    pages: u8,
    room: N,
    key_size: N,
    fence: N,
    few: usize,
    /// Whether dense pages are made, as the options of a life may say.
    choices: Vec<bool>,
    absent: Value,
    pending: Value,
    bug: Bug,
    /// For each write, the set of its keys.
    plan: [Set; WRITES],
    deletes: Set,
    shorts: Set,
    writers: Set,
    readers: Set,
    read_keys: Set,
    max_log: N,
    max_crashes: N,
    max_restarts: N,
    invariants: Vec<&'static str>,
}

model!(LeafLayout, LeafLayout::initial);

/// The numbers that a constant has as its members, in ascending order.
fn numbers(config: &Config, constant: &str, most: usize) -> Result<Vec<N>, ConfigError> {
    let members = config.members(constant, most)?;
    let number = |member: &Value| match member {
        Value::Int(n) => N::try_from(*n).map_err(|_| config.wrong(constant, "too large")),
        _ => Err(config.wrong(constant, "expected numbers")),
    };
    let mut numbers: Vec<N> = members.iter().map(number).collect::<Result<_, _>>()?;
    numbers.sort_unstable();
    Ok(numbers)
}

/// For each write, the set of the keys that it may go to (`Plan`).
fn plan(config: &Config, keys: &[N]) -> Result<[Set; WRITES], ConfigError> {
    let mut plan = [0; WRITES];
    for member in numbers(config, "Plan", WRITES * KEYS)? {
        let key = keys.iter().position(|key| *key == member % 10);
        let write = usize::from(member / 10).checked_sub(1);
        let keys = write.and_then(|write| plan.get_mut(write));
        let (Some(keys), Some(key)) = (keys, key) else {
            return Err(config.wrong("Plan", "expected 10 n + k for the n-th write and key k"));
        };
        *keys |= 1 << key;
    }
    Ok(plan)
}

impl LeafLayout {
    fn initial(&self) -> State {
        let (least, most) = (self.keys[0], self.keys[self.keys.len() - 1]);
        State::initial(least, most + 1, self.choices.contains(&true))
    }
}

impl Mirror for LeafLayout {
    const SPEC: &'static str = "LeafLayout";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        bounded(
            config,
            &[
                "Length",
                "MayGet",
                "MayWrite",
                "MayLayOut",
                "MayCrash",
                "MayRestart",
            ],
        )?;
        let clients = config.members("Clients", CLIENTS)?;
        let keys = numbers(config, "Keys", KEYS)?;
        let values = count(config, "Values", WRITES)?;
        let pages = count(config, "Pages", PAGES)?;
        let writes: Vec<Value> = (1..=values as i64).map(Value::Int).collect();
        let named_keys: Vec<Value> = keys.iter().map(|key| Value::int(*key)).collect();
        let choices = config.members("Choices", 2)?;
        let choice = |choice: &Value| match choice {
            Value::Bool(allows) => Ok(*allows),
            _ => Err(config.wrong("Choices", "expected TRUE or FALSE")),
        };
        // Each split, and each write, is one record more.
        let most = LOG - WRITES - PAGES + 1;
        Ok(Self {
            plan: plan(config, &keys)?,
            values: values as N,
            pages: pages as u8,
            room: config.int("Room", u8::MAX)?,
            key_size: config.int("KeySize", u8::MAX)?,
            fence: config.int("Fence", u8::MAX)?,
            few: config.int("Few", u8::MAX)?.into(),
            choices: choices.iter().map(choice).collect::<Result<_, _>>()?,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            bug: named(config, "Bug")?,
            deletes: subset(config, "Deletes", &writes)?,
            shorts: subset(config, "Shorts", &writes)?,
            writers: subset(config, "Writers", &clients)?,
            readers: subset(config, "Readers", &clients)?,
            read_keys: subset(config, "ReadKeys", &named_keys)?,
            max_log: config.int("MaxLog", most as u8)?,
            max_crashes: config.int("MaxCrashes", u8::MAX)?,
            max_restarts: config.int("MaxRestarts", u8::MAX)?,
            invariants: listed(config, &INVARIANTS)?,
            clients,
            keys,
        })
    }

    fn label(action: &Action) -> &'static str {
        action.into()
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        self.values_of(state)
    }
}
