//! What runs have exercised: how often each interesting step, limit, request, fault and race
//! occurred.
//!
//! | area | what is counted | who counts it |
//! |---|---|---|
//! | [`Area::Step`] | steps of the engine, as its [`Stats`] or its spec name them | the engine |
//! | [`Area::Limit`] | keys and values at an edge of [`crate::edges`] | the client |
//! | [`Area::Request`] | requests by kind, while the store is opened, used, or closed | the medium |
//! | [`Area::Fault`] | failed requests, power cuts, damage | the medium, the explorer |
//! | [`Area::Race`] | pairs of overlapping calls on one key | the history |
//!
//! A thing that should occur and never did has a count of 0: a run that finds nothing has not
//! tested it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use treering_engine::Stats;

/// A kind of thing that a run can exercise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    /// A step of the engine.
    Step,
    /// A length limit of keys or values.
    Limit,
    /// A request to the medium.
    Request,
    /// A failed request, a power cut, or damage.
    Fault,
    /// Two operations at the same time.
    Race,
}

impl Area {
    /// All of them.
    pub const ALL: [Area; 5] = [
        Area::Step,
        Area::Limit,
        Area::Request,
        Area::Fault,
        Area::Race,
    ];

    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Area::Step => "step",
            Area::Limit => "limit",
            Area::Request => "request",
            Area::Fault => "fault",
            Area::Race => "race",
        }
    }

    /// Its heading in reports.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Area::Step => "Steps of the engine",
            Area::Limit => "Limits of keys and values",
            Area::Request => "Requests to the medium",
            Area::Fault => "Faults and power cuts",
            Area::Race => "Operations at the same time",
        }
    }
}

/// Steps that not every engine has; see [`crate::Engine::never_does`].
pub mod steps {
    /// Two leaves are merged.
    pub const LEAF_MERGE: &str = "leaf merge";
    /// A lookup finds its key in a buffer.
    pub const BUFFER_HIT: &str = "lookup answered by a buffer";
    /// A write replaces a buffered one.
    pub const BUFFER_OVERWRITE: &str = "write over a buffered one";
    /// A write finds its buffer full.
    pub const BUFFER_FULL: &str = "write that finds its buffer full";
    /// An entry goes to a log.
    pub const LOG_APPEND: &str = "log entry appended";
    /// A log is cleaned.
    pub const LOG_CLEANED: &str = "log cleaned";
    /// Cleaning copies an entry.
    pub const CLEANING_COPY: &str = "entry copied by cleaning";
    /// Slots are cleared to make room for updates.
    pub const SLOTS_CLEARED: &str = "slots cleared for updates";
}

/// What happens to batches.
pub mod batches {
    /// A batch is written.
    pub const WRITTEN: &str = "batch written";
    /// A batch is refused because it is too large, and changes nothing.
    pub const TOO_LARGE: &str = "batch refused as too large";
    /// A batch is refused by a full store, and changes nothing.
    pub const REFUSED: &str = "batch refused by a full store";
    /// A batch fails, and may have happened or not.
    pub const FAILED: &str = "batch that fails";
    /// The power is cut while a batch is written, or before anything else is.
    pub const CUT: &str = "power cut during a batch";
    /// Such a batch is there afterwards.
    pub const KEPT: &str = "batch cut and kept";
    /// Such a batch is not there afterwards.
    pub const LOST: &str = "batch cut and lost";
    /// Recovery makes the changes of a batch that a power cut had cut short.
    pub const COMPLETED: &str = "batch completed by recovery";
}

/// How often each thing occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach(BTreeMap<(Area, Cow<'static, str>), u64>);

impl Reach {
    /// Adds a thing that should occur.
    pub fn want(&mut self, area: Area, what: impl Into<Cow<'static, str>>) {
        self.0.entry((area, what.into())).or_default();
    }

    /// Counts `n` occurrences of a thing.
    pub fn met(&mut self, area: Area, what: impl Into<Cow<'static, str>>, n: u64) {
        if n > 0 {
            *self.0.entry((area, what.into())).or_default() += n;
        }
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Reach) {
        for ((area, what), n) in &other.0 {
            *self.0.entry((*area, what.clone())).or_default() += n;
        }
    }

