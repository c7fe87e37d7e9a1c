//! The mirror of `specs/leaf_layout/LeafLayout.tla`: leaves that change their layout, under the redo
//! log (B-Trees Are Back §3.5).
//!
//! ```text
//! state.rs       the variables, and what follows from the log (LayoutState.tla)
//! sizes.rs       what a page takes, in bytes and places
//! pages.rs       whether a page takes a record, and what to do with one that refuses it
//! steps.rs       the actions (LeafLayout.tla)
//! invariants.rs  the invariants
//! values.rs      a state as TLA+ values
//! unbounded.rs   the judge of a recording
//! situation.rs   what a step depends on
//! ```

mod invariants;
mod pages;
mod situation;
pub mod sizes;
mod state;
mod steps;
pub mod unbounded;
mod values;

use std::sync::Arc;

use self::invariants::INVARIANTS;
use self::sizes::{Bounded, Sizes};
pub use self::state::{Call, Is, Layout, Leaf, Phase, Record, State};
use super::leaf_layout_room as room;
use super::{Mirror, bounded, count, listed, model, named, subset};
use crate::{Config, ConfigError, Value};
use room::{CLIENTS, KEYS, LOG, N, PAGES, Set, V, WRITES};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
pub enum Action {
    /// A client calls the next write, of this key.
    CallWrite(u8, u8),
    /// A write takes effect: its record is in the log and in the leaf.
    ChangeLeaf(u8),
    /// The leaf of a write refuses it, and is converted.
    LayOut(u8),
    /// The leaf of a write refuses it, and is split. The right page gets this layout.
    Divide(u8, Layout),
    /// A page gets another general layout.
    Adapt(u8, Layout),
    /// A dense page is converted, to absorb its right neighbour.
    Prepare(u8),
    /// A page absorbs its right neighbour.
    Merge(u8),
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

/// The names of all actions.
pub const LABELS: &[&str] = <Action as strum::VariantNames>::VARIANTS;

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
    /// A semi-dense page takes more than fits beside its places.
    OverfillsSemi,
    /// A page is converted back whether or not the new record will fit.
    ConvertsInVain,
    /// A page is converted back although the record that is replaced is too long for that.
    ForgetsTheOld,
    /// The right page of a split gets a layout that its records may not fit.
    SuitsUnfit,
    /// A dense page absorbs its neighbour, and its conversion is not logged.
    MergeNotPrepared,
    /// A page absorbs a neighbour whose records do not fit.
    MergeUnfit,
    /// The record of a merge lacks a record that moves.
    MergeLogsTooLittle,
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
    values: V,
    pages: u8,
    /// What pages take.
    sizes: Arc<dyn Sizes>,
    /// The bytes of each write's value.
    lengths: Vec<N>,
    /// The general layouts.
    generals: Vec<Layout>,
    /// Whether dense pages are made, as the options of a life may say.
    choices: Vec<bool>,
    absent: Value,
    pending: Value,
    bug: Bug,
    /// For each write, the set of its keys.
    plan: [Set; WRITES],
    deletes: Set,
    writers: Set,
    readers: Set,
    read_keys: Set,
    max_log: N,
    adapts: bool,
    merges: bool,
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
        let write = (member / 10) as usize;
        let write = write.checked_sub(1);
        let keys = write.and_then(|write| plan.get_mut(write));
        let (Some(keys), Some(key)) = (keys, key) else {
            return Err(config.wrong("Plan", "expected 10 n + k for the n-th write and key k"));
        };
        *keys |= 1 << key;
    }
    Ok(plan)
}

/// The general layouts (`Generals`).
fn generals(config: &Config) -> Result<Vec<Layout>, ConfigError> {
    let members = config.members("Generals", Layout::GENERALS.len())?;
    let layout = |member: &Value| {
        let mut all = Layout::GENERALS.into_iter();
        let known = all.find(|layout| Value::variant(*layout) == *member);
        known.ok_or_else(|| config.wrong("Generals", "expected \"general\" or \"other\""))
    };
    members.iter().map(layout).collect()
}

impl LeafLayout {
    fn initial(&self) -> State {
        State::initial(self.keys[0], self.top(), self.choices.contains(&true))
    }

    /// `Top`: behind the last key.
    fn top(&self) -> N {
        self.keys[self.keys.len() - 1] + 1
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
                "MayAdapt",
                "MayMerge",
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
        let shorts: Set = subset(config, "Shorts", &writes)?;
        let lengths = (0..values).map(|write| if shorts >> write & 1 == 1 { 2 } else { 3 });
        let sizes = Bounded {
            least: keys[0],
            top: keys[keys.len() - 1] + 1,
            room: N::from(config.int("Room", u8::MAX)?),
            key_size: N::from(config.int("KeySize", u8::MAX)?),
            fence: N::from(config.int("Fence", u8::MAX)?),
            few: config.int("Few", u8::MAX)?.into(),
            semi: config.bool("Semi")?,
            fenced: config.overrides.contains_key("RoomIn"),
            semi_fenced: config.overrides.contains_key("RoomOfSemi"),
        };
        Ok(Self {
            plan: plan(config, &keys)?,
            values: values as V,
            pages: pages as u8,
            sizes: Arc::new(sizes),
            lengths: lengths.collect(),
            generals: generals(config)?,
            choices: choices.iter().map(choice).collect::<Result<_, _>>()?,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            bug: named(config, "Bug")?,
            deletes: subset(config, "Deletes", &writes)?,
            writers: subset(config, "Writers", &clients)?,
            readers: subset(config, "Readers", &clients)?,
            read_keys: subset(config, "ReadKeys", &named_keys)?,
            max_log: N::from(config.int("MaxLog", most as u8)?),
            adapts: config.bool("Adapts")?,
            merges: config.bool("Merges")?,
            max_crashes: N::from(config.int("MaxCrashes", u8::MAX)?),
            max_restarts: N::from(config.int("MaxRestarts", u8::MAX)?),
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
