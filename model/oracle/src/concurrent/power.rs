//! Histories that end in a power cut: what clients were told before it must hold after it.
//!
//! ```text
//! client 0 ── put a 1 ─ sync ─ put b 3 ─ …   ┐        the power goes      open ─ read all
//! client 1 ── delete a ─ put a 2 ─ …         ├──────────────────────▶ image ───────────▶ judged
//! pump     ── …                              ┘
//! ```
//!
//! A write is *vouched for* if the engine promised that it is durable: at its return, or when a
//! `sync` of its LSN or a later one returned while the power was on. If a write survives, all
//! writes that had returned before it was invoked are vouched for, too, because a crash may drop
//! only a suffix of the writes (`DurableMap`). A key may then hold the value of a write unless a
//! write that is vouched for was invoked after that write had ended. A batch of which a change is
//! there has happened as a whole, which vouches for its other changes. O(calls).

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use treering_engine::{Kv, Lsn};

use super::finding::Finding;
use super::workload::Workload;
use crate::Promise;
use crate::history::{Action, Call, History, Outcome, Row, Version, show_key};
use crate::medium::Medium;

/// What else is wrong with the medium before the power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing.
    None,
    /// A request fails.
    Failure,
    /// Now and then it has no space for blocks that hold nothing.
    NoRoom,
}

/// The power of a history that ends in a power cut, and what clients were told before that.
pub struct Power {
    pub(super) medium: Medium,
    /// What each write returned, with the tick of its invocation.
    told: Mutex<Vec<(u64, Lsn)>>,
    /// The greatest LSN that a `sync` has made durable.
    synced: AtomicU64,
    pub(super) trouble: Trouble,
}

impl std::fmt::Debug for Power {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Power").finish_non_exhaustive()
    }
}

impl Power {
    pub(super) fn of(medium: Medium, trouble: Trouble) -> Power {
        Power {
            medium,
            told: Mutex::default(),
            synced: AtomicU64::new(0),
            trouble,
        }
    }

    /// Whether the power has been cut.
    pub(super) fn is_cut(&self) -> bool {
        self.medium.power_is_cut()
    }

    /// Called at each step of background work: the medium loses and regains its space.
    pub(super) fn background(&self, step: u64) {
        if let (Trouble::NoRoom, Some(device)) = (self.trouble, self.medium.blocks()) {
            device.set_full(step / 64 % 3 == 1);
        }
    }

    pub(super) fn wrote(&self, invoke: u64, lsn: Lsn) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.push((invoke, lsn));
    }

    pub(super) fn synced(&self, lsn: Lsn) {
        self.synced.fetch_max(lsn.0, Ordering::SeqCst);
    }

    /// The invocations of the writes that a `sync` has vouched for, sorted.
    fn vouched(&self) -> Vec<u64> {
        let synced = self.synced.load(Ordering::SeqCst);
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let durable = told.iter().filter(|(_, lsn)| lsn.0 <= synced);
        let mut invocations: Vec<u64> = durable.map(|(invoke, _)| *invoke).collect();
        invocations.sort_unstable();
        invocations
    }
}

/// Reads the content of a store, by key number.
pub(super) fn contents(kv: &dyn Kv, work: &Workload) -> Result<Vec<Version>, Finding> {
    let failed = |error| Finding::Failed {
        who: "the reader after the power cut".into(),
        error,
    };
    let keys = work.keys();
    let mut found = vec![Version::ABSENT; keys.len()];
    let (mut strange, mut expected, mut value) = (None, Vec::new(), Vec::new());
    let visit = &mut |key: &[u8], bytes: &[u8]| {
        match keys.binary_search_by(|known| (**known).cmp(key)) {
            Ok(number) => found[number] = work.version_of(key, bytes, &mut expected),
            Err(_) => strange = Some(key.to_vec()),
        }
        ControlFlow::Continue(())
    };
    kv.scan(b"", visit).map_err(failed)?;
    if let Some(key) = strange {
        let what = format!("{} exists, though it was never written", show_key(&key));
        return Err(Finding::Lost(vec![what]));
    }
    let mut differ = Vec::new();
    for (key, scanned) in keys.iter().zip(&found) {
        let there = kv.get(key, &mut value).map_err(failed)?;
        let got = match there {
            true => work.version_of(key, &value, &mut expected),
            false => Version::ABSENT,
        };
        if got != *scanned {
            let key = show_key(key);
            differ.push(format!("{key}: a scan finds {scanned}, a get {got}"));
        }
    }
    match differ.is_empty() {
        true => Ok(found),
        false => Err(Finding::Lost(differ)),
    }
}

