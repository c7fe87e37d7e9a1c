//! A program that runs once on a recording device, and can then be cut off at any of its requests.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::StdRng;
use treering_engine::device::{MemPm, PmDevice, PmImage, PmRequest};
use treering_engine::{
    CclOptions, Cleaning, Error, GlobalOptions, Kv, LodgeOptions, Logging, NodeSplit, PmOptions,
    PmStore, PmTask, PmTreeKind,
};

use crate::pm::{self, Map};

#[derive(Clone, Debug)]
pub(super) enum Step {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    /// One step of cleaning and one of merging leaves, due or not.
    Clean,
    Checkpoint,
}

pub(super) fn ccl(batch: usize) -> CclOptions {
    CclOptions {
        batch,
        logs: 2,
        ..CclOptions::default()
    }
}

pub(super) fn options(tree: PmTreeKind) -> PmOptions {
    PmOptions {
        tree,
        chunk_bytes: 1024,
        ..PmOptions::default()
    }
}

pub(super) fn of_ccl(ccl: CclOptions) -> PmOptions {
    options(PmTreeKind::Ccl(ccl))
}

/// The baselines, three buffer sizes, and every switch.
pub(super) fn all() -> Vec<PmOptions> {
    vec![
        options(PmTreeKind::PmTree),
        options(PmTreeKind::Global(GlobalOptions {
            logs: 2,
            ..GlobalOptions::default()
        })),
        of_ccl(ccl(1)),
        of_ccl(ccl(2)),
        of_ccl(ccl(5)),
        of_ccl(CclOptions {
            logging: Logging::EveryWrite,
            ..ccl(2)
        }),
        of_ccl(CclOptions {
            cleaning: Cleaning::Naive,
            ..ccl(3)
        }),
    ]
}

/// LodgeTrees, whose leaves have another format. Their logs have few entries, so that they are
/// reused during flushes, and their leaves split early.
pub(super) fn lodges() -> Vec<PmOptions> {
    let small = LodgeOptions {
        slots: 7,
        t_split: 5,
        logs: 2,
        log_entries: 6,
        log_percent: 2,
        ..LodgeOptions::default()
    };
    let smallest = LodgeOptions {
        slots: 4,
        t_node: 1,
        t_split: 2,
        logs: 1,
        log_entries: 2,
        ..small
    };
    // A configuration whose updates find no empty slots.
    let full = LodgeOptions {
        slots: 16,
        t_split: 27,
        node_split: NodeSplit::Double,
        ..small
    };
    [small, smallest, full]
        .map(|lodge| options(PmTreeKind::Lodge(lodge)))
        .to_vec()
}

pub(super) fn open(device: &Arc<MemPm>, options: &PmOptions) -> treering_engine::Result<PmStore> {
    let device: Arc<dyn PmDevice> = device.clone();
    PmStore::open(device, options)
}

pub(super) fn apply(map: &mut Map, step: &Step) {
    match step {
        Step::Put(k, v) => drop(map.insert(k.clone(), v.clone())),
        Step::Delete(k) => drop(map.remove(k)),
        Step::Clean | Step::Checkpoint => {}
    }
}

pub(super) fn contents(store: &PmStore) -> Map {
    let map = pm::contents(store);
    // A get relies on fingerprints; a scan does not.
    let mut got = Vec::new();
    for (key, value) in &map {
        let found = store.get(key, &mut got).expect("gets");
        assert!(
            found && got == *value,
            "a scan finds {key:?}, but a get does not"
        );
    }
    map
}

/// Returns one of a few keys, so that each has a history. Most have eight bytes.
pub(super) fn key(rng: &mut StdRng, keys: u64) -> Vec<u8> {
    let number = rng.random_range(0..keys);
    match number % 8 {
        0 => format!("key {number}").into_bytes(),
        1 => (number | 1 << 63).to_be_bytes().to_vec(),
        _ => number.to_be_bytes().to_vec(),
    }
}

