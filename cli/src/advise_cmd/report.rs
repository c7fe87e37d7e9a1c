//! What an advice says: for people, and as `treering.advise/1`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::objective::number;
use super::predict::{Candidate, Trace};
use super::search::Found;
use super::what_if::{Change, WhatIf};
use super::words::{Part, decides, design, figure, parts, per_cent, quoted, size};
use crate::args::Objective;
use crate::sweep_cmd::Point;

/// Name and version of the document.
const SCHEMA: &str = "treering.advise/1";
/// Rows that are shown to people.
const ROWS: usize = 12;
/// Less is no difference.
const NEAR: f64 = 0.005;
/// An interval that is wider says little.
const UNSURE: f64 = 0.25;

/// An advice.
pub(super) struct Advice<'a> {
    found: &'a Found,
    trace: &'a Trace,
    /// Positions of all candidates, the best first: those that were replayed, then the others.
    order: Vec<usize>,
    /// Position of the design that the given flags alone make.
    default: Option<usize>,
    what_if: WhatIf,
    /// Number of predictions that led to it.
    predictions: usize,
}

/// A row of the ranking.
#[derive(Serialize)]
struct Row<'a> {
    tree: &'a str,
    /// Flags of `treering replay`.
    options: BTreeMap<&'a str, &'a str>,
    predicted: Value,
    /// Of a replay; `null` if it was not replayed.
    measured: Option<f64>,
    /// Bytes per user byte that the medium writes, by part.
    parts: BTreeMap<&'static str, f64>,
    why: String,
}

