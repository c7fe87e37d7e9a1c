//! A subject of the comparison: a tree of pages in some layout, or another ordered map (`maps`).

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Bound::{Included, Unbounded};

use treering_engine::node::LayoutChoice;
use treering_sim::layouts::PageTree;

use super::Failure;
use super::keys::{Key, value_of};
use super::work::{Batch, Kind, Records};

/// An ordered map from byte strings to eight bytes.
pub trait Map {
    /// Inserts a record with a new key.
    fn put(&mut self, key: Key<'_>, value: u64);
    /// Returns the value of a key.
    fn get(&mut self, key: Key<'_>) -> Option<u64>;
    /// Visits up to `most` records, starting at a key. The visited key is complete, and may end in
    /// the zero byte of [`Key::ended`].
    fn scan(&mut self, from: Key<'_>, most: usize, visit: impl FnMut(&[u8], u64));
}

/// A map of any type, which takes its turn in each round.
pub trait Subject {
    /// Does the first `first` operations of a batch.
    ///
    /// # Errors
    /// An answer was wrong. Checked only if the whole batch was done.
    fn run(&mut self, batch: &Batch, first: usize) -> Result<(), Failure>;
    /// Inserts the first `count` records.
    fn load(&mut self, records: &Records<'_>, count: usize);
    /// Checks that it has all records, in key order.
    ///
    /// # Errors
    /// A record is wrong, missing or superfluous.
    fn verify(&mut self, records: &Records<'_>) -> Result<(), Failure>;
}

impl<M: Map> Subject for M {
    fn run(&mut self, batch: &Batch, first: usize) -> Result<(), Failure> {
        let (mut sum, mut found) = (0_u64, 0);
        match batch.kind {
            Kind::Inserts => {
                for at in 0..first {
                    self.put(batch.keys.get(at), batch.numbers[at]);
                }
            }
            Kind::Lookups => {
                for at in 0..first {
                    if let Some(value) = self.get(batch.keys.get(at)) {
                        sum = sum.wrapping_add(value);
                        found += 1;
                    }
                }
            }
            Kind::Scans => {
                for at in 0..first {
                    let most = batch.numbers[at] as usize;
                    self.scan(batch.keys.get(at), most, |key, value| {
                        black_box(key);
                        sum = sum.wrapping_add(value);
                        found += 1;
                    });
                }
            }
        }
        if first == batch.len() && (sum, found) != (batch.sum, batch.found) {
            return Err(Failure(format!(
                "{}: expected {} records of sum {:x}, found {found} of {sum:x}",
                batch.kind.name(),
                batch.found,
                batch.sum,
            )));
        }
        Ok(())
    }

    fn load(&mut self, records: &Records<'_>, count: usize) {
        for at in 0..count {
            self.put(records.set.keys.get(at), value_of(at));
        }
    }

    fn verify(&mut self, records: &Records<'_>) -> Result<(), Failure> {
        let keys = &records.set.keys;
        let mut sorted = records.sorted.iter().map(|at| *at as usize);
        let (mut wrong, mut seen) = (None, 0);
        let Some(first) = records.sorted.first() else {
            return Ok(());
        };
        self.scan(keys.get(*first as usize), usize::MAX, |key, value| {
            seen += 1;
            let right = sorted.next().is_some_and(|at| {
                let expected = keys.get(at);
                (key == expected.bytes() || key == expected.ended) && value == value_of(at)
            });
            if !right && wrong.is_none() {
                wrong = Some(seen);
            }
        });
        match wrong {
            _ if seen != records.len() => Err(Failure(format!(
                "expected {} records, found {seen}",
                records.len()
            ))),
            Some(at) => Err(Failure(format!(
                "record {at} is not the one expected there"
            ))),
            None => Ok(()),
        }
    }
}

/// A tree of pages.
impl Map for PageTree {
    #[inline]
    fn put(&mut self, key: Key<'_>, value: u64) {
        // Keys are within the limits. If one were refused, a lookup would miss it.
        let _ = PageTree::put(self, key.bytes(), &value.to_le_bytes());
    }

    #[inline]
    fn get(&mut self, key: Key<'_>) -> Option<u64> {
        let value = PageTree::get(self, key.bytes())?;
        value.try_into().ok().map(u64::from_le_bytes)
    }

    #[inline]
    fn scan(&mut self, from: Key<'_>, most: usize, mut visit: impl FnMut(&[u8], u64)) {
        let mut left = most;
        PageTree::scan(self, from.bytes(), |key, value| {
            let value = value.try_into().map_or(0, u64::from_le_bytes);
            visit(key, value);
            left -= 1;
            left > 0
        });
    }
}

/// A key as other ordered maps own it: an array of four bytes, or a boxed slice.
pub trait Held: Ord + Borrow<Self::Asked> {
    /// The borrowed form, for lookups.
    type Asked: ?Sized + Ord + AsRef<[u8]>;
    /// Returns an owned key, for inserts.
    fn hold(key: &[u8]) -> Self;
    /// Returns a borrowed key, for lookups.
    fn ask(key: &[u8]) -> &Self::Asked;
}

impl Held for [u8; 4] {
    type Asked = [u8; 4];

    #[inline]
    fn hold(key: &[u8]) -> Self {
        *Self::ask(key)
    }

    #[inline]
    fn ask(key: &[u8]) -> &[u8; 4] {
        key.first_chunk().unwrap_or(&[0; 4])
    }
}

impl Held for Box<[u8]> {
    type Asked = [u8];

    #[inline]
    fn hold(key: &[u8]) -> Self {
        key.into()
    }

    #[inline]
    fn ask(key: &[u8]) -> &[u8] {
        key
    }
}

/// The standard library's map.
impl<K: Held> Map for BTreeMap<K, u64> {
    #[inline]
    fn put(&mut self, key: Key<'_>, value: u64) {
        self.insert(K::hold(key.bytes()), value);
    }

    #[inline]
    fn get(&mut self, key: Key<'_>) -> Option<u64> {
        BTreeMap::get(self, K::ask(key.bytes())).copied()
    }

    #[inline]
    fn scan(&mut self, from: Key<'_>, most: usize, mut visit: impl FnMut(&[u8], u64)) {
        let from = (Included(K::ask(from.bytes())), Unbounded);
        for (key, value) in self.range::<K::Asked, _>(from).take(most) {
            visit(key.borrow().as_ref(), *value);
        }
    }
}

/// Returns an empty tree with a layout.
#[must_use]
pub fn tree(choice: LayoutChoice) -> PageTree {
    PageTree::new(choice, 4096)
}

/// A subject by name, and how to create an empty one.
pub struct Entry {
    /// The name on the command line and in reports.
    pub name: &'static str,
    /// The kind of subject.
    pub what: What,
    make: Box<dyn Fn() -> Box<dyn Subject>>,
}

/// The kind of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A tree of pages.
    Pages(LayoutChoice),
    /// A radix tree.
    Trie,
    /// Another ordered map.
    Map,
}

impl Entry {
    /// Returns the entry of a page layout.
    #[must_use]
    pub fn pages(choice: LayoutChoice) -> Entry {
        Entry {
            name: choice.name(),
            what: What::Pages(choice),
            make: Box::new(move || Box::new(tree(choice))),
        }
    }

    /// Returns the entry of a map that `make` creates.
    pub fn of<M: Map + 'static>(name: &'static str, what: What, make: fn() -> M) -> Entry {
        Entry {
            name,
            what,
            make: Box::new(move || Box::new(make())),
        }
    }

    /// Creates an empty one.
    #[must_use]
    pub fn make(&self) -> Box<dyn Subject> {
        (self.make)()
    }
}
