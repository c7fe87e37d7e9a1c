//! Studies and flags of `treering sweep`: which points they have, and which are refused.

mod support;
#[path = "support/sweeps.rs"]
mod sweeps;

use std::path::Path;

use serde_json::Value;
use support::{listing, ok, treering, words};
use sweeps::{place, rows, stderr, tables, values, write};

/// The points of a dry run, each as `name=value …`.
fn points(folder: &Path, study: &str) -> Vec<String> {
    write(folder, "study.toml", study);
    let listed = ok(
        folder,
        &words("sweep study.toml --out out --dry-run --json -"),
    );
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let points = listed["points"].as_array().expect("points");
    let said = |point: &Value| {
        let parameters = point["parameters"].as_object().expect("parameters");
        let parameters = parameters.iter().filter(|(name, _)| *name != "trace");
        let said: Vec<String> = parameters
            .map(|(name, value)| format!("{name}={}", value.as_str().expect("text")))
            .collect();
        said.join(" ")
    };
    points.iter().map(said).collect()
}

#[test]
fn a_study_has_products_lists_walked_together_exclusions_and_seeds() {
    let folder = place();
    let study = r#"
        traces = ["z.trz"]
        repetitions = 2
        [fixed]
        timing = true
        [grid]
        tree = ["btree", "bminus"]
        cache = ["5%", "20%"]
        [[zip]]
        page = ["4KiB", "8KiB"]
        threshold = [512, "1KiB"]
        [[list]]
        tree = "ccl"
        [[exclude]]
        tree = "bminus"
        page = ["4KiB", "16KiB"]
        [[exclude]]
        cache = ["20%"]
        tree = "btree"
    "#;
    let mut expected = Vec::new();
    for point in [
        "cache=5% page=4KiB seed=N threshold=512 tree=btree",
        "cache=5% page=8KiB seed=N threshold=1KiB tree=btree",
        "cache=5% page=8KiB seed=N threshold=1KiB tree=bminus",
        "cache=20% page=8KiB seed=N threshold=1KiB tree=bminus",
        "seed=N tree=ccl",
    ] {
        expected.extend(["0", "1"].map(|seed| point.replace('N', seed)));
    }
    assert_eq!(points(folder.path(), study), expected);
    assert_eq!(
        listing(folder.path()),
        ["study.toml", "z.trz"],
        "a dry run writes nothing"
    );
}

