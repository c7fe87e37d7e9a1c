//! Tests which requests the trees in persistent memory make to the device, operation by operation,
//! against the claims of the CCL-BTree paper (CLAIMS, CC-…).

use std::collections::BTreeSet;
use std::sync::Arc;

use treering_engine::device::{LINE_SIZE, MemPm, PmDevice, PmRequest};
use treering_engine::{
    CclOptions, Cleaning, Kv, Logging, PmOptions, PmStore, PmTask, PmTreeKind, Progress,
};

/// Returns a store that never cleans on its own, and its recording device.
fn store(tree: PmTreeKind) -> (Arc<MemPm>, PmStore) {
    let device = Arc::new(MemPm::new(32 << 20));
    let shared: Arc<dyn PmDevice> = device.clone();
    let options = PmOptions {
        tree,
        chunk_bytes: 1 << 20,
        ..PmOptions::default()
    };
    let store = PmStore::open(shared, &options).unwrap();
    device.record();
    (device, store)
}

fn ccl(batch: usize) -> PmTreeKind {
    PmTreeKind::Ccl(CclOptions {
        batch,
        log_percent: 255,
        ..CclOptions::default()
    })
}

fn put(store: &PmStore, key: u64) {
    store.put(&key.to_be_bytes(), &key.to_be_bytes()).unwrap();
}

