//! Reads a page's image from its blocks (`PageImages.tla`), and gives the expected image
//! (`ShadowState.tla`).

use super::state::{ABSENT, Block, Blocks, Image, Is, Known, LOG_BLOCK, N, Places, SPOTS};
use super::state::{Set, State, Values, page_of, segment_of, spot};
use super::{Bug, PageShadowing};

/// The result of reading a slot and the log block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) image: Image,
    pub(super) base: N,
    pub(super) dirty: Set,
    pub(super) logged: bool,
}

pub(super) const LOG_SPOT: Set = 1 << LOG_BLOCK;

pub(super) fn as_read(blocks: &Blocks) -> Blocks {
    blocks.map(Block::as_read)
}

/// The `n`-th combination of versions, of which each place has `options(place)`, counted from the
/// newest.
fn combination(places: &Places, mut n: u32, options: impl Fn(&Places, usize) -> u32) -> Blocks {
    std::array::from_fn(|i| {
        let count = options(places, i);
        let back = (n % count) as usize;
        n /= count;
        let all = places[i].all();
        all[all.len() - 1 - back]
    })
}

fn survivors(places: &Places, i: usize) -> u32 {
    places[i].all().len() as u32
}

fn readings(places: &Places, i: usize) -> u32 {
    if places[i].newest() == Block::TRIMMED && places[i].is_unflushed() {
        2
    } else {
        1
    }
}

/// The number of combinations of a page's blocks that a crash may leave.
pub(super) fn left_count(places: &Places) -> u32 {
    (0..SPOTS).map(|i| survivors(places, i)).product()
}

/// The `n`-th combination that a crash may leave.
pub(super) fn left(places: &Places, n: u32) -> Blocks {
    combination(places, n, survivors)
}

/// The number of ways in which a page may read.
pub(super) fn read_count(places: &Places) -> u32 {
    (0..SPOTS).map(|i| readings(places, i)).product()
}

/// The `n`-th way in which a page may read.
pub(super) fn read(places: &Places, n: u32) -> Blocks {
    as_read(&combination(places, n, readings))
}

/// All ways in which a page may read.
pub(super) fn all_readings(places: &Places) -> impl Iterator<Item = Blocks> + '_ {
    (0..read_count(places)).map(|n| read(places, n))
}

impl PageShadowing {
    /// The blocks of a slot, by number.
    pub(super) fn spots_of(&self, slot: u8) -> Set {
        ((1 << self.segments) - 1) << spot(usize::from(slot), 0)
    }

    fn is_whole(&self, blocks: &Blocks, s: usize) -> bool {
        let first = blocks[spot(s, 0)];
        let fits = |i: usize| blocks[spot(s, i)].value(0) == first.value(i);
        first.lsn() != 0 && (self.bug == Bug::BelievesTornSlot || (1..self.segments).all(fits))
    }

    pub(super) fn image_in(&self, blocks: &Blocks, s: usize) -> Image {
        if !self.is_whole(blocks, s) {
            return Image::default();
        }
        let mut values = [ABSENT; super::SEGMENTS];
        for (i, value) in values.iter_mut().enumerate().take(self.segments) {
            *value = blocks[spot(s, i)].value(0);
        }
        Image {
            lsn: blocks[spot(s, 0)].lsn(),
            values,
        }
    }

    fn fits(&self, delta: Block, image: &Image, s: usize) -> bool {
        match self.bug {
            Bug::NamelessLog => delta.lsn() != 0,
            Bug::NamesSlot => image.lsn != 0 && usize::from(delta.base()) == s + 1,
            _ => image.lsn != 0 && delta.base() == image.lsn,
        }
    }

    pub(super) fn read_slot(&self, blocks: &Blocks, s: usize) -> Found {
        let image = self.image_in(blocks, s);
        let delta = blocks[LOG_BLOCK];
        let logged = self.fits(delta, &image, s);
        let mut found = Found {
            image,
            base: image.lsn,
            dirty: 0,
            logged,
        };
        if logged {
            found.image.lsn = delta.lsn();
            found.dirty = delta.dirty();
            let values = found.image.values.iter_mut().enumerate();
            for (i, value) in values.filter(|(i, _)| delta.dirty() >> i & 1 == 1) {
                *value = delta.value(i);
            }
        }
        found
    }

    fn rank(&self, blocks: &Blocks, s: usize) -> N {
        if matches!(self.bug, Bug::ComparesImages | Bug::NamelessLog) {
            return 2 * self.image_in(blocks, s).lsn;
        }
        let found = self.read_slot(blocks, s);
        2 * found.image.lsn + N::from(found.logged)
    }

    pub(super) fn valid_slot(&self, blocks: &Blocks) -> u8 {
        let first = self.rank(blocks, 0) > self.rank(blocks, 1)
            || self.bug == Bug::TakesFirstSlot && self.is_whole(blocks, 0);
        u8::from(!first)
    }

    pub(super) fn read_both(&self, blocks: &Blocks) -> Found {
        self.read_slot(blocks, usize::from(self.valid_slot(blocks)))
    }

    /// The knowledge of a page if its blocks read like this (`KnownWith`).
    pub(super) fn known_with(&self, s: &State, p: usize, blocks: &Blocks) -> Known {
        match s.valid[p].is {
            Is::Unknown => self.known_after(blocks),
            _ => s.valid[p],
        }
    }

    /// The page if its blocks read like this (`Found`).
    pub(super) fn found(&self, s: &State, p: usize, blocks: &Blocks) -> Found {
        let slot = self.known_with(s, p, blocks).slot;
        self.read_slot(blocks, usize::from(slot))
    }

    /// The knowledge of a page after both slots were read (`KnownAfter`).
    pub(super) fn known_after(&self, blocks: &Blocks) -> Known {
        let slot = self.valid_slot(blocks);
        let logged = self.read_slot(blocks, usize::from(slot)).logged;
        let others = self.spots_of(1 - slot) | if logged { 0 } else { LOG_SPOT };
        let leftover = (0..SPOTS).any(|i| others >> i & 1 == 1 && blocks[i] != Block::default());
        Known {
            slot,
            is: if leftover && self.bug != Bug::LeavesLeftovers {
                Is::Durable
            } else {
                Is::Alone
            },
            logged,
        }
    }
}

/// The LSN of the last change of page `p` up to `n`: the greatest of `Changes`.
pub(super) fn last_change(s: &State, p: usize, n: N) -> N {
    let changes = s
        .records()
        .filter(|(m, record)| *m <= n && page_of(record.key) == p);
    changes.last().map_or(0, |(m, _)| m)
}

/// `Named`, after the log has been cut.
pub(super) fn is_named(s: &State, p: usize) -> bool {
    last_change(s, p, s.durable) > s.redo_start
}

/// `PageAt`: the segments of page `p` after the first `n` records.
pub(super) fn page_at(s: &State, p: usize, n: N) -> Values {
    let mut values = [ABSENT; super::SEGMENTS];
    for (_, record) in s.records().filter(|(m, r)| *m <= n && page_of(r.key) == p) {
        values[segment_of(record.key)] = record.value;
    }
    values
}

/// `RedoFrom`, from the record after `done`.
pub(super) fn redone(s: &State, p: usize, mut image: Image, done: N) -> Image {
    for (n, record) in s.records().filter(|(n, _)| *n > done) {
        if page_of(record.key) == p && image.lsn < n {
            image.lsn = n;
            image.values[segment_of(record.key)] = record.value;
        }
    }
    image
}
