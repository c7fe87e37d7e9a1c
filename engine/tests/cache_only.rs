//! Tests mini-pages without a disk: a get or a scan returns the newest value or nothing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;
use treering_engine::{BfOptions, BfStats, CacheOnly, Error, Kv};

fn options(copy_on_access_percent: u8) -> BfOptions {
    BfOptions {
        copy_on_access_percent,
        ..BfOptions::PUBLISHED
    }
}

fn cache(bytes: u64, copy_on_access_percent: u8) -> CacheOnly {
    CacheOnly::new(bytes, options(copy_on_access_percent)).expect("a cache")
}

fn bf(cache: &CacheOnly) -> BfStats {
    cache.stats().bf.expect("it has mini-pages")
}

fn rows(cache: &CacheOnly, down: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    let visit = &mut |k: &[u8], v: &[u8]| {
        rows.push((k.to_vec(), v.to_vec()));
        ControlFlow::Continue(())
    };
    if down {
        cache.scan_back(None, visit).expect("scans");
        rows.reverse();
    } else {
        cache.scan(b"", visit).expect("scans");
    }
    rows
}

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_lookup_returns_the_newest_value_or_nothing(
        steps in prop::collection::vec((0u64..900, 0usize..120, 0u8..8), 1..4_000),
        pages in prop_oneof![Just(4u64), Just(20), Just(400)],
        share in prop_oneof![Just(0u8), Just(10), Just(100)],
    ) {
        let cache = cache(pages * 4096, share);
        // Everything fits into the largest ring, and nothing is dropped for lack of use.
        let all_stays = pages == 400 && share < 100;
        let mut model = BTreeMap::new();
        let mut got = Vec::new();
        for (n, (k, len, what)) in steps.into_iter().enumerate() {
            let key = key(k).to_vec();
            match what {
                0 => {
                    cache.delete(&key).expect("deletes");
                    model.remove(&key);
                }
                1..4 => {
                    if cache.get(&key, &mut got).expect("gets") {
                        prop_assert_eq!(Some(&got), model.get(&key));
                    } else {
                        prop_assert!(!all_stays || !model.contains_key(&key));
                    }
                }
                _ => {
                    let value = vec![n as u8; len];
                    cache.put(&key, &value).expect("puts");
                    cache.get(&key, &mut got).expect("gets");
                    prop_assert!(got == value || got.is_empty());
                    model.insert(key, value);
                }
            }
        }
        let (up, down) = (rows(&cache, false), rows(&cache, true));
        prop_assert!(up.is_sorted());
        for (key, value) in up.iter().chain(&down) {
            prop_assert_eq!(Some(value), model.get(key));
        }
        if all_stays {
            prop_assert_eq!(up.len(), model.len());
            prop_assert_eq!(&up, &down);
            let below = up.len() / 2;
            if let Some((before, _)) = up.get(below) {
                let mut found = Vec::new();
                cache.scan_back(Some(before), &mut |k, _| {
                    found.push(k.to_vec());
                    ControlFlow::Continue(())
                }).expect("scans");
                let expected: Vec<_> = up[..below].iter().rev().map(|(k, _)| k.clone()).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}

/// The memory of unused records is reclaimed, and so are empty ranges.
#[test]
fn a_small_cache_keeps_hot_keys_and_bounds_its_index() {
    let cache = cache(1 << 20, 10);
    let (mut got, mut newest) = (Vec::new(), vec![0u64; 50_000]);
    let hot = 2_000;
    let mut hits = 0;
    for n in 1..400_000u64 {
        // Each of these keys is used again long after it was dropped, and sometimes soon after, to
        // check what is left.
        let cold = hot + n * 7_919 % (50_000 - hot);
        let again = hot + (n - n % 64) * 7_919 % (50_000 - hot);
        for used in [n % hot, again] {
            if cache.get(&key(used), &mut got).expect("gets") {
                assert_eq!(got, newest[used as usize].to_be_bytes(), "key {used}");
                hits += u64::from(used < hot);
            }
        }
        for (put, rate) in [(cold, 1), (n % hot, 4)] {
            if n % rate == 0 {
                newest[put as usize] = n;
                cache.put(&key(put), &n.to_be_bytes()).expect("puts");
            }
        }
    }
    for (k, n) in newest.iter().enumerate() {
        if cache.get(&key(k as u64), &mut got).expect("gets") {
            assert_eq!(got, n.to_be_bytes(), "key {k}");
        }
    }
    let stats = cache.stats();
    let ring = bf(&cache);
    assert!(
        ring.evictions > 1_000 && ring.copies_to_tail > 1_000,
        "{ring:?}"
    );
    assert!(ring.span_bytes <= 1 << 20);
    assert!(
        stats.leaf_pages < 4 * (1 << 20) / 256,
        "{} ranges: empty ranges must be freed",
        stats.leaf_pages
    );
    assert!(
        hits > 90_000,
        "{hits} hits of at most 100,000 on the hot keys"
    );
}

/// One thread writes increasing numbers. The values that other threads read for a key never
/// decrease.
#[test]
fn values_read_for_a_key_never_go_back() {
    let cache = cache(11 * 4096, 10);
    let stop = AtomicBool::new(false);
    let seen = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for reader in 0..2u64 {
            let (cache, stop, seen) = (&cache, &stop, &seen);
            scope.spawn(move || {
                let mut last = vec![0; 600];
                let mut got = Vec::new();
                let mut n = reader;
                while !stop.load(Ordering::Relaxed) {
                    n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                    let k = (n >> 33) % 600;
                    if cache.get(&key(k), &mut got).expect("gets") {
                        let version = u64::from_be_bytes(got[..8].try_into().expect("8 bytes"));
                        assert!(version >= last[k as usize], "key {k} went back");
                        last[k as usize] = version;
                        seen.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for version in 0..150_000u64 {
            let mut value = version.to_be_bytes().to_vec();
            value.resize(8 + version as usize % 90, 7);
            cache.put(&key(version * 7 % 600), &value).expect("puts");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(seen.load(Ordering::Relaxed) > 100);
    assert!(bf(&cache).evictions > 100, "{:?}", bf(&cache));
}

#[test]
fn oversized_records_and_invalid_options_are_refused() {
    assert!(matches!(
        CacheOnly::new(4096, options(10)),
        Err(Error::BadOption { name: "cache", .. })
    ));
    assert!(matches!(
        CacheOnly::new(1 << 20, options(101)),
        Err(Error::BadOption {
            name: "copy-on-access",
            ..
        })
    ));
    let cache = cache(1 << 20, 10);
    assert!(matches!(
        cache.put(b"k", &[0; 4096]),
        Err(Error::RecordTooLarge { .. })
    ));
    assert!(matches!(
        cache.put(&[0; 4096], b""),
        Err(Error::KeyTooLong { .. })
    ));
    assert!(rows(&cache, false).is_empty());
}
