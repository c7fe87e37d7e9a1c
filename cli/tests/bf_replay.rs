//! `replay --tree bf`, tested through the command line.

mod support;

use serde_json::Value;
use support::{ok, treering, words};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/samples/zipf.trz");

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn count(document: &Value, pointer: &str) -> u64 {
    let found = document.pointer(pointer).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("{pointer}: expected a count"))
}

fn sum(list: &Value, field: &str) -> u64 {
    let rows = list.as_array().expect("a list").iter();
    rows.map(|row| count(row, &format!("/{field}"))).sum()
}

#[test]
fn the_limit_is_in_the_report_and_its_steps_are_printed_on_demand() {
    let folder = tempfile::tempdir().expect("a folder");
    let replay = ["replay", SAMPLE, "--tree", "bf", "--cache", "5%"];
    let report = json(&ok(
        folder.path(),
        &[&replay[..], &["--json", "-"]].concat(),
    ));
    let wa = &report["wa"];
    let number = |pointer: &str| wa.pointer(pointer).and_then(Value::as_f64).expect(pointer);
    assert!(number("/limit/host/total") < number("/host/total"));
    let steps = wa["waterfall"].as_array().expect("steps");
    assert_eq!(steps[0]["name"], "limit");
    let last = steps.last().expect("a step")["sum"]
        .as_f64()
        .expect("a sum");
    assert!((last - number("/device/total")).abs() < 0.01);

    let short = ok(folder.path(), &replay);
    assert!(
        short.contains("Limit:") && !short.contains("Where the bytes go"),
        "{short}"
    );
    let long = ok(folder.path(), &[&replay[..], &["--explain-wa"]].concat());
    assert!(
        long.contains("Where the bytes go") && long.contains("size classes"),
        "{long}"
    );
    assert!(
        long.starts_with(short.trim_end()),
        "the rest of the report is the same"
    );
}

#[test]
fn replays_of_the_sample_are_deterministic_and_counts_add_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = [
        "replay", SAMPLE, "--tree", "bf", "--layout", "compact", "--seed", "5", "--strict",
        "--json", "-",
    ];
    let first = ok(folder.path(), &args);
    assert!(
        first == ok(folder.path(), &args),
        "the same command must give the same bytes"
    );
    let report = json(&first);
    assert_eq!(report["tree"], "bf");
    let options = &report["options"];
    assert_eq!(options["layout"], "compact");
    assert_eq!(
        (
            &options["copy-on-access"],
            &options["promote"],
            &options["spare"]
        ),
        (&10.into(), &"auto".into(), &75.into())
    );

    let mini = &report["cache"]["mini_pages"];
    let hits: u64 = ["insert", "cache", "tombstone", "phantom"]
        .iter()
        .map(|kind| count(mini, &format!("/hits/{kind}")))
        .sum();
    assert_eq!(hits + count(mini, "/misses"), count(&report, "/ops/get"));
    assert_eq!(sum(&mini["merge_sizes"], "merges"), count(mini, "/merges"));
    let causes = mini["merges_by"].as_object().expect("counts").values();
    let merges: u64 = causes.map(|n| n.as_u64().expect("a count")).sum();
    assert_eq!(merges, count(mini, "/merges"));
    assert_eq!(sum(&mini["sizes"], "evicted"), count(mini, "/evictions"));
    assert!(count(mini, "/merges") > 0 && count(mini, "/merged_records") >= count(mini, "/merges"));
    assert!(count(mini, "/ring/used_bytes") <= count(mini, "/ring/capacity_bytes"));
    assert!(count(mini, "/ring/live_bytes") <= count(mini, "/ring/used_bytes"));
    let (frames, page) = (count(&report, "/cache/frames"), count(options, "/page"));
    let cache = frames * page + count(mini, "/ring/capacity_bytes");
    assert_eq!(cache, count(&report, "/cache/bytes"));
    assert!(cache <= count(options, "/cache"));
}

