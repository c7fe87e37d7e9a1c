//! Compares the checker of histories with `stateright::semantics::LinearizabilityTester`, which
//! tries all orders. Also checks that each kind of corruption gets its name.

use std::collections::BTreeMap;

use stateright::semantics::register::{Register, RegisterOp, RegisterRet};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester};
use treering_oracle::history::{
    Action, Call, History, Key, KeyId, Outcome, Row, Scan, Start, Version,
};
use treering_oracle::linear::{Kind, Violation, check};
use treering_oracle::random::Random;

/// A history under construction.
#[derive(Clone, Default)]
struct Draft {
    keys: u32,
    calls: Vec<Call>,
    scans: Vec<Scan>,
    rows: Vec<Row>,
}

impl Draft {
    fn history(&self) -> History {
        let keys = (0..self.keys).map(|n| Key::from(format!("k{n}").into_bytes()));
        let (calls, scans, rows) = (self.calls.clone(), self.scans.clone(), self.rows.clone());
        History::assemble(keys.collect(), calls, scans, Vec::new(), rows)
    }

    fn call(&mut self, client: u32, invoke: u64, end: u64, action: Action) -> &mut Self {
        self.calls.push(Call {
            client,
            outcome: Outcome::Returned,
            invoke,
            end,
            action,
        });
        self
    }

    fn scan(
        &mut self,
        client: u32,
        times: (u64, u64),
        limit: u32,
        rows: &[(u32, u64)],
    ) -> &mut Self {
        self.scans.push(Scan {
            start: Start::From(KeyId(0)),
            through: None,
            limit,
            first: self.rows.len() as u32,
            rows: rows.len() as u32,
        });
        let row = |&(key, version)| Row {
            key: KeyId(key),
            version: Version(version),
        };
        self.rows.extend(rows.iter().map(row));
        let scan = self.scans.len() as u32 - 1;
        self.call(client, times.0, times.1, Action::Scan(scan))
    }
}

fn get(key: u32, found: u64) -> Action {
    let (key, found) = (KeyId(key), Version(found));
    Action::Get { key, found }
}

fn put(key: u32, version: u64) -> Action {
    let (key, version) = (KeyId(key), Version(version));
    Action::Put { key, version }
}

fn delete(key: u32) -> Action {
    Action::Delete { key: KeyId(key) }
}

/// Runs clients on a real map, one step at a time. A call begins, takes effect at some later step,
/// and returns at a still later one. Then, half of the time, one answer is changed.
fn random_history(random: &mut Random) -> Draft {
    let keys = 1 + random.below(2) as u32;
    let mut draft = Draft {
        keys,
        ..Draft::default()
    };
    let clients = 1 + random.below(4) as usize;
    let mut map: BTreeMap<u32, u64> = BTreeMap::new();
    let mut busy: Vec<Option<(usize, bool)>> = vec![None; clients];
    let (mut now, mut versions) = (0, 0);
    let mut lost: Vec<usize> = Vec::new();
    let calls = 2 + random.below(7) as usize;
    loop {
        // A call that failed may take effect at any time, or never.
        if let Some(at) = lost.len().checked_sub(1)
            && random.percent(15)
        {
            let at = random.below(at as u64 + 1) as usize;
            let call = lost.swap_remove(at);
            take_effect(&mut draft, call, &mut map, random);
        }
        let client = random.below(clients as u64) as usize;
        match busy[client] {
            None if draft.calls.len() < calls => {
                now += 1;
                let key = random.below(u64::from(keys)) as u32;
                versions += 1;
                match random.below(10) {
                    0..3 => draft.call(client as u32, now, u64::MAX, put(key, versions)),
                    3..5 => draft.call(client as u32, now, u64::MAX, delete(key)),
                    5..9 => draft.call(client as u32, now, u64::MAX, get(key, 0)),
                    _ => draft.scan(client as u32, (now, u64::MAX), 1 + key, &[]),
                };
                busy[client] = Some((draft.calls.len() - 1, false));
            }
            None if busy.iter().all(Option::is_none) => break,
            None => {}
            Some((call, false)) => {
                if random.percent(10) {
                    now += 1;
                    draft.calls[call].outcome = Outcome::Failed;
                    draft.calls[call].end = now;
                    lost.push(call);
                    busy[client] = None;
                } else {
                    take_effect(&mut draft, call, &mut map, random);
                    busy[client] = Some((call, true));
                }
            }
            Some((call, true)) => {
                now += 1;
                draft.calls[call].end = now;
                busy[client] = None;
            }
        }
    }
    if random.percent(50) {
        corrupt(&mut draft, random, versions);
    }
    draft
}