impl<'a> Advice<'a> {
    pub(super) fn new(
        found: &'a Found,
        trace: &'a Trace,
        default: &Point,
        what_if: WhatIf,
        predictions: usize,
    ) -> Advice<'a> {
        let mut order = found.ranked();
        let measured = |at: &usize| found.measured(&found.candidates[*at]);
        // The sort is stable: the others stay in the order of their predictions.
        order.sort_by(|a, b| match (measured(a), measured(b)) {
            (Some(x), Some(y)) if found.goal.is_better(x, y) => std::cmp::Ordering::Less,
            (Some(x), Some(y)) if x != y => std::cmp::Ordering::Greater,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            _ => std::cmp::Ordering::Equal,
        });
        let of_default = |c: &Candidate| {
            let args = default
                .parsed()
                .and_then(|args| crate::replay_config::of(&args));
            args.is_ok_and(|config| {
                (&config.tree, config.cache) == (&c.config.tree, c.config.cache)
                    && config.target == c.config.target
            })
        };
        Advice {
            found,
            trace,
            order,
            default: found.candidates.iter().position(of_default),
            what_if,
            predictions,
        }
    }

    fn candidate(&self, at: usize) -> &'a Candidate {
        &self.found.candidates[at]
    }

    /// The measured value, or else the predicted one.
    fn value(&self, candidate: &Candidate) -> f64 {
        let measured = self.found.measured(candidate);
        let value = measured.or_else(|| self.found.predicted(candidate));
        value.unwrap_or_default()
    }

    fn report(candidate: &Candidate) -> &Value {
        candidate.measured.as_ref().unwrap_or(&candidate.predicted)
    }

    /// Two values in the same terms: both measured, or both predicted.
    fn pair(&self, a: &Candidate, b: &Candidate) -> (f64, f64) {
        let measured = |c: &Candidate| self.found.measured(c);
        match measured(a).zip(measured(b)) {
            Some(pair) => pair,
            None => {
                let predicted = |c: &Candidate| self.found.predicted(c).unwrap_or_default();
                (predicted(a), predicted(b))
            }
        }
    }

    /// The parts of two candidates in the same terms.
    fn part_pair(&self, a: &Candidate, b: &Candidate) -> (Vec<Part>, Vec<Part>) {
        match a.measured.as_ref().zip(b.measured.as_ref()) {
            Some((a, b)) => (parts(a), parts(b)),
            None => (parts(&a.predicted), parts(&b.predicted)),
        }
    }

    /// The document.
    pub(super) fn document(&self) -> Value {
        let goal = &self.found.goal;
        let rows: Vec<Row<'_>> = self.order.iter().map(|at| self.row(*at)).collect();
        let refused: Vec<Value> = (self.found.refused.iter())
            .map(|(point, failure)| json!({"design": design(point, &[]), "why": failure.message}))
            .collect();
        let constraints: Vec<&str> = (self.found.constraints.iter())
            .map(|constraint| constraint.text.as_str())
            .collect();
        let replays = (self.order.iter()).filter(|at| self.candidate(**at).measured.is_some());
        json!({
            "schema": SCHEMA,
            "complete": true,
            "trace": {
                "name": self.trace.name,
                "ops": self.trace.ops,
                "warmup_ops": self.trace.warmup_ops,
            },
            "objective": format!("{:?}", goal.objective).to_lowercase(),
            "unit": goal.unit(),
            "warnings": self.warning().into_iter().collect::<Vec<_>>(),
            "constraints": constraints,
            "predictions": self.predictions,
            "replays": replays.count(),
            "use": self.order.first().map(|at| design(&self.candidate(*at).point, &[])),
            "sure": self.sure(),
            "ranking": rows,
            "what_if": { "cache": self.what_if.0 },
            "refused": refused,
        })
    }

    fn row(&self, at: usize) -> Row<'_> {
        let candidate = self.candidate(at);
        let predicted = self.found.predicted(candidate);
        let half = self.found.half_width(candidate);
        let end = |sign: f64| {
            predicted
                .zip(half)
                .map(|(v, half)| (v * (1.0 + sign * half)).max(0.0))
        };
        Row {
            tree: candidate.point.get("tree").unwrap_or("btree"),
            options: candidate.point.settings().collect(),
            predicted: json!({"value": predicted, "low": end(-1.0), "high": end(1.0)}),
            measured: self.found.measured(candidate),
            parts: parts(Advice::report(candidate)).into_iter().collect(),
            why: self.why(at),
        }
    }

    /// Why a design is where it is: what decides between it and the advised one, or, of that, the
    /// default one.
    fn why(&self, at: usize) -> String {
        let (candidate, best) = (self.candidate(at), self.candidate(self.order[0]));
        let is_best = at == self.order[0];
        let other = match is_best {
            true => self.default.filter(|other| *other != at),
            false => Some(self.order[0]),
        };
        let Some(other) = other.map(|at| self.candidate(at)) else {
            return String::new();
        };
        let (better, worse) = match is_best {
            true => (candidate, other),
            false => (best, candidate),
        };
        let (a, b) = self.part_pair(better, worse);
        match decides(&a, &b) {
            Some(((name, a), (_, b))) => {
                let (here, there) = if is_best { (a, b) } else { (b, a) };
                let beside = if is_best {
                    "by default"
                } else {
                    "of the advised design"
                };
                format!(
                    "{name}: {} instead of {} {beside}",
                    figure(here),
                    figure(there)
                )
            }
            None => String::new(),
        }
    }

    /// How sure the advice is.
    fn sure(&self) -> String {
        let Some(best) = self.order.first().map(|at| self.candidate(*at)) else {
            return String::new();
        };
        if best.measured.is_none() {
            return "no design was replayed: the order is that of the predictions".into();
        }
        if !self.found.goal.is_predicted() {
            let what = self.found.goal.unit();
            return format!(
                "{what} are not predicted: designs that were not replayed may be better"
            );
        }
        let (which, possible) = match self.reaching(best) {
            (0, _) => return "no interval of another design reaches what was measured".into(),
            (1, possible) => ("one design that was".into(), possible),
            (n, possible) => (format!("{n} designs that were"), possible),
        };
        format!(
            "{which} not replayed may be better, by {} at most",
            per_cent(possible.max(0.0))
        )
    }

    /// Of how many designs that were not replayed the interval reaches what is better than `best`,
    /// and how much better the first of them may be.
    fn reaching(&self, best: &Candidate) -> (usize, f64) {
        let value = self.value(best);
        let ahead = |at: &usize| {
            let c = self.candidate(*at);
            let predicted = self.found.predicted(c).filter(|_| c.measured.is_none())?;
            let ahead = c.half_width.unwrap_or(0.0) - self.found.goal.behind(predicted, value);
            (ahead > 0.0).then_some(ahead)
        };
        let reaching: Vec<f64> = self.order.iter().filter_map(ahead).collect();
        (reaching.len(), reaching.first().copied().unwrap_or(0.0))
    }

    /// What a reader should know first.
    pub(super) fn warning(&self) -> Option<&'static str> {
        let best = self.candidate(*self.order.first()?);
        let written = parts(Advice::report(best));
        if written.iter().all(|(_, value)| *value == 0.0) {
            return Some(
                "the advised design writes nothing in the measured part, so the trace is too short \
                 for this cache to tell designs apart",
            );
        }
        let width = self.found.half_width(best).unwrap_or(0.0);
        let unsure = width.max(self.reaching(best).1) > UNSURE;
        (unsure && self.found.goal.is_predicted() && !best.config.drain).then_some(
            "the measured part is so short that the times of checkpoints decide what is written in \
             it; --drain compares designs by all that they will write of it",
        )
    }

    /// The advice for people.
    pub(super) fn words(&self) -> String {
        let goal = &self.found.goal;
        let best = self.candidate(self.order[0]);
        let trace = quoted(&best.point.trace);
        let mut text = format!("{}: {}\n\n", self.trace.name, goal.verb());
        text += &format!("Use      {}\n", design(&best.point, &[]));
        text += &format!("         {}\n", self.said(best));
        if let Some(default) = self.default.map(|at| self.candidate(at)) {
            text += &self.beside("default", best, default);
        }
        let is_other = |at: &&usize| {
            let of = |c: &Candidate, flag| c.point.get(flag).unwrap_or_default().to_owned();
            let flags = ["device", "tree", "store"];
            let other = self.candidate(**at);
            flags.iter().any(|flag| of(best, flag) != of(other, flag))
        };
        if let Some(second) = self.order.iter().find(is_other) {
            text += &self.beside("second", best, self.candidate(*second));
        }
        let replays = self
            .order
            .iter()
            .filter(|at| self.candidate(**at).measured.is_some());
        text += &format!(
            "Sure     {} predictions, {} replays; {}\n",
            self.predictions,
            replays.count(),
            self.sure()
        );
        text += &self.drives(best);
        text += &self.changes();
        text += &format!(
            "Try it   treering replay {} {trace}\n\n",
            design(&best.point, &[])
        );
        text += &self.table();
        text += crate::glossary::SEE;
        text
    }

    /// Its value in words.
    fn said(&self, candidate: &Candidate) -> String {
        let goal = &self.found.goal;
        let measured = self.found.measured(candidate);
        let measured = measured.map(|value| format!("measured {}", goal.said(value)));
        let predicted = format!("predicted {}", self.forecast(candidate));
        let predicted = Some(predicted).filter(|_| goal.objective != Objective::Latency);
        let both: Vec<String> = [measured, predicted].into_iter().flatten().collect();
        format!("{}: {}", goal.unit(), both.join(", "))
    }

    /// The predicted value, with its interval.
    fn forecast(&self, candidate: &Candidate) -> String {
        let value = self.found.predicted(candidate);
        let value = value.map_or("-".into(), |value| self.found.goal.said(value));
        match self.found.half_width(candidate) {
            Some(half) => format!("{value} ±{}", per_cent(half)),
            None => value,
        }
    }

    /// How the advised design is beside another one, and what decides.
    fn beside(&self, name: &str, best: &Candidate, other: &Candidate) -> String {
        let (a, b) = self.pair(best, other);
        let behind = self.found.goal.behind(b, a);
        let said = match behind {
            _ if best.point == other.point => "the same".into(),
            behind if behind.abs() < NEAR => "as good".into(),
            behind if behind.is_infinite() => "worse".into(),
            behind => format!("{} worse", per_cent(behind)),
        };
        let (here, there) = self.part_pair(best, other);
        let why = decides(&here, &there).filter(|_| behind >= NEAR);
        let why = why.map(|((part, a), (_, b))| {
            format!(
                "         because of {part}: {} instead of {}\n",
                figure(b),
                figure(a)
            )
        });
        let flags = design(&other.point, &[]);
        format!(
            "{:<9}{said}: {flags}\n{}",
            capital(name),
            why.unwrap_or_default()
        )
    }

    /// Says that drives are as large as what is on them, unless a capacity was given.
    fn drives(&self, best: &Candidate) -> String {
        let capacity = |c: &Candidate| number(Advice::report(c), "options.capacity");
        let others = self
            .order
            .iter()
            .filter_map(|at| capacity(self.candidate(*at)));
        let least = others.fold(f64::INFINITY, f64::min);
        match capacity(best) {
            Some(own) if best.point.get("capacity").is_none() && own > 1.05 * least => format!(
                "Drive    {} for this store, and {} for the smallest; --capacity compares on one \
                 drive\n",
                size(own),
                size(least)
            ),
            _ => String::new(),
        }
    }

    fn changes(&self) -> String {
        let is_other = |change: &&Change| change.advised_behind > NEAR;
        let changes: Vec<String> = (self.what_if.0.iter().filter(is_other))
            .map(|change| {
                format!(
                    "with --cache {}, {} better: {}",
                    change.cache,
                    per_cent(change.advised_behind / (1.0 + change.advised_behind)),
                    change.best
                )
            })
            .collect();
        match (changes.is_empty(), self.what_if.0.is_empty()) {
            (_, true) => String::new(),
            (true, false) => "Changes  none: it is the best with caches of 1 to 50 %, too\n".into(),
            (false, false) => format!("Changes  {}\n", changes.join("\n         ")),
        }
    }

    fn table(&self) -> String {
        let mut rows = vec![vec![
            "measured".to_owned(),
            "predicted".into(),
            "design".into(),
        ]];
        for at in self.order.iter().take(ROWS) {
            let candidate = self.candidate(*at);
            let measured = self.found.measured(candidate);
            let measured = measured.map_or("-".into(), |v| self.found.goal.said(v));
            let predicted = self.forecast(candidate);
            rows.push(vec![measured, predicted, design(&candidate.point, &[])]);
        }
        let width = |column: usize| {
            let lens = rows.iter().map(|row| row[column].chars().count());
            lens.max().unwrap_or(0)
        };
        let (first, second) = (width(0), width(1));
        let mut text = String::new();
        for row in &rows {
            text += &format!("{:>first$}  {:>second$}  {}\n", row[0], row[1], row[2]);
        }
        let more = self.order.len().saturating_sub(ROWS);
        if more > 0 {
            text += &format!("… and {more} more in --json\n");
        }
        let refused = self.found.refused.len();
        if refused > 0 {
            text += &format!("left out, because a flag or the trace does not suit it: {refused}\n");
        }
        text + "\n"
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
