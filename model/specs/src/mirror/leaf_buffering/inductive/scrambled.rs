//! States that differ in one word or variable from one that the protocol makes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::super::constants::LeafBuffering;
use super::super::memory::{FIRST, Place, chunk_of, header_of, kv_of, one, slot_of};
use super::super::memory::{stamp_of, time_of};
use super::super::room::{N, VERSIONS};
use super::super::state::{
    At, Batch, Call, Cleaning, CleaningAt, Phase, RECOVERER, State, WriteAt,
};
use super::super::word::{Time, Word};
use super::ways::{Way, newest};
use crate::inductive::{Inductive as _, Plan};

/// How many scrambled states a sample takes of one.
const FEW: usize = 4;
/// How many it tries, if no conjunct is left out.
const TRIED: usize = 40;

/// A word with another value before, after or in place of the newest.
fn others(place: &Place, other: Word) -> Vec<Place> {
    let mut all = Vec::new();
    let mut before = Place::durably(other);
    before.push(place.newest());
    all.push(before);
    let mut instead = Place::durably(place.all()[0]);
    if place.is_unflushed() {
        instead.push(other);
    } else {
        instead = Place::durably(other);
    }
    all.push(instead);
    if place.all().len() + 2 <= VERSIONS {
        let mut after = *place;
        after.push(other);
        all.push(after);
    }
    if place.is_unflushed() {
        all.push(Place::durably(place.newest()));
        all.push(Place::durably(place.all()[0]));
    }
    all
}

impl LeafBuffering {
    /// The state itself and some that the invariant allows; or, if a conjunct is left out, some
    /// that only this conjunct forbids.
    pub(super) fn scrambled(&self, s: &State, plan: &Plan) -> Vec<Way> {
        let mut hasher = DefaultHasher::new();
        (s, plan.seed).hash(&mut hasher);
        let random = hasher.finish() as usize;
        let all = self.variations(s);
        let start = random % all.len().max(1);
        let turned = all[start..].iter().chain(&all[..start]);
        let left_out = Self::CONJUNCTS.iter().find(|c| plan.is_without(c.name));
        let state = |s: &State| Way::State(Box::new(*s));
        match left_out {
            None if random.is_multiple_of(3) => {
                turned.take(TRIED).map(state).chain([state(s)]).collect()
            }
            None => vec![state(s)],
            Some(conjunct) => {
                let lacks = |s: &&State| !conjunct.holds(self, s);
                let others = |s: &&State| {
                    let mut rest = Self::CONJUNCTS.iter().filter(|c| c.name != conjunct.name);
                    rest.all(|c| c.holds(self, s))
                };
                let few: Vec<Way> = turned
                    .filter(lacks)
                    .filter(others)
                    .take(FEW)
                    .map(state)
                    .collect();
                if few.is_empty() { vec![state(s)] } else { few }
            }
        }
    }

    fn variations(&self, s: &State) -> Vec<State> {
        let mut all = self.other_words(s);
        self.other_buffers(s, &mut all);
        self.other_jobs(s, &mut all);
        self.other_numbers(s, &mut all);
        all.retain(|other| self.is_total(other));
        all
    }

    /// Whether all steps of a state are defined: what a writer has is there, and what waits in a
    /// buffer node has a key.
    fn is_total(&self, s: &State) -> bool {
        let fits = |w: usize| match s.call.get(w) {
            Some(Call::Write { key, .. }) => {
                w != RECOVERER && !self.is_trigger(s.buffer(s.job[w].leaf), *key)
            }
            _ => false,
        };
        let defined = |w: usize| {
            let job = &s.job[w];
            let logs = w != RECOVERER && s.log[w].chunk != 0 && s.log[w].used != 0;
            let writes = w == RECOVERER || matches!(s.call[w], Call::Write { .. });
            let indexed = |leaf: u8| s.is_indexed(leaf);
            match job.at {
                At::None => true,
                At::Done => w == RECOVERER || writes,
                At::Logged => logs && indexed(job.leaf) && fits(w),
                At::New | At::Link => writes && indexed(job.leaf) && job.new != 0,
                At::Log => indexed(job.leaf) && fits(w),
                At::Flushed => w != RECOVERER && writes && indexed(job.leaf),
                At::Move | At::Moved | At::Merged => {
                    w != RECOVERER && indexed(job.leaf) && indexed(job.from)
                }
                _ => writes && indexed(job.leaf),
            }
        };
        let waits = |buffer: &super::super::state::Buffer| {
            buffer.waiting().iter().all(|slot| slot.key != 0)
        };
        let runs = matches!(s.phase, Phase::Up | Phase::Recovery);
        let memory = runs || s.inner.all().is_empty();
        memory && s.buffer.iter().all(waits) && (!runs || self.writers().all(defined))
    }

