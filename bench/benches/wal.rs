//! The redo log: append, flush and replay, each beside a lower bound.
//!
//! `cargo bench -p treering-bench --bench wal`

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use treering_engine::device::{AlignedBuf, MemDevice, Volume};
use treering_engine::wal::{Log, LogRegion, LogStart, Record, replay};
use treering_engine::{IoClass, Lba, Lsn, Options, PageId, StoreId};

const REGION: LogRegion = LogRegion {
    start: Lba(0),
    blocks: 1 << 15,
    store: StoreId(7),
};

/// Reading begins at `from`. Flushes may have been as long as the log.
fn start(epoch: u32, from: Lsn) -> LogStart {
    LogStart {
        from,
        epoch,
        flush_blocks: REGION.blocks,
    }
}

fn log() -> (Arc<Volume>, Log) {
    let volume = Arc::new(Volume::new(Arc::new(MemDevice::new(REGION.blocks))));
    let log = Log::create(Arc::clone(&volume), REGION, 1, Lsn(0), &Options::default()).unwrap();
    (volume, log)
}

fn put<'a>(i: u64, key: &'a [u8], value: &'a [u8]) -> Record<'a> {
    Record::Put {
        page: PageId(i % 100_000),
        key,
        value,
    }
}

/// Appends, with a checkpoint's truncation whenever the region is full.
fn append(log: &Log, record: &Record<'_>) -> Lsn {
    loop {
        match log.append(record) {
            Ok(lsn) => return lsn,
            Err(_) => {
                log.flush_to(log.end()).unwrap();
                log.truncate(log.durable()).unwrap();
            }
        }
    }
}

fn wal(c: &mut Criterion) {
    let mut g = c.benchmark_group("wal");
    for (name, key, value) in [("16+16", 16, 16), ("8+120", 8, 120)] {
        let (key, value) = (vec![1; key], vec![2; value]);
        let (_, log) = log();
        let mut i = 0;
        g.throughput(Throughput::Elements(1));
        g.bench_function(format!("append {name}, flushes included"), |b| {
            b.iter(|| {
                i += 1;
                append(&log, &put(i, &key, &value))
            });
        });
        let mut out = vec![0u8; 256 << 10];
        let mut at = 0;
        g.bench_function(format!("append {name}: only copying the bytes"), |b| {
            b.iter(|| {
                if at + 256 > out.len() {
                    at = 0;
                }
                out[at..at + key.len()].copy_from_slice(black_box(&key));
                out[at + key.len()..][..value.len()].copy_from_slice(black_box(&value));
                at += key.len() + value.len();
            });
        });
    }

    let (volume, one) = log();
    let (key, value) = ([1; 16], [2; 16]);
    g.bench_function("commit of one record to memory", |b| {
        b.iter(|| one.flush_to(append(&one, &put(1, &key, &value))).unwrap());
    });
    let block = AlignedBuf::zeroed(4096);
    g.bench_function("commit: only writing the block", |b| {
        b.iter(|| volume.write(Lba(0), &block, IoClass::Log).unwrap());
    });

    let (volume, log) = log();
    let records = 1_000_000;
    for i in 0..records {
        log.append(&put(i, &[1; 16], &[2; 36])).unwrap();
    }
    log.flush_to(log.end()).unwrap();
    g.throughput(Throughput::Elements(records));
    g.sample_size(10);
    g.bench_function("replay of 1 M records of 58 B", |b| {
        b.iter(|| {
            let mut bytes = 0;
            let end = replay(&volume, REGION, start(1, Lsn(0)), |_, record| {
                if let Record::Put { key, value, .. } = record {
                    bytes += key.len() + value.len();
                }
                Ok(())
            });
            (end.unwrap().records, bytes)
        });
    });
    g.finish();
}

criterion_group!(benches, wal);
criterion_main!(benches);
