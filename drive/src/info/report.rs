//! The report's parts.

use serde::Serialize;
use treering_traces::info::SizeStats;

use super::timeline::Window;
use crate::recording::Header;

/// What is in a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InfoReport {
    /// Always [`InfoReport::SCHEMA`].
    pub schema: &'static str,
    /// The file.
    pub file: String,
    /// Its bytes.
    pub file_bytes: u64,
    /// What the recording says of itself.
    pub header: Header,
    /// Whether it has its end; if not, its writer was killed or could not go on.
    pub complete: bool,
    /// Number of events.
    pub events: u64,
    /// Time from the beginning of the recording to its last event, in nanoseconds.
    pub duration_ns: u64,
    /// The last `user_bytes N` among the acknowledgements: what the program says that it was given.
    pub user_bytes: Option<u64>,
    /// Lines that the program acknowledged.
    pub marks: u64,
    /// Sums over all causes.
    pub total: CauseInfo,
    /// Sums by cause; those without events are left out.
    pub causes: Vec<CauseInfo>,
    /// Flushes by what they make durable.
    pub flushes: Flushes,
    /// Time between two flushes of whatever kind, in microseconds.
    pub flush_interval_us: Option<SizeStats>,
    /// Bytes written between two flushes of whatever kind.
    pub flush_bytes: Option<SizeStats>,
    /// Sizes of writes in bytes.
    pub write_bytes: Option<SizeStats>,
    /// How writes lie on blocks.
    pub alignment: Alignment,
    /// How often blocks are written again.
    pub overwrites: Overwrites,
    /// The MiB of the drive that are written most.
    pub hot_extents: Vec<HotExtent>,
    /// The files that are written most.
    pub top_files: Vec<FileInfo>,
    /// Equal and zero contents; `None` if no contents are recorded.
    pub contents: Option<ContentsInfo>,
    /// The recording in windows of equal length.
    pub timeline: Vec<Window>,
}

/// Sums of a cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CauseInfo {
    /// The cause's name.
    pub name: String,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks of 4 KiB that they touch.
    pub blocks: u64,
    /// Writes that were durable when they returned.
    pub synced_writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Blocks that were discarded.
    pub discarded_blocks: u64,
    /// Compressed over uncompressed bytes of whole blocks, each compressed alone by zlib level 1;
    /// `None` if no contents of this cause were sampled.
    pub alpha: Option<f64>,
    /// Number of blocks that `alpha` is from.
    pub alpha_blocks: u64,
}

/// Flushes by what they make durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flushes {
    /// `fdatasync` of a file.
    pub data: u64,
    /// `fsync` of a file.
    pub file: u64,
    /// `fsync` of a directory.
    pub directory: u64,
    /// `syncfs`, or a flush of the disk.
    pub drive: u64,
}

/// How writes lie on sectors and blocks. Bytes, of all that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Alignment {
    /// Of writes that begin and end at multiples of 4096.
    pub blocks: u64,
    /// Of other writes that begin and end at multiples of 512.
    pub sectors: u64,
    /// Of the others.
    pub unaligned: u64,
    /// Blocks that are touched but not covered by a write: a drive must read them, or has them in
    /// its buffer.
    pub partial_blocks: u64,
}

/// How often blocks are written again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Overwrites {
    /// Different blocks that were written.
    pub written_blocks: u64,
    /// Writes of blocks that held nothing: never written before, or discarded since.
    pub first_writes: u64,
    /// Bytes written to the drive between a write of a block and the next write of the same block.
    pub distance_bytes: Option<SizeStats>,
    /// Bytes written to the drive between a write of a block and its discard.
    pub life_bytes: Option<SizeStats>,
    /// Shares of the writes that go to the hottest blocks.
    pub hottest: Vec<Hottest>,
}

/// The blocks that are written most, and their share of the writes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hottest {
    /// Share of the different written blocks.
    pub blocks: f64,
    /// Share of the block writes that they get.
    pub writes: f64,
}

/// A MiB of the drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HotExtent {
    /// Its first block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Writes of its blocks.
    pub block_writes: u64,
    /// Different blocks among them.
    pub written_blocks: u64,
    /// Path of the file that was written there last.
    pub path: String,
    /// Cause of that write.
    pub cause: String,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileInfo {
    /// Its last path.
    pub path: String,
    /// Cause of its last write.
    pub cause: String,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Flushes.
    pub flushes: u64,
}

/// Equal and zero contents. A piece is the part of a write that lies in one block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ContentsInfo {
    /// Pieces with recorded bytes.
    pub pieces: u64,
    /// Those that are zeros.
    pub zero_pieces: u64,
    /// Those that are equal to an earlier one.
    pub equal_pieces: u64,
    /// All pieces over different ones, without zeros; 1 if none are equal.
    pub dedup_ratio: f64,
    /// Share of the different pieces whose compressibility was measured.
    pub sampled: f64,
}

impl InfoReport {
    /// The schema's name and version.
    pub const SCHEMA: &'static str = "treering.drive-info/1";
}
