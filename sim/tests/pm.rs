//! The simulated persistent memory: contents, exact counts in small scenarios, and latencies on an
//! idle device and a busy one.

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use treering_engine::device::{DeviceError, MemPm, PmDevice};
use treering_engine::{IoClass, Nanos};
use treering_sim::pm::{PmCounters, PmError, PmProfile, SimPm, builtin};
use treering_sim::ssd::{Served, TimingMode};

const MODES: [TimingMode; 2] = [TimingMode::Counting, TimingMode::Queued];

/// The profile `pm` with two XPLines in its buffer and LRU replacement.
fn tiny(change: impl FnOnce(&mut PmProfile)) -> PmProfile {
    let (_, mut profile) = builtin("pm").expect("built in");
    profile.buffer.lines = 2;
    profile.buffer.replacement = "lru".into();
    profile.cpu.cache_bytes = 64 * 16;
    change(&mut profile);
    profile
}

fn device(profile: &PmProfile, len: u64, mode: TimingMode) -> SimPm {
    SimPm::new(profile, len, mode, 0).expect("a sound profile")
}

/// Stores one byte in a line, writes the line back, and fences.
fn persist(pm: &SimPm, line: u64) {
    pm.store(line * 64, &[1]).unwrap();
    pm.clwb(line * 64).unwrap();
    pm.fence();
}

fn settled(pm: &SimPm) -> PmCounters {
    pm.serve(Nanos(0));
    pm.settle();
    pm.check_invariants().unwrap();
    pm.counters()
}

#[test]
fn a_small_scenario_is_counted_exactly() {
    for mode in MODES {
        let pm = device(&tiny(|_| {}), 1 << 20, mode);
        pm.set_class(0..1024, IoClass::Page);
        pm.set_class(1024..2048, IoClass::Log);
        // Two lines of a leaf: one XPLine, with one media read to fetch it.
        persist(&pm, 0);
        persist(&pm, 1);
        // Four lines of a log complete an XPLine, which is written.
        (16..20).for_each(|line| persist(&pm, line));
        // A superblock evicts the leaf. Half of the leaf's XPLine is known from the fetch, so
        // eviction reads nothing.
        persist(&pm, 1000);
        // The log's last line is dirty once more.
        persist(&pm, 19);
        let counters = settled(&pm);
        assert_eq!(counters.line_writes, [5, 2, 1], "{mode:?}");
        assert_eq!(counters.media_writes, [1, 1, 0]);
        assert_eq!(counters.media_reads, [1, 1, 1], "fetches only");
        assert_eq!((counters.full_writes, counters.merges), (1, 0));
        assert_eq!((counters.evictions, counters.clean_evictions), (1, 0));
        assert_eq!(counters.buffer_hits, 5);
        assert_eq!(counters.fences, 8);
        assert_eq!(pm.dirty_xplines(), 2);
        pm.write_out();
        let counters = pm.counters();
        assert_eq!(counters.media_writes, [2, 1, 1]);
        assert_eq!(counters.written_bytes(), [320, 128, 64]);
        assert_eq!(counters.media_write_bytes(), [512, 256, 256]);
        assert_eq!(counters.cli(256), 2.0);
        assert_eq!(counters.xbi(256), 4.0);
        assert_eq!(counters.effective_write_ratio(), 0.5);
    }
}

#[test]
fn non_temporal_stores_skip_the_fetch_and_merge_when_evicted_incomplete() {
    for mode in MODES {
        let pm = device(&tiny(|_| {}), 1 << 20, mode);
        for xpline in 0..4 {
            pm.ntstore(xpline * 256, &[7; 128]).unwrap();
        }
        pm.fence();
        let counters = settled(&pm);
        assert_eq!(counters.line_writes, [0, 0, 8]);
        assert_eq!(counters.line_reads, [0; 3]);
        pm.write_out();
        let counters = pm.counters();
        let merges = counters.merges;
        assert_eq!(counters.media_reads, [0, 0, merges]);
        assert_eq!(counters.media_writes, [0, 0, merges]);
        if mode == TimingMode::Counting {
            assert_eq!(
                merges, 4,
                "sequential lines must leave with one eviction per XPLine"
            );
        }
    }
}

