//! Checkpoints: the index read entry by entry, the chunks, and the superblock.

use std::collections::BTreeMap;

use treering_engine::Lsn;
use treering_engine::events::{Event, Snapshot, chain_sum};

use super::judge::{Judge, slot, slot_at};
use super::setup::PER_CHUNK;
use crate::conformance::led::{Leads as _, holds};
use crate::conformance::refused::{Accepted, same};
use crate::mirror::wide::index_snapshot::Action;

/// The chunks of a checkpoint.
#[derive(Default)]
pub(super) struct Chunks {
    /// Their checksums.
    sums: Vec<u32>,
    /// The chunk that was announced, until the next event says that it was written.
    pub(super) announced: Option<Announced>,
    /// What the superblock that was announced says: the sum.
    of_super: Option<u32>,
    /// Whether a superblock is about to be written.
    pub(super) super_announced: bool,
    /// The sum in the superblock of each checkpoint, by the spec's number.
    pub(super) recorded: BTreeMap<u64, u32>,
}

/// A chunk that is about to be written.
#[derive(Clone, Copy)]
pub(super) struct Announced {
    next: Option<u8>,
}

impl Announced {
    /// The step that writes it, unless the device loses it.
    pub(super) fn action(self, lost: bool) -> Action {
        match self.next {
            Some(slot) => Action::AddChunk(slot, lost),
            None => Action::EndSnapshot(lost),
        }
    }
}

/// The spec's number of a checkpoint. The engine writes the first superblock twice.
pub(super) fn number_of(number: u64) -> u64 {
    if number <= 1 { 1 } else { number - 1 }
}

