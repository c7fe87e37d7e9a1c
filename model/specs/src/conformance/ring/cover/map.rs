//! The mirror's graph as a map for walks: states, labelled edges, and where the engine stops after
//! each edge.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use stateright::Model;

use crate::Mirror;
use crate::mirror::circular_buffer::{Action, CircularBuffer, Life, Phase, State};

/// A labelled edge, and an action that takes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) action: Action,
    pub(super) to: u32,
    /// The state in which the engine stops after this edge: as far as the states tell, or where it
    /// stopped last time.
    pub(super) rest: u32,
    /// Whether the engine can be led to take the edge, alone or as one of several that it takes
    /// together, judged by the states alone.
    is_takeable: bool,
    /// The same, judged by where the engine has actually stopped.
    is_still_takeable: bool,
    pub(super) taken: bool,
    /// How often the engine was led here and did something else that the mirror allows too.
    pub(super) tries: u8,
}

impl Edge {
    pub(super) fn label(&self) -> &'static str {
        CircularBuffer::label(&self.action)
    }
}

/// The number of tries after which an edge is given up.
pub(super) const TRIES: u8 = 10;

/// The whole graph. The initial state is the first.
pub(super) struct Map {
    pub(super) states: Vec<State>,
    pub(super) edges: Vec<Vec<Edge>>,
    numbers: FxHashMap<State, u32>,
    /// Whether the engine reaches each state, to stop there or in passing.
    comes: Vec<bool>,
    /// For each state: the search in which it was found, and the state and edge that it was found
    /// by.
    came: Vec<(u32, u32, u32)>,
    searches: u32,
}

impl Map {
    /// Explores a mirror.
    pub(super) fn new(mirror: &CircularBuffer) -> Map {
        let mut map = Map {
            states: mirror.init_states(),
            edges: Vec::new(),
            numbers: FxHashMap::default(),
            comes: Vec::new(),
            came: Vec::new(),
            searches: 0,
        };
        map.numbers.insert(map.states[0], 0);
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
                let to = *map.numbers.entry(next).or_insert_with(|| {
                    map.states.push(next);
                    map.states.len() as u32 - 1
                });
                let label = CircularBuffer::label(&action);
                if !edges.iter().any(|e| e.to == to && e.label() == label) {
                    edges.push(Edge {
                        action,
                        to,
                        rest: to,
                        is_takeable: false,
                        is_still_takeable: false,
                        taken: false,
                        tries: 0,
                    });
                }
            }
            map.edges.push(edges);
            at += 1;
        }
        for at in 0..map.edges.len() {
            for i in 0..map.edges[at].len() {
                let rest = map.passes(at as u32, i).last().map_or(at as u32, |e| e.1);
                map.edges[at][i].rest = rest;
            }
        }
        map.came = vec![(0, 0, 0); map.states.len()];
        map.comes = map.find_takeable(|edge| edge.is_takeable = true);
        map
    }

    /// Updates what the engine can be led to take, using what the walks have shown.
    pub(super) fn learn(&mut self) {
        self.find_takeable(|edge| edge.is_still_takeable = true);
    }

    pub(super) fn number(&self, state: &State) -> Option<u32> {
        self.numbers.get(state).copied()
    }

    /// The edges that the engine takes together if it takes this one: each edge's place, and the
    /// state after it.
    pub(super) fn passes(&self, from: u32, edge: usize) -> Vec<((u32, usize), u32)> {
        let mut passed = Vec::new();
        let (mut at, mut i) = (from, edge);
        loop {
            let Edge { action, to, .. } = self.edges[at as usize][i];
            passed.push(((at, i), to));
            let next = (self.edges[to as usize].iter())
                .position(|e| goes_on(&self.states[to as usize], action, e.action));
            match next {
                Some(next) => (at, i) = (to, next),
                None => return passed,
            }
        }
    }

    /// Calls `mark` with every edge that the engine can be led to take. Returns the states that it
    /// reaches, to stop there or in passing.
    fn find_takeable(&mut self, mark: impl Fn(&mut Edge)) -> Vec<bool> {
        let mut rests = vec![false; self.states.len()];
        let mut pending = vec![0u32];
        rests[0] = true;
        let mut comes = rests.clone();
        while let Some(at) = pending.pop() {
            for i in 0..self.edges[at as usize].len() {
                let rest = self.edges[at as usize][i].rest;
                let mut passes = self.passes(at, i);
                if passes.last().is_none_or(|(_, to)| *to != rest) {
                    // The engine stopped elsewhere, so the edges that it takes together are not
                    // known.
                    passes.truncate(1);
                }
                for ((from, i), to) in passes {
                    mark(&mut self.edges[from as usize][i]);
                    comes[to as usize] = true;
                }
                if !std::mem::replace(&mut rests[rest as usize], true) {
                    pending.push(rest);
                }
            }
        }
        comes
    }

    /// Whether taking this edge takes one that has not been taken yet.
    fn is_wanted(&self, at: u32, i: usize) -> bool {
        let edge = &self.edges[at as usize][i];
        if edge.tries >= TRIES {
            return false;
        }
        if edge.to == edge.rest {
            return !edge.taken;
        }
        let mut passed = self.passes(at, i).into_iter();
        passed.any(|((at, i), _)| !self.edges[at as usize][i].taken)
    }

    /// The shortest way from `from` to a wanted edge, which is the last of the way. Returns the
    /// edges' indices. Each edge starts where the engine stops after the one before.
    pub(super) fn way(&mut self, from: u32, can: impl Fn(Action) -> bool) -> Option<Vec<usize>> {
        self.searches += 1;
        let search = self.searches;
        let mut pending = VecDeque::from([from]);
        self.came[from as usize] = (search, from, 0);
        while let Some(at) = pending.pop_front() {
            for i in 0..self.edges[at as usize].len() {
                let Edge { action, rest, .. } = self.edges[at as usize][i];
                if matches!(action, Action::Close) || at == from && !can(action) {
                    continue;
                }
                if self.is_wanted(at, i) {
                    let mut way = vec![i];
                    let mut back = at;
                    while back != from {
                        let (_, before, edge) = self.came[back as usize];
                        way.push(edge as usize);
                        back = before;
                    }
                    way.reverse();
                    return Some(way);
                }
                let came = &mut self.came[rest as usize];
                if came.0 != search {
                    *came = (search, at, i as u32);
                    pending.push_back(rest);
                }
            }
        }
        None
    }
}

