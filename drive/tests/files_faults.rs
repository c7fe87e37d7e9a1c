//! Errors that a drive gives on purpose, on the face `files`.

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write as _};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use common::{has_fuse, options};
use treering_drive::face::PageCache;
use treering_drive::faults::{FaultPlan, Faults};
use treering_drive::files::mount;
use treering_drive::recording::{Event, InMemory};

/// What was recorded, and what the faults tell.
type Ran = (Vec<Event>, Vec<(String, bool)>);

/// Does something on a drive of 64 blocks with faults.
fn with(plan: FaultPlan, does: impl FnOnce(&Path)) -> Option<Ran> {
    if !has_fuse() {
        return None;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = options(dir.path(), PageCache::WriteThrough, 64);
    options.faults = Arc::new(Faults::new(plan));
    let recording = Arc::new(InMemory::default());
    let mounted = mount(&options, recording.clone()).expect("a mount");
    does(dir.path());
    drop(mounted);
    let events = recording.take().into_iter().map(|taken| taken.0);
    Some((events.collect(), options.faults.told()))
}

fn errno(result: std::io::Result<()>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

#[test]
fn a_flush_fails_once_and_is_recorded_as_failed() {
    let plan = FaultPlan {
        flush: Some(2),
        ..FaultPlan::default()
    };
    let ran = with(plan, |dir| {
        let file = File::create(dir.join("f")).expect("create");
        let mut outcomes = Vec::new();
        for n in 0..3 {
            file.write_all_at(b"bytes", n * 5).expect("write");
            outcomes.push(errno(file.sync_all()));
        }
        assert_eq!(outcomes, [None, Some(libc::EIO), None]);
        let read = fs::read(dir.join("f")).expect("read");
        assert_eq!(read, b"bytesbytesbytes", "the program still reads it");
    });
    let Some((events, told)) = ran else { return };
    let flushes = events.iter().filter_map(|event| match event {
        Event::Flush { .. } => Some("flush"),
        Event::FailedFlush { .. } => Some("failed"),
        _ => None,
    });
    assert_eq!(flushes.collect::<Vec<_>>(), ["flush", "failed", "flush"]);
    assert_eq!(told, [("flush 2 of 3 failed".to_owned(), true)]);
}

#[test]
fn a_synchronous_write_is_a_flush_that_may_fail() {
    let plan = FaultPlan {
        flush: Some(1),
        ..FaultPlan::default()
    };
    let ran = with(plan, |dir| {
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true);
        let file = options.custom_flags(libc::O_DSYNC).open(dir.join("f"));
        let mut file = file.expect("create");
        assert_eq!(errno(file.write_all(b"lost")), Some(libc::EIO));
        file.write_all(b"there").expect("the second one");
    });
    let Some((events, _)) = ran else { return };
    let synced = events.iter().filter_map(|event| match event {
        Event::Write(write) => Some(write.synced),
        _ => None,
    });
    assert_eq!(synced.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_full_drive_stays_full_until_something_is_removed() {
    let plan = FaultPlan {
        space: Some(3),
        ..FaultPlan::default()
    };
    let ran = with(plan, |dir| {
        let file = File::create(dir.join("f")).expect("create");
        let write = |n: u64| errno(file.write_all_at(&[1; 4096], n * 4096));
        assert_eq!([write(0), write(1)], [None, None]);
        assert_eq!([write(2), write(3)], [Some(libc::ENOSPC); 2]);
        assert_eq!(write(0), None, "what has its place can be written");
        let other = File::create(dir.join("g")).expect("names need no room");
        assert_eq!(errno(other.write_all_at(b"x", 0)), Some(libc::ENOSPC));
        file.set_len(4096).expect("truncate");
        assert_eq!(errno(other.write_all_at(b"x", 0)), None);
        assert_eq!(write(1), Some(libc::ENOSPC));
    });
    let Some((_, told)) = ran else { return };
    assert!(told[0].1, "{told:?}");
}

#[test]
fn what_cannot_be_read_can_be_written() {
    let plan = FaultPlan {
        read: Some(1),
        ..FaultPlan::default()
    };
    let ran = with(plan, |dir| {
        let path = dir.join("f");
        fs::write(&path, [7; 4096]).expect("write");
        // What was written is in the page cache; past it the drive is asked.
        let mut direct = OpenOptions::new();
        let direct = direct.read(true).write(true).custom_flags(libc::O_DIRECT);
        let mut file = direct.open(&path).expect("open");
        let mut bytes = vec![0; 4096];
        for _ in 0..2 {
            let error = file.read(&mut bytes).expect_err("a bad block");
            assert_eq!(error.raw_os_error(), Some(libc::EIO));
        }
        file.write_all_at(&[8; 4096], 0).expect("write");
        assert_eq!(file.read(&mut bytes).expect("read"), 4096);
        assert_eq!(bytes[0], 8);
    });
    let Some((_, told)) = ran else { return };
    assert!(told[0].1, "{told:?}");
}
