//! Recordings whose writer dies, or whose disk is full.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use treering_drive::face::{Face, PageCache};
use treering_drive::recording::event::Write;
use treering_drive::recording::{
    Contents, Event, Extent, Header, NodeId, Reader, Recorded, Recorder, Sink,
};

/// Names the file that the killed process records to.
const LOG: &str = "TREERING_TEST_RECORDING";

fn create(path: &Path) -> Recorder {
    let header = Header::new(Face::Files, 1 << 20, PageCache::WriteBack);
    Recorder::create(path, header, Contents::All).expect("begins")
}

/// Bytes that only the write with this number has.
fn contents(number: u64) -> Vec<u8> {
    let words = (0..512_u64).flat_map(|word| {
        let seed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ word;
        xxhash_rust::xxh3::xxh3_64(&seed.to_le_bytes()).to_le_bytes()
    });
    words.collect()
}

fn write(number: u64) -> Write {
    Write {
        node: NodeId(2),
        offset: number * 4096,
        len: 4096,
        extents: vec![Extent {
            lba: number,
            blocks: 1,
        }],
        synced: false,
        cached: false,
    }
}

/// Checks that the recording is the beginning of writes with the numbers 0, 1, 2, … and returns
/// how many there are.
fn prefix(path: &Path) -> u64 {
    let mut reader = Reader::open(path).expect("is a recording");
    let mut pieces = reader.pieces().expect("is readable");
    let (mut recorded, mut number, mut bytes) = (Recorded::default(), 0, Vec::new());
    while reader.next(&mut recorded).expect("is readable") {
        assert_eq!(
            recorded.event,
            Event::Write(write(number)),
            "event {number}"
        );
        bytes.clear();
        pieces.read(&recorded, &mut bytes).expect("is readable");
        assert!(bytes == contents(number), "the bytes of event {number}");
        number += 1;
    }
    assert!(reader.truncated().is_some(), "it has no end");
    number
}

/// Not a test: the process that is killed. Says how many writes were taken.
#[test]
fn writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(LOG) else {
        return;
    };
    let recorder = create(path.as_ref());
    for number in 0_u64.. {
        recorder
            .write(write(number), &contents(number))
            .expect("is taken");
        if number.is_multiple_of(100) {
            println!("taken {number}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_killed_writer_leaves_all_but_its_last_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.log");
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "writes_until_it_is_killed", "--nocapture"])
        .env(LOG, &log)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let out = BufReader::new(child.stdout.take().expect("is piped"));
    let (send, taken) = mpsc::channel();
    let reading = std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            let number = line.strip_prefix("taken ").and_then(|n| n.parse().ok());
            if let Some(number) = number {
                let _ = send.send((Instant::now(), number));
            }
        }
    });
    std::thread::sleep(Duration::from_secs(3));
    child.kill().expect("SIGKILL");
    let killed = Instant::now();
    child.wait().expect("is gone");
    reading.join().expect("reads to the end");
    let taken: Vec<(Instant, u64)> = taken.iter().collect();
    // 200 ms are promised beside the queue; the rest is for a busy machine.
    let old = Duration::from_millis(1500);
    let before = taken.iter().filter(|(at, _)| killed - *at >= old);
    let safe: u64 = before
        .map(|(_, number)| *number)
        .max()
        .expect("some were taken early");
    let found = prefix(&log);
    assert!(
        found > safe && safe > 100,
        "{found} are there, {safe} were taken long before"
    );
}

#[test]
fn many_threads_record_each_in_its_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.log");
    let recorder = create(&log);
    let (threads, writes) = (8, 3000);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let recorder = &recorder;
            scope.spawn(move || {
                for number in 0..writes {
                    let write = Write {
                        node: NodeId(2 + thread),
                        ..write(number)
                    };
                    let bytes = contents(thread * writes + number);
                    recorder.write(write, &bytes).expect("is taken");
                }
            });
        }
    });
    let summary = recorder.finish().expect("is written");
    assert_eq!((summary.writes, summary.stored_pieces), (24_000, 24_000));
    let mut reader = Reader::open(&log).expect("is a recording");
    let mut pieces = reader.pieces().expect("is readable");
    let (mut recorded, mut bytes) = (Recorded::default(), Vec::new());
    let (mut next, mut last_ns) = (vec![0; threads as usize], 0);
    while reader.next(&mut recorded).expect("is readable") {
        assert!(recorded.wall_ns >= last_ns, "time goes back");
        last_ns = recorded.wall_ns;
        let Event::Write(found) = &recorded.event else {
            panic!("{recorded:?}");
        };
        let thread = found.node.0 - 2;
        let number = &mut next[thread as usize];
        assert_eq!(found.offset, *number * 4096);
        bytes.clear();
        pieces.read(&recorded, &mut bytes).expect("is readable");
        assert!(bytes == contents(thread * writes + *number));
        *number += 1;
    }
    assert!(next.iter().all(|n| *n == writes) && reader.truncated().is_none());
}

/// Unmounts at the end.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_stops_the_recording_and_leaves_a_prefix() {
    let folder = tempfile::tempdir().expect("a folder");
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"])
        .arg(folder.path())
        .output();
    if !mount.is_ok_and(|done| done.status.success()) {
        eprintln!("SKIPPED: mounting a tmpfs needs root");
        return;
    }
    let _mounted = Mounted(folder.path());
    let log = folder.path().join("run.log");
    let recorder = create(&log);
    let began = Instant::now();
    let mut number = 0;
    while recorder.write(write(number), &contents(number)).is_ok() {
        number += 1;
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "is never refused"
        );
        std::thread::sleep(Duration::from_micros(if number < 1000 { 300 } else { 0 }));
    }
    let flush = Event::Flush {
        node: NodeId(2),
        kind: treering_drive::recording::event::FlushKind::Data,
    };
    assert!(recorder.note(flush).is_err());
    let error = recorder.finish().expect_err("the disk is full").to_string();
    assert!(
        error.contains("run.log: No space left on device"),
        "{error}"
    );
    // How many fit depends on how the writer's blocks fell, and so on the load of the machine.
    let found = prefix(&log);
    assert!(found > 100 && found <= number, "{found} of {number}");
}
