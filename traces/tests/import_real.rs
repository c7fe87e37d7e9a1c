//! Imports of real traces, if they are available. Counts must match those of other tools, and round
//! trips must be exact.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use treering_traces::OpKind::{Delete, Put};
use treering_traces::import::{Format, ImportOptions, ImportReport, import, import_file};
use treering_traces::{Op, OpSource, open};

/// Returns a real trace. If the folder is missing, prints a message and returns `None`.
fn real(name: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("TREERING_TRACES") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
            // Next to the workspace, or two levels up if this work tree is nested one folder
            // deeper.
            let near = ["../../shared/traces", "../../../shared/traces"].map(|p| manifest.join(p));
            near.iter().find(|p| p.is_dir()).unwrap_or(&near[0]).clone()
        }
    };
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!(
        "SKIPPED: {} does not exist (set TREERING_TRACES)",
        path.display()
    );
    None
}

fn puts(ops: &[Op]) -> usize {
    ops.iter().filter(|op| op.kind == Put).count()
}

/// Imports a real trace into both encodings, reads them back, and returns the operations.
fn import_real(format: Format, name: &str) -> Option<(Vec<Op>, ImportReport)> {
    let path = real(name)?;
    let options = ImportOptions::default();
    let folder = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    import(format, &path, &options, &mut |op| {
        expected.push(op.clone());
        Ok(())
    })
    .unwrap();
    let mut last = None;
    for output in ["t.jsonl", "t.trz"] {
        let output = folder.path().join(output);
        let mut seen = 0;
        let (header, report) = import_file(format, &path, &options, &output, &mut |read, _| {
            seen = read;
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(header.ops, report.ops);
        assert_eq!(
            seen,
            fs::metadata(&path).unwrap().len(),
            "progress must end at the end of the file"
        );
        let mut reader = open(&output).unwrap();
        let (mut op, mut ops) = (Op::default(), Vec::new());
        while reader.next_op(&mut op).unwrap() {
            ops.push(op.clone());
        }
        assert!(ops == expected, "{name} differs after a round trip");
        last = Some((ops, report));
    }
    last
}

#[test]
fn the_real_cloudphysics_trace_imports() {
    let Some((ops, report)) = import_real(Format::Cloudphysics, "cloudphysics.csv.xz") else {
        return;
    };
    assert_eq!(
        (report.lines, report.skipped_bad, report.left_out),
        (113_873, 0, 0)
    );
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    // 113,872 requests, 66,898 of them writes, touch this many blocks.
    assert_eq!((ops.len(), puts(&ops)), (1_141_869, 656_169));
    assert_eq!(
        ops.iter().filter_map(|op| op.time_ns).max(),
        Some(7_200_000_000_000)
    );
}

#[test]
fn the_real_mqsim_trace_imports() {
    let Some((ops, report)) = import_real(Format::Mqsim, "mqsim-tpcc.trace.xz") else {
        return;
    };
    assert_eq!(
        (report.lines, report.skipped_bad, report.left_out),
        (6_999, 0, 0)
    );
    // 6,999 requests, 2,618 of them writes, on 16 devices.
    assert_eq!((ops.len(), puts(&ops), report.devices), (20_669, 7_995, 16));
}

#[test]
fn the_real_cachelib_trace_imports() {
    let Some((ops, report)) = import_real(Format::Cachelib, "cachelib-kv.csv") else {
        return;
    };
    assert_eq!((report.lines, report.left_out), (100, 0));
    assert!(ops.iter().all(|op| op.key.len() == 16));
    // 99 lines, each repeated `op_count` times.
    let deletes = ops.iter().filter(|op| op.kind == Delete).count();
    assert_eq!((ops.len(), puts(&ops), deletes), (691, 10, 3));
    let value_bytes: u64 = ops.iter().map(|op| u64::from(op.value_len)).sum();
    assert_eq!(value_bytes, 1_827);
}
