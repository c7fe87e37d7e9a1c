//! The page stores of a played run: which blocks a batch of pages writes and gives up.
//!
//! | store | a page written whole | with it |
//! |---|---|---|
//! | in place | journal, then its place | – |
//! | copy-on-write, table at each flush | the lowest free place | its table block; the old place is trimmed |
//! | copy-on-write, table at checkpoints | the lowest free place | the old place is kept if the table on the drive names it |
//! | shadowing | the other half of its place | – |
//!
//! With shadowing, the old half is trimmed once the new one is durable; so is the log block behind
//! a page that was written whole ([`super::later`]).
//!
//! With a modification log, a page that differs little from its image writes its log block only
//! (B⁻-tree §3.2). These are the rules of `engine/src/pages`, without bytes, flushes and crashes.

use treering_engine::{IoClass, Options, PageStoreKind, TablePersist};

use super::blocks::Blocks;
use super::later::Fresh;
use super::layout::{Places, Regions, TABLE_ENTRIES};
use super::table::TableBlocks;
use crate::csd::Codec;

/// Marks a page that has no place yet.
const NOWHERE: u64 = u64::MAX;
/// Marks a name without a page.
const NOBODY: u32 = u32::MAX;

/// A page to be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PageWrite {
    pub(super) page: u32,
    /// Whether only its log block is written.
    pub(super) is_delta: bool,
    /// Bytes of each block after compression.
    pub(super) stored: f64,
}

/// The place and the name of a page that does not exist any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Detached {
    at: u64,
    name: u32,
}

/// The pages on the drive.
pub(super) struct Homes {
    kind: PageStoreKind,
    has_mod_log: bool,
    regions: Regions,
    places: Places,
    /// Place of each page's image; for shadowing, twice the place and which half.
    at: Vec<u64>,
    /// Names of pages in the order of their creation, for the page table.
    names: Vec<u32>,
    free_names: Places,
    /// The page of each name.
    named: Vec<u32>,
    /// Sizes of the page table's blocks, on a drive that compresses.
    tables: Option<TableBlocks>,
    journal_half: u64,
    /// Copy-on-write with a table at checkpoints: places that the table on the drive names.
    persisted: Vec<bool>,
    held: Vec<u64>,
    /// Table blocks that changed since they were written.
    changed_blocks: Vec<bool>,
    snapshot: Vec<u64>,
    superblock: u64,
    /// Pages whose old images or log blocks are not trimmed yet.
    fresh: Fresh,
}

impl Homes {
    /// An empty store for pages `0..pages`.
    pub(super) fn new(
        options: &Options,
        regions: Regions,
        (pages, codec): (usize, Option<Codec>),
    ) -> Homes {
        let has_table = options.store.table().is_some();
        let tables = codec.filter(|_| has_table).map(TableBlocks::new);
        let lazily = options.store.table() == Some(TablePersist::Checkpoint);
        let table_blocks = match lazily {
            true => pages as u64 / TABLE_ENTRIES + 1,
            false => 0,
        };
        Homes {
            kind: options.store,
            has_mod_log: options.mod_log.is_some(),
            regions,
            places: Places::new(regions.places),
            at: vec![NOWHERE; pages],
            names: vec![0; pages],
            free_names: Places::new(u64::from(u32::MAX)),
            named: Vec::new(),
            tables,
            journal_half: 0,
            persisted: vec![
                false;
                if lazily {
                    regions.places as usize + 1
                } else {
                    0
                }
            ],
            held: Vec::new(),
            changed_blocks: vec![false; table_blocks as usize],
            snapshot: Vec::new(),
            superblock: 0,
            fresh: Fresh::new(pages),
        }
    }

    /// The device was flushed.
    pub(super) fn flushed(&mut self) {
        self.fresh.flushed();
    }

    /// Trims what newer images, durable by now, replace.
    fn settle(&mut self, blocks: &mut Blocks<'_>) {
        for page in self.fresh.settle() {
            if self.kind == PageStoreKind::Shadow {
                let at = self.at[page as usize];
                blocks.trim(self.image_at(at ^ 1), self.regions.per_page);
            }
            if self.has_mod_log {
                blocks.trim(self.log_block(page), 1);
            }
        }
    }

    /// Names a new page. Where the name is the place, that is taken now.
    pub(super) fn create(&mut self, page: u32) {
        let name = self.free_names.take() as u32;
        self.names[page as usize] = name;
        if self.named.len() <= name as usize {
            self.named.resize(name as usize + 1, NOBODY);
        }
        self.named[name as usize] = page;
        match self.kind {
            PageStoreKind::InPlace => self.at[page as usize] = self.places.take(),
            PageStoreKind::Shadow => self.at[page as usize] = 2 * self.places.take(),
            PageStoreKind::CopyOnWrite { .. } => {}
        }
    }

