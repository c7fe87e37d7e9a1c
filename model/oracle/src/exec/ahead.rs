//! Programs that run ahead of their checks: all requests are written before answers are judged.
//!
//! A call that waits for its answer costs two switches between processes. Which calls a program
//! makes does not depend on the answers, as long as they are right. So the program first runs
//! beside a map in memory, which answers at once, and each of its calls posts a request. Then it
//! runs again, and the same calls get the adapter's answers:
//!
//! ```text
//! 1st run   program ─▶ call ─▶ map ─▶ right answer       and a request on the tape
//! 2nd run   program ─▶ call ─▶ the next answer of the tape ─▶ judged
//! ```
//!
//! A wrong answer may change the calls that follow. So a program in which anything is wrong is run
//! once more, step by step, and that run's finding counts.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use treering_engine::{Batch, Error, Kv, Lsn, Result, Visitor};

use super::claims::{Claims, Durable, Has};
use super::error::ExecError;
use super::home::Home;
use super::process::{Process, path_of};
use super::store::{rows_of, value_of};
use super::wire::{Answer, Record, Request};
use crate::engine::{Disk, DiskKind, Engine, Limits, Promise};
use crate::program::Program;
use crate::session::execute;

/// A call on the tape, of which only its kind is needed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Get,
    /// Anything that is answered without a result.
    Do(&'static str),
    /// A scan with its limit.
    Scan(u64),
}

/// The requests of one program.
struct Tape {
    home: Arc<Home>,
    process: Process,
    folder: String,
    /// Whether requests are posted; else answers are taken.
    posts: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    map: BTreeMap<Vec<u8>, Vec<u8>>,
    calls: VecDeque<(Call, u64)>,
    writes: u64,
}

/// An engine that has run one program, and answers that program's calls.
pub(super) struct Ahead {
    /// `None` once it is dropped.
    tape: Option<Arc<Tape>>,
    name: String,
    _folder: tempfile::TempDir,
}

impl Ahead {
    /// Runs the program. `None` if that fails; then it is run step by step, which says why.
    pub(super) fn run(home: &Arc<Home>, program: &Program) -> Option<Ahead> {
        let folder = tempfile::tempdir().ok()?;
        let tape = Tape {
            home: Arc::clone(home),
            process: home.process().ok()?,
            folder: path_of(folder.path()).ok()?,
            posts: AtomicBool::new(true),
            inner: Mutex::default(),
        };
        let ahead = Ahead {
            tape: Some(Arc::new(tape)),
            name: home.name.to_owned(),
            _folder: folder,
        };
        execute(&ahead, program).ok()?;
        ahead.tape().posts.store(false, Ordering::Relaxed);
        Some(ahead)
    }

    fn tape(&self) -> &Arc<Tape> {
        self.tape.as_ref().expect("it is dropped last")
    }

    fn claims(&self) -> &Claims {
        self.tape().process.claims()
    }
}

impl Drop for Ahead {
    /// Lets the process go on to the next program, once it has answered everything.
    fn drop(&mut self) {
        let Some(tape) = self.tape.take().and_then(Arc::into_inner) else {
            return;
        };
        let inner = tape.inner.into_inner();
        let calls = inner.unwrap_or_else(PoisonError::into_inner).calls;
        // The last request closes the store.
        let answered = |(_, id): &(Call, u64)| tape.process.wait(*id).is_ok();
        if calls.iter().all(answered) {
            tape.home.put_by(tape.process);
        }
    }
}

impl Engine for Ahead {
    fn name(&self) -> String {
        self.name.clone()
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

    /// The store's folder is the tape's own, as requests refer to it that are not answered yet.
    fn open(&self, _: &Disk) -> Result<Arc<dyn Kv>> {
        let tape = Arc::clone(self.tape());
        tape.simply(&Request::Open(&tape.folder), "open")?;
        let closed = AtomicBool::new(false);
        Ok(Arc::new(Store { tape, closed }))
    }

    fn close(&self, store: Arc<dyn Kv>) -> Option<Result<()>> {
        let any: &dyn std::any::Any = &*store;
        Some(any.downcast_ref::<Store>()?.close())
    }

    fn keeps_all_when_dropped(&self) -> bool {
        true
    }
}

impl Tape {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn posts(&self) -> bool {
        self.posts.load(Ordering::Relaxed)
    }

    fn post(&self, request: &Request<'_>, call: Call) {
        let id = self.process.post(request);
        self.lock().calls.push_back((call, id));
    }

    /// The answer to the next call, which is of this kind.
    fn take(&self, is: impl FnOnce(Call) -> bool) -> Result<(Call, Answer)> {
        let next = self.lock().calls.pop_front();
        let Some((call, id)) = next.filter(|(call, _)| is(*call)) else {
            return Err(Error::Foreign {
                engine: self.home.name,
                why: "a wrong answer has changed the course of the program".into(),
            });
        };
        let answer = self.process.wait(id).map_err(|e| self.told(e))?;
        Ok((call, answer))
    }

