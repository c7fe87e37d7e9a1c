//! Tests the contract of devices: reads return what was written, trimmed blocks are zeros, and bad
//! requests and bad files are reported.

use std::sync::Arc;
use std::time::{Duration, Instant};

use treering_engine::device::{
    Access, AlignedBuf, BlockDevice, BlockWrite, DeviceError, FileAccess, FileDevice, FileIo,
    FileOptions, MemDevice, MemPm, PmDevice, Volume,
};
use treering_engine::{IoClass, Lba, Options, Store, SystemClock};

const P: IoClass = IoClass::Page;

fn contract(device: &dyn BlockDevice) {
    let n = device.capacity_blocks();
    let mut seen = AlignedBuf::zeroed(3 * 4096);
    device.read(Lba(n - 3), &mut seen, P).unwrap();
    assert!(
        seen.iter().all(|b| *b == 0),
        "never written blocks are zeros"
    );

    let mut data = AlignedBuf::zeroed(3 * 4096);
    data.iter_mut()
        .enumerate()
        .for_each(|(i, b)| *b = (i / 4096 + 1) as u8);
    device.write(Lba(62), &data, P).unwrap();
    // Unaligned buffers work, too.
    let mut odd = vec![0; 3 * 4096 + 1];
    device.read(Lba(62), &mut odd[1..], P).unwrap();
    assert_eq!(&odd[1..], &data[..]);
    device.write(Lba(70), &odd[1..4097], P).unwrap();

    let writes: Vec<BlockWrite<'_>> = (0..100)
        .map(|i| BlockWrite {
            lba: Lba(80 + 2 * i),
            bytes: &data[4096..8192],
            class: P,
        })
        .collect();
    device.write_batch(&writes).unwrap();
    device.flush().unwrap();
    for i in 0..100 {
        device.read(Lba(80 + 2 * i), &mut seen[..8192], P).unwrap();
        assert!(seen[..4096].iter().all(|b| *b == 2), "block {}", 80 + 2 * i);
        assert!(seen[4096..8192].iter().all(|b| *b == 0));
    }
    device.trim(Lba(63), 1).unwrap();
    device.flush().unwrap();
    device.read(Lba(62), &mut seen, P).unwrap();
    assert!(seen[..4096].iter().all(|b| *b == 1) && seen[8192..].iter().all(|b| *b == 3));
    let (trimmed, was) = (&seen[4096..8192], &data[4096..8192]);
    assert!(trimmed.iter().all(|b| *b == 0) || trimmed == was, "trimmed");

    assert!(matches!(
        device.read(Lba(n), &mut seen, P),
        Err(DeviceError::OutOfRange { .. })
    ));
    assert!(matches!(
        device.write(Lba(u64::MAX), &data, P),
        Err(DeviceError::OutOfRange { .. })
    ));
    assert!(matches!(
        device.trim(Lba(n - 1), 2),
        Err(DeviceError::OutOfRange { .. })
    ));
    assert!(matches!(
        device.write(Lba(0), &data[..5], P),
        Err(DeviceError::Misaligned { .. })
    ));
    assert!(matches!(
        device.read(Lba(0), &mut [], P),
        Err(DeviceError::Misaligned { .. })
    ));
}

#[test]
fn memory_devices_keep_the_contract_and_free_trimmed_blocks() {
    let device = MemDevice::new(300);
    contract(&device);
    assert!(device.resident_bytes() > 0);
    device.trim(Lba(0), 300).unwrap();
    assert_eq!(device.resident_bytes(), 0);
}

