//! Tests salvage: intact data of a damaged store is recovered, nothing wrong is returned, and
//! missing data is reported by key range.

mod support;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{BF, EACH_FLUSH, IN_PLACE, Pages, SHADOW, all, device_of, read_all, tiny};
use treering_engine::device::{BlockDevice, MemDevice};
use treering_engine::node::{PageRef, check_for};
use treering_engine::{
    KeyRange, Kv, Lsn, Options, PageStoreKind, SalvageHints, SalvageReport, Store, StoreId,
    SystemClock, TreeKind, required_blocks, salvage, verify, verify_blocks,
};
use xxhash_rust::xxh3::xxh3_64;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const BLOCK: usize = 4096;

/// A store as it was left, its contents, and all values that each key ever had.
struct Left {
    blocks: Vec<Vec<u8>>,
    held: Map,
    history: HashMap<Vec<u8>, Vec<Vec<u8>>>,
}

/// Returns a store that grew and shrank with occasional checkpoints. It ends closed, or with its
/// last changes only in the log.
fn lived(options: &Options, seed: u64, closed: bool) -> Left {
    let mut rng = StdRng::seed_from_u64(seed);
    let device = Arc::new(MemDevice::new(required_blocks(options, 300)));
    let clock = Arc::new(SystemClock::new());
    let store = Store::open(device.clone(), clock, options).expect("opens");
    let mut left = Left {
        blocks: Vec::new(),
        held: Map::new(),
        history: HashMap::new(),
    };
    let mut newest = Lsn(0);
    for i in 0..1_500_u32 {
        let key = format!("key-{:04}", rng.random_range(0..500)).into_bytes();
        let grow = if (i / 400).is_multiple_of(2) {
            0.85
        } else {
            0.3
        };
        let done = if rng.random_bool(grow) {
            let mut value = i.to_be_bytes().to_vec();
            let long = rng.random_bool(0.05);
            let most = if long { 9_000 } else { 200 };
            value.resize(4 + rng.random_range(0..most), b'v');
            left.history
                .entry(key.clone())
                .or_default()
                .push(value.clone());
            left.held.insert(key.clone(), value.clone());
            store.put(&key, &value)
        } else {
            left.held.remove(&key);
            store.delete(&key)
        };
        newest = newest.max(done.expect("is done"));
        if i % 97 == 0 {
            while store.pump_due().expect("pumps") {}
        }
        if rng.random_bool(0.004) {
            store.checkpoint().expect("checkpoints");
        }
    }
    if closed {
        store.close().expect("closes");
    } else {
        store.sync(newest).expect("syncs");
        store.abandon();
    }
    left.blocks = read_all(&device);
    left
}

fn salvaged(blocks: &[Vec<u8>]) -> (Map, SalvageReport) {
    let device: Arc<dyn BlockDevice> = device_of(blocks);
    let mut found = Map::new();
    let mut last: Option<Vec<u8>> = None;
    let report = salvage(
        device,
        SalvageHints::default(),
        &mut |_| {},
        &mut |key, value| {
            assert!(
                last.as_deref().is_none_or(|last| last < key),
                "{key:?} is out of order"
            );
            last = Some(key.to_vec());
            found.insert(key.to_vec(), value.to_vec());
            Ok(())
        },
    )
    .expect("nothing fails");
    assert_eq!(report.records as usize, found.len());
    (found, report)
}

fn within(ranges: &[KeyRange], key: &[u8]) -> bool {
    ranges.iter().any(|range| range.contains(key))
}

/// Returns a store on these blocks.
fn store_of(blocks: &[Vec<u8>]) -> StoreId {
    StoreId(u64::from_le_bytes(
        blocks[0][88..96].try_into().expect("eight bytes"),
    ))
}

