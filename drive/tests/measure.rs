//! A recording on simulated drives: what is counted, by cause, and that the report holds together.

use std::path::{Path, PathBuf};

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use treering_drive::face::{Face, PageCache};
use treering_drive::measure::{Settings, Warmup};
use treering_drive::recording::event::{FlushKind, Write};
use treering_drive::recording::{
    Contents, Event, Extent, Header, NodeId, NodeKind, Recorder, Sink,
};
use treering_drive::report::DriveReport;
use treering_sim::replay::Target;

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 30_000;

/// A program that writes two files: a table at random and a log in order, which is synced.
struct Program {
    recorder: Recorder,
    random: SmallRng,
}

impl Program {
    fn begin(log: &Path, contents: Contents) -> Program {
        let header = Header::new(Face::Files, 2 * BLOCKS, PageCache::WriteBack);
        let recorder = Recorder::create(log, header, contents).expect("a recording");
        for (node, name) in [(2, "table.db"), (3, "table.db-wal")] {
            let node = NodeId(node);
            let made = Event::Make {
                node,
                kind: NodeKind::File,
                mode: 0o644,
                uid: 0,
                gid: 0,
                device: 0,
                target: Vec::new(),
            };
            let linked = Event::Link {
                parent: NodeId::ROOT,
                name: name.into(),
                node,
            };
            recorder.note(made).expect("room");
            recorder.note(linked).expect("room");
        }
        Program {
            recorder,
            random: SmallRng::seed_from_u64(5),
        }
    }

    fn write(&mut self, node: u64, offset: u64, len: u32, lba: u64) {
        let blocks = (offset % BLOCK + u64::from(len)).div_ceil(BLOCK);
        let mut bytes = vec![0; len as usize];
        // A half of each write is zeros.
        self.random.fill_bytes(&mut bytes[..len as usize / 2]);
        let write = Write {
            node: NodeId(node),
            offset,
            len,
            extents: vec![Extent { lba, blocks }],
            synced: false,
            cached: true,
        };
        self.recorder.write(write, &bytes).expect("room");
    }

    fn update(&mut self) {
        let at = self.random.random_range(0..BLOCKS);
        self.write(2, at * BLOCK, 4096, at);
    }

    fn append(&mut self, i: u64) {
        let at = i * 1000 % (1000 * BLOCK);
        self.write(3, at, 1000, BLOCKS + at / BLOCK);
        let flush = Event::Flush {
            node: NodeId(3),
            kind: FlushKind::Data,
        };
        self.recorder.note(flush).expect("room");
    }

    fn mark(&self, line: &str) {
        let line = line.into();
        self.recorder.note(Event::Mark { line }).expect("room");
    }
}

/// The load, a mark, then updates of the table and of the log.
fn recorded(folder: &Path, contents: Contents) -> PathBuf {
    let log = folder.join("run.rec");
    let mut program = Program::begin(&log, contents);
    (0..BLOCKS).for_each(|at| program.write(2, at * BLOCK, 4096, at));
    program.mark("user_bytes 1000000");
    program.mark("loaded");
    for i in 0..4 * BLOCKS {
        match i % 4 {
            0 => program.append(i / 4),
            _ => program.update(),
        }
    }
    program.mark("user_bytes 31000000");
    program.recorder.finish().expect("room");
    log
}

fn measured(settings: &Settings) -> DriveReport {
    DriveReport::measure(settings, &mut |_, _, _| {}).expect("a report")
}

fn drive(name: &str) -> Target {
    Target::builtin(name).expect("a built-in drive")
}

#[test]
fn bytes_are_counted_by_cause_and_every_drive_takes_the_same_stream() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = recorded(folder.path(), Contents::All);
    let mut settings = Settings::new(&log, drive("ssd"));
    settings.devices.push(drive("csd"));
    settings.warmup = Warmup::Mark("loaded".into());
    let report = measured(&settings);
    assert!(
        report.complete && report.warnings.is_empty(),
        "{:?}",
        report.warnings
    );
    let named = |name: &str| {
        let found = report.causes.iter().find(|cause| cause.name == name);
        found.expect("a cause")
    };
    let (database, wal) = (named("database"), named("wal"));
    assert_eq!(database.bytes, 3 * BLOCKS * BLOCK);
    assert_eq!(database.host_bytes, database.bytes);
    assert_eq!(
        (wal.bytes, wal.writes, wal.flushes),
        (1000 * BLOCKS, BLOCKS, BLOCKS)
    );
    // A record of 1000 bytes touches one block, or two in one of four cases, about.
    assert!(wal.host_bytes > BLOCKS * BLOCK && wal.host_bytes < BLOCKS * BLOCK * 5 / 4);
    let chain = report.chain;
    assert_eq!(chain.user_bytes, Some(30_000_000));
    assert_eq!(chain.file_bytes, database.bytes + wal.bytes);
    assert_eq!(chain.host_bytes, database.host_bytes + wal.host_bytes);
    for device in &report.devices {
        let host = device.wa.host.total * 30_000_000.0;
        assert!(
            (host - chain.host_bytes as f64).abs() < 1.0,
            "the same stream"
        );
        let predicted = device
            .wa
            .error
            .as_ref()
            .and_then(|e| e.device)
            .expect("predicted");
        let off = predicted.total.expect("not small");
        assert!(off.abs() < 0.03, "{}: {off}", device.device.profile);
    }
    let gc = report.devices[0].wa.device.expect("a drive").gc * 30_000_000.0;
    let by_cause: u64 = report.causes.iter().map(|cause| cause.gc_bytes[0]).sum();
    assert!(
        gc > 0.0 && (gc - by_cause as f64).abs() < 1.0,
        "{gc}, {by_cause}"
    );
    assert!(database.gc_bytes[0] > 0);
    // Half of each page is zeros, and the other half does not compress.
    let alpha = database.alpha.expect("a drive compresses");
    assert!((0.5..0.54).contains(&alpha), "{alpha}");
    let by_time: u64 = report.timeline.host_bytes.iter().flatten().sum();
    assert_eq!(by_time, chain.host_bytes);
    let gc_by_time: u64 = report.timeline.gc_bytes[0].iter().sum();
    assert!((gc - gc_by_time as f64).abs() < 1.0, "{gc}, {gc_by_time}");
}

