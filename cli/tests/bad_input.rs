//! Every kind of bad input ends with exit status 2 and one sentence that names the cause, and
//! leaves no files behind.

mod support;

use std::path::Path;

use support::{listing, ok, treering, words};

/// Creates good and bad input files in `folder`.
fn furnish(folder: &Path) {
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("written");
    ok(folder, &words("gen zipf --records 2k -o good.trz"));
    let good = std::fs::read(folder.join("good.trz")).expect("read");
    put("cut.trz", &good[..good.len() - good.len() / 3]);
    let mut corrupt = good.clone();
    let middle = corrupt.len() / 2;
    corrupt[middle..middle + 8]
        .iter_mut()
        .for_each(|b| *b ^= 0x5a);
    put("corrupt.trz", &corrupt);
    put("empty.trz", b"");
    put("magic.trz", b"PNG\x89 this is no trace at all\n");
    put("magic.jsonl", b"{\"schema\":\"other/9\"}\n");
    put("good.txt", b"neither\n");
    put("mqsim.txt", b"1 0 8 8 1\n2 0 what 8 1\n3 0 8 8 1\n");
    put("huge.txt", b"1 0 8 8 1\n2 0 8 99999999999 1\n3 0 8 8 1\n");
    put("nothing.txt", b"");
    let profile = ok(folder, &["devices", "ssd"]);
    put(
        "unknown-key.toml",
        format!("{profile}\nturbo = 3\n").as_bytes(),
    );
    let absurd: String = profile
        .lines()
        .map(|line| match line.starts_with("pages_per_block") {
            true => "pages_per_block = 0\n".to_string(),
            false => format!("{line}\n"),
        })
        .collect();
    put("absurd.toml", absurd.as_bytes());
    put("syntax.toml", b"description = \n");
    let pm = ok(folder, &["devices", "pm"]);
    put("pm.toml", pm.as_bytes());
    let bad_pm = pm.replace("\nlines = 64", "\nlines = 0");
    put("bad-pm.toml", bad_pm.as_bytes());
    put("not-a-store", &vec![7u8; 64 * 4096]);
    put("blank-store", &vec![0u8; 64 * 4096]);
    put("short-store", &vec![7u8; 5000]);
    std::fs::create_dir(folder.join("directory.trz")).expect("made");
    // A record too large for a 4 KiB page.
    ok(
        folder,
        &words("gen uniform --records 50 --key-size 1000 -o large.trz"),
    );
}

