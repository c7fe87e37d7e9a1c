//! The kill table: every seeded bug of our engine, the check that must catch it, and an unmutated twin that passes the same programs.
//!
//! A mutation that another check catches, or only a panic, counts as missed: the check that is named for it would be blind
//! without help. So each has a recipe, a mode and an engine, and its expected check. Harmless changes run every mode and must be caught by nothing.

use std::time::{Duration, Instant};

use serde::Serialize;
use treering_engine::{HARMLESS, choose_mutation};

use super::campaign::{self, Plan};
use super::crash::Effort;
use super::engines::{BTree, Geometry};
use super::finding::{Check, Finding};

/// How a mutation is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Programs beside the reference map, with power cuts and failures in them.
    Differential,
    /// Every way in which a power cut could have ended a program.
    Crash,
}

/// A seeded bug and what must catch it.
#[derive(Clone, Copy, Debug)]
pub struct Mutation {
    /// In `treering_engine::MUTATIONS`.
    pub name: &'static str,
    /// A row of the pool of real bugs that it is modelled on, or what it is like.
    pub bug: &'static str,
    /// The check that must catch it.
    pub check: Check,
    /// How it is looked for.
    pub mode: Mode,
    /// The engine it is seeded into.
    pub engine: &'static str,
}

const fn mutation(
    name: &'static str,
    bug: &'static str,
    check: Check,
    mode: Mode,
    engine: &'static str,
) -> Mutation {
    Mutation {
        name,
        bug,
        check,
        mode,
        engine,
    }
}

const IN_PLACE: &str = "btree:in-place";
const LARGE_PAGES: &str = "btree:in-place-16k";
const COW: &str = "btree:cow";

/// All that these modes can catch. Those of `treering_engine::MUTATIONS` that are not here are the business of the test that is named beside them
/// (loom's, mostly).
pub const TABLE: &[Mutation] = &[
    mutation(
        "equal-heads-equal-keys",
        "S1 bf-tree#17",
        Check::Reference,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "same-length-same-value",
        "lost update",
        Check::Reference,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "empty-value-is-absent",
        "empty values",
        Check::Reference,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "merge-drops-first",
        "lost in a merge",
        Check::Reference,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "clean-without-write",
        "C3 zero#10, C6 Typhon#132",
        Check::Reference,
        Mode::Differential,
        COW,
    ),
    mutation(
        "scan-skips-fence",
        "R2 orioledb PR#880",
        Check::Scan,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "scan-repeats-last",
        "R2 orioledb PR#880",
        Check::Scan,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "scan-ignores-break",
        "bounds ignored",
        Check::Scan,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "page-before-log",
        "D12 turbodb#54",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "truncate-before-superblock",
        "D8 mini-lsm#124",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "journal-not-flushed",
        "torn pages",
        Check::Crash,
        Mode::Crash,
        LARGE_PAGES,
    ),
    mutation(
        "redo-ignores-page-lsn",
        "D7 arcadedb#5054",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "free-before-durable",
        "D1 redb dbebb441",
        Check::Crash,
        Mode::Differential,
        COW,
    ),
    mutation(
        "table-before-page",
        "D12 turbodb#54",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "split-skips-right",
        "S4 Typhon#297",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "log-acks-before-flush",
        "D5 turso#2091",
        Check::Crash,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "log-keeps-epoch",
        "D11 cqlite#1379, D9 nomt#638",
        Check::CrashInRecovery,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "delete-not-logged",
        "D10 fjall#241",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "redo-skips-deletes",
        "D10 fjall#241",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "split-logs-too-little",
        "S2 sled#717",
        Check::Crash,
        Mode::Crash,
        COW,
    ),
    mutation(
        "checkpoint-skips-pages",
        "D13 topgun#119",
        Check::Crash,
        Mode::Crash,
        IN_PLACE,
    ),
    mutation(
        "failed-write-stays-clean",
        "D4 redb 511b0f86",
        Check::Reference,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "restart-trusts-homes",
        "D5 across a restart",
        Check::Crash,
        Mode::Differential,
        IN_PLACE,
    ),
    mutation(
        "restart-trusts-table",
        "D5 across a restart",
        Check::Crash,
        Mode::Differential,
        COW,
    ),
];

