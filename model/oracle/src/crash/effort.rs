//! How many crash states to try.

use crate::engine::DiskKind;

/// How many crash states to try, and what else to do to them.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// A crash point with at most this many states is tried exhaustively.
    pub exhaustive: usize,
    /// A program of at most this many operations is short.
    pub short: usize,
    /// In a short program, a crash point with at most this many states is tried exhaustively.
    pub exhaustive_short: usize,
    /// The number of states to sample at any other crash point.
    pub sample: usize,
    /// In longer programs, one in this many crash points is tried among those where neither a flush
    /// comes next nor something was just acknowledged. At least 1.
    pub one_in: u64,
    /// In every n-th state the power is cut again during recovery. 0 means never.
    pub again: u64,
    /// Every n-th state is written to after recovery, and the power is cut once more. 0 means
    /// never.
    pub go_on: u64,
    /// In every n-th state a block is damaged, if the engine has [guarded blocks]. 0 means never.
    ///
    /// [guarded blocks]: crate::Engine::guarded
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
    /// The default for a kind of disk. Persistent memory has ten times as many crash points per
    /// write, and running more programs finds more than trying all of them.
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

    /// The most states of one crash point that are tried exhaustively, in a program of this many
    /// operations.
    pub(super) fn all_up_to(&self, operations: usize) -> usize {
        if operations <= self.short {
            self.exhaustive.max(self.exhaustive_short)
        } else {
            self.exhaustive
        }
    }
}
