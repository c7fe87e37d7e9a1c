//! Checks that numbers in the documents match the commands shown beside them.
//!
//! Numbers that take seconds are recomputed here. Longer tables are filled in by the examples that
//! their document names (`.ci/numbers` runs the short ones), and here the sentences about them are
//! compared with the tables.

mod support;
#[path = "support/tables.rs"]
mod tables;
#[allow(dead_code)] // the example tests use the rest
#[path = "support/told.rs"]
mod told;

use std::collections::BTreeSet;

use serde_json::Value;
use support::{ok, words};
use tables::Document;
use told::{read, root};

/// Documents with tables that an example fills in, and the folder of the example.
const MEASURED: [(&str, &str); 6] = [
    ("sim/BMINUS.md", "bminus_figures"),
    ("sim/CCL.md", "ccl_figures"),
    ("sim/FIGURES.md", "bf_figures"),
    ("sim/LAYOUTS.md", "layout_figures"),
    ("sim/LODGE.md", "lodge_figures"),
    ("sim/PM.md", "pm_figures"),
];

fn none_of(stories: impl IntoIterator<Item = Option<String>>) {
    let stories: Vec<String> = stories.into_iter().flatten().collect();
    assert!(stories.is_empty(), "{}", stories.join("\n"));
}

fn manifest() -> Value {
    serde_json::from_str(&read("specs/manifest.json")).expect("JSON")
}

/// How much more `a` is than `b`, in per cent.
fn more(a: f64, b: f64) -> f64 {
    (a / b - 1.0) * 100.0
}

#[test]
fn each_table_is_below_the_command_that_fills_it() {
    let mut stories = Vec::new();
    for (name, example) in MEASURED {
        let document = Document::open(name);
        let command = format!("cargo run --release -p treering-sim --example {example}");
        let commands = told::shell_lines(name);
        if !commands.iter().any(|line| line == &command) {
            stories.push(Some(format!("{name}: does not name {command}")));
        }
        let mut source = String::new();
        for entry in std::fs::read_dir(root().join("sim/examples").join(example)).expect("a folder")
        {
            source += &std::fs::read_to_string(entry.expect("an entry").path()).expect("source");
        }
        for table in document.tables() {
            // Some names combine a kind and a measure: `copy-on-access-reads-only`.
            let parts: Vec<&str> = table.split('-').collect();
            let starts = (1..=parts.len()).map(|n| parts[..n].join("-"));
            let is_filled = starts.into_iter().any(|start| {
                source.contains(&format!("\"{start}\""))
                    || source.contains(&format!("\"{start}-{{"))
            });
            let story = format!("{name}: {example} fills no table {table}");
            stories.push((!is_filled).then_some(story));
        }
    }
    none_of(stories);
}

#[test]
fn counterexample_lengths_match_the_manifest() {
    let manifest = manifest();
    let models = manifest["models"].as_array().expect("models");
    let flat = Document::open("specs/FINDINGS.md").flat();
    let mut stories = Vec::new();
    let mut count = 0;
    for (at, _) in flat.match_indices(" states") {
        let before = &flat[..at];
        let Some((before, length)) = before.rsplit_once(' ') else {
            continue;
        };
        let (Ok(length), Some(name)) = (length.parse::<u64>(), last_span(before)) else {
            continue;
        };
        // The name of a model, or a property that the last named configuration violates.
        let name = if name.ends_with("Inv") || name.ends_with("Prop") {
            let end = before.rfind(".cfg`").map_or(0, |at| at + ".cfg`".len());
            last_span(&before[..end]).unwrap_or(name)
        } else {
            name
        };
        let name = name.trim_start_matches("MC").trim_end_matches(".cfg");
        let (spec, model) = name
            .split_once('_')
            .filter(|(spec, _)| is_spec(models, spec))
            .unwrap_or(("", name));
        let of_name: Vec<&Value> = models
            .iter()
            .filter(|m| m["model"] == model && (spec.is_empty() || m["spec"] == spec))
            .collect();
        // For violated temporal properties the manifest has no length.
        let is_so = of_name
            .iter()
            .any(|m| m["trace_length"].is_null() || m["trace_length"] == length);
        count += 1;
        if !is_so {
            stories.push(Some(format!(
                "{name}: {length} states, but specs/manifest.json has another number"
            )));
        }
    }
    assert!(count >= 60, "only {count} lengths were found");
    none_of(stories);
}

