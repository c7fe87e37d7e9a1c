//! An episode: the lives of a store in persistent memory, with clients that get, put and delete a
//! few keys, background work, and ends.
//!
//! Everything that the clients, the tree and the medium do in a life is recorded. Then the recording
//! is cut, at any request: the life ends there, by a power cut or because the process is killed. Of
//! each life several ends are tried, and the store is recovered from each. One of them is where the
//! next life begins.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use treering_engine::device::{MemPm, PmImage, PmRequest};
use treering_engine::events::Observer;
use treering_engine::pm_events::Event;
use treering_engine::{Kv, PmOptions, PmStore, PmTask};

use super::{Found, Heard, Refusal};
use crate::conformance::led::Recorded;
use crate::conformance::recorder::{Recorder, work_for};
use crate::conformance::refused::{Accepted, Tally};
use crate::conformance::situations::{Cover, Situations};
use treering_oracle::deadline::Deadline;
use treering_oracle::random::Random;

/// Openings of an episode.
const LIVES: u32 = 4;
/// Calls of all clients together in a life.
const CALLS: u32 = 160;
/// Calls between two changes of mood.
const DAY: u32 = 30;
/// Ends that are tried of a life, besides the one that the episode goes on from.
const TRIALS: u64 = 4;
/// The whole medium is compared after one in this many events, and at each end.
const CHECK_EVERY: u64 = 8;

/// An episode of a tree: everything that it depends on, except for the order of its threads.
pub trait Episode: Copy + Debug {
    /// The judge of its events.
    type Judge: Judge;

    /// The bytes of the medium.
    const BYTES: u64;

    /// The number of clients, each with a thread if there are several.
    fn clients(&self) -> u8;
    /// The number of keys.
    fn keys(&self) -> u8;
    /// The seed of all choices.
    fn seed(&self) -> u64;
    /// The options of a life. Lives may differ in what only memory depends on: `life` is any
    /// number.
    fn options(&self, life: u64) -> PmOptions;
    /// A judge for a store that was just formatted, with this on its medium.
    fn judge(&self, image: &PmImage) -> Self::Judge;
    /// Whether this event ends recovery.
    fn opens(event: &Event) -> bool;
}

/// A judge of recordings.
pub trait Judge: Clone {
    /// A step of the mirror.
    type Action;

    /// Takes the steps of one event.
    ///
    /// # Errors
    /// If the mirror has no such steps, or an invariant does not hold after them.
    fn hear(&mut self, client: u8, heard: &Heard) -> Result<(), Box<Refusal<Self::Action>>>;
    /// Compares what a crash may leave of the medium now with what it may leave in the mirror.
    ///
    /// # Errors
    /// The first word that differs.
    fn check(&self, device: &MemPm) -> Accepted;
    /// Why an event is refused.
    fn refuse(&self, client: u8, heard: &Heard, why: String) -> Box<Refusal<Self::Action>>;
    /// Whether the power may fail in a recovery after the process was killed now.
    fn may_fail_after_kill(&self, device: &MemPm) -> bool;
    /// Adds what another judge has counted that began as a copy of this one.
    fn learn(&mut self, other: &Self);
    /// The counts of accepted events and steps.
    fn tally(&self) -> &Tally;
    /// Notes the situations, and the last steps, from now on.
    fn note_situations(&mut self);
    /// The last steps as a behaviour of the spec.
    fn recorded(&self) -> Option<Recorded>;
    /// The situations in which each action was taken, as far as they were noted.
    fn situations(&self) -> Situations;
}

type Refused<E> = Box<Refusal<<<E as Episode>::Judge as Judge>::Action>>;
type Judged<E> = Result<(), Refused<E>>;

/// A medium with what its caches hold: requests that follow an image.
#[derive(Clone)]
struct Medium {
    image: PmImage,
    requests: Vec<PmRequest>,
}

