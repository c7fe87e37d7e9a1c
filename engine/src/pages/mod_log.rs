//! Localized page modification logging (B⁻-tree §3.2), for any page store.
//!
//! A page is divided into segments of Ds bytes. While the segments that differ from the page's
//! image on the device total less than T bytes, write-back writes only these segments, Δ, and the
//! vector f that identifies them. They go to the page's own 4 KiB log block; the rest of that block
//! takes next to no space on a drive that compresses. Loading a page applies Δ to the image. Δ only
//! grows until the page is written whole, which empties it.
//!
//! # The log block, little-endian
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 4 | CRC-32 of bytes 4.., with the store id mixed in |
//! | 4 | 4 | magic `MLOG` |
//! | 8 | 8 | page |
//! | 16 | 8 | LSN of the base: the image that Δ applies to |
//! | 24 | 8 | checksum of the base |
//! | 32 | 28 | the page's envelope after Δ: checksum, name, LSN, layout |
//! | 60 | 2 | Ds |
//! | 62 | 2 | bytes of Δ |
//! | 64 | … | f: one bit per segment, in whole bytes; behind it Δ, then zeros |
//!
//! The envelope is the paper's first, small segment. It differs at every write, so it is always
//! included, and does not count in |Δ|.
//!
//! A block that does not name the base, by LSN and checksum, belongs to another image of the page
//! (or to another page that had the place) and is ignored: `specs/FINDINGS.md`, PageShadowing 3. A
//! block that fails its checks is ignored too. On a device whose discards do nothing it may be left
//! over from a former owner of the place, and the present owner need not have written one. Whether
//! Δ is missing is decided by the page's version ([`super::versioned`]), which a base without its Δ
//! does not have.
//!
//! # When Δ may be written
//!
//! Until the base is durable, the log block is part of the previous image. So a page that was
//! written whole is written whole again, until a flush of the device has made the whole image
//! durable (PageShadowing 2).

mod behind;

pub(super) use behind::LogsBehind;

use std::collections::HashMap;

use super::PageImage;
use crate::device::AlignedBuf;
use crate::error::Error;
use crate::layout::Layout;
use crate::mutation;
use crate::node::{ChangeMap, ENVELOPE_BYTES, PageRef, SEGMENT_BYTES};
use crate::options::{ModLog, ResetRule};
use crate::sparse::Sparse;
use crate::stats::ModLogStats;
use crate::sync::Mutex;
use crate::types::{BLOCK_SIZE, Lba, Lsn, PageId, StoreId};

const MAGIC: [u8; 4] = *b"MLOG";
const PAGE: usize = 8;
const BASE_LSN: usize = 16;
const BASE_SUM: usize = 24;
const ENVELOPE: usize = 32;
const SEGMENT: usize = ENVELOPE + ENVELOPE_BYTES;
const DELTA_LEN: usize = SEGMENT + 2;
const VECTOR: usize = 64;

/// Identifies an image that Δ can be applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base {
    lsn: Lsn,
    checksum: u64,
}

impl Base {
    fn of(image: &[u8]) -> Base {
        let page = PageRef::new(image);
        Base {
            lsn: page.lsn(),
            checksum: page.checksum(),
        }
    }
}

/// A log block that passes its checks.
#[derive(Clone, Copy)]
pub(super) struct Delta<'a> {
    block: &'a [u8],
    base: Base,
    segment: usize,
    vector: &'a [u8],
    segments: &'a [u8],
}

/// The contents of a log block.
pub(super) enum Block<'a> {
    /// Zeros: the block was trimmed, or never written.
    Empty,
    Delta(Delta<'a>),
    /// Data of another page that had this place before, or a block that is not whole.
    Foreign,
}

