//! The mirror of `specs/circular_buffer/CircularBuffer.tla`: the buffer pool of variable-length
//! mini-pages (Bf-Tree, section 4).
//!
//! - `state`: the variables, packed.
//! - `memory`: `RingMemory.tla`, the positions of blocks and their life cycle.
//! - `threads`: what a thread does, step by step, and the mapping table.
//! - `invariants`: the invariants.
//! - `unbounded`: the mirror as the judge of an engine's events.
//!
//! The wrapper's bounds are here too: addresses forget whole laps (`MCForgotten`), and `MCMayCall`
//! says which client may ask for what.

mod invariants;
mod memory;
mod state;
mod threads;
pub mod unbounded;

use stateright::{Model, Property};

use super::circular_buffer_room as room;
use super::{Mirror, listed, named, properties};
use crate::{Config, ConfigError, Value};
use invariants::INVARIANTS;
use state::{ABSENT, CLASSES, CLIENTS, NONE, PAGES, PENDING, UNITS};
pub use state::{Block, Call, Life, Phase, State, Thread, Word, Work};

/// A step: the client, and its choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[allow(missing_docs)] // The names are those of the spec, which explains them.
pub enum Action {
    Close,
    Call(u8, Call),
    LockPage(u8),
    Read(u8),
    Write(u8),
    Return(u8),
    Create(u8, u8),
    Grow(u8, u8),
    CopyToTail(u8, u8),
    PopFreeList(u8, u8),
    Reuse(u8),
    PassOver(u8),
    Allocate(u8),
    Pad(u8),
    Full(u8),
    Copy(u8),
    Publish(u8),
    Deallocate(u8),
    Claim(u8),
    Retry(u8),
    Skip(u8),
    Unlist(u8),
    FindPage(u8),
    LockVictim(u8),
    WriteLeaf(u8),
    Unmap(u8),
    Finish(u8),
}

/// A seeded bug: `Bug` of the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
enum Bug {
    None,
    AsPublishedNoPadding,
    AsPublishedFreeList,
    AsPublishedEvictUnderLock,
    FullIgnored,
    PopUnchecked,
    CopyWithoutTombstone,
    PoppedBlockEvicted,
    HeadOutOfOrder,
    SecondChanceLeftBehind,
    FreedBeforePublished,
    EvictedBeforeUnmapped,
    ReaderWithoutLock,
    WriterIgnoresReaders,
    UnlockedWhileWriting,
    ChangedWhileWritten,
    DirtyBitNotCopied,
    DirtySkipped,
    VictimUnchecked,
    StalePromotion,
    NoEviction,
    LostWakeUp,
    ListWaitedFor,
    UpgradeWaits,
}

/// `MayClose`: when clients may stop calling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MayClose {
    Always,
    AtRest,
    Never,
}

/// The module with its constants.
#[derive(Clone, Debug)]
pub struct CircularBuffer {
    clients: Vec<Value>,
    pages: Vec<Value>,
    values: Vec<Value>,
    absent: Value,
    pending: Value,
    none: Value,
    capacity: u8,
    in_place: u8,
    sizes: Vec<u8>,
    bug: Bug,
    may_close: MayClose,
    /// What each client may ask for.
    requests: Vec<Vec<Call>>,
    invariants: Vec<&'static str>,
}

impl CircularBuffer {
    fn units(&self) -> usize {
        self.capacity.into()
    }

    fn may_close(&self, state: &State) -> bool {
        state.open
            && match self.may_close {
                MayClose::Always => true,
                MayClose::AtRest => state.thread.iter().all(|t| t.phase == Phase::Idle),
                MayClose::Never => false,
            }
    }

    fn or_none(&self, number: u8, value: impl Fn(u8) -> Value) -> Value {
        if number == NONE {
            self.none.clone()
        } else {
            value(number)
        }
    }

    fn page(&self, page: u8) -> Value {
        self.or_none(page, |p| self.pages[usize::from(p)].clone())
    }

    fn content(&self, content: u8) -> Value {
        match content {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            _ => self.or_none(content, |v| self.values[usize::from(v)].clone()),
        }
    }

