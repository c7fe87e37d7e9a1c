//! What is exported is imported again, by Treering's importers and by fio.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use treering_traces::import::{Format, ImportOptions, import as import_text};
use treering_traces::{Op, OpKind, OpSource, open};

use super::requests::{MOST, Request, of_discard};
use super::*;
use crate::error::DriveError;
use crate::face::{Face, PageCache};
use crate::recording::event::{FlushKind, Write as Written};
use crate::recording::{Contents, Event, Extent, Header, NodeId, Reader, Recorder, Sink as _};

fn write(node: u64, offset: u64, len: u32, extents: &[(u64, u64)]) -> Written {
    let extents = extents.iter().map(|&(lba, blocks)| Extent { lba, blocks });
    Written {
        node: NodeId(node),
        offset,
        len,
        extents: extents.collect(),
        synced: node == 3,
        cached: true,
    }
}

/// A recording with writes that begin within blocks, lie in pieces, and are discarded.
fn record(path: &Path) {
    let header = Header::new(Face::Files, 1 << 20, PageCache::WriteBack);
    let recorder = Recorder::create(path, header, Contents::All).expect("begins");
    let write = |write: Written| {
        let bytes = vec![1; write.len as usize];
        recorder.write(write, &bytes).expect("is taken");
    };
    let note = |event: Event| recorder.note(event).expect("is taken");
    write(self::write(2, 0, 4096, &[(10, 1)]));
    write(self::write(2, 4000, 200, &[(10, 2)]));
    write(self::write(2, 8192, 16_384, &[(20, 1), (30, 2), (32, 1)]));
    note(Event::Flush {
        node: NodeId(2),
        kind: FlushKind::Data,
    });
    write(self::write(3, 600, 13, &[(40, 1)]));
    for n in 0..500 {
        write(self::write(3, n * 4096, 4096, &[(1000 + n * 7 % 500, 1)]));
    }
    note(Event::Discard {
        node: NodeId(3),
        extents: vec![Extent {
            lba: 1000,
            blocks: 500,
        }],
    });
    note(Event::Flush {
        node: NodeId::ROOT,
        kind: FlushKind::Drive,
    });
    recorder.finish().expect("is written");
}

fn read(trace: &Path) -> Vec<(OpKind, Vec<u8>)> {
    let mut reader = open(trace).expect("is a trace");
    assert!(reader.header().addresses);
    let (mut op, mut all) = (Op::default(), Vec::new());
    while reader.next_op(&mut op).expect("is readable") {
        all.push((op.kind, op.key.clone()));
    }
    all
}

fn imported(format: Format, file: &Path) -> Vec<(OpKind, Vec<u8>)> {
    let mut all = Vec::new();
    let mut sink = |op: &Op| {
        all.push((op.kind, op.key.clone()));
        Ok(())
    };
    let report = import_text(format, file, &ImportOptions::default(), &mut sink);
    assert_eq!(report.expect("is imported").left_out, 2, "two flushes");
    all
}

#[test]
fn a_trace_and_both_exports_have_the_same_blocks() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let log = path("run.log");
    record(&log);
    let go_on = &mut |_, _| ControlFlow::Continue(());
    let done = import(&log, &path("run.trz"), 120, go_on).expect("is imported");
    assert_eq!((done.flushes, done.empty_discards), (2, 0));
    assert_eq!(done.header.name, "run");
    let direct = read(&path("run.trz"));
    let counts = |kind| direct.iter().filter(|(found, _)| *found == kind).count();
    assert_eq!((counts(OpKind::Put), counts(OpKind::Delete)), (508, 500));
    assert_eq!(direct[1].1, [0, 0, 0, 0, 0, 0, 0, 10]);
    assert_eq!(direct[6].1, [0, 0, 0, 0, 0, 0, 0, 32]);

    let mut text = Vec::new();
    blkparse(&mut Reader::open(&log).expect("is readable"), &mut text).expect("is exported");
    std::fs::write(path("run.txt"), &text).expect("a file");
    assert!(imported(Format::Blkparse, &path("run.txt")) == direct);
    let text = String::from_utf8(text).expect("is text");
    let ends: Vec<&str> = text.lines().take(7).map(|line| &line[46..]).collect();
    let expected = [
        "WS 80 + 8 [treering]",
        "WS 87 + 2 [treering]",
        "WS 160 + 8 [treering]",
        "WS 240 + 24 [treering]",
        " F [treering]",
        "FS 321 + 1 [treering]",
        "FS 8000 + 8 [treering]",
    ];
    assert_eq!(ends, expected, "{text}");

    for version in [IologVersion::Two, IologVersion::Three] {
        let mut text = Vec::new();
        let mut reader = Reader::open(&log).expect("is readable");
        fio_iolog(&mut reader, version, "drive", &mut text).expect("is exported");
        std::fs::write(path("run.fio"), &text).expect("a file");
        assert!(
            imported(Format::Fio, &path("run.fio")) == direct,
            "{version:?}"
        );
    }
}

#[test]
fn fio_replays_an_export() {
    if Command::new("fio").arg("--version").output().is_err() {
        eprintln!("SKIPPED: fio is not installed");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    record(&path("run.log"));
    let drive = path("drive");
    std::fs::File::create(&drive)
        .expect("a file")
        .set_len(8 << 20)
        .expect("a size");
    for version in [IologVersion::Two, IologVersion::Three] {
        let mut text = Vec::new();
        let mut reader = Reader::open(path("run.log")).expect("is readable");
        let name = drive.display().to_string();
        fio_iolog(&mut reader, version, &name, &mut text).expect("is exported");
        std::fs::write(path("run.fio"), &text).expect("a file");
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let ran = Command::new("fio")
            .current_dir(folder.path())
            .args(["--name=replay", "--ioengine=sync", "--replay_skip=trim"])
            .args(["--replay_no_stall=1", "--output-format=json"])
            .args([flag("read_iolog", &path("run.fio"))])
            .output()
            .expect("fio runs");
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(
            ran.status.success(),
            "{said}{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        let json = said.find('{').map(|at| &said[at..]).expect("JSON");
        let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
        let writes = &json["jobs"][0]["write"];
        let bytes = 4096 + 1024 + 16_384 + 512 + 500 * 4096;
        assert_eq!(writes["io_bytes"], bytes, "{version:?}: {writes}");
        assert_eq!(writes["total_ios"], 505, "{version:?}: {writes}");
    }
}

#[test]
fn a_large_discard_is_split_and_a_name_with_spaces_is_refused() {
    let mut found = Vec::new();
    let extents = [Extent {
        lba: 1,
        blocks: 600_000,
    }];
    of_discard(&extents, |request| {
        found.push(request);
        Ok(())
    })
    .expect("no error");
    let lens: Vec<u64> = found
        .iter()
        .map(|request| match request {
            Request::Discard { len, .. } => *len,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lens, [MOST, MOST, 600_000 * 4096 - 2 * MOST]);
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.log");
    record(&log);
    let mut reader = Reader::open(&log).expect("is readable");
    let refused = fio_iolog(&mut reader, IologVersion::Three, "a b", Vec::new());
    assert!(matches!(
        refused,
        Err(DriveError::Parameter { name: "file", .. })
    ));
}
