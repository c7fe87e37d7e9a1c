//! Where Btrfs has what is no file, and where on the disk its own addresses are.
//!
//! ```text
//! superblock ─▶ first chunks ─▶ chunk tree ─▶ chunks: logical address ─▶ one or two places
//!                                              METADATA, SYSTEM or DATA
//! ```
//!
//! [`Chunks`] reads the chunk tree of the last commit; a node is accepted only if it says that it is
//! the one looked for, so a tree that is being replaced meanwhile is an error and can be read again.
//! [`Sniff`] looks at nodes when they are written: each names the file system and the tree that it
//! belongs to, so metadata is told apart by tree. The log tree, where `fsync` puts what it cannot
//! wait for a commit to do, is called `journal`, as the logs of the other file systems are.
//!
//! Structures are those of the kernel's `include/uapi/linux/btrfs_tree.h` and of the document
//! *On-disk format* of btrfs-progs. One device; its chunks lie once (`single`) or twice (`DUP`) on
//! it. Anything else is an error. Of data chunks nothing is said here: files are found by their maps.

use super::bytes::{BLOCK, Blocks, Reader, array, bad, le16, le32, le64};
use super::found::named;
use crate::error::DriveError;
use crate::recording::Extent;

const SUPER: u64 = 65_536;
const COPIES: [u64; 3] = [SUPER, 64 << 20, 256 << 30];
const NODE_HEADER: usize = 101;
const CHUNK_ITEM: u8 = 228;
const DATA: u64 = 1;
const SYSTEM: u64 = 2;
const METADATA: u64 = 4;
/// RAID 0, 1, 10, 5, 6 and 1 with three and four copies.
const OTHER_PROFILES: u64 = 0x7D8;

/// Whether the block at 64 KiB is a Btrfs superblock.
pub(super) fn is(block: &[u8]) -> bool {
    block.get(64..72) == Some(b"_BHRfS_M")
}

/// The identity that each node repeats, and the size of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    uuid: [u8; 16],
    node: u64,
}

impl Identity {
    fn parse(sb: &[u8]) -> Option<Identity> {
        let own = le64(sb, 188) & 1 << 10 != 0;
        let uuid = array(sb, if own { 571 } else { 32 });
        let node = u64::from(le32(sb, 148));
        let sound = is(sb) && (BLOCK..=65_536).contains(&node) && node.is_power_of_two();
        sound.then_some(Identity { uuid, node })
    }
}

#[derive(Clone, Copy)]
struct Chunk {
    logical: u64,
    len: u64,
    kind: u64,
    /// First bytes of its copies on the disk.
    at: [Option<u64>; 2],
}

/// The chunks of a file system.
pub(crate) struct Chunks {
    chunks: Vec<Chunk>,
    pub(super) identity: Identity,
    /// Changes with every commit.
    pub(crate) generation: u64,
}

