//! What a study makes of its results, and how it is changed from the command line: generated
//! traces, parts, `--small`, `--scale`, `--set`, `--only`; tables, pictures, claims and `--into`.

mod support;
#[path = "support/sweeps.rs"]
mod sweeps;

use std::path::Path;

use serde_json::Value;
use support::{listing, ok, treering, words};
use sweeps::{rows, stderr, values, write};

/// Two parts over generated traces, with a table, a picture and two claims.
const STUDY: &str = r#"
    [[generate]]
    name = "half"
    workload = "zipf"
    records = 500
    ops = "2k"
    value-size = 100
    [[generate]]
    name = "updates"
    workload = "uniform"
    records = 6000
    ops = 3000
    writes = 1
    [small]
    scale = 0.5
    only = { tree = "btree" }
    [fixed]
    no-predict = true
    page = "4KiB"
    cache = "256KiB"
    [[part]]
    name = "trees"
    traces = ["half", "updates"]
    grid = { tree = ["btree", "bf"] }
    [[part]]
    name = "pages"
    traces = ["updates"]
    grid = { page = ["4KiB", "8KiB", "16KiB"] }
    [[table]]
    name = "of-pages"
    part = "pages"
    rows = ["page"]
    figures = [
        { name = "operations", of = "trace.ops" },
        { name = "WA", of = "wa.host.page", digits = 1 },
        { name = "more", of = "wa.host.page", digits = 1, base = { page = "4KiB" } },
    ]
    [[table.paper]]
    figure = "WA"
    where = { page = "8KiB" }
    is = "about 80 | 90"
    [[chart]]
    name = "pages"
    part = "pages"
    x = { of = "page", name = "page", scale = "log" }
    y = { of = "wa.host.page", name = "WA" }
    curves = ["trace"]
    [[claim]]
    name = "larger"
    says = "Larger pages write more"
    paper = "everywhere"
    part = "pages"
    figure = "wa.host.page"
    along = "page"
    is = "rises"
    [[claim]]
    name = "none"
    says = "Mini-pages write nothing"
    paper = "nowhere"
    part = "trees"
    where = { trace = "updates" }
    figure = "wa.host.total"
    of = { tree = "bf" }
    over = { tree = "btree" }
    is = "< 0"
    differs = "a log is written"
"#;

fn with(study: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "s.toml", study);
    folder
}

fn points(folder: &Path, flags: &str) -> Vec<String> {
    let line = format!("sweep s.toml --out o --dry-run --json - {flags}");
    let listed: Value = serde_json::from_str(&ok(folder, &words(line.trim()))).expect("JSON");
    let points = listed["points"].as_array().expect("points");
    let said = |point: &Value| {
        let parameters = point["parameters"].as_object().expect("parameters");
        let said = parameters
            .iter()
            .map(|(_, value)| value.as_str().expect("text"));
        said.collect::<Vec<_>>().join(" ")
    };
    points.iter().map(said).collect()
}

fn refused(study: &str, flags: &str, expected: &str) {
    let folder = with(study);
    let line = format!("sweep s.toml --out o {flags}");
    let output = treering(folder.path(), &words(line.trim()));
    assert_eq!(
        output.status.code(),
        Some(2),
        "{flags}: {}",
        stderr(&output)
    );
    assert!(
        stderr(&output).contains(expected),
        "{flags}: {}",
        stderr(&output)
    );
    assert_eq!(listing(folder.path()), ["s.toml"], "{flags}");
}

