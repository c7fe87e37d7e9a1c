//! The kill table: every seeded bug of the engine, the check that must catch it, and a run without
//! the bug that must pass the same programs.
//!
//! A mutation that only another check or a panic catches counts as missed: the check that is named
//! for it would not find the bug alone. Each mutation has a recipe: a mode, an engine, a check.
//! Harmless changes run through several modes, and no check may catch them.

use std::time::{Duration, Instant};

use serde::Serialize;
use treering_engine::{HARMLESS, choose_mutation};

use crate::conformance::{self as events, Budget, Cast, Variant};
use treering_oracle::campaign::{self, Plan};
use treering_oracle::concurrent;
use treering_oracle::crash::Effort;
use treering_oracle::engine::Engine;
use treering_oracle::engines::{BTree, Geometry, PmTree};
use treering_oracle::finding::{Check, Finding};
use treering_oracle::generate::Trouble;

mod recipe;
mod table;

use recipe::{COW, IN_PLACE};
pub use recipe::{Mode, Mutation};
pub use table::TABLE;

/// The result for one mutation.
#[derive(Clone, Debug, Serialize)]
pub struct Kill {
    /// Its name.
    pub name: &'static str,
    /// The bug that it is modelled on.
    pub bug: &'static str,
    /// The engine that has it.
    pub engine: &'static str,
    /// The check that must catch it. `None` for a harmless change.
    pub expected_check: Option<Check>,
    /// Whether that check caught it. For a harmless change: whether any check did.
    pub killed: bool,
    /// The check that caught it.
    pub by: Option<Check>,
    /// Seconds until it was caught and its program reduced.
    pub seconds: f64,
    /// Whether the unmutated engine passed the same programs.
    pub twin_passes: bool,
    /// Whether this is a harmless change, which no check may catch.
    pub benign: bool,
    /// Operations of the smallest program that shows it.
    pub operations: Option<usize>,
    /// What was found.
    pub finding: Option<String>,
}

impl Kill {
    /// Whether the result is as required.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.twin_passes && self.killed != self.benign
    }
}

struct Caught {
    findings: Vec<Finding>,
    operations: Option<usize>,
    programs: u64,
}

/// Where programs run. It is built with the bug switched off, which the engine might not survive.
struct Stage {
    engine: Box<dyn Engine>,
    /// For [`Mode::Events`].
    setups: Vec<events::Setup>,
    /// For [`Mode::Crash`].
    effort: Effort,
    /// The check that must find the bug.
    check: Check,
}

impl Stage {
    fn new(mutation: &Mutation) -> Stage {
        let variant = Variant::named(mutation.engine).filter(|_| mutation.mode == Mode::Events);
        let setups = variant.map(|v| events::setups(v).expect("a whole engine makes a store"));
        Stage {
            engine: engine(mutation.engine, mutation.mode),
            setups: setups.unwrap_or_default(),
            effort: match mutation.check {
                // A single power cut must show the bug, so no second one is tried.
                Check::Crash => Effort {
                    again: 0,
                    go_on: 0,
                    damage: 0,
                    ..Effort::default()
                },
                Check::Damage => Effort {
                    damage: 1,
                    ..Effort::default()
                },
                _ => Effort::default(),
            },
            check: mutation.check,
        }
    }

    fn look(&self, mode: Mode, plan: &Plan) -> Caught {
        match mode {
            Mode::Concurrent => self.in_threads(plan),
            Mode::Events => self.by_events(plan),
            Mode::Differential | Mode::Crash | Mode::Damage => {
                look(&*self.engine, mode, plan, self.effort)
            }
        }
    }

    /// Runs programs until the named check has found something, or the time is up. All checks look
    /// at every program, so another check may find something first.
    fn hunt(&self, mode: Mode, plan: &Plan) -> Caught {
        let began = Instant::now();
        let mut programs = 0;
        loop {
            let left = plan.budget.map(|b| b.saturating_sub(began.elapsed()));
            let attempt = Plan {
                seed: plan.seed.wrapping_add(programs),
                runs: plan.runs - programs,
                budget: left,
                grown: mode == Mode::Differential,
                ..*plan
            };
            let mut caught = self.look(mode, &attempt);
            programs += caught.programs.max(1);
            caught.programs = programs;
            let named = caught.findings.iter().position(|f| f.check == self.check);
            let late = left.is_some_and(|left| left.is_zero());
            match named {
                Some(at) => {
                    caught.findings.swap(0, at);
                    return caught;
                }
                None if caught.findings.is_empty() || late || programs >= plan.runs => {
                    return caught;
                }
                None => {}
            }
        }
    }

    fn in_threads(&self, plan: &Plan) -> Caught {
        let plan = concurrent::Plan {
            seed: plan.seed,
            calls: 20_000,
            histories: plan.runs,
            budget: plan.budget,
            // One of the recipes has to show a hang.
            patience: Duration::from_secs(5),
            ..concurrent::Plan::default()
        };
        match concurrent::run(&*self.engine, &plan) {
            Ok(report) => Caught {
                findings: (report.wrong.iter()).flat_map(|w| w.findings()).collect(),
                operations: None,
                programs: report.histories,
            },
            Err(e) => Caught::error(&e),
        }
    }

