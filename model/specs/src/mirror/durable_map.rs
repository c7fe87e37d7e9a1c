//! The mirror of `specs/contract/DurableMap.tla`: the contract that every protocol refines.

use std::hash::{Hash, Hasher};

use stateright::{Model, Property};

use super::{Mirror, listed, named, properties};
use crate::{Config, ConfigError, Value};

/// The sizes of a state. A configuration that needs more is refused.
const CLIENTS: usize = 3;
const KEYS: usize = 3;
const TAIL: usize = 4;

/// A value: `ABSENT`, `PENDING`, or the number of one of `Values`.
type Content = u8;
const ABSENT: Content = 0xfe;
const PENDING: Content = 0xff;

const NOBODY: u8 = 0xff;

/// A client's outstanding call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub enum Call {
    /// No call is outstanding. The last one, if any, returned, or a crash ended it.
    Idle,
    /// No call is outstanding. The last one was refused.
    Refused,
    /// No call is outstanding. The last one, a write, is in doubt.
    Unknown,
    /// A get (`GetCall`).
    Get {
        /// The key.
        key: u8,
        /// The value read.
        got: u8,
    },
    /// A put or delete (`WriteCall`).
    Write {
        /// The key.
        key: u8,
        /// The value to write.
        value: u8,
        /// Whether it has taken effect.
        done: bool,
    },
    /// A scan (`ScanCall`).
    Scan {
        /// The value read at each key.
        got: [u8; KEYS],
    },
}

/// A write that a crash may undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Entry {
    by: u8,
    key: u8,
    value: Content,
}

const NO_ENTRY: Entry = Entry {
    by: NOBODY,
    key: 0,
    value: 0,
};

/// The phase of the store's life.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, bitcode::Encode, bitcode::Decode,
)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// The store serves clients.
    Up,
    /// The power failed.
    Cut,
    /// The process died, and the device lived on.
    Killed,
    /// Recovery is under way.
    Opening,
}

/// The variables of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct State {
    base: [Content; KEYS],
    // invariant: entries from `tail_len` on are NO_ENTRY, so that equal states are equal bytes.
    tail: [Entry; TAIL],
    tail_len: u8,
    call: [Call; CLIENTS],
    phase: Phase,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
pub enum Action {
    /// A client makes a call.
    Call(u8, Call),
    /// A `get` takes effect.
    Read(u8),
    /// A scan reads the keys in a bit set.
    ReadSome(u8, u8),
    /// A write takes effect, and this many writes become durable.
    Write(u8, u8),
    /// A client gets its answer.
    Return(u8),
    /// A client is told that nothing has happened, and nothing will.
    Refuse(u8),
    /// A client is told that nobody knows about its write.
    Doubt(u8),
    /// This many writes become durable.
    Harden(u8),
    /// The power fails: all but this many writes of the tail are lost.
    Crash(u8),
    /// The process dies: the same.
    Kill(u8),
    /// Recovery begins.
    Reopen,
    /// The store is up again.
    Recover,
}

/// The seeded bugs of the wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
enum Bug {
    None,
    CallWhenDown,
    WriteTwice,
    GetMissesTail,
    ScanMissesTail,
    AcksEarly,
    RefusedShows,
    UnknownKeepsName,
    UnknownTwice,
    CrashLosesAll,
    KillLosesAll,
}

/// The module with its constants.
#[derive(Clone, Debug)]
pub struct DurableMap {
    clients: Vec<Value>,
    keys: Vec<Value>,
    values: Vec<Value>,
    absent: Value,
    pending: Value,
    max_tail: u8,
    bug: Bug,
    invariants: Vec<&'static str>,
}

impl Hash for State {
    // Four words, not thirty single bytes: hashing those took a sixth of the checker's time.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let [a, b, c] = self.base;
        let flags = self.tail_len << 2 | self.phase as u8;
        let calls = self.call.map(Call::word);
        let entries = self
            .tail
            .map(|entry| u32::from_le_bytes([entry.by, entry.key, entry.value, 0]));
        let pair = |x: u32, y: u32| u64::from(x) << 32 | u64::from(y);
        hasher.write_u64(pair(u32::from_le_bytes([a, b, c, flags]), calls[0]));
        hasher.write_u64(pair(calls[1], calls[2]));
        hasher.write_u64(pair(entries[0], entries[1]));
        hasher.write_u64(pair(entries[2], entries[3]));
    }
}

