//! Reads the pages on a device, block by block, in the spec's terms.
//!
//! ```text
//! page:  [slot 0: lsn .. v | v | ..][log block: base, lsn][slot 1: lsn .. v | v | ..]
//!        v: the version of the block's record
//! ```
//!
//! In a page only the values of those records, the LSN and what depends on them change, so a block
//! is identified by its LSN or its version.

use treering_engine::device::Image;
use treering_engine::{BLOCK_SIZE, Lba, Lsn, Options};

use super::setup::Page;
use crate::conformance::at_rest::LogFound;
use crate::mirror::wide::page_shadowing::unbounded::Spot;
use treering_oracle::value;

/// The offset of the LSN in a page.
const LSN: usize = 16;
/// The offset of the base's LSN in a log block, and of the page's envelope.
const BASE: usize = 16;
const ENVELOPE: usize = 32;

/// A block of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// A block of zeros.
    Zeros,
    /// The first block of a slot, with this LSN.
    First(Lsn),
    /// Another block of a slot, with this version.
    Segment(u64),
    /// A log block, with the LSN of the base image and the LSN of the page with the log block
    /// applied.
    Log(Lsn, Lsn),
}

/// The content of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The log.
    pub log: LogFound,
    /// The blocks of every page.
    pub pages: Vec<Vec<(Spot, Block)>>,
}

/// Where the blocks of the pages are.
#[derive(Clone, Debug)]
pub(super) struct Places {
    blocks: usize,
    log: bool,
    /// For each page, the first block of slot 0, and the offset of the version in each block.
    pages: Vec<(Lba, Vec<usize>)>,
}

impl Places {
    pub(super) fn new(options: &Options) -> Places {
        Places {
            blocks: options.page_size / BLOCK_SIZE,
            log: options.mod_log.is_some(),
            pages: Vec::new(),
        }
    }

    /// The distance from slot 0 to slot 1, in blocks.
    pub(super) fn behind(&self) -> u64 {
        self.blocks as u64 + u64::from(self.log)
    }

    pub(super) fn add(&mut self, page: &Page, slot_0: Lba) {
        let versions = page.records.iter().map(|(_, at)| at % BLOCK_SIZE);
        self.pages.push((slot_0, versions.collect()));
    }

    pub(super) fn read(&self, image: &Image) -> Vec<Vec<(Spot, Block)>> {
        let page = |(slot_0, versions): &(Lba, Vec<usize>)| {
            let at = |blocks: u64| read(image, Lba(slot_0.0 + blocks));
            let mut found = Vec::new();
            for slot in 0..2 {
                for (i, version) in versions.iter().enumerate() {
                    let bytes = at(u64::from(slot) * self.behind() + i as u64);
                    let block = match i {
                        _ if is_zero(&bytes) => Block::Zeros,
                        0 => Block::First(lsn(&bytes, LSN)),
                        _ => Block::Segment(value::version(&bytes[*version..]).unwrap_or(0)),
                    };
                    found.push((Spot::Slot(slot, i), block));
                }
            }
            let log = self.log.then(|| at(self.blocks as u64));
            let block = match log.filter(|bytes| !is_zero(bytes)) {
                Some(bytes) => Block::Log(lsn(&bytes, BASE), lsn(&bytes, ENVELOPE + LSN)),
                None => Block::Zeros,
            };
            found.push((Spot::Log, block));
            found
        };
        self.pages.iter().map(page).collect()
    }
}

fn read(image: &Image, lba: Lba) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK_SIZE];
    image.read(lba, &mut bytes);
    bytes
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| *b == 0)
}

fn lsn(bytes: &[u8], at: usize) -> Lsn {
    let field = bytes[at..at + 8].try_into().expect("eight bytes");
    Lsn(u64::from_le_bytes(field))
}
