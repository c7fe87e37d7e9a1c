//! [`Batch`]: changes that take effect together or not at all.

use std::collections::BTreeMap;

/// Puts and deletes that [`crate::Kv::write`] makes take effect together.
///
/// A batch holds at most one change for each key: the last one counts.
///
/// ```
/// use treering_engine::Batch;
///
/// let mut transfer = Batch::new();
/// transfer.put(b"alice", b"60").put(b"bob", b"40").delete(b"alice");
/// assert_eq!(transfer.len(), 2);
/// assert_eq!(transfer.change(b"alice"), Some(None));
/// assert_eq!(transfer.change(b"carol"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The new value of each key, or `None` if the key is deleted.
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Batch {
    /// Makes a batch without changes.
    #[must_use]
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Sets `key` to `value`.
    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> &mut Batch {
        self.changes.insert(key.into(), Some(value.into()));
        self
    }

    /// Deletes `key`.
    pub fn delete(&mut self, key: impl Into<Vec<u8>>) -> &mut Batch {
        self.changes.insert(key.into(), None);
        self
    }

    /// The number of keys that the batch changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns whether the batch changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// What the batch does to `key`: `Some(None)` if it deletes it, `None` if it leaves it alone.
    #[must_use]
    pub fn change(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.changes.get(key).map(Option::as_deref)
    }

    /// The keys in ascending order, each with its new value, or `None` if it is deleted.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], Option<&[u8]>)> {
        (self.changes.iter()).map(|(key, value)| (key.as_slice(), value.as_deref()))
    }
}
