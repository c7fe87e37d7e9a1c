//! Write batches: several changes that take effect together.
//!
//! ```text
//! close the gate                 writers wait; readers do not
//!   long values, leaves, room    whatever can refuse the batch does so here
//!   log     intent               all changes, in parts; from the last part on the batch happens
//!   show    the changes          readers look here first, so they see all of them at once
//!   make    each change          as an ordinary put or delete, with its own log record
//!   log     batch ends
//!   hide    the changes          the tree has all of them now
//! open the gate
//! flush, if writes are to be durable
//! ```
//!
//! - **Crashes.** Pages are written only once the log is durable up to their LSN. So if any change
//!   is durable, the intent is, and recovery makes all the changes again ([`crate::wal`],
//!   `intent`). No other writer comes between intent and end, so this undoes nobody's write.
//! - **Checkpoints** go on. One that begins while a batch is open keeps the log from the batch's
//!   intent on ([`crate::wal::Log::open_batch`]).
//! - **A log that runs short** is not held up by the batch: what is left of the batch is logged as
//!   a new intent, and then the log before that can be freed. So a batch may be an eighth of the
//!   log, however many pages its changes split.
//! - **Readers** see all changes or none. A point read that finds the tree in a state that the
//!   batch has changed meanwhile is repeated (the version below). A scan that begins while the
//!   changes are shown merges them in; one that is under way may meet some of the changes and not
//!   others.
//! - **Failures** before the intent change nothing. After it, the batch is bound to happen. If it
//!   cannot be completed at once, for example because the file system is full, the changes stay
//!   shown, and the next writer completes them before its own. If the store stops taking writes
//!   for good, the next opening decides by the log.
//!
//! Recovery completes a batch in the same way. First it makes the new epoch durable on its own
//! ([`super::checkpoint::Checkpointer::write_epoch`]), because the new intent must be in the log
//! before a checkpoint may free the old one. So that openings which crash over and over do not fill
//! the log, an intent that nothing follows is used where it is, and the parts of an incomplete one
//! are overwritten.
//!
//! The cost: each change is logged twice, and each leaf is looked at once more.

use super::core::Core;
use super::open_batch::{Merged, Unfinished};
use super::room::Made;
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::kv::Visitor;
use crate::mutation;
use crate::overflow::{self, Pointer};
use crate::sync::{Arc, Pass};
use crate::trees::Again;
use crate::types::{Lsn, PageId};
use crate::wal::{Record, parts};

/// One in this many bytes of the log may be a batch's.
const LOG_SHARE: u64 = 8;
/// Pages whose size is kept free in the log for structure changes, beside the intent.
const SPARE_PAGES: u64 = 8;
/// How often room for the pages of a batch may be made before the store counts as full.
const MOST_TRIES: u32 = 64;

