//! Compares the curve with caches that are played access by access.

use xxhash_rust::xxh3::xxh3_64;

use super::*;

/// An access: the key, and whether it is a write.
pub(in crate::info) type Access = (u64, bool);

fn curve(accesses: &[Access], most: usize) -> CacheCurve {
    let mut reuse = Reuse::new(most);
    for &(key, write) in accesses {
        reuse.access(xxh3_64(&key.to_be_bytes()), write);
    }
    reuse.finish().expect("there are accesses")
}

/// Misses and write-backs of a least-recently-used cache.
pub(in crate::info) fn play(accesses: &[Access], size: usize) -> (u64, u64) {
    // The last one is the one used most recently.
    let mut cache: Vec<Access> = Vec::new();
    let (mut misses, mut back) = (0, 0);
    for &(key, write) in accesses {
        let found = cache.iter().position(|&(cached, _)| cached == key);
        misses += u64::from(found.is_none());
        let dirty = found.is_some_and(|i| cache.remove(i).1);
        if cache.len() == size {
            back += u64::from(cache.remove(0).1);
        }
        cache.push((key, dirty || write));
    }
    (misses, back)
}

/// Accesses that drift, with bursts and scans, so that they are not independent.
fn accesses(keys: u64, count: usize, seed: u64) -> Vec<Access> {
    let mut drawn = 0;
    let mut below = |most: u64| {
        drawn += 1;
        xxh3_64(format!("{seed} {drawn}").as_bytes()) % most
    };
    let mut list = Vec::new();
    while list.len() < count {
        let middle = list.len() as u64 * keys / count as u64;
        let key = match below(4) {
            0 => below(keys),
            _ => (middle + below(keys / 8)) % keys,
        };
        for next in 0..1 + below(3) {
            list.push(((key + next) % keys, below(5) < 2));
        }
    }
    list.truncate(count);
    list
}

#[test]
fn the_curve_is_what_a_cache_of_each_size_does() {
    for seed in 0..20 {
        // Small enough for exact bins; the order of accesses is renumbered many times.
        let list = accesses(100, 3_000, seed);
        let found = curve(&list, 128);
        assert_eq!(found.sampled, 1.0);
        let writes = list.iter().filter(|(_, write)| *write).count() as f64;
        for point in &found.points {
            let (misses, back) = play(&list, point.keys as usize);
            let expected = misses as f64 / list.len() as f64;
            assert!((point.misses - expected).abs() < 1e-9, "{seed}: {point:?}");
            let written = point.written_back.expect("there are writes");
            assert!(
                (written - back as f64 / writes).abs() < 1e-9,
                "{seed}: {point:?}, {back}"
            );
        }
    }
}

#[test]
fn a_sample_of_the_keys_gives_nearly_the_same_curve() {
    let list = accesses(20_000, 200_000, 3);
    let exact = curve(&list, 32_768);
    let sampled = curve(&list, 2_048);
    assert_eq!((exact.sampled, sampled.sampled), (1.0, 1.0 / 16.0));
    for (a, b) in exact.points.iter().zip(&sampled.points) {
        // A depth is a multiple of 16 here.
        if a.keys < 200 || a.keys != b.keys {
            continue;
        }
        assert!((a.misses - b.misses).abs() < 0.03, "{a:?}, {b:?}");
        let (a_back, b_back) = (a.written_back.unwrap(), b.written_back.unwrap());
        assert!((a_back - b_back).abs() < 0.03, "{a:?}, {b:?}");
    }
}

#[test]
fn bins_are_exact_where_depths_are_small_and_never_overlap() {
    let mut before = None;
    for depth in 0..100_000 {
        let bin = bin(depth);
        assert!(before.is_none_or(|b| bin == b || bin == b + 1), "{depth}");
        if depth < 2 * BINS {
            assert_eq!(bin, depth as usize);
        }
        before = Some(bin);
    }
}

#[test]
fn without_accesses_there_is_no_curve_and_without_writes_no_write_backs() {
    assert_eq!(Reuse::new(16).finish(), None);
    let found = curve(&[(1, false), (2, false), (1, false)], 16);
    assert!(
        found
            .points
            .iter()
            .all(|point| point.written_back.is_none())
    );
    // Three accesses: both first ones miss.
    let last = found.points.last().expect("two keys").misses;
    assert!((last - 2.0 / 3.0).abs() < 1e-9, "{found:?}");
}
