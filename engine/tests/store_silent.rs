//! Tests damage that checksums cannot detect: a valid but old image, a valid superblock that is not
//! the newest, a log that ends too early, remains of an earlier store. On a device whose discards
//! do nothing, as with some files, everything once written stays forever. A read returns what was
//! acknowledged, or a typed error, but never older data.

mod support;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use support::{NoTrim, Pages};
use treering_engine::device::{BlockDevice, MemDevice};
use treering_engine::{
    BLOCK_SIZE, Durability, Error, IoClass, Kv, Lba, LogPacking, Lsn, Options, Store, SystemClock,
    TreeKind, required_blocks, survey, verify,
};

const PAGE_BYTES: usize = 4096;
const ALL: Lsn = Lsn(u64::MAX);

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(tree: TreeKind, store: Pages, log_pages: u64) -> Options {
    let log_bytes = log_pages * PAGE_BYTES as u64;
    Options {
        log_bytes,
        checkpoint_log_bytes: log_bytes / 4 * 3,
        log_buffer_bytes: (log_bytes / 8).min(64 << 10),
        durability: Durability::Deferred,
        write_batch_pages: 4,
        ..support::options(tree, store, PAGE_BYTES, 40, 8)
    }
}

fn device(options: &Options, pages: u64) -> Arc<NoTrim> {
    Arc::new(NoTrim(MemDevice::new(required_blocks(options, pages))))
}

fn open(device: &Arc<NoTrim>, options: &Options) -> Result<Store, Error> {
    Store::open(device.clone(), Arc::new(SystemClock::new()), options)
}

fn image(device: &NoTrim) -> Vec<u8> {
    let mut bytes = vec![0; device.capacity_blocks() as usize * BLOCK_SIZE];
    device.read(Lba(0), &mut bytes, IoClass::Extra).unwrap();
    bytes
}

/// Creates a device with these bytes.
fn of(image: &[u8]) -> Arc<NoTrim> {
    let device = NoTrim(MemDevice::new((image.len() / BLOCK_SIZE) as u64));
    for (i, block) in image.chunks_exact(BLOCK_SIZE).enumerate() {
        if block.iter().any(|b| *b != 0) {
            device.write(Lba(i as u64), block, IoClass::Extra).unwrap();
        }
    }
    Arc::new(device)
}

fn is_typed(e: &Error) -> bool {
    matches!(e, Error::Damaged { .. } | Error::MissingPage { .. })
}

/// Checks that every read returns what is in `rows`, or an error that reports damage. Returns
/// whether one did.
fn is_told(device: &Arc<NoTrim>, options: &Options, rows: &Rows, story: &str) -> bool {
    let store = match open(device, options) {
        Ok(store) => store,
        Err(e) => {
            assert!(is_typed(&e), "{story}: {e}");
            return true;
        }
    };
    let mut told = false;
    let mut note = |outcome: Result<(), Error>| {
        if let Err(e) = outcome {
            assert!(is_typed(&e), "{story}: {e}");
            told = true;
        }
    };
    let mut found = Vec::new();
    for (key, value) in rows {
        note(store.get(key, &mut found).map(|there| {
            assert!(there, "{story}: key {key:02x?} is missing");
            assert!(found == *value, "{story}: key {key:02x?} has a wrong value");
        }));
    }
    let (mut up, mut down) = (Rows::new(), Rows::new());
    let upwards = store.scan(b"", &mut |k, v| {
        up.insert(k.to_vec(), v.to_vec());
        ControlFlow::Continue(())
    });
    let downwards = store.scan_back(None, &mut |k, v| {
        down.insert(k.to_vec(), v.to_vec());
        ControlFlow::Continue(())
    });
    assert!(
        upwards.is_err() || up == *rows,
        "{story}: a scan returns wrong rows"
    );
    assert!(
        downwards.is_err() || down == *rows,
        "{story}: a descending scan returns wrong rows"
    );
    note(upwards);
    note(downwards);
    told
}

