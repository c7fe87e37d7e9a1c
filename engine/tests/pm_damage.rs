//! Tests bytes that the engine did not write: the result is a typed error or an answer, never a
//! panic or an endless loop.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;
use treering_engine::device::{MemPm, PmDevice, PmImage};
use treering_engine::{
    CclOptions, Cleaning, Error, Kv, LodgeOptions, Logging, PmOptions, PmStore, PmTreeKind,
};

const BYTES: u64 = 32 << 10;

const CCL: PmTreeKind = PmTreeKind::Ccl(CclOptions {
    batch: 2,
    logging: Logging::WriteConservative,
    cleaning: Cleaning::LocalityAware,
    log_percent: 20,
    garbage_percent: 50,
    logs: 1,
});

/// Leaves that split early, and logs with few entries.
fn lodge() -> PmTreeKind {
    PmTreeKind::Lodge(LodgeOptions {
        slots: 8,
        t_split: 8,
        logs: 1,
        log_entries: 6,
        ..LodgeOptions::default()
    })
}

fn options(tree: PmTreeKind) -> PmOptions {
    PmOptions {
        tree,
        chunk_bytes: 1024,
        ..PmOptions::default()
    }
}

fn open(image: PmImage, tree: PmTreeKind) -> treering_engine::Result<PmStore> {
    let device: Arc<dyn PmDevice> = Arc::new(MemPm::from_image(image));
    PmStore::open(device, &options(tree))
}

/// Returns a store with leaves, records, and entries in its log, as a crash leaves it.
fn store(tree: PmTreeKind) -> (Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>) {
    let device = Arc::new(MemPm::new(BYTES));
    let shared: Arc<dyn PmDevice> = device.clone();
    let store = PmStore::open(shared, &options(tree)).unwrap();
    let mut map = BTreeMap::new();
    for i in 0..100u64 {
        let key = (i * 37 % 101).to_be_bytes();
        let value = vec![i as u8; if i % 5 == 0 { 30 } else { 8 }];
        store.put(&key, &value).unwrap();
        map.insert(key.to_vec(), value);
    }
    assert!(store.stats().pm.unwrap().buffered > 3);
    (device.crash(&mut |n| n - 1).to_vec(), map)
}

/// Uses every operation on the contents. Errors are acceptable.
fn use_it(store: &PmStore, map: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let mut got = Vec::new();
    let mut seen = 0;
    drop(store.scan(b"", &mut |_, _| {
        seen += 1;
        assert!(seen < 10_000, "the scan does not end");
        ControlFlow::Continue(())
    }));
    drop(store.scan_back(None, &mut |_, _| ControlFlow::Continue(())));
    for key in map.keys() {
        drop(store.get(key, &mut got));
        drop(store.put(key, b"new"));
        drop(store.delete(key));
    }
    drop(store.checkpoint());
}

fn refused(tree: PmTreeKind, bytes: &[u8], at: usize, byte: u8, what: &str) {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= byte;
    match open(PmImage::from(bytes), tree) {
        Err(e @ Error::PmDamaged { .. }) => {
            assert!(e.to_string().contains(what), "{e}, for byte {at}");
        }
        Err(Error::NotAStore { .. }) if at < 8 => {}
        Err(e) => panic!("byte {at}: {e}"),
        Ok(_) => panic!("the store opens although byte {at} of {what} is damaged"),
    }
}

#[test]
fn undamaged_stores_open() {
    for tree in [CCL, lodge()] {
        opens(tree);
    }
}

