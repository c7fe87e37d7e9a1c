//! What clients do: the keys, the lengths of values, and the number of calls of each kind.
//!
//! The seed alone decides all of it, independently of the answers. So the same seed gives each
//! client the same program.

use std::sync::Arc;

use super::plan::Plan;
use crate::edges;
use crate::engine::{DiskKind, Engine, Limits, LongValues, Write, size_in_batch};
use crate::history::{Key, KeyId, Start, Version};
use crate::random::Random;
use crate::value::{self, VERSION_BYTES};

/// The kind of keys and values of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A dozen keys with values so long that few fit a page. All clients meet, and leaves split and
    /// merge all the time.
    Hot,
    /// Strings of two letters, each of which is a prefix of others.
    Prefixes,
    /// Keys and values with lengths at which formats change (see [`edges`]).
    Edges,
    /// Thousands of keys, on more pages than a small cache holds.
    Wide,
    /// All clients go upwards through the keys: one phase writes them, the next deletes them. So
    /// whole ranges come and go.
    Runs,
    /// Writes go upwards and deletes follow behind. Keys are numbers and values have one length,
    /// which is what dense leaves are for.
    Queue,
}

impl Shape {
    /// All shapes. Histories take them in turn.
    pub const ALL: [Shape; 6] = [
        Shape::Hot,
        Shape::Prefixes,
        Shape::Edges,
        Shape::Wide,
        Shape::Runs,
        Shape::Queue,
    ];

    /// The shape of history `number`. Histories that end in a power cut and those that do not each
    /// go through all shapes in turn.
    pub(super) fn of(number: u64, cut_every: u64) -> Shape {
        let turn = number / cut_every.max(1);
        Shape::ALL[(turn % Shape::ALL.len() as u64) as usize]
    }

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Shape::Hot => "hot",
            Shape::Prefixes => "prefixes",
            Shape::Edges => "edges",
            Shape::Wide => "wide",
            Shape::Runs => "runs",
            Shape::Queue => "queue",
        }
    }
}

/// The keys of a batch: the first, and more at a distance from one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The first key.
    pub first: KeyId,
    /// The distance to the next one. Beyond the last key, it goes on with the first.
    pub stride: u32,
    /// The number of keys.
    pub keys: u32,
}

/// Batches and their readers mostly use one of this many groups of keys, so that they meet.
const GROUPS: u64 = 6;

/// A call to make, or a few calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read a key.
    Get(KeyId),
    /// Write a key.
    Put(KeyId),
    /// Delete a key.
    Delete(KeyId),
    /// Write a batch.
    Write {
        /// Its keys.
        group: Group,
        /// A bit for each key, in their order: 1 deletes it.
        deletes: u32,
    },
    /// Read the keys of a batch, one after another.
    Look {
        /// The keys.
        group: Group,
        /// Whether the last key comes first.
        back: bool,
        /// Whether the keys after the first are read by one scan from there.
        scan: bool,
    },
    /// Scan.
    Scan {
        /// Where the scan begins, and its direction.
        start: Start,
        /// The last key of interest.
        through: Option<KeyId>,
        /// The most rows, at least 1.
        limit: u32,
    },
    /// Sync the client's own writes.
    Sync,
}

/// The length of a value in a table row.
const ROW: usize = 150;

/// The keys, lengths and call mix of one history.
#[derive(Clone, Debug)]
pub struct Workload {
    shape: Shape,
    keys: Arc<[Key]>,
    longest: usize,
    /// The limits for values, in the shape that tests lengths.
    limits: Option<Limits>,
    /// Whether all values are as long as the longest.
    one_length: bool,
    /// The size that a batch may have, if the engine has batches.
    batch_bytes: Option<u64>,
    /// The longest values that do not count there.
    long: Option<LongValues>,
    /// Calls of a client in one phase of growth or shrinkage.
    phase: u64,
}

