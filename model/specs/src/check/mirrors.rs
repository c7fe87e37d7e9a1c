//! The mirrors, by the name of the spec.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use super::frontier::{self, Budget, FrontierError};
use super::visit::visit;
use super::walks::{self, Walked};
use super::{cpu, explorer};
use crate::ghosts::{self, Projection};
use crate::graph::{self, Counterexample, Graph, Step};
use crate::inductive::{self, Induction, Inductive, Plan};
use crate::mirror::circular_buffer::CircularBuffer;
use crate::mirror::copy_on_write::CopyOnWrite;
use crate::mirror::durable_map::DurableMap;
use crate::mirror::index_snapshot::IndexSnapshot;
use crate::mirror::leaf_buffering::LeafBuffering;
use crate::mirror::leaf_layout::LeafLayout;
use crate::mirror::mini_page::MiniPage;
use crate::mirror::no_room;
use crate::mirror::overflow::Overflow;
use crate::mirror::page_shadowing::PageShadowing;
use crate::mirror::page_shadowing::versions::PageVersions;
use crate::mirror::redo_log::RedoLog;
use crate::mirror::surrogate_buffer::SurrogateBuffer;
use crate::mirror::wal_recovery::WalRecovery;
use crate::mirror::write_batch::WriteBatch;
use crate::{Config, ConfigError, Mirror};

/// The specs that have a mirror.
pub const SPECS: [&str; 14] = [
    DurableMap::SPEC,
    CircularBuffer::SPEC,
    MiniPage::SPEC,
    WalRecovery::SPEC,
    WriteBatch::SPEC,
    RedoLog::SPEC,
    PageShadowing::SPEC,
    PageVersions::SPEC,
    CopyOnWrite::SPEC,
    IndexSnapshot::SPEC,
    Overflow::SPEC,
    LeafLayout::SPEC,
    LeafBuffering::SPEC,
    SurrogateBuffer::SPEC,
];

/// The specs of `specs/layers`, which run the modules of others together. They have no mirror:
/// each of their layers has one.
pub const COMPOSED: [&str; 5] = [
    "MiniOverPlaces",
    "WalUnderTree",
    "WalOverPages",
    "BfTree",
    "BMinusTree",
];

/// The specs that have an inductive invariant (`IndX.tla`).
pub const INDUCTIVE: [&str; 4] = [
    WalRecovery::SPEC,
    PageShadowing::SPEC,
    LeafBuffering::SPEC,
    SurrogateBuffer::SPEC,
];

/// Whether a spec has a mirror.
#[must_use]
pub fn is_mirrored(spec: &str) -> bool {
    SPECS.contains(&spec)
}

/// The result of checking a mirror.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Distinct states within the bounds. After a violation, those seen until then.
    pub distinct: u64,
    /// The length of the longest shortest path, in states.
    pub depth: u64,
    /// Wall-clock time.
    pub elapsed: Duration,
    /// Processor time, if the system reports it.
    pub cpu: Option<Duration>,
    /// Whether an invariant was violated.
    pub violated: bool,
}

/// What a search may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Threads.
    pub threads: usize,
    /// Memory for the states of the level that is visited and of the next, in bytes. Those that
    /// exceed it are kept in temporary files.
    pub memory: u64,
}

impl Default for Effort {
    /// One thread, and [`frontier::MEMORY`].
    fn default() -> Self {
        Self {
            threads: 1,
            memory: frontier::MEMORY,
        }
    }
}

/// Why a search has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The model needs more room than the mirror has.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The states of two levels need more room than there is.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}

