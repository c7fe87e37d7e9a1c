//! Power cuts in persistent memory: a small log passes, and each seeded mistake in it is found by
//! the check that is meant to find it.

mod pm_log;

use std::collections::BTreeSet;
use std::sync::Arc;

use pm_log::{Bug, PmLog};
use treering_engine::Kv;
use treering_engine::device::{LINE_SIZE, MemPm, RequestKind, WORD_SIZE};
use treering_oracle::campaign::{self, Plan};
use treering_oracle::concurrent;
use treering_oracle::crash::{self, Effort, Phase, Point};
use treering_oracle::differential::Failure;
use treering_oracle::generate::Trouble;
use treering_oracle::{
    Check, CrashPoint, Disk, DiskKind, Engine, Keep, KeyNo, Limits, Op, Program, Promise, execute,
    generate, session, value,
};

const SOUND: PmLog = PmLog(None);

fn plan(runs: u64) -> Plan {
    Plan {
        runs,
        threads: 2,
        ..Plan::default()
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
fn a_correct_log_survives_every_power_cut() {
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
fn a_correct_log_agrees_with_the_reference_map_and_survives_power_cuts() {
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
fn a_correct_log_is_linearizable() {
    let plan = concurrent::Plan {
        clients: 4,
        calls: 3_000,
        histories: 3,
        ..concurrent::Plan::default()
    };
    let report = concurrent::run(&SOUND, &plan).unwrap();
    assert!(report.wrong.is_none());
    assert_eq!(report.histories, 3);
}

#[test]
fn each_seeded_mistake_is_found_by_its_check() {
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
        let Some((seed, failure)) = outcome.failure else {
            panic!("{bug:?}: nothing found in {} states", outcome.done.states);
        };
        println!(
            "{bug:?}: killed by {} in the program of seed {seed}, {} operations\n{}",
            failure.finding.check,
            failure.program.ops.len(),
            saved(&failure)
        );
        assert_eq!(
            failure.finding.check, expected,
            "{bug:?}: {}",
            failure.finding
        );
        // The saved program shows the bug again, and the correct log passes it.
        let program = Program::parse(&saved(&failure)).unwrap().program;
        let again = crash::replay(&engine, &program).unwrap_err();
        assert_eq!(again.check, expected, "{bug:?}: {again}");
        crash::replay(&SOUND, &program).unwrap();
    }
}

/// Applies a program of puts on a recording device, and lets a twin go through the states in
/// between. `visit` gets the number of requests done, and the twin.
fn relive(engine: PmLog, program: &Program, mut visit: impl FnMut(u64, &MemPm)) {
    let DiskKind::Pm(bytes) = engine.disk() else {
        unreachable!("it asks for persistent memory");
    };
    let pm = Arc::new(MemPm::new(bytes));
    pm.record();
    let kv = engine.open(&Disk::Pm(pm.clone())).unwrap();
    for (version, op) in (1..).zip(&program.ops) {
        let Op::Put(key, len) = op else {
            unreachable!("a program of puts");
        };
        let value = value::value(version, *len as usize);
        kv.put(program.key(*key), &value).unwrap();
    }
    let twin = MemPm::new(bytes);
    visit(0, &twin);
    for (done, request) in (1..).zip(pm.take_recording()) {
        twin.apply(&request);
        visit(done, &twin);
    }
}

/// All power cuts after each request in which words are kept and lost one by one, or lines as a
/// whole.
fn cuts(engine: PmLog, program: &Program, unit: usize) -> Vec<CrashPoint> {
    let mut cuts = Vec::new();
    relive(engine, program, |after_request, twin| {
        let doubt = twin.in_doubt();
        let unit_of = |offset: u64| offset / unit as u64;
        let units: BTreeSet<u64> = doubt.iter().map(|(offset, _)| unit_of(*offset)).collect();
        let units: Vec<u64> = units.into_iter().collect();
        for kept in 0..1u32 << units.len() {
            let pick = |(offset, versions): &(u64, usize)| {
                let place = units.binary_search(&unit_of(*offset)).unwrap();
                (kept >> place & 1) as usize * (versions - 1)
            };
            let keep = doubt.iter().map(pick).collect();
            cuts.push(CrashPoint {
                after_request,
                keep,
                damage: None,
            });
        }
    });
    cuts
}

fn puts() -> Program {
    let ops = [(0, 40), (1, 20), (0, 7), (1, 33)];
    let ops = ops.map(|(key, len)| Op::Put(KeyNo(key), len));
    program(&["a", "long key"], ops.into())
}

/// The number of these power cuts that the engine does not survive.
fn not_survived(engine: PmLog, program: &Program, cuts: Vec<CrashPoint>) -> usize {
    let fails = |cut: &CrashPoint| {
        let cut = Program {
            crashes: vec![cut.clone()],
            ..program.clone()
        };
        crash::replay(&engine, &cut).is_err()
    };
    cuts.iter().filter(|cut| fails(cut)).count()
}

#[test]
fn a_sixteen_byte_commit_is_found_only_by_torn_lines() {
    let (broken, program) = (PmLog(Some(Bug::SixteenByteCommit)), puts());
    let (by_line, by_word) = (
        cuts(broken, &program, LINE_SIZE),
        cuts(broken, &program, WORD_SIZE),
    );
    println!("{} cuts by line, {} by word", by_line.len(), by_word.len());
    assert!(by_line.len() > 30 && by_word.len() > by_line.len());
    assert_eq!(not_survived(broken, &program, by_line), 0);
    assert!(not_survived(broken, &program, by_word) >= program.ops.len());
    // The other mistakes are found without torn lines.
    let broken = PmLog(Some(Bug::SecondLineForgotten));
    let by_line = cuts(broken, &program, LINE_SIZE);
    assert!(not_survived(broken, &program, by_line) > 0);
    let by_word = cuts(SOUND, &program, WORD_SIZE);
    assert_eq!(not_survived(SOUND, &program, by_word), 0);
}

#[test]
fn a_short_program_is_crashed_in_every_possible_way() {
    let program = puts();
    let once = Effort {
        again: 0,
        go_on: 0,
        ..Effort::default()
    };
    let coverage = crash::explore(&SOUND, &program, once, 0).unwrap();
    let mut states = BTreeSet::new();
    relive(SOUND, &program, |_, twin| {
        let outcomes = twin.outcomes();
        for mut number in 0..outcomes.iter().product() {
            let image = twin.crash(&mut |n| {
                let pick = number % n;
                number /= n;
                pick
            });
            states.insert(image.to_vec());
        }
    });
    assert_eq!(coverage.states, states.len() as u64);
    assert_eq!(coverage.sampled, 0, "{coverage:?}");
    // As for a long program.
    let long = Effort { short: 0, ..once };
    let sample = crash::explore(&SOUND, &program, long, 0).unwrap();
    assert!(sample.sampled > 0 && sample.states < coverage.states);
}

#[test]
fn power_cuts_within_programs_find_lost_writes() {
    let forgetful = PmLog(Some(Bug::NoFenceBeforeReturn));
    let put = |key| Op::Put(KeyNo(key), 20);
    let keys = ["a", "b"];
    let crash = |keep| program(&keys, vec![put(0), Op::Crash(keep), put(1)]);
    assert!(execute(&forgetful, &crash(Keep::Newest)).is_ok());
    let found = execute(&forgetful, &crash(Keep::Oldest)).unwrap_err();
    assert_eq!((found.check, found.operation), (Check::Crash, Some(2)));
    let (mut caught, mut crashes) = (0, 0);
    for n in 0..40 {
        let ops = vec![Op::CutPower(n), put(0), put(1), put(0), Op::Reopen, put(1)];
        let cut = program(&keys, ops);
        crashes += execute(&SOUND, &cut).unwrap().crashes;
        if let Err(found) = execute(&forgetful, &cut) {
            assert_eq!(found.check, Check::Crash, "{found}");
            caught += 1;
        }
    }
    println!("{caught} of 40 cuts lose what was acknowledged");
    assert!(
        crashes >= 20 && caught > 0,
        "{crashes} cuts, {caught} caught"
    );
}

#[test]
fn failures_impossible_in_memory_are_never_generated_and_are_refused() {
    for op in [
        Op::Fail(RequestKind::Write, 0),
        Op::Fail(RequestKind::Flush, 3),
    ] {
        let refused = session::fits(&SOUND, &program(&["a"], vec![Op::Sync, op])).unwrap_err();
        assert_eq!(refused.operation, 2);
        let said = refused.to_string();
        assert!(said.ends_with("stores and fences cannot fail"), "{said}");
    }
    let (mut cuts, mut crashes) = (0, 0);
    for seed in 0..60 {
        let program = generate::program(&SOUND, seed, 300, Trouble::ANY);
        session::fits(&SOUND, &program).unwrap();
        let count = |kind: fn(&Op) -> bool| program.ops.iter().filter(|op| kind(op)).count();
        cuts += count(|op| matches!(op, Op::CutPower(_)));
        crashes += count(|op| matches!(op, Op::Crash(_)));
    }
    assert!(cuts > 5 && crashes > 5, "{cuts} and {crashes}");
}

/// A log that declares that it uses no non-temporal stores is not expected to reach them. A log
/// that has not been exercised is told what it never reached.
#[test]
fn unreached_goals_exclude_those_that_the_engine_avoids() {
    let idle = program(&["a"], vec![Op::Get(KeyNo(0))]);
    let coverage = crash::explore(&SOUND, &idle, Effort::default(), 0).unwrap();
    let never: Vec<(Phase, Point)> = coverage.never(&SOUND, false);
    assert!(never.contains(&(Phase::Run, Point::NtStore)), "{never:?}");
    assert!(
        never.contains(&(Phase::Recovery, Point::Fence)),
        "{never:?}"
    );
    let blocks = [
        Point::Log,
        Point::Page,
        Point::Extra,
        Point::Torn,
        Point::Flush,
    ];
    assert!(never.iter().all(|(_, point)| !blocks.contains(point)));
    let shy = Shy(SOUND);
    let never = coverage.never(&shy, false);
    assert!(!never.contains(&(Phase::Run, Point::NtStore)), "{never:?}");
}

struct Shy(PmLog);

impl Engine for Shy {
    fn name(&self) -> String {
        self.0.name()
    }

    fn disk(&self) -> DiskKind {
        self.0.disk()
    }

    fn promise(&self) -> Promise {
        self.0.promise()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn avoids(&self) -> Vec<Point> {
        vec![Point::NtStore]
    }

    fn open(&self, disk: &Disk) -> treering_engine::Result<Arc<dyn Kv>> {
        self.0.open(disk)
    }
}