impl<'a> Block<'a> {
    /// Reads the log block of `page`, whose size is `page_size`. The error describes what is wrong
    /// with it.
    pub(super) fn read(
        block: &'a [u8],
        page: PageId,
        page_size: usize,
        store: StoreId,
    ) -> std::result::Result<Block<'a>, &'static str> {
        if block.iter().all(|b| *b == 0) {
            return Ok(Block::Empty);
        }
        let u16_at = |at: usize| usize::from(u16::from_le_bytes([block[at], block[at + 1]]));
        if block[4..8] != MAGIC {
            return Err("other bytes than a log block");
        }
        if u32_at(block, 0) != store.crc(&block[4..]) && !mutation::on("believes-log-block") {
            return Err("a log block whose checksum does not match");
        }
        if u64_at(block, PAGE) != page.0 {
            return Ok(Block::Foreign);
        }
        let segment = u16_at(SEGMENT);
        if !(SEGMENT_BYTES..=BLOCK_SIZE).contains(&segment) || !segment.is_power_of_two() {
            return Err("an impossible segment size");
        }
        let vector_len = vector_bytes(page_size, segment);
        let delta_len = u16_at(DELTA_LEN);
        let ends = VECTOR + vector_len + delta_len;
        if ends > BLOCK_SIZE {
            return Err("more differences than fit");
        }
        let vector = &block[VECTOR..VECTOR + vector_len];
        let marked: usize = vector.iter().map(|b| b.count_ones() as usize).sum();
        let beyond = (page_size / segment..vector_len * 8).any(|i| is_set(vector, i));
        if marked * segment != delta_len || beyond {
            return Err("a vector that does not match its differences");
        }
        Ok(Block::Delta(Delta {
            block,
            base: Base {
                lsn: Lsn(u64_at(block, BASE_LSN)),
                checksum: u64_at(block, BASE_SUM),
            },
            segment,
            vector,
            segments: &block[VECTOR + vector_len..ends],
        }))
    }

    /// Returns the Δ for this image, if the block has one.
    pub(super) fn over(&self, image: &[u8]) -> Option<Delta<'a>> {
        match self {
            Block::Delta(delta) if delta.fits(image) => Some(*delta),
            _ => None,
        }
    }
}

impl Delta<'_> {
    /// Returns whether this Δ applies to this image.
    fn fits(&self, image: &[u8]) -> bool {
        self.base == Base::of(image) || mutation::on("nameless-log")
    }

    /// Returns the LSN of the base, which was durable before this block was written.
    pub(super) fn base_lsn(&self) -> Lsn {
        self.base.lsn
    }

    /// Returns the LSN of the page after Δ.
    pub(super) fn lsn(&self) -> Lsn {
        Lsn(u64_at(self.block, ENVELOPE + 16))
    }

    /// Applies Δ to its base.
    fn apply(&self, image: &mut [u8]) {
        let mut pieces = self.segments.chunks_exact(self.segment);
        for (i, place) in image.chunks_mut(self.segment).enumerate() {
            if is_set(self.vector, i)
                && let Some(piece) = pieces.next()
            {
                place.copy_from_slice(piece);
            }
        }
        image[..ENVELOPE_BYTES].copy_from_slice(&self.block[ENVELOPE..ENVELOPE + ENVELOPE_BYTES]);
    }

    fn changes(&self) -> ChangeMap {
        let mut changes = ChangeMap::new();
        for i in (0..self.vector.len() * 8).filter(|i| is_set(self.vector, *i)) {
            changes.mark(i * self.segment..(i + 1) * self.segment);
        }
        changes
    }

    /// Returns |Δ| in bytes.
    pub(super) fn len(&self) -> u32 {
        self.segments.len() as u32
    }
}

/// Builds the log block of a page that differs from its base in `dirty`, and returns it with |Δ|.
/// Returns `None` if the page must be written whole according to the rule.
fn encode(
    (store, rule): (StoreId, &ModLog),
    page: PageId,
    base: Base,
    image: &[u8],
    dirty: &ChangeMap,
) -> Option<(AlignedBuf, u32)> {
    let segment = rule.segment as usize;
    let vector_len = vector_bytes(image.len(), segment);
    let is_dirty = |i: usize| {
        let grains = segment / SEGMENT_BYTES;
        (i * grains..(i + 1) * grains).any(|grain| dirty.is_marked(grain))
    };
    let marked = (0..image.len() / segment).filter(|i| is_dirty(*i)).count();
    let (len, threshold) = (marked * segment, rule.threshold as usize);
    let small = match rule.reset {
        ResetRule::AtThreshold => len < threshold,
        ResetRule::AboveThreshold => len <= threshold,
    };
    if !small || VECTOR + vector_len + len > BLOCK_SIZE {
        return None;
    }
    let mut block = AlignedBuf::zeroed(BLOCK_SIZE);
    block[4..8].copy_from_slice(&MAGIC);
    block[PAGE..PAGE + 8].copy_from_slice(&page.0.to_le_bytes());
    block[BASE_LSN..BASE_LSN + 8].copy_from_slice(&base.lsn.0.to_le_bytes());
    block[BASE_SUM..BASE_SUM + 8].copy_from_slice(&base.checksum.to_le_bytes());
    block[ENVELOPE..ENVELOPE + ENVELOPE_BYTES].copy_from_slice(&image[..ENVELOPE_BYTES]);
    block[SEGMENT..SEGMENT + 2].copy_from_slice(&(segment as u16).to_le_bytes());
    block[DELTA_LEN..DELTA_LEN + 2].copy_from_slice(&(len as u16).to_le_bytes());
    let mut at = VECTOR + vector_len;
    for (i, piece) in image.chunks_exact(segment).enumerate() {
        if is_dirty(i) {
            block[VECTOR + i / 8] |= 1 << (i % 8);
            block[at..at + segment].copy_from_slice(piece);
            at += segment;
        }
    }
    let crc = store.crc(&block[4..]);
    block[0..4].copy_from_slice(&crc.to_le_bytes());
    Some((block, len as u32))
}

