//! Tests the log in normal operation: codec, flush sizes, laps, limits, damage.

use std::sync::Arc;

use proptest::prelude::*;
use treering_engine::device::{BlockDevice, MemDevice, Volume};
use treering_engine::node::PageLayout;
use treering_engine::wal::{
    BLOCK_PAYLOAD, EndReason, Frame, Log, LogRegion, LogStart, MAX_RECORD_BYTES, Record,
    next_frame, replay,
};
use treering_engine::{Error, IoClass, Lba, LogPacking, Lsn, Options, PageId, StoreId};

fn setup(blocks: u64) -> (Arc<Volume>, LogRegion, Log) {
    setup_as(blocks, LogPacking::Packed)
}

fn setup_as(blocks: u64, packing: LogPacking) -> (Arc<Volume>, LogRegion, Log) {
    let volume = Arc::new(Volume::new(Arc::new(MemDevice::new(blocks + 5))));
    let region = LogRegion {
        start: Lba(3),
        blocks,
        store: StoreId(7),
    };
    let log = create(&volume, region, 1, Lsn(0), packing);
    (volume, region, log)
}

fn create(
    volume: &Arc<Volume>,
    region: LogRegion,
    epoch: u32,
    start: Lsn,
    log_packing: LogPacking,
) -> Log {
    let options = Options {
        log_packing,
        ..Options::default()
    };
    Log::create(Arc::clone(volume), region, epoch, start, &options).unwrap()
}

/// Reading begins at `from`. Flushes may be as long as the log.
fn start(epoch: u32, from: Lsn) -> LogStart {
    LogStart {
        from,
        epoch,
        flush_blocks: 128,
    }
}

const PACKINGS: [LogPacking; 2] = [LogPacking::Packed, LogPacking::Sparse];

/// Returns the pages of all puts from `from` on.
fn pages_from(volume: &Volume, region: LogRegion, from: Lsn) -> Vec<u64> {
    let mut pages = Vec::new();
    replay(volume, region, start(1, from), |_, record| {
        let Record::Put { page, .. } = record else {
            panic!("never appended: {record:?}")
        };
        pages.push(page.0);
        Ok(())
    })
    .unwrap();
    pages
}

fn put(page: u64, len: usize, fill: &[u8]) -> Record<'_> {
    Record::Put {
        page: PageId(page),
        key: &fill[..8],
        value: &fill[..len],
    }
}

const FILL: &[u8] = &[7; 1 << 18];

type Fields = (u64, u64, Vec<u8>, Option<Vec<u8>>, Vec<u8>);

fn record(kind: u8, (left, right, a, upper, c): &Fields) -> Record<'_> {
    let (left, right, upper) = (PageId(*left), PageId(*right), upper.as_deref());
    match kind {
        0 => Record::Put {
            page: left,
            key: a,
            value: c,
        },
        1 => Record::Delete { page: left, key: a },
        5 => Record::Relayout {
            page: left,
            layout: PageLayout::DENSE[right.0 as usize % 2],
        },
        2 | 4 => Record::Split {
            layout: PageLayout::ALL[usize::from(kind / 4)],
            left,
            right,
            separator: a,
            upper,
            records: c,
        },
        _ => Record::Merge {
            left,
            right,
            right_lower: a,
            upper,
            records: c,
        },
    }
}

