//! Engines behind a pipe: what the oracle finds in adapters with planted bugs, and what it says of
//! adapters that break the protocol.

use std::path::PathBuf;
use std::time::Duration;

use treering_oracle::campaign::{Plan, differential};
use treering_oracle::concurrent;
use treering_oracle::exec::kit::{self, Outcome};
use treering_oracle::exec::so::So;
use treering_oracle::exec::{Answer, Command, Exec, ExecError, Request};
use treering_oracle::{Check, Engine as _, Op, execute, generate};

/// The toy adapter with these bugs. `None` without Python, which is said loudly.
fn toy(bugs: &str) -> Option<Command> {
    let file: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/adapters/toy.py"]
        .iter()
        .collect();
    if std::process::Command::new("python3")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("SKIPPED: python3 is not installed, so no adapter can be tested");
        return None;
    }
    let line = format!("python3 '{}' {bugs}", file.display());
    Some(
        Command::parse(&line)
            .expect("a command")
            .with_timeout(Duration::from_secs(20)),
    )
}

fn engine(bugs: &str) -> Option<Exec> {
    Some(Exec::start(toy(bugs)?).expect("it introduces itself"))
}

fn plan(runs: u64, power: bool) -> Plan {
    let mut plan = Plan {
        runs,
        operations: 300,
        ..Plan::default()
    };
    plan.trouble.power = power;
    plan
}

/// The check that finds the bug, and the length of the reduced program.
fn found(bugs: &str, power: bool) -> Option<(Check, usize)> {
    let engine = engine(bugs)?;
    let outcome = differential(&engine, &plan(20, power), &|_| {});
    assert_eq!(engine.broken(), None, "{bugs}");
    let (_, failure) = outcome
        .failure
        .unwrap_or_else(|| panic!("{bugs}: nothing was found"));
    // The same program fails again.
    let again = execute(&engine, &failure.program).unwrap_err();
    assert_eq!(again.check, failure.finding.check, "{bugs}: {again}");
    Some((failure.finding.check, failure.program.ops.len()))
}

#[test]
fn a_right_adapter_passes_in_all_modes_and_the_same_seed_does_the_same() {
    let Some(engine) = engine("") else { return };
    let once = differential(&engine, &plan(12, false), &|_| {});
    assert!(once.failure.is_none(), "{:?}", once.failure);
    let twice = differential(&engine, &plan(12, false), &|_| {});
    assert_eq!(once.done, twice.done);
    let step_by_step = differential(&engine.clone().step_by_step(), &plan(12, false), &|_| {});
    assert_eq!(once.done, step_by_step.done);
    let killed = differential(&engine, &plan(6, true), &|_| {});
    assert!(killed.failure.is_none(), "{:?}", killed.failure);
    assert!(killed.done.crashes > 3, "{:?}", killed.done);
    assert_eq!(engine.broken(), None);
}

#[test]
fn wrong_answers_are_found_and_reduced_to_a_few_operations() {
    for (bug, checks, most) in [
        ("lost-delete", &[Check::Reference, Check::Scan][..], 3),
        ("scan-order", &[Check::Scan], 4),
        ("scan-short", &[Check::Scan], 40),
    ] {
        let Some((check, operations)) = found(bug, false) else {
            return;
        };
        assert!(checks.contains(&check), "{bug}: {check}");
        assert!(operations <= most, "{bug}: {operations} operations");
    }
}

#[test]
fn a_stale_get_is_found() {
    // Which request is answered wrongly depends on its number, so a smaller program need not fail.
    let Some(engine) = engine("stale-get") else {
        return;
    };
    let outcome = differential(&engine, &plan(20, false), &|_| {});
    let (_, failure) = outcome.failure.expect("a get is stale");
    assert_eq!(
        failure.finding.check,
        Check::Reference,
        "{}",
        failure.finding
    );
}

