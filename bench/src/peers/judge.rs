//! Decides which answers are right.
//!
//! Each record has one writer, which numbers its versions from 1. For each record the judge knows
//! the newest acknowledged version and the newest issued version. A read must return a version that
//! is at least as new as the one acknowledged when it began, and no newer than the one issued when
//! it ended. With one client that is exactly one version. With several, the choice is limited to
//! what was under way.

use std::sync::atomic::{AtomicU64, Ordering};

use super::data::Data;
use super::{Failure, Result};

/// The versions of all records.
pub struct Judge {
    data: Data,
    /// The issued version in the upper half, the acknowledged one in the lower half. 0 is absence.
    versions: Vec<AtomicU64>,
}

impl Judge {
    /// Returns a judge for records that are not written yet.
    #[must_use]
    pub fn new(data: Data) -> Judge {
        let versions = (0..data.records()).map(|_| AtomicU64::new(0)).collect();
        Judge { data, versions }
    }

    /// Returns the records.
    #[must_use]
    pub fn data(&self) -> &Data {
        &self.data
    }

    fn of(&self, record: u64) -> &AtomicU64 {
        &self.versions[record as usize]
    }

    /// Called by the record's writer before it writes the next version, whose number is returned.
    #[must_use]
    pub fn issue(&self, record: u64) -> u32 {
        let both = self.of(record).fetch_add(1 << 32, Ordering::SeqCst);
        (both >> 32) as u32 + 1
    }

    /// Marks everything issued of a record as acknowledged.
    pub fn acknowledge(&self, record: u64) {
        let both = self.of(record).load(Ordering::SeqCst);
        // Only its writer issues versions, and that is the caller.
        let version = both >> 32;
        (self.of(record)).store(version << 32 | version, Ordering::SeqCst);
    }

    /// Returns the acknowledged version. Call it before a read.
    #[must_use]
    pub fn acknowledged(&self, record: u64) -> u32 {
        self.of(record).load(Ordering::SeqCst) as u32
    }

    /// Judges the result of a read that began when `least` was acknowledged.
    ///
    /// # Errors
    /// [`Failure::Wrong`].
    pub fn judge(&self, record: u64, least: u32, found: Option<&[u8]>) -> Result<()> {
        let most = (self.of(record).load(Ordering::SeqCst) >> 32) as u32;
        let version = match found {
            None => Some(0),
            Some(value) => self.data.version(record, value),
        };
        match version {
            Some(version) if (least..=most).contains(&version) => Ok(()),
            _ => Err(self.wrong(record, least, most, found)),
        }
    }

    #[cold]
    fn wrong(&self, record: u64, least: u32, most: u32, found: Option<&[u8]>) -> Failure {
        let found = match found {
            None => "none".into(),
            Some(value) => match self.data.version(record, value) {
                Some(version) if version < least => format!("version {version}, which is stale"),
                Some(version) => format!("version {version}, which nobody has written"),
                None => format!(
                    "{} bytes {value:02x?}, no value of that record",
                    value.len()
                ),
            },
        };
        Failure::Wrong(format!(
            "record {record}: expected a version from {least} to {most}, found {found}"
        ))
    }

    /// Checks the `n`-th record of a scan from `first`.
    ///
    /// # Errors
    /// [`Failure::Wrong`] if it has another key.
    pub fn judge_key(&self, first: u64, n: u64, key: &[u8]) -> Result<()> {
        let expected = first + n;
        if expected < self.data.records() && self.data.key(expected) == key {
            return Ok(());
        }
        Err(Failure::Wrong(format!(
            "scan from record {first}: expected record {expected} in place {n}, \
             found key {key:02x?}"
        )))
    }

    /// Checks the length of a scan.
    ///
    /// # Errors
    /// [`Failure::Wrong`] if it was too short or too long.
    pub fn judge_length(&self, first: u64, limit: u64, found: u64) -> Result<()> {
        let expected = limit.min(self.data.records() - first);
        if found == expected {
            return Ok(());
        }
        Err(Failure::Wrong(format!(
            "scan from record {first}: expected {expected} records, found {found}"
        )))
    }
}
