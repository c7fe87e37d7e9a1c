//! Tests power failures at any I/O, also during the recovery from the previous failure: recovery
//! restores the history up to some operation at or after the last acknowledged one.
//!
//! One client runs a random program on a tiny store. At the cut, the device loses any subset of the
//! blocks written since the last flush. Then the store is opened, and up to two recoveries are cut
//! as well. The final contents are compared with the state after *every* prefix of the program from
//! the last acknowledgement on. Here the log order is the operation order, so only a prefix is
//! correct.

mod support;

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{
    BMINUS, EACH_FLUSH, IN_PLACE, IN_PLACE_LOGGED, LAZY, LAZY_LOGGED, Map, Pages, SHADOW, STORES,
    TREES, contents,
};
use treering_engine::device::{BlockDevice, CrashDevice};
use treering_engine::node::LayoutChoice;
use treering_engine::{Batch, Kv, Lsn, Options, Progress, Store, SystemClock, TreeKind, verify};

const BLOCKS: u64 = 4_096;

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    /// All changes or none.
    Batch(Vec<Step>),
}

/// Makes a step's changes.
fn perform(store: &Store, step: &Step) -> treering_engine::Result<Lsn> {
    match step {
        Step::Put(k, v) => store.put(k, v),
        Step::Delete(k) => store.delete(k),
        Step::Batch(steps) => {
            let mut batch = Batch::new();
            for step in steps {
                match step {
                    Step::Put(k, v) => drop(batch.put(&k[..], &v[..])),
                    Step::Delete(k) => drop(batch.delete(&k[..])),
                    Step::Batch(_) => unreachable!("batches hold puts and deletes"),
                }
            }
            store.write(&batch)
        }
    }
}

fn options(tree: TreeKind, store: Pages, page_size: usize) -> Options {
    let options = support::options(tree, store, page_size, 16, 4);
    Options {
        write_batch_pages: 3,
        ..support::with_log(64 * page_size as u64, options)
    }
}

/// Opens a store that ends like a killed process, unless it is closed.
fn open(device: &Arc<CrashDevice>, options: &Options) -> treering_engine::Result<Store> {
    let device: Arc<dyn BlockDevice> = device.clone();
    Store::open(device, Arc::new(SystemClock::new()), options).inspect(Store::abandon_on_drop)
}

/// Numeric keys, and mostly values of one length, so that leaves can be dense.
fn dense_step(rng: &mut StdRng, i: usize) -> Step {
    let number = rng.random_range(0_u32..900);
    let key = match rng.random_range(0..100) {
        0 => [&number.to_be_bytes()[..], b"!"].concat(),
        _ => number.to_be_bytes().to_vec(),
    };
    let grow = if (i / 300) % 4 < 3 { 0.95 } else { 0.1 };
    if rng.random_bool(grow) {
        let mut value = (i as u64).to_be_bytes().to_vec();
        if number < 50 && rng.random_bool(0.1) {
            value.resize(40, b'v');
        }
        Step::Put(key, value)
    } else {
        Step::Delete(key)
    }
}

/// The kind of values in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    Short,
    /// One in five is stored out of line, on one to eight blocks.
    Long,
    /// As `Long`, and two of three steps are batches of up to forty changes.
    Batches,
}

fn step(rng: &mut StdRng, i: usize, options: &Options, values: Values) -> Step {
    if values == Values::Batches && rng.random_bool(0.66) {
        let changes = rng.random_range(0..40);
        // Numbers in the values distinguish the changes of one batch.
        let changes = (0..changes).map(|n| step(rng, 100 * i + n, options, Values::Long));
        return Step::Batch(changes.collect());
    }
    if options.leaf_layouts().may_be_dense() {
        return dense_step(rng, i);
    }
    let page_size = options.page_size;
    let key = format!("{:04}", rng.random_range(0..300)).into_bytes();
    // Phases of growth and of shrinking, so that leaves split and merge.
    let grow = if (i / 300).is_multiple_of(2) {
        0.8
    } else {
        0.2
    };
    if rng.random_bool(grow) {
        let mut value = (i as u64).to_be_bytes().to_vec();
        let len = match values {
            Values::Long | Values::Batches if rng.random_bool(0.2) => {
                rng.random_range(page_size / 4..32_000)
            }
            _ => 8 + rng.random_range(0..page_size / 8),
        };
        value.resize(len, b'v');
        Step::Put(key, value)
    } else {
        Step::Delete(key)
    }
}

