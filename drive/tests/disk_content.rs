//! A disk keeps what was written to it, and programs run on it as on any other.

mod disk;

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use treering_drive::DriveError;
use treering_drive::disk::OnlineDiscard;
use treering_drive::face::{FileSystem, Mounted, PageCache};
use treering_drive::recording::event::FlushKind;
use treering_drive::recording::{Event, InMemory, NodeId, Nowhere};

#[test]
fn a_kept_disk_reads_back_equal() {
    if !disk::can_mount("a kept disk") {
        return;
    }
    for fs in disk::ALL {
        let (dir, keep) = (
            tempfile::tempdir().expect("dir"),
            tempfile::tempdir().expect("dir"),
        );
        let mut options = disk::options(dir.path());
        options.keep = Some(keep.path().to_owned());
        let sums = std::cell::RefCell::default();
        disk::with_disk(&options, fs, Arc::new(Nowhere), |dir| {
            let script = "mkdir -p a/b; head -c 30000000 /dev/urandom > a/big; \
                for i in $(seq 200); do head -c $((i * 37)) /dev/urandom > a/b/$i; done; \
                ln -s big a/link; find a -type f -exec cksum {} + | sort";
            *sums.borrow_mut() = disk::shell(dir, script);
        });
        let sink = Arc::new(InMemory::default());
        disk::with_disk(&options, fs, sink.clone(), |dir| {
            let found = disk::shell(
                dir,
                "test -L a/link; find a -type f -exec cksum {} + | sort",
            );
            assert_eq!(found, *sums.borrow(), "{fs:?}");
        });
        let written: usize = sink.take().iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(
            written < 4 << 20,
            "{fs:?}: mounted again without mkfs, {written} bytes written"
        );
        let other = match fs {
            FileSystem::Ext4 => FileSystem::Xfs,
            _ => FileSystem::Ext4,
        };
        let refused = treering_drive::disk::mount(&options, other, Arc::new(Nowhere)).err();
        assert!(
            matches!(refused, Some(DriveError::Bad { .. })),
            "{fs:?}: {refused:?}"
        );
        options.capacity_blocks += 1;
        let refused = treering_drive::disk::mount(&options, fs, Arc::new(Nowhere)).err();
        assert!(
            matches!(refused, Some(DriveError::Parameter { .. })),
            "{fs:?}: {refused:?}"
        );
    }
}

#[test]
fn the_recording_makes_the_same_disk() {
    if !disk::can_mount("a disk from its recording") {
        return;
    }
    for fs in disk::ALL {
        let (dir, keep) = (
            tempfile::tempdir().expect("dir"),
            tempfile::tempdir().expect("dir"),
        );
        let mut options = disk::options(dir.path());
        options.keep = Some(keep.path().to_owned());
        let sink = Arc::new(InMemory::default());
        disk::with_disk(&options, fs, sink.clone(), |dir| {
            disk::shell(
                dir,
                "seq 1000000 > a; sync; rm a; seq 300000 > b; fstrim .; seq 9 > c",
            );
        });
        let mut replayed = vec![0; 512 << 20];
        for (event, bytes) in sink.take() {
            match event {
                Event::Write(w) => {
                    replayed[w.offset as usize..][..bytes.len()].copy_from_slice(&bytes)
                }
                Event::Punch { offset, len, .. } => {
                    replayed[offset as usize..(offset + len) as usize].fill(0);
                }
                _ => {}
            }
        }
        let image = fs::read(keep.path().join(treering_drive::disk::KEPT)).expect("kept");
        let differs = image
            .chunks(4096)
            .zip(replayed.chunks(4096))
            .position(|(a, b)| a != b);
        assert_eq!(differs, None, "{fs:?}: first block that differs");
    }
}

#[test]
fn flushes_and_discards_reach_the_recording() {
    if !disk::can_mount("flushes and discards") {
        return;
    }
    for fs in disk::ALL {
        let dir = tempfile::tempdir().expect("dir");
        let sink = Arc::new(InMemory::default());
        let recorded = sink.clone();
        disk::with_disk(&disk::options(dir.path()), fs, sink, |dir| {
            let _ = recorded.take();
            disk::shell(
                dir,
                "dd if=/dev/zero of=f bs=4k count=100 oflag=dsync status=none",
            );
            let flush = Event::Flush {
                node: NodeId::ROOT,
                kind: FlushKind::Drive,
            };
            let flushes = recorded
                .take()
                .into_iter()
                .filter(|(event, _)| *event == flush)
                .count();
            assert!(
                flushes >= 100,
                "{fs:?}: 100 synced writes, {flushes} flushes"
            );
            disk::shell(dir, "rm f; sync; fstrim .");
            let blocks = recorded.take().into_iter().map(|(event, _)| match event {
                Event::Discard { extents, .. } => extents.iter().map(|e| e.blocks).sum(),
                _ => 0,
            });
            assert!(
                blocks.sum::<u64>() > 10_000,
                "{fs:?}: fstrim discards what is free"
            );
        });
    }
}

#[test]
fn direct_writes_of_512_bytes_are_taken() {
    if !disk::can_mount("direct I/O") {
        return;
    }
    for fs in disk::ALL {
        let dir = tempfile::tempdir().expect("dir");
        disk::with_disk(&disk::options(dir.path()), fs, Arc::new(Nowhere), |dir| {
            let script = "dd if=/dev/urandom of=a bs=512 count=9 status=none; \
                dd if=a of=b bs=512 oflag=direct status=none; cmp a b";
            disk::shell(dir, script);
        });
    }
}

