//! Many open transactions on one store, their requests interleaved at random, judged by what the
//! adapter claims; see [`super::isolation`].
//!
//! The clients write one request after another. So an engine that has one writer at a time must turn
//! a second one back (`conflict`) rather than let it wait: nobody would end the first.

use std::collections::HashMap;

use super::claims::{Has, Isolation};
use super::error::ExecError;
use super::isolation::{Act, Anomaly, Event, Version, check};
use super::process::{Process, path_of};
use super::store::{rows_of, value_of};
use super::wire::{Refusal, Request};
use crate::random::Random;

/// How many transactions at once, and how much of it.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Decides everything.
    pub seed: u64,
    /// Transactions open at the same time.
    pub clients: usize,
    /// Keys; the fewer, the more often transactions meet.
    pub keys: u32,
    /// Requests.
    pub requests: u64,
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Requests.
    pub requests: u64,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that the engine turned back.
    pub conflicts: u64,
    /// Transactions and snapshots that were open with another that wrote the same key or one it read.
    pub met: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// What is wrong, and the requests up to it of the transactions that have to do with its keys.
    pub anomaly: Option<(Anomaly, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Writes,
    Reads,
}

struct Client {
    tx: u64,
    sort: Sort,
    /// Steps until it ends.
    left: u64,
    /// The keys that it has read.
    read: Vec<u32>,
}

struct Run<'p> {
    process: &'p Process,
    plan: Plan,
    random: Random,
    events: Vec<Event>,
    report: Report,
    next: u64,
}

fn key_of(key: u32) -> [u8; 2] {
    [b'k', key as u8]
}

/// Runs the plan on a new store of a process that has none open.
///
/// # Errors
/// The adapter breaks the protocol, dies, or returns an error other than a conflict.
pub fn run(process: &Process, level: Isolation, plan: Plan) -> Result<Report, ExecError> {
    let folder = tempfile::tempdir().map_err(|e| ExecError::Command(format!("no folder: {e}")))?;
    process.done(&Request::Open(&path_of(folder.path())?))?;
    let mut run = Run {
        process,
        plan,
        random: Random::part(plan.seed, 77),
        events: Vec::new(),
        report: Report::default(),
        next: 1,
    };
    let mut clients: Vec<Option<Client>> = (0..plan.clients.max(2)).map(|_| None).collect();
    while run.report.requests < plan.requests {
        let at = run.random.below(clients.len() as u64) as usize;
        let client = clients[at].take();
        clients[at] = run.step(client)?;
    }
    for client in clients.into_iter().flatten() {
        run.process.done(&Request::Abort(client.tx))?;
        run.note(client.tx, Act::Abort);
    }
    let Run {
        events, mut report, ..
    } = run;
    process.done(&Request::Close)?;
    report.met = met(&events);
    if let Err(anomaly) = check(level, &events) {
        let story = story(&events, &anomaly);
        report.anomaly = Some((anomaly, story));
    }
    Ok(report)
}

