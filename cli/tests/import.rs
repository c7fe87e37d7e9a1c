//! `treering import` of the bundled samples.

mod support;

use std::path::Path;

use support::{listing, ok, treering, words};

/// The path of a file in `traces/samples`.
fn sample(name: &str) -> String {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/samples");
    samples.join(name).to_str().expect("a path of text").into()
}

#[test]
fn every_sample_can_be_imported_and_replayed() {
    let samples = [
        ("alibaba", "alibaba.csv", "7 operations from 3 lines"),
        ("tencent", "tencent.csv", "18 operations from 3 lines"),
        (
            "systor",
            "systor.csv",
            "1 without an equivalent operation skipped",
        ),
        ("fio", "fio-v3.log", "7 operations from 8 lines"),
        ("blktrace", "sda.blktrace", "5 operations from 9 lines"),
        ("blktrace", "sda-big-endian.blktrace", "2 device(s)"),
        ("twitter", "twitter.csv", "2 deletes of expired keys"),
        ("cachelib", "cachelib-2022.csv", "5 operations from 5 lines"),
        ("cachelib", "cachelib-2024.csv", "1 deletes of expired keys"),
        (
            "block-cache",
            "block-cache.csv",
            "3 operations from 3 lines",
        ),
        ("lcs", "v1.lcs.zst", "3 operations from 3 lines"),
        ("lcs", "v3.lcs.zst", "1 deletes of expired keys"),
        #[cfg(feature = "parquet")]
        ("parquet", "blocks.parquet", "4 operations from 3 lines"),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for (format, name, expected) in samples {
        let input = sample(name);
        let args = ["import", format, &input, "-o", "t.trz"];
        let said = ok(folder.path(), &args);
        assert!(said.contains(expected), "{format} {name}: {said}");
        ok(folder.path(), &["replay", "t.trz"]);
    }
}

#[test]
#[cfg(not(feature = "parquet"))]
fn a_build_without_parquet_names_the_missing_feature() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = sample("blocks.parquet");
    let run = treering(folder.path(), &["import", "parquet", &input, "-o", "t.trz"]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(3), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("--features parquet"), "{said}");
    assert!(listing(folder.path()).is_empty());
}

#[test]
fn oracle_op_is_accepted_only_for_formats_that_need_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = sample("v1.lcs.zst");
    let args = ["import", "lcs", &input, "--oracle-op", "put", "-o", "t.trz"];
    ok(folder.path(), &args);
    let run = treering(
        folder.path(),
        &[
            "import",
            "alibaba",
            &input,
            "--columns",
            "op=1,key=2",
            "-o",
            "u.trz",
        ],
    );
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(
        said.contains("only the formats csv and parquet take it"),
        "{said}"
    );
    assert_eq!(listing(folder.path()), ["t.trz"]);
}

/// Replaying 4 KiB block writes as records of 128 bytes could surprise users. So import, info and
/// replay state the mapping for block traces. For key-value traces they print nothing about it.
#[test]
fn trace_descriptions_state_how_blocks_are_mapped() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let blocks = sample("alibaba.csv");
    for value_size in [120, 500] {
        let (size, record) = (value_size.to_string(), value_size + 8);
        let sentence = format!(
            "a block of 4096 bytes is a record of {record} (key 8, value {size}: import --value-size)"
        );
        let args = ["import", "alibaba", &blocks, "--value-size", &size];
        let mut said = ok(folder, &[&args[..], &["-o", "b.trz"]].concat());
        assert!(said.contains(&sentence), "import: {said}");
        said = ok(folder, &words("trace info b.trz --json info.json"));
        assert!(said.contains(&sentence), "trace info: {said}");
        let args = ["replay", "b.trz", "--json", "replay.json"];
        said = ok(folder, &[&args[..], &["--html", "page.html"]].concat());
        assert!(said.contains(&sentence), "replay: {said}");
        said = std::fs::read_to_string(folder.join("page.html")).expect("a page");
        assert!(
            said.contains(&sentence),
            "the page must state how blocks are mapped"
        );
        for (name, path) in [("info.json", "/blocks"), ("replay.json", "/trace/blocks")] {
            let json = std::fs::read(folder.join(name)).expect("a document");
            let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
            let expected = serde_json::json!({"block_bytes": 4096, "record_bytes": record});
            assert_eq!(json.pointer(path), Some(&expected), "{name}");
        }
    }
    let keys = sample("twitter.csv");
    let said = ok(folder, &["import", "twitter", &keys, "-o", "k.trz"]);
    assert!(!said.contains("a block of"), "{said}");
    let said = ok(folder, &words("trace info k.trz --json -"));
    assert!(!said.contains("\"blocks\""), "{said}");
    let said = ok(folder, &["replay", "k.trz", "--json", "-"]);
    assert!(!said.contains("\"blocks\""), "{said}");
}

/// Records two writes of two blocks, a flush and a discard.
fn record(path: &Path) {
    use treering_drive::face::{Face, PageCache};
    use treering_drive::recording::event::{FlushKind, Write};
    use treering_drive::recording::{Contents, Event, Extent, Header, NodeId, Recorder, Sink};

    let header = Header::new(Face::Files, 1024, PageCache::WriteBack);
    let recorder = Recorder::create(path, header, Contents::All).expect("begins");
    let node = NodeId(2);
    let extents = vec![Extent { lba: 7, blocks: 2 }];
    for _ in 0..2 {
        let write = Write {
            node,
            offset: 0,
            len: 8192,
            extents: extents.clone(),
            synced: false,
            cached: false,
        };
        recorder.write(write, &[1; 8192]).expect("is taken");
    }
    let kind = FlushKind::File;
    recorder
        .note(Event::Flush { node, kind })
        .expect("is taken");
    recorder
        .note(Event::Discard { node, extents })
        .expect("is taken");
    recorder.finish().expect("is written");
}

#[test]
fn a_recording_of_a_drive_can_be_imported_and_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.log");
    record(&log);
    let import = ["import", "drive", "run.log", "-o", "t.trz"];
    let said = ok(folder.path(), &import);
    let expected = "t.trz: 6 operations from 4 events, 1 flushes left out";
    assert!(said.starts_with(expected), "{said}");
    ok(folder.path(), &["replay", "t.trz"]);

    let whole = std::fs::read(&log).expect("a file");
    std::fs::write(&log, &whole[..whole.len() - 1]).expect("a file");
    let run = treering(folder.path(), &import);
    let warned = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{warned}");
    assert!(warned.contains("it was cut off after 4 events"), "{warned}");

    std::fs::write(&log, "no recording at all").expect("a file");
    let run = treering(folder.path(), &import);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    let expected =
        "run.log: offset 0: expected a recording of `treering drive`, found \"no recor\"";
    assert!(said.contains(expected), "{said}");
}
