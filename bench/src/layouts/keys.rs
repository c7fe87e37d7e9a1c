//! Key sets: numbers as in B-Trees Are Back (§4 "Experimental Setup"), and strings, generated or
//! from a file.
//!
//! | set | keys | mean length |
//! |---|---|---|
//! | `dense` | all of `[0, n)`, 32 bits, big-endian | 4 |
//! | `sparse` | distinct random numbers of 32 bits | 4 |
//! | `urls` | generated: popular hosts, small and large folders, words, numbers | 55 (paper: 62) |
//! | `titles` | generated: one to four words, the first popular | 18 (paper's `wiki`: 23) |
//! | a file | its lines, without duplicates | |
//!
//! Records are in random order. A record's place in that order is also its rank in popularity.

use std::io::Read;

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use treering_sim::layouts::keys::{self, Order};

use super::Failure;

/// Bytes of a value.
pub const VALUE_BYTES: usize = 8;

/// A key in two forms: for maps that take any bytes, and for maps in which no key may be a prefix
/// of another.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key followed by a zero byte, if keys differ in length. No key contains a zero byte.
    pub ended: &'a [u8],
    len: usize,
}

impl<'a> Key<'a> {
    /// The key itself.
    #[must_use]
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        &self.ended[..self.len]
    }
}

/// A list of keys in one buffer.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    /// The end of each key and its zero byte, unless all keys have four bytes.
    ends: Option<Vec<u32>>,
}

impl Keys {
    /// Returns an empty list, for keys of four bytes or of any length.
    #[must_use]
    pub fn none(fixed: bool) -> Keys {
        Keys {
            bytes: Vec::new(),
            ends: (!fixed).then(Vec::new),
        }
    }

    /// Whether all keys are numbers of four bytes.
    #[must_use]
    pub fn are_numbers(&self) -> bool {
        self.ends.is_none()
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.ends {
            Some(ends) => ends.len(),
            None => self.bytes.len() / 4,
        }
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a key.
    ///
    /// # Panics
    /// If `at` is out of range.
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> Key<'_> {
        match &self.ends {
            None => Key {
                ended: &self.bytes[4 * at..4 * at + 4],
                len: 4,
            },
            Some(ends) => {
                let start = at.checked_sub(1).map_or(0, |before| ends[before] as usize);
                let ended = &self.bytes[start..ends[at] as usize];
                Key {
                    ended,
                    len: ended.len() - 1,
                }
            }
        }
    }

    /// Adds a key.
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        if let Some(ends) = &mut self.ends {
            self.bytes.push(0);
            ends.push(self.bytes.len() as u32);
        }
    }

    /// Bytes of all keys.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        self.bytes.len() - self.ends.as_ref().map_or(0, Vec::len)
    }
}

/// A key set: a name, and keys in random order.
#[derive(Clone, Debug)]
pub struct KeySet {
    /// The name in reports.
    pub name: String,
    /// In random order, without duplicates.
    pub keys: Keys,
}

impl KeySet {
    /// Returns the set of this name, or the lines of a file given as `NAME=FILE` or `FILE`. `bytes`
    /// is the approximate size of keys and values.
    ///
    /// # Errors
    /// The name is unknown, or the file cannot be read, or it has no key that fits a page.
    pub fn of(source: &str, bytes: usize, seed: u64) -> Result<KeySet, Failure> {
        let numbers = |numbers: Vec<u32>| {
            let mut keys = Keys::none(true);
            for number in numbers {
                keys.push(&number.to_be_bytes());
            }
            keys
        };
        let records = u32::try_from(bytes / (4 + VALUE_BYTES)).unwrap_or(u32::MAX);
        let (name, keys) = match source {
            "dense" => (
                source,
                numbers(keys::dense(records, 1.0, Order::Random, seed)),
            ),
            "sparse" => (source, numbers(keys::sparse(records, Order::Random, seed))),
            "urls" => (source, made_up(bytes, seed, url)),
            "titles" => (source, made_up(bytes, seed, title)),
            _ => {
                let (name, file) = source.split_once('=').unwrap_or((source, source));
                (name, of_file(file, bytes, seed)?)
            }
        };
        Ok(KeySet {
            name: name.into(),
            keys,
        })
    }
}