impl Workload {
    /// The workload of one of a plan's histories, within the engine's limits.
    pub(super) fn of(engine: &dyn Engine, plan: &Plan, shape: Shape) -> Workload {
        Workload::new(
            shape,
            engine.limits(),
            engine.disk(),
            u64::from(plan.clients),
            engine.may_refuse(&Write::Put),
        )
        .with_long(engine.long_values())
        .with_batches(engine.batch_bytes())
    }

    /// The same workload, in which a few hot keys have values out of line, if the engine has such.
    #[must_use]
    pub fn with_long(self, long: Option<LongValues>) -> Workload {
        let with = Workload { long, ..self };
        match long {
            Some(long) if with.shape == Shape::Hot => Workload {
                longest: long.to,
                ..with
            },
            _ => with,
        }
    }

    /// The same workload with batches of up to `bytes` bytes; see
    /// [`Engine::batch_bytes`](crate::Engine::batch_bytes).
    #[must_use]
    pub fn with_batches(self, bytes: Option<u64>) -> Workload {
        Workload {
            batch_bytes: bytes,
            ..self
        }
    }

    /// A workload of `shape` within the limits of an engine and its disk, for `clients` clients.
    /// With `fills`, long values fill the disk.
    #[must_use]
    pub fn new(
        shape: Shape,
        limits: Limits,
        disk: DiskKind,
        clients: u64,
        fills: bool,
    ) -> Workload {
        // A tenth of the device, because pages are half full at worst, and logs and journals need
        // space.
        let share = if fills { 1 } else { 10 };
        let room = match disk {
            DiskKind::Blocks(blocks) => (blocks * 4096 / share).min(2 << 20) as usize,
            DiskKind::Pm(bytes) => (bytes / share).min(2 << 20) as usize,
            DiskKind::Folder => 2 << 20,
        };
        let (names, longest): (Vec<Vec<u8>>, usize) = match shape {
            Shape::Hot => ((0..12).map(|n| format!("h{n:02}").into()).collect(), 1_500),
            Shape::Prefixes => (prefixes(limits), 300),
            Shape::Edges => {
                // Each key length twice, if records of all lengths fit.
                let record = limits.max_record.min(32 << 10);
                let records = (room / record).clamp(8, 64) as u16;
                let key = |n| edges::key(&limits, n);
                ((0..records).map(key).collect(), record)
            }
            Shape::Wide => {
                let records = (room / 250).min(5_000);
                let name = |n| format!("wide/shared/prefix/{n:06}").into();
                ((0..records).map(name).collect(), 400)
            }
            Shape::Queue => {
                let records = (room / 600).clamp(2, 1_500) as u32;
                let name = |n: u32| [&b"row:"[..], &n.to_be_bytes()].concat();
                ((0..records).map(name).collect(), ROW)
            }
            Shape::Runs => {
                let records = (room / 1_000).clamp(2, 500);
                let name = |n| format!("run {n:06}").into();
                ((0..records).map(name).collect(), 1_000)
            }
        };
        let mut keys: Vec<Key> = names
            .into_iter()
            // Keys differ at the end. So an engine with short keys has distinct keys too, if fewer.
            .map(|key| Key::from(&key[key.len().saturating_sub(limits.max_key)..]))
            .filter(|key| limits.empty_key || !key.is_empty())
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let longest_key = keys.iter().map(|key| key.len()).max().unwrap_or(0);
        let fits = limits.max_record.saturating_sub(longest_key);
        let phase = match shape {
            Shape::Hot | Shape::Edges => 60,
            Shape::Prefixes | Shape::Wide => 2 * keys.len() as u64 / clients.max(1) + 1,
            // Half of the calls are writes, and they take the keys in turn.
            Shape::Runs => 2 * keys.len() as u64,
            Shape::Queue => u64::MAX,
        };
        Workload {
            shape,
            limits: (shape == Shape::Edges).then_some(limits),
            one_length: shape == Shape::Queue,
            ..Workload::on(keys, longest.min(fits), phase)
        }
    }

