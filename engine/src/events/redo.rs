//! The steps of the redo log with its blocks.

use crate::types::Lsn;

/// One step of the redo log: what is in the blocks that it writes, and what it reads back.
///
/// | event | action of `specs/redo_log` | emitted |
/// |---|---|---|
/// | [`WritesBlock`](Redo::WritesBlock) | part of `WriteLog` | before the write, by the leader |
/// | [`WritesWitness`](Redo::WritesWitness) | `WriteWitness` | before the write |
/// | [`WitnessWritten`](Redo::WitnessWritten) | `Close` | after the flush |
/// | [`Read`](Redo::Read) | `OpenLog` | when the log's end is found |
/// | [`Rewrites`](Redo::Rewrites) | part of `OpenLog` | before the write |
/// | [`MarksEnd`](Redo::MarksEnd) | `FlushAgain`, `MarkEnd` | before the write |
/// | [`RewritesSuperblock`](Redo::RewritesSuperblock) | part of `OpenLog` | before the write |
///
/// The other steps are those of [`Event`](super::Event):
///
/// | event | action of `specs/redo_log` |
/// |---|---|
/// | `LogAppended` | `AppendRecord` |
/// | `LogFlushBegins`, `LogFlushed` | `WriteLog`, `CompleteFlush` |
/// | `Shadow::DeviceFlushFailed`, `LogFlushFailed`, `CheckpointFailed` | `FailFlush` |
/// | `Acknowledged` | `Acknowledge` |
/// | `CheckpointBegins` | `BeginCheckpoint` |
/// | `SuperblockWriting` | `WriteSuper`; `RecordEpoch` in recovery |
/// | `SuperblockFlushed` | `FinishCheckpoint`; `Open` in recovery |
/// | `RecoveryBegins` | `FlushMark`; `FlushAgain` if nothing is marked |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Redo {
    /// A block is about to be written, as part of the flush whose `LogFlushBegins` came before.
    WritesBlock {
        /// The epoch.
        epoch: u32,
        /// Its index, counted from the beginning of the log.
        index: u64,
        /// Bytes in use, including the header.
        used: u16,
        /// Offset of the first record that begins in it; 0 if none does.
        first: u16,
        /// The number of blocks just before it in the same flush.
        unforced: u16,
        /// Whether it is the first block of its epoch.
        starts: bool,
        /// Whether nothing more is added to it.
        closed: bool,
    },
    /// A witness is about to be written behind the end of the log.
    WritesWitness {
        /// The epoch.
        epoch: u32,
        /// The index of its block.
        index: u64,
    },
    /// The witness is durable. Nothing more is written.
    WitnessWritten,
    /// Recovery has read the log to its end.
    Read {
        /// Where it has begun to read.
        from: Lsn,
        /// LSN of the last record, or `from` if there is none.
        end: Lsn,
        /// Where the next epoch may begin.
        next_start: Lsn,
        /// The start of the last flush, which may have failed.
        doubtful: Lsn,
        /// Epoch of the last block, or the one that was being written at `from`.
        epoch: u32,
        /// The number of records.
        records: u64,
    },
    /// The blocks of the last flush are about to be written again, unchanged.
    Rewrites {
        /// The start of the first.
        from: Lsn,
        /// Behind the last.
        to: Lsn,
    },
    /// An end mark is about to be written behind the end of the log.
    MarksEnd {
        /// The epoch of this recovery.
        epoch: u32,
        /// The index of its block.
        index: u64,
    },
    /// Both superblocks are about to be written again, unchanged.
    RewritesSuperblock,
}