    fn other_words(&self, s: &State) -> Vec<State> {
        let mut all = Vec::new();
        let mut put = |address: usize, word: Word| {
            if s.pm[address].newest() == word {
                return;
            }
            all.extend(others(&s.pm[address], word).into_iter().map(|place| {
                let mut other = *s;
                other.pm[address] = place;
                other
            }));
        };
        let top = newest(s) + 1;
        let times = |ticks: N| {
            let of = move |epoch| (0..=ticks).map(move |tick| Time { epoch, tick });
            (0..=top).flat_map(of)
        };
        let ticks = s.tick.max(3) + 1;
        (1..=top + 2).for_each(|n| put(FIRST, Word::number(n)));
        let kvs = self.records_of(self.all_keys());
        for leaf in 1..=self.leaves as u8 {
            let header = s.pm[header_of(leaf)].newest();
            for slot in 0..self.slots {
                let live = header.live() ^ one(slot);
                put(header_of(leaf), Word::header(live, header.next()));
                kvs.iter()
                    .for_each(|kv| put(slot_of(leaf, slot), Word::kv(*kv)));
            }
            let nexts = 0..=self.leaves as u8;
            nexts.for_each(|next| put(header_of(leaf), Word::header(header.live(), next)));
            times(ticks).for_each(|time| put(stamp_of(leaf), Word::time(time)));
        }
        for chunk in self.chunks() {
            (0..=top).for_each(|n| put(chunk_of(chunk), Word::number(n)));
            for i in 0..self.entries {
                kvs.iter()
                    .for_each(|kv| put(kv_of(chunk, i), Word::kv(*kv)));
                let own = s.pm[kv_of(chunk, i)].newest().as_kv();
                times(ticks).for_each(|time| put(time_of(chunk, i), Word::stamped(time, own)));
                let time = s.pm[time_of(chunk, i)].newest().at();
                kvs.iter()
                    .for_each(|kv| put(time_of(chunk, i), Word::stamped(time, *kv)));
            }
        }
        // Two words of one entry.
        for (chunk, i) in self.all_places() {
            for kv in &kvs {
                for time in times(ticks) {
                    let mut other = *s;
                    other.pm[kv_of(chunk, i)] = Place::durably(Word::kv(*kv));
                    other.pm[time_of(chunk, i)] = Place::durably(Word::stamped(time, *kv));
                    all.push(other);
                }
            }
        }
        all
    }

    fn other_buffers(&self, s: &State, all: &mut Vec<State>) {
        for leaf in 1..=self.leaves as u8 {
            let mut put = |change: &dyn Fn(&mut super::super::state::Buffer)| {
                let mut other = *s;
                change(other.buffer_mut(leaf));
                all.push(other);
            };
            for count in 0..=self.batch as u8 {
                let filled = s.buffer(leaf).slots[..usize::from(count)].iter();
                if filled.into_iter().all(|slot| slot.key != 0) {
                    put(&|buffer| buffer.count = count);
                }
            }
            for i in 0..self.batch {
                put(&|buffer| buffer.slots[i].bit ^= 1);
                for kv in self.records_of(self.all_keys()) {
                    put(&|buffer| {
                        (buffer.slots[i].key, buffer.slots[i].value) = (kv.key, kv.value)
                    });
                    put(&|buffer| {
                        (buffer.slots[i].key, buffer.slots[i].value) = (kv.key, kv.value);
                        buffer.count = buffer.count.max(i as u8 + 1);
                    });
                }
            }
        }
        for todo in 0..=s.inner.leaves() {
            if todo & !s.inner.leaves() == 0 {
                let mut other = *s;
                other.cleaning.todo = todo;
                all.push(other);
            }
        }
        for at in [CleaningAt::Idle, CleaningAt::Scan, CleaningAt::Reclaim] {
            let mut other = *s;
            other.cleaning.at = at;
            all.push(other);
            other.cleaning = Cleaning {
                at,
                ..Cleaning::default()
            };
            all.push(other);
        }
        for chunk in self.chunks() {
            let mut other = *s;
            other.cleaning.chunks ^= one(chunk.into());
            all.push(other);
        }
    }

