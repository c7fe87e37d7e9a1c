//! Ordered maps of byte strings from other crates.
//!
//! | name | what | keys of four bytes | strings |
//! |---|---|---|---|
//! | `blart` | adaptive radix tree, keys in leaves | `[u8; 4]` | `Box<[u8]>`, zero-terminated |
//! | `indexset` | B-tree of two levels, nodes of 1,024 records | `[u8; 4]` | `Box<[u8]>` |
//! | `skiplist` | crossbeam's skip list, for many threads | `[u8; 4]` | `Box<[u8]>` |
//!
//! Left out: `rart` 0.11 (its ranges walk all keys before them), `congee` (keys are numbers),
//! `qp-trie` (it only scans prefixes).

use std::ops::Bound::{Included, Unbounded};

use blart::{AsBytes, TreeMap};
use crossbeam_skiplist::SkipMap;

use super::keys::Key;
use super::subject::{Entry, Held, Map, What};

impl<K: Held<Asked: AsBytes> + AsBytes> Map for TreeMap<K, u64> {
    #[inline]
    fn put(&mut self, key: Key<'_>, value: u64) {
        // No key is a prefix of another. If one were refused, a lookup would miss it.
        let _ = self.try_insert(K::hold(key.ended), value);
    }

    #[inline]
    fn get(&mut self, key: Key<'_>) -> Option<u64> {
        TreeMap::get(self, K::ask(key.ended)).copied()
    }

    #[inline]
    fn scan(&mut self, from: Key<'_>, most: usize, mut visit: impl FnMut(&[u8], u64)) {
        let from = (Included(K::ask(from.ended)), Unbounded);
        for (key, value) in self.range::<K::Asked, _>(from).take(most) {
            visit(AsBytes::as_bytes(key), *value);
        }
    }
}

impl<K: Held> Map for indexset::BTreeMap<K, u64> {
    #[inline]
    fn put(&mut self, key: Key<'_>, value: u64) {
        self.insert(K::hold(key.bytes()), value);
    }

    #[inline]
    fn get(&mut self, key: Key<'_>) -> Option<u64> {
        indexset::BTreeMap::get(self, K::ask(key.bytes())).copied()
    }

    #[inline]
    fn scan(&mut self, from: Key<'_>, most: usize, mut visit: impl FnMut(&[u8], u64)) {
        let from = (Included(K::ask(from.bytes())), Unbounded);
        for (key, value) in self.range::<K::Asked, _>(from).take(most) {
            visit(key.borrow().as_ref(), *value);
        }
    }
}

impl<K: Held + Send + 'static> Map for SkipMap<K, u64> {
    #[inline]
    fn put(&mut self, key: Key<'_>, value: u64) {
        self.insert(K::hold(key.bytes()), value);
    }

    #[inline]
    fn get(&mut self, key: Key<'_>) -> Option<u64> {
        SkipMap::get(self, K::ask(key.bytes())).map(|entry| *entry.value())
    }

    #[inline]
    fn scan(&mut self, from: Key<'_>, most: usize, mut visit: impl FnMut(&[u8], u64)) {
        let from = (Included(K::ask(from.bytes())), Unbounded);
        for entry in self.range::<K::Asked, _>(from).take(most) {
            visit(entry.key().borrow().as_ref(), *entry.value());
        }
    }
}

/// Returns all of them.
pub(super) fn all(keys_are_numbers: bool) -> Vec<Entry> {
    fn held<K: Held<Asked: AsBytes> + AsBytes + Send + 'static>() -> [Entry; 3] {
        [
            Entry::of("blart", What::Trie, TreeMap::<K, u64>::new),
            Entry::of("indexset", What::Map, indexset::BTreeMap::<K, u64>::new),
            Entry::of("skiplist", What::Map, SkipMap::<K, u64>::new),
        ]
    }
    match keys_are_numbers {
        true => held::<[u8; 4]>().into(),
        false => held::<Box<[u8]>>().into(),
    }
}