/// Command lines, and what their one line on stderr must name.
const BAD: &[(&str, &str)] = &[
    // Traces.
    ("replay cut.trz --json out.json", "cut.trz"),
    ("trace info cut.trz --json out.json", "cut.trz"),
    ("trace info cut.trz --html out.html", "cut.trz"),
    ("trace info empty.trz --html -", "--html -"),
    ("trace info good.trz --page 511", "page: expected 512"),
    ("trace info good.trz --page 2MiB", "page: expected 512"),
    (
        "trace info empty.trz --json out --html out",
        "--json, --html",
    ),
    ("replay corrupt.trz --json out.json", "corrupt.trz"),
    ("replay empty.trz --json out.json", "empty.trz"),
    ("replay magic.trz --json out.json", "magic.trz, line 1"),
    ("trace info magic.jsonl", "magic.jsonl, line 1"),
    ("replay good.txt", "good.txt"),
    ("replay missing.trz", "missing.trz"),
    ("replay nosuch", "nosuch: No such file"),
    ("trace info nosuch", "nosuch: No such file"),
    ("replay directory.trz", "directory.trz"),
    ("replay large.trz --json out.json", "large.trz, operation 1"),
    // A drive alone.
    ("replay good.trz --tree none --cache 10%", "--cache"),
    ("replay good.trz --tree none --layout hints", "--layout"),
    (
        "replay good.trz --tree none --durability commit",
        "--durability",
    ),
    ("replay good.trz --tree none --nbatch 4", "--nbatch"),
    ("replay good.trz --tree none --device pm", "--device pm"),
    (
        "replay good.trz --tree none --device file:out",
        "--device file:out",
    ),
    (
        "replay good.trz --tree none --capacity 4KiB --json out.json",
        "--capacity",
    ),
    ("load out.store good.trz --tree none", "none"),
    // Imports.
    ("import nosuch mqsim.txt -o out.trz", "FORMAT"),
    ("import mqsim mqsim.txt -o out.trz", "mqsim.txt, line 2"),
    ("import mqsim huge.txt -o out.trz", "huge.txt, line 2"),
    ("import mqsim nothing.txt -o out.trz", "nothing.txt"),
    ("import mqsim missing.txt -o out.trz", "missing.txt"),
    ("import mqsim mqsim.txt -o out.csv", "out.csv"),
    (
        "import mqsim mqsim.txt -o nowhere/out.trz",
        "nowhere/out.trz",
    ),
    ("import csv mqsim.txt -o out.trz", "--columns"),
    (
        "import csv mqsim.txt --columns op=x:y:z -o out.trz",
        "--columns",
    ),
    (
        "import mqsim mqsim.txt --oracle-op get -o out.trz",
        "--oracle-op",
    ),
    (
        "import oracle-general mqsim.txt --oracle-op maybe -o out.trz",
        "--oracle-op",
    ),
    (
        "import mqsim mqsim.txt --skip-bad lots -o out.trz",
        "--skip-bad",
    ),
    // Generators.
    ("gen zipf --records 1k --theta 2 -o out.trz", "--theta"),
    ("gen zipf --records 1k --theta -1 -o out.trz", "--theta"),
    ("gen zipf --records 0 -o out.trz", "--records"),
    ("gen zipf --records 1Ki -o out.trz", "--records"),
    ("gen zipf -o out.trz", "--records"),
    (
        "gen zipf --records 1k --value-size 400-16 -o out.trz",
        "--value-size",
    ),
    ("gen zipf --records 1k --writes 1.5 -o out.trz", "--writes"),
    (
        "gen zipf --records 1k --writes 0.9 --scans 0.9 -o out.trz",
        "--writes",
    ),
    (
        "gen ycsb-a --records 1k --writes 0.9 -o out.trz",
        "--writes",
    ),
    ("gen zipf --records 1k --order odd -o out.trz", "--order"),
    ("gen nosuch --records 1k -o out.trz", "WORKLOAD"),
    (
        "gen zipf --records 1k --key-dist 1,2 -o out.trz",
        "--key-dist",
    ),
    (
        "gen mixgraph --records 1k --value-pareto 1,2 -o out.trz",
        "--value-pareto",
    ),
    (
        "gen zipf --records 1k -o nowhere/out.trz",
        "nowhere/out.trz",
    ),
    ("gen zipf --records 1k -o directory.trz", "directory.trz"),
    // Specs.
    (
        "check NoSuchSpec --checker mirror --json out.json",
        "NoSuchSpec",
    ),
    (
        "check --only nosuch --checker mirror --json out.json",
        "nosuch",
    ),
    ("check --checker tlc --graph --json out.json", "--graph"),
    (
        "check --checker mirror --record --json out.json",
        "--record",
    ),
    ("check --save-test out.rs", "--only"),
    ("check --specs nowhere --json out.json", "--specs nowhere"),
    ("explore NoSuchSpec", "NoSuchSpec"),
    ("explore DurableMap --model nosuch", "--model nosuch"),
    // Settings of a replay.
    ("replay good.trz --cache 1KiB --json out.json", "--cache"),
    ("replay good.trz --cache 0% --json out.json", "--cache"),
    ("replay good.trz --cache 4MB --json out.json", "--cache"),
    ("replay good.trz --page 5000 --json out.json", "--page"),
    ("replay good.trz --page 128KiB --json out.json", "--page"),
    ("replay good.trz --warmup 150% --json out.json", "--warmup"),
    ("replay good.trz --warmup 100% --json out.json", "--warmup"),
    (
        "replay good.trz --seed 1 --seed 2 --json out.json",
        "--seed",
    ),
    ("replay good.trz --limit 0 --json out.json", "--limit"),
    ("replay good.trz --clients 0 --json out.json", "--clients"),
    (
        "replay good.trz --clients 4000000000 --json out.json",
        "--clients",
    ),
    (
        "replay good.trz --durability interval:5 --json out.json",
        "--durability",
    ),
    (
        "replay good.trz --durability sometimes --json out.json",
        "--durability",
    ),
    (
        "replay good.trz --log-size 4KiB --json out.json",
        "--log-size",
    ),
    (
        "replay good.trz --log-size 1MiB --checkpoint-every 2MiB --json out.json",
        "--checkpoint-every",
    ),
    (
        "replay good.trz --log-size 1MiB --log-buffer 1MiB --json out.json",
        "--log-buffer",
    ),
    (
        "replay good.trz --write-batch 0 --json out.json",
        "--write-batch",
    ),
    (
        "replay good.trz --capacity 64KiB --json out.json",
        "--capacity",
    ),
    ("replay good.trz --op 0 --json out.json", "--op"),
    ("replay good.trz --gc lazy --json out.json", "--gc"),
    (
        "replay good.trz --table checkpoint --json out.json",
        "--table",
    ),
    ("replay good.trz --promote 5 --json out.json", "--promote"),
    ("replay good.trz --buffered --json out.json", "--buffered"),
    (
        "replay good.trz --tree ccl --drain --json out.json",
        "--drain",
    ),
    (
        "replay good.trz --tree none --drain --json out.json",
        "--drain",
    ),
    (
        "predict good.trz --tree lodge --drain --json out.json",
        "--drain",
    ),
    (
        "replay good.trz --tree btree --copy-on-access 5 --json out.json",
        "--copy-on-access",
    ),
    (
        "replay good.trz --tree bf --promote 101 --json out.json",
        "--promote",
    ),
    (
        "replay good.trz --tree bf --copy-on-access half --json out.json",
        "--copy-on-access",
    ),
    (
        "replay good.trz --tree bf --cache 68KiB --json out.json",
        "--cache",
    ),
    ("replay good.trz --nosuch --json out.json", "--nosuch"),
    (
        "replay good.trz --json nowhere/out.json",
        "--json nowhere/out.json",
    ),
    (
        "replay good.trz --json directory.trz",
        "--json directory.trz",
    ),
    ("replay good.trz --json good.trz", "--json good.trz"),
    // Valid flags that are not implemented yet.
    ("replay good.trz --tree b-", "'--tree"),
    ("replay good.trz --tree oak", "'--tree"),
    ("replay good.trz --store shadows", "'--store"),
    ("replay good.trz --log spare", "'--log"),
    ("replay good.trz --layout columns", "'--layout"),
    (
        "replay good.trz --tree bf --contention-split",
        "contention-split",
    ),
    ("replay good.trz --device pm", "--device pm"),
    ("replay good.trz --device pm.toml", "--device pm.toml"),
    ("replay good.trz --device bad-pm.toml", "buffer.lines = 0"),
    ("replay good.trz --device nosuch", "--device nosuch"),
    // These are checked before any work, so that a long run is not wasted.
    (
        "replay good.trz --json /proc/x.json",
        "--json /proc/x.json: its folder cannot be written",
    ),
    (
        "gen zipf --records 10 -o /proc/x.trz",
        "--output /proc/x.trz: its folder cannot be written",
    ),
    (
        "oracle --coverage /proc/x.html",
        "--coverage /proc/x.html: its folder cannot be written",
    ),
    ("replay good.trz --threshold 8KiB", "--threshold"),
    ("replay good.trz --threshold 5GiB", "--threshold"),
    ("replay good.trz --threshold 64", "--threshold"),
    ("replay good.trz --tree bminus --segment 100", "--segment"),
    ("replay good.trz --segment 128", "--segment"),
    (
        "replay good.trz --tree bminus --threshold 0 --reset at-threshold",
        "--reset",
    ),
    ("replay good.trz --eadr", "--eadr"),
    // These apply to block devices only. Trees in persistent memory refuse them even if they equal
    // the defaults.
    (
        "replay good.trz --tree ccl --cache 10%",
        "--cache: --tree ccl has no such option; the flag applies to trees on block devices; expected --nbatch",
    ),
    (
        "replay good.trz --tree lodge --durability interval:60s",
        "--durability: --tree lodge makes each write durable before it returns",
    ),
    (
        "replay good.trz --tree pmtree --write-batch 32",
        "--write-batch: --tree pmtree has no such option",
    ),
    (
        "replay good.trz --tree ccl --contention-split",
        "--contention-split",
    ),
    // Profiles.
    ("replay good.trz --device missing.toml", "missing.toml"),
    (
        "replay good.trz --device unknown-key.toml",
        "unknown-key.toml",
    ),
    ("replay good.trz --device absurd.toml", "absurd.toml"),
    ("replay good.trz --device syntax.toml", "syntax.toml"),
    ("devices nosuch", "nosuch"),
    // Files as devices.
    ("replay good.trz --device file:not-a-store", "not-a-store"),
    (
        "replay good.trz --device file:nowhere/store",
        "nowhere/store",
    ),
    (
        "replay good.trz --device file:new-store --gc greedy",
        "--gc",
    ),
    (
        "replay good.trz --device file:new-store --daily 50GiB",
        "--daily: applies only to simulated devices",
    ),
    (
        "replay large.trz --device file:new-store",
        "large.trz, operation",
    ),
    // Stores.
    ("verify not-a-store", "not-a-store"),
    ("verify blank-store", "blank-store"),
    ("verify short-store", "short-store"),
    ("verify missing-store", "missing-store"),
    ("verify directory.trz", "directory.trz"),
    ("dump blank-store", "blank-store"),
    ("dump missing-store", "missing-store"),
    ("load new-store missing.jsonl", "missing.jsonl"),
    ("load good.trz good.trz", "good.trz"),
    ("load new-store good.trz", "good.trz, line 1"),
    ("load missing-folder/new-store good.trz", "missing-folder"),
    ("repair blank-store -o new-store", "blank-store"),
    ("repair missing-store -o new-store", "missing-store"),
    // Usage.
    ("", "subcommand"),
    ("frobnicate", "frobnicate"),
    ("sweep good.trz", "--out"),
    ("sweep syntax.toml --out out", "syntax.toml:1"),
    ("compare good.trz good.trz", "good.trz"),
    ("ponder good.trz", "ponder"),
    ("trace", "subcommand"),
    ("completions cmd", "cmd"),
];

