//! The conjuncts on clients, buffer nodes, cleaning, and what writers do under their latches.

use super::super::constants::LeafBuffering;
use super::super::content::{placed, unflushed};
use super::super::memory::{Entry, header_of, members, one, slot_of, stamp_of};
use super::super::room::{N, Set};
use super::super::state::{At, Batch, Buffer, Call, Cleaning, CleaningAt, Job, LogEnd, Phase};
use super::super::state::{RECOVERER, State, WriteAt};
use super::super::word::Word;

/// The steps of a writer that has a batch.
const BATCHES: [At; 5] = [At::Batch, At::Records, At::Header, At::New, At::Link];

impl LeafBuffering {
    /// Memory is empty after the end of a life, and in recovery but for the inner nodes and what
    /// recovery writes.
    pub(super) fn phase_inv(&self, s: &State) -> bool {
        let clients = 0..self.clients.len();
        let quiet = || {
            s.buffer.iter().all(|buffer| *buffer == Buffer::default())
                && clients.clone().all(|c| s.job[c] == Job::default())
                && s.log.iter().all(|log| *log == LogEnd::default())
                && (s.epoch, s.tick) == (0, 0)
                && s.cleaning == Cleaning::default()
        };
        let idle = || s.call.iter().all(|call| *call == Call::Idle);
        let recovers = s.job[RECOVERER] != Job::default();
        match s.phase {
            Phase::Up => !recovers,
            Phase::Failing | Phase::Killed => quiet() && !recovers && s.inner.all().is_empty(),
            Phase::Recovery => quiet() && idle(),
        }
    }

    /// The write of a client, and whether it has not taken effect.
    fn write_of(s: &State, c: usize) -> Option<(u8, N, WriteAt)> {
        match *s.call.get(c)? {
            Call::Write { key, value, at } => Some((key, value, at)),
            _ => None,
        }
    }

