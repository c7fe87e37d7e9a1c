//! Where XFS has what is no file: headers of allocation groups, the log, btrees and inodes.
//!
//! ```text
//! group: │ SB │ AGF │ AGI │ AGFL │ … btrees, inode chunks, directories, data, anywhere … │
//!               │     └▶ inode btrees ─▶ chunks of 64 inodes
//!               └▶ btrees of free space, reverse map, reference counts
//! log:   within one group
//! ```
//!
//! Two ways lead to them. [`regions`] reads an image from its superblock on: group headers, log,
//! the groups' btrees, and inode chunks. [`Sniff`] looks at each block when it is written: metadata
//! of version 5 describes itself with a magic number, the file system's UUID and its own place, so
//! it is told from file data even where only the log knows yet that it is metadata. Directories,
//! extent btrees and extended attributes are found in this way only.
//!
//! Structures are those of *XFS Algorithms & Data Structures* (3rd edition, kernel.org) and of the
//! kernel's `fs/xfs/libxfs/xfs_format.h`, `xfs_da_format.h`. Not read: version 4, a log on another
//! device, a realtime section, blocks that are not 4 KiB; all but the realtime section are errors.

use super::bytes::{BLOCK, Blocks, Reader, array, bad, be16, be32, be64};
use super::found::named;
use crate::error::DriveError;
use crate::recording::Extent;

const SHORT_HEADER: usize = 56;
const INODES_PER_CHUNK: u64 = 64;

/// Whether an image's first bytes have an XFS superblock.
pub(super) fn is(head: &[u8]) -> bool {
    head.starts_with(b"XFSB")
}

/// What of the superblock is needed to find the rest.
pub(super) struct Geometry {
    uuid: [u8; 16],
    blocks: u64,
    group_blocks: u64,
    groups: u64,
    sector: u64,
    inode_size: u64,
    /// log2 of the blocks of a group, rounded up: where group numbers begin in block numbers.
    group_log: u32,
    /// log2 of the inodes in a block.
    inodes_log: u32,
    log_start: u64,
    log_blocks: u64,
}

impl Geometry {
    /// Reads a superblock of which there are at least 264 bytes.
    pub(super) fn parse(sb: &[u8], blocks: u64) -> Result<Geometry, DriveError> {
        let place = "the superblock of XFS";
        if !is(sb) {
            return Err(bad(
                place,
                "the magic XFSB",
                format!("{:x?}", array::<4>(sb, 0)),
            ));
        }
        if be16(sb, 100) & 0xF != 5 {
            return Err(bad(place, "version 5", be16(sb, 100) & 0xF));
        }
        if be32(sb, 4) != BLOCK as u32 {
            return Err(bad(place, "blocks of 4096 bytes", be32(sb, 4)));
        }
        let own_uuid = be32(sb, 216) & 0x4 != 0;
        let geometry = Geometry {
            uuid: array(sb, if own_uuid { 248 } else { 32 }),
            blocks: be64(sb, 8),
            group_blocks: be32(sb, 84).into(),
            groups: be32(sb, 88).into(),
            sector: be16(sb, 102).into(),
            inode_size: be16(sb, 104).into(),
            group_log: sb[124].into(),
            inodes_log: sb[123].into(),
            log_start: be64(sb, 48),
            log_blocks: be32(sb, 96).into(),
        };
        let g = &geometry;
        let sound = (1..=blocks).contains(&g.blocks)
            && (1..=1 << 31).contains(&g.group_blocks)
            && g.groups == g.blocks.div_ceil(g.group_blocks)
            && (512..=BLOCK).contains(&g.sector)
            && (256..=2048).contains(&g.inode_size)
            && g.group_log < 32
            && g.group_blocks <= 1 << g.group_log
            && g.inodes_log < 8
            && g.inode_size << g.inodes_log == BLOCK;
        if !sound {
            let found = format!(
                "{} blocks, {} groups of {}, sectors of {} and inodes of {} bytes",
                g.blocks, g.groups, g.group_blocks, g.sector, g.inode_size
            );
            return Err(bad(place, "a possible geometry", found));
        }
        if g.log_start == 0 {
            return Err(bad(
                place,
                "a log inside of the file system",
                "one on another device",
            ));
        }
        Ok(geometry)
    }

    /// The block on the disk of a block of a group.
    fn block(&self, group: u64, block: u64) -> Option<u64> {
        let lba = group.checked_mul(self.group_blocks)?.checked_add(block)?;
        (block < self.group_blocks && lba < self.blocks).then_some(lba)
    }

