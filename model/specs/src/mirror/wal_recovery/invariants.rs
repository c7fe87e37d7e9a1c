//! The invariants, by the names of the spec.

use super::WalRecovery;
use super::room::N;
use super::state::{ABSENT, Call, PENDING, Phase, State, Verdict};

type Invariant = fn(&WalRecovery, &State) -> bool;

pub(super) const INVARIANTS: [(&str, Invariant); 12] = [
    ("TypeInv", WalRecovery::type_inv),
    ("AckInv", WalRecovery::ack_inv),
    ("DurableInv", WalRecovery::durable_inv),
    ("WalRuleInv", WalRecovery::wal_rule_inv),
    ("CleanInv", WalRecovery::clean_inv),
    ("MemoryInv", WalRecovery::memory_inv),
    ("RedoStartInv", WalRecovery::redo_start_inv),
    ("LogKeptInv", WalRecovery::log_kept_inv),
    ("KeptInv", |_, s| s.it.verdict != Verdict::Lost),
    ("PrefixInv", |_, s| s.it.verdict != Verdict::Mixed),
    ("StableInv", |_, s| s.it.verdict != Verdict::Changed),
    ("ReadsLastInv", |_, s| s.it.verdict != Verdict::Vanished),
];

impl WalRecovery {
    /// Each value is in the set that its variable ranges over. Holds by construction, except for
    /// the contents and the order of two positions.
    pub(super) fn type_inv(&self, s: &State) -> bool {
        let content = |value: N| value <= self.values;
        let called = |call: &Call| match *call {
            Call::Idle | Call::Refused | Call::Unknown => true,
            Call::Get { got, .. } => got == PENDING || content(got),
            Call::Write { value, .. } => content(value),
        };
        s.it.durable <= s.it.flushing
            && s.call.iter().all(called)
            && s.buffer().iter().all(|record| content(record.value()))
            && s.page.iter().all(|page| content(page.value))
            && s.base
                .iter()
                .all(|value| *value == ABSENT || content(*value))
    }

    pub(super) fn ack_inv(&self, s: &State) -> bool {
        let waits = |n: N| {
            let mut calls = s.call.iter();
            calls.any(|call| matches!(call, Call::Write { lsn, .. } if *lsn == n))
        };
        s.it.poisoned || (s.it.durable + 1..=self.end(s)).all(waits)
    }

    pub(super) fn durable_inv(&self, s: &State) -> bool {
        let (oldest, durable) = (s.it.oldest, s.it.durable);
        if s.it.phase != Phase::Up || oldest >= durable {
            return true;
        }
        (self.block_of(oldest)..=self.block_of(durable - 1)).all(|index| {
            s.log_dev[self.place(index)].all().iter().all(|block| {
                let len = block.records().len() as N;
                block.epoch == s.it.epoch
                    && block.index == index
                    && (len == self.per_block || index * self.per_block + len >= durable)
            })
        })
    }

    pub(super) fn wal_rule_inv(&self, s: &State) -> bool {
        let durable = s.it.durable;
        s.it.phase.is_down()
            || (s.page_dev.iter()).all(|place| place.all().iter().all(|image| image.lsn <= durable))
    }

    pub(super) fn clean_inv(&self, s: &State) -> bool {
        s.it.phase.is_down()
            || (s.page.iter().zip(&s.dirtied).zip(&s.page_dev))
                .all(|((page, dirtied), place)| *dirtied != 0 || *page == place.newest())
    }

    pub(super) fn memory_inv(&self, s: &State) -> bool {
        if s.it.phase != Phase::Up {
            return true;
        }
        let current = self.base_after(s, self.tail(s).len() as N);
        (s.page.iter().zip(current).enumerate())
            .all(|(k, (page, value))| page.value == value || s.latched(k))
    }

    pub(super) fn redo_start_inv(&self, s: &State) -> bool {
        if s.it.phase != Phase::Up {
            return true;
        }
        let log = self.live_log(s);
        let oldest = s.it.oldest;
        // The greatest redo start is the strictest.
        let redo = s.super_dev.all().iter().map(|superblock| superblock.redo);
        let redo = redo.max().unwrap_or(0);
        (oldest + 1..=redo).zip(log.all()).all(|(n, record)| {
            let images = s.page_dev[record.key()].all();
            images.iter().all(|image| image.lsn >= n)
        })
    }

    pub(super) fn log_kept_inv(&self, s: &State) -> bool {
        let oldest = s.it.oldest;
        s.it.phase != Phase::Up
            || (s.super_dev.all().iter()).all(|superblock| oldest <= superblock.redo)
    }
}