impl Call {
    fn waits(self) -> bool {
        !matches!(self, Call::Idle | Call::Refused | Call::Unknown)
    }

    fn word(self) -> u32 {
        u32::from_le_bytes(match self {
            Call::Idle => [0; 4],
            Call::Get { key, got } => [1, key, got, 0],
            Call::Write { key, value, done } => [2, key, value, u8::from(done)],
            Call::Scan { got: [a, b, c] } => [3, a, b, c],
            Call::Refused => [4, 0, 0, 0],
            Call::Unknown => [5, 0, 0, 0],
        })
    }
}

impl State {
    fn tail(&self) -> &[Entry] {
        &self.tail[..usize::from(self.tail_len)]
    }

    fn current(&self, key: u8) -> Content {
        let last = self.tail().iter().rev().find(|entry| entry.key == key);
        last.map_or(self.base[usize::from(key)], |entry| entry.value)
    }

    /// What a read of `key` finds, with the bug that it misses what is not durable, too.
    fn read(&self, key: u8, misses_tail: bool) -> Content {
        match misses_tail {
            true => self.base[usize::from(key)],
            false => self.current(key),
        }
    }

    fn forget_name(&mut self, client: u8) {
        let waiting = self.tail.iter_mut().filter(|entry| entry.by == client);
        waiting.for_each(|entry| entry.by = NOBODY);
    }

    fn append(&mut self, entry: Entry) -> Option<()> {
        *self.tail.get_mut(usize::from(self.tail_len))? = entry;
        self.tail_len += 1;
        Some(())
    }

    fn in_tail(&self, client: u8) -> bool {
        self.tail().iter().any(|entry| entry.by == client)
    }

    /// The oldest `n` writes of the tail move into the base.
    fn harden(&mut self, n: u8) {
        let n = usize::from(n);
        for entry in &self.tail[..n] {
            self.base[usize::from(entry.key)] = entry.value;
        }
        self.tail.copy_within(n.., 0);
        self.tail[TAIL - n..].fill(NO_ENTRY);
        self.tail_len -= n as u8;
    }

    /// Memory is lost. Of the tail the oldest `kept` writes survive.
    fn keep_only(&mut self, kept: u8, loses_all: bool) {
        self.harden(kept);
        if loses_all {
            self.base = [ABSENT; KEYS];
        }
        self.tail = [NO_ENTRY; TAIL];
        self.tail_len = 0;
        self.call = [Call::Idle; CLIENTS];
    }

    fn set_call(&mut self, client: u8, call: Call) {
        self.call[usize::from(client)] = call;
    }
}

impl DurableMap {
    fn requests(&self) -> impl Iterator<Item = Call> {
        let keys = 0..self.keys.len() as u8;
        let gets = keys.clone().map(|key| Call::Get { key, got: PENDING });
        let contents: Vec<Content> = (0..self.values.len() as u8).chain([ABSENT]).collect();
        let writes = keys.flat_map(move |key| {
            let write = move |value| Call::Write {
                key,
                value,
                done: false,
            };
            contents.clone().into_iter().map(write)
        });
        gets.chain(writes).chain([Call::Scan {
            got: [PENDING; KEYS],
        }])
    }

    fn unread(&self, got: &[Content; KEYS]) -> u8 {
        let keys = got[..self.keys.len()].iter();
        keys.enumerate()
            .fold(0, |set, (k, v)| set | u8::from(*v == PENDING) << k)
    }

    fn client_actions(&self, state: &State, c: u8, actions: &mut Vec<Action>) {
        let call = state.call[usize::from(c)];
        match call {
            Call::Idle | Call::Refused | Call::Unknown => {
                actions.extend(self.requests().map(|request| Action::Call(c, request)));
                return;
            }
            Call::Get { got: PENDING, .. } => actions.push(Action::Read(c)),
            Call::Get { .. } => actions.push(Action::Return(c)),
            Call::Write { done: false, .. } => {
                let most = if self.bug == Bug::WriteTwice {
                    0
                } else {
                    state.tail_len + 1
                };
                actions.extend((0..=most).map(|n| Action::Write(c, n)));
            }
            Call::Write { .. } if state.in_tail(c) && self.bug != Bug::AcksEarly => {}
            Call::Write { .. } => actions.push(Action::Return(c)),
            Call::Scan { got } => match self.unread(&got) {
                0 => actions.push(Action::Return(c)),
                unread => {
                    let subsets = (1..=unread).filter(|seen| seen & !unread == 0);
                    actions.extend(subsets.map(|seen| Action::ReadSome(c, seen)));
                }
            },
        }
        let done = matches!(call, Call::Write { done: true, .. });
        if !done || self.bug == Bug::RefusedShows {
            actions.push(Action::Refuse(c));
        }
        if matches!(call, Call::Write { .. }) {
            actions.push(Action::Doubt(c));
        }
    }

