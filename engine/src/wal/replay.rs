//! Reads the log back: records in order, from a given position to the legal end.
//!
//! ```text
//! block read as        continue?
//! same epoch           if the block before is full or closed (else its last version is lost: end)
//! greater epoch        if it is the first of its epoch; a record cut before it is dead
//! smaller epoch        end: left over from before a crash
//! same epoch, witness  end, and everything before it was durable
//! end mark             end: an earlier recovery has found it here
//! a later lap          damage: its writer had already freed the log that should begin here
//! anything else        end: never written, of an earlier lap, or torn
//! ```
//!
//! An end is *legal* unless the log itself proves that more was durable. Each block records how
//! many blocks before it were in the same flush. So a block behind the end that was written in a
//! later flush proves that the missing block was once durable. That is [`Error::Damaged`], and so
//! are a missing start and bytes that pass their checksum but are not a record. The reader searches
//! for such proof as far behind the end as two flushes reach, however long they are
//! ([`LogStart::flush_blocks`]), because the next flush may begin with the missing block.
//!
//! Only damage in the very last flush looks like a torn tail, and only if the power failed or the
//! process was killed after it. A store that is closed or dropped leaves a *witness*: a block
//! without records behind the log's end, which states that everything before it is durable. The log
//! ends before it; the next epoch begins in its place.

use super::block::{B, BLOCK_HEADER, Header, NotMine, block_of};
use super::record::{Frame, Record, RecordDamage, next_frame};
use super::{EndReason, LogEnd, LogRegion, LogStart};
use crate::device::{AlignedBuf, Volume};
use crate::error::{Error, Result};
use crate::mutation;
use crate::types::{BLOCK_SIZE, IoClass, Lsn};

/// Number of blocks read at once: 256 KiB.
const CHUNK: u64 = 64;
/// Number of blocks, beyond two flushes, in which proof of damage is searched for: a run of bad
/// blocks may be this long.
const MORE_AHEAD: u64 = 64;

