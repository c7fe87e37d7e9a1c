//! The bundled samples import as the documentation of their formats specifies.

mod support;

use std::path::Path;

use support::binary::{CacheRequest, lcs};
use support::{Imported, block, get, key, put, run, run_bytes, same};
use treering_traces::Op;
use treering_traces::OpKind::{Delete, Get, Put};
use treering_traces::import::{Format, ImportOptions, OracleOp, import};

/// Imports a file from `traces/samples`.
fn sample_with(format: Format, name: &str, options: &ImportOptions) -> Imported {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let mut ops = Vec::new();
    let report = import(format, &samples.join(name), options, &mut |op: &Op| {
        ops.push(op.clone());
        Ok(())
    })?;
    Ok((ops, report))
}

fn sample(format: Format, name: &str) -> Imported {
    sample_with(format, name, &ImportOptions::default())
}

#[test]
fn alibaba_offsets_are_bytes_and_times_microseconds() {
    let mut expected = vec![block(Get, 0, 126_703_644_672 / 4096, 0)];
    expected.extend((0..4).map(|i| block(Put, 0, 750_000 + i, 476_000)));
    // 512 is not a multiple of 4096, so the request touches two blocks.
    expected.extend((0..2).map(|i| block(Put, 1, i, 1_274_000)));
    let report = same(sample(Format::Alibaba, "alibaba.csv"), &expected);
    assert_eq!((report.lines, report.devices), (3, 2));
    let headed = "device_id,opcode,offset,length,timestamp\n3,W,0,1,5\n";
    same(run(Format::Alibaba, headed), &[block(Put, 0, 0, 0)]);
}

#[test]
fn tencent_offsets_and_sizes_are_sectors_and_io_type_1_is_a_write() {
    let mut expected: Vec<Op> = (0..16)
        .map(|i| block(Get, 0, 12_910_952 / 8 + i, 0))
        .collect();
    expected.push(block(Put, 1, 6_338_688 / 8, 0));
    expected.push(block(Put, 0, 12_910_952 / 8, 1_000_000_000));
    let report = same(sample(Format::Tencent, "tencent.csv"), &expected);
    assert_eq!((report.lines, report.devices), (3, 2));
    let headed = "Timestamp,Offset,Size,IOType,VolumeID\n1,8,8,1,5\n";
    same(run(Format::Tencent, headed), &[block(Put, 0, 1, 0)]);
}

#[test]
fn systor_requests_of_unknown_type_are_skipped() {
    let other = 899_056_122_368 / 4096;
    let expected = [
        block(Put, 0, 1_998_229_504 / 4096, 0),
        block(Get, 1, other, 132_000),
        block(Get, 1, other + 1, 132_000),
        // 899056122368 is not a multiple of 4096, so two blocks of data touch three blocks.
        block(Get, 1, other + 2, 132_000),
        block(Get, 0, 1_998_229_504 / 4096, 501_000_000),
    ];
    let report = same(sample(Format::Systor, "systor.csv"), &expected);
    assert_eq!((report.lines, report.devices, report.left_out), (5, 2, 1));
    assert!(report.warnings[0].contains("1 × request of unknown type"));
}

#[test]
fn cachelib_reads_the_columns_and_ttls_of_2022_and_2024() {
    let expected = [
        put("1668757755", 82, None),
        get("1668757755", None),
        get("1668757755", None),
        get("1665497896", None),
        Op {
            kind: Delete,
            ..get("1665497896", None)
        },
    ];
    let report = same(sample(Format::Cachelib, "cachelib-2022.csv"), &expected);
    assert!(report.warnings[0].contains("1 puts have a time to live but no time"));
    // A file without a header line imports the same: the position of the operation column shows
    // which order the columns have.
    let bare = "1668757755,SET,82,1,40,3600\n1668757755,GET,0,2,40,0\n";
    same(run(Format::Cachelib, bare), &expected[..3]);

    let second = 1_000_000_000;
    let expected = [
        put("82131353f9ddc8c6", 87, Some(0)),
        put("a54f88ab02ece24d", 65, Some(second)),
        Op {
            kind: Delete,
            ..get("82131353f9ddc8c6", Some(2 * second))
        },
        get("82131353f9ddc8c6", Some(3 * second)),
    ];
    let report = same(sample(Format::Cachelib, "cachelib-2024.csv"), &expected);
    assert_eq!((report.lines, report.expired), (4, 1));
}

#[test]
fn twitter_keys_expire() {
    let second = 1_000_000_000;
    let first = "nz:u:eeW511W3dcH3de3d15ec";
    let by = |client, op: Op| Op { client, ..op };
    let delete = |key, time| Op {
        kind: Delete,
        ..get(key, Some(time))
    };
    let expected = [
        put(first, 350, Some(0)),
        get(first, Some(4 * second)),
        by(1, put("nz:u:k2", 40, Some(9 * second))),
        delete(first, 10 * second),
        by(1, delete("nz:u:k2", 12 * second)),
        get("nz:u:k2", Some(30 * second)),
    ];
    let report = same(sample(Format::Twitter, "twitter.csv"), &expected);
    assert_eq!((report.lines, report.expired), (4, 2));
}

