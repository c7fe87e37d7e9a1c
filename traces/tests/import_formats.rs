//! For every text and binary format: records are mapped to the right operations.

mod support;

use support::{block, get, key, put, run, run_bytes, run_csv, same};
use treering_traces::Op;
use treering_traces::OpKind::{Delete, Get, Put, Scan};
use treering_traces::import::{Format, ImportOptions, OracleOp};

#[test]
fn mqsim_requests_become_blocks_of_4_kib() {
    // 16 sectors from sector 264719034 are bytes 135536145408 to 135536153600: two blocks of data
    // that touch three blocks.
    let text = "938513000 4 264719034 16 0\n938828000 3 197570568 8 1\n";
    let first = 264_719_034 * 512 / 4096;
    let expected = [
        block(Put, 0, first, 0),
        block(Put, 0, first + 1, 0),
        block(Put, 0, first + 2, 0),
        block(Get, 1, 197_570_568 / 8, 315_000),
    ];
    let report = same(run(Format::Mqsim, text), &expected);
    assert_eq!(
        (report.lines, report.devices, report.warnings.len()),
        (2, 2, 0)
    );
}

#[test]
fn disksim_times_are_milliseconds_and_flag_bit_0_marks_reads() {
    let text = "0.000000 0 41568 8 0\n1.250000 0 90112 16 1\n";
    let expected = [
        block(Put, 0, 5196, 0),
        block(Get, 0, 11264, 1_250_000),
        block(Get, 0, 11265, 1_250_000),
    ];
    same(run(Format::Disksim, text), &expected);
}

#[test]
fn msr_disks_are_distinguished_by_host_and_number() {
    let text = "128166372003061629,hm,0,Write,7014912,4096,26\r\n\
                128166372016382155,hm,0,Read,1074696192,4096,113\r\n\
                128166372016382156,hm,1,Read,0,4096,113\r\n\
                128166372016382157,usr,0,Read,0,4096,113\r\n";
    let expected = [
        // 7014912 is not a multiple of 4096, so the request touches two blocks.
        block(Put, 0, 1712, 0),
        block(Put, 0, 1713, 0),
        block(Get, 0, 262_377, 1_332_052_600),
        block(Get, 1, 0, 1_332_052_700),
        block(Get, 2, 0, 1_332_052_800),
    ];
    let report = same(run(Format::Msr, text), &expected);
    assert_eq!(report.devices, 3);
}

#[test]
fn spc_opcodes_ignore_case_and_extra_columns_are_skipped() {
    let text = "0,303567,3584,w,0.000000\n1,55590,3072,R,0.5,extra,columns\n";
    let expected = [
        block(Put, 0, 303_567 * 512 / 4096, 0),
        block(Put, 0, 303_567 * 512 / 4096 + 1, 0),
        block(Get, 1, 55_590 * 512 / 4096, 500_000_000),
        block(Get, 1, 55_590 * 512 / 4096 + 1, 500_000_000),
    ];
    // 303567 × 512 is 3584 bytes into its block, so 3584 bytes reach into the next one. 55590 × 512
    // is 3072 bytes into its block.
    same(run(Format::Spc, text), &expected);
}

#[test]
fn cloudphysics_lines_carry_scsi_codes() {
    let text = "version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633899,28,512,42932746\n\
                1,5633899,42,4096,8\n1,5633899,35,0,0\n";
    let expected = [
        block(Put, 0, 42_932_745 / 8, 0),
        block(Get, 0, 42_932_746 / 8, 1_000_000_000),
        block(Delete, 0, 1, 1_000_000_000),
    ];
    let report = same(run(Format::Cloudphysics, text), &expected);
    assert_eq!(report.left_out, 1);
    assert!(
        report.warnings[0].contains("1 × SCSI 35"),
        "{:?}",
        report.warnings
    );
}