fn take_effect(draft: &mut Draft, call: usize, map: &mut BTreeMap<u32, u64>, random: &mut Random) {
    match &mut draft.calls[call].action {
        Action::Put { key, version } => drop(map.insert(key.0, version.0)),
        Action::Delete { key } => drop(map.remove(&key.0)),
        // `tests/batches.rs` has these.
        Action::Write(_) => {}
        Action::Get { key, found } => *found = Version(map.get(&key.0).copied().unwrap_or(0)),
        Action::Scan(scan) => {
            let scan = &mut draft.scans[*scan as usize];
            scan.first = draft.rows.len() as u32;
            let (key, limit) = (
                random.below(u64::from(draft.keys)) as u32,
                scan.limit as usize,
            );
            let row = |(key, version): (&u32, &u64)| Row {
                key: KeyId(*key),
                version: Version(*version),
            };
            scan.start = [
                Start::From(KeyId(key)),
                Start::Below(KeyId(key)),
                Start::End,
            ][random.below(3) as usize];
            match scan.start {
                Start::From(_) => draft.rows.extend(map.range(key..).take(limit).map(row)),
                Start::Below(_) => draft
                    .rows
                    .extend(map.range(..key).rev().take(limit).map(row)),
                Start::End => draft.rows.extend(map.iter().rev().take(limit).map(row)),
            }
            scan.rows = draft.rows.len() as u32 - scan.first;
        }
    }
}

/// Changes the answer of one get or one row.
fn corrupt(draft: &mut Draft, random: &mut Random, versions: u64) {
    if !draft.rows.is_empty() && random.percent(50) {
        let row = random.below(draft.rows.len() as u64) as usize;
        draft.rows[row].version = Version(1 + random.below(versions));
        return;
    }
    let gets: Vec<usize> = (0..draft.calls.len())
        .filter(|call| matches!(draft.calls[*call].action, Action::Get { .. }))
        .collect();
    if let Some(last) = gets.len().checked_sub(1) {
        let call = gets[random.below(last as u64 + 1) as usize];
        if let Action::Get { found, .. } = &mut draft.calls[call].action {
            *found = Version(random.below(versions + 1));
        }
    }
}

enum Step {
    Invoke(RegisterOp<u64>),
    Return(RegisterRet<u64>),
}

/// The verdict of stateright on the operations of one key.
fn stateright_says(history: &History, key: KeyId) -> bool {
    type Tester = LinearizabilityTester<u32, Register<u64>>;
    let mut steps: Vec<(u64, u32, Step)> = Vec::new();
    for (number, call) in history.calls().iter().enumerate() {
        let returned = call.outcome == Outcome::Returned;
        let (op, ret) = match call.action {
            Action::Put { key: of, version } if of == key => {
                (RegisterOp::Write(version.0), RegisterRet::WriteOk)
            }
            Action::Delete { key: of } if of == key => (RegisterOp::Write(0), RegisterRet::WriteOk),
            Action::Get { key: of, found } if of == key => {
                (RegisterOp::Read, RegisterRet::ReadOk(found.0))
            }
            Action::Scan(scan) if returned => {
                let scan = &history.scans()[scan as usize];
                let rows = history.rows_of(scan);
                let full = rows.len() == scan.limit as usize;
                let past = |last: &Row| match scan.start {
                    Start::From(_) => last.key < key,
                    Start::Below(_) | Start::End => last.key > key,
                };
                let outside = match scan.start {
                    Start::From(from) => key < from,
                    Start::Below(before) => key >= before,
                    Start::End => false,
                };
                if outside || full && rows.last().is_some_and(past) {
                    continue;
                }
                let row = rows.iter().find(|row| row.key == key);
                let found = row.map_or(0, |row| row.version.0);
                (RegisterOp::Read, RegisterRet::ReadOk(found))
            }
            _ => continue,
        };
        // A client whose call failed makes other calls, but in stateright a pending call occupies
        // its thread.
        let thread = if returned {
            call.client
        } else {
            100 + number as u32
        };
        steps.push((call.invoke, thread, Step::Invoke(op)));
        if returned {
            steps.push((call.end, thread, Step::Return(ret)));
        }
    }
    steps.sort_by_key(|step| step.0);
    let mut tester = Tester::new(Register(0));
    for (_, thread, step) in steps {
        match step {
            Step::Invoke(op) => tester.on_invoke(thread, op).map(drop).unwrap(),
            Step::Return(ret) => tester.on_return(thread, ret).map(drop).unwrap(),
        }
    }
    tester.is_consistent()
}

