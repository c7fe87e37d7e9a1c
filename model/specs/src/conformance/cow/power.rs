//! The end of a process, and what the next process reads.

use std::sync::Arc;

use treering_engine::Lsn;

use super::found::{Found, FoundSuper, OnSlot};
use super::judge::{Judge, Life};
use crate::conformance::refused::{Accepted, same};
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
        if !self.step(crash, |mirror, s| mirror.try_crash(s, n, &left)) {
            return Err(format!("Crash, with the log up to {n}, is not enabled"));
        }
        self.appended.retain(|_, m| *m <= n);
        self.same_redo_start(found)
    }

    fn same_redo_start(&self, found: &Found) -> Accepted {
        let Some(redo_start) = found.log.redo_start else {
            let why = found
                .log
                .error
                .as_deref()
                .unwrap_or("no error was reported");
            return Err(format!("recovery does not begin: {why}"));
        };
        let redo_start = self.position(redo_start);
        same("the redo start", redo_start, self.state.redo_start())
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
                    return Err(why);
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
        left.table.push(at.ok_or_else(|| {
            format!(
                "the table is {:?}, which is none of {tables:?}",
                found.table
            )
        })?);
        for (i, is) in found.supers.iter().enumerate() {
            let all: Vec<SuperName> = self.state.super_versions(i).collect();
            let at = all.iter().rposition(|name| self.is_super(*is, *name));
            left.supers[i] =
                at.ok_or_else(|| format!("superblock {i} is {is:?}, which is none of {all:?}"))?;
        }
        Ok(left)
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
        if !self.step(restart, |mirror, s| mirror.try_restart(s, n)) {
            return Err(format!("Restart, with the log up to {n}, is not enabled"));
        }
        self.appended.retain(|_, m| *m <= n);
        let redo_start = self.position(redo_start);
        same("the redo start", redo_start, self.state.redo_start())?;
        self.read = self.state.redo_start();
        self.life = Life::Runs;
        Ok(())
    }
}
