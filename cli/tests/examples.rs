//! The commands in the documentation work: every example of `--help`, and every shell block in the
//! documents.
//!
//! A shell runs each line unchanged in a folder that contains the inputs it names. The tables below
//! are the only changes: they make slow commands smaller. Every `treering` in a line must exit with
//! 0, including those that feed a pipe.

#[path = "support/inputs.rs"]
mod inputs;
#[path = "support/serving.rs"]
mod serving;
mod support;
#[path = "support/told.rs"]
mod told;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use told::Help;

/// Flag values that are reduced: command, flag, value, reason.
const SMALLER: &[(&str, &str, &str, &str)] = &[
    (
        "gen",
        "--records",
        "2k",
        "millions take minutes and gigabytes of disk",
    ),
    (
        "gen",
        "--ops",
        "4k",
        "millions take minutes and gigabytes of disk",
    ),
    (
        "layout",
        "--records",
        "5k",
        "a million takes a minute in a test build",
    ),
    ("oracle", "--budget", "1s", "minutes"),
    ("cuts", "--budget", "2s", "minutes"),
    ("cuts", "--states", "50", "thousands take minutes"),
    (
        "oracle",
        "--runs",
        "2",
        "thousands of programs take minutes",
    ),
    ("oracle", "--ops", "200", "long programs take minutes"),
    (
        "check",
        "--model",
        "smoke",
        "more than a million states; the slow test runs them",
    ),
    (
        "check",
        "--checker",
        "mirror",
        "TLC and tla-mc are downloaded and take minutes",
    ),
    ("check", "--budget", "1s", "minutes"),
    (
        "drive replay",
        "--capacity",
        "1GiB",
        "a full drive of 64 GiB takes half a minute",
    ),
];

/// Flags of `treering check` that choose a checker or allow none to be chosen.
const CHECKED_OTHERWISE: &[&str] = &[
    "--checker",
    "--against-engine",
    "--mutate",
    "--to-oracle",
    "--ghosts",
    "--inductive",
];

/// Flags that are added: command (unless it has one of these flags), flag, reason.
const ADDED: &[(&str, &[&str], &str, &str)] = &[
    (
        "layout",
        &["--records"],
        "--records 5k",
        "the default is a million",
    ),
    (
        "oracle --fs",
        &["--states"],
        "--states 20",
        "the default is two thousand",
    ),
    (
        "check --inductive",
        &["--states"],
        "--states 100",
        "the default is ten thousand for each model",
    ),
    (
        "cuts",
        &["--budget", "--states"],
        "--states 50",
        "the default is ten thousand",
    ),
    (
        "oracle",
        &[
            "--budget",
            "--runs",
            "--replay",
            "--self-test",
            "--as-adapter",
        ],
        "--budget 2s",
        "the default is minutes",
    ),
    (
        "check --ghosts",
        &["--only"],
        "--only smoke",
        "all models take half a minute; `.ci/run induction` runs them",
    ),
    (
        "check",
        CHECKED_OTHERWISE,
        "--checker mirror",
        "TLC takes minutes",
    ),
    (
        "check --against-engine",
        &["--budget"],
        "--budget 2s",
        "the default is minutes",
    ),
    (
        "check",
        &treering_specs::check::mirrors::SPECS,
        "CircularBuffer",
        "all specs take a quarter of a minute; `.ci/run specs` checks them",
    ),
];

/// Flags that are removed: command, flag, reason.
const DROPPED: &[(&str, &str, &str)] = &[("check", "--graph", "needs TLC, which is downloaded")];

/// Text replaced before anything else: text, replacement, reason.
const REPLACED: &[(&str, &str, &str)] = &[
    ("/mnt/", "mnt/", "tests cannot mount file systems"),
    (
        "time=ts,op=type,offset=lba:sectors,size=len",
        "time=time,op=op,offset=offset:sectors,size=size",
        "the columns of the sample are named after the fields",
    ),
];