    /// A workload on these sorted keys, with values of up to `longest` bytes and phases of `phase`
    /// calls per client.
    #[must_use]
    pub fn on(keys: Vec<Key>, longest: usize, phase: u64) -> Workload {
        Workload {
            shape: Shape::Hot,
            keys: keys.into(),
            longest: longest.max(VERSION_BYTES),
            limits: None,
            one_length: false,
            batch_bytes: None,
            long: None,
            phase: phase.max(1),
        }
    }

    /// The keys, sorted.
    #[must_use]
    pub fn keys(&self) -> &Arc<[Key]> {
        &self.keys
    }

    /// The version of a whole value of `key`, or [`Version::FOREIGN`] for any other bytes.
    pub(super) fn version_of(&self, key: &[u8], bytes: &[u8], expected: &mut Vec<u8>) -> Version {
        let Some(version) = value::version(bytes).filter(|number| Version(*number).is_writable())
        else {
            return Version::FOREIGN;
        };
        value::fill(expected, version, self.len_of(key.len(), version));
        if *expected == bytes {
            Version(version)
        } else {
            Version::FOREIGN
        }
    }

    /// The length of the value of write `version` to a key of `key` bytes.
    #[must_use]
    pub fn len_of(&self, key: usize, version: u64) -> usize {
        let mut random = Random::new(version);
        if let Some(limits) = &self.limits {
            // A shorter value could not tell which write it comes from.
            let edge = edges::value_length(limits, key, random.below(1 << 16) as usize);
            return edge.max(VERSION_BYTES);
        }
        if self.one_length {
            return self.longest;
        }
        VERSION_BYTES + random.below((self.longest - VERSION_BYTES) as u64 + 1) as usize
    }

    /// The step for call number `call` of a client.
    pub fn step(&self, call: u64, random: &mut Random) -> Step {
        let key = |random: &mut Random| KeyId(random.below(self.keys.len() as u64) as u32);
        let grows = (call / self.phase).is_multiple_of(2);
        let n = self.keys.len() as u64;
        let in_turn = |behind: u64| KeyId(((call / 2 + n - behind % n) % n) as u32);
        if self.batch_bytes.is_some() && random.percent(8) {
            return self.batch_step(grows, random);
        }
        match (self.shape, random.below(100)) {
            (Shape::Runs, 0..45) if grows => return Step::Put(in_turn(0)),
            (Shape::Runs, 0..45) => return Step::Delete(in_turn(0)),
            (Shape::Queue, 0..30) => return Step::Put(in_turn(0)),
            (Shape::Queue, 30..58) => return Step::Delete(in_turn(n.div_ceil(4))),
            _ => {}
        }
        match random.below(100) {
            0..50 if grows => Step::Put(key(random)),
            0..50 => Step::Delete(key(random)),
            50..58 if grows => Step::Delete(key(random)),
            50..58 => Step::Put(key(random)),
            58..86 => Step::Get(key(random)),
            86..98 => {
                let from = key(random);
                let through = random.percent(20).then(|| key(random));
                let (start, through) = if random.percent(40) {
                    let start = if random.percent(10) {
                        Start::End
                    } else {
                        Start::Below(from)
                    };
                    (start, through.map(|through| through.min(from)))
                } else {
                    (Start::From(from), through.map(|through| through.max(from)))
                };
                let most = if random.percent(5) { 1_000 } else { 20 };
                let limit = 1 + random.below(most) as u32;
                Step::Scan {
                    start,
                    through,
                    limit,
                }
            }
            _ => Step::Sync,
        }
    }

