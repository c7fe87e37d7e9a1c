//! The conjuncts.
//!
//! What was logged before the first record that the log still has is known only by its effect, the
//! map `base`. So [`History`] has the records from there on.

use super::super::WalRecovery;
use super::super::room::N;
use super::super::state::{At, Call, Checkpoint, Image, Lost, Phase, Record, State, Superblock};
use super::super::state::{Block, Medium, Verdict};

/// The records that the log still has, of which the first has LSN `from` + 1 (`History`).
pub(super) struct History {
    pub(super) from: N,
    pub(super) records: Vec<Record>,
}

impl History {
    pub(super) fn end(&self) -> N {
        self.from + self.records.len() as N
    }

    /// The record with this LSN, if the log has it.
    pub(super) fn at(&self, n: N) -> Option<Record> {
        let i = n.checked_sub(self.from + 1)?;
        self.records.get(usize::from(i)).copied()
    }

    pub(super) fn no_change(&self, k: usize, from: N, to: N) -> bool {
        let mut all = (self.from + 1..).zip(&self.records);
        !all.any(|(n, record)| from < n && n <= to && record.key() == k)
    }

    pub(super) fn complete(&self, k: usize, image: Image, n: N) -> bool {
        self.no_change(k, image.lsn, n)
    }

    /// The value of the last record of a key, up to this LSN.
    pub(super) fn last(&self, k: usize, to: N) -> Option<N> {
        let all = (self.from + 1..=to).zip(&self.records);
        let of_key = all.filter(|(_, record)| record.key() == k);
        of_key.fold(None, |_, (_, record)| Some(record.value()))
    }

    /// An image has the value of the record that it names, if the log still has that record.
    pub(super) fn valid(&self, k: usize, image: Image) -> bool {
        let named = self.at(image.lsn);
        let right = |record: Record| record == Record::new(k as u8, image.value);
        image.lsn <= self.end() && named.is_none_or(right)
    }
}

impl WalRecovery {
    /// The records that the log still has; in recovery, those that are redone.
    pub(super) fn history(&self, s: &State) -> History {
        if s.it.phase == Phase::Up {
            let (from, records) = (s.it.oldest, self.live_log(s).all().to_vec());
            return History { from, records };
        }
        let superblock = s.super_dev.all()[0];
        let medium = Medium {
            superblock,
            ..s.newest()
        };
        let records = self.log_found(&medium).all().to_vec();
        let from = superblock.redo;
        History { from, records }
    }

    /// Whether a page or one of its images on the device fails the test.
    fn images(&self, s: &State, test: impl Fn(usize, Image) -> bool) -> bool {
        let each = |k: usize| s.page_dev[k].all().iter().all(|image| test(k, *image));
        (0..self.keys.len()).all(each)
    }

    fn pages(&self, s: &State, test: impl Fn(usize, Image) -> bool) -> bool {
        (0..self.keys.len()).all(|k| test(k, s.page[k]))
    }

    pub(super) fn verdict_inv(&self, s: &State) -> bool {
        s.it.verdict == Verdict::Fine
    }

    pub(super) fn lost_inv(&self, s: &State) -> bool {
        s.it.poisoned || s.it.lost == Lost::default()
    }

    pub(super) fn images_inv(&self, s: &State) -> bool {
        let history = self.history(s);
        s.it.phase != Phase::Up || self.images(s, |k, image| history.valid(k, image))
    }

    /// The buffer has what the device has of the same block.
    pub(super) fn buffer_inv(&self, s: &State) -> bool {
        if s.it.phase != Phase::Up {
            return true;
        }
        let history = self.history(s);
        let start = self.buffer_start(s);
        let same = |(n, record): (N, &Record)| history.at(n).is_none_or(|known| known == *record);
        history.end() == self.end(s)
            && s.it.flushing <= self.end(s)
            && (start + 1..).zip(s.buffer()).all(same)
    }

    /// `base` is the map up to `durable`, or to the end of what is redone: what the log says, or an
    /// image that has all changes.
    pub(super) fn base_inv(&self, s: &State) -> bool {
        if s.it.phase.is_down() {
            return true;
        }
        let history = self.history(s);
        let durable = match s.it.phase {
            Phase::Up => s.it.durable,
            _ => history.end(),
        };
        let old = |k: usize, image: Image| {
            let has_all = image.lsn <= durable && history.complete(k, image, durable);
            !has_all || image.value == s.base[k]
        };
        let logged = |k: usize| {
            history
                .last(k, durable)
                .is_none_or(|value| value == s.base[k])
        };
        (0..self.keys.len()).all(logged) && self.images(s, old) && self.pages(s, old)
    }

