//! The log as far as it is whole: what its records say of keys and key ranges, and where it has
//! holes.
//!
//! [`crate::wal::replay`] stops at the first block that is not there, and takes proof that there
//! was more for damage. Here reading goes on behind such a hole, at the next block's first record.
//! What the log says behind it is as good as before it; what is not known is everything that
//! happened within.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::scan::{Found, LogBlock};
use crate::device::{AlignedBuf, Volume};
use crate::layout::Superblock;
use crate::types::{BLOCK_SIZE, IoClass, Lsn, PageId};
use crate::wal::{BLOCK_HEADER, Frame, Record, next_frame};

const B: u64 = BLOCK_SIZE as u64;

/// What a split or a merge says of a range: all of it, at that moment.
pub(super) struct Part {
    pub(super) lower: Vec<u8>,
    pub(super) upper: Option<Vec<u8>>,
    /// As `node::records` encodes them.
    pub(super) records: Vec<u8>,
    pub(super) lsn: Lsn,
}

/// The last that the log says of a key: its value, or that it is gone.
pub(super) struct Point {
    pub(super) value: Option<Vec<u8>>,
    pub(super) lsn: Lsn,
}

/// What the log says.
#[derive(Default)]
pub(super) struct LogFound {
    pub(super) points: BTreeMap<Vec<u8>, Point>,
    pub(super) parts: Vec<Part>,
    /// Changes of the index in log order: a fence and the page from it on, or none any more.
    pub(super) fences: Vec<(Vec<u8>, Option<PageId>)>,
    /// The pages that it names behind the redo start.
    pub(super) named: HashSet<PageId>,
    pub(super) records: u64,
    /// Everything behind this position is in the log or in what it was applied to.
    pub(super) whole_from: Lsn,
    pub(super) has_holes: bool,
    pub(super) damage: Vec<String>,
    /// Where recovery would begin.
    pub(super) redo_start: Lsn,
    end: Lsn,
}

/// Reads what was found of the log, from the checkpoint of `superblock` on; without one, the newest
/// blocks that join. If it is `alone` there may have been a newer one, before whose checkpoint the
/// log was given up: then what comes later needs no proof.
pub(super) fn read(
    volume: &Volume,
    found: &Found,
    superblock: Option<&Superblock>,
    alone: bool,
) -> LogFound {
    let mut log = LogFound::default();
    match superblock {
        Some(superblock) => {
            let from = superblock.redo_start;
            let earlier = first_that_joins(&found.log, from.0 / B);
            // What was given up at checkpoints and is still there says the more.
            if let Some((start, epoch)) = earlier {
                log = walk(volume, found, (start, epoch), alone, from);
            }
            if earlier.is_none() || log.has_holes || log.end < from {
                log = walk(volume, found, (from, superblock.epoch), alone, from);
            }
        }
        None => {
            let newest = found
                .log
                .values()
                .max_by_key(|b| (b.header.epoch, b.header.index));
            let start = newest.and_then(|b| first_that_joins(&found.log, b.header.index));
            if let Some((start, epoch)) = start.or(newest.map(at_its_beginning)) {
                log = walk(volume, found, (start, epoch), alone, start);
            }
        }
    }
    // A page is written when the log is durable up to its LSN.
    let newest = found.images.iter().map(|image| image.lsn).max();
    if let Some(newest) = newest.filter(|newest| *newest > log.end) {
        let (end, newest_at) = (log.end.0, newest.0);
        log.damage.push(format!(
            "the log is damaged: expected it to go on to position {newest_at}, where a page has been changed, found its \
             end at {end}"
        ));
        log.has_holes = true;
        log.whole_from = newest;
    }
    log
}

fn at_its_beginning(block: &LogBlock) -> (Lsn, u32) {
    (Lsn(block.header.index * B), block.header.epoch)
}

/// The first of the blocks that lie before block `index` without a gap; `None` if there is none.
fn first_that_joins(blocks: &HashMap<u64, LogBlock>, index: u64) -> Option<(Lsn, u32)> {
    let mut first = None;
    let mut at = index;
    while let Some(before) = at.checked_sub(1).and_then(|i| blocks.get(&i)) {
        at = before.header.index;
        first = Some(at_its_beginning(before));
    }
    first
}

/// Reads the log from `start` on, where the epoch is the one that is named with it. Pages count as
/// named from `redo_start` on.
fn walk(
    volume: &Volume,
    found: &Found,
    (start, epoch): (Lsn, u32),
    alone: bool,
    redo_start: Lsn,
) -> LogFound {
    let mut log = LogFound {
        whole_from: start,
        redo_start,
        end: start,
        ..LogFound::default()
    };
    let mut walk = Walk {
        volume,
        blocks: &found.log,
        from: start,
        redo_start,
        epoch,
        ended: true,
        alone,
        carry: Carry::None,
        hole: None,
        log: &mut log,
    };
    walk.run();
    log
}

/// A record that began in an earlier block.
enum Carry {
    None,
    Begun(Vec<u8>),
    /// Its beginning is not known.
    Unknown,
}

struct Walk<'a> {
    volume: &'a Volume,
    blocks: &'a HashMap<u64, LogBlock>,
    from: Lsn,
    redo_start: Lsn,
    epoch: u32,
    /// The block before is full or closed.
    ended: bool,
    alone: bool,
    carry: Carry,
    /// Where a hole began that the next record ends.
    hole: Option<Lsn>,
    log: &'a mut LogFound,
}

