//! The command line end to end: round trips, determinism, JSON documents.

mod support;

use serde_json::Value;
use support::{listing, ok, real_trace, treering, words};

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn generated_traces_can_be_inspected_and_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let said = ok(folder, &words("gen ycsb-a --records 5k --ops 10k -o a.trz"));
    assert!(
        said.contains("15000 operations, 5000 of them warm-up"),
        "{said}"
    );
    let info = json(&ok(folder, &words("trace info a.trz --json -")));
    assert_eq!(info["schema"], "treering.trace-info/1");
    assert_eq!(
        (&info["ops"], &info["distinct_keys"]),
        (&15000.into(), &5000.into())
    );
    assert_eq!(info["windows"].as_array().map(Vec::len), Some(24));
    for part in ["reuse_times", "runs", "written_together", "lives"] {
        assert!(info[part].is_object(), "{part}: {info}");
    }
    // 5,000 records, of which a page holds as many as fill 69 % of it.
    for (page, per_page, pages) in [("4KiB", 24, 209), ("16KiB", 97, 52)] {
        let info = ok(
            folder,
            &["trace", "info", "a.trz", "--page", page, "--json", "-"],
        );
        let curve = &json(&info)["page_cache"];
        let found = (&curve["records_per_page"], &curve["pages"]);
        assert_eq!(found, (&per_page.into(), &pages.into()), "{curve}");
    }
    let text = ok(folder, &["replay", "a.trz", "--json", "out.json"]);
    assert!(!text.is_empty(), "the text report must go to stdout");
    let report = json(&std::fs::read_to_string(folder.join("out.json")).expect("read"));
    assert_eq!(report["complete"], true);
    assert_eq!(listing(folder), ["a.trz", "out.json"]);
}

#[test]
fn a_replay_document_has_the_promised_fields() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    ok(folder, &words("gen zipf --records 5k --writes 1 -o z.trz"));
    let report = json(&ok(folder, &words("replay z.trz --store cow --json -")));
    assert_eq!(report["schema"], "treering.replay/2");
    let missing: Vec<&str> = [
        "/complete",
        "/trace/name",
        "/trace/ops",
        "/trace/records",
        "/tree",
        "/device/kind",
        "/options",
        "/ops/get",
        "/ops/put",
        "/ops/delete",
        "/ops/scan",
        "/user_bytes",
        "/wa/host/log",
        "/wa/host/page",
        "/wa/host/extra",
        "/wa/host/total",
        "/wa/device/total",
        "/wa/device/gc",
        "/wa/device/nand_over_host",
        "/wa/predicted/host/total",
        "/wa/error/host/total",
        "/io_bytes/log",
        "/io_bytes/page",
        "/io_bytes/extra",
        "/io_bytes/read",
        "/latency_ns",
        "/space/logical_bytes",
        "/space/physical_bytes",
        "/space/records_per_leaf",
        "/store",
        "/cache/hit_ratio",
    ]
    .into_iter()
    .filter(|field| report.pointer(field).is_none())
    .collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
    assert!(report["wa"]["host"]["total"].as_f64().expect("a number") > 1.0);
    let report = json(&ok(folder, &words("replay z.trz --device csd --json -")));
    assert_eq!(report["device"]["kind"], "csd");
    let part = |field: &str| report.pointer(field).and_then(serde_json::Value::as_f64);
    for class in ["log", "page", "extra"] {
        let alpha = part(&format!("/wa/csd/alpha/{class}")).expect(class);
        assert!(alpha > 0.0 && alpha < 1.0, "{class}: {alpha}");
    }
    assert!(part("/wa/csd/gc_only").expect("a number") >= 1.0);
}

#[test]
fn runs_are_deterministic_and_seeds_change_figures_only_slightly() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let generate = |seed: &str, file: &str| {
        let args = [
            "gen",
            "zipf",
            "--records",
            "40k",
            "--ops",
            "80k",
            "--writes",
            "1",
            "--seed",
            seed,
            "-o",
            file,
        ];
        ok(folder, &args);
    };
    generate("1", "one.trz");
    generate("1", "again.trz");
    generate("2", "two.trz");
    let bytes = |file: &str| std::fs::read(folder.join(file)).expect("read");
    assert!(
        bytes("one.trz") == bytes("again.trz"),
        "the same seed must generate the same trace"
    );
    assert!(
        bytes("one.trz") != bytes("two.trz"),
        "another seed must generate another trace"
    );
    let replay =
        |file: &str, seed: &str| ok(folder, &["replay", file, "--seed", seed, "--json", "-"]);
    let (first, second, other) = (
        replay("one.trz", "1"),
        replay("one.trz", "1"),
        replay("two.trz", "2"),
    );
    assert!(first == second, "the same command must give the same bytes");
    assert!(first != other, "another seed must give other bytes");
    let wa = |text: &str| {
        json(text)["wa"]["host"]["total"]
            .as_f64()
            .expect("a number")
    };
    let (one, two) = (wa(&first), wa(&other));
    assert!(
        (one / two - 1.0).abs() < 0.01,
        "expected WA within 1 %, found {one} and {two}"
    );
}