impl Medium {
    fn device(&self) -> MemPm {
        let device = MemPm::from_image(self.image.clone());
        self.requests
            .iter()
            .for_each(|request| device.apply(request));
        device
    }
}

/// Records events, each with the number of requests that the device has had.
struct Tape {
    device: Arc<MemPm>,
    recorder: Recorder<(u64, Heard)>,
}

impl Tape {
    fn hear(&self, heard: Heard) {
        let mut entries = self.recorder.lock();
        // Under the lock, so that the numbers ascend.
        let at = self.device.requests();
        entries.push((at, heard));
        drop(entries);
        if at.is_multiple_of(4) {
            treering_engine::sync::yield_now();
        }
    }
}

impl Observer<Event> for Tape {
    fn event(&self, event: Event) {
        self.hear(Heard::Tree(Box::new(event)));
    }
}

/// A recorded life.
struct Life {
    /// Events, each with the requests before it and its client.
    entries: Vec<(u64, u8, Heard)>,
    requests: Vec<PmRequest>,
    /// When the store was open.
    opened: u64,
}

/// What the clients do in a life.
#[derive(Clone, Copy, PartialEq)]
enum Script {
    /// Calls of all kinds, generated from a number.
    Lives(u64),
    /// One client reads all keys.
    Reads,
}

struct Clients<'a, E> {
    episode: &'a E,
    store: &'a PmStore,
    tape: &'a Tape,
}

impl<E: Episode + Sync> Clients<'_, E> {
    fn get(&self, key: u8) -> treering_engine::Result<()> {
        self.tape.hear(Heard::Get(key));
        let mut value = Vec::new();
        let found = self.store.get(&bytes(key), &mut value)?;
        let value = found.then(|| number(&value));
        self.tape.hear(Heard::Got(value));
        Ok(())
    }

    fn write(&self, key: u8, value: Option<u64>) -> treering_engine::Result<()> {
        self.tape.hear(Heard::Write(key, value));
        match value {
            Some(value) => self.store.put(&bytes(key), &value.to_be_bytes())?,
            None => self.store.delete(&bytes(key))?,
        };
        self.tape.hear(Heard::Done);
        Ok(())
    }

    /// Whatever a call returns is recorded, and an error ends it.
    fn noting(&self, calls: impl FnOnce() -> treering_engine::Result<()>) {
        if let Err(e) = calls() {
            self.tape.hear(Heard::Failed(e.to_string()));
        }
    }

    fn read_all(&self) -> treering_engine::Result<()> {
        (1..=self.episode.keys()).try_for_each(|key| self.get(key))
    }

    fn client(&self, c: u8, seed: u64, until: &Deadline) -> treering_engine::Result<()> {
        let mut rng = Random::new(seed ^ u64::from(c) << 32);
        let alone = self.episode.clients() == 1;
        let moods = (seed % 4) as u32;
        for n in 0..CALLS / u32::from(self.episode.clients()) {
            if until.is_over() {
                break;
            }
            let (writes, deletes) = match (n / DAY + moods) % 4 {
                0 => (90, 5),
                1 => (50, 20),
                2 => (90, 90),
                _ => (90, 50),
            };
            let keys = if rng.one_in(3) {
                4
            } else {
                self.episode.keys()
            };
            let key = 1 + rng.below(keys.into()) as u8;
            if rng.percent(writes) {
                let value = seed << 24 | u64::from(c + 1) << 16 | u64::from(n);
                self.write(key, (!rng.percent(deletes)).then_some(value & !(1 << 63)))?;
            } else {
                self.get(key)?;
            }
            if alone && rng.one_in(8) {
                self.pump(&mut rng)?;
            }
        }
        Ok(())
    }

    fn pump(&self, rng: &mut Random) -> treering_engine::Result<()> {
        match rng.below(20) {
            0 => self.store.checkpoint().map(drop),
            1..=4 => self.store.pump(PmTask::MergeLeaves).map(drop),
            _ => self.store.pump(PmTask::CleanLog).map(drop),
        }
    }

    fn play(&self, script: Script, until: &Deadline) {
        let Script::Lives(seed) = script else {
            work_for(0);
            return self.noting(|| self.read_all());
        };
        if self.episode.clients() == 1 {
            work_for(0);
            return self.noting(|| self.client(0, seed, until));
        }
        let done = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let pump = scope.spawn(move || {
                work_for(self.episode.clients());
                let mut rng = Random::new(!seed);
                while !done.load(Ordering::Acquire) {
                    self.noting(|| self.pump(&mut rng));
                    for _ in 0..rng.below(1000) {
                        std::thread::yield_now();
                    }
                }
            });
            let run = |c| {
                scope.spawn(move || {
                    work_for(c);
                    self.noting(|| self.client(c, seed, until));
                })
            };
            let threads: Vec<_> = (0..self.episode.clients()).map(run).collect();
            let ends: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            done.store(true, Ordering::Release);
            for end in ends.into_iter().chain([pump.join()]) {
                end.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
    }
}

