//! Runs an engine in a process of its own, so that its memory and caches are its own.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::data::{Data, RECORD_BYTES};
use super::engines::{Durability, Open, Peer, Spec};
use super::judge::Judge;
use super::measure::{self, Device, Traffic};
use super::run::{Bench, Tally, Until};
use super::workload::Workload;
use super::{Failure, Result};

/// A child that is silent for this long hangs.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// The bytes that a quiet machine may write or read during a workload.
const QUIET_BYTES: u64 = 16 << 20;

/// The child's task.
#[derive(Clone, Debug)]
pub struct Job {
    /// An empty folder for the store.
    pub folder: PathBuf,
    /// Number of records to load.
    pub records: u64,
    /// Size of the engine's cache in bytes.
    pub cache_bytes: u64,
    /// The durability of writes.
    pub durability: Durability,
    /// Number of clients.
    pub threads: u64,
    /// Writes in a group.
    pub group: usize,
    /// How long a workload is measured.
    pub measured: Until,
    /// How long it runs before the measurement.
    pub warm_up: Until,
    /// Whether the engine is drained before and after the measurement ([`Peer::drain`]).
    pub drain: bool,
    /// The workloads. Loading is always done.
    pub workloads: Vec<Workload>,
}

/// A row: an engine, a workload and a number of threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The engine.
    pub engine: String,
    /// The durability of writes.
    pub durability: Durability,
    /// The workload.
    pub workload: Workload,
    /// Number of clients.
    pub threads: u64,
    /// Why the row is void, if it is. Then the figures below are meaningless.
    pub void: Option<String>,
    /// Number of operations.
    pub ops: u64,
    /// Number of writes among them.
    pub writes: u64,
    /// Seconds, including the syncs at the end.
    pub seconds: f64,
    /// Operations per second.
    pub ops_per_second: f64,
    /// Median latency.
    pub p50_ns: u64,
    /// 99th percentile of the latency.
    pub p99_ns: u64,
    /// 99.9th percentile of the latency.
    pub p999_ns: u64,
    /// The longest operation.
    pub max_ns: u64,
    /// Bytes of keys and values that clients wrote.
    pub user_bytes: u64,
    /// I/O of the block device during the workload.
    pub device: Option<Traffic>,
    /// The same until the engine was drained; `None` if it was not.
    pub drained: Option<Traffic>,
    /// Bytes of the engine's log in that time, if it says so ([`Peer::logged_bytes`]).
    pub logged_bytes: Option<u64>,
    /// I/O of the process, as the kernel counts it.
    pub process: Option<Traffic>,
    /// The engine's own counters at the end.
    pub counters: String,
}

impl Row {
    /// Returns the bytes written to the device per byte that clients wrote.
    #[must_use]
    pub fn written_per_user_byte(&self) -> Option<f64> {
        self.per_user_byte(self.device?.written)
    }

    /// Returns the same until the engine was drained.
    #[must_use]
    pub fn drained_per_user_byte(&self) -> Option<f64> {
        self.per_user_byte(self.drained?.written)
    }

    /// Returns what the engine says of its log.
    #[must_use]
    pub fn logged_per_user_byte(&self) -> Option<f64> {
        self.per_user_byte(self.logged_bytes?)
    }

    /// Returns everything but the log, until the engine was drained: pages, tables, journals.
    #[must_use]
    pub fn pages_per_user_byte(&self) -> Option<f64> {
        let written = self.drained?.written;
        self.per_user_byte(written.saturating_sub(self.logged_bytes?))
    }

    fn per_user_byte(&self, bytes: u64) -> Option<f64> {
        (self.user_bytes > 0).then(|| bytes as f64 / self.user_bytes as f64)
    }