#[test]
fn traces_may_be_walked_together_with_flags() {
    let folder = place();
    let folder = folder.path();
    ok(folder, &words("gen zipf --records 100 --ops 2k -o y.trz"));
    let study = "
        [[zip]]
        trace = [\"z.trz\", \"y.trz\"]
        limit = [\"2k\", \"1k\"]
        [[list]]
        trace = \"y.trz\"
        tree = \"bf\"
    ";
    write(folder, "study.toml", study);
    ok(folder, &words("sweep study.toml --out o"));
    assert_eq!(
        values(&rows(&folder.join("o")), "trace tree limit trace.ops"),
        [
            "z.trz btree 2k 2000",
            "y.trz btree 1k 1000",
            "y.trz bf  2100"
        ]
    );
}

#[test]
fn a_study_is_run_from_its_own_folder_wherever_the_command_starts() {
    let folder = place();
    let folder = folder.path();
    std::fs::create_dir(folder.join("studies")).expect("a folder");
    ok(folder, &words("devices ssd --json d.json"));
    let profile = ok(folder, &["devices", "ssd"]);
    write(folder, "studies/mine.toml", &profile);
    let study = "traces = [\"../z.trz\"]\n[grid]\ndevice = [\"ssd\", \"mine.toml\"]\n";
    write(folder, "studies/s.toml", study);
    ok(folder, &words("sweep studies/s.toml --out a"));
    ok(&folder.join("studies"), &words("sweep s.toml --out ../b"));
    assert_eq!(tables(&folder.join("a")), tables(&folder.join("b")));
    let devices = values(&rows(&folder.join("a")), "trace device device.profile");
    assert_eq!(
        devices,
        ["../z.trz ssd ssd", "../z.trz mine.toml mine.toml"]
    );
}

#[test]
fn a_bad_study_is_refused_with_its_line_and_nothing_is_written() {
    let folder = place();
    let folder = folder.path();
    let traces = "traces = [\"z.trz\"]\n";
    for (text, expected) in [
        ("traces = [\n", "study.toml:1: unclosed array"),
        ("[grid]\ncache = \"5%\"\n", "study.toml:1: expected traces"),
        (
            "traces = [\"no.trz\"]\n",
            "study.toml:1: no.trz: no such file",
        ),
        (
            "traces = [\"z.trz\", \"z.trz\"]\n",
            "study.toml:1: z.trz: given twice",
        ),
        (
            &format!("{traces}gird = 1\n"),
            "study.toml:2: gird: expected traces",
        ),
        (
            &format!("{traces}[grid]\ncahce = [\"5%\"]\n"),
            "study.toml:3: cahce: no such flag",
        ),
        (
            &format!("{traces}[grid]\npage = [\"4KiB\", \"4 bits\"]\n"),
            "study.toml:3: page: ",
        ),
        (
            &format!("{traces}[grid]\ncache = [\"5%\", \"5%\"]\n"),
            "study.toml:3: cache: 5% is given",
        ),
        (
            &format!("{traces}[grid]\ncache = []\n"),
            "study.toml:3: cache: expected values",
        ),
        (
            &format!("{traces}[grid]\ntiming = [\"yes\"]\n"),
            "study.toml:3: timing: expected true",
        ),
        (
            &format!("{traces}[grid]\ndevice = \"file:x\"\n"),
            "study.toml:3: device: expected sim",
        ),
        (
            &format!("{traces}[grid]\ndevice = \"no.toml\"\n"),
            "study.toml:3: ",
        ),
        (
            &format!("{traces}[grid]\ncache = [[1]]\n"),
            "study.toml:3: cache: expected a text",
        ),
        (
            &format!("{traces}[grid]\njson = \"a.json\"\n"),
            "study.toml:3: json: no such flag",
        ),
        (
            &format!("{traces}[fixed]\npage = [1]\n"),
            "study.toml:3: page: expected one value",
        ),
        (
            &format!("{traces}[[zip]]\npage = [\"4KiB\"]\ncache = [\"5%\", \"9%\"]\n"),
            "study.toml:4: cache: expected 1 values",
        ),
        (
            &format!("{traces}[fixed]\ncache = \"5%\"\n[grid]\ncache = \"9%\"\n"),
            "study.toml:5: cache: expected in one of",
        ),
        (
            &format!("{traces}[[zip]]\ntrace = [\"z.trz\"]\n"),
            "study.toml:3: trace: expected in one of",
        ),
        (
            "[[list]]\ntrace = \"z.trz\"\n[[list]]\ncache = \"5%\"\n",
            "study.toml:1: expected traces",
        ),
        (
            &format!("{traces}repetitions = 0\n"),
            "study.toml:2: repetitions: expected",
        ),
        (
            &format!("repetitions = 2\n{traces}[grid]\nseed = [1, 2]\n"),
            "study.toml:1: seed: expected either",
        ),
        (
            &format!("{traces}[[exclude]]\ntrace = \"z.trz\"\n"),
            "exclude: leaves no point",
        ),
    ] {
        write(folder, "study.toml", text);
        let output = treering(folder, &words("sweep study.toml --out out"));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}\n{said}");
        assert!(
            said.starts_with(&format!("treering: {expected}")),
            "{text}\n{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(listing(folder), ["study.toml", "z.trz"], "{text}");
    }
}

#[test]
fn bad_flags_are_refused() {
    let folder = place();
    let folder = folder.path();
    write(folder, "s.toml", "traces = [\"z.trz\"]\n");
    for (line, expected) in [
        ("sweep z.trz", "--out"),
        (
            "sweep z.trz --out o --cache 5%,5%",
            "--cache 5%: given twice",
        ),
        ("sweep z.trz --out o --cache 5%,x", "--cache"),
        ("sweep z.trz --out o --tree btree,oak", "--tree"),
        ("sweep z.trz --out o --html a/b.html", "--html"),
        ("sweep z.trz --out o --buffered", "--buffered"),
        ("sweep z.trz --out o --device ssd,file:x", "--device"),
        ("sweep z.trz z.trz --out o", "TRACE z.trz: given twice"),
        ("sweep no.trz --out o", "no.trz"),
        ("sweep s.toml z.trz --out o", "expected one study alone"),
        (
            "sweep s.toml --cache 5% --out o",
            "--cache: expected it in the study",
        ),
        (
            "sweep z.trz --out o --repetitions 2 --seed 1,2",
            "seed: expected either",
        ),
        (
            "sweep z.trz --out o --predict-only --predict-first 2",
            "--predict-",
        ),
        ("sweep z.trz --out z.trz", "--out z.trz"),
    ] {
        let output = treering(folder, &words(line));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}\n{said}");
        assert!(said.contains(expected), "{line}\n{said}");
        assert_eq!(listing(folder), ["s.toml", "z.trz"], "{line}");
    }
}

#[test]
fn a_point_that_is_there_twice_is_run_once() {
    let folder = place();
    let folder = folder.path();
    let line = "sweep z.trz --page 4096,4KiB,8KiB --no-predict --out o";
    let output = treering(folder, &words(line));
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    assert!(said.contains("1 of the points are the same runs"), "{said}");
    assert_eq!(values(&rows(&folder.join("o")), "page"), ["4096", "8KiB"]);
}