#[test]
fn a_put_that_is_lost_when_the_process_is_killed_is_found() {
    let Some(engine) = engine("lost-put") else {
        return;
    };
    let outcome = differential(&engine, &plan(20, true), &|_| {});
    let (_, failure) = outcome.failure.expect("acknowledged puts are lost");
    assert_eq!(failure.finding.check, Check::Crash, "{}", failure.finding);
    let dies = |op: &Op| matches!(op, Op::Crash(_) | Op::CutPower(_));
    assert!(
        failure.program.ops.iter().any(dies),
        "{:?}",
        failure.program
    );
}

#[test]
fn an_adapter_that_breaks_the_protocol_is_told_by_line_and_expectation() {
    for (bug, expected) in [
        (
            "garbage",
            "of its output: expected an answer as a JSON object",
        ),
        ("reorders", "expected the answer to request"),
        (
            "empty-get",
            "expected `value` (hexadecimal digits, or null if the key is absent)",
        ),
        ("scan-limit", "the scan's limit"),
    ] {
        let Some(engine) = engine(bug) else { return };
        let outcome = differential(&engine, &plan(2, false), &|_| {});
        assert!(outcome.failure.is_some(), "{bug}");
        let broken = engine
            .broken()
            .unwrap_or_else(|| panic!("{bug}: it is not told"));
        let said = broken.to_string();
        assert!(
            said.contains(expected) && said.contains("toy: line "),
            "{bug}: {said}"
        );
        assert!(broken.is_broken());
    }
}

#[test]
fn a_false_introduction_is_refused() {
    for (bug, expected) in [
        ("false-claim", "line 1 of its output: expected `isolation`"),
        ("wrong-version", "expected `protocol` \"treering.exec/1\""),
    ] {
        let Some(command) = toy(bug) else { return };
        let said = Exec::start(command).err().expect(bug).to_string();
        assert!(said.contains(expected), "{bug}: {said}");
    }
    let missing = Command::parse("/no/such/program")
        .unwrap()
        .start()
        .err()
        .unwrap();
    assert!(matches!(missing, ExecError::Start { .. }), "{missing}");
}

#[test]
fn an_adapter_that_dies_or_hangs_is_a_finding_that_says_so() {
    let Some(dying) = engine("dies") else { return };
    let program = generate::program(&dying, 0, 200, plan(1, false).trouble);
    let finding = execute(&dying.step_by_step(), &program).unwrap_err();
    let said = finding.to_string();
    assert!(
        said.contains("exit status: 3") && said.contains("toy: assertion failed"),
        "{said}"
    );

    let Some(command) = toy("hangs") else { return };
    let hanging = Exec::start(command.with_timeout(Duration::from_secs(3))).unwrap();
    let said = execute(&hanging.step_by_step(), &program)
        .unwrap_err()
        .to_string();
    assert!(said.contains("within 3 s, but none came"), "{said}");

    let Some(command) = toy("mute") else { return };
    let said = Exec::start(command.with_timeout(Duration::from_millis(300)))
        .err()
        .unwrap();
    assert!(
        said.to_string().contains("request 1 (hello) within"),
        "{said}"
    );
}

#[test]
fn the_kit_passes_a_right_adapter_and_tells_what_a_wrong_one_lacks() {
    let Some(command) = toy("") else { return };
    let report = kit::run(&command, 0).unwrap();
    for check in &report.checks {
        let skipped = matches!(check.outcome, Outcome::Skipped(_));
        assert!(check.outcome == Outcome::Holds || skipped, "{check:?}");
    }
    // Which is faster depends on what else the machine does.
    assert!(report.batched_per_second > 0.0 && report.single_per_second > 0.0);
    for (bug, name) in [
        ("lost-delete", "batch"),
        ("scan-order", "scan"),
        ("scan-limit", "all bytes"),
        ("empty-get", "put, get, delete"),
        ("survivor", "crash"),
        ("kept-abort", "transactions"),
    ] {
        let Some(command) = toy(bug) else { return };
        let report = kit::run(&command, 0).unwrap();
        let wrong = |outcome: &Outcome| matches!(outcome, Outcome::Wrong(_) | Outcome::Broken(_));
        let named = report
            .checks
            .iter()
            .any(|check| check.name == name && wrong(&check.outcome));
        assert!(named, "{bug}: {:?}", report.checks);
    }
}

