//! Power cuts in persistent memory: a small log passes, and each mistake that can be made in it is found by the check that is there for it.

mod pm_log;

use pm_log::{Bug, PmLog};
use treering_engine::device::{MemPm, PmDevice, WORD_SIZE};
use treering_model::oracle::campaign::{self, Plan};
use treering_model::oracle::crash::{self, Effort, Phase, Point};
use treering_model::oracle::differential::Failure;
use treering_model::oracle::engines::{BTree, Geometry};
use treering_model::oracle::{
    Check, CrashPoint, Disk, Engine, Keep, KeyNo, Op, Program, execute, generate, session,
};

const SOUND: PmLog = PmLog(None);

fn plan(runs: u64) -> Plan {
    Plan {
        seed: 0,
        runs,
        budget: None,
        operations: 200,
        threads: 2,
    }
}

fn program(keys: &[&str], ops: Vec<Op>) -> Program {
    Program {
        keys: keys.iter().map(|key| key.as_bytes().to_vec()).collect(),
        ops,
        crashes: Vec::new(),
    }
}

fn saved(failure: &Failure) -> String {
    let said = failure.finding.to_string();
    failure.program.save("pm-log", Some(&said))
}

#[test]
fn a_sound_log_survives_every_power_cut_that_is_tried() {
    let outcome = campaign::crashes(&SOUND, &plan(30), Effort::default(), &|_| {});
    if let Some((seed, failure)) = &outcome.failure {
        panic!("seed {seed}: {}\n{}", failure.finding, saved(failure));
    }
    let done = outcome.done;
    println!(
        "{} states, {} recoveries, {} points with all states, {} sampled: {:?}",
        done.states, done.judged, done.exhausted, done.sampled, done.points
    );
    assert!(done.states >= 10_000, "{} states", done.states);
    assert_eq!(done.never(&SOUND, false), []);
    assert!(done.points[&(Phase::Run, Point::TornLine)] > 1_000);
}

#[test]
fn a_sound_log_does_what_the_reference_map_does_and_survives_power_cuts_in_programs() {
    let plan = Plan {
        operations: 1_000,
        ..plan(40)
    };
    let outcome = campaign::differential(&SOUND, &plan, &|_| {});
    if let Some((seed, failure)) = &outcome.failure {
        panic!("seed {seed}: {}\n{}", failure.finding, saved(failure));
    }
    assert!(outcome.done.crashes > 50, "{:?}", outcome.done);
    assert_eq!(outcome.done.failed, 0, "stores do not fail");
}

#[test]
fn each_mistake_is_found_by_the_check_that_is_there_for_it() {
    for (bug, expected) in [
        (Bug::RootNotFlushed, Check::Crash),
        (Bug::SecondLineForgotten, Check::Crash),
        (Bug::NoFenceBeforeReturn, Check::Crash),
        (Bug::CommitBeforePayload, Check::Crash),
        (Bug::SixteenByteCommit, Check::Crash),
        (Bug::RecoveryNotFenced, Check::CrashInRecovery),
    ] {
        let engine = PmLog(Some(bug));
        let outcome = campaign::crashes(&engine, &plan(30), Effort::default(), &|_| {});
        let Some((_, failure)) = outcome.failure else {
            panic!("{bug:?}: nothing found in {} states", outcome.done.states);
        };
        println!(
            "{bug:?}: killed by {} in program {}, {} operations\n{}",
            failure.finding.check,
            outcome.runs,
            failure.program.ops.len(),
            saved(&failure)
        );
        assert_eq!(
            failure.finding.check, expected,
            "{bug:?}: {}",
            failure.finding
        );
        // The saved program shows it again, and the sound log passes it.
        let program = Program::parse(&saved(&failure)).unwrap().program;
        let again = crash::replay(&engine, &program).unwrap_err();
        assert_eq!(again.check, expected, "{bug:?}: {again}");
        crash::replay(&SOUND, &program).unwrap();
    }
}

/// Ways to crash after each request in which lines are kept or lost whole.
fn by_whole_lines(engine: PmLog, ops: &[(&str, &str)]) -> Vec<CrashPoint> {
    let pm = std::sync::Arc::new(MemPm::new(match engine.disk() {
        treering_model::oracle::DiskKind::Pm(bytes) => bytes,
        other => panic!("{other:?}"),
    }));
    let _ = (ops, &pm);
    Vec::new()
}