fn vscsi(version: u8, cmd: u16, len: u32, lbn: u64, ts: u64) -> Vec<u8> {
    let (sn, groups) = (2_147_483_892u32.to_le_bytes(), 1u32.to_le_bytes());
    let cmd = [cmd.to_le_bytes(), [0, version]].concat();
    let len = len.to_le_bytes();
    let head = match version {
        1 => [sn, len, groups]
            .concat()
            .into_iter()
            .chain(cmd)
            .collect::<Vec<u8>>(),
        _ => cmd.into_iter().chain([sn, len, groups].concat()).collect(),
    };
    let tail = if version == 1 { vec![] } else { vec![0; 8] };
    [
        head,
        lbn.to_le_bytes().to_vec(),
        ts.to_le_bytes().to_vec(),
        tail,
    ]
    .concat()
}

#[test]
fn vscsi_reads_both_versions_and_warns_of_a_truncated_record() {
    for version in [1, 2] {
        let mut bytes = vscsi(version, 0x2a, 512, 42_932_745, 5_633_898_368_802);
        bytes.extend(vscsi(version, 0x28, 512, 42_932_746, 5_633_898_611_441));
        bytes.extend(vscsi(version, 0x42, 8192, 16, 5_633_898_611_441));
        let expected = [
            block(Put, 0, 42_932_745 / 8, 0),
            block(Get, 0, 42_932_746 / 8, 242_639_000),
            block(Delete, 0, 2, 242_639_000),
            block(Delete, 0, 3, 242_639_000),
        ];
        same(
            run_bytes(Format::Vscsi, &bytes, &ImportOptions::default()),
            &expected,
        );
        bytes.truncate(bytes.len() - 1);
        let found = run_bytes(Format::Vscsi, &bytes, &ImportOptions::default());
        let report = same(found, &expected[..2]);
        assert!(report.warnings[0].contains("last record is cut short"));
    }
    let mut mixed = vscsi(1, 0x2a, 512, 0, 0);
    mixed.extend([0; 32]);
    let found = run_bytes(Format::Vscsi, &mixed, &ImportOptions::default()).unwrap_err();
    assert!(
        found
            .to_string()
            .contains("record 2 at byte 32: expected a vscsi record"),
        "{found}"
    );
}

#[test]
fn fio_version_2_times_are_sums_of_waits() {
    let text = "fio version 2 iolog\n/dev/mapper/cachedev add\n/dev/mapper/cachedev open\n\
                /dev/mapper/cachedev read 0 4096\n/dev/mapper/cachedev wait 1000 0\n\
                /dev/mapper/cachedev write 4096 4096\n/dev/mapper/cachedev sync 0 0\n\
                /dev/mapper/cachedev wait 500 0\n\
                /dev/sdb trim 0 8192\n/dev/mapper/cachedev close\n";
    let expected = [
        Op {
            time_ns: None,
            ..block(Get, 0, 0, 0)
        },
        block(Put, 0, 1, 0),
        block(Delete, 1, 0, 500_000),
        block(Delete, 1, 1, 500_000),
    ];
    let report = same(run(Format::Fio, text), &expected);
    assert!(report.warnings[0].contains("1 × sync"));
}

#[test]
fn fio_version_3_lines_begin_with_microseconds() {
    let text = "fio version 3 iolog\n2 Nvme1n1 add\n872 Nvme1n1 open\n878 Nvme1n1 write 0 8192\n\
                880 Nvme1n1 read 4096 4096\n";
    let expected = [
        block(Put, 0, 0, 0),
        block(Put, 0, 1, 0),
        block(Get, 0, 1, 2000),
    ];
    same(run(Format::Fio, text), &expected);
    let found = run(Format::Fio, "fio version 9 iolog\n")
        .unwrap_err()
        .to_string();
    assert!(
        found.contains("line 1: expected `fio version 2 iolog` or 3"),
        "{found}"
    );
}

