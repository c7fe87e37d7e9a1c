//! What an exploration found: JSON, text, HTML.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use treering_sim::report::html::{Cell, Table, escape, heading, page, sentences};
use treering_sim::report::numbers::grouped;

use super::campaign::{Explored, Failure};
use super::shrink::Smallest;
use super::story::{Became, Line, Story};
use super::subject::Subject;
use super::{FoundState, Model, Plan};
use crate::recording::Header;

/// A report, `treering.cuts/1`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cuts {
    /// [`Cuts::SCHEMA`].
    pub schema: String,
    /// Whether exploring was not interrupted.
    pub complete: bool,
    /// The version of Treering.
    pub treering: String,
    /// What was cut.
    pub recording: Recording,
    /// The checker and its arguments.
    pub checker: Vec<String>,
    /// What it is called, if it comes along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Named>,
    /// What the file system promises.
    pub model: Model,
    /// Bytes that are durable as a whole.
    pub torn_bytes: u64,
    /// What decides the states that are drawn.
    pub seed: u64,
    /// What was explored.
    pub states: States,
    /// What was found, the most frequent first.
    pub findings: Vec<Finding>,
    /// `holds`, `violated`, or `not exercised` if nothing could be lost anywhere.
    pub verdict: String,
}

/// A checker that comes along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The value of `--check`.
    pub name: String,
    /// The tool that it runs, with its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

impl Named {
    /// The flag, as a shell reads it.
    fn flag(&self) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || ":/._-".contains(c);
        match self.name.chars().all(plain) {
            true => format!("--check {}", self.name),
            false => format!("--check '{}'", self.name.replace('\'', "'\\''")),
        }
    }
}

/// The recording that was cut.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recording {
    /// Its file.
    pub file: String,
    /// The face that was recorded.
    pub face: String,
    /// The program that was recorded.
    pub command: Vec<String>,
    /// Places where the power can be cut so that something else is left.
    pub points: u64,
    /// Kinds of such places: those that the same sequence of operations leads to are alike.
    pub kinds: u64,
    /// Lines of `$TREERING_ACKS`.
    pub acknowledgements: u64,
    /// Effects that counted as durable because too many were not.
    pub expired: u64,
}

/// What was explored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct States {
    /// States that were made.
    pub explored: u64,
    /// Those that look different to a program; the checker ran on each.
    pub distinct: u64,
    /// Those that it could not live with.
    pub failed: u64,
    /// States of recoveries that were cut, on which it ran besides.
    pub recoveries: u64,
    /// Binary logarithm of the number of subsets of what may be lost, over all points, without
    /// torn writes; many of them are illegal or look the same.
    pub space: f64,
    /// How much of it was seen.
    pub covered: Covered,
}

/// How much of a recording was explored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Covered {
    /// Points of which some state was checked.
    pub points: u64,
    /// Kinds of points of which one was.
    pub kinds: u64,
    /// Points of which every subset was tried.
    pub whole: u64,
    /// Whether nothing new was left to be found by drawing.
    pub exhausted: bool,
}

/// What is wrong, with one cause.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// What is lost and what is there, without numbers.
    pub cause: String,
    /// Whether the power was cut during the recovery.
    pub in_recovery: bool,
    /// What the checker said.
    pub outcomes: Vec<Outcome>,
    /// The smallest failing state, told.
    pub story: Vec<Line>,
    /// What is lost in it.
    pub smallest: SmallestState,
    /// The line of `$TREERING_ACKS` without which the checker can live with the state, found by
    /// trying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged_lost: Option<String>,
    /// The flush with which the failure goes away, found by trying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_fsync: Option<String>,
    /// The file of the state, for `treering cuts --replay`.
    pub replay: String,
    /// The directory with a copy of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// What tells causes apart.
    #[serde(skip)]
    key: String,
    #[serde(skip)]
    pub(super) state: Option<Box<FoundState>>,
}

/// How the checker failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub end: String,
    /// What it printed first.
    pub output: String,
    /// States on which it failed so.
    pub states: u64,
    /// The number of the first of them.
    pub first: u64,
}

