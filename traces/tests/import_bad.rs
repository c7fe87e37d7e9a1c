//! Empty, truncated and foreign input. Each error is one sentence that states the file, the place
//! and what was expected.

mod support;

use proptest::prelude::*;
use support::binary::{CacheRequest, Event, blktrace, lcs, lcs_header, oracle};
use support::{run, run_bytes};
use treering_traces::OpKind::Put;
use treering_traces::import::{Format, ImportOptions, OracleOp};

#[track_caller]
fn refused(format: Format, content: impl AsRef<[u8]>, expected: &str) {
    let options = ImportOptions::default();
    let found = match run_bytes(format, content.as_ref(), &options) {
        Err(error) => error.to_string(),
        Ok((ops, _)) => panic!("{format}: expected the error `{expected}`, found {ops:?}"),
    };
    assert!(
        found.contains(expected) && found.contains("input, ") && !found.contains('\n'),
        "{format}\n  {found}\n  {expected}"
    );
}

#[test]
fn malformed_cloud_block_trace_lines_are_refused() {
    use Format::{Alibaba, Systor, Tencent};
    for format in [Alibaba, Tencent, Systor] {
        refused(format, "", "end of file: expected at least one operation");
        refused(format, "\u{0}\u{1}garbage\n", "line 1: expected");
    }
    let cases = [
        (
            Alibaba,
            "0,R,0,4096\n",
            "line 1: expected 5 columns, `device_id,",
        ),
        (
            Alibaba,
            "0,D,0,4096,5\n",
            "expected opcode R or W, found `D`",
        ),
        (Alibaba, "x,R,0,4096,5\n", "a device id, a whole number"),
        (
            Alibaba,
            "0,R,-1,4096,5\n",
            "an offset in bytes, a whole number",
        ),
        (
            Alibaba,
            "0,R,0,4096,1.5\n",
            "a timestamp in us, a whole number",
        ),
        (
            Alibaba,
            "device_id,opcode,offset,length,timestamp\n0,R,0,0,1\n",
            "found none (1 operations have no counterpart",
        ),
        (
            Tencent,
            "1,0,8,0\n",
            "line 1: expected 5 columns, `Timestamp,",
        ),
        (
            Tencent,
            "1,0,8,2,9\n",
            "1 for a write or 0 for a read, found `2`",
        ),
        (Tencent, "1,0,8,1,vol\n", "a volume id, a whole number"),
        (
            Tencent,
            "1,36028797018963968,8,1,9\n",
            "an offset in sectors of at most",
        ),
        (Systor, "1.5,0.1,R,0,0\n", "line 1: expected 6 columns"),
        (
            Systor,
            "1.5,0.1,X,0,0,4096\n",
            "expected type R, W or blank, found `X`",
        ),
        (
            Systor,
            "1.5,slow,R,0,0,4096\n",
            "a response time in seconds",
        ),
        (Systor, "1.5,0.1,,0,x,4096\n", "an offset in bytes"),
        (
            Systor,
            "Timestamp,Response,IOType,LUN,Offset,Size\n",
            "expected at least one operation",
        ),
    ];
    for (format, content, expected) in cases {
        refused(format, content, expected);
    }
    // A last line cut short by an interrupted copy is skipped with a warning.
    let (ops, report) = run(Alibaba, "0,R,0,4096,5\n0,R,4096,40").unwrap();
    assert_eq!(ops.len(), 1);
    assert!(report.warnings[0].contains("the last line (2) is cut short"));
    // The error names the format that the input looks like.
    refused(Tencent, "0,R,0,4096,5\n", "(the input reads as alibaba)");
}

#[test]
fn malformed_block_cache_lines_are_refused() {
    let good = "5,1,9,4096,0,default,1,12,1,0,7,3,120,1,1,40,13,0,16,24,8192\n";
    let of = |from, to| good.replacen(from, to, 1);
    let cases = [
        (String::new(), "expected at least one operation"),
        (
            "1,2,3\n".into(),
            "line 1: expected 21 columns, `time_us,block_id,",
        ),
        (
            of(",9,", ",3,"),
            "expected a block type from 7 to 11, found `3`",
        ),
        (of("5,1,", "5,-1,"), "expected a block id, a whole number"),
        (
            of(",12,", ",x,"),
            "expected a level, a file, a caller and so on",
        ),
        (of("5,", "soon,"), "expected a time in us"),
    ];
    for (content, expected) in cases {
        refused(Format::BlockCache, content, expected);
    }
    refused(Format::Rocksdb, good, "(the input reads as block-cache)");
}

#[test]
fn damaged_fio_version_3_logs_are_refused() {
    let cases = [
        ("", "expected at least one operation"),
        (
            "1 f write 0 4096\n",
            "line 1: expected `fio version 2 iolog` or 3",
        ),
        (
            "fio version 3 iolog\nf write 0 4096\n",
            "line 2: expected a timestamp in us",
        ),
        (
            "fio version 3 iolog\n5 f write 0\n",
            "expected `timestamp filename action",
        ),
        (
            "fio version 3 iolog\n5 f write 0 1 2\n",
            "expected `timestamp filename action",
        ),
        (
            "fio version 3 iolog\n5 f wait 10 0\n",
            "expected a fio action",
        ),
    ];
    for (content, expected) in cases {
        refused(Format::Fio, content, expected);
    }
}

