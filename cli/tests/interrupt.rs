//! A command stopped by a signal ends within a second, leaves no half-written files, and reports
//! what it has done.

mod support;

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{listing, ok, words};

/// The time limit for a command to end: one second, plus a margin for a busy machine.
const PATIENCE: Duration = Duration::from_secs(3);

/// The outcome of a stopped command.
struct Stopped {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

fn spawn(folder: &Path, args: &[&str], stdin: Stdio) -> Child {
    Command::new(env!("CARGO_BIN_EXE_treering"))
        .args(args)
        .current_dir(folder)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts")
}

/// Waits until `ready`, sends the signal, and waits for the end.
fn stop(mut child: Child, signal: &str, ready: impl Fn() -> bool) -> Stopped {
    let began = Instant::now();
    while !ready() {
        assert!(began.elapsed() < Duration::from_secs(60), "never ready");
        let ended = child.try_wait().expect("a child");
        assert!(ended.is_none(), "ended before the signal: {ended:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    let told = Instant::now();
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", signal, &pid]).status();
    assert!(sent.expect("kill starts").success());
    let output = child.wait_with_output().expect("an end");
    let took = told.elapsed();
    assert!(took < PATIENCE, "{took:?} after {signal}");
    Stopped {
        status: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The time after which a command is certainly working.
fn after(time: Duration) -> impl Fn() -> bool {
    let began = Instant::now();
    move || began.elapsed() >= time
}

fn hidden(folder: &Path) -> bool {
    listing(folder).iter().any(|name| name.starts_with('.'))
}

fn read(folder: &Path, name: &str) -> Value {
    let json = std::fs::read(folder.join(name)).expect("a report");
    serde_json::from_slice(&json).expect("JSON")
}

impl Stopped {
    fn expect(&self, status: i32, said: &str) {
        assert_eq!(self.status, Some(status), "{}", self.stderr);
        let name = if status == 130 { "SIGINT" } else { "SIGTERM" };
        let line = self.stderr.lines().last().unwrap_or_default();
        assert!(
            line.starts_with(&format!("treering: stopped by {name}: ")) && line.contains(said),
            "expected `{said}`, found {}",
            self.stderr
        );
    }
}

fn long_trace(folder: &Path) {
    let args = words("gen zipf --records 20k --ops 3M --no-load -o long.trz");
    ok(folder, &args);
}

/// The report of a stopped replay covers the completed operations.
#[test]
fn a_stopped_replay_reports_the_completed_operations() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    long_trace(folder);
    let devices: [(&[&str], &str, i32); 4] = [
        (&["--cache", "1MiB"], "INT", 130),
        (&["--device", "csd", "--tree", "bminus"], "TERM", 143),
        (&["--tree", "ccl"], "INT", 130),
        (
            &["--device", "file:store", "--durability", "deferred"],
            "TERM",
            143,
        ),
    ];
    for (flags, signal, status) in devices {
        let args = words("replay long.trz --preload none --json so-far.json");
        let stopped = while_replaying(folder, &[&args, flags].concat(), signal);
        stopped.expect(status, "operations were replayed");
        assert!(
            stopped.stdout.contains("Warning: Interrupted after "),
            "{}",
            stopped.stdout
        );
        let report = read(folder, "so-far.json");
        assert_eq!(report["complete"], false, "{flags:?}");
        let ops = report["trace"]["ops"].as_u64().expect("a number");
        assert!(ops > 0 && ops < 3_000_000, "{flags:?}: {ops}");
        let kinds = report["ops"].as_object().expect("by kind");
        let counted: u64 = kinds.values().filter_map(Value::as_u64).sum();
        assert_eq!(counted, ops, "{flags:?}");
        assert!(report["wa"]["host"]["total"].as_f64().expect("a number") > 0.0);
        assert_eq!(report["prediction"], Value::Null);
        assert_eq!(listing(folder), ["long.trz", "so-far.json"], "{flags:?}");
        std::fs::remove_file(folder.join("so-far.json")).expect("removed");
    }
}

/// By this many operations something has been written, however large the buffers are.
const ENOUGH_OPS: u64 = 1000;

/// Stops a replay after it has analysed its trace. The end of the analysis is not visible. If the
/// signal comes too early, the report is nearly empty, and this tries again with a longer delay.
fn while_replaying(folder: &Path, args: &[&str], signal: &str) -> Stopped {
    let store = folder.join("store");
    let on_file = args.iter().any(|arg| arg.starts_with("file:"));
    for seconds in [4, 8, 16, 32] {
        let child = spawn(folder, args, Stdio::null());
        let began = Cell::new(Instant::now());
        let stopped = stop(child, signal, || {
            if on_file && !store.exists() {
                began.set(Instant::now());
            }
            began.get().elapsed() >= Duration::from_secs(seconds)
        });
        let ops = read(folder, "so-far.json")["trace"]["ops"].as_u64();
        if ops.expect("a number") >= ENOUGH_OPS {
            return stopped;
        }
        std::fs::remove_file(folder.join("so-far.json")).expect("removed");
        assert_eq!(listing(folder), ["long.trz"], "{args:?}");
    }
    panic!("{args:?} was never interrupted while replaying");
}

/// Before its first operation a replay has no figures, but it reports its progress.
#[test]
fn a_replay_stopped_during_survey_or_analysis_reports_its_progress() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    long_trace(folder);
    let cases: [(&[&str], &str, &str, i32); 3] = [
        (&["--preload", "all"], "survey", "INT", 130),
        (&["--preload", "none"], "analysis", "TERM", 143),
        (
            &["--tree", "ccl", "--preload", "none"],
            "analysis",
            "INT",
            130,
        ),
    ];
    for (flags, phase, signal, status) in cases {
        let args = ["replay", "long.trz", "--json", "so-far.json"];
        let args = [&args, flags].concat();
        let report = told_early(folder, &args, phase, signal, status);
        assert_eq!(report["schema"], "treering.replay/2", "{report}");
        assert_eq!(report["complete"], false, "{report}");
        assert_eq!(report["trace"]["ops"], 0, "{report}");
        let source = report["trace"]["source"].as_str().expect("text");
        assert!(source.contains("zipf --records 20000"), "{report}");
        let seen = report["operations_seen"].as_u64().expect("a number");
        assert!((1..=3_000_000).contains(&seen), "{report}");
        assert_eq!(report["operations"], 3_000_000, "{report}");
    }
}

/// A stopped prediction reports the configurations that are predicted, if any.
#[test]
fn a_stopped_prediction_reports_its_configurations() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    long_trace(folder);
    let args = words("predict long.trz --preload none --json so-far.json --html so-far.html");
    // No machine predicts hundreds of mini-page configurations before the signal.
    let caches: Vec<String> = (1..=400).map(|n| format!("{n}MiB")).collect();
    let caches = caches.join(",");
    let args = [&args[..], &["--tree", "bf", "--cache", &caches]].concat();
    for (wait, signal, status) in [(300, "INT", 130), (6000, "TERM", 143)] {
        let wait = Duration::from_millis(wait);
        let stopped = stop(spawn(folder, &args, Stdio::null()), signal, after(wait));
        stopped.expect(status, " of 400 configurations were predicted");
        let said = &stopped.stdout;
        assert!(said.contains("Warning: Interrupted: "), "{said}");
        let report = read(folder, "so-far.json");
        assert_eq!(report["schema"], "treering.predict/1", "{report}");
        assert_eq!(report["complete"], false, "{report}");
        assert_eq!(report["requested"], 400, "{report}");
        let done = report["configurations"].as_array().expect("a list").len();
        assert!(done < 400, "{done}");
        let page = std::fs::read_to_string(folder.join("so-far.html")).expect("a page");
        assert!(
            page.contains(&format!("Interrupted: {done} of 400")),
            "{page}"
        );
        assert!(!hidden(folder));
    }
}

/// Stops a replay in this phase. If the signal hits another phase, this tries again earlier or
/// later.
fn told_early(folder: &Path, args: &[&str], phase: &str, signal: &str, status: i32) -> Value {
    let mut wait = Duration::from_millis(300);
    for _ in 0..12 {
        let stopped = stop(spawn(folder, args, Stdio::null()), signal, after(wait));
        assert_eq!(stopped.status, Some(status), "{}", stopped.stderr);
        let report = read(folder, "so-far.json");
        std::fs::remove_file(folder.join("so-far.json")).expect("removed");
        if report["phase"] == phase && report["operations_seen"] != 0 {
            stopped.expect(status, &format!("operations were seen in the {phase}"));
            assert!(
                stopped.stdout.contains("  Interrupted: "),
                "{}",
                stopped.stdout
            );
            return report;
        }
        // The signal came too early or too late.
        wait = match report["phase"] == Value::Null || phase == "survey" && report["phase"] != phase
        {
            true => wait.mul_f64(0.6),
            false => wait.mul_f64(1.4),
        };
    }
    panic!("{args:?} was never interrupted in its {phase}");
}

/// An incomplete trace is not created.
#[test]
fn stopped_commands_create_no_partial_traces() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let args = words("gen uniform --records 100k --ops 500M -o new.trz");
    let child = spawn(folder, &args, Stdio::null());
    let stopped = stop(child, "INT", || hidden(folder));
    stopped.expect(130, "operations were generated; new.trz was not written");
    assert_eq!(listing(folder), Vec::<String>::new());

    let mut csv = std::fs::File::create(folder.join("long.csv")).expect("made");
    let lines: String = (0..100_000)
        .map(|i| format!("{i},W,{},4096\n", i * 4096))
        .collect();
    for _ in 0..60 {
        csv.write_all(lines.as_bytes()).expect("written");
    }
    let columns = "time=1:s,op=2,offset=3:bytes,size=4:bytes";
    let args = [
        "import",
        "csv",
        "long.csv",
        "--columns",
        columns,
        "-o",
        "new.trz",
    ];
    let child = spawn(folder, &args, Stdio::null());
    let stopped = stop(child, "TERM", || hidden(folder));
    stopped.expect(143, "of long.csv were imported; new.trz was not written");
    assert_eq!(listing(folder), ["long.csv"]);
}

/// Stops a load that waits for input, and a dump whose reader is slow.
#[test]
fn a_stopped_load_removes_its_store_and_a_stopped_dump_ends_with_a_whole_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let args = ["load", "new.store", "--json", "load.json"];
    let mut child = spawn(folder, &args, Stdio::piped());
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(b"{\"key\":\"a\",\"value\":\"b\"}\n")
        .expect("written");
    let wait = after(Duration::from_millis(500));
    let stopped = stop(child, "TERM", || hidden(folder) && wait());
    stopped.expect(
        143,
        "1 records of stdin were loaded; new.store was not written",
    );
    let report = read(folder, "load.json");
    assert_eq!(
        (&report["complete"], &report["records"]),
        (&false.into(), &1.into())
    );
    assert_eq!(listing(folder), ["load.json"]);
    drop(stdin);

