//! Fuzzes a store: some of its leaves are damaged under valid checksums, and any tree opens it.
//! Every operation must return a result or a typed error.

use std::ops::ControlFlow;
use std::sync::Arc;

use treering_engine::device::{BlockDevice, MemDevice};
use treering_engine::node::{ChangeMap, PageMut, PageRef, check_for};
use treering_engine::{IoClass, Kv, Lba, Options, Store, SystemClock, verify};

use super::Input;
use crate::support::{self, STORES, TREES};

const BLOCKS: u64 = 600;

fn options(input: &mut Input<'_>) -> Options {
    let options = support::options(input.pick(&TREES), input.pick(&STORES), 4096, 16, 4);
    support::with_log(32 * 4096, options)
}

fn key(n: usize) -> Vec<u8> {
    [&b"key-"[..], &(n as u16).to_be_bytes(), &[7; 3][..n % 4]].concat()
}

fn open(device: &Arc<MemDevice>, options: &Options) -> Option<Store> {
    Store::open(device.clone(), Arc::new(SystemClock::new()), options)
        .inspect(Store::abandon_on_drop)
        .ok()
}

/// Runs the target, and returns how many operations failed.
pub(crate) fn run(data: &[u8]) -> usize {
    let mut input = Input::new(data);
    let device = Arc::new(MemDevice::new(BLOCKS));
    let made = options(&mut input);
    let store = open(&device, &made).expect("an empty device");
    for n in 0..300 {
        store
            .put(&key(n * 37 % 300), &vec![n as u8; n % 90])
            .expect("puts");
    }
    store.close().expect("closes");
    damage(&device, &mut input);
    let opened = Options {
        tree: input.pick(&TREES),
        ..made
    };
    let Some(store) = open(&device, &opened) else {
        return 1;
    };
    let mut failures = 0;
    let mut got = Vec::new();
    for _ in 0..120 {
        let key = key(input.word() % 320);
        let done = match input.byte() % 8 {
            0..3 => store.put(&key, &vec![1; input.word() % 700]).map(drop),
            3..5 => store.delete(&key).map(drop),
            5 => store.get(&key, &mut got).map(drop),
            6 => store.scan(&key, &mut |_, _| ControlFlow::Continue(())),
            _ => store.checkpoint().map(drop),
        };
        failures += usize::from(done.is_err());
    }
    failures += usize::from(store.close().is_err());
    failures += usize::from(open(&device, &opened).is_none());
    let _ = verify(device);
    failures
}

/// Changes bytes of some leaves, and fixes the checksums.
fn damage(device: &MemDevice, input: &mut Input<'_>) {
    let store = support::store_id(device);
    let mut block = vec![0; 4096];
    let mut leaves = Vec::new();
    for lba in (0..BLOCKS).map(Lba) {
        device.read(lba, &mut block, IoClass::Page).expect("reads");
        if check_for(&block, PageRef::new(&block).page_id(), store).is_ok() {
            leaves.push(lba);
        }
    }
    for _ in 0..1 + input.byte() % 4 {
        let lba = leaves[input.word() % leaves.len()];
        device.read(lba, &mut block, IoClass::Page).expect("reads");
        for _ in 0..1 + input.byte() % 4 {
            // The header after the magic, the slots, or the fences at the end.
            let at = match input.byte() % 8 {
                0..3 => 28 + usize::from(input.byte()) % 20,
                3..7 => 40 + input.word() % 400,
                _ => 4095 - usize::from(input.byte()) % 16,
            };
            block[at] = match input.byte() % 2 {
                0 => input.byte(),
                _ => block[at] ^ 1 << (input.byte() % 8),
            };
        }
        PageMut::new(&mut block, &mut ChangeMap::new()).seal_for(store);
        device.write(lba, &block, IoClass::Page).expect("writes");
    }
}
