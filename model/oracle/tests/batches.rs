//! Batches under the oracle: a right engine passes and is exercised, and each mistake with batches
//! is found.

// A failure carries its whole program, and is made once a test.
#![allow(clippy::result_large_err)]

mod batch_log;

use std::sync::Arc;

use batch_log::{BatchLog, Mistake};
use treering_oracle::campaign::{self, Plan};
use treering_oracle::concurrent;
use treering_oracle::crash::Effort;
use treering_oracle::differential::Failure;
use treering_oracle::engines::{BTree, Geometry};
use treering_oracle::finding::Check;
use treering_oracle::generate::Trouble;
use treering_oracle::history::{Action, History, Key, KeyId, Recorder, Start, Version};
use treering_oracle::linear::{self, Kind};
use treering_oracle::random::Random;
use treering_oracle::reach::{Area, Reach, batches};
use treering_oracle::{Engine, Op, Program, execute};

const CALM: Trouble = Trouble {
    reopen: false,
    power: false,
    failures: false,
};

fn beside(engine: &dyn Engine, trouble: Trouble, runs: u64) -> Result<Reach, Box<Failure>> {
    let plan = Plan {
        runs,
        trouble,
        operations: 300,
        ..Plan::default()
    };
    let outcome = campaign::differential(engine, &plan, &|_| {});
    match outcome.failure {
        Some((_, failure)) => Err(failure),
        None => Ok(outcome.done.reach),
    }
}

fn cut(engine: &dyn Engine, runs: u64) -> Result<Reach, Box<Failure>> {
    let plan = Plan {
        runs,
        operations: 60,
        ..Plan::default()
    };
    let outcome = campaign::crashes(engine, &plan, Effort::default(), &|_| {});
    match outcome.failure {
        Some((_, failure)) => Err(failure),
        None => Ok(outcome.done.tally.reach),
    }
}

fn in_threads(engine: &dyn Engine, histories: u64) -> concurrent::Report {
    let plan = concurrent::Plan {
        histories,
        calls: 4_000,
        pumps: 0,
        ..concurrent::Plan::default()
    };
    concurrent::run(engine, &plan).expect("the engine opens an empty store")
}

fn met(reach: &Reach, area: Area, things: &[&str]) {
    for what in things {
        let n = reach.of(area, what).unwrap_or_default();
        assert!(n > 0, "never: {what}");
    }
}

fn batches_of(program: &Program) -> Vec<usize> {
    let changes = program.ops.iter().filter_map(|op| match op {
        Op::Write(changes) => Some(changes.len()),
        _ => None,
    });
    changes.collect()
}

fn log(mistake: Mistake) -> BatchLog {
    BatchLog {
        mistake,
        blocks: 1_000,
    }
}

#[test]
fn a_right_engine_passes_and_its_batches_are_exercised() {
    let engine = log(Mistake::None);
    let trouble = Trouble {
        failures: false,
        ..Trouble::ANY
    };
    let reach = beside(&engine, trouble, 30).unwrap_or_else(|wrong| panic!("{}", wrong.finding));
    met(&reach, Area::Step, &[batches::WRITTEN, batches::TOO_LARGE]);
    let reach = cut(&engine, 8).unwrap_or_else(|wrong| panic!("{}", wrong.finding));
    met(
        &reach,
        Area::Fault,
        &[batches::CUT, batches::KEPT, batches::LOST],
    );
    let report = in_threads(
        &BatchLog {
            blocks: 8_000,
            ..engine
        },
        4,
    );
    assert!(report.wrong.is_none(), "{:?}", report.wrong);
    let races = [
        "batch and get of a key",
        "two batches of a key",
        "put and batch of a key",
    ];
    met(&report.reach, Area::Race, &races);
}

#[test]
fn our_engine_passes_and_completes_batches() {
    let engine = BTree::named("btree:cow", Geometry::Tiny).unwrap();
    let reach =
        beside(&engine, Trouble::ANY, 40).unwrap_or_else(|wrong| panic!("{}", wrong.finding));
    met(&reach, Area::Step, &[batches::WRITTEN, batches::TOO_LARGE]);
    let reach = cut(&engine, 20).unwrap_or_else(|wrong| panic!("{}", wrong.finding));
    let things = [
        batches::CUT,
        batches::KEPT,
        batches::LOST,
        batches::COMPLETED,
    ];
    met(&reach, Area::Fault, &things);
}

#[test]
fn a_change_that_is_left_out_is_missed_and_only_the_batch_is_left_of_the_program() {
    let Failure { program, finding } = *beside(&log(Mistake::LeavesOneOut), CALM, 60).unwrap_err();
    assert_eq!(finding.check, Check::Reference, "{finding}");
    // Two changes: with one there is none to leave out.
    assert_eq!(batches_of(&program), [2], "{program:?}");
}