impl Walk<'_> {
    fn run(&mut self) {
        let mut index = self.from.0 / B;
        loop {
            match self.blocks.get(&index).copied() {
                Some(block) if self.continues(&block) => self.take(&block),
                _ => {
                    let Some(next) = self.behind_hole(index) else {
                        return;
                    };
                    self.hole.get_or_insert(self.log.end);
                    self.carry = Carry::Unknown;
                    self.epoch = next.header.epoch;
                    self.take(&next);
                    index = next.header.index;
                }
            }
            index += 1;
        }
    }

    /// Whether a whole block is the log's next one.
    fn continues(&mut self, block: &LogBlock) -> bool {
        let header = &block.header;
        if header.epoch == self.epoch {
            return self.ended;
        }
        let begins = header.epoch > self.epoch && header.starts_epoch;
        if begins {
            self.epoch = header.epoch;
            self.carry = Carry::None;
        }
        begins
    }

    /// The block with which the log goes on, if a later one proves that what is missing at `index`
    /// was durable.
    fn behind_hole(&self, index: u64) -> Option<LogBlock> {
        let later = || {
            let whole = self.blocks.values();
            whole.filter(|b| b.header.index >= index && b.header.epoch >= self.epoch)
        };
        let proves = |block: &LogBlock| {
            let header = &block.header;
            // Within an epoch a block that is not full was to be written again before a later one
            // could be.
            let lost = if header.epoch == self.epoch && !self.ended {
                index.saturating_sub(1)
            } else {
                index
            };
            header.index.saturating_sub(u64::from(header.unforced)) > lost
        };
        if !self.alone && !later().any(proves) {
            return None;
        }
        later().min_by_key(|b| b.header.index).copied()
    }

    /// Takes the records of a block that is the log's.
    fn take(&mut self, block: &LogBlock) {
        let header = block.header;
        self.ended = header.used == BLOCK_SIZE || header.closed;
        let mut bytes = AlignedBuf::zeroed(BLOCK_SIZE);
        let read = self.volume.read(block.lba, &mut bytes, IoClass::Log);
        if read.is_err()
            || self
                .records(header.index, header.first, &bytes[..header.used])
                .is_none()
        {
            // A checksum that matches, over what is no record: nothing behind it in this block can
            // be found.
            self.hole.get_or_insert(self.log.end);
            self.carry = Carry::Unknown;
        }
    }

    /// `None` if there is something that is no record.
    fn records(&mut self, index: u64, first: usize, used: &[u8]) -> Option<()> {
        let base = index * B;
        let mut at = BLOCK_HEADER;
        if index == self.from.0 / B {
            let offset = (self.from.0 % B) as usize;
            if offset > used.len() {
                return None;
            }
            if offset > 0 {
                at = offset;
            } else if first != BLOCK_HEADER {
                self.carry = Carry::Unknown;
            }
        }
        match std::mem::replace(&mut self.carry, Carry::None) {
            Carry::None => {}
            Carry::Unknown => {
                if first == 0 {
                    self.carry = Carry::Unknown;
                    return Some(());
                }
                at = at.max(first);
            }
            Carry::Begun(mut record) => {
                at = if first == 0 { used.len() } else { first };
                record.extend_from_slice(&used[BLOCK_HEADER..at]);
                match next_frame(&record).ok()? {
                    Frame::Whole { from, to } => {
                        self.found(Lsn(base + at as u64), &record[from..to])?;
                    }
                    Frame::Partial => {
                        self.carry = Carry::Begun(record);
                        return Some(());
                    }
                }
            }
        }
        while at < used.len() {
            match next_frame(&used[at..]).ok()? {
                Frame::Whole { from, to } => {
                    let lsn = Lsn(base + (at + to) as u64);
                    self.close_hole(Lsn(base + at as u64));
                    self.found(lsn, &used[at + from..at + to])?;
                    at += to;
                }
                Frame::Partial => {
                    self.carry = Carry::Begun(used[at..].to_vec());
                    break;
                }
            }
        }
        Some(())
    }

    /// The first record behind a hole begins at `at`.
    fn close_hole(&mut self, at: Lsn) {
        let Some(from) = self.hole.take() else {
            return;
        };
        self.log.has_holes = true;
        self.log.whole_from = at;
        self.log.damage.push(format!(
            "the log is damaged: expected records that were durable, found none from position {} to {}",
            from.0, at.0
        ));
    }

    fn found(&mut self, lsn: Lsn, body: &[u8]) -> Option<()> {
        let record = Record::decode(body).ok()?;
        let log = &mut *self.log;
        log.records += 1;
        log.end = lsn;
        if lsn > self.redo_start {
            log.named.extend(record.pages());
        }
        match record {
            Record::Put { key, value, .. } => {
                let value = Some(value.to_vec());
                log.points.insert(key.to_vec(), Point { value, lsn });
            }
            Record::Delete { key, .. } => {
                log.points.insert(key.to_vec(), Point { value: None, lsn });
            }
            Record::Split {
                right,
                separator,
                upper,
                records,
                ..
            } => {
                log.fences.push((separator.to_vec(), Some(right)));
                log.parts.push(part(separator, upper, records, lsn));
            }
            Record::Merge {
                right_lower,
                upper,
                records,
                ..
            } => {
                log.fences.push((right_lower.to_vec(), None));
                log.parts.push(part(right_lower, upper, records, lsn));
            }
            Record::Relayout { .. } => {}
        }
        Some(())
    }
}

fn part(lower: &[u8], upper: Option<&[u8]>, records: &[u8], lsn: Lsn) -> Part {
    Part {
        lower: lower.to_vec(),
        upper: upper.map(<[u8]>::to_vec),
        records: records.to_vec(),
        lsn,
    }
}
