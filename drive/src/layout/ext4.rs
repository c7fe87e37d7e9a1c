//! Where ext4 has what is no file: superblocks and group descriptors, bitmaps, inode tables, the
//! journal, directories, extent trees and extended attributes.
//!
//! ```text
//! group: │ superblock │ descriptors │ reserved │ bitmaps │ inode table │ data, directories, … │
//!          (in some)    (in some)     for growth            │
//!                                                            └▶ inode ─▶ extent tree ─▶ blocks
//! ```
//!
//! Structures are those of the kernel's `Documentation/filesystems/ext4/` (`super.rst`,
//! `group_descr.rst`, `inodes.rst`, `ifork.rst`). Every inode in use is visited.
//!
//! While the file system is mounted, the image is behind the journal, so what is read here is what
//! was there at the last checkpoint; after the unmount it is exact. Not read: block maps of inodes
//! without extents (ext4 makes none by default), `meta_bg`, blocks that are not 4 KiB, and journals
//! on another device; the last three are errors.

use super::bytes::{BLOCK, Blocks, Reader, array, bad, le16, le32};
use super::found::named;
use crate::error::DriveError;
use crate::recording::Extent;

const MAGIC: u16 = 0xEF53;
const COMPAT_JOURNAL: u32 = 0x4;
const COMPAT_SPARSE_SUPER2: u32 = 0x200;
const INCOMPAT_META_BG: u32 = 0x10;
const INCOMPAT_64BIT: u32 = 0x80;
const RO_SPARSE_SUPER: u32 = 0x1;
const INODE_EXTENTS: u32 = 0x8_0000;
const INODE_INLINE: u32 = 0x1000_0000;
const ROOT_INODE: u64 = 2;

/// Whether an image's first bytes have an ext4 superblock. `head` has at least 4 KiB.
pub(super) fn is(head: &[u8]) -> bool {
    le16(head, 1024 + 0x38) == MAGIC
}

struct Geometry {
    blocks: u64,
    groups: u64,
    blocks_per_group: u64,
    inodes_per_group: u64,
    inode_size: u64,
    descriptor_size: u64,
    reserved_descriptors: u64,
    first_inode: u64,
    journal_inode: u64,
    backups: Backups,
}

/// Which groups have a copy of the superblock.
enum Backups {
    All,
    Powers,
    Two([u64; 2]),
}

impl Backups {
    fn has(&self, group: u64) -> bool {
        match self {
            Backups::All => true,
            Backups::Two(two) => group == 0 || two.contains(&group),
            Backups::Powers => {
                let power = |base: u64| {
                    std::iter::successors(Some(base), |p| p.checked_mul(base))
                        .take_while(|p| *p <= group)
                        .any(|p| p == group)
                };
                group < 2 || power(3) || power(5) || power(7)
            }
        }
    }
}

