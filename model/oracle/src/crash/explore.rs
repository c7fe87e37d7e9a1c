//! Tries the states that crashes leave, one after another.

use std::collections::HashSet;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::choices::Choices;
use super::coverage::Coverage;
use super::damage;
use super::effort::Effort;
use super::record::{Recorded, record};
use crate::deadline::Deadline;
use crate::differential::Failure;
use crate::finding::{Check, Finding};
use crate::medium::{Image, InDoubt, Medium, Request};
use crate::point::{Phase, Point};
use crate::program::{CrashPoint, Program};
use crate::reach::{Area, batches};
use crate::reference::Reference;
use crate::session::{Place, Session};
use crate::{DiskKind, Engine, panics};

/// The recorded run gets at most this share of the time until a deadline.
const RECORDED: f64 = 0.4;
/// The states that a single crash leaves get at most this share of the remaining time.
const CRASHED_ONCE: f64 = 0.7;

/// The crash point of a crash that keeps some of what was in doubt and loses the rest.
fn torn_on(disk: DiskKind) -> Point {
    match disk {
        DiskKind::Pm(_) => Point::TornLine,
        DiskKind::Blocks(_) | DiskKind::Folder => Point::Torn,
    }
}

struct Explorer<'e> {
    engine: &'e dyn Engine,
    program: &'e Program,
    effort: Effort,
    rng: SmallRng,
    seen: HashSet<u64>,
    /// The states already judged, by fingerprint and number of the promise.
    judged: HashSet<(u64, usize)>,
    coverage: Coverage,
    later: Vec<Later>,
}

/// A crash state that gets a second crash later.
struct Later {
    image: Image,
    /// The number of the promise that holds in it.
    promise: usize,
    crash: CrashPoint,
    again: bool,
    go_on: bool,
    damage: bool,
}

/// A store that was opened after a crash: the requests that opening took, and what the store
/// promises from then on.
/// then on.
struct Recovered {
    requests: Vec<Request>,
    promise: Reference,
    /// Whether nothing at all was lost.
    newest: bool,
}

/// The content of the device if these versions survive.
fn left(medium: &Medium, keep: &[usize]) -> Image {
    let mut picks = keep.iter();
    medium.crash(&mut |n| picks.next().map_or(0, |pick| (*pick).min(n - 1)))
}

/// The number of the opening for an image, which decides the options of recovery. The same image is
/// always opened in the same way.
fn opening_of(image: &Image) -> u64 {
    1 + image.fingerprint() % 1_000
}

impl<'e> Explorer<'e> {
    fn new(engine: &'e dyn Engine, program: &'e Program, effort: Effort, seed: u64) -> Self {
        Explorer {
            engine,
            program,
            effort,
            rng: SmallRng::seed_from_u64(seed),
            seen: HashSet::new(),
            judged: HashSet::new(),
            coverage: Coverage::default(),
            later: Vec::new(),
        }
    }

    /// Expects power cuts during batches, if the engine has batches.
    fn want_batches(&mut self) {
        if self.engine.batch_bytes().is_some() {
            for what in [batches::CUT, batches::KEPT, batches::LOST] {
                self.coverage.tally.reach.want(Area::Fault, what);
            }
        }
    }

    /// The ways to try with these blocks or words in doubt.
    fn choices(&mut self, doubt: &[InDoubt]) -> Choices {
        let most = self.effort.all_up_to(self.program.ops.len());
        Choices::of(doubt, most, self.effort.sample, &mut self.rng)
    }

    fn finding(check: Check, expected: String, found: String) -> Finding {
        Finding {
            check,
            operation: None,
            what: "open the store after the power cut".into(),
            expected,
            found,
        }
    }

