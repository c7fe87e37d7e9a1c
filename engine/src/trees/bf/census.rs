//! What the bytes of the ring hold at one moment.

use super::BfTree;
use crate::mini::{self, MiniRef};
use crate::ring::BlockState;
use crate::stats::RingUse;

impl BfTree {
    /// Counts the bytes of the ring by use. Exact if no other thread uses the tree; if one does, a
    /// mini-page that it moves meanwhile counts as a hole. O(records in the ring).
    pub(crate) fn ring_use(&self) -> RingUse {
        let mut found = RingUse::default();
        // A ring without a block where one should begin is damaged, which is found elsewhere.
        let Ok(seen) = self.ring.look() else {
            return found;
        };
        found.free = self.ring.stats().capacity_bytes - (seen.tail - seen.head);
        for block in seen.blocks {
            let page = match block.state {
                BlockState::Ready => self.ring.try_shared(block.page).ok().flatten(),
                _ => None,
            };
            match page.as_ref().and_then(|page| page.bytes()) {
                Some(bytes) => add(&mut found, block.bytes, MiniRef::new(bytes)),
                None => found.holes += block.bytes,
            }
        }
        found
    }
}

/// Adds a mini-page in a block of `bytes` bytes.
fn add(found: &mut RingUse, bytes: u64, mini: MiniRef<'_>) {
    let len = mini.bytes().len() as u64;
    let mut slack = len - mini::bytes_for(0, 0) as u64;
    for entry in mini.entries() {
        let (slot, record) = (
            mini::META as u64,
            (entry.key.len() + entry.value.len()) as u64,
        );
        slack -= slot + record;
        if entry.kind.is_dirty() {
            found.dirty_records += 1;
            found.dirty += record;
            found.dirty_slots += slot;
        } else {
            found.clean += slot + record;
        }
    }
    found.slack += slack;
    found.headers += bytes - len + mini::bytes_for(0, 0) as u64;
}
