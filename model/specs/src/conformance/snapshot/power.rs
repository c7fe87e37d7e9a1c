//! The end of a process, and what the next process reads.

use std::sync::Arc;

use treering_engine::Lsn;
use treering_engine::events::{Event, Snapshot};

use super::checkpoints::number_of;
use super::found::{Found, FoundLeaf, FoundSuper, OnSlot};
use super::judge::{Judge, Life, slot, slot_at};
use crate::conformance::led::{Leads as _, holds};
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
        if !self.step(&crash, |mirror, s| mirror.try_crash(s, n, &left)) {
            let why = format!("Crash, with the log up to {n}, is not enabled");
            return self.claim(Err(why), || holds(&format!("{n} \\in durable..Len(log)")));
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
                self.notes.tally.took("(NotTrimmed)");
                continue;
            }
            let newest = self.state.slot_versions(slot).next_back();
            let why = format!("slot {slot} holds {is:?}, not {newest:?}");
            return self.claim(Err(why), || {
                let is = self.is_in_tla(is);
                holds(&format!("LET left == Newest(slotDev[{slot}]) IN {is}"))
            });
        }
        let newest = self.state.super_versions().next_back();
        if !newest.is_some_and(|name| self.is_super(found.superblock, name)) {
            let found = found.superblock;
            let why = format!("the superblock is {found:?}, not {newest:?}");
            return self.claim(Err(why), || {
                let is = self.is_super_in_tla(found);
                holds(&format!("LET left == Newest(superDev) IN {is}"))
            });
        }
        let mut ahead = self.state.clone();
        if !self.mirror.try_restart(&mut ahead, n) {
            let why = format!("Restart, with the log up to {n}, is not enabled");
            return self.claim(Err(why), || holds(&format!("{n} \\in durable..Len(log)")));
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
        self.step(&restart, |_, s| {
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
        self.same_redo(redo_start)
    }

    fn same_redo(&self, redo_start: Lsn) -> Accepted {
        let (n, redo) = (self.position(redo_start), self.state.superblock().redo);
        let is = same("the redo start", n, redo);
        self.claim(is, || holds(&format!("super.redo = {n}")))
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
                    let why = format!("slot {slot} holds {is:?}, which is none of {all:?}");
                    return self.claim(Err(why), || {
                        let is = self.is_in_tla(is);
                        holds(&format!("\\E left \\in Survivors(slotDev[{slot}]) : {is}"))
                    });
                }
                Some(at) => at,
            });
        }
        let all: Vec<SuperName> = self.state.super_versions().collect();
        let is = found.superblock;
        let at = all.iter().rposition(|name| self.is_super(is, *name));
        let not = || format!("the superblock is {is:?}, which is none of {all:?}");
        left.superblock = self.claim(at.ok_or_else(not), || {
            let is = self.is_super_in_tla(is);
            holds(&format!("\\E left \\in Survivors(superDev) : {is}"))
        })?;
        Ok(left)
    }

    /// What is claimed of the block `left` of a slot.
    fn is_in_tla(&self, found: &OnSlot) -> String {
        match found {
            OnSlot::Zeros => r#"left.is = "zeros""#.to_owned(),
            OnSlot::Image(leaf) => {
                let keys = 1..=super::setup::KEYS;
                let map = keys.map(|k| {
                    let record = leaf.records.iter().find(|record| record.0 == k);
                    let value = record.map_or("Absent".into(), |record| self.value_of(record.1));
                    format!("left.leaf.map[{k}] = {value}")
                });
                let map: Vec<String> = map.collect();
                let (lower, upper) = leaf.fences;
                // No LSN is so large: it stands for one that no record has.
                let lsn = self.number(leaf.lsn);
                let lsn = lsn.map_or("999999999".into(), |lsn| lsn.to_string());
                format!(
                    "left.is = \"image\" /\\ left.leaf.lower = {lower} /\\ \
                     left.leaf.upper = {upper} /\\ left.leaf.lsn = {lsn} /\\ {}",
                    map.join(" /\\ ")
                )
            }
            OnSlot::Chunk {
                number,
                next,
                entries,
            } => {
                let entries = entries.iter().map(|(fence, page, version)| {
                    let page = slot(*page).unwrap_or_default();
                    let version = self.number(*version).unwrap_or_default();
                    format!("Entry({fence}, {page}, {version})")
                });
                let entries: Vec<String> = entries.collect();
                format!(
                    "left.is = \"chunk\" /\\ left = Chunk({}, <<{}>>, {next})",
                    number_of(*number),
                    entries.join(", ")
                )
            }
            OnSlot::Other => "FALSE".to_owned(),
        }
    }

    /// What is claimed of the superblock `left`.
    fn is_super_in_tla(&self, found: FoundSuper) -> String {
        format!(
            "left.number = {} /\\ left.redo = {} /\\ left.head = {} /\\ Len(left.sum) = {}",
            number_of(found.number),
            self.position(found.redo_start),
            found.head + 1,
            found.entries
        )
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
            Err(_) => {
                let why = format!("it reports damage where there is none: {why}");
                self.claim(Err(why), || "FindDamage".into())
            }
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
                    let why = "the chunks are not those that were written".into();
                    return self.claim(Err(why), || {
                        let read = "ChainOf(NewestOf(slotDev), Newest(superDev))";
                        holds(&format!("{read}.ok"))
                    });
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
        self.notes.tally.took("(RestorePage)");
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
                self.same_redo(redo_start)
            }
            Event::RecordRead { lsn, page } => {
                let n = self.number(lsn)?;
                let is = same("the record", n, self.state.redone() + 1);
                self.claim(is, || holds(&format!("redone + 1 = {n}")))?;
                let (is, of, _, right) = self.state.record_of(n).ok_or("it has no record")?;
                let p = slot(page)?;
                let same_page = same("the record's page", p, of);
                self.claim(same_page, || holds(&format!("log[{n}].page = {p}")))?;
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
                    let (p, n) = redone;
                    let why = format!("page {p} has record {n}");
                    let image = self.state.slot_versions(p).next_back();
                    let has = matches!(image, Some(SlotName::Image(leaf)) if leaf.lsn >= n);
                    return match has {
                        true => self.claim(Err(why), || {
                            holds(&format!("Newest(slotDev[{p}]).leaf.lsn < {n}"))
                        }),
                        // The image cannot be used, so the page is not there.
                        false if self.state.lsn_of(p) < n => {
                            self.claim(Err(why), || holds(&format!("page[{p}].lsn >= {n}")))
                        }
                        false => Err(why),
                    };
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
        let redone = self.state.redone();
        let is = same("the last record", redone, self.state.log_len());
        self.claim(is, || {
            holds(&format!("redone = Len(log) /\\ redone = {redone}"))
        })?;
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
            Some((p, n)) => self.claim(Err(format!("page {p} still lacks record {n}")), || {
                holds(&format!("page[{p}].lsn < {n}"))
            }),
            None => Ok(()),
        }
    }
}
