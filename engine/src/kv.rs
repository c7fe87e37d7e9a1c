//! The one interface of every tree, and of every engine that the oracle judges.

use std::any::Any;
use std::ops::ControlFlow;

use crate::error::Result;
use crate::types::Lsn;

/// What a scan calls with each key and value; it says whether to go on.
pub type Visitor<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A durable ordered map from byte strings to byte strings. Keys order bytewise; empty keys and empty values
/// are ordinary.
///
/// **After an error.** A call that fails has changed nothing unless it says otherwise, and a failed
/// read leaves all other keys as readable as they were. A store that has stopped accepting writes
/// returns [`crate::Error::Poisoned`] from each write, with the first cause, and goes on reading;
/// what it holds durably is known when it is opened again.
///
/// Every call is linearizable by itself, save `scan`, which returns for each key a value current at some instant
/// within the scan (it is no snapshot).
pub trait Kv: Any + Send + Sync {
    /// Copies the value of `key` into `value` (cleared first); `false` if the key is absent.
    ///
    /// # Errors
    /// A device failure or damage found on the way. What is in `value` then means nothing; the
    /// store is as it was, and the same or another key may be asked for again.
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

    /// Sets `key` to `value`. Returns the LSN that makes the write durable: it survives a crash once
    /// `sync` of that LSN (or of a later one) has returned.
    ///
    /// # Errors
    /// - [`crate::Error::KeyTooLong`], [`crate::Error::ValueTooLong`] or
    ///   [`crate::Error::RecordTooLarge`] if no store of the kind takes it,
    ///   [`crate::Error::Full`] or [`crate::Error::LogFull`] if the store has no room: nothing has
    ///   changed, and other writes may succeed.
    /// - Damage met on the way ([`crate::Error::Damaged`], [`crate::Error::MissingPage`]): nothing
    ///   has changed; keys of other pages can be written.
    /// - A device that fails to read: nothing has changed. One that fails to write or flush:
    ///   readers may see the write or not, it may or may not survive a crash, and the store refuses
    ///   more ([`crate::Error::Poisoned`], each time with this first cause).
    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn>;

    /// Removes `key` if it is there. Returns the LSN that makes its absence durable.
    ///
    /// # Errors
    /// As `put`, but that no key is too long: one that fits no page is absent.
    fn delete(&self, key: &[u8]) -> Result<Lsn>;

    /// Visits records with keys at or after `from`, in order, until `visit` breaks or no key is left. No latch is
    /// held while `visit` runs.
    ///
    /// # Errors
    /// A device failure or damage found on the way. What was visited before is right; what comes
    /// behind can be scanned from another key on.
    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()>;

    /// Visits records with keys below `before`, or all records, in descending order, until `visit` breaks or no key is left. No latch is held
    /// while `visit` runs.
    ///
    /// An engine that cannot scan downwards scans upwards from the first key, and keeps all that is below in memory meanwhile.
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

    /// Returns when every write with an LSN up to `lsn` is durable.
    ///
    /// # Errors
    /// A device failure; then the write may or may not survive a crash, and the store refuses more.
    /// A store that refuses writes has [`crate::Error::Poisoned`] here, too, even if the write was
    /// durable before: it cannot vouch for it any more.
    fn sync(&self, lsn: Lsn) -> Result<()>;

    /// Writes all that recovery would otherwise have to redo, and frees the log before it. Returns the position
    /// from which recovery would now start. An engine without checkpoints does nothing.
    ///
    /// # Errors
    /// A device failure; the store then refuses further writes, and the last good checkpoint is the
    /// one that recovery begins from. [`crate::Error::Poisoned`] if it refused them before. No
    /// acknowledged write is lost by either.
    fn checkpoint(&self) -> Result<Lsn> {
        Ok(Lsn(0))
    }

    /// Does one bounded step of background work, if any is due; says whether there may be more. An engine that has its own
    /// threads for that does nothing.
    ///
    /// # Errors
    /// A device failure; the store then refuses further writes.
    fn pump_due(&self) -> Result<bool> {
        Ok(false)
    }

    /// Counters since the store was opened; an engine that keeps none has zeros.
    fn stats(&self) -> crate::stats::Stats {
        crate::stats::Stats::default()
    }
}
