//! Bytes on the face `files`: holes, reservations, mapped files, the end of the drive, and that
//! the recording has every byte at its place.

mod common;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};

use common::Drive;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use treering_drive::face::PageCache;
use treering_drive::recording::event::FlushKind;
use treering_drive::recording::{Event, Extent, NodeId};

const BOTH: [PageCache; 2] = [PageCache::WriteBack, PageCache::WriteThrough];

fn open(drive: &Drive, name: &str) -> File {
    let mut how = File::options();
    how.read(true).write(true).create(true).truncate(false);
    how.open(drive.path(name)).expect("open")
}

/// The bytes of the drive's blocks, as the recording tells them.
fn replay(recording: Vec<(Event, Vec<u8>)>) -> HashMap<u64, Vec<u8>> {
    let mut blocks: HashMap<u64, Vec<u8>> = HashMap::new();
    for (event, bytes) in recording {
        match event {
            Event::Write(write) => {
                assert_eq!(write.len as usize, bytes.len());
                let lbas: Vec<u64> = write
                    .extents
                    .iter()
                    .flat_map(|e| e.lba..e.lba + e.blocks)
                    .collect();
                for (at, byte) in bytes.iter().enumerate() {
                    let place = write.offset as usize % 4096 + at;
                    let block = blocks.entry(lbas[place / 4096]).or_insert(vec![0; 4096]);
                    block[place % 4096] = *byte;
                }
                let place = write.offset as usize % 4096 + bytes.len();
                assert_eq!(lbas.len(), place.div_ceil(4096), "{write:?}");
            }
            Event::Discard { extents, .. } => {
                for lba in extents.iter().flat_map(|e| e.lba..e.lba + e.blocks) {
                    blocks.remove(&lba);
                }
            }
            _ => {}
        }
    }
    blocks
}

#[test]
fn the_recording_has_every_byte_at_its_place() {
    for page_cache in BOTH {
        let Some(mut drive) = Drive::new(page_cache, 1024) else {
            return;
        };
        let file = open(&drive, "file");
        let other = open(&drive, "other");
        let mut expected = vec![0; 300_000];
        for step in 0..200u64 {
            let (at, len) = ((step * 7919) % 290_000, 1 + (step * 131) % 9_000);
            let byte = step as u8 | 1;
            file.write_all_at(&vec![byte; len as usize], at)
                .expect("write");
            let end = expected.len().min((at + len) as usize);
            expected[at as usize..end].fill(byte);
            other
                .write_all_at(&vec![byte; len as usize], step * 5000)
                .expect("write");
        }
        file.set_len(300_000).expect("truncate");
        file.sync_all().expect("fsync");
        let mut found = Vec::new();
        File::open(drive.path("file"))
            .and_then(|mut f| f.read_to_end(&mut found))
            .expect("read");
        assert!(found == expected, "the file is not what was written");
        drop((file, other));
        drive.unmount();
        let recording = drive.recording.take();
        let mut lbas = HashMap::new();
        for (event, _) in &recording {
            if let Event::Write(write) = event
                && write.node == NodeId(2)
            {
                let places = write.extents.iter().flat_map(|e| e.lba..e.lba + e.blocks);
                for (block, lba) in (write.offset / 4096..).zip(places) {
                    let before = lbas.insert(block, lba);
                    assert!(
                        before.is_none_or(|before| before == lba),
                        "overwritten in place"
                    );
                }
            }
        }
        let blocks = replay(recording);
        for (block, bytes) in expected.chunks(4096).enumerate() {
            let recorded = lbas.get(&(block as u64)).and_then(|lba| blocks.get(lba));
            let recorded = recorded.map_or([0; 4096].as_slice(), Vec::as_slice);
            assert!(
                recorded[..bytes.len()] == *bytes,
                "block {block} with {page_cache:?}"
            );
        }
    }
}

#[test]
fn holes_read_as_zeros_and_are_found_even_below_dirty_pages() {
    for page_cache in BOTH {
        let Some(drive) = Drive::new(page_cache, 1024) else {
            return;
        };
        let mut file = open(&drive, "file");
        file.write_all_at(&[1; 4096], 1 << 30).expect("write");
        file.write_all_at(&[2; 100], 8192).expect("write");
        assert_eq!(file.seek(SeekFrom::End(0)).expect("seek"), (1 << 30) + 4096);
        let seek = |from: u64, data: bool| {
            let whence = if data {
                rustix::fs::SeekFrom::Data(from)
            } else {
                rustix::fs::SeekFrom::Hole(from)
            };
            rustix::fs::seek(&file, whence)
        };
        assert_eq!(seek(0, true), Ok(8192));
        assert_eq!(seek(0, false), Ok(0));
        assert_eq!(seek(8200, false), Ok(12288));
        assert_eq!(seek(12288, true), Ok(1 << 30));
        assert_eq!(seek(1 << 30, false), Ok((1 << 30) + 4096));
        assert_eq!(seek((1 << 30) + 4096, true), Err(Errno::NXIO));
        let mut bytes = vec![9; 4096];
        file.read_exact_at(&mut bytes, 4096).expect("read");
        assert_eq!(bytes, [0; 4096]);
        file.sync_all().expect("fsync");
        assert_eq!(drive.mount().stats().used_blocks, 2);
    }
}

