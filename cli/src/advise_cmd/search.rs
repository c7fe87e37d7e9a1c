//! The search: designs, then their settings, always from the best so far on.
//!
//! ```text
//! all designs ─▶ the best 3 ─▶ page sizes × thresholds × redo log
//!                           ─▶ the best 2 ─▶ thresholds ─▶ the best 2 ─▶ page sizes ─▶ …
//!                              (again, while that finds a better one)
//! ```
//!
//! A beam instead of one best, because settings depend on each other: a design that is second with
//! small pages may be the first with large ones. For the same reason, settings that were tried first
//! are tried again with those that were found later.

use std::collections::BTreeSet;

use super::constraint::Constraint;
use super::objective::Goal;
use super::predict::{Candidate, Predictor, Refused};
use super::space::Space;
use crate::failure::Failure;
use crate::interrupt;
use crate::sweep_cmd::Point;

/// Designs of which what goes together is tried.
const DESIGNS: usize = 3;
/// Designs and page sizes from which other settings are varied.
const BEAM: usize = 2;
/// How often each setting is tried at most.
const ROUNDS: usize = 3;

/// Flags of a design.
const OF_DESIGNS: [&str; 3] = ["device", "tree", "store"];
/// The same, and the page size.
const OF_BEAMS: [&str; 4] = ["device", "tree", "store", "page"];

/// All candidates so far.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) goal: Goal,
    pub(super) constraints: Vec<Constraint>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) refused: Refused,
    /// The configurations of all candidates, so that none is predicted twice.
    seen: BTreeSet<String>,
}

impl Found {
    pub(super) fn new(goal: Goal, constraints: Vec<Constraint>) -> Found {
        Found {
            goal,
            constraints,
            candidates: Vec::new(),
            refused: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    /// Searches the space.
    ///
    /// # Errors
    /// If a device does not exist, no point can be replayed, or a signal stops the search.
    pub(super) fn search(&mut self, space: &Space, by: &mut Predictor) -> Result<(), Failure> {
        self.predict(space.designs()?, by)?;
        if self.candidates.is_empty() {
            let why = self.refused.first().map(|(_, failure)| failure.clone());
            let none = || Failure::usage("no design is left; expected fewer flags");
            return Err(why.unwrap_or_else(none));
        }
        let together = self.beam(DESIGNS, &OF_DESIGNS).into_iter();
        let together = together.flat_map(|at| space.together(&self.candidates[at].point));
        self.predict(together.collect(), by)?;
        for _ in 0..ROUNDS {
            let before = self.ranked().first().copied();
            for axes in space.axes(self.goal.objective) {
                // Combinations are many, so only the best is tried with them.
                let width = if axes.len() > 1 { 1 } else { BEAM };
                let points = self.beam(width, &OF_BEAMS).into_iter();
                let points = points.map(|at| &self.candidates[at].point);
                let others = points.flat_map(|point| space.combinations(point, axes));
                self.predict(others.collect(), by)?;
            }
            if self.ranked().first().copied() == before {
                break;
            }
        }
        Ok(())
    }

    /// Predicts those points that are new.
    pub(super) fn predict(
        &mut self,
        points: Vec<Point>,
        by: &mut Predictor,
    ) -> Result<(), Failure> {
        let mut new = Vec::new();
        for point in points {
            let known = match point
                .parsed()
                .and_then(|args| crate::replay_config::of(&args))
            {
                Ok(config) => format!("{config:?}"),
                Err(_) => format!("{point:?}"),
            };
            if self.seen.insert(known) {
                new.push(point);
            }
        }
        let (candidates, refused) = by.predict(new);
        self.candidates.extend(candidates);
        self.refused.extend(refused);
        interrupt::check(|| {
            let all = self.candidates.len();
            format!("{all} configurations were predicted; no advice can be given")
        })
    }

    /// The predicted value of a candidate.
    pub(super) fn predicted(&self, candidate: &Candidate) -> Option<f64> {
        self.goal.value(&candidate.predicted, &candidate.config)
    }

    /// The measured value of a candidate.
    pub(super) fn measured(&self, candidate: &Candidate) -> Option<f64> {
        self.goal
            .value(candidate.measured.as_ref()?, &candidate.config)
    }

    /// Half-width of the interval of the predicted value, as a share of it.
    pub(super) fn half_width(&self, candidate: &Candidate) -> Option<f64> {
        candidate.half_width.filter(|_| self.goal.is_predicted())
    }

    /// Whether a candidate keeps the constraints, as far as is known: by its replay, or else by its
    /// prediction.
    pub(super) fn keeps(&self, candidate: &Candidate) -> bool {
        let known = candidate.measured.as_ref().unwrap_or(&candidate.predicted);
        let mut constraints = self.constraints.iter();
        constraints.all(|constraint| constraint.holds(known) != Some(false))
    }

    /// The candidates that keep the constraints, the best predicted first; of equal ones, the
    /// earlier.
    pub(super) fn ranked(&self) -> Vec<usize> {
        let all = self.candidates.iter().enumerate();
        let kept = all.filter(|(_, candidate)| self.keeps(candidate));
        let valued = kept.filter_map(|(at, candidate)| Some((at, self.predicted(candidate)?)));
        let mut ranked: Vec<(usize, f64)> = valued.collect();
        ranked.sort_by(|(_, a), (_, b)| match self.goal.is_better(0.0, 1.0) {
            true => a.total_cmp(b),
            false => b.total_cmp(a),
        });
        ranked.into_iter().map(|(at, _)| at).collect()
    }

    /// The advised candidate: the best of those that were replayed whole, or else the best
    /// predicted one.
    pub(super) fn best(&self) -> Option<usize> {
        let ranked = self.ranked();
        let mut best: Option<(usize, f64)> = None;
        for at in &ranked {
            let Some(value) = self.measured(&self.candidates[*at]) else {
                continue;
            };
            if best.is_none_or(|(_, other)| self.goal.is_better(value, other)) {
                best = Some((*at, value));
            }
        }
        best.map(|(at, _)| at).or_else(|| ranked.first().copied())
    }

    /// The best candidates, of each combination of these flags the best one.
    fn beam(&self, count: usize, flags: &[&str]) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let mut best = self.ranked();
        best.retain(|at| {
            let point = &self.candidates[*at].point;
            let of = |flag: &&str| point.get(flag).unwrap_or_default().to_owned();
            seen.insert(flags.iter().map(of).collect::<Vec<_>>())
        });
        best.truncate(count);
        best
    }

    /// The best predicted candidates, and those whose intervals reach the best one's, but at most
    /// `most` of them.
    pub(super) fn leaders(&self, least: usize, most: usize) -> Vec<usize> {
        let ranked = self.ranked();
        let Some(first) = ranked.first().map(|at| &self.candidates[*at]) else {
            return Vec::new();
        };
        let best = self.predicted(first).unwrap_or_default();
        let width = |candidate: &Candidate| candidate.half_width.unwrap_or(0.0);
        let reaches = |at: &usize| {
            let candidate = &self.candidates[*at];
            let behind = (self.predicted(candidate)).map(|value| self.goal.behind(value, best));
            behind.is_some_and(|behind| behind <= width(candidate) + width(first))
        };
        if !self.goal.is_predicted() {
            // Their order says little, so one of each design.
            return self.beam(most, &OF_BEAMS);
        }
        let all = ranked.iter().enumerate();
        let near = all.filter(|(rank, at)| *rank < least || reaches(at));
        near.map(|(_, at)| *at).take(most).collect()
    }
}
