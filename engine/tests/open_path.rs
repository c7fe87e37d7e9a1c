//! Tests stores opened by path: created, reopened with the options in the file, growing with their
//! data, shared by handles, and read by ranges.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use treering_engine::prelude::*;
use treering_engine::{Error, PageStoreKind, TablePersist, verify_path};

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.store");
    (folder, path)
}

fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).expect("is there").len()
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

#[test]
fn reopening_takes_its_options_from_the_file() {
    for spec in [
        "btree",
        "bminus",
        "btree(page=16KiB)+cow",
        "bf+cow(table=each-flush)",
    ] {
        let spec: TreeSpec = spec.parse().expect(spec);
        let (_folder, path) = place();
        let store = Store::open_path(&path, |options| {
            let limit_bytes = options.limit_bytes;
            *options = spec.options().expect("a page tree");
            options.limit_bytes = limit_bytes;
        });
        let store = store.expect("is made");
        for n in 0..500 {
            store.put(&key(n), &[7; 90]).expect("puts");
        }
        drop(store);

        let store = Store::open_path(&path, |_| {}).expect("opens");
        let pages = spec.pages().expect("a page tree");
        assert_eq!(store.options().page_size, pages.page_size, "{spec}");
        assert_eq!(store.options().store, pages.store, "{spec}");
        assert_eq!(store.range::<&[u8]>(..).count(), 500, "{spec}");
        store.close().expect("closes");
        assert_eq!(
            verify_path(&path).expect("verifies").damage,
            [""; 0],
            "{spec}"
        );
    }
}

#[test]
fn the_file_grows_with_the_data_and_a_truncated_file_is_refused() {
    let cow = PageStoreKind::CopyOnWrite {
        table: TablePersist::EachFlush,
    };
    for kind in [PageStoreKind::InPlace, PageStoreKind::Shadow, cow] {
        let (_folder, path) = place();
        let open = || {
            Store::open_path(&path, |options| {
                options.store = kind;
                options.log_bytes = 1 << 20;
                options.log_buffer_bytes = 64 << 10;
                options.checkpoint_log_bytes = 256 << 10;
                options.durability = Durability::Deferred;
                options.limit_bytes = Some(1 << 30);
            })
        };
        let store = open().expect("is made");
        let before = file_bytes(&path);
        assert!(before < 8 << 20, "{kind:?}: {before} bytes in a new store");
        for n in 0..20_000 {
            store.put(&key(n), &[n as u8; 1_000]).expect("puts");
        }
        store.close().expect("closes");
        let after = file_bytes(&path);
        assert!(after > 20 << 20, "{kind:?}: {after} bytes for 20 MB");
        assert!(after < 120 << 20, "{kind:?}: {after} bytes for 20 MB");

        let store = open().expect("opens");
        for n in (0..20_000).step_by(97) {
            let value = store.get_owned(&key(n)).expect("reads");
            assert_eq!(value, Some(vec![n as u8; 1_000]), "{kind:?}: key {n}");
        }
        store.close().expect("closes");
        assert_eq!(
            verify_path(&path).expect("verifies").damage,
            [""; 0],
            "{kind:?}"
        );

        let file = std::fs::OpenOptions::new().write(true).open(&path);
        file.expect("opens")
            .set_len(after / 8192 * 4096)
            .expect("cuts");
        let cut = open().err().expect("is refused").to_string();
        assert!(cut.contains("was the file cut?"), "{kind:?}: {cut}");
    }
}

#[test]
fn readers_share_a_file_and_a_writer_excludes_them() {
    let (_folder, path) = place();
    let store = Store::open_path(&path, |_| {}).expect("is made");
    store.put(b"key", b"value").expect("puts");
    store.close().expect("closes");
    let reader = || Store::open_path(&path, |options| options.read_only = true);
    let (one, other) = (reader().expect("opens"), reader().expect("opens"));
    for store in [&one, &other] {
        assert!(store.get_owned(b"key").expect("reads").is_some());
        assert!(matches!(store.put(b"key", b""), Err(Error::ReadOnly)));
    }
    let writer = Store::open_path(&path, |_| {});
    assert!(
        writer.is_err(),
        "a writer must not open the file next to readers"
    );
    drop((one, other));
    assert!(Store::open_path(&path, |_| {}).is_ok());
}

#[test]
fn a_store_is_full_only_at_its_limit() {
    let (_folder, path) = place();
    let store = Store::open_path(&path, |options| {
        options.log_bytes = 1 << 20;
        options.log_buffer_bytes = 64 << 10;
        options.checkpoint_log_bytes = 256 << 10;
        options.durability = Durability::Deferred;
        options.limit_bytes = Some(16 << 20);
    });
    let store = store.expect("is made");
    let put = |n: u32| store.put(&key(n), &[1; 1_000]);
    let full = (0..20_000).find_map(|n| put(n).err().map(|e| (n, e)));
    let (n, e) = full.expect("20 MB must not fit into 16 MiB");
    assert!(matches!(e, Error::Full { .. }), "{e}");
    assert!(n > 6_000, "only {n} records of 1,000 bytes fit into 16 MiB");
    assert!(file_bytes(&path) <= 16 << 20);
}

#[test]
fn handles_share_a_store_until_the_last_is_dropped() {
    let (_folder, path) = place();
    let store = Store::open_path(&path, |options| options.durability = Durability::Deferred);
    let store = store.expect("is made");
    let threads: Vec<_> = (0..4_u32)
        .map(|thread| {
            let store = store.clone();
            std::thread::spawn(move || {
                for n in 0..500 {
                    store.put(&key(n * 4 + thread), b"value").expect("puts");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("ends");
    }
    drop(store);
    let store = Store::open_path(&path, |_| {}).expect("opens: the lock is free");
    assert_eq!(store.range::<&[u8]>(..).count(), 2_000);

    let other = store.clone();
    store.close().expect("closes");
    assert!(matches!(other.put(b"key", b"value"), Err(Error::Closed)));
    assert_eq!(other.range::<&[u8]>(..).count(), 2_000, "reads go on");
}

#[test]
fn ranges_match_a_sorted_map_from_both_ends() {
    let (_folder, path) = place();
    let store = Store::open_path(&path, |options| options.durability = Durability::Deferred);
    let store = store.expect("is made");
    let mut map = BTreeMap::new();
    let mut random = StdRng::seed_from_u64(11);
    for _ in 0..700 {
        let key = random.random_range(0..1_000_u32).to_be_bytes().to_vec();
        let value = vec![random.random(); random.random_range(0..20)];
        store.put(&key, &value).expect("puts");
        map.insert(key, value);
    }
    for round in 0..200 {
        let mut bound = || {
            let key = random.random_range(0..1_100_u32).to_be_bytes().to_vec();
            match random.random_range(0..3) {
                0 => Bound::Unbounded,
                1 => Bound::Included(key),
                _ => Bound::Excluded(key),
            }
        };
        let range = (bound(), bound());
        let is_in = |key: &Vec<u8>| std::ops::RangeBounds::<Vec<u8>>::contains(&range, key);
        let rows = map.iter().filter(|(key, _)| is_in(key));
        let mut expected: std::collections::VecDeque<Row> = rows
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let mut found = store.range(range.clone());
        loop {
            let (row, wanted) = match random.random_bool(0.5) {
                true => (found.next(), expected.pop_front()),
                false => (found.next_back(), expected.pop_back()),
            };
            let row = row.map(|row| row.expect("reads"));
            assert_eq!(row, wanted, "round {round}: {range:?}");
            if wanted.is_none() {
                break;
            }
        }
    }
}
