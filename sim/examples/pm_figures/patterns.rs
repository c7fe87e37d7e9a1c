//! The published access patterns of persistent memory, run on the simulated device.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use treering_engine::device::{LINE_SIZE, PmDevice};
use treering_engine::{IoClass, Nanos};
use treering_sim::pm::{PmCounters, PmProfile, SimPm, XPLINE_SIZE};
use treering_sim::ssd::TimingMode;

const LINE: u64 = LINE_SIZE as u64;
const XPLINE: u64 = XPLINE_SIZE as u64;

/// Bytes of the region for random accesses: far more than any buffer holds.
const REGION: u64 = 64 << 20;

/// How bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Stored past the cache.
    NtStore,
    /// Stored, and each line written back.
    Clwb,
}

/// The order of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Each access goes to a random place.
    Random,
    /// Each thread goes through its own part in order.
    Sequential,
}

/// Writers that run endlessly and without fences.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writers {
    pub(crate) kind: Kind,
    pub(crate) order: Order,
    pub(crate) threads: u32,
    /// Bytes of an access, a multiple of 64.
    pub(crate) size: u64,
}

/// The result of writers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Bandwidth in 10⁹ bytes per second.
    pub(crate) gb_per_s: f64,
    pub(crate) counters: PmCounters,
}

pub(crate) fn device(profile: &PmProfile, len: u64, mode: TimingMode) -> SimPm {
    SimPm::new(profile, len, mode, 1).expect("a sound profile")
}

fn write(pm: &SimPm, kind: Kind, at: u64, size: u64) {
    static ONES: [u8; 64 << 10] = [1; 64 << 10];
    let bytes = &ONES[..size as usize];
    match kind {
        Kind::NtStore => pm.ntstore(at, bytes).expect("in range"),
        Kind::Clwb => {
            pm.store(at, bytes).expect("in range");
            let lines = (at..at + size).step_by(LINE_SIZE);
            lines.for_each(|line| pm.clwb(line).expect("in range"));
        }
    }
}

/// Runs clients in closed loop for `ops` operations in total. The second half is measured.
fn closed_loop(
    pm: &SimPm,
    clients: u32,
    (ops, bytes): (u64, u64),
    mut operation: impl FnMut(u32),
) -> Rate {
    let mut left = ops;
    let mut begin = |client, at| {
        if left > 0 {
            left -= 1;
            operation(client);
            pm.submit(client, at);
        }
        left
    };
    for client in 0..clients {
        begin(client, Nanos(0));
    }
    let (mut half, mut last, mut done) = (None, 0, 0);
    while let Some((client, served)) = pm.next_done() {
        last = served.done.0;
        if begin(client, served.done) <= ops / 2 && half.is_none() {
            half = Some((last, pm.counters(), done));
        }
        done += 1;
    }
    let (began, before, done_before) = half.expect("more operations than clients");
    Rate {
        gb_per_s: ((done - done_before) * bytes) as f64 / (last - began) as f64,
        counters: pm.counters().since(&before),
    }
}

/// Bandwidth and effective write ratio of writers.
pub(crate) fn write_rate(profile: &PmProfile, writers: Writers, lines: u64) -> Rate {
    let Writers {
        kind,
        order,
        threads,
        size,
    } = writers;
    let pm = device(profile, REGION, TimingMode::Queued);
    let mut rng = SmallRng::seed_from_u64(2);
    // Threads begin at odd places of their parts, so that they do not move from DIMM to DIMM in
    // step.
    let part = REGION / u64::from(threads) / XPLINE * XPLINE;
    let mut next: Vec<u64> = (0..u64::from(threads))
        .map(|thread| rng.random_range(0..part / 4 / size) * size + thread * part)
        .collect();
    let ops = (lines * LINE / size).max(8 * u64::from(threads));
    closed_loop(&pm, threads, (ops, size), |client| {
        let at = match order {
            Order::Random => rng.random_range(0..REGION / size) * size,
            Order::Sequential => {
                let at = next[client as usize];
                let base = u64::from(client) * part;
                let after = at + size - base;
                next[client as usize] = base + if after + size > part { 0 } else { after };
                at
            }
        };
        write(&pm, kind, at, size);
    })
}