    fn write(&self, state: &mut State, c: u8, hardened: u8) -> Option<()> {
        let Call::Write { key, value, .. } = state.call[usize::from(c)] else {
            return None;
        };
        let entry = Entry { by: c, key, value };
        if self.bug == Bug::WriteTwice {
            state.append(entry)?;
        }
        // One entry more than the state has room for may come and go within one step.
        if hardened > 0 && usize::from(state.tail_len) == TAIL {
            state.harden(1);
            state.tail[TAIL - 1] = entry;
            state.tail_len += 1;
            state.harden(hardened - 1);
        } else {
            state.append(entry)?;
            state.harden(hardened);
        }
        state.set_call(
            c,
            Call::Write {
                key,
                value,
                done: true,
            },
        );
        Some(())
    }

    fn doubt(&self, state: &mut State, c: u8) -> Option<()> {
        let call = state.call[usize::from(c)];
        state.set_call(c, Call::Unknown);
        if self.bug != Bug::UnknownKeepsName {
            state.forget_name(c);
        }
        match call {
            Call::Write {
                key,
                value,
                done: true,
            } if self.bug == Bug::UnknownTwice => state.append(Entry {
                by: NOBODY,
                key,
                value,
            }),
            _ => Some(()),
        }
    }

    fn content(&self, content: Content) -> Value {
        match content {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            n => self.values[usize::from(n)].clone(),
        }
    }

    fn map(&self, contents: &[Content; KEYS]) -> Value {
        Value::fun(
            self.keys
                .iter()
                .cloned()
                .zip(contents.iter().map(|c| self.content(*c))),
        )
    }

    fn call_value(&self, call: Call) -> Value {
        let key = |k: u8| self.keys[usize::from(k)].clone();
        match call {
            Call::Idle => Value::record([("op", Value::str("none"))]),
            Call::Refused => Value::record([("op", Value::str("refused"))]),
            Call::Unknown => Value::record([("op", Value::str("unknown"))]),
            Call::Get { key: k, got } => Value::record([
                ("op", Value::str("get")),
                ("key", key(k)),
                ("got", self.content(got)),
            ]),
            Call::Write {
                key: k,
                value,
                done,
            } => Value::record([
                ("op", Value::str("write")),
                ("key", key(k)),
                ("value", self.content(value)),
                ("done", done.into()),
            ]),
            Call::Scan { got } => {
                Value::record([("op", Value::str("scan")), ("got", self.map(&got))])
            }
        }
    }

    fn entry_value(&self, entry: &Entry) -> Value {
        Value::record([
            (
                "by",
                match entry.by {
                    NOBODY => Value::str("nobody"),
                    c => self.clients[usize::from(c)].clone(),
                },
            ),
            ("key", self.keys[usize::from(entry.key)].clone()),
            ("value", self.content(entry.value)),
        ])
    }

    /// Each value is in the set that its variable ranges over. Holds by construction, except for
    /// the numbers.
    fn type_inv(&self, s: &State) -> bool {
        let content = |c: Content| c == ABSENT || usize::from(c) < self.values.len();
        let keys = self.keys.len();
        s.base[..keys].iter().all(|c| content(*c))
            && s.tail()
                .iter()
                .all(|e| content(e.value) && usize::from(e.key) < keys)
    }

    fn one_write_inv(&self, s: &State) -> bool {
        let waiting = |c: u8| s.tail().iter().filter(|entry| entry.by == c).count();
        (0..self.clients.len() as u8).all(|c| waiting(c) <= 1)
    }

    fn waiting_inv(&self, s: &State) -> bool {
        let wrote = |c: u8| matches!(s.call[usize::from(c)], Call::Write { done: true, .. });
        (0..self.clients.len() as u8).all(|c| !s.in_tail(c) || wrote(c))
    }