impl Geometry {
    fn read(reader: &mut Reader<'_>) -> Result<Geometry, DriveError> {
        let place = "the superblock of ext4";
        let sb = reader.read(place, 1024, 1024)?;
        if le16(&sb, 0x38) != MAGIC {
            return Err(bad(
                place,
                "the magic 0xEF53",
                format!("{:#x}", le16(&sb, 0x38)),
            ));
        }
        let (compat, incompat) = (le32(&sb, 0x5C), le32(&sb, 0x60));
        if le32(&sb, 0x18) != 2 {
            return Err(bad(
                place,
                "blocks of 4 KiB",
                format!("1 KiB << {}", le32(&sb, 0x18)),
            ));
        }
        if incompat & INCOMPAT_META_BG != 0 {
            return Err(bad(place, "no feature meta_bg", "it"));
        }
        if compat & COMPAT_JOURNAL != 0 && le32(&sb, 0xE0) == 0 {
            return Err(bad(
                place,
                "a journal inside of the file system",
                "one on another device",
            ));
        }
        let wide = incompat & INCOMPAT_64BIT != 0;
        let high = if wide { u64::from(le32(&sb, 0x150)) } else { 0 };
        let blocks = high << 32 | u64::from(le32(&sb, 0x4));
        let blocks_per_group = u64::from(le32(&sb, 0x20));
        let inodes_per_group = u64::from(le32(&sb, 0x28));
        let inode_size = u64::from(le16(&sb, 0x58));
        let descriptor_size = if wide { u64::from(le16(&sb, 0xFE)) } else { 32 };
        let sound = (1..=reader.blocks()).contains(&blocks)
            && (1..=BLOCK * 8).contains(&blocks_per_group)
            && (1..=BLOCK * 8).contains(&inodes_per_group)
            && (128..=BLOCK).contains(&inode_size)
            && inode_size.is_power_of_two()
            && (32..=1024).contains(&descriptor_size);
        if !sound {
            let found = format!(
                "{blocks} blocks, {blocks_per_group} and {inodes_per_group} inodes of \
                 {inode_size} bytes a group, descriptors of {descriptor_size} bytes"
            );
            return Err(bad(place, "a possible geometry", found));
        }
        Ok(Geometry {
            blocks,
            groups: blocks.div_ceil(blocks_per_group),
            blocks_per_group,
            inodes_per_group,
            inode_size,
            descriptor_size,
            reserved_descriptors: u64::from(le16(&sb, 0xCE)),
            first_inode: u64::from(le32(&sb, 0x54)).max(11),
            journal_inode: u64::from(le32(&sb, 0xE0)),
            backups: if compat & COMPAT_SPARSE_SUPER2 != 0 {
                Backups::Two([le32(&sb, 0x24C).into(), le32(&sb, 0x250).into()])
            } else if le32(&sb, 0x64) & RO_SPARSE_SUPER != 0 {
                Backups::Powers
            } else {
                Backups::All
            },
        })
    }

    fn descriptor_blocks(&self) -> u64 {
        (self.groups * self.descriptor_size).div_ceil(BLOCK)
    }
}

/// One group descriptor.
struct Group {
    block_bitmap: u64,
    inode_bitmap: u64,
    inode_table: u64,
    /// Inodes at the beginning of the table that may be in use.
    used: u64,
}

impl Group {
    fn parse(bytes: &[u8], inodes_per_group: u64) -> Group {
        let wide = bytes.len() >= 64;
        let number = |low, high| {
            let high = if wide {
                u64::from(le32(bytes, high))
            } else {
                0
            };
            high << 32 | u64::from(le32(bytes, low))
        };
        let high = if wide {
            u64::from(le16(bytes, 0x32))
        } else {
            0
        };
        let unused = high << 16 | u64::from(le16(bytes, 0x1C));
        let never_used = le16(bytes, 0x12) & 1 != 0;
        Group {
            block_bitmap: number(0, 0x20),
            inode_bitmap: number(4, 0x24),
            inode_table: number(8, 0x28),
            used: match never_used {
                true => 0,
                false => inodes_per_group.saturating_sub(unused),
            },
        }
    }
}

#[derive(Default)]
struct Found {
    supers: Blocks,
    bitmaps: Blocks,
    tables: Blocks,
    journal: Blocks,
    directories: Blocks,
    trees: Blocks,
    attributes: Blocks,
    others: Blocks,
}

/// Where what is no file lies.
pub(super) fn regions(reader: &mut Reader<'_>) -> Result<Vec<(String, Vec<Extent>)>, DriveError> {
    let geometry = Geometry::read(reader)?;
    let place = "the group descriptors of ext4";
    let len = geometry.groups * geometry.descriptor_size;
    let descriptors = reader.read(place, BLOCK, len)?;
    let mut found = Found::default();
    let each = descriptors.chunks_exact(geometry.descriptor_size as usize);
    for (number, bytes) in (0..).zip(each) {
        let group = Group::parse(bytes, geometry.inodes_per_group);
        if geometry.backups.has(number) {
            let blocks = 1 + geometry.descriptor_blocks() + geometry.reserved_descriptors;
            found.supers.add(number * geometry.blocks_per_group, blocks);
        }
        found.bitmaps.add(group.block_bitmap, 1);
        found.bitmaps.add(group.inode_bitmap, 1);
        let table = geometry.inodes_per_group * geometry.inode_size;
        found.tables.add(group.inode_table, table.div_ceil(BLOCK));
        visit_inodes(reader, &geometry, number, &group, &mut found)?;
    }
    let all = [
        ("superblocks", found.supers),
        ("bitmaps", found.bitmaps),
        ("inode tables", found.tables),
        ("journal", found.journal),
        ("directories", found.directories),
        ("extent trees", found.trees),
        ("extended attributes", found.attributes),
        ("other metadata", found.others),
    ];
    named(reader, all)
}

