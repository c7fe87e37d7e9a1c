//! Moving records out of one store and into another: `dump`, `load`, `repair`.

mod support;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::{listing, ok, treering, words};

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

/// Returns `count` lines in key order. Some contain bytes that are not UTF-8.
fn lines(count: u32) -> String {
    let line = |n: u32| match n % 10 {
        // A value with several overflow blocks.
        7 if n % 100 == 7 => format!(
            "{{\"key\":\"key-{n:06}\",\"value\":\"{}\"}}\n",
            format!("long {n} ").repeat(4_000)
        ),
        3 => format!("{{\"key\":\"key-{n:06}\",\"value_hex\":\"ff00{n:08x}\"}}\n"),
        _ => format!("{{\"key\":\"key-{n:06}\",\"value\":\"värde \\\"{n}\\\"\"}}\n"),
    };
    (0..count).map(line).collect::<String>() + "{\"key_hex\":\"ff\",\"value\":\"\"}\n"
}

fn piped(folder: &Path, args: &[&str], input: &str) -> std::process::Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_treering"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A command that refuses a line stops reading.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("ends")
}

#[test]
fn dump_returns_the_loaded_records_from_every_store() {
    let folder = folder();
    let folder = folder.path();
    let text = lines(500);
    std::fs::write(folder.join("rows.jsonl"), &text).expect("writes");
    for (name, flags) in [
        ("plain", &[][..]),
        ("bf", &["--tree", "bf", "--store-kind", "cow"][..]),
        ("bminus", &["--tree", "bminus"][..]),
        ("large", &["--store-kind", "shadow", "--page", "16KiB"][..]),
    ] {
        let said = ok(folder, &[&["load", name, "rows.jsonl"], flags].concat());
        assert!(said.contains("501 records"), "{name}: {said}");
        assert_eq!(ok(folder, &["dump", name]), text, "{name}");
        let verified = ok(folder, &["verify", name]);
        assert!(
            verified.contains("sound") && verified.contains("501 records"),
            "{verified}"
        );
    }
    ok(folder, &["dump", "bf", "-o", "again.jsonl"]);
    let again = std::fs::read_to_string(folder.join("again.jsonl")).expect("reads");
    assert_eq!(again, text);
    let mut names = vec![
        "again.jsonl",
        "bf",
        "bminus",
        "large",
        "plain",
        "rows.jsonl",
    ];
    names.sort_unstable();
    assert_eq!(listing(folder), names);
}

/// More lines, in random order, than fit into the initial size of a store whose final size is
/// unknown.
#[test]
fn load_accepts_unsorted_input_of_unknown_length() {
    let folder = folder();
    let folder = folder.path();
    let pad = "x".repeat(900);
    let line = |n: u32| {
        format!(
            "{{\"key\":\"{:08}\",\"value\":\"{n} {pad}\"}}\n",
            n * 7_919 % 9_000
        )
    };
    let text: String = (0..9_000).map(line).collect();
    let done = piped(folder, &["load", "store", "--json", "-"], &text);
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let document = json(&String::from_utf8(done.stdout).expect("text"));
    assert_eq!(document["schema"], "treering.load/1");
    assert_eq!(document["records"], 9_000);
    let mut sorted: Vec<&str> = text.lines().collect();
    sorted.sort_unstable();
    assert_eq!(
        ok(folder, &["dump", "store"]).lines().collect::<Vec<_>>(),
        sorted
    );
}

#[test]
fn a_bad_line_is_named_and_no_store_is_created() {
    let folder = folder();
    let folder = folder.path();
    let good = "{\"key\":\"b\",\"value\":\"1\"}\n";
    let long = format!("{{\"key\":\"{}\",\"value\":\"\"}}\n", "c".repeat(5_000));
    for (line, says) in [
        (
            "{\"key\":\"c\"}\n",
            "line 2: expected \"value\" or \"value_hex\"",
        ),
        ("c,1\n", "line 2: expected {\"key\""),
        (good, "line 2: found a key for the second time"),
        (
            "{\"key_hex\":\"xx\",\"value\":\"\"}\n",
            "line 2: expected pairs of hexadecimal digits",
        ),
        (
            &long,
            "line 2: expected a record that fits into the store, found a key of 5000 bytes",
        ),
    ] {
        let done = piped(folder, &["load", "store"], &format!("{good}{line}{good}"));
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{line}: {said}");
        assert!(
            said.contains("stdin") && said.contains(says),
            "{line}: {said}"
        );
        assert_eq!(listing(folder), Vec::<String>::new(), "{line}");
    }
    std::fs::write(folder.join("there"), "mine").expect("writes");
    let done = piped(folder, &["load", "there"], good);
    assert_eq!(done.status.code(), Some(2));
    assert_eq!(std::fs::read(folder.join("there")).expect("reads"), b"mine");
    assert_eq!(treering(folder, &["dump", "there"]).status.code(), Some(2));
}

