//! Tests contention splits (B-Trees Are Back §7.3): if threads that write a few keys of one leaf
//! wait for each other, the leaf is split between these keys. Neither threads nor a power cut may
//! lose data.
//!
//! Writers that have changed a page yield the processor now and then before releasing its latch, so
//! that they collide as reliably as on a machine with many processors.

mod support;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{BF, IN_PLACE, LAZY, Pages, SHADOW, contents};
use treering_engine::device::{BlockDevice, CrashDevice, MemDevice};
use treering_engine::events::{Event, Observer};
use treering_engine::node::LayoutChoice;
use treering_engine::{
    ContentionSplit, Error, Kv, Lsn, Options, Stats, Store, SystemClock, TreeKind, verify,
};

const WRITERS: usize = 2;
/// Few enough for one leaf.
const KEYS: usize = 64;

/// Every write is sampled, and leaves are evaluated often.
const EAGER: ContentionSplit = ContentionSplit {
    sample_one_in: 1,
    period: 30,
};

fn options(store: Pages, contention_split: Option<ContentionSplit>) -> Options {
    Options {
        contention_split,
        ..support::tiny(TreeKind::BTree, store)
    }
}

thread_local! {
    /// The number of page changes by this thread, if it is one of several writers.
    static CHANGES: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Makes a writer yield the processor while it holds the latch of a page that it has changed. Done
/// only now and then, because it takes long on a busy machine.
struct Slow;

const GIVES_WAY_ONE_IN: u64 = 8;

impl Observer for Slow {
    fn event(&self, event: Event) {
        if let (Event::PageChanged { .. }, Some(changes)) = (event, CHANGES.get()) {
            CHANGES.set(Some(changes + 1));
            if changes % GIVES_WAY_ONE_IN == 0 {
                std::thread::yield_now();
            }
        }
    }
}

/// Opens a store that ends like a killed process, unless it is closed.
fn open(device: Arc<dyn BlockDevice>, options: &Options) -> Result<Store, Error> {
    let clock = Arc::new(SystemClock::new());
    Store::open_observed(device, clock, options, Some(Arc::new(Slow)))
        .inspect(Store::abandon_on_drop)
}

/// Keys of different writers alternate.
fn key(writer: usize, n: usize) -> Vec<u8> {
    format!("http://example.org/{n:04}/{writer}").into_bytes()
}

fn pump(store: &Store) -> Result<(), Error> {
    while let Some(task) = store.due() {
        store.pump(task)?;
    }
    Ok(())
}

/// Each writer puts increasing versions to its own keys until all have put `least` and the leaves
/// have been split `splits` times. Returns the contents after that.
fn write(store: &Store, least: u64, splits: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (begin, enough) = (Barrier::new(WRITERS), AtomicBool::new(false));
    let one = |writer: usize| {
        let mut mine = BTreeMap::new();
        CHANGES.set(Some(0));
        begin.wait();
        for version in 1_u64.. {
            let n = (version as usize * 7 + writer) % (KEYS / WRITERS);
            let (key, value) = (key(writer, n), version.to_be_bytes().to_vec());
            store.put(&key, &value).expect("puts");
            mine.insert(key, value);
            pump(store).expect("pumps");
            let done = version >= least && store.stats().contention_splits >= splits;
            assert!(version < 200_000, "never split: {:?}", store.stats());
            if done || enough.load(Ordering::Relaxed) {
                break;
            }
        }
        enough.store(splits > 0, Ordering::Relaxed);
        mine
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || one(writer)))
            .collect();
        let done = writers.into_iter().map(|w| w.join().expect("a writer"));
        done.flatten().collect()
    })
}

fn splits(store: &Store) -> u64 {
    store.stats().splits
}

