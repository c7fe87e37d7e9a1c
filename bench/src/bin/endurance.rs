//! Runs a store on a file under a long mixed load. It shows how long the slowest operations take,
//! and how much memory the process uses beyond the configured cache.
//!
//! `cargo run --release -p treering-bench --features peers --bin endurance`
//!
//! Clients are closed loops. Half of their operations are gets (Zipf 0.9 over scattered keys), the
//! others are puts, deletes and scans of 100. Each client writes its own share of the records, and
//! checks every answer about them against what it wrote. Log flushes are grouped (1 ms), and
//! checkpoints run all the time.
//!
//! Exit codes: 0 all answers right, 1 a wrong answer, 2 bad input, 3 the store could not be run.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use treering_bench::peers::data::{Choose, Data, Shuffle};
use treering_bench::peers::measure;
use treering_engine::device::{FileDevice, FileIo};
use treering_engine::{
    Durability, Kv, Nanos, Options, SpecError, Store, SystemClock, required_blocks,
};

/// A store on a file under a long mixed load: the slowest operations, and the memory
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Args {
    /// Minutes to run
    #[arg(long, default_value_t = 10.0, value_parser = minutes)]
    minutes: f64,
    /// Records of 16+16 bytes
    #[arg(long, default_value_t = 5_000_000, value_parser = records())]
    records: u64,
    /// MiB of cache
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    cache: u64,
    /// Clients
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    threads: u64,
    /// The conventional tree instead of `bf`
    #[arg(long)]
    btree: bool,
    /// Folder for the store, on the drive to be measured; created if missing
    #[arg(long, default_value = "target/endurance")]
    dir: PathBuf,
}

fn records() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1000..=1 << 32)
}

fn minutes(text: &str) -> Result<f64, String> {
    let parsed = text.parse().ok();
    let minutes = parsed.filter(|minutes| (0.01..=1440.0).contains(minutes));
    minutes.ok_or_else(|| "expected a number from 0.01 to 1,440".into())
}

const MIB: f64 = (1 << 20) as f64;

/// Kinds of operations.
const KINDS: [&str; 4] = ["get", "put", "delete", "scan 100"];

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("endurance: {e}");
            ExitCode::from(3)
        }
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn options(args: &Args) -> Result<Options, SpecError> {
    let tree = match args.btree {
        true => "btree+cow",
        false => "bf+cow",
    };
    Ok(Options {
        cache_bytes: args.cache << 20,
        durability: Durability::Grouped(Nanos(1_000_000)),
        log_bytes: 512 << 20,
        log_buffer_bytes: 64 << 10,
        checkpoint_log_bytes: 64 << 20,
        write_batch_pages: 64,
        ..Options::of_tree(tree)?
    })
}

/// The state that the clients share.
struct Shared {
    store: Store,
    data: Data,
    /// Version of each record. An odd version means that it is deleted.
    versions: Vec<AtomicU64>,
    stop: AtomicBool,
    threads: u64,
}

fn run(args: &Args) -> Result<bool, Failure> {
    std::fs::create_dir_all(&args.dir)?;
    let path = args.dir.join("store");
    let _ = std::fs::remove_file(&path);
    let outcome = run_in(args, &path);
    let _ = std::fs::remove_file(&path);
    outcome
}

fn run_in(args: &Args, path: &Path) -> Result<bool, Failure> {
    let options = options(args)?;
    // Leaves of `bf` have room for ninety such records and are more than half full. Those of
    // `btree` hold fewer.
    let least_in_a_leaf = if args.btree { 30 } else { 50 };
    let blocks = required_blocks(&options, args.records / least_in_a_leaf + 1024);
    // Pages are touched now, so that they do not count as memory of the run.
    let versions: Vec<_> = (0..args.records).map(|_| AtomicU64::new(2)).collect();
    let mut histograms = Vec::new();
    for _ in 0..args.threads {
        histograms.push(KINDS.map(|_| histogram()));
    }
    let before =
        measure::resident_bytes().ok_or("/proc/self/status does not report resident memory")?;
    let device = FileDevice::create_for(path, blocks, FileIo::Direct)?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let store = Store::open(Arc::new(device), Arc::new(SystemClock::new()), &options)?;
    let shared = Shared {
        store,
        data: Data::new(args.records),
        versions,
        stop: AtomicBool::new(false),
        threads: args.threads,
    };
    let (peak, outcome) = std::thread::scope(|scope| {
        let pump = scope.spawn(|| shared.store.pump_until(&shared.stop));
        let loaded = load(&shared);
        let began = Instant::now();
        let clients: Vec<_> = (histograms.iter_mut().enumerate())
            .map(|(c, histograms)| {
                let shared = &shared;
                scope.spawn(move || {
                    let done = client(shared, c as u64, histograms);
                    if done.is_err() {
                        shared.stop.store(true, Ordering::Release);
                    }
                    done
                })
            })
            .collect();
        let mut peak = 0;
        let length = Duration::from_secs_f64(args.minutes * 60.0);
        let mut told = 0;
        while loaded.is_ok() && began.elapsed() < length && !shared.stop.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(100));
            let resident = measure::resident_bytes().unwrap_or(0);
            peak = peak.max(resident.saturating_sub(before));
            if began.elapsed().as_secs() / 30 > told {
                told += 1;
                eprintln!("[{} s] {:.1} MiB", told * 30, peak as f64 / MIB);
            }
        }
        shared.stop.store(true, Ordering::Release);
        let ends: Vec<_> = clients.into_iter().map(|c| c.join()).collect();
        let pumped = pump.join();
        let outcome = loaded.and_then(|()| {
            for end in ends {
                end.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            pumped.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(began.elapsed())
        });
        (peak, outcome)
    });
    match outcome {
        Ok(took) => {
            report(args, &shared, histograms, took, peak);
            Ok(true)
        }
        Err(e) => {
            println!("{e}");
            Ok(false)
        }
    }
}

