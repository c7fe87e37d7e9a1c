//! What a stage gives to its variables, in the order in which one depends on the other.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::super::Action;
use super::super::constants::{Bug, LeafBuffering};
use super::super::memory::{ABSENT, Child, FIRST, Inner, Map, Place, members, one, stamp_of};
use super::super::memory::{chunk_of, header_of};
use super::super::room::{BATCH, N, Set};
use super::super::state::{At, Buffer, Cleaning, CleaningAt, LogEnd, Phase, Slot, State};
use super::super::word::{Kv, Time, Word};
use super::STEPS;
use crate::inductive::Plan;

/// The clock of a store that is up.
const TICK: N = 3;

/// What a stage gives to its variables.
#[derive(Clone, Debug)]
pub enum Way {
    /// Phase, epochs, the clock, and the number of writes so far.
    Life(Box<State>),
    /// The leaves in key order.
    Shape(Inner),
    /// A record of a leaf, and whether it is live.
    Slot(Kv, bool),
    /// The versions of a leaf's stamp.
    Stamp(Vec<Time>),
    /// The epoch of a chunk.
    Chunk(N),
    /// An entry of a log: its record, its time, and what its checksum vouches for.
    Entry(Kv, Time, Kv),
    /// What recovery finds.
    Map(Map),
    /// Where a log ends.
    End(LogEnd),
    /// A buffer node.
    Buffer(Buffer),
    /// The leaves that cleaning has still to scan.
    Todo(Set),
    /// The whole.
    State(Box<State>),
}

/// A place with these versions.
pub(super) fn place(words: impl IntoIterator<Item = Word>) -> Place {
    let mut words = words.into_iter();
    let mut place = Place::durably(words.next().unwrap_or_default());
    words.for_each(|word| place.push(word));
    place
}

/// The newest epoch that a log or a stamp may be of.
pub(super) fn newest(s: &State) -> N {
    match s.phase {
        Phase::Up => s.epoch,
        _ => s.medium()[FIRST].as_number() + 1,
    }
}

fn hash(s: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    s.hash(&mut hasher);
    hasher.finish()
}

/// All sequences of up to `most` different items.
fn sequences<T: Copy + PartialEq>(items: &[T], most: usize) -> Vec<Vec<T>> {
    let (mut all, mut last) = (vec![Vec::new()], vec![Vec::new()]);
    for _ in 0..most {
        last = last
            .iter()
            .flat_map(|before: &Vec<T>| {
                let rest = items.iter().filter(|item| !before.contains(item));
                rest.map(|item| before.iter().chain([item]).copied().collect())
            })
            .collect();
        all.extend(last.iter().cloned());
    }
    all
}

impl LeafBuffering {
    /// The values of typed records: few are enough to tell them apart.
    fn contents(&self) -> std::ops::RangeInclusive<N> {
        ABSENT..=self.values.min(2)
    }

    /// All records.
    pub(super) fn records_of(&self, keys: Set) -> Vec<Kv> {
        let of = |key: usize| {
            let key = key as u8;
            self.contents().map(move |value| Kv { key, value })
        };
        members(keys & self.all_keys()).flat_map(of).collect()
    }

    pub(super) fn lives(&self) -> Vec<Way> {
        let mut all = Vec::new();
        let phases = [Phase::Up; 12].into_iter();
        let phases = phases.chain([Phase::Failing, Phase::Killed, Phase::Recovery]);
        for phase in phases {
            for first in 1..=3 {
                for scans in [false, true] {
                    for asked in 0..=self.values.saturating_sub(1).min(2) {
                        let up = phase == Phase::Up;
                        if scans && !up {
                            continue;
                        }
                        let mut life = State::initial();
                        life.pm[FIRST] = Place::durably(Word::number(first));
                        life.phase = phase;
                        life.asked = asked;
                        if up {
                            life.tick = TICK;
                            life.epoch = first + N::from(scans);
                        } else {
                            life.epoch = 0;
                        }
                        if scans {
                            life.cleaning.at = CleaningAt::Scan;
                        }
                        all.push(Way::Life(Box::new(life)));
                    }
                }
            }
        }
        all
    }