fn is_spec(models: &[Value], name: &str) -> bool {
    models.iter().any(|model| model["spec"] == name)
}

/// The last text in backticks, if little follows it.
fn last_span(text: &str) -> Option<&str> {
    let (before, behind) = text.rsplit_once('`')?;
    let (_, span) = before.rsplit_once('`')?;
    (behind.len() < 4).then_some(span)
}

#[test]
fn versions_and_counts_in_documents_match_the_project() {
    let folder = tempfile::tempdir().expect("a folder");
    let layouts = ok(folder.path(), &words("layout dense --records 2k --json -"));
    let layouts: Value = serde_json::from_str(&layouts).expect("JSON");
    let fixed = layouts["layouts"].as_array().expect("layouts").len() - 1;
    assert_eq!(
        fixed, 8,
        "README.md says eight page layouts and one that adapts"
    );
    let manifest = manifest();
    let text = |field: &str| manifest[field].as_str().expect("a version").to_owned();
    let workspace = read("Cargo.toml");
    let rust = workspace
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "));
    let rust = rust.expect("a version").trim_matches('"');
    let readme = Document::open("README.md");
    let specs = Document::open("specs/README.md");
    none_of([
        readme.says("eight page layouts and one that adapts"),
        readme.says(&format!("Rust {rust} or newer")),
        specs.says(&format!("fetches TLC {}", text("tlc"))),
        specs.says(&format!("`tla-mc` {}", text("tla_mc"))),
    ]);
    let models = manifest["models"].as_array().expect("models");
    let named: BTreeSet<&str> = models
        .iter()
        .filter_map(|model| model["spec"].as_str())
        .collect();
    none_of(
        named
            .iter()
            .map(|spec| specs.says(&format!("| `{spec}` |"))),
    );
}

#[test]
fn coverage_shares_add_up() {
    let text = read("model/COVERAGE.md");
    let mut sums = (0.0, 0.0);
    for line in text.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [place, lines, run, share] = cells[..] else {
            continue;
        };
        let (Ok(lines), Ok(run)) = (lines.parse::<f64>(), run.parse::<f64>()) else {
            continue;
        };
        assert_eq!(share, format!("{:.1} %", run / lines * 100.0), "{place}");
        if place == "**all**" {
            assert_eq!(
                (lines, run),
                sums,
                "the total must be the sum of all places"
            );
        }
        sums = (sums.0 + lines, sums.1 + run);
    }
    assert!(sums.0 > 0.0, "no table");
}

/// The share of accesses that go to the most popular `share` of `n` records under Zipf's law.
fn zipf_share(n: u64, share: f64, theta: f64) -> f64 {
    // The first terms one by one, the rest by the Euler-Maclaurin formula.
    let sum = |n: u64| {
        let exact = n.min(100_000);
        let head: f64 = (1..=exact).map(|k| (k as f64).powf(-theta)).sum();
        let (a, b) = (exact as f64, n as f64);
        let tail = (b.powf(1.0 - theta) - a.powf(1.0 - theta)) / (1.0 - theta);
        head + tail + (b.powf(-theta) - a.powf(-theta)) / 2.0
    };
    sum((n as f64 * share) as u64) / sum(n)
}

