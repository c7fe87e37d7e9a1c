//! Replays a recording on simulated drives, in virtual time: measured beside predicted.
//!
//! ```text
//! first pass    events ──▶ how many blocks are live at once; levels of tables; when the measured
//!                  │       part begins
//! second pass   events ──▶ cause, slot ──▶ each drive: FTL, compression, wear      measured
//!                                     └──▶ each drive's miniatures of its flash   predicted
//! ```
//!
//! All drives of a table take the same stream in one pass. A drive gets whole blocks of 4 KiB: a
//! write of a part of a block is a write of the block. What a program's file system would write
//! besides (its own metadata) is in the recording of a real file system, and not in that of the face
//! `files`.
//!
//! **Time** is virtual: each write begins when the one before it is done (queue depth 1). With
//! `--timing` it queues behind garbage collection. The wall-clock times of the recording say only
//! when things happened, for the timeline and for the volume per day.
//!
//! Cost: O(1) a block and drive; some 0.3 µs for a drive that maps pages, and its miniatures as much
//! again.

mod account;
mod device;
mod payloads;
mod settings;
mod slots;
mod survey;
mod timeline;

pub(crate) use self::account::Account;
pub(crate) use self::device::Measured;
pub use self::settings::{Progress, Settings, Warmup};
use self::slots::Slots;
use self::survey::Begin;
pub(crate) use self::survey::Looked;
use crate::causes::{Causes, Classifier};
use crate::error::DriveError;
use crate::recording::event::Write;
use crate::recording::{Event, Reader, Recorded};

/// What a replay found, for the report.
pub(crate) struct Outcome {
    pub(crate) looked: Looked,
    pub(crate) account: Account,
    pub(crate) causes: Causes,
    pub(crate) drives: Vec<Measured>,
}

/// Replays a recording on all drives.
pub(crate) fn replay(settings: &Settings, progress: Progress<'_>) -> Result<Outcome, DriveError> {
    let mut reader = Reader::open(&settings.log)?;
    let looked = survey::look(settings, &mut reader, progress)?;
    reader.rewind();
    let mut drives = Vec::new();
    for target in &settings.devices {
        drives.push(Measured::new(settings, target, &looked, &reader)?);
    }
    let mut run = Run {
        slots: Slots::default(),
        classifier: looked.knowledge.classifier(),
        account: Account::new(&looked),
        lbas: Vec::new(),
        numbers: Vec::new(),
        causes: Vec::new(),
        discards: settings.discards,
    };
    let mut recorded = Recorded::default();
    let mut began = false;
    while reader.next(&mut recorded)? {
        if recorded.seq & 0xffff == 0 {
            progress("replaying", recorded.seq, looked.events);
        }
        if !began && looked.begin.is_at(&recorded, run.account.host_blocks()) {
            began = true;
            drives.iter_mut().for_each(Measured::begin);
            run.account.begin(recorded.wall_ns);
        }
        let gc = || drives.iter_mut().map(Measured::gc_since).collect();
        run.account.timeline.reach(recorded.wall_ns, gc);
        run.event(&recorded, &mut drives)?;
    }
    if !began {
        drives.iter_mut().for_each(Measured::begin);
        run.account.begin(looked.wall_ns);
    }
    run.account
        .timeline
        .end(drives.iter_mut().map(Measured::gc_since).collect());
    let (account, causes) = (run.account, run.classifier.causes().clone());
    Ok(Outcome {
        looked,
        account,
        causes,
        drives,
    })
}

/// The state of the second pass.
struct Run<'a> {
    slots: Slots,
    classifier: Classifier<'a>,
    account: Account,
    /// Of the current write or discard: addresses, slots, and causes by block.
    lbas: Vec<u64>,
    numbers: Vec<u32>,
    causes: Vec<u8>,
    discards: bool,
}

impl Run<'_> {
    fn event(&mut self, recorded: &Recorded, drives: &mut [Measured]) -> Result<(), DriveError> {
        self.classifier.apply(&recorded.event);
        match &recorded.event {
            Event::Write(write) => self.write(recorded, write, drives),
            Event::Discard { node, extents } => {
                self.lbas.clear();
                let all = extents.iter().flat_map(|e| e.lba..e.lba + e.blocks);
                self.lbas.extend(all);
                let cause = match self.lbas.first() {
                    Some(&lba) => self.classifier.of_block(*node, recorded.seq, lba),
                    None => return Ok(()),
                };
                self.account.discard(cause, self.lbas.len() as u64);
                if self.discards {
                    self.discard(drives)?;
                }
                Ok(())
            }
            Event::Flush { node, .. } => {
                let cause = self.classifier.of(*node);
                self.account.flush(cause);
                drives.iter_mut().try_for_each(Measured::flush)
            }
            Event::Link { node, .. }
            | Event::Unlink { node, .. }
            | Event::Rename { node, .. }
            | Event::Resize { node, .. }
            | Event::Allocate { node, .. }
            | Event::Attributes { node, .. }
            | Event::Xattr { node, .. } => {
                let cause = self.classifier.of(*node);
                self.account.metadata(cause);
                Ok(())
            }
            Event::Mark { line } => {
                self.account.mark(line);
                Ok(())
            }
            Event::Make { .. }
            | Event::Free { .. }
            | Event::Punch { .. }
            | Event::Region { .. }
            | Event::Map { .. }
            | Event::FailedFlush { .. }
            | Event::Hint { .. } => Ok(()),
        }
    }

    fn write(
        &mut self,
        recorded: &Recorded,
        write: &Write,
        drives: &mut [Measured],
    ) -> Result<(), DriveError> {
        self.lbas.clear();
        self.numbers.clear();
        self.causes.clear();
        for extent in &write.extents {
            for lba in extent.lba..extent.lba + extent.blocks {
                self.lbas.push(lba);
                self.numbers.push(self.slots.write(lba));
            }
        }
        let by_file = self.classifier.is_by_file();
        let mut cause = self.classifier.of(write.node);
        for &lba in &self.lbas {
            if !by_file {
                cause = self.classifier.of_block(write.node, recorded.seq, lba);
            }
            self.causes.push(cause);
        }
        self.account.write(
            recorded,
            write,
            (&self.lbas, &self.causes),
            &self.classifier,
        );
        for drive in drives.iter_mut() {
            drive.write(recorded, write, (&self.lbas, &self.numbers, &self.causes))?;
        }
        Ok(())
    }

    fn discard(&mut self, drives: &mut [Measured]) -> Result<(), DriveError> {
        self.numbers.clear();
        self.numbers
            .extend(self.lbas.iter().filter_map(|lba| self.slots.discard(*lba)));
        for drive in drives {
            drive.discard(&self.lbas, &self.numbers)?;
        }
        Ok(())
    }
}

impl Begin {
    /// Whether the measured part begins with this event.
    fn is_at(&self, recorded: &Recorded, host_blocks: u64) -> bool {
        match self {
            Begin::Event(seq) => recorded.seq >= *seq,
            Begin::Blocks(blocks) => host_blocks >= *blocks,
        }
    }
}
