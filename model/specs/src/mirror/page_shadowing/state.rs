//! The variables of `ShadowState.tla`, and the blocks of `PageImages.tla`.
//!
//! Small numbers in small arrays, since a state is copied and hashed at every step. Unused entries
//! are zero, so that equal states are equal bytes. Pages, clients and segments are numbered from 0.
//! A key is a page and a segment of it.

use super::super::wal_recovery::Versions;
pub use super::room::Block;
use super::room::VERSIONS;
pub(super) use super::room::{CLIENTS, LOG, N, PAGES, ROTTEN, SEGMENTS, Set};
use crate::mirror::Phase;

/// The blocks of a page: two slots, and its log block.
pub(super) const SPOTS: usize = 2 * SEGMENTS + 1;
pub(super) const LOG_BLOCK: usize = SPOTS - 1;

/// A value: 0 is `Absent`.
pub(super) type Content = N;
pub(super) const ABSENT: Content = 0;
pub(super) const PENDING: Content = N::MAX;

pub(super) type Values = [Content; SEGMENTS];
pub(super) type Place = Versions<Block, VERSIONS>;
pub(super) type Places = [Place; SPOTS];
pub(super) type Blocks = [Block; SPOTS];

/// The spot of a block, given its slot and segment.
pub(super) fn spot(slot: usize, segment: usize) -> usize {
    slot * SEGMENTS + segment
}

impl Block {
    pub(super) fn first(image: &Image) -> Self {
        Self::new(image.lsn, 0, 0, image.values)
    }

    pub(super) fn segment(value: Content) -> Self {
        let mut values = [ABSENT; SEGMENTS];
        values[0] = value;
        Self::new(0, 0, 0, values)
    }

    pub(super) fn delta(lsn: N, base: N, dirty: Set, values: &Values) -> Self {
        let mut of = [ABSENT; SEGMENTS];
        for i in (0..SEGMENTS).filter(|i| dirty >> i & 1 == 1) {
            of[i] = values[i];
        }
        Self::new(lsn, base, dirty, of)
    }

    /// The content as a reader sees it (`ReadAs`).
    pub(super) fn as_read(self) -> Self {
        if self == Self::TRIMMED {
            Self::default()
        } else {
            self
        }
    }
}

/// A page's content, and the LSN of its last change (0 if it was never written).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Image {
    pub(super) lsn: N,
    pub(super) values: Values,
}

/// A page in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Page {
    pub(super) image: Image,
    /// The segments that differ from the base image.
    pub(super) dirty: Set,
    /// The LSN of the base image.
    pub(super) base: N,
    /// The LSN of the newest image that was written to the device.
    pub(super) stored: N,
}

impl Page {
    pub(super) fn is_dirty(&self) -> bool {
        self.image.lsn != self.stored
    }

    /// Changes a segment, and sets the LSN (`Changed`).
    pub(super) fn change(&mut self, i: usize, value: Content, lsn: N) {
        self.image.lsn = lsn;
        self.image.values[i] = value;
        self.dirty |= 1 << i;
    }
}

/// The state of the valid slot's image.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Is {
    /// Not read yet.
    Unknown,
    /// Written, but not durable yet.
    Written,
    /// Durable.
    Durable,
    /// Durable, and the image that it replaced is trimmed.
    Alone,
}

/// What is known of a page's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Known {
    /// The valid slot.
    pub slot: u8,
    /// The state of its image.
    pub is: Is,
    /// Whether the log block applies to it.
    pub logged: bool,
}

impl Known {
    pub(super) const UNKNOWN: Self = Self {
        slot: 1,
        is: Is::Unknown,
        logged: false,
    };
}

/// A client's outstanding call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Call {
    /// No call is outstanding. The last one, if any, returned, or a crash ended it.
    Idle,
    /// No call is outstanding. The last one was refused, and has had no effect.
    Refused,
    /// A get.
    Get {
        /// The key.
        key: u8,
        /// The value read.
        got: Content,
    },
    /// A put or delete.
    Write {
        /// The key.
        key: u8,
        /// The value to write.
        value: Content,
        /// The LSN of its record, or 0 if it has none yet.
        lsn: N,
    },
}

/// A log record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Record {
    pub(super) key: u8,
    pub(super) value: Content,
}

pub(super) fn key(page: usize, segment: usize) -> u8 {
    (page * SEGMENTS + segment) as u8
}

pub(super) fn page_of(key: u8) -> usize {
    usize::from(key) / SEGMENTS
}

pub(super) fn segment_of(key: u8) -> usize {
    usize::from(key) % SEGMENTS
}

/// The variables of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct State {
    pub(super) call: [Call; CLIENTS],
    // invariant: entries from `log_len` on are default.
    pub(super) log: [Record; LOG],
    pub(super) log_len: N,
    pub(super) durable: N,
    pub(super) redo_start: N,
    pub(super) mem: [Option<Page>; PAGES],
    pub(super) valid: [Known; PAGES],
    pub(super) dev: [Places; PAGES],
    pub(super) lost: [Set; PAGES],
    pub(super) poisoned: bool,
    pub(super) phase: Phase,
    pub(super) redone: N,
    pub(super) crashes: N,
}

impl State {
    pub(super) fn initial() -> Self {
        let alone = Known {
            is: Is::Alone,
            ..Known::UNKNOWN
        };
        Self {
            call: [Call::Idle; CLIENTS],
            log: [Record::default(); LOG],
            log_len: 0,
            durable: 0,
            redo_start: 0,
            mem: [Some(Page::default()); PAGES],
            valid: [alone; PAGES],
            dev: [[Place::durably(Block::TRIMMED); SPOTS]; PAGES],
            lost: [0; PAGES],
            poisoned: false,
            phase: Phase::Up,
            redone: 0,
            crashes: 0,
        }
    }

    /// The records, and the LSN of each.
    pub(super) fn records(&self) -> impl Iterator<Item = (N, Record)> + '_ {
        (1..=self.log_len).zip(self.log)
    }

    /// Ends the log at `n`, and makes it durable.
    pub(super) fn cut_log(&mut self, n: N) {
        self.log[usize::from(n)..].fill(Record::default());
        (self.log_len, self.durable) = (n, n);
    }

    /// Flushes the device (`DeviceFlush`).
    pub(super) fn device_flush(&mut self) {
        for (places, lost) in self.dev.iter_mut().zip(self.lost) {
            for (i, place) in places.iter_mut().enumerate() {
                if lost >> i & 1 == 0 {
                    place.flush();
                }
            }
        }
    }

    /// Records that everything written is durable (`AfterFlush`).
    pub(super) fn after_flush(&mut self) {
        for known in &mut self.valid {
            if known.is == Is::Written {
                known.is = Is::Durable;
            }
        }
    }

    pub(super) fn something_written(&self) -> bool {
        let mut places = self.dev.iter().flatten();
        places.any(Versions::is_unflushed)
    }
}
