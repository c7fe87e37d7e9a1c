//! The end of a process, and what the next process reads.

use std::sync::Arc;

use treering_engine::events::Event;
use treering_engine::{Lsn, PageId};

use super::found::{Found, FoundLeaf};
use super::judge::Judge;
use crate::conformance::led::{Leads as _, holds};
use crate::conformance::refused::{Accepted, same};
use crate::mirror::wide::leaf_layout::unbounded::LeafName;
use crate::mirror::wide::leaf_layout::{Action, Is, Layout};

impl Judge<'_> {
    /// The power failed.
    pub(super) fn crashed(&mut self, found: &Arc<Found>) -> Accepted {
        self.remember();
        self.ended(found)?;
        let n = self.log_end(found)?;
        let left = self.survivors(found, n)?;
        let crash = Action::Crash(n as _, 0, true);
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
        for p in self.live_at(n) {
            let newest = self.mirror.versions(&self.state, p).next_back();
            let newest = newest.unwrap_or_default();
            if !self.is_found(found, p, &newest) {
                let is = self.found_of(found, p);
                let why = format!("page {p} is {is:?}, not {newest:?}");
                return self.claim(Err(why), || {
                    let is = self.is_in_tla(is);
                    holds(&format!("LET left == Stored({p}) IN {is}"))
                });
            }
        }
        let mut ahead = self.state.clone();
        if !self.mirror.try_restart(&mut ahead, n) {
            let why = format!("Restart, with the log up to {n}, is not enabled");
            return self.claim(Err(why), || holds(&format!("{n} \\in durable..Len(log)")));
        }
        self.restarting = Some((n, ahead));
        Ok(())
    }

    /// Takes the `Restart` that is due. Until the flush at the beginning of recovery, a power
    /// failure leaves what it would have left before.
    fn restarts(&mut self) {
        let Some((n, ahead)) = self.restarting.take() else {
            return;
        };
        let restart = Action::Restart(n as _, true);
        self.step(&restart, |_, s| {
            *s = *ahead;
            true
        });
        self.begins_to_recover(n);
    }

    /// A process has ended. What it was about to write may have been written.
    fn ended(&mut self, found: &Found) -> Accepted {
        self.failed = false;
        self.restarting = None;
        self.appended_to = None;
        if let Some((page, lsn)) = self.writing.take() {
            let leaf = found.leaves.get(&page);
            if leaf.is_some_and(|leaf| leaf.lsn == lsn) {
                let p = self.page(page)?;
                // It may have been there before.
                let newest = self.mirror.versions(&self.state, p).next_back();
                if newest != Some(self.mirror.page_now(&self.state, p)) {
                    self.take(Action::WritePage(p))?;
                }
            }
        }
        let redo_start = found.log.redo_start.map(|lsn| self.position(lsn));
        if self.superblock.is_some() && self.superblock == redo_start {
            self.super_flushed()?;
        }
        self.superblock = None;
        Ok(())
    }

    fn begins_to_recover(&mut self, n: u64) {
        self.appended.retain(|_, m| *m <= n);
        self.ids.truncate(usize::from(self.state.pages()));
        let pages = self.state.pages();
        self.journal
            .retain(|p, image| *p <= pages && image.lsn <= n);
        self.to_redo.clear();
        self.redone.clear();
    }

    fn same_redo_start(&self, found: &Found) -> Accepted {
        let Some(redo_start) = found.log.redo_start else {
            let why = found.log.error.as_deref().unwrap_or("no error");
            return Err(format!("recovery does not begin: {why}"));
        };
        self.same_redo(redo_start)
    }

    fn same_redo(&self, redo_start: Lsn) -> Accepted {
        let n = self.position(redo_start);
        let is = same("the redo start", n, self.state.redo_start());
        self.claim(is, || holds(&format!("redoStart = {n}")))
    }

    /// What is claimed of the page `left` on the device.
    fn is_in_tla(&self, found: Option<&FoundLeaf>) -> String {
        let Some(leaf) = found else {
            return "left = Gone".into();
        };
        // No fence, key or LSN is so large: it stands for one that the spec does not have.
        let number = |n: Option<u32>| n.map_or("999999999".into(), |n| n.to_string());
        let (lower, upper) = leaf.fences;
        let lsn = self.number(leaf.lsn).ok().map(|n| n as u32);
        let records = leaf.records.iter().map(|(key, value)| match key {
            Some(key) => format!("left.map[{key}] = {}", self.value_with(*value)),
            None => "FALSE".into(),
        });
        let parts = [
            format!("left.layout = \"{}\"", <&str>::from(leaf.layout)),
            format!("left.lower = {}", number(lower)),
            format!("left.upper = {}", number(upper)),
            format!("left.lsn = {}", number(lsn)),
            format!("Cardinality(KeysIn(left.map)) = {}", leaf.records.len()),
        ];
        let parts: Vec<String> = parts.into_iter().chain(records).collect();
        parts.join(" /\\ ")
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

    /// The pages that the index has after the log's first `n` records.
    fn live_at(&self, n: u64) -> Vec<u8> {
        let pages = 1..=self.state.pages();
        pages.filter(|p| self.state.is_page_at(*p, n)).collect()
    }

    /// The image of a page on the device. An image in its place that is older than the page is that
    /// of another one, which was merged away.
    fn found_of<'f>(&self, found: &'f Found, p: u8) -> Option<&'f FoundLeaf> {
        let leaf = found.leaves.get(&self.ids[usize::from(p) - 1])?;
        let own = match self.number(leaf.lsn) {
            Ok(0) => p == 1,
            Ok(n) => match self.state.record_of(n) {
                Some((_, of, _, right)) => of == p || right == p,
                None => true,
            },
            Err(_) => true,
        };
        own.then_some(leaf)
    }

    fn is_found(&self, found: &Found, p: u8, name: &LeafName) -> bool {
        match self.found_of(found, p) {
            None => name.layout == Layout::None,
            Some(leaf) => self.is_leaf(leaf, name),
        }
    }

    /// The version of each page that is on the device. Of a page that is not in the index at the
    /// end of the log, any one will do.
    fn survivors(&self, found: &Found, n: u64) -> Result<Vec<usize>, String> {
        let pages = 1..=self.state.pages();
        let left = pages.map(|p| {
            let all: Vec<LeafName> = self.mirror.versions(&self.state, p).collect();
            let at = all.iter().rposition(|name| self.is_found(found, p, name));
            let live = self.state.is_page_at(p, n);
            let unknown = || {
                let is = self.found_of(found, p);
                format!("page {p} is {is:?}, which is none of {all:?}")
            };
            self.claim(at.or((!live).then_some(0)).ok_or_else(unknown), || {
                let is = self.is_in_tla(self.found_of(found, p));
                holds(&format!("\\E left \\in Survivors(leafDev[{p}]) : {is}"))
            })
        });
        left.collect()
    }

    fn is_leaf(&self, leaf: &FoundLeaf, name: &LeafName) -> bool {
        let mut both = leaf.records.iter().zip(&name.records);
        let fences = (Some(name.lower as u32), Some(name.upper as u32));
        leaf.layout == name.layout
            && leaf.fences == fences
            && self.number(leaf.lsn) == Ok(name.lsn)
            && leaf.records.len() == name.records.len()
            && both.all(|((key, found), (known, value))| {
                *key == Some(*known as u32) && *found == self.digest_of(*value)
            })
    }

    /// Recovery has written a page from the journal to its home, which held no whole page.
    pub(super) fn restored(&mut self, page: PageId, lsn: Lsn) -> Accepted {
        let p = self.page(page)?;
        let image = self.journal.get(&p).cloned();
        let image = image.ok_or("it was never written")?;
        same("the image", self.number(lsn)?, image.lsn)?;
        if self.state.is_open() && self.restarting.is_none() {
            return Err("the store is open".into());
        }
        let mirror = &self.mirror;
        mirror.restore(&mut self.state, p, &image);
        if let Some((_, ahead)) = &mut self.restarting {
            // The flush at the beginning of recovery comes before the restart is taken.
            mirror.restore(ahead, p, &image);
            mirror.flush(ahead);
        }
        self.notes.tally.took("(RestorePage)");
        Ok(())
    }

    /// What redo of record `n` must make of a page. `None` if the index does not have the page at
    /// the end of the log.
    pub(super) fn expected_of_redo(&self, page: PageId, n: u64) -> Option<LeafName> {
        let p = self.page_named(page, n)?;
        let live = self.state.is_page_at(p, self.state.log_len());
        self.to_redo.get(&(p, n)).filter(|_| live).cloned()
    }

    pub(super) fn recovers(&mut self, event: Event) -> Accepted {
        match event {
            Event::RecoveryBegins { redo_start, .. } => {
                self.remember();
                self.restarts();
                let allows = self.allows;
                self.mirror.set_options(&mut self.state, allows);
                self.same_redo(redo_start)
            }
            Event::RecordRead { lsn, page } => self.record_read(lsn, page),
            Event::PageRedone { page, lsn } => {
                let n = self.number(lsn)?;
                let p = self.page_named(page, n);
                let p = p.ok_or_else(|| format!("record {n} does not name {page}"))?;
                let live = self.state.is_page_at(p, self.state.log_len());
                if live && !self.to_redo.contains_key(&(p, n)) {
                    let why = format!("page {p} has record {n}");
                    let mut versions = self.mirror.versions(&self.state, p);
                    let has = versions.next_back().is_some_and(|image| image.lsn >= n);
                    // Other reasons than its image are not in the state any more.
                    return match has {
                        true => self.claim(Err(why), || holds(&format!("Stored({p}).lsn < {n}"))),
                        false => Err(why),
                    };
                }
                self.redone.insert((p, n));
                Ok(())
            }
            Event::RedoEnds => self.redo_ends(),
            Event::Opened => same("that it is open", true, self.state.is_open()),
            other => Err(format!("{other:?} is not an event of recovery")),
        }
    }

    fn record_read(&mut self, lsn: Lsn, page: PageId) -> Accepted {
        let n = self.number(lsn)?;
        let same_record = same("the record", n, self.state.redone() + 1);
        self.claim(same_record, || holds(&format!("redone + 1 = {n}")))?;
        let (is, of, _, right) = self.state.record_of(n).ok_or("it has no record")?;
        same("the record's page", Some(of), self.page_named(page, n))?;
        let lsn_of = |judge: &Self, p: u8| judge.mirror.page_now(&judge.state, p).lsn;
        let before = [of, right].map(|p| (p > 0).then(|| lsn_of(self, p)));
        self.take(Action::RedoRecord)?;
        for (p, before) in [of, right].into_iter().zip(before) {
            let Some(before) = before else { continue };
            let ends = is == Is::Merge && p == right;
            let now = self.mirror.page_now(&self.state, p);
            if before < n && now.lsn == n && !ends {
                self.to_redo.insert((p, n), now);
            }
        }
        Ok(())
    }

    fn redo_ends(&mut self) -> Accepted {
        let redone = self.state.redone();
        let is = same("the last record", redone, self.state.log_len());
        self.claim(is, || {
            holds(&format!("redone = Len(log) /\\ redone = {redone}"))
        })?;
        let live = self.live_at(self.state.log_len());
        let mut lacking = self.to_redo.keys();
        let lacks = lacking.find(|(p, n)| live.contains(p) && !self.redone.contains(&(*p, *n)));
        if let Some((p, n)) = lacks {
            let kind = self.is(*n).map(<&str>::from);
            let why = format!("page {p} still lacks record {n}, a {kind:?}");
            let (p, n) = (*p, *n);
            return self.claim(Err(why), || holds(&format!("leaf[{p}].lsn < {n}")));
        }
        self.take(Action::FinishRedo)
    }
}