fn opens(tree: PmTreeKind) {
    let (bytes, map) = store(tree);
    let store = open(PmImage::from(bytes), tree).unwrap();
    let mut found = BTreeMap::new();
    store
        .scan(b"", &mut |k, v| {
            found.insert(k.to_vec(), v.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(found, map);
    let report = store.recovery();
    assert!(
        report.leaves > 5 && report.replayed > 3 && report.log_entries > 20,
        "{report:?}"
    );
}

#[test]
fn a_damaged_superblock_is_refused_by_name() {
    for tree in [CCL, lodge()] {
        let (bytes, _) = store(tree);
        let refused = |at, what| refused(tree, &bytes, at, 0x10, what);
        (0..40).for_each(|at| refused(at, "superblock"));
        (64..72).for_each(|at| refused(at, "log floor"));
        // In the directory, chunk 0 holds leaves.
        (256..264).for_each(|at| refused(at, "directory"));
        // A device shorter than its store.
        let short = PmImage::from(bytes[..bytes.len() / 2].to_vec());
        let error = open(short, tree).err().unwrap().to_string();
        assert!(
            error.contains("superblock") && error.contains("16384"),
            "{error}"
        );
    }
}

/// The contents of a LodgeTree leaf are checked against its neighbours.
#[test]
fn a_lodge_with_an_inconsistent_leaf_is_refused() {
    let (bytes, _) = store(lodge());
    // Thirty-one chunks. The first leaf is the first block of the first chunk.
    let first = bytes.len() - 31 * 1024;
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let use_n = word(first) >> 27 & 1;
    let next_at = first + 16 + 8 * use_n as usize;
    let second = word(next_at) as usize * 256;
    assert!(second > first && second + 512 <= bytes.len());
    let mut slots = (0..27).filter(|at| word(first) >> at & 1 == 1);
    let slot = slots.next().unwrap();
    let with = |at: usize, word: u64| {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        open(PmImage::from(bytes), lodge())
            .err()
            .map(|e| e.to_string())
    };
    for (what, at, word, told) in [
        ("a next beyond the device", next_at, 1 << 40, "header"),
        (
            "a next between two leaves",
            next_at,
            word(next_at) + 1,
            "header",
        ),
        (
            "a next that comes back",
            next_at,
            first as u64 / 256,
            "header",
        ),
        ("kinds of no slot", first + 32, 1 << 40, "header"),
        ("a low below the first leaf's keys", second + 8, 0, "a leaf"),
        (
            "a key beyond its leaf's range",
            first + 80 + 16 * slot,
            1 << 50,
            "a leaf",
        ),
    ] {
        let error = with(at, word).unwrap_or_else(|| panic!("{what} is believed"));
        assert!(error.contains(told), "{what}: {error}");
    }
}

/// If two slots refer to one record, dropping one slot would free it. A reference into a leaf would
/// read leaf bytes as a record.
#[test]
fn records_referenced_twice_or_outside_record_chunks_are_refused() {
    for tree in [PmTreeKind::PmTree, CCL, lodge()] {
        let device = Arc::new(MemPm::new(BYTES));
        let shared: Arc<dyn PmDevice> = device.clone();
        let store = PmStore::open(shared, &options(tree)).unwrap();
        let key = |i: u64| i << 40 | i;
        for i in 0..40 {
            store.put(&key(i).to_be_bytes(), &[7; 30]).unwrap();
        }
        store.checkpoint().unwrap();
        drop(store);
        let bytes = device.crash(&mut |n| n - 1).to_vec();
        assert!(open(PmImage::from(bytes.clone()), tree).is_ok());
        // The values in all slots of a key, including slots that a split has left behind. A slot
        // has two words.
        let values = |i: u64| {
            let key = key(i).to_le_bytes();
            let words = (0..bytes.len()).step_by(8);
            let slots: Vec<usize> = words.filter(|at| bytes[*at..*at + 8] == key).collect();
            assert!(!slots.is_empty());
            slots.into_iter().map(|slot| slot + 8..slot + 16)
        };
        const AT: u64 = 1 << 63;
        let record = values(3).next().unwrap();
        let record = u64::from_le_bytes(bytes[record].try_into().unwrap()) & !AT;
        for (what, place, told) in [
            ("another key's record", record, "one slot that refers to it"),
            ("a place in between", record + 8, "a multiple of 16"),
            ("a leaf", BYTES - 31 * 1024, "in a chunk of records"),
            ("the superblock", 0, "in a chunk of records"),
        ] {
            let mut damaged = bytes.clone();
            for value in values(30) {
                damaged[value].copy_from_slice(&(AT | place).to_le_bytes());
            }
            match open(PmImage::from(damaged), tree) {
                Err(e @ Error::PmDamaged { .. }) => {
                    let error = e.to_string();
                    let named = error.contains("a record") && error.contains(told);
                    assert!(named, "{tree:?}, {what}: {error}");
                }
                Err(e) => panic!("{tree:?}, {what}: {e}"),
                Ok(_) => panic!("{tree:?}: {what} is believed"),
            }
        }
    }
}

#[test]
fn a_device_with_another_magic_is_not_a_store() {
    let mut bytes = vec![0; BYTES as usize];
    bytes[3] = 9;
    let error = open(PmImage::from(bytes), CCL).err().unwrap();
    assert!(matches!(error, Error::NotAStore { .. }), "{error}");
}

#[test]
fn a_missing_log_entry_is_damage_unless_it_is_the_last() {
    let (bytes, _) = store(CCL);
    // Entries in a chunk have increasing times. Find a chunk of the log by trial: one whose first
    // and second entries matter.
    let start = bytes.len() - 31 * 1024;
    let mut refused = 0;
    for chunk in (start..bytes.len()).step_by(1024) {
        for entry in 0..42 {
            let mut damaged = bytes.clone();
            damaged[chunk + entry * 24 + 20] ^= 0x40;
            if let Err(e) = open(PmImage::from(damaged), CCL) {
                refused += usize::from(e.to_string().contains("the log at offset"));
            }
        }
    }
    assert!(refused > 15, "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn damaged_words_never_panic(
        ccl in any::<bool>(),
        damage in prop::collection::vec(
            (0..BYTES as usize / 8, any::<u64>(), 0u32..64, any::<bool>()),
            1..6,
        ),
    ) {
        let tree = if ccl { CCL } else { lodge() };
        let (mut bytes, map) = store(tree);
        for (word, other, bit, whole) in damage {
            let at = word * 8;
            let before = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            let after = if whole { other } else { before ^ 1 << bit };
            bytes[at..at + 8].copy_from_slice(&after.to_le_bytes());
        }
        if let Ok(store) = open(PmImage::from(bytes), tree) {
            use_it(&store, &map);
        }
    }

    /// The same in the most important words: those of leaves in use.
    #[test]
    fn damaged_leaves_never_panic(
        ccl in any::<bool>(),
        damage in prop::collection::vec((0usize..12, 0usize..32, 0u32..64), 1..5),
    ) {
        let tree = if ccl { CCL } else { lodge() };
        let (mut bytes, map) = store(tree);
        // Chunk 0, and the chunk that the store took next.
        let first = bytes.len() - 31 * 1024;
        for (leaf, word, bit) in damage {
            let at = first + leaf * 256 + word * 8;
            bytes[at + bit as usize / 8] ^= 1 << (bit % 8);
        }
        if let Ok(store) = open(PmImage::from(bytes), tree) {
            use_it(&store, &map);
        }
    }
}