impl Core {
    /// Makes one change by an ordinary writer: completes a batch that is waiting for that, and
    /// keeps others from beginning.
    pub(super) fn pass(&self) -> Result<Pass<'_>> {
        loop {
            if let Some(pass) = self.batches.pass() {
                return Ok(pass);
            }
            self.finish_batch()?;
        }
    }

    /// Copies the stored value of `key` into `value`: a pointer, if the value is long.
    pub(super) fn get_stored(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        loop {
            let version = self.batches.version();
            if !version.is_multiple_of(2)
                && let Some(change) = self.batches.shown_for(version, key)
            {
                value.clear();
                value.extend_from_slice(change.as_deref().unwrap_or_default());
                return Ok(change.is_some());
            }
            let found = self.tree.get(key, value)?;
            // A change of a batch is read under the latch of its leaf, so this sees the version
            // under which it was made.
            if self.batches.version() == version {
                return Ok(found);
            }
        }
    }

    /// Visits stored records in ascending order, with the changes that are shown now.
    pub(super) fn scan_stored(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let Some(changes) = self.batches.shown() else {
            return self.tree.scan(from, visit);
        };
        let mut merged = Merged::new(changes.iter().filter(|(key, _)| *key >= from), visit);
        (self.tree).scan(from, &mut |key, value| {
            merged.take(key, value, |a, b| a < b)
        })?;
        merged.end();
        Ok(())
    }

    /// Visits stored records in descending order, with the changes that are shown now.
    pub(super) fn scan_back_stored(
        &self,
        before: Option<&[u8]>,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        let Some(changes) = self.batches.shown() else {
            return self.tree.scan_back(before, visit);
        };
        let below = |key: &[u8]| before.is_none_or(|before| key < before);
        let mut merged = Merged::new(changes.iter().rev().filter(|(key, _)| below(key)), visit);
        (self.tree).scan_back(before, &mut |key, value| {
            merged.take(key, value, |a, b| a > b)
        })?;
        merged.end();
        Ok(())
    }

    /// Makes all changes of `batch`; see [`crate::Kv::write`].
    pub(super) fn write_batch(&self, batch: &Batch) -> Result<Lsn> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        let limits = self.tree.leaves().limits();
        for (key, value) in batch.iter() {
            if let Some(value) = value {
                overflow::check(limits, key, value)?;
            }
        }
        self.check_writable()?;
        let for_others = self.must_flush_for_others();
        let (changes, values) = self.store_values(batch)?;
        match self.write_stored(changes) {
            Ok(lsn) => self.acknowledge(lsn, for_others),
            Err(NotWritten::Nothing(e)) => {
                self.give_values_up(&values)?;
                Err(e)
            }
            Err(NotWritten::Unfinished(e)) => Err(e),
        }
    }

    /// Writes the long values of a batch to places of their own. Returns the changes as leaves
    /// store them, and the pointers among them. Deletes of keys that no store can hold are left
    /// out.
    fn store_values(&self, batch: &Batch) -> Result<(Batch, Vec<Pointer>)> {
        let leaves = self.tree.leaves();
        let (mut changes, mut values) = (Batch::new(), Vec::new());
        for (key, value) in batch.iter() {
            let Some(value) = value else {
                if overflow::check(leaves.limits(), key, b"").is_ok() {
                    changes.delete(key);
                }
                continue;
            };
            if !overflow::goes_out_of_line(leaves.limits(), key.len(), value) {
                changes.put(key, value);
                continue;
            }
            match self.change(&mut || leaves.try_write_value(key, value)) {
                Ok(pointer) => {
                    changes.put(key, pointer.encode());
                    values.push(pointer);
                }
                Err(e) => {
                    self.give_values_up(&values)?;
                    return Err(e);
                }
            }
        }
        Ok((changes, values))
    }

    fn give_values_up(&self, values: &[Pointer]) -> Result<()> {
        if mutation::on("refused-batch-keeps-values") {
            return Ok(());
        }
        let pager = &self.tree.leaves().pager;
        (values.iter()).try_for_each(|value| pager.give_value_up(value))
    }

    fn write_stored(&self, changes: Batch) -> Result<Lsn, NotWritten> {
        let log = &self.tree.leaves().pager.log;
        if changes.is_empty() {
            return Ok(log.durable());
        }
        let _alone = self.batches.close();
        self.finish_unfinished().map_err(NotWritten::Nothing)?;
        let mut batch = Unfinished::new(changes);
        log.prepare_batch();
        if let Err(e) = self.make_batch_room(&batch) {
            log.close_batch();
            return Err(NotWritten::Nothing(e));
        }
        log.open_batch();
        if !mutation::on("batch-made-before-intent")
            && let Err(e) = self.log_intent(&mut batch)
        {
            log.close_batch();
            return Err(NotWritten::Nothing(e));
        }
        self.batches.show(Some(Arc::clone(&batch.changes)));
        self.finish_or_keep(batch).map_err(NotWritten::Unfinished)
    }

    /// Completes a batch that could not be completed before, if there is one.
    ///
    /// # Errors
    /// Those of its changes; it then still waits.
    pub(super) fn finish_batch(&self) -> Result<()> {
        self.tree.leaves().pager.check_poison()?;
        self.tree.leaves().pager.retry_refused()?;
        let _alone = self.batches.close();
        self.finish_unfinished()
    }

    /// As [`Core::finish_batch`], with the gate closed.
    fn finish_unfinished(&self) -> Result<()> {
        match self.batches.take_unfinished() {
            None => Ok(()),
            Some(batch) => self.finish_or_keep(batch).map(drop),
        }
    }

    /// Completes a batch whose intent is in the log and whose changes are shown. If that fails, the
    /// batch waits for the next writer.
    fn finish_or_keep(&self, mut batch: Unfinished) -> Result<Lsn> {
        let batches = &self.batches;
        match self.make_changes(&mut batch) {
            Ok(lsn) => {
                batches.show(None);
                batches.all_finished();
                self.tree.leaves().pager.log.close_batch();
                if batch.sparse {
                    // As after a delete: the batch is complete whether or not the merge succeeds.
                    drop(self.tree.merge_step());
                }
                Ok(lsn)
            }
            Err(e) => {
                batches.keep_unfinished(batch);
                Err(e)
            }
        }
    }

    /// Makes the changes that are left, and logs the end of the batch. Returns its LSN.
    fn make_changes(&self, batch: &mut Unfinished) -> Result<Lsn> {
        let changes = Arc::clone(&batch.changes);
        let log = |record| self.tree.leaves().append(record);
        let early = mutation::on("batch-ends-early");
        for (key, value) in changes.iter().skip(batch.made) {
            if early && batch.made + 1 == changes.len() {
                log(&Record::BatchEnd)?;
            }
            if log_is_short(self, batch) {
                self.renew_intent(batch)?;
            }
            batch.sparse |= match self.make_change(key, value) {
                Err(Error::LogFull { .. }) => {
                    self.renew_intent(batch)?;
                    self.make_change(key, value)?
                }
                made => made?,
            };
            batch.made += 1;
        }
        match early {
            true => Ok(self.tree.leaves().pager.log.end()),
            false => log(&Record::BatchEnd),
        }
    }

    /// Makes one change. Returns whether it left a sparse leaf.
    fn make_change(&self, key: &[u8], value: Option<&[u8]>) -> Result<bool> {
        let Some(value) = value else {
            let (_, sparse) = self.repeat(&mut || self.tree.try_delete(key))?;
            return Ok(sparse);
        };
        if overflow::is_pointer(value) && !mutation::on("batch-retires-its-own-value") {
            // The change may have been made before a failure or a crash. Made again, it would
            // retire the very value that it refers to.
            let mut present = Vec::new();
            if self.tree.get(key, &mut present)? && present == value {
                return Ok(false);
            }
        }
        self.repeat(&mut || self.tree.try_put(key, value))?;
        Ok(false)
    }

    /// Returns the changes that are left as the parts of an intent.
    fn intent(&self, batch: &Unfinished) -> Vec<Vec<u8>> {
        parts(&batch.changes, batch.made, 2 * self.options.page_size)
    }

    /// Logs the changes that are left as an intent.
    fn log_intent(&self, batch: &mut Unfinished) -> Result<()> {
        let leaves = self.tree.leaves();
        let parts = self.intent(batch);
        batch.intent_bytes = 0;
        for (number, changes) in parts.iter().enumerate() {
            let record = Record::Batch {
                part: number as u64,
                last: number + 1 == parts.len(),
                changes,
            };
            batch.intent_bytes += record.encoded_len() as u64;
            leaves.append(&record)?;
        }
        Ok(())
    }

    /// Logs the changes that are left once more, so that the log before can be freed, and frees it.
    fn renew_intent(&self, batch: &mut Unfinished) -> Result<()> {
        let log = &self.tree.leaves().pager.log;
        let begin = log.end();
        if mutation::on("batch-moves-before-intent") {
            log.move_batch(begin);
            self.checkpointer.run(&self.tree)?;
        }
        self.log_intent(batch)?;
        log.move_batch(begin);
        self.checkpointer.run(&self.tree).map(drop)
    }

    /// Makes sure that nothing but a failing device can keep the batch from happening: its leaves
    /// are sound, and log and store have room for its changes and what these may split.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`], [`Error::LogFull`], [`Error::Full`], damage and device failures.
    fn make_batch_room(&self, batch: &Unfinished) -> Result<()> {
        let leaves = self.tree.leaves();
        let log = &leaves.pager.log;
        let parts = self.intent(batch);
        // Block headers and the heads of the parts take less than a sixteenth.
        let bytes = parts.iter().map(|part| part.len() as u64).sum::<u64>();
        let (bytes, max) = (bytes + bytes / 16 + 64, log.capacity() / LOG_SHARE);
        if bytes > max {
            return Err(Error::BatchTooLarge { bytes, max });
        }
        // First, because what this merges is logged.
        self.make_pages_for_batch(&batch.changes)?;
        let needed = bytes + log_reserve(self, bytes);
        // Nobody else writes, and little is appended by merges and changes of layout. So the second
        // checkpoint frees the log.
        let mut tries = 0;
        while log.space_left() < needed && tries < 3 {
            self.checkpointer.run(&self.tree)?;
            tries += 1;
        }
        if log.space_left() >= needed {
            return Ok(());
        }
        Err(Error::LogFull {
            capacity: log.capacity(),
            redo_start: log.redo_start(),
        })
    }

    /// Makes room for the pages that the changes may split off.
    fn make_pages_for_batch(&self, changes: &Batch) -> Result<()> {
        let leaves = self.tree.leaves();
        let puts = changes
            .iter()
            .filter_map(|(key, value)| Some((key, value?)));
        let (count, bytes) = puts.fold((0, 0), |(count, bytes), (key, value)| {
            (count + 1, bytes + key.len() + value.len() + 16)
        });
        let touched = leaves.check_leaves(changes.iter().map(|(key, _)| key))?;
        // A split leaves at least a quarter of a page on each side. One change splits at most
        // twice.
        let by_bytes = touched + (4 * bytes).div_ceil(self.options.page_size) as u64;
        let pages = by_bytes.min(2 * count);
        if leaves.has_room_for(pages + self.tree.pages_owed()) {
            return Ok(());
        }
        // What is buffered above the leaves may split them, too. Once it is merged, only this
        // batch can.
        let mut from = Some(PageId(0));
        while let Some(page) = from {
            from = self.tree.push_down(page, &mut Again::none())?;
        }
        let mut tries = 0;
        while !leaves.has_room_for(pages) {
            let freed = self.pages_freed();
            tries += 1;
            match self.make_page_room(freed)? {
                _ if tries > MOST_TRIES => return Err(self.is_full()),
                Made::Freed | Made::Squeezed => {}
            }
        }
        Ok(())
    }

    /// Completes the batch that the log has the intent of, but no end. `place` is the one of the
    /// intent if nothing follows it ([`crate::wal::Intent::place`]). Called by recovery, once the
    /// tree is as the log describes it and before anything is appended.
    pub(super) fn complete_pending(&self, changes: Batch, place: Option<(Lsn, u32)>) -> Result<()> {
        self.checkpointer.write_epoch(&self.tree)?;
        let mut batch = Unfinished::new(changes);
        match place.filter(|_| !mutation::on("recovery-renews-each-time")) {
            // Logged once more each time, it would fill the log if openings crash repeatedly.
            Some((begin, epoch)) => {
                let parts = self.intent(&batch);
                batch.intent_bytes = parts.iter().map(|part| part.len() as u64).sum();
                (self.tree.leaves().pager.log).resume_batch(begin, epoch);
                self.checkpointer.run(&self.tree)?;
            }
            None => self.renew_intent(&mut batch)?,
        }
        self.make_changes(&mut batch)?;
        self.tree.leaves().pager.log.close_batch();
        self.checkpointer.run(&self.tree).map(drop)
    }
}

/// Why a batch was not written.
enum NotWritten {
    /// It has changed nothing and never will.
    Nothing(Error),
    /// It will happen later, if the store continues to take writes; if not, the next opening
    /// decides.
    Unfinished(Error),
}

/// Bytes of the log that are kept free while a batch with an intent of `bytes` bytes is open: to
/// renew it, here or in recovery, and for the structure changes of one change.
fn log_reserve(core: &Core, bytes: u64) -> u64 {
    let log = &core.tree.leaves().pager.log;
    let pages = SPARE_PAGES * core.options.page_size as u64;
    2 * bytes + pages.min(log.capacity() / 8) + 4 * log.padding()
}

fn log_is_short(core: &Core, batch: &Unfinished) -> bool {
    core.tree.leaves().pager.log.space_left() < log_reserve(core, batch.intent_bytes)
}