    fn inode_block(&self, inode: u64) -> Option<u64> {
        let block = inode >> self.inodes_log;
        self.block(block >> self.group_log, block & ((1 << self.group_log) - 1))
    }
}

#[derive(Default)]
struct Found {
    headers: Blocks,
    free: Blocks,
    inode_trees: Blocks,
    inodes: Blocks,
    maps: Blocks,
}

/// Where what is no file lies, as far as it hangs from the group headers.
pub(super) fn regions(reader: &mut Reader<'_>) -> Result<Vec<(String, Vec<Extent>)>, DriveError> {
    let sb = reader.read("the superblock of XFS", 0, BLOCK)?;
    let geometry = Geometry::parse(&sb, reader.blocks())?;
    let mut found = Found::default();
    for group in 0..geometry.groups {
        let at = group * geometry.group_blocks * BLOCK;
        let heads = reader.read("the headers of a group of XFS", at, 4 * geometry.sector)?;
        found.headers.add_bytes(at, 4 * geometry.sector);
        let sector = geometry.sector as usize;
        let (agf, agi) = (&heads[sector..2 * sector], &heads[2 * sector..3 * sector]);
        for (head, magic) in [(agf, b"XAGF"), (agi, b"XAGI")] {
            if !head.starts_with(magic) {
                let place = format!("the headers of group {group}");
                let expected = String::from_utf8_lossy(magic);
                return Err(bad(place, expected, format!("{:x?}", array::<4>(head, 0))));
            }
        }
        let mut walk = Walk {
            reader,
            geometry: &geometry,
            group,
        };
        walk.tree(Tree::of(agf, 16, 28, 8), &mut found.free, None)?;
        walk.tree(Tree::of(agf, 20, 32, 8), &mut found.free, None)?;
        walk.tree(Tree::of(agf, 24, 36, 40), &mut found.maps, None)?;
        walk.tree(Tree::of(agf, 88, 92, 4), &mut found.maps, None)?;
        let inodes = Some(&mut found.inodes);
        walk.tree(Tree::of(agi, 20, 24, 4), &mut found.inode_trees, inodes)?;
        walk.tree(Tree::of(agi, 328, 332, 4), &mut found.inode_trees, None)?;
    }
    let group = geometry.log_start >> geometry.group_log;
    let block = geometry.log_start & ((1 << geometry.group_log) - 1);
    let log = geometry
        .block(group, block)
        .filter(|b| b.saturating_add(geometry.log_blocks) <= geometry.blocks);
    let log =
        log.ok_or_else(|| bad("the log of XFS", "a place on the disk", geometry.log_start))?;
    let mut journal = Blocks::default();
    journal.add(log, geometry.log_blocks);
    let all = [
        ("group headers", found.headers),
        ("journal", journal),
        ("free space btrees", found.free),
        ("inode btrees", found.inode_trees),
        ("inodes", found.inodes),
        ("reverse maps", found.maps),
    ];
    named(reader, all)
}

/// A btree of a group; root 0 means that there is none.
#[derive(Clone, Copy)]
struct Tree {
    root: u64,
    /// Levels, the leaves included.
    levels: u32,
    key: usize,
}

impl Tree {
    fn of(header: &[u8], root: usize, levels: usize, key: usize) -> Tree {
        Tree {
            root: be32(header, root).into(),
            levels: be32(header, levels),
            key,
        }
    }
}

struct Walk<'a, 'b> {
    reader: &'a mut Reader<'b>,
    geometry: &'a Geometry,
    group: u64,
}

impl Walk<'_, '_> {
    fn tree(
        &mut self,
        tree: Tree,
        own: &mut Blocks,
        inodes: Option<&mut Blocks>,
    ) -> Result<(), DriveError> {
        if tree.root == 0 || tree.levels == 0 {
            return Ok(());
        }
        if tree.levels > 9 {
            let place = format!("a btree of group {}", self.group);
            return Err(bad(place, "at most 9 levels", tree.levels));
        }
        let mut leaves = Vec::new();
        self.node(tree, tree.root, tree.levels - 1, own, &mut leaves)?;
        if let Some(inodes) = inodes {
            for leaf in leaves {
                self.chunks(&leaf, inodes);
            }
        }
        Ok(())
    }

