//! Tests power failures at any request to a persistent memory, with any legal subset of the
//! undecided words surviving, also during and soon after the recovery from the previous failure.
//! After recovery the store holds all acknowledged writes, with or without the one write that was
//! in progress.
//!
//! A program runs once on a recording device with chunks of four leaves. Its requests are then
//! replayed up to each point and cut off there in several ways: no undecided word survives, or all,
//! or some. Writes are durable when they return, so no other outcome is correct.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use treering_engine::device::{MemPm, PmImage};
use treering_engine::{
    CclOptions, Cleaning, GlobalOptions, Kv, LodgeOptions, Logging, PmOptions, PmTask, PmTreeKind,
    Progress,
};

const BYTES: u64 = 64 << 10;

#[path = "support/pm.rs"]
mod pm;

#[path = "pm_crash/story.rs"]
mod story;

use pm::Map;
use story::{
    Step, Story, all, apply, ccl, contents, key, lodges, of_ccl, open, options, step, take,
};

fn steps(rng: &mut StdRng, count: usize, keys: u64) -> Vec<Step> {
    (0..count).map(|i| step(rng, i, keys)).collect()
}

fn seeds() -> u64 {
    let asked = std::env::var("TREERING_CRASH_SEEDS");
    asked.ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

#[test]
fn short_programs_survive_a_crash_at_every_request() {
    every_request(all());
}

#[test]
fn short_lodge_programs_survive_a_crash_at_every_request() {
    every_request(lodges());
}

/// Values longer than a chunk are stored in pieces. The power fails while they are written,
/// replaced, deleted or copied by cleaning, and while recovery finds them.
#[test]
fn long_values_survive_a_crash_at_every_request() {
    for options in all().into_iter().chain(lodges()) {
        let mut rng = StdRng::seed_from_u64(7);
        let mut steps = steps(&mut rng, 70, 12);
        for step in &mut steps {
            if let Step::Put(_, value) = step
                && rng.random_bool(0.3)
            {
                // One, two or three pieces. The last one is tiny or fills its chunk.
                let to = [1016, 1017, 1025, 2024, 2025, 2600][rng.random_range(0..6)];
                let pattern: Vec<u8> = (0..to).map(|at| (at / 8) as u8 ^ value[7]).collect();
                value.resize(8, 0);
                value.extend_from_slice(&pattern[8..]);
            }
        }
        let name = format!("long values, {:?}", options.tree);
        let blank = PmImage::zeroed(2 * BYTES);
        let story = Story::tell(name, options, blank, Map::new(), &steps);
        assert_eq!(story.refused, 0, "{}", story.name);
        story.crash_everywhere(3, 2);
    }
}

fn every_request(trees: Vec<PmOptions>) {
    for options in trees {
        for seed in 0..seeds() {
            let mut rng = StdRng::seed_from_u64(seed);
            let steps = steps(&mut rng, 240, 40);
            let name = format!("{:?}, seed {seed}", options.tree);
            let blank = PmImage::zeroed(BYTES);
            Story::tell(name, options, blank, Map::new(), &steps).crash_everywhere(1, 4);
        }
    }
}

/// Keys come and go, so that leaves are split and merged all the time. The power fails at each
/// request of these splits and merges.
#[test]
fn lodge_merges_survive_a_crash_at_every_request() {
    for options in lodges() {
        let mut merges = 0;
        for seed in 0..2 * seeds() {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut steps = Vec::new();
            for wave in 0..6u64 {
                for i in 0..30u64 {
                    let key = format!("{:03}", (i * 7 + wave * 11) % 60).into_bytes();
                    let key = if i % 3 == 0 {
                        key
                    } else {
                        (i + wave).to_be_bytes().to_vec()
                    };
                    let number = wave * 1000 + i;
                    steps.push(Step::Put(key.clone(), number.to_be_bytes().to_vec()));
                    if rng.random_bool(0.1) {
                        steps.push(Step::Delete(key));
                    }
                }
                let mut put: Vec<Vec<u8>> = steps
                    .iter()
                    .filter_map(|step| match step {
                        Step::Put(key, _) => Some(key.clone()),
                        _ => None,
                    })
                    .collect();
                put.sort();
                put.dedup();
                for key in put {
                    if rng.random_bool(0.85) {
                        steps.push(Step::Delete(key));
                    }
                    if rng.random_bool(0.15) {
                        steps.push(Step::Clean);
                    }
                }
                steps.push(Step::Clean);
            }
            let name = format!("{:?}, merges, seed {seed}", options.tree);
            let blank = PmImage::zeroed(BYTES);
            let story = Story::tell(name, options, blank, Map::new(), &steps);
            story.crash_in_splits(4);
            let device = Arc::new(MemPm::new(BYTES));
            let store = open(&device, &options).expect("formats");
            steps.iter().for_each(|step| assert!(take(&store, step)));
            merges += store.stats().merges;
        }
        assert!(merges > 5, "{:?}: {merges}", options.tree);
    }
}

/// Two leaves are merged while the left one has a buffered change, which was logged before the last
/// change of the right one. The stamp of the merged leaf is greater than the number of the buffered
/// change, so the change must be in the leaf.
#[test]
fn changes_buffered_for_merged_leaves_survive() {
    let options = options(PmTreeKind::Lodge(LodgeOptions {
        slots: 7,
        t_node: 1,
        t_split: 16,
        logs: 1,
        log_entries: 42,
        ..LodgeOptions::default()
    }));
    let device = Arc::new(MemPm::new(BYTES));
    let store = open(&device, &options).expect("formats");
    let put = |key: u64| {
        let done = store.put(&key.to_be_bytes(), &[key as u8; 8]);
        assert!(done.is_ok());
    };
    (0..17).for_each(|i| put(10 * i));
    store.checkpoint().expect("flushes");
    assert_eq!(store.stats().leaf_pages, 2);
    // Two keys stay in each leaf.
    for i in (0..17u64).filter(|i| ![0, 1, 15, 16].contains(i)) {
        store.delete(&(10 * i).to_be_bytes()).expect("deletes");
    }
    store.checkpoint().expect("flushes");
    // The buffer has room for four, and is flushed to the leaf of the first key.
    [155, 5, 156, 157, 158].into_iter().for_each(put);
    let merged = || store.stats().merges;
    assert_eq!(merged(), 0);
    while store.pump(PmTask::MergeLeaves).unwrap() == Progress::More {}
    assert_eq!(merged(), 1);
    let map = contents(&store);
    assert_eq!(map.len(), 9);
    drop(store);
    let device = Arc::new(MemPm::from_image(device.crash(&mut |_| 0)));
    assert_eq!(contents(&open(&device, &options).expect("opens")), map);
}

/// A full device refuses changes that would split a leaf, also during recovery. Changes that are
/// missing from leaves then go back to the buffers, and the log is kept.
#[test]
fn a_full_device_survives_power_failures() {
    let every = of_ccl(CclOptions {
        logging: Logging::EveryWrite,
        ..ccl(2)
    });
    let trees = [
        options(PmTreeKind::PmTree),
        options(PmTreeKind::Global(GlobalOptions::default())),
        of_ccl(ccl(2)),
        of_ccl(ccl(5)),
        every,
    ];
    on_a_full_device(&trees);
}

/// A full device accepts deletes of buffered and unbuffered keys in any order, and no deleted key
/// reappears.
#[test]
fn deletes_on_a_full_device_are_durable() {
    for batch in [2, 4, 6] {
        for seed in 0..12 {
            let options = of_ccl(ccl(batch));
            let name = format!("{:?}, seed {seed}", options.tree);
            let mut rng = StdRng::seed_from_u64(seed);
            let device = Arc::new(MemPm::new(8 << 10));
            let store = open(&device, &options).expect("an empty device");
            let mut map = Map::new();
            for i in 0..800 {
                let put = Step::Put(key(&mut rng, 600), u64::to_be_bytes(i).to_vec());
                if take(&store, &put) {
                    apply(&mut map, &put);
                }
            }
            while let Some(gone) = map
                .keys()
                .nth(rng.random_range(0..map.len().max(1)))
                .cloned()
            {
                let delete = Step::Delete(gone.clone());
                assert!(
                    take(&store, &delete),
                    "{name}: a delete must not run out of space"
                );
                apply(&mut map, &delete);
                let there = store.get(&gone, &mut Vec::new()).expect("reads");
                assert!(!there, "{name}: the deleted key still exists");
                if map.len().is_multiple_of(7) {
                    let left = Arc::new(MemPm::from_image(device.crash(&mut |_| 0)));
                    let reopened = open(&left, &options).expect("opens");
                    assert_eq!(contents(&reopened), map, "{name}: {} left", map.len());
                }
            }
        }
    }
}

/// Buffered changes still fit, so recovery need not split any leaf.
#[test]
fn a_full_lodge_survives_power_failures() {
    on_a_full_device(&lodges());
}

/// Returns how many changes went back to buffers because their leaves could not be split.
fn on_a_full_device(trees: &[PmOptions]) -> u64 {
    let mut restored = 0;
    for options in trees.iter().copied() {
        for seed in 0..seeds() {
            let mut rng = StdRng::seed_from_u64(seed);
            // Seven chunks, each for four leaves, or for log or records, are full long before 600
            // keys are put.
            let blank = PmImage::zeroed(8 << 10);
            let filling = (0..900).map(|i| match rng.random_range(0..20) {
                0 => Step::Clean,
                1..=3 => Step::Delete(key(&mut rng, 600)),
                _ => Step::Put(key(&mut rng, 600), (i as u64).to_be_bytes().to_vec()),
            });
            let steps: Vec<Step> = filling.collect();
            let name = format!("{:?}, full, seed {seed}", options.tree);
            let story = Story::tell(name, options, blank, Map::new(), &steps);
            assert!(
                story.refused > 100,
                "{}: the device never became full",
                story.name
            );
            story.crash_everywhere(11, 1);
            story.crash_in_splits(1);
            let device = Arc::new(MemPm::from_image(story.before.clone()));
            story
                .requests
                .iter()
                .for_each(|request| device.apply(request));
            restored += open(&device, &options).expect("opens").recovery().restored;
        }
    }
    restored
}

/// The power fails repeatedly on one device, so that chunks, blocks and records are reused and
/// times increase across lives.
#[test]
fn stores_survive_repeated_power_failures() {
    for options in all() {
        for seed in 0..4 * seeds() {
            again_and_again(&[options], seed, 25, ROOMY);
        }
    }
}

/// As above, but with hardly any room: refused changes are not in any log, and the store opens with
/// its old contents.
#[test]
fn full_stores_survive_repeated_power_failures() {
    for options in all() {
        let (mut refused, mut restored) = (0, 0);
        for seed in 0..8 * seeds() {
            let told = again_and_again(&[options], seed, 25, FULL);
            refused += told.0;
            restored += told.1;
        }
        assert!(refused > 200 * seeds(), "{:?}: {refused}", options.tree);
        // Puts reserve room for the splits of recovery, so little or nothing goes back to buffers.
        println!("{:?}: {restored} went back to buffers", options.tree);
    }
}

#[test]
fn lodges_survive_repeated_power_failures() {
    for options in lodges() {
        for seed in 0..8 * seeds() {
            again_and_again(&[options], seed, 25, ROOMY);
        }
    }
}

#[test]
fn full_lodges_survive_repeated_power_failures() {
    for options in lodges() {
        let mut refused = 0;
        for seed in 0..6 * seeds() {
            refused += again_and_again(&[options], seed, 25, FULL).0;
        }
        assert!(refused > 300, "{:?}: {refused}", options.tree);
    }
}

#[test]
fn another_lodge_recovers_the_store_after_a_power_failure() {
    for seed in 0..8 * seeds() {
        again_and_again(&lodges(), seed, 25, ROOMY);
    }
}

#[test]
fn another_tree_recovers_the_store_after_a_power_failure() {
    for seed in 0..4 * seeds() {
        again_and_again(&all(), seed, 25, ROOMY);
    }
}

/// So soon that the first entry of one life may overwrite the last one of the previous life.
#[test]
fn a_lodge_survives_power_failures_after_few_writes() {
    for options in lodges() {
        for seed in 0..40 * seeds() {
            again_and_again(&[options], seed, 120, HASTY);
        }
    }
}

/// The process is killed, and its successor continues with the contents of the CPU's caches. Then
/// the power fails, and everything that was never written back is lost.
#[test]
fn a_lodge_survives_a_kill_followed_by_a_power_failure() {
    for options in lodges() {
        for seed in 0..150 * seeds() {
            let mut rng = StdRng::seed_from_u64(seed);
            let before = steps(&mut rng, 60, 30);
            let name = format!("{:?}, seed {seed}", options.tree);
            let story = Story::tell(name, options, PmImage::zeroed(BYTES), Map::new(), &before);
            let at = rng.random_range(story.requests.len() / 2..story.requests.len());
            let device = Arc::new(MemPm::new(BYTES));
            story.requests[..at]
                .iter()
                .for_each(|request| device.apply(request));
            let store = open(&device, &options).expect("opens");
            let mut map = contents(&store);
            story.check(at, "killed", &map);
            for i in 0..rng.random_range(1..30) {
                // Nothing here raises the log floor or flushes more than necessary.
                let step = Step::Put(key(&mut rng, 30), (i as u64).to_be_bytes().to_vec());
                assert!(take(&store, &step));
                apply(&mut map, &step);
            }
            drop(store);
            let device = Arc::new(MemPm::from_image(device.crash(&mut |_| 0)));
            let store = open(&device, &options).expect("opens again");
            assert_eq!(contents(&store), map, "{}, killed at {at}", story.name);
        }
    }
}

/// Size of the device, number of keys, and maximum number of steps in a life.
type Room = (u64, u64, usize);
const ROOMY: Room = (BYTES, 60, 150);
const FULL: Room = (8 << 10, 500, 150);
const HASTY: Room = (BYTES, 60, 6);

/// Returns how often the device was full, and how many changes went back to buffers.
fn again_and_again(
    options: &[PmOptions],
    seed: u64,
    rounds: usize,
    (bytes, keys, most): Room,
) -> (u64, u64) {
    let (mut refused, mut restored) = (0, 0);
    let mut rng = StdRng::seed_from_u64(seed);
    let mut image = PmImage::zeroed(bytes);
    let mut map = Map::new();
    for round in 0..rounds {
        let options = options[round % options.len()];
        let name = format!("{:?}, seed {seed}, round {round}", options.tree);
        let steps: Vec<Step> = (0..rng.random_range((most / 30).max(1)..most))
            .map(|i| step(&mut rng, round * 100 + i, keys))
            .collect();
        let story = Story::tell(name, options, image.clone(), map.clone(), &steps);
        let at = rng.random_range(0..=story.requests.len());
        let device = Arc::new(MemPm::from_image(image));
        story.requests[..at]
            .iter()
            .for_each(|request| device.apply(request));
        // Either the power fails, or only the process is killed. Then undecided words stay in the
        // CPU's caches until the power fails later.
        let killed = rng.random_bool(0.3);
        let device = if killed {
            device
        } else {
            Arc::new(MemPm::from_image(device.crash_seeded(rng.random())))
        };
        let store = open(&device, &options).expect("opens");
        refused += story.refused;
        restored += store.recovery().restored;
        let found = contents(&store);
        let how = if killed { "killed" } else { "power lost" };
        story.check(at, how, &found);
        drop(store);
        image = match rng.random_range(0..3) {
            0 => device.crash(&mut |_| 0),
            1 => device.crash(&mut |n| n - 1),
            _ => device.crash_seeded(rng.random()),
        };
        map = found;
    }
    (refused, restored)
}

/// Few keys in a single leaf, so that bits are cleared before slots are filled.
#[test]
fn updates_without_empty_slots_survive_a_crash_at_every_request() {
    let options = lodges()[2];
    for seed in 0..seeds() {
        let mut rng = StdRng::seed_from_u64(seed);
        let steps: Vec<Step> = (0..150u64)
            .map(|i| match rng.random_range(0..9) {
                0 => Step::Checkpoint,
                1 => Step::Delete((i % 27).to_be_bytes().to_vec()),
                _ => Step::Put((i % 27).to_be_bytes().to_vec(), i.to_be_bytes().to_vec()),
            })
            .collect();
        let blank = PmImage::zeroed(BYTES);
        let story = Story::tell("few keys".into(), options, blank, Map::new(), &steps);
        story.crash_everywhere(1, 4);
        let device = Arc::new(MemPm::new(BYTES));
        let store = open(&device, &options).expect("formats");
        steps.iter().for_each(|step| assert!(take(&store, step)));
        let own = store.stats().pm.unwrap().lodge.unwrap();
        assert!(own.clears > 3, "{own:?}");
    }
}

#[test]
fn lodge_programs_cover_every_interruptible_event() {
    for options in lodges() {
        let mut rng = StdRng::seed_from_u64(0);
        let device = Arc::new(MemPm::new(BYTES));
        let store = open(&device, &options);
        let store = store.expect("formats");
        for step in steps(&mut rng, 240, 40) {
            assert!(take(&store, &step), "not full");
        }
        let PmTreeKind::Lodge(lodge) = options.tree else {
            unreachable!("every tree here is a lodge");
        };
        let stats = store.stats();
        let pm = stats.pm.unwrap();
        let own = pm.lodge.unwrap();
        let most = 240 / u64::from(lodge.log_entries);
        assert!(own.logs_opened > most / 3, "logs must be used up: {own:?}");
        assert!(pm.log_chunk_bytes < 10 << 10, "and reused: {pm:?}");
        assert!(pm.cleanings > 4 && pm.buffer_overwrites > 5, "{pm:?}");
        let nodes: u64 = own.node_splits.iter().sum();
        let split = stats.splits > 5 && nodes > 0 || lodge.t_split == 27;
        assert!(split && own.flushes > 10, "{stats:?}");
        assert!(stats.merges > 1 || lodge.t_split == 27, "{stats:?}");
    }
}

#[test]
fn programs_cover_every_interruptible_event() {
    for options in all() {
        let mut rng = StdRng::seed_from_u64(0);
        let device = Arc::new(MemPm::new(BYTES));
        let store = open(&device, &options).expect("formats");
        for step in steps(&mut rng, 240, 40) {
            assert!(take(&store, &step), "not full");
        }
        let stats = store.stats();
        let pm = stats.pm.unwrap();
        assert!(
            stats.splits > 2 && stats.merges > 1,
            "{:?}: {stats:?}",
            options.tree
        );
        if let PmTreeKind::Ccl(ccl) = options.tree {
            let flushed = ccl.batch == 5 || pm.trigger_writes > 10;
            let copied = ccl.cleaning == Cleaning::Naive || pm.cleaning_copies > 5;
            assert!(
                flushed && copied && pm.cleanings > 4,
                "{:?}: {pm:?}",
                options.tree
            );
        }
        assert_ne!(store.pump(PmTask::CleanLog).unwrap(), Progress::More);
    }
}