fn apply(map: &mut Map, step: &Step) {
    match step {
        Step::Put(k, v) => drop(map.insert(k.clone(), v.clone())),
        Step::Delete(k) => drop(map.remove(k)),
        Step::Batch(steps) => steps.iter().for_each(|step| apply(map, step)),
    }
}

/// The outcome of a run on a failing device.
struct History {
    steps: Vec<Step>,
    /// The number of steps acknowledged as durable.
    acknowledged: usize,
}

/// Runs a program until the power fails or the program ends.
fn run_until_cut(
    store: &Store,
    rng: &mut StdRng,
    from: usize,
    (options, values): (&Options, Values),
) -> History {
    let mut history = History {
        steps: Vec::new(),
        acknowledged: 0,
    };
    let mut newest = Lsn(0);
    for i in from..from + 1_200 {
        let step = step(rng, i, options, values);
        let done = perform(store, &step);
        // A failed operation may or may not be in the log.
        history.steps.push(step);
        let Ok(lsn) = done else { return history };
        // A delete of an absent key returns the LSN of the write that made it absent.
        newest = newest.max(lsn);
        if rng.random_bool(0.05) {
            if store.sync(newest).is_err() {
                return history;
            }
            history.acknowledged = history.steps.len();
        }
        while let Some(task) = store.due() {
            match store.pump(task) {
                Ok(Progress::More) => {}
                Ok(Progress::Idle) => break,
                Err(_) => return history,
            }
        }
    }
    history
}

/// Returns the number of steps, at least `acknowledged`, after which the state is `found`.
fn matching_prefix(base: &Map, history: &History, found: &Map) -> Option<usize> {
    let mut state = base.clone();
    for (n, step) in history.steps.iter().enumerate() {
        if n >= history.acknowledged && state == *found {
            return Some(n);
        }
        apply(&mut state, step);
    }
    (state == *found).then_some(history.steps.len())
}

/// For the failure message: the closest prefix, and up to eight keys in which it differs.
fn nearest_miss(base: &Map, history: &History, found: &Map) -> String {
    let number = |v: Option<&Vec<u8>>| v.map(|v| u64::from_be_bytes(v[..8].try_into().unwrap()));
    let mut state = base.clone();
    let mut best: Option<(usize, usize, Vec<String>)> = None;
    for n in 0..=history.steps.len() {
        let keys: std::collections::BTreeSet<&Vec<u8>> = state.keys().chain(found.keys()).collect();
        let differ: Vec<String> = keys
            .into_iter()
            .filter(|k| state.get(*k) != found.get(*k))
            .map(|k| {
                let key = String::from_utf8_lossy(k);
                format!(
                    "{key}: expected {:?}, found {:?}",
                    number(state.get(k)),
                    number(found.get(k))
                )
            })
            .collect();
        if best
            .as_ref()
            .is_none_or(|(_, least, _)| differ.len() < *least)
        {
            best = Some((n, differ.len(), differ));
        }
        if let Some(step) = history.steps.get(n) {
            apply(&mut state, step);
        }
    }
    let (n, count, mut differ) = best.expect("the empty prefix always exists");
    differ.truncate(8);
    format!(
        "nearest: after step {n}, {count} keys differ: {}",
        differ.join("; ")
    )
}

/// Opens the store repeatedly until the power holds through recovery.
fn recover(
    device: Arc<CrashDevice>,
    options: &Options,
    rng: &mut StdRng,
) -> (Arc<CrashDevice>, Store) {
    let mut device = device;
    for _ in 0..2 {
        if rng.random_bool(0.5) {
            break;
        }
        device.cut_power_in(rng.random_range(0..150));
        match open(&device, options) {
            Ok(store) => drop(store),
            Err(e) => assert!(
                device.power_is_cut(),
                "recovery fails although the power is on: {e}"
            ),
        }
        device = Arc::new(CrashDevice::from_image(device.crash_seeded(rng.random())));
    }
    let store = open(&device, options).expect("recovers");
    (device, store)
}