    /// Takes a page out of the store that was merged into its neighbour. Its place and name are
    /// free once that is durable.
    pub(super) fn detach(&mut self, page: u32) -> Detached {
        self.fresh.forget(page);
        if let Some(named) = self.named.get_mut(self.names[page as usize] as usize) {
            *named = NOBODY;
        }
        Detached {
            at: std::mem::replace(&mut self.at[page as usize], NOWHERE),
            name: self.names[page as usize],
        }
    }

    /// Frees the place and the name of such a page.
    pub(super) fn free_page(&mut self, page: Detached, blocks: &mut Blocks<'_>) {
        let Detached { at, name } = page;
        self.free_names.give_back(name.into());
        let block = u64::from(name) / TABLE_ENTRIES;
        match self.kind {
            _ if at == NOWHERE => {}
            PageStoreKind::InPlace => self.free(at, blocks),
            PageStoreKind::Shadow => self.free(at / 2, blocks),
            PageStoreKind::CopyOnWrite { table } => {
                match table {
                    TablePersist::EachFlush => {
                        let size = self.table_bytes(block, blocks.sizes.table);
                        let lba = self.regions.middle + block;
                        blocks.write(lba, 1, IoClass::Extra, size);
                    }
                    TablePersist::Checkpoint => self.changed_blocks[block as usize] = true,
                }
                self.leave(at, blocks);
            }
        }
    }

    /// All pages in the order of their names.
    pub(super) fn pages(&self) -> Vec<u32> {
        let named = self.named.iter().copied();
        named.filter(|page| *page != NOBODY).collect()
    }

    /// Bytes of a block of the page table after compression; `usual` if that is not known.
    fn table_bytes(&mut self, block: u64, usual: f64) -> f64 {
        let Some(tables) = &mut self.tables else {
            return usual;
        };
        let first = (block * TABLE_ENTRIES) as usize;
        let named = self.named.get(first..).unwrap_or_default().iter();
        let place = |page: &u32| self.at.get(*page as usize).copied();
        let entry = |page| {
            place(page)
                .filter(|at| *at != NOWHERE)
                .map_or(0, |at| at + 1)
        };
        tables.size(block, named.map(entry))
    }

    /// Number that stands for the page in log records.
    pub(super) fn name(&self, page: u32) -> u64 {
        match self.kind {
            _ if self.at[page as usize] == NOWHERE => u64::from(self.names[page as usize]),
            PageStoreKind::InPlace => self.at[page as usize],
            PageStoreKind::Shadow => self.at[page as usize] / 2,
            PageStoreKind::CopyOnWrite { .. } => u64::from(self.names[page as usize]),
        }
    }

    /// Writes a batch: whole pages first, then log blocks.
    pub(super) fn write(&mut self, batch: &[PageWrite], blocks: &mut Blocks<'_>) {
        self.settle(blocks);
        let whole = || batch.iter().filter(|write| !write.is_delta).copied();
        match self.kind {
            PageStoreKind::InPlace => {
                let pages: Vec<PageWrite> = whole().collect();
                let half = self.regions.journal_pages.max(1) as usize;
                pages
                    .chunks(half)
                    .for_each(|pages| self.write_in_place(pages, blocks));
            }
            PageStoreKind::CopyOnWrite { table } => {
                let pages: Vec<PageWrite> = whole().collect();
                self.write_copies(&pages, table, blocks);
            }
            PageStoreKind::Shadow => whole().for_each(|w| self.write_shadow(w, blocks)),
        }
        for write in batch.iter().filter(|write| write.is_delta) {
            blocks.write(self.log_block(write.page), 1, IoClass::Page, write.stored);
        }
    }

    fn image(&self, page: u32) -> u64 {
        self.image_at(self.at[page as usize])
    }

    /// First block of an image that lies in this place.
    fn image_at(&self, at: u64) -> u64 {
        match self.kind {
            PageStoreKind::Shadow => {
                let behind = self.regions.per_page + u64::from(self.has_mod_log);
                self.regions.place(at / 2) + at % 2 * behind
            }
            _ => self.regions.place(at),
        }
    }

    fn log_block(&self, page: u32) -> u64 {
        let at = self.at[page as usize];
        self.regions.log_block(match self.kind {
            PageStoreKind::Shadow => at / 2,
            _ => at,
        })
    }

    fn write_in_place(&mut self, pages: &[PageWrite], blocks: &mut Blocks<'_>) {
        let Regions {
            per_page, middle, ..
        } = self.regions;
        let start = middle + self.journal_half * self.regions.journal_pages * per_page;
        for (i, write) in (0..).zip(pages) {
            let lba = start + i * per_page;
            blocks.write(lba, per_page, IoClass::Extra, write.stored);
        }
        self.flushed();
        for write in pages {
            blocks.write(
                self.image(write.page),
                per_page,
                IoClass::Page,
                write.stored,
            );
        }
        if self.has_mod_log {
            pages.iter().for_each(|write| self.fresh.write(write.page));
        }
        self.journal_half = 1 - self.journal_half;
    }

