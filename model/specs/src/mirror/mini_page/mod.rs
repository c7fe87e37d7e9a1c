//! The mirror of `specs/mini_page/MiniPage.tla`: mini-pages over leaf pages, and the tree around
//! them (Bf-Tree §3, §5).
//!
//! - [`records`]: `MiniRecords`, functions of values.
//! - `steps`: the actions of `MiniTree` and `MiniPage`, in their order.
//! - `invariants`: the invariants.
//! - `values`: configurations, and states as TLA+ values.
//! - `unbounded`: the mirror as the judge of an engine's events.
//! - `state`, `bug`: the variables, and the seeded bugs.
//! - this file: the constants, and which steps are worth trying.
//!
//! Keys and page ids are numbered from 1 as in the spec, clients from 0.

mod bug;
mod invariants;
pub mod records;
mod situation;
mod state;
mod steps;
mod tree;
pub mod unbounded;
pub(in crate::mirror) mod values;

use stateright::{Model, Property};

pub use self::bug::Bug;
use self::invariants::INVARIANTS;
use self::records::{ABSENT, NOBODY, Page, Sizes};
use self::room::{CLIENTS, KEYS, Set};
pub use self::state::{Call, Client, Rows, State, Step};
use self::state::{NO_PAGE, PAGES};
use super::mini_page_room as room;
use super::{Mirror, listed, named, properties};
use crate::{Config, ConfigError, Value};

/// A step: an action of the module, with the client, page and other choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[allow(missing_docs)]
pub enum Action {
    Call(u8, Call),
    Return(u8),
    ReadVersion(u8),
    ReadChild(u8),
    LockPage(u8),
    Restart(u8),
    ReadMini(u8),
    ReadLeaf(u8),
    Decline(u8),
    Upgrade(u8),
    Promote(u8),
    WriteRecord(u8),
    Grow(u8),
    MergeToMirror(u8),
    EvictMirror(u8),
    ScanPage(u8),
    GrowToMirror(u8),
    LockInner(u8),
    /// The client and the split key.
    AllocateRight(u8, u8),
    ShortenLeft(u8),
    InsertSeparator(u8),
    LockLeft(u8, u8),
    LockRight(u8),
    LockInnerToJoin(u8),
    GiveUpJoin(u8),
    MoveRecords(u8),
    RemoveSeparator(u8),
    FindLeafFull(u8, u8),
    EvictMini(u8),
    CopyToTail(u8),
}

/// The module with its constants.
#[derive(Clone, Debug)]
pub struct MiniPage {
    clients: Vec<Value>,
    values: Vec<Value>,
    absent: Value,
    pending: Value,
    keys: u8,
    pages: u8,
    sizes: Sizes,
    capacity: u8,
    pub(in crate::mirror) bug: Bug,
    /// The calls that the wrapper allows each client.
    requests: Vec<Vec<Call>>,
    /// The clients that maintain the tree, one bit each.
    keepers: Set,
    invariants: Vec<&'static str>,
}

impl MiniPage {
    fn all_pages(&self) -> std::ops::RangeInclusive<u8> {
        1..=self.pages
    }

    fn all_keys(&self) -> std::ops::RangeInclusive<u8> {
        1..=self.keys
    }

    fn all_clients(&self) -> std::ops::Range<u8> {
        0..self.clients.len() as u8
    }

    /// Lists what the client may try. `next_state` decides whether it can.
    fn client_actions(&self, state: &State, c: u8, actions: &mut Vec<Action>) {
        match state.client(c).step {
            Step::Idle => {
                let requests = self.requests[usize::from(c)].iter();
                actions.extend(requests.map(|call| Action::Call(c, *call)));
                if self.keepers >> c & 1 == 1 {
                    actions.extend(self.all_pages().map(|p| Action::LockLeft(c, p)));
                    actions.extend(self.all_pages().map(|p| Action::FindLeafFull(c, p)));
                }
            }
            Step::Descend => actions.push(Action::ReadVersion(c)),
            Step::Version => {
                actions.push(Action::ReadChild(c));
                actions.push(Action::Restart(c));
            }
            Step::Child => {
                actions.push(Action::LockPage(c));
                actions.push(Action::Restart(c));
            }
            Step::Answered => actions.push(Action::Return(c)),
            Step::Get => {
                actions.push(Action::ReadMini(c));
                actions.push(Action::ReadLeaf(c));
            }
            Step::Loaded => {
                actions.push(Action::Decline(c));
                actions.push(Action::Upgrade(c));
            }
            Step::Promote => {
                actions.push(Action::Promote(c));
                actions.push(Action::Grow(c));
            }
            Step::Write => {
                actions.push(Action::WriteRecord(c));
                actions.push(Action::Grow(c));
                actions.push(Action::MergeToMirror(c));
                actions.push(Action::EvictMirror(c));
                actions.push(Action::LockInner(c));
            }
            Step::Scan => {
                actions.push(Action::ScanPage(c));
                actions.push(Action::GrowToMirror(c));
            }
            Step::Full => actions.push(Action::LockInner(c)),
            Step::Split => {
                let page = state.page_of(c);
                let splits = page.low + 1..page.high;
                actions.extend(splits.map(|s| Action::AllocateRight(c, s)));
            }
            Step::Divided => actions.push(Action::ShortenLeft(c)),
            Step::Shortened => actions.push(Action::InsertSeparator(c)),
            Step::Left => {
                actions.push(Action::LockRight(c));
                actions.push(Action::LockInnerToJoin(c));
            }
            Step::Both => {
                actions.push(Action::LockInnerToJoin(c));
                actions.push(Action::GiveUpJoin(c));
            }
            Step::InnerFirst => actions.push(Action::LockRight(c)),
            Step::Join => actions.push(Action::MoveRecords(c)),
            Step::Joined => actions.push(Action::RemoveSeparator(c)),
        }
    }
}

impl Model for MiniPage {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut page = [Page::UNUSED; PAGES];
        page[0].low = 1;
        page[0].high = self.keys + 1;
        let mut inner = [NO_PAGE; KEYS];
        inner[0] = 1;
        let client = Client {
            call: Call::Idle,
            step: Step::Idle,
            at: NO_PAGE,
            right: NO_PAGE,
        };
        vec![State {
            page,
            client: [client; CLIENTS],
            inner,
            store: [ABSENT; KEYS],
            inner_lock: NOBODY,
            outdated: 0,
            honest: true,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for c in self.all_clients() {
            self.client_actions(state, c, actions);
        }
        actions.extend(self.all_pages().map(Action::EvictMini));
        actions.extend(self.all_pages().map(Action::CopyToTail));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.step(state, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties(&INVARIANTS, &self.invariants)
    }
}

impl Mirror for MiniPage {
    const SPEC: &'static str = "MiniPage";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        values::model(config)
    }

    fn label(action: &Action) -> &'static str {
        match action {
            Action::Call(_, Call::Get { .. }) => "CallGet",
            Action::Call(_, Call::Write { value: ABSENT, .. }) => "CallDelete",
            Action::Call(_, Call::Write { .. }) => "CallPut",
            Action::Call(..) => "CallScan",
            _ => action.into(),
        }
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        self.tla(state)
    }
}
