//! [`Kv`], the interface that every tree implements, and every foreign engine that the oracle
//! judges.

use std::any::Any;
use std::ops::ControlFlow;

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::types::Lsn;

/// The callback of a scan: it receives each key and value, and returns whether to continue.
pub type Visitor<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A durable ordered map from byte strings to byte strings. Keys are ordered bytewise; empty keys
/// and empty values are ordinary.
///
/// **After an error.** A call that fails has changed nothing unless its documentation says
/// otherwise, and a failed read leaves all other keys readable. A store that has stopped accepting
/// writes returns [`crate::Error::Poisoned`] from each write, with the first cause, and continues
/// to serve reads. To find out what it holds durably, open it again.
///
/// Every call is linearizable by itself, except `scan`, which returns for each key a value that was
/// current at some instant during the scan (a scan is not a snapshot).
pub trait Kv: Any + Send + Sync {
    /// Copies the value of `key` into `value`, which is cleared first. Returns `false` if the key
    /// is absent.
    ///
    /// # Errors
    /// A device failure, or damage found on the way. The contents of `value` are then meaningless;
    /// the store is unchanged, and this or another key may be read again.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Returns the value of `key`, or `None` if the key is absent. [`Kv::get`] reuses a buffer
    /// instead.
    ///
    /// # Errors
    /// As [`Kv::get`].
    fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        Ok(self.get(key, &mut value)?.then_some(value))
    }

    /// Sets `key` to `value`. Returns the LSN that makes the write durable: the write survives a
    /// crash once `sync` of that LSN, or of a later one, has returned.
    ///
    /// # Errors
    /// - [`crate::Error::KeyTooLong`], [`crate::Error::ValueTooLong`] or
    ///   [`crate::Error::RecordTooLarge`] if this kind of store cannot hold the record;
    ///   [`crate::Error::Full`] or [`crate::Error::LogFull`] if the store has no room. Nothing has
    ///   changed, and other writes may succeed.
    /// - Damage found on the way ([`crate::Error::Damaged`], [`crate::Error::MissingPage`]).
    ///   Nothing has changed; keys of other pages can still be written.
    /// - A device failure. If a read failed, nothing has changed. If a write or a flush failed,
    ///   readers may or may not see the write, and it may or may not survive a crash; the store
    ///   then refuses further writes ([`crate::Error::Poisoned`], each time with this first cause).
    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn>;

    /// Removes `key` if it is present. Returns the LSN that makes its absence durable.
    ///
    /// # Errors
    /// As `put`, except that no key is too long: a key that does not fit in a page is absent.
    fn delete(&self, key: &[u8]) -> Result<Lsn>;

    /// Makes all changes of `batch`. They take effect together: a crash leaves all of them or none,
    /// and so do readers see them, except scans, which may meet a part. Returns the LSN that makes
    /// the batch durable.
    ///
    /// # Errors
    /// As `put`; [`crate::Error::BatchTooLarge`] if the batch is too large for the log. Nothing has
    /// changed after any error that `put` says the same of.
    ///
    /// [`crate::Error::Unsupported`] if this kind of store has no batches.
    fn write(&self, batch: &Batch) -> Result<Lsn> {
        let _ = batch;
        Err(Error::Unsupported {
            what: "write batches",
        })
    }

    /// Visits the records with keys at or after `from` in ascending order, until `visit` breaks or
    /// no key is left. No latch is held while `visit` runs.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::sync::Arc;
    /// use treering_engine::device::MemDevice;
    /// use treering_engine::{Kv, Options, Store, SystemClock, required_blocks};
    ///
    /// # fn main() -> treering_engine::Result<()> {
    /// let options = Options::default();
    /// let device = Arc::new(MemDevice::new(required_blocks(&options, 64)));
    /// let store = Store::open(device, Arc::new(SystemClock::new()), &options)?;
    /// for key in ["apple", "banana", "cherry", "date"] {
    ///     store.put(key.as_bytes(), b"fruit")?;
    /// }
    ///
    /// let mut found = Vec::new();
    /// store.scan(b"b", &mut |key, _value| {
    ///     found.push(key.to_vec());
    ///     // Stop after two records.
    ///     if found.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    /// })?;
    /// assert_eq!(found, [b"banana".to_vec(), b"cherry".to_vec()]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A device failure, or damage found on the way. The records visited before the error are
    /// correct; to continue behind the damage, scan again from a later key.
    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()>;

    /// Visits the records with keys below `before`, or all records, in descending order, until
    /// `visit` breaks or no key is left. No latch is held while `visit` runs.
    ///
    /// An engine that cannot scan downwards scans upwards from the first key instead, and buffers
    /// all records below `before` in memory.
    ///
    /// # Errors
    /// As `scan`.
    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        let mut rows = Vec::new();
        self.scan(b"", &mut |key, value| {
            if before.is_some_and(|before| key >= before) {
                return ControlFlow::Break(());
            }
            rows.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })?;
        let mut downwards = rows.iter().rev();
        let _ = downwards.try_for_each(|(key, value)| visit(key, value));
        Ok(())
    }

    /// Waits until every write with an LSN up to `lsn` is durable.
    ///
    /// # Errors
    /// A device failure; the writes may or may not survive a crash, and the store refuses further
    /// writes. A store that already refuses writes returns [`crate::Error::Poisoned`] here too,
    /// even if the write was durable before, because the store can no longer vouch for it.
    fn sync(&self, lsn: Lsn) -> Result<()>;

    /// Takes a checkpoint: writes everything that recovery would otherwise have to redo, and frees
    /// the log before that point. Returns the position from which recovery would now start. An
    /// engine without checkpoints does nothing.
    ///
    /// # Errors
    /// A device failure; the store then refuses further writes, and recovery starts from the last
    /// good checkpoint. [`crate::Error::Poisoned`] if the store already refused writes. Neither
    /// loses an acknowledged write.
    fn checkpoint(&self) -> Result<Lsn> {
        Ok(Lsn(0))
    }

    /// Does one bounded step of background work, if any is due. Returns whether more may be due. An
    /// engine with background threads of its own does nothing.
    ///
    /// # Errors
    /// A device failure; the store then refuses further writes.
    fn pump_due(&self) -> Result<bool> {
        Ok(false)
    }

    /// Returns the counters since the store was opened. An engine that keeps none returns zeros.
    fn stats(&self) -> crate::stats::Stats {
        crate::stats::Stats::default()
    }
}
