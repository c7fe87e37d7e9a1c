//! Visits every state of a mirror, breadth first, on several threads.
//!
//! The states are visited level by level: all that are n steps from an initial state before any that
//! is n + 1 steps away. So the depth is exact with any number of threads. Of a state that has been
//! seen, only a fingerprint of 64 bits is kept. Two states with the same one would count as one
//! state; among n states the chance is about n² / 2⁶⁵, that is 1 in 20,000 for forty million.
//!
//! Time is in proportion to the steps. Memory is 9 to 18 bytes for each state, and a budget for the
//! states of two levels ([`super::frontier`]).

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use ahash::RandomState;
use stateright::Property;

use super::frontier::{Budget, FrontierError, Packer, Part, Shelf};
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
///
/// # Errors
/// The frontier exceeds its budget, and cannot be kept elsewhere.
pub(super) fn visit<M: Mirror>(
    model: &M,
    threads: usize,
    budget: &Budget,
) -> Result<Visited, FrontierError> {
    let search = Search {
        model,
        invariants: model.properties(),
        seen: Seen::new(),
        violated: AtomicBool::new(false),
        budget,
    };
    let mut depth = 0;
    let mut level = search.begin()?;
    while !level.is_empty() && !search.ended() {
        depth += 1;
        level = search.level_after(level, threads)?;
    }
    Ok(Visited {
        distinct: search.seen.len(),
        depth,
        violated: search.violated.into_inner(),
    })
}

/// The parts of a level, each of which one thread visits at a time.
type Parts<M> = Vec<Part<<M as stateright::Model>::State>>;

/// The size of a part in bytes, while it is plain. Several fit into a processor's cache.
const PART_BYTES: usize = 1 << 18;

struct Search<'a, M: Mirror> {
    model: &'a M,
    invariants: Vec<Property<M>>,
    seen: Seen,
    violated: AtomicBool,
    budget: &'a Budget,
}