    /// Whether the device did so much more than the process that others must have used it.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        let Some((device, process)) = self.device.zip(self.process) else {
            return false;
        };
        // The file system's own writes come on top of the process's.
        let beyond = |device: u64, process: u64| device > 4 * process + QUIET_BYTES;
        beyond(device.written, process.written) || beyond(device.read, process.read)
    }

    /// Returns the bytes read from the device per operation.
    #[must_use]
    pub fn read_per_op(&self) -> Option<f64> {
        let device = self.device.filter(|_| self.ops > 0)?;
        Some(device.read as f64 / self.ops as f64)
    }
}

/// The memory and space that an engine used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Footprint {
    /// The engine.
    pub engine: String,
    /// The durability of writes.
    pub durability: Durability,
    /// Number of clients.
    pub threads: u64,
    /// Peak resident memory above that of the harness before the engine was opened. Includes the
    /// pages of a map.
    pub peak_resident_bytes: Option<u64>,
    /// Bytes on the drive at the end.
    pub file_bytes: u64,
    /// How many of those bytes the page cache held.
    pub page_cache_bytes: Option<u64>,
    /// Why there are no device figures.
    pub no_device: Option<String>,
}

/// A message from a child to its parent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Message {
    /// A workload is finished.
    Row(Row),
    /// Everything is finished.
    Footprint(Footprint),
}

/// Runs one engine and reports each workload when it is finished.
///
/// # Errors
/// The folder cannot be used, or the engine cannot be opened. Later failures void rows.
pub fn work(spec: &Spec, job: &Job, tell: &mut dyn FnMut(Message)) -> Result<()> {
    let device = Device::of(&job.folder)?;
    let judge = Judge::new(Data::new(job.records));
    let before = measure::peak_resident_bytes();
    let peer = (spec.open)(&Open {
        folder: job.folder.clone(),
        records: job.records,
        cache_bytes: job.cache_bytes,
        durability: job.durability,
    })?;
    let worker = Worker {
        spec,
        job,
        device: &device,
        peer: &*peer,
        bench: Bench::new(&*peer, &judge, job.threads),
    };
    for workload in Workload::ALL {
        if workload == Workload::Load || job.workloads.contains(&workload) {
            let row = worker.row(workload);
            if job.workloads.contains(&workload) || row.void.is_some() {
                tell(Message::Row(row));
            }
        }
    }
    let (file_bytes, page_cache_bytes) = measure::files(&job.folder);
    let peak = measure::peak_resident_bytes();
    tell(Message::Footprint(Footprint {
        engine: spec.name.into(),
        durability: job.durability,
        threads: job.threads,
        // The kernel's count is not exact, so a small engine may seem to need less than nothing.
        peak_resident_bytes: (peak.zip(before)).map(|(peak, before)| peak.saturating_sub(before)),
        file_bytes,
        page_cache_bytes,
        no_device: device.missing().map(Into::into),
    }));
    Ok(())
}

struct Worker<'a> {
    spec: &'a Spec,
    job: &'a Job,
    device: &'a Device,
    peer: &'a dyn Peer,
    bench: Bench<'a>,
}

