//! Malformed, truncated and compressed input: what is skipped, what is a warning, and what is
//! refused.

mod support;

use std::fs;
use std::ops::ControlFlow;

use proptest::prelude::*;
use support::{run, run_bytes};
use treering_traces::import::{Format, ImportOptions, OracleOp, import, import_file};

#[test]
fn errors_in_lines_state_the_place_what_was_expected_and_what_was_found() {
    use Format::*;
    let good = "1 0 0 8 0\n";
    let cases: Vec<(Format, String, &str)> = vec![
        (
            Mqsim,
            format!("{good}1 0 0 8\n"),
            "line 2: expected 5 columns",
        ),
        (
            Mqsim,
            format!("{good}1 0 0 8 0 0\n"),
            "line 2: expected 5 columns",
        ),
        (
            Mqsim,
            format!("{good}\n1 0 0 8 2\n"),
            "line 3: expected 0 for a write or 1 for a read",
        ),
        (
            Mqsim,
            format!("{good}1 0 -8 8 0\n"),
            "expected a start sector, a whole number, 0 or more, found `-8`",
        ),
        (
            Mqsim,
            format!("{good}99999999999999999999 0 0 8 0\n"),
            "an arrival time in ns",
        ),
        (
            Mqsim,
            format!("{good}1 0 18446744073709551615 8 0\n"),
            "expected a start sector of at most",
        ),
        (
            Mqsim,
            format!("{good}1 0 36028797018963967 8 0\n"),
            "an offset in bytes below 1152921504606846976",
        ),
        (
            Mqsim,
            format!("{good}1 0 0 2251799813685248 0\n"),
            "a request of at most 4294967296 bytes, found `1152921504606846976`",
        ),
        (
            Mqsim,
            "\u{0}\u{1}garbage".into(),
            "line 1: expected 5 columns",
        ),
        (
            Mqsim,
            String::new(),
            "end of file: expected at least one operation, found none in 0",
        ),
        (Mqsim, "\n\r\n\n".into(), "expected at least one operation"),
        (
            Mqsim,
            "1 0 0 0 0\n".into(),
            "found none (1 operations have no counterpart",
        ),
        (
            Disksim,
            "x 0 0 8 0\n".into(),
            "expected an arrival time in ms",
        ),
        (
            Disksim,
            "1e400 0 0 8 0\n".into(),
            "expected an arrival time in ms",
        ),
        (
            Disksim,
            "nan 0 0 8 0\n".into(),
            "expected an arrival time in ms",
        ),
        (
            Msr,
            "1,h,0,Erase,0,1,1\n".into(),
            "line 1: expected Read or Write, found `Erase`",
        ),
        (
            Msr,
            "1,h,0,Read,0,1152921504606846976,1\n".into(),
            "a request of at most",
        ),
        (Spc, "0,1,512,w\n".into(), "expected at least 5 columns"),
        (
            Spc,
            "0,1,512,x,0\n".into(),
            "expected opcode R or W, found `x`",
        ),
        (
            Cloudphysics,
            "1,1,zz,512,0\n".into(),
            "a SCSI operation code",
        ),
        (
            Cloudphysics,
            "version,time,op,size,lbn\n".into(),
            "expected at least one operation",
        ),
        (
            Vscsi,
            "short".into(),
            "expected a vscsi record of version 1 or 2",
        ),
        (
            Fio,
            "hello\n".into(),
            "line 1: expected `fio version 2 iolog` or 3, found `hello`",
        ),
        (
            Fio,
            "fio version 2 iolog\nf frob 0 1\n".into(),
            "line 2: expected a fio action",
        ),
        (
            Fio,
            "fio version 3 iolog\n1 f wait 0 1\n".into(),
            "line 2: expected a fio action",
        ),
        (
            Fio,
            "fio version 2 iolog\nf read 0\n".into(),
            "`filename action [offset length]`",
        ),
        (
            Blkparse,
            "hello world\n".into(),
            "expected `maj,min cpu seq",
        ),
        (
            Blkparse,
            "8,0 0 1 x 1 D W 0 + 8\n".into(),
            "a time in seconds",
        ),
        (Twitter, "0,k,1,1,get,0\n".into(), "expected 7 columns"),
        (
            Twitter,
            "0,k,1,4294967296,c,set,0\n".into(),
            "a value size in bytes of at most",
        ),
        (
            Twitter,
            "0,k,1,1,c,frob,0\n".into(),
            "expected an operation",
        ),
        (
            Cachelib,
            "1,k,1,GET,0,1,1\n".into(),
            "expected a count from 1 to 1000000, found `0`",
        ),
        (
            Cachelib,
            "1,k,1,GET,1000000000000,1,1\n".into(),
            "expected a count from 1",
        ),
        (
            Cachelib,
            "op_time,key,size\n".into(),
            "a header line with at least key, op and size",
        ),
        (Rocksdb, "1 0 100 5\n".into(), "written without no_key"),
        (
            Rocksdb,
            "0xabc 1 0 1 5\n".into(),
            "pairs of hexadecimal digits, found `0xabc`",
        ),
        (
            Rocksdb,
            "0xab 11 0 1 5\n".into(),
            "an operation type from 0 to 9",
        ),
        (Ycsb, "FROB usertable k\n".into(), "expected `OP table key"),
        (Ycsb, "INSERT usertable k\n".into(), "`[ field=value ... ]`"),
        (Vans, "0x0 X\n".into(), "expected R, W or C, found `X`"),
        (Vans, "0x0 W:x\n".into(), "idle clocks"),
        (
            OracleGeneral,
            "short".into(),
            "expected records of 24 bytes, found 5 bytes",
        ),
        (
            OracleGeneral,
            String::new(),
            "expected at least one operation",
        ),
    ];
    for (format, content, expected) in cases {
        let found = match run(format, &content) {
            Err(error) => error.to_string(),
            Ok((ops, _)) => panic!("{format} {content:?} gives {ops:?}"),
        };
        assert!(
            found.contains(expected),
            "{format} {content:?}\n  {found}\n  {expected}"
        );
        assert!(
            found.contains("input, "),
            "the error must name the file: {found}"
        );
    }
    let not_utf8 = b"1 0 0 8 0\n\xff\xfe 0 0 8 0\n";
    let found = run_bytes(Mqsim, not_utf8, &ImportOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        found.contains("line 2: expected an arrival time"),
        "{found}"
    );
}

