//! A seeded differential run of an engine against an ordered map.

// Each test binary uses only a part of this module.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use treering_engine::device::{MemDevice, MemPm};
use treering_engine::{Kv, Lsn};
use treering_oracle::value::{describe, value};
use treering_oracle::{Disk, DiskKind, Engine};

pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A disk of the kind that `engine` needs. Dropping the guard removes its folder.
pub(crate) fn disk(engine: &dyn Engine) -> (Disk, Option<tempfile::TempDir>) {
    match engine.disk() {
        DiskKind::Blocks(blocks) => (Disk::Blocks(Arc::new(MemDevice::new(blocks))), None),
        DiskKind::Pm(bytes) => (Disk::Pm(Arc::new(MemPm::new(bytes))), None),
        DiskKind::Folder => {
            let folder = tempfile::tempdir().expect("a temporary folder");
            (Disk::Folder(folder.path().to_owned()), Some(folder))
        }
    }
}

/// The rows of a scan from `from`, at most `limit`.
pub(crate) fn scan(store: &dyn Kv, from: &[u8], limit: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let visited = store.scan(from, &mut |key, value| {
        if found.len() == limit {
            return ControlFlow::Break(());
        }
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    });
    visited.unwrap_or_else(|error| panic!("scan from {from:02x?}: {error}"));
    found
}

pub(crate) fn get(store: &dyn Kv, key: &[u8]) -> Option<Vec<u8>> {
    let mut found = Vec::new();
    let there = store.get(key, &mut found);
    there
        .unwrap_or_else(|error| panic!("get {key:02x?}: {error}"))
        .then_some(found)
}

/// Panics at the first record in which the two differ.
pub(crate) fn compare(story: &str, found: &[(Vec<u8>, Vec<u8>)], expected: &[(Vec<u8>, Vec<u8>)]) {
    let all = found;
    for i in 0..found.len().max(expected.len()) {
        let (found, expected) = (found.get(i), expected.get(i));
        assert!(
            found == expected,
            "{story}: record {i}, after {}: expected {}, found {}",
            shown(i.checked_sub(1).and_then(|i| all.get(i))),
            shown(expected),
            shown(found)
        );
    }
}

fn shown(record: Option<&(Vec<u8>, Vec<u8>)>) -> String {
    record.map_or("nothing".into(), |(key, value)| {
        format!("{key:02x?} = {}", describe(Some(value)))
    })
}

fn records(map: &Map) -> Vec<(Vec<u8>, Vec<u8>)> {
    map.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// Runs `ops` operations of `seed` and compares every answer.
pub(crate) struct Differential<'e> {
    engine: &'e dyn Engine,
    disk: Disk,
    _folder: Option<tempfile::TempDir>,
    rng: SmallRng,
    map: Map,
    version: u64,
    reopens: bool,
}

impl<'e> Differential<'e> {
    pub(crate) fn new(engine: &'e dyn Engine, seed: u64) -> Differential<'e> {
        let (disk, folder) = disk(engine);
        Differential {
            engine,
            disk,
            _folder: folder,
            rng: SmallRng::seed_from_u64(seed),
            map: Map::new(),
            version: 0,
            reopens: true,
        }
    }

    /// Never reopens the store.
    pub(crate) fn without_reopening(mut self) -> Differential<'e> {
        self.reopens = false;
        self
    }

    pub(crate) fn open(&self) -> Arc<dyn Kv> {
        let opened = self.engine.open(&self.disk);
        opened.unwrap_or_else(|error| panic!("open: {error}"))
    }

    /// A key from a small alphabet, so that keys repeat and are prefixes of each other. Sometimes
    /// the longest key.
    fn key(&mut self) -> Vec<u8> {
        let limits = self.engine.limits();
        let least = usize::from(!limits.empty_key);
        let len = match self.rng.random_range(0..100) {
            0 => limits.max_key,
            1..20 => self.rng.random_range(least..=2),
            _ => self.rng.random_range(least..=6),
        };
        let mut key: Vec<u8> = (0..len.min(8))
            .map(|_| [0, 1, b'a', 0xff][self.rng.random_range(0..4)])
            .collect();
        key.resize(len, b'k');
        key
    }

    fn value_for(&mut self, key: &[u8]) -> Vec<u8> {
        let most = self.engine.limits().max_record - key.len();
        let len = match self.rng.random_range(0..200) {
            0 => most,
            1..20 => 0,
            20..40 => self.rng.random_range(0..=most / 4),
            _ => self.rng.random_range(0..100),
        };
        self.version += 1;
        value(self.version, len)
    }

    pub(crate) fn run(mut self, ops: usize) {
        let mut store = self.open();
        for op in 0..ops {
            let key = self.key();
            match self.rng.random_range(0..1000) {
                0..450 => {
                    let value = self.value_for(&key);
                    let put = store.put(&key, &value);
                    put.unwrap_or_else(|error| panic!("op {op}: put {key:02x?}: {error}"));
                    self.map.insert(key, value);
                }
                450..650 => {
                    let deleted = store.delete(&key);
                    deleted.unwrap_or_else(|error| panic!("op {op}: delete {key:02x?}: {error}"));
                    self.map.remove(&key);
                }
                650..900 => {
                    let (found, expected) = (get(&*store, &key), self.map.get(&key));
                    assert!(
                        found.as_ref() == expected,
                        "op {op}: get {key:02x?}: expected {}, found {}",
                        describe(expected.map(Vec::as_slice)),
                        describe(found.as_deref())
                    );
                }
                900..980 => {
                    let limit = [1, 10, 70, usize::MAX][self.rng.random_range(0..4)];
                    let expected: Vec<_> = self
                        .map
                        .range(key.clone()..)
                        .take(limit)
                        .map(|(k, v)| (k.clone(), v.clone()))
                        .collect();
                    let story = format!("op {op}: scan from {key:02x?}");
                    compare(&story, &scan(&*store, &key, limit), &expected);
                }
                980..998 => store
                    .sync(Lsn(u64::MAX))
                    .unwrap_or_else(|error| panic!("op {op}: sync: {error}")),
                _ if !self.reopens => {}
                _ => {
                    drop(store);
                    store = self.open();
                    let story = format!("op {op}: reopened");
                    compare(&story, &scan(&*store, &[], usize::MAX), &records(&self.map));
                }
            }
        }
        if self.reopens {
            drop(store);
            store = self.open();
        }
        compare(
            "at the end",
            &scan(&*store, &[], usize::MAX),
            &records(&self.map),
        );
        for (key, value) in &self.map {
            assert_eq!(
                get(&*store, key).as_ref(),
                Some(value),
                "at the end: get {key:02x?}"
            );
        }
    }
}