/// Lines that are not run: prefix, reason.
const SKIPPED: &[(&str, &str)] = &[
    (
        "treering check WalRecovery --only NAME",
        "NAME is a placeholder",
    ),
    ("treering layout KEYFILE|dense", "a synopsis"),
    (
        "treering check PageShadowing --inductive --mutations",
        "a minute; `.ci/run induction` runs it",
    ),
    (
        "treering check CircularBuffer --mutate --sample",
        "tla-mc is downloaded; `.ci/run spec_mutants` runs it on every spec",
    ),
    (
        "treering check --mutate --sample",
        "tla-mc is downloaded; `.ci/run spec_mutants` runs it",
    ),
    (
        "treering check WalRecovery --mutate --mutant",
        "tla-mc is downloaded; `.ci/run spec_mutants` runs others",
    ),
    (
        "treering check MiniPage --only published_early-validation --checker tlc",
        "TLC is downloaded; `.ci/run specs` checks it with mirrors",
    ),
    (
        "treering drive mount ",
        "serves until it is unmounted; the tests of the drive do that",
    ),
    (
        "treering drive run --fs ",
        "needs root; the tests of the drive do that where they can",
    ),
    (
        "treering cuts --replay ",
        "needs a finding; the tests of power cuts have one",
    ),
    ("mvn ", "fetches TLC; `.ci/run specs` runs it"),
    ("cd specs/", "runs TLC; `.ci/run specs` runs it"),
    ("apt-get ", "installs packages"),
    ("export ROCKSDB_LIB_DIR", "needs an installed RocksDB"),
];

/// Exit statuses accepted besides 0, with the reason: shortened runs do not reach everything.
const CUT_SHORT: &[(&str, &str)] = &[
    ("oracle", "two seconds do not reach everything (4)"),
    (
        "check --against-engine",
        "two seconds do not cover every edge (4)",
    ),
];

/// Whether `line` has all these words.
fn has(line: &[String], words: &str) -> bool {
    words
        .split(' ')
        .all(|word| line.iter().any(|other| other == word))
}

/// The line to run, made smaller if `small` is set.
fn adapted(line: &str, small: bool) -> String {
    let mut line = line.to_owned();
    for (text, instead, _) in REPLACED {
        line = line.replace(text, instead);
    }
    if !small || !line.starts_with("treering ") {
        return line;
    }
    // Everything after a pipe or a redirection stays unchanged.
    let end = line.find(" | ").or(line.find(" > ")).unwrap_or(line.len());
    let rest = line.split_off(end);
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    // Studies take minutes, and their small versions are tested in studies.rs.
    let is_study = |word: &String| word.starts_with("studies/") && word.ends_with(".toml");
    if has(&words, "sweep") && words.iter().any(is_study) && !has(&words, "--dry-run") {
        words.push("--dry-run".into());
    }
    for (command, flag, value, _) in SMALLER {
        let at = words.iter().position(|word| word == flag);
        if let (true, Some(at)) = (has(&words, command), at) {
            words[at + 1] = (*value).to_owned();
        }
    }
    for (command, flag, _) in DROPPED {
        if has(&words, command) {
            words.retain(|word| word != flag);
        }
    }
    for (command, unless, added, _) in ADDED {
        if has(&words, command) && !unless.iter().any(|flag| has(&words, flag)) {
            // What follows the dashes is for another program.
            let dashes = words.iter().position(|word| word == "--");
            words.insert(dashes.unwrap_or(words.len()), (*added).to_owned());
        }
    }
    words.join(" ") + &rest
}

