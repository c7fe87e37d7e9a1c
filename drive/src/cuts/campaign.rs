//! Exploring the states of a recording: rounds over its points, several states at once.
//!
//! ```text
//! round ──▶ points, in order ──▶ shapes ──▶ state ──▶ seen before? ──▶ jobs: mount, check
//! ```
//!
//! In a round the recording is followed once from its beginning, and each point of the round gives
//! some more of its states. Representatives take part in every round with a quota that doubles;
//! the second and third point of their kind begin a round later, the next four another round
//! later, and so on. The first quota is small, so that a short campaign sees all of the recording.
//! Where a flush has failed, the points behind it have a round of their own before all others.
//! Which states are explored depends on the recording, the options and the seed alone, unless time
//! ends the exploration.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::checker::{Checker, Mounting, Verdict};
use super::recovery::{self, Checked, Recovery};
use super::shapes::{SMALL, Shapes};
use super::subject::{Choice, Subject};
use super::tree::Tree;
use crate::error::DriveError;

/// States of a representative in the first round.
const QUOTA: usize = 2;
/// The quota doubles at most so often.
const LONGEST: u32 = 10;
/// States of a point whose recovery is cut.
const RECOVERED: usize = 16;
/// States of a point behind a failed flush, in the round before the first.
const FAILING: usize = 16;
/// A point that has had nothing new so often in a row is left alone.
const DRY: u8 = 2;
/// Failures that are kept of a kind.
const KEPT: usize = 200;

/// How long to explore.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The most states.
    pub(super) states: u64,
    /// The most time.
    pub(super) time: Duration,
    /// States at once.
    pub(super) jobs: usize,
    /// Cuts of each recovery, 0 for none.
    pub(super) recovery: usize,
}

/// A state that the checker cannot live with.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// Its number among the states.
    pub(super) state: u64,
    pub(super) choice: Choice,
    pub(super) verdict: Verdict,
    /// If the recovery was cut: how.
    pub(super) recovery: Option<Arc<Recovery>>,
}

/// What was explored.
#[derive(Debug, Default)]
pub(super) struct Explored {
    /// States that were made.
    pub(super) made: u64,
    /// Those that differ, on which the checker ran.
    pub(super) checked: u64,
    /// Those on which it failed.
    pub(super) failed: u64,
    /// States of cut recoveries on which it ran.
    pub(super) recoveries: u64,
    /// Points that were explored.
    pub(super) points: u64,
    /// Kinds of points that were.
    pub(super) kinds: u64,
    /// Points of which every subset was tried, untorn.
    pub(super) whole: u64,
    /// Whether nothing new was found in two rounds.
    pub(super) exhausted: bool,
    /// Whether it was stopped from outside.
    pub(super) stopped: bool,
    /// What failures of a kind print, how many there are, and some of them; in the order in which
    /// the kinds were found first. Those of cut recoveries are kinds of their own.
    pub(super) failures: Vec<(String, u64, Vec<Failure>)>,
}

/// A state on its way to a job.
struct Job {
    number: u64,
    tree: Tree,
    acks: Vec<u8>,
    choice: Choice,
    /// Whether its recovery is cut, too.
    recover: bool,
}

/// What a job found.
struct Done {
    number: u64,
    choice: Choice,
    result: Result<Checked, DriveError>,
}