    /// Opens what a crash has left and compares it with what is permitted.
    fn recover(
        &mut self,
        image: Image,
        permitted: &Reference,
        check: Check,
    ) -> Result<Recovered, Finding> {
        let opening = opening_of(&image);
        let medium = Medium::holding(image);
        medium.record();
        let mut session = Session::on(self.engine, self.program, Place::on(medium), opening)
            .map_err(|why| Self::finding(check, "a store that opens".into(), why))?;
        self.coverage.judged += 1;
        let completed = session.batches_completed();
        self.met(batches::COMPLETED, completed);
        let found = session
            .contents()
            .map_err(|why| Self::finding(check, "a store that can be read".into(), why))?;
        if !permitted.permits(&found) {
            let (expected, found) = permitted.explain(self.program, &found, 4);
            return Err(Self::finding(check, expected, found));
        }
        let requests = session.medium().map(|m| m.take_recording());
        let newest = permitted.is_newest(&found);
        session.settle(found);
        Ok(Recovered {
            requests: requests.unwrap_or_default(),
            promise: session.reference().clone(),
            newest,
        })
    }

    fn met(&mut self, what: &'static str, n: u64) {
        self.coverage.tally.reach.met(Area::Fault, what, n);
    }

    /// Tries one crash state.
    fn try_state(
        &mut self,
        image: Image,
        (promise, in_batch): (usize, bool),
        permitted: &Reference,
        crash: &CrashPoint,
    ) -> Result<(), Finding> {
        let fingerprint = image.fingerprint();
        if !self.judged.insert((fingerprint, promise)) {
            return Ok(());
        }
        self.coverage.states += u64::from(self.seen.insert(fingerprint));
        let recovered = self.recover(image.clone(), permitted, Check::Crash)?;
        if in_batch {
            let fate = [batches::LOST, batches::KEPT][usize::from(recovered.newest)];
            self.met(batches::CUT, 1);
            self.met(fate, 1);
        }
        let n = self.coverage.judged;
        let every = |period: u64| period > 0 && n.is_multiple_of(period);
        let (again, go_on) = (every(self.effort.again), every(self.effort.go_on));
        let damage = every(self.effort.damage);
        if again || go_on || damage {
            self.later.push(Later {
                image,
                promise,
                crash: crash.clone(),
                again,
                go_on,
                damage,
            });
        }
        Ok(())
    }

    /// Tries second crashes, in states that are crashed again during recovery or after more writes.
    /// This comes after all first crashes, so that what one crash shows is not attributed to a
    /// second.
    fn follow_up(
        &mut self,
        run: &Recorded,
        crashes: &mut Vec<CrashPoint>,
        until: &Deadline,
    ) -> Result<(), Finding> {
        for later in std::mem::take(&mut self.later) {
            if until.is_over() {
                break;
            }
            let permitted = &run.promises[later.promise].reference;
            *crashes = vec![later.crash];
            if later.again {
                let recovered = self.recover(later.image.clone(), permitted, Check::Crash)?;
                self.cut_recovery(&later.image, &recovered, permitted, crashes)?;
            }
            if later.damage {
                self.damage(&later.image, permitted, crashes)?;
            }
            if later.go_on {
                self.go_on(later.image)?;
            }
        }
        Ok(())
    }

    /// Cuts the power at some request of a recovery, and once more when recovery is over and the
    /// content must not change any more.
    fn cut_recovery(
        &mut self,
        image: &Image,
        recovered: &Recovered,
        permitted: &Reference,
        crashes: &mut Vec<CrashPoint>,
    ) -> Result<(), Finding> {
        let total = recovered.requests.len();
        if total == 0 {
            return Ok(());
        }
        let twin = Medium::holding(image.clone());
        let stop = self.rng.random_range(1..=total);
        for (i, request) in recovered.requests.iter().enumerate() {
            twin.apply(request);
            let done = i + 1;
            if done != stop && done != total {
                continue;
            }
            self.coverage.note(Phase::Recovery, request.point());
            let ways = self.choices(&twin.in_doubt()).ways;
            let keep = ways[self.rng.random_range(0..ways.len())].clone();
            let again = left(&twin, &keep);
            self.coverage.states += u64::from(self.seen.insert(again.fingerprint()));
            crashes.truncate(1);
            crashes.push(CrashPoint {
                after_request: done as u64,
                keep,
                damage: None,
            });
            // The store was opened, and a reader may have acted on its content.
            let permitted = if done == total {
                &recovered.promise
            } else {
                permitted
            };
            self.recover(again, permitted, Check::CrashInRecovery)?;
        }
        crashes.truncate(1);
        Ok(())
    }