    fn told(&self, error: ExecError) -> Error {
        self.home.told(error)
    }

    /// Posts a request that is answered without a result, or takes its answer.
    fn simply(&self, request: &Request<'_>, name: &'static str) -> Result<()> {
        if self.posts() {
            self.post(request, Call::Do(name));
            return Ok(());
        }
        let (_, answer) = self.take(|call| call == Call::Do(name))?;
        self.process.is_done(answer).map_err(|e| self.told(e))
    }

    fn wrote(&self) -> Lsn {
        let mut inner = self.lock();
        inner.writes += 1;
        Lsn(inner.writes)
    }

    /// The records of a scan that is posted: those that the visitor takes from the map.
    fn scan_map<'m>(
        rows: impl Iterator<Item = (&'m Vec<u8>, &'m Vec<u8>)>,
        visit: &mut Visitor<'_>,
    ) -> u64 {
        let mut taken = 0;
        for (key, value) in rows {
            taken += 1;
            if visit(key, value).is_break() {
                return taken;
            }
        }
        // One more would have been taken.
        taken + 1
    }

    fn rows(&self) -> Result<Vec<Record>> {
        let (call, answer) = self.take(|call| matches!(call, Call::Scan(_)))?;
        let Call::Scan(limit) = call else {
            unreachable!("it was asked for a scan");
        };
        rows_of(&self.process, answer, limit).map_err(|e| self.told(e))
    }
}

struct Store {
    tape: Arc<Tape>,
    closed: AtomicBool,
}

impl Store {
    fn close(&self) -> Result<()> {
        match self.closed.swap(true, Ordering::Relaxed) {
            true => Ok(()),
            false => self.tape.simply(&Request::Close, "close"),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // What is wrong with it shows when the store is opened again.
        let _ = self.close();
    }
}

impl Kv for Store {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let tape = &*self.tape;
        let found = if tape.posts() {
            tape.post(&Request::Get { key, tx: None }, Call::Get);
            tape.lock().map.get(key).cloned()
        } else {
            let (_, answer) = tape.take(|call| call == Call::Get)?;
            value_of(&tape.process, answer).map_err(|e| tape.told(e))?
        };
        value.extend_from_slice(found.as_deref().unwrap_or_default());
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        let put = Request::Put {
            key,
            value,
            tx: None,
        };
        self.tape.simply(&put, "put")?;
        if self.tape.posts() {
            self.tape.lock().map.insert(key.into(), value.into());
        }
        Ok(self.tape.wrote())
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        (self.tape).simply(&Request::Delete { key, tx: None }, "delete")?;
        if self.tape.posts() {
            self.tape.lock().map.remove(key);
        }
        Ok(self.tape.wrote())
    }

    fn write(&self, batch: &Batch) -> Result<Lsn> {
        let changes: Vec<_> = batch.iter().collect();
        self.tape.simply(&Request::Batch(&changes), "batch")?;
        if self.tape.posts() {
            let map = &mut self.tape.lock().map;
            for (key, value) in changes {
                match value {
                    Some(value) => map.insert(key.into(), value.into()),
                    None => map.remove(key),
                };
            }
        }
        Ok(self.tape.wrote())
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let tape = &*self.tape;
        if !tape.posts() {
            let rows = tape.rows()?;
            let _ = rows.iter().try_for_each(|(key, value)| visit(key, value));
            return Ok(());
        }
        let from_here = (Bound::Included(from), Bound::Unbounded);
        let limit = Tape::scan_map(tape.lock().map.range::<[u8], _>(from_here), visit);
        let scan = Request::Scan {
            from,
            limit,
            tx: None,
        };
        tape.post(&scan, Call::Scan(limit));
        Ok(())
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        let tape = &*self.tape;
        if !tape.process.claims().has(Has::ScanBack) {
            return super::store::scan_downwards(self, before, visit);
        }
        if !tape.posts() {
            let rows = tape.rows()?;
            let _ = rows.iter().try_for_each(|(key, value)| visit(key, value));
            return Ok(());
        }
        let below = before.map_or(Bound::Unbounded, Bound::Excluded);
        let up_to_here = (Bound::Unbounded, below);
        let limit = Tape::scan_map(tape.lock().map.range::<[u8], _>(up_to_here).rev(), visit);
        let scan = Request::ScanBack {
            below: before,
            limit,
            tx: None,
        };
        tape.post(&scan, Call::Scan(limit));
        Ok(())
    }

    fn sync(&self, _: Lsn) -> Result<()> {
        let tape = &*self.tape;
        let claims = tape.process.claims();
        match claims.durable {
            Durable::Close => {
                tape.simply(&Request::Close, "close")?;
                tape.simply(&Request::Open(&tape.folder), "open")
            }
            _ if !claims.has(Has::Sync) => Ok(()),
            Durable::Return | Durable::Sync => tape.simply(&Request::Sync, "sync"),
        }
    }
}
