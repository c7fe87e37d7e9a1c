//! Measures writes that wait for each other, by page size, with and without contention split
//! (B-Trees Are Back §7.3, Figure 22).
//!
//! `xzcat wiki-urls.txt.xz | cargo run --release -p treering-bench --bin contention -- --keys -`
//!
//! Threads overwrite eight-byte values of 5,000 URLs, which are a sample of the given ones or
//! generated. The popularity is Zipf 1 with ranks in key order, so that the first leaf is the
//! hottest. Everything is in memory. The paper has pages from 2 KiB, and titles; here pages start
//! at 4 KiB. Each figure is the median of several rounds, in which both variants take turns. Leaves
//! are split while a round warms up.
//!
//! Exit codes: 0 measured, 2 bad input, 3 the store could not be run.

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use treering_engine::device::MemDevice;
use treering_engine::node::LayoutChoice;
use treering_engine::{ContentionSplit, Durability, Kv, Options, Stats, Store, SystemClock};

const KEYS: usize = 5_000;
const PAGES_KIB: [usize; 5] = [4, 8, 16, 32, 64];
const HELP: &str = "\
contention [--keys FILE|-] [--threads N] [--seconds S] [--rounds N] [--layout NAME]\n\
    --keys: one key per line, ascending [default: generated]   --threads [default: 2]\n\
    --seconds of a round [default: 2]   \
    --rounds [default: 5]   --layout of leaves [default: fingerprint, as in the paper]";

type Failure = Box<dyn std::error::Error + Send + Sync>;

struct Args {
    keys: Option<String>,
    threads: usize,
    seconds: f64,
    rounds: usize,
    layout: LayoutChoice,
}

fn args() -> Result<Args, String> {
    let mut parsed = Args {
        keys: None,
        threads: 2,
        seconds: 2.0,
        rounds: 5,
        layout: LayoutChoice::named("fingerprint").ok_or("no such layout")?,
    };
    let mut given = std::env::args().skip(1);
    while let Some(flag) = given.next() {
        let value = given.next().ok_or_else(|| HELP.to_owned())?;
        let bad = || format!("{flag} {value}\n{HELP}");
        match &flag[..] {
            "--keys" => parsed.keys = Some(value),
            "--threads" => parsed.threads = value.parse().map_err(|_| bad())?,
            "--seconds" => parsed.seconds = value.parse().map_err(|_| bad())?,
            "--rounds" => parsed.rounds = value.parse().map_err(|_| bad())?,
            "--layout" => parsed.layout = LayoutChoice::named(&value).ok_or_else(bad)?,
            _ => return Err(bad()),
        }
    }
    let sane = (1..=64).contains(&parsed.threads)
        && (1..=1_000).contains(&parsed.rounds)
        && (0.01..=3_600.0).contains(&parsed.seconds);
    if sane {
        Ok(parsed)
    } else {
        Err(HELP.to_owned())
    }
}

/// Returns a regular sample of the keys in a file, or generated keys.
fn keys(from: Option<&str>) -> Result<Vec<Vec<u8>>, Failure> {
    let mut text = Vec::new();
    match from {
        None => {
            let url = |n| {
                format!(
                    "http://en.wikipedia.org/wiki/{:05}_of_the_made_up\n",
                    n * 19
                )
            };
            text.extend((0..KEYS).flat_map(|n| url(n).into_bytes()));
        }
        Some("-") => drop(std::io::stdin().lock().read_to_end(&mut text)?),
        Some(path) => text = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?,
    }
    let mut all: Vec<Vec<u8>> = text
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    all.sort();
    all.dedup();
    if all.len() < KEYS {
        return Err(format!("{} keys; expected {KEYS} or more", all.len()).into());
    }
    let step = all.len() / KEYS;
    Ok(all.into_iter().step_by(step).take(KEYS).collect())
}

/// Draws ranks by their cumulative probabilities, where a rank's weight is 1 / rank.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(ranks: usize) -> Zipf {
        let mut sum = 0.0;
        let sums = (1..=ranks).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Zipf(sums.collect())
    }

    fn share(&self, ranks: usize) -> f64 {
        self.0[ranks - 1] / self.0[self.0.len() - 1]
    }

    /// Returns the rank, from 0, for 64 random bits.
    fn rank(&self, bits: u64) -> usize {
        let at = (bits >> 11) as f64 / (1_u64 << 53) as f64 * self.0[self.0.len() - 1];
        self.0.partition_point(|sum| *sum < at)
    }
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