fn visit_inodes(
    reader: &mut Reader<'_>,
    geometry: &Geometry,
    number: u64,
    group: &Group,
    found: &mut Found,
) -> Result<(), DriveError> {
    let place = "an inode table of ext4";
    let len = group.used * geometry.inode_size;
    if len == 0 {
        return Ok(());
    }
    let at = group.inode_table.saturating_mul(BLOCK);
    let table = reader.read(place, at, len)?;
    let inodes = table.chunks_exact(geometry.inode_size as usize);
    let first = number * geometry.inodes_per_group + 1;
    for (number, inode) in (first..).zip(inodes) {
        let (mode, links) = (le16(inode, 0), le16(inode, 0x1A));
        // The journal's inode has a link, too; others without one are being removed.
        if mode == 0 || links == 0 {
            continue;
        }
        let high = u64::from(le16(inode, 0x76));
        let attributes = high << 32 | u64::from(le32(inode, 0x68));
        if (1..geometry.blocks).contains(&attributes) {
            found.attributes.add(attributes, 1);
        }
        let flags = le32(inode, 0x20);
        if flags & INODE_EXTENTS == 0 || flags & INODE_INLINE != 0 {
            continue;
        }
        let own = &mut found.trees;
        let data = match (mode & 0xF000, number) {
            (_, n) if n == geometry.journal_inode => Some(&mut found.journal),
            (0x4000, _) => Some(&mut found.directories),
            (_, n) if n < geometry.first_inode && n != ROOT_INODE => Some(&mut found.others),
            (0xA000, _) => Some(&mut found.others),
            _ => None,
        };
        let root: [u8; 60] = array(inode, 0x28);
        let walk = Walk {
            geometry,
            inode: number,
        };
        walk.node(reader, &root, None, &mut Gather { own, data })?;
    }
    Ok(())
}

/// Where the blocks of an extent tree, and those that it points to, are gathered.
struct Gather<'a> {
    own: &'a mut Blocks,
    data: Option<&'a mut Blocks>,
}

struct Walk<'a> {
    geometry: &'a Geometry,
    inode: u64,
}

impl Walk<'_> {
    /// Visits a node whose depth must be `depth`, or any possible one at the root.
    fn node(
        &self,
        reader: &mut Reader<'_>,
        node: &[u8],
        depth: Option<u16>,
        into: &mut Gather<'_>,
    ) -> Result<(), DriveError> {
        let place = || format!("the extent tree of inode {}", self.inode);
        let (magic, entries, found) = (le16(node, 0), le16(node, 2), le16(node, 6));
        if magic != 0xF30A {
            return Err(bad(place(), "the magic 0xF30A", format!("{magic:#x}")));
        }
        if found > 5 || depth.is_some_and(|depth| depth != found) {
            let expected = depth.map_or("at most 5".into(), |d| d.to_string());
            return Err(bad(place(), format!("depth {expected}"), found));
        }
        if usize::from(entries) > node.len() / 12 - 1 {
            return Err(bad(place(), "entries that fit into the node", entries));
        }
        for entry in node[12..].chunks_exact(12).take(entries.into()) {
            let (block, len) = match found {
                0 => {
                    let start = u64::from(le16(entry, 6)) << 32 | u64::from(le32(entry, 8));
                    // More than 32,768 means: allocated, but not written yet.
                    let len = le16(entry, 4);
                    let len = if len > 32_768 { len - 32_768 } else { len };
                    (start, u64::from(len))
                }
                _ => (
                    u64::from(le16(entry, 8)) << 32 | u64::from(le32(entry, 4)),
                    1,
                ),
            };
            if block.saturating_add(len) > self.geometry.blocks {
                let expected = format!("blocks below {}", self.geometry.blocks);
                return Err(bad(place(), expected, block.saturating_add(len)));
            }
            if found == 0 {
                if let Some(data) = &mut into.data {
                    data.add(block, len);
                }
                continue;
            }
            into.own.add(block, 1);
            let child = reader.read("an extent tree of ext4", block * BLOCK, BLOCK)?;
            self.node(reader, &child, Some(found - 1), into)?;
        }
        Ok(())
    }
}
