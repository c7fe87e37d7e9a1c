//! Mini-pages that the head of the ring spares: they lose nothing, and the others are fuller when
//! they are merged. The oracle draws stores that spare, too.

mod support;

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{BF, Map, STORES, assert_same, contents, operate, options, tiny, with_log};
use treering_engine::device::{CrashDevice, MemDevice};
use treering_engine::{
    BfOptions, BfStats, Kv, Options, Progress, Store, SystemClock, Task, TreeKind, verify,
};

fn sparing(spare_percent: u8, copy_on_access_percent: u8, options: Options) -> Options {
    let TreeKind::Bf(bf) = options.tree else {
        panic!("a Bf-Tree");
    };
    Options {
        tree: TreeKind::Bf(BfOptions {
            spare_percent,
            copy_on_access_percent,
            ..bf
        }),
        ..options
    }
}

fn bf(store: &Store) -> BfStats {
    store.stats().bf.expect("a Bf-Tree")
}

/// Operations in bursts on some keys, so that some mini-pages fill and others do not; with eviction
/// ahead of need or without.
fn change(store: &Store, map: &mut Map, rng: &mut StdRng, ahead: bool, story: &str) {
    for i in 0..2_000 {
        let near: u32 = rng.random_range(0..4);
        let n = near * 1_500 + rng.random_range(0..if near == 0 { 30 } else { 1_500 });
        let key = format!("key-{n:04}").into_bytes();
        let value = |rng: &mut StdRng| vec![b'v'; rng.random_range(0..80)];
        operate((store, map), rng, key, value, i % 200 < 180, story);
        while ahead && store.pump(Task::Evict).expect("works") == Progress::More {}
    }
}

#[test]
fn nothing_is_lost_by_sparing() {
    for (kind, seed) in STORES
        .into_iter()
        .flat_map(|kind| (0..4).map(move |n| (kind, n)))
    {
        let copied = [0, 10, 50, 100][seed as usize];
        let options = sparing(75, copied, with_log(256 * 4_096, tiny(BF, kind)));
        let mut device = Arc::new(CrashDevice::new(4_096));
        let (mut map, mut rng) = (Map::new(), StdRng::seed_from_u64(seed));
        let mut spared = 0;
        for round in 0..4 {
            let story = format!("{kind:?}, seed {seed}, round {round}");
            let clock = Arc::new(SystemClock::new());
            let store = Store::open(device.clone(), clock, &options).expect("opens");
            assert_same(&store, &map, &story);
            change(&store, &mut map, &mut rng, round % 2 == 0, &story);
            assert_same(&store, &map, &story);
            spared += bf(&store).spared;
            let last = store.put(b"last", &[1]).expect("puts");
            map.insert(b"last".to_vec(), vec![1]);
            store.sync(last).expect("syncs");
            store.abandon_on_drop();
            drop(store);
            device = Arc::new(CrashDevice::from_image(device.crash(&mut |_| 0)));
            let clock = Arc::new(SystemClock::new());
            let store = Store::open(device.clone(), clock, &options).expect("opens");
            assert_eq!(contents(&store), map, "{story}");
            store.close().expect("closes");
        }
        assert!(spared > 100, "{kind:?}, seed {seed}: {spared}");
        let report = verify(device).expect("verifies");
        assert_eq!(report.damage, Vec::<String>::new(), "{kind:?}");
    }
}

/// Puts of random keys, in a ring for a tenth of the records: what is merged at its head.
fn puts(spare: u8, ahead: bool) -> BfStats {
    let options = sparing(spare, 10, options(BF, STORES[0], 4_096, 16, 24));
    let options = Options {
        checkpoint_log_bytes: options.log_bytes / 2,
        ..options
    };
    let device = Arc::new(MemDevice::new(1 << 15));
    let store = Store::open(device, Arc::new(SystemClock::new()), &options).expect("opens");
    let mut rng = StdRng::seed_from_u64(3);
    for _ in 0..60_000 {
        let key = format!("key-{:06}", rng.random_range(0..20_000));
        store.put(key.as_bytes(), &[7; 20]).expect("puts");
        while ahead && store.pump(Task::Evict).expect("works") == Progress::More {}
    }
    bf(&store)
}

#[test]
fn what_is_merged_is_fuller() {
    for ahead in [true, false] {
        let mean = |spare| {
            let bf = puts(spare, ahead);
            (bf.merged_records as f64 / bf.merges.total() as f64, bf)
        };
        let ((published, before), (fuller, after)) = (mean(0), mean(75));
        assert_eq!(before.spared, 0);
        assert!(
            fuller > 1.3 * published,
            "{ahead}: {fuller} and {published}"
        );
        let evicted = after.merges.eviction as f64;
        let share = after.spared as f64 / (after.spared as f64 + evicted);
        assert!((0.6..0.85).contains(&share), "{ahead}: spared {share}");
    }
}

#[test]
fn more_than_nine_of_ten_are_not_spared() {
    let options = sparing(91, 10, tiny(BF, STORES[0]));
    let device = Arc::new(MemDevice::new(4_096));
    let clock = Arc::new(SystemClock::new());
    let error = Store::open(device, clock, &options).err().expect("refused");
    assert_eq!(error.to_string(), "option spare: 91 %; expected 0 to 90");
}