#[test]
fn punched_and_truncated_bytes_are_zeros_and_their_blocks_discarded() {
    for page_cache in BOTH {
        let Some(drive) = Drive::new(page_cache, 1024) else {
            return;
        };
        let file = open(&drive, "file");
        file.write_all_at(&[5; 40_960], 0).expect("write");
        file.sync_all().expect("fsync");
        drive.events();
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, punch, 4000, 9000).expect("punch");
        file.set_len(20_000).expect("truncate");
        file.set_len(40_960).expect("truncate");
        let mut expected = vec![5; 20_000];
        expected.resize(40_960, 0);
        expected[4000..13_000].fill(0);
        assert!(fs::read(drive.path("file")).expect("read") == expected);
        let discards = drive.events().into_iter().filter_map(|event| match event {
            Event::Discard { extents, .. } => Some(extents),
            _ => None,
        });
        let discards: Vec<Vec<Extent>> = discards.collect();
        let expected = [
            [Extent { lba: 1, blocks: 2 }],
            [Extent { lba: 5, blocks: 5 }],
        ];
        assert_eq!(discards, expected);
        assert_eq!(drive.mount().stats().used_blocks, 3);
        for flags in [FallocateFlags::COLLAPSE_RANGE, FallocateFlags::INSERT_RANGE] {
            assert_eq!(fallocate(&file, flags, 0, 4096), Err(Errno::OPNOTSUPP));
        }
    }
}

#[test]
fn reserved_room_is_room_and_reads_as_zeros() {
    let Some(drive) = Drive::new(PageCache::WriteThrough, 16) else {
        return;
    };
    let file = open(&drive, "file");
    file.write_all_at(&[3; 4096], 0).expect("write");
    fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 40_960).expect("room");
    assert_eq!(file.metadata().expect("stat").len(), 4096);
    fallocate(&file, FallocateFlags::empty(), 0, 40_960).expect("room");
    let metadata = file.metadata().expect("stat");
    assert_eq!((metadata.len(), metadata.blocks()), (40_960, 80));
    assert_eq!(
        fallocate(&file, FallocateFlags::empty(), 0, 70_000),
        Err(Errno::NOSPC)
    );
    fallocate(&file, FallocateFlags::ZERO_RANGE, 100, 8000).expect("zeros");
    let bytes = fs::read(drive.path("file")).expect("read");
    assert!(bytes[..100] == [3; 100] && bytes[100..].iter().all(|byte| *byte == 0));
    assert_eq!(drive.mount().stats().used_blocks, 10);
}

