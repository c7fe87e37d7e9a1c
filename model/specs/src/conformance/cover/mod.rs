//! Leads the real engine along walks over the mirror's graph, which together take every labelled
//! edge that the engine can take.
//!
//! The graph is that of the `WalRecovery` smoke model, and its mirror is the one whose graph equals
//! TLC's. For each step of a walk the engine is made to do exactly that, on threads that stop in
//! the middle of operations (`actors`, `rig`, `keeper`). Then the result is compared: what a call
//! returns, and, for every log block, every page and the superblock, which versions the device
//! holds, and which of them is durable now or after a flush (`compare`). An edge counts as taken if
//! all of that equals the mirror's state.
//!
//! Crashes do not end a walk: each outcome is made on a copy of the device (`device`) and compared.
//! The same goes for restarts: another process opens a copy, and runs until recovery has made
//! durable what it builds on. Some walks also go through crashes and restarts, to the steps of
//! recovery.
//!
//! The engine needs a ring of at least 64 log blocks, and the spec's has two. So a place of the
//! spec stands for the block that was last written there. (Episodes do wrap their log.) `Absent` is
//! the version that the tree was built with.
//!
//! Edges that the engine cannot take as a step of its own are named and counted, with the reason:
//! by `graph` if the state tells, else by `rig`.

mod actors;
mod compare;
mod device;
mod graph;
mod keeper;
pub(super) mod retrace;
mod rig;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use treering_engine::device::CrashDevice;
use treering_engine::{BLOCK_SIZE, Result, survey};

use self::compare::Atlas;
use self::device::StepDevice;
use self::graph::Map;
use self::rig::{Not, Rig};
use super::setup::Setup;
use crate::Mirror;
use crate::mirror::wal_recovery::WalRecovery;
use crate::value::state_text;

/// A step in which the engine differs from the mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What differs.
    pub why: String,
    /// The walk from the initial state, as actions. The last one shows the difference.
    pub walk: Vec<String>,
    /// The mirror's state before that, as TLA+.
    pub state: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { why, walk, state } = self;
        write!(f, "{why}\nafter {}\nin\n{state}", walk.join(", "))
    }
}

/// What the walks have covered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cover {
    /// States of the graph.
    pub states: usize,
    /// Labelled edges of the graph.
    pub edges: usize,
    /// Edges taken, by action.
    pub taken: BTreeMap<&'static str, usize>,
    /// Edges that the engine cannot take, by action and reason.
    pub not_takeable: BTreeMap<(&'static str, &'static str), usize>,
    /// Edges that begin in a state that the engine cannot reach, by action.
    pub behind: BTreeMap<&'static str, usize>,
    /// Edges that were not reached in time, by action.
    pub left: BTreeMap<&'static str, usize>,
    /// Number of walks.
    pub walks: u64,
    /// Steps of all walks.
    pub steps: u64,
    /// The first difference.
    pub mismatch: Option<Mismatch>,
}

impl Cover {
    /// The number of edges taken.
    #[must_use]
    pub fn taken_in_all(&self) -> usize {
        self.taken.values().sum()
    }

    /// Actions of the graph that were never taken.
    #[must_use]
    pub fn never_taken(&self) -> Vec<&'static str> {
        let reasoned = self.not_takeable.keys().map(|(action, _)| action);
        let all = reasoned.chain(self.behind.keys()).chain(self.left.keys());
        let never: BTreeSet<_> = all
            .filter(|action| !self.taken.contains_key(*action))
            .collect();
        never.into_iter().copied().collect()
    }
}

/// Takes walks for at most `limit`.
///
/// # Errors
/// The engine's own, while a store is built or opened at the start of a walk.
pub fn run(mirror: &WalRecovery, limit: Duration) -> Result<Cover> {
    let setup = Setup::smoke()?;
    let found = survey(Arc::new(CrashDevice::from_image(setup.image().to_vec())))?;
    let mut pages = vec![0; setup.pages.len()];
    for (page, key) in &setup.pages {
        pages[usize::from(*key)] = found.pages[page].1.0 as usize;
    }
    let page_blocks = setup.options().page_size / BLOCK_SIZE;
    let atlas = Atlas::new(&found, setup.scale, pages, page_blocks);
    let blank = StepDevice::new(setup.image());
    let mut walker = Walker {
        mirror,
        map: Map::new(mirror),
        cover: Cover::default(),
        until: Instant::now() + limit,
        walk: Vec::new(),
    };
    let mut rig = Rig::new(&setup, &atlas, &blank);
    while walker.has_time() && walker.map.way(0, |at| walker.wants(at)).is_some() {
        rig.begin(&blank)?;
        walker.walk(&mut rig);
    }
    rig.end_process();
    walker.count();
    Ok(walker.cover)
}

