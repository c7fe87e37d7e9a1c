//! Tests damage to a page, slot or log block of a closed store: reading the page returns a typed
//! error, and `verify` lists the damage. No read returns a wrong or stale value.

mod support;

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::Pages;
use treering_engine::device::{BlockDevice, CrashDevice, Image};
use treering_engine::{
    BLOCK_SIZE, Durability, Error, IoClass, Kv, Lba, Options, Store, SystemClock, TreeKind,
    required_blocks, verify,
};

const KEYS: u32 = 400;
const PAGE_BYTES: usize = 8192;

fn options(tree: TreeKind, store: Pages) -> Options {
    let log_bytes = 64 * PAGE_BYTES as u64;
    Options {
        log_bytes,
        checkpoint_log_bytes: log_bytes / 2,
        log_buffer_bytes: log_bytes / 8,
        durability: Durability::Deferred,
        write_batch_pages: 4,
        ..support::options(tree, store, PAGE_BYTES, 32, 4)
    }
}

/// Opens a store that ends like a killed process, unless it is closed.
fn open(device: &Arc<CrashDevice>, options: &Options) -> Result<Store, Error> {
    Store::open(device.clone(), Arc::new(SystemClock::new()), options)
        .inspect(Store::abandon_on_drop)
}

fn value(key: u32, round: u32) -> Vec<u8> {
    let mut value = vec![round as u8; 150];
    value[..4].copy_from_slice(&key.to_be_bytes());
    value
}

/// Returns a closed store, and the round in which each key was last put. Every round but the first
/// changes few keys, so that most pages have deltas in their modification logs, if there are any.
fn closed(options: &Options) -> (Image, Vec<u32>) {
    let device = Arc::new(CrashDevice::new(required_blocks(options, 100)));
    let store = open(&device, options).unwrap();
    let mut last = vec![0; KEYS as usize];
    for round in 0..6 {
        let step = if round == 0 { 1 } else { 19 + round as usize };
        for key in (round..KEYS).step_by(step) {
            store.put(&key.to_be_bytes(), &value(key, round)).unwrap();
            last[key as usize] = round;
        }
        store.checkpoint().unwrap();
    }
    store.close().unwrap();
    (device.crash(&mut |n| n - 1), last)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Slot,
    Log,
}

/// Returns the blocks of pages and their logs: every block that begins like one, and the second
/// block of each page.
fn blocks(device: &CrashDevice) -> Vec<(What, Lba)> {
    let mut block = vec![0; BLOCK_SIZE];
    let mut found = Vec::new();
    for lba in (0..device.capacity_blocks()).map(Lba) {
        device.read(lba, &mut block, IoClass::Page).unwrap();
        if &block[24..26] == b"TR" {
            found.extend([(What::Slot, lba), (What::Slot, Lba(lba.0 + 1))]);
        } else if &block[4..8] == b"MLOG" {
            found.push((What::Log, lba));
        }
    }
    found
}

/// Returns whether reading the store reports damage. If it does not, the contents must be correct.
fn is_told(device: &Arc<CrashDevice>, options: &Options, last: &[u32], story: &str) -> bool {
    let is_typed = |e: &Error| matches!(e, Error::Damaged { .. } | Error::MissingPage { .. });
    let store = match open(device, options) {
        Ok(store) => store,
        Err(e) => {
            assert!(is_typed(&e), "{story}: {e}");
            return true;
        }
    };
    let mut told = false;
    let mut found = Vec::new();
    for (key, round) in (0..).zip(last) {
        match store.get(&u32::to_be_bytes(key), &mut found) {
            Ok(there) => assert!(
                there && found == value(key, *round),
                "{story}: key {key} has a wrong value"
            ),
            Err(e) => {
                assert!(is_typed(&e), "{story}: {e}");
                told = true;
            }
        }
    }
    told
}

#[test]
fn damaged_slots_and_log_blocks_are_reported_and_never_used() {
    let mut rng = StdRng::seed_from_u64(3);
    for (tree, kind) in support::all() {
        let options = options(tree, kind);
        let (image, last) = closed(&options);
        let (mut slots, mut logs) = (0, 0);
        for (what, lba) in blocks(&CrashDevice::from_image(image.clone())) {
            let device = Arc::new(CrashDevice::from_image(image.clone()));
            let mut block = vec![0; BLOCK_SIZE];
            let at = rng.random_range(0..BLOCK_SIZE);
            device.read(lba, &mut block, IoClass::Page).unwrap();
            block[at] ^= rng.random_range(1..=255_u8);
            device.write(lba, &block, IoClass::Page).unwrap();
            let story = format!("{tree:?} on {kind:?}: {what:?} at {lba}, byte {at} damaged");
            let listed = verify(device.clone()).unwrap().damage;
            let told = is_told(&device, &options, &last, &story);
            assert_eq!(!listed.is_empty(), told, "{story}: {listed:?}");
            match what {
                What::Slot => slots += u32::from(told),
                What::Log => logs += u32::from(told),
            }
        }
        assert!(slots > 20, "{tree:?} on {kind:?}: {slots} slots");
        assert!(
            kind.mod_log.is_none() || logs > 8,
            "{tree:?} on {kind:?}: {logs} log blocks"
        );
    }
}