#[test]
fn a_sequential_log_writes_each_xpline_twice_only_if_full_lines_leave_at_once() {
    for (full_lines, times) in [("at-once", 2), ("on-eviction", 1)] {
        let profile = tiny(|p| p.buffer.full_lines = full_lines.into());
        let pm = device(&profile, 1 << 20, TimingMode::Counting);
        // Entries of 24 bytes, 32 of them in 3 XPLines: CCL-BTree §3.3.
        let entries = 32 * 100;
        for entry in 0..entries {
            let at = entry * 24;
            pm.store(at, &[1; 24]).unwrap();
            for line in at / 64..=(at + 23) / 64 {
                pm.clwb(line * 64).unwrap();
            }
            pm.fence();
        }
        pm.write_out();
        let counters = pm.counters();
        assert_eq!(
            counters.media_writes[IoClass::Extra as usize],
            times * entries * 24 / 256
        );
        // Two of eight entries span two lines, and write both.
        assert_eq!(counters.line_writes.iter().sum::<u64>(), entries * 10 / 8);
    }
}

#[test]
fn under_eadr_only_evictions_write_and_write_backs_are_free() {
    let profile = tiny(|p| {
        p.eadr = true;
        p.cpu.cache_bytes = 64 * 16;
    });
    let pm = device(&profile, 1 << 20, TimingMode::Counting);
    // Sixteen lines fit into the single set of the cache.
    for _ in 0..10 {
        (0..16).for_each(|line| persist(&pm, line));
    }
    assert_eq!(pm.counters().line_writes, [0; 3]);
    assert_eq!(pm.counters().cache_evictions, 0);
    let reads = pm.serve(Nanos(0)).service_ns;
    assert_eq!(reads, 0, "stores must not wait for their fetches");
    (16..32).for_each(|line| persist(&pm, line));
    let counters = pm.counters();
    assert_eq!(counters.line_writes, [0, 0, 16]);
    assert_eq!(counters.cache_evictions, 16);
    assert_eq!(
        counters.media_writes,
        [0, 0, 4],
        "lines must be evicted in order"
    );
}

#[test]
fn a_larger_cache_evicts_less() {
    let written = |bytes| {
        let profile = tiny(|p| {
            p.eadr = true;
            p.cpu.cache_bytes = bytes;
        });
        let pm = device(&profile, 1 << 20, TimingMode::Counting);
        let mut rng = SmallRng::seed_from_u64(1);
        (0..50_000).for_each(|_| persist(&pm, rng.random_range(0..1024)));
        pm.counters().cache_evictions
    };
    let (small, large, all) = (written(16 << 10), written(48 << 10), written(256 << 10));
    assert!(small > 2 * large && large > 0, "{small} {large}");
    assert_eq!(
        all, 0,
        "all 1,024 lines of 64 bytes fit into a quarter of the cache"
    );
}

#[test]
fn an_idle_device_has_the_published_latencies() {
    let profile = tiny(|_| {});
    for mode in MODES {
        let pm = device(&profile, 1 << 20, mode);
        let mut at = 0;
        let taken = |pm: &SimPm, at: &mut u64| {
            *at += 100_000;
            let Served {
                done,
                service_ns,
                queue_ns,
            } = pm.serve(Nanos(*at));
            assert_eq!((done.0 - *at, queue_ns), (service_ns, 0), "{mode:?}");
            service_ns
        };
        pm.load(0, &mut [0; 8]).unwrap();
        assert_eq!(taken(&pm, &mut at), 305, "from the medium");
        pm.load(64, &mut [0; 8]).unwrap();
        assert_eq!(taken(&pm, &mut at), 124, "from the read buffer");
        pm.load(64, &mut [0; 8]).unwrap();
        assert_eq!(taken(&pm, &mut at), 0, "from the CPU cache");
        pm.store(64, &[1]).unwrap();
        pm.clwb(64).unwrap();
        assert_eq!(taken(&pm, &mut at), 0, "nothing waits without a fence");
        pm.fence();
        assert!(taken(&pm, &mut at) <= 62);
        pm.store(4096, &[1]).unwrap();
        pm.clwb(4096).unwrap();
        pm.fence();
        assert_eq!(
            taken(&pm, &mut at),
            305 + 62,
            "the store had to fetch its line"
        );
        pm.ntstore(8192, &[1; 64]).unwrap();
        pm.fence();
        assert_eq!(taken(&pm, &mut at), 90);
        pm.ntstore(8192, &[1; 256]).unwrap();
        pm.fence();
        assert_eq!(taken(&pm, &mut at), 90, "four lines must go together");
        pm.load(12_288, &mut [0; 512]).unwrap();
        at += 100_000;
        let two = pm.serve(Nanos(at));
        let waits = if mode == TimingMode::Queued { 39 } else { 0 };
        assert_eq!((two.service_ns, two.queue_ns), (305, waits), "two XPLines");
    }
}