    fn down_inv(&self, s: &State) -> bool {
        s.phase == Phase::Up || (s.tail_len == 0 && s.call.iter().all(|call| *call == Call::Idle))
    }
}

type Invariant = fn(&DurableMap, &State) -> bool;

const INVARIANTS: [(&str, Invariant); 4] = [
    ("TypeInv", DurableMap::type_inv),
    ("OneWriteInv", DurableMap::one_write_inv),
    ("WaitingInv", DurableMap::waiting_inv),
    ("DownInv", DurableMap::down_inv),
];

impl Model for DurableMap {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            base: [ABSENT; KEYS],
            tail: [NO_ENTRY; TAIL],
            tail_len: 0,
            call: [Call::Idle; CLIENTS],
            phase: Phase::Up,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.phase == Phase::Up {
            for c in 0..self.clients.len() as u8 {
                self.client_actions(state, c, actions);
            }
        } else {
            actions.push(Action::Recover);
            if state.phase != Phase::Opening {
                actions.push(Action::Reopen);
            }
            if self.bug == Bug::CallWhenDown {
                let scan = Call::Scan {
                    got: [PENDING; KEYS],
                };
                let idle = |c: &u8| !state.call[usize::from(*c)].waits();
                let clients = (0..self.clients.len() as u8).filter(idle);
                actions.extend(clients.map(|c| Action::Call(c, scan)));
            }
        }
        actions.extend((1..=state.tail_len).map(Action::Harden));
        actions.extend((0..=state.tail_len).map(Action::Crash));
        actions.extend((0..=state.tail_len).map(Action::Kill));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = *state;
        match action {
            Action::Call(c, request) => next.set_call(c, request),
            Action::Read(c) => {
                if let Call::Get { key, .. } = state.call[usize::from(c)] {
                    let got = state.read(key, self.bug == Bug::GetMissesTail);
                    next.set_call(c, Call::Get { key, got });
                }
            }
            Action::ReadSome(c, seen) => {
                if let Call::Scan { got } = &mut next.call[usize::from(c)] {
                    for key in (0..KEYS as u8).filter(|key| seen >> key & 1 == 1) {
                        let misses = self.bug == Bug::ScanMissesTail;
                        got[usize::from(key)] = state.read(key, misses);
                    }
                }
            }
            Action::Write(c, hardened) => self.write(&mut next, c, hardened)?,
            Action::Return(c) => next.set_call(c, Call::Idle),
            Action::Refuse(c) => {
                next.set_call(c, Call::Refused);
                next.forget_name(c);
            }
            Action::Doubt(c) => self.doubt(&mut next, c)?,
            Action::Harden(n) => next.harden(n),
            Action::Crash(kept) => {
                next.keep_only(kept, self.bug == Bug::CrashLosesAll);
                next.phase = Phase::Cut;
            }
            Action::Kill(kept) => {
                next.keep_only(kept, self.bug == Bug::KillLosesAll);
                next.phase = Phase::Killed;
            }
            Action::Reopen => next.phase = Phase::Opening,
            Action::Recover => next.phase = Phase::Up,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties(&INVARIANTS, &self.invariants)
    }

    /// `TailLimit` of the wrapper.
    fn within_boundary(&self, state: &State) -> bool {
        state.tail_len <= self.max_tail
    }
}

impl Mirror for DurableMap {
    const SPEC: &'static str = "DurableMap";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            clients: config.members("Clients", CLIENTS)?,
            keys: config.members("Keys", KEYS)?,
            values: config.members("Values", 200)?,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            // A write appends before the limit is checked.
            max_tail: config.int("MaxTail", TAIL as u8 - 1)?,
            bug: named(config, "Bug")?,
            invariants: listed(config, &INVARIANTS)?,
        })
    }

    fn label(action: &Action) -> &'static str {
        action.into()
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        let calls = state.call.iter().map(|call| self.call_value(*call));
        vec![
            ("base", self.map(&state.base)),
            (
                "tail",
                Value::seq(state.tail().iter().map(|entry| self.entry_value(entry))),
            ),
            ("call", Value::fun(self.clients.iter().cloned().zip(calls))),
            ("phase", Value::variant(state.phase)),
        ]
    }
}