/// The smallest failing state in numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SmallestState {
    /// The event at which the power is cut.
    pub event: u64,
    /// Effects that have to be lost.
    pub lost: u64,
    /// Those of them that are torn.
    pub torn: u64,
    /// Effects that have to be there.
    pub there: u64,
}

impl Cuts {
    /// The name and version of the report's format.
    pub const SCHEMA: &'static str = "treering.cuts/1";

    pub(super) fn new(
        plan: &Plan,
        header: &Header,
        subject: &Subject,
        explored: &Explored,
        findings: Vec<Finding>,
    ) -> Cuts {
        let mut findings = findings;
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.states()));
        let points = &subject.points;
        let verdict = match (explored.failed, points.points.iter().any(|p| p.effects > 0)) {
            (1.., _) => "violated",
            (0, true) => "holds",
            (0, false) => "not exercised",
        };
        Cuts {
            schema: Cuts::SCHEMA.into(),
            complete: !explored.stopped,
            treering: env!("CARGO_PKG_VERSION").into(),
            recording: Recording {
                file: plan.log.display().to_string(),
                face: header.face.name().into(),
                command: header.command.clone(),
                points: points.points.len() as u64,
                kinds: points.kinds.into(),
                acknowledgements: points.lines.len() as u64,
                expired: points.expired,
            },
            checker: plan
                .checker
                .iter()
                .map(|w| w.to_string_lossy().into_owned())
                .collect(),
            check: plan.named.clone(),
            model: subject.rules.model,
            torn_bytes: subject.rules.unit,
            seed: plan.seed,
            states: States {
                explored: explored.made,
                distinct: explored.checked,
                failed: explored.failed,
                recoveries: explored.recoveries,
                space: space(points.points.iter().map(|point| point.effects)),
                covered: Covered {
                    points: explored.points,
                    kinds: explored.kinds,
                    whole: explored.whole,
                    exhausted: explored.exhausted,
                },
            },
            findings,
            verdict: verdict.into(),
        }
    }

    /// Whether a state was found that the checker cannot live with.
    #[must_use]
    pub fn is_violated(&self) -> bool {
        self.verdict == "violated"
    }

    /// Whether there was something that could be lost.
    #[must_use]
    pub fn is_exercised(&self) -> bool {
        self.verdict != "not exercised"
    }

    /// The causes that were found, in one sentence.
    #[must_use]
    pub fn findings_in_words(&self) -> String {
        let (failed, states) = (self.states.failed, self.states.distinct);
        let causes: Vec<&str> = self.findings.iter().map(|f| f.cause.as_str()).collect();
        format!("{failed} of {states} states fail ({})", causes.join("; "))
    }

    /// Renders the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (name, value) in self.summary() {
            let _ = writeln!(out, "{name:<10} {value}");
        }
        for (number, finding) in (1..).zip(&self.findings) {
            let _ = writeln!(out, "\nFinding {number}: {}", finding.cause);
            for (name, value) in finding.facts(&self.again()) {
                let _ = writeln!(out, "  {name:<14} {value}");
            }
            for line in &finding.story {
                let (mark, event) = (mark(line.became), line.event);
                let _ = writeln!(out, "  {event:>8}  {mark:<6} {}", line.what);
            }
        }
        out
    }

    /// What the checker is called.
    fn called(&self) -> String {
        match &self.check {
            None => one_line(&self.checker),
            Some(named) => match &named.tool {
                Some(tool) => format!("{} ({tool})", named.flag()),
                None => named.flag(),
            },
        }
    }

    /// How the checker is named on a command line.
    fn again(&self) -> String {
        let flag = self.check.as_ref().map(Named::flag);
        flag.unwrap_or_else(|| "-- CHECKER".into())
    }

    fn summary(&self) -> Vec<(&'static str, String)> {
        let Recording {
            file,
            face,
            command,
            points,
            kinds,
            acknowledgements,
            expired,
        } = &self.recording;
        let states = &self.states;
        let mut rows = vec![("Recording", format!("{file}, face {face}"))];
        if !command.is_empty() {
            rows.push(("Program", one_line(command)));
        }
        rows.push(("Checker", self.called()));
        let unit = self.torn_bytes;
        rows.push(("Model", format!("{}, torn at {unit} B", self.model.name())));
        let (points, kinds) = (grouped(*points), grouped(*kinds));
        let acks = grouped(*acknowledgements);
        rows.push((
            "Points",
            format!("{points} of {kinds} kinds, {acks} acknowledgements"),
        ));
        let (distinct, made) = (grouped(states.distinct), grouped(states.explored));
        let mut words = format!("{distinct} different of {made} made");
        if states.recoveries > 0 {
            let _ = write!(
                words,
                ", and {} of cut recoveries",
                grouped(states.recoveries)
            );
        }
        rows.push(("States", words));
        let covered = &states.covered;
        let (seen, all) = (grouped(covered.points), grouped(covered.kinds));
        let whole = grouped(covered.whole);
        let space = states.space;
        rows.push((
            "Covered",
            format!("{seen} points of {all} kinds, {whole} with every subset; about 2^{space:.0} subsets in all"),
        ));
        if *expired > 0 {
            let expired = grouped(*expired);
            let words =
                format!("{expired} effects counted as durable, since too many were not (--window)");
            rows.push(("Left out", words));
        }
        let failed = grouped(states.failed);
        let verdict = match states.failed {
            0 => self.verdict.clone(),
            _ => {
                let causes = self.findings.len();
                let causes = if causes == 1 {
                    "1 cause".into()
                } else {
                    format!("{causes} causes")
                };
                format!("{}: {failed} states, {causes}", self.verdict)
            }
        };
        rows.push(("Verdict", verdict));
        rows
    }

    /// Renders the report as a self-contained HTML page.
    #[must_use]
    pub fn html(&self, command: Option<&str>) -> String {
        let program = self.recording.command.first();
        let title = format!("Power cuts: {}", program.unwrap_or(&self.recording.file));
        let rows = self.summary().into_iter();
        let rows: Vec<String> = rows
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        let mut out = sentences(&rows);
        for (number, finding) in (1..).zip(&self.findings) {
            out += &heading(&format!("Finding {number}"));
            out += &format!("<p><strong>{}</strong></p>\n", escape(&finding.cause));
            let facts = finding.facts(&self.again()).into_iter();
            let facts: Vec<String> = facts
                .map(|(name, value)| format!("{name}: {value}"))
                .collect();
            out += &sentences(&facts);
            out += &finding.timeline();
            let cells = |line: &Line| {
                let event = grouped(line.event);
                let ms = format!("{:.3}", line.wall_ms);
                let row = [event.as_str(), &ms, mark(line.became), &line.what];
                row.iter().map(|cell| Cell::read(cell)).collect()
            };
            let table = Table {
                label: "Story",
                head: vec!["event", "ms", "became", "what"],
                rows: finding.story.iter().map(cells).collect(),
            };
            out += &table.html();
        }
        if let Some(command) = command {
            out += &heading("The same again");
            out += &format!("<pre>{}</pre>\n", escape(command));
        }
        page(&title, &out)
    }
}

