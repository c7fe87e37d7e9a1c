//! Runs redb on a device that crashes: synced writes must survive, and only a suffix of the others
//! may be lost.

#![cfg(feature = "redb")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use support::{Map, scan};
use treering_adapters::engine;
use treering_engine::Lsn;
use treering_engine::device::{CrashDevice, Image};
use treering_oracle::value::value;
use treering_oracle::{Disk, DiskKind, Engine};

fn redb() -> (Box<dyn Engine>, u64) {
    let redb = engine("redb").expect("built in");
    let DiskKind::Blocks(blocks) = redb.disk() else {
        panic!("redb runs on blocks");
    };
    (redb, blocks)
}

/// A run on a crashing device, with the map after every write.
struct Run {
    device: Arc<CrashDevice>,
    store: Option<Arc<dyn treering_engine::Kv>>,
    rng: SmallRng,
    /// The map before the first write, after the first, after the second, and so on.
    history: Vec<Map>,
    /// The number of writes that the last sync covers.
    synced: usize,
}

impl Run {
    fn new(redb: &dyn Engine, blocks: u64, seed: u64) -> Run {
        let device = Arc::new(CrashDevice::new(blocks));
        let store = redb
            .open(&Disk::Blocks(device.clone()))
            .expect("a new store");
        Run {
            device,
            store: Some(store),
            rng: SmallRng::seed_from_u64(seed),
            history: vec![BTreeMap::new()],
            synced: 0,
        }
    }

    /// Writes until the power fails, or `writes` times.
    fn write(&mut self, writes: usize) {
        let store = self.store.as_ref().expect("open");
        for _ in 0..writes {
            let mut map = self.history.last().expect("never empty").clone();
            let key = vec![b'k', self.rng.random_range(0..40)];
            let written = if self.rng.random_range(0..4) == 0 {
                map.remove(&key);
                store.delete(&key)
            } else {
                let len = [0, 30, 300, 3000, 9000][self.rng.random_range(0..5)];
                let value = value(self.history.len() as u64, len);
                map.insert(key.clone(), value.clone());
                store.put(&key, &value)
            };
            // A failed write may have taken effect, so its map counts as the last one.
            self.history.push(map);
            if written.is_err() {
                return;
            }
            if self.rng.random_range(0..8) == 0 {
                match store.sync(Lsn(u64::MAX)) {
                    Ok(()) => self.synced = self.history.len() - 1,
                    Err(_) => return,
                }
            }
        }
    }

    /// Returns the number of writes that survive a crash that leaves `image`.
    fn survivors(&self, redb: &dyn Engine, image: Image, story: &str) -> usize {
        let disk = Disk::Blocks(Arc::new(CrashDevice::from_image(image)));
        let store = redb
            .open(&disk)
            .unwrap_or_else(|error| panic!("{story}: reopen: {error}"));
        let found: Map = scan(&*store, &[], usize::MAX).into_iter().collect();
        drop(store);
        let damage = redb.damage(&disk).expect("the store can be checked");
        assert!(damage.is_empty(), "{story}: {damage:?}");
        let kept = self.history.iter().rposition(|map| *map == found);
        let kept =
            kept.unwrap_or_else(|| panic!("{story}: no state of the run equals {found:02x?}"));
        assert!(
            kept >= self.synced,
            "{story}: {kept} writes survived, but {} were synced",
            self.synced
        );
        kept
    }
}

#[test]
fn synced_writes_survive_any_subset_of_later_block_writes() {
    let (redb, blocks) = redb();
    for seed in 0..12 {
        let mut run = Run::new(&*redb, blocks, seed);
        run.write(40 + 10 * seed as usize);
        for crash in 0..10 {
            let image = run.device.crash_seeded(seed * 100 + crash);
            run.survivors(&*redb, image, &format!("seed {seed}, crash {crash}"));
        }
    }
}

#[test]
fn synced_writes_survive_a_power_cut_within_a_call() {
    let (redb, blocks) = redb();
    for seed in 0..60 {
        let mut run = Run::new(&*redb, blocks, seed);
        run.device.cut_power_in(7 * seed);
        run.write(200);
        assert!(run.device.power_is_cut());
        drop(run.store.take());
        for crash in 0..3 {
            let image = run.device.crash_seeded(seed * 100 + crash);
            run.survivors(&*redb, image, &format!("power {seed}, crash {crash}"));
        }
    }
}

#[test]
fn synced_writes_survive_a_second_crash_during_recovery() {
    let (redb, blocks) = redb();
    for seed in 0..4 {
        let mut run = Run::new(&*redb, blocks, seed);
        run.write(60);
        let image = run.device.crash_seeded(seed);
        for requests in 0.. {
            let device = Arc::new(CrashDevice::from_image(image.clone()));
            device.cut_power_in(requests);
            let opened = redb.open(&Disk::Blocks(device.clone()));
            drop(opened);
            let again = device.crash_seeded(requests);
            run.survivors(&*redb, again, &format!("seed {seed}, power {requests}"));
            if !device.power_is_cut() {
                break;
            }
        }
    }
}

#[test]
#[ignore = "minutes"]
fn synced_writes_survive_thousands_of_crashes() {
    let (redb, blocks) = redb();
    let (mut states, mut cut) = (0, 0);
    for seed in 0..400 {
        let mut run = Run::new(&*redb, blocks, seed);
        run.device.cut_power_in(3 + 11 * seed);
        run.write(1000);
        cut += usize::from(run.device.power_is_cut());
        for crash in 0..20 {
            let image = run.device.crash_seeded(seed * 100 + crash);
            run.survivors(&*redb, image, &format!("seed {seed}, crash {crash}"));
            states += 1;
        }
    }
    eprintln!("{states} crash states of 400 programs, {cut} of them cut within a call");
}

#[test]
fn sync_reports_a_failed_flush() {
    let (redb, blocks) = redb();
    let mut run = Run::new(&*redb, blocks, 1);
    run.write(20);
    let store = run.store.as_ref().expect("open");
    store.put(b"last", b"1").expect("put");
    run.device.fail_flush_in(0);
    assert!(store.sync(Lsn(u64::MAX)).is_err());
    assert!(
        store.sync(Lsn(u64::MAX)).is_err(),
        "a second sync must not succeed either"
    );
}

#[test]
fn a_crash_during_creation_does_not_prevent_a_second_creation() {
    let (redb, blocks) = redb();
    let mut requests = 0;
    loop {
        let device = Arc::new(CrashDevice::new(blocks));
        device.cut_power_in(requests);
        let made = redb.open(&Disk::Blocks(device.clone())).is_ok();
        let cut = device.power_is_cut();
        for crash in 0..3 {
            let image = device.crash_seeded(requests * 10 + crash);
            let disk = Disk::Blocks(Arc::new(CrashDevice::from_image(image)));
            let store = redb
                .open(&disk)
                .unwrap_or_else(|error| panic!("power {requests}, crash {crash}: {error}"));
            assert!(scan(&*store, &[], 1).is_empty());
        }
        if made && !cut {
            return;
        }
        requests += 1;
    }
}