#[test]
fn strict_gives_status_4_if_nothing_was_reached() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    ok(folder, &words("gen uniform --records 200 -o u.trz"));
    let output = treering(folder, &["replay", "u.trz", "--strict"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(
        stderr.starts_with("treering: --strict: ") && stderr.lines().count() == 1,
        "{stderr}"
    );
    assert!(
        !output.stdout.is_empty(),
        "the report must still be printed"
    );
}

#[test]
fn a_replay_on_a_file_leaves_a_sound_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    ok(folder, &words("gen ycsb-a --records 2k -o a.trz"));
    for store in ["in-place", "cow"] {
        let device = format!("file:{store}");
        ok(
            folder,
            &[
                "replay",
                "a.trz",
                "--device",
                &device,
                "--store",
                store,
                "--clients",
                "3",
                "--log-size",
                "1MiB",
            ],
        );
        let verified = json(&ok(folder, &["verify", store, "--json", "-"]));
        assert_eq!(
            (&verified["sound"], &verified["records"]),
            (&true.into(), &2000.into())
        );
    }
}

#[test]
fn completions_and_devices_print_usable_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for shell in ["bash", "zsh", "fish"] {
        assert!(ok(folder, &["completions", shell]).contains("replay"));
    }
    assert!(ok(folder, &["devices"]).contains("ssd"));
    assert!(ok(folder, &["devices"]).contains("csd-thin"));
    assert!(ok(folder, &["devices"]).contains("\npm-lru "));
    assert!(ok(folder, &["devices", "pm"]).contains("kind = \"pm\""));
    let pm = json(&ok(folder, &["devices", "pm", "--json", "-"]));
    assert_eq!(pm["devices"][0]["replacement"], "random");
    assert_eq!(pm["devices"][0].get("gc"), None);
    let csd = json(&ok(folder, &["devices", "csd", "--json", "-"]));
    assert_eq!(csd["devices"][0]["codec"], "zlib");
    std::fs::write(folder.join("mine.toml"), ok(folder, &["devices", "ssd"])).expect("written");
    ok(folder, &words("gen uniform --records 500 -o u.trz"));
    ok(folder, &["replay", "u.trz", "--device", "mine.toml"]);
    let help = ok(folder, &["--help"]);
    assert!(!help.contains("crash-writer"), "{help}");
    for command in [
        "replay",
        "sweep",
        "compare",
        "verify",
        "repair",
        "dump",
        "load",
        "import",
        "gen",
        "devices",
        "completions",
    ] {
        assert!(
            ok(folder, &[command, "--help"]).contains("EXAMPLES"),
            "{command}"
        );
    }
}

