//! What a real file system has in each block of its disk, over time.
//!
//! The recording tells it from time to time: [`Event::Region`] for what is no file, [`Event::Map`]
//! for files. A block is written before the next look at the file system, not after it. So a write
//! belongs to what the first look after it found there; or, if there is none, to what the last look
//! found.
//!
//! ```text
//! look      1: a.sst        2: a.sst         3: b.log
//! block     ──────x───────────────x─────────────x──────── time
//! write        w₁ of a.sst     w₂ of a.sst         w₃ of b.log (the last that is known)
//!                                    w₄ of b.log, even if it was the last write of a.sst
//! ```
//!
//! *Not known*: what was written and removed between two looks ([`UNKNOWN`]).
//!
//! Memory: some 60 bytes for each block that a look ever found in use.

use rustc_hash::FxHashMap;

use crate::recording::{Event, Extent, Recorded};

/// The cause of blocks that no look at the file system found in use.
pub const UNKNOWN: &str = "unknown";

/// What lies in a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// Something of the file system itself, by its name.
    Region(String),
    /// A file, by its path.
    File(Vec<u8>),
}

/// What was found in each block.
#[derive(Clone, Debug, Default)]
pub struct Places {
    labels: Vec<Label>,
    numbers: FxHashMap<Label, u32>,
    /// By block: what was found, and the number of the event that found it last; in order.
    found: FxHashMap<u64, Vec<(u64, u32)>>,
}

impl Places {
    /// Follows an event of a recording.
    pub(super) fn note(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Region { name, extents } => {
                self.look(recorded.seq, Label::Region(name.clone()), extents);
            }
            Event::Map { path, extents, .. } => {
                self.look(recorded.seq, Label::File(path.clone()), extents);
            }
            _ => {}
        }
    }

    fn look(&mut self, seq: u64, label: Label, extents: &[Extent]) {
        let next = self.labels.len() as u32;
        let number = *self.numbers.entry(label).or_insert_with_key(|label| {
            self.labels.push(label.clone());
            next
        });
        for extent in extents {
            for lba in extent.lba..extent.lba.saturating_add(extent.blocks) {
                let found = self.found.entry(lba).or_default();
                match found.last_mut() {
                    Some((last, what)) if *what == number => *last = seq,
                    _ => found.push((seq, number)),
                }
            }
        }
    }

    /// The label of a block that was written or discarded as the event `seq`.
    #[must_use]
    pub(super) fn at(&self, lba: u64, seq: u64) -> Option<u32> {
        let found = self.found.get(&lba)?;
        let after = found.iter().find(|(last, _)| *last >= seq);
        after.or(found.last()).map(|(_, label)| *label)
    }

    /// A label by its number.
    #[must_use]
    pub(super) fn label(&self, number: u32) -> &Label {
        &self.labels[number as usize]
    }
}