/// A command in one line.
fn one_line(command: &[String]) -> String {
    let words = command.iter().flat_map(|word| word.split_whitespace());
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(120) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}

/// The binary logarithm of the sum of powers of two.
fn space(effects: impl Iterator<Item = usize>) -> f64 {
    let mut counts: Vec<usize> = effects.collect();
    counts.sort_unstable();
    let most = counts.last().copied().unwrap_or(0) as f64;
    let sum: f64 = counts
        .iter()
        .map(|count| (*count as f64 - most).exp2())
        .sum();
    match counts.is_empty() {
        true => 0.0,
        false => most + sum.log2(),
    }
}

fn mark(became: Became) -> &'static str {
    match became {
        Became::There => "there",
        Became::Lost => "LOST",
        Became::Torn => "TORN",
        Became::Happened => "",
    }
}

impl Finding {
    pub(super) fn new(
        first: &Failure,
        states: u64,
        smallest: &Smallest,
        story: Story,
        state: FoundState,
    ) -> Finding {
        let verdict = &smallest.verdict;
        let outcome = Outcome {
            end: verdict.words(),
            output: verdict
                .output
                .lines()
                .take(8)
                .collect::<Vec<_>>()
                .join("\n"),
            states,
            first: first.state,
        };
        Finding {
            cause: story.cause,
            key: story.key,
            in_recovery: first.recovery.is_some(),
            outcomes: vec![outcome],
            story: story.lines,
            smallest: SmallestState {
                event: smallest.choice.place.event,
                lost: smallest.lost.len() as u64,
                torn: smallest.torn.len() as u64,
                there: smallest.there.len() as u64,
            },
            acknowledged_lost: smallest.acknowledged.clone(),
            missing_fsync: story.missing,
            replay: String::new(),
            kept: None,
            state: Some(Box::new(state)),
        }
    }