    pub(super) fn shapes(&self) -> Vec<Way> {
        let more: Vec<u8> = (2..=self.leaves as u8).collect();
        let mut all = Vec::new();
        for row in sequences(&more, more.len()) {
            for lows in 0..=self.all_keys() {
                if lows & !self.all_keys() != 0 || lows.count_ones() as usize != row.len() {
                    continue;
                }
                let mut inner = Inner::default();
                inner.insert(0, Child { leaf: 1, low: 0 });
                for (leaf, low) in row.iter().zip(members(lows)) {
                    let child = Child {
                        leaf: *leaf,
                        low: low as u8,
                    };
                    inner.insert(inner.all().len(), child);
                }
                all.push(Way::Shape(inner));
            }
        }
        all
    }

    /// A record of the leaf's range, which it has not yet, or one that is not live.
    pub(super) fn slots_of(&self, s: &State, leaf: u8, slot: usize) -> Vec<Way> {
        let range = self.range(s, leaf);
        let m = s.medium();
        let live = m[header_of(leaf)].live() & (one(slot) - 1);
        let known = self
            .records_in(&m, leaf)
            .filter(|(at, _)| live >> at & 1 == 1);
        let known = known.fold(0, |set, (_, kv)| set | one(kv.key.into()));
        let low = match leaf {
            1 => 0,
            _ if range == 0 => 0,
            _ => one(range.trailing_zeros() as usize) & !known,
        };
        let fresh = self.records_of(if low != 0 && slot + 1 == self.slots {
            low
        } else {
            range & !known
        });
        let live = fresh.iter().map(|kv| Way::Slot(*kv, true));
        if low != 0 && slot + 1 == self.slots {
            return live.collect();
        }
        let dead = self
            .records_of(Set::MAX)
            .into_iter()
            .step_by(4)
            .chain([Kv::default()]);
        live.chain(dead.map(|kv| Way::Slot(kv, false))).collect()
    }

    /// Times up to now.
    pub(super) fn times(&self, s: &State) -> Vec<Time> {
        let ticks = |epoch| (1..=TICK).map(move |tick| Time { epoch, tick });
        (1..=newest(s)).flat_map(ticks).collect()
    }

    pub(super) fn typed_stamps(&self, s: &State, plan: &Plan) -> Vec<Way> {
        let times: Vec<Time> = self.times(s).into_iter().chain([Time::default()]).collect();
        let mut all: Vec<Way> = times.iter().map(|time| Way::Stamp(vec![*time])).collect();
        if plan.versions > 1 && s.phase != Phase::Recovery {
            let two = |time: &Time| {
                let later = times.iter().filter(move |later| time < later);
                let time = *time;
                later
                    .map(move |later| Way::Stamp(vec![time, *later]))
                    .collect::<Vec<_>>()
            };
            all.extend(times.iter().flat_map(two).step_by(2));
        }
        all
    }

    /// Whole entries, most of them of the chunk's epoch, torn ones, and places never used.
    pub(super) fn entries_of(&self, s: &State, chunk: u8) -> Vec<Way> {
        let own = s.pm[chunk_of(chunk)].newest().as_number();
        let nothing = (Kv::default(), Time::default());
        let mut all = vec![Way::Entry(nothing.0, nothing.1, nothing.0); 12];
        let mut kvs = self.records_of(Set::MAX);
        kvs.push(Kv::default());
        for time in self.times(s) {
            if s.phase == Phase::Up
                && time.epoch >= s.medium()[FIRST].as_number()
                && time.epoch != own
            {
                continue;
            }
            let often = if time.epoch == own { 4 } else { 1 };
            for (i, kv) in kvs.iter().enumerate() {
                let whole = Way::Entry(*kv, time, *kv);
                all.extend(std::iter::repeat_n(
                    whole,
                    if kv.key == 0 { 0 } else { often },
                ));
                let other = kvs[(i + 1) % kvs.len()];
                all.push(Way::Entry(*kv, time, other));
            }
        }
        all
    }

    /// Where a log ends: nowhere, or behind any entry of a chunk that counts.
    pub(super) fn ends(&self, s: &State) -> Vec<Way> {
        let first = s.medium()[FIRST].as_number();
        let mut all = vec![Way::End(LogEnd::default())];
        if s.phase != Phase::Up {
            return all;
        }
        for chunk in self.chunks() {
            let epoch = s.pm[chunk_of(chunk)].newest().as_number();
            let used = 0..=self.entries as u8;
            let used = used.filter(|_| epoch >= first);
            all.extend(used.map(|used| Way::End(LogEnd { chunk, used, epoch })));
        }
        all
    }