fn value(key: u32, round: u32) -> Vec<u8> {
    let mut value = vec![round as u8; 150];
    value[..4].copy_from_slice(&key.to_be_bytes());
    value
}

/// Returns a store without work in progress, whose pages were each written several times.
fn quiet(options: &Options) -> (Vec<u8>, Rows) {
    let device = device(options, 200);
    let store = open(&device, options).unwrap();
    let mut rows = Rows::new();
    for round in 1..=6 {
        for key in (0..600u32).filter(|key| round == 1 || key % (round + 5) == 0) {
            store.put(&key.to_be_bytes(), &value(key, round)).unwrap();
            rows.insert(key.to_be_bytes().to_vec(), value(key, round));
        }
        store.checkpoint().unwrap();
    }
    store.close().unwrap();
    for _ in 0..2 {
        open(&device, options).unwrap().close().unwrap();
    }
    (image(&device), rows)
}

#[test]
fn a_flipped_bit_never_reverts_a_page_to_its_previous_image() {
    for (tree, kind) in support::all() {
        let options = options(tree, kind, 64);
        let (pristine, rows) = quiet(&options);
        let pages = survey(of(&pristine)).unwrap().pages;
        assert!(
            pages.len() > 20,
            "{tree:?} on {kind:?}: {} pages",
            pages.len()
        );
        let mut told = 0;
        for (_, lba) in pages.values() {
            let mut rotten = pristine.clone();
            rotten[lba.0 as usize * BLOCK_SIZE + 2048] ^= 4;
            let story = format!("{tree:?} on {kind:?}: a bit of {lba}");
            let listed = verify(of(&rotten)).unwrap().damage;
            let is_told = is_told(&of(&rotten), &options, &rows, &story);
            assert_eq!(is_told, !listed.is_empty(), "{story}: {listed:?}");
            told += u32::from(is_told);
        }
        assert!(told > 20, "{tree:?} on {kind:?}: {told} told");
    }
}

/// Lost writes: any block may have the contents of one of the earlier checkpoints.
#[test]
fn a_stale_block_is_reported() {
    for (tree, kind) in support::all() {
        let options = options(tree, kind, 64);
        let device = device(&options, 100);
        let store = open(&device, &options).unwrap();
        let (mut rows, mut images) = (Rows::new(), Vec::new());
        for round in 1..=5 {
            for key in (0..300u32).filter(|key| round == 1 || key % (round + 2) == 0) {
                store.put(&key.to_be_bytes(), &value(key, round)).unwrap();
                rows.insert(key.to_be_bytes().to_vec(), value(key, round));
            }
            store.checkpoint().unwrap();
            images.push(image(&device));
        }
        store.close().unwrap();
        let newest = image(&device);
        let mut told = 0;
        for old in &images {
            for at in (0..newest.len()).step_by(BLOCK_SIZE) {
                let block = at..at + BLOCK_SIZE;
                if old[block.clone()] == newest[block.clone()] {
                    continue;
                }
                let mut mixed = newest.clone();
                mixed[block.clone()].copy_from_slice(&old[block]);
                let story = format!("{tree:?} on {kind:?}: block {} is old", at / BLOCK_SIZE);
                told += u32::from(is_told(&of(&mixed), &options, &rows, &story));
            }
        }
        assert!(told > 20, "{tree:?} on {kind:?}: {told} told");
    }
}

/// A store that continued after its last checkpoint, as long as the log permitted, until the power
/// failed.
struct Cut {
    image: Vec<u8>,
    rows: Rows,
    /// Its state before the last checkpoint.
    before: Vec<u8>,
}