#[test]
fn verdicts_agree_with_stateright_on_thousands_of_small_histories() {
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..20_000 {
        let history = random_history(&mut Random::new(seed)).history();
        let keys = history.keys().len() as u32;
        let theirs = (0..keys).all(|key| stateright_says(&history, KeyId(key)));
        let ours = check(&history);
        if ours.is_ok() != theirs {
            let calls: Vec<String> = history
                .calls()
                .iter()
                .map(|call| format!("{call:?} {}", history.describe(call)))
                .collect();
            panic!(
                "seed {seed}: stateright says {theirs}, this checker {ours:?}\n{}",
                calls.join("\n")
            );
        }
        if theirs {
            right += 1;
        } else {
            wrong += 1;
        }
        if let Err(violation) = ours {
            a_core_is_wrong_by_itself(seed, &history, &violation);
        }
    }
    assert!(
        right > 5_000 && wrong > 2_000,
        "{right} right, {wrong} wrong"
    );
}

/// The calls of a violation must contradict each other. Omitting one of them must not lead to a
/// contradiction merely because the write of a value that was read is missing.
fn a_core_is_wrong_by_itself(seed: u64, history: &History, violation: &Violation) {
    let calls = violation
        .calls
        .iter()
        .map(|call| history.calls()[*call])
        .collect();
    let core = History::assemble(
        history.keys().to_vec(),
        calls,
        history.scans().to_vec(),
        history.batches().to_vec(),
        history.rows().to_vec(),
    );
    let place = |key: &Key| **key == *violation.key;
    let key = KeyId(core.keys().iter().position(place).unwrap() as u32);
    assert!(
        !stateright_says(&core, key),
        "seed {seed}: these do not contradict each other:\n{violation}"
    );
    assert!(violation.calls.contains(&violation.culprit));
    assert!(
        !violation.expected.contains(&violation.found),
        "seed {seed}: {violation}"
    );
}

fn violation(draft: &Draft) -> Violation {
    let history = draft.history();
    let mut saved = Vec::new();
    history.save(&mut saved).unwrap();
    let loaded = History::load("saved", &mut &saved[..]).unwrap();
    let violation = *check(&history).expect_err("a corrupted history");
    // A key that no call uses any more is not in the file.
    let again = *check(&loaded).expect_err("the same after saving");
    assert_eq!(violation.to_string(), again.to_string());
    violation
}

#[test]
fn a_stale_read_is_reported_with_the_write_that_replaced_it() {
    let mut draft = Draft {
        keys: 2,
        ..Draft::default()
    };
    draft.call(0, 1, 2, put(0, 1)).call(0, 3, 4, put(0, 2));
    draft.call(1, 5, 6, get(0, 2)).call(1, 7, 8, get(1, 0));
    assert!(check(&draft.history()).is_ok());
    draft.call(2, 9, 12, get(0, 1)).call(0, 10, 11, put(0, 3));
    let found = violation(&draft);
    assert_eq!(
        found.to_string(),
        "stale-read: a read found a value that another one had replaced before\n\
         key \"k0\"\n\
         expected version 2 or version 3\n\
         found version 1\n  \
         client 0, 1 to 2: put \"k0\" version 1\n  \
         client 0, 3 to 4: put \"k0\" version 2\n\
         > client 2, 9 to 12: get \"k0\" found version 1\n"
    );
}

