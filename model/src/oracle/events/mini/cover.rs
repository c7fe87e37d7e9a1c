//! How much of the mirror's graph the engine's tree is heard to do.
//!
//! The tree cannot be led state for state through a model's graph, as the ring can ([`crate::oracle::events::ring::cover`]): the smoke model's leaves have
//! room for one record, the engine's for at least seven of the same length, since no key is longer than an eighth of a page. And the spec's inner node is read
//! in two steps, which the engine's threads cannot be stopped between. So episodes are recorded, and of each step that the judge takes for an
//! event the *situation* is noted ([`MiniPage::situation`]): whose call, what mini-page, which kind of record the key has there, whether it is used, whether the leaf
//! has it, who else has the page. The same is noted of every labelled edge of the smoke model's graph. Covered is a situation of the graph that was
//! heard. This is weaker than taking an edge: what else there is in the state may differ.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use stateright::Model;

use super::episode::{Episode, record};
use super::judge::Refusal;
use crate::Mirror;
use crate::mirror::mini_page::MiniPage;
use crate::oracle::events::refused::in_turns;
use crate::oracle::random::Random;

/// Situations, by action.
pub type Situations = BTreeMap<&'static str, BTreeSet<String>>;

/// Actions that the engine never takes as they are, and why: see the parent module.
pub const NEVER: [(&str, &str); 5] = [
    (
        "MergeToMirror",
        "a merge and a mirror are two steps: told as (Mirrored)",
    ),
    (
        "GrowToMirror",
        "a merge and a mirror are two steps: told as (Mirrored)",
    ),
    (
        "EvictMirror",
        "a mirror is merged and stays: (MergedMirror); or evicted by the ring: EvictMini",
    ),
    (
        "FindLeafFull",
        "no merge finds its leaf full, for what it brings was admitted before",
    ),
    (
        "GiveUpJoin",
        "whether two leaves are joined is decided when both are locked",
    ),
];

/// Why the engine does not take a step in a situation, where there is a reason beside chance.
#[must_use]
pub fn why_not(label: &str, situation: &str) -> Option<&'static str> {
    if let Some((_, why)) = NEVER.iter().find(|(never, _)| *never == label) {
        return Some(why);
    }
    match label {
        "LockInner" | "AllocateRight" | "ShortenLeft" | "InsertSeparator" => Some(
            "a leaf is split for a put that finds it full, with its mini-page merged and given up before",
        ),
        "Restart" if situation.contains("another one writes") => {
            Some("who begins again has just had the lock of the page, and says so under it")
        }
        "Restart" => Some(
            "one version for all inner nodes sends back whoever is on the way; the engine begins again only if the way to its own page has changed",
        ),
        "WriteRecord" if situation.starts_with("delete") => Some(
            "a delete of what the mini-page knows to be absent writes nothing: (AbsentAlready)",
        ),
        "LockPage" | "ReadMini" | "ScanPage" if situation.contains("others read") => Some(
            "who reads a mini-page does so in one event: nobody else is heard while it has the lock",
        ),
        _ => None,
    }
}

/// What was heard of what there is.
#[derive(Clone, Debug, Default)]
pub struct Cover {
    /// States of the graph.
    pub states: usize,
    /// Its labelled edges.
    pub edges: usize,
    /// Situations of the graph's edges.
    pub all: Situations,
    /// Those of them that were heard.
    pub heard: Situations,
    /// Heard situations that the graph has not: the engine's pages have room for more.
    pub beyond: usize,
    /// Events accepted.
    pub events: u64,
    /// The first refusal, with its episode.
    pub refusal: Option<(Episode, Box<Refusal>)>,
}

impl Cover {
    /// Actions of which nothing was heard, though the engine has them.
    #[must_use]
    pub fn never(&self) -> Vec<&'static str> {
        let named = |label: &str| NEVER.iter().any(|(never, _)| *never == label);
        let labels = self.all.keys().copied();
        labels
            .filter(|label| !named(label) && !self.heard.contains_key(label))
            .collect()
    }
}

/// Records episodes for so long.
#[must_use]
pub fn run(mirror: &MiniPage, seed: u64, limit: Duration) -> Cover {
    let until = Instant::now() + limit;
    let mut cover = explored(mirror);
    let mut seeds = Random::new(seed);
    let mut heard = Situations::new();
    let mut n = 0;
    while Instant::now() < until && cover.refusal.is_none() {
        let episode = Episode::new(in_turns(n), seeds.word());
        n += 1;
        let (judge, refusal) = record(&episode);
        cover.events += judge.tally().heard;
        cover.refusal = refusal.map(|refusal| (episode, refusal));
        for (label, situations) in judge.situations() {
            let known = heard.entry(label).or_default();
            known.extend(situations.iter().cloned());
        }
    }
    for (label, situations) in heard {
        for situation in situations {
            let all = cover.all.get(label);
            if all.is_some_and(|all| all.contains(&situation)) {
                cover.heard.entry(label).or_default().insert(situation);
            } else {
                cover.beyond += 1;
            }
        }
    }
    cover
}

fn explored(mirror: &MiniPage) -> Cover {
    let mut cover = Cover::default();
    let mut known = FxHashSet::default();
    let mut pending = VecDeque::from(mirror.init_states());
    known.extend(pending.iter().copied());
    let mut actions = Vec::new();
    while let Some(at) = pending.pop_front() {
        mirror.actions(&at, &mut actions);
        let mut edges = FxHashSet::default();
        for action in actions.drain(..) {
            let Some(next) = mirror.next_state(&at, action) else {
                continue;
            };
            let label = MiniPage::label(&action);
            edges.insert((label, next));
            let situations = cover.all.entry(label).or_default();
            situations.insert(mirror.situation(&at, action));
            if known.insert(next) {
                pending.push_back(next);
            }
        }
        cover.edges += edges.len();
    }
    cover.states = known.len();
    cover
}