/// What became of a mutation.
#[derive(Clone, Debug, Serialize)]
pub struct Kill {
    /// Its name.
    pub name: &'static str,
    /// What it is modelled on.
    pub bug: &'static str,
    /// The check that must catch it; none for a harmless change.
    pub expected_check: Option<Check>,
    /// Whether that check did; for a harmless change, whether any did.
    pub killed: bool,
    /// The check that did.
    pub by: Option<Check>,
    /// Until it was caught and its program was small.
    pub seconds: f64,
    /// Whether the unmutated engine passed the same programs.
    pub twin_passes: bool,
    /// Whether it changes nothing that was promised.
    pub benign: bool,
    /// Operations of the smallest program that shows it.
    pub operations: Option<usize>,
    /// What was found.
    pub finding: Option<String>,
}

impl Kill {
    /// Whether it is as it should be.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.twin_passes && self.killed != self.benign
    }
}

struct Caught {
    finding: Option<Finding>,
    operations: Option<usize>,
    programs: u64,
}

fn look(engine: &BTree, mode: Mode, plan: &Plan) -> Caught {
    let quiet = |_| {};
    let (failure, programs) = match mode {
        Mode::Differential => {
            let outcome = campaign::differential(engine, plan, &quiet);
            (outcome.failure, outcome.runs)
        }
        Mode::Crash => {
            let outcome = campaign::crashes(engine, plan, Effort::default(), &quiet);
            (outcome.failure, outcome.runs)
        }
    };
    Caught {
        operations: failure.as_ref().map(|(_, f)| f.program.ops.len()),
        finding: failure.map(|(_, f)| f.finding),
        programs,
    }
}

fn plan(mode: Mode, seed: u64, runs: u64, threads: usize) -> Plan {
    Plan {
        seed,
        runs,
        budget: Some(Duration::from_secs(60)),
        operations: match mode {
            Mode::Differential => 1_000,
            Mode::Crash => 200,
        },
        threads,
    }
}

fn engine(name: &str) -> BTree {
    BTree::named(name, Geometry::Tiny).expect("the table names engines that there are")
}

/// Most programs that a mutation has to be caught by.
const PROGRAMS: u64 = 2_000;

/// Switches one mutation on, looks for it, switches it off and runs its twin. Nothing else may have a store open meanwhile.
#[must_use]
pub fn kill(mutation: &Mutation, seed: u64, threads: usize) -> Kill {
    let began = Instant::now();
    let engine = engine(mutation.engine);
    assert!(choose_mutation(Some(mutation.name)), "the engine has it");
    let caught = look(
        &engine,
        mutation.mode,
        &plan(mutation.mode, seed, PROGRAMS, threads),
    );
    choose_mutation(None);
    let seconds = began.elapsed().as_secs_f64();
    let twin = look(
        &engine,
        mutation.mode,
        &plan(mutation.mode, seed, caught.programs, threads),
    );
    let by = caught.finding.as_ref().map(|finding| finding.check);
    Kill {
        name: mutation.name,
        bug: mutation.bug,
        expected_check: Some(mutation.check),
        killed: by == Some(mutation.check),
        by,
        seconds,
        twin_passes: twin.finding.is_none(),
        benign: false,
        operations: caught.operations,
        finding: caught.finding.map(|finding| finding.to_string()),
    }
}

/// Runs a harmless change through all modes.
#[must_use]
pub fn spare(name: &'static str, seed: u64, threads: usize) -> Kill {
    let began = Instant::now();
    assert!(choose_mutation(Some(name)), "the engine has it");
    let mut found = None;
    for (mode, engine_name, runs) in [(Mode::Differential, IN_PLACE, 200), (Mode::Crash, COW, 10)] {
        let caught = look(&engine(engine_name), mode, &plan(mode, seed, runs, threads));
        found = found.or(caught.finding);
    }
    choose_mutation(None);
    Kill {
        name,
        bug: "none",
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