#[test]
fn writers_faster_than_the_medium_wait_in_the_queues() {
    let pm = device(&tiny(|_| {}), 1 << 24, TimingMode::Queued);
    let mut now = Nanos(0);
    for i in 0..1000 {
        pm.ntstore(i * 4096, &[1; 64]).unwrap();
        pm.fence();
        let served = pm.serve(now);
        let took = served.done.0 - now.0;
        assert_eq!(served.service_ns, 90);
        assert_eq!(served.queue_ns, took - 90);
        // The queues absorb 4,608 bytes at once. After that, each 64-byte line costs 256 bytes at
        // 2.28 GB/s.
        match i {
            ..72 => assert_eq!(took, 90, "write {i}"),
            500.. => assert_eq!(took, 112, "write {i}"),
            _ => assert!((90..=112).contains(&took), "write {i}: {took}"),
        }
        now = served.done;
    }
}

#[test]
fn closed_loop_clients_share_the_medium_and_complete_in_order() {
    for mode in MODES {
        let pm = device(&tiny(|_| {}), 1 << 24, mode);
        let mut next = 0;
        let mut operation = || {
            pm.ntstore(next * 4096, &[1; 256]).unwrap();
            pm.fence();
            next += 1;
        };
        for client in 0..4 {
            operation();
            pm.submit(client, Nanos(0));
        }
        let (mut last, mut ops) = (0, 0_u64);
        let mut of = [0; 4];
        while let Some((client, served)) = pm.next_done() {
            assert!(served.done.0 >= last, "{mode:?}");
            last = served.done.0;
            of[client as usize] += 1;
            ops += 1;
            if ops <= 4000 {
                operation();
                pm.submit(client, served.done);
            }
        }
        assert_eq!(of.iter().sum::<u64>(), ops);
        assert!(of.iter().all(|ops| *ops > 900), "{of:?}");
        let counters = pm.counters();
        assert_eq!(counters.line_writes, [0, 0, 4 * ops]);
        if mode == TimingMode::Queued {
            // 112 ns per XPLine.
            let floor = counters.media_writes[2] * 112;
            assert!(
                (floor * 98 / 100..floor * 102 / 100).contains(&last),
                "{last} {floor}"
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_times_and_counts() {
    let run = |seed| {
        let (_, profile) = builtin("pm").expect("built in");
        let pm = SimPm::new(&profile, 1 << 24, TimingMode::Queued, seed).unwrap();
        let mut now = Nanos(0);
        for i in 0..3000_u64 {
            pm.ntstore(i.wrapping_mul(0x9E37_79B9) % 65_536 * 256, &[1; 256])
                .unwrap();
            if i % 5 == 0 {
                pm.fence();
            }
            now = pm.serve(now).done;
        }
        pm.settle();
        (now, pm.counters())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn out_of_range_accesses_and_invalid_profiles_are_refused() {
    let pm = device(&tiny(|_| {}), 1000, TimingMode::Counting);
    assert_eq!(pm.len(), 1024, "whole XPLines");
    let refused = |result: Result<(), DeviceError>| result.unwrap_err().to_string();
    for told in [
        refused(pm.load(1020, &mut [0; 8])),
        refused(pm.store(u64::MAX, &[0; 8])),
        refused(pm.ntstore(1024, &[0])),
        refused(pm.clwb(1024)),
    ] {
        assert!(told.contains("outside the device of 1024 bytes"), "{told}");
    }
    pm.set_class(900..5000, IoClass::Log);
    let mut bad = tiny(|_| {});
    bad.dimms = 0;
    let told = SimPm::new(&bad, 1024, TimingMode::Counting, 0).err();
    assert!(matches!(told, Some(PmError::Profile(why)) if why.contains("dimms")));
    let told = SimPm::new(&tiny(|_| {}), 1 << 40, TimingMode::Counting, 0).err();
    assert!(matches!(told, Some(PmError::Size { .. })));
}

/// A request.
#[derive(Clone, Debug)]
enum Do {
    Store(u64, Vec<u8>),
    NtStore(u64, Vec<u8>),
    Load(u64, usize),
    Clwb(u64),
    Fence,
    Serve,
}

const BYTES: u64 = 4096;

fn request() -> impl Strategy<Value = Do> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..200);
    let at = 0..BYTES - 200;
    prop_oneof![
        3 => (at.clone(), bytes()).prop_map(|(at, bytes)| Do::Store(at, bytes)),
        3 => (at.clone(), bytes()).prop_map(|(at, bytes)| Do::NtStore(at, bytes)),
        3 => (at.clone(), 0_usize..200).prop_map(|(at, len)| Do::Load(at, len)),
        3 => at.prop_map(Do::Clwb),
        2 => Just(Do::Fence),
        1 => Just(Do::Serve),
    ]
}

proptest! {
    /// Loads return what a plain memory would, and the counters stay consistent, in any sequence of
    /// requests.
    #[test]
    fn loads_return_the_last_store_and_counters_are_consistent(
        requests in prop::collection::vec(request(), 1..120),
        queued in any::<bool>(),
        eadr in any::<bool>(),
        keeps in any::<bool>(),
        dimms in 1_u32..4,
        policy in prop::sample::select(vec!["lru", "fifo", "random"]),
    ) {
        let profile = tiny(|p| {
            (p.eadr, p.dimms, p.cpu.clwb_keeps_line) = (eadr, dimms, keeps);
            p.interleave_bytes = 256;
            p.buffer.replacement = policy.into();
            p.cpu.cache_bytes = 64 * 16;
        });
        let mode = if queued { TimingMode::Queued } else { TimingMode::Counting };
        let pm = device(&profile, BYTES, mode);
        let reference = MemPm::new(BYTES);
        let mut now = Nanos(0);
        for request in &requests {
            match request {
                Do::Store(at, bytes) => {
                    pm.store(*at, bytes).unwrap();
                    reference.store(*at, bytes).unwrap();
                }
                Do::NtStore(at, bytes) => {
                    pm.ntstore(*at, bytes).unwrap();
                    reference.ntstore(*at, bytes).unwrap();
                }
                Do::Load(at, len) => {
                    let (mut found, mut expected) = (vec![0; *len], vec![0; *len]);
                    pm.load(*at, &mut found).unwrap();
                    reference.load(*at, &mut expected).unwrap();
                    prop_assert_eq!(found, expected);
                }
                Do::Clwb(at) => pm.clwb(*at).unwrap(),
                Do::Fence => pm.fence(),
                Do::Serve => {
                    let served = pm.serve(now);
                    prop_assert_eq!(served.done.0, now.0 + served.service_ns + served.queue_ns);
                    now = served.done;
                }
            }
        }
        pm.fence();
        pm.serve(now);
        pm.write_out();
        prop_assert_eq!(pm.check_invariants(), Ok(()));
        let c = pm.counters();
        let sum = |of: [u64; 3]| of.iter().sum::<u64>();
        let (lines, writes) = (sum(c.line_writes), sum(c.media_writes));
        prop_assert!(writes <= lines && 4 * writes >= c.full_writes * 4, "{:?}", c);
        prop_assert_eq!(pm.dirty_xplines(), 0);
        // Every buffer miss brings an XPLine in, and by now each has left.
        prop_assert_eq!(lines - c.buffer_hits, c.evictions + c.clean_evictions);
        prop_assert_eq!(sum(c.media_reads) - c.merges, sum(c.line_reads) - c.read_hits);
        // An XPLine is written when it is complete or when it is evicted.
        prop_assert_eq!(writes, c.full_writes + c.evictions);
        prop_assert_eq!(c.line_writes[0] + c.line_writes[1], 0);
    }
}