#[test]
fn fio_version_3_is_read_and_times_of_appended_runs_continue() {
    let mut expected: Vec<Op> = (0..4).map(|i| block(Put, 0, i, 0)).collect();
    expected.push(block(Get, 0, 1, 126_000));
    expected.extend([2, 3].map(|i| block(Delete, 0, i, 372_000)));
    let report = same(sample(Format::Fio, "fio-v3.log"), &expected);
    assert_eq!((report.lines, report.devices, report.left_out), (8, 1, 1));
    assert!(report.warnings[0].contains("1 × sync"));

    let run_of =
        |offset| format!("fio version 3 iolog\n1 f add\n5 f write {offset} 4096\n9 f close\n");
    let twice = run_of(0) + &run_of(8192);
    let expected = [block(Put, 0, 0, 0), block(Put, 0, 2, 9000)];
    same(run(Format::Fio, &twice), &expected);
}

#[test]
fn block_cache_lookups_are_gets_of_block_numbers() {
    let look_up = |block, time| Op {
        key: key(0, block),
        ..get("", Some(time))
    };
    let expected = [look_up(1, 0), look_up(2, 68_000), look_up(1, 432_000)];
    let report = same(sample(Format::BlockCache, "block-cache.csv"), &expected);
    assert_eq!((report.lines, report.devices), (3, 0));
}

#[test]
fn blktrace_recordings_of_both_byte_orders_are_read() {
    let expected = [
        block(Get, 0, 540_544 / 8, 0),
        block(Put, 0, 540_656 / 8, 1000),
        block(Put, 0, 540_656 / 8 + 1, 1000),
        block(Delete, 0, 1, 1500),
        block(Put, 1, 2, 3000),
    ];
    for name in ["sda.blktrace", "sda-big-endian.blktrace"] {
        let report = same(sample(Format::Blktrace, name), &expected);
        assert_eq!((report.lines, report.devices, report.left_out), (9, 2, 2));
        let names = "1 × passed-through command, 1 × request without data";
        assert!(report.warnings[0].contains(names), "{:?}", report.warnings);
    }
}

#[test]
fn lcs_version_1_imports_like_oracle_general() {
    let at = |kind, id, value_len, seconds: u64| Op {
        kind,
        key: key(0, id),
        value_len,
        time_ns: Some(seconds * 1_000_000_000),
        ..Op::default()
    };
    let gets = [
        at(Get, 42_932_745, 0, 0),
        at(Get, 7, 0, 1),
        at(Get, 42_932_745, 0, 30),
    ];
    let report = same(sample(Format::Lcs, "v1.lcs.zst"), &gets);
    assert!(report.warnings[0].contains("lcs version 1 has no write flag"));
    let options = |oracle_op| ImportOptions {
        oracle_op: Some(oracle_op),
        ..ImportOptions::default()
    };
    let puts = [
        at(Put, 42_932_745, 512, 0),
        at(Put, 7, 100, 1),
        at(Put, 42_932_745, 512, 30),
    ];
    let found = sample_with(Format::Lcs, "v1.lcs.zst", &options(OracleOp::Put));
    assert!(same(found, &puts).warnings.is_empty());
    let found = sample_with(Format::Lcs, "v1.lcs.zst", &options(OracleOp::Recorded));
    let found = found.unwrap_err().to_string();
    assert!(
        found.contains("header: expected an lcs version from 2 on"),
        "{found}"
    );
}

#[test]
fn lcs_version_3_has_operations_tenants_and_ttls() {
    let at = |kind, id, value_len, client, seconds: u64| Op {
        kind,
        key: key(0, id),
        value_len,
        client,
        time_ns: Some(seconds * 1_000_000_000),
        ..Op::default()
    };
    let expected = [
        at(Put, 42_932_745, 512, 0, 0),
        at(Get, 7, 0, 1, 1),
        at(Put, 8, 64, 0, 2),
        at(Delete, 42_932_745, 0, 0, 10),
        at(Get, 42_932_745, 0, 0, 20),
        at(Delete, 8, 0, 1, 30),
    ];
    let report = same(sample(Format::Lcs, "v3.lcs.zst"), &expected);
    assert_eq!((report.lines, report.expired), (5, 1));
}

#[test]
fn lcs_record_length_depends_on_the_version() {
    let request = |id, op| CacheRequest {
        id,
        op,
        size: 9,
        ..CacheRequest::default()
    };
    let requests = [request(1, 3), request(2, 1), request(3, 9)];
    for version in 1..=8 {
        let trace = lcs(version, &requests);
        let found = run_bytes(Format::Lcs, &trace, &ImportOptions::default());
        let (ops, report) = found.unwrap();
        let ids: Vec<_> = ops.iter().map(|op| op.key.clone()).collect();
        assert_eq!(ids, [1, 2, 3].map(|id| key(0, id)), "version {version}");
        let kinds: Vec<_> = ops.iter().map(|op| op.kind).collect();
        let expected = if version == 1 {
            [Get; 3]
        } else {
            [Put, Get, Delete]
        };
        assert_eq!(kinds, expected, "version {version}");
        assert_eq!(report.warnings.len(), usize::from(version == 1));
    }
}