#[test]
fn blkparse_takes_issued_requests_and_skips_the_summary() {
    let text = "  8,33  30        1     0.001368096  5025  Q   R 540544 + 8 [systemd-udevd]
  8,33  30        1     0.001368096  5025  D   R 540544 + 8 [systemd-udevd]
  8,33  30        2     0.001503478  5025  D  WS 540656 + 16 [systemd-udevd]
  8,33  30        3     0.001503479  5025  D  FN [kworker/30:1]
  8,33  30        4     0.001503480  5025  D  DS 8 + 8 [fstrim]
  8,33  30        5     0.001503481  5025  D   R 36 (12 00 00 00 24 00) [hdparm]
  8,33  30        6     0.001503490     0  C   R 540544 + 8 [0]
CPU30 (8,33):
 Reads Queued:           2,        8KiB\t Writes Queued:           0,        0KiB
";
    let expected = [
        block(Get, 0, 540_544 / 8, 0),
        block(Put, 0, 540_656 / 8, 135_382),
        block(Put, 0, 540_656 / 8 + 1, 135_382),
        block(Delete, 0, 1, 135_384),
    ];
    let report = same(run(Format::Blkparse, text), &expected);
    assert_eq!(
        report.left_out, 2,
        "the flush and the passed-through command"
    );
}

#[test]
fn blkparse_without_issues_falls_back_to_queued_requests() {
    let text =
        "8,0 0 1 1.0 1 Q W 0 + 8 [a]\n8,0 0 1 2.0 1 C W 0 + 8 [a]\n8,16 0 1 3.0 1 Q R 8 + 8 [a]\n";
    let expected = [block(Put, 0, 0, 0), block(Get, 1, 1, 2_000_000_000)];
    let report = same(run(Format::Blkparse, text), &expected);
    assert_eq!(report.lines, 3);
}

#[test]
fn csv_covers_systor_alibaba_tencent_fiu_and_cloudphysics() {
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                1455592371.108214,0.000531,W,2,1998229504,4096\n1455592372.108214,,R,3,0,4096\n";
    let expected = [block(Put, 0, 487_849, 0), block(Get, 1, 0, 1_000_000_000)];
    let spec = "time=1:s,op=3,device=4,offset=5:bytes,size=6:bytes";
    same(run_csv(spec, text), &expected);
    let by_name = "time=Timestamp,op=IOType,device=LUN,offset=Offset,size=Size";
    same(run_csv(by_name, text), &expected);

    let text = "0,R,126703644672,4096,1577808000000626\n0,W,3072000000,16384,1577808000001102\n";
    let mut expected = vec![block(Get, 0, 30_933_507, 0)];
    expected.extend((0..4).map(|i| block(Put, 0, 750_000 + i, 476_000)));
    same(
        run_csv("device=1,op=2,offset=3:bytes,size=4:bytes,time=5:us", text),
        &expected,
    );

    let text = "1538323200,12910952,8,0,1063\n1538323200,6338688,8,1,1627\n";
    let expected = [block(Get, 0, 1_613_869, 0), block(Put, 1, 792_336, 0)];
    let spec = "time=1:s,offset=2:sectors,size=3:sectors,op=4:w1,device=5";
    same(run_csv(spec, text), &expected);
    let flipped = [block(Put, 0, 1_613_869, 0), block(Get, 1, 792_336, 0)];
    same(run_csv(&spec.replace("w1", "r1"), text), &flipped);

    let text = "89966072000 2559 pdflush 508084552 8 W 6 0 531e77909a97c4e0\n\
                89966100000 2559 pdflush 508084560 8 W 6 0 9b4d8f1a77c2e011\n";
    let expected = [
        block(Put, 0, 63_510_569, 0),
        block(Put, 0, 63_510_570, 28_000),
    ];
    same(
        run_csv(
            "sep=space,time=1:ns,offset=4:sectors,size=5:sectors,op=6",
            text,
        ),
        &expected,
    );

    let text = "version,time,op,size,lbn\n1,5633898,2a,512,42932745\n";
    let spec = "time=2:s,op=3:scsi,size=4:bytes,offset=5:sectors";
    same(run_csv(spec, text), &[block(Put, 0, 42_932_745 / 8, 0)]);
}