impl Run<'_> {
    fn note(&mut self, tx: u64, act: Act) {
        self.events.push(Event { tx, act });
    }

    /// Whether a request was done; a conflict ends the transaction.
    fn done(&mut self, request: &Request<'_>) -> Result<bool, ExecError> {
        self.report.requests += 1;
        turned_back(self.process.done(request))
    }

    fn step(&mut self, client: Option<Client>) -> Result<Option<Client>, ExecError> {
        let Some(mut client) = client else {
            return self.begin();
        };
        let tx = client.tx;
        if client.left == 0 {
            return self.end(&client).map(|()| None);
        }
        client.left -= 1;
        let writes =
            client.sort == Sort::Writes && !client.read.is_empty() && self.random.one_in(2);
        let goes_on = if writes {
            let nth = self.random.below(client.read.len() as u64) as usize;
            let key = client.read[nth];
            self.write(tx, key)?
        } else if self.random.one_in(6) {
            self.scan(&mut client)?
        } else {
            let key = self.random.below(u64::from(self.plan.keys)) as u32;
            self.read(&mut client, key)?
        };
        if !goes_on {
            self.report.conflicts += 1;
            self.note(tx, Act::Abort);
            return Ok(None);
        }
        Ok(Some(client))
    }

    fn begin(&mut self) -> Result<Option<Client>, ExecError> {
        // Now and then a single call, which sees what is committed.
        if self.random.one_in(5) {
            let key = self.random.below(u64::from(self.plan.keys)) as u32;
            let version = self.get(key, None)?;
            if let Some(version) = version {
                self.note(0, Act::Read(key, version));
            }
            return Ok(None);
        }
        let tx = self.next;
        self.next += 1;
        let sort = match self.process.claims().has(Has::Snapshot) && self.random.one_in(3) {
            true => Sort::Reads,
            false => Sort::Writes,
        };
        let request = match sort {
            Sort::Writes => Request::Begin(tx),
            Sort::Reads => Request::Snapshot(tx),
        };
        if !self.done(&request)? {
            self.report.conflicts += 1;
            return Ok(None);
        }
        self.report.snapshots += u64::from(sort == Sort::Reads);
        self.note(tx, Act::Begin);
        let left = 1 + self.random.below(6);
        let read = Vec::new();
        Ok(Some(Client {
            tx,
            sort,
            left,
            read,
        }))
    }

    fn end(&mut self, client: &Client) -> Result<(), ExecError> {
        let tx = client.tx;
        if client.sort == Sort::Writes && self.random.one_in(8) {
            self.report.requests += 1;
            self.process.done(&Request::Abort(tx))?;
            self.note(tx, Act::Abort);
            return Ok(());
        }
        // A snapshot ends well unless the engine turns it back: it counts in the order of
        // transactions.
        let (request, ended_well) = match client.sort {
            Sort::Writes => (Request::Commit(tx), &mut self.report.committed),
            Sort::Reads => (Request::Abort(tx), &mut 0),
        };
        self.report.requests += 1;
        if turned_back(self.process.done(&request))? {
            *ended_well += 1;
            self.note(tx, Act::Commit);
        } else {
            self.report.conflicts += 1;
            self.note(tx, Act::Abort);
        }
        Ok(())
    }

    /// The version of a key; `None` if the call was turned back.
    fn get(&mut self, key: u32, tx: Option<u64>) -> Result<Option<Version>, ExecError> {
        self.report.requests += 1;
        let get = Request::Get {
            key: &key_of(key),
            tx,
        };
        let answer = self.process.call(&get)?;
        match value_of(self.process, answer) {
            Ok(value) => self.version_of(value.as_deref()).map(Some),
            Err(e) => turned_back(Err(e)).map(|_| None),
        }
    }

    fn version_of(&self, value: Option<&[u8]>) -> Result<Version, ExecError> {
        let Some(value) = value else { return Ok(0) };
        let number = value.try_into().map(u64::from_be_bytes);
        number.map_err(|_| {
            let found = format!("{} other bytes", value.len());
            self.process
                .broken("a value that was written, of 8 bytes", &found)
        })
    }

    fn read(&mut self, client: &mut Client, key: u32) -> Result<bool, ExecError> {
        let Some(version) = self.get(key, Some(client.tx))? else {
            return Ok(false);
        };
        self.note(client.tx, Act::Read(key, version));
        client.read.push(key);
        Ok(true)
    }

    fn scan(&mut self, client: &mut Client) -> Result<bool, ExecError> {
        self.report.requests += 1;
        let limit = u64::from(self.plan.keys) + 1;
        let tx = Some(client.tx);
        let answer = self.process.call(&Request::Scan {
            from: b"",
            limit,
            tx,
        })?;
        let rows = match rows_of(self.process, answer, limit) {
            Ok(rows) => rows,
            Err(e) => return turned_back(Err(e)),
        };
        let found: HashMap<Vec<u8>, Vec<u8>> = rows.into_iter().collect();
        for key in 0..self.plan.keys {
            let value = found.get(key_of(key).as_slice());
            let version = self.version_of(value.map(Vec::as_slice))?;
            self.note(client.tx, Act::Read(key, version));
            client.read.push(key);
        }
        Ok(true)
    }

    fn write(&mut self, tx: u64, key: u32) -> Result<bool, ExecError> {
        let version = self.events.len() as u64 + 1;
        let put = Request::Put {
            key: &key_of(key),
            value: &version.to_be_bytes(),
            tx: Some(tx),
        };
        let done = self.done(&put)?;
        if done {
            self.note(tx, Act::Write(key, version));
        }
        Ok(done)
    }
}

fn turned_back(done: Result<(), ExecError>) -> Result<bool, ExecError> {
    match done {
        Ok(()) => Ok(true),
        Err(ExecError::Answered {
            refusal: Refusal::Conflict,
            ..
        }) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Commits of a key that an open transaction had read or written.
fn met(events: &[Event]) -> u64 {
    let mut open: HashMap<u64, (Vec<u32>, Vec<u32>)> = HashMap::new();
    let mut met = 0;
    for Event { tx, act } in events {
        match act {
            Act::Begin => drop(open.insert(*tx, Default::default())),
            Act::Read(key, _) => open.entry(*tx).or_default().0.push(*key),
            Act::Write(key, _) => open.entry(*tx).or_default().1.push(*key),
            Act::Abort => drop(open.remove(tx)),
            Act::Commit => {
                let (_, wrote) = open.remove(tx).unwrap_or_default();
                let meets = |(read, written): &&(Vec<u32>, Vec<u32>)| {
                    wrote
                        .iter()
                        .any(|key| read.contains(key) || written.contains(key))
                };
                met += open.values().filter(meets).count() as u64;
            }
        }
    }
    met
}

/// The requests of the transactions that explain an anomaly, up to it.
fn story(events: &[Event], anomaly: &Anomaly) -> String {
    const MOST: usize = 24;
    let of = events[anomaly.event].tx;
    let began = events
        .iter()
        .position(|event| event.tx == of && event.act == Act::Begin);
    let from = began.unwrap_or_else(|| anomaly.event.saturating_sub(MOST));
    let keys: Vec<u32> = (events[from..=anomaly.event].iter())
        .filter(|event| event.tx == of)
        .filter_map(|event| match event.act {
            Act::Read(key, _) | Act::Write(key, _) => Some(key),
            _ => None,
        })
        .collect();
    let about = |event: &&Event| match event.act {
        Act::Read(key, _) => event.tx == of && keys.contains(&key),
        Act::Write(key, _) => keys.contains(&key),
        Act::Begin => event.tx == of,
        Act::Commit | Act::Abort => true,
    };
    let told: Vec<String> = (events[from..=anomaly.event].iter().filter(about))
        .map(|Event { tx, act }| {
            let act = match act {
                Act::Begin => "begins".into(),
                Act::Read(key, 0) => format!("reads key {key}: absent"),
                Act::Read(key, version) => format!("reads key {key}: version {version}"),
                Act::Write(key, version) => format!("writes key {key}: version {version}"),
                Act::Commit => "commits".into(),
                Act::Abort => "aborts".into(),
            };
            format!("transaction {tx} {act}")
        })
        .collect();
    told[told.len().saturating_sub(MOST)..].join("\n")
}
