//! Leads the real ring along walks over the mirror's graph, which together take every labelled edge
//! that the ring can take.
//!
//! The graph is the whole graph of the `CircularBuffer` smoke model, and its mirror is the one
//! whose graph equals TLC's. The ring has the model's size: five units of 4 KiB. For each step of a
//! walk a client's thread (`actor`) is made to do exactly that. Then the ring is compared (`rig`):
//! addresses, every block's size, state and page, which pages can be locked, and the records in
//! mini-pages and leaves. An edge counts as taken if all of that equals the mirror's state.
//!
//! A thread stops only where it holds no more than the spec says: between two calls of the ring,
//! and in the middle of a call at events that are not reported under the ring's mutex. One critical
//! section of the ring may be several steps of the spec (`map`), which are taken together. Edges in
//! which another client takes a step in between are named as edges that the engine cannot take.

mod actor;
mod map;
pub(in crate::conformance) mod retrace;
mod rig;

use std::time::{Duration, Instant};

use treering_engine::ring::RingError;

use self::map::{Map, TRIES, Untaken};
use self::rig::Rig;
use crate::Mirror;
use crate::conformance::cover::{Cover, Mismatch};
use crate::mirror::circular_buffer::{Action, CircularBuffer};
use crate::value::state_text;

/// The number of steps of a walk that are listed for a mismatch.
const TOLD: usize = 60;

/// A walk ends after this many steps without anything new.
const IN_VAIN: u32 = 20_000;

/// Takes walks for at most `limit`.
///
/// # Errors
/// The engine's own, if it cannot make such a ring.
pub fn run(mirror: &CircularBuffer, limit: Duration) -> Result<Cover, RingError> {
    let until = Instant::now() + limit;
    let mut map = Map::new(mirror);
    let mut cover = Cover::default();
    loop {
        let before = taken(&map);
        cover.walks += 1;
        let mut rig = Rig::new(mirror)?;
        walk(mirror, &mut map, &mut rig, &mut cover, until);
        if cover.mismatch.is_some() || Instant::now() >= until || taken(&map) == before {
            break;
        }
    }
    map.learn();
    count(&map, &mut cover);
    Ok(cover)
}

fn taken(map: &Map) -> usize {
    map.edges.iter().flatten().filter(|edge| edge.taken).count()
}

/// One walk, from the initial state until it can reach nothing new.
fn walk(
    mirror: &CircularBuffer,
    map: &mut Map,
    rig: &mut Rig<'_>,
    cover: &mut Cover,
    until: Instant,
) {
    let mut at = 0u32;
    let mut told = Vec::new();
    let mut in_vain = 0;
    while Instant::now() < until && in_vain < IN_VAIN {
        let Some(way) = map.way(at, |action| rig.can(action)) else {
            return;
        };
        for i in way {
            // The step in which clients stop calling is not one of the engine's, and leads nowhere.
            for edge in &mut map.edges[at as usize] {
                edge.taken |= matches!(edge.action, Action::Close);
            }
            let (from, wanted) = (at, map.edges[at as usize][i]);
            cover.steps += 1;
            in_vain += 1;
            let (done, step) = rig.take(wanted.action);
            for action in done {
                told.push(format!("{action:?}"));
                match take(mirror, map, at, action) {
                    Some((to, is_new)) => {
                        at = to;
                        in_vain = if is_new { 0 } else { in_vain };
                    }
                    None => {
                        let why = "the mirror has no such step";
                        return mismatch(mirror, map, cover, at, &told, why);
                    }
                }
            }
            if let Err(why) = step {
                told.push(format!("{:?}", wanted.action));
                return mismatch(mirror, map, cover, at, &told, &why);
            }
            told.drain(..told.len().saturating_sub(TOLD));
            let edge = &mut map.edges[from as usize][i];
            if at != wanted.rest {
                // The engine stopped elsewhere, because it took other steps or because a client
                // slept there.
                edge.rest = at;
                edge.tries = (edge.tries + 1).min(TRIES);
                break;
            }
        }
    }
}

/// Takes an edge of the mirror. Returns where it leads, and whether it was taken for the first
/// time.
fn take(mirror: &CircularBuffer, map: &mut Map, at: u32, action: Action) -> Option<(u32, bool)> {
    let next = stateright::Model::next_state(mirror, &map.states[at as usize], action)?;
    let to = map.number(&next)?;
    let label = CircularBuffer::label(&action);
    let mut edges = map.edges[at as usize].iter_mut();
    let edge = edges.find(|edge| edge.to == to && edge.label() == label)?;
    Some((to, !std::mem::replace(&mut edge.taken, true)))
}

fn mismatch(
    mirror: &CircularBuffer,
    map: &Map,
    cover: &mut Cover,
    at: u32,
    told: &[String],
    why: &str,
) {
    cover.mismatch = Some(Mismatch {
        why: why.to_owned(),
        walk: told.to_vec(),
        state: state_text(&mirror.variables(&map.states[at as usize])),
    });
}

fn count(map: &Map, cover: &mut Cover) {
    cover.states = map.states.len();
    cover.edges = map.edges.iter().map(Vec::len).sum();
    for (at, edges) in (0..).zip(&map.edges) {
        for edge in edges {
            let label = edge.label();
            let count = if edge.taken {
                cover.taken.entry(label).or_default()
            } else {
                match map.why_not(at, edge) {
                    Untaken::Because(why) => cover.not_takeable.entry((label, why)).or_default(),
                    Untaken::Behind => cover.behind.entry(label).or_default(),
                    Untaken::Left => cover.left.entry(label).or_default(),
                }
            };
            *count += 1;
        }
    }
}
