//! Tests that correct engines pass and that every kind of wrong answer is found.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::*;
use crate::peers::child::{Footprint, Job, Message, Row, work};
use crate::peers::engines::{Backing, Durability, ENGINES, Groups, Open, Spec};

const RECORDS: u64 = 2000;
const OPS: u64 = 3000;

/// A way in which an engine is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    None,
    /// Reads return the previous version.
    StaleGet,
    /// One of many reads says that the key is absent.
    Absent,
    /// Values lack their last byte.
    CutValue,
    /// Reads return the next record's value.
    OtherValue,
    /// Reads return a value that nobody wrote.
    Invented,
    /// Scans leave out their last record.
    ShortScan,
    /// Scans leave out a record in the middle.
    Hole,
    /// Scans return one record too many.
    LongScan,
    /// Scans return the previous version.
    StaleScan,
    /// One of many writes is acknowledged but not done.
    LostWrite,
    /// Reads fail.
    Fails,
}

/// A map that can give wrong answers.
struct Liar {
    lie: Lie,
    /// The newest value and the previous one.
    map: Mutex<BTreeMap<Key, (Value, Value)>>,
    calls: AtomicU64,
}

impl Liar {
    fn new(lie: Lie) -> Liar {
        Liar {
            lie,
            map: Mutex::default(),
            calls: AtomicU64::new(0),
        }
    }

    fn is_time(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) % 500 == 499
    }
}

impl Peer for Liar {
    fn get(&self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let map = self.map.lock().expect("no panic");
        let Some((newest, before)) = map.get(key) else {
            return Ok(false);
        };
        match self.lie {
            Lie::StaleGet => value.extend_from_slice(before),
            Lie::Absent if self.is_time() => return Ok(false),
            Lie::CutValue => value.extend_from_slice(&newest[..WIDTH - 1]),
            Lie::OtherValue => {
                let next = map.range(*key..).nth(1);
                value.extend_from_slice(next.map_or(&[], |(_, (value, _))| value));
            }
            Lie::Invented => {
                let data = Data::new(RECORDS);
                let record = (0..RECORDS).find(|record| data.key(*record) == *key);
                value.extend_from_slice(&data.value(record.expect("a key of the data"), 1_000_000));
            }
            Lie::Fails => {
                return Err(Failure::Engine {
                    engine: "liar",
                    why: "out of order".into(),
                });
            }
            _ => value.extend_from_slice(newest),
        }
        Ok(true)
    }

    fn write(&self, group: &[(Key, Value)]) -> Result<()> {
        let mut map = self.map.lock().expect("no panic");
        for (key, value) in group {
            if self.lie == Lie::LostWrite && self.is_time() {
                continue;
            }
            let slot = map.entry(*key).or_insert((*value, *value));
            *slot = (*value, slot.0);
        }
        Ok(())
    }