#[test]
fn skip_bad_skips_at_most_the_given_number_of_lines() {
    let text = "1 0 0 8 0\nbad\n2 0 0 8 0\nworse\n3 0 0 8 0\n";
    let with = |skip_bad| {
        let options = ImportOptions {
            skip_bad,
            ..ImportOptions::default()
        };
        run_bytes(Format::Mqsim, text.as_bytes(), &options)
    };
    assert!(with(0).unwrap_err().to_string().contains("line 2"));
    assert!(with(1).unwrap_err().to_string().contains("line 4"));
    let (ops, report) = with(2).unwrap();
    assert_eq!((ops.len(), report.skipped_bad, report.lines), (3, 2, 5));
    assert!(report.warnings[0].contains("2 bad lines skipped; the first: "));
    assert!(report.warnings[0].contains("line 2: expected 5 columns"));
}

#[test]
fn a_truncated_last_line_is_a_warning_and_a_missing_newline_is_accepted() {
    let (ops, report) = run(Format::Mqsim, "1 0 0 8 0\n2 0 0").unwrap();
    assert_eq!((ops.len(), report.skipped_bad), (1, 0));
    assert!(report.warnings[0].contains("the last line (2) is cut short"));
    let (ops, report) = run(Format::Mqsim, "1 0 0 8 0\n2 0 0 8 0").unwrap();
    assert_eq!((ops.len(), report.warnings.len()), (2, 0));
}

/// Compresses with this crate's dependencies.
fn compress(name: &str, plain: &[u8]) -> Vec<u8> {
    use std::io::Write;
    match name {
        "gz" => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        "xz" => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        _ => zstd::encode_all(plain, 1).unwrap(),
    }
}

#[test]
fn compressed_input_is_detected_by_content_and_read_up_to_a_truncation() {
    let text: String = (0..100_000u64)
        .map(|i| {
            format!(
                "{i} 0 {} 8 {}\n",
                i.wrapping_mul(0x9e37_79b9) % 1_000_000 * 8,
                i % 2
            )
        })
        .collect();
    let plain = run(Format::Mqsim, &text).unwrap().0;
    assert_eq!(plain.len(), 100_000);
    for name in ["gz", "xz", "zst"] {
        let bytes = compress(name, text.as_bytes());
        let (ops, report) = run_bytes(Format::Mqsim, &bytes, &ImportOptions::default()).unwrap();
        assert!(ops == plain && report.warnings.is_empty(), "{name}");
        let twice = [&bytes[..], &bytes[..]].concat();
        let (ops, _) = run_bytes(Format::Mqsim, &twice, &ImportOptions::default()).unwrap();
        assert_eq!(ops.len(), 200_000, "{name}: two concatenated members");
        let cut = &bytes[..bytes.len() * 3 / 4];
        let (ops, report) = run_bytes(Format::Mqsim, cut, &ImportOptions::default()).unwrap();
        assert!(
            !ops.is_empty() && ops == plain[..ops.len()],
            "{name}: the truncated last line was used"
        );
        let warnings = report.warnings.join("\n");
        assert!(
            warnings.contains("ends in the middle of its stream"),
            "{name}: {warnings}"
        );
    }
}

