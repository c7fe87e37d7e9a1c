//! Describes the part of a state that a step depends on. An engine's store, which is larger than
//! any model's, has these situations in common with a model.

use std::collections::BTreeSet;

use super::constants::LeafBuffering;
use super::content::unflushed;
use super::memory::{ABSENT, CHUNK_SIZE, FIRST, LEAF_SIZE, Words, chunk_of};
use super::state::{At, Batch, Call, CleaningAt, Job, N, Phase, RECOVERER, State, WriteAt};
use super::steps::old_slots;
use super::{Action, LEAVES};

impl LeafBuffering {
    /// Describes what a step concerns: who takes it, the state of the buffer, the leaf and the
    /// batch, whether the log is being cleaned, and the kind of the word. An end concerns words of
    /// several kinds.
    #[must_use]
    pub fn situations(&self, s: &State, action: Action) -> Vec<String> {
        match action {
            Action::Crash | Action::Kill => self.endings(s),
            _ => vec![self.situation(s, action)],
        }
    }

    fn situation(&self, s: &State, action: Action) -> String {
        let m = s.visible();
        match action {
            Action::CallGet(..) | Action::AnswerGet(_) => String::new(),
            Action::CallWrite(..) => cleaning(s).to_owned(),
            Action::ReadKey(c) => self.reading(s, &m, c.into()),
            Action::Latch(c) | Action::AppendLog(c) | Action::FenceLog(c) => {
                self.writing(s, action, c.into())
            }
            Action::Finish(c) => match s.job[usize::from(c)].at {
                At::Flushed => "flushed".to_owned(),
                _ => "logged or merged".to_owned(),
            },
            Action::StoreRecords(w) | Action::StoreHeader(w) | Action::FenceHeader(w) => {
                self.batch_situation(s, &m, w.into())
            }
            Action::StoreNewLeaf(w) => self.splitting(s, &m, w.into()),
            Action::StoreLink(w) | Action::FenceLink(w) => {
                let job = &s.job[usize::from(w)];
                let rest = if job.batch.keys == 0 {
                    "no rest"
                } else {
                    "a rest"
                };
                format!("{}, {rest} of the batch", who(job, w.into()))
            }
            Action::LatchLeft(c) => {
                let left = self.left_of(s, s.job[usize::from(c)].leaf);
                let waiting = s.buffer(left).count > 0;
                let waiting = if waiting { "something" } else { "nothing" };
                format!("the left buffer has {waiting} to flush")
            }
            Action::MoveRecords(c) | Action::StoreMerged(c) | Action::FenceMerged(c) => {
                let from = s.job[usize::from(c)].from;
                let some = self.records(&m, from).keys != 0;
                let last = s.inner.all().last().is_some_and(|child| child.leaf == from);
                let (some, last) = (
                    if some { "some records" } else { "no records" },
                    if last { ", the last leaf" } else { "" },
                );
                format!("{some}{last}")
            }
            Action::FlipEpoch => {
                let waiting = s.buffer.iter().any(|buffer| buffer.count > 0);
                (if waiting {
                    "something to copy"
                } else {
                    "nothing to copy"
                })
                .to_owned()
            }
            Action::ScanBuffer(leaf) => match &old_slots(s, leaf)[..] {
                [] => "nothing to copy".to_owned(),
                [first, ..] => op(s.buffer(leaf).slots[*first].value).to_owned(),
            },
            Action::Reclaim => {
                let copies = s.cleaning.chunks != 0;
                (if copies { "copies" } else { "no copies" }).to_owned()
            }
            Action::FreeLogs | Action::DropLogs | Action::Open => String::new(),
            Action::Crash | Action::Kill => String::new(),
            Action::Settle(version) => {
                let word = s.first_dirty().unwrap_or(FIRST);
                let newest = usize::from(version) + 1 == s.pm[word].all().len();
                let kept = if newest { "the newest" } else { "an older one" };
                format!("{}, {kept}", self.kind(word))
            }
            Action::WriteBack => self.kind(s.first_dirty().unwrap_or(FIRST)).to_owned(),
            Action::Restart => self.restarting(s, &m),
            Action::Replay => {
                let key = self.missing(s, &m).unwrap_or(1);
                op(self.recovered_key(&m, &s.inner, key)).to_owned()
            }
        }
    }

    fn reading(&self, s: &State, m: &Words, c: usize) -> String {
        let Call::Get { key, .. } = s.call[c] else {
            return String::new();
        };
        let leaf = s.inner.route(key);
        let slot = s.buffer(leaf).slots.iter().position(|slot| slot.key == key);
        let place = match slot {
            Some(at) if at < usize::from(s.buffer(leaf).count) => "unflushed",
            Some(_) => "cached",
            None if self.keys_in(m, leaf) >> key & 1 == 1 => "in the leaf",
            None => "nowhere",
        };
        match self.lookup(s, m, key) {
            ABSENT if place != "nowhere" => format!("a tombstone {place}"),
            _ => place.to_owned(),
        }
    }