/// The calls on one key that decide what it may hold.
#[derive(Clone, Default)]
struct OfKey<'h> {
    writes: Vec<(&'h Call, Version)>,
    /// The last call that is vouched for, by its invocation.
    vouched: Option<&'h Call>,
}

impl<'h> OfKey<'h> {
    /// Whether the key may never have been there.
    fn is_from_the_start(&self, found: Version) -> bool {
        found == Version::ABSENT && self.vouched.is_none()
    }

    /// The writes that may have left this content. A failed one may take effect later.
    fn leaves(&self, found: Version) -> impl Iterator<Item = &'h Call> {
        let after = self.vouched.map_or(0, |call| call.invoke);
        let late = move |call: &&Call| call.end >= after || call.outcome == Outcome::Failed;
        let left = self
            .writes
            .iter()
            .filter(move |(_, version)| *version == found);
        left.map(|(call, _)| *call).filter(late)
    }
}

/// Judges the content after the cut. Returns a sentence for each key that is wrong.
pub(super) fn judge(
    history: &History,
    power: &Power,
    promise: Promise,
    work: &Workload,
    found: &[Version],
) -> Vec<String> {
    let mut keys: Vec<OfKey<'_>> = vec![OfKey::default(); found.len()];
    let mut survived = 0;
    // The invocations of batches of which a change is there. So all of their changes have happened.
    let mut whole: Vec<u64> = Vec::new();
    for call in history.calls() {
        for Row { key, version } in history.written_by(call) {
            // Keys are numbered as in the table, since no client wrote any other key.
            let at = key.0 as usize;
            keys[at].writes.push((call, version));
            if version != Version::ABSENT && found[at] == version {
                survived = survived.max(call.invoke);
                if matches!(call.action, Action::Write(_)) {
                    whole.push(call.invoke);
                }
            }
        }
    }
    let told = power.vouched();
    loop {
        whole.sort_unstable();
        whole.dedup();
        for key in &mut keys {
            let vouched = |(call, _): &&(&Call, Version)| {
                let returned = call.outcome == Outcome::Returned
                    && (promise == Promise::OnReturn
                        || call.end < survived
                        || told.binary_search(&call.invoke).is_ok());
                returned || whole.binary_search(&call.invoke).is_ok()
            };
            let last = key.writes.iter().filter(vouched).map(|(call, _)| *call);
            key.vouched = last.max_by_key(|call| call.invoke);
        }
        // Batches that alone can have deleted a key have happened as well.
        let only = keys.iter().zip(found).filter_map(|(key, found)| {
            let mut leaves = key.leaves(*found);
            let first = leaves.next().filter(|_| !key.is_from_the_start(*found))?;
            let only = leaves.next().is_none() && matches!(first.action, Action::Write(_));
            only.then_some(first.invoke)
        });
        let more: Vec<u64> = only
            .filter(|batch| whole.binary_search(batch).is_err())
            .collect();
        if more.is_empty() {
            break;
        }
        survived = more.iter().copied().fold(survived, u64::max);
        whole.extend(more);
    }
    let wrong = |(at, key): (usize, &OfKey<'_>)| {
        let found = found[at];
        if key.is_from_the_start(found) || key.leaves(found).next().is_some() {
            return None;
        }
        let name = show_key(&work.keys()[at]);
        Some(match key.vouched {
            Some(call) if whole.binary_search(&call.invoke).is_ok() => format!(
                "{name} holds {found}, though another change of this batch of client {} is there: {}",
                call.client,
                history.describe(call)
            ),
            Some(call) => format!(
                "{name} holds {found}, though client {} was told that this is durable: {}",
                call.client,
                history.describe(call)
            ),
            None => format!("{name} holds {found}, which was never written"),
        })
    };
    keys.iter().enumerate().filter_map(wrong).collect()
}

/// The number of requests before the power cut of a history: few or many.
pub(super) fn cut_after(random: &mut crate::random::Random, in_memory: bool) -> u64 {
    // A write to persistent memory takes a dozen requests or so.
    let (least, span) = if in_memory { (8, 9) } else { (4, 10) };
    let scale = 1 << (least + random.below(span));
    scale + random.below(scale)
}