fn with_a_long_log(options: &Options, splits: bool) -> Cut {
    let device = device(options, 1200);
    let store = open(&device, options).unwrap();
    let mut rows = Rows::new();
    let mut put = |store: &Store, key: u32, round: u32| {
        let value = value(key, round);
        store.put(&key.to_be_bytes(), &value).unwrap();
        rows.insert(key.to_be_bytes().to_vec(), value);
    };
    const KEYS: u32 = 200;
    let mut before = Vec::new();
    for round in 1..=3 {
        // Enough writes for the log to wrap past the beginning of this checkpoint later.
        (0..4 * KEYS).for_each(|key| put(&store, key % KEYS, round));
        before = image(&device);
        store.checkpoint().unwrap();
    }
    let checkpoints = store.stats().checkpoints;
    let begin = store.stats().log_appended_bytes;
    let (mut round, mut more) = (4, KEYS);
    while store.stats().log_appended_bytes - begin < options.log_bytes / 100 * 86 {
        for key in 0..KEYS {
            put(&store, key, round);
            if splits && key % 3 == 0 {
                put(&store, more, round);
                more += 1;
            }
        }
        round += 1;
    }
    store.sync(ALL).unwrap();
    assert_eq!(
        store.stats().checkpoints,
        checkpoints,
        "the log was too short"
    );
    Cut {
        image: image(&device),
        rows,
        before,
    }
}

#[test]
fn damage_to_either_superblock_is_refused() {
    for (tree, kind) in support::all() {
        for splits in [false, true] {
            let options = options(tree, kind, 160);
            let Cut {
                image: pristine,
                rows,
                ..
            } = with_a_long_log(&options, splits);
            let story = format!("{tree:?} on {kind:?}, splits {splits}");
            assert!(!is_told(&of(&pristine), &options, &rows, &story));
            for which in 0..2 {
                for damage in ["a bit", "zeros"] {
                    let mut rotten = pristine.clone();
                    let block = &mut rotten[which * BLOCK_SIZE..][..BLOCK_SIZE];
                    match damage {
                        "a bit" => block[100] ^= 1,
                        _ => block.fill(0),
                    }
                    let refused = open(&of(&rotten), &options).err();
                    let refused = refused.map(|e| e.to_string()).unwrap_or_default();
                    let expected = format!("superblock at block {which} is damaged");
                    assert!(refused.contains(&expected), "{story}, {damage}: {refused}");
                    let listed = verify(of(&rotten)).unwrap().damage;
                    assert!(!listed.is_empty(), "{story}, {damage}");
                }
            }
        }
    }
}

/// The newest superblock was never written, so its place still has the one before its predecessor.
/// The log at the predecessor's redo start has been overwritten since.
#[test]
fn a_lost_superblock_write_is_detected() {
    for (tree, kind) in support::all() {
        for splits in [false, true] {
            let options = options(tree, kind, 160);
            let cut = with_a_long_log(&options, splits);
            let places = [0..BLOCK_SIZE, BLOCK_SIZE..2 * BLOCK_SIZE];
            let mut written = places
                .into_iter()
                .filter(|p| cut.image[p.clone()] != cut.before[p.clone()]);
            let place = written.next().expect("the last checkpoint's");
            assert_eq!(written.next(), None, "one superblock per checkpoint");
            let mut lost = cut.image.clone();
            lost[place.clone()].copy_from_slice(&cut.before[place]);
            let story = format!("{tree:?} on {kind:?}, splits {splits}");
            let told = is_told(&of(&lost), &options, &cut.rows, &story);
            assert!(told, "{story}: the damage is not reported");
            assert!(
                open(&of(&lost), &options).is_err(),
                "{story}: the store must not open"
            );
        }
    }
}

/// Options for a store that flushes its log in pieces of up to four mebibytes.
fn with_long_flushes(packing: LogPacking) -> Options {
    let kind = Pages {
        packing,
        ..support::IN_PLACE
    };
    Options {
        log_bytes: 16 << 20,
        checkpoint_log_bytes: 12 << 20,
        log_buffer_bytes: 4 << 20,
        cache_bytes: 8 << 20,
        ..options(TreeKind::BTree, kind, 64)
    }
}

fn put_kilobyte(store: &Store, rows: &mut Rows, key: u32) {
    store.put(&key.to_be_bytes(), &[7; 1000]).unwrap();
    rows.insert(key.to_be_bytes().to_vec(), vec![7; 1000]);
}

