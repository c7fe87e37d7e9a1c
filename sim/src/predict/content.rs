//! Predicts what compression leaves of each kind of block: α of B⁻-tree eq. (2).
//!
//! No formula gives the size to which a codec compresses a page. So this module makes a few blocks
//! of each kind, laid out as the engine does it, and compresses them: some leaves, whole and with
//! every number of dirty segments; log blocks filled to various degrees; blocks of the page table
//! and of snapshots.
//!
//! Keys are those of the trace; values are generated as in a replay. No store is run, and no block
//! is one of the predicted run: values come from another seed, leaves from [`super::leaf`].

mod fit;
mod holes;
mod kept;
mod log;
mod overflow;

use std::sync::Arc;

use treering_engine::node::{ChangeMap, PageMut, PageRef};
use treering_engine::{BLOCK_SIZE, Lsn, ModLog, Options, PageId, delta_block};

use self::fit::{Line, means, slot_segments};
use self::holes::repeated;
use super::leaf::LeafLevel;
use super::log::PAYLOAD_BYTES;
use super::mod_log::most_segments;
use super::played::{DeltaSizes, PageSize, StoredSizes};
use super::workload::Workload;
use crate::csd::{Codec, Compressor};
use crate::values::Values;

/// Number of leaves that are made.
const LEAVES: usize = 24;
/// Parts of their records with which leaves are made, too.
const PARTS: [f64; 2] = [0.4, 0.7];

/// Numbers of segments with slots for which log blocks are made. Others are between these.
const SLOT_SEGMENTS: [usize; 11] = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
/// Number of steps in which the fill of a log block is given.
const STEPS: usize = 64;

/// Bytes of a superblock after compression, of which some 80 are in use.
pub(super) const SUPERBLOCK_STORED: f64 = 80.0;

/// How a drive compresses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compression {
    /// The codec.
    pub codec: Codec,
    /// Bytes that an extent takes besides its payload.
    pub extent_header: f64,
    /// Seed of the samples.
    pub seed: u64,
}

/// Mean sizes after compression, in bytes, without the headers of extents.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    /// A page written whole.
    pub(super) page: f64,
    /// The same for each block of it, by bytes in use.
    page_block: PageSize,
    /// The log block of a page.
    delta: DeltaSizes,
    /// A block of the redo log, by bytes of records in it, ascending.
    log: Vec<(f64, f64)>,
    /// A block of the page table.
    pub(super) table: f64,
    /// A block of an index snapshot.
    pub(super) snapshot: f64,
    /// An overflow block of a long value.
    overflow: f64,
    /// Blocks of a page that are not all zeros. Each is an extent.
    pub(super) page_extents: f64,
}

impl Stored {
    /// Mean size of the log block of a page with this number of dirty segments.
    pub(super) fn delta(&self, segments: usize) -> f64 {
        self.delta.of(0, segments)
    }

    /// Mean size of a redo log block with this many bytes of records.
    pub(super) fn log(&self, bytes: f64) -> f64 {
        let at = self.log.partition_point(|(filled, _)| *filled < bytes);
        let (Some(high), Some(low)) = (self.log.get(at), self.log.get(at.saturating_sub(1))) else {
            return self.log.last().map_or(0.0, |(_, size)| *size);
        };
        if high.0 <= low.0 {
            return high.1;
        }
        low.1 + (high.1 - low.1) * (bytes - low.0) / (high.0 - low.0)
    }

    /// Mean size of a redo log block whose fill is uniformly distributed.
    pub(super) fn log_at_random(&self) -> f64 {
        let pieces = self.log.windows(2);
        let areas = pieces.map(|w| 0.5 * (w[0].1 + w[1].1) * (w[1].0 - w[0].0));
        areas.sum::<f64>() / PAYLOAD_BYTES
    }
}

/// Sizes of blocks for a played run.
pub(super) fn sizes(
    workload: &Workload,
    level: &LeafLevel,
    options: &Options,
    compression: Option<&Compression>,
) -> StoredSizes {
    let Some(compression) = compression else {
        return StoredSizes::whole();
    };
    let stored = sample(workload, level, options, compression);
    let header = BLOCK_SIZE as f64 - PAYLOAD_BYTES;
    let filled = (0..=STEPS).map(|step| (step * BLOCK_SIZE / STEPS) as f64);
    let log = filled.map(|filled| stored.log((filled - header).max(0.0)));
    StoredSizes {
        log: log.collect(),
        page: stored.page_block,
        page_extents: stored.page_extents,
        delta: stored.delta.clone(),
        table: stored.table,
        snapshot: stored.snapshot,
        superblock: SUPERBLOCK_STORED,
        overflow: stored.overflow,
    }
}