#[test]
fn parts_share_runs_and_generated_traces_are_made_only_when_needed() {
    let folder = with(STUDY);
    let folder = folder.path();
    // Of the five points of both parts, two are the same.
    let all = [
        "4KiB half btree",
        "4KiB half bf",
        "4KiB updates btree",
        "4KiB updates bf",
    ];
    let mut expected: Vec<&str> = all.to_vec();
    expected.extend(["8KiB updates btree", "16KiB updates btree"]);
    let listed = points(folder, "");
    let sorted = |words: &str| {
        let mut words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        words.sort();
        words
    };
    let listed: Vec<_> = listed.iter().map(|point| sorted(point)).collect();
    let expected: Vec<_> = expected.iter().map(|point| sorted(point)).collect();
    assert_eq!(listed, expected);
    assert_eq!(listing(folder), ["s.toml"], "a dry run writes nothing");
    ok(folder, &words("sweep s.toml --out o"));
    let found = values(&rows(&folder.join("o")), "trace tree trace.ops");
    assert_eq!(found[0], "half btree 2500");
    assert_eq!(found[2], "updates btree 9000");
    std::fs::remove_dir_all(folder.join("o/traces")).expect("traces");
    ok(folder, &words("sweep s.toml --out o"));
    assert!(!folder.join("o/traces").exists(), "all runs are done");
}

#[test]
fn a_study_is_changed_from_the_command_line() {
    let folder = with(STUDY);
    let folder = folder.path();
    for (flags, count, first) in [
        ("--only tree=bf", 2, "bf"),
        ("--only part=pages", 3, "4KiB"),
        ("--only page=8KiB,16KiB", 2, "8KiB"),
        ("--set page=8KiB", 4, "half"),
        ("--set tree=bminus", 4, "bminus"),
        ("--set seed=1,2", 12, "1"),
        ("--small", 4, "half"),
    ] {
        let listed = points(folder, flags);
        assert_eq!(listed.len(), count, "{flags}: {listed:?}");
        assert!(listed[0].contains(first), "{flags}: {listed:?}");
    }
    ok(
        folder,
        &words("sweep s.toml --out o --set records=100 --set ops=300 --only part=trees"),
    );
    let found = values(&rows(&folder.join("o")), "trace tree trace.ops");
    assert_eq!(found[0], "half btree 400");
    ok(folder, &words("sweep s.toml --out p --small --scale 0.5"));
    let found = values(&rows(&folder.join("p")), "trace tree trace.ops");
    assert_eq!(found[0], "half btree 625");
}

#[test]
fn a_page_is_filled_in_and_claims_are_judged() {
    let folder = with(STUDY);
    let folder = folder.path();
    let mut page = "# A page\n\n".to_owned();
    for name in ["of-pages", "claims"] {
        page += &format!("<!-- {name} -->\nstale\n<!-- end -->\n\nProse.\n");
    }
    write(folder, "p.md", &page);
    write(folder, "q.md", &page.replace("claims", "promises"));
    let output = treering(folder, &words("sweep s.toml --out o --into q.md"));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("<!-- claims -->"),
        "{}",
        stderr(&output)
    );
    assert!(!folder.join("o").exists(), "nothing is run");
    let said = ok(
        folder,
        &words("sweep s.toml --out o --into p.md --json s.json"),
    );
    assert!(said.contains("claim larger: holds"), "{said}");
    assert!(said.contains("claim none: differs"), "{said}");
    let page = std::fs::read_to_string(folder.join("p.md")).expect("the page");
    assert!(
        page.contains("| page | operations | WA | WA, paper | more |"),
        "{page}"
    );
    assert!(page.contains("about 80 \\| 90"), "{page}");
    assert!(
        page.contains("| Larger pages write more | everywhere |"),
        "{page}"
    );
    assert!(page.contains("differs: a log is written"), "{page}");
    assert!(!page.contains("stale") && page.contains("Prose."), "{page}");
    let row = |size: &str| {
        let line = page
            .lines()
            .find(|line| line.starts_with(&format!("| {size} |")));
        line.unwrap_or_else(|| panic!("{size}: {page}")).to_owned()
    };
    assert!(row("4KiB").ends_with("| 0.0 |"), "the base: {page}");
    assert!(folder.join("pages.svg").is_file() && folder.join("o/pages.svg").is_file());
    assert!(folder.join("o/tables.md").is_file());
    let again = "sweep s.toml --out o --into p.md";
    ok(folder, &words(again));
    assert_eq!(
        std::fs::read_to_string(folder.join("p.md")).expect("the page"),
        page
    );
    let json = std::fs::read_to_string(folder.join("s.json")).expect("JSON");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["claims"][0]["verdict"], "holds");
    assert_eq!(json["claims"][1]["verdict"], "differs");
}