impl Judge<'_> {
    pub(super) fn checkpoint(&mut self, event: Event) -> Accepted {
        match event {
            Event::CheckpointBegins { begin } => {
                let begin = self.position(begin);
                let is = same("its beginning", begin, self.state.log_len());
                self.claim(is, || holds(&format!("Len(log) = {begin}")))?;
                self.chunks.sums.clear();
                self.read = None;
                self.take(Action::BeginCheckpoint)
            }
            Event::SuperblockWriting { redo_start, .. } => self.super_writing(redo_start),
            Event::SuperblockWritten { .. } => self.super_written(),
            Event::SuperblockFlushed { .. } => {
                if self.state.is_super_unflushed() {
                    return self.claim(Err("the superblock is not durable".into()), || {
                        holds("Len(superDev) = 1")
                    });
                }
                self.take(Action::FinishCheckpoint)
            }
            Event::LogTruncated { redo_start } => {
                let kept = self.state.oldest();
                let n = self.position(redo_start);
                let is = same("the oldest record", n, kept);
                self.claim(is, || holds(&format!("oldest = {n}")))
            }
            other => Err(format!("{other:?} is not an event of a checkpoint")),
        }
    }

    pub(super) fn snaps(&mut self, event: Snapshot) -> Accepted {
        match event {
            Snapshot::Begins { number, slot } => {
                let next = self.state.superblock().number + 1;
                self.same_number(number, next)?;
                self.take(Action::BeginSnapshot(slot_at(slot)?))
            }
            Snapshot::ReadsFence { fence, page } => {
                let (fence, page) = (self.setup.fence(fence)?, slot(page)?);
                self.reads_fence(fence, page)
            }
            Snapshot::AddsEntry { page, version } => {
                let p = slot(page)?;
                let is = same("the page", p, self.state.entry_page());
                self.claim(is, || holds(&format!("checkpoint.page = {p}")))?;
                let version = self.number(version);
                let version =
                    self.claim(version, || holds("NewEntry.version \\notin 0..Len(log)"))?;
                let known = self.state.version_of(p);
                let is = same("the version", version, known);
                self.claim(is, || holds(&format!("NewEntry.version = {version}")))?;
                let (_, _, entries, _) = self.state.snapshot();
                match entries < PER_CHUNK {
                    true => self.take(Action::AddEntry),
                    // The chunk is full. The next event is that it is written.
                    false => Ok(()),
                }
            }
            Snapshot::WritesChunk {
                number,
                slot,
                next,
                entries,
                sum,
            } => {
                let (_, last, in_memory, _) = self.state.snapshot();
                let expected = self.state.superblock().number + 1;
                self.same_number(number, expected)?;
                let slot = slot_at(slot)?;
                let is = same("the slot", slot, last);
                self.claim(is, || holds(&format!("checkpoint.last = {slot}")))?;
                let is = same("the entries", entries as usize, in_memory);
                self.claim(is, || {
                    holds(&format!("Len(checkpoint.entries) = {entries}"))
                })?;
                self.chunks.sums.push(sum);
                let next = next.map(slot_at).transpose()?;
                self.chunks.announced = Some(Announced { next });
                Ok(())
            }
            Snapshot::WritesSuper {
                number,
                head,
                entries,
                sum,
            } => {
                let (first, _, _, all) = self.state.snapshot();
                let next = self.state.superblock().number + 1;
                self.same_number(number, next)?;
                let head = slot_at(head)?;
                let is = same("the first chunk", head, first);
                self.claim(is, || holds(&format!("checkpoint.head = {head}")))?;
                let is = same("the entries", entries, all as u64);
                self.claim(is, || holds(&format!("Len(checkpoint.sum) = {entries}")))?;
                let sums = self.chunks.sums.iter().copied();
                same("the sum", sum, chain_sum(sums))?;
                self.chunks.of_super = Some(sum);
                Ok(())
            }
            Snapshot::FreesChunk { slot } => match self.state.is_free(slot_at(slot)?) {
                true => Ok(()),
                false => self.claim(Err("a crash may still need it".into()), || {
                    let slot = slot_at(slot).unwrap_or_default();
                    holds(&format!("{slot} \\in free"))
                }),
            },
            other => Err(format!("{other:?} is not an event of a checkpoint")),
        }
    }

    fn same_number(&self, number: u64, next: u64) -> Accepted {
        let number = number_of(number);
        self.claim(same("the number", number, next), || {
            holds(&format!("super.number + 1 = {number}"))
        })
    }

    /// The next entry of the index is read. The engine reads all of them when it comes to the first
    /// one, and adds them one by one.
    fn reads_fence(&mut self, fence: u8, page: u8) -> Accepted {
        let then = match self.read {
            Some(then) if self.mirror.has_fence_left(&self.state, then) => then,
            _ => *self.read.insert(self.state.index_now()),
        };
        let now = self.state.index_now();
        if self.mirror.reads_alike(&self.state, (then, now)) {
            let may = self.step(&Action::ReadFence, |mirror, s| {
                mirror.try_read_fence(s, now, fence, page)
            });
            let not = || format!("ReadFence of fence {fence} and page {page} is not enabled");
            return self.claim(may.then_some(()).ok_or_else(not), || {
                let read = format!("checkpoint'.next = {fence} /\\ checkpoint'.page = {page}");
                format!("ReadFence /\\ {read}")
            });
        }
        let may = (self.mirror).try_read_fence(&mut self.state, then, fence, page);
        if !may {
            return Err(format!(
                "the index did not have fence {fence} with page {page} next when it was read"
            ));
        }
        self.notes.tally.took("(ReadEarlier)");
        Ok(())
    }

    /// Something comes after a chunk was announced: so it was written.
    pub(super) fn written(&mut self) -> Accepted {
        match self.chunks.announced.take() {
            Some(chunk) => self.take(chunk.action(false)),
            None => Ok(()),
        }
    }

    pub(super) fn loses_chunk(&mut self) -> Accepted {
        let chunk = self.chunks.announced.take();
        self.take(chunk.ok_or("nothing was about to be written")?.action(true))
    }

    /// The superblock goes to the device. The spec flushes in this step; here everything must have
    /// been flushed before.
    fn super_writing(&mut self, redo_start: Lsn) -> Accepted {
        if let Some(slot) = self.state.unflushed() {
            return self.claim(Err(format!("slot {slot} is not durable")), || {
                holds(&format!("Len(slotDev[{slot}]) = 1"))
            });
        }
        let sum = self.chunks.of_super.take();
        let sum = sum.ok_or("nothing is known of its snapshot")?;
        let begun = self.state.begun();
        let n = self.position(redo_start);
        let is = same("the redo start", n, begun);
        self.claim(is, || holds(&format!("checkpoint.begin = {n}")))?;
        let next = self.state.superblock().number + 1;
        self.chunks.recorded.insert(next, sum);
        self.chunks.super_announced = true;
        Ok(())
    }

    /// The superblock that was announced has been written.
    pub(super) fn super_written(&mut self) -> Accepted {
        match std::mem::take(&mut self.chunks.super_announced) {
            true => self.take(Action::WriteSuper),
            false => Err("nothing was about to be written".into()),
        }
    }
}