#[test]
fn predictions_are_shown_beside_measurements_unless_disabled() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let text = ok(
        folder,
        &[
            "replay", SAMPLE, "--tree", "bf", "--limit", "20k", "--warmup", "50%", "--json",
            "out.json", "--html", "out.html",
        ],
    );
    let report = json(&std::fs::read_to_string(folder.join("out.json")).expect("read"));
    for present in ["/wa/predicted", "/wa/error", "/prediction/mini_pages"] {
        assert!(
            report.pointer(present).is_some_and(Value::is_object),
            "{present}"
        );
    }
    let compared = report["cache"]["compared"].as_array().expect("figures");
    for figure in compared {
        assert!(figure["predicted"]["value"].is_f64(), "{figure}");
    }
    let page = std::fs::read_to_string(folder.join("out.html")).expect("read");
    for face in [&text, &page] {
        for figure in ["gets answered", "page writes", "records a merge"] {
            assert!(face.contains(figure), "{figure}: {face}");
        }
    }
    assert!(text.contains("\nMini-pages:\n"), "{text}");
    let section = text.lines().skip_while(|line| *line != "Mini-pages:");
    for line in section {
        assert!(
            line.chars().count() <= 100 || line.starts_with("Warning"),
            "{line}"
        );
    }
    for title in [
        "What answered lookups",
        "Sizes of mini-pages",
        "Records per merge",
    ] {
        assert!(page.contains(title), "{title}");
    }
    let silent = ok(
        folder,
        &[
            "replay",
            SAMPLE,
            "--tree",
            "bf",
            "--limit",
            "20k",
            "--warmup",
            "50%",
            "--no-predict",
            "--json",
            "-",
        ],
    );
    let silent = json(&silent);
    for absent in [
        "/wa/predicted",
        "/prediction",
        "/cache/compared/0/predicted",
    ] {
        assert_eq!(silent.pointer(absent), Some(&Value::Null), "{absent}");
    }
    let btree = ok(
        folder,
        &[
            "replay", SAMPLE, "--limit", "20k", "--warmup", "50%", "--json", "-",
        ],
    );
    assert_eq!(json(&btree)["cache"]["mini_pages"], Value::Null);
}

#[test]
fn flags_of_the_bf_tree_take_effect() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let args = words("gen ycsb-b --records 20k --ops 40k -o b.trz");
    ok(folder, &args);
    let mini = |flags: &[&str]| {
        let mut args = vec!["replay", "b.trz", "--tree", "bf", "--json", "-"];
        args.extend(flags);
        json(&ok(folder, &args))["cache"]["mini_pages"].take()
    };
    let (never, always) = (mini(&["--promote", "0"]), mini(&["--promote", "100%"]));
    assert_eq!(
        (count(&never, "/promotions"), count(&never, "/hits/phantom")),
        (0, 0)
    );
    assert!(count(&always, "/promotions") > 1000, "{always}");
    assert!(count(&always, "/hits/cache") > count(&never, "/hits/cache"));
    let (none, all) = (
        mini(&["--copy-on-access", "0"]),
        mini(&["--copy-on-access", "50"]),
    );
    assert_eq!(count(&none, "/copies_to_tail"), 0);
    assert!(count(&all, "/copies_to_tail") > 1000, "{all}");
}

#[test]
fn strict_gives_status_4_if_no_mini_page_was_evicted() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let args = words("gen uniform --records 5k --ops 60k -o u.trz");
    ok(folder, &args);
    let args = words("replay u.trz --tree bf --cache 64MiB --strict");
    let large = [&args[..], &["--precondition", "steady"]].concat();
    let output = treering(folder, &large);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("no mini-page was ever evicted"), "{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("No mini-page was evicted"));
}

#[test]
fn a_bf_replay_on_a_file_leaves_a_sound_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    ok(folder, &words("gen ycsb-a --records 2k -o a.trz"));
    for (store, page, durability) in [
        ("in-place", "4KiB", "interval:10ms"),
        ("cow", "8KiB", "deferred"),
        ("in-place", "64KiB", "commit"),
    ] {
        let name = format!("{store}-{page}");
        let device = format!("file:{name}");
        ok(
            folder,
            &[
                "replay",
                "a.trz",
                "--tree",
                "bf",
                "--device",
                &device,
                "--store",
                store,
                "--page",
                page,
                "--durability",
                durability,
                "--clients",
                "3",
                "--limit",
                "4k",
            ],
        );
        let verified = json(&ok(folder, &["verify", &name, "--json", "-"]));
        assert_eq!(
            (&verified["sound"], &verified["records"]),
            (&true.into(), &2000.into()),
            "{name}"
        );
    }
}
