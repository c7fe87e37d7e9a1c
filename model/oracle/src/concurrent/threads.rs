//! The threads of a history, and the watchdog.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use treering_engine::sync::pause_here;
use treering_engine::{Kv, Lsn, Result};

use super::client::{Client, Session};
use super::finding::Finding;
use super::plan::{Plan, RunError};
use super::races::Deed;
use crate::deadline::Deadline;
use crate::patience::{FairClock, Patience};

/// How often the watchdog looks.
const GLANCE: Duration = Duration::from_millis(2);

/// Background steps between two extra checkpoints: hardly any in one history, and always one in
/// another.
fn checkpoint_every(seed: u64) -> u64 {
    [2_000, 300, 40, 5][(seed >> 1) as usize % 4]
}

/// A client gives up after this many failed calls, where calls may fail: the store has failed for
/// good.
const MOST_FAILED: u32 = 4;

/// Where threads leave their findings.
#[derive(Default)]
struct Board {
    findings: Mutex<Vec<Finding>>,
    /// Steps of background work.
    pumped: AtomicU64,
    stop: AtomicBool,
}

impl Board {
    /// Runs the body of thread `who`. An error or a panic becomes a finding.
    fn guard(&self, who: &str, body: impl FnOnce() -> Result<()>) {
        let who = who.to_string();
        let finding = match catch_unwind(AssertUnwindSafe(body)) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => Finding::Failed { who, error },
            Err(panic) => Finding::Panicked {
                who,
                message: message(&*panic),
            },
        };
        self.lock().push(finding);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Finding>> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no message").to_string()
}

type Thread = (String, JoinHandle<()>);

fn spawn(
    board: &Arc<Board>,
    who: String,
    body: impl FnOnce() -> Result<()> + Send + 'static,
) -> std::io::Result<Thread> {
    let (board, name) = (Arc::clone(board), who.clone());
    let thread = std::thread::Builder::new().name(who.clone());
    Ok((who, thread.spawn(move || board.guard(&name, body))?))
}

/// Half of the histories run at full speed. In the others, threads are delayed at places that the
/// seed chooses.
fn places(seed: u64) -> Option<u64> {
    seed.is_multiple_of(2).then_some(seed)
}

/// Runs the clients and the pumps of a history. Returns when all have finished or are stuck. Once
/// `until` is over, clients begin no more calls.
pub(super) fn run(
    plan: &Plan,
    seed: u64,
    session: &Arc<Session>,
    kv: &Arc<dyn Kv>,
    until: &Deadline,
) -> Result<Vec<Finding>, RunError> {
    let board = Arc::new(Board::default());
    let started = plan.clients;
    let clients: std::io::Result<Vec<Thread>> = (0..plan.clients)
        .map(|number| {
            let mut client = Client::new(Arc::clone(session), number, seed);
            let (kv, board_of) = (Arc::clone(kv), Arc::clone(&board));
            let lit = Arc::clone(session);
            // The first clients make the calls that an even share leaves over.
            let share = plan.calls.saturating_sub(u64::from(number));
            let calls = share.div_ceil(u64::from(plan.clients));
            spawn(&board, format!("client {number}"), move || {
                let _held_up = places(seed).map(|seed| pause_here(seed, u64::from(number)));
                let mut failed = 0;
                let mut unless_expected = |error| {
                    failed += 1;
                    match lit.may_fail() && (failed < MOST_FAILED || lit.recovers()) {
                        true => Ok(()),
                        false => Err(error),
                    }
                };
                (0..calls)
                    .take_while(|_| !board_of.stop.load(Ordering::Relaxed) && !lit.is_dark())
                    .try_for_each(|_| client.step(&*kv).or_else(&mut unless_expected))
            })
        })
        .collect();
    let pumps = clients.and_then(|clients| {
        let pumps: std::io::Result<Vec<Thread>> = (0..plan.pumps)
            .map(|number| {
                let (kv, board_of) = (Arc::clone(kv), Arc::clone(&board));
                let session = Arc::clone(session);
                spawn(&board, format!("pump {number}"), move || {
                    let thread = u64::from(started + number);
                    let _held_up = places(seed).map(|seed| pause_here(seed, thread));
                    pump(&*kv, &session, &board_of, checkpoint_every(seed))
                })
            })
            .collect();
        Ok((clients, pumps?))
    });
    let (clients, pumps) = pumps.inspect_err(|_| board.stop.store(true, Ordering::Relaxed))?;
    let stuck = wait(plan, session, &board, clients, until);
    board.stop.store(true, Ordering::Relaxed);
    let stuck = stuck.and_then(|()| wait(plan, session, &board, pumps, &Deadline::never()));
    let mut findings = std::mem::take(&mut *board.lock());
    findings.extend(stuck.err());
    Ok(findings)
}