    fn node(
        &mut self,
        tree: Tree,
        block: u64,
        level: u32,
        own: &mut Blocks,
        leaves: &mut Vec<Vec<u8>>,
    ) -> Result<(), DriveError> {
        let place = || format!("a btree of group {}", self.group);
        let lba = self.geometry.block(self.group, block);
        let lba = lba.ok_or_else(|| bad(place(), "a block of the group", block))?;
        let node = self.reader.read("a btree of XFS", lba * BLOCK, BLOCK)?;
        if u32::from(be16(&node, 4)) != level || be64(&node, 16) != lba * BLOCK / 512 {
            let found = format!("level {} of block {}", be16(&node, 4), be64(&node, 16) / 8);
            return Err(bad(place(), format!("level {level} of block {lba}"), found));
        }
        own.add(lba, 1);
        if level == 0 {
            leaves.push(node);
            return Ok(());
        }
        let most = (BLOCK as usize - SHORT_HEADER) / (tree.key + 4);
        let records = usize::from(be16(&node, 6));
        if records > most {
            return Err(bad(place(), format!("at most {most} records"), records));
        }
        for record in 0..records {
            let child = be32(&node, SHORT_HEADER + most * tree.key + record * 4);
            self.node(tree, child.into(), level - 1, own, leaves)?;
        }
        Ok(())
    }

    /// The inode chunks of a leaf of the inode btree. Damaged records are passed over.
    fn chunks(&self, leaf: &[u8], inodes: &mut Blocks) {
        let records = usize::from(be16(leaf, 6));
        for record in leaf[SHORT_HEADER..].chunks_exact(16).take(records) {
            let first = u64::from(be32(record, 0));
            // A bit for each four inodes that a sparse chunk lacks.
            let holes = be16(record, 4);
            for part in (0..16).filter(|part| holes >> part & 1 == 0) {
                let inode = first + part * (INODES_PER_CHUNK / 16);
                let block = inode >> self.geometry.inodes_log;
                if let Some(lba) = self.geometry.block(self.group, block) {
                    let bytes = INODES_PER_CHUNK / 16 * self.geometry.inode_size;
                    let within =
                        (inode & ((1 << self.geometry.inodes_log) - 1)) * self.geometry.inode_size;
                    inodes.add_bytes(lba * BLOCK + within, bytes);
                }
            }
        }
    }
}

/// Tells metadata from other blocks by their contents.
#[derive(Default)]
pub(super) struct Sniff {
    geometry: Option<Geometry>,
}

impl Sniff {
    pub(super) fn new(geometry: Option<Geometry>) -> Sniff {
        Sniff { geometry }
    }

    /// What a whole block that is about to be written at `lba` holds.
    pub(super) fn look(&mut self, lba: u64, block: &[u8], blocks: u64) -> Option<&'static str> {
        if lba == 0 && is(block) {
            self.geometry = Geometry::parse(block, blocks).ok();
            return None;
        }
        let geometry = self.geometry.as_ref()?;
        let (name, place, uuid) = kind(block)?;
        if name == "inodes" {
            let inode = be64(block, 152);
            let here = geometry.inode_block(inode) == Some(lba);
            return (here && array::<16>(block, 160) == geometry.uuid).then_some(name);
        }
        let here = be64(block, place) == lba * (BLOCK / 512);
        (here && array::<16>(block, uuid) == geometry.uuid).then_some(name)
    }
}

/// What a block's magic number says, and where such a block has its own place and the UUID.
fn kind(block: &[u8]) -> Option<(&'static str, usize, usize)> {
    let found = match &array::<4>(block, 0) {
        b"AB3B" | b"AB3C" => ("free space btrees", 16, 32),
        b"IAB3" | b"FIB3" => ("inode btrees", 16, 32),
        b"RMB3" | b"R3FC" => ("reverse maps", 16, 32),
        b"BMA3" => ("extent btrees", 24, 40),
        b"XDB3" | b"XDD3" | b"XDF3" => ("directories", 8, 24),
        b"XSLM" => ("symbolic links", 40, 16),
        b"XARM" => ("extended attributes", 40, 16),
        [b'I', b'N', ..] if block.get(4) == Some(&3) => ("inodes", 0, 160),
        _ => match be16(block, 8) {
            0x3DF1 | 0x3DFF | 0x3EBE => ("directories", 16, 32),
            0x3BEE => ("extended attributes", 16, 32),
            _ => return None,
        },
    };
    Some(found)
}