    /// Whether the cause is the same.
    pub(super) fn is_like(&self, other: &Finding) -> bool {
        (&self.key, self.in_recovery) == (&other.key, other.in_recovery)
    }

    /// Takes over what another finding with the same cause has seen.
    pub(super) fn merge(&mut self, other: Finding) {
        for outcome in other.outcomes {
            let same = |known: &&mut Outcome| {
                (&known.end, &known.output) == (&outcome.end, &outcome.output)
            };
            match self.outcomes.iter_mut().find(same) {
                Some(known) => known.states += outcome.states,
                None => self.outcomes.push(outcome),
            }
        }
    }

    fn states(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.states).sum()
    }

    /// Its facts as rows; `checker` names the checker on a command line.
    fn facts(&self, checker: &str) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        for outcome in &self.outcomes {
            let states = grouped(outcome.states);
            let said = match checker.starts_with("--check") {
                // Its first line is the kind of failure, its second the place.
                true => outcome
                    .output
                    .lines()
                    .take(2)
                    .collect::<Vec<_>>()
                    .join(": "),
                false => outcome
                    .output
                    .lines()
                    .next()
                    .unwrap_or("nothing printed")
                    .into(),
            };
            let said: String = said.chars().take(200).collect();
            rows.push((
                "checker",
                format!("{}, {states} states: {said}", outcome.end),
            ));
        }
        if self.in_recovery {
            rows.push(("when", "the power was cut again during the recovery".into()));
        }
        if let Some(line) = &self.acknowledged_lost {
            let line: String = line.chars().take(100).collect();
            rows.push(("acknowledged", format!("{line}, and yet lost")));
        }
        if let Some(missing) = &self.missing_fsync {
            rows.push(("missing fsync", missing.clone()));
        }
        if !self.replay.is_empty() {
            rows.push((
                "again",
                format!("treering cuts --replay {} {checker}", self.replay),
            ));
        }
        if let Some(kept) = &self.kept {
            rows.push(("copy", kept.clone()));
        }
        rows
    }

    /// The story as a timeline: a box for each event, in order.
    fn timeline(&self) -> String {
        const STEP: usize = 26;
        let height = STEP * self.story.len() + 10;
        let mut svg = format!(
            "<svg viewBox=\"0 0 900 {height}\" role=\"img\" aria-label=\"Timeline of the finding\" \
             style=\"max-width:56rem;width:100%;font:13px system-ui,sans-serif\">\n\
             <line x1=\"20\" y1=\"6\" x2=\"20\" y2=\"{}\" stroke=\"currentColor\"/>\n",
            height - 6
        );
        for (at, line) in self.story.iter().enumerate() {
            let y = STEP * at + 16;
            let (colour, dash) = match line.became {
                Became::There => ("#2a78d6", ""),
                Became::Lost => ("#d03b3b", " stroke-dasharray=\"3 2\""),
                Became::Torn => ("#d97706", " stroke-dasharray=\"3 2\""),
                Became::Happened => ("#777", ""),
            };
            let fill = match line.became {
                Became::There => colour,
                _ => "none",
            };
            let what: String = line.what.chars().take(110).collect();
            let _ = writeln!(
                svg,
                "<circle cx=\"20\" cy=\"{y}\" r=\"6\" fill=\"{fill}\" stroke=\"{colour}\" \
                 stroke-width=\"2\"{dash}/><text x=\"36\" y=\"{}\" fill=\"currentColor\">{} {}</text>",
                y + 4,
                escape(mark(line.became)),
                escape(&what)
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}
