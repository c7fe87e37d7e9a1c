//! Which answers are right.
//!
//! Each record has one writer, who numbers its versions from 1 on. Of every record the judge knows the newest version that was
//! acknowledged and the newest that was issued. A read must answer with a version that is not older than the one acknowledged
//! when it began and not newer than the one issued when it ended: with one client that is one version, with several it leaves no more
//! than what was under way.

use std::sync::atomic::{AtomicU64, Ordering};

use super::data::Data;
use super::{Failure, Result};

/// What has been written.
pub struct Judge {
    data: Data,
    /// Issued version above, acknowledged one below. 0 is absence.
    versions: Vec<AtomicU64>,
}

impl Judge {
    /// Nothing is written yet.
    #[must_use]
    pub fn new(data: Data) -> Judge {
        let versions = (0..data.records()).map(|_| AtomicU64::new(0)).collect();
        Judge { data, versions }
    }

    /// The records.
    #[must_use]
    pub fn data(&self) -> &Data {
        &self.data
    }

    fn of(&self, record: u64) -> &AtomicU64 {
        &self.versions[record as usize]
    }

    /// Its writer is about to write the next version, which is this.
    #[must_use]
    pub fn issue(&self, record: u64) -> u32 {
        let both = self.of(record).fetch_add(1 << 32, Ordering::SeqCst);
        (both >> 32) as u32 + 1
    }

    /// All that was issued of a record is acknowledged.
    pub fn acknowledge(&self, record: u64) {
        let both = self.of(record).load(Ordering::SeqCst);
        // Only its writer issues, and this is it.
        let version = both >> 32;
        (self.of(record)).store(version << 32 | version, Ordering::SeqCst);
    }

    /// To be asked before a read.
    #[must_use]
    pub fn acknowledged(&self, record: u64) -> u32 {
        self.of(record).load(Ordering::SeqCst) as u32
    }

    /// Judges what a read found that began when `least` was acknowledged.
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

    /// Holds the place of the `n`-th record of a scan from `first` on.
    ///
    /// # Errors
    /// [`Failure::Wrong`] if the key is another.
    pub fn judge_key(&self, first: u64, n: u64, key: &[u8]) -> Result<()> {
        let expected = first + n;
        if expected < self.data.records() && self.data.key(expected) == key {
            return Ok(());
        }
        Err(Failure::Wrong(format!(
            "scan from record {first}: expected record {expected} in place {n}, found key {key:02x?}"
        )))
    }

    /// Holds the length of a scan.
    ///
    /// # Errors
    /// [`Failure::Wrong`] if it was short or too long.
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