/// A mirror with its types erased.
pub trait AnyMirror: Send + Sync {
    /// Checks the invariants in all states, breadth first, until one is violated.
    ///
    /// # Errors
    /// The model needs more room than the mirror has, or the search more room than it finds.
    fn run(&self, effort: &Effort) -> Result<Run, RunError>;
    /// Checks the invariants on random walks, until one is violated.
    ///
    /// # Errors
    /// The model needs more room than the mirror has.
    fn walk_at_random(&self, walks: u64) -> Result<Walked, ConfigError>;
    /// The whole state graph.
    ///
    /// # Errors
    /// The model needs more room than the mirror has.
    fn graph(&self) -> Result<Graph, ConfigError>;
    /// The state graph without these variables.
    ///
    /// # Errors
    /// The model needs more room than the mirror has.
    fn project(&self, ghosts: &BTreeSet<String>) -> Result<Projection, ConfigError>;
    /// A shortest counterexample to an invariant.
    ///
    /// # Errors
    /// The model needs more room than the mirror has.
    fn counterexample(&self) -> Result<Option<Counterexample>, ConfigError>;
    /// The names of all actions that are ever taken.
    ///
    /// # Errors
    /// The model needs more room than the mirror has.
    fn labels(&self) -> Result<BTreeSet<&'static str>, ConfigError>;
    /// The text of a state, by its hash.
    fn text(&self, state: u128) -> Option<String>;
    /// Replays a behaviour, to a state that violates `property`.
    ///
    /// # Errors
    /// The first step that the mirror does not take, or that `property` holds in the last state.
    fn walk(&self, steps: &[Step], property: &str) -> Result<(), String>;
    /// The mirror's own action for each step of a behaviour, with its parameters.
    fn acted(&self, steps: &[Step]) -> Vec<Option<String>>;
    /// Serves Stateright Explorer. Returns only when the process ends.
    fn serve(&self, address: SocketAddr);
}

struct Typed<M> {
    mirror: M,
    config: Config,
}

impl<M: Mirror> Typed<M> {
    fn within<T>(&self, run: impl FnOnce(&M) -> T) -> Result<T, ConfigError> {
        no_room::within(&self.config, || run(&self.mirror))
    }
}

impl<M: Mirror> AnyMirror for Typed<M> {
    fn walk_at_random(&self, walks: u64) -> Result<Walked, ConfigError> {
        self.within(|mirror| walks::walk(mirror, walks))
    }

    fn run(&self, effort: &Effort) -> Result<Run, RunError> {
        let (clock, processor) = (std::time::Instant::now(), cpu::own());
        let budget = Budget::new(effort.memory);
        let visited = self.within(|mirror| visit(mirror, effort.threads, &budget))??;
        Ok(Run {
            distinct: visited.distinct,
            depth: visited.depth,
            elapsed: clock.elapsed(),
            cpu: cpu::since(processor, cpu::own()),
            violated: visited.violated,
        })
    }

    fn graph(&self) -> Result<Graph, ConfigError> {
        self.within(graph::explore)
    }

    fn project(&self, ghosts: &BTreeSet<String>) -> Result<Projection, ConfigError> {
        self.within(|mirror| ghosts::project(mirror, ghosts))
    }

    fn labels(&self) -> Result<BTreeSet<&'static str>, ConfigError> {
        self.within(graph::labels)
    }

    fn counterexample(&self) -> Result<Option<Counterexample>, ConfigError> {
        self.within(graph::counterexample)
    }

    fn text(&self, state: u128) -> Option<String> {
        graph::mirror_text(&self.mirror, state)
    }

    fn walk(&self, steps: &[Step], property: &str) -> Result<(), String> {
        graph::walk(&self.mirror, steps, property)
    }

    fn acted(&self, steps: &[Step]) -> Vec<Option<String>> {
        acted(&self.mirror, steps)
    }

    fn serve(&self, address: SocketAddr) {
        explorer::serve(&self.mirror, address);
    }
}

/// The mirror's own action for each step of a behaviour, with its parameters, as Rust writes it.
/// `None` for the initial state and for a step that the mirror does not take.
fn acted<M: Mirror>(model: &M, steps: &[Step]) -> Vec<Option<String>> {
    let is = |state: &M::State, step: &Step| {
        graph::hash(&model.variables(state)) == graph::hash(&step.state)
    };
    let mut at: Option<M::State> = None;
    let mut all = Vec::new();
    for step in steps {
        let label = step.action.as_deref().unwrap_or_default();
        let mut actions = Vec::new();
        if let Some(state) = &at {
            model.actions(state, &mut actions);
        }
        let mut taken = actions
            .into_iter()
            .filter(|action| M::label(action) == label)
            .filter_map(|action| {
                let next = model.next_state(at.as_ref()?, action.clone())?;
                is(&next, step).then_some((Some(format!("{action:?}")), next))
            });
        let first = || {
            let mut states = model.init_states().into_iter();
            states.find(|state| is(state, step)).map(|s| (None, s))
        };
        let found = taken.next().or_else(first);
        let (action, next) = found.map_or((None, None), |(action, next)| (action, Some(next)));
        all.push(action);
        at = next;
    }
    all
}