#[test]
fn real_traces_are_imported_and_replayed() {
    let traces = [
        ("mqsim", "mqsim-tpcc.trace.xz"),
        ("cloudphysics", "cloudphysics.csv.xz"),
        ("cachelib", "cachelib-kv.csv"),
    ];
    for (format, name) in traces {
        let Some(input) = real_trace(name) else {
            continue;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let input = input.to_str().expect("a path of text");
        ok(folder, &["import", format, input, "-o", "t.trz"]);
        let args = words("replay t.trz --limit 50k --warmup 10% --oversize clamp --json -");
        let report = json(&ok(folder, &args));
        assert_eq!(report["complete"], true, "{name}");
    }
}

/// Records of 24 bytes: seconds, identifier, size, next access (`TRACE_FORMATS`, oracleGeneral).
fn oracle_general(requests: &[(u32, u64, u32)]) -> Vec<u8> {
    let mut next = vec![-1i64; requests.len()];
    let mut seen = std::collections::HashMap::new();
    for (number, (_, id, _)) in requests.iter().enumerate().rev() {
        next[number] = seen.insert(id, number as i64).unwrap_or(-1);
    }
    let requests = requests.iter().zip(next);
    let bytes = requests.flat_map(|((time, id, size), next)| {
        let (time, id) = (time.to_le_bytes(), id.to_le_bytes());
        [&time[..], &id, &size.to_le_bytes(), &next.to_le_bytes()].concat()
    });
    bytes.collect()
}

#[test]
fn equal_operations_in_two_formats_give_equal_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let requests: Vec<(u32, u64, u32)> = (0..4000u64)
        .map(|n| {
            (
                n as u32 / 10,
                1000 + n * n % 509,
                100 + (n * n % 509) as u32,
            )
        })
        .collect();
    let lines: String = (requests.iter())
        .map(|(time, id, size)| format!("{time},put,{id},{size}\n"))
        .collect();
    std::fs::write(folder.join("same.csv"), lines).expect("written");
    std::fs::write(folder.join("same.bin"), oracle_general(&requests)).expect("written");
    let report = |import: &str, flags: &str| {
        ok(folder, &import.split(' ').collect::<Vec<_>>());
        let args = format!("replay same.trz --json - {flags}");
        let mut report = json(&ok(folder, &args.split(' ').collect::<Vec<_>>()));
        report["trace"]["source"] = Value::Null;
        report.to_string()
    };
    for flags in [
        "--tree btree",
        "--tree bf",
        "--tree bminus --device csd",
        "--tree ccl --device pm",
    ] {
        let csv = report(
            "import csv same.csv --columns time=1:s,op=2,key=3,value=4 -o same.trz",
            flags,
        );
        let oracle = report(
            "import oracle-general same.bin --oracle-op put -o same.trz",
            flags,
        );
        assert_eq!(csv, oracle, "{flags}");
    }
}

/// Values in cache traces may have up to 16 MiB. A value one byte longer is truncated with a
/// warning.
#[test]
fn values_up_to_the_limit_are_replayed_and_longer_ones_truncated_with_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let csv = |longest: u64| {
        let rows = (0..40).map(|n| format!("{n},k{},1,{},1,set,0\n", n % 7, 500 + 3_000 * n));
        rows.chain([format!("41,long,4,{longest},1,set,0\n")])
            .collect::<String>()
    };
    std::fs::write(folder.join("fits.csv"), csv(16 << 20)).expect("writes");
    std::fs::write(folder.join("over.csv"), csv((16 << 20) + 1)).expect("writes");
    for name in ["fits", "over"] {
        let (from, to) = (format!("{name}.csv"), format!("{name}.trz"));
        ok(folder, &["import", "twitter", &from, "-o", &to]);
    }
    for tree in ["btree", "bf", "bminus"] {
        let report = json(&ok(
            folder,
            &["replay", "fits.trz", "--tree", tree, "--json", "-"],
        ));
        let pages = &report["wa"]["host"]["page_causes"];
        assert!(pages["overflow"].as_f64() > Some(0.9), "{tree}: {pages}");
    }
    let refused = treering(folder, &["replay", "over.trz"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("value of 16777217") && said.contains("up to 16777216"),
        "{said}"
    );
    ok(folder, &["replay", "over.trz", "--oversize", "clamp"]);
}

/// Clocks of the trace, the device and the machine differ. Reports state which one decides when the
/// log is flushed.
#[test]
fn a_durability_interval_names_its_clock() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    ok(folder, &words("gen zipf --records 2k -o z.trz"));
    let said = ok(folder, &["replay", "z.trz", "--html", "z.html"]);
    let sentence = "interval of 60.0 s in the device's virtual time, not in the trace's times";
    let line = format!("Durability: {sentence}\n");
    assert!(said.contains(&line), "expected `{line}`, found\n{said}");
    let page = std::fs::read_to_string(folder.join("z.html")).expect("a page");
    let escaped = sentence.replace('\'', "&#39;");
    assert!(
        page.contains(sentence) || page.contains(&escaped),
        "the page must say: {sentence}"
    );
    let args = words("replay z.trz --device file:store --durability interval:2s");
    let said = ok(folder, &args);
    let line = "Durability: interval of 2.0 s in real time, not in the trace's times\n";
    assert!(said.contains(line), "expected `{line}`, found\n{said}");
    let said = ok(folder, &["replay", "z.trz", "--durability", "commit"]);
    assert!(said.contains("Durability: commit\n"), "{said}");
    let help = ok(folder, &["replay", "--help"]);
    assert!(help.contains("not in the trace's times"), "{help}");
}