/// A leaf is damaged. With its log, the store can be repaired completely. Without it, all other
/// records are saved and the gap is reported.
#[test]
fn repair_saves_all_but_the_reported_gaps() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("rows.jsonl"), lines(2_000)).expect("writes");
    ok(folder, &["load", "store", "rows.jsonl"]);
    let whole = ok(folder, &words("repair store -o same --json -"));
    let document = json(&whole);
    assert_eq!(document["schema"], "treering.repair/1");
    assert_eq!(
        (&document["whole"], &document["records"]),
        (&json("true"), &json("2001"))
    );
    assert_eq!(ok(folder, &["dump", "same"]), lines(2_000));

    let store = folder.join("store");
    let mut bytes = std::fs::read(&store).expect("reads");
    // The last leaf in the file. Leaves are written to their home blocks, which follow log and
    // journal.
    let leaf = (0..bytes.len() / 4096)
        .rfind(|i| &bytes[i * 4096 + 24..i * 4096 + 26] == b"TR")
        .expect("a leaf");
    bytes[leaf * 4096 + 1_000] ^= 1;
    std::fs::write(&store, &bytes).expect("writes");

    // Closing a store discards its log, so no other copy of the records remains.
    let refused = treering(folder, &["dump", "store"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("treering repair store -o NEW"), "{said}");

    let done = treering(folder, &words("repair store -o saved --json report.json"));
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("missing: keys from "), "{said}");
    assert_eq!(
        std::fs::read(&store).expect("reads"),
        bytes,
        "the input must not change"
    );
    let report = std::fs::read_to_string(folder.join("report.json")).expect("reads");
    let document = json(&report);
    assert_eq!(
        document["missing"].as_array().map(Vec::len),
        Some(1),
        "{report}"
    );
    assert_eq!(document["doubtful"], json("[]"), "{report}");
    let bound = |name: &str| {
        document["missing"][0][name]["text"]
            .as_str()
            .map(str::to_owned)
    };
    let rows = |text: &str| -> BTreeMap<String, String> {
        text.lines()
            .map(|line| {
                let key = json(line)["key"]
                    .as_str()
                    .unwrap_or("\u{10ffff}")
                    .to_owned();
                (key, line.to_owned())
            })
            .collect()
    };
    let (saved, all) = (rows(&ok(folder, &["dump", "saved"])), rows(&lines(2_000)));
    assert!(saved.len() < all.len());
    for (key, line) in &all {
        let behind = bound("from").is_none_or(|from| *key >= from);
        let missing = behind && bound("to").is_none_or(|to| *key < to);
        assert_eq!(
            saved.get(key),
            (!missing).then_some(line),
            "{key}: {report}"
        );
    }

    // Both superblocks are damaged. Pages and log still have all records, but nothing proves that
    // they are current.
    bytes[..8192].fill(0x5a);
    std::fs::write(&store, &bytes).expect("writes");
    let done = treering(folder, &["repair", "store", "-o", "blind"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stdout).contains("doubtful: keys from "));
    assert!(rows(&ok(folder, &["dump", "blind"])).len() >= saved.len());
}

/// The first damage does not hide others: even without a superblock, all pages are checked.
#[test]
fn verify_checks_every_block_of_a_store_that_cannot_be_opened() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("rows.jsonl"), lines(500)).expect("writes");
    ok(folder, &["load", "store", "rows.jsonl"]);
    let mut bytes = std::fs::read(folder.join("store")).expect("reads");
    bytes[100] ^= 1;
    // The last page image is a leaf at its home.
    let is_page = |block: &[u8]| &block[24..26] == b"TR";
    let page = bytes.chunks(4096).rposition(is_page).expect("a page");
    bytes[page * 4096 + 2000] ^= 1;
    std::fs::write(folder.join("store"), bytes).expect("writes");
    let run = treering(folder, &["verify", "store", "--json", "report.json"]);
    assert_eq!(run.status.code(), Some(1));
    let said = String::from_utf8_lossy(&run.stdout);
    for expected in [
        "superblock at block 0 is damaged",
        "the current contents are lost",
        "store: DAMAGED, and cannot be opened; ",
    ] {
        assert!(said.contains(expected), "expected `{expected}`: {said}");
    }
    let report = json(&std::fs::read_to_string(folder.join("report.json")).expect("a report"));
    assert_eq!(
        (&report["sound"], &report["leaves"]),
        (&false.into(), &0.into())
    );
    let found = |name: &str| report[name].as_u64().expect("a number");
    assert!(found("images") > 0 && found("records") > 0, "{report}");
    assert!(
        report["damage"].as_array().expect("a list").len() >= 2,
        "{report}"
    );
}

/// A file that begins like a store is treated as a store. Any other file is bad input, whatever its
/// length.
#[test]
fn a_store_truncated_within_a_block_counts_as_damaged() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("rows.jsonl"), lines(500)).expect("writes");
    ok(folder, &["load", "store", "rows.jsonl"]);
    let whole = std::fs::read(folder.join("store")).expect("reads");
    let lens = [whole.len() - 1000, whole.len() / 2 + 1, 5000, 100];
    for len in lens {
        std::fs::write(folder.join("store"), &whole[..len]).expect("writes");
        let run = treering(folder, &["verify", "store"]);
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{len}: {said}");
        assert_eq!(said.lines().count(), 1, "{len}: {said}");
        let text = String::from_utf8_lossy(&run.stdout);
        let cut = format!("found {len} bytes");
        assert!(
            said.contains(&cut) || text.contains(&cut),
            "{len}: {said}{text}"
        );
    }
    std::fs::write(folder.join("store"), &whole[..lens[0]]).expect("writes");
    let run = treering(folder, &["repair", "store", "-o", "saved.store"]);
    let said = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("the file is cut"), "{said}");
    assert!(ok(folder, &["dump", "saved.store"]).lines().count() > 400);
    let mut other = whole[..5000].to_vec();
    other[..8].fill(b'x');
    other[4096..4104].fill(b'x');
    std::fs::write(folder.join("other"), other).expect("writes");
    assert_eq!(
        treering(folder, &["verify", "other"]).status.code(),
        Some(2)
    );
}