#[test]
fn a_batch_logged_in_parts_is_found_by_power_cuts() {
    let Failure { program, finding } = *cut(&log(Mistake::LoggedInParts), 60).unwrap_err();
    assert_eq!(finding.check, Check::Crash, "{finding}");
    assert_eq!(batches_of(&program), [2], "{program:?}");
    assert!(finding.expected.contains("each batch whole"), "{finding}");
}

#[test]
fn a_batch_logged_after_a_later_write_is_found_by_power_cuts() {
    let Failure { program, finding } = *cut(&log(Mistake::LoggedLate), 60).unwrap_err();
    assert_eq!(finding.check, Check::Crash, "{finding}");
    assert_eq!(batches_of(&program).len(), 1, "{program:?}");
}

#[test]
fn a_refused_or_failed_batch_that_has_made_a_change_is_found() {
    let Failure { finding, .. } = *beside(&log(Mistake::RefusedInPart), CALM, 200).unwrap_err();
    assert_eq!(finding.check, Check::Reference, "{finding}");
    // Without space, the block cannot be written.
    let text = r#"{"schema":"treering.program/1","engine":"batch-log"}
put "a" 10
no-space
write put "a" 20 put "b" 20
scan "a"
"#;
    let program = Program::parse(text).unwrap().program;
    assert!(execute(&log(Mistake::None), &program).is_ok());
    let finding = execute(&log(Mistake::FailsInPart), &program).unwrap_err();
    assert!(finding.found.contains("some of them"), "{finding}");
}

#[test]
fn a_batch_shown_in_parts_is_found_by_threads() {
    let engine = BatchLog {
        mistake: Mistake::ShownInParts,
        blocks: 8_000,
    };
    let report = in_threads(&engine, 60);
    let wrong = report.wrong.expect("readers see a batch in part");
    let first = wrong.findings().next().expect("it says what");
    // The schedule decides how: a batch in part, or answers of one key that have no order.
    assert_eq!(first.check, Check::Linearizability, "{first}");
}

#[test]
fn an_engine_without_batches_gets_none_and_says_so_when_asked() {
    let text = "{\"schema\":\"treering.program/1\",\"engine\":\"ccl\"}\nwrite put \"a\" 5\n";
    let program = Program::parse(text).unwrap().program;
    let engine = treering_oracle::engines::PmTree::named("ccl", Geometry::Tiny).unwrap();
    assert!(treering_oracle::session::fits(&engine, &program).is_err());
    assert_eq!(execute(&engine, &program).unwrap_err().check, Check::Error);
    let made = treering_oracle::generate::program(&engine, 1, 1_000, Trouble::ANY);
    assert!(batches_of(&made).is_empty());
}

/// Histories of two keys, with one call a client.
fn history(calls: &[(Call, u64, u64)]) -> History {
    let keys: Arc<[Key]> = [&b"a"[..], b"b"].map(Key::from).into();
    let recorders = (0..).zip(calls).map(|(client, (call, invoke, end))| {
        let mut recorder = Recorder::new(client, Arc::clone(&keys));
        let mut found = Version::ABSENT;
        match call {
            Call::Put(key, version) => recorder.invoke(
                *invoke,
                Action::Put {
                    key: KeyId(*key),
                    version: Version(*version),
                },
            ),
            Call::Write(a, b) => {
                recorder.invoke_batch(*invoke, [(KeyId(0), Version(*a)), (KeyId(1), Version(*b))])
            }
            Call::Get(key, version) => {
                found = Version(*version);
                let key = KeyId(*key);
                recorder.invoke(*invoke, Action::Get { key, found });
            }
            Call::Scan(a, b) => {
                recorder.invoke_scan(*invoke, Start::From(KeyId(0)), None, 9);
                let there = |version: &u64| (*version > 0).then_some(Version(*version));
                (there(a).into_iter()).for_each(|version| recorder.row(b"a", version));
                (there(b).into_iter()).for_each(|version| recorder.row(b"b", version));
            }
        }
        if *end > 0 {
            recorder.returned(*end, found);
        }
        recorder
    });
    History::merge(recorders.collect())
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Put(u32, u64),
    /// Of both keys. 0 is a delete.
    Write(u64, u64),
    Get(u32, u64),
    Scan(u64, u64),
}