pub(super) fn step(rng: &mut StdRng, i: usize, keys: u64) -> Step {
    let growing = (i / (3 * keys as usize)).is_multiple_of(2);
    match rng.random_range(0..100) {
        0..=5 => Step::Clean,
        6 => Step::Checkpoint,
        n if (n < 75) == growing => {
            let mut value = (i as u64).to_be_bytes().to_vec();
            value.resize(if rng.random_bool(0.15) { 20 } else { 8 }, b'v');
            Step::Put(key(rng, keys), value)
        }
        _ => Step::Delete(key(rng, keys)),
    }
}

/// Takes a step. Returns `false` if the store is full; in that case nothing changes.
pub(super) fn take(store: &PmStore, step: &Step) -> bool {
    let clean = || {
        store.pump(PmTask::CleanLog)?;
        store.pump(PmTask::MergeLeaves).map(drop)
    };
    let done = match step {
        Step::Put(k, v) => store.put(k, v).map(drop),
        Step::Delete(k) => store.delete(k).map(drop),
        Step::Clean => clean(),
        Step::Checkpoint => store.checkpoint().map(drop),
    };
    match done {
        Ok(()) => true,
        Err(Error::PmFull { .. }) => false,
        Err(e) => panic!("{:?}, {step:?}: {e}", store.options().tree),
    }
}

/// A recorded run of a program.
pub(super) struct Story {
    pub(super) name: String,
    pub(super) options: PmOptions,
    pub(super) before: PmImage,
    pub(super) requests: Vec<PmRequest>,
    /// The map after each step, and the number of requests by then. The first entry is the state
    /// before the first step.
    pub(super) states: Vec<(usize, Map)>,
    /// Steps that found the device full.
    pub(super) refused: u64,
    /// The requests of steps that split a leaf, or merged two.
    pub(super) splits: Vec<std::ops::Range<usize>>,
}

impl Story {
    /// Runs a program on `image`, in which the store holds `map`, and records it. The recording
    /// includes opening the store.
    pub(super) fn tell(
        name: String,
        options: PmOptions,
        image: PmImage,
        map: Map,
        steps: &[Step],
    ) -> Story {
        let device = Arc::new(MemPm::from_image(image.clone()));
        device.record();
        let store = open(&device, &options).expect("opens");
        assert_eq!(contents(&store), map, "{name}");
        let mut story = Story {
            name,
            options,
            before: image,
            requests: Vec::new(),
            states: vec![(device.requests() as usize, map.clone())],
            refused: 0,
            splits: Vec::new(),
        };
        let splits = || store.stats().splits + store.stats().merges;
        let mut map = map;
        for step in steps {
            let (begun, split) = (device.requests() as usize, splits());
            if take(&store, step) {
                apply(&mut map, step);
            } else {
                story.refused += 1;
            }
            if splits() > split {
                story.splits.push(begun..device.requests() as usize);
            }
            story.states.push((device.requests() as usize, map.clone()));
        }
        story.requests = device.take_recording();
        story
    }

    /// Returns the states allowed after a crash at the first `at` requests.
    fn allowed(&self, at: usize) -> &[(usize, Map)] {
        let done = self.states.partition_point(|(end, _)| *end <= at);
        &self.states[done.saturating_sub(1)..(done + 1).min(self.states.len())]
    }

    pub(super) fn check(&self, at: usize, how: &str, found: &Map) {
        let allowed = self.allowed(at);
        if allowed.iter().any(|(_, map)| map == found) {
            return;
        }
        let number =
            |v: Option<&Vec<u8>>| v.map(|v| u64::from_be_bytes(v[..8].try_into().unwrap()));
        let expected = &allowed[0].1;
        let keys: std::collections::BTreeSet<_> = expected.keys().chain(found.keys()).collect();
        let differ = keys
            .into_iter()
            .filter(|k| expected.get(*k) != found.get(*k));
        let differ: Vec<String> = differ
            .take(6)
            .map(|k| {
                format!(
                    "{k:?}: expected {:?}, found {:?}",
                    number(expected.get(k)),
                    number(found.get(k))
                )
            })
            .collect();
        panic!(
            "{}, crash at request {at}, {how}: {}",
            self.name,
            differ.join("; ")
        );
    }