fn bytes(key: u8) -> [u8; 8] {
    u64::from(key).to_be_bytes()
}

/// A value that no client has written is one that the judge does not know.
fn number(value: &[u8]) -> u64 {
    value.try_into().map_or(u64::MAX, u64::from_be_bytes)
}

/// Opens the store and runs a script on it.
fn live<E: Episode + Sync>(
    episode: &E,
    (medium, life): (&Medium, u64),
    script: Script,
    until: &Deadline,
) -> Life {
    let device = Arc::new(medium.device());
    let first = device.requests();
    device.record();
    work_for(0);
    let tape = Arc::new(Tape {
        device: Arc::clone(&device),
        recorder: Recorder::new(episode.seed()),
    });
    let observer: Arc<dyn Observer<Event>> = tape.clone();
    let options = episode.options(life);
    tape.hear(Heard::Opens(Box::new(options)));
    let lived = catch_unwind(AssertUnwindSafe(|| {
        match PmStore::open_observed(device.clone(), &options, Some(observer)) {
            Ok(store) => Clients {
                episode,
                store: &store,
                tape: &tape,
            }
            .play(script, until),
            Err(e) => tape.hear(Heard::Failed(e.to_string())),
        }
    }));
    // What led to the panic is judged first.
    if lived.is_err() {
        tape.hear(Heard::Failed("the engine panicked".into()));
    }
    let entries = tape.recorder.take().into_iter();
    let entries: Vec<_> = entries
        .map(|(client, (at, heard))| (at - first, client, heard))
        .collect();
    let opened = (entries.iter())
        .find(|(_, _, heard)| matches!(heard, Heard::Tree(event) if E::opens(event)));
    Life {
        opened: opened.map_or(0, |(at, _, _)| *at),
        entries,
        requests: device.take_recording(),
    }
}

/// How a life ends.
#[derive(Clone, Copy)]
struct End {
    /// After so many requests.
    at: u64,
    /// The power fails, with this seed for what survives. `None`: the process is killed.
    power: Option<u64>,
}

impl Life {
    fn end(&self, least: u64, rng: &mut Random) -> End {
        let all = self.requests.len() as u64;
        let opened = self.opened.max(least);
        let at = match rng.below(4) {
            // During recovery.
            0 if least < opened => least + rng.below(opened - least),
            // In a step of each kind as often as in any other.
            1 | 2 => self.in_step(opened, rng),
            _ => opened + rng.below(all.saturating_sub(opened) + 1),
        };
        let power = (!rng.one_in(4)).then(|| rng.word());
        End {
            at: at.min(all),
            power,
        }
    }

    /// A time right after an event of the tree, of any kind.
    fn in_step(&self, least: u64, rng: &mut Random) -> u64 {
        let mut kinds: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (at, _, heard) in &self.entries {
            if *at >= least && matches!(heard, Heard::Tree(_)) {
                kinds.entry(heard.kind()).or_default().push(*at);
            }
        }
        let of_kind = kinds
            .values()
            .nth(rng.below(kinds.len().max(1) as u64) as usize);
        of_kind.map_or(least, |times| times[rng.below(times.len() as u64) as usize])
    }
}

