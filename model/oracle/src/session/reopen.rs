//! Closes a session's store, or cuts its power, then opens what is left and judges it.

use treering_engine::Lsn;
use treering_engine::device::RequestKind;

use super::{Place, Session};
use crate::finding::{Check, Finding};
use crate::medium::{Medium, When};
use crate::program::{Keep, KeyNo};
use crate::reach::{Area, batches};
use crate::reference::Content;

impl Session<'_> {
    /// Drops the store, cuts the power if requested, opens what is left, and judges it.
    pub(super) fn reopen(&mut self, at: usize, cut: Option<Keep>) -> Result<(), Finding> {
        let cut = match cut {
            // A process that is to be killed soon is killed now, rather than while it closes.
            None if self.armed && self.engine.can_be_killed() => Some(Keep::Newest),
            None if self.openings % 3 == 2 => self.close(at)?,
            cut => cut,
        };
        let check = self.reopening(cut.is_some());
        if cut.is_none() {
            self.note_and_drop();
            let dark = self.place.medium().is_some_and(Medium::power_is_cut);
            let heard = !dark && !self.starved && !self.is_troubled();
            if heard && self.engine.keeps_all_when_dropped() {
                self.reference.acknowledge();
            }
        }
        let mut keep = cut;
        let mut why = String::new();
        // Scheduled failures may strike while the store is opened or read, each kind once. The
        // medium may also be full, and the power may be cut.
        for _ in 0..RequestKind::ALL.len() + 2 {
            if let Some(keep) = keep.take() {
                // Before the store is dropped, since an engine that writes when it is dropped would
                // be closed, not crashed.
                self.lose_power(keep);
            }
            self.note_and_drop();
            if !self.armed && self.openings.is_multiple_of(4) {
                self.read_only(at, check)?;
            }
            let failed = self.failures();
            match self.open_and_read() {
                Ok(found) => {
                    self.tally.reopens += 1;
                    return self.judge_reopened(at, check, found);
                }
                Err(e) => why = e,
            }
            if self.starved {
                // There may be no space for what recovery writes, but reading needs none.
                if !self.armed {
                    self.read_only(at, check)?;
                }
                self.starve(false);
                continue;
            }
            if self.place.medium().is_some_and(Medium::power_is_cut) {
                keep = Some(Keep::Seeded(at as u64));
            } else if self.failures() == failed {
                break;
            }
        }
        let expected = "a store that opens and can be read".to_owned();
        Err(self.finding(check, at, expected, why))
    }

    /// Closes the store, if the engine can, and relies on the result. Returns what a power cut
    /// leaves, if one came meanwhile or comes now.
    fn close(&mut self, at: usize) -> Result<Option<Keep>, Finding> {
        let Some(store) = self.store.take() else {
            return Ok(None);
        };
        self.requested(When::InUse);
        self.tally.note(&store.stats());
        let closed = self.engine.close(store);
        self.requested(When::Closing);
        if self.place.medium().is_some_and(Medium::power_is_cut) {
            return Ok(Some(Keep::Seeded(at as u64)));
        }
        match closed {
            None => Ok(None),
            Some(Err(e)) => self.stalled(at, &e).map(|()| None),
            Some(Ok(())) => {
                self.reference.acknowledge();
                let goes = self.openings.is_multiple_of(2) && !self.recorded;
                self.tally.reach.met(Area::Step, "store closed", 1);
                Ok(goes.then_some(Keep::Oldest))
            }
        }
    }

    /// Opens the store read-only, if the engine can, and judges its content. Nothing may be
    /// written.
    fn read_only(&mut self, at: usize, check: Check) -> Result<(), Finding> {
        self.note_and_drop();
        let requests = || self.place.medium().map(Medium::requests);
        let before = requests();
        let opened = match self.engine.open_to_read(&self.place.disk) {
            None => return Ok(()),
            Some(opened) => opened.map_err(|e| e.to_string()),
        };
        self.store = opened
            .map(Some)
            .map_err(|why| self.read_only_finding(at, check, why))?;
        let found = self
            .contents()
            .map_err(|why| self.read_only_finding(at, check, why))?;
        self.store = None;
        self.tally.read_only += 1;
        if requests() != before {
            let why = "requests that change the medium".to_owned();
            return Err(self.read_only_finding(at, check, why));
        }
        if self.reference.permits(&found) {
            return Ok(());
        }
        let (_, found) = self.reference.explain(self.program, &found, 4);
        Err(self.read_only_finding(at, check, found))
    }

    fn read_only_finding(&self, at: usize, check: Check, found: String) -> Finding {
        let expected = "a store that opens read-only, writes nothing, and has the right content";
        self.finding(check, at, expected.to_owned(), found)
    }

    fn open_and_read(&mut self) -> Result<Vec<Content>, String> {
        self.store = Some(self.open()?);
        let completed = self.batches_completed();
        (self.tally.reach).met(Area::Fault, batches::COMPLETED, completed);
        let found = self.contents()?;
        if self.place.is_dark() {
            return Err("the power went meanwhile".into());
        }
        Ok(found)
    }

    /// The check that fails if a reopened store is wrong.
    fn reopening(&self, cut: bool) -> Check {
        match (cut, self.armed) {
            _ if self.has_failed => Check::InjectedFailure,
            (true, _) => Check::Crash,
            (false, true) => Check::InjectedFailure,
            (false, false) => Check::Reference,
        }
    }

    pub(super) fn note_and_drop(&mut self) {
        if let Some(store) = self.store.take() {
            self.requested(When::InUse);
            self.tally.note(&store.stats());
            drop(store);
            self.requested(When::Closing);
        }
    }

    fn lose_power(&mut self, keep: Keep) {
        self.requested(When::InUse);
        if let (None, Some(store)) = (self.place.medium(), &self.store) {
            if !self.engine.is_killed(&**store) {
                self.engine.kill(&**store, None);
            }
            self.armed = false;
            self.tally.crashes += 1;
            self.tally.reach.met(Area::Fault, "process killed", 1);
        }
        if let Some(medium) = self.place.medium() {
            let image = medium.crash_keeping(keep);
            // A scheduled failure that has not struck yet may strike during recovery or after it.
            let ahead = medium.blocks().map(|device| device.failures_ahead());
            let medium = Medium::holding(image);
            if let (Some(device), Some(ahead)) = (medium.blocks(), &ahead) {
                ahead.iter().for_each(|(kind, n)| device.fail_in(*kind, *n));
            }
            self.armed = ahead.is_some_and(|ahead| !ahead.is_empty());
            self.place = Place::on(medium);
            self.starve(self.starved);
            self.take_trims(self.openings);
            self.tally.crashes += 1;
        }
    }

    fn judge_reopened(
        &mut self,
        at: usize,
        check: Check,
        found: Vec<Content>,
    ) -> Result<(), Finding> {
        if !self.reference.permits(&found) {
            let (expected, described) = self.reference.explain(self.program, &found, 4);
            let wrong: Vec<KeyNo> = (0u32..)
                .map(KeyNo)
                .zip(&found)
                .filter(|(key, content)| !self.reference.may_read(*key, **content))
                .map(|(key, _)| key)
                .collect();
            let check = match check {
                Check::Reference => self.blame(&wrong),
                other => other,
            };
            return Err(self.finding(check, at, expected, described));
        }
        self.reference.settle(found);
        if let Some(device) = self.place.medium().and_then(Medium::blocks) {
            self.armed = device.has_failures_ahead();
        }
        // An LSN of the previous opening means nothing to this one.
        self.newest = Lsn(0);
        self.last = Lsn(0);
        Ok(())
    }

    /// The space that the store uses when all background work is done. `None` if that failed, or
    /// may have failed.
    fn holds_at_rest(&mut self) -> Option<Vec<(&'static str, u64)>> {
        let store = self.store.as_ref()?;
        if self.armed || self.starved || self.is_troubled() {
            return None;
        }
        // Space that one checkpoint releases is free with the next, and a merge in that one takes a
        // third.
        for _ in 0..3 {
            for _ in 0..10_000 {
                if !store.pump_due().ok()? {
                    break;
                }
            }
            store.checkpoint().ok()?;
        }
        Some(self.engine.holds(&**store))
    }

    /// Reopens the store when no work is left. It must use the same space as before.
    pub(super) fn reopen_at_rest(&mut self, at: usize) -> Result<(), Finding> {
        // Space that was lost because the medium was full shows when there is space again.
        self.starve(false);
        let before = self.holds_at_rest();
        self.reopen(at, None)?;
        if let (Some(before), Some(after)) = (before, self.holds_at_rest())
            && before.first() == after.first()
            && before != after
        {
            let expected = format!("the same space in use as before: {}", in_words(&before));
            return Err(self.finding(Check::Room, at, expected, in_words(&after)));
        }
        Ok(())
    }
}

fn in_words(holds: &[(&'static str, u64)]) -> String {
    let words = holds.iter().map(|(what, n)| format!("{what} {n}"));
    words.collect::<Vec<_>>().join(", ")
}
