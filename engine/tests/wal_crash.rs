//! Tests the log on a device that crashes: everything acknowledged is replayed in order, and
//! nothing else.
//!
//! Mutation checks: each of these must fail a test in this file.
//!
//! ```text
//! for m in log-acks-before-flush log-keeps-epoch sparse-reader-knows-no-closed \
//!   sparse-closed-block-suspected sparse-goes-on-in-block; do
//!   TREERING_MUTATION=$m RUSTFLAGS="--cfg treering_mutations" \
//!     cargo test -p treering-engine --test wal_crash
//! done
//! ```

use std::sync::Arc;

use proptest::prelude::*;
use treering_engine::LogPacking::{Packed, Sparse};
use treering_engine::device::{BlockDevice, CrashDevice, Volume};
use treering_engine::wal::{Log, LogEnd, LogRegion, LogStart, Record, replay};
use treering_engine::{Error, Lba, LogPacking, Lsn, Options, PageId, Result, StoreId};

const REGION: LogRegion = LogRegion {
    start: Lba(2),
    blocks: 24,
    store: StoreId(7),
};
const BLOCKS: u64 = 30;

/// Reading begins at `from`. Flushes may be as long as the log.
fn start(epoch: u32, from: Lsn) -> LogStart {
    LogStart {
        from,
        epoch,
        flush_blocks: REGION.blocks,
    }
}

fn options(log_packing: LogPacking) -> Options {
    Options {
        log_packing,
        // The slack is as large as the region: a flush may have as many blocks as a test appends
        // before it.
        log_buffer_bytes: REGION.blocks / 2 * 4096,
        ..Options::default()
    }
}

fn volume(device: &Arc<CrashDevice>) -> Arc<Volume> {
    Arc::new(Volume::new(Arc::clone(device) as Arc<dyn BlockDevice>))
}

/// Appends a record that identifies itself. Its length varies with its number.
fn append(log: &Log, id: u64, len: usize) -> Result<Lsn> {
    let value = vec![id as u8; len];
    log.append(&Record::Put {
        page: PageId(id),
        key: &id.to_be_bytes(),
        value: &value,
    })
}

/// A replayed record: id, LSN, length.
type Found = (u64, Lsn, usize);

/// Reads what is on the device, and checks it byte by byte.
fn read_back(volume: &Volume, epoch: u32, from: Lsn) -> Result<(Vec<Found>, LogEnd)> {
    let mut found = Vec::new();
    let end = replay(volume, REGION, start(epoch, from), |lsn, record| {
        let Record::Put { page, key, value } = record else {
            panic!("never appended: {record:?}")
        };
        assert_eq!(key, page.0.to_be_bytes());
        assert!(
            value.iter().all(|b| *b == page.0 as u8),
            "bytes of record {} changed",
            page.0
        );
        found.push((page.0, lsn, value.len()));
        Ok(())
    })?;
    Ok((found, end))
}

/// What the superblock would hold, and what a reader may expect.
#[derive(Clone)]
struct Durable {
    epoch: u32,
    /// The epoch being written at `redo_start`.
    start_epoch: u32,
    redo_start: Lsn,
    /// The records from `redo_start` on, in order.
    appended: Vec<(u64, Lsn, usize)>,
    /// The LSN up to which everything was acknowledged.
    acked: Lsn,
}

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Flush,
    Truncate,
    /// Fails the n-th flush (or write) from here.
    FailFlush(u64),
    FailWrite(u64),
    Crash(u64),
    CrashTwice(u64, u64),
    /// The process ends, and the device lives on.
    Restart(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => prop_oneof![8 => 0usize..200, 2 => 0usize..9000].prop_map(Step::Append),
        5 => Just(Step::Flush),
        1 => Just(Step::Truncate),
        1 => (0u64..2).prop_map(Step::FailFlush),
        1 => (0u64..2).prop_map(Step::FailWrite),
        2 => any::<u64>().prop_map(Step::Crash),
        1 => any::<(u64, u64)>().prop_map(|(a, b)| Step::CrashTwice(a, b)),
        1 => any::<u64>().prop_map(Step::Restart),
    ];
    proptest::collection::vec(step, 1..120)
}

struct Machine {
    /// For the epochs in turn.
    packings: [LogPacking; 2],
    device: Arc<CrashDevice>,
    log: Log,
    known: Durable,
    next_id: u64,
}