    /// Ends the story after each of its requests, in several ways each.
    pub(super) fn crash_everywhere(&self, every: usize, ways: u64) {
        self.crash_where(|at| at.is_multiple_of(every), ways);
    }

    /// Ends the story after each request of splits and merges of leaves.
    pub(super) fn crash_in_splits(&self, ways: u64) {
        let mut splits = self.splits.iter().peekable();
        let splitting = |at| {
            while splits.next_if(|split| split.end < at).is_some() {}
            splits.peek().is_some_and(|split| split.start <= at)
        };
        self.crash_where(splitting, ways);
    }

    fn crash_where(&self, mut here: impl FnMut(usize) -> bool, ways: u64) {
        let device = MemPm::from_image(self.before.clone());
        let mut last = 0;
        for at in 0..=self.requests.len() {
            if at > 0 {
                device.apply(&self.requests[at - 1]);
            }
            if !here(at) || device.in_doubt().is_empty() && at != last + 1 {
                continue;
            }
            last = at;
            let mut images = vec![
                ("no undecided word survives", device.crash(&mut |_| 0)),
                (
                    "every undecided word survives",
                    device.crash(&mut |n| n - 1),
                ),
            ];
            let outcomes: usize = device
                .outcomes()
                .iter()
                .fold(1, |all: usize, n| all.saturating_mul(*n));
            if outcomes <= ways as usize {
                images.extend(
                    (1..outcomes).map(|nth| ("one of all outcomes", nth_way(&device, nth))),
                );
            } else {
                let some = (0..ways).map(|seed| device.crash_seeded(seed ^ at as u64));
                images.extend(some.map(|image| ("some undecided words survive", image)));
            }
            let mut seen = std::collections::BTreeSet::new();
            for (how, image) in images {
                if seen.insert(image.fingerprint()) {
                    self.recover(at, how, image);
                }
            }
        }
    }

    /// Opens what is left, then opens it again after a crash during that recovery, and after a
    /// crash at its end.
    fn recover(&self, at: usize, how: &str, image: PmImage) {
        let device = Arc::new(MemPm::from_image(image.clone()));
        device.record();
        let opened = open(&device, &self.options);
        let store = opened.unwrap_or_else(|e| panic!("{}, at {at}, {how}: {e}", self.name));
        let found = contents(&store);
        self.check(at, how, &found);
        drop(store);
        let after = device.crash_seeded(at as u64);
        let reopened =
            open(&Arc::new(MemPm::from_image(after)), &self.options).expect("opens again");
        assert_eq!(
            contents(&reopened),
            found,
            "{}, {how}, then a crash",
            self.name
        );
        let requests = device.take_recording();
        // One moment of the recovery, a different one each time.
        let until = (at * 31) % (requests.len() + 1);
        let again = MemPm::from_image(image);
        requests[..until]
            .iter()
            .for_each(|request| again.apply(request));
        for (second, seed) in [
            ("then again", at as u64),
            ("then once more", at as u64 + 77),
        ] {
            let image = again.crash_seeded(seed);
            let opened = open(&Arc::new(MemPm::from_image(image)), &self.options);
            let store = opened.unwrap_or_else(|e| panic!("{}, {how}, {second}: {e}", self.name));
            let how = format!("{how}, {second} at request {until} of {}", requests.len());
            self.check(at, &how, &contents(&store));
        }
    }
}

pub(super) fn nth_way(device: &MemPm, mut number: usize) -> PmImage {
    device.crash(&mut |n| {
        let pick = number % n;
        number /= n;
        pick
    })
}