#[test]
fn a_lost_update_is_reported() {
    let mut draft = Draft {
        keys: 1,
        ..Draft::default()
    };
    draft.call(0, 1, 2, put(0, 1)).call(0, 3, 4, put(0, 2));
    draft.call(1, 5, 6, get(0, 1)).call(1, 7, 8, get(0, 1));
    let found = violation(&draft);
    assert_eq!(
        (found.kind, found.expected),
        (Kind::LostUpdate, vec![Version(2)])
    );
    assert_eq!(found.calls, [0, 1, 2]);
}

#[test]
fn a_resurrected_key_is_reported() {
    let mut draft = Draft {
        keys: 1,
        ..Draft::default()
    };
    draft.call(0, 1, 2, put(0, 1)).call(0, 3, 4, delete(0));
    draft.call(1, 5, 6, get(0, 0)).call(1, 7, 8, get(0, 1));
    let found = violation(&draft);
    assert_eq!((found.kind, found.calls), (Kind::CameBack, vec![0, 1, 3]));
}

#[test]
fn contradictory_reads_are_reported() {
    let mut draft = Draft {
        keys: 1,
        ..Draft::default()
    };
    // Both puts are pending. A client that has read the later value cannot read the earlier one
    // again.
    draft.call(0, 1, 20, put(0, 1)).call(1, 2, 21, put(0, 2));
    draft.call(2, 3, 4, get(0, 1)).call(2, 5, 6, get(0, 2));
    assert!(check(&draft.history()).is_ok());
    draft.call(2, 7, 8, get(0, 1));
    assert_eq!(violation(&draft).kind, Kind::NoOrder);
}

#[test]
fn values_never_written_or_read_before_their_write_are_reported() {
    let mut draft = Draft {
        keys: 2,
        ..Draft::default()
    };
    draft.call(0, 1, 2, get(0, 7)).call(0, 3, 4, put(1, 7));
    assert_eq!(violation(&draft).kind, Kind::NeverWritten);
    draft.call(0, 5, 6, put(0, 7));
    assert_eq!(violation(&draft).kind, Kind::BeforeWritten);
    let mut draft = Draft {
        keys: 1,
        ..Draft::default()
    };
    draft.call(0, 1, 2, get(0, Version::FOREIGN.0));
    assert_eq!(violation(&draft).kind, Kind::NeverWritten);
}

fn two_keys() -> Draft {
    let mut draft = Draft {
        keys: 3,
        ..Draft::default()
    };
    draft.call(0, 1, 2, put(0, 1)).call(0, 3, 4, put(2, 2));
    draft
}

#[test]
fn errors_of_scans_are_reported() {
    assert!(check(&two_keys().scan(1, (5, 6), 9, &[(0, 1), (2, 2)]).history()).is_ok());
    // A scan that was stopped says nothing about later keys.
    assert!(check(&two_keys().scan(1, (5, 6), 1, &[(0, 1)]).history()).is_ok());
    for (limit, rows, kind) in [
        (9, &[(0, 1)][..], Kind::ScanMisses),
        (9, &[(2, 2)], Kind::ScanMisses),
        (9, &[(0, 1), (0, 1), (2, 2)], Kind::ScanRepeats),
        (9, &[(0, 1), (2, 2), (0, 1)], Kind::ScanRepeats),
        (9, &[(2, 2), (0, 1)], Kind::ScanUnsorted),
        (1, &[(0, 1), (2, 2)], Kind::ScanWentOn),
        (9, &[(0, 1), (1, 1), (2, 2)], Kind::NeverWritten),
    ] {
        let found = violation(two_keys().scan(1, (5, 6), limit, rows));
        assert_eq!(found.kind, kind, "{rows:?}: {found}");
    }
    let mut below = two_keys();
    below.scan(1, (5, 6), 9, &[(0, 1), (2, 2)]).scans[0].start = Start::From(KeyId(1));
    assert_eq!(violation(&below).kind, Kind::ScanOutOfBounds);
    let mut beyond = two_keys();
    beyond.scan(1, (5, 6), 9, &[(0, 1), (2, 2)]).scans[0].through = Some(KeyId(1));
    assert!(
        check(&beyond.history()).is_ok(),
        "the row above the bound is where the visitor broke off"
    );
    beyond.scans[0].through = Some(KeyId(0));
    assert!(check(&beyond.history()).is_ok());
}

