//! Four threads on one store. Each has its own keys, interleaved with those of the others, and must
//! read what it wrote.

mod support;

use std::thread;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use support::{Map, disk, get, scan};
use treering_adapters::{NAMES, engine};
use treering_engine::{Kv, Lsn};
use treering_oracle::value::value;

const THREADS: u8 = 4;
const WRITES: u64 = 500;

/// Runs the writes of one thread, reads each back, and returns the thread's final map.
fn work(store: &dyn Kv, thread: u8) -> Map {
    let mut rng = SmallRng::seed_from_u64(u64::from(thread));
    let mut map = Map::new();
    for version in 0..WRITES {
        // The last byte is the thread number, so that keys of all threads share pages.
        let key = vec![b'k', rng.random_range(0..60), thread];
        if rng.random_range(0..4) == 0 {
            store.delete(&key).expect("delete");
            map.remove(&key);
        } else {
            let value = value(version, rng.random_range(0..300));
            store.put(&key, &value).expect("put");
            map.insert(key.clone(), value);
        }
        assert_eq!(get(store, &key).as_ref(), map.get(&key), "{key:02x?}");
        if version % 50 == 0 {
            let all = scan(store, &[], usize::MAX);
            assert!(
                all.is_sorted_by(|a, b| a.0 < b.0),
                "a scan must be in order"
            );
            let own: Map = all.into_iter().filter(|r| r.0[2] == thread).collect();
            assert_eq!(own, map, "a scan must return all keys of the thread");
        }
        if version % 100 == 99 {
            store.sync(Lsn(u64::MAX)).expect("sync");
        }
    }
    map
}

#[test]
fn four_threads_read_their_own_writes() {
    let only = std::env::var("ENGINE").ok();
    for name in NAMES {
        if only.as_deref().is_some_and(|only| only != *name) {
            continue;
        }
        let engine = engine(name).expect(name);
        let (disk, _folder) = disk(&*engine);
        let store = engine.open(&disk).expect(name);
        let expected: Map = thread::scope(|scope| {
            let store = &*store;
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| scope.spawn(move || work(store, thread)))
                .collect();
            let left = threads.into_iter().map(|t| t.join().expect(name));
            left.flatten().collect()
        });
        let found: Map = scan(&*store, &[], usize::MAX).into_iter().collect();
        assert_eq!(found, expected, "{name}");
    }
}
