//! The end of a process, and what the next process reads.

use super::judge::{Judge, Recovery};
use super::setup::{Found, UNITS, unit};
use crate::conformance::led::{Leads as _, holds};
use crate::conformance::refused::{Accepted, same};
use crate::mirror::redo_log::unbounded;
use crate::mirror::redo_log::{Action, Phase, Super};
use treering_engine::events::{Event, Redo};

impl Judge<'_> {
    /// A process has ended.
    pub(super) fn ended(&mut self) {
        self.restarting = None;
        self.recovery = None;
        self.is_up = false;
        self.failed = false;
        self.empty_checkpoint = false;
    }

    /// The power failed. If another process was about to recover, the crash came before it, since
    /// it has written nothing.
    pub(super) fn crashed(&mut self, found: &Found) -> Accepted {
        self.remember();
        self.ended();
        let (left, of) = self.in_terms_of_the_spec(found)?;
        if self.state.phase() == Phase::Cut {
            // The one before has left nothing else.
            return self.mirror.reads(&self.state, &left, of);
        }
        if self.state.phase() == Phase::Killed {
            // The spec has no crash of a store that nobody uses. Another process has read the log,
            // and done no more.
            self.take(Action::OpenLog(self.packing))?;
        }
        let before = self.state.clone();
        self.mirror.try_crash(&mut self.state, &left, of)?;
        self.took(&Action::Crash(0), Some(&before));
        self.count_torn(&left);
        Ok(())
    }

    /// Counts the blocks that a crash has torn.
    fn count_torn(&mut self, left: &[unbounded::Found]) {
        let torn = left.iter().filter(|block| {
            let header = block.header != unbounded::Header::default();
            header && !block.whole
        });
        for _ in torn {
            self.notes.tally.took("(Torn)");
        }
    }

    /// The content of a device, by place of the spec.
    pub(super) fn in_terms_of_the_spec(
        &self,
        found: &Found,
    ) -> Result<(Vec<unbounded::Found>, Super), String> {
        let places = 0..found.log.len();
        let block = |place: usize| {
            let at = &found.log[self.setup.place(place)];
            let units = at.units.iter().map(|(record, len, part)| {
                // A record that nobody has asked for is none of the mirror's.
                let known = self.records.get(record).copied();
                unit((known.unwrap_or(*record << 16), *len, *part))
            });
            Ok(unbounded::Found {
                header: self.setup.header(&at.header)?,
                units: units.collect(),
                whole: at.header.whole,
            })
        };
        let blocks = places.map(block).collect::<Result<_, String>>()?;
        Ok((blocks, self.setup.superblock(found.superblock)?))
    }

    /// Recovery reads the log, and writes again what a failed flush may have lost.
    pub(super) fn reads(&mut self, event: Redo) -> Accepted {
        match event {
            Redo::Read {
                from,
                end,
                next_start,
                doubtful,
                epoch,
                records,
            } => {
                self.remember();
                if self.is_up || self.recovery.is_some() {
                    return Err("the store is open".into());
                }
                if let Some(found) = self.restarting.take() {
                    let (read, of) = self.in_terms_of_the_spec(&found)?;
                    let closing = self.state.phase() == Phase::Closing;
                    if closing && !self.state.poisoned() && !self.fail_write(&read, of) {
                        // The write has failed, and still the witness is there.
                        self.take(Action::FailFlush)?;
                    }
                    let reads = self.mirror.reads(&self.state, &read, of);
                    // A process that is killed while it writes has written some of it, as after a
                    // write that fails.
                    if reads.is_err() && (self.state.poisoned() || !self.fail_write(&read, of)) {
                        return reads;
                    }
                    if !matches!(self.state.phase(), Phase::Cut | Phase::Killed) {
                        self.take(Action::Restart)?;
                    }
                }
                let reading = self.mirror.reading(&self.state);
                if reading.damaged {
                    return Err("the mirror's recovery refuses to open".into());
                }
                let position = |lsn| self.setup.position(lsn);
                let is = |what, part: &str, engine: u64, mirror: u64| {
                    let read = "ReadLog(NewestOf(logDev), Newest(superDev))";
                    self.claim(same(what, engine, mirror), || {
                        holds(&format!("LET walk == {read} IN {part} = {engine}"))
                    })
                };
                let from = position(from)?.into();
                is(
                    "the redo start",
                    "Newest(superDev).redo",
                    from,
                    reading.from.into(),
                )?;
                let end = position(end)?.into();
                is("the last record", "walk.end", end, reading.end.into())?;
                let start = position(next_start)?.into();
                let expected = reading.next_start.into();
                is(
                    "the next epoch's start",
                    "RoundUp(walk.end)",
                    start,
                    expected,
                )?;
                let doubtful = u64::from(position(doubtful)? / UNITS);
                is(
                    "the last flush",
                    "walk.flush",
                    doubtful,
                    reading.doubtful.into(),
                )?;
                let epoch = self.setup.epoch(epoch).into();
                is("the epoch", "walk.epoch", epoch, reading.epoch.into())?;
                is(
                    "the records",
                    "Len(walk.found)",
                    records,
                    reading.records.len() as u64,
                )?;
                let lost = self.state.lost();
                self.take(Action::OpenLog(self.packing))?;
                self.recovery = Some(Recovery {
                    reading,
                    rewrote: false,
                    rewrote_super: false,
                    lost: lost != self.state.lost(),
                    again: 0,
                });
                Ok(())
            }
            Redo::Rewrites { from, to } => {
                let (from, to) = (self.setup.position(from)?, self.setup.position(to)?);
                let recovery = self.recovery.as_mut().ok_or("nothing was read")?;
                let reading = &recovery.reading;
                same("the last flush", from / UNITS, reading.doubtful)?;
                same("the next epoch's start", to, reading.next_start)?;
                recovery.rewrote = true;
                Ok(())
            }
            Redo::MarksEnd { epoch, index } => {
                let (epoch, index) = (self.setup.epoch(epoch), self.setup.index(index)?);
                let recovery = self.recovery.as_ref().ok_or("nothing was read")?;
                same("the epoch", epoch, self.state.epoch())?;
                same("the end", index, recovery.reading.next_start / UNITS)?;
                self.flushes_again()?;
                self.marks_end(true)
            }
            Redo::RewritesSuperblock => {
                let recovery = self.recovery.as_mut().ok_or("nothing was read")?;
                recovery.rewrote_super = true;
                Ok(())
            }
            other => Err(format!("{other:?} is not an event of recovery")),
        }
    }

    /// The device is flushed once more.
    fn flushes_again(&mut self) -> Accepted {
        let recovery = self.recovery.as_ref().ok_or("no log was read")?;
        let written = [
            ("the last flush is written again", recovery.rewrote),
            ("the superblock is written again", recovery.rewrote_super),
        ];
        for (what, is) in written {
            let is = same(what, is, true);
            // The spec can tell only if a failed flush has left something.
            match recovery.lost {
                true => self.instead(is, || "OpenLog /\\ UNCHANGED lost".into())?,
                false => is?,
            }
        }
        self.take(Action::FlushAgain)
    }

    /// The end of the log is marked, or needs no mark.
    fn marks_end(&mut self, marked: bool) -> Accepted {
        let expected = self.mirror.marks_end(&self.state);
        self.take(Action::MarkEnd)?;
        let is = same("the end is marked", marked, expected);
        self.instead(is, || "MarkEnd /\\ UNCHANGED logDev".into())
    }

    pub(super) fn recovers(&mut self, event: Event) -> Accepted {
        let state = &self.state;
        let recovery = self.recovery.as_mut().ok_or("no log was read")?;
        match event {
            Event::RecoveryBegins {
                epoch,
                redo_start,
                log_start,
            } => {
                same("the epoch", self.setup.epoch(epoch), state.epoch())?;
                same(
                    "the redo start",
                    self.setup.position(redo_start)?,
                    state.oldest(),
                )?;
                same(
                    "the log's start",
                    self.setup.position(log_start)?,
                    state.end(),
                )?;
                if self.state.phase() == Phase::Read {
                    self.flushes_again()?;
                    self.marks_end(false)?;
                }
                self.take(Action::FlushMark)
            }
            Event::RecordRead { lsn, .. } => {
                let next = recovery.reading.records.get(recovery.again).copied();
                same("the record", Some(self.setup.position(lsn)?), next)?;
                recovery.again += 1;
                Ok(())
            }
            Event::RedoEnds => {
                let records = recovery.reading.records.len();
                same("the records of redo", recovery.again, records)
            }
            Event::Opened => {
                self.recovery = None;
                self.is_up = true;
                self.failed = false;
                same("the phase", Phase::Up, self.state.phase())
            }
            other => Err(format!("{other:?} is not an event of recovery")),
        }
    }
}