fn histogram() -> Histogram<u64> {
    let mut all = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("sound bounds");
    // Touches the histogram's counts, so that they do not count as memory of the run.
    let all_values =
        (0..35).flat_map(|bit| (0..2048u64).map(move |i| (1 << bit) + ((i << bit) >> 11)));
    for value in all_values {
        all.saturating_record(value);
    }
    all.reset();
    all
}

fn load(shared: &Shared) -> Result<(), Failure> {
    let records = shared.data.records();
    let order = Shuffle::new(records, 0x1000);
    for place in 0..records {
        let record = order.at(place);
        let (key, value) = (shared.data.key(record), shared.data.value(record, 2));
        shared.store.put(&key, &value)?;
    }
    shared.store.checkpoint()?;
    eprintln!("loaded");
    Ok(())
}

fn client(shared: &Shared, c: u64, histograms: &mut [Histogram<u64>; 4]) -> Result<(), Failure> {
    let (store, data) = (&shared.store, &shared.data);
    let mut random = SmallRng::seed_from_u64(c);
    let popular = Choose::zipf(data.records(), 0.9);
    let mut got = Vec::new();
    while !shared.stop.load(Ordering::Acquire) {
        let record = popular.draw(data.records(), &mut random);
        // The nearest record that this client writes, if there is one.
        let own = (record / shared.threads * shared.threads + c).min(data.records() - 1);
        let is_own = own % shared.threads == c;
        let kind = match random.random_range(0..1000u32) {
            0..500 => 0,
            500..930 if is_own => 1,
            930..990 if is_own => 2,
            990.. => 3,
            _ => 0,
        };
        let began = Instant::now();
        match kind {
            0 => {
                let found = store.get(&data.key(record), &mut got)?;
                histograms[0].saturating_record(nanos(began));
                check(shared, c, record, found.then_some(&got))?;
            }
            1 | 2 => {
                let old = shared.versions[own as usize].load(Ordering::Relaxed);
                // The next even version is a value, and the next odd one is absence.
                let new = (old + 1) + u64::from((old + 1) % 2 != u64::from(kind == 2));
                let key = data.key(own);
                if kind == 1 {
                    store.put(&key, &data.value(own, new as u32))?;
                } else {
                    store.delete(&key)?;
                }
                histograms[kind].saturating_record(nanos(began));
                shared.versions[own as usize].store(new, Ordering::Relaxed);
            }
            _ => {
                let (mut left, mut last) = (100, Vec::new());
                let mut sorted = true;
                store.scan(&data.key(record), &mut |key, _| {
                    sorted &= last.as_slice() < key;
                    last.clear();
                    last.extend_from_slice(key);
                    left -= 1;
                    if left == 0 {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                })?;
                histograms[3].saturating_record(nanos(began));
                if !sorted {
                    return Err(format!("a scan from record {record}: keys out of order").into());
                }
            }
        }
    }
    Ok(())
}

/// Checks a record of another client: the value must be one of the record's.
fn check(shared: &Shared, c: u64, record: u64, got: Option<&Vec<u8>>) -> Result<(), Failure> {
    let found = got.map(|value| shared.data.version(record, value));
    if found == Some(None) {
        return Err(format!("get of record {record}: not one of its values: {got:02x?}").into());
    }
    if record % shared.threads != c {
        return Ok(());
    }
    let version = shared.versions[record as usize].load(Ordering::Relaxed);
    let expected = version.is_multiple_of(2).then_some(version as u32);
    if found.flatten() != expected {
        let found = found.flatten();
        return Err(format!(
            "get of record {record}: expected version {expected:?}, found {found:?}"
        )
        .into());
    }
    Ok(())
}

fn nanos(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn report(
    args: &Args,
    shared: &Shared,
    histograms: Vec<[Histogram<u64>; 4]>,
    took: Duration,
    peak: u64,
) {
    let stats = shared.store.stats();
    let mut all = histogram();
    let mut kinds = KINDS.map(|_| histogram());
    for client in histograms {
        for (sum, part) in kinds.iter_mut().zip(client) {
            sum.add(&part).expect("equal bounds");
            all.add(&part).expect("equal bounds");
        }
    }
    println!(
        "{} records of 16+16 B, {} MiB cache, {} clients, {:.0} s: {:.0} ops/s, {} checkpoints",
        args.records,
        args.cache,
        args.threads,
        took.as_secs_f64(),
        all.len() as f64 / took.as_secs_f64(),
        stats.checkpoints
    );
    println!(
        "\n{:10} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  (ms)",
        "", "operations", "50 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "longest"
    );
    let rows = KINDS.iter().zip(&kinds).chain([(&"all", &all)]);
    for (name, latencies) in rows {
        let of = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e6;
        println!(
            "{name:10} {:>11} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3}",
            latencies.len(),
            of(0.5),
            of(0.99),
            of(0.999),
            of(0.9999),
            of(0.99999),
            latencies.max() as f64 / 1e6
        );
    }
    let configured = (args.cache << 20) + stats.index_bytes;
    println!(
        "\nresident   {:.1} MiB at most, without that before the store was opened: \
         {:+.1} % against cache and inner nodes ({:.1} + {:.1} MiB)",
        peak as f64 / MIB,
        100.0 * (peak as f64 / configured as f64 - 1.0),
        args.cache as f64,
        stats.index_bytes as f64 / MIB,
    );
}
