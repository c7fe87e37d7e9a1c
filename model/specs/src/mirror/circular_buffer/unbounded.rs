//! The mirror as the judge of a recording: it is led step by step, and only its state's size bounds
//! it.
//!
//! A checker asks for every enabled step. A judge has one step in hand and asks whether it is
//! enabled. The guards are the same: a step is taken if it is among the candidates of the thread's
//! phase, and then with the same effect as in a bounded model.

use super::invariants::INVARIANTS;
use super::room::{ABSENT, CLASSES, CLIENTS, NONE, PAGES, PENDING, UNITS};
use super::state::{Block, Call, Phase, State, Thread};
use super::{Action, Bug, CircularBuffer, MayClose};
use crate::Value;

/// The dimensions of a model. Sizes are in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names are those of the spec, which explains them.
pub struct Shape<'a> {
    pub clients: usize,
    pub pages: usize,
    pub capacity: u8,
    pub in_place: u8,
    pub sizes: &'a [u8],
}

impl CircularBuffer {
    /// Stands for no page, record or pointer (`None`).
    pub const NONE: u8 = NONE;
    /// The value of a record that does not exist (`Absent`).
    pub const ABSENT: u8 = ABSENT;
    /// The number of values, which are numbered from 0.
    pub const VALUES: usize = ABSENT as usize;
    /// The result of a read that has not happened yet (`Pending`).
    pub const PENDING: u8 = PENDING;

    /// The protocol for the given number of clients and pages, on a ring of `capacity` units. Any
    /// client may read and write anything at any time.
    ///
    /// # Panics
    /// If the state has no room for as many.
    #[must_use]
    pub fn unbounded(
        clients: usize,
        pages: usize,
        capacity: u8,
        in_place: u8,
        sizes: Vec<u8>,
    ) -> Self {
        assert!(clients <= CLIENTS && pages <= PAGES && sizes.len() <= CLASSES);
        assert!(usize::from(capacity) <= UNITS && (1..=capacity).contains(&in_place));
        let named = |letter: char, n: usize| {
            let names = (1..=n).map(|i| Value::model(format!("{letter}{i}")));
            names.collect::<Vec<_>>()
        };
        Self {
            clients: named('c', clients),
            pages: named('p', pages),
            values: named('v', ABSENT.into()),
            absent: Value::model("Absent"),
            pending: Value::model("Pending"),
            none: Value::model("None"),
            capacity,
            in_place,
            sizes,
            bug: Bug::None,
            may_close: MayClose::Never,
            // A judge is told what a client asks for.
            requests: vec![Vec::new(); clients],
            invariants: INVARIANTS.map(|(name, _)| name).into(),
        }
    }

    /// The model's dimensions.
    #[must_use]
    pub fn shape(&self) -> Shape<'_> {
        Shape {
            clients: self.clients.len(),
            pages: self.pages.len(),
            capacity: self.capacity,
            in_place: self.in_place,
            sizes: &self.sizes,
        }
    }

    /// The first state.
    #[must_use]
    pub fn first(&self) -> State {
        State::INIT
    }

    /// What a client may do next, other than make a call.
    #[must_use]
    pub fn enabled(&self, state: &State, client: u8) -> Vec<Action> {
        let mut actions = Vec::new();
        self.candidates(state, client, &mut actions);
        actions.retain(|action| self.step(state, *action).is_some());
        actions
    }

    /// The state after a step of `client`. `None` if the step is not enabled.
    #[must_use]
    pub fn after(&self, state: &State, client: u8, action: Action) -> Option<State> {
        let idle = self.thread(state, client).phase == Phase::Idle;
        let candidate = match action {
            Action::Call(c, _) => idle && c == client,
            _ => {
                let mut candidates = Vec::new();
                self.candidates(state, client, &mut candidates);
                candidates.contains(&action)
            }
        };
        candidate.then(|| self.step(state, action)).flatten()
    }

    /// What a client's thread is doing.
    #[must_use]
    pub fn thread<'s>(&self, state: &'s State, client: u8) -> &'s Thread {
        &state.thread[usize::from(client)]
    }

    /// The page that a client's call is about.
    #[must_use]
    pub fn asked(&self, state: &State, client: u8) -> Option<u8> {
        match self.thread(state, client).call {
            Call::Get { key, .. } | Call::Write { key, .. } => Some(key),
            Call::None => None,
        }
    }

    /// The block at an offset. If no block begins there, or the offset is out of range, its life is
    /// `None`.
    #[must_use]
    pub fn block_at(&self, state: &State, offset: u8) -> Block {
        let block = state.block.get(usize::from(offset));
        block.copied().unwrap_or(Block::NONE)
    }

    /// Whether a block is in the copy-on-access region.
    #[must_use]
    pub fn near_head(&self, state: &State, offset: u8) -> bool {
        self.in_second_chance(state, offset)
    }

    /// The client that has evicted this block and waits for the head to get there.
    #[must_use]
    pub fn finisher(&self, state: &State, offset: u8) -> Option<u8> {
        let waits = |t: &Thread| t.phase == Phase::Finish && t.work.victim == offset;
        state.thread.iter().position(waits).map(|c| c as u8)
    }

    /// Not a step of the spec: a reader returns although its mini-page is near the head by now,
    /// since it was not when the reader checked.
    #[must_use]
    pub fn late_return(&self, state: &State, client: u8) -> Option<State> {
        let t = self.thread(state, client);
        let Call::Get { key, got } = t.call else {
            return None;
        };
        if t.phase != Phase::Look || got == PENDING {
            return None;
        }
        let mut next = *state;
        next.word[usize::from(key)].readers &= !(1 << client);
        next.thread[usize::from(client)] = Thread::IDLE;
        Some(next)
    }
}