impl Machine {
    fn new(packings: [LogPacking; 2]) -> Machine {
        let device = Arc::new(CrashDevice::new(BLOCKS));
        let options = options(packings[0]);
        let log = Log::create(volume(&device), REGION, 1, Lsn(0), &options).unwrap();
        let known = Durable {
            epoch: 1,
            start_epoch: 1,
            redo_start: Lsn(0),
            appended: vec![],
            acked: Lsn(0),
        };
        Machine {
            packings,
            device,
            log,
            known,
            next_id: 1,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append(len) => match append(&self.log, self.next_id, *len) {
                Ok(lsn) => {
                    self.known.appended.push((self.next_id, lsn, *len));
                    self.next_id += 1;
                }
                Err(Error::LogFull { .. } | Error::Poisoned { .. }) => {}
                Err(e) => panic!("{e}"),
            },
            Step::Flush => match self.log.flush_to(self.log.end()) {
                Ok(()) => self.known.acked = self.log.durable(),
                Err(Error::Poisoned { .. }) => {}
                Err(e) => panic!("{e}"),
            },
            Step::Truncate => {
                // Checkpoint: everything durable so far is in the pages.
                let begin = self.log.durable();
                if self.device.flush().is_ok() {
                    self.known.redo_start = begin;
                    self.known.start_epoch = self.known.epoch;
                    self.known.appended.retain(|(_, lsn, _)| *lsn > begin);
                    self.log.truncate(begin).unwrap();
                }
            }
            Step::FailFlush(n) => self.device.fail_flush_in(*n),
            Step::FailWrite(n) => self.device.fail_write_in(*n),
            Step::Crash(seed) => self.crash(*seed),
            Step::CrashTwice(a, b) => {
                self.crash(*a);
                self.crash(*b);
            }
            Step::Restart(seed) => self.recover(*seed),
        }
        // Write-back relies on `durable`.
        self.known.acked = self.known.acked.max(self.log.durable());
    }

    fn crash(&mut self, seed: u64) {
        self.device = Arc::new(CrashDevice::from_image(self.device.crash_seeded(seed)));
        self.recover(seed);
    }

    /// Recovers and begins the next epoch. Here, the pair (epoch, redo start) stands for the
    /// superblock that makes the epoch durable. Every other time the old redo start is kept, so
    /// that later replays cross epochs.
    fn recover(&mut self, seed: u64) {
        let (start_epoch, from) = (self.known.start_epoch, self.known.redo_start);
        let at = start(start_epoch, from);
        let (volume, end) = loop {
            let volume = crate::volume(&self.device);
            let end = Log::scan_end(&volume, REGION, at, |_, _| Ok(())).and_then(|end| {
                volume.flush()?;
                Log::mark_end(&volume, REGION, at, &end, self.known.epoch + 1)?;
                Ok(end)
            });
            match end {
                Ok(end) => break (volume, end),
                // An injected failure: recovery begins again.
                Err(Error::Device(_)) => {}
                Err(e) => panic!("{e}"),
            }
        };
        let (found, again) = read_back(&volume, start_epoch, from).unwrap();
        assert_same_end(&end, &again);
        // The end is final, whatever the device still has of writes that failed.
        for seed in seed..seed.saturating_add(4) {
            let cut = Arc::new(CrashDevice::from_image(self.device.crash_seeded(seed)));
            let (left, end_left) = read_back(&crate::volume(&cut), start_epoch, from).unwrap();
            assert_eq!(found, left, "another end after a power cut");
            assert_same_end(&end, &end_left);
        }
        assert!(end.epoch <= self.known.epoch);
        let n = found.len();
        assert!(
            n <= self.known.appended.len() && found == self.known.appended[..n],
            "replayed {found:?}\nis not a prefix of {:?}",
            self.known.appended
        );
        if let Some(lost) = self.known.appended.get(n) {
            assert!(
                lost.1 > self.known.acked,
                "{lost:?} was acknowledged (up to {})",
                self.known.acked
            );
        }
        self.known.epoch += 1;
        self.known.appended.truncate(n);
        self.known.acked = end.end;
        let epoch = self.known.epoch;
        self.packings.reverse();
        let options = options(self.packings[0]);
        self.log = Log::create(volume, REGION, epoch, end.next_start, &options).unwrap();
        self.log.keep_from(self.known.redo_start);
        if seed.is_multiple_of(2) {
            self.known.redo_start = end.next_start;
            self.known.start_epoch = epoch;
            self.known.appended.clear();
            self.log.truncate(end.next_start).unwrap();
            while self.device.flush().is_err() {}
        }
    }
}

/// The ends are equal. The blocks behind the last record may differ, where the end mark now is.
#[track_caller]
fn assert_same_end(a: &LogEnd, b: &LogEnd) {
    let of = |end: &LogEnd| (end.end, end.next_start, end.records);
    assert_eq!(of(a), of(b));
}