/// Explores a recording. `told` hears of progress; `stop` is asked whether to end.
pub(super) fn explore(
    subject: &Subject,
    checker: &Arc<Checker>,
    limits: Limits,
    told: &mut dyn FnMut(&Explored),
    stop: &dyn Fn() -> bool,
) -> Result<Explored, DriveError> {
    let (jobs, waiting) = sync_channel::<Job>(2 * limits.jobs);
    let waiting = Arc::new(Mutex::new(waiting));
    let (done, results) = channel();
    thread::scope(|scope| {
        for _ in 0..limits.jobs {
            let place = Mounting::new(Arc::clone(checker), Arc::clone(&subject.store))?;
            let (waiting, done) = (Arc::clone(&waiting), done.clone());
            scope.spawn(move || work(subject, &place, &waiting, &done, limits.recovery));
        }
        drop(done);
        let rounds = Rounds {
            subject,
            limits,
            began: Instant::now(),
            seen: FxHashSet::default(),
            next: vec![0; subject.points.points.len()],
            dry: vec![0; subject.points.points.len()],
            explored: Explored::default(),
            whole: FxHashSet::default(),
            kinds: FxHashMap::default(),
            sent: 0,
            got: 0,
            early: FxHashMap::default(),
            jobs: Some(jobs),
            results,
            told,
            stop,
        };
        rounds.run()
    })
}

/// Checks states until there are no more.
fn work(
    subject: &Subject,
    place: &Mounting,
    waiting: &Mutex<Receiver<Job>>,
    done: &Sender<Done>,
    recovery: usize,
) {
    loop {
        let next = waiting.lock().recv();
        let Ok(job) = next else {
            return;
        };
        let result = match recovery {
            cuts if cuts > 0 && job.recover => {
                recovery::check(subject, place, &job.tree, &job.acks, cuts)
            }
            _ => place.check(&job.tree, &job.acks).map(Checked::of),
        };
        let answer = Done {
            number: job.number,
            choice: job.choice,
            result,
        };
        if done.send(answer).is_err() {
            return;
        }
    }
}

struct Rounds<'a> {
    subject: &'a Subject,
    limits: Limits,
    began: Instant,
    /// States that were checked: their trees and acknowledged lines.
    seen: FxHashSet<(u64, u64)>,
    /// The next shape of each point.
    next: Vec<usize>,
    /// How often in a row a point had nothing new.
    dry: Vec<u8>,
    explored: Explored,
    /// Points of which every subset was tried.
    whole: FxHashSet<usize>,
    /// Failures by kind, those of cut recoveries apart.
    kinds: FxHashMap<(String, bool), usize>,
    sent: u64,
    got: u64,
    /// Answers that came before those of earlier states.
    early: FxHashMap<u64, Done>,
    jobs: Option<SyncSender<Job>>,
    results: Receiver<Done>,
    told: &'a mut dyn FnMut(&Explored),
    stop: &'a dyn Fn() -> bool,
}