#[test]
fn sentences_about_bf_match_its_tables() {
    let it = Document::open("sim/FIGURES.md");
    let tenth = |n| zipf_share(n, 0.1, 0.9) * 100.0;
    let hits = |tree| it.cell("overall-hits", tree, 1);
    let reads = |share, tree| it.cell("cache-size", share, tree);
    let gap = |share| it.cell("cache-size", share, 6) - it.cell("cache-size", share, 5);
    let gaps = ["3.9 %", "7.8 %", "15.6 %", "31.2 %", "62.5 %"].map(gap);
    let misses = |region, column| it.cell("copy-on-access-apart", region, column);
    let regions = [
        "0 %", "10 %", "15 %", "20 %", "25 %", "50 %", "75 %", "90 %", "100 %",
    ];
    let off = |region| (misses(region, 1) - misses(region, 2)).abs();
    let least = |table, column| {
        it.column(table, column)
            .into_iter()
            .fold(f64::MAX, f64::min)
    };
    let updates = it.cell("copy-on-access-updates-only", "10 %", 3);
    let half = it.cell("copy-on-access-half-updates", "10 %", 3);
    let over = more(updates, least("copy-on-access-updates-only", 3));
    assert!(
        half - least("copy-on-access-half-updates", 3) < 0.001,
        "10 % must be the best"
    );
    assert!(
        it.cell("copy-on-access-reads-only", "10 %", 1) <= least("copy-on-access-reads-only", 1)
    );
    let after = |column| {
        let of = |rate| it.cell("promotion-reads-only", rate, column);
        more(of("10 %"), of("30 %"))
    };
    let last = |rate| it.cell("promotion-reads-only", rate, 5);
    none_of([
        it.says(&format!(
            "gets {:.1} % of the accesses to 500,000 records and {:.1} % of those to 200 M",
            tenth(500_000),
            tenth(200_000_000)
        )),
        it.says(&format!(
            "lookups is {:.0} points higher",
            hits("`bf`") - hits("`btree`")
        )),
        it.says(&format!(
            "`bf` reads {:.2} pages for 32 records, `btree` {:.2};",
            it.cell("overall", "scan of 32 records", 6),
            it.cell("overall", "scan of 32 records", 3)
        )),
        it.says(&format!(
            "`btree` reads {:.1} times fewer pages and `bf` {:.1} times",
            reads("3.9 %", 2) / reads("62.5 %", 2),
            reads("3.9 %", 3) / reads("62.5 %", 3)
        )),
        it.says(&format!(
            "The gap is {:.0} to {:.0} points of hit ratio",
            gaps.into_iter().fold(f64::MAX, f64::min) - 0.01,
            gaps.into_iter().fold(0.0, f64::max)
        )),
        it.says(&format!(
            "within {:.1} points ({:.1} at 5 %)",
            regions.map(off).into_iter().fold(0.0, f64::max),
            off("5 %")
        )),
        it.says(&format!(
            "({:.1} against {:.1} % misses)",
            misses("100 %", 5),
            misses("0 %", 5)
        )),
        it.says(&format!(
            "{:.1} against {:.1} %)",
            misses("100 %", 6),
            misses("0 %", 6)
        )),
        it.says(&format!("it is within {over:.0} % of the best")),
        it.says(&format!(
            "in the end 100 % reads {:.0} % more pages than 1 %",
            more(last("100 %"), last("1 %"))
        )),
        it.says(&format!(
            "10 % reads {:.0} % more pages than 30 %",
            after(2)
        )),
        it.says(&format!(
            "over ten operations a record {:.0} % more",
            after(3)
        )),
        it.says(&format!(
            "over fifty {:.0} % less, and {:.0} % less in the end",
            -after(4),
            -after(5)
        )),
    ]);
}

#[test]
fn sentences_about_bminus_match_its_tables() {
    let it = Document::open("sim/BMINUS.md");
    let above = |row| it.cell("beta", row, 2) - it.cell("beta", row, 1);
    let sparse = it.cell("log", "128 B, sparse", 1) / it.cell("log", "128 B, sparse", 5);
    let total = |row| it.cell("subsets", row, 4);
    none_of([
        it.says(&format!(
            "are {:.2} and {:.2} above",
            above("8 KiB, 128 B, 4 KiB"),
            above("8 KiB, 256 B, 4 KiB")
        )),
        it.says(&format!("the sparse one by {sparse:.1} with records of 128 bytes")),
        it.says(&format!(
            "writes {:.1} bytes for each of the user's where `bminus` writes {:.1} and the baseline {:.1}",
            total("`bf`, yes, yes, yes"),
            total("`btree`, yes, yes, yes"),
            total("`btree`, -, -, -")
        )),
    ]);
}

