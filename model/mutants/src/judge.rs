//! Judges mutants. The oracle judges first, on each tree that reaches the mutant. The engine's own
//! tests judge the mutants that survive. Each run has its own process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use serde::Serialize;

use crate::copy::{HITS, Made, TestProgram};
use crate::find::Mutant;

/// The trees on which mutants are judged.
const TREES: [&str; 6] = ["btree", "bminus", "bf", "ccl", "lodge", "pmtree"];

#[derive(Args)]
pub(crate) struct JudgeArgs {
    /// The number of mutants, picked at random
    #[arg(long, default_value_t = 30)]
    count: usize,
    /// The seed of the choice
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Judge only these mutants, by number
    #[arg(long)]
    only: Vec<usize>,
    /// Seconds for each mutant
    #[arg(long, default_value_t = 75)]
    budget: u64,
    /// Seconds in which each tree shows, without a mutant, which mutants it reaches
    #[arg(long, default_value_t = 12)]
    survey: u64,
    /// Use only the oracle, not the engine's tests
    #[arg(long)]
    oracle_only: bool,
    /// The number of mutants judged at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// The share of the reached mutants, in percent, that must be killed
    #[arg(long, default_value_t = 0)]
    floor: usize,
    /// Write a line of JSON for each verdict to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Serialize)]
struct Verdict<'m> {
    schema: &'static str,
    #[serde(flatten)]
    mutant: &'m Mutant,
    /// `killed`, `hangs`, `tests` (it survived the oracle, and the engine's tests killed it),
    /// `alive`, or `unreached`.
    verdict: &'static str,
    /// The tree, or the test.
    by: Option<String>,
    seconds: f64,
    /// The last line of the oracle's output.
    said: String,
}

fn oracle(copy: &Path) -> Command {
    let mut command = Command::new(copy.join("target/release/treering"));
    command
        .arg("oracle")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// The mutants that each tree reaches.
fn survey(copy: &Path, seconds: u64) -> Result<BTreeMap<&'static str, BTreeSet<usize>>> {
    let mut reached = BTreeMap::new();
    for tree in TREES {
        let hits = copy.join(format!("{HITS}{tree}"));
        if !hits.exists() {
            let fresh = copy.join(format!("{HITS}{tree}.new"));
            drop(std::fs::remove_file(&fresh));
            let run = oracle(copy)
                .args(["--tree", tree, "--budget", &format!("{seconds}s")])
                .current_dir(copy)
                .env("TREERING_MUTANT_HITS", &fresh)
                .stderr(Stdio::piped())
                .output()
                .context("the copy's treering")?;
            let said = String::from_utf8_lossy(&run.stderr);
            let code = run.status.code();
            ensure!(
                matches!(code, Some(0 | 4)),
                "{tree} without a mutant ends with {code:?}: {said}"
            );
            std::fs::rename(&fresh, &hits)?;
        }
        let text = std::fs::read_to_string(&hits)?;
        let numbers = text.lines().filter_map(|line| line.parse().ok());
        let numbers: BTreeSet<usize> = numbers.collect();
        eprintln!("{tree} reaches {} mutants", numbers.len());
        reached.insert(tree, numbers);
    }
    Ok(reached)
}

/// A test, the mutants that it reaches, and its duration.
struct Test<'m> {
    program: &'m TestProgram,
    reached: BTreeSet<usize>,
    takes: Duration,
}

/// Tests that take longer than this are not used.
const LONGEST_TEST: Duration = Duration::from_secs(8);

/// The mutants that each test reaches, the fastest test first.
fn survey_tests<'m>(copy: &Path, made: &'m Made) -> Result<Vec<Test<'m>>> {
    let mut tests = Vec::new();
    for program in &made.tests {
        let hits = copy.join(format!("{HITS}test-{}", program.name));
        let times = copy.join(format!("{HITS}test-{}.ms", program.name));
        if !times.exists() {
            drop(std::fs::remove_file(&hits));
            let began = Instant::now();
            let mut command = test(copy, program);
            command.env("TREERING_MUTANT_HITS", &hits);
            let ended = wait(command.spawn()?, LONGEST_TEST)?;
            // Tests that fail or take too long without a mutant are not used.
            let took = match ended {
                Some(status) if status.success() => began.elapsed().as_millis(),
                _ => u128::from(u64::MAX),
            };
            std::fs::write(&times, took.to_string())?;
        }
        let took: u64 = std::fs::read_to_string(&times)?.parse()?;
        let takes = Duration::from_millis(took);
        if takes > LONGEST_TEST {
            continue;
        }
        let reached = match std::fs::read_to_string(&hits) {
            Ok(text) => text.lines().filter_map(|line| line.parse().ok()).collect(),
            Err(_) => BTreeSet::new(),
        };
        tests.push(Test {
            program,
            reached,
            takes,
        });
    }
    tests.sort_by_key(|test| test.takes);
    let all: Duration = tests.iter().map(|test| test.takes).sum();
    let mutants: BTreeSet<usize> = tests.iter().flat_map(|test| test.reached.clone()).collect();
    eprintln!(
        "{} of {} test programs are used as well: {:.0} s, {} mutants",
        tests.len(),
        made.tests.len(),
        all.as_secs_f64(),
        mutants.len()
    );
    Ok(tests)
}

