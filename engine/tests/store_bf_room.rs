//! Tests how much free space a mini-page assumes in its leaf, with keys whose long common prefix is
//! stored only once per leaf.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use treering_engine::device::MemDevice;
use treering_engine::{Durability, Kv, Options, Store, SystemClock};

mod support;
use support::{BF, IN_PLACE, LEAST_RING, contents};

fn key(n: u32) -> Vec<u8> {
    [&[b'p'; 90][..], &n.to_be_bytes()].concat()
}

/// A removed record must not count for more than it did when it was added: a key that is replaced
/// and then deleted frees a suffix, not a whole key.
#[test]
fn deleting_a_replaced_record_frees_only_the_space_it_used() {
    for seed in 0..40 {
        let device = Arc::new(MemDevice::new(4_096));
        let options = Options {
            durability: Durability::Deferred,
            log_bytes: 1 << 20,
            checkpoint_log_bytes: 1 << 18,
            log_buffer_bytes: 1 << 16,
            write_batch_pages: 4,
            ..support::options(BF, IN_PLACE, 4096, 16, LEAST_RING * 4)
        };
        let open = || {
            Store::open(device.clone(), Arc::new(SystemClock::new()), &options)
                .inspect(Store::abandon_on_drop)
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"))
        };
        let store = open();
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut map = BTreeMap::new();
        for n in 0..600 {
            store.put(&key(n * 4), &[1]).expect("puts");
            map.insert(key(n * 4), vec![1]);
        }
        store.checkpoint().expect("checkpoints");
        let mut last = treering_engine::Lsn(0);
        for _ in 0..3_000 {
            let key = key(1_000 + rng.random_range(0..300u32));
            let op = rng.random_range(0..10);
            let done = if op < 4 {
                map.remove(&key);
                store.delete(&key)
            } else {
                let len = if op < 8 { 1 } else { rng.random_range(0..900) };
                map.insert(key.clone(), vec![op; len]);
                store.put(&key, &vec![op; len])
            };
            last = done.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
        assert!(contents(&store) == map, "seed {seed}");
        store.sync(last).expect("syncs");
        drop(store);
        assert!(contents(&open()) == map, "seed {seed}: recovered");
    }
}