#[test]
fn a_contended_leaf_is_split_and_nothing_is_lost() {
    for store in [IN_PLACE, LAZY, SHADOW] {
        for layout in ["slotted", "fingerprint", "adaptive"] {
            let device = Arc::new(MemDevice::new(8_192));
            let options = Options {
                layout: LayoutChoice::named(layout),
                ..options(store, Some(EAGER))
            };
            let opened = open(device.clone(), &options).expect("opens");
            let expected = write(&opened, 0, 4);
            let Stats {
                splits,
                contention_splits,
                contended_writes,
                ..
            } = opened.stats();
            // All records fit into one leaf.
            assert_eq!(splits, contention_splits, "{layout} on {store:?}");
            // Each split has at least one write that waited.
            assert!(contention_splits >= 4 && contended_writes >= contention_splits);
            assert!(contents(&opened) == expected, "{layout} on {store:?}");
            opened.close().expect("closes");
            let damage = verify(device.clone()).expect("verifies").damage;
            assert_eq!(damage, Vec::<String>::new());
            let again = open(device, &options).expect("opens again");
            assert!(contents(&again) == expected, "{layout} on {store:?}");
        }
    }
}

#[test]
fn contention_splits_are_off_by_default() {
    let device = Arc::new(MemDevice::new(8_192));
    let store = open(device, &options(IN_PLACE, None)).expect("opens");
    write(&store, 2_000, 0);
    let stats = store.stats();
    assert!(stats.contended_writes > 0, "{stats:?}");
    assert_eq!((stats.splits, stats.contention_splits), (0, 0));
}

#[test]
fn contention_splits_end_when_writers_no_longer_wait() {
    let device = Arc::new(MemDevice::new(8_192));
    let store = open(device, &options(IN_PLACE, Some(EAGER))).expect("opens");
    let keys: Vec<_> = write(&store, 0, 3).into_keys().collect();
    let alone = |key: &Vec<u8>| {
        store.put(key, b"alone...").expect("puts");
        pump(&store).expect("pumps");
    };
    // End the periods in which a thread may have waited, then run others without waiting. Each
    // period writes a single key, which no split can separate.
    let twice = 2 * usize::from(EAGER.period);
    (keys.iter()).for_each(|key| (0..twice).for_each(|_| alone(key)));
    let before = splits(&store);
    (0..twice).for_each(|_| keys.iter().for_each(alone));
    assert_eq!(
        splits(&store),
        before,
        "without waiting there must be no more splits"
    );
}

#[test]
fn a_single_thread_causes_no_contention_splits() {
    let run = |contention_split| {
        let device = Arc::new(MemDevice::new(8_192));
        let store = open(device, &options(IN_PLACE, contention_split)).expect("opens");
        let mut rng = StdRng::seed_from_u64(1);
        for i in 0..6_000_u64 {
            let value = vec![i as u8; rng.random_range(0..100)];
            let key = key(0, rng.random_range(0..600));
            store.put(&key, &value).expect("puts");
            pump(&store).expect("pumps");
        }
        store.stats()
    };
    let (with, without) = (run(Some(EAGER)), run(None));
    assert!(with == without && with.splits > 5, "{with:?} {without:?}");
}

#[test]
fn invalid_contention_options_are_refused_by_name() {
    let refused = |name: &str, options: &Options| {
        let found = open(Arc::new(MemDevice::new(8_192)), options).map(drop);
        assert!(
            matches!(found, Err(Error::BadOption { name: found, .. }) if found == name),
            "{name}: {found:?}"
        );
    };
    let with = |sample_one_in, period| {
        let rule = ContentionSplit {
            sample_one_in,
            period,
        };
        options(IN_PLACE, Some(rule))
    };
    refused("sample-one-in", &with(0, 60));
    refused("period", &with(16, 1));
    let bf = Options {
        contention_split: Some(EAGER),
        ..support::tiny(BF, IN_PLACE)
    };
    refused("contention-split", &bf);
}

/// What one writer has done: the values of its keys after each write, and how many of the writes
/// are acknowledged as durable.
struct History {
    steps: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    acknowledged: usize,
}

