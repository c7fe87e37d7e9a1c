//! A word of the mapping table: the address of a page, and its reader-writer lock (Bf-Tree §3.3).
//!
//! ```text
//!  63                                   16  15      14       13         0
//! +---------------------------------------+-------+--------+-------------+
//! | address                               | writer| pending| readers     |
//! +---------------------------------------+-------+--------+-------------+
//!
//! free --share--> readers n --last leaves--> free
//!     share: fetch_add(1), undone if writer or pending is set
//! free --lock---> writer --unlock, move----> free
//!     unlock: one fetch_add clears the writer bit and moves the address
//! readers 1 --upgrade--> writer --downgrade--> readers 1
//! readers n --a writer comes--> pending, readers n ..> pending, no readers --lock--> writer
//! ```
//!
//! Taking and releasing a shared lock is one atomic addition each; among readers, neither fails nor
//! retries.
//!
//! *Fairness.* A writer that finds readers sets `pending`. From then on no further reader gets in,
//! the present ones leave, and the next thread in is a writer, which clears the bit. So readers,
//! however many, cannot starve writers. A writer that finds another *writer* sets nothing; when
//! that writer leaves, readers and writers race as equals. So writers do not starve readers either,
//! except by bad luck. Among writers, there is no order.
//!
//! *Orderings.* Every acquisition is an acquire and every release a release, and all of them are
//! read-modify-writes. (A failed attempt and its undoing are relaxed, but as read-modify-writes
//! they keep the release sequence intact.) So a thread that gets the lock has seen everything that
//! earlier holders did. A reader's short-lived increment may coexist with a writer's bit, which is
//! why a writer unlocks by an addition, not by a store.

use crate::mutation;
use crate::sync::Backoff;
use crate::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

const READER: u64 = 1;
const READERS: u64 = (1 << 14) - 1;
const PENDING: u64 = 1 << 14;
const WRITER: u64 = 1 << 15;
const LOCK_BITS: u32 = 16;

/// Readers beyond this number wait. As many threads again may be trying and undoing before the
/// count overflows into `pending`; leaked guards count forever.
const MOST_READERS: u64 = READERS / 2;

/// Bits of an address.
pub(crate) const ADDRESS_BITS: u32 = 48;

/// A page's address and lock. The lock is bare: the ring makes guards of it.
#[derive(Debug)]
pub(crate) struct Word(AtomicU64);

/// The amount to add to a word in order to change its address.
fn moved(from: u64, to: u64) -> u64 {
    debug_assert!(
        to >> ADDRESS_BITS == 0,
        "an address of more than 48 bits: {to:#x}"
    );
    to.wrapping_sub(from) << LOCK_BITS
}

fn open_to_readers(word: u64) -> bool {
    word & (WRITER | PENDING) == 0 && word & READERS < MOST_READERS
}

impl Word {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Waits until there is no writer, and returns the address.
    #[inline]
    pub(crate) fn lock_shared(&self) -> u64 {
        match self.try_lock_shared() {
            Some(address) => address,
            None => self.lock_shared_slowly(),
        }
    }

    #[cold]
    fn lock_shared_slowly(&self) -> u64 {
        let mut backoff = Backoff::new();
        loop {
            // Test first: futile increments would delay a writer that waits for the last reader.
            if open_to_readers(self.0.load(Relaxed))
                && let Some(address) = self.try_lock_shared()
            {
                return address;
            }
            backoff.wait();
        }
    }

    /// Takes a shared lock, unless a writer holds or awaits the lock.
    #[inline]
    pub(crate) fn try_lock_shared(&self) -> Option<u64> {
        let word = self.0.fetch_add(READER, Acquire);
        if open_to_readers(word) {
            return Some(word >> LOCK_BITS);
        }
        self.0.fetch_sub(READER, Relaxed);
        None
    }

    #[inline]
    pub(crate) fn unlock_shared(&self) {
        let word = self.0.fetch_sub(READER, Release);
        debug_assert!(word & READERS > 0, "a reader leaves that never came");
    }

