//! Episodes: the seeded life of a store, with clients, background work, failures, ends of every
//! kind and openings.
//!
//! Three clients share one thread, each with one call at a time. A put returns when its record is
//! in the buffer. Then the client syncs it or goes away. So the seed decides the order of
//! everything, and no flush overlaps a write.

use std::sync::Arc;

use treering_engine::{Error, Kv, LogPacking, Lsn, Result, Store, Task};

use super::judge::{Entry, Heard, Judge, Refusal};
use super::setup::{KEYS, Setup};
use crate::conformance::behaviour::KEPT;
use crate::conformance::fate::{End, Fate, Opened};
use crate::conformance::led::{Leads as _, Recorded, told_again};
use crate::conformance::record::{self, LogUse, Why, on_behalf_of};
use crate::conformance::refused::Tally;
use treering_oracle::deadline::Deadline;

/// Clients of an episode.
pub const CLIENTS: u8 = 3;
/// The number of openings. Some episodes have many lives, most of them brief.
const LIVES: [u64; 2] = [6, 24];
/// The most steps between an opening and the next end.
const STEPS: u64 = 120;

/// Receives what was recorded, life by life. An error ends the episode.
type Hear<'a> = dyn FnMut(Vec<Entry>) -> std::result::Result<(), Box<Refusal>> + 'a;

/// A store and its clients, each with the LSN for which it waits.
struct Episode<'a> {
    setup: &'a Setup,
    fate: Fate,
    clients: [Option<Lsn>; CLIENTS as usize],
    /// Of the records of this life.
    longest: u32,
    /// How often the device had failed before this life.
    failed: u64,
    /// Whether most lives are brief: few steps, each of which something may cut short.
    brief: bool,
}

/// Runs the episode of a seed and judges it.
///
/// # Errors
/// The engine's own, at the first opening and when a device is read. No error is expected there.
pub fn run_episode(setup: &Setup, seed: u64) -> Result<(Tally, Option<Box<Refusal>>)> {
    run_until(setup, seed, &Deadline::never())
}

/// Like [`run_episode`], but ends when the time is up.
pub(super) fn run_until(
    setup: &Setup,
    seed: u64,
    until: &Deadline,
) -> Result<(Tally, Option<Box<Refusal>>)> {
    told_again(judged(setup, seed, until, None)?, || record(setup, seed))
}

/// The judge of the episode of a seed, with the situations of all steps.
pub(super) fn record(setup: &Setup, seed: u64) -> Result<(Judge<'_>, Option<Box<Refusal>>)> {
    judged(setup, seed, &Deadline::never(), Some(KEPT))
}

/// All steps of an episode as a behaviour of the spec. `None` if there is no step.
///
/// # Errors
/// As [`run_episode`].
pub fn recorded(setup: &Setup, seed: u64) -> Result<Option<Recorded>> {
    let (judge, _) = judged(setup, seed, &Deadline::never(), Some(usize::MAX))?;
    Ok(judge.recorded())
}

fn judged<'a>(
    setup: &'a Setup,
    seed: u64,
    until: &Deadline,
    steps: Option<usize>,
) -> Result<(Judge<'a>, Option<Box<Refusal>>)> {
    let mut fate = Fate::new(seed, setup.device(), Arc::new(setup.recorder()));
    fate.kills = true;
    let mut episode = Episode {
        setup,
        fate,
        clients: [None; CLIENTS as usize],
        longest: 1,
        failed: 0,
        brief: false,
    };
    let packing = setup.packing(episode.fate.rng.word());
    let mut judge = Judge::new(CLIENTS.into(), setup, packing);
    if let Some(steps) = steps {
        judge.note(steps);
    }
    let refusal = episode.run(packing, until, &mut |entries| {
        judge.foresee(entries.last());
        judge.hear(entries)
    })?;
    Ok((judge, refusal))
}

