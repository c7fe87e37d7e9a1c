//! Batches in the log. All changes of a batch are logged in advance, as its *intent*; then each is
//! made and logged like an ordinary one; then a record ends the batch.
//!
//! ```text
//! log   | part 0 | part 1 (last) | put | delete | split | put | batch ends |
//!       '------- intent --------'                                         '- its LSN
//!
//! crash here   nothing happened | the batch is pending: recovery makes its changes | it has ended
//! ```
//!
//! From its last part on, the batch will happen whatever comes: recovery makes all its changes once
//! more, which is harmless, because no other writer's record lies between the intent and the end.
//! An intent without its last part never happens. A part with number 0 begins a new intent, and a
//! complete one replaces the one before it (see [`crate::store`], `batch`, for why a batch may have
//! several).
//!
//! ```text
//! change = klen vlen+1 key value      vlen+1 is 0 if the key is deleted
//! ```

use crate::batch::Batch;
use crate::mutation;
use crate::types::Lsn;

use super::LogEnd;
use super::record::{Fields, Record, RecordDamage, put_varint};

/// Splits the changes of a batch into parts, each about `part_bytes` long, in their encoded form.
/// `skip` changes are left out.
pub(crate) fn parts(batch: &Batch, skip: usize, part_bytes: usize) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    for (key, value) in batch.iter().skip(skip) {
        let part = parts.last().filter(|part| part.len() < part_bytes);
        if part.is_none() {
            parts.push(Vec::new());
        }
        let part = parts.last_mut().expect("there is one");
        push(part, key, value);
    }
    parts
}

fn push(part: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
    let mut head = [0; 20];
    let mut at = put_varint(&mut head, key.len() as u64);
    at += put_varint(&mut head[at..], value.map_or(0, |v| v.len() as u64 + 1));
    part.extend_from_slice(&head[..at]);
    part.extend_from_slice(key);
    part.extend_from_slice(value.unwrap_or_default());
}

/// Adds the changes of an encoded part to `batch`.
///
/// # Errors
/// [`RecordDamage`] if the bytes are not changes.
fn add_part(batch: &mut Batch, changes: &[u8]) -> Result<(), RecordDamage> {
    let mut f = Fields::new(changes);
    while !f.is_empty() {
        let (key_len, value_len) = (f.number()?, f.number()?);
        let key = f.bytes(key_len)?;
        match value_len.checked_sub(1) {
            Some(len) => batch.put(key, f.bytes(len)?),
            None => batch.delete(key),
        };
    }
    Ok(())
}

/// A batch whose intent is complete.
#[derive(Debug)]
pub(crate) struct Intent {
    /// Where its first part begins.
    pub(crate) begin: Lsn,
    /// LSN of its last part.
    pub(crate) lsn: Lsn,
    /// The changes. Values are as leaves store them: long ones are pointers.
    pub(crate) changes: Batch,
}

impl Intent {
    /// Where redo can begin with this intent, and the epoch there, if it is the last thing in the
    /// log. Then it need not be logged again.
    ///
    /// `whole` is [`Intents::whole`], and `end` the end of the same log.
    pub(crate) fn place(&self, whole: Lsn, end: &LogEnd) -> Option<(Lsn, u32)> {
        // All parts of an intent are of one epoch. The record before may be of an older one.
        let is_last = self.lsn == whole && self.lsn > end.epoch_start;
        let begin = self.begin.max(end.epoch_start);
        is_last.then_some((begin, end.epoch))
    }
}

/// Follows the batches of a log that is read from its beginning.
#[derive(Debug)]
pub(crate) struct Intents {
    begun: Option<Begun>,
    pending: Option<Intent>,
    /// LSN of the last record.
    end: Lsn,
    /// LSN of the last record without the parts of an incomplete intent behind it.
    whole: Lsn,
}

/// An intent of which some parts have been read.
#[derive(Debug)]
struct Begun {
    begin: Lsn,
    next_part: u64,
    changes: Batch,
}

impl Intents {
    /// Creates the state for a log that is read from `start`.
    pub(crate) fn new(start: Lsn) -> Intents {
        Intents {
            begun: None,
            pending: None,
            end: start,
            whole: start,
        }
    }

    /// Takes the next record of the log.
    ///
    /// # Errors
    /// [`RecordDamage`] if a part does not hold changes.
    pub(crate) fn take(&mut self, lsn: Lsn, record: &Record<'_>) -> Result<(), RecordDamage> {
        let begin = std::mem::replace(&mut self.end, lsn);
        match *record {
            Record::Batch {
                part,
                last,
                changes,
            } => self.take_part((begin, lsn), (part, last), changes)?,
            Record::BatchEnd if !mutation::on("batch-never-ends") => {
                self.pending = None;
                self.whole = lsn;
            }
            _ => self.whole = lsn,
        }
        Ok(())
    }

    fn take_part(
        &mut self,
        (begin, lsn): (Lsn, Lsn),
        (part, last): (u64, bool),
        changes: &[u8],
    ) -> Result<(), RecordDamage> {
        let begun = match self.begun.take() {
            _ if part == 0 => Some(Begun {
                begin,
                next_part: 0,
                changes: Batch::new(),
            }),
            begun => begun.filter(|begun| begun.next_part == part),
        };
        // Without its first parts, because a crash cut them off, it never happens.
        let Some(mut begun) = begun else {
            return Ok(());
        };
        add_part(&mut begun.changes, changes)?;
        begun.next_part += 1;
        if last || mutation::on("batch-happens-incomplete") {
            self.whole = lsn;
            self.pending = Some(Intent {
                begin: begun.begin,
                lsn,
                changes: begun.changes.clone(),
            });
        }
        self.begun = (!last).then_some(begun);
        Ok(())
    }

    /// The end of the log without the parts of an incomplete intent: these have no effect, so the
    /// log may continue in their place.
    pub(crate) fn whole(&self) -> Lsn {
        self.whole
    }

    /// The batch that has a complete intent, but no end.
    pub(crate) fn into_pending(self) -> Option<Intent> {
        self.pending
            .filter(|_| !mutation::on("recovery-forgets-batch"))
    }
}
