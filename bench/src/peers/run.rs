//! The phases of a run: what clients do between two readings of the device.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::data::{Choose, Data, Key, Shuffle, Value, WIDTH};
use super::engines::Peer;
use super::judge::Judge;
use super::workload::{SCAN, Workload};
use super::{Failure, Result};

/// When clients stop.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time, or when everything is loaded.
    Time(Duration),
    /// After this many operations per client.
    Ops(u64),
    /// When everything is loaded.
    Loaded,
}

/// Records per scan when all records are checked.
const SWEEP: u64 = 10_000;

/// Writes per group when loading off the clock.
const FILL: usize = 1000;

/// The work that clients did.
pub struct Tally {
    /// Number of operations; a scan is one.
    pub ops: u64,
    /// Number of writes among them.
    pub writes: u64,
    /// Latency of each operation in nanoseconds. Each write of a group has the group's latency.
    pub latency_ns: Histogram<u64>,
}

impl Tally {
    fn new() -> Tally {
        Tally {
            ops: 0,
            writes: 0,
            // Up to a minute, with three digits.
            latency_ns: Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("valid bounds"),
        }
    }

    fn note(&mut self, began: Instant, ops: u64) {
        let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.latency_ns.saturating_record_n(ns.max(1), ops);
        self.ops += ops;
    }

    fn add(&mut self, other: &Tally) {
        self.ops += other.ops;
        self.writes += other.writes;
        self.latency_ns
            .add(&other.latency_ns)
            .expect("the same bounds");
    }
}

/// An engine, its judge and its clients.
pub struct Bench<'a> {
    peer: &'a dyn Peer,
    judge: &'a Judge,
    threads: u64,
    /// Number of records loaded so far.
    loaded: AtomicU64,
    order: Shuffle,
    failed: AtomicBool,
}

impl<'a> Bench<'a> {
    /// Returns an engine without records.
    #[must_use]
    pub fn new(peer: &'a dyn Peer, judge: &'a Judge, threads: u64) -> Bench<'a> {
        Bench {
            peer,
            judge,
            threads,
            loaded: AtomicU64::new(0),
            order: Shuffle::new(judge.data().records(), 0x1000),
            failed: AtomicBool::new(false),
        }
    }

    /// Runs all clients to the end. The first failure stops all of them.
    ///
    /// # Errors
    /// The first failure of a client.
    pub fn phase(
        &self,
        workload: Workload,
        group: usize,
        until: Until,
        seed: u64,
    ) -> Result<Tally> {
        self.failed.store(false, Ordering::Relaxed);
        let choose = workload.choose(self.judge.data().records());
        let deadline = match until {
            Until::Time(time) => Some(Instant::now() + time),
            Until::Ops(_) | Until::Loaded => None,
        };
        let ops = match until {
            Until::Ops(ops) => ops,
            Until::Time(_) | Until::Loaded => u64::MAX,
        };
        let on_each = |thread| {
            let client = Client {
                bench: self,
                workload,
                choose: &choose,
                thread,
                deadline,
                ops,
                random: SmallRng::seed_from_u64(seed << 8 | thread),
                group: Vec::with_capacity(group),
                numbers: Vec::with_capacity(group),
                limit: group,
                tally: Tally::new(),
                value: Vec::with_capacity(WIDTH),
            };
            client.run()
        };
        let mut all = Tally::new();
        for tally in self.on_threads(self.threads, on_each)? {
            all.add(&tally);
        }
        Ok(all)
    }

    /// Loads the records that were not loaded on the clock.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn fill(&self) -> Result<()> {
        let data = *self.judge.data();
        let on_each = |_| {
            let mut group = Vec::with_capacity(FILL);
            let mut numbers = Vec::with_capacity(FILL);
            while !self.failed.load(Ordering::Relaxed) {
                while group.len() < FILL
                    && let Some(record) = self.next_to_load()
                {
                    group.push(self.issue(&data, record));
                    numbers.push(record);
                }
                if group.is_empty() {
                    break;
                }
                self.peer.fill(&group)?;
                numbers.drain(..).for_each(|n| self.judge.acknowledge(n));
                group.clear();
            }
            Ok(())
        };
        self.on_threads(self.peer.fillers() as u64, on_each)?;
        self.peer.sync()
    }

    /// Checks every record while nobody writes.
    ///
    /// # Errors
    /// [`Failure::Wrong`] if a record is not as it was last written; errors of the engine.
    pub fn sweep(&self) -> Result<()> {
        let data = self.judge.data();
        let mut first = 0;
        while first < data.records() {
            self.scan(first, SWEEP)?;
            first += SWEEP;
        }
        Ok(())
    }

    fn on_threads<T: Send>(
        &self,
        threads: u64,
        on_each: impl Fn(u64) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        std::thread::scope(|scope| {
            let each = &on_each;
            let spawned: Vec<_> = (0..threads)
                .map(|thread| {
                    scope.spawn(move || {
                        let result = each(thread);
                        if result.is_err() {
                            self.failed.store(true, Ordering::Relaxed);
                        }
                        result
                    })
                })
                .collect();
            let join = |client: std::thread::ScopedJoinHandle<'_, Result<T>>| {
                let panicked = |_| Err(Failure::Child("a client panicked".into()));
                client.join().unwrap_or_else(panicked)
            };
            let all: Vec<_> = spawned.into_iter().map(join).collect();
            all.into_iter().collect()
        })
    }

    fn next_to_load(&self) -> Option<u64> {
        let records = self.judge.data().records();
        if self.loaded.load(Ordering::Relaxed) >= records {
            return None;
        }
        let place = self.loaded.fetch_add(1, Ordering::Relaxed);
        (place < records).then(|| self.order.at(place))
    }

    fn issue(&self, data: &Data, record: u64) -> (Key, Value) {
        let version = self.judge.issue(record);
        (data.key(record), data.value(record, version))
    }

    /// Scans records that nobody writes.
    fn scan(&self, first: u64, limit: u64) -> Result<()> {
        let (mut found, mut wrong) = (0, None);
        let key = self.judge.data().key(first);
        self.peer.scan(&key, limit, &mut |key, value| {
            let judged = self.judge.judge_key(first, found, key).and_then(|()| {
                let record = first + found;
                self.judge
                    .judge(record, self.judge.acknowledged(record), Some(value))
            });
            wrong = wrong.take().or(judged.err());
            found += 1;
        })?;
        match wrong {
            Some(wrong) => Err(wrong),
            None => self.judge.judge_length(first, limit, found),
        }
    }
}