    /// Waits until nobody holds the lock, and returns the address.
    pub(crate) fn lock(&self) -> u64 {
        let mut backoff = Backoff::new();
        loop {
            let word = self.0.load(Relaxed);
            if word & (WRITER | READERS) == 0 {
                let locked = (word | WRITER) & !PENDING;
                if self.change(word, locked, Acquire) {
                    return word >> LOCK_BITS;
                }
            } else if word & (WRITER | PENDING) == 0 && self.change(word, word | PENDING, Relaxed) {
                continue;
            }
            backoff.wait();
        }
    }

    /// Takes the exclusive lock, if nobody holds the lock.
    pub(crate) fn try_lock(&self) -> Option<u64> {
        let word = self.0.load(Relaxed);
        let free = word & (WRITER | READERS) == 0;
        let locked = (word | WRITER) & !PENDING;
        (free && self.change(word, locked, Acquire)).then_some(word >> LOCK_BITS)
    }

    /// Turns a shared lock into the exclusive one, if there is no other reader (`CanUpgrade`). Two
    /// readers that each waited for the other to leave would wait forever (`specs/FINDINGS.md`,
    /// CircularBuffer 5).
    pub(crate) fn try_upgrade(&self) -> bool {
        loop {
            let word = self.0.load(Relaxed);
            let alone = word & READERS == READER || mutation::on("ring-writer-ignores-readers");
            if !alone {
                return false;
            }
            if self.change(word, word - READER + WRITER, Acquire) {
                return true;
            }
        }
    }

    /// Turns the exclusive lock into a shared one, without a gap.
    pub(crate) fn downgrade(&self) {
        self.0.fetch_add(READER.wrapping_sub(WRITER), Release);
    }

    /// Changes the address. The caller holds the exclusive lock.
    pub(crate) fn redirect(&self, from: u64, to: u64) {
        self.0.fetch_add(moved(from, to), Release);
    }

    /// Changes the address and releases the exclusive lock in one step (CircularBuffer 6). The
    /// address may stay the same.
    pub(crate) fn unlock(&self, from: u64, to: u64) {
        let word = self
            .0
            .fetch_add(moved(from, to).wrapping_sub(WRITER), Release);
        debug_assert!(word & WRITER != 0, "a writer leaves that never came");
        debug_assert!(
            word >> LOCK_BITS == from,
            "the address moved under the lock"
        );
    }

    fn change(&self, from: u64, to: u64, success: std::sync::atomic::Ordering) -> bool {
        self.0.compare_exchange(from, to, success, Relaxed).is_ok()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        let word = Word::new();
        assert_eq!(word.lock(), 0);
        assert_eq!((word.try_lock_shared(), word.try_lock()), (None, None));
        word.unlock(0, 77);
        assert_eq!((word.lock_shared(), word.lock_shared()), (77, 77));
        assert_eq!(word.try_lock(), None);
        assert!(!word.try_upgrade(), "there is another reader");
        word.unlock_shared();
        assert!(word.try_upgrade());
        assert_eq!(word.try_lock_shared(), None);
        word.redirect(77, 5);
        word.downgrade();
        assert_eq!(word.lock_shared(), 5);
        word.unlock_shared();
        word.unlock_shared();
        assert_eq!(word.try_lock(), Some(5));
    }

    #[test]
    fn the_address_moves_both_ways_and_leaves_a_readers_attempt_alone() {
        let word = Word::new();
        let most = (1 << ADDRESS_BITS) - 1;
        word.lock();
        word.0.fetch_add(READER, Relaxed); // A reader tries.
        word.unlock(0, most);
        word.0.fetch_sub(READER, Relaxed); // And undoes it.
        assert_eq!(word.lock(), most);
        word.unlock(most, 1);
        assert_eq!(word.try_lock(), Some(1));
    }

    #[test]
    fn a_waiting_writer_is_let_in_before_new_readers() {
        let word = Word::new();
        word.lock_shared();
        word.0.fetch_or(PENDING, Relaxed); // What a writer does when it finds the reader.
        assert_eq!(word.try_lock_shared(), None);
        assert_eq!(word.try_lock(), None);
        word.unlock_shared();
        assert_eq!(word.try_lock_shared(), None, "the writer is next");
        assert_eq!(word.lock(), 0);
        word.unlock(0, 0);
        assert_eq!(
            word.try_lock_shared(),
            Some(0),
            "the door is open behind it"
        );
    }
}