    /// The writers at these steps, of which all leaves are in the inner nodes (`At`).
    fn at<'a>(&'a self, s: &'a State, steps: &'a [At]) -> impl Iterator<Item = usize> + 'a {
        let known = |leaf: u8| leaf == 0 || s.is_indexed(leaf);
        let new = |job: &Job| !matches!(job.at, At::New | At::Link) || job.new != 0;
        self.writers().filter(move |w| {
            let job = &s.job[*w];
            let here = s.is_indexed(job.leaf) && known(job.from) && new(job);
            steps.contains(&job.at) && here
        })
    }

    /// Who holds which latches, and how far the call is.
    pub(super) fn job_inv(&self, s: &State) -> bool {
        let recovery = &s.job[RECOVERER];
        let splits = |job: &Job| matches!(job.at, At::New | At::Link);
        let owns = |job: &Job| {
            let fresh = job.new != 0 && !s.is_indexed(job.new);
            s.is_indexed(job.leaf) && if splits(job) { fresh } else { job.new == 0 }
        };
        let own_batch = BATCHES.contains(&recovery.at) && recovery.from == 0 && owns(recovery);
        if !(matches!(recovery.at, At::None | At::Done) || own_batch) {
            return false;
        }
        let leaves = |job: &Job| [job.leaf, job.from, job.new].map(|l| one(l.into()) & !1);
        let set = |job: &Job| leaves(job).into_iter().fold(0, |all: Set, leaf| all | leaf);
        s.phase != Phase::Up
            || (0..self.clients.len()).all(|c| {
                let job = &s.job[c];
                let write = Self::write_of(s, c).filter(|write| write.2 != WriteAt::Called);
                let Some((key, _, at)) = write else {
                    return job.at == At::None && set(job) == 0;
                };
                if !owns(job) {
                    return false;
                }
                let mut others = (0..self.clients.len()).filter(|other| *other != c);
                let begun = at == WriteAt::Begun;
                let told = match job.at {
                    At::Log | At::Logged => begun && !self.is_trigger(s.buffer(job.leaf), key),
                    _ if BATCHES.contains(&job.at) && job.from == 0 => true,
                    _ => !begun,
                };
                let merges = match job.at {
                    At::Move | At::Moved | At::Merged => job.from != 0,
                    At::Batch | At::Records | At::Header => true,
                    _ => job.from == 0,
                };
                let beside = || {
                    let all = s.inner.all();
                    let at = all.iter().position(|child| child.leaf == job.from);
                    at.is_some_and(|i| i > 0 && all[i - 1].leaf == job.leaf)
                };
                job.at != At::None
                    && others.all(|other| set(&s.job[other]) & set(job) == 0)
                    && told
                    && merges
                    && (job.from == 0 || beside())
                    && (!begun || s.inner.route(key) == job.leaf)
            })
    }

    /// A writer read the epoch under its latch. Nothing of a later one concerns its leaf, which
    /// cleaning has still to scan if it began since.
    pub(super) fn latched_inv(&self, s: &State) -> bool {
        let steps = [&BATCHES[..], &[At::Log, At::Logged, At::Move]].concat();
        s.phase != Phase::Up
            || self.at(s, &steps).all(|w| {
                let job = &s.job[w];
                let scans =
                    s.cleaning.at == CleaningAt::Scan && s.cleaning.todo >> job.leaf & 1 == 1;
                let keys = self.range(s, job.leaf) | self.range(s, job.from);
                let mut stamps = s.pm[stamp_of(job.leaf)].all().iter();
                (job.epoch == s.epoch || job.epoch + 1 == s.epoch && scans)
                    && self.times_of(s, keys).all(|time| time.epoch <= job.epoch)
                    && stamps.all(|stamp| stamp.as_time().epoch <= job.epoch)
            })
    }

    /// What a batch has: all that waits in the buffer node of its leaf and, if its write has not
    /// taken effect, what that writes. In recovery, what is missing.
    pub(super) fn batch_inv(&self, s: &State) -> bool {
        let v = s.visible();
        self.at(s, &BATCHES).all(|w| {
            let job = &s.job[w];
            let limit = match job.at {
                At::New | At::Link => one(self.low_of(&v, job.new).into()) - 1,
                _ => Set::MAX,
            };
            let here = self.range(s, job.leaf) & limit;
            if w == RECOVERER {
                let written = |key: usize| job.batch.value(key) == s.written[key - 1];
                return job.batch.keys & !here == 0 && members(job.batch.keys).all(written);
            }
            let waiting = unflushed(s.buffer(job.leaf));
            let mut wanted = waiting.only(here);
            let Some((key, value, at)) = Self::write_of(s, w) else {
                return false;
            };
            if job.from != 0 {
                return job.batch == waiting && waiting.keys & !here == 0;
            }
            if at == WriteAt::Begun && here >> key & 1 == 1 {
                wanted.put(key, value);
            }
            let full = usize::from(s.buffer(job.leaf).count) == self.batch;
            full && waiting.keys >> key & 1 == 0 && job.batch == wanted
        })
    }

    /// The records of a batch are in free slots.
    pub(super) fn records_inv(&self, s: &State) -> bool {
        let v = s.visible();
        self.at(s, &[At::Records]).all(|w| {
            let job = &s.job[w];
            let kept = self.kept(s, job.leaf, &job.batch);
            let mut records = placed(&kept, self.free(&v, job.leaf));
            self.fits(s, &v, job.leaf, &job.batch)
                && records.all(|(slot, kv)| v[slot_of(job.leaf, slot)] == Word::kv(kv))
        })
    }

    /// With the new bitmap, a leaf has what its batch says, and what it had of all other keys.
    pub(super) fn header_inv(&self, s: &State) -> bool {
        let (v, m) = (s.visible(), s.medium());
        self.at(s, &[At::Header]).all(|w| {
            let Job { leaf, batch, .. } = s.job[w];
            let child = s.inner.all()[s.inner.position(leaf)];
            let is_there = |key: u8| {
                let found = self.in_leaf(&v, leaf, key);
                match batch.keys >> key & 1 {
                    1 => found == batch.value(key.into()),
                    _ => found == self.in_leaf(&m, leaf, key),
                }
            };
            self.holds_once(&v, leaf, self.range(s, leaf))
                && self.low_of(&v, leaf) == child.low
                && Self::next_of(&v, leaf) == Self::next_of(&m, leaf)
                && self.keys().all(is_there)
        })
    }

    /// A new leaf has the upper keys of the old one, as they are to be, and the leaf after it for
    /// the next. Its stamp is as new as their log entries; in recovery it is that of the old one.
    pub(super) fn new_inv(&self, s: &State) -> bool {
        let (v, m) = (s.visible(), s.medium());
        self.at(s, &[At::New, At::Link]).all(|w| {
            let Job { leaf, new, .. } = s.job[w];
            let low = self.low_of(&v, new);
            let range = self.range(s, leaf);
            let upper = range & !(one(low.into()) - 1);
            let child = s.inner.all()[s.inner.position(leaf)];
            let stamp = v[stamp_of(new)].as_time();
            let begun = Self::write_of(s, w).filter(|write| write.2 == WriteAt::Begun);
            let is_there = |key: usize| {
                let found = self.in_leaf(&v, new, key as u8);
                let written = s.written[key - 1];
                match begun {
                    _ if w == RECOVERER => {
                        found == written || found == self.in_leaf(&m, leaf, key as u8)
                    }
                    Some((own, value, _)) if usize::from(own) == key => found == value,
                    _ => found == written,
                }
            };
            let stamped = match w {
                RECOVERER => stamp == v[stamp_of(leaf)].as_time(),
                _ => self.times_of(s, upper).all(|time| time <= stamp),
            };
            range >> low & 1 == 1
                && low > child.low
                && self.holds_once(&v, new, upper)
                && Self::next_of(&v, new) == Self::next_of(&m, leaf)
                && stamped
                && members(upper).all(is_there)
        })
    }

    /// The new leaf is durable. The link and the bitmap of the old leaf change in one word.
    pub(super) fn link_inv(&self, s: &State) -> bool {
        let (v, m) = (s.visible(), s.medium());
        self.at(s, &[At::Link]).all(|w| {
            let Job { leaf, new, .. } = s.job[w];
            let low = self.low_of(&v, new);
            let stay = self.records_in(&m, leaf).filter(|(_, kv)| kv.key < low);
            let stay = stay.fold(0, |set, (slot, _)| set | one(slot));
            let slots = (0..self.slots).map(|slot| slot_of(new, slot));
            let mut words = slots.chain([header_of(new), stamp_of(new)]);
            words.all(|word| !s.pm[word].is_unflushed())
                && v[header_of(leaf)] == Word::header(stay, new)
        })
    }

    /// A leaf that is merged has nothing buffered, and the left one has room for its records. After
    /// they are moved, so has its stamp the time.
    pub(super) fn merge_inv(&self, s: &State) -> bool {
        let v = s.visible();
        let empty = |leaf: u8| s.buffer(leaf).count == 0;
        let merging = [
            At::Batch,
            At::Records,
            At::Header,
            At::Move,
            At::Moved,
            At::Merged,
        ];
        self.at(s, &[At::Flushed]).all(|w| empty(s.job[w].leaf))
            && self
                .at(s, &merging)
                .filter(|w| s.job[*w].from != 0)
                .all(|w| {
                    let job = &s.job[w];
                    let records = self.records(&v, job.from);
                    let kept = match job.at {
                        At::Batch | At::Records => self.kept(s, job.leaf, &job.batch).keys,
                        _ => 0,
                    };
                    let needed = records.keys.count_ones() + kept.count_ones();
                    let free = self.free(&v, job.leaf);
                    let moved = |records: &Batch| {
                        let mut records = placed(records, free);
                        records.all(|(slot, kv)| v[slot_of(job.leaf, slot)] == Word::kv(kv))
                    };
                    empty(job.from)
                        && (job.at == At::Merged || needed <= free.count_ones())
                        && (BATCHES.contains(&job.at) || empty(job.leaf))
                        && (job.at != At::Moved || moved(&records))
                })
    }

    /// The stamp of a left leaf is as new as the log entries of the records that are moved there.
    pub(super) fn moved_inv(&self, s: &State) -> bool {
        self.at(s, &[At::Moved, At::Merged]).all(|w| {
            let job = &s.job[w];
            let keys = self.range(s, job.leaf) | self.range(s, job.from);
            let stamp = s.visible()[stamp_of(job.leaf)].as_time();
            self.times_of(s, keys).all(|time| time <= stamp)
        })
    }

    /// With the new bitmap and link, the left leaf has all records of both.
    pub(super) fn merged_inv(&self, s: &State) -> bool {
        let (v, m) = (s.visible(), s.medium());
        self.at(s, &[At::Merged]).all(|w| {
            let Job { leaf, from, .. } = s.job[w];
            let keys = self.range(s, leaf) | self.range(s, from);
            let child = s.inner.all()[s.inner.position(leaf)];
            !s.pm[stamp_of(leaf)].is_unflushed()
                && self.holds_once(&v, leaf, keys)
                && self.low_of(&v, leaf) == child.low
                && Self::next_of(&v, leaf) == Self::next_of(&m, from)
                && self.is_written(s, &v, leaf, keys)
        })
    }

    /// What waits in a buffer node is in a log, beyond all stamps that a crash may leave, in the
    /// epoch of its bit. A write in progress may have logged its key again, which is not what
    /// waits.
    pub(super) fn slot_inv(&self, s: &State, l: usize) -> bool {
        let (v, m) = (s.visible(), s.medium());
        let again = |(chunk, i): &Entry| {
            let ends = |c: usize| s.log[c].chunk == *chunk && usize::from(s.log[c].used) == i + 1;
            self.logged(s).any(|(c, _)| ends(c))
        };
        let is_logged = |leaf: u8, slot: &super::super::state::Slot| {
            let mut stamps = s.pm[stamp_of(leaf)].all().iter();
            let durably = self.last_logged(&m, &s.inner, slot.key);
            let after = durably.is_some_and(|time| stamps.all(|stamp| stamp.as_time() < time));
            let older = slot.bit != s.epoch % 2;
            let epoch = s.epoch.saturating_sub(N::from(older));
            let last = self.last_logged_but(&v, &s.inner, slot.key, again);
            let last = last.map(|time| time.epoch);
            let mut splitting = self.at(s, &BATCHES);
            let place = if s.inner.route(slot.key) == leaf {
                slot.value == s.written[usize::from(slot.key) - 1] && last == Some(epoch)
            } else {
                last >= Some(epoch)
                    && splitting.any(|w| s.job[w].leaf == leaf && s.job[w].from == 0)
            };
            after && place
        };
        let leaf = l as u8 + 1;
        let waiting = s.buffer(leaf).waiting();
        let mut slots = waiting.iter().enumerate();
        s.phase != Phase::Up
            || !s.is_indexed(leaf)
            || slots.all(|(i, slot)| {
                let known = (1..=self.keys).contains(&slot.key.into());
                let again = waiting[..i].iter().any(|other| other.key == slot.key);
                known && !again && is_logged(leaf, slot)
            })
    }

    /// Cleaning has still to scan each buffer node with a slot of the epoch before.
    pub(super) fn todo_inv(&self, s: &State) -> bool {
        let Cleaning { at, todo, chunks } = s.cleaning;
        let scans = at == CleaningAt::Scan;
        let mut leaves = s.inner.all().iter().map(|child| child.leaf);
        s.phase != Phase::Up
            || (scans || (todo, chunks) == (0, 0))
                && todo & !s.inner.leaves() == 0
                && leaves.all(|leaf| {
                    let mut waiting = s.buffer(leaf).waiting().iter();
                    todo >> leaf & 1 == 1 || waiting.all(|slot| slot.bit == s.epoch % 2)
                })
    }

    /// What a buffer node has of a key beside what waits is what was written.
    pub(super) fn cache_inv(&self, s: &State, l: usize) -> bool {
        let leaf = l as u8 + 1;
        let merging = s.job.iter().any(|job| job.leaf == leaf && job.from != 0);
        let buffer = s.buffer(leaf);
        let (waiting, cached) = buffer.slots.split_at(buffer.count.into());
        let mut cached = cached.iter().filter(|slot| slot.key != 0);
        s.phase != Phase::Up
            || merging
            || !s.is_indexed(leaf)
            || cached.all(|slot| {
                s.inner.route(slot.key) != leaf
                    || waiting.iter().any(|other| other.key == slot.key)
                    || slot.value == s.written[usize::from(slot.key) - 1]
            })
    }
}