#[test]
fn files_keep_the_contract_and_their_contents() {
    let dir = tempfile::tempdir().unwrap();
    for (made, opened) in [
        (FileIo::Direct, FileIo::Direct),
        (FileIo::Direct, FileIo::Buffered),
        (FileIo::Buffered, FileIo::Direct),
    ] {
        let path = dir.path().join(format!("store {made:?} {opened:?}"));
        let device = FileDevice::create_for(&path, 300, made).unwrap();
        contract(&device);
        eprintln!("{:?}, notice: {:?}", device.access(), device.notice());
        let Access::File { direct, io_uring } = device.access() else {
            panic!("a file says so")
        };
        assert_eq!(io_uring, device.uses_io_uring());
        assert_eq!(direct, device.notice().is_none());
        if made == FileIo::Buffered {
            assert!(!direct);
        }
        let at_once = FileOptions {
            lock_wait: Duration::ZERO,
            ..FileOptions::default()
        };
        let second = FileDevice::open_with(&path, &at_once).err();
        let second = second.expect("locked").to_string();
        assert!(
            second.contains("store") && second.contains("in use"),
            "{second}"
        );
        drop(device);
        let device = FileDevice::open_for(&path, opened).unwrap();
        assert_eq!(device.capacity_blocks(), 300);
        let mut block = vec![0; 4096];
        device.read(Lba(62), &mut block, P).unwrap();
        assert!(block.iter().all(|b| *b == 1));
    }
}

#[test]
fn unusable_files_are_named_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("odd"), [0; 5000]).unwrap();
    std::fs::write(at("empty"), []).unwrap();
    let cases = [
        (FileDevice::open(at("none")), "none", "No such file"),
        (FileDevice::open(dir.path()), "", "not a regular file"),
        (FileDevice::open(at("odd")), "odd", "5000 bytes"),
        (FileDevice::open(at("empty")), "empty", "0 bytes"),
        (FileDevice::create(at("odd"), 4), "odd", "exists"),
        (FileDevice::create(at("zero"), 0), "zero", "0 blocks"),
        (FileDevice::create(at("no/dir"), 4), "dir", "No such file"),
    ];
    assert!(!at("zero.new").exists() && !at("odd.new").exists());
    for (outcome, name, why) in cases {
        let error = outcome.err().expect(name).to_string();
        assert!(error.contains(name) && error.contains(why), "{error}");
    }
    assert_eq!(
        std::fs::metadata(at("odd")).unwrap().len(),
        5000,
        "left as it was"
    );
}

#[test]
fn an_interrupted_creation_does_not_block_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let unfinished = dir.path().join("store.new");
    // What is left by a process that is killed before the file has its length, or its name.
    for left in [vec![], vec![7; 3 * 4096 + 5]] {
        std::fs::write(&unfinished, left).unwrap();
        let device = FileDevice::create(&path, 300).unwrap();
        assert!(!unfinished.exists());
        contract(&device);
        drop(device);
        std::fs::remove_file(&path).unwrap();
    }
    // A file that is being created is left to its creator.
    let other = std::fs::File::create(&unfinished).unwrap();
    other.lock().unwrap();
    let choices = FileOptions {
        lock_wait: Duration::ZERO,
        ..FileOptions::default()
    };
    let refused = FileDevice::create_with(&path, 300, &choices).err().unwrap();
    assert!(refused.to_string().contains("in use"), "{refused}");
    assert!(!path.exists());
    drop(other);
    // A file that was created and not formatted is a blank device.
    drop(FileDevice::create(&path, 300).unwrap());
    let options = Options {
        log_bytes: 96 * 4096,
        checkpoint_log_bytes: 48 * 4096,
        log_buffer_bytes: 8 * 4096,
        write_batch_pages: 4,
        ..Options::default()
    };
    let device = Arc::new(FileDevice::open(&path).unwrap());
    let store = Store::open(device, Arc::new(SystemClock::new()), &options).unwrap();
    store.close().unwrap();
}