    let lines: String = (0..400_000)
        .map(|i| format!("{{\"key\":\"{i:08}\",\"value\":\"{i}\"}}\n"))
        .collect();
    std::fs::write(folder.join("rows.jsonl"), lines).expect("written");
    ok(folder, &["load", "store", "rows.jsonl"]);
    let child = spawn(folder, &["dump", "store", "-o", "out.jsonl"], Stdio::null());
    let stopped = stop(child, "INT", || hidden(folder));
    stopped.expect(130, "records of store were written");
    let args = words("repair store -o saved.store --json repair.json");
    let child = spawn(folder, &args, Stdio::null());
    let stopped = stop(child, "INT", || hidden(folder));
    stopped.expect(130, "saved.store was not written");
    assert_eq!(read(folder, "repair.json")["complete"], false);
    let child = spawn(folder, &["verify", "store", "--json", "-"], Stdio::null());
    let stopped = stop(child, "TERM", after(Duration::from_millis(30)));
    stopped.expect(143, "store was not judged");
    let report: Value = serde_json::from_str(&stopped.stdout).expect("JSON");
    assert_eq!(
        (&report["complete"], &report["sound"]),
        (&false.into(), &Value::Null)
    );
    assert_eq!(
        listing(folder),
        ["load.json", "repair.json", "rows.jsonl", "store"]
    );
}