#[test]
fn csv_reads_key_value_traces_too() {
    let text = "op;key;len;who\nSET;k1;7;a\nGET;k2;;b\nSCAN;k3;;a\nflush;;;\n";
    let client = |n, op: Op| Op { client: n, ..op };
    let scan = Op {
        kind: Scan,
        key: b"k3".to_vec(),
        scan_len: 1,
        ..Op::default()
    };
    let expected = [
        client(0, put("k1", 7, None)),
        client(1, get("k2", None)),
        scan,
    ];
    let report = same(
        run_csv("sep=semicolon,op=1,key=2,value=3,client=4", text),
        &expected,
    );
    assert!(report.warnings[0].contains("1 × flush"));
    let (ops, _) = run_csv("op=1,key=2:hex", "put,0xff00\n").unwrap();
    assert_eq!((&ops[0].key[..], ops[0].value_len), (&[0xff, 0][..], 120));
    // A key of digits without leading zeros is a number. Any other key is text.
    let odd = ["258", "0258", "18446744073709551616", "2.5", "-1", "0"];
    let lines: String = odd.iter().map(|key| format!("w,{key}\n")).collect();
    let (ops, _) = run_csv("op=1,key=2", &lines).unwrap();
    let keys: Vec<&[u8]> = ops.iter().map(|op| &op.key[..]).collect();
    let number = |n: u64| n.to_be_bytes();
    assert_eq!(
        keys,
        [
            &number(258)[..],
            b"0258",
            b"18446744073709551616",
            b"2.5",
            b"-1",
            &number(0)[..]
        ]
    );
    let (ops, _) = run_csv("op=1,key=2:text", "w,258\n").unwrap();
    assert_eq!(ops[0].key, b"258");
    let (ops, _) = run_csv("op=1,key=2:int", "w,258\n").unwrap();
    assert_eq!(ops[0].key, [0, 0, 0, 0, 0, 0, 1, 2]);
    let (ops, report) = run_csv("op=1,key=2", "kind,key\nw,a\n").unwrap();
    assert_eq!(
        (ops.len(), report.left_out),
        (1, 0),
        "a header is recognized even if no column is numeric"
    );
}

#[test]
fn invalid_column_specifications_are_refused() {
    let cases = [
        ("", "expected FIELD=COLUMN"),
        ("op", "expected FIELD=COLUMN[:UNIT], found `op`"),
        ("op=1", "either offset and size, or key"),
        ("key=1", "a column for op, found none"),
        ("op=1,offset=2", "either offset and size, or key"),
        (
            "op=1,offset=2,size=3,key=4",
            "either offset and size, or key",
        ),
        ("op=1,offset=2,size=3,value=4", "expected value with key"),
        ("op=1,key=2,device=3", "expected device with offset"),
        ("op=1,key=1", "every column once, found 1 twice"),
        ("op=1,op=2,key=3", "expected op once"),
        ("op=0,key=1", "a column from 1 to 4096 for op, found 0"),
        ("op=99999999,key=1", "found 99999999"),
        ("op=1,key=", "a column for key, found nothing"),
        (
            "op=1,key=2:base64",
            "expected auto, text, hex, int for key, found `base64`",
        ),
        (
            "op=1,key=2,time=3:h",
            "expected s, ms, us, ns, ticks for time",
        ),
        ("op=1,key=2,client=3:x", "expected no unit for client"),
        ("op=1,frob=2", "expected one of time, op"),
        ("sep=dot,op=1,key=2", "comma, tab, space, semicolon or pipe"),
    ];
    for (spec, expected) in cases {
        let found = run_csv(spec, "").expect_err(spec).to_string();
        assert!(
            found.starts_with("columns: ") && found.contains(expected),
            "{spec}: {found}"
        );
    }
    let none = run(Format::Csv, "").unwrap_err().to_string();
    assert!(
        none.contains("columns: expected for the csv format"),
        "{none}"
    );
    let options = ImportOptions {
        columns: Some("op=1".into()),
        ..ImportOptions::default()
    };
    assert!(
        run_bytes(Format::Msr, b"", &options).is_err(),
        "only the csv format takes columns"
    );
}