    /// A batch, or a look at the keys of one.
    fn batch_step(&self, grows: bool, random: &mut Random) -> Step {
        let n = self.keys.len() as u64;
        let group = match random.one_in(4) {
            true => Group {
                first: KeyId(random.below(n) as u32),
                stride: 1 + random.below(n.div_ceil(2)) as u32,
                keys: 2 + random.below(3) as u32,
            },
            false => {
                let number = random.below(GROUPS);
                Group {
                    first: KeyId((number * n / GROUPS) as u32),
                    // In one leaf, or in several.
                    stride: [1, (n / 4 + 1) as u32][(number % 2) as usize],
                    keys: 2 + (number % 3) as u32,
                }
            }
        };
        if random.one_in(2) {
            let (back, scan) = (random.one_in(2), random.one_in(4));
            return Step::Look { group, back, scan };
        }
        let one_in = if grows { 4 } else { 2 };
        let delete = |bit| u32::from(random.one_in(one_in)) << bit;
        let deletes = (0..group.keys).map(delete).sum();
        Step::Write { group, deletes }
    }

    /// The keys of a group, in its order, each once.
    #[must_use]
    pub fn keys_of(&self, group: Group) -> Vec<KeyId> {
        let n = self.keys.len() as u32;
        let mut keys = Vec::new();
        for at in 0..group.keys {
            let key = KeyId((group.first.0 + at * group.stride) % n);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// The first of these changes, as many as fit a batch.
    pub(super) fn fitting(&self, mut changes: Vec<(KeyId, Version)>) -> Vec<(KeyId, Version)> {
        let most = self.batch_bytes.unwrap_or(0);
        let mut bytes = 0;
        let fits = changes.iter().take_while(|(key, version)| {
            let key = self.keys[key.0 as usize].len();
            let value = (*version != Version::ABSENT).then(|| self.len_of(key, version.0) as u32);
            bytes += size_in_batch(key, value, self.long);
            bytes <= most
        });
        let fit = fits.count();
        changes.truncate(fit);
        changes
    }
}

/// All strings of up to six letters from an alphabet of two: the least byte and one in the middle.
fn prefixes(limits: Limits) -> Vec<Vec<u8>> {
    let mut names = vec![Vec::new()];
    for at in 0..126 {
        let name: &Vec<u8> = &names[at / 2];
        names.push([name.as_slice(), &[[0, b'm'][at % 2]]].concat());
    }
    if !limits.empty_key {
        names.remove(0);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinct_and_values_keep_within_the_limits() {
        for (max_key, max_record, empty_key) in [(3, 60, false), (1000, 1300, true)] {
            let limits = Limits {
                max_key,
                max_record,
                empty_key,
            };
            for shape in Shape::ALL {
                let work = Workload::new(shape, limits, DiskKind::Blocks(16_384), 4, false);
                assert!(work.keys().is_sorted_by(|a, b| a < b), "{shape:?}");
                for key in work.keys().iter() {
                    assert!(key.len() <= max_key && (empty_key || !key.is_empty()));
                    assert!((1..500).all(|v| key.len() + work.len_of(key.len(), v) <= max_record));
                }
            }
        }
        let limits = Limits {
            max_key: 9,
            max_record: 99,
            empty_key: true,
        };
        assert_eq!(prefixes(limits).len(), 127);
    }

    #[test]
    fn an_engine_of_short_keys_has_keys_of_every_shape() {
        for max_key in [1, 2, 6, 24] {
            let limits = Limits {
                max_key,
                max_record: 999,
                empty_key: false,
            };
            for shape in Shape::ALL {
                let work = Workload::new(shape, limits, DiskKind::Folder, 4, false);
                let fit = |key: &Key| (1..=max_key).contains(&key.len());
                assert!(work.keys().len() > 1, "{shape:?}, {max_key} bytes");
                assert!(work.keys().iter().all(fit), "{shape:?}, {max_key} bytes");
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_program() {
        let limits = Limits {
            max_key: 99,
            max_record: 999,
            empty_key: true,
        };
        let work = Workload::new(Shape::Wide, limits, DiskKind::Folder, 4, false);
        let program = |seed| {
            let mut random = Random::new(seed);
            (0..500)
                .map(|call| work.step(call, &mut random))
                .collect::<Vec<_>>()
        };
        assert_eq!(program(3), program(3));
        assert_ne!(program(3), program(4));
    }
}
