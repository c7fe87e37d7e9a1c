//! Visits every state of a mirror, breadth first, on several threads.
//!
//! The states are visited level by level: all that are n steps from an initial state before any that
//! is n + 1 steps away. So the depth is exact with any number of threads. Of a state that has been
//! seen, only a fingerprint of 64 bits is kept. Two states with the same one would count as one
//! state; among n states the chance is about n² / 2⁶⁵, that is 1 in 20,000 for forty million.
//!
//! Time is in proportion to the steps. Memory is 9 to 18 bytes for each state, and the states of
//! two levels, each as large as `State`.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use ahash::RandomState;
use stateright::Property;

use crate::Mirror;

/// What a visit has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Visited {
    /// Distinct states. After a violation, those seen until then.
    pub(super) distinct: u64,
    /// The number of levels.
    pub(super) depth: u64,
    /// Whether a state violates an invariant.
    pub(super) violated: bool,
}

/// Visits all states, or until one violates an invariant.
pub(super) fn visit<M: Mirror>(model: &M, threads: usize) -> Visited {
    let search = Search {
        model,
        invariants: model.properties(),
        seen: Seen::new(),
        violated: AtomicBool::new(false),
    };
    let mut depth = 0;
    let mut level = search.begin();
    while !level.is_empty() && !search.ended() {
        depth += 1;
        level = search.level_after(level, threads);
    }
    Visited {
        distinct: search.seen.len(),
        depth,
        violated: search.violated.into_inner(),
    }
}

/// Part of a level, which one thread visits at a time.
type Part<M> = Vec<<M as stateright::Model>::State>;

/// The size of a part in bytes. Several fit into a processor's cache.
const PART_BYTES: usize = 1 << 18;

struct Search<'a, M: Mirror> {
    model: &'a M,
    invariants: Vec<Property<M>>,
    seen: Seen,
    violated: AtomicBool,
}

impl<M: Mirror> Search<'_, M> {
    fn ended(&self) -> bool {
        self.violated.load(Ordering::Relaxed)
    }

    /// Judges a state that is seen for the first time, and keeps it for the next level.
    fn see(&self, state: M::State, next: &mut Level<M>) {
        if !self.model.within_boundary(&state) || !self.seen.insert(&state) {
            return;
        }
        let holds = |invariant: &Property<M>| (invariant.condition)(self.model, &state);
        if !self.invariants.iter().all(holds) {
            self.violated.store(true, Ordering::Relaxed);
        }
        next.push(state);
    }

    fn begin(&self) -> Vec<Part<M>> {
        let mut level = Level::new();
        for state in self.model.init_states() {
            self.see(state, &mut level);
        }
        level.finish()
    }

    /// Takes each step from each state of a level.
    fn level_after(&self, level: Vec<Part<M>>, threads: usize) -> Vec<Part<M>> {
        let threads = threads.clamp(1, level.len());
        // A part is dropped when its states have been visited.
        let pending = Mutex::new(level);
        let visit = || {
            let mut next = Level::new();
            let mut actions = Vec::new();
            while let Some(part) = take(&pending) {
                for state in &part {
                    self.model.actions(state, &mut actions);
                    for action in actions.drain(..) {
                        if let Some(state) = self.model.next_state(state, action) {
                            self.see(state, &mut next);
                        }
                    }
                    if self.ended() {
                        return next.finish();
                    }
                }
            }
            next.finish()
        };
        if threads == 1 {
            return visit();
        }
        thread::scope(|scope| {
            let visitors: Vec<_> = (0..threads).map(|_| scope.spawn(visit)).collect();
            let parts = visitors.into_iter().flat_map(|visitor| {
                let found = visitor.join();
                found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            parts.collect()
        })
    }
}

fn take<T>(pending: &Mutex<Vec<T>>) -> Option<T> {
    locked(pending).pop()
}

/// A thread that panics ends the visit, so nobody relies on what it left.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The states that one thread finds for the next level.
struct Level<M: Mirror> {
    full: Vec<Part<M>>,
    part: Part<M>,
}

impl<M: Mirror> Level<M> {
    const LEN: usize = {
        let len = PART_BYTES / size_of::<M::State>();
        if len > 16 { len } else { 16 }
    };

    fn new() -> Self {
        Self {
            full: Vec::new(),
            part: Vec::new(),
        }
    }

    fn push(&mut self, state: M::State) {
        if self.part.len() == Self::LEN {
            self.full.push(std::mem::take(&mut self.part));
            self.part.reserve_exact(Self::LEN);
        }
        self.part.push(state);
    }

    fn finish(mut self) -> Vec<Part<M>> {
        if !self.part.is_empty() {
            self.part.shrink_to_fit();
            self.full.push(self.part);
        }
        self.full
    }
}

/// The fingerprints of all states seen, in tables that have a lock each.
struct Seen {
    tables: Vec<Mutex<HashSet<u64, BuildHasherDefault<Fingerprint>>>>,
    hasher: RandomState,
}

impl Seen {
    /// Two threads seldom meet in one of so many tables.
    const TABLES: usize = 256;

    fn new() -> Self {
        Self {
            tables: (0..Self::TABLES).map(|_| Mutex::default()).collect(),
            // Fixed, so that every run has the same fingerprints.
            hasher: RandomState::with_seeds(1, 2, 3, 4),
        }
    }

    /// Returns whether the state is new.
    fn insert(&self, state: &impl std::hash::Hash) -> bool {
        let fingerprint = self.hasher.hash_one(state);
        // A table uses the lowest bits and the highest seven.
        let table = (fingerprint >> 40) as usize % Self::TABLES;
        locked(&self.tables[table]).insert(fingerprint)
    }

    fn len(&self) -> u64 {
        let tables = self.tables.iter();
        tables.map(|table| locked(table).len() as u64).sum()
    }
}

/// A fingerprint is a hash already.
#[derive(Default)]
struct Fingerprint(u64);

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a fingerprint is one number");
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Visited, visit};
    use crate::mirror::durable_map::DurableMap;
    use crate::mirror::overflow::Overflow;
    use crate::{Config, Mirror, graph};

    fn model<M: Mirror>(folder: &str, name: &str) -> M {
        let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs");
        let file = format!("MC{}_{name}.cfg", M::SPEC);
        M::from_config(&Config::read(&specs.join(folder).join(file)).unwrap()).unwrap()
    }

    #[test]
    fn any_number_of_threads_sees_the_states_of_the_graph() {
        let model: Overflow = model("overflow", "smoke");
        let alone = visit(&model, 1);
        assert_eq!(alone.distinct, graph::explore(&model).states.len() as u64);
        assert!(!alone.violated && alone.depth > 5, "{alone:?}");
        assert_eq!(visit(&model, 3), alone);
    }

    #[test]
    fn a_violation_ends_the_visit_in_its_level() {
        let model: DurableMap = model("contract", "call-when-down");
        let shortest = graph::counterexample(&model).unwrap().steps.len() as u64;
        for threads in [1, 4] {
            let Visited {
                violated, depth, ..
            } = visit(&model, threads);
            // The last step of the counterexample is seen from the level before.
            assert!(violated && depth + 1 == shortest, "{depth} {shortest}");
        }
    }
}