#[test]
fn calls_that_no_order_explains_are_found() {
    let plan = concurrent::Plan {
        calls: 2_000,
        histories: 3,
        ..concurrent::Plan::default()
    };
    for (bugs, right) in [("concurrent", true), ("concurrent stale-get", false)] {
        let Some(engine) = engine(bugs) else { return };
        let report = concurrent::run(&engine, &plan).unwrap();
        let findings = report
            .wrong
            .as_ref()
            .map(|wrong| wrong.findings().collect::<Vec<_>>());
        assert_eq!(findings.is_none(), right, "{bugs}: {findings:?}");
        // Its answers come in any order, so no program runs ahead of its checks.
        let program = generate::program(&engine, 0, 50, Plan::default().trouble);
        assert!(engine.ahead(&program).is_none());
        assert!(report.overlapping > 100, "{bugs}: {}", report.overlapping);
        let first = findings.iter().flatten().next();
        assert!(
            first.is_none_or(|first| first.check == Check::Linearizability),
            "{first:?}"
        );
        assert_eq!(engine.broken(), None);
    }
}

#[test]
fn transactions_that_see_what_their_claim_forbids_are_found() {
    for (bug, name) in [
        ("", None),
        ("lost-update", Some("lost update")),
        ("dirty-read", Some("own write not read")),
        ("kept-abort", Some("dirty read")),
    ] {
        let Some(engine) = engine(bug) else { return };
        let judged = (0..6).map(|seed| {
            engine
                .transactions(seed, 600)
                .expect("it has them")
                .unwrap()
        });
        let judged: Vec<_> = judged.collect();
        assert!(
            judged.iter().map(|report| report.met).sum::<u64>() > 50,
            "{bug}"
        );
        let finding = judged.into_iter().find_map(|report| report.finding);
        let what = finding.as_ref().map(|finding| finding.what.as_str());
        match name {
            None => assert_eq!(what, None),
            Some(name) => assert!(
                what.is_some_and(|what| what.contains(name)),
                "{bug}: {what:?}"
            ),
        }
        assert!(
            finding.is_none_or(|finding| finding.check == Check::Isolation),
            "{bug}"
        );
    }
}

#[test]
fn a_shared_library_is_judged_without_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    for (bug, right) in [("-DRIGHT", true), ("-DLOST_DELETE", false)] {
        let file = folder.path().join(format!("lib{bug}.so"));
        let built = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", bug, "-o"])
            .arg(&file)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../adapters/exec/c/so_toy.c"
            ))
            .status();
        let Ok(built) = built else {
            eprintln!("SKIPPED: cc is not installed, so no library can be built");
            return;
        };
        assert!(built.success());
        let engine = So::load(&file).unwrap();
        let outcome = differential(&engine, &plan(10, true), &|_| {});
        assert_eq!(outcome.failure.is_none(), right, "{:?}", outcome.failure);
    }
}

#[test]
fn a_process_is_driven_alone_and_killed() {
    let Some(command) = toy("") else { return };
    let process = command.start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    assert_eq!(process.call(&Request::Open(&path)), Ok(Answer::Done));
    let key = b"k";
    let put = process.post(&Request::Put {
        key,
        value: b"v",
        tx: None,
    });
    let get = process.post(&Request::Get { key, tx: None });
    assert_eq!(process.wait(put), Ok(Answer::Done));
    assert_eq!(process.wait(get), Ok(Answer::Value(Some(b"v".to_vec()))));
    process.kill();
    assert_eq!(
        process.call(&Request::Get { key, tx: None }),
        Err(ExecError::Killed)
    );
    assert!(process.is_over());
    // What was answered has reached the system.
    let again = process.again().unwrap();
    assert_eq!(again.call(&Request::Open(&path)), Ok(Answer::Done));
    let found = again.call(&Request::Get { key, tx: None });
    assert_eq!(found, Ok(Answer::Value(Some(b"v".to_vec()))));
    assert_eq!(
        engine("").map(|engine| engine.name()),
        Some("exec:toy".into())
    );
}