/// The power of a history on this medium.
pub(super) fn power_of(medium: &Medium, trouble: Trouble) -> Arc<Power> {
    Arc::new(Power::of(medium.clone(), trouble))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskKind;
    use crate::history::{Key, KeyId, Recorder};

    /// Judges histories of two keys. A call is (key, version or 0 for a delete, invoke, end or 0
    /// for none, lsn).
    fn wrong(
        calls: &[(u32, u64, u64, u64, u64)],
        synced: u64,
        promise: Promise,
        found: [u64; 2],
    ) -> usize {
        let keys: Arc<[Key]> = [&b"a"[..], b"b"].map(Key::from).into();
        let work = Workload::on(keys.to_vec(), 100, 10);
        let power = Power::of(Medium::new(DiskKind::Blocks(8)).unwrap(), Trouble::None);
        let mut recorders = Vec::new();
        for (client, (key, version, invoke, end, lsn)) in (0..).zip(calls) {
            let mut recorder = Recorder::new(client, Arc::clone(&keys));
            let (key, version) = (KeyId(*key), Version(*version));
            recorder.invoke(
                *invoke,
                match version {
                    Version::ABSENT => Action::Delete { key },
                    version => Action::Put { key, version },
                },
            );
            if *end > 0 {
                recorder.returned(*end, Version::ABSENT);
                power.wrote(*invoke, Lsn(*lsn));
            }
            recorders.push(recorder);
        }
        power.synced(Lsn(synced));
        let history = History::merge(recorders);
        judge(&history, &power, promise, &work, &found.map(Version)).len()
    }

    #[test]
    fn what_was_vouched_for_must_be_there_and_of_the_rest_a_prefix() {
        // a := 1, then a := 2, then b := 3, and no sync.
        let calls = [(0, 1, 1, 2, 10), (0, 2, 3, 4, 20), (1, 3, 5, 6, 30)];
        let on_sync = |synced, found| wrong(&calls, synced, Promise::OnSync, found);
        for found in [[0, 0], [1, 0], [2, 0], [2, 3]] {
            assert_eq!(on_sync(0, found), 0, "{found:?}");
        }
        // If b := 3 survives, the writes before it cannot be lost.
        assert_eq!(on_sync(0, [1, 3]), 1);
        assert_eq!(on_sync(0, [0, 3]), 1);
        // First only a := 1 was synced, then a := 2 as well.
        assert_eq!((on_sync(10, [0, 0]), on_sync(10, [1, 0])), (1, 0));
        assert_eq!((on_sync(20, [1, 0]), on_sync(20, [2, 0])), (1, 0));
        // No write wrote 7.
        assert_eq!(on_sync(0, [7, 0]), 1);
        let on_return = |found| wrong(&calls, 0, Promise::OnReturn, found);
        assert_eq!((on_return([2, 0]), on_return([2, 3])), (1, 0));
    }

    #[test]
    fn a_batch_of_which_a_change_is_there_is_there_as_a_whole() {
        let keys: Arc<[Key]> = [&b"a"[..], b"b"].map(Key::from).into();
        let work = Workload::on(keys.to_vec(), 100, 10);
        let power = Power::of(Medium::new(DiskKind::Blocks(8)).unwrap(), Trouble::None);
        let mut recorder = Recorder::new(0, Arc::clone(&keys));
        let change = |key, version| (KeyId(key), Version(version));
        recorder.invoke_batch(1, [change(0, 1), change(1, 2)]);
        recorder.returned(2, Version::ABSENT);
        // Never returns.
        recorder.invoke_batch(3, [change(0, 3), change(1, 0)]);
        let history = History::merge(vec![recorder]);
        let wrong = |found: [u64; 2]| {
            let found = found.map(Version);
            judge(&history, &power, Promise::OnSync, &work, &found).len()
        };
        for whole in [[0, 0], [1, 2], [3, 0]] {
            assert_eq!(wrong(whole), 0, "{whole:?}");
        }
        for part in [[1, 0], [0, 2], [3, 2]] {
            assert!(wrong(part) > 0, "{part:?}");
        }
    }

    #[test]
    fn calls_that_overlap_or_never_return_leave_either() {
        // a := 1 and a := 2 overlap, and a delete of a is pending.
        let calls = [(0, 1, 1, 4, 10), (0, 2, 2, 3, 20), (0, 0, 5, 0, 0)];
        for (found, count) in [([1, 0], 0), ([2, 0], 0), ([0, 0], 0), ([0, 9], 1)] {
            assert_eq!(
                wrong(&calls, 20, Promise::OnSync, found),
                count,
                "{found:?}"
            );
        }
        // Without the delete, a cannot be absent.
        assert_eq!(wrong(&calls[..2], 20, Promise::OnSync, [0, 0]), 1);
    }
}
