//! The mirror's graph as a map for walks: states, labelled edges, and which of them the engine can
//! take.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use stateright::Model;

use crate::Mirror;
use crate::mirror::wal_recovery::{Action, Checkpoint, Phase, State, WalRecovery};

/// A labelled edge, and an action that takes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// The action.
    pub(super) action: Action,
    /// The number of the state that it leads to.
    pub(super) to: u32,
    /// Why the engine cannot take it as a step of its own.
    pub(super) cannot: Option<&'static str>,
    /// Whether it has been taken.
    pub(super) taken: bool,
}

impl Edge {
    /// The action's name.
    pub(super) fn label(&self) -> &'static str {
        WalRecovery::label(&self.action)
    }

    /// Whether this is a crash or a restart, which can be tried without ending the walk.
    pub(super) fn is_end(&self) -> bool {
        matches!(self.action, Action::Crash(_) | Action::Restart)
    }
}

/// The whole graph. The initial state is the first.
pub(super) struct Map {
    /// The states, by number.
    pub(super) states: Vec<State>,
    /// The edges of each state.
    pub(super) edges: Vec<Vec<Edge>>,
}

impl Map {
    /// Explores a mirror.
    pub(super) fn new(mirror: &WalRecovery) -> Map {
        let mut numbers: FxHashMap<State, u32> = FxHashMap::default();
        let mut map = Map {
            states: Vec::new(),
            edges: Vec::new(),
        };
        for state in mirror.init_states() {
            numbers.insert(state, map.states.len() as u32);
            map.states.push(state);
        }
        let mut actions = Vec::new();
        let mut at = 0;
        while at < map.states.len() {
            let from = map.states[at];
            mirror.actions(&from, &mut actions);
            let mut edges: Vec<Edge> = Vec::with_capacity(actions.len());
            for action in actions.drain(..) {
                let Some(next) = mirror.next_state(&from, action) else {
                    continue;
                };
                let to = *numbers.entry(next).or_insert_with(|| {
                    map.states.push(next);
                    map.states.len() as u32 - 1
                });
                let label = WalRecovery::label(&action);
                // Two actions with the same name that lead to the same state are one edge. One of
                // them may be easier to take.
                let cannot = cannot(mirror, &from, action);
                match edges.iter_mut().find(|e| e.to == to && e.label() == label) {
                    Some(known) if known.cannot.is_some() => {
                        (known.action, known.cannot) = (action, cannot);
                    }
                    Some(_) => {}
                    None => edges.push(Edge {
                        action,
                        to,
                        cannot,
                        taken: false,
                    }),
                }
            }
            map.edges.push(edges);
            at += 1;
        }
        map
    }

    /// The shortest way from `from`, along edges that can be taken, to a state where `wanted`
    /// holds. Returns the edges as pairs of state and index.
    pub(super) fn way(&self, from: u32, wanted: impl Fn(u32) -> bool) -> Option<Vec<(u32, usize)>> {
        let mut came: FxHashMap<u32, (u32, usize)> = FxHashMap::default();
        let mut pending = VecDeque::from([from]);
        came.insert(from, (from, usize::MAX));
        while let Some(at) = pending.pop_front() {
            if wanted(at) {
                let mut way = Vec::new();
                let mut back = at;
                while back != from {
                    let (before, edge) = came[&back];
                    way.push((before, edge));
                    back = before;
                }
                way.reverse();
                return Some(way);
            }
            for (i, edge) in self.edges[at as usize].iter().enumerate() {
                if edge.cannot.is_none() && !came.contains_key(&edge.to) {
                    came.insert(edge.to, (at, i));
                    pending.push_back(edge.to);
                }
            }
        }
        None
    }
}

/// Why the engine cannot do this as a step of its own, as far as the state alone tells.
pub(super) fn cannot(mirror: &WalRecovery, s: &State, action: Action) -> Option<&'static str> {
    let log_is_flushed = mirror.log_end(s) == s.durable() && s.flushing() == s.durable();
    let opening = s.phase() == Phase::Opening;
    match action {
        Action::WriteBack(_) if s.phase() == Phase::Redo => Some(
            "recovery reads all records before it changes a page, and writes pages early only if it is short of frames",
        ),
        // The sweep goes in frame order, and recovery has filled the frames in page order.
        Action::WriteBack(1) if opening && s.dirtied(0) != 0 => {
            Some("the checkpoint of an opening writes pages in the order of their frames")
        }
        Action::FlushPages if !opening && !log_is_flushed => Some(
            "a checkpoint flushes the log before its pages: FlushLog and CompleteFlush come first",
        ),
        Action::FailFlush
            if s.flushing() == s.durable() && s.checkpoint().0 == Checkpoint::Sweep && !opening =>
        {
            let flushes = mirror.may(s, Action::FlushPages) && log_is_flushed;
            (!flushes && page_to_write(mirror, s).is_none())
                .then_some("a checkpoint that has log to write, and no page that it may, writes before it flushes")
        }
        _ => None,
    }
}

/// A page that write-back may write in this state. The flush of the page store is one that can
/// fail.
pub(super) fn page_to_write(mirror: &WalRecovery, s: &State) -> Option<u8> {
    (0..2).find(|key| mirror.may(s, Action::WriteBack(*key)))
}