impl Episode<'_> {
    fn run(
        &mut self,
        packing: LogPacking,
        until: &Deadline,
        hear: &mut Hear<'_>,
    ) -> Result<Option<Box<Refusal>>> {
        let store = (self.setup).begin(&self.fate.device, packing, &self.fate.recorder)?;
        // What the first opening does comes before the spec's initial state.
        drop(self.fate.recorder.take());
        let mut opened = Opened::Up(Box::new(store));
        self.brief = self.fate.rng.one_in(2);
        for _ in 0..LIVES[usize::from(self.brief)] {
            let end = match opened {
                Opened::Up(store) => self.live(*store, until),
                Opened::Not(end) => end,
            };
            let mut entries = self.heard();
            entries.push(self.bury(end)?);
            if let Err(refusal) = hear(entries) {
                return Ok(Some(refusal));
            }
            if until.is_over() {
                return Ok(None);
            }
            opened = self.reopen();
        }
        if let Opened::Up(store) = opened {
            store.abandon();
        }
        Ok(hear(self.heard()).err())
    }

    fn heard(&self) -> Vec<Entry> {
        let entries = self.fate.recorder.take().into_iter();
        let said = |entry: record::Entry| Entry {
            client: entry.client,
            heard: Heard::Said(entry.heard),
        };
        entries.map(said).collect()
    }

    fn hear(&self, client: Option<u8>, what: LogUse) {
        self.fate.recorder.hear(client, record::Heard::Log(what));
    }

    /// Runs a life from the opening to its end.
    fn live(&mut self, store: Store, until: &Deadline) -> End {
        self.failed = self.fate.device.failed();
        // Some lives have short records only, so that several lie in a block, or are few.
        let longest = self.setup.longest();
        self.longest = [2, longest.min(5), longest][self.fate.rng.below(3) as usize].min(longest);
        let brief = self.brief && !self.fate.rng.one_in(3);
        let steps = match brief {
            true => self.fate.rng.below(7),
            false => [STEPS / 8, STEPS][self.fate.rng.below(2) as usize],
        };
        if brief {
            self.set_brief_fate();
        } else {
            self.set_fate();
        }
        let checkpoints = !self.fate.rng.one_in(3);
        for _ in 0..steps {
            if until.is_over() {
                break;
            }
            let failed = self.step(&store, checkpoints).is_err();
            if let Some(end) = self.fate.caught() {
                store.abandon();
                return end;
            }
            if self.fate.device.power_is_cut() || (failed && self.fate.rng.one_in(4)) {
                break;
            }
        }
        self.end(store)
    }

    /// Ends the process: at once, or in order.
    fn end(&mut self, store: Store) -> End {
        let seed = self.fate.rng.word();
        match self.fate.rng.below(8) {
            // A failure or power cut that lies ahead may come while the store is being closed.
            choice @ 0..=3 => {
                if self.fate.rng.one_in(4) {
                    self.fate.set_trap(8, seed);
                }
                for c in 0..CLIENTS {
                    self.leave(c);
                }
                match choice {
                    0 => drop(store.close()),
                    _ => drop(store),
                }
                self.hear(None, LogUse::Dropped);
            }
            _ => store.abandon(),
        }
        if let Some(end) = self.fate.caught() {
            return end;
        }
        self.fate.recorder.clear_trap();
        self.fate.end()
    }

    /// Decides what will fail in this life, if anything.
    fn set_fate(&mut self) {
        let seed = self.fate.rng.word();
        match self.fate.rng.below(8) {
            0 | 1 => self.fate.device.fail_flush_in(self.fate.rng.below(20)),
            2 if seed.is_multiple_of(2) => self.fate.fail_write(60),
            2 => self.fate.fail_log_write(30),
            3 => self.fate.cut_power(120),
            4..=6 => self.fate.set_trap(300, seed),
            _ if seed.is_multiple_of(2) => self.fate.fail_log_write(30),
            _ => {}
        }
    }

    /// Decides what will fail in a brief life: after a few events or requests, or nothing at first.
    fn set_brief_fate(&mut self) {
        let seed = self.fate.rng.word();
        match self.fate.rng.below(8) {
            0 => self.fate.device.fail_flush_in(self.fate.rng.below(3)),
            1 => self.fate.cut_power(8),
            2 | 3 => self.fate.fail_log_write(3),
            4 | 5 => self.fate.set_trap(16, seed),
            _ => {}
        }
    }

    /// Records what the end of a life has left.
    fn bury(&mut self, end: End) -> Result<Entry> {
        self.clients = [None; CLIENTS as usize];
        let power = self.fate.bury(end);
        let found = Arc::new(self.setup.look(&self.fate.device)?);
        let heard = if power {
            Heard::Crashed(found)
        } else {
            Heard::Restarted(found)
        };
        Ok(Entry {
            client: None,
            heard,
        })
    }

    /// Opens the store. That may fail, or the power may fail meanwhile.
    fn reopen(&mut self) -> Opened {
        let setup = self.setup;
        let packing = setup.packing(self.fate.rng.word());
        self.hear(None, LogUse::Opens(packing));
        self.fate.reopen(40, |device, recorder| {
            let opened = setup.open(device, packing, recorder);
            if let Err(e @ Error::Damaged { .. }) = &opened {
                let damage = record::Heard::Log(LogUse::Damaged(e.to_string()));
                recorder.hear(None, damage);
            }
            opened
        })
    }

    /// One random step.
    fn step(&mut self, store: &Store, checkpoints: bool) -> Result<()> {
        match self.fate.rng.below(20) {
            0 => store.pump(Task::WriteBack).map(drop),
            1..=4 if checkpoints && self.brief => {
                self.fate.aim(8);
                store.pump(Task::Checkpoint).map(drop)
            }
            1 | 2 if checkpoints => store.pump(Task::Checkpoint).map(drop),
            3 if self.fate.rng.one_in(4) => store.pump(Task::FlushLog).map(drop),
            4 if checkpoints && self.fate.rng.one_in(6) => store.checkpoint().map(drop),
            _ => {
                let c = self.fate.rng.below(u64::from(CLIENTS)) as u8;
                self.client_step(store, c)
            }
        }
    }

    fn client_step(&mut self, store: &Store, c: u8) -> Result<()> {
        match self.clients[usize::from(c)] {
            None => self.put(store, c),
            Some(lsn) if self.fate.rng.one_in(2) => {
                let synced = on_behalf_of(c, || store.sync(lsn));
                self.answered(c, synced)
            }
            Some(_) if self.fate.rng.one_in(4) => {
                self.leave(c);
                Ok(())
            }
            Some(_) => Ok(()),
        }
    }

    /// A client does not wait any more, if it does.
    fn leave(&mut self, c: u8) {
        if self.clients[usize::from(c)].take().is_some() {
            self.hear(Some(c), LogUse::Leaves);
        }
    }

    /// A client gets its answer, or an error instead.
    fn answered(&mut self, c: u8, answer: Result<()>) -> Result<()> {
        self.clients[usize::from(c)] = None;
        if let Err(error) = &answer {
            let device = &self.fate.device;
            let failed = device.failed() > self.failed || device.power_is_cut();
            self.hear(Some(c), LogUse::Refused(Why::of(error, failed)));
        }
        answer
    }

    fn put(&mut self, store: &Store, c: u8) -> Result<()> {
        let len = match self.brief && self.fate.rng.one_in(3) {
            // Perhaps the first one behind the redo start, and cut short.
            true => self.longest,
            false => 1 + self.fate.rng.below(u64::from(self.longest)) as u32,
        };
        // It may have to make room in the log by a checkpoint.
        if self.brief && self.fate.rng.one_in(40) {
            self.fate.aim(8);
        }
        let key = Setup::key(self.fate.rng.below(KEYS));
        let record = self.fate.recorder.call_append(c, len);
        let put = on_behalf_of(c, || store.put(&key, &Setup::value(record, len)));
        match put {
            Ok(lsn) => {
                self.clients[usize::from(c)] = Some(lsn);
                Ok(())
            }
            Err(e) => self.answered(c, Err(e)),
        }
    }
}