/// Does background work until the clients have finished.
fn pump(kv: &dyn Kv, session: &Session, board: &Board, checkpoint_every: u64) -> Result<()> {
    let nothing_if_full = |error| match session.may_stall(&error) {
        true => Ok(()),
        false => Err(error),
    };
    let (mut idle, mut turn) = (0u64, 0);
    while !board.stop.load(Ordering::Relaxed) {
        turn += 1;
        session.background(turn);
        let mut more = false;
        // It begins at the last call's tick, so it needs no tick of its own.
        let began = session.ticks.last();
        let pumped = kv.pump_due().map(|there_is| more = there_is);
        if more || pumped.is_err() {
            session.noted(Deed::Background, began);
        }
        pumped.or_else(nothing_if_full)?;
        let step = board.pumped.fetch_add(u64::from(more), Ordering::Relaxed);
        if !more {
            std::thread::sleep(Duration::from_micros(50));
        }
        // Background work is also called when nothing is due, since a bug may show then.
        idle = if more { 0 } else { idle + 1 };
        if more && step % checkpoint_every == checkpoint_every - 1
            || idle > 0 && idle.is_multiple_of(checkpoint_every)
        {
            let began = session.ticks.last();
            let done = kv.checkpoint().map(drop);
            session.noted(Deed::Checkpoint, began);
            done.or_else(nothing_if_full)?;
        }
    }
    Ok(())
}

/// Syncs up to `sync`, and lets `auditor` read everything, under the watchdog.
pub(super) fn watched(
    plan: &Plan,
    session: &Arc<Session>,
    kv: &Arc<dyn Kv>,
    mut auditor: Client,
    sync: Option<Lsn>,
) -> Result<Vec<Finding>, RunError> {
    let board = Arc::new(Board::default());
    let kv = Arc::clone(kv);
    let thread = spawn(&board, "the auditor".into(), move || {
        sync.map_or(Ok(()), |lsn| kv.sync(lsn))?;
        auditor.audit(&*kv)
    })?;
    let stuck = wait(plan, session, &board, vec![thread], &Deadline::never());
    let mut findings = std::mem::take(&mut *board.lock());
    findings.extend(stuck.err());
    Ok(findings)
}

/// Waits for threads as long as anything happens. Tells them to stop once `until` is over.
fn wait(
    plan: &Plan,
    session: &Session,
    board: &Board,
    mut threads: Vec<Thread>,
    until: &Deadline,
) -> Result<(), Finding> {
    // Background work alone is not progress, since a pump can find something to do forever.
    let progress = |threads: &[Thread]| (session.ticks.last(), threads.len());
    let mut patience = Patience::new(FairClock::new(), progress(&threads));
    while !threads.is_empty() {
        let (done, rest): (Vec<_>, Vec<_>) = threads
            .into_iter()
            .partition(|(_, thread)| thread.is_finished());
        threads = rest;
        for (_, thread) in done {
            // Its findings are on the board already.
            drop(thread.join());
        }
        if !threads.is_empty() && until.is_over() {
            board.stop.store(true, Ordering::Relaxed);
        }
        if patience.without(progress(&threads)) > plan.patience {
            let pumped = board.pumped.load(Ordering::Relaxed);
            let mut stuck: Vec<String> = threads.into_iter().map(|(who, _)| who).collect();
            stuck.push(format!("({pumped} steps of background work were done)"));
            return Err(Finding::NoProgress {
                patience: plan.patience,
                stuck,
            });
        }
        std::thread::sleep(GLANCE);
    }
    Ok(())
}
