//! Races: pairs of operations that overlapped in time, and on one key if both have keys.
//!
//! A race that never occurred has not been tested. The history has the calls, and [`Deeds`] has
//! what else happened: syncs, background work, checkpoints. One sweep in the order of the
//! beginnings takes O(n · threads).

use std::sync::{Mutex, PoisonError};

use crate::history::{Action, History};
use crate::reach::{Area, Reach};

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    Put,
    Delete,
    Batch,
    Get,
    Scan,
    Sync,
    Background,
    Checkpoint,
    PowerCut,
}

use Deed::{Background, Batch, Checkpoint, Delete, Get, PowerCut, Put, Scan, Sync};

impl Deed {
    fn name(self) -> &'static str {
        match self {
            Put => "put",
            Delete => "delete",
            Batch => "batch",
            Get => "get",
            Scan => "scan",
            Sync => "sync",
            Background => "background work",
            Checkpoint => "checkpoint",
            PowerCut => "power cut",
        }
    }

    fn is_call(self) -> bool {
        self <= Scan
    }

    /// Whether it can affect another operation. Two operations that only read cannot.
    fn races_with(self, other: Deed) -> bool {
        let reads = |deed| matches!(deed, Get | Scan);
        let of_its_kind = self == other && !self.is_call();
        !(of_its_kind || reads(self) && reads(other))
    }
}

/// The pair of two kinds, in a fixed order.
fn pair(one: Deed, other: Deed) -> String {
    let (first, second) = (one.min(other), one.max(other));
    match (first == second, second) {
        (true, Batch) => "two batches of a key".to_owned(),
        (true, _) => format!("two {}s of a key", first.name()),
        (false, second) if second.is_call() => {
            format!("{} and {} of a key", first.name(), second.name())
        }
        (false, second) => format!("{} and {}", first.name(), second.name()),
    }
}

/// Operations besides the calls: kind, beginning and end.
#[derive(Debug, Default)]
pub(super) struct Deeds(Mutex<Vec<(Deed, u64, u64)>>);

impl Deeds {
    pub(super) fn note(&self, deed: Deed, from: u64, until: u64) {
        let mut deeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        deeds.push((deed, from, until));
    }

    fn all(&self) -> Vec<(Deed, u64, u64)> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// One operation, and the indexes of its keys, or all keys if it has none.
struct Span {
    deed: Deed,
    from: u64,
    until: u64,
    keys: std::ops::Range<u32>,
}

/// What can happen besides gets, scans, puts and deletes.
#[derive(Clone, Copy)]
pub(super) struct CanBe {
    /// The power is cut.
    pub(super) cuts: bool,
    /// A sync that matters.
    pub(super) syncs: bool,
    /// Batches.
    pub(super) batches: bool,
}

/// Counts the races of a history.
pub(super) fn count(history: &History, deeds: &Deeds, can: CanBe, reach: &mut Reach) {
    let all = 0..u32::MAX;
    let calls = history.calls().iter().flat_map(|call| {
        let one = |key: u32| key..key + 1;
        let spans = match call.action {
            Action::Get { key, .. } => vec![(Get, one(key.0))],
            Action::Put { key, .. } => vec![(Put, one(key.0))],
            Action::Delete { key } => vec![(Delete, one(key.0))],
            // One for each key.
            Action::Write(_) => {
                let changes = history.written_by(call).into_iter();
                changes.map(|row| (Batch, one(row.key.0))).collect()
            }
            Action::Scan(scan) => {
                let scan = &history.scans()[scan as usize];
                vec![(Scan, history.covered(scan))]
            }
        };
        let (from, until) = (call.invoke, call.end);
        spans.into_iter().map(move |(deed, keys)| Span {
            deed,
            from,
            until,
            keys,
        })
    });
    let others = deeds.all().into_iter().map(|(deed, from, until)| Span {
        deed,
        from,
        until,
        keys: all.clone(),
    });
    let mut spans: Vec<Span> = calls.chain(others).collect();
    spans.sort_by_key(|span| span.from);
    const DEEDS: [Deed; 9] = [
        Put, Delete, Batch, Get, Scan, Sync, Background, Checkpoint, PowerCut,
    ];
    let mut met = [[0u64; DEEDS.len()]; DEEDS.len()];
    let mut open: Vec<&Span> = Vec::new();
    for span in &spans {
        open.retain(|other| other.until > span.from);
        for other in &open {
            if other.keys.start < span.keys.end && span.keys.start < other.keys.end {
                let (first, second) = (other.deed.min(span.deed), other.deed.max(span.deed));
                met[first as usize][second as usize] += 1;
            }
        }
        open.push(span);
    }
    for (at, first) in DEEDS.into_iter().enumerate() {
        for second in DEEDS.into_iter().skip(at) {
            let is = |deed| [first, second].contains(&deed);
            let can_be = (can.cuts || !is(PowerCut))
                && (can.syncs || !is(Sync))
                && (can.batches || !is(Batch));
            if first.races_with(second) && can_be {
                reach.want(Area::Race, pair(first, second));
                let n = met[first as usize][second as usize];
                reach.met(Area::Race, pair(first, second), n);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::history::{Key, KeyId, Recorder, Version};

    #[test]
    fn what_overlaps_at_a_key_has_met() {
        let keys: Arc<[Key]> = [&b"a"[..], b"b"].map(Key::from).into();
        let mut recorders = Vec::new();
        let put = |key, version| Action::Put {
            key: KeyId(key),
            version: Version(version),
        };
        let get = |key| Action::Get {
            key: KeyId(key),
            found: Version::ABSENT,
        };
        // Overlapping puts of a and b, a get of b during both, and a delete of a after all of them.
        for (client, (action, invoke, end)) in (0..).zip([
            (put(0, 1), 1, 9),
            (put(1, 2), 2, 8),
            (get(1), 3, 4),
            (Action::Delete { key: KeyId(0) }, 10, 11),
        ]) {
            let mut recorder = Recorder::new(client, Arc::clone(&keys));
            recorder.invoke(invoke, action);
            recorder.returned(end, Version::ABSENT);
            recorders.push(recorder);
        }
        let deeds = Deeds::default();
        deeds.note(Checkpoint, 7, 12);
        let mut reach = Reach::default();
        count(
            &History::merge(recorders),
            &deeds,
            CanBe {
                cuts: false,
                syncs: true,
                batches: false,
            },
            &mut reach,
        );
        let of = |what| reach.of(Area::Race, what);
        assert_eq!(of("put and get of a key"), Some(1));
        assert_eq!(of("two puts of a key"), Some(0));
        assert_eq!(of("put and delete of a key"), Some(0));
        assert_eq!(of("put and checkpoint"), Some(2));
        assert_eq!(of("delete and checkpoint"), Some(1));
        assert_eq!(of("get and checkpoint"), Some(0));
        assert_eq!(of("put and power cut"), None);
        assert_eq!(of("two gets of a key"), None);
    }
}