impl Rounds<'_> {
    fn run(mut self) -> Result<Explored, DriveError> {
        self.round(None)?;
        let mut idle = 0;
        for round in 0.. {
            let before = self.sent;
            let left = self.round(Some(round))?;
            idle = if self.sent == before && !left {
                idle + 1
            } else {
                0
            };
            if idle >= 2 {
                self.explored.exhausted = !self.is_over();
                break;
            }
            if self.is_over() {
                break;
            }
        }
        self.jobs = None;
        while self.got < self.sent {
            let Ok(done) = self.results.recv() else {
                break;
            };
            self.take(done)?;
        }
        self.explored.whole = self.whole.len() as u64;
        self.explored.stopped = (self.stop)();
        let points = self.subject.points.points.iter().zip(&self.next);
        let explored: Vec<_> = points.filter(|(_, next)| **next > 0).collect();
        self.explored.points = explored.len() as u64;
        let kinds: FxHashSet<u32> = explored.iter().map(|(point, _)| point.kind).collect();
        self.explored.kinds = kinds.len() as u64;
        Ok(self.explored)
    }

    fn is_over(&self) -> bool {
        self.sent >= self.limits.states || self.began.elapsed() >= self.limits.time || (self.stop)()
    }

    /// Follows the recording once; without a number, for the points behind failed flushes alone.
    /// Returns whether some point has shapes left that are not drawn.
    fn round(&mut self, round: Option<u32>) -> Result<bool, DriveError> {
        let mut left = false;
        let subject = self.subject;
        if round.is_none() && !subject.points.points.iter().any(|point| point.failing) {
            return Ok(true);
        }
        let mut reader = subject.reader()?;
        let mut walk = subject.walk(&mut reader);
        let points = subject.points.points.iter().enumerate();
        for (at, point) in points.skip(subject.points.first) {
            let begins = (point.rank + 1).ilog2();
            let quota = match round {
                None => point.failing.then_some(FAILING),
                Some(round) => (round.checked_sub(begins)).map(|age| QUOTA << age.min(LONGEST)),
            };
            let Some(quota) = quota else {
                left = true;
                continue;
            };
            if self.dry[at] >= DRY {
                continue;
            }
            if !walk.go_to(point.place)? {
                break;
            }
            let builder = subject.builder(&walk.window);
            let seed = subject.rules.seed ^ point.place.event << 1 ^ u64::from(point.place.after);
            let shapes = Shapes::new(&builder, subject.rules.tears, seed);
            let mut end = self.next[at] + quota;
            if point.effects == 0 {
                end = end.min(1);
            }
            let before = self.sent;
            while self.next[at] < end {
                if self.is_over() {
                    return Ok(true);
                }
                let number = self.next[at];
                self.next[at] += 1;
                let fates = shapes.fates(number);
                let tree = builder.build(&fates)?;
                self.explored.made += 1;
                if self.seen.insert((tree.hash(), point.acks)) {
                    self.send(Job {
                        number: self.sent,
                        tree,
                        acks: subject.acks(point.acks).to_vec(),
                        choice: Choice::of(point.place, builder.effects(), &fates),
                        recover: number < RECOVERED,
                    })?;
                }
            }
            let drawn = self.next[at] >= shapes.listed();
            if drawn && self.sent == before {
                self.dry[at] += 1;
            } else {
                self.dry[at] = 0;
            }
            left |= !drawn;
            if drawn && point.effects <= SMALL {
                self.whole.insert(at);
            }
        }
        Ok(left)
    }

    fn send(&mut self, job: Job) -> Result<(), DriveError> {
        let Some(jobs) = self.jobs.clone() else {
            return Ok(());
        };
        self.sent += 1;
        let mut job = job;
        loop {
            while let Ok(done) = self.results.try_recv() {
                self.take(done)?;
            }
            match jobs.try_send(job) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => return Ok(()),
                Err(TrySendError::Full(back)) => {
                    job = back;
                    if let Ok(done) = self.results.recv_timeout(Duration::from_millis(50)) {
                        self.take(done)?;
                    }
                }
            }
        }
    }

    /// Takes an answer, in the order of the states.
    fn take(&mut self, done: Done) -> Result<(), DriveError> {
        self.early.insert(done.number, done);
        while let Some(done) = self.early.remove(&self.got) {
            self.got += 1;
            let Checked {
                verdict,
                failed,
                cuts,
            } = done.result?;
            self.explored.checked += 1;
            self.explored.recoveries += cuts;
            if !verdict.is_good() {
                self.fail(Failure {
                    state: done.number,
                    choice: done.choice.clone(),
                    verdict,
                    recovery: None,
                });
            }
            for (verdict, recovery) in failed {
                self.fail(Failure {
                    state: done.number,
                    choice: done.choice.clone(),
                    verdict,
                    recovery: Some(Arc::new(recovery)),
                });
            }
            (self.told)(&self.explored);
        }
        Ok(())
    }

    fn fail(&mut self, failure: Failure) {
        let explored = &mut self.explored;
        explored.failed += 1;
        let kind = failure.verdict.kind();
        let key = (kind.clone(), failure.recovery.is_some());
        let at = *self.kinds.entry(key).or_insert_with(|| {
            explored.failures.push((kind, 0, Vec::new()));
            explored.failures.len() - 1
        });
        let (_, count, kept) = &mut explored.failures[at];
        *count += 1;
        if kept.len() < KEPT {
            kept.push(failure);
        }
    }
}