#[test]
fn errors_of_descending_scans_are_reported() {
    let back = |start, through, limit, rows: &[(u32, u64)]| {
        let mut draft = two_keys();
        let scan = &mut draft.scan(1, (5, 6), limit, rows).scans[0];
        (scan.start, scan.through) = (start, through);
        draft
    };
    let [first, last] = [0, 2].map(KeyId);
    for (start, through, limit, rows) in [
        (Start::End, None, 9, &[(2, 2), (0, 1)][..]),
        (Start::End, None, 1, &[(2, 2)]),
        (Start::Below(last), None, 9, &[(0, 1)]),
        (Start::Below(first), None, 9, &[]),
        (Start::End, Some(last), 9, &[(2, 2), (0, 1)]),
        (Start::End, Some(KeyId(1)), 9, &[(2, 2), (0, 1)]),
    ] {
        let found = check(&back(start, through, limit, rows).history());
        assert!(found.is_ok(), "{start:?}, {rows:?}: {found:?}");
    }
    for (start, limit, rows, kind) in [
        (Start::End, 9, &[(2, 2)][..], Kind::ScanMisses),
        (Start::End, 9, &[(0, 1)], Kind::ScanMisses),
        (Start::Below(last), 9, &[], Kind::ScanMisses),
        (Start::End, 9, &[(2, 2), (2, 2), (0, 1)], Kind::ScanRepeats),
        (Start::End, 9, &[(0, 1), (2, 2)], Kind::ScanUnsorted),
        (Start::End, 1, &[(2, 2), (0, 1)], Kind::ScanWentOn),
        (Start::End, 9, &[(2, 2), (1, 1), (0, 1)], Kind::NeverWritten),
        (
            Start::Below(last),
            9,
            &[(2, 2), (0, 1)],
            Kind::ScanOutOfBounds,
        ),
    ] {
        let found = violation(&back(start, None, limit, rows));
        assert_eq!(found.kind, kind, "{start:?}, {rows:?}: {found}");
    }
    // A scan that went on although it had passed the last key of interest.
    let mut draft = two_keys();
    draft.call(0, 5, 6, put(1, 3));
    let scan = &mut draft.scan(1, (7, 8), 9, &[(2, 2), (1, 3), (0, 1)]).scans[0];
    (scan.start, scan.through) = (Start::End, Some(last));
    assert_eq!(violation(&draft).kind, Kind::ScanWentOn);
}

#[test]
fn a_small_core_is_found_among_a_hundred_thousand_calls() {
    let mut draft = Draft {
        keys: 1,
        ..Draft::default()
    };
    for n in 0..50_000u64 {
        let times = (4 * n + 1, 4 * n + 2);
        match n % 3 {
            0 => draft.call(0, times.0, times.1, delete(0)),
            _ => draft.call(0, times.0, times.1, put(0, n)),
        };
        let found = if n % 3 == 0 { 0 } else { n };
        draft.call(1, times.0 + 2, times.1 + 2, get(0, found));
    }
    assert!(check(&draft.history()).is_ok());
    draft.call(2, 200_001, 200_002, get(0, 0));
    let found = violation(&draft);
    assert_eq!(found.kind, Kind::Vanished);
    assert!(found.calls.len() <= 3, "{found}");
}

#[test]
fn many_pending_writes_do_not_slow_the_check() {
    let mut draft = Draft {
        keys: 1,
        ..Draft::default()
    };
    for n in 0..300 {
        let action = if n % 2 == 0 { delete(0) } else { put(0, n) };
        draft.call(n as u32, n + 1, u64::MAX, action);
        draft.calls.last_mut().unwrap().outcome = Outcome::Pending;
    }
    draft.call(1000, 1001, 1002, get(0, 1));
    draft.call(1000, 1003, 1004, get(0, 0));
    draft.call(1000, 1005, 1006, get(0, 3));
    let judged = check(&draft.history()).unwrap();
    assert_eq!(judged.unjudged, []);
    draft.call(1000, 1007, 1008, get(0, 1));
    assert_eq!(violation(&draft).kind, Kind::NoOrder);
}