    /// Buffer nodes in which those keys wait that the leaf lacks, and perhaps others of which the
    /// log has a newer entry, and with any cache.
    pub(super) fn buffers(&self, s: &State, leaf: u8) -> Vec<Way> {
        let range = self.range(s, leaf);
        if s.phase != Phase::Up || range == 0 {
            return vec![Way::Buffer(Buffer::default())];
        }
        let m = s.medium();
        let stamps = s.pm[stamp_of(leaf)].all().iter().map(|word| word.as_time());
        let newest = stamps.max().unwrap_or_default();
        let logged = |key: &usize| {
            let last = self.last_logged(&m, &s.inner, *key as u8);
            last.filter(|time| newest < *time)
        };
        let waiting = members(range).filter_map(|key| {
            let (value, time) = (s.written[key - 1], logged(&key)?);
            let key = key as u8;
            Some(Slot {
                key,
                value,
                bit: time.epoch % 2,
            })
        });
        let waiting: Vec<Slot> = waiting.collect();
        let known = |value: N, key: u8| Slot { key, value, bit: 0 };
        let cached = (1..=self.keys as u8).flat_map(|key| {
            let own = s.inner.route(key) == leaf;
            let values = self
                .contents()
                .filter(|value| !own || *value == s.written[usize::from(key) - 1]);
            values.map(|value| known(value, key)).collect::<Vec<_>>()
        });
        let cached: Vec<Slot> = cached.chain([Slot::default()]).collect();
        let mut all = Vec::new();
        for order in sequences(&waiting, self.batch) {
            let mut buffer = Buffer {
                count: order.len() as u8,
                ..Buffer::default()
            };
            buffer.slots[..order.len()].copy_from_slice(&order);
            all.extend(with_cache(buffer, &cached, self.batch));
        }
        all.into_iter().map(Way::Buffer).collect()
    }

    pub(super) fn todos(&self, s: &State) -> Vec<Way> {
        if s.cleaning.at != CleaningAt::Scan {
            return vec![Way::Todo(Cleaning::default().todo)];
        }
        let all = s.inner.leaves();
        (0..=all)
            .filter(|todo| todo & !all == 0)
            .map(Way::Todo)
            .collect()
    }

    /// The same protocol without a bug, in which any client may call anything.
    fn without_bounds(&self) -> Self {
        Self {
            bug: Bug::None,
            plan: [0; super::super::room::WRITES],
            deletes: self.deletes | 0b1010_1010 as Set,
            readers: Set::MAX,
            flips: Set::MAX,
            max_crashes: N::MAX,
            max_kills: N::MAX,
            ..self.clone()
        }
    }

    /// The state, or one step further. Lives end late, and not while nothing is under way.
    pub(super) fn steps_further(&self, s: &State, n: usize) -> Vec<Way> {
        let free = self.without_bounds();
        let mut actions = Vec::new();
        free.enabled(s, &mut actions);
        let random = hash(s);
        let late = n * 4 > STEPS * 3 && random.is_multiple_of(3);
        let cleans = n < 4 || random % 8 == 1;
        actions.retain(|action| match action {
            Action::Crash | Action::Kill => late,
            Action::CallGet(_, _) | Action::ReadKey(_) => n < 2,
            Action::FlipEpoch | Action::ScanBuffer(_) | Action::Reclaim => cleans,
            _ => true,
        });
        let mut all: Vec<Way> = Vec::new();
        for action in actions {
            let mut next = *s;
            free.take(&mut next, action);
            next.crashes = 0;
            // What is under way goes on more often than something else begins, and batches begin
            // more often than log entries.
            let batches = next.job.iter().any(|job| job.at == At::Batch);
            let often = match next.job == s.job {
                true => 1,
                false if batches => 12,
                false => 4,
            };
            all.extend(std::iter::repeat_n(Way::State(Box::new(next)), often));
        }
        // Most states go further.
        if all.is_empty() || hash(s).is_multiple_of(8) {
            all.push(Way::State(Box::new(*s)));
        }
        all
    }
}

/// A buffer node with each cache.
fn with_cache(buffer: Buffer, cached: &[Slot], batch: usize) -> Vec<Buffer> {
    let mut all = vec![buffer];
    for i in usize::from(buffer.count)..batch.min(BATCH) {
        all = all
            .iter()
            .flat_map(|before| {
                cached.iter().map(|slot| {
                    let mut with = *before;
                    with.slots[i] = *slot;
                    with
                })
            })
            .collect();
    }
    all
}
