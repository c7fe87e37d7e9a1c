//! A short sequence that is stored inline in a state.

use std::hash::Hash;
use std::ops::{Deref, DerefMut};

/// At most `ROOM` items. Unused items are default, so that equal rows are equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Row<T, const ROOM: usize> {
    // invariant: items from `len` on are default.
    all: [T; ROOM],
    len: u8,
}

impl<T: Copy + Default, const ROOM: usize> Default for Row<T, ROOM> {
    fn default() -> Self {
        Self {
            all: [T::default(); ROOM],
            len: 0,
        }
    }
}

impl<T, const ROOM: usize> Deref for Row<T, ROOM> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.all[..usize::from(self.len)]
    }
}

impl<T, const ROOM: usize> DerefMut for Row<T, ROOM> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.all[..usize::from(self.len)]
    }
}

impl<T: Copy + Default, const ROOM: usize> Row<T, ROOM> {
    pub(super) fn push(&mut self, item: T) {
        self.insert(usize::from(self.len), item);
    }

    /// Inserts an item at index `i`.
    pub(super) fn insert(&mut self, i: usize, item: T) {
        let len = usize::from(self.len);
        assert!(len < ROOM, "from_config refuses models that need more room");
        self.all.copy_within(i..len, i + 1);
        self.all[i] = item;
        self.len += 1;
    }

    /// Keeps only the items for which `stay` returns true.
    pub(super) fn retain(&mut self, stay: impl Fn(&T) -> bool) {
        *self = self.iter().copied().filter(stay).collect();
    }
}

impl<T: Copy + Default, const ROOM: usize> FromIterator<T> for Row<T, ROOM> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut row = Self::default();
        items.into_iter().for_each(|item| row.push(item));
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_equal_items_are_equal() {
        let mut row: Row<u8, 3> = [1, 2, 3].into_iter().collect();
        row.retain(|item| *item != 2);
        assert_eq!(*row, [1, 3]);
        row.insert(0, 5);
        assert_eq!(row, [5, 1, 3].into_iter().collect());
        row.retain(|_| false);
        assert_eq!(row, Row::default());
    }
}
