//! The keys of a program, by number, so that a program is reduced in the same way whatever its keys
//! are.

use crate::random::Random;
use crate::{Limits, edges};

/// The kind of keys of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// Numbers, two bytes big-endian.
    Numbers,
    /// Keys that are prefixes of one another, including the empty key.
    Prefixes,
    /// A long common prefix and three digits; some keys are very long.
    Long,
    /// Keys, and values, with lengths at which formats change (see [`edges`]).
    Edges,
    /// A common prefix of nearly the maximal length, or of some hundred bytes.
    Deep,
    /// Eight bytes that look like addresses, flags, or all ones; some a byte longer or shorter.
    Words,
    /// The keys of a table: numbers of mostly four bytes behind a prefix, in a few ranges. Nearly
    /// all values have one length.
    Rows,
    /// Keys that differ in their first bytes, among keys that share them.
    Mixed,
}

impl Vocabulary {
    /// Key number `n` of a program with this salt.
    pub(super) fn key(self, n: u16, salt: u64, limits: &Limits) -> Vec<u8> {
        let longest = limits.max_key;
        let mut key = match self {
            Vocabulary::Numbers => n.to_be_bytes().to_vec(),
            Vocabulary::Prefixes => {
                // Every prefix of a key is a key.
                if salt.is_multiple_of(2) {
                    let letters = 2 + (salt / 2 % 3) as u16;
                    let mut key = Vec::new();
                    let mut left = n;
                    while left > 0 {
                        key.insert(0, b'a' + ((left - 1) % letters) as u8);
                        left = (left - 1) / letters;
                    }
                    return key;
                }
                let stem = [&b""[..], b"a", b"test", b"teste", b"user:0000"][usize::from(n) % 5];
                let mut key = stem.to_vec();
                key.extend(std::iter::repeat_n(b'e', usize::from(n) / 5 % 7));
                key.extend((n / 35 > 0).then_some((n / 35) as u8));
                key
            }
            Vocabulary::Long => {
                let mut key = format!("a/long/common/prefix/{n:03}").into_bytes();
                key.extend(std::iter::repeat_n(b'z', usize::from(n) % 11 * 13));
                key
            }
            Vocabulary::Edges => edges::key(limits, n),
            Vocabulary::Deep => {
                let most = [4_096, 4_096, 400, 270][(salt % 4) as usize];
                let mut key = vec![b'd'; longest.min(most).saturating_sub(2 + usize::from(n) % 3)];
                key.extend(n.to_be_bytes());
                key
            }
            Vocabulary::Words => {
                let number = u64::from(n / 6);
                let word = match n % 6 {
                    0 => number,
                    1 => !number,
                    2 => number << 63 | number,
                    3 => number.swap_bytes(),
                    4 => number << 8,
                    _ => number << 12 | 1 << 48,
                };
                let mut key = word.to_be_bytes().to_vec();
                match n % 16 {
                    14 => key.truncate(7),
                    15 => key.push(0),
                    _ => {}
                }
                key
            }
            Vocabulary::Rows => {
                let prefix = match salt & 8 {
                    0 => &b""[..],
                    _ => b"row:",
                };
                let width = [4, 4, 8, 2, 3, 1][(salt / 16 % 6) as usize];
                let mut key = prefix[..longest.saturating_sub(width).min(prefix.len())].to_vec();
                // Leaves full of rows from one range, and leaves with rows from several ranges.
                let together = [150, 600, 600, 40][(salt / 97 % 4) as usize];
                let range = u64::from(n) / together * 10_000;
                let number = range + u64::from(n) * (1 + salt % 3);
                let last = u64::MAX >> (64 - 8 * width);
                // Up to the greatest number, down to the first, or somewhere in between.
                let number = match salt / 5 % 4 {
                    0 => last.wrapping_sub(number),
                    1 => number,
                    _ => number + salt % 1_000 * 256,
                };
                key.extend(&number.to_be_bytes()[8 - width..]);
                // A key of another length ends a leaf of numbers.
                if n % 80 == 79 && salt.is_multiple_of(4) {
                    key.extend(b"and more");
                }
                key
            }
            Vocabulary::Mixed => {
                let mut key = b"mixed".to_vec();
                match n / 32 % 2 {
                    0 => key.extend((u32::from(n).wrapping_mul(0x9e37_79b9)).to_be_bytes()),
                    _ => key.extend_from_slice(&b"\x80same-in-all"[..4 + usize::from(n) % 2 * 8]),
                }
                key.extend(n.to_be_bytes());
                key
            }
        };
        key.truncate(longest);
        key
    }

    /// Sorted keys that are never written: near-misses of written ones, and keys beyond the limit.
    pub(super) fn beside(
        written: &[Vec<u8>],
        limits: &Limits,
        of_any_length: bool,
        random: &mut Random,
    ) -> Vec<Vec<u8>> {
        let beside = |_| {
            let mut key = written[random.below(written.len() as u64) as usize].clone();
            match random.below(7) {
                0 => drop(key.pop()),
                1 => key.push(0),
                2 => key.push(0xff),
                3 => key.truncate(key.len() / 2),
                4 if of_any_length => key.resize(limits.max_key + 1, b'x'),
                5 if of_any_length && random.one_in(4) => key.resize(20_000, b'x'),
                _ => {
                    if let Some(last) = key.last_mut() {
                        *last = last.wrapping_add(1);
                    }
                }
            }
            key
        };
        let taken = |key: &Vec<u8>| {
            let fits = key.len() <= limits.max_key || of_any_length;
            fits && (limits.empty_key || !key.is_empty()) && written.binary_search(key).is_err()
        };
        let most = (written.len() / 8).clamp(2, 24);
        let mut keys: Vec<_> = (0..most).map(beside).filter(taken).collect();
        keys.sort();
        keys.dedup();
        keys
    }
}
