//! How much of a program's crash states is tried.

use crate::engine::DiskKind;

/// How much to try.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// If a crash can leave at most so many states, all are tried.
    pub exhaustive: usize,
    /// A program of at most so many operations is short.
    pub short: usize,
    /// If a crash in a short program can leave at most so many states, all are tried.
    pub exhaustive_short: usize,
    /// Otherwise so many.
    pub sample: usize,
    /// Of the points of a longer program at which nothing is settled, neither by the request that
    /// comes next nor by what was just promised, one in so many is looked at; at least 1.
    pub one_in: u64,
    /// Every so many-th state is cut again in its recovery; 0: none.
    pub again: u64,
    /// Every so many-th state is written to after recovery, and cut once more; 0: none.
    pub go_on: u64,
    /// Of every so many-th state a block is damaged, if the engine guards any; 0: of none.
    pub damage: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Effort {
            exhaustive: 16,
            short: 12,
            exhaustive_short: 4096,
            sample: 8,
            one_in: 4,
            again: 4,
            go_on: 8,
            damage: 6,
        }
    }
}

impl Effort {
    /// The usual one on such a disk. A write to persistent memory has ten times the points of one to
    /// blocks, and there is more to be learnt from another program than from all of them.
    #[must_use]
    pub fn on(disk: DiskKind) -> Effort {
        match disk {
            DiskKind::Pm(_) => Effort {
                exhaustive: 6,
                exhaustive_short: 512,
                sample: 4,
                one_in: 8,
                ..Effort::default()
            },
            DiskKind::Blocks(_) | DiskKind::Folder => Effort::default(),
        }
    }

    /// If a crash in a program of so many operations can leave at most so many states, all are tried.
    pub(super) fn all_up_to(&self, operations: usize) -> usize {
        if operations <= self.short {
            self.exhaustive.max(self.exhaustive_short)
        } else {
            self.exhaustive
        }
    }
}
