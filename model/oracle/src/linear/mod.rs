//! Checks whether a history is linearizable.
//!
//! Linearizability is local (Herlihy and Wing, 1990): the history of a map is linearizable if and
//! only if, for each key, the operations on that key are a linearizable history of one register. A
//! scan is not a snapshot: for each key it may return a value of any instant within the scan. So a
//! scan counts as one read of every key in its range, each with the interval of the scan. The form
//! of a scan is checked first: rows in order, within the bounds, none after the visitor stopped.
//!
//! [`check`] is exact for histories without batches: it reports a violation if and only if no order
//! of the calls explains the answers. A batch counts as a write of each of its keys; `together`
//! checks that these take effect at one instant. What it reports is a violation, but it may miss
//! one. `register` searches the orders of one key; `explain` reduces a violation to the few
//! calls that contradict each other. Keys are processed in batches, to bound memory. Time is linear
//! in the number of calls and scanned rows if few calls overlap.

mod explain;
mod order;
mod register;
mod together;
mod violation;

pub use register::{MAX_CONFIGURATIONS, MAX_PENDING};
pub use violation::{Kind, Violation};

use super::history::{Action, History, KeyId, Outcome, Row, Scan, Start, Version};
use register::{Access, Event, Stop, Walk};
use together::Together;

/// The most operations of one batch. A key with more is a batch of its own.
const BATCH: usize = 4 << 20;

/// What a correct history contained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Number of calls.
    pub calls: u64,
    /// Number of keys that were accessed.
    pub keys: u64,
    /// Operations on single keys, including the reads that scans stand for.
    pub accesses: u64,
    /// Keys that were too complex to judge; see [`MAX_PENDING`] and [`MAX_CONFIGURATIONS`].
    pub unjudged: Vec<KeyId>,
}

/// Checks that a history is linearizable.
///
/// ```
/// use std::sync::Arc;
/// use treering_oracle::history::{Action, History, Key, KeyId, Recorder, Version};
///
/// let keys: Arc<[Key]> = Arc::new([Key::from(&b"a"[..])]);
/// let key = KeyId(0);
/// let mut writer = Recorder::new(0, Arc::clone(&keys));
/// writer.invoke(1, Action::Put { key, version: Version(5) });
/// writer.returned(2, Version::ABSENT);
/// // The put has returned, and a later get does not see it.
/// let mut reader = Recorder::new(1, keys);
/// reader.invoke(3, Action::Get { key, found: Version::ABSENT });
/// reader.returned(4, Version::ABSENT);
/// let violation = treering_oracle::linear::check(&History::merge(vec![writer, reader]));
/// assert!(violation.is_err());
/// ```
///
/// # Errors
/// The earliest violation, with the calls that explain it. Malformed scans come before violations
/// of single keys.
pub fn check(history: &History) -> Result<Judged, Box<Violation>> {
    for (number, call) in history.calls().iter().enumerate() {
        if let (Action::Scan(scan), Outcome::Returned) = (call.action, call.outcome)
            && let Some((kind, row)) = misshapen(history, &history.scans()[scan as usize])
        {
            return Err(Box::new(Violation::of_scan(history, number, kind, row)));
        }
    }
    let sizes = sizes(history);
    let mut judged = Judged {
        calls: history.calls().len() as u64,
        keys: sizes.iter().filter(|size| **size > 0).count() as u64,
        accesses: sizes.iter().map(|size| u64::from(*size)).sum(),
        unjudged: Vec::new(),
    };
    let mut walk = Walk::default();
    let mut together = Together::new(history);
    let mut failures: Vec<(u64, KeyId, usize)> = Vec::new();
    let mut from = 0;
    while from < sizes.len() {
        let to = batch_end(&sizes, from);
        let (events, ends) = lay_out(history, &sizes, from..to);
        let mut start = 0;
        for (key, end) in (from..to).zip(ends) {
            let key = KeyId(key as u32);
            let of_key = &events[start..end];
            together.add(key, of_key);
            match walk.judge(of_key) {
                Ok(()) => {}
                Err(Stop::Unexplained(event)) => failures.push((of_key[event].end, key, event)),
                Err(Stop::TooMany) => judged.unjudged.push(key),
            }
            start = end;
        }
        from = to;
    }
    let Some((_, key, event)) = failures.iter().min().copied() else {
        return match together.violation() {
            Some(violation) => Err(Box::new(violation)),
            None => Ok(judged),
        };
    };
    let place = key.0 as usize;
    let (events, _) = lay_out(history, &sizes, place..place + 1);
    let mut violation = explain::explain(history, key, &events, event);
    violation.other_keys = failures.len() - 1;
    Err(Box::new(violation))
}

/// The violation in the form of a scan, and the index of the row, if there is one.
fn misshapen(history: &History, scan: &Scan) -> Option<(Kind, usize)> {
    let rows = history.rows_of(scan);
    if let Some(broke) = history.broke_at(scan)
        && broke + 1 < rows.len()
    {
        return Some((Kind::ScanWentOn, broke + 1));
    }
    if let Some(outside) = rows.iter().position(|row| !scan.start.admits(row.key)) {
        return Some((Kind::ScanOutOfBounds, outside));
    }
    let at = rows
        .windows(2)
        .position(|pair| !scan.start.first_to(pair[0].key, pair[1].key))?;
    let seen = rows[..=at].iter().any(|row| row.key == rows[at + 1].key);
    let kind = if seen {
        Kind::ScanRepeats
    } else {
        Kind::ScanUnsorted
    };
    Some((kind, at + 1))
}

