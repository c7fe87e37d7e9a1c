//! The conformance kit: does an adapter speak the protocol, and has it what it claims?
//!
//! Each check is a few requests on a new store. They are about the adapter, not its engine: bytes
//! that need care, limits, both ends of scans, requests that wait in the pipe. Programs of the other
//! modes look for bugs of the engine.

use std::time::Instant;

use super::claims::{Claims, Durable, Has};
use super::command::Command;
use super::error::ExecError;
use super::process::Process;
use super::store::{rows_of, value_of};
use super::wire::{Record, Refusal, Request};
use crate::random::Random;

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Holds,
    /// It was not run, for this reason.
    Skipped(&'static str),
    /// An answer is wrong.
    Wrong(String),
    /// The protocol is broken.
    Broken(String),
}

impl Outcome {
    /// One word for it, and the reason if there is one.
    #[must_use]
    pub fn in_words(&self) -> (&'static str, &str) {
        match self {
            Outcome::Holds => ("holds", ""),
            Outcome::Skipped(why) => ("skipped", why),
            Outcome::Wrong(why) => ("wrong", why),
            Outcome::Broken(why) => ("broken", why),
        }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Its name.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
}

/// What the kit found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The engine's name.
    pub name: String,
    /// All checks, in the order in which they ran.
    pub checks: Vec<Checked>,
    /// Requests that were answered.
    pub requests: u64,
    /// Puts and gets per second, if many are written before answers are read.
    pub batched_per_second: f64,
    /// Puts and gets per second, if each waits for its answer.
    pub single_per_second: f64,
}

/// Why a check ends early.
enum Stop {
    Skip(&'static str),
    Wrong(String),
    Exec(ExecError),
}

impl From<ExecError> for Stop {
    fn from(error: ExecError) -> Stop {
        Stop::Exec(error)
    }
}

type Step = Result<(), Stop>;

/// A new store in a process.
struct Bench {
    process: Process,
    folder: tempfile::TempDir,
}

impl Bench {
    fn claims(&self) -> &Claims {
        self.process.claims()
    }

    fn needs(&self, what: Has, otherwise: &'static str) -> Step {
        match self.claims().has(what) {
            true => Ok(()),
            false => Err(Stop::Skip(otherwise)),
        }
    }

    fn open(&self) -> Step {
        let path = super::process::path_of(self.folder.path())?;
        Ok(self.process.done(&Request::Open(&path))?)
    }