#[test]
fn damage_in_the_middle_of_a_long_flush_is_not_taken_for_the_end_of_the_log() {
    for packing in [LogPacking::Packed, LogPacking::Sparse] {
        let options = with_long_flushes(packing);
        let device = device(&options, 4000);
        let store = open(&device, &options).unwrap();
        let mut rows = Rows::new();
        let mut put = |key: u32| put_kilobyte(&store, &mut rows, key);
        (0..3000).for_each(&mut put);
        store.sync(ALL).unwrap();
        let long = store.stats().log_flushes;
        put(3000);
        store.sync(ALL).unwrap();
        assert!(
            store.stats().log_flushes > long,
            "the block must not be in the last flush"
        );
        let pristine = image(&device);
        let log = survey(of(&pristine)).unwrap();
        let in_use = log.log.iter().flatten().count() as u64;
        assert!(in_use > 700, "{in_use} blocks of log");
        for at in (0..in_use - 2).step_by(50) {
            let mut rotten = pristine.clone();
            rotten[(log.log_start.0 + at) as usize * BLOCK_SIZE + 999] ^= 0x20;
            let story = format!("{packing:?}: block {at} of the log");
            let told = is_told(&of(&rotten), &options, &rows, &story);
            assert!(told, "{story}: the damage is not reported");
            assert!(!verify(of(&rotten)).unwrap().damage.is_empty(), "{story}");
        }
    }
}

/// After a crash, the last flush may have been cut short. After a drop, it was complete.
#[test]
fn damage_in_the_last_flush_of_a_dropped_store_is_reported() {
    for (packing, last) in [
        (LogPacking::Packed, 1),
        (LogPacking::Packed, 700),
        (LogPacking::Sparse, 700),
    ] {
        let options = with_long_flushes(packing);
        let device = device(&options, 4000);
        let store = open(&device, &options).unwrap();
        let mut rows = Rows::new();
        let mut put = |key: u32| put_kilobyte(&store, &mut rows, key);
        (0..300).for_each(&mut put);
        store.sync(ALL).unwrap();
        (300..300 + last).for_each(&mut put);
        drop(store);
        let pristine = image(&device);
        assert!(!is_told(&of(&pristine), &options, &rows, "as it was left"));
        let log = survey(of(&pristine)).unwrap();
        let in_use = log.log.iter().flatten().count() as u64;
        for at in (0..in_use).step_by(7).chain([in_use - 2, in_use - 1]) {
            let mut rotten = pristine.clone();
            rotten[(log.log_start.0 + at) as usize * BLOCK_SIZE + 30] ^= 0x20;
            let story = format!("{packing:?}, last flush {last}: block {at} of {in_use}");
            let told = is_told(&of(&rotten), &options, &rows, &story);
            assert!(told, "{story}: the damage is not reported");
            assert!(!verify(of(&rotten)).unwrap().damage.is_empty(), "{story}");
        }
        // The log continues at the place of the block that marked its end.
        let store = open(&device, &options).unwrap();
        store.put(b"later", b"on").unwrap();
        rows.insert(b"later".to_vec(), b"on".to_vec());
        store.sync(ALL).unwrap();
        store.abandon();
        assert!(!is_told(&device, &options, &rows, "after continuing"));
    }
}

#[test]
fn a_new_store_never_returns_data_of_its_predecessor_on_the_device() {
    for (tree, kind) in support::all() {
        let options = options(tree, kind, 64);
        let device = device(&options, 200);
        let store = open(&device, &options).unwrap();
        for key in 0..400u32 {
            store.put(&key.to_be_bytes(), &value(key, 9)).unwrap();
        }
        store.sync(ALL).unwrap();
        drop(store);
        for _ in 0..2 {
            let blank = vec![0; 2 * BLOCK_SIZE];
            device.write(Lba(0), &blank, IoClass::Extra).unwrap();
            let store = open(&device, &options).unwrap();
            let rows = Rows::from([(b"new".to_vec(), b"one".to_vec())]);
            store.put(b"new", b"one").unwrap();
            store.sync(ALL).unwrap();
            // The state that a power cut leaves, and the state after a clean end.
            let story = format!("{tree:?} on {kind:?}");
            let cut = of(&image(&device));
            assert!(!is_told(&cut, &options, &rows, &story), "{story}");
            store.close().unwrap();
            assert!(!is_told(&device, &options, &rows, &story), "{story}");
            let store = open(&device, &options).unwrap();
            let mut all = Rows::new();
            for key in (0..400u32).rev() {
                store.put(&key.to_be_bytes(), &value(key, 1)).unwrap();
                all.insert(key.to_be_bytes().to_vec(), value(key, 1));
            }
            all.insert(b"new".to_vec(), b"one".to_vec());
            store.sync(ALL).unwrap();
            let cut = of(&image(&device));
            assert!(!is_told(&cut, &options, &all, &story), "{story}");
        }
    }
}