/// Returns the fences of the page image that contained the block before it was damaged.
fn image_around(blocks: &[Vec<u8>], lba: usize, page_blocks: usize) -> Option<KeyRange> {
    (lba.saturating_sub(page_blocks - 1)..=lba).find_map(|first| {
        let bytes = blocks.get(first..first + page_blocks)?.concat();
        let page = PageRef::new(&bytes);
        check_for(&bytes, page.page_id(), store_of(blocks)).ok()?;
        Some(KeyRange {
            from: page.lower_fence().to_vec(),
            to: page.upper_fence().map(<[u8]>::to_vec),
        })
    })
}

fn assert_right(left: &Left, found: &Map, report: &SalvageReport, story: &str) {
    for (key, value) in found {
        if left.held.get(key) != Some(value) {
            let name = String::from_utf8_lossy(key);
            assert!(
                within(&report.doubtful, key),
                "{story}: {name} is wrong, but not reported as doubtful: {report:?}"
            );
            assert!(
                left.history[key].contains(value),
                "{story}: {name} never had this value"
            );
        }
    }
    for key in left.held.keys().filter(|key| !found.contains_key(*key)) {
        let told = within(&report.missing, key) || within(&report.doubtful, key);
        let name = String::from_utf8_lossy(key);
        assert!(
            told,
            "{story}: {name} is absent, but not reported as missing: {report:?}"
        );
    }
}

#[test]
fn an_undamaged_store_is_salvaged_completely() {
    for (tree, pages) in all() {
        for closed in [true, false] {
            let left = lived(&tiny(tree, pages), 1, closed);
            let story = format!("{tree:?} on {pages:?}, closed: {closed}");
            let (found, report) = salvaged(&left.blocks);
            assert!(report.is_complete(), "{story}: {report:?}");
            assert_eq!(report.damage, Vec::<String>::new(), "{story}");
            assert!(found == left.held, "{story}: {} records", found.len());
        }
    }
}

/// What the damaged block contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Page,
    ModLog,
    Log,
    Long,
    Other,
}

fn kind(blocks: &[Vec<u8>], lba: usize, page_blocks: usize, options: &Options) -> Kind {
    if image_around(blocks, lba, page_blocks).is_some() {
        Kind::Page
    } else if &blocks[lba][4..8] == b"MLOG" {
        Kind::ModLog
    } else if &blocks[lba][4..8] == b"OVFL" {
        Kind::Long
    } else if (2..2 + options.log_bytes as usize / BLOCK).contains(&lba) {
        Kind::Log
    } else {
        Kind::Other
    }
}

fn campaign(tree: TreeKind, pages: Pages, rounds: u64) {
    let mut seen = HashMap::new();
    for seed in 0..rounds {
        let options = tiny(tree, pages);
        let page_blocks = options.page_size / BLOCK;
        let left = lived(&options, seed, seed % 3 == 0);
        let mut rng = StdRng::seed_from_u64(seed + 1_000);
        for case in 0..12 {
            let mut blocks = left.blocks.clone();
            let written: Vec<usize> = (0..blocks.len())
                .filter(|i| blocks[*i].iter().any(|b| *b != 0))
                .collect();
            let mut hit = Vec::new();
            for _ in 0..1 + case % 3 {
                let lba = written[rng.random_range(0..written.len())];
                let what = kind(&left.blocks, lba, page_blocks, &options);
                // A blank block may be a shadow slot or a modification log. Nothing shows that the
                // test blanked it.
                let shadow = matches!(options.store, PageStoreKind::Shadow) && what == Kind::Page;
                if shadow || what == Kind::ModLog || rng.random_bool(0.5) {
                    blocks[lba][rng.random_range(0..BLOCK)] ^= 1 << rng.random_range(0..8);
                } else {
                    blocks[lba].fill(0);
                }
                hit.push((what, lba));
            }
            let story = format!("{tree:?} on {pages:?}, seed {seed}, case {case}, hit {hit:?}");
            let (found, report) = salvaged(&blocks);
            let lost_tail = hit.iter().any(|(kind, _)| *kind == Kind::Log);
            if !lost_tail {
                assert_right(&left, &found, &report, &story);
            }
            // All contents of undamaged leaves are present, unless the log has lost later changes.
            let touched: Vec<KeyRange> = (hit.iter())
                .filter_map(|(_, lba)| image_around(&left.blocks, *lba, page_blocks))
                .collect();
            if hit
                .iter()
                .all(|(kind, _)| matches!(kind, Kind::Page | Kind::Long | Kind::Other))
            {
                // A block of a long value names its key.
                let owners: Vec<u64> = (hit.iter())
                    .filter(|(kind, _)| *kind == Kind::Long)
                    .map(|(_, lba)| &left.blocks[*lba][40..48])
                    .map(|sum| u64::from_le_bytes(sum.try_into().expect("eight bytes")))
                    .collect();
                for (key, value) in &left.held {
                    let name = String::from_utf8_lossy(key);
                    let there = found.get(key) == Some(value);
                    assert!(
                        there || within(&touched, key) || owners.contains(&xxh3_64(key)),
                        "{story}: {name} was undamaged"
                    );
                }
            }
            hit.iter()
                .for_each(|(kind, _)| *seen.entry(format!("{kind:?}")).or_insert(0) += 1);
        }
    }
    assert!(seen.len() >= 3, "{tree:?} on {pages:?}: {seen:?}");
}