#[test]
fn reads_that_see_a_batch_in_part_contradict_each_other_and_a_scan_under_way_does_not() {
    use Call::{Get, Put, Scan, Write};
    let start = [(Put(0, 1), 1, 2), (Put(1, 2), 3, 4)];
    let kind = |later: &[(Call, u64, u64)]| {
        let calls: Vec<_> = start.iter().chain(later).copied().collect();
        linear::check(&history(&calls))
            .err()
            .map(|wrong| wrong.kind)
    };
    let part = Some(Kind::BatchInPart);
    let batch = (Write(3, 4), 10, 30);
    // A get finds the new a, and a later one the old b; or the other way round.
    assert_eq!(
        kind(&[batch, (Get(0, 3), 11, 12), (Get(1, 2), 13, 14)]),
        part
    );
    assert_eq!(
        kind(&[batch, (Get(1, 4), 11, 12), (Get(0, 1), 13, 14)]),
        part
    );
    // Both old, both new, or overlapping.
    assert_eq!(
        kind(&[batch, (Get(0, 1), 11, 12), (Get(1, 4), 13, 14)]),
        None
    );
    assert_eq!(
        kind(&[batch, (Get(0, 3), 11, 14), (Get(1, 2), 12, 13)]),
        None
    );
    // A scan that begins later counts, one that is under way does not.
    assert_eq!(
        kind(&[batch, (Get(0, 3), 11, 12), (Scan(3, 2), 13, 14)]),
        part
    );
    assert_eq!(kind(&[batch, (Scan(3, 2), 11, 14)]), None);
    // A batch that never returned, and was seen, has happened as a whole.
    let pending = (Write(3, 4), 10, 0);
    assert_eq!(
        kind(&[pending, (Get(0, 3), 11, 12), (Get(1, 2), 13, 14)]),
        part
    );
    assert_eq!(
        kind(&[pending, (Get(0, 1), 11, 12), (Get(1, 2), 13, 14)]),
        None
    );
    // Deletes.
    let deletes = (Write(3, 0), 10, 30);
    assert_eq!(
        kind(&[deletes, (Get(0, 3), 11, 12), (Get(1, 2), 13, 14)]),
        part
    );
    assert_eq!(
        kind(&[deletes, (Get(1, 0), 11, 12), (Get(0, 1), 13, 14)]),
        part
    );
    // Over another batch at the same time.
    let two = [(Write(3, 4), 10, 30), (Write(5, 6), 11, 31)];
    let seen = |a: u64, b: u64| [(Get(0, a), 40, 41), (Get(1, b), 42, 43)];
    assert_eq!(kind(&[two, seen(3, 4)].concat()), None);
    assert_eq!(kind(&[two, seen(5, 6)].concat()), None);
    // The last one is that of a on one key, and that of b on the other.
    assert_eq!(kind(&[two, seen(3, 6)].concat()), part);
    let early = [(Get(0, 3), 12, 13), (Get(0, 5), 14, 15)];
    assert_eq!(kind(&[&two[..], &early, &seen(5, 6)].concat()), None);
    assert_eq!(
        kind(&[&two[..], &early, &[(Get(1, 6), 12, 13)], &seen(5, 4)].concat()),
        part
    );
}

/// Random histories of a map in which each call takes effect at one instant, with batches among
/// them. Then one answer is changed.
#[test]
fn histories_with_an_order_pass_and_wrong_answers_in_them_are_found() {
    let mut found = 0;
    for seed in 0..4_000 {
        let mut random = Random::new(seed);
        let (mut map, mut calls) = ([0u64; 2], Vec::new());
        for n in 1..=24 {
            // Its instant is 100 n; its interval reaches over its neighbours' instants.
            let (before, after) = (random.below(250), 1 + random.below(250));
            let (at, version) = (1_000 + 100 * n, 2 * n);
            let key = random.below(2) as u32;
            let call = match random.below(6) {
                0 => {
                    map[key as usize] = version;
                    Call::Put(key, version)
                }
                1 | 2 => {
                    let values = [version, version + 1].map(|v| v * u64::from(!random.one_in(4)));
                    map = values;
                    Call::Write(values[0], values[1])
                }
                3 => Call::Scan(map[0], map[1]),
                _ => Call::Get(key, map[key as usize]),
            };
            // Ticks differ.
            calls.push((call, (at - before) * 100 + n, (at + after) * 100 + 50 + n));
        }
        assert!(linear::check(&history(&calls)).is_ok(), "seed {seed}");
        let at = random.below(24) as usize;
        if let (Call::Get(key, version), invoke, end) = calls[at] {
            let others = calls.iter().filter_map(|(call, ..)| match call {
                Call::Write(a, b) => Some([*a, *b][key as usize]).filter(|v| *v > 0),
                _ => None,
            });
            let others: Vec<u64> = others.filter(|other| *other != version).collect();
            if !others.is_empty() {
                let other = others[random.below(others.len() as u64) as usize];
                calls[at] = (Call::Get(key, other), invoke, end);
                let wrong = linear::check(&history(&calls)).err();
                found += u64::from(wrong.is_some_and(|wrong| wrong.kind == Kind::BatchInPart));
            }
        }
    }
    assert!(found > 10, "{found} of them only by batches");
}