#[test]
fn a_stopped_layout_reports_the_completed_layouts() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let args = words("layout sparse --records 1M --sample 1% --json layout.json");
    let child = spawn(folder, &args, Stdio::null());
    let stopped = stop(child, "INT", after(Duration::from_secs(4)));
    stopped.expect(130, "layouts were laid out");
    let report = read(folder, "layout.json");
    assert_eq!(report["complete"], false);
    assert_eq!(listing(folder), ["layout.json"]);
}

#[test]
fn a_stopped_oracle_reports_the_completed_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let args = words("oracle --tree btree --mode differential --budget 10m --json oracle.json");
    let child = spawn(folder, &args, Stdio::null());
    let stopped = stop(child, "INT", after(Duration::from_secs(3)));
    assert_eq!(stopped.status, Some(130), "{}", stopped.stderr);
    assert!(
        stopped.stderr.contains("stopped by SIGINT"),
        "{}",
        stopped.stderr
    );
}

/// The checkers end together with the check.
#[test]
fn a_stopped_check_ends_its_checkers() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !(has("java") && has("mvn")) {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: Java or Maven is missing, so no check is interrupted"
        );
        return;
    }
    // Fetch TLC first, so that its download does not count.
    let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/../specs");
    let args = [
        "check",
        "--specs",
        specs,
        "--checker",
        "tlc",
        "--only",
        "full",
        "--json",
        "check.json",
    ];
    let temporary = folder.join("tmp");
    std::fs::create_dir(&temporary).expect("a folder");
    let child = Command::new(env!("CARGO_BIN_EXE_treering"))
        .args(args)
        .current_dir(folder)
        .env("TMPDIR", &temporary)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let pid = child.id();
    let children = || {
        let args = ["-P", &pid.to_string()];
        let found = Command::new("pgrep")
            .args(args)
            .output()
            .expect("pgrep starts");
        let text = String::from_utf8_lossy(&found.stdout).into_owned();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let seen = RefCell::new(Vec::new());
    let stopped = stop(child, "TERM", || {
        *seen.borrow_mut() = children();
        // Each checker has its own folder.
        !seen.borrow().is_empty() && !listing(&temporary).is_empty()
    });
    stopped.expect(143, "models were checked");
    assert_eq!(read(folder, "check.json")["complete"], false);
    assert_eq!(listing(&temporary), Vec::<String>::new());
    // The kernel kills them as their parent ends; a busy machine needs a moment for it.
    let state = |pid: &String| std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let is_gone = |state: &str| state.is_empty() || state.contains(") Z ");
    let deadline = Instant::now() + Duration::from_secs(20);
    for pid in seen.borrow().iter() {
        while !is_gone(&state(pid).unwrap_or_default()) {
            let said = state(pid).unwrap_or_default();
            assert!(
                Instant::now() < deadline,
                "a checker is still running: {said}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
