//! A store behind an adapter, as the oracle uses stores: each call waits for its answer.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use treering_engine::{Batch, Error, Kv, Lsn, Result, Visitor};

use super::claims::{Durable, Has};
use super::error::ExecError;
use super::home::Home;
use super::process::Process;
use super::wire::{Answer, Record, Request};

/// Records that the first request of a scan asks for, and the most of the later ones.
const FIRST_ROWS: u64 = 16;
const MOST_ROWS: u64 = 2_048;

/// A store that one or several processes have open.
pub(super) struct Store {
    home: Arc<Home>,
    processes: Vec<Process>,
    folder: String,
    /// The number of writes that have returned.
    writes: AtomicU64,
    /// The process that has the next turn.
    turn: AtomicUsize,
    /// Held by calls; held alone while the store is closed and opened in place of a sync.
    gate: RwLock<()>,
    closed: bool,
}

impl Store {
    /// Opens the store in `folder` in each of the processes.
    pub(super) fn open(
        home: &Arc<Home>,
        processes: Vec<Process>,
        folder: String,
    ) -> Result<Store, ExecError> {
        for process in &processes {
            process.done(&Request::Open(&folder))?;
        }
        Ok(Store {
            home: Arc::clone(home),
            processes,
            folder,
            writes: AtomicU64::new(0),
            turn: AtomicUsize::new(0),
            gate: RwLock::new(()),
            closed: false,
        })
    }

    /// The processes take turns, so that each sees what the others have written.
    fn process(&self) -> &Process {
        let turn = match self.processes.len() {
            1 => 0,
            n => self.turn.fetch_add(1, Ordering::Relaxed) % n,
        };
        &self.processes[turn]
    }

    fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, what: Has) -> bool {
        self.processes[0].claims().has(what)
    }

    /// What only the first process can be asked to do.
    pub(super) fn processes(&self) -> &[Process] {
        &self.processes
    }

    pub(super) fn was_killed(&self) -> bool {
        self.processes.iter().any(Process::was_killed)
    }

    fn told(&self, error: ExecError) -> Error {
        self.home.told(error)
    }

    fn wrote(&self, write: &Request<'_>) -> Result<Lsn> {
        let _open = self.enter();
        let done = self.process().done(write);
        done.map_err(|e| self.told(e))?;
        Ok(Lsn(self.writes.fetch_add(1, Ordering::Relaxed) + 1))
    }

    fn rows(&self, request: &Request<'_>, most: u64) -> Result<Vec<Record>> {
        let _open = self.enter();
        let process = self.process();
        process.rows(request, most).map_err(|e| self.told(e))
    }

    /// Closes the store, and keeps the processes for the next one.
    pub(super) fn close(&mut self) -> Result<(), ExecError> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        let mut result = Ok(());
        for process in self.processes.drain(..) {
            if process.was_killed() {
                continue;
            }
            match process.done(&Request::Close) {
                Ok(()) => self.home.put_by(process),
                Err(e) => result = Err(e),
            }
        }
        result
    }
}

impl Process {
    /// Asks for a scan and waits for its rows, at most `limit`.
    ///
    /// # Errors
    /// As of [`Process::call`], and [`ExecError::Answered`] if the answer is an error.
    pub fn rows(&self, scan: &Request<'_>, limit: u64) -> Result<Vec<Record>, ExecError> {
        rows_of(self, self.call(scan)?, limit)
    }
}

/// The rows of an answer, of which there may be at most so many.
pub(super) fn rows_of(
    process: &Process,
    answer: Answer,
    most: u64,
) -> Result<Vec<Record>, ExecError> {
    match answer {
        Answer::Rows(rows) if rows.len() as u64 <= most => Ok(rows),
        Answer::Rows(rows) => {
            let expected = format!("at most {most} records, the scan's limit");
            Err(process.broken(&expected, &format!("{} records", rows.len())))
        }
        error @ Answer::Error(..) => {
            process.is_done(error)?;
            Ok(Vec::new())
        }
        other => Err(process.unexpected("`rows`", &other)),
    }
}

