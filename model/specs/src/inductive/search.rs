//! The search for a step out of an inductive invariant.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;
use rustc_hash::FxHashSet;
use serde::Serialize;

use super::{Broken, GrowthStage, Inductive};
use crate::mirror::Condition;
use crate::value::state_text;

/// Samples that end without a state in a row, after which a search gives up.
const DEAD_ENDS: u64 = 1_000_000;
/// States between two reports of progress.
const REPORT: u64 = 10_000;

/// What a search tries.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many different states with the invariant it looks for. `None`: all in the domain.
    pub states: Option<u64>,
    /// The seed of a sample.
    pub seed: u64,
    /// The most versions of a block, or of a word, that a crash may choose from.
    pub versions: usize,
    /// A conjunct that is left out, to see what it is for.
    pub without: Option<String>,
}

impl Plan {
    /// Whether this conjunct is left out.
    #[must_use]
    pub fn is_without(&self, conjunct: &str) -> bool {
        self.without.as_deref() == Some(conjunct)
    }
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Induction {
    /// Typed states, whole or in part, that were tried.
    pub tried: u64,
    /// Different states with the invariant.
    pub kept: u64,
    /// Steps taken from them.
    pub steps: u64,
    /// Steps by action.
    pub actions: BTreeMap<&'static str, u64>,
    /// States in which all conjuncts hold but the one that is left out.
    pub lacking: u64,
    /// Why the invariant is not inductive.
    pub broken: Option<Broken>,
}

/// Searches for a step out of the invariant. `tell` hears of the progress.
pub fn check<M: Inductive>(model: &M, plan: &Plan, tell: &dyn Fn(&Induction)) -> Induction {
    let mut search = Search::new(model, plan, tell);
    search.begin();
    search.run();
    search.found
}

/// The states that [`check`] would take steps from.
#[must_use]
pub fn typed<M: Inductive>(model: &M, plan: &Plan) -> Vec<M::State> {
    let mut search = Search::new(model, plan, &|_| {});
    search.kept = Some(Vec::new());
    search.run();
    search.kept.unwrap_or_default()
}

struct Search<'a, M: Inductive> {
    model: &'a M,
    plan: &'a Plan,
    tell: &'a dyn Fn(&Induction),
    stages: Vec<GrowthStage>,
    promised: Vec<(&'static str, Condition<M>)>,
    random: SmallRng,
    seen: FxHashSet<u64>,
    found: Induction,
    /// The states, if they are wanted in place of their steps.
    kept: Option<Vec<M::State>>,
}

fn hash<T: Hash>(state: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

impl<'a, M: Inductive> Search<'a, M> {
    fn new(model: &'a M, plan: &'a Plan, tell: &'a dyn Fn(&Induction)) -> Self {
        let promised = model.properties();
        Self {
            model,
            plan,
            tell,
            stages: model.stages(),
            promised: promised.iter().map(|p| (p.name, p.condition)).collect(),
            random: SmallRng::seed_from_u64(plan.seed),
            seen: FxHashSet::default(),
            found: Induction::default(),
            kept: None,
        }
    }

    fn run(&mut self) {
        let mut dead_ends = 0;
        while self.wants_more() && dead_ends < DEAD_ENDS {
            let before = self.found.kept;
            self.descend(0, &self.model.blank());
            if self.plan.states.is_none() {
                return;
            }
            let dry = self.found.kept == before;
            dead_ends = if dry { dead_ends + 1 } else { 0 };
        }
    }

    fn wants_more(&self) -> bool {
        let enough = self
            .plan
            .states
            .is_some_and(|states| self.found.kept >= states);
        self.found.broken.is_none() && !enough
    }

    /// The initial state has the invariant.
    fn begin(&mut self) {
        for state in self.model.init_states() {
            if let Some(conjunct) = self.lacks(&state) {
                self.found.broken = Some(self.story(conjunct, &state, None));
            }
        }
    }

    /// The first conjunct that does not hold in a state.
    fn lacks(&self, state: &M::State) -> Option<&'static str> {
        let kept = |name| !self.plan.is_without(name);
        let mut all = M::CONJUNCTS.iter().filter(|c| kept(c.name));
        all.find(|c| !c.holds(self.model, state)).map(|c| c.name)
    }

    fn story(
        &self,
        conjunct: &str,
        state: &M::State,
        step: Option<(&M::Action, &M::State)>,
    ) -> Broken {
        let text = |state| state_text(&self.model.variables(state));
        Broken {
            conjunct: conjunct.to_owned(),
            action: step.map(|(action, _)| format!("{action:?}")),
            state: text(state),
            next: step.map(|(_, next)| text(next)),
        }
    }

    fn descend(&mut self, at: usize, state: &M::State) {
        let Some(stage) = self.stages.get(at).copied() else {
            self.judge(state);
            return;
        };
        let mut ways = self.model.ways(state, stage, self.plan);
        let sample = self.plan.states.is_some();
        if sample {
            ways.shuffle(&mut self.random);
        }
        let (mut next, mut taken) = (state.clone(), 0);
        for way in ways {
            if sample && taken == stage.width || !self.wants_more() {
                return;
            }
            self.model.grow(&mut next, stage, &way);
            self.found.tried += 1;
            if self.allowed(&next, stage) {
                taken += 1;
                self.descend(at + 1, &next);
            }
        }
    }

    /// Whether the conjuncts that can be judged after this stage hold.
    fn allowed(&self, state: &M::State, stage: GrowthStage) -> bool {
        let judged = M::CONJUNCTS
            .iter()
            .filter(|c| c.at.contains(&stage.kind) && !self.plan.is_without(c.name));
        judged
            .into_iter()
            .all(|c| c.holds_of(self.model, state, stage.part))
    }

    fn judge(&mut self, state: &M::State) {
        if self.lacks(state).is_some() || !self.seen.insert(hash(state)) {
            return;
        }
        self.found.kept += 1;
        if let Some(kept) = &mut self.kept {
            kept.push(state.clone());
            return;
        }
        if self.found.kept.is_multiple_of(REPORT) {
            (self.tell)(&self.found);
        }
        let mut without = M::CONJUNCTS.iter().filter(|c| self.plan.is_without(c.name));
        self.found.lacking += u64::from(without.any(|c| !c.holds(self.model, state)));
        let broken = self
            .promised
            .iter()
            .find(|(_, holds)| !holds(self.model, state));
        if let Some((name, _)) = broken {
            self.found.broken = Some(self.story(name, state, None));
            return;
        }
        let mut actions = Vec::new();
        self.model.actions(state, &mut actions);
        for action in actions {
            let Some(next) = self.model.next_state(state, action.clone()) else {
                continue;
            };
            self.found.steps += 1;
            *self.found.actions.entry(M::label(&action)).or_default() += 1;
            if let Some(conjunct) = self.lacks(&next) {
                self.found.broken = Some(self.story(conjunct, state, Some((&action, &next))));
                return;
            }
        }
    }
}
