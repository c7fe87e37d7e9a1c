//! What garbage collection moves, by a label of the moved data.
//!
//! A drive knows three classes of data. Whoever has more kinds (the causes of `treering-drive`)
//! labels each block as it is written, and learns how much of each label was moved.

use treering_engine::IoClass;

/// A write of whole blocks whose contents nobody will read: only their compressed sizes matter.
#[derive(Clone, Copy, Debug)]
pub struct SizedWrite<'a> {
    /// First block.
    pub lba: u64,
    /// Compressed size of each block, 0 for a block of zeros. Drives that do not compress only count
    /// them.
    pub payloads: &'a [u16],
    /// Class of the data.
    pub class: IoClass,
    /// What the data are to the caller; `SimDrive::moved` counts by it.
    pub label: u8,
}

/// Labels of logical blocks, and what was moved of each label.
#[derive(Clone, Debug)]
pub(crate) struct Labels {
    /// By logical block.
    of: Vec<u8>,
    /// By label.
    moved: Vec<u64>,
}

impl Labels {
    /// All blocks have label 0.
    pub(crate) fn new(blocks: usize) -> Labels {
        Labels {
            of: vec![0; blocks],
            moved: vec![0; 1 << u8::BITS],
        }
    }

    /// Labels a block.
    #[inline]
    pub(crate) fn set(&mut self, block: usize, label: u8) {
        self.of[block] = label;
    }

    /// Counts what was moved of a block.
    #[inline]
    pub(crate) fn count(&mut self, block: usize, amount: u64) {
        self.moved[usize::from(self.of[block])] += amount;
    }

    /// What was moved since the counts were reset, by label.
    pub(crate) fn moved(&self) -> &[u64] {
        &self.moved
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.of.capacity() + 8 * self.moved.capacity()
    }

    /// Forgets the counts.
    pub(crate) fn reset(&mut self) {
        self.moved.fill(0);
    }
}
