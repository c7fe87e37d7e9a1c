//! The end of a process, and what the next process reads.

use std::sync::Arc;

use treering_engine::Lsn;

use super::found::{Found, FoundSuper, OnSlot};
use super::judge::{Judge, Life};
use crate::conformance::led::{Leads as _, holds};
use crate::conformance::refused::Accepted;
use crate::mirror::wide::copy_on_write::Action;
use crate::mirror::wide::copy_on_write::unbounded::{Left, SlotName, SuperName};

impl Judge<'_> {
    /// A process has ended. If `restarting` is set, it is restarted with this content.
    pub(super) fn ended(&mut self, restarting: Option<&Arc<Found>>) {
        self.life = Life::Opens;
        self.restarting = restarting.cloned();
    }

    /// The power failed. If another process was about to recover, the crash came before it, since
    /// it wrote nothing new.
    pub(super) fn crashed(&mut self, found: &Arc<Found>) -> Accepted {
        self.remember();
        self.ended(None);
        let n = self.log_end(found)?;
        let left = self.survivors(found)?;
        let crash = Action::Crash(n as _, 0);
        if !self.step(&crash, |mirror, s| mirror.try_crash(s, n, &left)) {
            let why = format!("Crash, with the log up to {n}, is not enabled");
            return self.claim(Err(why), || holds(&format!("{n} \\in durable..Len(log)")));
        }
        self.appended.retain(|_, m| *m <= n);
        self.found_redo_start(found)
    }

    fn found_redo_start(&self, found: &Found) -> Accepted {
        let Some(redo_start) = found.log.redo_start else {
            let why = found
                .log
                .error
                .as_deref()
                .unwrap_or("no error was reported");
            return Err(format!("recovery does not begin: {why}"));
        };
        self.same_redo_start(redo_start)
    }

    /// The last record that the log is left with. If there is none behind the redo start, all
    /// before it are left.
    fn log_end(&self, found: &Found) -> Result<u64, String> {
        match (found.log.records.last(), found.log.redo_start) {
            (Some(last), _) => {
                let n = self.appended.get(last).copied();
                n.ok_or_else(|| format!("{last} is not the LSN of a record"))
            }
            (None, Some(redo_start)) => Ok(self.position(redo_start)),
            (None, None) => Ok(self.state.durable()),
        }
    }

    /// The version of each place that is on the device. Slots that no recovery needs may hold
    /// anything.
    fn survivors(&self, found: &Found) -> Result<Left, String> {
        let needed = self.mirror.needed(&self.state);
        let mut left = Left::default();
        for (slot, is) in (1..).zip(&found.slots) {
            let all: Vec<SlotName> = self.state.slot_versions(slot).collect();
            let at = all.iter().rposition(|name| self.is(*is, *name));
            let at = match at {
                None if needed.contains(&slot) => {
                    let why = format!("slot {slot} holds {is:?}, which is none of {all:?}");
                    return self.claim(Err(why), || self.slot_left(slot, *is));
                }
                None => all.len() - 1,
                Some(at) => at,
            };
            left.slots.push(at);
        }
        let tables: Vec<&[u8]> = self.state.table_versions().collect();
        let is = |table: &&[u8]| {
            let mut both = found.table.iter().zip(*table);
            both.all(|(found, slot)| *found == u64::from(*slot))
        };
        let at = tables.iter().rposition(is);
        let not = || {
            format!(
                "the table is {:?}, which is none of {tables:?}",
                found.table
            )
        };
        left.table.push(self.claim(at.ok_or_else(not), || {
            let slots = found.table.iter().enumerate();
            let slots = slots.map(|(p, slot)| format!("left[p{}] = {slot}", p + 1));
            let slots: Vec<String> = slots.collect();
            let versions = "\\E left \\in Survivors(tableDev[1]) :";
            holds(&format!("{versions} {}", slots.join(" /\\ ")))
        })?);
        for (i, is) in found.supers.iter().enumerate() {
            let all: Vec<SuperName> = self.state.super_versions(i).collect();
            let at = all.iter().rposition(|name| self.is_super(*is, *name));
            let not = || format!("superblock {i} is {is:?}, which is none of {all:?}");
            left.supers[i] = self.claim(at.ok_or_else(not), || self.super_left(i, *is))?;
        }
        Ok(left)
    }

    /// What is claimed of a slot: that a crash may leave this.
    fn slot_left(&self, slot: u8, is: OnSlot) -> String {
        let is = match is {
            OnSlot::Zeros => r#"left.is = "zeros""#.to_owned(),
            OnSlot::Image(page, lsn) => {
                let mut pages = self.setup.pages.iter();
                let p = pages.position(|known| known.id == page).unwrap_or_default();
                // No image has LSN 0: it stands for one that no record has.
                let n = self.number(p, lsn).unwrap_or(0);
                format!(
                    r#"left.is = "image" /\ left.page = p{} /\ left.lsn = {n}"#,
                    p + 1
                )
            }
            OnSlot::Snapshot(number) => {
                let number = number.saturating_sub(self.ahead);
                format!(r#"left.is = "snapshot" /\ left.number = {number}"#)
            }
            OnSlot::Other => "FALSE".to_owned(),
        };
        holds(&format!("\\E left \\in Survivors(slotDev[{slot}]) : {is}"))
    }

    /// What is claimed of a superblock: that a crash may leave this.
    fn super_left(&self, i: usize, is: Option<FoundSuper>) -> String {
        let is = is.map(|found| {
            let number = found.number.saturating_sub(self.ahead);
            let redo = self.position(found.redo_start);
            format!(
                "left.number = {number} /\\ left.redo = {redo} /\\ left.snapshot = {}",
                found.snapshot + 1
            )
        });
        let is = is.unwrap_or_else(|| "FALSE".to_owned());
        holds(&format!("\\E left \\in SuperSurvivors({i}) : {is}"))
    }

    fn is(&self, found: OnSlot, name: SlotName) -> bool {
        match (found, name) {
            (OnSlot::Zeros, SlotName::Zeros) => true,
            (OnSlot::Image(page, lsn), SlotName::Image(p, n)) => {
                self.setup.pages[p].id == page && self.number(p, lsn) == Ok(n)
            }
            (OnSlot::Snapshot(number), SlotName::Snapshot(n)) => number == n + self.ahead,
            _ => false,
        }
    }

    fn is_super(&self, found: Option<FoundSuper>, name: SuperName) -> bool {
        found.is_some_and(|found| {
            let built = found.number < self.setup.newest.number;
            let snapshot = built || found.snapshot + 1 == u64::from(name.snapshot);
            found.number == name.number + self.ahead
                && self.position(found.redo_start) == name.redo
                && snapshot
        })
    }

    /// Takes `Restart`. This also happens after a crash, since the engine does not know whether the
    /// power failed.
    pub(super) fn recovery_begins(&mut self, redo_start: Lsn) -> Accepted {
        self.remember();
        if self.life != Life::Opens {
            return Err("the store is open".into());
        }
        let n = match self.restarting.take() {
            Some(found) => self.log_end(&found)?,
            None => self.state.log_len(),
        };
        let restart = Action::Restart(n as _);
        if !self.step(&restart, |mirror, s| mirror.try_restart(s, n)) {
            let why = format!("Restart, with the log up to {n}, is not enabled");
            return self.claim(Err(why), || holds(&format!("{n} \\in durable..Len(log)")));
        }
        self.appended.retain(|_, m| *m <= n);
        self.same_redo_start(redo_start)?;
        self.read = self.state.redo_start();
        self.life = Life::Runs;
        Ok(())
    }
}
