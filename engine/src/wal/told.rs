//! The events of the log, made from what the log has at hand.

use super::block::Header;
use super::record::Record;
use super::{LogEnd, LogStart};
use crate::device::Volume;
use crate::events::{Event, Redo};
use crate::types::{BLOCK_SIZE, Lsn};

/// The event of a record that is in the buffer.
pub(super) fn appended(record: &Record<'_>, lsn: Lsn) -> Event {
    match *record {
        Record::Put { page, .. } | Record::Delete { page, .. } | Record::Relayout { page, .. } => {
            Event::LogAppended { lsn, page }
        }
        Record::Split { .. } | Record::Merge { .. } | Record::Batch { .. } | Record::BatchEnd => {
            Event::StructureAppended { lsn }
        }
    }
}

/// Reports the blocks that are about to be written.
pub(super) fn blocks(volume: &Volume, bytes: &[u8]) {
    if !volume.is_heard() {
        return;
    }
    for block in bytes.chunks_exact(BLOCK_SIZE) {
        let header = Header::parse(block);
        let writes = Redo::WritesBlock {
            epoch: header.epoch,
            index: header.index,
            used: header.used as u16,
            first: header.first as u16,
            unforced: header.unforced,
            starts: header.starts_epoch,
            closed: header.closed,
        };
        volume.tell(|| Event::Redo(writes));
    }
}

/// The event of a log that was read from `start` to its end.
pub(super) fn read(start: LogStart, end: &LogEnd) -> Event {
    Event::Redo(Redo::Read {
        from: start.from,
        end: end.end,
        next_start: end.next_start,
        doubtful: end.doubtful,
        epoch: end.epoch,
        records: end.records,
    })
}