/// Damages random blocks of stores of every kind.
#[test]
fn damage_loses_only_what_it_hits_and_every_loss_is_reported() {
    let rounds = std::env::var("TREERING_REPAIR_ROUNDS").ok();
    let rounds = rounds.map_or(4, |n| n.parse().expect("a number"));
    for (tree, pages) in all() {
        campaign(tree, pages, rounds);
    }
}

/// Without superblocks, index and table, fences and LSNs suffice, and nothing is reported as
/// proved.
#[test]
fn without_superblocks_the_newest_images_and_the_log_are_salvaged() {
    for (tree, pages) in all() {
        let left = lived(&tiny(tree, pages), 5, false);
        let mut blocks = left.blocks.clone();
        blocks[0].fill(0);
        blocks[1].fill(7);
        let (found, report) = salvaged(&blocks);
        let story = format!("{tree:?} on {pages:?}");
        assert!(
            found == left.held,
            "{story}: {} of {}",
            found.len(),
            left.held.len()
        );
        assert!(!report.damage.is_empty(), "{story}");
    }
}

/// The device still has an old image of each leaf, and the newest image of one leaf is damaged. Its
/// records must be reported as missing, not returned with old values.
#[test]
fn a_stale_image_never_replaces_a_damaged_one() {
    for (tree, pages) in [TreeKind::BTree, BF]
        .into_iter()
        .flat_map(|tree| [IN_PLACE, EACH_FLUSH, SHADOW].map(|pages| (tree, pages)))
    {
        let options = tiny(tree, pages);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 300)));
        let clock = Arc::new(SystemClock::new());
        let store = Store::open(device.clone(), clock, &options).expect("opens");
        let write = |round: u8| {
            for n in 0..400_u32 {
                store.put(&n.to_be_bytes(), &[round; 100]).expect("puts");
            }
            store.checkpoint().expect("checkpoints");
        };
        write(1);
        let old = read_all(&device);
        write(2);
        store.close().expect("closes");
        // Discards do nothing, so trimmed blocks keep their contents.
        let mut blocks = read_all(&device);
        for (block, old) in blocks.iter_mut().zip(&old) {
            if block.iter().all(|b| *b == 0) && &old[24..26] == b"TR" {
                block.clone_from(old);
            }
        }
        let story = format!("{tree:?} on {pages:?}");
        let store = store_of(&blocks);
        let is_newest = |block: &Vec<u8>| {
            let page = PageRef::new(block);
            check_for(block, page.page_id(), store).is_ok()
                && page.iter().any(|(_, value)| value[0] == 2)
        };
        // Damage the last image: for an in-place store the page's home, not the image in the
        // journal.
        let hit = blocks.iter().rposition(is_newest).expect("a leaf");
        let range = image_around(&blocks, hit, 1).expect("the image was whole");
        let image = blocks[hit].clone();
        blocks
            .iter_mut()
            .filter(|block| **block == image)
            .for_each(|block| block[2_000] ^= 4);
        let (found, report) = salvaged(&blocks);
        for (key, value) in &found {
            assert_eq!(value[0], 2, "{story}: {key:?} has an old value: {report:?}");
        }
        assert!(
            !range.from.is_empty() || range.to.is_some(),
            "{story}: more than one leaf"
        );
        for n in 0..400_u32 {
            let key = n.to_be_bytes();
            assert_eq!(
                found.contains_key(&key[..]),
                !range.contains(&key),
                "{story}: {n}"
            );
            assert_eq!(
                within(&report.missing, &key),
                range.contains(&key),
                "{story}: {n}"
            );
        }
        assert!(!report.damage.is_empty(), "{story}");
    }
}