/// The same device with a negligible CPU cache.
fn uncached(profile: &PmProfile) -> PmProfile {
    let mut profile = profile.clone();
    profile.cpu.cache_bytes = LINE * u64::from(profile.cpu.cache_ways);
    profile
}

/// Bandwidth of readers in 10⁹ bytes per second.
pub(crate) fn read_rate(
    profile: &PmProfile,
    order: Order,
    (threads, size): (u32, u64),
    lines: u64,
) -> f64 {
    let pm = device(&uncached(profile), REGION, TimingMode::Queued);
    let mut rng = SmallRng::seed_from_u64(3);
    let mut next: Vec<u64> = (0..u64::from(threads))
        .map(|thread| thread * (REGION / u64::from(threads)) / size * size)
        .collect();
    let mut buf = vec![0; size as usize];
    let ops = lines * LINE / size;
    let rate = closed_loop(&pm, threads, (ops, size), |client| {
        let at = match order {
            Order::Random => rng.random_range(0..REGION / size) * size,
            Order::Sequential => {
                let next = &mut next[client as usize];
                let at = *next;
                *next = (at + size) % REGION;
                at
            }
        };
        pm.load(at, &mut buf).expect("in range");
    });
    rate.gb_per_s
}

/// Mean latency of one line on an idle device, in ns; `access` does the `i`-th access.
fn latency(profile: &PmProfile, mut access: impl FnMut(&SimPm, u64)) -> f64 {
    const TIMES: u64 = 4000;
    let pm = device(&uncached(profile), REGION, TimingMode::Queued);
    let mut taken = 0;
    for i in 0..TIMES {
        access(&pm, i);
        let at = i * 10_000;
        taken += pm.serve(Nanos(at)).done.0 - at;
    }
    taken as f64 / TIMES as f64
}

/// Latency of reading a line, in sequential or random order, in ns.
pub(crate) fn read_latency(profile: &PmProfile, order: Order) -> f64 {
    let mut rng = SmallRng::seed_from_u64(4);
    latency(profile, |pm, i| {
        let line = match order {
            Order::Random => rng.random_range(0..REGION / LINE),
            Order::Sequential => i,
        };
        pm.load(line * LINE, &mut [0; 8]).expect("in range");
    })
}

/// Latency of writing a cached line and a fence, in ns.
pub(crate) fn write_latency(profile: &PmProfile, kind: Kind) -> f64 {
    let mut profile = profile.clone();
    profile.cpu.clwb_keeps_line = true;
    let first = |pm: &SimPm, i| {
        if i == 0 {
            pm.load(0, &mut [0; 8]).expect("in range");
            pm.serve(Nanos(0));
        }
    };
    latency(&profile, |pm, i| {
        first(pm, i);
        write(pm, kind, 0, LINE);
        pm.fence();
    })
}

/// FAST'20's inference experiment: writes the first halves of all XPLines of a region, then the
/// second halves, repeatedly. Returns media bytes divided by bytes issued in whole rounds.
pub(crate) fn inference(profile: &PmProfile, xplines: u64) -> f64 {
    let pm = device(profile, xplines * XPLINE, TimingMode::Counting);
    let round = || {
        for half in [0, XPLINE / 2] {
            for xpline in 0..xplines {
                write(&pm, Kind::NtStore, xpline * XPLINE + half, XPLINE / 2);
                pm.fence();
            }
        }
    };
    (0..20).for_each(|_| round());
    let before = pm.counters();
    (0..(40_000 / xplines).max(20)).for_each(|_| round());
    1.0 / pm.counters().since(&before).effective_write_ratio()
}