#[test]
fn twitter_keys_may_contain_commas_and_clients_are_numbered() {
    let text = "0,nz:u:eeW511W3dcH3de3d15ec,25,350,12,get,0\n\
                1,nz:u:eeW511W3dcH3de3d15ec,25,350,7,set,3600\n\
                2,a,b,3,9,12,incr,0\n3,k,1,0,12,delete,0\n";
    let second = 1_000_000_000;
    let expected = [
        get("nz:u:eeW511W3dcH3de3d15ec", Some(0)),
        Op {
            client: 1,
            ..put("nz:u:eeW511W3dcH3de3d15ec", 350, Some(second))
        },
        put("a,b", 9, Some(2 * second)),
        Op {
            kind: Delete,
            ..get("k", Some(3 * second))
        },
    ];
    same(run(Format::Twitter, text), &expected);
}

#[test]
fn cachelib_honours_op_count_and_finds_columns_by_name() {
    let text = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n\
                604038471,82131353f9ddc8c6,48,GET,2,87,1,0,366387042,3003229276\n\
                604038472,a,24,SET_LEASE,1,10,0,0,1,1\n604038472,a,24,DELETE,1,0,0,0,1,1\n";
    let t = Some(1_000_000_000);
    let expected = [
        get("82131353f9ddc8c6", Some(0)),
        get("82131353f9ddc8c6", Some(0)),
        put("a", 10, t),
        Op {
            kind: Delete,
            ..get("a", t)
        },
    ];
    same(run(Format::Cachelib, text), &expected);
    let other = "key,op,size\na,SET,5\nb,GET_LEASE,0\n";
    same(
        run(Format::Cachelib, other),
        &[put("a", 5, None), get("b", None)],
    );
    let bare = "604038471,a,48,SET,1,87,1,0,1,1\n";
    same(run(Format::Cachelib, bare), &[put("a", 87, Some(0))]);
}

#[test]
fn rocksdb_types_map_to_the_nearest_operation() {
    let text = "0x00000000000000AB 1 0 100 1605820800000123\n\
                0x00000000000000AC 0 0 0 1605820800000191\n\
                0x61 5 0 9 1605820800000191\n0x61 3 0 0 1605820800000191\n\
                0x61 6 0 0 1605820800000191\n\
                0x61 4 0 0 1605820800000191\n0x 1 2 1 1605820800000191\n";
    let t = Some(68_000);
    let a = |kind| Op {
        kind,
        ..get("a", t)
    };
    let expected = [
        Op {
            key: key(0, 0xab),
            ..put("", 100, Some(0))
        },
        Op {
            key: key(0, 0xac),
            ..get("", t)
        },
        Op {
            value_len: 9,
            ..a(Put)
        },
        a(Delete),
        Op {
            scan_len: 1,
            ..a(Scan)
        },
        Op {
            key: vec![0, 0, 0, 2],
            ..put("", 1, t)
        },
    ];
    let report = same(run(Format::Rocksdb, text), &expected);
    assert!(report.warnings[0].contains("1 × RangeDelete"));
}

#[test]
fn ycsb_operations_are_found_among_other_output() {
    let text = "YCSB Client 0.17.0\nCommand line: -db site.ycsb.BasicDB\n\
                ***************** properties *****************\n\
                \"recordcount\"=\"2\"\n\
                INSERT usertable user6284781860667377211 [ field0=abc field1=def ]\n\
                READ usertable user8517097267634966620 [ <all fields>]\n\
                UPDATE usertable user1 [ field0=a b ]\n\
                SCAN usertable user2 17 [ field0 field1 ]\n\
                DELETE usertable user3\n[OVERALL], RunTime(ms), 5\n";
    let expected = [
        put("user6284781860667377211", 6, None),
        get("user8517097267634966620", None),
        put("user1", 3, None),
        Op {
            kind: Scan,
            scan_len: 17,
            ..get("user2", None)
        },
        Op {
            kind: Delete,
            ..get("user3", None)
        },
    ];
    same(run(Format::Ycsb, text), &expected);
}

