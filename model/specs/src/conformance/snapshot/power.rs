//! The end of a process, and what the next process reads.

use std::sync::Arc;

use treering_engine::Lsn;
use treering_engine::events::{Event, Snapshot};

use super::checkpoints::number_of;
use super::found::{Found, FoundLeaf, FoundSuper, OnSlot};
use super::judge::{Judge, Life, slot, slot_at};
use crate::conformance::refused::{Accepted, same};
use crate::mirror::wide::index_snapshot::unbounded::{LeafName, Left, SlotName, SuperName};
use crate::mirror::wide::index_snapshot::{Action, Kind, Phase, State};

impl Judge<'_> {
    /// The power failed.
    pub(super) fn crashed(&mut self, found: &Arc<Found>) -> Accepted {
        self.remember();
        self.ended(found)?;
        let n = self.log_end(found)?;
        let left = self.survivors(found)?;
        let crash = Action::Crash(n as _, 0);
        if !self.step(crash, |mirror, s| mirror.try_crash(s, n, &left)) {
            return Err(format!("Crash, with the log up to {n}, is not enabled"));
        }
        self.begins_to_recover(n);
        self.same_redo_start(found)
    }

    /// The process was ended, and the device lives on.
    pub(super) fn restarted(&mut self, found: &Arc<Found>) -> Accepted {
        self.remember();
        self.ended(found)?;
        let n = self.log_end(found)?;
        for (slot, is) in (1..).zip(&found.slots) {
            if self.holds(slot, is) {
                continue;
            }
            // The process has ended between the announcement of a trim and the trim.
            if self.mirror.undo_trim(&mut self.state, slot) && self.holds(slot, is) {
                self.tally.took("(NotTrimmed)");
                continue;
            }
            let newest = self.state.slot_versions(slot).next_back();
            return Err(format!("slot {slot} holds {is:?}, not {newest:?}"));
        }
        let newest = self.state.super_versions().next_back();
        if !newest.is_some_and(|name| self.is_super(found.superblock, name)) {
            let found = found.superblock;
            return Err(format!("the superblock is {found:?}, not {newest:?}"));
        }
        let mut ahead = self.state.clone();
        if !self.mirror.try_restart(&mut ahead, n) {
            return Err(format!("Restart, with the log up to {n}, is not enabled"));
        }
        self.restarting = Some((n, ahead));
        Ok(())
    }

    /// Whether a slot holds its newest version.
    fn holds(&self, slot: u8, is: &OnSlot) -> bool {
        let newest = self.state.slot_versions(slot).next_back();
        newest.is_some_and(|newest| self.is(is, &newest))
    }

    /// Takes the `Restart` that is due. Until the flush at the beginning of recovery, a power
    /// failure leaves what it would have left before.
    fn restarts(&mut self) -> Accepted {
        let Some((n, ahead)) = self.restarting.take() else {
            return Ok(());
        };
        let restart = Action::Restart(n as _);
        self.step(restart, |_, s| {
            *s = *ahead;
            true
        });
        self.begins_to_recover(n);
        Ok(())
    }

    /// A process has ended. What it was about to write may have been written.
    fn ended(&mut self, found: &Found) -> Accepted {
        self.life = Life::Runs;
        self.restarting = None;
        self.chunk_at_end(found)?;
        if let Some((page, lsn, false)) = self.writing.take() {
            let p = slot(page)?;
            let is_it = |leaf: &FoundLeaf| leaf.page == page && leaf.lsn == lsn;
            let home = &found.slots[usize::from(p) - 1];
            if matches!(home, OnSlot::Image(leaf) if is_it(leaf)) {
                self.take(Action::WritePage(p, false))?;
            }
        }
        let next = self.state.superblock().number + 1;
        if self.chunks.super_announced && number_of(found.superblock.number) == next {
            self.super_written()?;
        }
        self.chunks.super_announced = false;
        Ok(())
    }

    /// The chunk that was announced was written if it is there.
    fn chunk_at_end(&mut self, found: &Found) -> Accepted {
        let Some(chunk) = self.chunks.announced.take() else {
            return Ok(());
        };
        let mut then = self.state.clone();
        let action = chunk.action(false);
        if !self.mirror.try_take(&mut then, action) {
            return Err(format!("{action:?} is not enabled"));
        }
        let (_, last, _, _) = self.state.snapshot();
        let is = &found.slots[usize::from(last) - 1];
        let written = then.slot_versions(last).next_back();
        match written.is_some_and(|written| self.is(is, &written)) {
            true => self.take(action),
            false => Ok(()),
        }
    }

    fn begins_to_recover(&mut self, n: u64) {
        self.appended.retain(|_, m| *m <= n);
        self.to_redo.clear();
        self.redone.clear();
    }

    fn same_redo_start(&self, found: &Found) -> Accepted {
        let Some(redo_start) = found.log.redo_start else {
            return match self.mirror.steps(&self.state).contains(&Action::FindDamage) {
                true => Ok(()),
                false => {
                    let why = found.log.error.as_deref().unwrap_or("no error");
                    Err(format!("recovery does not begin: {why}"))
                }
            };
        };
        let redo = self.state.superblock().redo;
        same("the redo start", self.position(redo_start), redo)
    }

    /// The last record that the log is left with. If there is none behind the redo start, all
    /// before it are left.
    fn log_end(&self, found: &Found) -> Result<u64, String> {
        match (found.log.records.last(), found.log.redo_start) {
            (Some(last), _) => self.number(*last),
            (None, Some(redo_start)) => Ok(self.position(redo_start)),
            // Recovery did not come to the log.
            (None, None) => Ok(self.state.durable()),
        }
    }

    /// The version of each place that is on the device.
    fn survivors(&self, found: &Found) -> Result<Left, String> {
        let mut left = Left::default();
        for (slot, is) in (1..).zip(&found.slots) {
            let all: Vec<SlotName> = self.state.slot_versions(slot).collect();
            let at = all.iter().rposition(|name| self.is(is, name));
            left.slots.push(match at {
                None => {
                    return Err(format!(
                        "slot {slot} holds {is:?}, which is none of {all:?}"
                    ));
                }
                Some(at) => at,
            });
        }
        let all: Vec<SuperName> = self.state.super_versions().collect();
        let is = found.superblock;
        let at = all.iter().rposition(|name| self.is_super(is, *name));
        left.superblock =
            at.ok_or_else(|| format!("the superblock is {is:?}, which is none of {all:?}"))?;
        Ok(left)
    }

    fn is(&self, found: &OnSlot, name: &SlotName) -> bool {
        match (found, name) {
            (OnSlot::Zeros, SlotName::Zeros) => true,
            (OnSlot::Image(leaf), SlotName::Image(name)) => self.is_leaf(leaf, name),
            (
                OnSlot::Chunk {
                    number,
                    next,
                    entries,
                },
                SlotName::Chunk {
                    number: of,
                    next: then,
                    entries: names,
                },
            ) => {
                let mut both = entries.iter().zip(names);
                let same = both.all(|((fence, page, version), name)| {
                    let version = self.number(*version);
                    (*fence, slot(*page), version) == (name.0, Ok(name.1), Ok(name.2))
                });
                same && entries.len() == names.len()
                    && number_of(*number) == *of
                    && *next == u64::from(*then)
            }
            _ => false,
        }
    }

    fn is_leaf(&self, leaf: &FoundLeaf, name: &LeafName) -> bool {
        let mut both = leaf.records.iter().zip(&name.records);
        leaf.fences == (name.lower, name.upper)
            && self.number(leaf.lsn) == Ok(name.lsn)
            && leaf.records.len() == name.records.len()
            && both.all(|((k, version), (key, value))| {
                k == key && self.versions.get(*value as usize) == Some(version)
            })
    }

    fn is_super(&self, found: FoundSuper, name: SuperName) -> bool {
        let sum = self.chunks.recorded.get(&name.number);
        number_of(found.number) == name.number
            && found.head + 1 == u64::from(name.head)
            && found.entries == name.entries
            && sum.is_none_or(|sum| found.sum == *sum)
            && self.position(found.redo_start) == name.redo
    }

    /// The store reports damage. There must be some.
    pub(super) fn damaged(&mut self, why: &str) -> Accepted {
        self.restarts()?;
        match self.take(Action::FindDamage) {
            Ok(()) => {
                self.life = Life::Damaged;
                Ok(())
            }
            Err(_) => Err(format!("it reports damage where there is none: {why}")),
        }
    }

    /// Recovery reads the snapshot.
    pub(super) fn reads(&mut self, event: Snapshot) -> Accepted {
        let state = self.recovering()?;
        let chain = self.mirror.chain(state);
        match event {
            Snapshot::Takes {
                number,
                head,
                entries,
                sum,
            } => {
                let name = state.superblock();
                same("the number", number_of(number), name.number)?;
                same("the first chunk", slot_at(head)?, name.head)?;
                same("the entries", entries, name.entries)?;
                match self.chunks.recorded.get(&name.number) {
                    Some(recorded) => same("the sum", sum, *recorded),
                    None => Ok(()),
                }
            }
            Snapshot::ReadChunk { slot, .. } => {
                let expected = chain.get(self.chunks_read).copied();
                same("the chunk", Some(slot_at(slot)?), expected)?;
                self.chunks_read += 1;
                Ok(())
            }
            Snapshot::Built { entries } => {
                if !self.mirror.is_chain_whole(state) {
                    return Err("the chunks are not those that were written".into());
                }
                same("the chunks", self.chunks_read, chain.len())?;
                same("the entries", entries, state.superblock().entries)
            }
            other => Err(format!("{other:?} is not an event of recovery")),
        }
    }

    /// Recovery has written a page from the journal over a chunk that no superblock names: the page
    /// was freed, and the chunk is of a checkpoint that has not ended.
    pub(super) fn restored(&mut self, page: u8, lsn: Lsn) -> Accepted {
        let image = self.journal.get(&page).cloned();
        let image = image.ok_or("it was never written")?;
        same("the image", self.number(lsn)?, image.lsn)?;
        let state = self.recovering()?;
        let redo = state.superblock().redo;
        if image.lsn <= redo {
            return Err(format!("its home has had it since before record {redo}"));
        }
        if !self.mirror.holds_dead_chunk(state, page) {
            return Err("its home does not hold a chunk that no superblock names".into());
        }
        self.mirror.restore(&mut self.state, page, &image);
        if let Some((_, ahead)) = &mut self.restarting {
            // The flush at the beginning of recovery comes before the restart is taken.
            self.mirror.restore(ahead, page, &image);
            self.mirror.flush(ahead);
        }
        self.tally.took("(RestorePage)");
        Ok(())
    }

    /// The state that recovery begins with.
    fn recovering(&self) -> Result<&State, String> {
        match &self.restarting {
            Some((_, ahead)) => Ok(ahead),
            None if self.is_up() => Err("the store is open".into()),
            None => Ok(&self.state),
        }
    }

    pub(super) fn recovers(&mut self, event: Event) -> Accepted {
        match event {
            Event::RecoveryBegins { redo_start, .. } => {
                self.remember();
                self.restarts()?;
                let redo = self.state.superblock().redo;
                same("the redo start", self.position(redo_start), redo)
            }
            Event::RecordRead { lsn, page } => {
                let n = self.number(lsn)?;
                same("the record", n, self.state.redone() + 1)?;
                let (is, of, _, right) = self.state.record_of(n).ok_or("it has no record")?;
                same("the record's page", slot(page)?, of)?;
                let before = [of, right].map(|p| (p > 0).then(|| self.state.lsn_of(p)));
                self.take(Action::RedoRecord)?;
                for (p, before) in [of, right].into_iter().zip(before) {
                    let changed = before.is_some_and(|before| before < n);
                    if changed && self.state.lsn_of(p) == n && !(is == Kind::Merge && p == right) {
                        self.to_redo.insert((p, n));
                    }
                }
                Ok(())
            }
            Event::PageRedone { page, lsn } => {
                let redone = (slot(page)?, self.number(lsn)?);
                if !self.to_redo.contains(&redone) {
                    return Err(format!("page {} has record {}", redone.0, redone.1));
                }
                self.redone.insert(redone);
                Ok(())
            }
            Event::RedoEnds => self.redo_ends(),
            Event::Opened => same("the phase", Phase::Up, self.state.phase()),
            other => Err(format!("{other:?} is not an event of recovery")),
        }
    }

    fn redo_ends(&mut self) -> Accepted {
        same("the last record", self.state.redone(), self.state.log_len())?;
        if self.mirror.steps(&self.state).contains(&Action::FindDamage) {
            // A page was lost. The engine may find that later, when it reads the page.
            self.take(Action::FindDamage)?;
            self.life = Life::Damaged;
            return Ok(());
        }
        self.take(Action::FinishRedo)?;
        let live = |p: u8| self.state.fences_of(p) != (0, 0);
        let mut lacking = self.to_redo.difference(&self.redone);
        match lacking.find(|(p, _)| live(*p)) {
            Some((p, n)) => Err(format!("page {p} still lacks record {n}")),
            None => Ok(()),
        }
    }
}