    fn writing(&self, s: &State, action: Action, c: usize) -> String {
        let Call::Write { key, value, .. } = s.call[c] else {
            return String::new();
        };
        let buffer = s.buffer(s.inner.route(key));
        let again = unflushed(buffer).keys >> key & 1 == 1;
        let place = match action {
            Action::Latch(_) if self.is_trigger(buffer, key) => "a full buffer",
            _ if again => "a key that is unflushed",
            _ => "a buffer with room",
        };
        let end = s.log[c];
        let (first, of_new) = match action {
            Action::AppendLog(_) => {
                let fresh = end.epoch != s.job[c].epoch || usize::from(end.used) == self.entries;
                (fresh || end.used == 0, true)
            }
            Action::FenceLog(_) => (end.used == 1, true),
            _ => (false, false),
        };
        let first = match (of_new, first) {
            (true, true) => ", the first of a chunk",
            (true, false) => ", another of a chunk",
            _ => "",
        };
        format!("{} to {place}{first}{}", op(value), cleaning(s))
    }

    fn batch_situation(&self, s: &State, m: &Words, w: usize) -> String {
        let job = &s.job[w];
        let Job { leaf, batch, .. } = *job;
        let change = match (batch.has_tombstone(), has_put(&batch)) {
            (true, true) => "puts and deletes",
            (true, false) => "deletes",
            (false, true) => "puts",
            (false, false) => "nothing more",
        };
        let replaces = self.keys_in(m, leaf) & batch.keys != 0;
        let replaces = if replaces {
            " of keys in the leaf"
        } else {
            " of new keys"
        };
        let replaces = if batch.keys == 0 { "" } else { replaces };
        format!("{}: {change}{replaces}{}", who(job, w), which(leaf))
    }

    fn splitting(&self, s: &State, m: &Words, w: usize) -> String {
        let job = &s.job[w];
        let (_, rest) = self.split(m, job.leaf, &job.batch);
        let part = match (rest.keys, job.batch.keys & !rest.keys) {
            (0, _) => "all to the new leaf",
            (_, 0) => "all to the old leaf",
            _ => "to both leaves",
        };
        format!("{}, {part}{}", who(job, w), which(job.leaf))
    }

    /// What an end finds: the kinds of words in doubt, each alone, since each survives or not by
    /// itself. The rest of the state is forgotten.
    fn endings(&self, s: &State) -> Vec<String> {
        let phase: &str = s.phase.into();
        let begun = |call: &Call| {
            let at = WriteAt::Begun;
            matches!(call, Call::Write { at: now, .. } if *now == at)
        };
        let begun = if s.call.iter().any(begun) {
            ", a write has begun"
        } else {
            ""
        };
        let dirty = (0..s.pm.len()).filter(|word| s.pm[*word].is_unflushed());
        let kinds: BTreeSet<&str> = dirty.map(|word| self.kind(word)).collect();
        let of = |kind: &str| format!("{phase}{begun}: {kind} in doubt");
        if kinds.is_empty() {
            return vec![of("nothing")];
        }
        kinds.into_iter().map(of).collect()
    }

    fn restarting(&self, s: &State, m: &Words) -> String {
        let inner = self.list(m);
        let replays = self.keys().any(|key| {
            self.recovered_key(m, &inner, key) != self.in_leaf(m, inner.route(key), key)
        });
        let replays = if replays { "something" } else { "nothing" };
        let end = match s.phase {
            Phase::Killed => "the process",
            _ => "the power",
        };
        let leaves = if inner.all().len() > 1 {
            "leaves"
        } else {
            "one leaf"
        };
        format!("{end} ended, {leaves}, {replays} to replay")
    }

    /// The kind of a word.
    fn kind(&self, word: usize) -> &'static str {
        if word == FIRST {
            return "the first epoch";
        }
        let leaves = 1 + LEAVES * LEAF_SIZE;
        if word < leaves {
            return match (word - 1) % LEAF_SIZE {
                0 => "a header",
                1 => "a timestamp",
                _ => "a record",
            };
        }
        match (word - chunk_of(1)) % CHUNK_SIZE {
            0 => "a chunk's epoch",
            n if n % 2 == 1 => "an entry's record",
            _ => "an entry's time",
        }
    }
}

fn op(value: N) -> &'static str {
    if value == ABSENT { "a delete" } else { "a put" }
}

fn cleaning(s: &State) -> &'static str {
    match s.cleaning.at {
        CleaningAt::Idle => "",
        CleaningAt::Scan => ", while buffers are scanned",
        CleaningAt::Reclaim => ", while logs are reclaimed",
    }
}

fn has_put(batch: &Batch) -> bool {
    let keys = super::memory::members(batch.keys);
    keys.into_iter().any(|key| batch.value(key) != ABSENT)
}

fn who(job: &Job, w: usize) -> &'static str {
    match (w == RECOVERER, job.from) {
        (true, _) => "recovery",
        (false, 0) => "a write",
        (false, _) => "a merge",
    }
}

fn which(leaf: u8) -> &'static str {
    if leaf == 1 {
        ", the first leaf"
    } else {
        ", another leaf"
    }
}
