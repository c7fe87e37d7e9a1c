//! The kinds of damage to a medium.

use std::fmt;

use treering_engine::device::{Block, Image};
use treering_engine::{BLOCK_SIZE, Lba, Lsn};

use super::store::Built;
use crate::random::Random;

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HarmKind {
    /// A bit flips.
    Flip,
    /// A block reads as zeros.
    Zero,
    /// A block has earlier content.
    Old,
    /// Two blocks are swapped.
    Swap,
    /// A block has the content of another store, which used the device before.
    Foreign,
    /// The medium is truncated.
    Cut,
}

impl HarmKind {
    /// All of them.
    pub const ALL: [HarmKind; 6] = [
        HarmKind::Flip,
        HarmKind::Zero,
        HarmKind::Old,
        HarmKind::Swap,
        HarmKind::Foreign,
        HarmKind::Cut,
    ];
}

impl fmt::Display for HarmKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HarmKind::Flip => "a flipped bit",
            HarmKind::Zero => "a block of zeros",
            HarmKind::Old => "a block with earlier content",
            HarmKind::Swap => "two blocks swapped",
            HarmKind::Foreign => "a block of another store",
            HarmKind::Cut => "a medium cut short",
        })
    }
}

/// Damage to one medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// A bit of a block is flipped.
    Flip {
        /// The block.
        lba: Lba,
        /// The bit, counted from the start of the block.
        bit: usize,
    },
    /// The block reads as zeros.
    Zero(Lba),
    /// The block has the content of an earlier image.
    Old {
        /// The block.
        lba: Lba,
        /// The number of the image, the oldest first.
        image: usize,
    },
    /// The two blocks are swapped.
    Swap(Lba, Lba),
    /// The block has the content of another store.
    Foreign(Lba),
    /// Only this many blocks are left.
    Cut(u64),
}

impl Harm {
    pub(super) fn kind(&self) -> HarmKind {
        match self {
            Harm::Flip { .. } => HarmKind::Flip,
            Harm::Zero(_) => HarmKind::Zero,
            Harm::Old { .. } => HarmKind::Old,
            Harm::Swap(..) => HarmKind::Swap,
            Harm::Foreign(_) => HarmKind::Foreign,
            Harm::Cut(_) => HarmKind::Cut,
        }
    }

    /// The damaged blocks.
    fn blocks(&self) -> Vec<Lba> {
        match *self {
            Harm::Flip { lba, .. }
            | Harm::Zero(lba)
            | Harm::Old { lba, .. }
            | Harm::Foreign(lba) => {
                vec![lba]
            }
            Harm::Swap(a, b) => vec![a, b],
            Harm::Cut(_) => Vec::new(),
        }
    }

    /// The log position from which records may be missing, if this damages the log's last flush.
    pub(super) fn cut_short_at(&self, built: &Built) -> Option<Lsn> {
        let blocks = self.blocks();
        let harmed = blocks.iter().filter_map(|lba| built.last_flush.get(&lba.0));
        harmed.min().copied()
    }

    /// A description for reports.
    pub(super) fn sentence(&self, image: &Image) -> String {
        match *self {
            Harm::Flip { lba, bit } => format!("bit {bit} of {lba}, {}, flipped", name(image, lba)),
            Harm::Zero(lba) => format!("{lba}, {}, read as zeros", name(image, lba)),
            Harm::Old { lba, image: old } => {
                format!(
                    "{lba}, {}, with its content at time {old}",
                    name(image, lba)
                )
            }
            Harm::Swap(a, b) => format!(
                "{a}, {}, and {b}, {}, swapped",
                name(image, a),
                name(image, b)
            ),
            Harm::Foreign(lba) => {
                format!(
                    "{lba}, {}, with the content of another store",
                    name(image, lba)
                )
            }
            Harm::Cut(blocks) => format!("the medium cut after {blocks} blocks"),
        }
    }

    /// The medium after the damage.
    pub(super) fn applied(&self, built: &Built) -> Image {
        let mut image = built.image.clone();
        let mut bytes = vec![0; BLOCK_SIZE];
        match *self {
            Harm::Flip { lba, bit } => {
                image.read(lba, &mut bytes);
                bytes[bit / 8] ^= 1 << (bit % 8);
                image.set(lba, Some(Block::new(&bytes)));
            }
            Harm::Zero(lba) => image.set(lba, None),
            Harm::Old { lba, image: old } => {
                built.past[old].read(lba, &mut bytes);
                image.set(lba, Some(Block::new(&bytes)));
            }
            Harm::Foreign(lba) => {
                built.foreign.read(lba, &mut bytes);
                image.set(lba, Some(Block::new(&bytes)));
            }
            Harm::Swap(a, b) => {
                let mut other = vec![0; BLOCK_SIZE];
                image.read(a, &mut bytes);
                image.read(b, &mut other);
                image.set(a, Some(Block::new(&other)));
                image.set(b, Some(Block::new(&bytes)));
            }
            Harm::Cut(blocks) => {
                let mut left = Image::zeroed(blocks);
                for lba in (0..blocks).map(Lba) {
                    image.read(lba, &mut bytes);
                    left.set(lba, Some(Block::new(&bytes)));
                }
                return left;
            }
        }
        image
    }
}

/// The role of a block, by its content.
fn name(image: &Image, lba: Lba) -> &'static str {
    let mut bytes = vec![0; BLOCK_SIZE];
    image.read(lba, &mut bytes);
    match (lba.0, &bytes[4..8]) {
        (0 | 1, _) => "a superblock",
        (_, b"ISNP") => "a chunk of the index snapshot",
        (_, b"PTAB") => "a block of the page table",
        (_, b"MLOG") => "a modification log",
        _ if &bytes[24..26] == b"TR" => "the first block of a page",
        _ => "a block",
    }
}

/// Picks damage that changes something, mostly to blocks in use. `None` if the pick changes
/// nothing.
pub(super) fn pick(built: &Built, random: &mut Random) -> Option<Harm> {
    // There are two superblocks and many pages.
    let mut lba = || match random.below(20) {
        0 => Lba(random.below(2)),
        _ => built.in_use[random.below(built.in_use.len() as u64) as usize],
    };
    let (a, b) = (lba(), lba());
    let harm = match random.below(22) {
        0..8 => Harm::Flip {
            lba: a,
            bit: random.below(8 * BLOCK_SIZE as u64) as usize,
        },
        8..11 => Harm::Zero(a),
        11..17 => {
            let image = random.below(built.past.len() as u64) as usize;
            let changed = built.changed_since(image);
            let lba = *changed.get(random.below(changed.len().max(1) as u64) as usize)?;
            Harm::Old { lba, image }
        }
        17..19 => Harm::Swap(a, b),
        19..21 => Harm::Foreign(a),
        // A file ends at the end of a block, or it is not a device at all.
        _ => Harm::Cut(random.below(built.image.blocks())),
    };
    let before = built.image.fingerprint();
    (harm.applied(built).fingerprint() != before).then_some(harm)
}
