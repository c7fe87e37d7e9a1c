//! Key sets of the paper (B-Trees Are Back §4 "Experimental Setup", §4.6): four-byte numbers, and
//! eight-byte numbers for partitions.

use crate::ssd::gc::SplitMix;

/// Order in which records are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Random order, from a seed.
    Random,
    /// Ascending.
    Sorted,
}

/// Shuffles a list.
fn shuffle<T>(things: &mut [T], random: &mut SplitMix) {
    for i in (1..things.len()).rev() {
        things.swap(i, random.below(i as u64 + 1) as usize);
    }
}

fn ordered(mut numbers: Vec<u32>, order: Order, random: &mut SplitMix) -> Vec<u32> {
    match order {
        Order::Sorted => numbers.sort_unstable(),
        Order::Random => shuffle(&mut numbers, random),
    }
    numbers
}

/// `records` distinct numbers from `[0, records / density)`: all of `[0, records)` at density 1.
#[must_use]
pub fn dense(records: u32, density: f64, order: Order, seed: u64) -> Vec<u32> {
    let mut random = SplitMix(seed);
    let end = (f64::from(records) / density)
        .round()
        .max(f64::from(records)) as u64;
    let end = end.min(1 << 32);
    let mut numbers = Vec::with_capacity(records as usize);
    // Selection sampling: each number is taken with the probability that gives exactly the wanted
    // count.
    let mut left = u64::from(records);
    for number in 0..end {
        if left == 0 {
            break;
        }
        if random.below(end - number) < left {
            numbers.push(number as u32);
            left -= 1;
        }
    }
    ordered(numbers, order, &mut random)
}

/// `records` distinct random 32-bit numbers.
#[must_use]
pub fn sparse(records: u32, order: Order, seed: u64) -> Vec<u32> {
    let mut random = SplitMix(seed);
    let mut numbers: Vec<u32> = Vec::new();
    while numbers.len() < records as usize {
        let missing = records as usize - numbers.len();
        numbers.extend((0..missing).map(|_| random.next() as u32));
        numbers.sort_unstable();
        numbers.dedup();
    }
    ordered(numbers, order, &mut random)
}

/// `records` eight-byte keys. Each consists of a random partition out of `partitions` and the next
/// number in it (§4.6 "Partitioned Sequential Insert").
#[must_use]
pub fn partitioned(records: u32, partitions: u32, seed: u64) -> Vec<[u8; 8]> {
    let mut random = SplitMix(seed);
    let mut next = vec![0_u32; partitions.max(1) as usize];
    let mut key = || {
        let partition = random.below(u64::from(partitions.max(1))) as usize;
        let number = next[partition];
        next[partition] += 1;
        let mut key = [0; 8];
        key[..4].copy_from_slice(&(partition as u32).to_be_bytes());
        key[4..].copy_from_slice(&number.to_be_bytes());
        key
    };
    (0..records).map(|_| key()).collect()
}

/// The distinct lines of a text, in random order: a key file.
#[must_use]
pub fn lines(text: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut keys: Vec<_> = text.split(|byte| *byte == b'\n').collect();
    keys.retain(|key| !key.is_empty());
    keys.sort_unstable();
    keys.dedup();
    shuffle(&mut keys, &mut SplitMix(seed));
    keys
}