#[test]
fn vans_accesses_are_cache_lines() {
    let text = "0x00000000 W\n0x00000040 W:12\n0x80 R\n0x80 C\n";
    let at = |kind, line, value_len| Op {
        kind,
        key: key(0, line),
        value_len,
        ..Op::default()
    };
    let report = same(
        run(Format::Vans, text),
        &[at(Put, 0, 120), at(Put, 1, 120), at(Get, 2, 0)],
    );
    assert_eq!(report.left_out, 1);
}

#[test]
fn oracle_op_decides_the_kind_of_oracle_general_requests() {
    let record = |id: u64, op: Option<u8>| {
        let mut bytes = 5_633_898u32.to_le_bytes().to_vec();
        bytes.extend(id.to_le_bytes());
        bytes.extend(512u32.to_le_bytes());
        bytes.extend(op.map(|op| [op, 0, 0]).into_iter().flatten());
        bytes.extend((-1i64).to_le_bytes());
        bytes
    };
    let options = |oracle_op| ImportOptions {
        oracle_op,
        ..ImportOptions::default()
    };
    let at = |kind, id, value_len| Op {
        kind,
        key: key(0, id),
        value_len,
        time_ns: Some(0),
        ..Op::default()
    };
    let bytes = [record(42_932_745, None), record(42_932_746, None)].concat();
    let found = run_bytes(Format::OracleGeneral, &bytes, &options(None));
    let report = same(found, &[at(Get, 42_932_745, 0), at(Get, 42_932_746, 0)]);
    assert!(report.warnings[0].contains("no write flag"));
    let found = run_bytes(Format::OracleGeneral, &bytes, &options(Some(OracleOp::Put)));
    let report = same(found, &[at(Put, 42_932_745, 512), at(Put, 42_932_746, 512)]);
    assert!(report.warnings.is_empty());
    let bytes = [record(1, Some(3)), record(2, Some(1)), record(3, Some(9))].concat();
    let found = run_bytes(
        Format::OracleGeneral,
        &bytes,
        &options(Some(OracleOp::Recorded)),
    );
    same(found, &[at(Put, 1, 512), at(Get, 2, 0), at(Delete, 3, 0)]);
}

/// A file that is not a trace is refused. The error shows its first bytes in hexadecimal and names
/// the likely format.
#[test]
fn non_trace_files_are_refused_with_their_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    let said = |format, bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let options = ImportOptions::default();
        let error = treering_traces::import::import(format, &path, &options, &mut |_| Ok(()));
        error.unwrap_err().to_string()
    };
    let mut word = 1u64;
    let random: Vec<u8> = (0..24_000)
        .map(|_| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (word >> 56) as u8
        })
        .collect();
    for bytes in [&random[..], &[0; 24_000]] {
        for format in [Format::OracleGeneral, Format::Vscsi] {
            let said = said(format, bytes);
            assert!(
                said.contains("at byte 0: expected a ") && said.contains("the bytes "),
                "{said}"
            );
            assert!(!said.contains("reads as"), "{said}");
        }
    }
    let msr = "128166372003061629,hm,0,Read,383496192,32768,413\n".repeat(3);
    let said_of_msr = said(Format::OracleGeneral, msr.as_bytes());
    assert!(
        said_of_msr.contains("(the input reads as msr)"),
        "{said_of_msr}"
    );
    let record = |id: u64| {
        let mut bytes = 7u32.to_le_bytes().to_vec();
        bytes.extend(id.to_le_bytes());
        bytes.extend(512u32.to_le_bytes());
        bytes.extend((-1i64).to_le_bytes());
        bytes
    };
    let oracle = (1..9).flat_map(record).collect::<Vec<u8>>();
    let said_of_oracle = said(Format::Spc, &oracle);
    assert!(
        said_of_oracle.contains("reads as oracle-general"),
        "{said_of_oracle}"
    );
}
