//! Extreme traces on every tree and every device: each gives a correct report or a one-line error.

mod support;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::treering;

/// What a replay of a trace must give.
enum Gives {
    /// A report with these numbers of measured operations (get, put, delete, scan) and user bytes.
    Report([u64; 4], u64),
    /// Exit status 2, and an error that contains this text.
    Sentence(&'static str),
}

use Gives::{Report, Sentence};

struct Edge {
    name: &'static str,
    /// Lines of the trace after its header.
    lines: Vec<String>,
    /// Whether keys are addresses of a block device.
    addresses: bool,
    on_pages: Gives,
    in_memory: Gives,
}

/// Length of the keys below, in bytes.
const KEY: u64 = 8;

fn put(key: u64, value: u64) -> String {
    format!(r#"{{"op":"put","key":"k{key:07}","value":{value}}}"#)
}

fn bare(op: &str, key: u64) -> String {
    format!(r#"{{"op":"{op}","key":"k{key:07}"}}"#)
}

fn edge(name: &'static str, lines: Vec<String>, counts: [u64; 4], user_bytes: u64) -> Edge {
    Edge {
        name,
        lines,
        addresses: false,
        on_pages: Report(counts, user_bytes),
        in_memory: Report(counts, user_bytes),
    }
}

fn edges() -> Vec<Edge> {
    let each = |line: fn(u64) -> String| (0..300).map(line).collect::<Vec<_>>();
    let scan = |n: u64| format!(r#"{{"op":"scan","key":"k{n:07}","scan":10}}"#);
    let late = |n: u64| {
        let t = 1_000_000_000 * (300 - n);
        format!(
            r#"{{"op":"put","key":"k{:07}","value":100,"t":{t}}}"#,
            n % 50
        )
    };
    let far = |n: u64| {
        let address = (1u64 << 40) + 8 * (n % 50);
        format!(r#"{{"op":"put","hex":"{address:016x}","value":100}}"#)
    };
    let long_key = format!(
        r#"{{"op":"put","key":"{}","value":100}}"#,
        "k".repeat(65_535)
    );
    let empty = || Sentence("trace.jsonl: the trace has no operations; expected at least one");
    vec![
        Edge {
            on_pages: empty(),
            in_memory: empty(),
            ..edge("empty", Vec::new(), [0; 4], 0)
        },
        edge(
            "reads only",
            each(|n| bare("get", n % 50)),
            [300, 0, 0, 0],
            0,
        ),
        edge("scans only", each(scan), [0, 0, 0, 300], 0),
        edge(
            "deletes only",
            each(|n| bare("delete", n % 50)),
            [0, 0, 300, 0],
            300 * KEY,
        ),
        edge(
            "one key",
            each(|_| put(7, 100)),
            [0, 300, 0, 0],
            300 * (KEY + 100),
        ),
        edge("one put", vec![put(7, 100)], [0, 1, 0, 0], KEY + 100),
        edge("one get", vec![bare("get", 7)], [1, 0, 0, 0], 0),
        edge(
            "time going backwards",
            each(late),
            [0, 300, 0, 0],
            300 * (KEY + 100),
        ),
        edge(
            "values of no bytes",
            each(|n| put(n % 50, 0)),
            [0, 300, 0, 0],
            300 * KEY,
        ),
        Edge {
            addresses: true,
            ..edge(
                "addresses of 2^40",
                each(far),
                [0, 300, 0, 0],
                300 * (8 + 100),
            )
        },
        Edge {
            on_pages: Sentence("trace.jsonl, operation 1: a key of 65535 bytes"),
            ..edge(
                "a key of 65,535 bytes",
                vec![long_key, put(1, 100)],
                [0, 2, 0, 0],
                65_635 + KEY + 100,
            )
        },
    ]
}

fn write(folder: &Path, edge: &Edge) {
    let mut text = format!(
        r#"{{"schema":"treering.trace/1","name":"edge","source":"test","ops":{},"warmup_ops":0,"zeros":0.5,"addresses":{}}}"#,
        edge.lines.len(),
        edge.addresses
    );
    text.push('\n');
    for line in &edge.lines {
        let _ = writeln!(text, "{line}");
    }
    std::fs::write(folder.join("trace.jsonl"), text).expect("a file");
}

const ON_PAGES: [&str; 15] = [
    "--tree btree --device ssd",
    "--tree btree --device csd",
    "--tree btree --device csd-thin",
    "--tree btree --device file:store",
    "--tree btree+cow(table=each-flush) --device ssd",
    "--tree btree --store cow --device ssd",
    "--tree btree --store shadow --device csd",
    "--tree btree --device ssd --precondition steady",
    "--tree btree --device ssd --timing --clients 3",
    "--tree bf --device ssd",
    "--tree bf --device csd",
    "--tree bf --device file:store",
    "--tree bminus --device ssd",
    "--tree bminus --device csd --durability commit",
    "--tree bminus --device file:store",
];

const IN_MEMORY: [&str; 5] = [
    "--tree ccl --device pm",
    "--tree lodge --device pm",
    "--tree pmtree --device pm",
    "--tree pmtree-global --device pm",
    "--tree ccl --device pm --timing --clients 3",
];

fn check(folder: &Path, edge: &Edge, flags: &str, gives: &Gives) {
    let args: Vec<&str> = "replay trace.jsonl --json out.json --html out.html"
        .split(' ')
        .collect();
    let args = [&args[..], &flags.split(' ').collect::<Vec<_>>()].concat();
    let output = treering(folder, &args);
    let story = format!("{}, {flags}", edge.name);
    let stdout = String::from_utf8(output.stdout).expect("text");
    let stderr = String::from_utf8(output.stderr).expect("text");
    match gives {
        Sentence(part) => {
            assert_eq!(output.status.code(), Some(2), "{story}\n{stderr}");
            assert!(stderr.contains(part), "{story}: {stderr}");
            assert_eq!(stderr.trim().lines().count(), 1, "{story}: {stderr}");
            assert_eq!(support::listing(folder), ["trace.jsonl"], "{story}");
        }
        Report(counts, user_bytes) => {
            assert_eq!(output.status.code(), Some(0), "{story}\n{stderr}");
            let json = std::fs::read_to_string(folder.join("out.json")).expect("a report");
            let report: Value = serde_json::from_str(&json).expect("JSON");
            assert_eq!(report["complete"], true, "{story}");
            let kinds = ["get", "put", "delete", "scan"];
            let found = kinds.map(|kind| report["ops"][kind].as_u64().expect("a number"));
            assert_eq!(found, *counts, "{story}");
            assert_eq!(report["user_bytes"], *user_bytes, "{story}");
            let html = std::fs::read_to_string(folder.join("out.html")).expect("a page");
            for text in [&stdout, &json, &html] {
                let odd = text
                    .split(|c: char| !c.is_alphanumeric())
                    .find(|w| ["NaN", "inf"].contains(w));
                assert_eq!(odd, None, "{story}\n{text}");
            }
        }
    }
    for name in ["store", "out.json", "out.html"] {
        let _ = std::fs::remove_file(folder.join(name));
    }
}

#[test]
fn extreme_traces_give_a_correct_report_or_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for edge in edges() {
        write(folder, &edge);
        for flags in ON_PAGES {
            check(folder, &edge, flags, &edge.on_pages);
        }
        for flags in IN_MEMORY {
            check(folder, &edge, flags, &edge.in_memory);
        }
    }
}

/// A trace that cannot fit on the disk is refused before the first operation, not after hours.
#[test]
fn a_trace_that_cannot_fit_is_refused_before_it_is_generated() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = "gen uniform --records 1M --ops 1000G --key-size 4096 -o large.jsonl";
    // If the command fails to refuse, it fills the disk, so kill it soon.
    let mut child = Command::new(env!("CARGO_BIN_EXE_treering"))
        .args(line.split(' '))
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let began = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if began.elapsed() > Duration::from_secs(10) {
            child.kill().expect("killed");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.starts_with("treering: --output large.jsonl: ")
            && said.contains("bytes free; expected at least 4118004118000000"),
        "{said}"
    );
    assert_eq!(support::listing(folder.path()), Vec::<String>::new());
}