#[test]
fn sentences_about_persistent_memory_match_its_tables() {
    let pm = Document::open("sim/PM.md");
    let band = |row, column| pm.cell("bandwidth", row, column);
    let one = "sequential read, 1 thread, GB/s";
    let logs = |rows, column| pm.cell("tails", rows, column);
    assert!(
        (2.5..3.5).contains(&(logs("48", 1) / logs("1", 1))),
        "not triple"
    );
    assert!(
        (25.0..40.0).contains(&more(logs("48", 2), logs("1", 2))),
        "not by a third"
    );
    let ccl = Document::open("sim/CCL.md");
    let saved = |row, column| ccl.cell("savings", row, column);
    let log = saved("the log, by not logging trigger writes", 1);
    let both = saved("all, by both", 1) - saved("all, by both", 2);
    let lodge = Document::open("sim/LODGE.md");
    let uniform = |column| lodge.cell("grouping", "uniform inserts | 2", column);
    let dram = |tree| lodge.cell("dram", tree, 5);
    let (room, needed) = (lodge.column("logs", 4), lodge.column("logs", 2));
    let ratios = room
        .iter()
        .zip(&needed)
        .filter(|(_, needed)| **needed > 100.0);
    let ratios: Vec<f64> = ratios.map(|(room, needed)| room / needed).collect();
    assert!(
        ratios.iter().all(|ratio| (3.0..7.5).contains(ratio)),
        "{ratios:?}"
    );
    none_of([
        pm.says(&format!(
            "reads {:.0} % faster than Optane",
            more(band(one, 3), band(one, 1))
        )),
        ccl.says(&format!(
            "by {:.0} points and by {:.1}:",
            log - 34.0,
            both - 3.0
        )),
        lodge.says(&format!("{:.1} × `ccl`'s", uniform(4) / uniform(8))),
        lodge.says("three to seven times that"),
        lodge.says(&format!(
            "it is {:.1} % less",
            -more(dram("`lodge`"), dram("global buffer"))
        )),
    ]);
}

#[test]
fn sentences_about_layouts_match_its_tables() {
    let it = Document::open("sim/LAYOUTS.md");
    let sparse = |layout, column| it.cell("large", layout, column);
    let saved: Vec<f64> = it.column("density", 3).into_iter().skip(11).collect();
    let wide = |records| it.cell("partitions", records, 5) / it.cell("partitions", records, 2);
    let random = [
        "dense, random",
        "density 50 %, random",
        "density 25 %, random",
        "sparse, random",
    ];
    let most = random
        .map(|keys| it.cell("prediction", keys, 5))
        .into_iter()
        .fold(0.0, f64::max);
    none_of([
        it.says(&format!(
            "prefixes save {:.1} % (paper: 6.8), heads cost {:.2} bytes (5.78) and {:.1} %",
            -more(sparse("`prefix`", 5), sparse("`baseline`", 5)),
            sparse("`slotted`", 5) - sparse("`prefix`", 5),
            -more(sparse("`slotted`", 8), sparse("`prefix`", 8))
        )),
        it.says(&format!(
            "and save {:.0}-{:.0} % from 48 % on",
            saved.iter().copied().fold(f64::MAX, f64::min),
            saved.iter().copied().fold(0.0, f64::max)
        )),
        it.says(&format!(
            "up to {:.1} times what fully dense leaves do",
            wide("50000")
        )),
        it.says(&format!("2 % on average and {most:.1} % at most;")),
    ]);
}
