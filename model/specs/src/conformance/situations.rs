//! Measures how much of a mirror's graph the engine covers if it cannot be led through it state by
//! state. For each step that a judge takes, the *situation* is noted, which is the part of the
//! state that the step depends on. The same is done for every labelled edge of a model's graph. A
//! situation of the graph is covered if it occurred. This is weaker than taking an edge, since the
//! rest of the state may differ.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashSet;

use crate::Mirror;

/// Situations, by action.
pub type Situations = BTreeMap<&'static str, BTreeSet<String>>;

/// The situations of a model that recordings have covered.
#[derive(Clone, Debug)]
pub struct Cover<Episode, Refusal> {
    /// States of the graph.
    pub states: usize,
    /// Labelled edges of the graph.
    pub edges: usize,
    /// Situations of the graph's edges.
    pub all: Situations,
    /// The situations that occurred in recordings.
    pub heard: Situations,
    /// Situations that occurred and that the graph does not have: the engine has more room.
    pub beyond: usize,
    /// Accepted events.
    pub events: u64,
    /// The first refusal, with its episode.
    pub refusal: Option<(Episode, Box<Refusal>)>,
}

impl<Episode, Refusal> Default for Cover<Episode, Refusal> {
    fn default() -> Self {
        Self {
            states: 0,
            edges: 0,
            all: Situations::new(),
            heard: Situations::new(),
            beyond: 0,
            events: 0,
            refusal: None,
        }
    }
}

impl<Episode, Refusal> Cover<Episode, Refusal> {
    /// The situations of a model, none covered yet.
    pub(super) fn of<M: Mirror>(
        mirror: &M,
        situations: impl Fn(&M::State, &M::Action, &M::State) -> Vec<String>,
    ) -> Self {
        let mut cover = Self::default();
        cover.add(mirror, situations);
        cover
    }

    /// Adds the situations of a further model.
    pub(super) fn add<M: Mirror>(
        &mut self,
        mirror: &M,
        situations: impl Fn(&M::State, &M::Action, &M::State) -> Vec<String>,
    ) {
        let mut known = FxHashSet::default();
        let mut pending = VecDeque::from(mirror.init_states());
        known.extend(pending.iter().cloned());
        let mut actions = Vec::new();
        while let Some(at) = pending.pop_front() {
            mirror.actions(&at, &mut actions);
            let mut edges = FxHashSet::default();
            for action in actions.drain(..) {
                let Some(next) = mirror.next_state(&at, action.clone()) else {
                    continue;
                };
                let label = M::label(&action);
                let met = situations(&at, &action, &next);
                self.all.entry(label).or_default().extend(met);
                edges.insert((label, next.clone()));
                if known.insert(next.clone()) {
                    pending.push_back(next);
                }
            }
            self.edges += edges.len();
        }
        self.states += known.len();
    }

    /// Actions that never occurred, except those that the engine does not have.
    #[must_use]
    pub fn never(&self, except: &[&str]) -> Vec<&'static str> {
        let labels = self.all.keys().copied();
        labels
            .filter(|label| !except.contains(label) && !self.heard.contains_key(label))
            .collect()
    }

    /// The number of situations that occurred.
    #[must_use]
    pub fn met(&self) -> usize {
        self.heard.values().map(BTreeSet::len).sum()
    }

    /// The number of situations for which `why_not` has no reason why they cannot occur.
    #[must_use]
    pub fn possible(&self, why_not: impl Fn(&str, &str) -> Option<&'static str>) -> usize {
        each(&self.all)
            .filter(|(label, situation)| why_not(label, situation).is_none())
            .count()
    }

    /// Situations that occurred, and for which `why_not` has a reason why they cannot.
    #[must_use]
    pub fn wrong(
        &self,
        why_not: impl Fn(&str, &str) -> Option<&'static str>,
    ) -> Vec<(&'static str, &str)> {
        each(&self.heard)
            .filter(|(label, situation)| why_not(label, situation).is_some())
            .collect()
    }

    /// Adds the situations that occurred.
    pub(super) fn hear(&mut self, heard: Situations) {
        for (label, situations) in heard {
            for situation in situations {
                let all = self.all.get(label);
                if all.is_some_and(|all| all.contains(&situation)) {
                    self.heard.entry(label).or_default().insert(situation);
                } else {
                    self.beyond += 1;
                }
            }
        }
    }
}

/// Each situation with its action.
fn each(situations: &Situations) -> impl Iterator<Item = (&'static str, &str)> {
    situations
        .iter()
        .flat_map(|(label, those)| those.iter().map(|it| (*label, it.as_str())))
}
