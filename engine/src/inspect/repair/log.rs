//! Reads the undamaged parts of the log: what its records say about keys and key ranges, and where
//! it has holes.
//!
//! [`crate::wal::replay`] stops at the first missing block, and reports damage if something proves
//! that the log went on. Here, reading continues after such a hole, at the first record of the next
//! block. Records behind a hole are as good as those before it; only what happened within the hole
//! is unknown.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::scan::{Found, LogBlock};
use crate::device::{AlignedBuf, Volume};
use crate::layout::Superblock;
use crate::types::{BLOCK_SIZE, IoClass, Lsn, PageId};
use crate::wal::{BLOCK_HEADER, Frame, Intent, Intents, Record, next_frame};

const B: u64 = BLOCK_SIZE as u64;

/// The complete contents of a key range at one moment, from a log record of a split or a merge.
pub(super) struct Part {
    pub(super) lower: Vec<u8>,
    pub(super) upper: Option<Vec<u8>>,
    /// Encoded as by `node::records`.
    pub(super) records: Vec<u8>,
    pub(super) lsn: Lsn,
}

/// The last entry for a key in the log: its value, or its deletion.
pub(super) struct Point {
    pub(super) value: Option<Vec<u8>>,
    pub(super) lsn: Lsn,
}

/// The contents of the log.
#[derive(Default)]
pub(super) struct LogFound {
    pub(super) points: BTreeMap<Vec<u8>, Point>,
    pub(super) parts: Vec<Part>,
    /// Changes of the index in log order: a fence and the page that begins there, or `None` if no
    /// page does any more.
    pub(super) fences: Vec<(Vec<u8>, Option<PageId>)>,
    /// The pages named by records behind the redo start.
    pub(super) named: HashSet<PageId>,
    pub(super) records: u64,
    /// Everything behind this position is in the log, or in the pages to which it was applied.
    pub(super) whole_from: Lsn,
    pub(super) has_holes: bool,
    pub(super) damage: Vec<String>,
    /// The position from which recovery would start.
    pub(super) redo_start: Lsn,
    end: Lsn,
}

/// Reads the log blocks that were found, starting at the checkpoint of `superblock`; without a
/// superblock, the newest blocks that are contiguous. If the superblock is `alone`, a newer
/// checkpoint may have existed and have given up the log before it. Later blocks then count without
/// proof that they follow.
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
            // Log that was given up at checkpoints and is still there adds older records.
            if let Some((start, epoch)) = earlier {
                log = walk(volume, found, (start, epoch), alone, from);
            }
            if earlier.is_none() || log.has_holes || log.end < from {
                log = walk(volume, found, (from, superblock.redo_epoch), alone, from);
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
    // A page is written only once the log is durable up to its LSN.
    let newest = found.images.iter().map(|image| image.lsn).max();
    if let Some(newest) = newest.filter(|newest| *newest > log.end) {
        let (end, newest_at) = (log.end.0, newest.0);
        log.damage.push(format!(
            "the log is damaged: expected it to reach position {newest_at}, at which \
             a page was changed, found its end at {end}"
        ));
        log.has_holes = true;
        log.whole_from = newest;
    }
    log
}

fn at_its_beginning(block: &LogBlock) -> (Lsn, u32) {
    (Lsn(block.header.index * B), block.header.epoch)
}

/// Returns the first block of the contiguous run that ends before block `index`, or `None` if there
/// is no such run.
fn first_that_joins(blocks: &HashMap<u64, LogBlock>, index: u64) -> Option<(Lsn, u32)> {
    let mut first = None;
    let mut at = index;
    while let Some(before) = at.checked_sub(1).and_then(|i| blocks.get(&i)) {
        at = before.header.index;
        first = Some(at_its_beginning(before));
    }
    first
}

/// Reads the log from `start`, which comes with its epoch. Pages count as named from `redo_start`
/// on.
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
        intents: Intents::new(start),
        log: &mut log,
    };
    walk.run();
    let pending = walk.intents.into_pending();
    if let Some(intent) = pending {
        log.complete(intent);
    }
    log
}

impl LogFound {
    /// Completes the batch that the log ends in, as recovery would.
    fn complete(&mut self, intent: Intent) {
        let lsn = self.end;
        for (key, value) in intent.changes.iter() {
            let value = value.map(<[u8]>::to_vec);
            self.points.insert(key.to_vec(), Point { value, lsn });
        }
    }
}

/// A record that began in an earlier block.
enum Carry {
    None,
    Begun(Vec<u8>),
    /// Its beginning is unknown.
    Unknown,
}

struct Walk<'a> {
    volume: &'a Volume,
    blocks: &'a HashMap<u64, LogBlock>,
    from: Lsn,
    redo_start: Lsn,
    epoch: u32,
    /// Whether the previous block is full or closed.
    ended: bool,
    alone: bool,
    carry: Carry,
    /// The start of a hole that the next record will end.
    hole: Option<Lsn>,
    intents: Intents,
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

    /// Returns whether a whole block is the next one of the log.
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

    /// Returns the block with which the log continues, if a later block proves that the block
    /// missing at `index` was durable.
    fn behind_hole(&self, index: u64) -> Option<LogBlock> {
        let later = || {
            let whole = self.blocks.values();
            whole.filter(|b| b.header.index >= index && b.header.epoch >= self.epoch)
        };
        // As when the log is read for recovery: an older epoch proves nothing.
        let newest = later().map(|block| block.header.epoch).max();
        let proves = |block: &LogBlock| {
            let header = &block.header;
            if Some(header.epoch) != newest {
                return false;
            }
            // Within an epoch, a block that is not full is written again before any later block, so
            // what was lost may be the newer version of the block before `index`.
            let lost = if header.epoch == self.epoch && !self.ended {
                index.saturating_sub(1)
            } else {
                index
            };
            header.flush_start() > lost
        };
        if !self.alone && !later().any(proves) {
            return None;
        }
        later().min_by_key(|b| b.header.index).copied()
    }

    /// Takes the records of a block of the log.
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
            // The checksum matches, but the content is not a record. Nothing behind it in this
            // block can be found.
            self.hole.get_or_insert(self.log.end);
            self.carry = Carry::Unknown;
        }
    }

    /// Splits the bytes in use into records. Returns `None` if anything in them is not a record.
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

    /// Ends the hole: the first record behind it begins at `at`.
    fn close_hole(&mut self, at: Lsn) {
        let Some(from) = self.hole.take() else {
            return;
        };
        self.log.has_holes = true;
        self.log.whole_from = at;
        self.log.damage.push(format!(
            "the log is damaged: expected durable records from position {} to {}, found none",
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
            Record::Batch { .. } | Record::BatchEnd => self.intents.take(lsn, &record).ok()?,
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