/// A life that is being judged: its medium, as far as it was judged.
struct Stage<'a, E> {
    episode: &'a E,
    medium: &'a Medium,
    life: &'a Life,
    device: MemPm,
    applied: usize,
    next: usize,
}

impl<'a, E: Episode + Sync> Stage<'a, E> {
    fn new(episode: &'a E, medium: &'a Medium, life: &'a Life) -> Stage<'a, E> {
        Stage {
            episode,
            medium,
            life,
            device: medium.device(),
            applied: 0,
            next: 0,
        }
    }

    fn apply(&mut self, until: u64) {
        for request in &self.life.requests[self.applied..(until as usize).max(self.applied)] {
            self.device.apply(request);
        }
        self.applied = self.applied.max(until as usize);
    }

    /// Judges everything up to some number of requests.
    fn judge(&mut self, judge: &mut E::Judge, until: u64) -> Judged<E> {
        while let Some((at, client, heard)) = self.life.entries.get(self.next)
            && *at <= until
        {
            self.apply(*at);
            judge.hear(*client, heard)?;
            if (self.next as u64).is_multiple_of(CHECK_EVERY) {
                check(judge, &self.device, (*client, heard))?;
            }
            self.next += 1;
        }
        self.apply(until);
        Ok(())
    }

    /// Ends the life here. Returns the medium that the next one begins with, and whether the power
    /// may fail before that is open.
    fn end(&self, judge: &mut E::Judge, end: End) -> Result<(Medium, bool), Refused<E>> {
        let last = self.life.entries[..self.next].last();
        let (client, heard) = last.map_or((0, &Heard::Done), |(_, c, heard)| (*c, heard));
        check(judge, &self.device, (client, heard))?;
        match end.power {
            Some(seed) => {
                let image = self.device.crash_seeded(seed);
                judge.hear(0, &Heard::Crashed(Found(image.clone())))?;
                let requests = Vec::new();
                Ok((Medium { image, requests }, true))
            }
            None => {
                let may_fail = judge.may_fail_after_kill(&self.device);
                let caches = self.device.crash(&mut |outcomes| outcomes - 1);
                judge.hear(0, &Heard::Killed(Found(caches)))?;
                let mut medium = self.medium.clone();
                medium
                    .requests
                    .extend_from_slice(&self.life.requests[..self.applied]);
                Ok((medium, may_fail))
            }
        }
    }

    /// Recovers from an end that is only tried, and perhaps from another end meanwhile.
    fn try_end(&self, judge: &mut E::Judge, end: End, rng: &mut Random) -> Judged<E> {
        let (mut medium, mut may_fail) = self.end(judge, end)?;
        loop {
            let life = live(
                self.episode,
                (&medium, rng.word()),
                Script::Reads,
                &Deadline::never(),
            );
            let mut stage = Stage::new(self.episode, &medium, &life);
            if may_fail && rng.one_in(2) {
                let end = End {
                    at: rng.below(life.opened + 1),
                    power: (!rng.one_in(4)).then(|| rng.word()),
                };
                stage.judge(judge, end.at)?;
                let next = stage.end(judge, end)?;
                (medium, may_fail) = next;
                continue;
            }
            stage.judge(judge, life.requests.len() as u64)?;
            return check(judge, &stage.device, (0, &Heard::Done));
        }
    }
}

fn check<J: Judge>(
    judge: &J,
    device: &MemPm,
    (client, heard): (u8, &Heard),
) -> Result<(), Box<Refusal<J::Action>>> {
    let checked = judge.check(device);
    checked.map_err(|why| judge.refuse(client, heard, why))
}

/// The refusal of an episode, if it has one.
pub type Verdict<E> = Option<Refused<E>>;

/// Runs an episode and judges it. Ends when the time is up.
pub fn run_until<E: Episode + Sync>(episode: &E, until: &Deadline) -> (Tally, Verdict<E>) {
    let mut judge = None;
    let refusal = judged(episode, &mut judge, (until, false)).err();
    let tally = judge.map_or_else(Tally::default, |judge| judge.tally().clone());
    // With notes, the refusal is told as a behaviour, too.
    let again = refusal.as_ref().and_then(|first| {
        let second = record(episode).1;
        second.filter(|second| second.number == first.number && second.why == first.why)
    });
    (tally, again.or(refusal))
}

/// Runs an episode with the situations of all steps noted, and returns its judge.
pub fn record<E: Episode + Sync>(episode: &E) -> (Option<E::Judge>, Verdict<E>) {
    let mut judge = None;
    let refusal = judged(episode, &mut judge, (&Deadline::never(), true)).err();
    (judge, refusal)
}

/// The last steps of an episode as a behaviour of the spec.
pub fn recorded<E: Episode + Sync>(episode: &E) -> Option<Recorded> {
    record(episode).0?.recorded()
}

/// Records episodes until the time is up, and notes in `cover` what they have covered. `episode`
/// makes one of its number and a seed.
pub(in crate::conformance) fn cover_with<E: Episode + Sync>(
    cover: &mut Cover<E, Refusal<<E::Judge as Judge>::Action>>,
    (seed, limit): (u64, Duration),
    episode: impl Fn(u64, u64) -> E,
) {
    let until = Instant::now() + limit;
    let mut seeds = Random::new(seed);
    let mut heard = Situations::new();
    let mut n = 0;
    while Instant::now() < until && cover.refusal.is_none() {
        let episode = episode(n, seeds.word());
        n += 1;
        let (judge, refusal) = record(&episode);
        cover.refusal = refusal.map(|refusal| (episode, refusal));
        let Some(judge) = judge else { continue };
        cover.events += judge.tally().heard;
        for (label, situations) in judge.situations() {
            heard.entry(label).or_default().extend(situations);
        }
    }
    cover.hear(heard);
}

fn judged<E: Episode + Sync>(
    episode: &E,
    kept: &mut Option<E::Judge>,
    (until, notes): (&Deadline, bool),
) -> Judged<E> {
    let mut rng = Random::new(episode.seed());
    let device = Arc::new(MemPm::new(E::BYTES));
    let formatted = PmStore::open(device.clone(), &episode.options(0));
    drop(formatted.expect("a store in memory"));
    let mut medium = Medium {
        image: device.crash(&mut |_| 0),
        requests: Vec::new(),
    };
    let mut new = episode.judge(&medium.image);
    if notes {
        new.note_situations();
    }
    // The first opening is one after a power cut.
    let judge = kept.insert(new);
    judge.hear(0, &Heard::Crashed(Found(medium.image.clone())))?;
    let mut may_fail = true;
    for _ in 0..LIVES {
        let script = Script::Lives(rng.word() >> 24);
        let life = live(episode, (&medium, rng.word()), script, until);
        let least = if may_fail { 0 } else { life.opened };
        let last = life.end(least, &mut rng);
        let mut stage = Stage::new(episode, &medium, &life);
        let mut trials: Vec<End> = (0..TRIALS).map(|_| life.end(least, &mut rng)).collect();
        trials.retain(|end| end.at <= last.at);
        trials.sort_by_key(|end| end.at);
        for end in trials {
            if until.is_over() {
                return Ok(());
            }
            stage.judge(judge, end.at)?;
            let mut trial = judge.clone();
            let tried = stage.try_end(&mut trial, end, &mut rng);
            judge.learn(&trial);
            tried?;
        }
        stage.judge(judge, last.at)?;
        let next = stage.end(judge, last)?;
        (medium, may_fail) = next;
        if until.is_over() {
            return Ok(());
        }
    }
    Ok(())
}