#[test]
fn fio_verifies_what_it_wrote() {
    if !disk::can_mount("fio") || !disk::has("fio") {
        return;
    }
    for fs in disk::ALL {
        for direct in [0, 1] {
            let dir = tempfile::tempdir().expect("dir");
            let mut options = disk::options(dir.path());
            options.threads = 1 + 2 * direct;
            disk::with_disk(&options, fs, Arc::new(Nowhere), |dir| {
                let script = format!(
                    "fio --name=v --filename=f --size=40m --rw=randwrite --bsrange=4k-64k \
                     --direct={direct} --ioengine=libaio --iodepth=8 --verify=crc32c \
                     --do_verify=1 --verify_fatal=1 --fsync=200"
                );
                disk::shell(dir, &script);
            });
        }
    }
}

#[test]
fn sqlite_runs() {
    if !disk::can_mount("SQLite") || !disk::has("sqlite3") {
        return;
    }
    for fs in disk::ALL {
        let dir = tempfile::tempdir().expect("dir");
        disk::with_disk(&disk::options(dir.path()), fs, Arc::new(Nowhere), |dir| {
            let script = "for mode in wal delete; do sqlite3 $mode.db \"pragma journal_mode=$mode; \
                create table t(a primary key, b); with recursive n(i) as (select 1 union all \
                select i + 1 from n where i < 20000) insert into t select i, hex(randomblob(20)) \
                from n; delete from t where a % 3 = 0; pragma integrity_check;\" | tail -1; done";
            assert_eq!(disk::shell(dir, script), "ok\nok\n", "{fs:?}");
        });
    }
}

#[test]
fn the_disk_itself_is_a_file() {
    if !disk::can_mount("the face none") {
        return;
    }
    for page_cache in [PageCache::WriteBack, PageCache::WriteThrough] {
        let dir = tempfile::tempdir().expect("dir");
        let mut options = disk::options(dir.path());
        (options.page_cache, options.capacity_blocks) = (page_cache, 1000);
        let sink = Arc::new(InMemory::default());
        let recorded = sink.clone();
        disk::with_disk(&options, FileSystem::None, sink, |dir| {
            let path = dir.join("disk");
            let file = fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .expect("open");
            assert_eq!(file.metadata().expect("there").len(), 4_096_000);
            file.write_all_at(b"hello", 8190).expect("room");
            if page_cache == PageCache::WriteThrough {
                let seen = recorded
                    .take()
                    .into_iter()
                    .find_map(|(event, bytes)| match event {
                        Event::Write(write) => Some((write, bytes)),
                        _ => None,
                    });
                let (write, bytes) = seen.expect("before the write returned");
                assert_eq!((write.offset, bytes.as_slice()), (8190, &b"hello"[..]));
                assert_eq!(write.extents.iter().map(|e| e.blocks).sum::<u64>(), 2);
            }
            file.sync_all().expect("synced");
            let events = recorded.take();
            assert!(
                events
                    .iter()
                    .any(|(event, _)| matches!(event, Event::Flush { .. }))
            );
            disk::shell(dir, "fallocate -p -o 8192 -l 4096 disk");
            let mut bytes = [1; 5];
            file.read_exact_at(&mut bytes, 8190).expect("within");
            assert_eq!(&bytes, b"he\0\0\0");
            let beyond = file.write_all_at(&[1; 4096], 4_096_000 - 100);
            let beyond = beyond.and_then(|()| file.sync_all());
            assert!(beyond.is_err(), "beyond its end");
        });
    }
}

#[test]
fn without_online_discard_nothing_is_discarded_by_itself() {
    if !disk::can_mount("no online discard") {
        return;
    }
    for (discard, expected) in [(OnlineDiscard::Off, false), (OnlineDiscard::On, true)] {
        let dir = tempfile::tempdir().expect("dir");
        let sink = Arc::new(InMemory::default());
        let options = disk::options(dir.path());
        let mounted =
            treering_drive::disk::mount_with(&options, FileSystem::Ext4, discard, sink.clone());
        let mounted = mounted.expect("mounted");
        let _ = sink.take();
        disk::shell(
            dir.path(),
            "seq 1000000 > a; sync; rm a; sync; sleep 0.2; seq 9 > b; sync",
        );
        Box::new(mounted).unmount().expect("unmounted");
        let discarded = |(event, _): &(Event, _)| matches!(event, Event::Discard { .. });
        assert_eq!(sink.take().iter().any(discarded), expected, "{discard:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused_in_a_sentence() {
    let dir = tempfile::tempdir().expect("dir");
    fs::write(dir.path().join("x"), "x").expect("room");
    let mount = |options, fs| {
        let refused = treering_drive::disk::mount(&options, fs, Arc::new(Nowhere)).err();
        refused.expect("refused").to_string()
    };
    let said = mount(disk::options(dir.path()), FileSystem::None);
    assert!(
        said.starts_with("dir: ") && said.ends_with("must be empty, found x"),
        "{said}"
    );
    let empty = tempfile::tempdir().expect("dir");
    let mut options = disk::options(empty.path());
    options.threads = 0;
    assert_eq!(
        mount(options, FileSystem::None),
        "threads: at least 1, found 0"
    );
    if !disk::can_mount("the smallest disks") {
        return;
    }
    let mut options = disk::options(empty.path());
    options.capacity_blocks = 100;
    let said = mount(options, FileSystem::Xfs);
    assert_eq!(said, "capacity: xfs needs at least 300 MiB, found 400 KiB");
}