/// Packed, sparse, or alternating.
fn packings() -> impl Strategy<Value = [LogPacking; 2]> {
    let one = || prop_oneof![Just(Packed), Just(Sparse)];
    [one(), one()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn acknowledged_records_are_replayed_and_nothing_else(
        steps in steps(),
        seed: u64,
        packings in packings(),
    ) {
        let mut machine = Machine::new(packings);
        for step in &steps {
            machine.step(step);
        }
        machine.crash(seed);
        machine.crash(seed ^ 1);
    }
}

#[test]
fn nothing_is_acknowledged_after_a_failed_flush() {
    for (fail_write, packing) in [false, true].into_iter().zip([Packed, Sparse].repeat(2)) {
        let mut m = Machine::new([packing; 2]);
        m.step(&Step::Append(10));
        m.step(&Step::Flush);
        m.step(&Step::Append(10));
        m.step(if fail_write {
            &Step::FailWrite(0)
        } else {
            &Step::FailFlush(0)
        });
        let end = m.log.end();
        assert!(matches!(m.log.flush_to(end), Err(Error::Poisoned { .. })));
        // The device works again, but the log must not (fsyncgate, BUGS D5).
        assert!(
            matches!(m.log.flush_to(end), Err(Error::Poisoned { .. })),
            "a retry must not succeed"
        );
        assert!(matches!(append(&m.log, 9, 1), Err(Error::Poisoned { .. })));
        assert!(m.log.durable() < end);
    }
}

#[test]
fn what_a_failed_write_has_left_does_not_show_after_a_recovery() {
    // A failed write has none, half or all of its blocks written, which the requests before it
    // decide. A power cut may still leave all.
    for (seed, requests) in (0..32).flat_map(|seed| [(seed, 0), (seed, 1), (seed, 2)]) {
        for packing in [Packed, Sparse] {
            let mut m = Machine::new([packing; 2]);
            (0..requests).for_each(|_| m.device.flush().unwrap());
            m.step(&Step::Append(9000));
            m.step(&Step::Flush);
            m.step(&Step::Append(9000));
            m.step(&Step::FailWrite(0));
            assert!(m.log.flush_to(m.log.end()).is_err());
            m.step(&Step::Restart(seed));
        }
    }
}

#[test]
fn records_after_a_torn_tail_are_not_replayed() {
    for packings in [
        [Packed, Packed],
        [Packed, Sparse],
        [Sparse, Packed],
        [Sparse, Sparse],
    ] {
        records_behind_a_torn_tail(packings);
    }
}

fn records_behind_a_torn_tail(packings: [LogPacking; 2]) {
    // Epoch 1 writes eight blocks in one flush. The crash loses the fourth block and keeps those
    // after it.
    let mut m = Machine::new(packings);
    for _ in 0..8 {
        m.step(&Step::Append(4072 - 13));
    }
    let (device, log) = (Arc::clone(&m.device), &m.log);
    device.fail_flush_in(0);
    assert!(log.flush_to(log.end()).is_err());
    let mut block = 0;
    let image = device.crash(&mut |n| {
        block += 1;
        if block == 4 { 0 } else { n - 1 }
    });
    let device = Arc::new(CrashDevice::from_image(image));
    let end = Log::scan_end(&volume(&device), REGION, start(1, Lsn(0)), |_, _| Ok(())).unwrap();
    let (found, _) = read_back(&volume(&device), 1, Lsn(0)).unwrap();
    assert!(found.len() == 3 || found.len() == 2, "{found:?}");
    // Epoch 2 fills exactly what is missing.
    let options = options(packings[1]);
    let log = Log::create(volume(&device), REGION, 2, end.next_start, &options).unwrap();
    log.keep_from(Lsn(0));
    while log.end().0 < 4 * 4096 {
        append(
            &log,
            100,
            (4072 - 13).min((4 * 4096 - log.end().0 - 24 - 13) as usize),
        )
        .unwrap();
    }
    log.flush_to(log.end()).unwrap();
    let (all, _) = read_back(&volume(&device), 1, Lsn(0)).unwrap();
    let old = found.len();
    assert_eq!(all[..old], found[..]);
    assert!(
        all.len() > old && all[old..].iter().all(|(id, ..)| *id == 100),
        "{all:?}"
    );
}

#[test]
fn a_block_lost_by_the_last_flush_ends_a_sparse_log_without_damage() {
    let mut m = Machine::new([Sparse; 2]);
    m.step(&Step::Append(10));
    m.step(&Step::Flush);
    // One flush of two blocks, of which only the second is kept.
    m.step(&Step::Append(4072 - 13));
    m.step(&Step::Append(10));
    m.device.fail_flush_in(0);
    assert!(m.log.flush_to(m.log.end()).is_err());
    let mut block = 0;
    let image = m.device.crash(&mut |n| {
        block += 1;
        if block == 1 { 0 } else { n - 1 }
    });
    let device = Arc::new(CrashDevice::from_image(image));
    let (found, end) = read_back(&volume(&device), 1, Lsn(0)).expect("no damage");
    assert_eq!((found.len(), end.next_start), (1, Lsn(4096)));
}