struct Client<'a> {
    bench: &'a Bench<'a>,
    workload: Workload,
    choose: &'a Choose,
    thread: u64,
    deadline: Option<Instant>,
    ops: u64,
    random: SmallRng,
    /// The writes of the next group, and their records.
    group: Vec<(Key, Value)>,
    numbers: Vec<u64>,
    limit: usize,
    tally: Tally,
    value: Vec<u8>,
}

impl Client<'_> {
    fn run(mut self) -> Result<Tally> {
        let mut done = 0;
        while done < self.ops && !self.is_over(done) {
            done += 1;
            if self.workload == Workload::Load {
                let Some(record) = self.bench.next_to_load() else {
                    break;
                };
                self.write(record)?;
            } else if self.workload == Workload::Scan {
                self.scan()?;
            } else if self.workload.writes_of_two() > self.random.random_range(0..2) {
                let record = self.draw_number();
                self.write(self.own(record))?;
            } else {
                let record = self.draw_number();
                self.read(record)?;
            }
        }
        self.hand_over()?;
        Ok(self.tally)
    }

    fn is_over(&self, done: u64) -> bool {
        // Reading the clock costs as much as a fast read. No client stops before its first
        // operation.
        let looks = done > 0 && done.is_multiple_of(16);
        looks && self.deadline.is_some_and(|end| Instant::now() >= end)
            || self.bench.failed.load(Ordering::Relaxed)
    }

    fn draw_number(&mut self) -> u64 {
        let records = self.bench.judge.data().records();
        self.choose.draw(records, &mut self.random)
    }

    /// Returns the nearest record that this client may write: every n-th of n clients.
    fn own(&self, record: u64) -> u64 {
        let threads = self.bench.threads;
        let own = record - record % threads + self.thread;
        if own < self.bench.judge.data().records() {
            own
        } else {
            own.saturating_sub(threads)
        }
    }

    fn read(&mut self, record: u64) -> Result<()> {
        let judge = self.bench.judge;
        let key = judge.data().key(record);
        let least = judge.acknowledged(record);
        let began = Instant::now();
        let there = self.bench.peer.get(&key, &mut self.value)?;
        self.tally.note(began, 1);
        judge.judge(record, least, there.then_some(&self.value))
    }

    fn write(&mut self, record: u64) -> Result<()> {
        if self.numbers.contains(&record) {
            // Engines differ in how they treat a key that occurs twice in a group.
            self.hand_over()?;
        }
        let write = self.bench.issue(self.bench.judge.data(), record);
        self.group.push(write);
        self.numbers.push(record);
        if self.group.len() >= self.limit {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<()> {
        if self.group.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        self.bench.peer.write(&self.group)?;
        let writes = self.group.len() as u64;
        self.tally.note(began, writes);
        self.tally.writes += writes;
        for record in self.numbers.drain(..) {
            self.bench.judge.acknowledge(record);
        }
        self.group.clear();
        Ok(())
    }

    fn scan(&mut self) -> Result<()> {
        let records = self.bench.judge.data().records();
        let first = self.draw_number().min(records.saturating_sub(SCAN));
        let began = Instant::now();
        self.bench.scan(first, SCAN)?;
        self.tally.note(began, 1);
        Ok(())
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