    /// Damages a block of what a crash has left.
    fn damage(
        &mut self,
        image: &Image,
        permitted: &Reference,
        crashes: &mut [CrashPoint],
    ) -> Result<(), Finding> {
        let Some(picked) = damage::pick(self.engine, image, &mut self.rng) else {
            return Ok(());
        };
        crashes[0].damage = Some(picked);
        let image = image.clone();
        let told = damage::judge(self.engine, self.program, image, picked, permitted)?;
        self.coverage.damaged += 1;
        self.coverage.told += u64::from(told);
        crashes[0].damage = None;
        Ok(())
    }

    /// Writes to a recovered store, makes the writes durable, and cuts the power. Writes that are
    /// acknowledged after a crash must survive as well.
    fn go_on(&mut self, image: Image) -> Result<(), Finding> {
        let opening = opening_of(&image);
        let place = Place::on(Medium::holding(image));
        let error = |why: String| Self::finding(Check::CrashInRecovery, "a store".into(), why);
        let mut session = Session::on(self.engine, self.program, place, opening).map_err(error)?;
        let found = session.contents().map_err(error)?;
        session.settle(found);
        let writes = self.program.ops.iter().enumerate();
        for (at, _) in writes.filter(|(_, op)| op.is_write()).take(3) {
            session.step(at)?;
        }
        session.make_durable()?;
        let promise = session.reference().clone();
        let newest = self.rng.random_range(0..2) == 1;
        let Some(medium) = session.medium().cloned() else {
            return Ok(());
        };
        drop(session);
        let image = medium.crash(&mut |n| if newest { n - 1 } else { 0 });
        self.recover(image, &promise, Check::CrashInRecovery)?;
        Ok(())
    }

    fn all(
        &mut self,
        run: &Recorded,
        crashes: &mut Vec<CrashPoint>,
        until: &Deadline,
    ) -> Result<(), Finding> {
        let once = until.part(CRASHED_ONCE);
        let twin = run.twin();
        let mut promise = 0;
        'points: for after in 0..=run.requests.len() {
            let point = match after.checked_sub(1).map(|i| &run.requests[i]) {
                None => Point::Nothing,
                Some(request) => {
                    twin.apply(request);
                    request.point()
                }
            };
            while (run.promises.get(promise + 1)).is_some_and(|next| next.from <= after) {
                promise += 1;
            }
            if after < run.built {
                continue;
            }
            let settled = run.settles(after) || run.promises[promise].from == after;
            let one_in = self.effort.one_in.max(1);
            let short = self.program.ops.len() <= self.effort.short;
            if !settled && !short && self.rng.random_range(0..one_in) > 0 {
                continue;
            }
            let permitted = &run.promises[promise].reference;
            let choices = self.choices(&twin.in_doubt());
            self.coverage.exhausted += u64::from(choices.all);
            self.coverage.sampled += u64::from(!choices.all);
            for keep in choices.ways {
                if once.is_over() {
                    break 'points;
                }
                let torn = keep.contains(&0) && keep.iter().any(|version| *version > 0);
                let point = if torn { torn_on(run.disk) } else { point };
                self.coverage.note(Phase::Run, point);
                let image = left(&twin, &keep);
                *crashes = vec![CrashPoint {
                    after_request: after as u64,
                    keep,
                    damage: None,
                }];
                let in_force = (promise, run.promises[promise].batch);
                self.try_state(image, in_force, permitted, &crashes[0])?;
            }
        }
        until.join(&once);
        self.follow_up(run, crashes, until)?;
        crashes.clear();
        Ok(())
    }
}

fn panicked(said: String) -> Finding {
    Finding {
        check: Check::Panic,
        operation: None,
        what: "open the store after the power cut".into(),
        expected: "an answer".into(),
        found: said,
    }
}