    pub(super) fn dirtied_inv(&self, s: &State) -> bool {
        if s.it.phase.is_down() {
            return true;
        }
        let history = self.history(s);
        let end = if s.it.phase == Phase::Up {
            self.end(s)
        } else {
            s.it.durable
        };
        (0..self.keys.len()).all(|k| {
            let dirtied = s.dirtied[k];
            let newest = s.page_dev[k].newest();
            dirtied <= end && (dirtied == 0 || history.complete(k, newest, dirtied - 1))
        })
    }

    pub(super) fn room_inv(&self, s: &State) -> bool {
        let limit = (self.block_of(s.it.oldest) + self.ring_blocks) * self.per_block;
        s.it.phase != Phase::Up || self.end(s) <= limit
    }

    pub(super) fn truth_inv(&self, s: &State) -> bool {
        if s.it.phase != Phase::Up {
            return true;
        }
        let history = self.history(s);
        let is_true = |block: &Block| {
            let start = block.index * self.per_block;
            let len = block.records().len() as N;
            let same = |(n, record): (N, &Record)| history.at(n).is_none_or(|r| r == *record);
            block.epoch <= s.it.epoch
                && (block.epoch != s.it.epoch
                    || start + len <= self.end(s) && (start + 1..).zip(block.records()).all(same))
        };
        s.log_dev
            .iter()
            .all(|place| place.all().iter().all(is_true))
    }

    pub(super) fn flight_inv(&self, s: &State) -> bool {
        let (durable, flushing) = (s.it.durable, s.it.flushing);
        if s.it.phase != Phase::Up || durable >= flushing {
            return true;
        }
        (self.block_of(durable)..=self.block_of(flushing - 1)).all(|index| {
            let block = s.log_dev[self.place(index)].newest();
            let len = block.records().len() as N;
            let reaches = len == self.per_block || index * self.per_block + len >= flushing;
            block.epoch == s.it.epoch && block.index == index && reaches
        })
    }

    pub(super) fn super_inv(&self, s: &State) -> bool {
        let (oldest, durable) = (s.it.oldest, s.it.durable);
        let right = |superblock: &Superblock| {
            let redo = superblock.redo;
            superblock.epoch == s.it.epoch && oldest <= redo && redo <= durable
        };
        s.it.phase != Phase::Up || oldest <= durable && s.super_dev.all().iter().all(right)
    }

    pub(super) fn call_inv(&self, s: &State) -> bool {
        let history = self.history(s);
        let own = |call: &Call| match *call {
            Call::Write { at: At::Called, .. } => true,
            Call::Write {
                key, value, lsn, ..
            } => {
                let known = history.at(lsn);
                let same = known.is_none_or(|record| record == Record::new(key, value));
                1 <= lsn && lsn <= self.end(s) && same
            }
            _ => true,
        };
        s.it.phase != Phase::Up || s.call.iter().all(own)
    }

    pub(super) fn latch_inv(&self, s: &State) -> bool {
        if s.it.phase != Phase::Up {
            return true;
        }
        let history = self.history(s);
        let logged = |call: &Call| match *call {
            Call::Write {
                key,
                lsn,
                at: At::Logged,
                ..
            } => Some((usize::from(key), lsn)),
            _ => None,
        };
        let all: Vec<(usize, N)> = s.call.iter().filter_map(logged).collect();
        let alone = all
            .iter()
            .enumerate()
            .all(|(i, (k, _))| all[..i].iter().all(|(o, _)| o != k));
        // A checkpoint has waited for writes from before.
        let forgotten = match s.it.checkpoint {
            Checkpoint::Idle | Checkpoint::Sweep => s.it.oldest,
            _ => s.it.begin,
        };
        let next = |&(k, n): &(usize, N)| {
            let page = s.page[k];
            page.lsn < n
                && n > forgotten
                && history.complete(k, page, n - 1)
                && history.no_change(k, n, self.end(s))
        };
        alone && all.iter().all(next)
    }

    pub(super) fn memory_complete_inv(&self, s: &State) -> bool {
        if s.it.phase != Phase::Up {
            return true;
        }
        let history = self.history(s);
        self.pages(s, |k, page| {
            let all = s.latched(k) || history.complete(k, page, self.end(s));
            history.valid(k, page) && all
        })
    }

