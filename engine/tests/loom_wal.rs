//! Explores group commit under every schedule that loom finds: no wake-up is lost, and only durable
//! records are acknowledged.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --release -p treering-engine --test loom_wal
//! ```
//!
//! Mutation checks (each must fail):
//!
//! ```text
//! for m in log-acks-before-flush log-retries-failed-flush log-sleeps-through; do
//!   TREERING_MUTATION=$m RUSTFLAGS="--cfg loom --cfg treering_mutations" \
//!     cargo test --release -p treering-engine --test loom_wal
//! done
//! ```
#![cfg(loom)]

// The device is not explored: its lock is never held across a scheduling point.
use std::sync::{Arc, Mutex};

use treering_engine::device::{BlockDevice, DeviceError, Volume};
use treering_engine::wal::{Log, LogRegion, Record};
use treering_engine::{IoClass, Lba, Lsn, Options, PageId, StoreId};

/// A device that reads block headers to track up to which log position it is durable.
#[derive(Default)]
struct Medium {
    /// The first block and the end position of the writes since the last flush.
    written: Option<(u64, u64)>,
    durable: u64,
    fail_flushes: u32,
}

#[derive(Default)]
struct Probe(Mutex<Medium>);

impl BlockDevice for Probe {
    fn capacity_blocks(&self) -> u64 {
        8
    }

    fn read(&self, _: Lba, buf: &mut [u8], _: IoClass) -> Result<(), DeviceError> {
        buf.fill(0);
        Ok(())
    }

    fn write(&self, _: Lba, bytes: &[u8], _: IoClass) -> Result<(), DeviceError> {
        let index = |b: &[u8]| u64::from_le_bytes(b[8..16].try_into().unwrap());
        let last = &bytes[bytes.len() - 4096..];
        let used = u64::from(u16::from_le_bytes([last[16], last[17]]));
        self.0.lock().unwrap().written = Some((index(bytes), index(last) * 4096 + used));
        Ok(())
    }

    fn trim(&self, _: Lba, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        let mut medium = self.0.lock().unwrap();
        let written = medium.written.take();
        if medium.fail_flushes > 0 {
            medium.fail_flushes -= 1;
            let source = std::io::Error::other("injected failure");
            return Err(DeviceError::Io {
                what: "flush",
                lba: Lba(0),
                source,
            });
        }
        if let Some((first, end)) = written
            && first * 4096 <= medium.durable
        {
            medium.durable = end;
        }
        Ok(())
    }
}

/// Appends a record that fills a block, and commits it. Its acknowledgement must be true.
fn commit(log: &Log, probe: &Probe, id: u64) -> bool {
    let Some(lsn) = append(log, id) else {
        return false;
    };
    let acked = log.flush_to(lsn).is_ok();
    if acked {
        let durable = probe.0.lock().unwrap().durable;
        assert!(
            lsn.0 <= durable,
            "{lsn} acknowledged, but the device is durable up to {durable}"
        );
        assert!(lsn <= log.durable());
    }
    acked
}

fn append(log: &Log, id: u64) -> Option<Lsn> {
    let value = [0; 4072 - 13];
    log.append(&Record::Put {
        page: PageId(id),
        key: &[0; 8],
        value: &value,
    })
    .ok()
}

/// Explores this many committers next to a thread that only appends.
fn explore(committers: u64, preemptions: usize, fail_flushes: u32) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let probe = Arc::new(Probe::default());
        probe.0.lock().unwrap().fail_flushes = fail_flushes;
        let device = Arc::clone(&probe) as Arc<dyn BlockDevice>;
        let region = LogRegion {
            start: Lba(0),
            blocks: 8,
            store: StoreId(7),
        };
        let options = Options::default();
        let volume = Arc::new(Volume::new(device));
        let log = Arc::new(Log::create(volume, region, 1, Lsn(0), &options).unwrap());
        let threads: Vec<_> = (1..=committers)
            .map(|id| {
                let (log, probe) = (Arc::clone(&log), Arc::clone(&probe));
                loom::thread::spawn(move || commit(&log, &probe, id))
            })
            .collect();
        append(&log, committers + 1);
        let acked = threads
            .into_iter()
            .map(|c| c.join().unwrap())
            .filter(|a| *a)
            .count();
        if fail_flushes == 0 {
            assert_eq!(acked as u64, committers);
        }
        assert!(log.durable().0 <= probe.0.lock().unwrap().durable);
    });
}

#[test]
fn committers_share_flushes_and_all_of_them_wake_up() {
    explore(2, 3, 0);
}

#[test]
fn a_failed_flush_acknowledges_no_committer() {
    explore(2, 3, 1);
}

#[test]
fn a_third_committer_waits_for_the_second_flush() {
    explore(3, 3, 0);
}

#[test]
fn a_failed_flush_wakes_all_three_committers() {
    explore(3, 3, 1);
}