/// Writes until the power fails, or for `steps` steps.
fn write_until_cut(store: &Store, writer: usize, from: usize, seed: u64) -> History {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut steps, mut acknowledged, mut newest) = (Vec::new(), 0, Lsn(0));
    CHANGES.set(Some(0));
    for version in from as u64..from as u64 + 800 {
        // A few keys are written much more often than the others.
        let most = if rng.random_bool(0.7) { 8 } else { 100 };
        let key = key(writer, rng.random_range(0..most));
        let value = rng.random_bool(0.85).then(|| {
            let mut value = version.to_be_bytes().to_vec();
            value.resize(8 + rng.random_range(0..60), b'v');
            value
        });
        let done = match &value {
            Some(value) => store.put(&key, value),
            None => store.delete(&key),
        };
        steps.push((key, value));
        let Ok(lsn) = done else { break };
        newest = newest.max(lsn);
        if rng.random_bool(0.02) {
            if store.sync(newest).is_err() {
                break;
            }
            acknowledged = steps.len();
        }
        if pump(store).is_err() {
            break;
        }
    }
    History {
        steps,
        acknowledged,
    }
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns whether the contents are the state after some number of steps that includes all
/// acknowledged ones.
fn is_a_prefix(base: &Map, history: &History, found: &Map) -> bool {
    let mut state = base.clone();
    let mut fits = history.acknowledged == 0 && state == *found;
    for (n, (key, value)) in history.steps.iter().enumerate() {
        match value {
            Some(value) => drop(state.insert(key.clone(), value.clone())),
            None => drop(state.remove(key)),
        }
        fits |= n + 1 >= history.acknowledged && state == *found;
    }
    fits
}

/// Returns a writer's own keys.
fn of_writer(map: &Map, writer: usize) -> Map {
    let own = map
        .iter()
        .filter(|(key, _)| key.last() == Some(&(b'0' + writer as u8)));
    own.map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The keys of each writer are recovered as they were after one of its writes: all acknowledged
/// writes, and none after a missing one.
#[test]
fn contention_splits_survive_power_cuts() {
    let mut contention_splits = 0;
    for (seed, kind) in (0..).zip([IN_PLACE, LAZY, SHADOW]) {
        let options = options(kind, Some(EAGER));
        let mut rng = StdRng::seed_from_u64(seed);
        let mut device = Arc::new(CrashDevice::new(4_096));
        let mut base = Map::new();
        for round in 0..6_usize {
            let store = open(device.clone(), &options).expect("opens");
            assert!(contents(&store) == base, "{kind:?}, round {round}");
            device.cut_power_in(rng.random_range(20..300));
            let seeds: [u64; WRITERS] = rng.random();
            let histories: Vec<_> = std::thread::scope(|scope| {
                let store = &store;
                let writers: Vec<_> = (0..WRITERS)
                    .map(|w| {
                        scope.spawn(move || write_until_cut(store, w, round * 10_000, seeds[w]))
                    })
                    .collect();
                (writers.into_iter().map(|w| w.join().expect("a writer"))).collect()
            });
            contention_splits += store.stats().contention_splits;
            drop(store);
            device = Arc::new(CrashDevice::from_image(device.crash_seeded(rng.random())));
            let store = open(device.clone(), &options).expect("recovers");
            let found = contents(&store);
            for (writer, history) in histories.iter().enumerate() {
                let (before, after) = (of_writer(&base, writer), of_writer(&found, writer));
                assert!(
                    is_a_prefix(&before, history, &after),
                    "{kind:?}, round {round}, writer {writer}: {} records, after none of its \
                     steps {}..={}",
                    after.len(),
                    history.acknowledged,
                    history.steps.len()
                );
            }
            drop(store);
            let damage = verify(device.clone()).expect("verifies").damage;
            assert_eq!(damage, Vec::<String>::new(), "{kind:?}, round {round}");
            base = found;
        }
    }
    assert!(contention_splits > 20, "{contention_splits}");
}