#[test]
fn times_earlier_than_the_first_become_zero_with_a_warning() {
    let (ops, report) = run(Format::Mqsim, "5 0 0 8 0\n3 0 0 8 0\n9 0 0 8 0\n").unwrap();
    let times: Vec<_> = ops.iter().map(|op| op.time_ns).collect();
    assert_eq!(times, [Some(0), Some(0), Some(4)]);
    assert!(report.warnings[0].contains("1 requests are stamped earlier"));
}

#[test]
fn format_names_round_trip_through_parse() {
    for format in Format::ALL {
        assert_eq!(format.name().parse::<Format>().unwrap(), format);
    }
    let found = "mysql".parse::<Format>().unwrap_err().to_string();
    for format in Format::ALL {
        assert!(found.contains(format.name()), "{found}");
    }
}

#[test]
fn a_failed_import_leaves_no_trace_file() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.trace");
    fs::write(&input, "1 0 0 8 0\nbad\n").unwrap();
    let output = folder.path().join("out.trz");
    let options = ImportOptions::default();
    let failed = import_file(Format::Mqsim, &input, &options, &output, &mut |_, _| {
        ControlFlow::Continue(())
    });
    assert!(failed.is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// One valid line of every text format, for the test to damage.
const GOOD: [&str; 17] = [
    "938513000 4 264719034 16 0",
    "128166372003061629,hm,0,Write,7014912,4096,26",
    "0,303567,3584,w,0.000000",
    "1,5633898,2a,512,42932745",
    "0,R,126703644672,4096,1577808000000626",
    "1538323200,12910952,128,0,1063",
    "1456135200.013118000,0.000531,W,4,1998229504,4096",
    "5,1,9,4096,0,default,1,12,1,0,7,3,120,1,1,40,13,0,16,24,8192",
    "1668757755,SET,82,1,40,3600",
    "fio version 3 iolog\n878 Nvme1n1 write 0 16384",
    "fio version 2 iolog\nf wait 1 0\nf write 0 16384",
    "8,33 30 1 0.001368096 5025 D R 540544 + 8 [a]",
    "0,nz:u:eeW511W3dcH3de3d15ec,25,350,12,get,0",
    "604038471,82131353f9ddc8c6,48,GET,1,87,1,0,366387042,3003229276",
    "0x00000000000000AB 1 0 100 1605820800000123",
    "INSERT usertable user6284781860667377211 [ field0=abc field1=def ]",
    "0x00000000 W:7",
];

proptest! {
    // Every case is tried with every format.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_input_makes_an_importer_panic_or_hang(
        line in prop::sample::select(GOOD.to_vec()),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        noise in prop::collection::vec(any::<u8>(), 0..120),
        as_noise in any::<bool>(),
        skip_bad in 0..3u64,
    ) {
        let mut bytes = format!("{line}\r\n{line}\n").into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            // Digits and separators get further into a parser than arbitrary bytes.
            bytes[at] = if byte < 128 { b"0123456789,. -x:"[usize::from(byte % 16)] } else { byte };
        }
        let bytes = if as_noise { noise } else { bytes };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input");
        for format in Format::ALL {
            let columns = "device=1,op=2,offset=3:bytes,size=4:bytes,time=5:us";
            let options = ImportOptions {
                skip_bad,
                columns: (format == Format::Csv).then(|| columns.into()),
                oracle_op: Some(OracleOp::Recorded),
                ..ImportOptions::default()
            };
            fs::write(&path, &bytes).unwrap();
            if let Err(error) = import(format, &path, &options, &mut |_| Ok(())) {
                let text = error.to_string();
                prop_assert!(text.contains("expected") && !text.contains('\n'), "{}", text);
            }
        }
    }
}