/// Returns the log block that a store with this modification log writes for `image`, which differs
/// in `dirty` from its image `base` on the device. Returns `None` if the store writes the page
/// whole. For predictors.
///
/// # Panics
/// If the two are not sealed pages of one size.
#[must_use]
pub fn delta_block(rule: &ModLog, base: &[u8], image: &[u8], dirty: &ChangeMap) -> Option<Vec<u8>> {
    assert_eq!(base.len(), image.len(), "two images of one page");
    let page = PageRef::new(image).page_id();
    let rule = (StoreId::default(), rule);
    let block = encode(rule, page, Base::of(base), image, dirty);
    block.map(|(block, _)| block.to_vec())
}

/// Returns the page to which `block` belongs, if its magic and checksum make it a log block of
/// `store`.
pub(crate) fn log_block_of(block: &[u8], store: StoreId) -> Option<PageId> {
    let sealed = block[4..8] == MAGIC && u32_at(block, 0) == store.crc(&block[4..]);
    sealed.then(|| PageId(u64_at(block, PAGE)))
}

/// Applies the Δ in `block` to `image`, if the block has one for it, and returns whether it had.
/// The error describes what is wrong with the block. The result still has to be checked as a page.
pub(crate) fn lay_over(
    block: &[u8],
    image: &mut [u8],
    store: StoreId,
) -> std::result::Result<bool, &'static str> {
    let page = PageRef::new(image).page_id();
    let read = Block::read(block, page, image.len(), store)?;
    let delta = read.over(image);
    if let Some(delta) = delta {
        delta.apply(image);
    }
    Ok(delta.is_some())
}

fn is_set(vector: &[u8], i: usize) -> bool {
    vector[i / 8] >> (i % 8) & 1 == 1
}

