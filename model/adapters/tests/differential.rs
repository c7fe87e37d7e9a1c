//! Compares every engine of the build with an ordered map, also at the limits that the engine
//! states.
//!
//! The long run is ignored by default: `cargo test --release -p treering-adapters --features all --
//! --ignored --nocapture`.

mod support;

use std::time::Instant;

use support::{Differential, disk, get, scan};
use treering_adapters::{NAMES, engine, judged};
use treering_engine::Lsn;
use treering_oracle::Engine;
use treering_oracle::value::value;

/// Runs `seed`. Bf-tree is not reopened, because reopening is known to restore deleted keys
/// (`model/FINDINGS.md`).
fn differential<'e>(name: &str, engine: &'e dyn Engine, seed: u64) -> Differential<'e> {
    match name {
        "bf-tree" => Differential::new(engine, seed).without_reopening(),
        _ => Differential::new(engine, seed),
    }
}

/// Runs `judge` on every engine, or on the one named by the environment.
fn each(judge: impl Fn(&str, &dyn Engine)) {
    let only = std::env::var("ENGINE").ok();
    for name in NAMES {
        if only.as_deref().is_some_and(|only| only != *name) {
            continue;
        }
        let engine = engine(name).expect("a listed name");
        judge(name, &*engine);
    }
}

#[test]
fn every_name_has_an_engine_and_a_description() {
    each(|name, engine| {
        assert_eq!(engine.name(), name);
        assert!(judged(name).starts_with("differential"), "{name}");
    });
    assert!(engine("no such engine").is_none());
}

#[test]
fn two_thousand_operations_agree_with_an_ordered_map() {
    each(|name, engine| {
        eprintln!("{name}");
        differential(name, engine, 1).run(2000);
    });
}

#[test]
#[ignore = "minutes"]
fn a_million_operations_agree_with_an_ordered_map() {
    each(|name, engine| {
        let start = Instant::now();
        for seed in 0..100 {
            differential(name, engine, seed).run(10_000);
        }
        eprintln!("{name}: 1,000,000 operations in {:.1?}", start.elapsed());
    });
}

#[test]
fn keys_that_are_prefixes_of_each_other_are_distinct_and_ordered() {
    each(|name, engine| {
        let (disk, _folder) = disk(engine);
        let store = engine.open(&disk).expect(name);
        let mut keys: Vec<Vec<u8>> = vec![
            b"\0".to_vec(),
            b"\0\0".to_vec(),
            b"a".to_vec(),
            b"a\0".to_vec(),
            b"a\0\0".to_vec(),
            b"a\x01".to_vec(),
            b"aa".to_vec(),
            b"\xff".to_vec(),
            b"\xff\xff".to_vec(),
        ];
        if engine.limits().empty_key {
            keys.insert(0, Vec::new());
        }
        // In another order.
        for (i, key) in keys.iter().enumerate().rev() {
            store.put(key, &value(i as u64, 20)).expect(name);
        }
        let found: Vec<_> = scan(&*store, &[], usize::MAX)
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        assert_eq!(found, keys, "{name}");
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(
                get(&*store, key),
                Some(value(i as u64, 20)),
                "{name}: {key:02x?}"
            );
            let first = scan(&*store, key, 1);
            assert_eq!(first[0].0, *key, "{name}");
        }
    });
}

#[test]
fn empty_values_are_kept_after_reopening() {
    each(|name, engine| {
        let (disk, _folder) = disk(engine);
        let store = engine.open(&disk).expect(name);
        store.put(b"empty", b"").expect(name);
        assert_eq!(get(&*store, b"empty"), Some(vec![]), "{name}");
        assert_eq!(get(&*store, b"absent"), None, "{name}");
        drop(store);
        let store = engine.open(&disk).expect(name);
        assert_eq!(
            scan(&*store, b"", 9),
            [(b"empty".to_vec(), vec![])],
            "{name}"
        );
    });
}

#[test]
fn the_longest_key_and_the_largest_record_fit() {
    each(|name, engine| {
        let limits = engine.limits();
        let (disk, _folder) = disk(engine);
        let store = engine.open(&disk).expect(name);
        let long = |last: u8| {
            let mut key = vec![b'x'; limits.max_key];
            key[limits.max_key - 1] = last;
            key
        };
        // Three keys, so that they cannot share a page and scans continue after the longest key.
        for last in [1, 2, 3] {
            let large = value(u64::from(last), limits.max_record - limits.max_key);
            store.put(&long(last), &large).expect(name);
        }
        let short = value(4, limits.max_record - 1);
        store.put(b"s", &short).expect(name);
        store.sync(Lsn(4)).expect(name);
        drop(store);
        let store = engine.open(&disk).expect(name);
        assert_eq!(get(&*store, b"s"), Some(short), "{name}");
        let found = scan(&*store, &long(1), usize::MAX);
        let keys: Vec<_> = found.iter().map(|(key, _)| key.clone()).collect();
        assert_eq!(keys, [long(1), long(2), long(3)], "{name}");
        assert_eq!(
            found[2].1.len(),
            limits.max_record - limits.max_key,
            "{name}"
        );
    });
}

#[test]
fn deleting_an_absent_key_changes_nothing() {
    each(|name, engine| {
        let (disk, _folder) = disk(engine);
        let store = engine.open(&disk).expect(name);
        store.delete(b"absent").expect(name);
        store.put(b"here", b"1").expect(name);
        store.delete(b"her").expect(name);
        store.delete(b"here\0").expect(name);
        assert_eq!(
            scan(&*store, b"", 9),
            [(b"here".to_vec(), b"1".to_vec())],
            "{name}"
        );
        store.delete(b"here").expect(name);
        store.delete(b"here").expect(name);
        assert!(scan(&*store, b"", 9).is_empty(), "{name}");
    });
}
