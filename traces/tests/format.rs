//! Tests of the trace format: round trips, atomic file replacement, and errors that locate the
//! damage.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use treering_traces::format::MAX_KEY;
use treering_traces::{Header, Op, OpKind, OpSource, TraceError, Writer, open};

fn header() -> Header {
    Header {
        schema: Header::SCHEMA.into(),
        name: "test".into(),
        source: "made up \"here\"".into(),
        ops: 0,
        warmup_ops: 0,
        records: None,
        zeros: 0.5,
        seed: Some(7),
        addresses: false,
    }
}

fn write(path: &Path, ops: &[Op]) -> Header {
    let mut writer = Writer::create(path, header()).unwrap();
    for op in ops {
        writer.write(op).unwrap();
    }
    writer.finish().unwrap()
}

fn read(path: &Path) -> Result<(Header, Vec<Op>), TraceError> {
    let mut reader = open(path)?;
    let mut op = Op::default();
    let mut ops = Vec::new();
    while reader.next_op(&mut op)? {
        ops.push(op.clone());
    }
    assert_eq!(reader.bytes_read(), reader.bytes_total());
    Ok((reader.header().clone(), ops))
}

fn any_op() -> impl Strategy<Value = Op> {
    let key = prop_oneof![
        "[a-z0-9]{0,12}".prop_map(String::into_bytes),
        any::<String>().prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..300),
    ];
    let kind = prop::sample::select(OpKind::ALL.to_vec());
    let time = prop::option::of(prop_oneof![any::<u64>(), 0..1000u64]);
    let client = prop_oneof![Just(0), any::<u32>()];
    (kind, key, any::<u32>(), client, time, any::<Option<u8>>()).prop_map(
        |(kind, key, size, client, time_ns, zeros)| Op {
            kind,
            key,
            value_len: if kind == OpKind::Put { size } else { 0 },
            scan_len: if kind == OpKind::Scan { size } else { 0 },
            client,
            time_ns,
            zeros,
        },
    )
}

proptest! {
    #[test]
    fn every_operation_round_trips_through_both_encodings(
        ops in prop::collection::vec(any_op(), 0..200),
    ) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["t.jsonl", "t.trz"] {
            let path = folder.path().join(name);
            let written = write(&path, &ops);
            let (header, found) = read(&path).unwrap();
            prop_assert_eq!(&header, &written);
            prop_assert_eq!(header.ops, ops.len() as u64);
            prop_assert_eq!(&found, &ops);
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_and_never_panics(
        ops in prop::collection::vec(any_op(), 1..50),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
        cut in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.trz");
        write(&path, &ops);
        let mut bytes = fs::read(&path).unwrap();
        let body = bytes.iter().position(|&b| b == b'\n').unwrap() + 1;
        let at = body + at.index(bytes.len() - body);
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= flip;
        }
        fs::write(&path, &bytes).unwrap();
        let found = read(&path);
        prop_assert!(found.is_err(), "damage at byte {} was not noticed", at);
        let text = found.unwrap_err().to_string();
        prop_assert!(text.contains("expected") && text.contains("t.trz"), "{}", text);
    }
}

#[test]
fn many_blocks_round_trip_and_the_longest_key_fits() {
    let folder = tempfile::tempdir().unwrap();
    let mut ops: Vec<Op> = (0..200_000u64)
        .map(|i| Op {
            kind: OpKind::ALL[(i % 2) as usize],
            key: i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec(),
            value_len: if i % 2 == 1 { 120 } else { 0 },
            client: (i % 3) as u32,
            time_ns: Some(i * 1000),
            ..Op::default()
        })
        .collect();
    ops.push(Op {
        key: vec![0xff; MAX_KEY],
        ..Op::default()
    });
    for name in ["t.jsonl", "t.trz"] {
        let path = folder.path().join(name);
        write(&path, &ops);
        assert!(read(&path).unwrap().1 == ops, "{name} differs");
    }
}

#[test]
fn an_unfinished_writer_leaves_no_file_and_keeps_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["t.jsonl", "t.trz"] {
        let path = folder.path().join(name);
        let old = [Op {
            key: b"old".to_vec(),
            ..Op::default()
        }];
        write(&path, &old);
        let mut writer = Writer::create(&path, header()).unwrap();
        writer.write(&Op::default()).unwrap();
        drop(writer);
        let mut writer = Writer::create(&path, header()).unwrap();
        writer.set_warmup_ops(1);
        assert!(writer.finish().is_err(), "warm-up longer than the trace");
        assert_eq!(read(&path).unwrap().1, old);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn counts_set_after_writing_reach_the_header() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let mut writer = Writer::create(&path, header()).unwrap();
    for _ in 0..3 {
        writer.write(&Op::default()).unwrap();
    }
    writer.set_warmup_ops(2);
    writer.set_records(Some(1));
    let header = writer.finish().unwrap();
    assert_eq!(
        (header.ops, header.warmup_ops, header.records),
        (3, 2, Some(1))
    );
    assert_eq!(open(&path).unwrap().header(), &header);
}

#[test]
fn readable_keys_stay_readable_and_others_become_hex() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let keys: [&[u8]; 4] = [b"user\"7\\", "grün".as_bytes(), b"a\nb", b"\xff\x00"];
    let ops: Vec<Op> = keys
        .iter()
        .map(|k| Op {
            key: k.to_vec(),
            ..Op::default()
        })
        .collect();
    write(&path, &ops);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            r#"{"op":"get","key":"user\"7\\"}"#,
            r#"{"op":"get","key":"grün"}"#,
            r#"{"op":"get","hex":"610a62"}"#,
            r#"{"op":"get","hex":"ff00"}"#,
        ]
    );
}

