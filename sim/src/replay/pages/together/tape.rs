//! What a store was asked for and what it asked of its drive, call by call.

use treering_engine::device::DeviceError;
use treering_engine::{Durability, IoClass, Lba, Options, Task};

use crate::drive::{SimDrive, SizedWrite};
use crate::replay::virtual_time::Fed;
use treering_engine::BLOCK_SIZE;
use treering_engine::device::BlockRead;

/// A request to the drive, or the end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A read of one or more blocks.
    Read(Range),
    /// A write; the sizes of its blocks are the next ones of the tape.
    Write(Range),
    /// So many reads come next, which are one request.
    Reads(u32),
    /// So many writes come next, which are one request.
    Writes(u32),
    Trim(Range),
    Flush,
    End(Call),
}

/// Blocks, and the class of their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) lba: u64,
    pub(super) blocks: u32,
    pub(super) class: IoClass,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// The store was created.
    Opened,
    /// The source was asked for the next operation.
    Fed(Fed),
    /// An operation was done.
    Operated {
        /// Whether it has an LSN that a client may wait for.
        waits: bool,
        begun: Begun,
    },
    /// The store was asked what is due.
    Due(Option<Task>, Begun),
    Pumped(Task, Begun),
    Drained(Begun),
}

/// What the clock had to do with a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Begun {
    /// Whether the store's interval was over when the call began, if the call looks at that.
    pub(super) over: Option<bool>,
    /// Whether it began anew.
    pub(super) anew: bool,
}

/// The store's interval on a clock: all that the time decides (`Store::intervals_begun`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    length_ns: Option<u64>,
    began_ns: u64,
}

impl Interval {
    /// The interval of a store that is opened at time 0.
    pub(super) fn of(engine: &Options) -> Interval {
        Interval {
            length_ns: match engine.durability {
                Durability::Grouped(interval) => Some(interval.0),
                Durability::PerCommit | Durability::Deferred => None,
            },
            began_ns: 0,
        }
    }

    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        let length = self.length_ns.unwrap_or(u64::MAX);
        now_ns.saturating_sub(self.began_ns) >= length
    }

    pub(super) fn begin(&mut self, now_ns: u64) {
        self.began_ns = now_ns;
    }
}

/// The part of a recording that the other drives have not had yet.
#[derive(Debug, Default)]
pub(super) struct Tape {
    pub(super) entries: Vec<Entry>,
    /// The compressed sizes of written blocks.
    pub(super) payloads: Vec<u16>,
    /// Writes of one request overlapped, so that sizes are not known.
    pub(super) is_torn: bool,
}

impl Tape {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.payloads.clear();
    }
}

/// A place in a tape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) entry: usize,
    payload: usize,
}

impl Tape {
    /// Asks `drive` for everything up to the end of the next call. `buffer` is for what is read.
    ///
    /// # Errors
    /// The drive's. `None` if the tape ends before.
    pub(super) fn play(
        &self,
        at: &mut Place,
        drive: &dyn SimDrive,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Call>, DeviceError> {
        while let Some(entry) = self.next(at) {
            match entry {
                Entry::End(call) => return Ok(Some(call)),
                Entry::Read(range) => read(drive, &[range], buffer)?,
                Entry::Reads(n) => {
                    let ranges: Vec<Range> = (0..n).filter_map(|_| self.range(at)).collect();
                    read(drive, &ranges, buffer)?;
                }
                Entry::Write(range) => drive.write_sized(self.sized(at, range))?,
                Entry::Writes(n) => {
                    let mut writes = Vec::with_capacity(n as usize);
                    for _ in 0..n {
                        if let Some(range) = self.range(at) {
                            writes.push(self.sized(at, range));
                        }
                    }
                    drive.write_batch_sized(&writes)?;
                }
                Entry::Trim(range) => drive.trim(Lba(range.lba), u64::from(range.blocks))?,
                Entry::Flush => drive.flush()?,
            }
        }
        Ok(None)
    }

    fn next(&self, at: &mut Place) -> Option<Entry> {
        let entry = self.entries.get(at.entry).copied();
        at.entry += 1;
        entry
    }

    fn range(&self, at: &mut Place) -> Option<Range> {
        match self.next(at)? {
            Entry::Read(range) | Entry::Write(range) => Some(range),
            _ => None,
        }
    }

    fn sized(&self, at: &mut Place, range: Range) -> SizedWrite<'_> {
        let end = at.payload + range.blocks as usize;
        let payloads = self.payloads.get(at.payload..end).unwrap_or_default();
        at.payload = end;
        SizedWrite {
            lba: range.lba,
            payloads,
            class: range.class,
            label: 0,
        }
    }
}

/// Reads as one request.
fn read(drive: &dyn SimDrive, ranges: &[Range], buffer: &mut Vec<u8>) -> Result<(), DeviceError> {
    let bytes = |range: &Range| range.blocks as usize * BLOCK_SIZE;
    let all: usize = ranges.iter().map(bytes).sum();
    if buffer.len() < all {
        buffer.resize(all, 0);
    }
    let mut rest = &mut buffer[..all];
    if let [range] = ranges {
        return drive.read(Lba(range.lba), rest, range.class);
    }
    let mut reads = Vec::with_capacity(ranges.len());
    for range in ranges {
        let (buf, more) = rest.split_at_mut(bytes(range));
        rest = more;
        reads.push(BlockRead {
            lba: Lba(range.lba),
            buf,
            class: range.class,
        });
    }
    drive.read_batch(&mut reads)
}
