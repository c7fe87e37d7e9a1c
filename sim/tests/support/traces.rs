//! Helpers that write traces.

use std::path::{Path, PathBuf};

use treering_traces::generate::{GenParams, build};
use treering_traces::{Header, Op, Writer};

/// Writes `NAME.trz` with these operations.
pub(crate) fn made(
    folder: &Path,
    name: &str,
    warmup_ops: u64,
    ops: impl IntoIterator<Item = Op>,
) -> PathBuf {
    let header = Header {
        schema: Header::SCHEMA.into(),
        name: name.into(),
        source: "made for a test".into(),
        ops: 0,
        warmup_ops: 0,
        records: None,
        zeros: 0.5,
        seed: None,
        addresses: false,
    };
    let path = folder.join(format!("{name}.trz"));
    let mut writer = Writer::create(&path, header).expect("a file");
    writer.set_warmup_ops(warmup_ops);
    for op in ops {
        writer.write(&op).expect("a file");
    }
    writer.finish().expect("a file");
    path
}

#[allow(dead_code)] // not every test binary uses it
/// Generates `NAME.trz`.
pub(crate) fn generated(folder: &Path, name: &str, params: &GenParams) -> PathBuf {
    let (header, mut source) = build(params).expect("good parameters");
    let path = folder.join(format!("{name}.trz"));
    let mut writer = Writer::create(&path, header).expect("a file");
    let mut op = Op::default();
    while source.next_op(&mut op).expect("a trace") {
        writer.write(&op).expect("a file");
    }
    writer.finish().expect("a file");
    path
}