fn test(copy: &Path, program: &TestProgram) -> Command {
    let mut command = Command::new(&program.executable);
    command
        .args(["--quiet", "--test-threads", "1"])
        .current_dir(copy.join("engine"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Waits for at most this long. Returns `None`, and kills the child, if it has not ended.
fn wait(mut child: Child, patience: Duration) -> Result<Option<ExitStatus>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() > patience {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The name of the first test that fails, or does not end, with a mutant.
fn failed_test(copy: &Path, mutant: &Mutant, tests: &[Test<'_>]) -> Result<Option<String>> {
    for of in tests.iter().filter(|t| t.reached.contains(&mutant.number)) {
        let mut command = test(copy, of.program);
        command.env("TREERING_MUTANT", mutant.number.to_string());
        let patience = 5 * of.takes + Duration::from_secs(20);
        match wait(command.spawn()?, patience)? {
            Some(status) if status.success() => {}
            _ => return Ok(Some(of.program.name.clone())),
        }
    }
    Ok(None)
}

/// The indexes of the mutants to judge.
fn pick(made: &Made, args: &JudgeArgs) -> Result<Vec<usize>> {
    if !args.only.is_empty() {
        let place = |number: &usize| {
            let found = made
                .mutants
                .iter()
                .position(|mutant| mutant.number == *number);
            found.with_context(|| format!("no mutant {number}"))
        };
        return args.only.iter().map(place).collect();
    }
    let count = args.count.min(made.mutants.len());
    let mut random = SmallRng::seed_from_u64(args.seed);
    Ok(rand::seq::index::sample(&mut random, made.mutants.len(), count).into_vec())
}

pub(crate) fn run(args: &JudgeArgs, copy: &Path, made: &Made) -> Result<()> {
    let reached = survey(copy, args.survey)?;
    let tests = match args.oracle_only {
        true => Vec::new(),
        false => survey_tests(copy, made)?,
    };
    let places = pick(made, args)?;
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Vec::new());
    let failed = Mutex::new(None);
    let work = || {
        while let Some(place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mutant = &made.mutants[*place];
            match judge(mutant, &reached, &tests, copy, args.budget) {
                Ok(verdict) => {
                    println!(
                        "{:<9} {:>6} {:<8} {:>5.1} s  {}:{}  {} {:?}",
                        verdict.verdict,
                        mutant.number,
                        verdict.by.as_deref().unwrap_or("-"),
                        verdict.seconds,
                        mutant.file,
                        mutant.line,
                        mutant.kind,
                        shortened(&mutant.text)
                    );
                    verdicts.lock().expect("nobody panics").push(verdict);
                }
                Err(error) => *failed.lock().expect("nobody panics") = Some(error),
            }
        }
    };
    std::thread::scope(|scope| {
        (1..args.jobs.max(1)).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    if let Some(error) = failed.into_inner().expect("nobody panics") {
        return Err(error);
    }
    let verdicts = verdicts.into_inner().expect("nobody panics");
    if let Some(path) = &args.json {
        let lines: Result<Vec<String>, _> = verdicts.iter().map(serde_json::to_string).collect();
        std::fs::write(path, lines?.join("\n") + "\n")?;
    }
    let count = |what: &[&str]| {
        verdicts
            .iter()
            .filter(|v| what.contains(&v.verdict))
            .count()
    };
    let (oracle, tests) = (count(&["killed", "hangs"]), count(&["tests"]));
    let killed = oracle + tests;
    let judged = killed + count(&["alive"]);
    println!(
        "{} mutants: {killed} killed ({:.0} % of those reached), {oracle} of them by the oracle, {} alive, {} never \
         reached",
        verdicts.len(),
        100.0 * killed as f64 / judged.max(1) as f64,
        count(&["alive"]),
        count(&["unreached"])
    );
    if killed * 100 < args.floor * judged {
        bail!("fewer than {} % were killed", args.floor);
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(70) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

fn judge<'m>(
    mutant: &'m Mutant,
    reached: &BTreeMap<&'static str, BTreeSet<usize>>,
    tests: &[Test<'_>],
    copy: &Path,
    budget: u64,
) -> Result<Verdict<'m>> {
    let mut verdict = Verdict {
        schema: "treering.mutant-verdict/2",
        mutant,
        verdict: "unreached",
        by: None,
        seconds: 0.0,
        said: String::new(),
    };
    let trees = TREES
        .iter()
        .filter(|tree| reached[*tree].contains(&mutant.number));
    let trees: Vec<&&'static str> = trees.collect();
    let began = Instant::now();
    for tree in &trees {
        let share = budget / trees.len() as u64;
        let folder = copy.join(format!("runs/{}", mutant.number));
        std::fs::create_dir_all(&folder)?;
        let child = oracle(copy)
            .args(["--tree", tree, "--fail-fast", "--threads", "1"])
            .args(["--budget", &format!("{share}s"), "--seed", "1"])
            .current_dir(&folder)
            .env("TREERING_MUTANT", mutant.number.to_string())
            .stderr(std::fs::File::create(folder.join("stderr"))?)
            .spawn()
            .context("the copy's treering")?;
        // A run that has not ended after twice its budget, plus a margin, hangs.
        let status = wait(child, Duration::from_secs(2 * share + 30))?;
        let said = std::fs::read_to_string(folder.join("stderr")).unwrap_or_default();
        verdict.said = said.lines().next_back().unwrap_or_default().to_owned();
        drop(std::fs::remove_dir_all(&folder));
        verdict.verdict = match status.map(|status| status.code()) {
            None => "hangs",
            Some(Some(0 | 4)) => "alive",
            Some(Some(2 | 3)) => bail!("mutant {}: {}", mutant.number, verdict.said),
            // A violation, a panic, or a signal.
            Some(_) => "killed",
        };
        if verdict.verdict != "alive" {
            verdict.by = Some(tree.to_string());
            break;
        }
    }
    if matches!(verdict.verdict, "alive" | "unreached")
        && let Some(test) = failed_test(copy, mutant, tests)?
    {
        (verdict.verdict, verdict.by) = ("tests", Some(test));
    }
    verdict.seconds = began.elapsed().as_secs_f64();
    Ok(verdict)
}
