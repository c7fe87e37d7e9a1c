//! Records of a range of keys as an iterator, from both ends.

use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow, RangeBounds};

use crate::error::Result;
use crate::kv::Kv;

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// Rows that are fetched at once.
const ROWS: usize = 64;

/// The records of a range of keys, ascending; [`Iterator::rev`] has them descending. Made by
/// [`KvRange::range`].
///
/// It is no snapshot: each record is as current as when it was fetched, a few dozen records before
/// the iterator returns it. A device failure or damage is an item, the last one from that end.
pub struct Range<'a, K: Kv + ?Sized> {
    kv: &'a K,
    /// What has not been fetched yet.
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    front: VecDeque<Row>,
    back: VecDeque<Row>,
    fetched_all: bool,
}

/// Ranges of any [`Kv`].
pub trait KvRange: Kv {
    /// The records whose keys lie in `range`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use treering_engine::device::MemDevice;
    /// use treering_engine::prelude::*;
    /// use treering_engine::SystemClock;
    ///
    /// let device = Arc::new(MemDevice::new(1 << 15));
    /// let store = Store::open(device, Arc::new(SystemClock::new()), &Options::default())?;
    /// for key in ["apple", "pear", "plum"] {
    ///     store.put(key.as_bytes(), b"1 kg")?;
    /// }
    /// let keys: Result<Vec<_>, _> = store.range("b".."q").map(|row| row.map(|(key, _)| key)).collect();
    /// assert_eq!(keys?, [b"pear".to_vec(), b"plum".to_vec()]);
    /// let (last, _) = store.range::<&str>(..).next_back().expect("has rows")?;
    /// assert_eq!(last, b"plum");
    /// # Ok::<(), treering_engine::Error>(())
    /// ```
    fn range<B: AsRef<[u8]>>(&self, range: impl RangeBounds<B>) -> Range<'_, Self> {
        let owned = |bound: Bound<&B>| bound.map(|key| key.as_ref().to_vec());
        Range {
            kv: self,
            from: owned(range.start_bound()),
            to: owned(range.end_bound()),
            front: VecDeque::new(),
            back: VecDeque::new(),
            fetched_all: false,
        }
    }
}

impl<K: Kv + ?Sized> KvRange for K {}

/// The least key above `key`.
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

impl<K: Kv + ?Sized> Range<'_, K> {
    /// Fetches the next rows from the front.
    fn fetch(&mut self) -> Result<()> {
        let from = match &self.from {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.clone(),
            Bound::Excluded(key) => behind(key),
        };
        let (front, to) = (&mut self.front, &self.to);
        let mut ended = true;
        self.kv.scan(&from, &mut |key, value| {
            if is_above(key, to) {
                return ControlFlow::Break(());
            }
            front.push_back((key.to_vec(), value.to_vec()));
            if front.len() < ROWS {
                return ControlFlow::Continue(());
            }
            ended = false;
            ControlFlow::Break(())
        })?;
        self.fetched_all = ended;
        if let Some((last, _)) = self.front.back() {
            self.from = Bound::Excluded(last.clone());
        }
        Ok(())
    }

    /// Fetches the next rows from the back.
    fn fetch_back(&mut self) -> Result<()> {
        let before = match &self.to {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(behind(key)),
            Bound::Excluded(key) => Some(key.clone()),
        };
        let (back, from) = (&mut self.back, &self.from);
        let mut ended = true;
        self.kv.scan_back(before.as_deref(), &mut |key, value| {
            if is_below(key, from) {
                return ControlFlow::Break(());
            }
            back.push_front((key.to_vec(), value.to_vec()));
            if back.len() < ROWS {
                return ControlFlow::Continue(());
            }
            ended = false;
            ControlFlow::Break(())
        })?;
        self.fetched_all = ended;
        if let Some((first, _)) = self.back.front() {
            self.to = Bound::Excluded(first.clone());
        }
        Ok(())
    }
}

fn is_above(key: &[u8], to: &Bound<Vec<u8>>) -> bool {
    match to {
        Bound::Unbounded => false,
        Bound::Included(to) => key > to.as_slice(),
        Bound::Excluded(to) => key >= to.as_slice(),
    }
}

fn is_below(key: &[u8], from: &Bound<Vec<u8>>) -> bool {
    match from {
        Bound::Unbounded => false,
        Bound::Included(from) => key < from.as_slice(),
        Bound::Excluded(from) => key <= from.as_slice(),
    }
}

impl<K: Kv + ?Sized> Iterator for Range<'_, K> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.front.is_empty()
            && !self.fetched_all
            && let Err(e) = self.fetch()
        {
            self.fetched_all = true;
            return Some(Err(e));
        }
        let row = self.front.pop_front().or_else(|| self.back.pop_front());
        row.map(Ok)
    }
}

impl<K: Kv + ?Sized> DoubleEndedIterator for Range<'_, K> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.back.is_empty()
            && !self.fetched_all
            && let Err(e) = self.fetch_back()
        {
            self.fetched_all = true;
            return Some(Err(e));
        }
        let row = self.back.pop_back().or_else(|| self.front.pop_back());
        row.map(Ok)
    }
}
