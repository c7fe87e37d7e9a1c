//! The end of a process, and what the next process reads.

use std::sync::Arc;

use super::found::{Block, Found};
use super::judge::{Choice, Judge, Phase};
use super::setup::Setup;
use crate::Value;
use crate::conformance::led::{Leads as _, holds};
use crate::conformance::refused::{Accepted, same};
use crate::mirror::wide::page_shadowing::unbounded::{BlockName, InMemory, Spot};
use crate::mirror::wide::page_shadowing::{Action, Is, Known};

impl Judge<'_> {
    /// A process has ended. If `restarting` is set, it is restarted with this content.
    pub(super) fn ended(&mut self, restarting: Option<&Arc<Found>>) -> Accepted {
        self.phase = Phase::Opens;
        self.chosen.clear();
        self.restarting = restarting.cloned();
        Ok(())
    }

    /// The power failed. If another process was about to recover, the crash came before it, since
    /// it wrote nothing new.
    pub(super) fn crashed(&mut self, found: &Arc<Found>) -> Accepted {
        self.remember();
        self.ended(None)?;
        self.look_for_checkpoint(found)?;
        let n = self.log_end(found)?;
        let versions = self.survivors(found)?;
        let left = |p: usize, spot: Spot| {
            let mut of_page = versions[p].iter();
            of_page.find(|(at, _)| *at == spot).map(|(_, n)| *n)
        };
        let crash = Action::Crash(n as _, 0);
        if !self.step(&crash, |mirror, s| mirror.try_crash(s, n, &left)) {
            let why = format!("Crash, with the log up to {n}, is not enabled");
            return self.claim(Err(why), || holds(&format!("{n} \\in durable..Len(log)")));
        }
        self.appended.retain(|_, m| *m <= n);
        Ok(())
    }

    /// The device shows whether a checkpoint in progress was recorded.
    fn look_for_checkpoint(&mut self, found: &Found) -> Accepted {
        let Some(redo_start) = found.log.redo_start else {
            let why = found
                .log
                .error
                .as_deref()
                .unwrap_or("no error was reported");
            return Err(format!("recovery does not begin: {why}"));
        };
        let redo_start = self.position(redo_start);
        if (self.recorded.as_ref()).is_some_and(|(written, _)| *written == redo_start) {
            self.choose_recorded();
        }
        self.recorded = None;
        self.same_redo_start(redo_start)
    }

    fn same_redo_start(&self, redo_start: u64) -> Accepted {
        let is = same("the redo start", redo_start, self.state.redo_start());
        self.claim(is, || holds(&format!("redoStart = {redo_start}")))
    }

    /// The last record that the log is left with.
    fn log_end(&self, found: &Found) -> Result<u64, String> {
        let Some(last) = found.log.records.last() else {
            return Ok(self.state.redo_start());
        };
        let n = self.appended.get(last).copied();
        n.ok_or_else(|| format!("{last} is not the LSN of a record"))
    }

    /// The version of each block that is on the device.
    fn survivors(&self, found: &Found) -> Result<Vec<Vec<(Spot, usize)>>, String> {
        let pages = found.pages.iter().enumerate();
        let of_page = |(p, blocks): (usize, &Vec<(Spot, Block)>)| {
            let version = |(spot, block): &(Spot, Block)| {
                let all: Vec<BlockName> = self.state.versions(p, *spot).collect();
                let at = all.iter().rposition(|name| self.is(p, *block, *name));
                let not = || {
                    format!(
                        "{spot:?} of page p{} holds {block:?}, which is none of {all:?}",
                        p + 1
                    )
                };
                self.claim(at.map(|at| (*spot, at)).ok_or_else(not), || {
                    self.left(p, *spot, *block)
                })
            };
            blocks.iter().map(version).collect()
        };
        pages.map(of_page).collect()
    }

    fn is(&self, p: usize, block: Block, name: BlockName) -> bool {
        match (block, name) {
            (Block::Zeros, BlockName::Zeros) => true,
            (Block::First(lsn), BlockName::First(n)) => self.number(p, lsn) == Ok(n),
            (Block::Segment(version), BlockName::Segment(n)) => {
                self.versions[n as usize] == version
            }
            (Block::Log(base, lsn), BlockName::Log(b, n)) => {
                self.number(p, base) == Ok(b) && self.number(p, lsn) == Ok(n)
            }
            _ => false,
        }
    }

    /// Takes `Restart`, with everything that was chosen and rewritten since the process began. This
    /// also happens after a crash, since the engine does not know whether the power failed.
    pub(super) fn recovery_begins(&mut self, redo_start: treering_engine::Lsn) -> Accepted {
        self.remember();
        if self.phase != Phase::Opens {
            return Err("the store is open".into());
        }
        let n = match self.restarting.take() {
            Some(found) => {
                self.look_for_checkpoint(&found)?;
                self.log_end(&found)?
            }
            None => self.state.log_len(),
        };
        self.same_redo_start(self.position(redo_start))?;
        let restart = Action::Restart(n as _, 0);
        if !self.step(&restart, |mirror, s| mirror.try_restart(s, n)) {
            let why = format!("Restart, with the log up to {n}, is not enabled");
            return self.claim(Err(why), || holds(&format!("{n} \\in durable..Len(log)")));
        }
        self.appended.retain(|_, m| *m <= n);
        for p in 0..self.setup.pages.len() {
            let (known, page) = self.mirror.chosen(&self.state, p);
            let chosen = self.chosen.remove(&p);
            let named = self.state.known(p).is != Is::Unknown;
            let expected = named.then(|| choice(&known, &page));
            let is = same(&format!("the choice of page p{}", p + 1), chosen, expected);
            self.claim(is, || {
                let read = format!("AsRead(NewestOf(dev[p{}]))", p + 1);
                self.choice_claim(&read, chosen)
            })?;
        }
        self.read = self.state.redo_start();
        self.phase = Phase::Runs;
        Ok(())
    }

    /// `Load`, in one of the ways in which the page may be read.
    pub(super) fn load(&mut self, p: usize, slot: u8, base: u64, delta: Option<u32>) -> Accepted {
        if self.phase == Phase::Opens {
            return Err("nothing is loaded before redo".into());
        }
        let chosen = self.chosen.remove(&p);
        let unknown = self.state.known(p).is == Is::Unknown;
        let is = same("both slots are read", chosen.is_some(), unknown);
        self.claim(is, || {
            let is = if unknown { "#" } else { "=" };
            holds(&format!("valid[p{}].is {is} \"unknown\"", p + 1))
        })?;
        let mut why = format!("Load({p}) is not enabled");
        for n in 0..self.mirror.readings(&self.state, p) {
            let mut next = self.state.clone();
            if !self.mirror.try_take(&mut next, Action::Load(p as u8, n)) {
                break;
            }
            let (known, page) = (next.known(p), next.in_memory(p));
            let Some(page) = page else { break };
            let read = Some((slot, base, delta));
            let expected = Some((known.slot, page.base, delta_of(&known, &page)));
            let fits = same("slot, base and |Δ|", read, expected).and_then(|()| {
                let expected = unknown.then(|| choice(&known, &page));
                same("the choice", chosen, expected)
            });
            match fits {
                Ok(()) => {
                    let before = std::mem::replace(&mut self.state, next);
                    self.took(&Action::Load(p as u8, n), Some(&before));
                    return Ok(());
                }
                Err(differs) => why = differs,
            }
        }
        self.claim(Err(why), || match chosen {
            Some(_) => {
                let read = format!("\\E read \\in Read(dev[p{}]) : ", p + 1);
                read + &self.choice_claim("read", chosen)
            }
            None => {
                let is = format!(
                    "valid'[p{0}].slot = {slot} /\\ mem'[p{0}].base = {base} /\\ \
                     valid'[p{0}].logged = {1}",
                    p + 1,
                    Value::Bool(delta.is_some())
                );
                let dirty = delta.map(|delta| {
                    let of = self.dirty_claim(&format!("mem'[p{}]", p + 1), delta);
                    of.replace(" /\\ UNCHANGED vars", "")
                });
                let dirty = dirty.unwrap_or_else(|| "TRUE".to_owned());
                format!("Load(p{}) /\\ {is} /\\ {dirty}", p + 1)
            }
        })
    }

    /// What is claimed of blocks of a page: that recovery chooses this of them.
    fn choice_claim(&self, blocks: &str, chosen: Option<Choice>) -> String {
        let Some(chosen) = chosen else {
            // It has chosen nothing, although the log names the page.
            return holds("FALSE");
        };
        // An LSN of no record is none of the spec's.
        let lsn = u32::try_from(chosen.lsn).unwrap_or(0);
        let is = match chosen.leftover {
            true => "durable",
            false => "alone",
        };
        let known = format!("KnownAfter({blocks})");
        let page = format!("ReadBoth({blocks})");
        let mut parts = vec![
            format!("{known}.slot = {}", chosen.slot),
            format!("{known}.is = \"{is}\""),
            format!("{known}.logged = {}", Value::Bool(chosen.delta.is_some())),
            format!("{page}.image.lsn = {lsn}"),
        ];
        if let Some(delta) = chosen.delta {
            let dirty = self.dirty_claim(&page, delta);
            parts.push(dirty.replace(" /\\ UNCHANGED vars", ""));
        }
        holds(&parts.join(" /\\ "))
    }

    /// What is claimed of a block: that a crash may leave this.
    fn left(&self, p: usize, spot: Spot, block: Block) -> String {
        let name = match spot {
            Spot::Slot(slot, i) => format!("<<{slot}, {}>>", i + 1),
            Spot::Log => "Log".to_owned(),
        };
        // No LSN of a block is 0: it stands for one that no record has.
        let lsn = |lsn| self.number(p, lsn).unwrap_or(0);
        let is = match block {
            Block::Zeros => format!("left \\in {{Trimmed, Zeros({name})}}"),
            Block::First(n) => format!("left # Trimmed /\\ left.lsn = {}", lsn(n)),
            Block::Segment(version) => {
                let known = self.versions.iter().rposition(|known| *known == version);
                format!("left = {}", known.unwrap_or(0))
            }
            Block::Log(base, n) => format!(
                "left # Trimmed /\\ left.base = {} /\\ left.lsn = {}",
                lsn(base),
                lsn(n)
            ),
        };
        holds(&format!(
            "\\E left \\in Survivors(dev[p{}][{name}]) : {is}",
            p + 1
        ))
    }
}

fn delta_of(known: &Known, page: &InMemory) -> Option<u32> {
    known.logged.then(|| Setup::delta_bytes(page.dirty))
}

fn choice(known: &Known, page: &InMemory) -> Choice {
    Choice {
        slot: known.slot,
        lsn: page.lsn,
        delta: delta_of(known, page),
        leftover: known.is == Is::Durable,
    }
}