/// A folder with all inputs, and `treering` in the path.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        inputs::prepare(folder.path());
        Place { folder }
    }

    /// Another folder with the same inputs.
    fn again(&self) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let copied = Command::new("cp")
            .args(["-a", "."])
            .arg(folder.path())
            .current_dir(self.folder.path())
            .status();
        assert!(copied.expect("cp starts").success());
        Place { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a wrapper named `treering` that records the exit status of each run. The shell
    /// returns only the status of the last command in a pipe.
    fn shim(&self) -> PathBuf {
        let bin = self.path().join("bin");
        std::fs::create_dir_all(&bin).expect("a folder");
        let script = format!(
            "#!/bin/sh\n'{}' \"$@\"\nstatus=$?\necho $status >>'{}'\nexit $status\n",
            env!("CARGO_BIN_EXE_treering"),
            self.statuses().display()
        );
        let file = bin.join("treering");
        std::fs::write(&file, script).expect("write");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("chmod");
        bin
    }

    fn statuses(&self) -> PathBuf {
        self.path().join("bin/statuses")
    }

    /// Runs a line. Returns what is wrong with it, if anything.
    fn run(&self, line: &str, small: bool) -> Result<(), String> {
        if let Some((_, why)) = SKIPPED.iter().find(|(start, _)| line.starts_with(start)) {
            eprintln!("not run: {line}: {why}");
            return Ok(());
        }
        if let Some(command) = line.strip_prefix("cargo run --release -- ") {
            return self.run(&format!("treering {command}"), small);
        }
        let Some(command) = runnable(&adapted(line, small)) else {
            return Ok(());
        };
        if command.starts_with("treering explore ") && !command.contains(" --html ") {
            return serving::serves(self.path(), &command, "--address");
        }
        if command.starts_with("treering serve ") {
            return serving::serves(self.path(), &command, "--port");
        }
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        // The store that the line creates must not exist yet.
        let replayed = words.iter().find_map(|word| word.strip_prefix("file:"));
        let loaded = command.split_once("treering load ").map(|(_, rest)| rest);
        let made = replayed.or(loaded.and_then(|rest| rest.split(' ').next()));
        let _ = made.map(|store| std::fs::remove_file(self.path().join(store)));
        let shim = self.shim();
        let _ = std::fs::remove_file(self.statuses());
        let path = std::env::var("PATH").unwrap_or_default();
        let began = Instant::now();
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(self.path())
            .env("PATH", format!("{}:{path}", shim.display()))
            .env("HOME", self.path())
            .output()
            .expect("sh starts");
        eprintln!("{:5.1} s: {command}", began.elapsed().as_secs_f64());
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let statuses = std::fs::read_to_string(self.statuses()).unwrap_or_default();
        let cut_short = small && CUT_SHORT.iter().any(|(command, _)| has(&words, command));
        let fine = |status: &str| status == "0" || (cut_short && status == "4");
        let shell = output.status.code().map(|code| code.to_string());
        let ended = shell.iter().map(String::as_str).chain(statuses.lines());
        if statuses.is_empty() || shell.is_none() || !ended.clone().all(fine) {
            let ended: Vec<&str> = ended.collect();
            return Err(format!("{command}\nexit statuses {ended:?}\n{stderr}"));
        }
        self.judge(&command, &stdout)
    }

    /// Checks that stdout contains only results and that requested files are not empty.
    fn judge(&self, command: &str, stdout: &str) -> Result<(), String> {
        let fail = |what: &str| Err(format!("{command}\n{what}\n{stdout}"));
        if stdout.contains(['\r', '\u{1b}']) || stdout.contains("treering: ") {
            return fail("progress or an error on stdout");
        }
        // A `>` in quotes belongs to an expression.
        let redirected = command.split_once(" > ");
        let redirected = redirected.filter(|(before, _)| before.matches('\'').count() % 2 == 0);
        if let Some((_, file)) = redirected {
            let file = self.path().join(file.replace('~', "."));
            let written = std::fs::read_to_string(&file).unwrap_or_default();
            if !stdout.is_empty() || written.is_empty() {
                return fail("expected all output in the file");
            }
            if command.contains("--json - >") && !is_json(&written) {
                return fail("expected one JSON document in the file");
            }
            return Ok(());
        }
        if command.contains("| jq ") {
            let answers = stdout.trim();
            if answers.is_empty() || answers.lines().any(|line| line == "null") {
                return fail("jq found nothing");
            }
        } else if command.contains("--json -") && !is_json(stdout) {
            return fail("expected one JSON document on stdout");
        }
        Ok(())
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok()
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Without jq, `cat` replaces it; without xz, the line is not run. Both cases print a notice that
/// the test harness does not capture.
fn runnable(command: &str) -> Option<String> {
    let note = |text: &str| {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {text}: {command}");
    };
    if command.starts_with("xz ") && !is_installed("xz") {
        note("xz is not in PATH (apt-get install xz-utils)");
        return None;
    }
    let serves = ["treering drive run ", "treering cuts "];
    let serves = serves.iter().any(|prefix| command.starts_with(prefix));
    if serves && !Path::new("/dev/fuse").exists() {
        note("/dev/fuse does not exist");
        return None;
    }
    let sqlite = ["-- sqlite3 ", "--check sqlite"];
    if sqlite.iter().any(|words| command.contains(words)) && !is_installed("sqlite3") {
        note("sqlite3 is not in PATH (apt-get install sqlite3)");
        return None;
    }
    match command.split_once("| jq ") {
        Some((before, _)) if !is_installed("jq") => {
            note("jq is not in PATH (apt-get install jq), `cat` instead");
            Some(format!("{before}| cat"))
        }
        _ => Some(command.to_owned()),
    }
}

/// Fails with all problems at once.
fn none_of(stories: Vec<String>) {
    assert!(stories.is_empty(), "{}", stories.join("\n---\n"));
}

#[test]
fn every_command_has_examples_that_fit_on_one_line_each() {
    let mut stories = Vec::new();
    for help in Help::of_all() {
        let examples = help.examples();
        if examples.is_empty() && help.subcommands().is_empty() {
            stories.push(format!("{}: no example", help.name()));
        }
        let shown = help.on_a_terminal();
        for example in examples {
            if !shown.lines().any(|line| line.contains(&example)) {
                stories.push(format!(
                    "{}: wrapped, so it cannot be copied: {example}",
                    help.name()
                ));
            }
        }
    }
    none_of(stories);
}

#[test]
fn every_help_example_works() {
    let prepared = Place::new();
    let mut stories = Vec::new();
    let mut count = 0;
    for help in Help::of_all() {
        for example in help.examples() {
            count += 1;
            let story = if example.contains("cargo ") {
                told::cargo_names(&example)
            } else if is_repeated(&example) {
                Ok(())
            } else {
                prepared.again().run(&example, true)
            };
            stories.extend(story.err().map(|story| format!("{}: {story}", help.name())));
        }
    }
    assert!(count > 40, "only {count} examples were found");
    none_of(stories);
}

/// Runs the large models at full size, including the engine along their edges; the other test
/// reduces them.
#[test]
#[ignore = "slow: takes minutes; .ci/run runs it"]
fn check_examples_work_at_full_size() {
    let prepared = Place::new();
    let mut stories = Vec::new();
    for help in Help::of_all() {
        for example in help.examples() {
            // Tens of millions of states take minutes each, and gigabytes.
            let too_large = ["--graph", "--model large"]
                .iter()
                .any(|f| example.contains(f));
            if example.starts_with("treering check ") && !too_large {
                let given = CHECKED_OTHERWISE.iter().any(|flag| example.contains(flag));
                let mirror = if given { "" } else { " --checker mirror" };
                let line = example + mirror;
                stories.extend(prepared.again().run(&line, false).err());
            }
        }
    }
    none_of(stories);
}

/// Whether the command needs nothing from earlier lines, and was run before. Such a command is run
/// once, even if the help and several documents contain it.
fn is_repeated(line: &str) -> bool {
    static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let stands_alone = ["check", "explore", "oracle"]
        .iter()
        .any(|command| line.starts_with(&format!("treering {command}")));
    let mut seen = SEEN.lock().expect("no test panics with the lock");
    stands_alone && !seen.insert(adapted(line, true))
}

#[test]
fn shell_blocks_in_the_documents_work() {
    let prepared = Place::new();
    let mut stories = Vec::new();
    for document in told::documents() {
        // Lines of a document depend on earlier ones.
        let place = prepared.again();
        for line in told::shell_lines(&document) {
            let is_ours =
                line.starts_with("treering ") || line.starts_with("cargo run --release -- ");
            let is_skipped = SKIPPED.iter().any(|(start, _)| line.starts_with(start));
            let story = match line.as_str() {
                _ if is_repeated(&line) => Ok(()),
                _ if is_ours || is_skipped => place.run(&line, true),
                _ if line.contains("cargo ") => told::cargo_names(&line),
                script if script.starts_with(".ci/") => told::script_exists(script),
                _ => Err(format!("{line}: not run, and not listed in a table")),
            };
            stories.extend(story.err().map(|story| format!("{document}: {story}")));
        }
        for span in told::cargo_spans(&document) {
            let story = told::cargo_names(&span).err();
            stories.extend(story.map(|story| format!("{document}: {story}")));
        }
    }
    none_of(stories);
}