struct Round {
    writes_per_s: f64,
    contended: f64,
    stats: Stats,
}

fn round(
    args: &Args,
    keys: &[Vec<u8>],
    zipf: &Zipf,
    page_kib: usize,
    contention_split: Option<ContentionSplit>,
) -> Result<Round, Failure> {
    let options = Options {
        layout: Some(args.layout),
        contention_split,
        page_size: page_kib << 10,
        cache_bytes: 256 << 20,
        durability: Durability::Deferred,
        log_bytes: 256 << 20,
        checkpoint_log_bytes: 128 << 20,
        log_buffer_bytes: 1 << 20,
        ..Options::default()
    };
    let device = Arc::new(MemDevice::new((1 << 30) / 4096));
    let store = Store::open(device, Arc::new(SystemClock::new()), &options)?;
    for key in keys {
        store.put(key, &[0; 8])?;
    }
    let phase = |seconds: f64, seed: u64| -> Result<(u64, f64), Failure> {
        let stop = AtomicBool::new(false);
        let writer = |mut state: u64| -> treering_engine::Result<u64> {
            let mut writes = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..256 {
                    let key = &keys[zipf.rank(next(&mut state))];
                    store.put(key, &state.to_le_bytes())?;
                }
                writes += 256;
                while store.pump_due()? {}
            }
            Ok(writes)
        };
        let began = Instant::now();
        std::thread::scope(|scope| {
            let writer = &writer;
            let writers: Vec<_> = (0..args.threads as u64)
                .map(|n| scope.spawn(move || writer(seed << 32 | n << 20)))
                .collect();
            std::thread::sleep(Duration::from_secs_f64(seconds));
            stop.store(true, Ordering::Relaxed);
            let mut writes = 0;
            for writer in writers {
                writes += writer.join().map_err(|_| "a writer panicked")??;
            }
            Ok((writes, began.elapsed().as_secs_f64()))
        })
    };
    phase(args.seconds, 1)?;
    let before = store.stats();
    let (writes, seconds) = phase(args.seconds, 2)?;
    let stats = store.stats();
    Ok(Round {
        writes_per_s: writes as f64 / seconds,
        contended: (stats.contended_writes - before.contended_writes) as f64 / writes as f64,
        stats,
    })
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn run(args: &Args) -> Result<(), Failure> {
    let keys = keys(args.keys.as_deref())?;
    let zipf = Zipf::new(KEYS);
    println!(
        "{} threads, {KEYS} keys of {:.1} bytes ({}), leaves {}; \
         {:.1} % of the writes go to the first 100 keys",
        args.threads,
        keys.iter().map(Vec::len).sum::<usize>() as f64 / KEYS as f64,
        args.keys.as_deref().map_or("generated", |_| "given"),
        args.layout.name(),
        100.0 * zipf.share(100)
    );
    println!(
        "page     writes/s without   contended   leaves     writes/s with   contended   leaves   \
         splits for it"
    );
    for page in PAGES_KIB {
        let ways = [None, Some(ContentionSplit::default())];
        let mut rounds: [Vec<Round>; 2] = [Vec::new(), Vec::new()];
        for n in 0..args.rounds {
            for turn in 0..2 {
                let way = (n + turn) % 2;
                rounds[way].push(round(args, &keys, &zipf, page, ways[way])?);
            }
        }
        let of = |way: usize, figure: fn(&Round) -> f64| {
            median(rounds[way].iter().map(figure).collect())
        };
        let cells = [0, 1].map(|way| {
            format!(
                "{:16.0} {:9.2} % {:8.0}",
                of(way, |r| r.writes_per_s),
                100.0 * of(way, |r| r.contended),
                of(way, |r| r.stats.leaf_pages as f64)
            )
        });
        let splits = of(1, |r| r.stats.contention_splits as f64);
        println!("{page:2} KiB {}  {} {splits:15.0}", cells[0], cells[1]);
    }
    Ok(())
}

fn main() -> ExitCode {
    let args = match args() {
        Ok(args) => args,
        Err(why) => {
            eprintln!("contention: {why}");
            return ExitCode::from(2);
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("contention: {e}");
            ExitCode::from(3)
        }
    }
}
