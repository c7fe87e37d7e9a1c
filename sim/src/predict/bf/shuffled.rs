//! Plays mini-pages on independent visits: those of the trace in random order.

use super::below::Below;
use super::frames::{Frames, Traffic};
use super::model::{Counts, Key, Model};
use super::pages::Record;
use super::visits::{Kind, Visit, Visits};
use super::{LeafVisits, LogPace, Setting};

/// The counts of the measured part.
pub(super) struct Run {
    pub(super) counts: Counts,
    pub(super) traffic: Traffic,
    pub(super) leaves: Vec<LeafVisits>,
}

/// The leaves below, of fixed size.
struct Leaves<'a> {
    visits: &'a Visits,
    frames: Frames,
    of_leaf: Vec<LeafVisits>,
    /// Operations so far.
    time: u64,
    /// Log bytes of a record.
    logged: f64,
}

impl Below for Leaves<'_> {
    fn read(&mut self, leaf: u32) {
        self.of_leaf[leaf as usize].reads += 1.0;
        self.frames.visit(leaf, None, self.time);
    }

    fn merge(&mut self, leaf: u32, written: u64, _: &[Record]) {
        self.of_leaf[leaf as usize].merges += 1.0;
        self.frames.visit(leaf, Some(written), self.time);
    }

    fn log_again(&mut self, _: u32, records: &[Record]) -> f64 {
        let dirty = records.iter().filter(|record| record.dirty).count();
        dirty as f64 * self.logged * self.visits.weight
    }

    fn now(&self) -> u64 {
        self.time
    }

    fn tidy(&mut self) {
        self.frames.tidy(self.time);
    }

    fn free(&self, leaf: u32) -> u32 {
        self.visits.leaves[leaf as usize].free
    }

    fn is_played(&self, _: u32) -> bool {
        true
    }

    fn records(&self, leaf: u32) -> Vec<Record> {
        let (from, until) = self.visits.leaves[leaf as usize].keys;
        let record = |key: &Key| Record {
            rank: key.rank,
            bytes: key.bytes,
            dirty: false,
        };
        let keys = &self.visits.keys[from as usize..until as usize];
        keys.iter().map(record).collect()
    }
}

/// The mini-pages, and the log.
struct Shuffled<'a> {
    model: Model<'a, Leaves<'a>>,
    pace: LogPace,
    weight: f64,
    /// Log bytes so far; `flushed` of them are durable.
    log: f64,
    flushed: f64,
}

/// Plays all visits in their present order.
pub(super) fn play<'a>(visits: &'a Visits, setting: Setting<'a>) -> Run {
    let Setting {
        shape, cache, pace, ..
    } = setting;
    let leaves = visits.leaves.len();
    let below = Leaves {
        visits,
        frames: Frames::new(cache, leaves, 1.0 / visits.weight),
        of_leaf: vec![LeafVisits::default(); leaves],
        time: 0,
        logged: pace.measured,
    };
    let run = Shuffled {
        model: Model::new(shape, leaves, visits.weight, below),
        pace,
        weight: visits.weight,
        log: 0.0,
        flushed: 0.0,
    };
    run.play(visits)
}

impl Shuffled<'_> {
    fn play(mut self, visits: &Visits) -> Run {
        let (load, again) = visits.before.split_at(visits.first_puts);
        let puts = |part: &[Visit]| {
            let puts = part.iter().filter(|visit| visit.kind == Kind::Put).count();
            puts as f64 * self.weight
        };
        // The log bytes of splits are attributed to the first puts.
        let rest = self.pace.at_start - puts(again) * self.pace.again;
        let first = (rest / puts(load).max(1.0)).max(0.0);
        for visit in load {
            self.operate(*visit, first);
        }
        for visit in again {
            self.operate(*visit, self.pace.again);
        }
        self.model.counts = Counts::default();
        self.model.below.frames.traffic = Traffic::default();
        self.model.below.of_leaf.fill(LeafVisits::default());
        for visit in &visits.measured {
            self.operate(*visit, self.pace.measured);
        }
        Run {
            counts: self.model.counts,
            traffic: self.model.below.frames.traffic,
            leaves: self.model.below.of_leaf,
        }
    }

    /// Simulates one operation and the background work that becomes due. A write adds `logged`
    /// bytes to the log.
    fn operate(&mut self, visit: Visit, logged: f64) {
        let key = self.model.below.visits.keys[visit.key as usize];
        self.model.below.time += 1;
        match visit.kind {
            Kind::Get => self.model.get(key),
            Kind::Put => {
                self.model.write(key);
                self.log_grows(logged * self.weight);
            }
            Kind::Scan => self.model.look_at_leaf(key.leaf),
        }
        self.model.tidy();
        if self.model.below.frames.take_flushed() {
            self.flushed = self.log;
        }
    }

    /// Adds log bytes; starts checkpoints, and flushes when the log's buffer is full (§5.7).
    fn log_grows(&mut self, by: f64) {
        let before = self.pace.checkpoints(self.log);
        self.log += by;
        let time = self.model.below.time;
        if self.log - self.flushed >= self.pace.buffer {
            self.model.below.frames.flush(time);
        }
        if self.pace.checkpoints(self.log) > before {
            let leaves = self.model.below.visits.leaves.len() as u32;
            self.log += self.model.push_down(0..leaves, self.model.shape.relog);
            self.model.below.frames.sweep(time);
        }
    }
}
