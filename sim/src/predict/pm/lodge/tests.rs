//! Tests XPLines, logs and nodes separately. `sim/tests/replay_lodge.rs` compares the whole with
//! the engine.

use super::*;
use crate::pm::{FullLines, Replacement};

const BUFFER: XpBuffer = XpBuffer {
    lines: 64.0,
    replacement: Replacement::Lru,
    full_lines: FullLines::AtOnce,
};

const SHAPE: LodgeShape = LodgeShape {
    slots: 29,
    t_node: 2,
    t_split: 26,
    burst_factor: Some(2.0),
    log_entries: 256.0,
    entitled_entries: 2048.0,
    log_share: 0.2,
};

#[test]
fn an_xpline_is_written_when_full_and_when_it_leaves() {
    let mut medium = Medium::new(&BUFFER, 1.0, 100);
    let mut xpline = XpLine::default();
    // Not measured yet; still there 40 ticks later, when the measured part fills it.
    medium.touch(&mut xpline, 0b0111, 90);
    medium.touch(&mut xpline, 0b1000, 130);
    assert_eq!((medium.lines, medium.written), (1.0, 1.0));
    // Clean, so its eviction writes nothing; then evicted with a measured dirty line.
    medium.touch(&mut xpline, 0b0001, 300);
    assert_eq!(medium.written, 1.0);
    medium.touch(&mut xpline, 0b0001, 400);
    assert_eq!(medium.written, 2.0);
    medium.leave(&mut xpline);
    assert_eq!((medium.lines, medium.written), (3.0, 3.0));
    // Gaps of 40, 170 and 100 ticks. If one XPLine is inserted per tick, the last two miss; if none
    // is inserted, none does.
    assert_eq!(medium.gaps.missed(&BUFFER, 1.0), 2.0);
    assert_eq!(medium.gaps.missed(&BUFFER, 0.0), 0.0);
}

#[test]
fn a_log_alone_is_written_twice_an_xpline() {
    // Written when full, and once more for entries that end in the last line. A user byte takes 1.5
    // bytes of entries.
    let log = Log::play(&BUFFER, 1.0, 4096.0, 40_000.0);
    assert!((log.lines - 1.25).abs() < 0.01, "{}", log.lines);
    let each = log.xplines * XPLINE / ENTRY;
    assert!((each - 2.0).abs() < 0.01, "{each}");
    let whole = XpBuffer {
        full_lines: FullLines::OnEviction,
        ..BUFFER
    };
    let log = Log::play(&whole, 1.0, 4096.0, 40_000.0);
    assert!((log.xplines * XPLINE / ENTRY - 1.0).abs() < 0.01);
}

#[test]
fn no_key_is_lost_between_buffers_and_leaves() {
    // Odd multiples of a power of two are distinct. Each key is written once, so all are flushed or
    // buffered.
    let keys = 20_000u32;
    let mut writes: Vec<Write> = (0..keys)
        .map(|i| Write::new(i.wrapping_mul(0x9e37_79b1), i))
        .collect();
    let mut medium = Medium::new(&BUFFER, 1.0, 0);
    let counts = play::play(&SHAPE, &mut writes, &[], &mut medium, &mut Nobody);
    assert_eq!(counts.flushed + counts.buffered, f64::from(keys));
    assert_eq!(counts.leaves, counts.splits + 1.0);
    // §II-C: 25 % to 58 % of the slots are free; LT-04: two leaves a flush.
    let free = 1.0 - counts.leaves / (counts.nodes * 29.0);
    assert!((0.25..0.58).contains(&free), "{free}");
    assert!(counts.visits <= 2.0 * counts.flushes + counts.splits);
}

#[test]
fn a_cleaning_leaves_nothing_that_is_older() {
    let keys = 5_000u32;
    let writes: Vec<Write> = (0..keys)
        .map(|i| Write::new(i.wrapping_mul(0x9e37_79b1), i))
        .collect();
    let all = Cleaning {
        at: keys,
        below: keys,
    };
    let mut medium = Medium::new(&BUFFER, 1.0, 0);
    let counts = play::play(
        &SHAPE,
        &mut writes.clone(),
        &[all],
        &mut medium,
        &mut Nobody,
    );
    assert_eq!((counts.buffered, counts.flushed), (0.0, f64::from(keys)));

    // One key is never written again and keeps its log alive. The others are written again and
    // again.
    let hot = |i: u32| Write::new(if i.is_multiple_of(500) { i } else { i % 7 }, i);
    let writes: Vec<Write> = (1..keys).map(hot).collect();
    let shape = LodgeShape {
        entitled_entries: 0.0,
        ..SHAPE
    };
    let cleanings = cleanings(&shape, &BUFFER, &writes, 1.0);
    assert!(!cleanings.is_empty());
    assert!(cleanings.iter().all(|c| c.below <= c.at));
    let never = LodgeShape {
        log_share: f64::INFINITY,
        ..shape
    };
    assert!(self::cleanings(&never, &BUFFER, &writes, 1.0).is_empty());
}