/// Runs the program once and checks the states that power cuts could have left, as many as `effort`
/// allows. The same seed tries the same states.
///
/// ```
/// use treering_oracle::Program;
/// use treering_oracle::crash::{Effort, explore};
/// use treering_oracle::engines::{BTree, Geometry};
///
/// let engine = BTree::named("btree:in-place", Geometry::Tiny).unwrap();
/// let text = r#"{"schema":"treering.program/1","engine":"btree:in-place"}
/// put "a" 100
/// sync
/// delete "a"
/// checkpoint
/// "#;
/// let program = Program::parse(text).unwrap().program;
/// let coverage = explore(&engine, &program, Effort::default(), 0).unwrap();
/// assert!(coverage.states > 10);
/// assert_eq!(coverage.sampled, 0, "a short program is tried exhaustively");
/// ```
///
/// # Errors
/// What was found, with the program and the power cuts that show it.
pub fn explore(
    engine: &dyn Engine,
    program: &Program,
    effort: Effort,
    seed: u64,
) -> Result<Coverage, Box<Failure>> {
    explore_until(engine, program, effort, seed, &Deadline::never())
}

/// As [`explore`], but stops between two states once `until` is over. The recorded run and the
/// first crashes each get only a share of the time, so that second crashes are tried as well.
///
/// # Errors
/// As [`explore`].
pub fn explore_until(
    engine: &dyn Engine,
    program: &Program,
    effort: Effort,
    seed: u64,
    until: &Deadline,
) -> Result<Coverage, Box<Failure>> {
    let mut crashes = Vec::new();
    let outcome = panics::catch(|| {
        let run = until.part(RECORDED);
        let (recorded, tally) = record(engine, program, &run)?;
        until.join(&run);
        let mut explorer = Explorer::new(engine, program, effort, seed);
        explorer.coverage.tally = tally;
        explorer.want_batches();
        explorer.all(&recorded, &mut crashes, until)?;
        Ok(explorer.coverage)
    });
    let finding = match outcome {
        Ok(Ok(coverage)) => return Ok(coverage),
        Ok(Err(finding)) => finding,
        Err(said) => panicked(said),
    };
    let program = Program {
        crashes,
        ..program.clone()
    };
    Err(Box::new(Failure { program, finding }))
}

/// Replays the power cuts of [`Program::crashes`], one after the other, and then writes to the
/// store that is left.
///
/// # Errors
/// What is wrong.
pub fn replay(engine: &dyn Engine, program: &Program) -> Result<(), Finding> {
    let run = || {
        let (recorded, _) = record(engine, program, &Deadline::never())?;
        let Some((first, later)) = program.crashes.split_first() else {
            return Ok(());
        };
        let at_most = |n: u64, requests: &[Request]| (n as usize).min(requests.len());
        let after = at_most(first.after_request, &recorded.requests);
        let twin = recorded.twin();
        (recorded.requests[..after].iter()).for_each(|request| twin.apply(request));
        let permitted = recorded.promise(after);
        let mut explorer = Explorer::new(engine, program, Effort::default(), 0);
        let mut image = left(&twin, &first.keep);
        if let Some(damage) = first.damage {
            return damage::judge(engine, program, image, damage, permitted).map(drop);
        }
        let mut recovered = explorer.recover(image.clone(), permitted, Check::Crash)?;
        for crash in later {
            let total = recovered.requests.len();
            let after = at_most(crash.after_request, &recovered.requests);
            let twin = Medium::holding(image);
            (recovered.requests[..after].iter()).for_each(|request| twin.apply(request));
            let promise = recovered.promise;
            let permitted = if after == total { &promise } else { permitted };
            image = left(&twin, &crash.keep);
            recovered = explorer.recover(image.clone(), permitted, Check::CrashInRecovery)?;
        }
        explorer.go_on(image)
    };
    panics::catch(run).unwrap_or_else(|said| Err(panicked(said)))
}