proptest! {
    #[test]
    fn records_survive_encoding(kind in 0u8..6, fields: Fields) {
        let record = record(kind, &fields);
        let bytes = record.to_bytes();
        prop_assert_eq!(bytes.len(), record.encoded_len());
        let Frame::Whole { from, to } = next_frame(&bytes).unwrap() else { panic!("cut") };
        prop_assert_eq!(to, bytes.len());
        prop_assert_eq!(Record::decode(&bytes[from..to]).unwrap(), record);
        for cut in 0..bytes.len() {
            prop_assert_eq!(next_frame(&bytes[..cut]).unwrap(), Frame::Partial);
        }
    }

    #[test]
    fn decoding_random_bytes_never_panics(bytes: Vec<u8>, kind in 0u8..8) {
        let _ = next_frame(&bytes);
        let _ = Record::decode(&bytes);
        let mut body = vec![kind];
        body.extend(&bytes);
        let _ = Record::decode(&body);
    }

    #[test]
    fn reading_a_log_of_random_blocks_never_panics(
        at in 0usize..8 * 4096,
        with in 1u8..=255,
        packing in prop_oneof![Just(LogPacking::Packed), Just(LogPacking::Sparse)],
    ) {
        let (volume, region, log) = setup_as(16, packing);
        for i in 0..100 {
            log.append(&put(i, 300, FILL)).unwrap();
        }
        log.flush_to(log.end()).unwrap();
        let lba = Lba(3 + at as u64 / 4096);
        let mut block = vec![0; 4096];
        volume.read(lba, &mut block, IoClass::Log).unwrap();
        block[at % 4096] ^= with;
        volume.write(lba, &block, IoClass::Log).unwrap();
        let mut n = 0;
        match replay(&volume, region, start(1, Lsn(0)), |_, _| { n += 1; Ok(()) }) {
            Ok(end) => prop_assert!(n < 100 && end.reason != EndReason::StaleEpoch),
            Err(Error::Damaged { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }

    #[test]
    fn a_flush_writes_exactly_the_unflushed_blocks(
        groups in proptest::collection::vec(proptest::collection::vec(0usize..3000, 1..6), 1..30),
        packing in prop_oneof![Just(LogPacking::Packed), Just(LogPacking::Sparse)],
    ) {
        let (volume, region, log) = setup_as(1024, packing);
        let mut expected = Vec::new();
        for (i, group) in groups.iter().enumerate() {
            for len in group {
                let lsn = log.append(&put(i as u64, *len, FILL)).unwrap();
                expected.push((lsn, *len));
            }
            let from = match packing {
                LogPacking::Packed => log.durable().0 / 4096,
                LogPacking::Sparse => log.durable().0.div_ceil(4096),
            };
            let to = log.end().0.div_ceil(4096);
            let before = volume.stats();
            log.flush_to(log.end()).unwrap();
            let after = volume.stats();
            prop_assert_eq!(after.written.log - before.written.log, (to - from) * 4096);
            prop_assert_eq!(after.flushes - before.flushes, 1);
            log.flush_to(log.end()).unwrap();
            prop_assert_eq!(volume.stats(), after);
        }
        let mut found = Vec::new();
        let end = replay(&volume, region, start(1, Lsn(0)), |lsn, record| {
            let Record::Put { value, .. } = record else { panic!() };
            found.push((lsn, value.len()));
            Ok(())
        }).unwrap();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(end.end, log.end());
        // From any record boundary, the remaining records follow.
        for (i, (lsn, _)) in expected.iter().enumerate().step_by(7) {
            let mut rest = 0;
            replay(&volume, region, start(1, *lsn), |_, _| { rest += 1; Ok(()) }).unwrap();
            prop_assert_eq!(rest, expected.len() - i - 1);
        }
    }
}

#[test]
fn the_log_wraps_around_and_refuses_to_overrun_itself() {
    PACKINGS.into_iter().for_each(goes_round);
}

fn goes_round(packing: LogPacking) {
    let (volume, region, log) = setup_as(8, packing);
    let mut lsns = Vec::new();
    for lap in 0..40u64 {
        loop {
            match log.append(&put(lap, 700, FILL)) {
                Ok(lsn) => lsns.push(lsn),
                Err(Error::LogFull { capacity, .. }) => {
                    assert_eq!(capacity, 8 * BLOCK_PAYLOAD as u64);
                    break;
                }
                Err(e) => panic!("{e}"),
            }
        }
        assert!(log.space_left() < 720 + log.padding());
        log.flush_to(log.end()).unwrap();
        let mut n = 0;
        let from = log.redo_start();
        let end = replay(&volume, region, start(1, from), |_, _| {
            n += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(end.end, log.end());
        assert_eq!(n, lsns.iter().filter(|l| **l > from).count());
        // Some laps free only a part.
        let keep = lsns[lsns.len() - 1 - (lap as usize % 3) * 4];
        log.truncate(keep).unwrap();
        assert_eq!(log.redo_start(), keep);
    }
    assert!(log.end().0 > 8 * 4096 * 10, "several laps");
    assert!(volume.stats().trimmed_bytes > 0);
}

#[test]
fn a_full_buffer_is_flushed_by_the_appending_thread() {
    let (volume, _, log) = setup(4096);
    for i in 0..20_000 {
        log.append(&put(i, 100, FILL)).unwrap();
        assert!(log.unflushed_bytes() <= (512 << 10) + 4096);
    }
    assert!(volume.stats().written.log > 0);
    let (_, _, log) = setup(64);
    assert!(log.flush_if(1000).is_ok_and(|did| !did));
    log.append(&put(1, 2000, FILL)).unwrap();
    assert!(log.flush_if(1000).unwrap());
    assert_eq!(log.unflushed_bytes(), 0);
}

#[test]
fn a_record_of_any_size_up_to_the_limit_fits() {
    let (volume, region, log) = setup(256);
    let value = MAX_RECORD_BYTES - 20;
    log.append(&put(1, value, FILL)).unwrap();
    log.append(&put(2, value, FILL)).unwrap();
    log.append(&put(3, 4072 - 13, FILL)).unwrap();
    log.flush_to(Lsn(u64::MAX)).unwrap();
    let mut pages = Vec::new();
    replay(&volume, region, start(1, Lsn(0)), |_, r| {
        let Record::Put { page, .. } = r else {
            panic!()
        };
        pages.push(page.0);
        Ok(())
    })
    .unwrap();
    assert_eq!(pages, [1, 2, 3]);
    let long = log.append(&put(4, MAX_RECORD_BYTES, FILL));
    assert!(matches!(long, Err(Error::RecordTooLarge { .. })));
}

#[test]
fn a_hole_before_a_later_flush_is_damage_but_a_torn_tail_is_not() {
    let (volume, region, log) = setup(32);
    for i in 0..6 {
        log.append(&put(i, 4072 - 13, FILL)).unwrap();
        log.flush_to(log.end()).unwrap();
    }
    let zeros = [0; 4096];
    let count = || {
        let mut n = 0;
        replay(&volume, region, start(1, Lsn(0)), |_, _| {
            n += 1;
            Ok(())
        })
        .map(|end| (n, end.reason))
    };
    assert_eq!(count().unwrap(), (6, EndReason::Unwritten));
    let last = (log.end().0 - 1) / 4096;
    volume.write(Lba(3 + last), &zeros, IoClass::Log).unwrap();
    assert!(count().is_ok(), "a lost tail must not count as damage");
    volume.write(Lba(3 + 2), &zeros, IoClass::Log).unwrap();
    let Err(Error::Damaged { lba, .. }) = count() else {
        panic!("the damage was not noticed")
    };
    assert_eq!(lba, Lba(5));
}

#[test]
fn a_missing_redo_start_is_damage() {
    let (volume, region, log) = setup(32);
    let lsn = log.append(&put(1, 100, FILL)).unwrap();
    let none = replay(&volume, region, start(1, lsn), |_, _| Ok(()));
    assert!(matches!(none, Err(Error::Damaged { .. })), "never flushed");
    let empty = replay(&volume, region, start(1, Lsn(4096)), |_, _| Ok(())).unwrap();
    assert_eq!(
        (empty.end, empty.next_start, empty.epoch),
        (Lsn(4096), Lsn(4096), 1)
    );
}

#[test]
fn concurrent_commits_share_flushes_and_lose_nothing() {
    let (volume, region, log) = setup(4096);
    std::thread::scope(|s| {
        for t in 0..4u64 {
            let log = &log;
            s.spawn(move || {
                for i in 0..500 {
                    let lsn = log.append(&put(t * 1000 + i, 40, FILL)).unwrap();
                    log.flush_to(lsn).unwrap();
                    assert!(log.durable() >= lsn);
                }
            });
        }
    });
    let mut next = [0u64; 4];
    replay(&volume, region, start(1, Lsn(0)), |_, r| {
        let Record::Put { page, .. } = r else {
            panic!()
        };
        let (t, i) = (page.0 / 1000, page.0 % 1000);
        assert_eq!(next[t as usize], i, "thread {t} in order");
        next[t as usize] += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(next, [500; 4]);
    let _: &dyn BlockDevice = &**volume.device();
}

#[test]
fn a_sparse_log_writes_each_block_once_and_is_read_completely() {
    // Forty commits of one record each take forty blocks. Packed, they share five blocks, which are
    // written again and again, so there are no fewer block writes.
    let counted = PACKINGS.map(|packing| {
        let (volume, region, log) = setup_as(64, packing);
        for i in 0..40 {
            let lsn = log.append(&put(i, 500, FILL)).unwrap();
            log.flush_to(lsn).unwrap();
        }
        assert_eq!(
            pages_from(&volume, region, Lsn(0)),
            (0..40).collect::<Vec<_>>()
        );
        let blocks = log.end().0.div_ceil(4096);
        (volume.stats().written.log / 4096, blocks)
    });
    let [packed, sparse] = counted;
    assert_eq!(sparse, (40, 40));
    assert!(packed.0 >= 40 && packed.1 <= 6, "{packed:?}");
}

#[test]
fn a_closed_block_is_marked_and_padded_with_zeros() {
    let (volume, _, log) = setup_as(16, LogPacking::Sparse);
    for i in 0..3 {
        let lsn = log.append(&put(i, 100, FILL)).unwrap();
        log.flush_to(lsn).unwrap();
        let mut block = vec![0; 4096];
        volume.read(Lba(3 + i), &mut block, IoClass::Log).unwrap();
        let used = usize::from(u16::from_le_bytes([block[16], block[17]]));
        assert!(block[22] & 2 == 2, "block {i} is closed");
        assert!(used < 200 && block[used..].iter().all(|b| *b == 0));
        assert_eq!(lsn, Lsn(4096 * i + used as u64));
    }
}

#[test]
fn the_packing_of_a_log_may_change_with_each_opening() {
    let (volume, region, mut log) = setup_as(64, LogPacking::Packed);
    let mut next = 0;
    for epoch in 2..12 {
        for _ in 0..3 {
            let lsn = log.append(&put(next, 300, FILL)).unwrap();
            log.flush_to(lsn).unwrap();
            next += 1;
        }
        let end = Log::scan_end(&volume, region, start(1, Lsn(0)), |_, _| Ok(())).unwrap();
        Log::mark_end(&volume, region, start(1, Lsn(0)), &end, epoch).unwrap();
        assert_eq!(end.end, log.end());
        log = create(
            &volume,
            region,
            epoch,
            end.next_start,
            PACKINGS[epoch as usize % 3 / 2],
        );
        log.keep_from(Lsn(0));
    }
    assert_eq!(
        pages_from(&volume, region, Lsn(0)),
        (0..next).collect::<Vec<_>>()
    );
}

#[test]
fn the_reported_log_space_can_be_used() {
    for packing in PACKINGS {
        let (_, _, log) = setup_as(3, packing);
        for len in [300, 7000, 500] {
            let left = log.space_left();
            let done = log.append(&put(1, len, FILL));
            assert!(
                done.is_ok() || left < len as u64,
                "{packing:?}: {left} bytes left, a record of {len} refused"
            );
            // After this the sparse log begins another block.
            log.flush_to(log.end()).unwrap();
        }
    }
}