/// Calls `visit` with every record from `start` on and its LSN. Returns where the log ends.
///
/// # Errors
/// [`Error::Damaged`] as described in the module documentation, errors of `visit`, and device
/// failures.
pub fn replay(
    volume: &Volume,
    region: LogRegion,
    start: LogStart,
    visit: impl FnMut(Lsn, Record<'_>) -> Result<()>,
) -> Result<LogEnd> {
    let blocks = Blocks::new(volume, region, start.from, region.blocks);
    walk(blocks, start, End::ToFind, &mut decoded(region, visit))
}

/// As [`replay`], for a log whose end is known from an earlier pass: reads no block behind it.
///
/// # Errors
/// As [`replay`].
pub fn replay_to(
    volume: &Volume,
    region: LogRegion,
    start: LogStart,
    end: &LogEnd,
    visit: impl FnMut(Lsn, Record<'_>) -> Result<()>,
) -> Result<()> {
    let blocks = block_of(end.next_start.0) - block_of(start.from.0);
    if blocks > 0 {
        let blocks = Blocks::new(volume, region, start.from, blocks);
        walk(blocks, start, End::Known, &mut decoded(region, visit))?;
    }
    Ok(())
}

fn decoded(
    region: LogRegion,
    mut visit: impl FnMut(Lsn, Record<'_>) -> Result<()>,
) -> impl FnMut(Lsn, &[u8]) -> Result<()> {
    move |lsn, body| {
        let record = Record::decode(body);
        visit(
            lsn,
            record.map_err(|damage| damaged_record(region, lsn, &damage))?,
        )
    }
}

/// The error for a record that ends at `lsn`.
pub(crate) fn damaged_record(region: LogRegion, lsn: Lsn, damage: &RecordDamage) -> Error {
    damaged(region, block_of(lsn.0 - 1), damage)
}

fn damaged(region: LogRegion, index: u64, damage: &RecordDamage) -> Error {
    Error::Damaged {
        what: format!("log block {index}"),
        lba: region.lba(index),
        expected: "whole records".into(),
        found: damage.to_string(),
    }
}

/// Reads log blocks by index, a chunk at a time.
struct Blocks<'a> {
    volume: &'a Volume,
    region: LogRegion,
    buf: AlignedBuf,
    first: u64,
    loaded: u64,
    /// At most one lap behind the start: no block from here on belongs to this log.
    limit: u64,
}

impl<'a> Blocks<'a> {
    /// Reads at most `blocks` blocks, beginning with the one that contains position `from`.
    fn new(volume: &'a Volume, region: LogRegion, from: Lsn, blocks: u64) -> Blocks<'a> {
        let first = block_of(from.0);
        Blocks {
            volume,
            region,
            buf: AlignedBuf::zeroed(CHUNK.min(blocks) as usize * BLOCK_SIZE),
            first,
            loaded: 0,
            limit: first + blocks,
        }
    }

    /// Block `index`; `None` if a whole lap has been read.
    fn get(&mut self, index: u64) -> Result<Option<&[u8]>> {
        if index >= self.limit {
            return Ok(None);
        }
        if !(self.first..self.first + self.loaded).contains(&index) {
            let to_wrap = self.region.blocks - index % self.region.blocks;
            let room = (self.buf.len() / BLOCK_SIZE) as u64;
            let n = room.min(to_wrap).min(self.limit - index);
            let buf = &mut self.buf[..n as usize * BLOCK_SIZE];
            self.volume
                .read(self.region.lba(index), buf, IoClass::Log)?;
            (self.first, self.loaded) = (index, n);
        }
        let at = (index - self.first) as usize * BLOCK_SIZE;
        Ok(Some(&self.buf[at..at + BLOCK_SIZE]))
    }
}

/// A record that began in an earlier block.
enum Carry {
    None,
    /// The record's bytes so far.
    Begun(Vec<u8>),
    /// The record began before `from`: a dead one of an older epoch.
    Unknown,
}

type Visit<'v> = &'v mut dyn FnMut(Lsn, &[u8]) -> Result<()>;

struct Walk<'v> {
    region: LogRegion,
    from: Lsn,
    visit: Visit<'v>,
    epoch: u32,
    epoch_start: Lsn,
    /// Whether the last accepted block, if any, is full.
    full: bool,
    /// Whether that block is full or closed, so that the next one continues the log.
    ended: bool,
    /// The first block of the flush that wrote the last accepted block.
    last_flush: u64,
    carry: Carry,
    end: Lsn,
    records: u64,
}

/// Whether the end of the log must be found and verified, or is known from an earlier pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    ToFind,
    Known,
}

/// [`replay`] without decoding: `visit` gets the bodies.
fn walk(mut blocks: Blocks<'_>, start: LogStart, end: End, visit: Visit<'_>) -> Result<LogEnd> {
    let LogStart { from, epoch, .. } = start;
    let mut walk = Walk {
        region: blocks.region,
        from,
        visit,
        epoch,
        epoch_start: from,
        full: true,
        ended: true,
        last_flush: block_of(from.0.next_multiple_of(B)),
        carry: Carry::None,
        end: from,
        records: 0,
    };
    let mut index = block_of(from.0);
    let reason = loop {
        let Some(block) = blocks.get(index)? else {
            break EndReason::WholeRegion;
        };
        let header = match Header::read(block, index, walk.region.store) {
            Ok(header) => header,
            Err(NotMine::Unwritten) => {
                walk.check_lap(index, block)?;
                break EndReason::Unwritten;
            }
            Err(NotMine::Torn) => break EndReason::Torn,
        };
        match walk.judge(&header) {
            Some(end) => break end,
            None => walk.take(block, &header)?,
        }
        index += 1;
    };
    walk.check_start(index)?;
    if end == End::ToFind {
        walk.look_ahead(&mut blocks, index, 2 * start.flush_blocks + MORE_AHEAD)?;
    }
    let next_start = walk.end.0.next_multiple_of(B);
    Ok(LogEnd {
        end: walk.end,
        next_start: Lsn(next_start),
        doubtful: Lsn((walk.last_flush * B).min(next_start)),
        epoch: walk.epoch,
        epoch_start: walk.epoch_start,
        records: walk.records,
        reason,
    })
}

impl Walk<'_> {
    /// Decides whether a valid block continues the log. If not, returns why the log ends before it.
    fn judge(&mut self, header: &Header) -> Option<EndReason> {
        if header.epoch < self.epoch {
            return Some(EndReason::StaleEpoch);
        }
        if header.epoch > self.epoch {
            if !header.starts_epoch {
                return Some(EndReason::EpochWithoutStart);
            }
            self.epoch = header.epoch;
            self.epoch_start = Lsn(header.index * B);
            self.carry = Carry::None;
            return None;
        }
        if !header.has_records() {
            return Some(EndReason::Unwritten);
        }
        (!self.ended).then_some(EndReason::Torn)
    }

    fn take(&mut self, block: &[u8], header: &Header) -> Result<()> {
        let used = &block[..header.used];
        self.full = header.used == BLOCK_SIZE;
        let closed = header.closed && !mutation::on("sparse-reader-knows-no-closed");
        self.ended = self.full || closed;
        self.last_flush = header.flush_start().max(block_of(self.from.0));
        let base = header.index * B;
        let mut at = BLOCK_HEADER;
        if header.index == block_of(self.from.0) {
            let offset = (self.from.0 % B) as usize;
            if offset > header.used {
                return Err(self.too_short(header));
            }
            if offset > 0 {
                at = offset;
            } else if header.first != BLOCK_HEADER {
                self.carry = Carry::Unknown;
            }
        }
        if !matches!(self.carry, Carry::None) {
            at = if header.first == 0 {
                header.used
            } else {
                header.first
            };
            self.carried(base, &used[BLOCK_HEADER..at], header)?;
        } else if at == BLOCK_HEADER && header.first != BLOCK_HEADER {
            return Err(self.bad(header, RecordDamage::Cut));
        }
        while at < header.used {
            match next_frame(&used[at..]).map_err(|e| self.bad(header, e))? {
                Frame::Whole { from, to } => {
                    self.found(base + (at + to) as u64, &used[at + from..at + to])?;
                    at += to;
                }
                Frame::Partial if self.full => {
                    self.carry = Carry::Begun(used[at..].to_vec());
                    break;
                }
                // A flush always ends with a whole record.
                Frame::Partial => return Err(self.bad(header, RecordDamage::Cut)),
            }
        }
        Ok(())
    }

    /// Handles the next bytes of a record that began earlier.
    fn carried(&mut self, base: u64, bytes: &[u8], header: &Header) -> Result<()> {
        let carry = std::mem::replace(&mut self.carry, Carry::None);
        let ends_here = header.first != 0 || !self.full;
        let Carry::Begun(mut record) = carry else {
            if !ends_here {
                self.carry = Carry::Unknown;
            }
            return Ok(());
        };
        record.extend_from_slice(bytes);
        match next_frame(&record).map_err(|e| self.bad(header, e))? {
            Frame::Whole { from, to } if to == record.len() => self.found(
                base + (BLOCK_HEADER + bytes.len()) as u64,
                &record[from..to],
            ),
            Frame::Partial if !ends_here => {
                self.carry = Carry::Begun(record);
                Ok(())
            }
            _ => Err(self.bad(header, RecordDamage::Cut)),
        }
    }

    fn found(&mut self, lsn: u64, body: &[u8]) -> Result<()> {
        (self.visit)(Lsn(lsn), body)?;
        self.end = Lsn(lsn);
        self.records += 1;
        Ok(())
    }

    fn bad(&self, header: &Header, damage: RecordDamage) -> Error {
        damaged(self.region, header.index, &damage)
    }

    fn too_short(&self, header: &Header) -> Error {
        self.missing(header.index, format!("{} bytes in use", header.used))
    }

    /// The error for damage before a position that is known to have been durable.
    fn missing(&self, index: u64, found: String) -> Error {
        Error::Damaged {
            what: format!("log block {index}"),
            lba: self.region.lba(index),
            expected: "a valid block, which was once durable".into(),
            found,
        }
    }

    /// Detects a block of a later lap. It was written after the log that is read here had been
    /// freed, so the superblock that names this start is not the newest.
    fn check_lap(&self, index: u64, block: &[u8]) -> Result<()> {
        match Header::read_any(block, self.region.store) {
            Some(header) if header.index > index => {
                let found = format!(
                    "block {}, written after this one had been freed",
                    header.index
                );
                Err(self.missing(index, found))
            }
            _ => Ok(()),
        }
    }

    /// A start inside a block was once durable, so the block must exist.
    fn check_start(&self, index: u64) -> Result<()> {
        if index == block_of(self.from.0) && !self.from.0.is_multiple_of(B) {
            return Err(self.missing(index, "no valid block".into()));
        }
        Ok(())
    }

    /// Searches behind the end for a block which proves that the block at the end was once durable.
    ///
    /// Only blocks of the newest epoch there can prove it. A new epoch may begin before the end of
    /// an older one (see [`super::Intents::whole`]). If it lost its first block, the old version of
    /// that block is the end here, and what is left of the older epoch behind proves that blocks
    /// were durable which the new epoch was right to overwrite.
    fn look_ahead(&self, blocks: &mut Blocks<'_>, end: u64, ahead: u64) -> Result<()> {
        let ahead = if mutation::on("looks-ahead-a-mebibyte") {
            256
        } else {
            ahead
        };
        let older_proves = mutation::on("older-epoch-proves");
        let (mut newest, mut marked, mut proof) = (self.epoch, 0, None);
        for index in end..end.saturating_add(ahead) {
            let Some(block) = blocks.get(index)? else {
                break;
            };
            let Ok(header) = Header::read(block, index, self.region.store) else {
                continue;
            };
            // It proves nothing: its epoch may begin before it, like any other. What lies behind it
            // is older than it.
            if header.end_mark {
                marked = marked.max(if older_proves { 0 } else { header.epoch });
                continue;
            }
            if header.epoch < newest.max(marked) {
                continue;
            }
            if header.epoch > newest && !older_proves {
                (newest, proof) = (header.epoch, None);
            }
            // Within an epoch, a block that is not full is rewritten before a later one is written.
            let ended = self.ended && !mutation::on("sparse-closed-block-suspected");
            let lost = if header.epoch == self.epoch && !ended && !header.witness {
                end - 1
            } else {
                end
            };
            if header.flush_start() > lost {
                proof.get_or_insert((lost, index));
            }
        }
        let Some((lost, index)) = proof else {
            return Ok(());
        };
        let found = format!("no valid block, although block {index} was written later");
        Err(self.missing(lost, found))
    }
}