/// The value of an answer.
pub(super) fn value_of(process: &Process, answer: Answer) -> Result<Option<Vec<u8>>, ExecError> {
    match answer {
        Answer::Value(value) => Ok(value),
        error @ Answer::Error(..) => process.is_done(error).map(|()| None),
        other => Err(process.unexpected("`value`", &other)),
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Err(e) = self.close()
            && e.is_broken()
        {
            self.home.told(e);
        }
    }
}

impl Kv for Store {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let _open = self.enter();
        let process = self.process();
        let answer = process.call(&Request::Get { key, tx: None });
        let found = answer.and_then(|answer| value_of(process, answer));
        let found = found.map_err(|e| self.told(e))?;
        value.extend_from_slice(found.as_deref().unwrap_or_default());
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        let put = Request::Put {
            key,
            value,
            tx: None,
        };
        self.wrote(&put)
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        self.wrote(&Request::Delete { key, tx: None })
    }

    fn write(&self, batch: &Batch) -> Result<Lsn> {
        let changes: Vec<_> = batch.iter().collect();
        self.wrote(&Request::Batch(&changes))
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let mut last: Option<Vec<u8>> = None;
        let mut limit = FIRST_ROWS;
        loop {
            let scan = Request::Scan {
                from: last.as_deref().unwrap_or(from),
                limit,
                tx: None,
            };
            let rows = self.rows(&scan, limit)?;
            let whole = rows.len() as u64 == limit;
            for (key, value) in rows {
                // A further request begins with the last record, as no key is known to be next.
                if last.as_ref() != Some(&key) && visit(&key, &value).is_break() {
                    return Ok(());
                }
                last = Some(key);
            }
            if !whole {
                return Ok(());
            }
            limit = (limit * 8).min(MOST_ROWS);
        }
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        if !self.has(Has::ScanBack) {
            return scan_downwards(self, before, visit);
        }
        let mut below = before.map(<[u8]>::to_vec);
        let mut limit = FIRST_ROWS;
        loop {
            let scan = Request::ScanBack {
                below: below.as_deref(),
                limit,
                tx: None,
            };
            let rows = self.rows(&scan, limit)?;
            let whole = rows.len() as u64 == limit;
            for (key, value) in rows {
                if visit(&key, &value).is_break() {
                    return Ok(());
                }
                below = Some(key);
            }
            if !whole {
                return Ok(());
            }
            limit = (limit * 8).min(MOST_ROWS);
        }
    }

    fn sync(&self, _: Lsn) -> Result<()> {
        let durable = self.processes[0].claims().durable;
        let alone = (durable == Durable::Close).then(|| self.gate.write());
        let _alone = alone.map(|gate| gate.unwrap_or_else(PoisonError::into_inner));
        for process in &self.processes {
            let done = match durable {
                Durable::Close => process
                    .done(&Request::Close)
                    .and_then(|()| process.done(&Request::Open(&self.folder))),
                _ if !self.has(Has::Sync) => Ok(()),
                Durable::Return | Durable::Sync => process.done(&Request::Sync),
            };
            done.map_err(|e| self.told(e))?;
        }
        Ok(())
    }
}

/// Scans downwards in a store that scans only upwards.
pub(super) fn scan_downwards(
    store: &dyn Kv,
    before: Option<&[u8]>,
    visit: &mut Visitor<'_>,
) -> Result<()> {
    let mut rows = Vec::new();
    store.scan(b"", &mut |key, value| {
        if before.is_some_and(|before| key >= before) {
            return ControlFlow::Break(());
        }
        rows.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    let mut downwards = rows.iter().rev();
    let _ = downwards.try_for_each(|(key, value)| visit(key, value));
    Ok(())
}