#[test]
fn bad_input_gives_status_2_and_one_sentence_and_leaves_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    furnish(folder);
    let before = listing(folder);
    let mut wrong = Vec::new();
    for (line, culprit) in BAD {
        let args: Vec<&str> = line.split_whitespace().collect();
        let output = treering(folder, &args);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let after = listing(folder);
        let found = [
            (output.status.code() == Some(2), "exit status 2"),
            (output.stdout.is_empty(), "nothing on stdout"),
            (
                stderr.lines().count() == 1 && stderr.ends_with('\n'),
                "one line on stderr",
            ),
            (stderr.starts_with("treering: "), "`treering: ` before it"),
            (stderr.contains(culprit), "the culprit's name"),
            (after == before, "no file left behind"),
        ];
        for (_, expected) in found.iter().filter(|(held, _)| !held) {
            wrong.push(format!(
                "treering {line}: expected {expected} ({culprit}), found status {:?}, stderr {stderr:?}",
                output.status.code()
            ));
        }
        for extra in after.iter().filter(|name| !before.contains(name)) {
            wrong.push(format!("treering {line}: left {extra} behind"));
            let _ = std::fs::remove_file(folder.join(extra));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_damaged_store_gives_status_1_and_names_the_damage() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    ok(folder, &words("gen uniform --records 5k -o t.trz"));
    ok(
        folder,
        &words("replay t.trz --device file:store --log-size 1MiB"),
    );
    assert!(ok(folder, &["verify", "store"]).contains("sound"));
    let mut bytes = std::fs::read(folder.join("store")).expect("read");
    // The page space is at the end of the file. Flip a byte in every page from the middle on.
    let (from, to) = (bytes.len() / 2 / 4096, bytes.len() / 4096);
    for block in from..to {
        bytes[block * 4096 + 2000] ^= 0xff;
    }
    std::fs::write(folder.join("store"), bytes).expect("written");
    let output = treering(folder, &["verify", "store", "--json", "-"]);
    assert_eq!(output.status.code(), Some(1));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["schema"], "treering.verify/1");
    assert_eq!(document["sound"], false);
    assert!(!document["damage"].as_array().expect("a list").is_empty());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("treering: store: "), "{stderr}");
}