/// A durable log block is lost. The blocks after it are still read, and everything older is
/// doubtful.
#[test]
fn a_hole_in_the_log_is_reported_and_later_records_are_read() {
    for (tree, pages) in all() {
        let options = Options {
            log_bytes: 2 << 20,
            checkpoint_log_bytes: 1 << 20,
            log_buffer_bytes: 1 << 18,
            ..tiny(tree, pages)
        };
        let device = Arc::new(MemDevice::new(required_blocks(&options, 300)));
        let clock = Arc::new(SystemClock::new());
        let store = Store::open(device.clone(), clock, &options).expect("opens");
        let mut left = Left {
            blocks: Vec::new(),
            held: Map::new(),
            history: HashMap::new(),
        };
        for round in 0..8_u8 {
            let mut newest = Lsn(0);
            for n in 0..120_u32 {
                let (key, value) = (n.to_be_bytes().to_vec(), vec![round; 100]);
                newest = newest.max(store.put(&key, &value).expect("puts"));
                left.history
                    .entry(key.clone())
                    .or_default()
                    .push(value.clone());
                left.held.insert(key, value);
            }
            store.sync(newest).expect("syncs");
        }
        store.abandon();
        left.blocks = read_all(&device);
        let log: Vec<usize> = (2..2 + options.log_bytes as usize / BLOCK)
            .filter(|lba| left.blocks[*lba].iter().any(|b| *b != 0))
            .collect();
        let mut blocks = left.blocks.clone();
        blocks[log[log.len() / 3]].fill(0);
        let story = format!("{tree:?} on {pages:?}");
        let (found, report) = salvaged(&blocks);
        assert!(
            report.damage.iter().any(|d| d.contains("log is damaged")),
            "{story}: {report:?}"
        );
        assert_right(&left, &found, &report, &story);
        // All keys were put again after the hole.
        assert!(
            found == left.held,
            "{story}: {} of {}",
            found.len(),
            left.held.len()
        );
        assert!(
            !report.is_complete(),
            "{story}: keys deleted before may reappear"
        );
        // Verify continues after the hole at which recovery stops.
        let device: Arc<dyn BlockDevice> = device_of(&blocks);
        let mut verified = verify(device.clone()).expect("damage is reported, not an error");
        assert!(!verified.walked && verified.damage.len() == 1, "{story}");
        verify_blocks(device, &mut verified).expect("damage is reported, not an error");
        let expected = (report.images, report.log_records, report.records);
        let found = (verified.images, verified.log_records, verified.records);
        assert_eq!(
            found,
            (Some(expected.0), expected.1, expected.2),
            "{story}: {verified:?}"
        );
        let told = |what: &str| verified.damage.iter().any(|d| d.contains(what));
        assert!(
            told("log is damaged") && told("the contents found may be out of date"),
            "{story}: {verified:?}"
        );
    }
}
