//! Whose a block was at a moment of the recording.
//!
//! [`Event::Region`] and [`Event::Map`] say whose blocks are, at moments: a file is mapped up to
//! some hundred milliseconds after it was written. So a write's owner is
//!
//! 1. who has the block at the time of the write, by the last claim that a discard or an empty map
//!    has not ended;
//! 2. else who claims it next, since a file is written before it is mapped;
//! 3. else who had it last, since a file that is removed is unmapped after its last write;
//! 4. else nobody: the file was removed before it was ever mapped.
//!
//! ```text
//! block 7:  ──write──map A────write───────map A ∅────write──map B────▶
//!              A (2)           A (1)                   B (2)
//! ```
//!
//! On ext4 with online discard, on a disk nearly full of files that come and go, all bytes are told
//! right where files live for a second, and 91 % where they live for a fifth of one: a file that is
//! never mapped counts as the next one that gets its blocks.
//!
//! Without online discard, a block that one file frees and another gets between two samples counts
//! as the first file's until the second is mapped.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::recording::{Event, Extent};

/// Whose a block is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The file system's own, by name.
    Region(String),
    /// A file, by its path from the file system's root.
    File(Vec<u8>),
}

/// A claim, or the end of one.
#[derive(Clone, Copy, Debug)]
struct Claim {
    at: u64,
    owner: Option<u32>,
}

/// Consecutive blocks with one history.
#[derive(Clone, Debug, Default)]
struct Stretch {
    end: u64,
    claims: Vec<Claim>,
}

/// All claims of a recording.
#[derive(Debug, Default)]
pub struct Owners {
    owners: Vec<Owner>,
    numbers: FxHashMap<Owner, u32>,
    /// By first block.
    stretches: BTreeMap<u64, Stretch>,
    /// What a file's last map was, by inode.
    maps: FxHashMap<u64, (u32, Vec<Extent>)>,
}

impl Owners {
    /// Takes the event with the number `at`; numbers increase.
    pub fn note(&mut self, at: u64, event: &Event) {
        match event {
            Event::Region { name, extents } => {
                let owner = self.number(Owner::Region(name.clone()));
                self.claim(at, Some(owner), extents);
            }
            Event::Map {
                path,
                inode,
                extents,
            } => {
                let owner = self.number(Owner::File(path.clone()));
                if let Some((before, old)) = self.maps.remove(inode) {
                    self.release(at, Some(before), &old);
                }
                self.claim(at, Some(owner), extents);
                if !extents.is_empty() {
                    self.maps.insert(*inode, (owner, extents.clone()));
                }
            }
            Event::Discard { extents, .. } => self.release(at, None, extents),
            _ => {}
        }
    }

    /// Whose the block was when the event with the number `at` happened.
    #[must_use]
    pub fn at(&self, at: u64, lba: u64) -> Option<&Owner> {
        self.owner(self.number_at(at, lba)?)
    }

    /// An owner by its number.
    #[must_use]
    pub fn owner(&self, number: u32) -> Option<&Owner> {
        self.owners.get(number as usize)
    }

    /// As [`Owners::at`], the owner's number: the same as long as the owner is.
    #[must_use]
    pub fn number_at(&self, at: u64, lba: u64) -> Option<u32> {
        let (_, stretch) = self.stretches.range(..=lba).next_back()?;
        if lba >= stretch.end {
            return None;
        }
        let claims = &stretch.claims;
        let later = claims.partition_point(|c| c.at <= at);
        let now = later.checked_sub(1).and_then(|last| claims[last].owner);
        let next = || claims[later..].iter().find_map(|c| c.owner);
        let last = || claims[..later].iter().rev().find_map(|c| c.owner);
        now.or_else(next).or_else(last)
    }

    fn number(&mut self, owner: Owner) -> u32 {
        if let Some(number) = self.numbers.get(&owner) {
            return *number;
        }
        let number = self.owners.len() as u32;
        self.owners.push(owner.clone());
        self.numbers.insert(owner, number);
        number
    }

    fn claim(&mut self, at: u64, owner: Option<u32>, extents: &[Extent]) {
        for extent in extents {
            let end = extent.lba.saturating_add(extent.blocks);
            self.cut(extent.lba);
            self.cut(end);
            let mut next = extent.lba;
            let mut gaps = Vec::new();
            for (from, stretch) in self.stretches.range_mut(extent.lba..end) {
                if *from > next {
                    gaps.push((next, *from));
                }
                next = stretch.end;
                if stretch.claims.last().is_none_or(|c| c.owner != owner) {
                    stretch.claims.push(Claim { at, owner });
                }
            }
            if next < end {
                gaps.push((next, end));
            }
            for (from, end) in gaps {
                let claims = vec![Claim { at, owner }];
                self.stretches.insert(from, Stretch { end, claims });
            }
        }
    }

    /// Ends the claims of `owner`, or of whoever has them.
    fn release(&mut self, at: u64, owner: Option<u32>, extents: &[Extent]) {
        for extent in extents {
            let end = extent.lba.saturating_add(extent.blocks);
            self.cut(extent.lba);
            self.cut(end);
            for stretch in self.stretches.range_mut(extent.lba..end).map(|(_, s)| s) {
                let last = stretch.claims.last().and_then(|c| c.owner);
                if last.is_some() && (owner.is_none() || owner == last) {
                    stretch.claims.push(Claim { at, owner: None });
                }
            }
        }
    }

    /// Makes a stretch begin at `lba` if one lies across it.
    fn cut(&mut self, lba: u64) {
        let Some((_, stretch)) = self.stretches.range_mut(..lba).next_back() else {
            return;
        };
        if stretch.end > lba {
            let behind = stretch.clone();
            stretch.end = lba;
            self.stretches.insert(lba, behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::NodeId;

    fn map(path: &str, inode: u64, extents: &[(u64, u64)]) -> Event {
        let extents = extents.iter().map(|(lba, blocks)| Extent {
            lba: *lba,
            blocks: *blocks,
        });
        Event::Map {
            path: path.into(),
            inode,
            extents: extents.collect(),
        }
    }

    #[test]
    fn a_block_belongs_to_who_has_it_or_gets_it_or_had_it() {
        let mut owners = Owners::default();
        owners.note(10, &map("a", 1, &[(0, 8)]));
        owners.note(20, &map("a", 1, &[(0, 4)]));
        owners.note(30, &map("b", 2, &[(6, 10)]));
        let node = NodeId::ROOT;
        let extents = vec![Extent { lba: 0, blocks: 2 }];
        owners.note(40, &Event::Discard { node, extents });
        owners.note(50, &map("c", 3, &[(1, 1)]));
        let is = |at, lba, path: &str| {
            let found = owners.at(at, lba);
            assert_eq!(
                found,
                Some(&Owner::File(path.into())),
                "block {lba} at {at}"
            );
        };
        is(5, 0, "a");
        is(15, 7, "a");
        is(25, 7, "b");
        is(25, 5, "a");
        is(35, 15, "b");
        is(45, 0, "a");
        is(45, 1, "c");
        is(45, 2, "a");
        assert_eq!(owners.at(45, 16), None);
    }
}