    fn pointer(&self, offset: u8) -> Value {
        self.or_none(offset, Value::int)
    }

    fn client_set(&self, bits: state::Set) -> Value {
        let clients = self.clients.iter().enumerate();
        let members = clients.filter(|(c, _)| bits >> c & 1 == 1);
        Value::set(members.map(|(_, client)| client.clone()))
    }

    fn by_page(&self, value: impl Fn(usize) -> Value) -> Value {
        Value::fun((0..self.pages.len()).map(|p| (self.pages[p].clone(), value(p))))
    }

    fn by_client(&self, state: &State, value: impl Fn(&Thread) -> Value) -> Value {
        let threads = state.thread.iter().map(value);
        Value::fun(self.clients.iter().cloned().zip(threads))
    }

    fn block_value(&self, block: &Block) -> Value {
        Value::record([
            ("state", Value::variant(block.life)),
            ("size", Value::int(block.size)),
            ("page", self.page(block.page)),
            ("rec", self.content(block.rec)),
            ("dirty", block.dirty.into()),
        ])
    }

    fn word_value(&self, word: &Word) -> Value {
        let writer = |c: u8| self.clients[usize::from(c)].clone();
        Value::record([
            ("at", self.pointer(word.at)),
            ("writer", self.or_none(word.writer, writer)),
            ("readers", self.client_set(word.readers)),
        ])
    }

    fn call_value(&self, call: Call) -> Value {
        match call {
            Call::None => Value::record([("op", Value::str("none"))]),
            Call::Get { key, got } => Value::record([
                ("op", Value::str("get")),
                ("key", self.page(key)),
                ("got", self.content(got)),
            ]),
            Call::Write { key, value, done } => Value::record([
                ("op", Value::str("write")),
                ("key", self.page(key)),
                ("value", self.content(value)),
                ("done", done.into()),
            ]),
        }
    }

    fn work_value(&self, work: &Work) -> Value {
        Value::record([
            ("old", self.pointer(work.old)),
            ("new", self.pointer(work.new)),
            ("size", Value::int(work.size)),
            ("victim", self.pointer(work.victim)),
            ("page", self.page(work.page)),
        ])
    }

    fn free_list_value(&self, state: &State) -> Value {
        let offsets = |list: state::Set| (0..self.capacity).filter(move |o| list >> o & 1 == 1);
        let lists = state
            .free_list
            .map(|list| Value::set(offsets(list).map(Value::int)));
        Value::fun(self.sizes.iter().map(|s| Value::int(*s)).zip(lists))
    }
}

impl Model for CircularBuffer {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::INIT]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if self.may_close(state) {
            actions.push(Action::Close);
        }
        for c in 0..self.clients.len() as u8 {
            self.candidates(state, c, actions);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.step(state, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties(&INVARIANTS, &self.invariants)
    }
}

/// `MCMayCall`: what each client may ask for.
fn requests(
    config: &Config,
    clients: &[Value],
    pages: &[Value],
    values: usize,
) -> Result<Vec<Vec<Call>>, ConfigError> {
    let bounded = config.overrides.contains_key("MayCall");
    let allowed = |name: &str, all: &[Value]| {
        if bounded {
            config.members(name, all.len())
        } else {
            Ok(all.to_vec())
        }
    };
    let (writers, readers) = (allowed("Writers", clients)?, allowed("Readers", clients)?);
    let (read, put) = (allowed("ReadPages", pages)?, allowed("PutPages", pages)?);
    let deleted = allowed("DelPages", pages)?;
    let of_client = |client: &Value| {
        let mut requests = Vec::new();
        for (key, page) in (0..).zip(pages) {
            if readers.contains(client) && read.contains(page) {
                requests.push(Call::Get { key, got: PENDING });
            }
            if writers.contains(client) {
                let puts = 0..if put.contains(page) { values as u8 } else { 0 };
                let deletes = deleted.contains(page).then_some(ABSENT);
                requests.extend(puts.chain(deletes).map(|value| Call::Write {
                    key,
                    value,
                    done: false,
                }));
            }
        }
        requests
    };
    Ok(clients.iter().map(of_client).collect())
}