/// Returns the value of the record at a place. Values differ and are a function of the place alone.
#[must_use]
#[inline]
pub fn value_of(record: usize) -> u64 {
    (record as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn of_file(file: &str, bytes: usize, seed: u64) -> Result<Keys, Failure> {
    let bad = |found: String| {
        Failure(format!(
            "{file}: expected a key on each line, found {found}"
        ))
    };
    let mut text = Vec::new();
    let read = treering_traces::input::open(file).map_err(|e| {
        let sets = "dense, sparse, urls, titles, or a file with a key on each line";
        Failure(format!("--set: expected {sets}; {e}"))
    })?;
    { read }
        .read_to_end(&mut text)
        .map_err(|e| Failure(format!("{file}: {e}")))?;
    let mut keys = Keys::none(false);
    for line in keys::lines(&text, seed) {
        if line.len() > treering_engine::node::limits(4096).max_key {
            return Err(bad(format!("a line of {} bytes", line.len())));
        }
        if line.contains(&0) {
            return Err(bad("a zero byte".into()));
        }
        keys.push(line);
        if keys.key_bytes() + keys.len() * VALUE_BYTES >= bytes {
            break;
        }
    }
    match keys.is_empty() {
        true => Err(bad("none".into())),
        false => Ok(keys),
    }
}

/// Returns distinct random keys.
fn made_up(bytes: usize, seed: u64, make: fn(&mut Words, &mut Vec<u8>)) -> Keys {
    let mut words = Words::new(seed);
    let mut all: Vec<Box<[u8]>> = Vec::new();
    let (mut key, mut total) = (Vec::new(), 0);
    loop {
        while total < bytes {
            key.clear();
            make(&mut words, &mut key);
            total += key.len() + VALUE_BYTES;
            all.push(key.as_slice().into());
        }
        all.sort_unstable();
        all.dedup();
        total = all.iter().map(|key| key.len() + VALUE_BYTES).sum();
        if total >= bytes {
            break;
        }
    }
    all.shuffle(&mut words.random);
    let mut keys = Keys::none(false);
    all.iter().for_each(|key| keys.push(key));
    keys
}

/// Words, ordered by popularity.
struct Words {
    random: SmallRng,
    words: Vec<Vec<u8>>,
}

impl Words {
    fn new(seed: u64) -> Words {
        const FIRST: &[u8] = b"bcdfghjklmnprstvw";
        const VOWELS: &[u8] = b"aaeeeiioou";
        const LAST: &[u8] = b"nrstldm";
        let mut random = SmallRng::seed_from_u64(seed);
        let mut words = Vec::new();
        for _ in 0..20_000 {
            let mut word = Vec::new();
            for _ in 0..random.random_range(1..=3) {
                word.push(FIRST[random.random_range(0..FIRST.len())]);
                word.push(VOWELS[random.random_range(0..VOWELS.len())]);
            }
            word.push(LAST[random.random_range(0..LAST.len())]);
            words.push(word);
        }
        Words { random, words }
    }

    /// Draws a number below `end`. A larger `skew` favours smaller numbers.
    fn below(&mut self, end: usize, skew: i32) -> usize {
        (self.random.random::<f64>().powi(skew) * end as f64) as usize
    }

    fn word(&mut self, skew: i32, key: &mut Vec<u8>) {
        let at = self.below(self.words.len(), skew);
        key.extend_from_slice(&self.words[at]);
    }

    /// Returns the word with this number.
    fn nth(&self, at: usize, key: &mut Vec<u8>) {
        key.extend_from_slice(&self.words[at % self.words.len()]);
    }
}

/// Generates `https://www.host.com/folder/folder/some-words-1234`. Hosts and folders have numbers,
/// so that they recur.
fn url(words: &mut Words, key: &mut Vec<u8>) {
    let host = words.below(30_000, 3);
    key.extend_from_slice(if host.is_multiple_of(3) {
        b"http://"
    } else {
        b"https://"
    });
    if host.is_multiple_of(2) {
        key.extend_from_slice(b"www.");
    }
    words.nth(host, key);
    words.nth(host.wrapping_mul(7919), key);
    key.extend_from_slice([&b".com"[..], b".org", b".net", b".de", b".co.uk"][host % 5]);
    let mut folder = host;
    for _ in 0..1 + host % 3 {
        folder = folder.wrapping_mul(31) + words.below(40, 2);
        key.push(b'/');
        words.nth(folder, key);
    }
    key.push(b'/');
    if words.random.random_range(0..3) == 0 {
        let number = words.random.random_range(0..10_000_000);
        key.extend_from_slice(format!("item?id={number}").as_bytes());
        return;
    }
    for at in 0..words.random.random_range(2..=4) {
        if at > 0 {
            key.push(b'-');
        }
        words.word(2, key);
    }
    if words.random.random_range(0..2) == 0 {
        key.extend_from_slice(b".html");
    }
}

/// Generates `First_second_(third)`.
fn title(words: &mut Words, key: &mut Vec<u8>) {
    let count = words.random.random_range(2..=4);
    for at in 0..count {
        if at > 0 {
            key.push(b'_');
        }
        let from = key.len();
        words.word(if at == 0 { 3 } else { 2 }, key);
        key[from].make_ascii_uppercase();
    }
    if words.random.random_range(0..6) == 0 {
        key.extend_from_slice(b"_(");
        words.word(4, key);
        key.push(b')');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_the_size_that_was_asked_for_and_no_key_twice() {
        for name in ["dense", "sparse", "urls", "titles"] {
            let set = KeySet::of(name, 600_000, 1).expect("it is made up");
            let bytes = set.keys.key_bytes() + set.keys.len() * VALUE_BYTES;
            assert!((590_000..700_000).contains(&bytes), "{name}: {bytes}");
            let mut keys: Vec<_> = (0..set.keys.len()).map(|at| set.keys.get(at)).collect();
            assert!(
                keys.iter()
                    .all(|key| set.keys.are_numbers() || key.ended.last() == Some(&0))
            );
            assert!(!keys.is_sorted_by(|a, b| a.bytes() <= b.bytes()), "{name}");
            keys.sort_unstable_by_key(|key| key.bytes());
            assert!(
                keys.windows(2)
                    .all(|pair| pair[0].bytes() < pair[1].bytes())
            );
        }
    }

    #[test]
    fn made_up_strings_are_nearly_as_long_as_the_papers() {
        for (name, from, to) in [("urls", 50, 66), ("titles", 16, 25)] {
            let keys = KeySet::of(name, 3_000_000, 1).expect("it is made up").keys;
            let mean = keys.key_bytes() / keys.len();
            assert!((from..=to).contains(&mean), "{name}: {mean}");
        }
    }

    #[test]
    fn a_file_that_is_none_is_named() {
        let failure = KeySet::of("/no/such/file", 1, 1).expect_err("there is none");
        assert!(failure.0.contains("/no/such/file"), "{}", failure.0);
    }
}