/// Which segments of its page an update of a record touches.
pub(super) struct Touches {
    /// Effective number of segments: two updates fall into the same one as often as if they chose
    /// among this many with equal chances.
    pub(super) segments: f64,
    /// Shares of updates that touch 1, 2, ... segments.
    pub(super) shares: Vec<f64>,
}

/// Measures which segments an update touches, on some leaves.
pub(super) fn touches(
    workload: &Workload,
    level: &LeafLevel,
    options: &Options,
    rule: &ModLog,
) -> Touches {
    Sampler::new(workload, level, options, Codec::Lz4, 0).touches(rule)
}

/// Makes the blocks and compresses them, unless an earlier prediction has done so.
pub(super) fn sample(
    workload: &Workload,
    level: &LeafLevel,
    options: &Options,
    compression: &Compression,
) -> Arc<Stored> {
    kept::kept(workload, level, options, compression, || {
        make(workload, level, options, compression)
    })
}

fn make(
    workload: &Workload,
    level: &LeafLevel,
    options: &Options,
    compression: &Compression,
) -> Stored {
    let mut sampler = Sampler::new(
        workload,
        level,
        options,
        compression.codec,
        compression.seed,
    );
    let mut stored = Stored::default();
    sampler.leaves(&mut stored);
    sampler.log(&mut stored);
    sampler.tables(&mut stored);
    stored.overflow = sampler.overflow().unwrap_or_default();
    stored
}

struct Sampler<'a> {
    workload: &'a Workload,
    level: &'a LeafLevel,
    options: &'a Options,
    compressor: Compressor,
    values: Values,
    number: u64,
    dice: u64,
}

/// A page as it would be written to the device.
struct Made {
    bytes: Vec<u8>,
    keys: Vec<u32>,
}