#[test]
fn lock_waits_are_configurable_and_readers_share_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let device = FileDevice::create(&path, 300).unwrap();
    device.write(Lba(9), &[3; 4096], P).unwrap();
    let choices = |access| FileOptions {
        access,
        lock_wait: Duration::from_millis(10),
        ..FileOptions::default()
    };
    for access in [FileAccess::ReadWrite, FileAccess::ReadOnly] {
        let began = Instant::now();
        let refused = FileDevice::open_with(&path, &choices(access)).err();
        assert!(refused.expect("locked").to_string().contains("in use"));
        assert!(began.elapsed() < Duration::from_secs(2), "{access:?}");
    }
    drop(device);
    let readers = [(); 2].map(|()| {
        let device = FileDevice::open_with(&path, &choices(FileAccess::ReadOnly)).unwrap();
        let mut block = [0; 4096];
        device.read(Lba(9), &mut block, P).unwrap();
        assert_eq!(block, [3; 4096]);
        assert!(device.write(Lba(9), &[4; 4096], P).is_err());
        device
    });
    assert!(FileDevice::open_with(&path, &choices(FileAccess::ReadWrite)).is_err());
    drop(readers);
    FileDevice::open_with(&path, &choices(FileAccess::ReadWrite)).unwrap();
}

#[test]
fn trimmed_blocks_become_holes_unless_rewritten() {
    let dir = tempfile::tempdir().unwrap();
    let device = FileDevice::create(dir.path().join("store"), 1000).unwrap();
    let bytes = AlignedBuf::zeroed(400 * 4096);
    device.write(Lba(100), &bytes, P).unwrap();
    device.flush().unwrap();
    let full = device.allocated_bytes().unwrap();
    assert!(full >= 400 * 4096, "{full}");
    device.trim(Lba(100), 400).unwrap();
    assert_eq!(device.allocated_bytes().unwrap(), full, "nothing at once");
    device.write(Lba(200), &[5; 4096], P).unwrap();
    let nothing = Lba(0)..Lba(0);
    device.reclaim(nothing);
    let mut block = [0; 4096];
    device.read(Lba(200), &mut block, P).unwrap();
    assert_eq!(block, [5; 4096]);
    let left = device.allocated_bytes().unwrap();
    assert!(left < 64 << 10, "{left} bytes left of {full}");
}

#[test]
fn volumes_count_io_by_class() {
    let volume = Volume::new(Arc::new(MemDevice::new(16)));
    let data = AlignedBuf::zeroed(8192);
    volume.write(Lba(0), &data, IoClass::Log).unwrap();
    let write = |class| BlockWrite {
        lba: Lba(4),
        bytes: &data[..4096],
        class,
    };
    volume
        .write_batch(&[write(IoClass::Page), write(IoClass::Extra)])
        .unwrap();
    volume
        .read(Lba(1), &mut vec![0; 4096], IoClass::Page)
        .unwrap();
    volume.trim(Lba(0), 3).unwrap();
    volume.flush().unwrap();
    assert!(
        volume.write(Lba(16), &data, IoClass::Log).is_err(),
        "and a refused write does not"
    );
    let s = volume.stats();
    assert_eq!(
        (s.written.log, s.written.page, s.written.extra),
        (8192, 4096, 4096)
    );
    assert_eq!(
        (s.read.total(), s.read.page, s.trimmed_bytes, s.flushes),
        (4096, 4096, 12288, 1)
    );
}

#[test]
fn persistent_memory_loses_only_unfenced_stores() {
    let pm = MemPm::new(256);
    pm.store(0, &[1; 64]).unwrap();
    pm.clwb(5).unwrap();
    pm.fence();
    pm.store(0, &[2; 8]).unwrap();
    pm.clwb(0).unwrap();
    pm.store(0, &[3; 8]).unwrap();
    pm.ntstore(64, &[4; 64]).unwrap();
    let crash = |pick: usize| pm.crash(&mut |n| pick.min(n - 1)).to_vec();
    assert_eq!((crash(0)[0], crash(0)[8], crash(0)[64]), (1, 1, 0));
    assert_eq!((crash(1)[0], crash(1)[64]), (2, 4));
    assert_eq!((crash(2)[0], crash(2)[64]), (3, 4));
    pm.fence();
    assert_eq!(
        (crash(0)[0], crash(0)[64]),
        (2, 4),
        "the later store was not written back"
    );
    assert!(pm.store(250, &[0; 7]).is_err());
    assert_eq!(MemPm::from_image(crash(1)).len(), 256);
}