/// The number of operations on each key. 0 if the key was never written and no read saw it.
fn sizes(history: &History) -> Vec<u32> {
    let keys = history.keys().len();
    let mut touched = vec![false; keys];
    let mut sizes = vec![0u32; keys];
    // Scans as differences: one more from here on, one fewer from there on.
    let mut scans = vec![0i64; keys + 1];
    for call in history.calls() {
        match call.action {
            Action::Put { key, .. } => {
                touched[key.0 as usize] = true;
                sizes[key.0 as usize] += 1;
            }
            Action::Delete { key } => sizes[key.0 as usize] += 1,
            Action::Write(_) => {
                for Row { key, version } in history.written_by(call) {
                    touched[key.0 as usize] |= version != Version::ABSENT;
                    sizes[key.0 as usize] += 1;
                }
            }
            _ if call.outcome != Outcome::Returned => {}
            Action::Get { key, found } => {
                touched[key.0 as usize] |= found != Version::ABSENT;
                sizes[key.0 as usize] += 1;
            }
            Action::Scan(scan) => {
                let scan = &history.scans()[scan as usize];
                let covered = history.covered(scan);
                scans[covered.start as usize] += 1;
                scans[(covered.end as usize).max(covered.start as usize)] -= 1;
                for row in history.rows_of(scan) {
                    touched[row.key.0 as usize] = true;
                }
            }
        }
    }
    let mut covering = 0;
    for ((size, touched), step) in sizes.iter_mut().zip(touched).zip(scans) {
        covering += step;
        *size = if touched { *size + covering as u32 } else { 0 };
    }
    sizes
}

/// The end of the batch of keys that begins at `from`.
fn batch_end(sizes: &[u32], from: usize) -> usize {
    let mut total = 0;
    let fits = sizes[from..].iter().take_while(|size| {
        total += **size as usize;
        total <= BATCH
    });
    from + fits.count().max(1)
}

/// The operations of some keys, key by key, each key's in the order of their invocations. Also
/// returns where each key's operations end.
fn lay_out(
    history: &History,
    sizes: &[u32],
    keys: std::ops::Range<usize>,
) -> (Vec<Event>, Vec<usize>) {
    let mut next = Vec::with_capacity(keys.len());
    let mut total = 0;
    for size in &sizes[keys.clone()] {
        next.push(total);
        total += *size as usize;
    }
    let nothing = Event {
        invoke: 0,
        end: 0,
        version: Version::ABSENT,
        call: 0,
        access: Access::Read,
    };
    let mut events = vec![nothing; total];
    for (number, call) in history.calls().iter().enumerate() {
        let returned = call.outcome == Outcome::Returned;
        let mut put = |key: u32, access, version| {
            let key = key as usize;
            if keys.contains(&key) && sizes[key] > 0 {
                let at = &mut next[key - keys.start];
                events[*at] = Event {
                    invoke: call.invoke,
                    end: if returned { call.end } else { u64::MAX },
                    version,
                    call: number as u32,
                    access,
                };
                *at += 1;
            }
        };
        match call.action {
            Action::Put { key, version } => put(key.0, Access::Write, version),
            Action::Delete { key } => put(key.0, Access::Write, Version::ABSENT),
            Action::Write(_) => {
                for Row { key, version } in history.written_by(call) {
                    put(key.0, Access::Write, version);
                }
            }
            _ if !returned => {}
            Action::Get { key, found } => put(key.0, Access::Read, found),
            Action::Scan(scan) => {
                let scan = &history.scans()[scan as usize];
                let covered = history.covered(scan);
                let (low, high) = (keys.start as u32, keys.end as u32);
                let range = covered.start.max(low)..covered.end.min(high);
                for (key, version) in answers(history.rows_of(scan), scan.start, range) {
                    put(key, Access::Read, version);
                }
            }
        }
    }
    // Each key has been filled up to where the next one begins.
    (events, next)
}

/// The content of each key in a range according to the rows of a scan.
fn answers(
    rows: &[Row],
    start: Start,
    range: std::ops::Range<u32>,
) -> impl Iterator<Item = (u32, Version)> {
    let below = |row: &Row| row.key.0 < range.start;
    // Upwards, the next row is the first of these; downwards, the last.
    let mut rows = if start.is_down() {
        &rows[..rows.partition_point(|row| !below(row))]
    } else {
        &rows[rows.partition_point(below)..]
    };
    range.map(move |key| {
        let next = if start.is_down() {
            rows.split_last()
        } else {
            rows.split_first()
        };
        match next {
            Some((row, rest)) if row.key.0 == key => {
                rows = rest;
                (key, row.version)
            }
            _ => (key, Version::ABSENT),
        }
    })
}