impl<'a> Sampler<'a> {
    fn new(
        workload: &'a Workload,
        level: &'a LeafLevel,
        options: &'a Options,
        codec: Codec,
        seed: u64,
    ) -> Sampler<'a> {
        Sampler {
            workload,
            level,
            options,
            compressor: Compressor::new(codec),
            // Another seed than the run's, so these are not its values.
            values: Values::new(seed ^ 0x5eed_0f5a_3b1e_0001, workload.zeros),
            number: 0,
            dice: seed | 1,
        }
    }

    /// Picks some leaves, each with its share of the writes.
    fn some_leaves(&self) -> Vec<(usize, f64)> {
        let leaves = &self.level.leaves;
        let step = (leaves.len() / LEAVES).max(1);
        let some = || (0..leaves.len()).step_by(step);
        let written: f64 = some().map(|i| leaves[i].writes).sum();
        let weight = |i: usize| if written > 0.0 { leaves[i].writes } else { 1.0 };
        some().map(|i| (i, weight(i))).collect()
    }

    fn touches(&mut self, rule: &ModLog) -> Touches {
        let segment = rule.segment as usize;
        let mut shares: Vec<f64> = Vec::new();
        let (mut all, mut segments, mut weights) = (0.0, 0.0, 0.0);
        for (leaf, weight) in self.some_leaves() {
            let Some(page) = self.leaf(leaf, 1.0) else {
                continue;
            };
            let mut hits = vec![0.0; page.bytes.len() / segment];
            for key in &page.keys {
                let mut bytes = page.bytes.clone();
                let mut changes = ChangeMap::new();
                let value = self.value(*key);
                let key = self.workload.key(*key);
                if PageMut::new(&mut bytes, &mut changes)
                    .put(key, &value)
                    .is_err()
                {
                    continue;
                }
                let marked: Vec<usize> = marked_segments(&changes, segment, bytes.len()).collect();
                if marked.is_empty() {
                    continue;
                }
                if shares.len() < marked.len() {
                    shares.resize(marked.len(), 0.0);
                }
                shares[marked.len() - 1] += weight;
                all += weight;
                marked.iter().for_each(|i| hits[*i] += 1.0);
            }
            let sum: f64 = hits.iter().sum();
            let squares: f64 = hits.iter().map(|h| h * h).sum();
            if squares > 0.0 {
                segments += weight * sum * sum / squares;
                weights += weight;
            }
        }
        if all == 0.0 {
            return Touches {
                segments: 1.0,
                shares: vec![1.0],
            };
        }
        shares.iter_mut().for_each(|s| *s /= all);
        Touches {
            segments: segments / weights,
            shares,
        }
    }

    /// A number below `n`, from a xorshift generator.
    fn below(&mut self, n: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice % n.max(1) as u64) as usize
    }

    fn size(&mut self, bytes: &[u8]) -> (f64, f64) {
        let (mut sum, mut extents) = (0.0, 0.0);
        for block in bytes.chunks_exact(BLOCK_SIZE) {
            let block: &[u8; BLOCK_SIZE] = block.try_into().expect("a whole block");
            if block.iter().any(|b| *b != 0) {
                sum += f64::from(self.compressor.size(block));
                extents += 1.0;
            }
        }
        (sum, extents)
    }

    fn value_len(&self, key: u32) -> usize {
        self.workload.stored_len(key, self.options.page_size)
    }

    fn leaves(&mut self, stored: &mut Stored) {
        let mut made = 0.0;
        let page_size = self.options.page_size;
        let most = (self.options.mod_log).map(|rule| most_segments(&rule, page_size));
        let row = vec![(0.0, 0.0); most.map_or(0, |most| most + 1)];
        let mut rows: Vec<(usize, Vec<(f64, f64)>)> = Vec::new();
        let mut line = Line::default();
        let mut holes = Vec::new();
        for (n, (leaf, weight)) in self.some_leaves().into_iter().enumerate() {
            // Pages are written with less in them, too, so the line needs points there.
            for part in PARTS {
                let Some(page) = self.leaf(leaf, part) else {
                    continue;
                };
                let blocks = (page.bytes.len() / BLOCK_SIZE) as f64;
                let used = PageRef::new(&page.bytes).used_bytes() as f64;
                line.add(used, self.size(&page.bytes).0 / blocks);
            }
            let Some(page) = self.leaf(leaf, 1.0) else {
                continue;
            };
            let (size, extents) = self.size(&page.bytes);
            stored.page += weight * size;
            stored.page_extents += weight * extents;
            made += weight;
            let blocks = (page.bytes.len() / BLOCK_SIZE) as f64;
            let used = PageRef::new(&page.bytes).used_bytes();
            line.add(used as f64, size / blocks);
            holes.extend(self.with_holes(&page));
            if let Some(rule) = self.options.mod_log.filter(|_| n % 2 == 0) {
                let segments = slot_segments(&page.bytes, rule.segment as usize);
                let some = SLOT_SEGMENTS
                    .iter()
                    .filter(|n| **n <= segments.min(row.len() - 1));
                for (at, slots) in some.enumerate() {
                    if rows.len() == at {
                        rows.push((*slots, row.clone()));
                    }
                    self.deltas((&rule, *slots), &page, &mut rows[at].1);
                }
            }
        }
        stored.page /= f64::max(made, 1e-300);
        stored.page_extents /= f64::max(made, 1e-300);
        stored.page_block = line.fit();
        stored.page_block.per_repeated = repeated(&stored.page_block, &holes);
        let rows = rows.iter().map(|(slots, sums)| (*slots, means(sums)));
        let segment = self.options.mod_log.map_or(0, |rule| rule.segment);
        // A byte of a page adds as much to a log block as to the page.
        let blocks = (self.options.page_size / BLOCK_SIZE) as f64;
        stored.delta = DeltaSizes {
            rows: rows.collect(),
            laid: stored.page_block.per_byte * blocks * f64::from(segment),
        };
    }

    /// Makes a leaf with this part of its records: those from before its last split in order, the
    /// others as they came.
    fn leaf(&mut self, leaf: usize, part: f64) -> Option<Made> {
        let starts = &self.level.starts;
        let from = *starts.get(leaf)? as usize;
        let order = &self.level.order;
        let to = starts.get(leaf + 1).map_or(order.len(), |s| *s as usize);
        let mut keys: Vec<u32> = order[from..to].to_vec();
        keys.retain(|key| self.workload.keys.first_put(*key) != super::workload::NEVER);
        for i in (1..keys.len()).rev() {
            let j = self.below(i + 1);
            keys.swap(i, j);
        }
        keys.truncate((keys.len() as f64 * part) as usize);
        // In a dense page every record has a fixed place, whatever the order.
        let layout = self.level.leaves[leaf].layout;
        let loaded = match layout.is_dense() {
            true => 0,
            false => (self.level.leaves[leaf].loaded as usize).min(keys.len()),
        };
        let (mut first, later) = keys.split_at(keys.len() - loaded);
        let mut sorted = first.to_vec();
        sorted.sort_by(|a, b| self.workload.key(*a).cmp(self.workload.key(*b)));
        first = &sorted;
        let lower = if leaf == 0 {
            Vec::new()
        } else {
            self.fence(leaf)
        };
        let upper = (leaf + 1 < starts.len()).then(|| self.fence(leaf + 1));
        let mut bytes = vec![0; self.options.page_size];
        let mut changes = ChangeMap::new();
        let mut page = PageMut::new(&mut bytes, &mut changes);
        let name = PageId(leaf as u64 * 7 % 65_536);
        let mut records = Vec::with_capacity(first.len());
        for key in first {
            let value = self.value(*key);
            records.push((self.workload.key(*key), value));
        }
        let upper = upper.as_deref();
        page.build(layout, name, &lower, upper, Lsn(1), records)
            .ok()?;
        for key in later {
            let value = self.value(*key);
            // The sample's fences are not the run's, so a record may not fit; it is left out.
            let _ = page.put(self.workload.key(*key), &value);
        }
        page.set_lsn(Lsn(0x1234_5678 + leaf as u64 * 977));
        page.seal();
        Some(Made { bytes, keys })
    }

    /// The lower fence of a leaf.
    fn fence(&self, leaf: usize) -> Vec<u8> {
        let key = self
            .workload
            .key(self.level.order[self.level.starts[leaf] as usize]);
        key[..key.len().min(self.level.leaves[leaf].fence_len as usize)].to_vec()
    }

    /// What a leaf has of a key's value.
    fn value(&mut self, key: u32) -> Vec<u8> {
        let (_, len) = self.workload.keys.lens(key);
        let stored = self.value_len(key);
        if stored != len {
            return self.pointer(len).to_vec();
        }
        self.number += 1;
        self.values.make(self.number, len).to_vec()
    }

    /// Updates a leaf until it would be written whole, and measures its log block after each
    /// update, by number of segments without slots. `slots` segments with slots are in it, too: the
    /// header's and the last ones, as after inserts.
    fn deltas(&mut self, (rule, slots): (&ModLog, usize), page: &Made, sums: &mut [(f64, f64)]) {
        let Made { bytes: base, keys } = page;
        if keys.is_empty() {
            return;
        }
        let segment = rule.segment as usize;
        let segments = slot_segments(base, segment);
        let mut bytes = base.clone();
        let mut changes = ChangeMap::new();
        if slots > 0 {
            changes.mark(0..segment);
            changes.mark((segments + 1 - slots) * segment..segments * segment);
        }
        for round in 0..64 * sums.len() as u64 {
            let mut page = PageMut::new(&mut bytes, &mut changes);
            page.set_lsn(Lsn(0x2234_5678 + round * 1_013));
            page.seal();
            let Some(block) = delta_block(rule, base, &bytes, &changes) else {
                return;
            };
            let marked = marked_segments(&changes, segment, bytes.len());
            let heap = marked.filter(|i| *i >= segments).count();
            let (size, _) = self.size(&block);
            sums[heap].0 += size;
            sums[heap].1 += 1.0;
            let key = keys[self.below(keys.len())];
            let value = self.value(key);
            // A refused update changes nothing; the next one may fit.
            let _ = PageMut::new(&mut bytes, &mut changes).put(self.workload.key(key), &value);
        }
    }

    /// Makes blocks of the page table (slots) and of a snapshot (fences with page ids). Their order
    /// is random, so a codec cannot exploit it.
    fn tables(&mut self, stored: &mut Stored) {
        let pages = self.level.count().max(1.0) as usize;
        let mut table = vec![0; BLOCK_SIZE];
        for entry in table[16..].chunks_exact_mut(8) {
            // The lowest free slot is used first, so hardly any slot is higher than the number of
            // pages.
            let slot = 1 + self.below(pages) as u64;
            entry.copy_from_slice(&slot.to_le_bytes());
        }
        stored.table = self.size(&table).0;
        let mut snapshot = Vec::with_capacity(2 * BLOCK_SIZE);
        let step = (self.level.leaves.len() / 256).max(1);
        while snapshot.len() < BLOCK_SIZE {
            let before = snapshot.len();
            for leaf in (0..self.level.starts.len()).step_by(step) {
                let Some(key) = self.level.order.get(self.level.starts[leaf] as usize) else {
                    continue;
                };
                // Neighbouring keys share as many bytes as neighbouring fences of the run.
                let fence = self.workload.key(*key);
                let fence = &fence[..fence.len().min(self.level.leaves[leaf].fence_len as usize)];
                snapshot.extend((fence.len() as u16).to_le_bytes());
                snapshot.extend(fence);
                snapshot.extend((self.below(pages) as u64).to_le_bytes());
                // The page's version is a log position; the log is about as long as all pages.
                let version = self.below(pages * self.options.page_size) as u64;
                snapshot.extend(version.to_le_bytes());
            }
            if snapshot.len() == before {
                break;
            }
        }
        snapshot.resize(snapshot.len().max(BLOCK_SIZE), 0);
        stored.snapshot = self.size(&snapshot[..BLOCK_SIZE]).0;
    }
}

fn marked_segments(
    changes: &ChangeMap,
    segment: usize,
    page_size: usize,
) -> impl Iterator<Item = usize> {
    let grains = segment / treering_engine::node::SEGMENT_BYTES;
    let marked = move |i: &usize| (i * grains..(i + 1) * grains).any(|g| changes.is_marked(g));
    (0..page_size / segment).filter(marked)
}
