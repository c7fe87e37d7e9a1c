//! What the log knows of an open batch: where its intent begins, which checkpoints keep, and that no
//! other writer's records may follow until its end.

use super::log::State;
use super::{Log, Record};
use crate::error::Result;
use crate::mutation;
use crate::types::Lsn;

impl Log {
    /// A batch is about to make sure of its room in the log, which only its own records and those of
    /// changes in structure may take from now on.
    pub(crate) fn prepare_batch(&self) {
        self.state.lock().batch_ahead = true;
    }

    /// Opens a batch, whose intent will begin at the end of the log: checkpoints that begin from
    /// now on keep the log from there.
    pub(crate) fn open_batch(&self) {
        let mut state = self.state.lock();
        state.batch = Some((self.end(), self.epoch()));
    }

    /// Moves the beginning of the open batch to a newer intent of the same, which is complete.
    pub(crate) fn move_batch(&self, begin: Lsn) {
        self.resume_batch(begin, self.epoch());
    }

    /// Opens a batch whose intent was logged in an earlier epoch, or in this one.
    pub(crate) fn resume_batch(&self, begin: Lsn, epoch: u32) {
        self.state.lock().batch = Some((begin, epoch));
    }

    /// Closes the batch, or gives it up.
    pub(crate) fn close_batch(&self) {
        let mut state = self.state.lock();
        (state.batch, state.batch_ahead) = (None, false);
    }

    /// As [`Log::append`], but appends nothing and returns `None` while a batch is prepared or open:
    /// between its intent and its end, the log has no other writer's records.
    pub(crate) fn append_beside_no_batch(&self, record: &Record<'_>) -> Result<Option<Lsn>> {
        let alone = |state: &State| {
            let none = !state.batch_ahead && state.batch.is_none();
            none || mutation::on("relogs-beside-batch")
        };
        self.append_if(record, alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{MemDevice, Volume};
    use crate::options::Options;
    use crate::sync::Arc;
    use crate::types::{Lba, PageId, StoreId};
    use crate::wal::LogRegion;

    #[test]
    fn within_a_batch_nothing_is_logged_beside_it() {
        let volume = Arc::new(Volume::new(Arc::new(MemDevice::new(64))));
        let region = LogRegion {
            start: Lba(0),
            blocks: 64,
            store: StoreId(7),
        };
        let log = Log::create(volume, region, 1, Lsn(0), &Options::default()).expect("makes");
        let record = Record::Delete {
            page: PageId(1),
            key: b"key",
        };
        let beside = || log.append_beside_no_batch(&record).expect("appends");
        assert_eq!(beside(), Some(log.end()));
        log.prepare_batch();
        let end = log.end();
        assert_eq!((beside(), log.end()), (None, end));
        log.open_batch();
        assert_eq!((beside(), log.end()), (None, end));
        log.move_batch(end);
        assert_eq!((beside(), log.end()), (None, end));
        log.close_batch();
        assert_eq!(beside(), Some(log.end()));
        assert!(log.end() > end);
    }
}
