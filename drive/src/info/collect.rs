//! The pass over a recording that gathers all statistics.

use std::path::Path;

use rustc_hash::FxHashMap;
use treering_traces::info::Sizes;

use super::blocks::Blocks;
use super::contents::Sampled;
use super::report::{Alignment, CauseInfo, FileInfo, Flushes, InfoReport};
use super::timeline::Timeline;
use crate::causes::rules::Rules;
use crate::causes::{Classifier, Survey};
use crate::error::DriveError;
use crate::recording::event::{FlushKind, Write};
use crate::recording::{Event, Extent, Names, NodeId, PIECE, PieceId, Reader, Recorded};

/// The most files that are reported.
const MOST_FILES: usize = 20;

/// Reads a recording twice and returns what is in it. `causes` are causes of the user, each with a
/// glob of paths; they come before the known ones.
///
/// # Errors
/// Those of [`Reader`], and [`DriveError::Parameter`] for a glob that is none.
pub fn info(path: &Path, causes: &[(String, String)]) -> Result<InfoReport, DriveError> {
    let mut reader = Reader::open(path)?;
    let metadata =
        std::fs::metadata(path).map_err(DriveError::system(path.display().to_string()))?;
    let mut survey = Survey::new(&reader)?;
    let mut recorded = Recorded::default();
    while reader.next(&mut recorded)? {
        survey.note(&recorded)?;
    }
    let knowledge = survey.finish(Rules::new(causes)?);
    reader.rewind();
    let mut report = collect(reader, &mut knowledge.classifier())?;
    report.file = path.display().to_string();
    report.file_bytes = metadata.len();
    Ok(report)
}

/// Tells the causes of events.
pub(super) trait ByCause {
    /// The number of the cause of a write, flush or discard. Called with every event, after `names`
    /// have followed it.
    fn cause(&mut self, names: &Names, recorded: &Recorded) -> u8;

    /// The name of a cause.
    fn name(&self, cause: usize) -> Option<String>;
}

impl ByCause for Classifier<'_> {
    fn cause(&mut self, _: &Names, recorded: &Recorded) -> u8 {
        self.apply(&recorded.event);
        let (node, extents) = match &recorded.event {
            Event::Write(write) => (write.node, &write.extents[..]),
            Event::Discard { node, extents } => (*node, &extents[..]),
            Event::Flush { node, .. } => (*node, &[][..]),
            _ => return 0,
        };
        // On a real file system a write may touch several things: the first decides.
        match extents.first() {
            Some(first) => self.of_block(node, recorded.seq, first.lba),
            None => self.of(node),
        }
    }

    fn name(&self, cause: usize) -> Option<String> {
        self.causes().names().get(cause).cloned()
    }
}

/// The pass itself, without the recording's name and size.
pub(super) fn collect(mut reader: Reader, by: &mut impl ByCause) -> Result<InfoReport, DriveError> {
    let mut collector = Collector::new(Sampled::new(reader.pieces()?));
    let mut recorded = Recorded::default();
    while reader.next(&mut recorded)? {
        collector.names.apply(&recorded.event);
        let cause = by.cause(&collector.names, &recorded);
        collector.add(&recorded, cause)?;
    }
    Ok(collector.finish(&reader, by))
}

#[derive(Default)]
struct File {
    writes: u64,
    bytes: u64,
    flushes: u64,
    cause: u8,
    /// Its path when it was freed.
    path: Option<Vec<u8>>,
}

struct Collector {
    names: Names,
    sampled: Sampled,
    blocks: Blocks,
    timeline: Timeline,
    files: FxHashMap<NodeId, File>,
    causes: Vec<CauseInfo>,
    flushes: Flushes,
    last_flush: Option<(u64, u64)>,
    intervals: Sizes,
    between: Sizes,
    sizes: Sizes,
    alignment: Alignment,
    written: u64,
    marks: u64,
    user_bytes: Option<u64>,
    events: u64,
    duration_ns: u64,
}