    /// All things, by area and name, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Area, &str, u64)> {
        self.0.iter().map(|((area, what), n)| (*area, &**what, *n))
    }

    /// How often a thing occurred. `None` if it neither occurred nor should.
    #[must_use]
    pub fn of(&self, area: Area, what: &str) -> Option<u64> {
        let key: (Area, Cow<'static, str>) = (area, Cow::Owned(what.to_owned()));
        self.0.get(&key).copied()
    }

    /// Removes things that should not be expected to occur. Those that occurred anyway stay.
    pub fn expect_no(&mut self, area: Area, things: &[&'static str]) {
        self.0
            .retain(|(of, what), n| *n > 0 || *of != area || !things.contains(&what.as_ref()));
    }

    /// Counts the steps of a store since it was opened. All steps that its kind of store can do are
    /// expected; `threads` adds those that need several threads.
    pub fn steps(&mut self, stats: &Stats, threads: bool) {
        let mut step = |what: &'static str, n: u64| {
            self.want(Area::Step, what);
            self.met(Area::Step, what, n);
        };
        step("leaf split", stats.splits);
        step(steps::LEAF_MERGE, stats.merges);
        match &stats.pm {
            Some(pm) => {
                step(steps::BUFFER_HIT, pm.buffer_hits);
                step("lookup answered by a leaf", pm.buffer_misses);
                step(steps::BUFFER_OVERWRITE, pm.buffer_overwrites);
                step(steps::BUFFER_FULL, pm.trigger_writes);
                step(steps::LOG_APPEND, pm.log_appends);
                step("leaf flush", pm.flushes.iter().sum());
                if let Some(lodge) = &pm.lodge {
                    step("flush of an inner node", lodge.flushes);
                    step(steps::SLOTS_CLEARED, lodge.clears);
                    step("inner node split", lodge.node_splits.iter().sum());
                    step("log opened", lodge.logs_opened);
                } else {
                    step(steps::LOG_CLEANED, pm.cleanings);
                    step(steps::CLEANING_COPY, pm.cleaning_copies);
                }
            }
            None => {
                step("page evicted", stats.evictions);
                step("page written back", stats.pages_written_back);
                step("page written by a checkpoint", stats.pages_checkpointed);
                step("checkpoint", stats.checkpoints);
                step("cache miss", stats.cache_misses);
                step("log flush", stats.log_flushes);
                step("log wrap", stats.log_wraps);
                if threads && stats.bf.is_none() {
                    step("write that waits for a latch", stats.contended_writes);
                }
            }
        }
        if let Some(bf) = &stats.bf {
            step("insert record hit", bf.hits.insert);
            step("cache record hit", bf.hits.cache);
            step("tombstone record hit", bf.hits.tombstone);
            step("phantom record hit", bf.hits.phantom);
            step("record promoted", bf.promotions);
            step("mirror made", bf.mirrors);
            step("scan of a mirror", bf.mirror_scans);
            step("mini-page copied to the tail", bf.copies_to_tail);
            step("mini-page spared by the head", bf.spared);
            step("record logged again by a checkpoint", bf.relogged);
            step("mini-page evicted", bf.evictions);
            step("ring found full", bf.full_returns);
            step("records merged into a leaf", bf.merged_records);
        }
        if let Some(log) = &stats.mod_log {
            step("page written as a delta", log.delta_writes);
            step("page written whole", log.whole_writes);
        }
        // Not every program has space for long values.
        let long = &stats.overflow;
        self.met(Area::Step, "long value written", long.values_written);
        self.met(Area::Step, "long value freed", long.values_freed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_and_never_met_stays_in_the_table() {
        let mut reach = Reach::default();
        reach.steps(
            &Stats {
                splits: 3,
                ..Stats::default()
            },
            false,
        );
        assert_eq!(reach.of(Area::Step, "leaf split"), Some(3));
        assert_eq!(reach.of(Area::Step, "leaf merge"), Some(0));
        assert_eq!(reach.of(Area::Step, "log opened"), None);
        reach.met(Area::Race, "get and put", 0);
        assert_eq!(reach.of(Area::Race, "get and put"), None);
        let mut less = reach.clone();
        less.expect_no(Area::Step, &[steps::LEAF_MERGE, "leaf split"]);
        assert_eq!(less.of(Area::Step, "leaf merge"), None);
        assert_eq!(less.of(Area::Step, "leaf split"), Some(3));
        let mut both = reach.clone();
        both.met(Area::Race, "get and put", 2);
        both.add(&reach);
        assert_eq!(both.of(Area::Step, "leaf split"), Some(6));
        assert_eq!(both.of(Area::Race, "get and put"), Some(2));
        assert!(both.iter().all(|(area, _, _)| Area::ALL.contains(&area)));
    }
}