#[test]
fn operations_that_the_format_cannot_represent_are_refused_on_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(folder.path().join("t.trz"), header()).unwrap();
    let long = Op {
        key: vec![0; MAX_KEY + 1],
        ..Op::default()
    };
    let stray = Op {
        kind: OpKind::Get,
        value_len: 1,
        ..Op::default()
    };
    assert!(
        writer
            .write(&long)
            .unwrap_err()
            .to_string()
            .contains("at most 65535 bytes")
    );
    assert!(
        writer
            .write(&stray)
            .unwrap_err()
            .to_string()
            .contains("puts")
    );
    let wrong = Header {
        zeros: f64::NAN,
        ..header()
    };
    assert!(Writer::create(folder.path().join("u.trz"), wrong).is_err());
}

#[test]
fn errors_name_the_bad_file_the_place_and_what_was_expected() {
    let good = concat!(
        r#"{"schema":"treering.trace/1","name":"n","source":"s","ops":1,"warmup_ops":0,"#,
        r#""records":null,"zeros":0.5,"seed":null}"#
    );
    let with = |line: &str| format!("{good}\n{line}\n");
    let cases: Vec<(&str, String, &str)> = vec![
        (
            "a.txt",
            String::new(),
            "expected a trace ending in .jsonl or .trz, found .txt",
        ),
        ("a", String::new(), "found no extension"),
        (
            "a.jsonl",
            String::new(),
            "line 1: expected a trace's header line, found an empty file",
        ),
        (
            "a.trz",
            "\u{1}\u{2}\n".into(),
            "line 1: expected a header line",
        ),
        (
            "a.jsonl",
            good.replace("trace/1", "trace/9"),
            "expected schema treering.trace/1",
        ),
        (
            "a.jsonl",
            good.replace("0.5", "1.5"),
            "expected zeros between 0 and 1, found 1.5",
        ),
        (
            "a.jsonl",
            good.replace("\"warmup_ops\":0", "\"warmup_ops\":2"),
            "warm-up",
        ),
        (
            "a.jsonl",
            good.into(),
            "end of file: expected 1 operations, as the header says, found 0",
        ),
        ("a.trz", good.into(), "end of file: expected 1 operations"),
        (
            "a.jsonl",
            with("{\"op\":\"get\"}"),
            "line 2: expected either \"key\" or \"hex\"",
        ),
        (
            "a.jsonl",
            with("{\"op\":\"get\",\"key\":\"a\",\"hex\":\"00\"}"),
            "either",
        ),
        (
            "a.jsonl",
            with("{\"op\":\"get\",\"hex\":\"0\"}"),
            "pairs of hexadecimal digits",
        ),
        (
            "a.jsonl",
            with("{\"op\":\"get\",\"hex\":\"+1\"}"),
            "pairs of hexadecimal digits",
        ),
        (
            "a.jsonl",
            with("{\"op\":\"put\",\"key\":\"a\"}"),
            "\"value\" (bytes) on puts",
        ),
        (
            "a.jsonl",
            with("{\"op\":\"get\",\"key\":\"a\",\"value\":1}"),
            "on nothing else",
        ),
        (
            "a.jsonl",
            with("{\"op\":\"scan\",\"key\":\"a\"}"),
            "\"scan\" (records) on scans",
        ),
        (
            "a.jsonl",
            with("{\"op\":\"get\",\"key\":\"a\",\"valu\":1}"),
            "unknown field",
        ),
        (
            "a.jsonl",
            with("{\"op\":\"put\",\"key\":\"a\",\"value\":-1}"),
            "line 2: expected an op",
        ),
        (
            "a.jsonl",
            with("{\"op\":\"put\",\"key\":\"a\",\"value\":4294967296}"),
            "line 2",
        ),
        (
            "a.jsonl",
            with("{\"op\":\"frob\",\"key\":\"a\"}"),
            "unknown variant",
        ),
        (
            "a.jsonl",
            with("{\"op\":\"get\",\"key\":\"a\""),
            "line 2: expected an operation",
        ),
        ("a.trz", with("rubbish"), "block 1"),
        (
            "a.trz",
            with(&"rubbish".repeat(9)),
            "expected a block beginning with TRZ1",
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, content, expected) in cases {
        let path = folder.path().join(name);
        fs::write(&path, &content).unwrap();
        let found = read(&path).expect_err(&content).to_string();
        assert!(
            found.contains(expected),
            "{content}\n  gives   {found}\n  without {expected}"
        );
    }
    let missing = read(&folder.path().join("none.trz")).unwrap_err();
    assert!(matches!(missing, TraceError::Io { .. }));
}

#[test]
fn oversized_block_lengths_are_refused_before_allocating() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trz");
    write(&path, &[Op::default()]);
    let bytes = fs::read(&path).unwrap();
    let body = bytes.iter().position(|&b| b == b'\n').unwrap() + 1;
    for field in 1..5 {
        let mut bytes = bytes.clone();
        bytes[body + 4 * field..body + 4 * field + 4].copy_from_slice(&[0xff; 4]);
        fs::write(&path, &bytes).unwrap();
        let found = read(&path).unwrap_err().to_string();
        assert!(
            found.contains("block 1") && found.contains("in at most"),
            "{found}"
        );
    }
}