#[test]
fn a_claim_that_does_not_hold_ends_the_sweep_with_1() {
    let differs = "    differs = \"a log is written\"\n";
    assert!(STUDY.contains(differs));
    for (study, expected) in [
        (STUDY.replace(differs, ""), "none: does not hold"),
        (
            STUDY.replace("\"< 0\"", "\"> 0\""),
            "none: holds, but is listed as differing",
        ),
        (
            STUDY.replace("\"rises\"", "\"falls\""),
            "larger: does not hold",
        ),
    ] {
        let folder = with(&study);
        let output = treering(folder.path(), &words("sweep s.toml --out o"));
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    // A prediction judges nothing.
    let folder = with(&STUDY.replace(differs, "").replace("no-predict = true", ""));
    ok(folder.path(), &words("sweep s.toml --out o --predict-only"));
}

#[test]
fn a_bad_table_claim_or_change_is_refused_before_anything_is_run() {
    for (old, new, expected) in [
        (
            "rows = [\"page\"]",
            "rows = [\"pgae\"]",
            "pgae: expected trace, or a flag",
        ),
        ("curves = [\"trace\"]", "", "expected either curves or bars"),
        (
            "is = \"rises\"",
            "is = \"< 3\"",
            "expected falls, rises or flat",
        ),
        ("is = \"< 0\"", "is = \"low\"", "expected `< X`"),
        (
            "over = { tree = \"btree\" }",
            "",
            "expected both of and over",
        ),
        (
            "figure = \"WA\"",
            "figure = \"AW\"",
            "AW: expected the name of one of its figures",
        ),
        ("digits = 1 }", "digts = 1 }", "unknown field `digts`"),
        (
            "workload = \"zipf\"",
            "workload = \"zip\"",
            "expected one of ycsb-a",
        ),
        (
            "records = 500",
            "recrods = 500",
            "recrods: expected name, workload, or a flag",
        ),
        (
            "name = \"pages\"\n    traces",
            "name = \"trees\"\n    traces",
            "a name that no other",
        ),
        (
            "traces = [\"updates\"]",
            "traces = [\"up\"]",
            "or the name of a generated one",
        ),
        (
            "scale = 0.5",
            "scale = 0",
            "scale: expected a number above 0",
        ),
    ] {
        assert!(STUDY.contains(old), "{old}");
        refused(&STUDY.replacen(old, new, 1), "", expected);
    }
    for (flags, expected) in [
        ("--set pgae=8KiB", "no such flag"),
        ("--set page=8KB", "expected a size"),
        ("--set records=1,2", "expected one value"),
        ("--only tree=bminus", "leaves no point"),
        ("--only pgae=8KiB", "expected part, trace or a flag"),
        ("--scale 0", "expected a number above 0"),
        ("--into p.md --small", "expected the whole study"),
    ] {
        refused(STUDY, flags, expected);
    }
    let plain = STUDY.split("    [[table]]").next().expect("the points");
    refused(plain, "--into p.md", "expected a study with tables");
    let small = "    [small]\n    scale = 0.5\n    only = { tree = \"btree\" }\n";
    assert!(STUDY.contains(small));
    refused(
        &STUDY.replace(small, ""),
        "--small",
        "expected [small] in the study",
    );
    let traces = treering(Path::new("."), &words("sweep a.trz --out o --scale 2"));
    assert!(
        stderr(&traces).contains("--scale: expected a study"),
        "{}",
        stderr(&traces)
    );
}
