//! Empty, cut and foreign input of the formats of `import_samples`: one sentence that names the file, the
//! place and what was expected.

mod support;

use support::run;
use treering_traces::import::Format;

#[track_caller]
fn refused(format: Format, content: &str, expected: &str) {
    let found = match run(format, content) {
        Err(error) => error.to_string(),
        Ok((ops, _)) => panic!("{format} {content:?} gives {ops:?}"),
    };
    assert!(
        found.contains(expected) && found.contains("input, ") && !found.contains('\n'),
        "{format} {content:?}\n  {found}\n  {expected}"
    );
}

#[test]
fn lines_of_cloud_block_traces_that_are_not_of_the_format_are_refused() {
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
    // A line that an interrupted copy cut is left out with a warning.
    let (ops, report) = run(Alibaba, "0,R,0,4096,5\n0,R,4096,40").unwrap();
    assert_eq!(ops.len(), 1);
    assert!(report.warnings[0].contains("the last line (2) is cut short"));
    // What the input is instead is said.
    refused(Tencent, "0,R,0,4096,5\n", "(the input reads as alibaba)");
}
