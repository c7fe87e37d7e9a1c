//! The mirror as the judge of a recording: it is led step by step, and only its state's size bounds
//! it.

use super::bug::Bug;
use super::invariants::INVARIANTS;
use super::records::{ABSENT, Kind, Page, Record, Sizes};
use super::room::{CLIENTS, KEYS, PENDING};
use super::state::{Call, Client, Rows, State, Step};
use super::{Action, MiniPage};
use crate::Value;
use stateright::Model;

impl Client {
    /// The client's outstanding call.
    #[must_use]
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The client's progress.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// The page that the client goes to or holds. 0 if none.
    #[must_use]
    pub fn at(&self) -> u8 {
        self.at
    }

    /// The right-hand page of its split or join. 0 if none.
    #[must_use]
    pub fn right(&self) -> u8 {
        self.right
    }
}

impl Call {
    /// A new get (`GetCall`).
    #[must_use]
    pub fn get(key: u8) -> Call {
        Call::Get { key, got: PENDING }
    }

    /// A new scan (`ScanCall`).
    #[must_use]
    pub fn scan() -> Call {
        Call::Scan {
            cursor: 1,
            rows: Rows::NONE,
        }
    }

    /// The rows that a scan has returned: keys and values.
    #[must_use]
    pub fn rows(&self) -> Vec<(u8, u8)> {
        match self {
            Call::Scan { rows, .. } => rows.iter().collect(),
            _ => Vec::new(),
        }
    }
}

impl MiniPage {
    /// The maximum number of clients in a state.
    pub const MOST_CLIENTS: usize = CLIENTS;
    /// The maximum number of keys.
    pub const MOST_KEYS: usize = KEYS;

    /// The protocol for the given number of clients and keys. Any client may ask for anything and
    /// maintain the tree.
    ///
    /// # Panics
    /// If the state has no room for as many.
    #[must_use]
    pub fn unbounded(clients: usize, keys: usize, sizes: Vec<u8>, capacity: u8) -> Self {
        assert!(clients <= CLIENTS && keys <= KEYS, "no room");
        let named = |letter: char, n: usize| {
            let names = (1..=n).map(|i| Value::model(format!("{letter}{i}")));
            names.collect::<Vec<_>>()
        };
        Self {
            clients: named('c', clients),
            values: named('v', usize::from(PENDING) - 1),
            absent: Value::model("Absent"),
            pending: Value::model("Pending"),
            keys: keys as u8,
            pages: keys as u8,
            sizes: Sizes(sizes),
            capacity,
            bug: Bug::None,
            // A judge is told what a client asks for.
            requests: vec![Vec::new(); clients],
            keepers: (0..clients).fold(0, |all, c| all | 1 << c),
            invariants: INVARIANTS.map(|(name, _)| name).into(),
        }
    }

    /// The first state.
    #[must_use]
    pub fn first(&self) -> State {
        self.init_states()[0]
    }

    /// What a client may do next, other than make a call or maintain the tree.
    #[must_use]
    pub fn enabled(&self, state: &State, client: u8) -> Vec<Action> {
        let mut actions = Vec::new();
        if state.client(client).step != Step::Idle {
            self.client_actions(state, client, &mut actions);
        }
        actions.retain(|action| self.step(state, *action).is_some());
        actions
    }

    /// The state after a step. `None` if it is not enabled.
    #[must_use]
    pub fn after(&self, state: &State, action: Action) -> Option<State> {
        self.step(state, action)
    }

    /// The state of a client.
    #[must_use]
    pub fn client<'s>(&self, state: &'s State, client: u8) -> &'s Client {
        state.client(client)
    }

    /// A page, by its number from 1.
    #[must_use]
    pub fn page<'s>(&self, state: &'s State, page: u8) -> &'s Page {
        state.page(page)
    }

    /// Whether the inner node is unchanged since the client read it.
    #[must_use]
    pub fn is_valid(&self, state: &State, client: u8) -> bool {
        self.validates(state, client)
    }

    /// Not a step of the spec: a delete of a key that a record of the mini-page says is absent
    /// changes nothing.
    #[must_use]
    pub fn absent_already(&self, state: &State, client: u8) -> Option<State> {
        let Client { call, step, at, .. } = *state.client(client);
        let Call::Write { key, value: ABSENT } = call else {
            return None;
        };
        if step != Step::Write {
            return None;
        }
        let record = state.page(at).mini.record(key);
        if !record.is_some() || record.value() != ABSENT {
            return None;
        }
        let mut next = *state;
        next.leave(client, Step::Answered);
        Some(next)
    }

    /// Not a step of the spec: a scan continues at this key, wherever it was. Key 0 ends it.
    #[must_use]
    pub fn scans_from(&self, state: &State, client: u8, key: u8) -> State {
        let mut next = *state;
        let scan = next.client_mut(client);
        scan.call = Call::Scan {
            cursor: key.max(1),
            rows: Rows::NONE,
        };
        if scan.step != Step::Scan {
            scan.step = if key == 0 {
                Step::Answered
            } else {
                Step::Descend
            };
        }
        next
    }

    /// Not a step of the spec: restores a page's reference bits to those before a scan.
    #[must_use]
    pub fn untouched(&self, before: &State, after: &State, page: u8) -> State {
        let mut next = *after;
        next.page_mut(page).mini = before.page(page).mini;
        next
    }

    /// Not a step of the spec: a mini-page becomes a mirror of its leaf, whether or not it has been
    /// merged, with phantoms for these keys.
    #[must_use]
    pub fn mirrored(&self, state: &State, page: u8, is_phantom: impl Fn(u8) -> bool) -> State {
        let mut next = *state;
        let page = next.page_mut(page);
        for ((key, record), content) in (1..).zip(&mut page.mini.rec).zip(page.leaf) {
            if record.is_some() && record.kind() != Kind::Phantom {
                continue;
            }
            *record = if content == ABSENT && !is_phantom(key) {
                Record::NONE
            } else {
                Record::cached(content, false)
            };
        }
        (page.mini.mirror, page.mini.size) = (true, self.capacity);
        next
    }

    /// Not a step of the spec: a mirror is merged and remains a mirror.
    #[must_use]
    pub fn merged_mirror(&self, state: &State, page: u8) -> State {
        let mut next = *state;
        let page = next.page_mut(page);
        page.leaf = page.merged(self.bug);
        page.mini.rec = page.mini.rec.map(Record::cleaned);
        next
    }

    /// Not a step of the spec: sets the reference bits of a mini-page.
    #[must_use]
    pub fn with_bits(&self, state: &State, page: u8, used: impl Fn(u8) -> bool) -> State {
        let mut next = *state;
        for (key, record) in (1..).zip(&mut next.page_mut(page).mini.rec) {
            *record = if used(key) {
                record.touched()
            } else {
                record.cooled()
            };
        }
        next
    }
}
