//! The conjuncts on persistent memory: the log, the leaves at rest, and every way in which the
//! words may settle.

use super::super::constants::LeafBuffering;
use super::super::content::slots_for;
use super::super::memory::{ABSENT, FIRST, WORDS, Words, chunk_of, header_of, kv_of, members};
use super::super::memory::{one, slot_of, stamp_of, time_of};
use super::super::room::Set;
use super::super::state::{At, CLEANER, Call, CleaningAt, Job, Phase, RECOVERER, State, WriteAt};
use super::super::word::{Kv, Time};

impl LeafBuffering {
    pub(super) fn all_keys(&self) -> Set {
        (one(self.keys + 1) - 1) & !1
    }

    /// Chunks and places of all entries.
    pub(super) fn all_places(&self) -> impl Iterator<Item = (u8, usize)> + use<> {
        let entries = self.entries;
        (1..=self.chunks as u8).flat_map(move |chunk| (0..entries).map(move |i| (chunk, i)))
    }

    /// The loggers with their numbers: the clients, then cleaning (`Loggers`).
    pub(super) fn loggers(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.clients.len()).chain([CLEANER])
    }

    /// The writers with their numbers: the clients, then recovery (`Writers`).
    pub(super) fn writers(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.clients.len()).chain([RECOVERER])
    }

    /// The times that a word of the log vouches for, of these keys, that a crash may leave
    /// (`TimesOf`).
    pub(super) fn times_of<'a>(
        &'a self,
        s: &'a State,
        keys: Set,
    ) -> impl Iterator<Item = Time> + 'a {
        let of = move |word: &super::super::word::Word| {
            let key = word.of().key;
            key > 0 && keys >> key & 1 == 1
        };
        self.all_places().flat_map(move |(chunk, i)| {
            let words = s.pm[time_of(chunk, i)].all().iter();
            words.filter(move |word| of(word)).map(|word| word.at())
        })
    }

    /// The keys between a leaf's separator and the next one's (`Range`).
    pub(super) fn range(&self, s: &State, leaf: u8) -> Set {
        let all = s.inner.all();
        let Some(i) = all.iter().position(|child| child.leaf == leaf) else {
            return 0;
        };
        let from = |low: u8| !(one(low.into()) - 1);
        let upper = all.get(i + 1).map_or(0, |next| from(next.low));
        self.all_keys() & from(all[i].low) & !upper
    }

    /// Whether each record of a leaf has a key of its own, of these (`HoldsOnce`).
    pub(super) fn holds_once(&self, m: &Words, leaf: u8, within: Set) -> bool {
        let keys = self.keys_in(m, leaf);
        keys & !within == 0 && keys.count_ones() == m[header_of(leaf)].live().count_ones()
    }

    /// Whether the leaves are a list in the order of their keys (`IsList`).
    fn is_list(&self, m: &Words) -> bool {
        let (mut leaf, mut seen, mut lows) = (1, 0, Vec::new());
        while leaf != 0 {
            if usize::from(leaf) > self.leaves || seen >> leaf & 1 == 1 {
                return false;
            }
            seen |= one(leaf.into());
            lows.push((leaf, self.low_of(m, leaf)));
            leaf = Self::next_of(m, leaf);
        }
        let beyond = self.keys as u8 + 1;
        lows.iter().enumerate().all(|(i, (leaf, low))| {
            let upper = lows.get(i + 1).map_or(beyond, |next| next.1);
            let below = (one(upper.into()) - 1) & self.all_keys();
            *low < upper && self.holds_once(m, *leaf, below)
        })
    }

    /// Whether a condition holds for every way in which the words may settle (`Settlings`).
    pub(super) fn all_settlings(&self, s: &State, holds: &dyn Fn(&Words) -> bool) -> bool {
        let dirty: Vec<usize> = (0..WORDS).filter(|w| s.pm[*w].is_unflushed()).collect();
        fn settle(
            s: &State,
            dirty: &[usize],
            m: &mut Words,
            holds: &dyn Fn(&Words) -> bool,
        ) -> bool {
            let Some((word, rest)) = dirty.split_first() else {
                return holds(m);
            };
            let mut versions = s.pm[*word].all().iter();
            versions.all(|version| {
                m[*word] = *version;
                settle(s, rest, m, holds)
            })
        }
        settle(s, &dirty, &mut s.medium(), holds)
    }

    /// Whatever a crash leaves is a list of leaves, in which recovery finds what took effect or, of
    /// a write in progress, what it writes.
    pub(super) fn settled_inv(&self, s: &State) -> bool {
        let mut under_way = [None; super::super::state::CLIENTS];
        for (call, own) in s.call.iter().zip(&mut under_way) {
            if let Call::Write { key, value, at } = *call
                && at == WriteAt::Begun
            {
                *own = Some((key, value));
            }
        }
        self.all_settlings(s, &|m| {
            let is_good = |(key, (found, written))| {
                found == written || under_way.contains(&Some((key, found)))
            };
            self.is_list(m) && {
                let found = self.recovered(m).into_iter().zip(s.written);
                self.keys().zip(found).all(is_good)
            }
        })
    }

    /// The epochs that count.
    pub(super) fn epoch_inv(&self, s: &State) -> bool {
        let all: Vec<_> = s.pm[FIRST]
            .all()
            .iter()
            .map(|word| word.as_number())
            .collect();
        let newest = all[all.len() - 1];
        let two = |step: super::super::room::N| all.len() == 2 && all[1] == all[0] + step;
        match s.phase {
            Phase::Up => {
                let scans = s.cleaning.at == CleaningAt::Scan;
                let known = match s.cleaning.at {
                    CleaningAt::Reclaim => two(1),
                    _ => all.len() == 1,
                };
                known && s.epoch == newest + u8::from(scans) as super::super::room::N
            }
            Phase::Recovery if s.job[RECOVERER].at == At::Done => two(2),
            Phase::Recovery => all.len() == 1,
            _ => all.iter().all(|epoch| *epoch >= all[0]),
        }
    }

    /// No time is later than now.
    pub(super) fn time_inv(&self, s: &State) -> bool {
        let first = s.medium()[FIRST].as_number();
        let up = s.phase == Phase::Up;
        let epoch_is_past = |epoch| epoch <= first + 1 && (!up || epoch <= s.epoch);
        let is_past = |time: Time| {
            epoch_is_past(time.epoch) && (!up || time.epoch < first || time.tick <= s.tick)
        };
        let mut leaves = 1..=self.leaves as u8;
        let mut places = self.all_places();
        let mut chunks = self.chunks();
        leaves.all(|leaf| {
            s.pm[stamp_of(leaf)]
                .all()
                .iter()
                .all(|w| is_past(w.as_time()))
        }) && places.all(|(c, i)| s.pm[time_of(c, i)].all().iter().all(|w| is_past(w.at())))
            && chunks.all(|c| {
                let mut all = s.pm[chunk_of(c)].all().iter();
                all.all(|word| epoch_is_past(word.as_number()))
            })
    }

    /// A time in a chunk is of the chunk's epoch, or of one that does not count.
    pub(super) fn chunk_inv(&self, s: &State) -> bool {
        let first = s.medium()[FIRST].as_number();
        s.phase != Phase::Up
            || self.all_places().all(|(chunk, i)| {
                let own = s.pm[chunk_of(chunk)].newest().as_number();
                let mut all = s.pm[time_of(chunk, i)].all().iter();
                all.all(|word| word.at().epoch < first || word.at().epoch == own)
            })
    }

    /// Each log ends in a chunk of its own, of its epoch, with nothing of this epoch behind its
    /// end. Chunks with copies that are not durable are of the newest epoch, and cleaning's.
    pub(super) fn end_inv(&self, s: &State) -> bool {
        let first = s.medium()[FIRST].as_number();
        let epoch_of = |chunk: u8| s.pm[chunk_of(chunk)].newest().as_number();
        let is_open = |x: usize| s.log[x].chunk != 0 && s.log[x].epoch >= first;
        let copies = s.cleaning.chunks;
        s.phase != Phase::Up
            || members(copies).all(|chunk| epoch_of(chunk as u8) == s.epoch)
                && self.loggers().filter(|x| is_open(*x)).all(|x| {
                    let end = s.log[x];
                    let mut free = usize::from(end.used)..self.entries;
                    let mut others = self.loggers().filter(|y| *y != x && is_open(*y));
                    epoch_of(end.chunk) == end.epoch
                        && (x == CLEANER || copies >> end.chunk & 1 == 0)
                        && others.all(|y| s.log[y].chunk != end.chunk)
                        && free.all(|i| {
                            let mut all = s.pm[time_of(end.chunk, i)].all().iter();
                            all.all(|word| word.at().epoch != end.epoch)
                        })
                })
    }

    /// The clients whose entry is stored and not durable, with their keys and values.
    pub(super) fn logged<'a>(&'a self, s: &'a State) -> impl Iterator<Item = (usize, Kv)> + 'a {
        (0..self.clients.len()).filter_map(|c| match s.call[c] {
            Call::Write { key, value, .. } if s.job[c].at == At::Logged && s.phase == Phase::Up => {
                Some((c, Kv { key, value }))
            }
            _ => None,
        })
    }

    /// The entry of a write that is not durable yet ends its log, and is the newest of its key.
    pub(super) fn logged_inv(&self, s: &State) -> bool {
        self.logged(s).all(|(c, kv)| {
            let (end, job) = (s.log[c], s.job[c]);
            let Some(i) = usize::from(end.used)
                .checked_sub(1)
                .filter(|_| end.chunk != 0)
            else {
                return false;
            };
            let word = s.pm[time_of(end.chunk, i)].newest();
            let own = word.at();
            let elsewhere = self.all_places().filter(|place| *place != (end.chunk, i));
            let mut others = elsewhere.flat_map(|(chunk, i)| s.pm[time_of(chunk, i)].all());
            let mut stamps = s.pm[stamp_of(job.leaf)].all().iter();
            end.epoch == job.epoch
                && own.epoch == job.epoch
                && s.pm[chunk_of(end.chunk)].newest().as_number() == job.epoch
                && job.epoch >= s.medium()[FIRST].as_number()
                && word.of() == kv
                && s.pm[kv_of(end.chunk, i)].newest().as_kv() == kv
                && others.all(|word| word.of().key != kv.key || word.at() < own)
                && stamps.all(|stamp| stamp.as_time() < own)
        })
    }

    /// The words of leaf and new leaf that a writer is changing (`Changing`).
    fn changing(&self, s: &State, v: &Words, job: &Job, allowed: &mut [bool; WORDS]) {
        let leaf = job.leaf;
        if !s.is_indexed(leaf) {
            return;
        }
        let mut slots = |leaf: u8, slots: Set| {
            members(slots).for_each(|slot| allowed[slot_of(leaf, slot)] = true);
        };
        match job.at {
            At::Records if self.fits(s, v, leaf, &job.batch) => {
                let kept = self.kept(s, leaf, &job.batch).keys;
                slots(leaf, slots_for(self.free(v, leaf), kept));
            }
            At::Moved if s.is_indexed(job.from) => {
                let moved = self.records(v, job.from).keys;
                if moved.count_ones() <= self.free(v, leaf).count_ones() {
                    slots(leaf, slots_for(self.free(v, leaf), moved));
                }
            }
            At::New if job.new != 0 => {
                slots(job.new, one(self.slots) - 1);
                allowed[header_of(job.new)] = true;
                allowed[stamp_of(job.new)] = true;
            }
            At::Header | At::Link | At::Merged => allowed[header_of(leaf)] = true,
            _ => {}
        }
    }

    /// All words are durable but those that a writer, cleaning or the end of recovery is changing,
    /// and the stamps.
    pub(super) fn rest_inv(&self, s: &State) -> bool {
        if !matches!(s.phase, Phase::Up | Phase::Recovery) {
            return true;
        }
        let v = s.visible();
        let mut allowed = [false; WORDS];
        for w in self.writers() {
            self.changing(s, &v, &s.job[w], &mut allowed);
        }
        let reclaims = s.cleaning.at == CleaningAt::Reclaim;
        allowed[FIRST] = reclaims || s.job[RECOVERER].at == At::Done;
        if s.phase == Phase::Up {
            (1..=self.leaves as u8).for_each(|leaf| allowed[stamp_of(leaf)] = true);
        }
        let mut entry = |chunk: u8, i: usize| {
            let words = [chunk_of(chunk), kv_of(chunk, i), time_of(chunk, i)];
            words.into_iter().for_each(|word| allowed[word] = true);
        };
        for (c, _) in self.logged(s) {
            let end = s.log[c];
            if end.chunk != 0 && end.used != 0 {
                entry(end.chunk, usize::from(end.used) - 1);
            }
        }
        for chunk in members(s.cleaning.chunks) {
            (0..self.entries).for_each(|i| entry(chunk as u8, i));
        }
        (0..WORDS).all(|word| allowed[word] || !s.pm[word].is_unflushed())
    }

    /// The inner nodes are what a restart would build.
    pub(super) fn row_inv(&self, s: &State) -> bool {
        if !matches!(s.phase, Phase::Up | Phase::Recovery) {
            return true;
        }
        let (m, all) = (s.medium(), s.inner.all());
        let begins = all
            .first()
            .is_some_and(|child| child.leaf == 1 && child.low == 0);
        begins
            && all.is_sorted_by(|a, b| a.low < b.low)
            && s.inner.leaves().count_ones() as usize == all.len()
            && all.iter().enumerate().all(|(i, child)| {
                let next = all.get(i + 1).map_or(0, |next| next.leaf);
                self.low_of(&m, child.leaf) == child.low && Self::next_of(&m, child.leaf) == next
            })
    }

    /// No entry that counts is newer than the stamp of its leaf, but those of keys that wait in the
    /// buffer node, and of a write that is about to.
    pub(super) fn flushed_inv(&self, s: &State, l: usize) -> bool {
        let leaf = l as u8 + 1;
        let logged = self
            .logged(s)
            .fold(0, |keys, (_, kv)| keys | one(kv.key.into()));
        let waiting = s.buffer(leaf).waiting().iter();
        let known = waiting.fold(logged, |keys, slot| keys | one(slot.key.into()));
        let first = s.medium()[FIRST].as_number();
        let stamp = s.pm[stamp_of(leaf)].newest().as_time();
        let keys = self.range(s, leaf) & !known;
        s.phase != Phase::Up
            || self
                .times_of(s, keys)
                .all(|time| time.epoch < first || time <= stamp)
    }

    /// What a leaf has of a key, or what its batch will make of it.
    pub(super) fn is_written(&self, s: &State, m: &Words, leaf: u8, keys: Set) -> bool {
        members(keys & self.all_keys()).all(|key| {
            let found = self.in_leaf(m, leaf, key as u8);
            found == s.written.get(key - 1).copied().unwrap_or(ABSENT)
        })
    }
}

impl State {
    /// Whether the inner nodes have a leaf.
    pub(super) fn is_indexed(&self, leaf: u8) -> bool {
        leaf != 0 && self.inner.leaves() >> leaf & 1 == 1
    }
}