impl Chunks {
    /// Reads the chunks as of the last commit.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Chunks, DriveError> {
        let place = "the superblock of Btrfs";
        let sb = reader.read(place, SUPER, BLOCK)?;
        let identity = Identity::parse(&sb).ok_or_else(|| {
            bad(
                place,
                "the magic _BHRfS_M and nodes of 4 to 64 KiB",
                "another",
            )
        })?;
        if le64(&sb, 136) != 1 {
            return Err(bad(place, "one device", le64(&sb, 136)));
        }
        let mut chunks = Chunks {
            chunks: Vec::new(),
            identity,
            generation: le64(&sb, 72),
        };
        let first = &sb[811..811 + (le32(&sb, 160) as usize).min(2048)];
        let mut at = 0;
        while at + 17 + 48 <= first.len() {
            let (logical, item) = (le64(first, at + 9), &first[at + 17..]);
            if first[at + 8] != CHUNK_ITEM {
                return Err(bad(place, "an item of kind 228", first[at + 8]));
            }
            chunks.add(logical, item)?;
            at += 17 + 48 + 32 * usize::from(le16(item, 44));
        }
        let (root, level) = (le64(&sb, 88), sb[199]);
        chunks.node(reader, root, level)?;
        chunks.chunks.sort_by_key(|c| c.logical);
        chunks.chunks.dedup_by_key(|c| c.logical);
        Ok(chunks)
    }

    fn add(&mut self, logical: u64, item: &[u8]) -> Result<(), DriveError> {
        let place = || format!("the chunk at {logical}");
        let (kind, stripes) = (le64(item, 24), le16(item, 44));
        if kind & OTHER_PROFILES != 0 || !(1..=2).contains(&stripes) {
            let found = format!("kind {kind:#x} with {stripes} stripes");
            return Err(bad(place(), "one or two copies on one device", found));
        }
        if logical.checked_add(le64(item, 0)).is_none() {
            return Err(bad(place(), "a possible length", le64(item, 0)));
        }
        if item.len() < 48 + 32 * usize::from(stripes) {
            return Err(bad(
                place(),
                format!("{stripes} stripes"),
                "the end of the item",
            ));
        }
        let stripe = |n: u16| (n < stripes).then(|| le64(item, 48 + 32 * usize::from(n) + 8));
        self.chunks.push(Chunk {
            logical,
            len: le64(item, 0),
            kind,
            at: [stripe(0), stripe(1)],
        });
        Ok(())
    }

    fn node(&mut self, reader: &mut Reader<'_>, logical: u64, level: u8) -> Result<(), DriveError> {
        let place = "the chunk tree of Btrfs";
        let at = self.first_copy(logical);
        let at = at.ok_or_else(|| bad(place, "an address in a chunk", logical))?;
        let node = reader.read(place, at, self.identity.node)?;
        let same = le64(&node, 48) == logical && array::<16>(&node, 32) == self.identity.uuid;
        if !same || node[100] != level || level > 7 {
            let found = format!("node {} of level {}", le64(&node, 48), node[100]);
            return Err(bad(
                place,
                format!("node {logical} of level {level}"),
                found,
            ));
        }
        let items = le32(&node, 96) as usize;
        let each = if level == 0 { 25 } else { 33 };
        if items > (node.len() - NODE_HEADER) / each {
            return Err(bad(place, "items that fit into the node", items));
        }
        for item in node[NODE_HEADER..].chunks_exact(each).take(items) {
            if level > 0 {
                self.node(reader, le64(item, 17), level - 1)?;
            } else if item[8] == CHUNK_ITEM {
                let from = NODE_HEADER + le32(item, 17) as usize;
                let to = from.saturating_add(le32(item, 21) as usize);
                let bytes = node.get(from..to);
                let bytes = bytes.ok_or_else(|| bad(place, "an item in the node", to))?;
                self.add(le64(item, 9), bytes)?;
            }
        }
        Ok(())
    }

    fn holding(&self, logical: u64) -> Option<&Chunk> {
        let inside = |c: &&Chunk| logical.checked_sub(c.logical).is_some_and(|d| d < c.len);
        self.chunks.iter().find(inside)
    }

    fn first_copy(&self, logical: u64) -> Option<u64> {
        let chunk = self.holding(logical)?;
        chunk.at[0]?.checked_add(logical - chunk.logical)
    }

    /// Where bytes of the file system's address space lie on the disk, all copies of them.
    pub(crate) fn physical(&self, mut logical: u64, mut len: u64) -> Vec<Extent> {
        let mut found = Blocks::default();
        while let Some(chunk) = self.holding(logical).filter(|_| len > 0) {
            let within = logical - chunk.logical;
            let part = len.min(chunk.len - within);
            for at in chunk.at.into_iter().flatten() {
                if let Some(at) = at.checked_add(within) {
                    found.add_bytes(at, part);
                }
            }
            (logical, len) = (logical + part, len - part);
        }
        found.extents()
    }
}

/// Where what is no file lies.
pub(super) fn regions(reader: &mut Reader<'_>) -> Result<Vec<(String, Vec<Extent>)>, DriveError> {
    let chunks = Chunks::read(reader)?;
    let end = reader.blocks() * BLOCK;
    let mut supers = Blocks::default();
    for copy in COPIES.into_iter().filter(|at| at + BLOCK <= end) {
        supers.add_bytes(copy, BLOCK);
    }
    let [mut system, mut metadata] = [Blocks::default(), Blocks::default()];
    for chunk in &chunks.chunks {
        // In mixed chunks, nodes are found when they are written.
        let into = match chunk.kind & (DATA | SYSTEM | METADATA) {
            SYSTEM => &mut system,
            METADATA => &mut metadata,
            _ => continue,
        };
        for at in chunk.at.into_iter().flatten() {
            if at.checked_add(chunk.len).is_none_or(|last| last > end) {
                let place = format!("the chunk at {}", chunk.logical);
                return Err(bad(place, format!("a place below {end}"), at));
            }
            into.add_bytes(at, chunk.len);
        }
    }
    let all = [
        ("system chunks", system),
        ("metadata chunks", metadata),
        ("superblocks", supers),
    ];
    named(reader, all)
}

/// Tells nodes from other blocks, and by the tree they belong to.
#[derive(Default)]
pub(super) struct Sniff {
    identity: Option<Identity>,
}

impl Sniff {
    pub(super) fn new(identity: Option<Identity>) -> Sniff {
        Sniff { identity }
    }

    /// What the node is that begins with the block written at `lba`, and its size in blocks.
    pub(super) fn look(&mut self, lba: u64, block: &[u8]) -> Option<(&'static str, u64)> {
        if lba == SUPER / BLOCK {
            self.identity = Identity::parse(block).or(self.identity);
            return None;
        }
        let identity = self.identity.as_ref()?;
        if array::<16>(block, 32) != identity.uuid || is(block) {
            return None;
        }
        let (logical, items, level) = (le64(block, 48), le32(block, 96), block[100]);
        if logical % BLOCK != 0 || level > 7 || u64::from(items) > identity.node / 25 {
            return None;
        }
        let name = match le64(block, 88) {
            1 => "root tree",
            2 => "extent tree",
            3 => "chunk tree",
            4 => "device tree",
            7 => "checksum tree",
            10 => "free space tree",
            11 => "block group tree",
            // The log of a subvolume, and the tree of such logs.
            0xFFFF_FFFF_FFFF_FFFA => "journal",
            5 | 256.. => "file trees",
            _ => "other trees",
        };
        Some((name, identity.node / BLOCK))
    }
}