/// Overwrites one XPLine, with a fence each time. Returns the numbers of the overwrites that took
/// more than 10 µs, and the longest time in µs.
pub(crate) fn stalls(profile: &PmProfile, overwrites: u64) -> (Vec<u64>, f64) {
    let pm = device(profile, XPLINE, TimingMode::Queued);
    let (mut now, mut long, mut longest) = (Nanos(0), Vec::new(), 0);
    for i in 1..=overwrites {
        write(&pm, Kind::NtStore, 0, XPLINE);
        pm.fence();
        let done = pm.serve(now).done;
        let took = done.0 - now.0;
        longest = longest.max(took);
        if took > 10_000 {
            long.push(i);
        }
        now = done;
    }
    (long, longest as f64 / 1000.0)
}

/// The accesses of CCL-BTree to persistent memory, without the tree: logs and leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ccl {
    /// Number of logs, one per thread. Each gets an entry in turn.
    pub(crate) tails: u64,
    /// If given, every third operation writes a random leaf instead (N_batch = 2): this many lines
    /// of data, and the header.
    pub(crate) leaves: Option<u64>,
}

/// XPLines written per operation, of logs and of leaves.
pub(crate) fn ccl(profile: &PmProfile, ccl: Ccl, ops: u64) -> (f64, f64) {
    const ENTRY: u64 = 24;
    const HEAP: u64 = 48 << 20;
    let pm = device(profile, REGION, TimingMode::Counting);
    pm.set_class(0..HEAP, IoClass::Page);
    pm.set_class(HEAP..REGION, IoClass::Log);
    let chunk = (REGION - HEAP) / ccl.tails / XPLINE * XPLINE;
    let mut rng = SmallRng::seed_from_u64(5);
    // Tails begin anywhere in an XPLine.
    let mut ends: Vec<u64> = (0..ccl.tails)
        .map(|_| rng.random_range(0..100) * ENTRY)
        .collect();
    let mut before = pm.counters();
    for op in 0..ops {
        if op == ops / 2 {
            before = pm.counters();
        }
        let tail = op % ccl.tails;
        if let Some(data) = ccl.leaves.filter(|_| op / ccl.tails % 3 == 2) {
            let leaf = rng.random_range(0..HEAP / XPLINE) * XPLINE;
            write(&pm, Kind::Clwb, leaf + LINE, data * LINE);
            pm.fence();
            write(&pm, Kind::Clwb, leaf, LINE);
            pm.fence();
            continue;
        }
        let end = &mut ends[tail as usize];
        if *end + ENTRY > chunk {
            *end = 0;
        }
        let at = HEAP + tail * chunk + *end;
        *end += ENTRY;
        pm.store(at, &[1; ENTRY as usize]).expect("in range");
        for line in at / LINE..=(at + ENTRY - 1) / LINE {
            pm.clwb(line * LINE).expect("in range");
        }
        pm.fence();
    }
    let written = pm.counters().since(&before).media_writes;
    let per_op = |class: IoClass| written[class as usize] as f64 / (ops - ops / 2) as f64;
    (per_op(IoClass::Log), per_op(IoClass::Page))
}

/// Stores, writes back and fences random lines, one after another. Returns how many reached the
/// buffers, and the bytes of the simulation's tables.
pub(crate) fn hammer(profile: &PmProfile, mode: TimingMode, times: u64) -> (u64, usize) {
    let pm = device(profile, REGION, mode);
    let mut rng = SmallRng::seed_from_u64(6);
    let mut now = Nanos(0);
    for _ in 0..times {
        write(
            &pm,
            Kind::Clwb,
            rng.random_range(0..REGION / LINE) * LINE,
            LINE,
        );
        pm.fence();
        now = pm.serve(now).done;
    }
    pm.settle();
    let lines = pm.counters().line_writes.iter().sum();
    (lines, pm.memory_bytes())
}