impl<M: Mirror> Search<'_, M> {
    fn ended(&self) -> bool {
        self.violated.load(Ordering::Relaxed)
    }

    /// Judges a state that is seen for the first time, and keeps it for the next level.
    fn see(&self, state: M::State, next: &mut Level<'_, M>) -> Result<(), FrontierError> {
        if !self.model.within_boundary(&state) || !self.seen.insert(&state) {
            return Ok(());
        }
        let holds = |invariant: &Property<M>| (invariant.condition)(self.model, &state);
        if !self.invariants.iter().all(holds) {
            self.violated.store(true, Ordering::Relaxed);
        }
        next.push(state)
    }

    fn begin(&self) -> Result<Parts<M>, FrontierError> {
        let shelf = Shelf::default();
        let mut level = Level::new(self.budget, &shelf);
        for state in self.model.init_states() {
            self.see(state, &mut level)?;
        }
        level.finish()
    }

    /// Takes each step from each state of a level.
    fn level_after(&self, level: Parts<M>, threads: usize) -> Result<Parts<M>, FrontierError> {
        let threads = threads.clamp(1, level.len());
        // A part is dropped when its states have been visited.
        let pending = Mutex::new(level);
        let shelf = Shelf::default();
        let visit = || {
            let next = Level::new(self.budget, &shelf);
            let found = self.visit_parts(&pending, next);
            if found.is_err() {
                // The other threads need not go on.
                locked(&pending).clear();
            }
            found
        };
        if threads == 1 {
            return visit();
        }
        thread::scope(|scope| {
            let visitors: Vec<_> = (0..threads).map(|_| scope.spawn(visit)).collect();
            let mut parts = Vec::new();
            for visitor in visitors {
                let found = visitor.join();
                parts.extend(found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok(parts)
        })
    }

    fn visit_parts(
        &self,
        pending: &Mutex<Parts<M>>,
        mut next: Level<'_, M>,
    ) -> Result<Parts<M>, FrontierError> {
        let mut actions = Vec::new();
        while let Some(part) = take(pending) {
            for state in &next.packer.unpack(part)? {
                self.model.actions(state, &mut actions);
                for action in actions.drain(..) {
                    if let Some(state) = self.model.next_state(state, action) {
                        self.see(state, &mut next)?;
                    }
                }
                if self.ended() {
                    return next.finish();
                }
            }
        }
        next.finish()
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
struct Level<'a, M: Mirror> {
    full: Parts<M>,
    /// The part that is being made.
    states: Vec<M::State>,
    packer: Packer<'a>,
    shelf: &'a Shelf,
}

impl<'a, M: Mirror> Level<'a, M> {
    const LEN: usize = {
        let len = PART_BYTES / size_of::<M::State>();
        if len > 16 { len } else { 16 }
    };

    fn new(budget: &'a Budget, shelf: &'a Shelf) -> Self {
        Self {
            full: Vec::new(),
            states: Vec::new(),
            packer: Packer::new(budget),
            shelf,
        }
    }

    fn push(&mut self, state: M::State) -> Result<(), FrontierError> {
        if self.states.len() == Self::LEN {
            let states = std::mem::take(&mut self.states);
            self.full.push(self.packer.pack(states, self.shelf)?);
            self.states.reserve_exact(Self::LEN);
        }
        self.states.push(state);
        Ok(())
    }

    fn finish(mut self) -> Result<Parts<M>, FrontierError> {
        if !self.states.is_empty() {
            self.states.shrink_to_fit();
            self.full.push(self.packer.pack(self.states, self.shelf)?);
        }
        Ok(self.full)
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
    use std::fs::File;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::frontier::{Budget, FrontierError, MEMORY};
    use super::{Visited, visit};
    use crate::mirror::durable_map::DurableMap;
    use crate::mirror::overflow::Overflow;
    use crate::{Config, Mirror, graph};

    fn model<M: Mirror>(folder: &str, name: &str) -> M {
        let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs");
        let file = format!("MC{}_{name}.cfg", M::SPEC);
        M::from_config(&Config::read(&specs.join(folder).join(file)).unwrap()).unwrap()
    }

    fn visit_with(model: &impl Mirror, threads: usize, memory: u64) -> Visited {
        visit(model, threads, &Budget::new(memory)).unwrap()
    }

    #[test]
    fn any_number_of_threads_sees_the_states_of_the_graph() {
        let model: Overflow = model("overflow", "smoke");
        let alone = visit_with(&model, 1, MEMORY);
        assert_eq!(alone.distinct, graph::explore(&model).states.len() as u64);
        assert!(!alone.violated && alone.depth > 5, "{alone:?}");
        assert_eq!(visit_with(&model, 3, MEMORY), alone);
    }

    #[test]
    fn a_violation_ends_the_visit_in_its_level() {
        let model: DurableMap = model("contract", "call-when-down");
        let shortest = graph::counterexample(&model).unwrap().steps.len() as u64;
        for threads in [1, 4] {
            let Visited {
                violated, depth, ..
            } = visit_with(&model, threads, MEMORY);
            // The last step of the counterexample is seen from the level before.
            assert!(violated && depth + 1 == shortest, "{depth} {shortest}");
        }
    }

    #[test]
    fn any_memory_sees_the_same_whatever_is_kept_in_files() {
        static FILES: AtomicUsize = AtomicUsize::new(0);
        let count = || {
            FILES.fetch_add(1, Ordering::Relaxed);
            tempfile::tempfile()
        };
        let (right, wrong): (Overflow, DurableMap) = (
            model("overflow", "smoke"),
            model("contract", "call-when-down"),
        );
        let (holds, violated) = (visit_with(&right, 1, MEMORY), visit_with(&wrong, 1, MEMORY));
        for (memory, files) in [(0, holds.depth), (4_000, 1), (MEMORY, 0)] {
            FILES.store(0, Ordering::Relaxed);
            let seen = visit(&right, 1, &Budget::with_files(memory, count)).unwrap();
            assert_eq!(seen, holds, "{memory}");
            let made = FILES.load(Ordering::Relaxed) as u64;
            assert!(
                made >= files && (made > 0) == (files > 0),
                "{memory}: {made}"
            );
            assert_eq!(visit_with(&right, 3, memory), holds, "{memory}");
            assert_eq!(visit_with(&wrong, 1, memory), violated, "{memory}");
        }
    }

    fn open(path: &str) -> std::io::Result<File> {
        File::options().read(true).write(true).open(path)
    }

    #[test]
    fn a_disk_that_is_full_or_loses_writes_is_an_error_and_no_verdict() {
        let model: Overflow = model("overflow", "smoke");
        for threads in [1, 3] {
            let full = Budget::with_files(0, || open("/dev/full"));
            let error = visit(&model, threads, &full).unwrap_err();
            assert!(matches!(error, FrontierError::File(_)), "{error}");
            assert!(error.to_string().contains("No space left"), "{error}");
            // What it says of what was written: zeros.
            let lost = Budget::with_files(0, || open("/dev/zero"));
            let error = visit(&model, threads, &lost).unwrap_err();
            assert!(matches!(error, FrontierError::Damaged), "{error}");
            let none = Budget::with_files(0, || open("/no/such/folder"));
            let error = visit(&model, threads, &none).unwrap_err();
            assert!(error.to_string().contains("No such file"), "{error}");
        }
    }
}