fn vector_bytes(page_size: usize, segment: usize) -> usize {
    page_size.div_ceil(segment).div_ceil(8)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The state of a page in memory: its base, and the ranges in which the device's Δ already differs
/// from it.
struct Kept {
    base: Base,
    dirty: ChangeMap,
}

/// The modification logs of a store's pages: the state of those in memory, and the rule.
pub(super) struct ModLogs {
    /// `None`: log blocks are read but not written.
    rule: Option<ModLog>,
    /// Whether the layout has log blocks.
    exist: bool,
    page_size: usize,
    store: StoreId,
    kept: Mutex<HashMap<PageId, Kept>>,
    held: Mutex<Held>,
}

/// The sizes of the log blocks' contents, and counters: the figures of eq. (4).
struct Held {
    /// By page name: 0 if the page was not looked at yet, else one more than |Δ| in units of 64
    /// bytes.
    units: Sparse<u8>,
    stats: ModLogStats,
}

impl Held {
    fn set(&mut self, page: PageId, delta: Option<u32>) {
        let Some(held) = self.units.make_mut(page.0) else {
            return;
        };
        let unit = SEGMENT_BYTES as u32;
        let after = delta.map_or(0, |bytes| bytes / unit + 1);
        let before = u32::from(std::mem::replace(held, after as u8));
        let bytes = |units: u32| u64::from(units.saturating_sub(1) * unit);
        let stats = &mut self.stats;
        stats.delta_bytes = stats.delta_bytes + bytes(after) - bytes(before);
        stats.pages = stats.pages + u64::from(after > 0) - u64::from(before > 0);
    }
}

impl ModLogs {
    pub(super) fn new(rule: Option<ModLog>, layout: &Layout) -> ModLogs {
        ModLogs {
            rule: rule.filter(|_| layout.mod_log),
            exist: layout.mod_log,
            page_size: layout.page_size,
            store: layout.id,
            kept: Mutex::new(HashMap::new()),
            held: Mutex::new(Held {
                units: Sparse::new(layout.page_names()),
                stats: ModLogStats::default(),
            }),
        }
    }

    pub(super) fn map_bytes(&self) -> u64 {
        self.held.lock().units.bytes()
    }

    pub(super) fn stats(&self) -> Option<ModLogStats> {
        self.exist.then(|| self.held.lock().stats)
    }

    /// Turns a base and the log block beside it into the page, and returns |Δ|. Neither input is
    /// checked as a page; the result is checked by its checksum and version. Returns `None` if the
    /// block has no Δ for this base, or if no block is passed because it is known to have none.
    pub(super) fn load(&self, page: PageId, image: &mut [u8], block: Option<&[u8]>) -> Option<u32> {
        let read = block.map_or(Block::Empty, |block| self.read(block, page));
        let base = Base::of(image);
        let mut dirty = ChangeMap::new();
        let mut len = None;
        if let Some(delta) = read.over(image) {
            delta.apply(image);
            if !mutation::on("forgets-dirty") {
                dirty = delta.changes();
            }
            len = Some(delta.len());
        }
        if self.rule.is_some() {
            self.kept.lock().insert(page, Kept { base, dirty });
            self.held.lock().set(page, Some(len.unwrap_or(0)));
        }
        len
    }

    /// Returns the Δ of `page` in `block`. A block that is not whole has none.
    fn read<'a>(&self, block: &'a [u8], page: PageId) -> Block<'a> {
        Block::read(block, page, self.page_size, self.store).unwrap_or(Block::Foreign)
    }

    /// Returns the log block to write instead of the page, if the rule allows it. `may` says that
    /// the base is durable.
    pub(super) fn delta(&self, image: &PageImage<'_>, may: bool) -> Option<(AlignedBuf, u32)> {
        let rule = self.rule.filter(|_| may || mutation::on("delta-at-once"))?;
        let kept = self.kept.lock();
        let kept = kept.get(&image.page)?;
        let mut dirty = kept.dirty;
        if mutation::on("logs-last-changes") {
            dirty.clear();
        }
        dirty.merge(image.changes);
        encode(
            (self.store, &rule),
            image.page,
            kept.base,
            image.bytes,
            &dirty,
        )
    }

    /// Records that the page was written: Δ of this many bytes to its log block, or whole.
    pub(super) fn written(&self, image: &PageImage<'_>, delta: Option<u32>) {
        if self.rule.is_none() {
            return;
        }
        {
            let mut held = self.held.lock();
            held.set(image.page, Some(delta.unwrap_or(0)));
            match delta {
                None => held.stats.whole_writes += 1,
                Some(len) => {
                    held.stats.delta_writes += 1;
                    held.stats.delta_bytes_written += u64::from(len);
                }
            }
        }
        let mut kept = self.kept.lock();
        if delta.is_none() {
            let base = Base::of(image.bytes);
            let dirty = ChangeMap::new();
            kept.insert(image.page, Kept { base, dirty });
        } else if let Some(kept) = kept.get_mut(&image.page) {
            kept.dirty.merge(image.changes);
        }
    }

    /// Drops the state of a page that leaves memory.
    pub(super) fn forget(&self, page: PageId) {
        if self.rule.is_some() {
            self.kept.lock().remove(&page);
        }
    }

    /// Drops everything known of a page that was freed.
    pub(super) fn free(&self, page: PageId) {
        self.forget(page);
        if self.rule.is_some() {
            self.held.lock().set(page, None);
        }
    }
}

/// Returns the error for a page whose log block or base is not what was written.
pub(super) fn damaged(page: PageId, lba: Lba, found: impl std::fmt::Display) -> Error {
    Error::Damaged {
        what: format!("modification log of {page}"),
        lba,
        expected: "zeros or a log block as it was written, beside a whole image".into(),
        found: found.to_string(),
    }
}

#[cfg(test)]
mod tests;