impl Worker<'_> {
    fn row(&self, workload: Workload) -> Row {
        let mut row = Row {
            engine: self.spec.name.into(),
            durability: self.job.durability,
            workload,
            threads: self.job.threads,
            void: None,
            ops: 0,
            writes: 0,
            seconds: 0.0,
            ops_per_second: 0.0,
            p50_ns: 0,
            p99_ns: 0,
            p999_ns: 0,
            max_ns: 0,
            user_bytes: 0,
            device: None,
            drained: None,
            logged_bytes: None,
            process: None,
            counters: String::new(),
        };
        if let Err(why) = self.measure(workload, &mut row) {
            row.void = Some(why.to_string());
        }
        row.counters = self.peer.counters();
        row
    }

    fn measure(&self, workload: Workload, row: &mut Row) -> Result<()> {
        let group = (self.spec.groups)(self.job.durability, self.job.group).of(workload);
        let seed = workload as u64;
        let until = match (workload, self.job.durability) {
            (Workload::Load, Durability::Relaxed) => Until::Loaded,
            _ => self.job.measured,
        };
        if workload != Workload::Load {
            let warm_up = self.job.warm_up;
            self.bench.phase(workload, group, warm_up, seed + 100)?;
            self.peer.sync()?;
            if self.job.drain {
                self.peer.drain()?;
            }
        }
        self.device.sync()?;
        let (device, process) = (self.device.traffic(), measure::own_traffic());
        let logged = self.peer.logged_bytes();
        let began = Instant::now();
        let tally = self.bench.phase(workload, group, until, seed)?;
        self.peer.sync()?;
        self.device.sync()?;
        row.seconds = began.elapsed().as_secs_f64();
        let since = |(now, before): (Traffic, Traffic)| now.since(before);
        row.device = self.device.traffic().zip(device).map(since);
        row.process = measure::own_traffic().zip(process).map(since);
        row.take(&tally);
        if self.job.drain {
            self.peer.drain()?;
            self.device.sync()?;
            row.drained = self.device.traffic().zip(device).map(since);
            let now = self.peer.logged_bytes();
            row.logged_bytes = now.zip(logged).map(|(now, before)| now - before);
        }
        if workload == Workload::Load {
            self.bench.fill()?;
        }
        if workload.writes_of_two() > 0 {
            self.bench.sweep()?;
        }
        Ok(())
    }
}

impl Row {
    fn take(&mut self, tally: &Tally) {
        self.ops = tally.ops;
        self.writes = tally.writes;
        self.ops_per_second = tally.ops as f64 / self.seconds;
        self.user_bytes = tally.writes * RECORD_BYTES;
        let latency = &tally.latency_ns;
        self.p50_ns = latency.value_at_quantile(0.5);
        self.p99_ns = latency.value_at_quantile(0.99);
        self.p999_ns = latency.value_at_quantile(0.999);
        self.max_ns = latency.max();
    }
}

/// Starts `command` in a new process and passes on its messages. Creates the folder before, and
/// removes it afterwards.
///
/// # Errors
/// [`Failure::Child`] if the child failed or hung. Earlier messages remain valid.
pub fn supervise(
    command: &mut Command,
    folder: &Path,
    take: &mut dyn FnMut(Message),
) -> Result<()> {
    let file = |what, source| Failure::File {
        path: folder.to_owned(),
        what,
        source,
    };
    // A folder left by another run is not an empty store.
    fs::create_dir(folder).map_err(|e| file("cannot be made", e))?;
    let outcome = watch(command, take);
    fs::remove_dir_all(folder).map_err(|e| file("cannot be removed", e))?;
    outcome
}

fn watch(command: &mut Command, take: &mut dyn FnMut(Message)) -> Result<()> {
    let bad = |why: String| Failure::Child(format!("the engine's process {why}"));
    let mut child = command
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .map_err(|e| bad(format!("cannot be started: {e}")))?;
    let stdout = child.stdout.take().expect("piped above");
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(|line| line.ok()) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    let mut hung = false;
    loop {
        match lines.recv_timeout(PATIENCE) {
            // Lines that the engine itself prints are ignored.
            Ok(line) => drop(serde_json::from_str(&line).map(&mut *take)),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                hung = true;
                child
                    .kill()
                    .map_err(|e| bad(format!("cannot be ended: {e}")))?;
                break;
            }
        }
    }
    let status = child
        .wait()
        .map_err(|e| bad(format!("cannot be awaited: {e}")))?;
    if hung {
        let minutes = PATIENCE.as_secs() / 60;
        return Err(bad(format!("said nothing for {minutes} minutes")));
    }
    if !status.success() {
        return Err(bad(format!("ended with {status}")));
    }
    Ok(())
}

/// Writes a message for the parent.
pub fn tell(message: &Message) {
    let line = serde_json::to_string(message).expect("numbers and strings");
    let mut stdout = std::io::stdout().lock();
    // If this fails, the parent is gone.
    let _ = writeln!(stdout, "{line}");
}
