//! Inductive invariants, checked from states that need not be reachable.
//!
//! A model checker visits the states that a bounded model reaches. An *inductive* invariant says
//! more: it holds at the beginning, and no step leads out of it, whatever the history was. Then it
//! holds after any number of writes, checkpoints and crashes, and so does what it implies. What is
//! left of the bounds is the size of a single state.
//!
//! ```text
//!   typed states ──▶ those with the invariant ──▶ their steps ──▶ has each the invariant, too?
//!     grow, stage by stage      └──▶ do the protocol's own invariants hold in them?
//! ```
//!
//! Typed states are grown variable by variable ([`Inductive::ways`]). As soon as a conjunct's
//! variables have values, it cuts off what it forbids. A search takes all ways to grow a state, or
//! a sample of them with a seed ([`Plan`]).
//!
//! The invariant is also in TLA+, as `specs/…/IndX.tla`. A test compares both texts on the same
//! states.

mod search;

use serde::Serialize;
use stateright::Model;

pub use self::search::{Induction, Plan, check, typed};
use crate::Mirror;

/// A conjunct of an inductive invariant, by its name in `IndX.tla`.
pub struct Conjunct<M: Model> {
    /// The name.
    pub name: &'static str,
    /// The stages after which it can be judged, and cuts.
    pub at: &'static [u8],
    /// The condition.
    pub holds: Holds<M>,
}

/// A condition on a state.
pub enum Holds<M: Model> {
    /// A condition on the whole.
    Whole(fn(&M, &M::State) -> bool),
    /// A condition on each part, e.g. on each page.
    Each(fn(&M, &M::State, usize) -> bool),
}

impl<M: Model> Conjunct<M> {
    /// A condition on the whole, judged after these stages.
    pub const fn whole(
        name: &'static str,
        at: &'static [u8],
        holds: fn(&M, &M::State) -> bool,
    ) -> Self {
        let holds = Holds::Whole(holds);
        Conjunct { name, at, holds }
    }

    /// A condition on each part, judged after these stages.
    pub const fn each(
        name: &'static str,
        at: &'static [u8],
        holds: fn(&M, &M::State, usize) -> bool,
    ) -> Self {
        let holds = Holds::Each(holds);
        Conjunct { name, at, holds }
    }
}

impl<M: Inductive> Conjunct<M> {
    /// Whether it holds in a state.
    pub fn holds(&self, model: &M, state: &M::State) -> bool {
        match self.holds {
            Holds::Whole(holds) => holds(model, state),
            Holds::Each(holds) => (0..model.parts()).all(|part| holds(model, state, part)),
        }
    }

    /// Whether it holds of a part, in a state of which that part has values.
    fn holds_of(&self, model: &M, state: &M::State, part: usize) -> bool {
        match self.holds {
            Holds::Whole(holds) => holds(model, state),
            Holds::Each(holds) => holds(model, state, part),
        }
    }
}

/// A step in which a state grows: some variables of one part get values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowthStage {
    /// The kind, which [`Conjunct::at`] names.
    pub kind: u8,
    /// The part.
    pub part: usize,
    /// Which of several alike, e.g. which block of a page.
    pub number: usize,
    /// How many ways a sample takes from here. A search for all states takes all.
    pub width: usize,
}

impl GrowthStage {
    /// A stage of a kind: of which part, which of several alike, and how many ways a sample takes.
    #[must_use]
    pub const fn new(kind: u8, part: usize, number: usize, width: usize) -> Self {
        GrowthStage {
            kind,
            part,
            number,
            width,
        }
    }
}

/// A mirror with an inductive invariant.
pub trait Inductive: Mirror {
    /// What a stage gives to its variables.
    type Way;

    /// The invariant.
    const CONJUNCTS: &'static [Conjunct<Self>];

    /// The number of parts.
    fn parts(&self) -> usize;

    /// The stages in which a state grows.
    fn stages(&self) -> Vec<GrowthStage>;

    /// The state from which others grow.
    fn blank(&self) -> Self::State;

    /// All typed ways to grow a state in this stage. Blocks and the like that a conjunct forbids in
    /// any state may be left out, unless that conjunct is [`Plan::without`].
    fn ways(&self, state: &Self::State, stage: GrowthStage, plan: &Plan) -> Vec<Self::Way>;

    /// Grows a state in one of these ways. It may have been grown in another before.
    fn grow(&self, state: &mut Self::State, stage: GrowthStage, way: &Self::Way);
}

/// Why an invariant is not inductive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The conjunct, or the protocol's invariant, that does not hold.
    pub conjunct: String,
    /// The step that leads to a state without it. `None` if the invariant does not hold in the
    /// initial state, or does not imply the protocol's.
    pub action: Option<String>,
    /// The state before, in which the invariant holds, as TLA+.
    pub state: String,
    /// The state after the step, as TLA+.
    pub next: Option<String>,
}
