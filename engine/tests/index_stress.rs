//! Tests readers against writers on real threads: every answer must be correct at some instant
//! during the call.
//!
//! Even fences stay forever; odd ones come and go. The leaf of fence `k` is page `k`. So a find for
//! `k` may return the even fence at or below `k`, or the odd fence between them if there is one,
//! and nothing else.
//!
//! Mutation check: `TREERING_MUTATION=index-skips-revalidation RUSTFLAGS='--cfg treering_mutations'
//! cargo test -p treering-engine --release --test index_stress --target-dir target/mutation` must
//! fail (the parent is not validated again, BUGS S5).
#![cfg(not(loom))]

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::sync::atomic::{AtomicBool, Ordering};
use treering_engine::PageId;
use treering_engine::index::IndexOf;

const FENCES: u64 = 512;

/// Returns a fence whose last bytes are on the heap, so that recycled slots are exercised too.
fn fence(k: u64) -> Vec<u8> {
    if k == 0 {
        vec![]
    } else {
        [b"prefix--".as_slice(), &k.to_be_bytes()].concat()
    }
}

fn write(index: &IndexOf<4>, seed: u64, rounds: usize) {
    let mut rng = SmallRng::seed_from_u64(seed);
    for _ in 0..rounds {
        let odd = rng.random_range(0..FENCES / 2) * 2 + 1;
        if rng.random() {
            index.insert(&fence(odd), PageId(odd));
        } else {
            index.remove(&fence(odd));
        }
    }
}

/// Fills and empties one region, from either end, so that nodes are freed and recycled.
fn sweep(index: &IndexOf<4>, rounds: u64) {
    for round in 0..rounds {
        let keys = (FENCES + 1)..(FENCES + 60);
        keys.clone()
            .for_each(|k| index.insert(&fence(k), PageId(k)));
        let gone = |k| assert!(index.remove(&fence(k)), "fence {k} is there");
        if round % 2 == 0 {
            keys.for_each(gone)
        } else {
            keys.rev().for_each(gone)
        }
    }
}

fn read(index: &IndexOf<4>, seed: u64, done: &AtomicBool) -> u64 {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut reads = 0;
    while !done.load(Ordering::Relaxed) {
        let k = rng.random_range(0..FENCES);
        let even = k & !1;
        let PageId(page) = index.find(&fence(k));
        assert!(page == even || page == k, "find({k}) answered {page}");
        if k > 0 {
            let (key, PageId(page)) = index
                .find_before(&fence(k))
                .expect("there is always a fence before");
            assert_eq!(key, fence(page), "a torn entry");
            assert!(
                page < k && page >= (k - 1) & !1,
                "find_before({k}) answered {page}"
            );
        }
        if reads % 64 == 0 {
            let part = index.range(&fence(k), 40);
            assert!(part.is_sorted_by(|a, b| a.0 < b.0), "the range must ascend");
            let evens = part
                .iter()
                .filter(|(_, page)| page.0 % 2 == 0 && page.0 < FENCES);
            let first = k.next_multiple_of(2);
            for (found, expected) in evens.zip((first..).step_by(2)) {
                assert_eq!(
                    *found,
                    (fence(expected), PageId(expected)),
                    "the range must not skip a fence"
                );
            }
        }
        reads += 1;
    }
    reads
}

#[test]
fn readers_find_correct_leaves_while_nodes_split_merge_and_are_recycled() {
    let index = IndexOf::<4>::new(PageId(0));
    (2..FENCES)
        .step_by(2)
        .for_each(|k| index.insert(&fence(k), PageId(k)));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (index, done) = (&index, &done);
        let readers: Vec<_> = (0..2)
            .map(|seed| scope.spawn(move || read(index, seed, done)))
            .collect();
        let mut writers: Vec<_> = (10..12)
            .map(|seed| scope.spawn(move || write(index, seed, 400_000)))
            .collect();
        writers.push(scope.spawn(move || sweep(index, 2_000)));
        let ends: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(
            readers
                .into_iter()
                .all(|reader| reader.join().expect("a reader failed") > 0)
        );
        assert!(ends.iter().all(Result::is_ok), "a writer failed");
    });
    let left = index.range(b"", usize::MAX);
    assert_eq!(left.len(), index.len());
    assert!(left.iter().all(|(key, page)| *key == fence(page.0)));
}