/// A write request at a given block, issued to the driver.
fn issued(block: u64) -> Event<'static> {
    Event {
        time_ns: 1000 + block,
        sector: block * 8,
        bytes: 4096,
        action: 7 | (1 << 6 | 1 << 1) << 16,
        device: (8, 0),
        tail: b"tail of five and more",
    }
}

#[test]
fn damaged_blktrace_recordings_are_refused_or_read_up_to_the_damage() {
    let one = blktrace(issued(1), 7, false);
    refused(Format::Blktrace, "", "expected at least one operation");
    for garbage in [&[0; 4800][..], b"eat", &[0xa5; 96]] {
        refused(
            Format::Blktrace,
            garbage,
            "record 1 at byte 0: expected a blktrace record, which begins with 0x65617407",
        );
    }
    refused(
        Format::Blktrace,
        &one[..30],
        "record 1 at byte 0: expected records of 48 bytes, found 30 bytes",
    );
    refused(
        Format::Blktrace,
        blktrace(issued(1), 8, true),
        "record 1 at byte 0: expected a blktrace record of version 7, which begins with \
         0x65617407, found 0x65617408",
    );
    let damaged = [&one[..], &[0xff; 48]].concat();
    let place = format!("record 2 at byte {}: expected a blktrace record", one.len());
    refused(Format::Blktrace, damaged, &place);
    let far = Event {
        sector: u64::MAX / 8,
        ..issued(1)
    };
    refused(
        Format::Blktrace,
        blktrace(far, 7, false),
        "expected a sector that",
    );
    // Cut off in the second record, then in its tail.
    for keep in [one.len() + 20, 2 * one.len() - 1] {
        let cut = &[&one[..], &one].concat()[..keep];
        let found = run_bytes(Format::Blktrace, cut, &ImportOptions::default());
        let (ops, report) = found.unwrap();
        assert_eq!(ops.len(), 1);
        assert!(report.warnings[0].contains("the last record is cut short after"));
    }
    refused(Format::Msr, &one, "(the input reads as blktrace)");
}

#[test]
fn blktrace_tails_may_span_read_chunks_and_queued_requests_are_the_fallback() {
    let tail = vec![7; 65_535];
    let long = |block| Event {
        action: 1 | (1 << 4 | 1 << 1) << 16,
        tail: &tail[..65_535 - block as usize * 97],
        ..issued(block)
    };
    let recording: Vec<u8> = (0..40).flat_map(|i| blktrace(long(i), 7, false)).collect();
    let found = run_bytes(Format::Blktrace, &recording, &ImportOptions::default());
    let (ops, report) = found.unwrap();
    assert_eq!((ops.len(), report.lines), (40, 40));
    for (i, op) in ops.iter().enumerate() {
        assert_eq!((op.kind, op.time_ns), (Put, Some(i as u64)));
        assert_eq!(op.key, (i as u64).to_be_bytes());
    }
}