#[test]
fn the_same_recording_gives_the_same_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = recorded(folder.path(), Contents::All);
    let mut settings = Settings::new(&log, drive("csd"));
    settings.timing = true;
    let json = |settings| serde_json::to_string(&measured(settings)).expect("JSON");
    assert_eq!(json(&settings), json(&settings));
}

#[test]
fn a_drive_that_compresses_needs_the_bytes_and_others_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = recorded(folder.path(), Contents::None);
    let report = measured(&Settings::new(&log, drive("ssd")));
    assert!(!report.recording.contents);
    let refused = DriveReport::measure(&Settings::new(&log, drive("csd")), &mut |_, _, _| {});
    let why = refused.expect_err("there are no bytes").to_string();
    assert!(why.contains("csd") && why.contains("contents"), "{why}");
}

#[test]
fn partial_writes_compress_as_the_whole_block_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let alpha = |pieces: u32| {
        let log = folder.path().join(format!("{pieces}.rec"));
        let mut program = Program::begin(&log, Contents::All);
        let len = 4096 / pieces;
        for at in 0..64 {
            for piece in 0..pieces {
                let offset = at * BLOCK + u64::from(piece * len);
                program.write(2, offset, len, at);
            }
        }
        program.recorder.finish().expect("room");
        let report = measured(&Settings::new(&log, drive("csd")));
        report.causes[0].alpha.expect("it compresses")
    };
    // The last of four writes of a block leaves it as one write would: half zeros. The first three
    // leave an eighth, two and three eighths of it.
    let (whole, parts) = (alpha(1), alpha(4));
    assert!((0.5..0.54).contains(&whole), "{whole}");
    let expected = (0.5 + 0.375 + 0.25 + 0.125) / (4.0 * 0.5);
    assert!((parts / whole - expected).abs() < 0.03, "{parts}");
}

#[test]
fn discards_can_be_kept_from_the_drive_and_cost_it_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.rec");
    let mut program = Program::begin(&log, Contents::None);
    // Four generations of a file, each at new addresses and removed when the next is written.
    for generation in 0..4_u64 {
        let base = generation * 5000;
        for round in 0..4 {
            (0..5000).for_each(|at| {
                program.write(
                    2,
                    (at + round) % 5000 * BLOCK,
                    4096,
                    base + (at + round) % 5000,
                );
            });
        }
        let extent = Extent {
            lba: base,
            blocks: 5000,
        };
        let discard = Event::Discard {
            node: NodeId(2),
            extents: vec![extent],
        };
        program.recorder.note(discard).expect("room");
    }
    program.recorder.finish().expect("room");
    let mut settings = Settings::new(&log, drive("ssd"));
    let told = measured(&settings);
    settings.discards = false;
    let untold = measured(&settings);
    assert!(untold.device.logical_blocks > 3 * told.device.logical_blocks);
    assert_eq!(told.causes[0].discards, 4 * 5000 * BLOCK);
}

#[test]
fn what_cannot_be_measured_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = recorded(folder.path(), Contents::None);
    let refused = |change: &dyn Fn(&mut Settings)| {
        let mut settings = Settings::new(&log, drive("ssd"));
        change(&mut settings);
        let result = DriveReport::measure(&settings, &mut |_, _, _| {});
        result.expect_err("refused").to_string()
    };
    let mut small = drive("ssd");
    *small.capacity_mut().expect("a drive") = Some(1 << 20);
    let why = refused(&|settings| settings.devices = vec![small.clone()]);
    assert!(why.contains("capacity") && why.contains("1048576"), "{why}");
    let why = refused(&|settings| settings.devices = vec![drive("pm")]);
    assert!(why.contains("pm"), "{why}");
    let why = refused(&|settings| settings.warmup = Warmup::Mark("nothing".into()));
    assert!(why.contains("nothing"), "{why}");
    let why = refused(&|settings| settings.causes = vec![("a".into(), "[".into())]);
    assert!(why.contains("a=["), "{why}");
}
