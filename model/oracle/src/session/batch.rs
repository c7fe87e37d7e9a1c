//! Batches of a program: writes them, and judges their errors.

use treering_engine::{Batch, Error};

use super::{Session, version_of};
use crate::engine::{Write, size_in_batch};
use crate::finding::{Check, Finding};
use crate::program::{Change, KeyNo};
use crate::reach::{Area, batches};
use crate::reference::{Content, MOST_DOUBTFUL, Written};
use crate::value;

/// The version that change number `place` of the batch with index `at` writes. No other change of
/// the program has it.
fn version_in(at: usize, place: usize) -> u64 {
    match place {
        0 => version_of(at),
        place => (at as u64 + 1) | (place as u64) << 20,
    }
}

/// What the changes of the batch with index `at` write.
pub(super) fn contents(at: usize, changes: &[Change]) -> Vec<(KeyNo, Content)> {
    let each = changes.iter().enumerate();
    each.map(|(place, change)| {
        let written = |len| Written::new(version_in(at, place), len);
        (change.key, change.len.map(written))
    })
    .collect()
}

impl Session<'_> {
    /// Expects batches, if the engine has them.
    pub(super) fn want_batches(&mut self) {
        if self.engine.batch_bytes().is_some() {
            self.tally.reach.want(Area::Step, batches::WRITTEN);
        }
    }

    /// The number of batches that opening the store completed; see
    /// [`Engine::batches_completed`](crate::Engine::batches_completed).
    pub(crate) fn batches_completed(&self) -> u64 {
        let completed = |store: &std::sync::Arc<dyn treering_engine::Kv>| {
            self.engine.batches_completed(&**store)
        };
        self.store.as_ref().and_then(completed).unwrap_or(0)
    }

    /// Writes a batch.
    pub(super) fn write_batch(&mut self, at: usize, changes: &[Change]) -> Result<(), Finding> {
        if self.reference.doubtful() >= MOST_DOUBTFUL {
            return self.reopen(at, None);
        }
        let (mut batch, mut bytes) = (Batch::new(), 0);
        for (place, Change { key, len }) in changes.iter().enumerate() {
            let key = self.program.key(*key);
            bytes += size_in_batch(key.len(), *len, self.engine.long_values());
            match len {
                Some(len) => {
                    let version = version_in(at, place);
                    batch.put(key, value::value(version, *len as usize));
                }
                None => drop(batch.delete(key)),
            }
        }
        let contents = contents(at, changes);
        match self.store().write(&batch) {
            Ok(lsn) => {
                self.reference.wrote_together(&contents, lsn);
                // A batch without changes says nothing about earlier writes.
                if !contents.is_empty() {
                    self.last = lsn;
                }
                self.tally.reach.met(Area::Step, batches::WRITTEN, 1);
                for Change { key, len } in changes {
                    if let Some(len) = len {
                        let key = self.program.key(*key).len();
                        (self.tally.edges).met(&self.engine.limits(), key, *len as usize);
                    }
                }
                self.returned(lsn);
                Ok(())
            }
            Err(e @ Error::BatchTooLarge { .. }) => {
                let most = self.engine.batch_bytes().unwrap_or(0);
                if bytes <= most {
                    let expected = format!(
                        "no error, as these {bytes} bytes are not more than the {most} that a \
                         batch may have"
                    );
                    return Err(self.finding(Check::Error, at, expected, e.to_string()));
                }
                self.tally.reach.met(Area::Step, batches::TOO_LARGE, 1);
                Ok(())
            }
            // A full store has changed nothing, and continues.
            Err(e) if self.is_full(&e, &Write::Batch) => {
                self.tally.full += 1;
                self.refused = true;
                self.tally.reach.met(Area::Fault, batches::REFUSED, 1);
                Ok(())
            }
            Err(e) => {
                self.reference.may_have_written_together(&contents);
                self.tally.reach.met(Area::Fault, batches::FAILED, 1);
                self.failed(at, &e)
            }
        }
    }
}
