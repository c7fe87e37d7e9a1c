//! One word of the mapping table: where a page is, and its reader-writer lock (Bf-Tree §3.3).
//!
//! ```text
//!  63                                   16  15      14       13         0
//! +---------------------------------------+-------+--------+-------------+
//! | address                               | writer| pending| readers     |
//! +---------------------------------------+-------+--------+-------------+
//!
//! free --share--> readers n --last leaves--> free        share: fetch_add(1), taken back if writer or pending is set
//! free --lock---> writer --unlock, move----> free        unlock: one fetch_add takes the writer bit away and moves the address
//! readers 1 --upgrade--> writer --downgrade--> readers 1
//! readers n --a writer comes--> pending, readers n ..> pending, no readers --lock--> writer
//! ```
//!
//! Taking and giving back a shared lock is one atomic addition each, and neither fails nor repeats among readers.
//!
//! *Fairness.* A writer that finds readers sets `pending`; from then on no reader gets in, those inside leave, and the next one in is
//! a writer, which clears the bit. So readers, however many, cannot starve writers. A writer that finds another *writer* sets nothing, so
//! that when this one leaves readers and writers race as equals: writers do not starve readers either, unless by luck. Among
//! writers there is no order.
//!
//! *Orderings.* Every way in acquires, every way out releases, and all of them are read-modify-writes (or a failed attempt and its
//! withdrawal, relaxed, which as read-modify-writes leave the release sequence whole). So whoever gets in has seen all that those before it
//! did. A reader's short-lived increment may stand beside a writer's bit; for that reason a writer leaves by an addition, not by a store.

use crate::mutation;
use crate::sync::Backoff;
use crate::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

const READER: u64 = 1;
const READERS: u64 = (1 << 14) - 1;
const PENDING: u64 = 1 << 14;
const WRITER: u64 = 1 << 15;
const LOCK_BITS: u32 = 16;

/// More readers than this wait. As many threads again may be trying and withdrawing before the count runs into `pending`; guards that
/// were forgotten count for ever.
const MOST_READERS: u64 = READERS / 2;

/// Bits of an address.
pub(crate) const ADDRESS_BITS: u32 = 48;

/// Where a page is, and who has locked it. A bare lock: guards are made of it above.
#[derive(Debug)]
pub(crate) struct Word(AtomicU64);

/// The change of the whole word that moves an address.
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

    /// Waits until no writer is there; returns the address.
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
            // Look first: increments that come to nothing would keep the last reader's writer waiting.
            if open_to_readers(self.0.load(Relaxed))
                && let Some(address) = self.try_lock_shared()
            {
                return address;
            }
            backoff.wait();
        }
    }

    /// A shared lock, unless a writer is there or waits.
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

    /// Waits until nobody is there; returns the address.
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

    /// The lock, if nobody is there.
    pub(crate) fn try_lock(&self) -> Option<u64> {
        let word = self.0.load(Relaxed);
        let free = word & (WRITER | READERS) == 0;
        let locked = (word | WRITER) & !PENDING;
        (free && self.change(word, locked, Acquire)).then_some(word >> LOCK_BITS)
    }

    /// Turns a shared lock into the exclusive one, if there is no other reader (`CanUpgrade`). Two that waited for each other to leave
    /// would wait for ever (`specs/FINDINGS.md`, CircularBuffer 5).
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

    /// Turns the exclusive lock into a shared one; nobody can come in between.
    pub(crate) fn downgrade(&self) {
        self.0.fetch_add(READER.wrapping_sub(WRITER), Release);
    }

    /// Moves the address, by the one who holds the lock alone.
    pub(crate) fn redirect(&self, from: u64, to: u64) {
        self.0.fetch_add(moved(from, to), Release);
    }

    /// Moves the address and gives the exclusive lock back, both at once (CircularBuffer 6). The same address does not move.
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
        word.0.fetch_add(READER, Relaxed); // somebody tries
        word.unlock(0, most);
        word.0.fetch_sub(READER, Relaxed); // and withdraws
        assert_eq!(word.lock(), most);
        word.unlock(most, 1);
        assert_eq!(word.try_lock(), Some(1));
    }

    #[test]
    fn a_waiting_writer_is_let_in_before_new_readers() {
        let word = Word::new();
        word.lock_shared();
        word.0.fetch_or(PENDING, Relaxed); // what a writer does that finds the reader
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
