//! Sorting of keys, in 4 bytes per key and 2 MiB.
//!
//! Sorting needs the first bytes of each key at hand, which takes 16 bytes per key. So keys are
//! first distributed to ranges, whose bounds are drawn from all keys (samplesort), and then sorted
//! range by range.

use super::keys::Keys;

/// Approximate number of keys in a range. No more are sorted together unless the drawn keys are not
/// representative.
const RANGE: usize = 1 << 17;
/// Number of keys drawn per range.
const DRAWN: usize = 32;

/// The first eight bytes after the common prefix, and the key's index.
type Head = (u64, u32);

/// Indices of the keys in key order.
pub(super) fn key_order(keys: &Keys) -> Vec<u32> {
    in_ranges(keys, keys.len().div_ceil(RANGE))
}

fn in_ranges(keys: &Keys, ranges: usize) -> Vec<u32> {
    let sorter = Sorter {
        keys,
        skip: common_prefix_of_all(keys),
    };
    let all = 0..keys.len() as u32;
    let mut order = Vec::with_capacity(keys.len());
    if ranges < 2 {
        order.extend(all);
        sorter.sort(&mut order, &mut Vec::new());
        return order;
    }
    let bounds = sorter.bounds(ranges);
    let mut ends = vec![0; bounds.len() + 1];
    for index in all.clone() {
        ends[sorter.range(&bounds, index)] += 1;
    }
    let mut next = 0;
    for end in &mut ends {
        next += std::mem::replace(end, next);
    }
    // The start of each range, up to its end.
    order.resize(keys.len(), 0);
    for index in all {
        let end = &mut ends[sorter.range(&bounds, index)];
        order[*end] = index;
        *end += 1;
    }
    let (mut start, mut heads) = (0, Vec::new());
    for end in ends {
        sorter.sort(&mut order[start..end], &mut heads);
        start = end;
    }
    order
}

struct Sorter<'a> {
    keys: &'a Keys,
    /// Length of the common prefix of all keys, which is skipped before heads are compared.
    skip: usize,
}

impl Sorter<'_> {
    fn head(&self, index: u32) -> Head {
        (head(&self.keys.key(index)[self.skip..]), index)
    }

    fn compare(&self, a: &Head, b: &Head) -> std::cmp::Ordering {
        let whole = |head: &Head| self.keys.key(head.1);
        a.0.cmp(&b.0).then_with(|| whole(a).cmp(whole(b)))
    }

    fn sort(&self, order: &mut [u32], heads: &mut Vec<Head>) {
        heads.clear();
        heads.extend(order.iter().map(|index| self.head(*index)));
        heads.sort_unstable_by(|a, b| self.compare(a, b));
        for (index, head) in order.iter_mut().zip(heads) {
            *index = head.1;
        }
    }

    /// Keys that separate ranges of about equal size.
    fn bounds(&self, ranges: usize) -> Vec<Head> {
        let count = self.keys.len();
        let step = (count / (ranges * DRAWN)).max(1);
        let drawn = (0..count).step_by(step);
        let mut drawn: Vec<Head> = drawn.map(|index| self.head(index as u32)).collect();
        drawn.sort_unstable_by(|a, b| self.compare(a, b));
        let bound = |range: usize| drawn[range * drawn.len() / ranges];
        (1..ranges).map(bound).collect()
    }

    fn range(&self, bounds: &[Head], index: u32) -> usize {
        let head = self.head(index);
        bounds.partition_point(|bound| self.compare(bound, &head).is_le())
    }
}

fn common_prefix_of_all(keys: &Keys) -> usize {
    if keys.len() == 0 {
        return 0;
    }
    let first = keys.key(0);
    let mut shared = first.len();
    keys.each_key(|_, key| {
        if key.len() >= shared && key[..shared] == first[..shared] {
            return;
        }
        let pairs = first.iter().zip(key).take(shared);
        shared = pairs.take_while(|(a, b)| a == b).count();
    });
    shared
}

/// The first eight bytes as an integer with the same order.
pub(super) fn head(key: &[u8]) -> u64 {
    if let Some(bytes) = key.first_chunk() {
        return u64::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_dealt_to_ranges_come_in_the_same_order() {
        let mut state = 1u64;
        for len in [1usize, 3, 8, 11, 20] {
            let mut keys = Keys::default();
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..3000 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let random = (state >> 33) as u8;
                // Long keys share their first eight bytes, and some are prefixes of others.
                let mut key = vec![7; len - 1];
                key.truncate(usize::from(random % 9) + 11);
                key.extend([random / 16, random % 16, (state >> 45) as u8]);
                if seen.insert(key.clone()) {
                    keys.push(&key, 0, 0);
                }
            }
            let sorted: Vec<_> = seen.into_iter().collect();
            for ranges in [1, 2, 7, 40] {
                let order = in_ranges(&keys, ranges);
                let found: Vec<_> = order.iter().map(|i| keys.key(*i).to_vec()).collect();
                assert_eq!(found, sorted, "{ranges} ranges of keys of {len} bytes");
            }
        }
    }
}