/// Returns numbers in random order. Multiples of a constant would fill the leaves too regularly.
fn scattered(i: u64) -> u64 {
    let mut z = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the lines that an operation wrote back, grouped by fence.
fn phases(device: &MemPm) -> Vec<Vec<u64>> {
    let mut phases = vec![Vec::new()];
    for request in device.take_recording() {
        match request {
            PmRequest::WriteBack { offset } => {
                let line = offset / LINE_SIZE as u64;
                phases.last_mut().unwrap().push(line);
            }
            PmRequest::Fence => phases.push(Vec::new()),
            PmRequest::Store { .. } => {}
            PmRequest::NtStore { .. } => panic!("there must be no non-temporal stores"),
        }
    }
    assert_eq!(phases.pop(), Some(Vec::new()), "a fence must come last");
    phases
}

/// Returns the 256-byte lines of the medium that contain these cache lines.
fn xplines(lines: &[u64]) -> BTreeSet<u64> {
    lines.iter().map(|line| line / 4).collect()
}

#[test]
fn a_batch_insert_writes_one_to_three_data_lines_and_a_header_line_with_two_fences() {
    // CC-14. The whole leaf is one XPLine (§4.2).
    for batch in [1, 2, 5] {
        let (device, store) = store(ccl(batch));
        let mut flushes = 0;
        for i in 0..400 {
            let before = store.stats();
            device.take_recording();
            put(&store, scattered(i));
            let (pm, stats) = (store.stats().pm.unwrap(), store.stats());
            let flushed = pm.leaf_flushes() > before.pm.unwrap().leaf_flushes();
            if !flushed || stats.splits > before.splits {
                continue;
            }
            flushes += 1;
            let phases = phases(&device);
            assert_eq!(phases.len(), 2, "two fences");
            let (data, header) = (&phases[0], &phases[1]);
            let most = if batch == 5 { 4 } else { 3.min(batch + 1) };
            assert!((1..=most).contains(&data.len()), "{data:?}");
            assert_eq!(header.len(), 1);
            assert_eq!(header[0] % 4, 0, "the header is the first line of a leaf");
            let lines = [data.as_slice(), header].concat();
            assert_eq!(xplines(&lines).len(), 1, "one XPLine");
        }
        assert!(flushes > 10, "{flushes}");
    }
}

#[test]
fn a_buffered_write_writes_one_log_entry_and_one_fence() {
    // CC-06: 24 bytes span one line or two.
    let (device, store) = store(ccl(2));
    put(&store, 1);
    device.take_recording();
    let mut lines = 0;
    for _ in 0..64 {
        // Each time in the buffer slot of the key.
        put(&store, 1);
        let phases = phases(&device);
        assert_eq!(phases.len(), 1, "one fence");
        assert!((1..=2).contains(&phases[0].len()));
        lines += phases[0].len();
    }
    // Of eight entries in three lines, two span two lines.
    assert_eq!(lines, 64 + 16);
    let stats = store.stats().pm.unwrap();
    assert_eq!((stats.log_appends, stats.buffer_overwrites), (65, 64));
    assert_eq!(stats.trigger_writes, 0);
}

#[test]
fn a_split_writes_the_whole_new_leaf_before_the_old_header() {
    // CC-15.
    for batch in [1u64, 2, 5] {
        let (device, store) = store(ccl(batch as usize));
        let mut splits = 0;
        for i in 0..2_000 {
            let before = store.stats();
            device.take_recording();
            put(&store, scattered(i));
            if store.stats().splits == before.splits {
                continue;
            }
            splits += 1;
            let phases = phases(&device);
            // The new leaf with data of the old one; the old header; and perhaps the rest as a
            // batch.
            assert!([2, 4].contains(&phases.len()), "{phases:?}");
            let old = phases[1][0];
            assert_eq!(phases[1], [old], "only the old header");
            let in_new: Vec<u64> = (phases[0].iter().copied())
                .filter(|line| line / 4 != old / 4)
                .collect();
            assert_eq!(in_new.len(), 4, "the whole new leaf");
            assert_eq!(xplines(&in_new).len(), 1);
            assert!(!phases[0].contains(&old) || phases[0].len() > 4);
            for rest in &phases[2..] {
                assert_eq!(xplines(rest), BTreeSet::from([old / 4]));
            }
        }
        assert!(splits > 50, "{splits}");
    }
}

#[test]
fn a_split_moves_half_of_the_entries() {
    // CC-15: 7 of 14, as ascending keys leave behind.
    let (_, store) = store(PmTreeKind::PmTree);
    for key in 0..14 {
        put(&store, key);
    }
    assert_eq!(store.stats().leaf_pages, 1, "fourteen fit");
    put(&store, 14);
    let stats = store.stats();
    assert_eq!((stats.leaf_pages, stats.splits), (2, 1));
    for key in 15..21 {
        put(&store, key);
    }
    assert_eq!(
        store.stats().leaf_pages,
        2,
        "seven entries moved, so seven more must fit"
    );
    put(&store, 21);
    assert_eq!(store.stats().leaf_pages, 3);
}

#[test]
fn the_baseline_writes_at_most_two_lines_and_two_fences_per_write() {
    let (device, store) = store(PmTreeKind::PmTree);
    for i in 0..500 {
        let before = store.stats().splits;
        device.take_recording();
        put(&store, scattered(i));
        let phases = phases(&device);
        if store.stats().splits == before {
            let lines: Vec<usize> = phases.iter().map(Vec::len).collect();
            assert_eq!(lines, [1, 1]);
        }
    }
    let stats = store.stats();
    assert_eq!(stats.written.log, 0);
    assert_eq!(stats.pm.unwrap().leaf_flushes(), 500);
}

#[test]
fn trigger_writes_are_not_logged() {
    // CC-07: K·N/(N+1) of K upserts are logged, and slightly more because splits create empty
    // buffers. CC-08: K/(N+1) leaf flushes, with the same reservation.
    let measured = [0.522, 0.694, 0.0, 0.0, 0.863];
    for (batch, measured) in (1..=5u64).zip(measured) {
        let (_, store) = store(ccl(batch as usize));
        let (warm, count) = (60_000, 60_000);
        (0..warm).for_each(|i| put(&store, scattered(i)));
        let before = store.stats().pm.unwrap();
        (warm..warm + count).for_each(|i| put(&store, scattered(i)));
        let pm = store.stats().pm.unwrap().since(&before);
        let logged = pm.log_appends as f64 / count as f64;
        let formula = batch as f64 / (batch + 1) as f64;
        assert!(
            (1.0..=1.05).contains(&(logged / formula)),
            "N = {batch}: {logged:.4} of the writes logged, {formula:.4} expected"
        );
        if measured > 0.0 {
            assert!(
                (logged - measured).abs() < 0.01,
                "N = {batch}: {logged:.4}, {measured}"
            );
        }
        assert_eq!(pm.log_appends + pm.trigger_writes, count);
        assert_eq!(
            pm.trigger_writes,
            pm.leaf_flushes(),
            "only trigger writes may flush"
        );
        println!("N = {batch}: logged {logged:.4}, formula {formula:.4}");
    }
    let (_, store) = store(PmTreeKind::Ccl(CclOptions {
        logging: Logging::EveryWrite,
        log_percent: 255,
        ..CclOptions::default()
    }));
    (0..5_000).for_each(|i| put(&store, scattered(i)));
    assert_eq!(store.stats().pm.unwrap().log_appends, 5_000);
}

#[test]
fn cleaning_copies_exactly_the_unflushed_entries_of_the_old_epoch() {
    // CC-13.
    let (_, store) = store(ccl(3));
    let pm = || store.stats().pm.unwrap();
    (0..20_000).for_each(|i| put(&store, scattered(i)));
    // Keys that are certainly buffered: they were put since the last flush, and are far behind the
    // leaves that one step visits.
    let mut buffered = Vec::new();
    for key in (20_000..).map(scattered) {
        let before = pm().trigger_writes;
        put(&store, key);
        if pm().trigger_writes > before {
            buffered.clear();
        } else if key > u64::MAX / 2 {
            buffered.push(key);
        }
        if buffered.len() == 3 {
            break;
        }
    }
    let before = pm();
    assert!(before.buffered > 1_000);
    assert_eq!(store.pump(PmTask::CleanLog).unwrap(), Progress::More);
    buffered.iter().for_each(|key| put(&store, *key));
    while store.pump(PmTask::CleanLog).unwrap() == Progress::More {}
    let after = pm().since(&before);
    assert_eq!(after.buffer_overwrites, 3);
    assert_eq!(
        after.cleaning_copies,
        before.buffered - 3,
        "writes since belong to the new epoch"
    );
    assert_eq!(
        (
            after.cleanings,
            after.cleaning_flushes,
            after.leaf_flushes()
        ),
        (1, 0, 0)
    );
    assert_eq!(after.log_bytes, 24 * before.buffered);
    // Without concurrent writes, cleaning copies exactly what is buffered, and does so again in the
    // next cleaning.
    for _ in 0..3 {
        let before = pm();
        while store.pump(PmTask::CleanLog).unwrap() == Progress::More {}
        let after = pm().since(&before);
        assert_eq!(after.cleaning_copies, before.buffered);
        assert_eq!(after.log_bytes, 24 * before.buffered);
    }
}

#[test]
fn naive_cleaning_writes_several_times_as_many_xplines() {
    // CC-12: naive cleaning writes a random leaf per dirty buffer, and locality-aware cleaning 24
    // sequential bytes per unflushed change.
    let lines_of = |cleaning| {
        let (device, store) = store(PmTreeKind::Ccl(CclOptions {
            cleaning,
            log_percent: 255,
            ..CclOptions::default()
        }));
        (0..30_000).for_each(|i| put(&store, scattered(i)));
        device.take_recording();
        while store.pump(PmTask::CleanLog).unwrap() == Progress::More {}
        let phases = phases(&device);
        let lines: Vec<u64> = phases.into_iter().flatten().collect();
        xplines(&lines).len()
    };
    let (naive, local) = (lines_of(Cleaning::Naive), lines_of(Cleaning::LocalityAware));
    println!("XPLines per cleaning: naive {naive}, locality-aware {local}");
    assert!(naive >= 5 * local, "{naive} against {local}");
}

#[test]
fn a_lookup_answered_by_the_buffer_does_not_read_the_device() {
    // CC-29.
    let (_, store) = store(ccl(2));
    (0..5_000).for_each(|i| put(&store, scattered(i)));
    let mut got = Vec::new();
    let (mut hits, mut misses) = (0, 0);
    for i in 0..5_000 {
        let before = store.stats();
        assert!(store.get(&scattered(i).to_be_bytes(), &mut got).unwrap());
        let (now, earlier) = (store.stats(), before.pm.unwrap());
        let read = now.read.page - before.read.page;
        let pm = now.pm.unwrap();
        assert_eq!(now.read.log, before.read.log);
        if pm.buffer_hits > earlier.buffer_hits {
            hits += 1;
            assert_eq!(read, 0);
        } else {
            misses += 1;
            // The line of the header, and the slots whose fingerprints match.
            assert!((64..=64 + 3 * 16).contains(&read), "{read}");
        }
        assert_eq!(
            pm.buffer_hits + pm.buffer_misses,
            earlier.buffer_hits + earlier.buffer_misses + 1
        );
    }
    assert!(hits > 500 && misses > 2_000, "{hits} and {misses}");
}

#[test]
fn a_split_copies_buffered_entries_to_both_nodes() {
    // In Table 1, 4.9, 9.4, 14.2, 17.6 and 21.7 of 50 M searches end in DRAM.
    for (batch, expected) in (1..=5).zip([9.8, 18.8, 28.4, 35.2, 43.4]) {
        let (_, store) = store(ccl(batch));
        let count = 100_000;
        (0..count).for_each(|i| put(&store, scattered(i)));
        let mut got = Vec::new();
        for i in 0..count {
            let key = scattered(i).to_be_bytes();
            assert!(store.get(&key, &mut got).unwrap() && got == key);
        }
        let pm = store.stats().pm.unwrap();
        let share = 100.0 * pm.buffer_hits as f64 / count as f64;
        println!("N = {batch}: {share:.1} % of lookups in DRAM, {expected} % in the paper");
        assert!(
            (share / expected - 1.0).abs() < 0.1,
            "N = {batch}: {share:.1} %"
        );
    }
}

#[test]
fn copies_made_by_a_split_are_never_stale() {
    // Few keys, each written many times before and after splits, by puts and deletes of all
    // lengths.
    for batch in 1..=6 {
        let (_, store) = store(ccl(batch));
        let mut right = std::collections::BTreeMap::new();
        let mut got = Vec::new();
        for i in 0..20_000u64 {
            let key = (scattered(i) % 400).to_be_bytes();
            if scattered(!i).is_multiple_of(5) {
                store.delete(&key).unwrap();
                right.remove(&key);
            } else {
                let value = vec![i as u8; [8, 8, 30][i as usize % 3]];
                store.put(&key, &value).unwrap();
                right.insert(key, value);
            }
            let asked = (scattered(i ^ 1) % 400).to_be_bytes();
            let found = store.get(&asked, &mut got).unwrap().then_some(&got);
            assert_eq!(found, right.get(&asked), "N = {batch}, write {i}");
        }
        assert!(store.stats().splits > 20);
    }
}

#[test]
fn leaf_bytes_per_record_match_the_paper() {
    // CC-19: 25.10, 24.10, 24.22, 22.55, 22.24 leaf bytes per record for N = 1 … 5, within 2 %.
    // CC-31: buffer nodes take 8 + 16·N bytes per leaf.
    for (batch, expected) in (1..=5u64).zip([25.10, 24.10, 24.22, 22.55, 22.24]) {
        let (_, store) = store(ccl(batch as usize));
        let count = 200_000;
        (0..count).for_each(|i| put(&store, scattered(i)));
        let pm = store.stats().pm.unwrap();
        let bytes = pm.leaf_bytes as f64 / count as f64;
        println!("N = {batch}: {bytes:.2} bytes per record, {expected} in the paper");
        assert!(
            (bytes / expected - 1.0).abs() < 0.02,
            "N = {batch}: {bytes:.2}, {expected}"
        );
        let chunks = pm.node_bytes / (8 + 16 * batch) * 256;
        assert!(chunks >= pm.leaf_bytes && chunks < pm.leaf_bytes + (1 << 20));
    }
}