fn typed<M: Mirror>(config: &Config) -> Result<Box<dyn AnyMirror>, ConfigError> {
    Ok(Box::new(Typed {
        mirror: M::from_config(config)?,
        config: config.clone(),
    }))
}

/// Makes the mirror of `spec` with the constants of `config`.
///
/// ```
/// use treering_specs::Config;
/// use treering_specs::check::mirrors::{Effort, open};
///
/// let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs");
/// let path = format!("{specs}/overflow/MCOverflow_freed-at-once.cfg");
/// let config = Config::read(path.as_ref()).unwrap();
/// let run = open("Overflow", &config).unwrap().run(&Effort::default()).unwrap();
/// assert!(run.violated, "{}", config.title);
/// ```
///
/// # Errors
/// The configuration does not fit the mirror, or there is no such mirror.
pub fn open(spec: &str, config: &Config) -> Result<Box<dyn AnyMirror>, ConfigError> {
    match spec {
        DurableMap::SPEC => typed::<DurableMap>(config),
        MiniPage::SPEC => typed::<MiniPage>(config),
        CircularBuffer::SPEC => typed::<CircularBuffer>(config),
        WalRecovery::SPEC => typed::<WalRecovery>(config),
        WriteBatch::SPEC => typed::<WriteBatch>(config),
        RedoLog::SPEC => typed::<RedoLog>(config),
        PageShadowing::SPEC => typed::<PageShadowing>(config),
        PageVersions::SPEC => typed::<PageVersions>(config),
        CopyOnWrite::SPEC => typed::<CopyOnWrite>(config),
        IndexSnapshot::SPEC => typed::<IndexSnapshot>(config),
        Overflow::SPEC => typed::<Overflow>(config),
        LeafLayout::SPEC => typed::<LeafLayout>(config),
        LeafBuffering::SPEC => typed::<LeafBuffering>(config),
        SurrogateBuffer::SPEC => typed::<SurrogateBuffer>(config),
        _ => Err(config.wrong(spec, "has no mirror")),
    }
}

fn induct_typed<M: Inductive>(
    config: &Config,
    plan: &Plan,
    tell: &dyn Fn(&Induction),
) -> Result<Induction, ConfigError> {
    let known = M::CONJUNCTS.iter().any(|c| plan.is_without(c.name));
    if let (Some(without), false) = (&plan.without, known) {
        let names: Vec<&str> = M::CONJUNCTS.iter().map(|c| c.name).collect();
        let why = format!("is not a conjunct; expected one of {}", names.join(", "));
        return Err(config.wrong(without, why));
    }
    Ok(inductive::check(&M::from_config(config)?, plan, tell))
}

/// Searches for a step out of the inductive invariant of `spec`, with the constants of `config`.
///
/// # Errors
/// The configuration does not fit the mirror, the plan leaves out what is no conjunct, or there is
/// no such invariant.
pub fn induct(
    spec: &str,
    config: &Config,
    plan: &Plan,
    tell: &dyn Fn(&Induction),
) -> Result<Induction, ConfigError> {
    match spec {
        WalRecovery::SPEC => induct_typed::<WalRecovery>(config, plan, tell),
        PageShadowing::SPEC => induct_typed::<PageShadowing>(config, plan, tell),
        LeafBuffering::SPEC => induct_typed::<LeafBuffering>(config, plan, tell),
        SurrogateBuffer::SPEC => induct_typed::<SurrogateBuffer>(config, plan, tell),
        _ => Err(config.wrong(spec, "has no inductive invariant")),
    }
}