/// The kernel releases a file a moment after its last close, and only then its room is free.
fn soon(what: &str, mut is: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !is() {
        assert!(began.elapsed().as_secs() < 10, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_full_drive_says_so_and_soon_has_room_again() {
    let Some(drive) = Drive::new(PageCache::WriteThrough, 64) else {
        return;
    };
    let full = fs::write(drive.path("big"), vec![1; 65 * 4096]).expect_err("too big");
    assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
    let free = || rustix::fs::statvfs(drive.path("")).expect("statfs").f_bfree;
    fs::remove_file(drive.path("big")).expect("unlink");
    for _ in 0..20 {
        soon("the removed file keeps its room", || free() == 64);
        fs::write(drive.path("big"), vec![1; 64 * 4096]).expect("it fits exactly");
        assert_eq!(free(), 0);
        fs::remove_file(drive.path("big")).expect("unlink");
    }
    assert_eq!(drive.mount().stats().peak_used_blocks, 64);
}

#[test]
fn delayed_writes_to_a_full_drive_fail_at_fsync() {
    let Some(drive) = Drive::new(PageCache::WriteBack, 64) else {
        return;
    };
    let file = open(&drive, "big");
    let written = file.write_all_at(&vec![1; 100 * 4096], 0);
    let synced = written.and_then(|()| file.sync_all());
    assert_eq!(
        synced.expect_err("too big").raw_os_error(),
        Some(libc::ENOSPC)
    );
}

#[test]
fn a_mapped_file_is_written_and_read_back() {
    for (page_cache, direct) in [BOTH[0], BOTH[1]].into_iter().zip([0, libc::O_DIRECT]) {
        let Some(drive) = Drive::new(page_cache, 1024) else {
            return;
        };
        let mut how = File::options();
        let how = how
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(direct);
        let file = how.open(drive.path("file")).expect("open");
        file.set_len(16_384).expect("truncate");
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a fresh mapping of the whole file, which nobody truncates meanwhile; it is not
        // used behind `munmap`.
        unsafe {
            let map = mmap(std::ptr::null_mut(), 16_384, protection, flags, &file, 0);
            let map = map.expect("a mapping");
            std::slice::from_raw_parts_mut(map.cast::<u8>(), 16_384)[5000..5005]
                .copy_from_slice(b"hello");
            msync(map, 16_384, MsyncFlags::SYNC).expect("msync");
            munmap(map, 16_384).expect("munmap");
        }
        let events = drive.events();
        let write = events.iter().find_map(|event| match event {
            Event::Write(write) => Some((write.offset, write.len, write.cached)),
            _ => None,
        });
        assert_eq!(write, Some((4096, 4096, true)), "with {page_cache:?}");
        // The kernel syncs a mapping as `fdatasync` does.
        let synced = |event: &Event| {
            matches!(
                event,
                Event::Flush {
                    kind: FlushKind::Data,
                    ..
                }
            )
        };
        assert!(events.iter().any(synced), "{events:?}");
        assert_eq!(
            &fs::read(drive.path("file")).expect("read")[5000..5005],
            b"hello"
        );
    }
}

#[test]
fn flushes_and_synced_writes_are_told_apart() {
    let Some(drive) = Drive::new(PageCache::WriteThrough, 1024) else {
        return;
    };
    let file = open(&drive, "file");
    file.write_all_at(b"plain", 0).expect("write");
    file.sync_data().expect("fdatasync");
    file.sync_all().expect("fsync");
    File::open(drive.path(""))
        .and_then(|dir| dir.sync_all())
        .expect("fsync of a directory");
    let kinds = drive.events().into_iter().filter_map(|event| match event {
        Event::Flush { node, kind } => Some((node.0, kind)),
        _ => None,
    });
    let kinds: Vec<_> = kinds.collect();
    assert_eq!(
        kinds,
        [
            (2, FlushKind::Data),
            (2, FlushKind::File),
            (1, FlushKind::Directory)
        ]
    );
    let mut how = File::options();
    let how = how.append(true).custom_flags(libc::O_DSYNC);
    let mut synced = how.open(drive.path("file")).expect("open");
    synced.write_all(b"synced").expect("write");
    drop(synced);
    let events = drive.events();
    let written = events.iter().find_map(|event| match event {
        Event::Write(write) => Some((write.offset, write.synced)),
        _ => None,
    });
    assert_eq!(written, Some((5, true)));
    assert_eq!(drive.mount().stats().bytes_written, 11);
}

#[test]
fn syncfs_sends_dirty_pages_and_records_no_flush() {
    let Some(drive) = Drive::new(PageCache::WriteBack, 64) else {
        return;
    };
    let file = open(&drive, "file");
    file.write_all_at(&[1; 4096], 0).expect("write");
    let root = File::open(drive.path("")).expect("the directory");
    rustix::fs::syncfs(&root).expect("syncfs");
    // The kernel does not wait for them.
    let mut events = Vec::new();
    soon("the dirty page is written", || {
        let new = drive.events();
        let written = new.iter().any(|event| matches!(event, Event::Write(_)));
        events.extend(new);
        written
    });
    file.sync_all().expect("fsync");
    events.extend(drive.events());
    let flushes = events.iter().filter_map(|event| match event {
        Event::Flush { kind, .. } => Some(*kind),
        _ => None,
    });
    // If this fails because there is one of the drive, the kernel has learnt to tell of it.
    assert_eq!(flushes.collect::<Vec<_>>(), [FlushKind::File]);
}

#[test]
fn writing_takes_the_owners_rights_away() {
    for page_cache in BOTH {
        let Some(drive) = Drive::new(page_cache, 1024) else {
            return;
        };
        // The temporary directory lets only its owner in.
        let all = PermissionsExt::from_mode(0o777);
        fs::set_permissions(drive.path(""), all).expect("chmod");
        let path = drive.path("program");
        fs::write(&path, "text").expect("write");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o6777)).expect("chmod");
        if rustix::process::geteuid().is_root() {
            let status = std::process::Command::new("setpriv")
                .args(["--reuid", "65534", "--clear-groups", "sh", "-c"])
                .arg(format!("echo more >> {}", path.display()))
                .status();
            assert!(status.expect("setpriv").success());
        } else {
            eprintln!("SKIPPED: only root can become somebody else");
            return;
        }
        let mode = fs::metadata(&path).expect("stat").mode() & 0o7777;
        assert_eq!(mode, 0o777, "{mode:o} with {page_cache:?}");
    }
}

#[test]
fn many_threads_write_at_once_and_nothing_is_lost() {
    for page_cache in BOTH {
        let Some(mut drive) = Drive::new(page_cache, 8192) else {
            return;
        };
        std::thread::scope(|scope| {
            for thread in 0..8u8 {
                let drive = &drive;
                scope.spawn(move || {
                    let file = open(drive, &format!("file-{thread}"));
                    for at in 0..200u64 {
                        file.write_all_at(&[thread + 1; 5000], at * 5000)
                            .expect("write");
                    }
                    file.sync_all().expect("fsync");
                });
            }
        });
        for thread in 0..8u8 {
            let bytes = fs::read(drive.path(&format!("file-{thread}"))).expect("read");
            assert!(bytes == vec![thread + 1; 1_000_000], "file {thread}");
        }
        drive.unmount();
        let blocks = replay(drive.recording.take());
        for thread in 0..8u8 {
            let of = |block: &&Vec<u8>| block[0] == thread + 1;
            assert_eq!(
                blocks.values().filter(of).count(),
                1_000_000usize.div_ceil(4096)
            );
        }
    }
}