/// Opens the store again on the same device, which has failed but never lost power, until nothing
/// fails any more.
fn restart(device: &Arc<CrashDevice>, options: &Options, rng: &mut StdRng) -> Store {
    for _ in 0..3 {
        match rng.random_range(0..4) {
            0 => device.fail_flush_in(rng.random_range(0..8)),
            1 => device.fail_write_in(rng.random_range(0..40)),
            _ => {}
        }
        match open(device, options) {
            Ok(store) => return store,
            Err(e) => {
                let why = e.to_string();
                assert!(
                    why.contains("injected failure") || why.contains("stopped accepting"),
                    "a restart fails: {e}"
                );
            }
        }
    }
    // Armed failures that have not struck yet may do so now, and once more.
    (0..2)
        .find_map(|_| open(device, options).ok())
        .unwrap_or_else(|| open(device, options).expect("recovers"))
}

fn in_words(options: &Options) -> String {
    let Options {
        tree,
        store,
        page_size,
        ..
    } = options;
    let layout = options.leaf_layouts().name();
    format!("{tree:?} on {store:?}, {page_size} B pages, {layout}")
}

/// Like [`crash_again_and_again`], but most rounds end because a flush or a write fails, and the
/// store is reopened on the same device. Writes lost by a failed flush may disappear rounds later,
/// when the power fails.
fn fail_again_and_again((options, values): (&Options, Values), seed: u64, rounds: usize) {
    let story = format!(
        "{}, {values:?} values, seed {seed}, with failures",
        in_words(options)
    );
    let mut rng = StdRng::seed_from_u64(seed);
    let mut device = Arc::new(CrashDevice::new(BLOCKS));
    let mut store = open(&device, options).expect("formats");
    let mut base = Map::new();
    for round in 0..rounds {
        let end = rng.random_range(0..3);
        match end {
            0 => device.fail_flush_in(rng.random_range(0..150)),
            1 => device.fail_write_in(rng.random_range(0..500)),
            _ => device.cut_power_in(rng.random_range(0..1_500)),
        }
        let history = run_until_cut(&store, &mut rng, round * 1_000, (options, values));
        drop(store);
        if end < 2 {
            store = restart(&device, options, &mut rng);
        } else {
            let after = Arc::new(CrashDevice::from_image(device.crash_seeded(rng.random())));
            (device, store) = recover(after, options, &mut rng);
        }
        let found = contents(&store);
        assert!(
            matching_prefix(&base, &history, &found).is_some(),
            "{story}, round {round}: {} records found, which is the state after none of steps \
             {}..={}\n{}",
            found.len(),
            history.acknowledged,
            history.steps.len(),
            nearest_miss(&base, &history, &found)
        );
        let report = verify(device.clone()).expect("verifies");
        assert_eq!(
            report.damage,
            Vec::<String>::new(),
            "{story}, round {round}"
        );
        base = found;
    }
}

fn crash_again_and_again((options, values): (&Options, Values), seed: u64, rounds: usize) {
    let story = format!("{}, {values:?} values, seed {seed}", in_words(options));
    let mut rng = StdRng::seed_from_u64(seed);
    let mut device = Arc::new(CrashDevice::new(BLOCKS));
    let mut store = open(&device, options).expect("formats");
    let mut base = Map::new();
    for round in 0..rounds {
        device.cut_power_in(rng.random_range(0..1_500));
        let history = run_until_cut(&store, &mut rng, round * 1_000, (options, values));
        drop(store);
        let after = Arc::new(CrashDevice::from_image(device.crash_seeded(rng.random())));
        (device, store) = recover(after, options, &mut rng);
        let found = contents(&store);
        let Some(n) = matching_prefix(&base, &history, &found) else {
            panic!(
                "{story}, round {round}: {} records found, which is the state after none of steps \
                 {}..={}\n{}",
                found.len(),
                history.acknowledged,
                history.steps.len(),
                nearest_miss(&base, &history, &found)
            );
        };
        let report = verify(device.clone()).expect("verifies");
        assert_eq!(
            report.damage,
            Vec::<String>::new(),
            "{story}, round {round}, after step {n}"
        );
        base = found;
    }
}