    pub(super) fn checkpoint_inv(&self, s: &State) -> bool {
        if s.it.phase != Phase::Up {
            return true;
        }
        let (at, begin, epoch) = (s.it.checkpoint, s.it.begin, s.it.epoch);
        let history = self.history(s);
        let forced = !matches!(at, Checkpoint::Idle | Checkpoint::Sweep);
        let new = Superblock { epoch, redo: begin };
        let written = match at {
            Checkpoint::Written => s.super_dev.newest() == new,
            Checkpoint::Recorded => *s.super_dev.all() == [new],
            _ => true,
        };
        let complete = |k, image| history.complete(k, image, begin);
        begin <= self.end(s)
            && (at == Checkpoint::Idle || s.it.oldest <= begin)
            && (!forced || begin <= s.it.durable && self.images(s, complete))
            && written
    }

    pub(super) fn resting_inv(&self, s: &State) -> bool {
        if s.it.phase == Phase::Up {
            return true;
        }
        let idle = s.call.iter().all(|call| *call == Call::Idle);
        let single = s.log_dev.iter().all(|place| !place.is_unflushed());
        let resting = s.it.durable == s.it.flushing && s.it.durable == self.buffer_start(s);
        idle && single && s.it.buffer_len == 0 && resting
    }

    fn old_blocks(s: &State, next: N) -> bool {
        s.log_dev.iter().all(|place| place.newest().epoch < next)
    }

    pub(super) fn down_inv(&self, s: &State) -> bool {
        if !s.it.phase.is_down() {
            return true;
        }
        let history = self.history(s);
        s.it.durable == 0
            && !s.it.poisoned
            && s.it.checkpoint == Checkpoint::Idle
            && s.it.begin == 0
            && s.dirtied.iter().all(|dirtied| *dirtied == 0)
            && !s.super_dev.is_unflushed()
            && !s.page_dev.iter().any(|place| place.is_unflushed())
            && Self::old_blocks(s, s.super_dev.newest().epoch + 1)
            && self.images(s, |k, image| history.valid(k, image))
    }

    /// Each page has what has been redone so far.
    pub(super) fn redo_inv(&self, s: &State) -> bool {
        if s.it.phase != Phase::Redo {
            return true;
        }
        let (history, redone) = (self.history(s), s.it.redone);
        let superblock = s.super_dev.newest();
        !s.super_dev.is_unflushed()
            && superblock.epoch + 1 == s.it.epoch
            && superblock.redo <= redone
            && redone <= history.end()
            && history.end() <= s.it.durable
            && Self::old_blocks(s, s.it.epoch)
            && s.it.checkpoint == Checkpoint::Idle
            && s.it.begin == 0
            && !s.it.poisoned
            && self.images(s, |k, image| history.valid(k, image))
            && self.pages(s, |k, page| {
                history.valid(k, page) && history.complete(k, page, redone)
            })
    }

    pub(super) fn opening_inv(&self, s: &State) -> bool {
        if s.it.phase != Phase::Opening {
            return true;
        }
        let (at, epoch, durable) = (s.it.checkpoint, s.it.epoch, s.it.durable);
        let new = Superblock {
            epoch,
            redo: durable,
        };
        let supers = s.super_dev.all();
        let forced = !matches!(at, Checkpoint::Idle | Checkpoint::Sweep);
        let sweeps = matches!(at, Checkpoint::Sweep | Checkpoint::Forced);
        let old = |superblock: &Superblock| superblock.epoch + 1 == epoch;
        let history = self.history(s);
        let known = !old(&supers[0]) || {
            history.end() <= durable
                && self.images(s, |k, image| history.valid(k, image))
                && self.pages(s, |k, page| history.valid(k, page))
        };
        Self::old_blocks(s, epoch)
            && at != Checkpoint::Idle
            && s.it.begin == durable
            && supers
                .iter()
                .all(|superblock| old(superblock) || *superblock == new)
            && (!sweeps || supers.iter().all(|superblock| superblock.epoch < epoch))
            && (at != Checkpoint::Recorded || *supers == [new])
            && (at != Checkpoint::Written || *supers.last().unwrap_or(&new) == new)
            && known
            && self.pages(s, |k, page| page.lsn <= durable && page.value == s.base[k])
            && (!forced
                || s.dirtied.iter().all(|dirtied| *dirtied == 0)
                    && self.images(s, |k, image| image.value == s.base[k]))
    }

    pub(super) fn finds_all_inv(&self, s: &State) -> bool {
        if s.it.phase == Phase::Up {
            return true;
        }
        let choices = s.page_dev.map(|place| place.all().len());
        let ways: usize = choices.iter().product();
        for superblock in s.super_dev.all() {
            for way in 0..ways {
                let mut medium = s.newest();
                medium.superblock = *superblock;
                let mut rest = way;
                for (k, place) in s.page_dev.iter().enumerate() {
                    medium.pages[k] = place.all()[rest % choices[k]];
                    rest /= choices[k];
                }
                if self.recovered(&medium).0 != s.base {
                    return false;
                }
            }
        }
        true
    }
}