    fn close(&self) -> Step {
        Ok(self.process.done(&Request::Close)?)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Step {
        self.put_in(key, value, None)
    }

    fn put_in(&self, key: &[u8], value: &[u8], tx: Option<u64>) -> Step {
        Ok(self.process.done(&Request::Put { key, value, tx })?)
    }

    fn get_in(&self, key: &[u8], tx: Option<u64>) -> Result<Option<Vec<u8>>, Stop> {
        let answer = self.process.call(&Request::Get { key, tx })?;
        Ok(value_of(&self.process, answer)?)
    }

    fn holds(&self, key: &[u8], expected: Option<&[u8]>) -> Step {
        self.holds_in(key, expected, None)
    }

    fn holds_in(&self, key: &[u8], expected: Option<&[u8]>, tx: Option<u64>) -> Step {
        let found = self.get_in(key, tx)?;
        if found.as_deref() == expected {
            return Ok(());
        }
        let (what, key) = (
            tx.map_or("get", |_| "get in a transaction"),
            shown(Some(key)),
        );
        let (expected, found) = (shown(expected), shown(found.as_deref()));
        Err(Stop::Wrong(format!(
            "{what} {key}: expected {expected}, found {found}"
        )))
    }

    fn scan(&self, request: &Request<'_>, most: u64) -> Result<Vec<Record>, Stop> {
        let answer = self.process.call(request)?;
        Ok(rows_of(&self.process, answer, most)?)
    }

    fn scans(&self, request: &Request<'_>, expected: &[&[u8]]) -> Step {
        let limit = match *request {
            Request::Scan { limit, .. } | Request::ScanBack { limit, .. } => limit,
            _ => u64::MAX,
        };
        let rows = self.scan(request, limit)?;
        let found: Vec<&[u8]> = rows.iter().map(|(key, _)| key.as_slice()).collect();
        if found == expected {
            return Ok(());
        }
        let list = |keys: &[&[u8]]| {
            keys.iter()
                .map(|key| shown(Some(key)))
                .collect::<Vec<_>>()
                .join(" ")
        };
        Err(Stop::Wrong(format!(
            "{request:?}: expected the keys [{}], found [{}]",
            list(expected),
            list(&found)
        )))
    }
}

fn shown(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "absent".into(),
        Some(bytes) if bytes.len() > 24 => format!("{} bytes", bytes.len()),
        Some(bytes) => format!("\"{}\"", bytes.escape_ascii()),
    }
}

/// A check by its name.
type Check = (&'static str, fn(&Bench) -> Step);

const CHECKS: &[Check] = &[
    ("put, get, delete", basics),
    ("all bytes", all_bytes),
    ("limits", limits),
    ("empty key", empty_key),
    ("scan", scan),
    ("scan-back", scan_back),
    ("batch", batch),
    ("sync", sync),
    ("close and open", reopen),
    ("many requests ahead", ahead),
    ("transactions", transactions),
    ("snapshot", snapshot),
    ("crash", crash),
    ("several processes", processes),
];

/// Runs all checks.
///
/// # Errors
/// The adapter cannot be started, or does not introduce itself.
pub fn run(command: &Command, seed: u64) -> Result<Report, ExecError> {
    let mut report = Report {
        name: command.start()?.claims().name.clone(),
        checks: Vec::new(),
        requests: 0,
        batched_per_second: 0.0,
        single_per_second: 0.0,
    };
    for (name, check) in CHECKS {
        let outcome = on_new_store(command, &mut report, |bench, _| check(bench));
        let ends = matches!(outcome, Outcome::Broken(_));
        report.checks.push(Checked { name, outcome });
        if ends {
            return Ok(report);
        }
    }
    let outcome = on_new_store(command, &mut report, |bench, report| {
        speed(bench, seed, report)
    });
    let name = "speed";
    report.checks.push(Checked { name, outcome });
    Ok(report)
}

fn on_new_store(
    command: &Command,
    report: &mut Report,
    check: impl FnOnce(&Bench, &mut Report) -> Step,
) -> Outcome {
    let run = |report: &mut Report| {
        let folder = tempfile::tempdir().map_err(|e| Stop::Wrong(format!("no folder: {e}")))?;
        let process = command.start()?;
        let bench = Bench { process, folder };
        bench.open()?;
        let result = check(&bench, report);
        report.requests += bench.process.last();
        result
    };
    match run(report) {
        Ok(()) => Outcome::Holds,
        Err(Stop::Skip(why)) => Outcome::Skipped(why),
        Err(Stop::Wrong(why)) => Outcome::Wrong(why),
        Err(Stop::Exec(error @ ExecError::Answered { .. })) => {
            Outcome::Wrong(format!("expected no error, found one: {error}"))
        }
        Err(Stop::Exec(error)) => Outcome::Broken(error.to_string()),
    }
}

fn basics(bench: &Bench) -> Step {
    bench.holds(b"a", None)?;
    bench.put(b"a", b"1")?;
    bench.put(b"b", b"")?;
    bench.holds(b"a", Some(b"1"))?;
    bench.holds(b"b", Some(b""))?;
    bench.put(b"a", b"22")?;
    bench.holds(b"a", Some(b"22"))?;
    let delete = |key| bench.process.done(&Request::Delete { key, tx: None });
    delete(b"a")?;
    delete(b"never")?;
    bench.holds(b"a", None)?;
    bench.holds(b"b", Some(b""))
}

fn all_bytes(bench: &Bench) -> Step {
    let bytes: Vec<u8> = (0..=255).collect();
    let keys: Vec<[u8; 2]> = bytes.iter().map(|byte| [*byte, 255 - byte]).collect();
    for key in &keys {
        bench.put(key, &bytes)?;
    }
    for key in &keys {
        bench.holds(key, Some(&bytes))?;
    }
    let all: Vec<&[u8]> = keys.iter().map(<[u8; 2]>::as_slice).collect();
    // Bytes are ordered without a sign, and no zero ends a key.
    let from = b"";
    let limit = 1_000;
    bench.scans(
        &Request::Scan {
            from,
            limit,
            tx: None,
        },
        &all,
    )?;
    bench.put(&[7, 248, 0], b"zero at the end")?;
    bench.holds(&keys[7], Some(&bytes))?;
    let (from, limit) = (&keys[7], 3);
    let expected: [&[u8]; 3] = [&keys[7], &[7, 248, 0], &keys[8]];
    bench.scans(
        &Request::Scan {
            from,
            limit,
            tx: None,
        },
        &expected,
    )
}

fn limits(bench: &Bench) -> Step {
    let limits = bench.claims().limits();
    let key = vec![0x6b; limits.max_key];
    let value = vec![0xff; limits.max_record - limits.max_key];
    bench.put(&key, &value)?;
    bench.holds(&key, Some(&value))?;
    let short = &key[..1];
    let long = vec![0; limits.max_record - 1];
    bench.put(short, &long)?;
    bench.holds(short, Some(&long))
}

fn empty_key(bench: &Bench) -> Step {
    // It is where scans begin, even if no record can have it.
    bench.put(b"a", b"1")?;
    let (from, limit) = (b"", 1);
    bench.scans(
        &Request::Scan {
            from,
            limit,
            tx: None,
        },
        &[b"a"],
    )?;
    if !bench.claims().empty_key {
        return Err(Stop::Skip("`empty_key` is not claimed"));
    }
    bench.holds(b"", None)?;
    bench.put(b"", b"first")?;
    bench.holds(b"", Some(b"first"))?;
    bench.scans(
        &Request::Scan {
            from,
            limit,
            tx: None,
        },
        &[b""],
    )
}

fn scan(bench: &Bench) -> Step {
    let scan = |from, limit| Request::Scan {
        from,
        limit,
        tx: None,
    };
    bench.scans(&scan(b"", 10), &[])?;
    for key in [b"b", b"d", b"a", b"c"] {
        bench.put(key, b"1")?;
    }
    bench.scans(&scan(b"", 10), &[b"a", b"b", b"c", b"d"])?;
    bench.scans(&scan(b"b", 2), &[b"b", b"c"])?;
    bench.scans(&scan(b"bb", 1), &[b"c"])?;
    bench.scans(&scan(b"e", 5), &[])?;
    bench.process.done(&Request::Delete {
        key: b"b",
        tx: None,
    })?;
    bench.scans(&scan(b"a", 2), &[b"a", b"c"])
}

fn scan_back(bench: &Bench) -> Step {
    bench.needs(Has::ScanBack, "\"scan-back\" is not claimed")?;
    let scan = |below, limit| Request::ScanBack {
        below,
        limit,
        tx: None,
    };
    bench.scans(&scan(None, 10), &[])?;
    for key in [b"b", b"d", b"a", b"c"] {
        bench.put(key, b"1")?;
    }
    bench.scans(&scan(None, 10), &[b"d", b"c", b"b", b"a"])?;
    bench.scans(&scan(Some(b"c"), 10), &[b"b", b"a"])?;
    bench.scans(&scan(Some(b"cc"), 1), &[b"c"])?;
    bench.scans(&scan(Some(b""), 5), &[])?;
    bench.scans(&scan(None, 1), &[b"d"])
}

fn batch(bench: &Bench) -> Step {
    bench.needs(Has::Batch, "\"batch\" is not claimed")?;
    bench.put(b"a", b"1")?;
    let changes: [(&[u8], Option<&[u8]>); 3] =
        [(b"a", None), (b"b", Some(b"2")), (b"c", Some(b""))];
    bench.process.done(&Request::Batch(&changes))?;
    bench.process.done(&Request::Batch(&[]))?;
    bench.holds(b"a", None)?;
    bench.holds(b"b", Some(b"2"))?;
    bench.holds(b"c", Some(b""))
}

fn sync(bench: &Bench) -> Step {
    bench.needs(Has::Sync, "\"sync\" is not claimed")?;
    bench.process.done(&Request::Sync)?;
    bench.put(b"a", b"1")?;
    bench.process.done(&Request::Sync)?;
    Ok(bench.process.done(&Request::Sync)?)
}

fn reopen(bench: &Bench) -> Step {
    bench.put(b"a", b"1")?;
    bench.close()?;
    bench.open()?;
    bench.holds(b"a", Some(b"1"))?;
    bench.put(b"a", b"2")?;
    bench.close()?;
    // Another store in the same process.
    let other = tempfile::tempdir().map_err(|e| Stop::Wrong(format!("no folder: {e}")))?;
    let path = super::process::path_of(other.path())?;
    bench.process.done(&Request::Open(&path))?;
    bench.holds(b"a", None)?;
    bench.close()?;
    bench.open()?;
    bench.holds(b"a", Some(b"2"))
}

/// More than a pipe holds is written before an answer is read.
fn ahead(bench: &Bench) -> Step {
    let key = |n: u32| n.to_be_bytes();
    let most = (bench.claims().max_record - 4).min(300);
    let value = vec![0x55; most];
    let writes: Vec<u64> = (0..2_000)
        .map(|n| {
            bench.process.post(&Request::Put {
                key: &key(n),
                value: &value,
                tx: None,
            })
        })
        .collect();
    let reads: Vec<u64> = (0..2_000)
        .map(|n| {
            bench.process.post(&Request::Get {
                key: &key(n),
                tx: None,
            })
        })
        .collect();
    for id in writes {
        let answer = bench.process.wait(id)?;
        bench.process.is_done(answer)?;
    }
    if bench.claims().has(Has::Concurrent) {
        // Reads may have been answered before the writes that were posted before them.
        return reads.into_iter().try_for_each(|id| {
            value_of(&bench.process, bench.process.wait(id)?)?;
            Ok(())
        });
    }
    for id in reads {
        let found = value_of(&bench.process, bench.process.wait(id)?)?;
        if found.as_ref() != Some(&value) {
            let why =
                "a get that was posted behind its put does not see it, and answers come in order";
            return Err(Stop::Wrong(why.into()));
        }
    }
    Ok(())
}

fn transactions(bench: &Bench) -> Step {
    bench.needs(Has::Transactions, "\"transactions\" is not claimed")?;
    bench.put(b"a", b"1")?;
    bench.process.done(&Request::Begin(1))?;
    bench.put_in(b"a", b"2", Some(1))?;
    bench.holds_in(b"a", Some(b"2"), Some(1))?;
    bench.process.done(&Request::Commit(1))?;
    bench.holds(b"a", Some(b"2"))?;
    bench.process.done(&Request::Begin(2))?;
    let delete = |key, tx| bench.process.done(&Request::Delete { key, tx: Some(tx) });
    delete(b"a", 2)?;
    bench.holds_in(b"a", None, Some(2))?;
    let scan = |tx| Request::Scan {
        from: b"",
        limit: 5,
        tx,
    };
    bench.scans(&scan(Some(2)), &[])?;
    bench.process.done(&Request::Abort(2))?;
    bench.holds(b"a", Some(b"2"))?;
    // Two at a time. The second may be refused or turned back, but must not hang.
    bench.process.done(&Request::Begin(3))?;
    bench.put_in(b"a", b"3", Some(3))?;
    let second = bench.process.done(&Request::Begin(4)).and_then(|()| {
        let value = b"4";
        bench.process.done(&Request::Put {
            key: b"a",
            value,
            tx: Some(4),
        })
    });
    let goes_on = is_open(second)?;
    bench.process.done(&Request::Commit(3))?;
    let second = match goes_on {
        true => is_open(bench.process.done(&Request::Commit(4)))?,
        false => false,
    };
    bench.holds(b"a", Some(if second { b"4" } else { b"3" }))
}

/// Whether a transaction goes on after this answer; else it is over.
fn is_open(answer: Result<(), ExecError>) -> Result<bool, Stop> {
    match answer {
        Ok(()) => Ok(true),
        Err(ExecError::Answered {
            refusal: Refusal::Conflict,
            ..
        }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn snapshot(bench: &Bench) -> Step {
    bench.needs(Has::Snapshot, "\"snapshot\" is not claimed")?;
    bench.put(b"a", b"1")?;
    bench.process.done(&Request::Snapshot(1))?;
    bench.put(b"a", b"2")?;
    bench.put(b"b", b"2")?;
    bench.holds_in(b"a", Some(b"1"), Some(1))?;
    bench.holds_in(b"b", None, Some(1))?;
    let scan = |tx| Request::Scan {
        from: b"",
        limit: 5,
        tx,
    };
    bench.scans(&scan(Some(1)), &[b"a"])?;
    bench.scans(&scan(None), &[b"a", b"b"])?;
    Ok(bench.process.done(&Request::Abort(1))?)
}

fn crash(bench: &Bench) -> Step {
    bench.put(b"a", b"1")?;
    match bench.claims().durable {
        Durable::Return => {}
        Durable::Sync => bench.process.done(&Request::Sync)?,
        Durable::Close => {
            bench.close()?;
            bench.open()?;
        }
    }
    Ok(bench.process.crash()?)
}

fn processes(bench: &Bench) -> Step {
    bench.needs(Has::Processes, "\"processes\" is not claimed")?;
    let other = Bench {
        process: bench.process.again()?,
        folder: tempfile::tempdir().map_err(|e| Stop::Wrong(format!("no folder: {e}")))?,
    };
    let path = super::process::path_of(bench.folder.path())?;
    other.process.done(&Request::Open(&path))?;
    bench.put(b"a", b"1")?;
    other.holds(b"a", Some(b"1"))?;
    other.put(b"a", b"2")?;
    bench.holds(b"a", Some(b"2"))
}

/// Half puts, half gets, of a thousand keys.
fn speed(bench: &Bench, seed: u64, report: &mut Report) -> Step {
    const BATCHED: u64 = 20_000;
    const SINGLE: u64 = 1_000;
    let mut random = Random::part(seed, 0);
    let value = [0x61; 16];
    let mut post = |n: u64| {
        let key = random.below(1_000).to_be_bytes();
        match n % 2 {
            0 => bench.process.post(&Request::Put {
                key: &key[4..],
                value: &value,
                tx: None,
            }),
            _ => bench.process.post(&Request::Get {
                key: &key[4..],
                tx: None,
            }),
        }
    };
    let began = Instant::now();
    let ids: Vec<u64> = (0..BATCHED).map(&mut post).collect();
    for id in ids {
        bench.process.wait(id)?;
    }
    report.batched_per_second = BATCHED as f64 / began.elapsed().as_secs_f64();
    let began = Instant::now();
    for n in 0..SINGLE {
        bench.process.wait(post(n))?;
    }
    report.single_per_second = SINGLE as f64 / began.elapsed().as_secs_f64();
    Ok(())
}
