//! What a crash must leave, for a test that makes the engine crash.

use super::room::N;
use super::state::{State, Verdict};
use super::unbounded::Left;
use super::{Bug, WalRecovery};

impl WalRecovery {
    /// The seeded bug.
    #[must_use]
    pub fn bug(&self) -> Bug {
        self.bug
    }

    /// The number of records in a log block.
    #[must_use]
    pub fn per_block(&self) -> u64 {
        self.per_block.into()
    }

    /// The number of keys.
    #[must_use]
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// The contents that recovery may lead to after a crash in this state, as the value of each
    /// key (0 is `Absent`): everything that is durable, then the records behind it in order, up to
    /// any of them.
    #[must_use]
    pub fn promised(&self, s: &State) -> Vec<Vec<u64>> {
        let records = self.tail(s).len();
        let after = |n: usize| self.base_after(s, n as N);
        let maps = (0..=records).map(|n| after(n).map(u64::from)[..self.keys.len()].to_vec());
        let mut promised: Vec<Vec<u64>> = Vec::new();
        for map in maps {
            if !promised.contains(&map) {
                promised.push(map);
            }
        }
        promised
    }

    /// The content that the mirror recovers from what is on its device after a crash.
    #[must_use]
    pub fn kept(&self, s: &State) -> Vec<u64> {
        s.base[..self.keys.len()]
            .iter()
            .map(|value| u64::from(*value))
            .collect()
    }
}

impl State {
    /// Whether the last crash has revealed that the contract is broken.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        matches!(
            self.it.verdict,
            Verdict::Lost | Verdict::Mixed | Verdict::Changed
        )
    }

    /// Whether a failed flush forgot versions of the log, of pages, and of the superblock (`lost`).
    #[must_use]
    pub fn forgotten(&self) -> (bool, bool, bool) {
        let lost = self.it.lost;
        (lost.log != 0, lost.pages != 0, lost.superblock)
    }

    /// The version of each block that the crash with number `outcome` leaves in this state.
    #[must_use]
    pub fn left_by(&self, outcome: u16) -> Left {
        let mut rest = usize::from(outcome);
        let mut digit = |versions: usize| {
            let digit = rest % versions;
            rest /= versions;
            digit
        };
        let log = self.log_dev.iter().map(|place| digit(place.all().len()));
        let log = log.collect();
        let pages = self.page_dev.iter().map(|place| digit(place.all().len()));
        let pages = pages.collect();
        let superblock = digit(self.super_dev.all().len());
        Left {
            log,
            pages,
            superblock,
        }
    }
}
