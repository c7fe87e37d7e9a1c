//! Counts of the measured part by cause, file and time.

use rustc_hash::FxHashMap;
use treering_engine::BLOCK_SIZE;

use super::survey::Looked;
use super::timeline::Timeline;
use crate::causes::{CauseId, Classifier};
use crate::recording::Recorded;
use crate::recording::event::Write;

/// The beginning of lines that the drive itself adds.
const OURS: &[u8] = b"treering: ";

/// What a cause did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// Bytes as the program or the file system wrote them.
    pub(crate) bytes: u64,
    /// Blocks that reached the drive.
    pub(crate) blocks: u64,
    pub(crate) writes: u64,
    pub(crate) flushes: u64,
    pub(crate) discarded_blocks: u64,
    /// Changes of names, sizes and attributes.
    pub(crate) metadata: u64,
    /// Whether it is of the file system itself, not of a file.
    pub(crate) of_file_system: bool,
}

/// What was written to a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileTotals {
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) cause: CauseId,
    pub(crate) bytes: u64,
    pub(crate) blocks: u64,
}

/// All counts.
pub(crate) struct Account {
    /// Blocks since the recording began.
    all_blocks: u64,
    pub(crate) causes: Vec<Totals>,
    pub(crate) files: FxHashMap<u64, FileTotals>,
    /// The last line `user_bytes N` of the program, and the last one before the measured part.
    said_bytes: Option<u64>,
    said_before: u64,
    pub(crate) marks: u64,
    pub(crate) timeline: Timeline,
    end_ns: u64,
}

impl Account {
    pub(super) fn new(looked: &Looked) -> Account {
        Account {
            all_blocks: 0,
            causes: Vec::new(),
            files: FxHashMap::default(),
            said_bytes: None,
            said_before: 0,
            marks: 0,
            timeline: Timeline::new(0, looked.wall_ns),
            end_ns: looked.wall_ns,
        }
    }

    /// Begins the measured part.
    pub(super) fn begin(&mut self, wall_ns: u64) {
        *self = Account {
            all_blocks: self.all_blocks,
            causes: Vec::new(),
            files: FxHashMap::default(),
            said_bytes: None,
            said_before: self.said_bytes.unwrap_or(0),
            marks: 0,
            timeline: Timeline::new(wall_ns, self.end_ns),
            end_ns: self.end_ns,
        };
    }

    /// Blocks that the host has written since the recording began.
    pub(super) fn host_blocks(&self) -> u64 {
        self.all_blocks
    }

    fn of(&mut self, cause: CauseId) -> &mut Totals {
        let cause = usize::from(cause);
        if cause >= self.causes.len() {
            self.causes.resize(cause + 1, Totals::default());
        }
        &mut self.causes[cause]
    }

    pub(super) fn write(
        &mut self,
        recorded: &Recorded,
        write: &Write,
        (lbas, causes): (&[u64], &[u8]),
        classifier: &Classifier<'_>,
    ) {
        self.all_blocks += lbas.len() as u64;
        let Some(&first) = causes.first() else {
            return;
        };
        self.of(first).writes += 1;
        if classifier.is_by_file() {
            let file = Some(write.node.0);
            let counted = (u64::from(write.len), lbas.len() as u64);
            self.add((first, false), file, counted, classifier);
            return;
        }
        let block = BLOCK_SIZE as u64;
        let (from, to) = (write.offset, write.offset + u64::from(write.len));
        for ((at, &lba), &cause) in (from / block..).zip(lbas).zip(causes) {
            let bytes = to.min((at + 1) * block) - from.max(at * block);
            let file = classifier.file_of(recorded.seq, lba);
            let kind = (cause, classifier.is_of_file_system(cause));
            self.add(kind, file, (bytes, 1), classifier);
        }
    }

    fn add(
        &mut self,
        (cause, of_file_system): (CauseId, bool),
        file: Option<u64>,
        (bytes, blocks): (u64, u64),
        classifier: &Classifier<'_>,
    ) {
        let totals = self.of(cause);
        totals.bytes += bytes;
        totals.blocks += blocks;
        totals.of_file_system = of_file_system;
        self.timeline.write(cause, blocks * BLOCK_SIZE as u64);
        if let Some(key) = file {
            let file = self.files.entry(key).or_insert_with(|| FileTotals {
                path: classifier.path_of_file(key),
                cause,
                ..FileTotals::default()
            });
            file.bytes += bytes;
            file.blocks += blocks;
        }
    }

    pub(super) fn flush(&mut self, cause: CauseId) {
        self.of(cause).flushes += 1;
    }

    pub(super) fn discard(&mut self, cause: CauseId, blocks: u64) {
        self.of(cause).discarded_blocks += blocks;
    }

    pub(super) fn metadata(&mut self, cause: CauseId) {
        self.of(cause).metadata += 1;
    }

    /// A line of the program.
    pub(super) fn mark(&mut self, line: &[u8]) {
        if line.starts_with(OURS) {
            return;
        }
        self.marks += 1;
        let said = std::str::from_utf8(line).ok();
        let number = said.and_then(|line| line.strip_prefix("user_bytes "));
        if let Some(bytes) = number.and_then(|n| n.trim().parse().ok()) {
            self.said_bytes = Some(bytes);
        }
    }

    /// The program's own bytes in the measured part: what it said last, less what it had said
    /// before. `None` if it said nothing.
    pub(crate) fn user_bytes(&self) -> Option<u64> {
        self.said_bytes
            .map(|said| said.saturating_sub(self.said_before))
    }

    /// Sums over the causes.
    pub(crate) fn sum(&self, of: impl Fn(&Totals) -> u64) -> u64 {
        self.causes.iter().map(of).sum()
    }
}
