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
    /// LSN of its last part.
    pub(crate) lsn: Lsn,
    /// The changes. Values are as leaves store them: long ones are pointers.
    pub(crate) changes: Batch,
}

/// Follows the batches of a log that is read from its beginning.
#[derive(Debug, Default)]
pub(crate) struct Intents {
    /// The intent that is being read, and the number of its next part.
    begun: Option<(u64, Batch)>,
    pending: Option<Intent>,
}

impl Intents {
    /// Takes the next record of the log. Records that are not about batches change nothing.
    ///
    /// # Errors
    /// [`RecordDamage`] if a part does not hold changes.
    pub(crate) fn take(&mut self, lsn: Lsn, record: &Record<'_>) -> Result<(), RecordDamage> {
        match *record {
            Record::Batch {
                part,
                last,
                changes,
            } => {
                let begun = match self.begun.take() {
                    _ if part == 0 => Some((0, Batch::new())),
                    begun => begun.filter(|(next, _)| *next == part),
                };
                // Without its first parts, because a crash cut them off, it never happens.
                let Some((next, mut batch)) = begun else {
                    return Ok(());
                };
                add_part(&mut batch, changes)?;
                if last || mutation::on("batch-happens-incomplete") {
                    self.pending = Some(Intent {
                        lsn,
                        changes: batch.clone(),
                    });
                }
                self.begun = (!last).then_some((next + 1, batch));
            }
            Record::BatchEnd if !mutation::on("batch-never-ends") => self.pending = None,
            _ => {}
        }
        Ok(())
    }

    /// The batch that has a complete intent, but no end.
    pub(crate) fn into_pending(self) -> Option<Intent> {
        self.pending
            .filter(|_| !mutation::on("recovery-forgets-batch"))
    }

    /// See [`Intents::into_pending`].
    pub(crate) fn pending(&self) -> Option<&Intent> {
        self.pending
            .as_ref()
            .filter(|_| !mutation::on("recovery-forgets-batch"))
    }
}