fn rounds() -> u64 {
    std::env::var("TREERING_CRASH_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1)
}

/// Both trees, two page sizes, all seeds.
fn each(kinds: &[Pages], check: impl Fn(&Options, u64)) {
    for kind in kinds {
        for tree in TREES {
            for page_size in [4096, 16_384] {
                let options = options(tree, *kind, page_size);
                (0..rounds()).for_each(|seed| check(&options, seed));
            }
        }
    }
}

fn crash_each(kinds: &[Pages], values: Values) {
    each(kinds, |options, seed| {
        crash_again_and_again((options, values), seed, 8);
    });
}

fn fail_each(kinds: &[Pages], values: Values) {
    each(kinds, |options, seed| {
        fail_again_and_again((options, values), seed, 10);
    });
}

#[test]
fn in_place_recovers_a_prefix() {
    crash_each(&[IN_PLACE], Values::Short);
}

#[test]
fn copy_on_write_recovers_a_prefix() {
    crash_each(&[EACH_FLUSH], Values::Short);
}

#[test]
fn copy_on_write_with_a_lazy_table_recovers_a_prefix() {
    crash_each(&[LAZY], Values::Short);
}

#[test]
fn shadowed_pages_recover_a_prefix() {
    crash_each(&[SHADOW, BMINUS], Values::Short);
}

#[test]
fn modification_logs_of_other_stores_recover_a_prefix() {
    crash_each(&[IN_PLACE_LOGGED, LAZY_LOGGED], Values::Short);
}

/// Pages change their layout and change back, and redo must know which layout they had.
#[test]
fn leaves_of_every_layout_recover_a_prefix() {
    for layout in LayoutChoice::all() {
        for kind in [IN_PLACE, LAZY, BMINUS] {
            for tree in TREES {
                let options = Options {
                    layout: Some(layout),
                    ..options(tree, kind, 4096)
                };
                for seed in 0..rounds() / 2 {
                    crash_again_and_again((&options, Values::Short), seed, 8);
                    fail_again_and_again((&options, Values::Short), seed, 8);
                }
            }
        }
    }
}

/// The blocks of long values are on the device before the log refers to them, and are not
/// overwritten before the log records their removal, wherever the power is cut.
#[test]
fn stores_with_long_values_recover_a_prefix() {
    crash_each(&STORES, Values::Long);
}

/// A batch is applied completely or not at all, wherever it is cut, and also if the recovery that
/// completes it is cut.
#[test]
fn batches_are_recovered_completely_or_not_at_all() {
    crash_each(&STORES, Values::Batches);
}

#[test]
fn batches_survive_failures_and_restarts() {
    fail_each(&STORES, Values::Batches);
}

#[test]
fn long_values_survive_failures_and_restarts() {
    fail_each(&STORES, Values::Long);
}

#[test]
fn a_prefix_survives_failures_and_restarts() {
    fail_each(&STORES, Values::Short);
}

#[test]
fn after_a_failed_write_reads_are_current_and_writes_are_refused() {
    for (tree, kind) in support::all() {
        for seed in 0..12 {
            let options = options(tree, kind, 4096);
            let kind = in_words(&options);
            let mut rng = StdRng::seed_from_u64(seed);
            let device = Arc::new(CrashDevice::new(BLOCKS));
            let store = open(&device, &options).expect("formats");
            let mut map = Map::new();
            // The first failing write is in write-back, a checkpoint or a log flush.
            device.fail_write_in(200 + 17 * seed);
            for i in 0.. {
                let step = step(&mut rng, i, &options, Values::Short);
                match perform(&store, &step) {
                    Ok(_) => apply(&mut map, &step),
                    Err(_) => break,
                }
                if store.due().is_some_and(|task| store.pump(task).is_err()) {
                    break;
                }
                assert!(i < 100_000, "{kind}: no write failed");
            }
            assert!(
                store.put(b"x", b"y").is_err(),
                "{kind}: a failed store accepts writes"
            );
            let mut got = Vec::new();
            // Two rounds: the first evicts pages that the second needs again.
            for (k, v) in map.iter().chain(&map).chain(&map) {
                match store.get(k, &mut got) {
                    Ok(found) => assert!(found && got == *v, "{kind}: an old value of {k:?}"),
                    // No frame can be freed for it. An error is acceptable, a stale value is not.
                    Err(e) => assert!(e.to_string().contains("stopped accepting"), "{e}"),
                }
            }
        }
    }
}