#[test]
fn lcs_headers_and_counts_are_checked() {
    let request = CacheRequest {
        id: 1,
        op: 3,
        ..CacheRequest::default()
    };
    let good = lcs(3, &[request; 3]);
    let with = |at: usize, field: u64| {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&field.to_le_bytes());
        bytes
    };
    let minus = (-1i64) as u64;
    let cases = [
        (vec![], "expected at least one operation"),
        (
            b"short".to_vec(),
            "header: expected a header of 8192 bytes, found 5 bytes",
        ),
        (
            vec![0; 9000],
            "header: expected the lcs magic 0x123456789abcdef0 at byte 0",
        ),
        (
            with(8184, 7),
            "header: expected the lcs magic 0x123456789abcdef0 at byte 8184",
        ),
        (
            with(8, 0),
            "header: expected an lcs version from 1 to 8, found 0",
        ),
        (
            with(8, 9),
            "header: expected an lcs version from 1 to 8, found 9",
        ),
        (
            with(24, minus),
            "expected a number of requests, 0 or more, found -1",
        ),
        (
            with(32, 4),
            "expected at most 3 objects, as many as there are requests, found 4",
        ),
        (
            with(48, minus),
            "expected a number of bytes of objects, 0 or more",
        ),
        (
            with(24, 2),
            "record 3 at byte 8264: expected the end of the trace after 2 requests",
        ),
        (
            with(8192 + 28, 1 << 50),
            "record 1 at byte 8192: expected a request with the number",
        ),
        (
            with(8192 + 12, 1 << 32),
            "expected an object size of at most 4294967295 bytes",
        ),
        (
            with(8192 + 20, 15),
            "expected an operation from 0 to 14, found 15",
        ),
        (good[..8192].to_vec(), "expected at least one operation"),
        (
            good[..8200].to_vec(),
            "record 1 at byte 8192: expected records of 36 bytes, found 8",
        ),
    ];
    for (content, expected) in cases {
        refused(Format::Lcs, content, expected);
    }
    let (ops, report) = run_bytes(Format::Lcs, &with(24, 5), &ImportOptions::default()).unwrap();
    assert_eq!(ops.len(), 3);
    let said = "the header says 5 requests, and 3 are there: the trace is cut short";
    assert_eq!(report.warnings, [said]);
    let cut = &good[..good.len() - 1];
    let (ops, report) = run_bytes(Format::Lcs, cut, &ImportOptions::default()).unwrap();
    assert_eq!((ops.len(), report.warnings.len()), (2, 2));
    refused(
        Format::OracleGeneral,
        lcs_header(3, 0, 0),
        "(the input reads as lcs)",
    );
    // Some writers do not know the operation and store 0. Then the option decides.
    let unknown = lcs(2, &[CacheRequest { op: 0, ..request }; 2]);
    refused(Format::Lcs, &unknown, "2 operations have no counterpart");
    let options = ImportOptions {
        oracle_op: Some(OracleOp::Put),
        ..ImportOptions::default()
    };
    let (ops, _) = run_bytes(Format::Lcs, &unknown, &options).unwrap();
    assert!(ops.iter().all(|op| op.kind == Put) && ops.len() == 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_input_never_makes_a_binary_importer_panic_or_hang(
        is_big in any::<bool>(),
        version in 1..9u64,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        keep in any::<prop::sample::Index>(),
        skip_bad in 0..3u64,
    ) {
        let request = CacheRequest { id: 1, op: 3, ttl_s: 1, ..CacheRequest::default() };
        let recording: Vec<u8> = (0..3).flat_map(|i| blktrace(issued(i), 7, is_big)).collect();
        let options = ImportOptions { skip_bad, ..ImportOptions::default() };
        let traces = [
            (Format::Blktrace, recording),
            (Format::Lcs, lcs(version, &[request; 3])),
        ];
        for (format, mut bytes) in traces {
            for (at, byte) in &damage {
                // Both ends of the header, and the bytes after it.
                let at = at.index(200);
                let at = if at < 100 || bytes.len() < 8192 { at } else { 8192 + at - 100 };
                if let Some(at) = bytes.get_mut(at) {
                    *at = *byte;
                }
            }
            bytes.truncate(keep.index(2 * bytes.len()));
            if let Err(error) = run_bytes(format, &bytes, &options) {
                let text = error.to_string();
                prop_assert!(text.contains("expected") && !text.contains('\n'), "{}", text);
            }
        }
    }
}

/// Neither form of oracle-general has a magic number, and the first records of one form may be
/// valid in the other. So the length of the input decides, and the error names the form that fits
/// it.
#[test]
fn a_record_length_mismatch_names_the_option_that_fits() {
    let request = |id: u64| CacheRequest {
        time_s: 7,
        id,
        size: 512,
        op: 3,
        ..CacheRequest::default()
    };
    let with_next = |mut record: Vec<u8>, next: u64| {
        let at = record.len() - 8;
        record[at..].copy_from_slice(&next.to_le_bytes());
        record
    };
    // A next access time with few digits is also valid in the shorter record.
    let long: Vec<u8> = (1..40)
        .flat_map(|id| with_next(oracle(request(id)), id + 100))
        .collect();
    let short: Vec<u8> = (1..40)
        .flat_map(|id| {
            let mut record = with_next(oracle(request(id)), id + 100);
            record.drain(16..19);
            record
        })
        .collect();
    assert!(long.len().is_multiple_of(27) && short.len().is_multiple_of(24));
    let recorded = "records of 27 bytes, which --oracle-op recorded reads)";
    for what in [None, Some(OracleOp::Get)] {
        let options = ImportOptions {
            oracle_op: what,
            ..ImportOptions::default()
        };
        let found = run_bytes(Format::OracleGeneral, &long, &options);
        let found = found.expect_err("records of another length").to_string();
        assert!(found.contains(recorded), "{found}");
    }
    let options = ImportOptions {
        oracle_op: Some(OracleOp::Recorded),
        ..ImportOptions::default()
    };
    assert!(run_bytes(Format::OracleGeneral, &long, &options).is_ok());
    let found = run_bytes(Format::OracleGeneral, &short, &options);
    let found = found.expect_err("records of another length").to_string();
    assert!(
        found.contains("records of 24 bytes, which --oracle-op get or put reads)"),
        "{found}"
    );
    // Skipping bad records hides the problem, but the length still reveals it.
    let options = ImportOptions {
        skip_bad: 1000,
        ..ImportOptions::default()
    };
    let (_, report) = run_bytes(Format::OracleGeneral, &long, &options).expect("skipped");
    let warned = report.warnings.iter().any(|warning| {
        warning.contains("1053 bytes is not a multiple of the record length, 24")
            && warning.contains("--oracle-op recorded")
    });
    assert!(warned, "{:?}", report.warnings);
}
