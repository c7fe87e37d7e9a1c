//! Recording: a buffer for each client, and one clock for all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Action, Batch, Call, History, Key, KeyId, Outcome, Row, Scan, Start, Version};

/// The clock of a history. It always uses std's atomics, even if the engine's are replaced, since
/// schedules of the clock need not be explored.
#[derive(Debug, Default)]
pub struct Ticks(AtomicU64);

impl Ticks {
    /// The next tick. Sequentially consistent: of two calls, one that the other may depend on has
    /// the lower tick.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The last tick that was given out.
    pub fn last(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The calls of one client so far.
#[derive(Clone, Debug)]
pub struct Recorder {
    client: u32,
    keys: Arc<[Key]>,
    /// Keys that a scan returned and that are not in the table. They are numbered after it.
    strange: Vec<Key>,
    calls: Vec<Call>,
    scans: Vec<Scan>,
    batches: Vec<Batch>,
    rows: Vec<Row>,
}

impl Recorder {
    /// A recorder of calls on `keys`, which must be sorted.
    #[must_use]
    pub fn new(client: u32, keys: Arc<[Key]>) -> Recorder {
        Recorder {
            client,
            keys,
            strange: Vec::new(),
            calls: Vec::new(),
            scans: Vec::new(),
            batches: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Number of calls.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether there was no call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Begins a call at tick `now`. The answer of a get is recorded when it returns.
    pub fn invoke(&mut self, now: u64, action: Action) {
        self.calls.push(Call {
            client: self.client,
            outcome: Outcome::Pending,
            invoke: now,
            end: u64::MAX,
            action,
        });
    }

    /// Begins a scan at tick `now`.
    pub fn invoke_scan(&mut self, now: u64, start: Start, through: Option<KeyId>, limit: u32) {
        let first = self.rows.len() as u32;
        self.scans.push(Scan {
            start,
            through,
            limit,
            first,
            rows: 0,
        });
        self.invoke(now, Action::Scan(self.scans.len() as u32 - 1));
    }

    /// Begins a batch at tick `now`. Its keys differ; a delete has the version
    /// [`Version::ABSENT`].
    pub fn invoke_batch(&mut self, now: u64, changes: impl IntoIterator<Item = (KeyId, Version)>) {
        let first = self.rows.len() as u32;
        let rows = changes
            .into_iter()
            .map(|(key, version)| Row { key, version });
        self.rows.extend(rows);
        let changes = self.rows.len() as u32 - first;
        self.batches.push(Batch { first, changes });
        self.invoke(now, Action::Write(self.batches.len() as u32 - 1));
    }

    /// Records a row that the pending scan returns.
    pub fn row(&mut self, key: &[u8], version: Version) {
        let known = self.keys.binary_search_by(|known| (**known).cmp(key));
        let number = known.unwrap_or_else(|_| {
            self.strange.push(key.into());
            self.keys.len() + self.strange.len() - 1
        });
        let key = KeyId(number as u32);
        self.rows.push(Row { key, version });
        if let Some(scan) = self.scans.last_mut() {
            scan.rows += 1;
        }
    }

    /// Ends the pending call at tick `now`. `found` is the answer of a get.
    pub fn returned(&mut self, now: u64, found: Version) {
        if let Some(call) = self.calls.last_mut() {
            (call.outcome, call.end) = (Outcome::Returned, now);
            if let Action::Get { found: answer, .. } = &mut call.action {
                *answer = found;
            }
        }
    }

    /// Removes the pending call, a write that was refused and changed nothing.
    pub fn refused(&mut self) {
        self.calls.pop();
    }

    /// Ends the pending call, which failed, at tick `now`.
    pub fn failed(&mut self, now: u64) {
        if let Some(call) = self.calls.last_mut() {
            (call.outcome, call.end) = (Outcome::Failed, now);
        }
    }
}

impl History {
    /// The history of all clients, which must share one table of keys.
    #[must_use]
    pub fn merge(recorders: Vec<Recorder>) -> History {
        let Some(first) = recorders.first() else {
            return History::default();
        };
        let mut keys = first.keys.to_vec();
        let table = keys.len() as u32;
        let mut calls = Vec::with_capacity(recorders.iter().map(|r| r.calls.len()).sum());
        let (mut scans, mut batches, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for recorder in recorders {
            let (first_scan, first_row) = (scans.len() as u32, rows.len() as u32);
            let first_batch = batches.len() as u32;
            let first_strange = keys.len() as u32 - table;
            keys.extend(recorder.strange);
            calls.extend(recorder.calls.into_iter().map(|mut call| {
                match &mut call.action {
                    Action::Scan(scan) => *scan += first_scan,
                    Action::Write(batch) => *batch += first_batch,
                    _ => {}
                }
                call
            }));
            scans.extend(recorder.scans.into_iter().map(|mut scan| {
                scan.first += first_row;
                scan
            }));
            batches.extend(recorder.batches.into_iter().map(|mut batch| {
                batch.first += first_row;
                batch
            }));
            rows.extend(recorder.rows.into_iter().map(|mut row| {
                if row.key.0 >= table {
                    row.key.0 += first_strange;
                }
                row
            }));
        }
        History::assemble(keys, calls, scans, batches, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorders_merge_and_a_strange_key_finds_its_place() {
        let keys: Arc<[Key]> = [&b"b"[..], b"d"].map(Key::from).into();
        let ticks = Ticks::default();
        let mut all = Vec::new();
        for client in 0..2 {
            let mut recorder = Recorder::new(client, Arc::clone(&keys));
            let key = KeyId(client);
            let version = Version(7 + u64::from(client));
            recorder.invoke(ticks.next(), Action::Put { key, version });
            recorder.returned(ticks.next(), Version::ABSENT);
            recorder.invoke_scan(ticks.next(), Start::From(KeyId(0)), None, 10);
            recorder.row(b"b", Version(7));
            recorder.row([&b"a"[..], b"c"][client as usize], Version(1));
            recorder.returned(ticks.next(), Version::ABSENT);
            all.push(recorder);
        }
        let history = History::merge(all);
        let keys: Vec<&[u8]> = history.keys().iter().map(|key| &**key).collect();
        assert_eq!(keys, [b"a", b"b", b"c", b"d"]);
        let rows_of = |scan: usize| {
            let rows = history.rows_of(&history.scans()[scan]);
            rows.iter().map(|row| row.key.0).collect::<Vec<_>>()
        };
        assert_eq!((rows_of(0), rows_of(1)), (vec![1, 0], vec![1, 2]));
        assert!(history.calls().is_sorted_by_key(|call| call.invoke));
        assert_eq!(history.calls()[0].end, 2);
    }
}
