//! A sparse array: as long as a store may ever grow, but memory is allocated only for the parts
//! that were accessed.
//!
//! ```text
//! roots   [ 0 | 1 | (not yet) | ... ]        fixed length: 24 bytes for a million entries
//!            |
//! middle  [ leaf | (not yet) | leaf | ... ]  1,024 leaves
//!            |
//! leaf    [ entry | entry | ... ]            4 KiB of entries
//! ```
//!
//! Maps by page id or slot need an entry for each page that the device has room for. A sparse file
//! of a terabyte costs nothing until it is written, and so must its maps. An entry that has not
//! been made reads as the type's default. Reading is lock-free (three loads). So is making entries,
//! except that one of two threads that make the same leaf at once waits. No entry ever moves.

use std::sync::OnceLock;

/// Bytes of a leaf.
const LEAF_BYTES: usize = 4096;
/// Number of leaves below one root.
const MIDDLE: usize = 1024;

type Leaf<T> = OnceLock<Box<[T]>>;
type Middle<T> = OnceLock<Box<[Leaf<T>]>>;

/// A sparse array, see the module documentation.
pub(crate) struct Sparse<T> {
    roots: Box<[Middle<T>]>,
    len: u64,
}

impl<T: Default> Sparse<T> {
    /// Entries in a leaf: a power of two, so that finding one is a shift.
    const LEAF: usize = {
        let fits = LEAF_BYTES / std::mem::size_of::<T>();
        if fits.is_power_of_two() {
            fits
        } else {
            fits.next_power_of_two() / 2
        }
    };
    /// Entries below one root.
    const ROOT: usize = Self::LEAF * MIDDLE;

    /// Makes an array of `len` default entries.
    pub(crate) fn new(len: u64) -> Sparse<T> {
        let roots = len.div_ceil(Self::ROOT as u64);
        Sparse {
            roots: (0..roots).map(|_| OnceLock::new()).collect(),
            len,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Entry `at`, if it is within the array and its leaf has been made.
    #[inline]
    pub(crate) fn get(&self, at: u64) -> Option<&T> {
        if at >= self.len {
            return None;
        }
        let at = at as usize;
        let middle = self.roots[at / Self::ROOT].get()?;
        let leaf = middle[at % Self::ROOT / Self::LEAF].get()?;
        leaf.get(at % Self::LEAF)
    }

    /// The number of entries from `at` to the end of its leaf, and those entries if the leaf has
    /// been made.
    pub(crate) fn run(&self, at: u64) -> (usize, Option<&[T]>) {
        let within = at as usize % Self::LEAF;
        let leaf = self
            .roots
            .get(at as usize / Self::ROOT)
            .and_then(|middle| middle.get()?[at as usize % Self::ROOT / Self::LEAF].get());
        (
            Self::LEAF - within,
            leaf.and_then(|leaf| leaf.get(within..)),
        )
    }

    /// Entry `at`, which is made if necessary; `None` beyond the array's end.
    #[inline]
    pub(crate) fn make(&self, at: u64) -> Option<&T> {
        match self.get(at) {
            Some(entry) => Some(entry),
            None if at < self.len => Some(self.make_cold(at)),
            None => None,
        }
    }

    #[cold]
    fn make_cold(&self, at: u64) -> &T {
        let (root, leaf) = self.place(at);
        let middle = self.roots[root].get_or_init(|| self.new_middle(root));
        let entries = middle[leaf].get_or_init(|| self.new_leaf(at));
        &entries[at as usize % Self::LEAF]
    }

    /// Entry `at` to be changed, which is made if necessary; `None` beyond the array's end.
    #[inline]
    pub(crate) fn make_mut(&mut self, at: u64) -> Option<&mut T> {
        self.make(at)?;
        let (root, leaf) = self.place(at);
        let middle = self.roots[root].get_mut()?;
        middle[leaf].get_mut()?.get_mut(at as usize % Self::LEAF)
    }

    fn place(&self, at: u64) -> (usize, usize) {
        let at = at as usize;
        (at / Self::ROOT, at % Self::ROOT / Self::LEAF)
    }

    fn new_middle(&self, root: usize) -> Box<[Leaf<T>]> {
        let entries = self.len - (root * Self::ROOT) as u64;
        let leaves = entries.div_ceil(Self::LEAF as u64).min(MIDDLE as u64);
        (0..leaves).map(|_| OnceLock::new()).collect()
    }

    fn new_leaf(&self, at: u64) -> Box<[T]> {
        let first = at - at % Self::LEAF as u64;
        let entries = (self.len - first).min(Self::LEAF as u64);
        (0..entries).map(|_| T::default()).collect()
    }

    /// All entries of the leaves that have been made, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let middles = self.roots.iter().enumerate();
        let leaves = middles
            .filter_map(|(root, middle)| Some((root, middle.get()?)))
            .flat_map(|(root, middle)| {
                let leaves = middle.iter().enumerate();
                leaves.filter_map(move |(leaf, entries)| {
                    Some((root * Self::ROOT + leaf * Self::LEAF, entries.get()?))
                })
            });
        leaves.flat_map(|(first, entries)| (first as u64..).zip(entries.iter()))
    }

    /// Bytes of memory that the array takes now.
    pub(crate) fn bytes(&self) -> u64 {
        let middles = self.roots.iter().filter_map(OnceLock::get);
        let (mut all, mut entries) = (size_of_val(&*self.roots), 0);
        for middle in middles {
            all += size_of_val(&**middle);
            entries += (middle.iter().filter_map(OnceLock::get))
                .map(|leaf| size_of_val(&**leaf))
                .sum::<usize>();
        }
        (all + entries) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_the_default_until_they_are_made_and_keep_what_they_are_given() {
        let mut array = Sparse::<u64>::new(3_000_000);
        for at in [0, 1, 511, 512, 524_287, 524_288, 2_999_999] {
            assert_eq!(array.get(at).copied().unwrap_or_default(), 0);
            *array.make_mut(at).expect("inside") = at + 7;
        }
        let found: Vec<(u64, u64)> = (array.iter().map(|(at, entry)| (at, *entry)))
            .filter(|(_, entry)| *entry != 0)
            .collect();
        assert!(found.iter().all(|(at, entry)| *entry == at + 7));
        assert_eq!(found.len(), 7);
        assert!(array.iter().all(|(at, _)| at < array.len()));
        assert!(array.get(3_000_000).is_none() && array.make(3_000_000).is_none());
        assert!(array.make_mut(u64::MAX).is_none());
    }

    #[test]
    fn what_nobody_touched_takes_no_memory() {
        let array = Sparse::<u32>::new(1 << 28);
        assert!(array.bytes() < 8 << 10, "{} bytes", array.bytes());
        array.make(1 << 27);
        assert!(array.bytes() < 40 << 10, "{} bytes", array.bytes());
        // A short array takes no more than its length.
        let short = Sparse::<u8>::new(3);
        short.make(2);
        assert!(short.bytes() < 64, "{} bytes", short.bytes());
    }

    #[test]
    fn threads_that_make_an_entry_at_once_get_the_same() {
        use crate::sync::atomic::{AtomicU32, Ordering};
        let array = Sparse::<AtomicU32>::new(1 << 20);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..1 << 20).step_by(997).for_each(|at| {
                        let entry = array.make(at).expect("inside");
                        entry.fetch_add(1, Ordering::Relaxed);
                    });
                });
            }
        });
        let all = array.iter().map(|(_, entry)| entry.load(Ordering::Relaxed));
        assert!(all.filter(|n| *n != 0).all(|n| n == 4));
    }
}
