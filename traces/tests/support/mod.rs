//! What the import tests share: running an importer on made-up bytes, and operations to compare with.

// Each test binary uses its own part of this.
#![allow(dead_code)]

pub(crate) mod binary;

use std::fs;

use treering_traces::import::{Format, ImportOptions, ImportReport, import};
use treering_traces::{Op, OpKind, TraceError};

pub(crate) type Imported = Result<(Vec<Op>, ImportReport), TraceError>;

pub(crate) fn run_bytes(format: Format, content: &[u8], options: &ImportOptions) -> Imported {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    fs::write(&path, content).unwrap();
    let mut ops = Vec::new();
    let report = import(format, &path, options, &mut |op| {
        ops.push(op.clone());
        Ok(())
    })?;
    assert_eq!(report.ops, ops.len() as u64);
    Ok((ops, report))
}

pub(crate) fn run(format: Format, content: &str) -> Imported {
    run_bytes(format, content.as_bytes(), &ImportOptions::default())
}

pub(crate) fn run_csv(columns: &str, content: &str) -> Imported {
    let options = ImportOptions {
        columns: Some(columns.into()),
        ..ImportOptions::default()
    };
    run_bytes(Format::Csv, content.as_bytes(), &options)
}

pub(crate) fn key(device: u64, block: u64) -> Vec<u8> {
    (device << 48 | block).to_be_bytes().to_vec()
}

/// An operation on a block: kind, device, block, time.
pub(crate) fn block(kind: OpKind, device: u64, block: u64, time_ns: u64) -> Op {
    let value_len = if kind == OpKind::Put { 120 } else { 0 };
    Op {
        kind,
        key: key(device, block),
        value_len,
        time_ns: Some(time_ns),
        ..Op::default()
    }
}

pub(crate) fn get(key: &str, time_ns: Option<u64>) -> Op {
    Op {
        kind: OpKind::Get,
        key: key.into(),
        time_ns,
        ..Op::default()
    }
}

pub(crate) fn put(key: &str, value_len: u32, time_ns: Option<u64>) -> Op {
    Op {
        kind: OpKind::Put,
        key: key.into(),
        value_len,
        time_ns,
        ..Op::default()
    }
}

#[track_caller]
pub(crate) fn same(found: Imported, expected: &[Op]) -> ImportReport {
    let (ops, report) = found.unwrap();
    assert_eq!(ops, expected);
    report
}
