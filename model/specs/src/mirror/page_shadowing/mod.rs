//! The mirror of `specs/page_shadowing/PageShadowing.tla`: two slots a page, and a log block for
//! the differences (B⁻-tree §3.1, §3.2).
//!
//! ```text
//! state.rs       the variables (ShadowState.tla), blocks (PageImages.tla)
//! reading.rs     the image in a page's blocks (PageImages.tla), and the expected one
//! (ShadowState.tla)
//! steps.rs       the actions (PageShadowing.tla)
//! invariants.rs  the invariants
//! inductive.rs   an inductive invariant (IndPageShadowing.tla)
//! values.rs      a state as TLA+ values
//! situation.rs   describes the part of a state that a step depends on
//! unbounded.rs   the mirror as the judge of a recording
//! versions.rs    the mirror on a medium that decays (PageVersions.tla)
//! ```

mod inductive;
mod invariants;
mod reading;
mod situation;
mod state;
mod steps;
pub mod unbounded;
mod values;
pub mod versions;

use super::page_shadowing_room as room;

use self::invariants::INVARIANTS;
pub use self::state::{Block, Call, Image, Is, Known, Page, Record, State};
use self::state::{CLIENTS, LOG, N, PAGES, SEGMENTS, Set};
use super::{Discards, Mirror, bounded, count, listed, model, named, subset};
use crate::{Config, ConfigError, Value};

/// A step. Keys, LSNs and the numbers of choices are those of [`State`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
pub enum Action {
    /// A client calls a get of a key.
    CallGet(u8, u8),
    /// A client calls a write of a key.
    CallWrite(u8, u8),
    /// A get reads its page.
    ReadPage(u8),
    /// A get returns.
    AnswerGet(u8),
    /// A write takes effect: in the log and in the page.
    ChangePage(u8),
    /// A write is durable, and its client is told.
    Acknowledge(u8),
    /// The log is durable up to here.
    CommitLog(N),
    /// The segments of a page that differ from its base image are written to its log block.
    WriteDelta(u8),
    /// A page is written to a slot.
    WriteWhole(u8),
    /// The blocks that a page's new image replaced are trimmed.
    Trim(u8),
    /// A clean page is evicted.
    Evict(u8),
    /// A page is read, in the n-th of the ways in which it may read.
    Load(u8, u32),
    /// Everything that was written becomes durable.
    FlushDevice,
    /// A flush fails.
    FailFlush,
    /// The redo start moves forward.
    Checkpoint,
    /// A power failure. The log is left up to this LSN, and the device is left in the n-th of all
    /// outcomes.
    Crash(N, u32),
    /// The process is restarted. It finds the log up to this LSN, and reads the device in the n-th
    /// way.
    Restart(N, u32),
    /// Recovery redoes a record.
    RedoRecord,
    /// The store is up.
    FinishRedo,
}

/// The names of all actions.
pub const LABELS: &[&str] = <Action as strum::VariantNames>::VARIANTS;

/// The seeded bugs. See the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Bug {
    None,
    TrimsAtOnce,
    ResetsLogAtOnce,
    NamelessLog,
    PingPongAtOnce,
    DeltaAtOnce,
    ComparesImages,
    TrustsWhatItReads,
    BelievesTornSlot,
    TakesFirstSlot,
    NamesSlot,
    PageBeforeLog,
    LogsLastChanges,
    TrimsLate,
    TrimsLiveLog,
    CheckpointSkipsFlush,
    EvictsDirty,
    ForgetsUnflushed,
    ForgetsDirty,
    RestartSkipsFlush,
    LeavesLeftovers,
    AcksAtOnce,
    AnyImageWillDo,
    BoundForExact,
    BelievesTheFuture,
    ForgetsVersion,
    SnapshotsLate,
    JudgesEndLate,
    RefusedShows,
}

/// The module with its constants. Sets of clients, pages and writes are bit sets.
#[derive(Clone, Debug)]
pub struct PageShadowing {
    clients: Vec<Value>,
    pages: Vec<Value>,
    segments: usize,
    values: N,
    absent: Value,
    pending: Value,
    trimmed: Value,
    rotten: Value,
    threshold: u32,
    bug: Bug,
    discards: Discards,
    deletes: Set,
    narrow: Set,
    readers: Set,
    evicted: Set,
    max_crashes: N,
    max_restarts: N,
    flushes_fail: bool,
    invariants: Vec<&'static str>,
}

model!(PageShadowing, |_| State::initial());

impl Mirror for PageShadowing {
    const SPEC: &'static str = "PageShadowing";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        Self::of(config, listed(config, &INVARIANTS)?)
    }

    fn label(action: &Action) -> &'static str {
        action.into()
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        self.values_of(state)
    }
}

impl PageShadowing {
    /// The module with the constants of a configuration, to be checked against these invariants.
    fn of(config: &Config, invariants: Vec<&'static str>) -> Result<Self, ConfigError> {
        bounded(
            config,
            &[
                "MayGet",
                "MayWrite",
                "MayEvict",
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
        Ok(Self {
            segments: count(config, "Segments", SEGMENTS)?,
            values: values as N,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            trimmed: config.constant_value("Trimmed")?.clone(),
            rotten: Value::model("Rotten"),
            threshold: u32::from(config.int("Threshold", SEGMENTS as u8)?),
            bug: named(config, "Bug")?,
            discards: named(config, "Discards")?,
            deletes: subset(config, "Deletes", &writes)?,
            narrow: subset(config, "Narrow", &writes)?,
            readers: subset(config, "Readers", &clients)?,
            evicted: subset(config, "Evicted", &pages)?,
            max_crashes: N::from(config.int("MaxCrashes", u8::MAX)?),
            max_restarts: N::from(config.int("MaxRestarts", u8::MAX)?),
            flushes_fail: config.bool("FlushesFail")?,
            invariants,
            clients,
            pages,
        })
    }
}