fn sizes(config: &Config, capacity: u8) -> Result<Vec<u8>, ConfigError> {
    let size = |value: Value| match value {
        Value::Int(n) if (1..=i64::from(capacity)).contains(&n) => Ok(n as u8),
        other => Err(config.wrong("Sizes", format!("expected 1 to {capacity}, found {other}"))),
    };
    let members = config.members("Sizes", CLASSES)?;
    members.into_iter().map(size).collect()
}

impl Mirror for CircularBuffer {
    const SPEC: &'static str = "CircularBuffer";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let clients = config.members("Clients", CLIENTS)?;
        let pages = config.members("Pages", PAGES)?;
        let values = config.members("Values", usize::from(ABSENT))?;
        let capacity = config.int("Capacity", UNITS as u8)?;
        if !config.overrides.contains_key("Forgotten") {
            return Err(config.wrong("Forgotten", "the mirror forgets whole laps"));
        }
        let may_close = match config.overrides.get("MayClose").map(String::as_str) {
            None => MayClose::Always,
            Some("AtRest") => MayClose::AtRest,
            Some("Never") => MayClose::Never,
            Some(_) => return Err(config.wrong("MayClose", "expected AtRest or Never")),
        };
        Ok(Self {
            requests: requests(config, &clients, &pages, values.len())?,
            clients,
            pages,
            values,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            none: config.constant_value("None")?.clone(),
            capacity,
            in_place: config.int("InPlace", capacity)?,
            sizes: sizes(config, capacity)?,
            bug: named(config, "Bug")?,
            may_close,
            invariants: listed(config, &INVARIANTS)?,
        })
    }

    fn label(action: &Action) -> &'static str {
        action.into()
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        let blocks = state.block[..self.units()].iter();
        let blocks = (0i64..).zip(blocks.map(|b| self.block_value(b)));
        vec![
            ("head", Value::int(state.head)),
            ("claimed", Value::int(state.claimed)),
            ("secondChance", Value::int(state.second_chance)),
            ("tail", Value::int(state.tail)),
            ("block", Value::fun(blocks.map(|(o, b)| (Value::Int(o), b)))),
            ("freeList", self.free_list_value(state)),
            ("word", self.by_page(|p| self.word_value(&state.word[p]))),
            ("disk", self.by_page(|p| self.content(state.disk[p]))),
            ("call", self.by_client(state, |t| self.call_value(t.call))),
            ("phase", self.by_client(state, |t| Value::variant(t.phase))),
            ("work", self.by_client(state, |t| self.work_value(&t.work))),
            ("open", state.open.into()),
            ("written", self.by_page(|p| self.content(state.written[p]))),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::graph;

    fn open(path: &Path) -> (Config, CircularBuffer) {
        let config = Config::read(path).unwrap();
        let mirror = CircularBuffer::from_config(&config).unwrap();
        (config, mirror)
    }

    fn folder() -> &'static Path {
        Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../specs/circular_buffer"
        ))
    }

    #[test]
    fn the_smoke_model_has_as_many_states_as_tlc_finds() {
        let (_, mirror) = open(&folder().join("MCCircularBuffer_smoke.cfg"));
        let graph = graph::explore(&mirror);
        assert_eq!((graph.states.len(), graph.edges.len()), (72_535, 146_556));
        assert_eq!(graph.labels.len(), 27);
    }

    #[test]
    fn every_seeded_safety_bug_violates_the_invariant_of_its_configuration() {
        let mut found = 0;
        for entry in std::fs::read_dir(folder()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "cfg") {
                continue;
            }
            let (config, mirror) = open(&path);
            let named = config.must_violate();
            let Some(named) = named.filter(|name| INVARIANTS.iter().any(|(n, _)| n == name)) else {
                continue;
            };
            let story = graph::counterexample(&mirror).expect(named);
            println!("{}: {named}, {} states", path.display(), story.steps.len());
            assert_eq!(story.property, named, "{}", path.display());
            found += 1;
        }
        assert!(found >= 8, "{found}");
    }
}