impl Collector {
    fn new(sampled: Sampled) -> Self {
        Collector {
            names: Names::new(),
            sampled,
            blocks: Blocks::new(),
            timeline: Timeline::new(),
            files: FxHashMap::default(),
            causes: Vec::new(),
            flushes: Flushes::default(),
            last_flush: None,
            intervals: Sizes::of_intervals(),
            between: Sizes::of_intervals(),
            sizes: Sizes::default(),
            alignment: Alignment::default(),
            written: 0,
            marks: 0,
            user_bytes: None,
            events: 0,
            duration_ns: 0,
        }
    }

    fn cause(&mut self, cause: u8) -> &mut CauseInfo {
        let cause = usize::from(cause);
        if cause >= self.causes.len() {
            self.causes.resize(cause + 1, CauseInfo::default());
        }
        &mut self.causes[cause]
    }

    fn add(&mut self, recorded: &Recorded, cause: u8) -> Result<(), DriveError> {
        self.events += 1;
        self.duration_ns = recorded.wall_ns;
        match &recorded.event {
            Event::Write(write) => {
                self.write(write, recorded.contents(), cause)?;
                let window = self.timeline.at(recorded.wall_ns);
                window.write(cause, u64::from(write.len));
            }
            Event::Flush { node, kind } => self.flush(*node, *kind, recorded.wall_ns, cause),
            Event::Discard { extents, .. } => {
                let blocks = blocks_of(extents);
                self.cause(cause).discarded_blocks += blocks;
                self.blocks.discard(extents, self.written);
                self.timeline.at(recorded.wall_ns).discarded_blocks += blocks;
            }
            Event::Mark { line } => {
                self.marks += 1;
                let number = line.strip_prefix(b"user_bytes ");
                let number = number.and_then(|n| std::str::from_utf8(n).ok()?.trim().parse().ok());
                self.user_bytes = number.or(self.user_bytes);
            }
            Event::Free { node } => {
                let path = self.names.path(*node);
                if let Some(file) = self.files.get_mut(node) {
                    file.path = path;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn write(
        &mut self,
        write: &Write,
        pieces: Option<&[PieceId]>,
        cause: u8,
    ) -> Result<(), DriveError> {
        let len = u64::from(write.len);
        let touched = blocks_of(&write.extents);
        let sum = self.cause(cause);
        sum.writes += 1;
        sum.bytes += len;
        sum.blocks += touched;
        sum.synced_writes += u64::from(write.synced);
        self.sizes.add_many(len, 1);
        self.align(write.offset, len);
        self.blocks
            .write(&write.extents, self.written, write.node, cause);
        self.written += len;
        let file = self.files.entry(write.node).or_default();
        file.writes += 1;
        file.bytes += len;
        file.cause = cause;
        match pieces {
            Some(pieces) => self.sampled.write(pieces, cause),
            None => Ok(()),
        }
    }

    fn align(&mut self, offset: u64, len: u64) {
        let block = PIECE as u64;
        let end = offset.saturating_add(len);
        let to = |unit: u64| offset.is_multiple_of(unit) && end.is_multiple_of(unit);
        let sum = &mut self.alignment;
        match () {
            () if to(block) => sum.blocks += len,
            () if to(512) => sum.sectors += len,
            () => sum.unaligned += len,
        }
        let (first, last) = (offset / block, end / block);
        let (head, tail) = (!offset.is_multiple_of(block), !end.is_multiple_of(block));
        sum.partial_blocks += match first == last {
            true => u64::from(head || tail),
            false => u64::from(head) + u64::from(tail),
        };
    }

    fn flush(&mut self, node: NodeId, kind: FlushKind, wall_ns: u64, cause: u8) {
        *match kind {
            FlushKind::Data => &mut self.flushes.data,
            FlushKind::File => &mut self.flushes.file,
            FlushKind::Directory => &mut self.flushes.directory,
            FlushKind::Drive => &mut self.flushes.drive,
        } += 1;
        self.cause(cause).flushes += 1;
        self.timeline.at(wall_ns).flushes += 1;
        if let Some(file) = self.files.get_mut(&node) {
            file.flushes += 1;
        }
        if let Some((at, written)) = self.last_flush {
            self.intervals
                .add_many(wall_ns.saturating_sub(at) / 1000, 1);
            self.between.add_many(self.written - written, 1);
        }
        self.last_flush = Some((wall_ns, self.written));
    }

    fn finish(mut self, reader: &Reader, by: &impl ByCause) -> InfoReport {
        let name = |cause: usize| by.name(cause).unwrap_or_default();
        let mut total = CauseInfo {
            name: "total".into(),
            ..CauseInfo::default()
        };
        for (number, cause) in self.causes.iter_mut().enumerate() {
            cause.name = name(number);
            (cause.alpha, cause.alpha_blocks) = self.sampled.alpha(number);
            total.writes += cause.writes;
            total.bytes += cause.bytes;
            total.blocks += cause.blocks;
            total.synced_writes += cause.synced_writes;
            total.flushes += cause.flushes;
            total.discarded_blocks += cause.discarded_blocks;
        }
        (total.alpha, total.alpha_blocks) = self.sampled.alpha_of_all();
        let has_events = |c: &CauseInfo| c.writes + c.flushes + c.discarded_blocks > 0;
        let causes = self.causes.iter().enumerate();
        let mut kept: Vec<usize> = causes
            .filter(|(_, c)| has_events(c))
            .map(|(n, _)| n)
            .collect();
        kept.sort_by_key(|n| std::cmp::Reverse(self.causes[*n].bytes));
        let path = |node: NodeId| {
            let freed = self.files.get(&node).and_then(|file| file.path.clone());
            match freed.or_else(|| self.names.path(node)) {
                Some(path) if !path.is_empty() => String::from_utf8_lossy(&path).into_owned(),
                Some(_) => "(the disk)".into(),
                None => format!("(node {})", node.0),
            }
        };
        let of = |node: NodeId, cause: u8| (path(node), name(usize::from(cause)));
        let (overwrites, hot_extents) = self.blocks.finish(of);
        InfoReport {
            schema: InfoReport::SCHEMA,
            file: String::new(),
            file_bytes: 0,
            header: reader.header().clone(),
            complete: reader.truncated().is_none(),
            events: self.events,
            duration_ns: self.duration_ns,
            user_bytes: self.user_bytes,
            marks: self.marks,
            total,
            causes: kept.iter().map(|n| self.causes[*n].clone()).collect(),
            flushes: self.flushes,
            flush_interval_us: self.intervals.stats(),
            flush_bytes: self.between.stats(),
            write_bytes: self.sizes.stats(),
            alignment: self.alignment,
            overwrites,
            hot_extents,
            top_files: top_files(&self.files, of),
            contents: self.sampled.finish(),
            timeline: self.timeline.finish(self.duration_ns, &kept),
        }
    }
}

/// The number of blocks of some extents.
fn blocks_of(extents: &[Extent]) -> u64 {
    extents
        .iter()
        .map(|extent| extent.blocks)
        .fold(0, u64::saturating_add)
}

fn top_files(
    files: &FxHashMap<NodeId, File>,
    of: impl Fn(NodeId, u8) -> (String, String),
) -> Vec<FileInfo> {
    let mut sorted: Vec<(&NodeId, &File)> = files.iter().collect();
    sorted.sort_unstable_by_key(|(node, file)| (std::cmp::Reverse(file.bytes), **node));
    let top = sorted.iter().take(MOST_FILES).map(|(node, file)| {
        let (path, cause) = of(**node, file.cause);
        FileInfo {
            path,
            cause,
            writes: file.writes,
            bytes: file.bytes,
            flushes: file.flushes,
        }
    });
    top.collect()
}