    fn scan(&self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let map = self.map.lock().expect("no panic");
        let limit = match self.lie {
            Lie::ShortScan => limit - 1,
            Lie::LongScan => limit + 1,
            _ => limit,
        };
        let skip = (self.lie == Lie::Hole).then_some(limit as usize / 2);
        for (i, (key, (newest, before))) in map.range(*from..).enumerate().take(limit as usize) {
            if Some(i) != skip {
                let stale = self.lie == Lie::StaleScan;
                visit(key, if stale { before } else { newest });
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

/// Returns the first failure of all workloads.
fn complaint(lie: Lie, threads: u64, group: usize) -> Result<()> {
    let liar = Liar::new(lie);
    let judge = Judge::new(Data::new(RECORDS));
    let bench = Bench::new(&liar, &judge, threads);
    bench.phase(Workload::Load, group, Until::Loaded, 1)?;
    for workload in &Workload::ALL[1..] {
        bench.phase(*workload, group, Until::Ops(OPS), 2)?;
    }
    bench.sweep()
}

#[test]
fn an_engine_that_tells_the_truth_is_believed() {
    for threads in 1..=3 {
        for group in [1, 64] {
            complaint(Lie::None, threads, group)
                .unwrap_or_else(|e| panic!("{threads} threads, groups of {group}: {e}"));
        }
    }
}

#[test]
fn every_lie_is_found_out() {
    let lies = [
        (Lie::StaleGet, "which is stale"),
        (Lie::Absent, "found none"),
        (Lie::CutValue, "15 bytes"),
        (Lie::OtherValue, "no value of that record"),
        (Lie::Invented, "which nobody has written"),
        (Lie::ShortScan, "expected 100 records, found 99"),
        (Lie::Hole, "in place 50"),
        (Lie::LongScan, "expected 100 records, found 101"),
        (Lie::StaleScan, "which is stale"),
        (Lie::LostWrite, "expected a version from"),
        (Lie::Fails, "out of order"),
    ];
    for (lie, said) in lies {
        for threads in [1, 2] {
            for group in [1, 64] {
                let complaint = complaint(lie, threads, group);
                let Err(why) = complaint else {
                    panic!("{lie:?}: believed with {threads} threads, groups of {group}");
                };
                assert!(why.to_string().contains(said), "{lie:?}: {why}");
            }
        }
    }
}

#[test]
fn a_lost_write_is_found_though_nobody_reads() {
    let liar = Liar::new(Lie::LostWrite);
    let judge = Judge::new(Data::new(RECORDS));
    let bench = Bench::new(&liar, &judge, 2);
    bench
        .phase(Workload::Load, 1, Until::Loaded, 1)
        .expect("nothing is read");
    let swept = bench.sweep();
    assert!(matches!(swept, Err(Failure::Wrong(_))), "{swept:?}");
}

#[test]
fn what_the_clock_leaves_out_is_loaded_all_the_same() {
    let honest = Liar::new(Lie::None);
    let judge = Judge::new(Data::new(RECORDS));
    let bench = Bench::new(&honest, &judge, 2);
    let tally = bench
        .phase(Workload::Load, 64, Until::Ops(100), 1)
        .expect("an honest engine");
    assert_eq!(tally.ops, 200);
    bench.sweep().expect_err("most is missing");
    bench.fill().expect("an honest engine");
    bench.sweep().expect("all is there");
}

/// Returns what a process would report about an engine, with very short phases.
fn told(spec: &Spec, durability: Durability, drain: bool) -> (Vec<Row>, Vec<Footprint>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let job = Job {
        folder: folder.path().to_owned(),
        records: RECORDS,
        cache_bytes: 1 << 20,
        durability,
        threads: 2,
        group: 16,
        measured: Until::Time(Duration::from_millis(50)),
        warm_up: Until::Time(Duration::from_millis(10)),
        drain,
        workloads: Workload::ALL.to_vec(),
    };
    let (mut rows, mut footprints) = (Vec::new(), Vec::new());
    let worked = work(spec, &job, &mut |message| match message {
        Message::Row(row) => rows.push(row),
        Message::Footprint(footprint) => footprints.push(footprint),
    });
    worked.unwrap_or_else(|e| panic!("{}: {e}", spec.name));
    (rows, footprints)
}

#[test]
fn every_engine_answers_right() {
    for spec in ENGINES {
        for durability in Durability::ALL {
            if spec.promise(durability).is_none() {
                continue;
            }
            // The buffer of bf-tree has more room than all of these records take.
            let drain = !spec.name.starts_with("bf-tree");
            let (rows, footprints) = told(spec, durability, drain);
            assert_eq!((rows.len(), footprints.len()), (6, 1), "{}", spec.name);
            for row in rows {
                let at = format!("{}, {durability:?}, {:?}", spec.name, row.workload);
                assert_eq!(row.void, None, "{at}");
                assert!(row.ops > 0, "{at}");
                assert_eq!(row.drained.is_some(), drain && row.device.is_some(), "{at}");
            }
        }
    }
}

#[test]
fn a_lie_voids_its_row_and_no_other() {
    let liar = |lie: fn(&Open) -> Result<Box<dyn Peer>>| Spec {
        name: "liar",
        backing: Backing::Direct,
        settings: "",
        relaxed: Some(""),
        grouped: "",
        groups: |_, _| Groups { load: 1, write: 1 },
        open: lie,
    };
    let stale = liar(|_| Ok(Box::new(Liar::new(Lie::StaleGet))));
    let short = liar(|_| Ok(Box::new(Liar::new(Lie::ShortScan))));
    let void = |spec| -> Vec<_> {
        let (rows, _) = told(spec, Durability::Relaxed, false);
        let void = rows.iter().filter(|row| row.void.is_some());
        void.map(|row| row.workload).collect()
    };
    // Nothing is stale before the first update, and before that is read.
    assert_eq!(void(&stale), [Workload::Mixed, Workload::MixedUniform]);
    // The final check asks for more records than there are, so it gets them all.
    assert_eq!(void(&short), [Workload::Scan]);
}