struct Walker<'a> {
    mirror: &'a WalRecovery,
    map: Map,
    cover: Cover,
    until: Instant,
    walk: Vec<String>,
}

impl Walker<'_> {
    fn has_time(&self) -> bool {
        self.cover.mismatch.is_none() && Instant::now() < self.until
    }

    /// Whether an edge of this state is still to be taken.
    fn wants(&self, at: u32) -> bool {
        let mut edges = self.map.edges[at as usize].iter();
        edges.any(|edge| !edge.taken && edge.cannot.is_none())
    }

    /// One walk, from the initial state until it can reach nothing new.
    fn walk(&mut self, rig: &mut Rig<'_>) {
        self.cover.walks += 1;
        self.walk.clear();
        let mut at = 0u32;
        while self.has_time() {
            if !self.try_ends(rig, at) {
                return;
            }
            let mut edges = self.map.edges[at as usize].iter();
            let here = edges.position(|e| !e.taken && e.cannot.is_none() && !e.is_end());
            let way = match here {
                Some(edge) => vec![(at, edge)],
                None => match self.map.way(at, |at| self.wants(at)) {
                    Some(way) => way,
                    None => return,
                },
            };
            for (from, edge) in way {
                let to = self.map.edges[from as usize][edge].to;
                match self.step(rig, from, edge) {
                    Some(true) => at = to,
                    // The engine has not moved.
                    Some(false) => break,
                    None => return,
                }
                if !self.has_time() || !self.try_ends(rig, at) {
                    return;
                }
            }
        }
    }

    /// Tries all crashes, and the restart, that are possible in this state. `false` if one differs
    /// from the mirror.
    fn try_ends(&mut self, rig: &Rig<'_>, at: u32) -> bool {
        for i in 0..self.map.edges[at as usize].len() {
            let edge = self.map.edges[at as usize][i];
            if edge.taken || edge.cannot.is_some() || !edge.is_end() {
                continue;
            }
            let (from, to) = (
                &self.map.states[at as usize],
                &self.map.states[edge.to as usize],
            );
            let tried = match edge.label() {
                "Crash" => rig.try_crash(from, to),
                _ => rig.try_restart(to),
            };
            if self.judge(tried, at, i) != Some(true) {
                return false;
            }
        }
        true
    }

    /// Takes one edge. Returns whether it was taken, or `None` if the engine did something else.
    fn step(&mut self, rig: &mut Rig<'_>, from: u32, edge: usize) -> Option<bool> {
        let taken = {
            let edge = self.map.edges[from as usize][edge];
            let (from, to) = (
                &self.map.states[from as usize],
                &self.map.states[edge.to as usize],
            );
            self.walk.push(format!("{:?}", edge.action));
            rig.take(self.mirror, edge.action, from, to)
        };
        let judged = self.judge(taken, from, edge);
        if judged == Some(false) {
            self.walk.pop();
        }
        judged
    }

    fn judge(&mut self, taken: Result<(), Not>, from: u32, edge: usize) -> Option<bool> {
        self.cover.steps += 1;
        let edge = &mut self.map.edges[from as usize][edge];
        match taken {
            Ok(()) => {
                edge.taken = true;
                Some(true)
            }
            Err(Not::Able(why)) => {
                // If the edge has been taken another way, this only closes a detour.
                edge.cannot = Some(why);
                Some(false)
            }
            Err(Not::Same(why)) => {
                let mut walk = self.walk.clone();
                let last = format!("{:?}", edge.action);
                if walk.last() != Some(&last) {
                    walk.push(last);
                }
                let variables = self.mirror.variables(&self.map.states[from as usize]);
                self.cover.mismatch = Some(Mismatch {
                    why,
                    walk,
                    state: state_text(&variables),
                });
                None
            }
        }
    }

    fn count(&mut self) {
        // The states that the engine can reach at all.
        let mut reached = vec![false; self.map.states.len()];
        let mut pending = vec![0u32];
        reached[0] = true;
        while let Some(at) = pending.pop() {
            for edge in &self.map.edges[at as usize] {
                if (edge.cannot.is_none() || edge.taken) && !reached[edge.to as usize] {
                    reached[edge.to as usize] = true;
                    pending.push(edge.to);
                }
            }
        }
        let cover = &mut self.cover;
        cover.states = self.map.states.len();
        cover.edges = self.map.edges.iter().map(Vec::len).sum();
        for (at, edges) in self.map.edges.iter().enumerate() {
            for edge in edges {
                let label = edge.label();
                let count = match edge.cannot {
                    _ if edge.taken => cover.taken.entry(label).or_default(),
                    Some(why) => cover.not_takeable.entry((label, why)).or_default(),
                    None if !reached[at] => cover.behind.entry(label).or_default(),
                    None => cover.left.entry(label).or_default(),
                };
                *count += 1;
            }
        }
    }
}