/// If discards do nothing, free blocks keep their former contents, in which bits may flip.
#[test]
fn damage_in_free_space_is_harmless_to_later_data() {
    for (tree, kind) in support::all() {
        let options = options(tree, kind, 64);
        let device = device(&options, 100);
        let (mut rows, mut free) = (Rows::new(), 0);
        for generation in 0..3u32 {
            let store = open(&device, &options).unwrap();
            for key in 0..300u32 {
                store
                    .put(&key.to_be_bytes(), &value(key, generation))
                    .unwrap();
                rows.insert(key.to_be_bytes().to_vec(), value(key, generation));
            }
            store.checkpoint().unwrap();
            for key in (0..300u32).step_by(20) {
                store.put(&key.to_be_bytes(), &value(key, 100)).unwrap();
            }
            store.checkpoint().unwrap();
            for key in 0..300u32 {
                store.delete(&key.to_be_bytes()).unwrap();
            }
            store.close().unwrap();
            let mut block = vec![0; BLOCK_SIZE];
            for lba in (2..device.capacity_blocks()).map(Lba) {
                device.read(lba, &mut block, IoClass::Extra).unwrap();
                if &block[4..8] != b"MLOG" {
                    continue;
                }
                // The few remaining leaves use some of these blocks, and damage to those is
                // reported.
                let mut rotten = image(&device);
                rotten[lba.0 as usize * BLOCK_SIZE + 900] ^= 0x40;
                if verify(of(&rotten)).unwrap().damage.is_empty() {
                    block[900] ^= 0x40;
                    device.write(lba, &block, IoClass::Extra).unwrap();
                    free += 1;
                }
            }
            rows.clear();
        }
        let store = open(&device, &options).unwrap();
        for key in 0..300u32 {
            store.put(&key.to_be_bytes(), &value(key, 50)).unwrap();
            rows.insert(key.to_be_bytes().to_vec(), value(key, 50));
        }
        store.close().unwrap();
        let story = format!("{tree:?} on {kind:?}");
        assert!(!is_told(&device, &options, &rows, &story), "{story}: told");
        let some = kind.mod_log.is_none() || tree != TreeKind::BTree || free > 4;
        assert!(some, "{story}: {free} modification logs in free space");
    }
}

#[test]
fn a_lost_modification_log_is_reported() {
    for kind in [
        support::BMINUS,
        support::IN_PLACE_LOGGED,
        support::LAZY_LOGGED,
    ] {
        let options = options(TreeKind::BTree, kind, 64);
        let (pristine, rows) = quiet(&options);
        let mut told = 0;
        for at in (0..pristine.len()).step_by(BLOCK_SIZE) {
            if &pristine[at + 4..at + 8] == b"MLOG" {
                let mut lost = pristine.clone();
                lost[at..at + BLOCK_SIZE].fill(0);
                let story = format!("{kind:?}: block {} is zeros", at / BLOCK_SIZE);
                let listed = verify(of(&lost)).unwrap().damage;
                let is_told = is_told(&of(&lost), &options, &rows, &story);
                assert_eq!(is_told, !listed.is_empty(), "{story}: {listed:?}");
                told += u32::from(is_told);
            }
        }
        assert!(told > 4, "{kind:?}: {told} told");
    }
}
