//! The invariants, by the names of the spec.

use super::PageShadowing;
use super::reading::{all_readings, as_read, last_change, left, left_count, page_at, redone};
use super::state::{Block, Blocks, Call, Is, LOG_BLOCK, N, PENDING, Place, State, spot};

type Invariant = fn(&PageShadowing, &State) -> bool;

pub(super) const INVARIANTS: [(&str, Invariant); 18] = [
    ("TypeInv", PageShadowing::type_inv),
    ("AckInv", ack_inv),
    ("WalRuleInv", PageShadowing::wal_rule_inv),
    ("MemoryInv", PageShadowing::memory_inv),
    ("NotInMemoryInv", PageShadowing::not_in_memory_inv),
    ("CleanInv", PageShadowing::clean_inv),
    ("DirtyInv", PageShadowing::dirty_inv),
    ("BitmapInv", PageShadowing::bitmap_inv),
    ("DurableInv", PageShadowing::durable_inv),
    ("LogBlockInv", PageShadowing::log_block_inv),
    ("RedoStartInv", PageShadowing::redo_start_inv),
    ("KeptInv", PageShadowing::kept_inv),
    ("ImageInv", PageShadowing::image_inv),
    ("RecoveredInv", PageShadowing::recovered_inv),
    ("ReachNoRedo", |_, s| {
        s.phase.is_up() || s.redo_start == 0 || s.redo_start != s.log_len
    }),
    ("ReachEvicted", |m, s| {
        !s.phase.is_up() || s.crashes != 0 || m.pages().all(|p| s.mem[p].is_some())
    }),
    ("ReachUntrimmed", |m, s| {
        m.pages().all(|p| {
            let mut all = all_readings(&s.dev[p]);
            let first = all.next();
            all.all(|blocks| Some(blocks) == first)
        })
    }),
    ("ReachTrimmedLog", |m, s| {
        let trimmed = |place: &Place| place.newest() == Block::TRIMMED && place.all().len() > 1;
        !m.pages()
            .any(|p| s.valid[p].is == Is::Alone && trimmed(&s.dev[p][LOG_BLOCK]))
    }),
];

pub(super) fn ack_inv(_: &PageShadowing, s: &State) -> bool {
    let waits = |n: N| {
        let mut calls = s.call.iter();
        calls.any(|call| matches!(call, Call::Write { lsn, .. } if *lsn == n))
    };
    (s.durable + 1..=s.log_len).all(waits)
}

impl PageShadowing {
    /// Each value is in the set that its variable ranges over. Holds by construction, except for
    /// contents and the order of LSNs.
    pub(super) fn type_inv(&self, s: &State) -> bool {
        let content = |value: N| value <= self.values;
        let called = |call: &Call| match *call {
            Call::Idle | Call::Refused => true,
            Call::Get { got, .. } => got == PENDING || content(got),
            Call::Write { value, .. } => content(value),
        };
        let (mut calls, mut pages) = (s.call.iter(), s.mem.iter().flatten());
        s.redo_start <= s.durable
            && s.durable <= s.log_len
            && calls.all(called)
            && s.records().all(|(_, record)| content(record.value))
            && pages.all(|page| page.image.values.into_iter().all(content))
    }

    fn wal_rule_inv(&self, s: &State) -> bool {
        let spots = [spot(0, 0), spot(1, 0), LOG_BLOCK];
        let mut places = s.dev.iter().flat_map(|places| spots.map(|i| &places[i]));
        places.all(|place| (place.all().iter()).all(|block| block.as_read().lsn() <= s.durable))
    }

    fn memory_inv(&self, s: &State) -> bool {
        let is =
            |p: usize| s.mem[p].is_none_or(|page| page.image.values == page_at(s, p, s.log_len));
        !s.phase.is_up() || self.pages().all(is)
    }

    fn not_in_memory_inv(&self, s: &State) -> bool {
        let is = |p: usize| {
            all_readings(&s.dev[p]).all(|blocks| {
                let found = self.found(s, p, &blocks);
                found.image.values == page_at(s, p, s.log_len)
            })
        };
        !s.phase.is_up() || self.pages().all(|p| s.mem[p].is_some() || is(p))
    }

    fn clean_inv(&self, s: &State) -> bool {
        self.pages().all(|p| {
            let Some(page) = &s.mem[p] else { return true };
            all_readings(&s.dev[p]).all(|blocks| {
                let image = self.read_slot(&blocks, usize::from(s.valid[p].slot)).image;
                image.lsn == page.stored && (page.is_dirty() || image.values == page.image.values)
            })
        })
    }

    fn dirty_inv(&self, s: &State) -> bool {
        self.pages().all(|p| {
            let Some(page) = &s.mem[p] else { return true };
            all_readings(&s.dev[p]).all(|blocks| {
                let base = self.image_in(&blocks, usize::from(s.valid[p].slot));
                let differs = |i: usize| base.values[i] != page.image.values[i];
                let mut segments = 0..self.segments;
                base.lsn == page.base && segments.all(|i| page.dirty >> i & 1 == 1 || !differs(i))
            })
        })
    }

    fn bitmap_inv(&self, s: &State) -> bool {
        self.pages().all(|p| {
            let newest = || as_read(&s.dev[p].map(|place| place.newest()));
            s.valid[p].is == Is::Unknown || self.valid_slot(&newest()) == s.valid[p].slot
        })
    }

    fn durable_inv(&self, s: &State) -> bool {
        self.pages().all(|p| {
            let slot = usize::from(s.valid[p].slot);
            let one = |i: usize| {
                let all = s.dev[p][spot(slot, i)].all();
                all.iter().all(|block| *block == all[0])
            };
            let counts = matches!(s.valid[p].is, Is::Durable | Is::Alone);
            !counts || (0..self.segments).all(one)
        })
    }

    fn log_block_inv(&self, s: &State) -> bool {
        self.pages().all(|p| {
            let valid = &s.valid[p];
            let newest = as_read(&s.dev[p].map(|place| place.newest()));
            let image = self.image_in(&newest, usize::from(valid.slot));
            let names = image.lsn != 0 && newest[LOG_BLOCK].base() == image.lsn;
            valid.is == Is::Unknown || valid.logged == names
        })
    }

    fn has_changes(&self, s: &State, p: usize, blocks: &Blocks) -> bool {
        last_change(s, p, s.redo_start) <= self.read_both(blocks).image.lsn
    }

    fn redo_start_inv(&self, s: &State) -> bool {
        self.pages().all(|p| {
            let places = &s.dev[p];
            let mut outcomes = 0..left_count(places);
            outcomes.all(|n| self.has_changes(s, p, &as_read(&left(places, n))))
        })
    }

    fn kept_inv(&self, s: &State) -> bool {
        let is = |p: usize| all_readings(&s.dev[p]).all(|blocks| self.has_changes(s, p, &blocks));
        s.phase.is_up() || self.pages().all(is)
    }

    fn image_inv(&self, s: &State) -> bool {
        let is = |p: usize| {
            all_readings(&s.dev[p]).all(|blocks| {
                let image = self.read_both(&blocks).image;
                image.lsn <= s.log_len && image.values == page_at(s, p, image.lsn)
            })
        };
        s.phase.is_up() || self.pages().all(is)
    }

    fn recovered_inv(&self, s: &State) -> bool {
        let is = |p: usize| {
            all_readings(&s.dev[p]).all(|blocks| {
                let image = redone(s, p, self.read_both(&blocks).image, s.redo_start);
                image.values == page_at(s, p, s.log_len)
            })
        };
        s.phase.is_up() || self.pages().all(is)
    }
}
