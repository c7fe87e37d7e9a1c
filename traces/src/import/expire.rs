//! Times to live: which keys expire, and when.
//!
//! A put with a time to live makes its key due. The key is deleted when the trace's time reaches
//! that point. A later put of the key sets a new time, and a delete cancels it. Keys expire in the
//! order of their time, and at equal times in the order of their puts, so that the same input
//! always gives the same operations.
//!
//! ```text
//!     due:  (time, number of the put) → key, client      ordered: the first is the next to expire
//!     of:   key → (time, number of the put)              to find what a new put replaces
//! ```
//!
//! Every key is in both maps or in neither, and the maps share its bytes. So memory is bounded by
//! the number of live keys with a time to live, however often they are renewed.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;

/// What a put says about its key's expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ttl {
    /// Nothing: an earlier expiry stays in force.
    #[default]
    Keep,
    /// The key does not expire.
    Never,
    /// The key expires this many nanoseconds after the put.
    After(u64),
}

impl Ttl {
    /// Takes seconds, of which 0 means that the key does not expire.
    pub(super) fn seconds(seconds: u64) -> Ttl {
        Ttl::nanoseconds(seconds.saturating_mul(1_000_000_000))
    }

    /// Takes nanoseconds, of which 0 means that the key does not expire.
    pub(super) fn nanoseconds(nanoseconds: u64) -> Ttl {
        match nanoseconds {
            0 => Ttl::Never,
            nanoseconds => Ttl::After(nanoseconds),
        }
    }
}

/// The time of an expiry, and the number of the put that set it.
type Due = (u64, u64);

/// A key that has expired.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expired {
    pub(super) key: Rc<[u8]>,
    /// The client of the put.
    pub(super) client: u32,
    pub(super) time_ns: u64,
}

/// The keys that will expire.
#[derive(Debug, Default)]
pub(super) struct Expiries {
    due: BTreeMap<Due, (Rc<[u8]>, u32)>,
    of: FxHashMap<Rc<[u8]>, Due>,
    puts: u64,
}

impl Expiries {
    /// Makes `key` due at `time_ns`, instead of any earlier expiry.
    pub(super) fn set(&mut self, key: &[u8], client: u32, time_ns: u64) {
        let due = (time_ns, self.puts);
        self.puts += 1;
        let before = match self.of.get_mut(key) {
            Some(of) => self.due.remove(&std::mem::replace(of, due)),
            None => None,
        };
        let key = match before {
            Some((key, _)) => key,
            None => {
                let key = Rc::<[u8]>::from(key);
                self.of.insert(Rc::clone(&key), due);
                key
            }
        };
        self.due.insert(due, (key, client));
    }

    /// Cancels the expiry of `key`.
    pub(super) fn cancel(&mut self, key: &[u8]) {
        if let Some(due) = self.of.remove(key) {
            self.due.remove(&due);
        }
    }

    /// Removes and returns the next key that is due at `now_ns` or before.
    pub(super) fn next(&mut self, now_ns: u64) -> Option<Expired> {
        let first = self.due.first_entry()?;
        let (time_ns, _) = *first.key();
        if time_ns > now_ns {
            return None;
        }
        let (key, client) = first.remove();
        self.of.remove(&key);
        Some(Expired {
            key,
            client,
            time_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(expiries: &mut Expiries, now_ns: u64) -> Vec<(String, u64)> {
        std::iter::from_fn(|| expiries.next(now_ns))
            .map(|e| (String::from_utf8_lossy(&e.key).into(), e.time_ns))
            .collect()
    }

    #[test]
    fn keys_expire_in_time_order_and_those_of_one_time_in_the_order_of_their_puts() {
        let mut expiries = Expiries::default();
        expiries.set(b"c", 0, 20);
        expiries.set(b"b", 0, 10);
        expiries.set(b"a", 0, 20);
        expiries.set(b"d", 0, 30);
        assert!(names(&mut expiries, 9).is_empty());
        let expected = [("b".into(), 10), ("c".into(), 20), ("a".into(), 20)];
        assert_eq!(names(&mut expiries, 29), expected);
        assert_eq!(expiries.due.len(), 1);
    }

    #[test]
    fn a_later_put_replaces_and_a_delete_cancels_what_was_due() {
        let mut expiries = Expiries::default();
        expiries.set(b"later", 0, 10);
        expiries.set(b"later", 0, 50);
        expiries.set(b"sooner", 0, 40);
        expiries.set(b"sooner", 0, 5);
        expiries.set(b"gone", 0, 7);
        expiries.cancel(b"gone");
        expiries.cancel(b"never there");
        let expected = [("sooner".into(), 5), ("later".into(), 50)];
        assert_eq!(names(&mut expiries, u64::MAX), expected);
    }

    #[test]
    fn memory_is_bounded_by_the_keys_however_often_they_are_renewed() {
        let mut expiries = Expiries::default();
        for i in 0..100_000u64 {
            expiries.set(&[(i % 10) as u8], 0, 1_000_000 + i);
        }
        assert_eq!((expiries.due.len(), expiries.of.len()), (10, 10));
        assert_eq!(names(&mut expiries, u64::MAX).len(), 10);
        assert_eq!((expiries.due.len(), expiries.of.len()), (0, 0));
    }
}