    fn other_jobs(&self, s: &State, all: &mut Vec<State>) {
        use At::{
            Batch as B, Done, Flushed, Header, Link, Log, Logged, Merged, Move, Moved, New, None,
            Records,
        };
        let steps = [
            None, Log, Logged, B, Records, Header, New, Link, Flushed, Move, Moved, Merged, Done,
        ];
        for w in self.writers() {
            let mut put = |change: &dyn Fn(&mut super::super::state::Job)| {
                let mut other = *s;
                change(&mut other.job[w]);
                all.push(other);
            };
            steps.into_iter().for_each(|at| put(&|job| job.at = at));
            for leaf in 0..=self.leaves as u8 {
                put(&|job| job.leaf = leaf);
                put(&|job| job.from = leaf);
                put(&|job| job.new = leaf);
            }
            for epoch in [s.job[w].epoch + 1, s.job[w].epoch.saturating_sub(1)] {
                put(&|job| job.epoch = epoch);
            }
            for kv in self.records_of(self.all_keys()) {
                put(&|job| job.batch.put(kv.key, kv.value));
                let keys = s.job[w].batch.keys & !one(kv.key.into());
                put(&|job| job.batch = job.batch.only(keys));
            }
            put(&|job| job.batch = Batch::default());
            put(&|job| job.deletes = !job.deletes);
            if w != RECOVERER {
                let mut other = *s;
                (other.call[w], other.job[w]) = (Call::Idle, super::super::state::Job::default());
                all.push(other);
                for kv in self.records_of(self.all_keys()) {
                    for at in [WriteAt::Called, WriteAt::Begun, WriteAt::Done] {
                        let (key, value) = (kv.key, kv.value);
                        let mut other = *s;
                        other.call[w] = Call::Write { key, value, at };
                        all.push(other);
                        // A job of the recoverer, as a client's.
                        other.job[w] = s.job[RECOVERER];
                        all.push(other);
                    }
                }
            }
        }
    }

    fn other_numbers(&self, s: &State, all: &mut Vec<State>) {
        let mut put = |change: &dyn Fn(&mut State)| {
            let mut other = *s;
            change(&mut other);
            all.push(other);
        };
        put(&|s| s.epoch += 1);
        put(&|s| s.epoch = s.epoch.saturating_sub(1));
        put(&|s| s.tick += 1);
        put(&|s| s.tick = s.tick.saturating_sub(1));
        put(&|s| s.job[RECOVERER] = s.job[0]);
        for i in 1..s.inner.all().len() {
            for low in 1..=self.keys as u8 {
                put(&|s| {
                    let child = super::super::memory::Child {
                        low,
                        ..s.inner.all()[i]
                    };
                    s.inner.remove(i);
                    s.inner.insert(i, child);
                });
            }
        }
        for key in 0..self.keys {
            for value in 0..=self.values.min(2) {
                put(&|s| s.written[key] = value);
            }
        }
        for x in self.loggers() {
            put(&|s| s.log[x] = super::super::state::LogEnd::default());
            for chunk in self.chunks() {
                for used in 0..=self.entries as u8 {
                    for epoch in s.epoch.saturating_sub(1)..=s.epoch {
                        put(&|s| s.log[x] = super::super::state::LogEnd { chunk, used, epoch });
                    }
                }
            }
        }
        if s.phase == Phase::Recovery {
            put(&|s| {
                s.call[0] = Call::Write {
                    key: 1,
                    value: 1,
                    at: WriteAt::Called,
                }
            });
        }
    }
}
