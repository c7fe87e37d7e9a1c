//! A recording as a trace: `treering import drive`.
//!
//! Blocks become keys as those of all block traces do: eight bytes, the device (0) in the first
//! two, the block in the others. A write is a put of each block that it touches; a discard deletes
//! the blocks that hold something.

use std::path::Path;

use rustc_hash::FxHashSet;
use treering_traces::import::Progress;
use treering_traces::{Blocks, Header, Op, OpKind, TraceError, Writer};

use crate::error::DriveError;
use crate::recording::{Event, Extent, Reader, Recorded, Truncated};

/// Bytes of a key.
const KEY: u64 = 8;

/// The blocks that a key can name.
const MOST_BLOCKS: u64 = 1 << 48;

/// Progress is told after this many events.
const TELL: u64 = 1 << 15;

/// What an import did.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The trace's header.
    pub header: Header,
    /// Events that were read.
    pub events: u64,
    /// Flushes, which have no counterpart.
    pub flushes: u64,
    /// Discards of blocks that held nothing, which have none either; in blocks.
    pub empty_discards: u64,
    /// How a block is replayed.
    pub blocks: Blocks,
    /// Where the recording was cut off, if it was.
    pub truncated: Option<Truncated>,
    /// Whether `progress` ended the import; then no trace was written.
    pub interrupted: bool,
}

/// Writes the trace `output` from the recording `input`. Each put has a value of `value_size`
/// bytes. `progress` is told the bytes of the recording so far and in all, and may end the import.
///
/// # Errors
/// Those of [`Reader`]; those of [`Writer`], as [`DriveError::Trace`]; [`DriveError::Bad`] if a
/// block has a larger number than a key can hold.
pub fn import(
    input: &Path,
    output: &Path,
    value_size: u32,
    progress: &mut Progress<'_>,
) -> Result<Imported, DriveError> {
    let mut reader = Reader::open(input)?;
    let file_name = input.file_name().unwrap_or_default().to_string_lossy();
    let name = file_name.split('.').find(|part| !part.is_empty());
    let mut header = Header::named(
        name.unwrap_or("drive"),
        format!("imported from drive: {file_name}"),
    );
    header.addresses = true;
    let mut trace = Trace {
        writer: Writer::create(output, header)?,
        op: Op {
            key: vec![0; KEY as usize],
            ..Op::default()
        },
        value_size,
        full: FxHashSet::default(),
        origin: None,
        empty_discards: 0,
    };
    let (mut recorded, mut events, mut flushes, mut interrupted) =
        (Recorded::default(), 0_u64, 0, false);
    while !interrupted && reader.next(&mut recorded)? {
        events += 1;
        match &recorded.event {
            Event::Write(write) => {
                trace.begin(OpKind::Put, recorded.wall_ns);
                trace.blocks(&write.extents, input, recorded.seq)?;
            }
            Event::Discard { extents, .. } => {
                trace.begin(OpKind::Delete, recorded.wall_ns);
                trace.blocks(extents, input, recorded.seq)?;
            }
            Event::Flush { .. } => flushes += 1,
            _ => {}
        }
        if events.is_multiple_of(TELL) {
            let (done, total) = reader.position();
            interrupted = progress(done, total).is_break();
        }
    }
    let blocks = Blocks::as_records_of(KEY + u64::from(value_size));
    Ok(Imported {
        events,
        flushes,
        empty_discards: trace.empty_discards,
        blocks,
        truncated: reader.truncated(),
        interrupted,
        header: match interrupted {
            true => Header::named("", ""),
            false => trace.writer.finish()?,
        },
    })
}

struct Trace {
    writer: Writer,
    op: Op,
    value_size: u32,
    /// Blocks that hold something.
    full: FxHashSet<u64>,
    /// Time of the first operation.
    origin: Option<u64>,
    empty_discards: u64,
}

impl Trace {
    fn begin(&mut self, kind: OpKind, wall_ns: u64) {
        self.op.kind = kind;
        self.op.value_len = match kind {
            OpKind::Put => self.value_size,
            _ => 0,
        };
        let origin = *self.origin.get_or_insert(wall_ns);
        self.op.time_ns = Some(wall_ns.saturating_sub(origin));
    }

    fn blocks(&mut self, extents: &[Extent], file: &Path, seq: u64) -> Result<(), DriveError> {
        for extent in extents {
            let end = extent.lba.saturating_add(extent.blocks);
            if end > MOST_BLOCKS {
                return Err(DriveError::Bad {
                    file: file.into(),
                    place: format!("event {seq}"),
                    expected: format!("blocks below {MOST_BLOCKS}"),
                    found: format!("{} from {}", extent.blocks, extent.lba),
                });
            }
            for block in extent.lba..end {
                self.block(block)?;
            }
        }
        Ok(())
    }

    fn block(&mut self, block: u64) -> Result<(), TraceError> {
        if self.op.kind == OpKind::Put {
            self.full.insert(block);
        } else if !self.full.remove(&block) {
            self.empty_discards += 1;
            return Ok(());
        }
        self.op.key.copy_from_slice(&block.to_be_bytes());
        self.writer.write(&self.op)
    }
}