/// Whether the engine takes `next` after `done` without stopping in between, because both are in
/// one critical section of the ring.
pub(super) fn goes_on(s: &State, done: Action, next: Action) -> bool {
    let dead = |c: u8| {
        let victim = s.thread[usize::from(c)].work.victim;
        let life = s.block[usize::from(victim)].life;
        matches!(life, Life::Tombstone | Life::Listed)
    };
    match (done, next) {
        (Action::PopFreeList(c, _), Action::Reuse(d) | Action::PassOver(d)) => c == d,
        (
            Action::PassOver(c) | Action::Pad(c),
            Action::PopFreeList(d, _) | Action::Pad(d) | Action::Allocate(d) | Action::Full(d),
        ) => c == d,
        (Action::Claim(c), Action::Skip(d) | Action::Unlist(d)) => c == d && dead(c),
        (Action::Skip(c) | Action::Unlist(c), Action::Finish(d)) => c == d,
        _ => false,
    }
}

/// Why an edge was not taken.
pub(super) enum Untaken {
    /// The engine cannot take it, for this reason.
    Because(&'static str),
    /// The edge begins in a state that the engine never reaches.
    Behind,
    /// The edge was not tried.
    Left,
}

impl Map {
    /// The reason why this edge was not taken.
    pub(super) fn why_not(&self, at: u32, edge: &Edge) -> Untaken {
        if !self.comes[at as usize] {
            return Untaken::Behind;
        }
        if edge.tries >= TRIES {
            return Untaken::Because(match edge.action {
                Action::PopFreeList(..) => {
                    "the engine takes the block that was freed last from its list, and this edge takes another one"
                }
                _ => "led here, the engine did something else that the mirror allows",
            });
        }
        if edge.is_still_takeable {
            return Untaken::Left;
        }
        let mut threads = self.states[at as usize].thread.iter();
        Untaken::Because(if edge.is_takeable {
            if threads.any(|t| t.phase == Phase::Finish) {
                "an evictor that finds a dead block behind another evictor's block sleeps, and the head passes both in one critical section"
            } else {
                "the engine does not get here: each time it was led here, it did something else that the mirror allows"
            }
        } else if threads.any(|t| t.phase == Phase::Popped) {
            "another client comes between taking a block off its list and handing it out or leaving it: one critical section of the ring"
        } else {
            "another client comes between two steps of one critical section: claim and pass what is dead, pad and take what is behind"
        })
    }
}
