//! An adapter's engine, as the oracle judges engines.

use std::any::Any;
use std::sync::Arc;

use treering_engine::{Kv, Result};

use super::ahead::Ahead;
use super::claims::{Claims, Consistency, Has};
use super::command::Command;
use super::error::ExecError;
use super::home::Home;
use super::process::{Process, path_of};
use super::store::Store;
use super::transactions;
use crate::engine::{Disk, DiskKind, Engine, Limits, Promise, Transactions};
use crate::finding::{Check, Finding};
use crate::program::{Op, Program};

/// Processes of a store that several have open.
const SEVERAL: usize = 2;

/// The engine behind an adapter: any program that speaks the protocol of `docs/EXEC.md`.
///
/// ```no_run
/// use treering_oracle::campaign::{Plan, differential};
/// use treering_oracle::exec::{Command, Exec};
///
/// let engine = Exec::start(Command::parse("python3 my_adapter.py").unwrap()).unwrap();
/// let outcome = differential(&engine, &Plan::default(), &|_| {});
/// assert!(outcome.failure.is_none());
/// assert_eq!(engine.broken(), None, "the adapter keeps to the protocol");
/// ```
#[derive(Clone)]
pub struct Exec {
    home: Arc<Home>,
    /// Whether several processes have each store open.
    several: bool,
    /// Whether programs run ahead of their checks; see [`Engine::ahead`].
    runs_ahead: bool,
}

impl Exec {
    /// Starts the program and hears what it has and claims.
    ///
    /// # Errors
    /// It cannot be started, or does not introduce itself as the protocol says.
    pub fn start(command: Command) -> Result<Exec, ExecError> {
        Ok(Exec {
            home: Arc::new(Home::start(command)?),
            several: false,
            runs_ahead: true,
        })
    }

    /// The same engine; each request waits for the answer to the one before it.
    #[must_use]
    pub fn step_by_step(self) -> Exec {
        Exec {
            runs_ahead: false,
            ..self
        }
    }

    /// The same engine; several processes have each store open and take turns. `None` if it does
    /// not claim that.
    #[must_use]
    pub fn in_several_processes(&self) -> Option<Exec> {
        let several = true;
        self.claims().has(Has::Processes).then(|| Exec {
            several,
            ..self.clone()
        })
    }

    /// What it has and claims.
    #[must_use]
    pub fn claims(&self) -> &Claims {
        &self.home.claims
    }

    /// How the adapter broke the protocol first, or why it could not be started again. Findings
    /// then say nothing about the engine.
    #[must_use]
    pub fn broken(&self) -> Option<ExecError> {
        self.home.broken()
    }

    /// An idle process, or a new one; it has no store open.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn process(&self) -> Result<Process, ExecError> {
        self.home.process()
    }

    fn store(store: &dyn Kv) -> Option<&Store> {
        (store as &dyn Any).downcast_ref()
    }
}

impl Engine for Exec {
    fn name(&self) -> String {
        match self.several {
            true => format!("{}/processes", self.home.name),
            false => self.home.name.to_owned(),
        }
    }

    fn disk(&self) -> DiskKind {
        DiskKind::Folder
    }

    fn promise(&self) -> Promise {
        self.claims().durable.promise()
    }

    fn limits(&self) -> Limits {
        self.claims().limits()
    }

    fn batch_bytes(&self) -> Option<u64> {
        self.claims().has(Has::Batch).then_some(u64::MAX)
    }

    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        let Disk::Folder(folder) = disk else {
            return Err(self
                .home
                .told(ExecError::Command("a disk that is no folder".into())));
        };
        let opened = || {
            if let Some(broken) = self.broken() {
                return Err(broken);
            }
            let folder = path_of(folder)?;
            let number = if self.several { SEVERAL } else { 1 };
            let processes: Result<Vec<Process>, _> = (0..number).map(|_| self.process()).collect();
            Store::open(&self.home, processes?, folder)
        };
        match opened() {
            Ok(store) => Ok(Arc::new(store)),
            Err(e) => Err(self.home.told(e)),
        }
    }

    fn vary(&self, seed: u64) -> Option<Box<dyn Engine>> {
        let several = (seed % 4 == 3).then(|| self.in_several_processes())??;
        Some(Box::new(several))
    }

    fn close(&self, store: Arc<dyn Kv>) -> Option<Result<()>> {
        let store: Arc<dyn Any + Send + Sync> = store;
        let mut store = Arc::into_inner(store.downcast::<Store>().ok()?)?;
        Some(store.close().map_err(|e| self.home.told(e)))
    }

    fn keeps_all_when_dropped(&self) -> bool {
        true
    }

    fn can_be_killed(&self) -> bool {
        true
    }

    fn kill(&self, store: &dyn Kv, after: Option<u64>) {
        let Some(store) = Exec::store(store) else {
            return;
        };
        match (after, store.processes()) {
            (Some(requests), [first, ..]) => first.kill_in(requests),
            // Every other time it ends by itself, between two requests.
            (None, [only]) if only.last() % 2 == 0 => {
                if let Err(e) = only.crash() {
                    self.home.told(e);
                }
            }
            (None, all) => all.iter().for_each(Process::kill),
            (Some(_), []) => {}
        }
    }

    fn is_killed(&self, store: &dyn Kv) -> bool {
        Exec::store(store).is_some_and(|store| store.was_killed())
    }

    fn is_linearizable(&self) -> bool {
        self.claims().consistency == Consistency::Linearizable
    }

    fn transactions(&self, seed: u64, requests: u64) -> Option<Result<Transactions>> {
        let level = self.claims().isolation?;
        let plan = transactions::Plan {
            seed,
            // Sometimes two that meet all the time, sometimes many.
            clients: [2, 4, 8][(seed % 3) as usize],
            keys: [2, 6, 20][(seed / 3 % 3) as usize],
            requests,
        };
        let report = match self.process().and_then(|process| {
            let report = transactions::run(&process, level, plan)?;
            self.home.put_by(process);
            Ok(report)
        }) {
            Ok(report) => report,
            Err(e) => return Some(Err(self.home.told(e))),
        };
        let finding = report.anomaly.map(|(anomaly, story)| Finding {
            check: Check::Isolation,
            operation: None,
            what: format!("transactions of seed {seed}: {}", anomaly.name),
            expected: format!("{} (claimed: {})", anomaly.expected, level.name()),
            found: format!("{}\n{story}", anomaly.found),
        });
        Some(Ok(Transactions {
            requests: report.requests,
            met: report.met,
            counts: vec![
                ("transactions committed", report.committed),
                ("transactions turned back", report.conflicts),
                ("snapshots", report.snapshots),
                ("transactions that met", report.met),
            ],
            finding,
        }))
    }

    fn ahead(&self, program: &Program) -> Option<Box<dyn Engine>> {
        let dies = |op: &Op| matches!(op, Op::Crash(_) | Op::CutPower(_));
        // It may answer a get before a put that was posted before it.
        if self.claims().has(Has::Concurrent)
            || self.several
            || !self.runs_ahead
            || program.ops.iter().any(dies)
            || self.broken().is_some()
        {
            return None;
        }
        let ahead = Ahead::run(&self.home, program)?;
        Some(Box::new(ahead))
    }
}