    fn by_events(&self, plan: &Plan) -> Caught {
        let budget = Budget::Episodes(plan.runs);
        match events::run_on(&self.setups, Cast::OneThread, plan.seed, budget) {
            Ok(report) => Caught {
                findings: (report.refusal.iter())
                    .map(|(seed, r)| r.in_words(&format!("the episode of seed {seed}")))
                    .collect(),
                operations: None,
                programs: report.episodes,
            },
            Err(e) => Caught::error(&e),
        }
    }
}

impl Caught {
    fn error(why: &dyn std::fmt::Display) -> Caught {
        let finding = Finding {
            check: Check::Error,
            operation: None,
            what: "run".into(),
            expected: "no error".into(),
            found: why.to_string(),
        };
        Caught {
            findings: vec![finding],
            operations: None,
            programs: 1,
        }
    }
}

fn look(engine: &dyn Engine, mode: Mode, plan: &Plan, effort: Effort) -> Caught {
    let quiet = |_| {};
    let (failure, programs) = match mode {
        Mode::Damage => {
            let outcome = campaign::damage(engine, plan, &quiet);
            return Caught {
                operations: None,
                findings: outcome.failure.map(|(_, f)| *f).into_iter().collect(),
                programs: outcome.runs,
            };
        }
        Mode::Crash => {
            let outcome = campaign::crashes(engine, plan, effort, &quiet);
            (outcome.failure, outcome.runs)
        }
        _ => {
            let outcome = campaign::differential(engine, plan, &quiet);
            (outcome.failure, outcome.runs)
        }
    };
    Caught {
        operations: failure.as_ref().map(|(_, f)| f.program.ops.len()),
        findings: failure.map(|(_, f)| f.finding).into_iter().collect(),
        programs,
    }
}

fn plan(mode: Mode, trouble: Trouble, seed: u64, runs: u64, threads: usize) -> Plan {
    Plan {
        seed,
        runs,
        trouble,
        // Three times what the slowest recipe takes beside other work.
        budget: Some(Duration::from_secs(180)),
        operations: match mode {
            Mode::Crash => 200,
            _ => 1_000,
        },
        threads,
        // Each recipe names the engine that it is about.
        vary: false,
        // Only the verdict matters, and hardly ever the program.
        shrinks_for: Duration::from_secs(6),
        ..Plan::default()
    }
}

fn engine(name: &str, mode: Mode) -> Box<dyn Engine> {
    if let Some(engine) = BTree::named(name, Geometry::Tiny) {
        return Box::new(engine);
    }
    // In long programs, logs outgrow a tiny persistent memory, and being full is not wrong.
    let geometry = match mode {
        Mode::Crash => Geometry::Tiny,
        _ => Geometry::Small,
    };
    let engine = PmTree::named(name, geometry);
    Box::new(engine.expect("the table names engines that there are"))
}

/// The most programs for catching a mutation.
const PROGRAMS: u64 = 20_000;

/// Histories for the unmutated engine, if the bug is a hang.
const HISTORIES: u64 = 10;

/// Switches a mutation on, looks for it, switches it off, and runs the same programs without it. No
/// other store may be open meanwhile.
#[must_use]
pub fn kill(mutation: &Mutation, seed: u64, threads: usize) -> Kill {
    let began = Instant::now();
    let stage = Stage::new(mutation);
    let twin_of = |programs| {
        let plan = plan(mutation.mode, mutation.trouble, seed, programs, threads);
        stage.look(mutation.mode, &plan).findings.is_empty()
    };
    // Threads that hang remain, and disturb what comes after.
    let before = (mutation.check == Check::Progress).then(|| twin_of(HISTORIES));
    assert!(choose_mutation(Some(mutation.name)), "the engine has it");
    let caught = stage.hunt(
        mutation.mode,
        &plan(mutation.mode, mutation.trouble, seed, PROGRAMS, threads),
    );
    choose_mutation(None);
    let seconds = began.elapsed().as_secs_f64();
    let twin_passes = before.unwrap_or_else(|| twin_of(caught.programs));
    let finding = caught.findings.first();
    let by = finding.map(|finding| finding.check);
    Kill {
        name: mutation.name,
        bug: mutation.bug,
        engine: mutation.engine,
        expected_check: Some(mutation.check),
        killed: by == Some(mutation.check),
        by,
        seconds,
        twin_passes,
        benign: false,
        operations: caught.operations,
        finding: finding.map(Finding::to_string),
    }
}

/// Runs a harmless change through all modes.
#[must_use]
pub fn spare(name: &'static str, seed: u64, threads: usize) -> Kill {
    let began = Instant::now();
    assert!(choose_mutation(Some(name)), "the engine has it");
    let mut found = None;
    for (mode, engine_name, runs) in [
        (Mode::Differential, IN_PLACE, 200),
        (Mode::Crash, COW, 10),
        (Mode::Crash, IN_PLACE, 10),
    ] {
        let caught = look(
            &*engine(engine_name, mode),
            mode,
            &plan(mode, Trouble::ANY, seed, runs, threads),
            Effort::default(),
        );
        found = found.or(caught.findings.into_iter().next());
    }
    choose_mutation(None);
    Kill {
        name,
        bug: "none",
        engine: "all",
        expected_check: None,
        killed: found.is_some(),
        by: found.as_ref().map(|finding| finding.check),
        seconds: began.elapsed().as_secs_f64(),
        twin_passes: true,
        benign: true,
        operations: None,
        finding: found.map(|finding| finding.to_string()),
    }
}

/// The names of the harmless changes.
#[must_use]
pub fn harmless() -> &'static [&'static str] {
    HARMLESS
}