    fn write_copies(&mut self, pages: &[PageWrite], table: TablePersist, blocks: &mut Blocks<'_>) {
        if !self.held.is_empty() && !self.places.has(pages.len() as u64) {
            self.write_table(blocks);
        }
        let per_page = self.regions.per_page;
        let new: Vec<u64> = pages.iter().map(|_| self.places.take()).collect();
        for (write, place) in pages.iter().zip(&new) {
            let lba = self.regions.place(*place);
            blocks.write(lba, per_page, IoClass::Page, write.stored);
        }
        for (PageWrite { page, .. }, place) in pages.iter().zip(new) {
            let old = std::mem::replace(&mut self.at[*page as usize], place);
            let block = self.name(*page) / TABLE_ENTRIES;
            match table {
                TablePersist::EachFlush => {
                    let size = self.table_bytes(block, blocks.sizes.table);
                    blocks.write(self.regions.middle + block, 1, IoClass::Extra, size);
                }
                TablePersist::Checkpoint => self.changed_blocks[block as usize] = true,
            }
            if old != NOWHERE {
                self.leave(old, blocks);
            }
        }
    }

    /// Frees a place, unless the table on the drive names it: then it is free with the next one.
    fn leave(&mut self, place: u64, blocks: &mut Blocks<'_>) {
        if self.persisted.get(place as usize) == Some(&true) {
            self.held.push(place);
        } else {
            self.free(place, blocks);
        }
    }

    /// Writes the changed blocks of the page table, and frees what the old table named.
    fn write_table(&mut self, blocks: &mut Blocks<'_>) {
        for block in 0..self.changed_blocks.len() {
            if std::mem::take(&mut self.changed_blocks[block]) {
                let block = block as u64;
                let size = self.table_bytes(block, blocks.sizes.table);
                blocks.write(self.regions.middle + block, 1, IoClass::Extra, size);
            }
        }
        self.persisted.fill(false);
        for at in self.at.iter().filter(|at| **at != NOWHERE) {
            if let Some(named) = self.persisted.get_mut(*at as usize) {
                *named = true;
            }
        }
        for place in std::mem::take(&mut self.held) {
            blocks.trim(self.regions.place(place), self.regions.per_place);
            self.places.give_back(place);
        }
    }

    fn write_shadow(&mut self, PageWrite { page, stored, .. }: PageWrite, blocks: &mut Blocks<'_>) {
        // Until the newest image is durable, the other one is needed.
        if !self.fresh.has(page) {
            self.at[page as usize] ^= 1;
        }
        let per_page = self.regions.per_page;
        blocks.write(self.image(page), per_page, IoClass::Page, stored);
        self.fresh.write(page);
    }

    /// Ends a checkpoint before its last log flush: `chunks` pages of an index snapshot, and the
    /// page table.
    pub(super) fn write_snapshot(&mut self, chunks: u64, blocks: &mut Blocks<'_>) -> Vec<u64> {
        let new: Vec<u64> = (0..chunks).map(|_| self.places.take()).collect();
        for place in &new {
            let lba = self.regions.place(*place);
            blocks.write(
                lba,
                self.regions.per_page,
                IoClass::Extra,
                blocks.sizes.snapshot,
            );
        }
        match self.kind {
            PageStoreKind::Shadow => self.settle(blocks),
            kind if kind.table() == Some(TablePersist::Checkpoint) => self.write_table(blocks),
            _ => {}
        }
        std::mem::replace(&mut self.snapshot, new)
    }

    /// Writes a superblock; the old snapshot is free then.
    pub(super) fn write_superblock(&mut self, old: Vec<u64>, blocks: &mut Blocks<'_>) {
        self.superblock = 1 - self.superblock;
        blocks.write(self.superblock, 1, IoClass::Extra, blocks.sizes.superblock);
        self.flushed();
        old.into_iter().for_each(|place| self.free(place, blocks));
    }

    /// Whether there are places for a long value of `count` blocks.
    pub(super) fn has_room_for(&mut self, count: u64) -> bool {
        self.places.has(count.div_ceil(self.regions.per_place))
    }

    /// Whether places were ever lacking; if not, a larger drive would have been written the same.
    pub(super) fn lacked_room(&self) -> bool {
        self.places.lacked()
    }

    /// Takes places for a long value of `count` blocks, and writes it.
    pub(super) fn write_value(&mut self, count: u64, blocks: &mut Blocks<'_>) -> Vec<u64> {
        let places = count.div_ceil(self.regions.per_place);
        let taken: Vec<u64> = (0..places).map(|_| self.places.take()).collect();
        let mut left = count;
        for place in &taken {
            let some = left.min(self.regions.per_place);
            let lba = self.regions.place(*place);
            blocks.write(lba, some, IoClass::Page, blocks.sizes.overflow);
            left -= some;
        }
        taken
    }

    /// Trims and frees a place.
    pub(super) fn free(&mut self, place: u64, blocks: &mut Blocks<'_>) {
        blocks.trim(self.regions.place(place), self.regions.per_place);
        self.places.give_back(place);
    }
}
