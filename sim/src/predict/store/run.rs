//! A run to be predicted: its inputs, and the quantities that several steps need.

use treering_engine::{BLOCK_SIZE, BfShape, Options, TablePersist};

use crate::predict::bf;
use crate::predict::cache::{self, CachePrediction, CacheShape, ClassBuilder, PageClass};
use crate::predict::device::DeviceParams;
use crate::predict::leaf::LeafLevel;
use crate::predict::log;
use crate::predict::policies::OtherPolicies;
use crate::predict::tried::{FEW_DELETES, FEW_RUNS, LITTLE_GROWTH};
use crate::predict::workload::{Totals, Workload};

/// Page-table entries in a block: 8 bytes each after a header of 16.
pub(super) const TABLE_ENTRIES: f64 = ((BLOCK_SIZE - 16) / 8) as f64;
/// Bytes of the header of a chunk of the index snapshot.
pub(super) const SNAPSHOT_HEADER_BYTES: f64 = 32.0;
/// Bytes of a split's log record besides page names, fences and records: its length, kind, and four
/// short numbers.
pub(super) const SPLIT_BYTES: f64 = 7.0;
/// Bytes of a snapshot entry besides the fence.
pub(super) const SNAPSHOT_ENTRY_BYTES: f64 = 18.0;

/// Log positions per byte of records in the packed log, where block headers count too.
pub(super) const PACKED_STRETCH: f64 = BLOCK_SIZE as f64 / log::PAYLOAD_BYTES;

/// The bytes that a run writes in its measured part.
pub(super) struct Written<'a> {
    pub(super) pages: f64,
    pub(super) log_bytes: f64,
    pub(super) extra_bytes: f64,
    pub(super) checkpoints: &'a [Checkpoint],
}

/// A checkpoint of the measured part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checkpoint {
    /// Measured operations before it began.
    pub(super) at: f64,
    /// Measured operations since the previous checkpoint; more than `at` if that was in the
    /// warm-up.
    pub(super) since: f64,
}

/// A run to be predicted: its inputs, and the quantities that several steps need.
pub(super) struct Run<'a> {
    pub(super) workload: &'a Workload,
    pub(super) options: &'a Options,
    pub(super) level: &'a LeafLevel,
    pub(super) classes: Vec<PageClass>,
    pub(super) shape: CacheShape,
    /// Measured operations.
    pub(super) ops: f64,
    /// Log bytes appended in the warm-up and in the measured part.
    pub(super) warmup_log: f64,
    pub(super) measured_log: f64,
    /// Splits of the measured part, in the whole tree.
    pub(super) splits: f64,
    /// Log positions per byte of records.
    pub(super) stretch: f64,
    /// The mini-pages between the operations and the frames.
    pub(super) buffer: Option<bf::Outcome>,
    pub(super) overflow: Overflow,
}

/// Overflow blocks of a run. They are written when the value is put, and freed when it is put
/// again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overflow {
    /// Blocks written in the measured part.
    pub(super) written: f64,
    /// Blocks of all records at the end.
    pub(super) live: f64,
    /// Places for pages that these blocks take.
    pub(super) places: f64,
}

impl Overflow {
    pub(super) fn of(workload: &Workload, options: &Options) -> Overflow {
        let page_size = options.page_size;
        let written = workload.measured.overflow_bytes(page_size) as f64;
        let per_place = blocks_per_place(options);
        Overflow {
            written: written / BLOCK_SIZE as f64,
            live: workload.overflow_sum(page_size, |blocks| blocks),
            places: workload.overflow_sum(page_size, |blocks| blocks.div_ceil(per_place)),
        }
    }
}

/// Blocks of a place for a page: one page image or two, and a log block if the page has one.
pub(crate) fn blocks_per_place(options: &Options) -> u64 {
    let images = options.store.images_per_place();
    images * (options.page_size / BLOCK_SIZE) as u64 + u64::from(options.mod_log.is_some())
}

impl<'a> Run<'a> {
    pub(super) fn new(
        workload: &'a Workload,
        options: &'a Options,
        level: &'a LeafLevel,
        stretch: f64,
    ) -> Self {
        let ops = workload.measured.all_ops() as f64;
        let mut builder = ClassBuilder::new(ops);
        for leaf in &level.leaves {
            builder.add(level.weight, leaf.reads, leaf.writes);
        }
        let page_name = log::page_name_bytes(level.count());
        let warmup_end = workload.warmup.all_ops() / workload.tick;
        let split_log = |measured: bool| -> (f64, f64) {
            let mine = level
                .splits
                .iter()
                .filter(|s| (u64::from(s.time) >= warmup_end) == measured);
            let each = |s: &crate::predict::leaf::Split| {
                f64::from(s.moved_bytes)
                    + 2.0 * f64::from(s.separator_len)
                    + 2.0 * page_name
                    + SPLIT_BYTES
            };
            mine.fold((0.0, 0.0), |(n, bytes), s| {
                (n + level.weight, bytes + level.weight * each(s))
            })
        };
        let page_size = options.page_size;
        let records =
            |t: &Totals| t.log_bytes_with(page_size) as f64 + t.writes() as f64 * page_name;
        let (splits, split_bytes) = split_log(true);
        Run {
            workload,
            options,
            level,
            classes: builder.finish(),
            shape: CacheShape::new(
                options.frames() * options.page_size as u64,
                options.page_size,
                options.write_batch_pages,
            ),
            ops,
            warmup_log: records(&workload.warmup) + split_log(false).1,
            measured_log: records(&workload.measured) + split_bytes,
            splits,
            stretch,
            buffer: None,
            overflow: Overflow::of(workload, options),
        }
    }

    /// The run with mini-pages between the operations and the frames. A leaf is read when its
    /// mini-page lacks the record, and written when the mini-page is merged.
    pub(super) fn below_mini_pages(self, shape: &BfShape) -> Self {
        let per_write = |log: f64, writes: u64| self.positions(log / (writes as f64).max(1.0));
        let warmup = &self.workload.warmup;
        let page_name = log::page_name_bytes(self.level.count());
        let pace = bf::LogPace {
            every: self.options.checkpoint_log_bytes as f64,
            again: per_write(
                warmup.log_bytes_with(self.options.page_size) as f64,
                warmup.writes(),
            ) + page_name,
            measured: per_write(self.measured_log, self.workload.measured.writes()),
            at_start: self.positions(self.warmup_log),
            buffer: self.options.log_buffer_bytes as f64,
        };
        let setting = bf::Setting {
            shape,
            cache: self.shape,
            page_size: self.options.page_size,
            pace,
        };
        let buffer = bf::play(self.workload, self.level, setting);
        let mut builder = ClassBuilder::new(self.ops);
        for leaf in &buffer.leaves {
            builder.add(buffer.weight, leaf.reads, leaf.merges);
        }
        Run {
            classes: builder.finish(),
            measured_log: self.measured_log + buffer.relogged / self.stretch,
            buffer: Some(buffer),
            ..self
        }
    }

    /// Hit ratios of caches of the same size that consist of frames only.
    pub(super) fn other_policies(&self) -> OtherPolicies {
        let frames = self.options.cache_bytes / self.options.page_size as u64;
        OtherPolicies::predict(&self.classes, frames as f64)
    }

    /// Converts bytes of log records to log positions, which include block headers and padding.
    pub(super) fn positions(&self, log_bytes: f64) -> f64 {
        log_bytes * self.stretch
    }

    pub(super) fn log_per_op(&self) -> f64 {
        self.measured_log / self.ops.max(1.0)
    }

    /// Measured operations between two checkpoints.
    pub(super) fn checkpoint_ops(&self) -> f64 {
        let every = self.options.checkpoint_log_bytes as f64;
        every / self.positions(self.log_per_op())
    }

    pub(super) fn fits(&self) -> bool {
        self.shape.holds_all(self.level.count())
    }

    /// Accesses that a sample of keys lacks belong to keys so popular that each matters; they count
    /// as hits (SHARDS-adj, Waldspurger et al., FAST'15 §4.2).
    ///
    /// In a run within a leaf, all operations but the first are hits.
    pub(super) fn hit_ratio(&self, cache: &CachePrediction) -> f64 {
        if let Some(buffer) = &self.buffer {
            return buffer.hit_ratio();
        }
        let visits: f64 = self.classes.iter().map(|c| c.pages * c.rate).sum();
        let in_runs: f64 = self.level.leaves.iter().map(|l| l.in_runs).sum();
        let mut accesses = visits + self.level.weight * in_runs / self.ops.max(1.0);
        if self.workload.is_estimated() {
            accesses = accesses.max(1.0);
        }
        if accesses <= 0.0 {
            return 1.0;
        }
        (1.0 - cache.misses / accesses).clamp(0.0, 1.0)
    }

    /// Predicts the cache over the measured part. If the tree grows meanwhile, the time is divided
    /// into slices. Each slice has the leaves that exist then, with the accesses spread over them.
    pub(super) fn cache(&self) -> CachePrediction {
        let period = if self.checkpoint_ops() < self.ops {
            self.checkpoint_ops()
        } else {
            f64::INFINITY
        };
        let slices: Vec<CachePrediction> = (self.sizes().into_iter())
            .map(|size| {
                let scaled = |c: &PageClass| PageClass {
                    pages: c.pages * size,
                    rate: c.rate / size,
                    own_rate: c.own_rate / size,
                    ..*c
                };
                let classes: Vec<PageClass> = self.classes.iter().map(scaled).collect();
                cache::clock(&classes, self.shape, period)
            })
            .collect();
        let mean = |f: fn(&CachePrediction) -> f64| {
            slices.iter().map(f).sum::<f64>() / slices.len() as f64
        };
        CachePrediction {
            // The frequency of the hand's visits is averaged, not the time between them.
            rotation_ops: 1.0 / mean(|c| 1.0 / c.rotation_ops),
            hit_ratio: mean(|c| c.hit_ratio),
            misses: mean(|c| c.misses),
            evicted_dirty: mean(|c| c.evicted_dirty),
            dirty_at_checkpoint: mean(|c| c.dirty_at_checkpoint),
        }
    }

    /// Number of leaves in each slice of the measured part, relative to the end. There is only one
    /// slice if hardly any leaves appear.
    pub(super) fn sizes(&self) -> Vec<f64> {
        const SLICES: u32 = 24;
        if self.splits < 0.02 * self.level.count() {
            return vec![1.0];
        }
        let tick = self.workload.tick as f64;
        let begin = self.workload.warmup.all_ops() as f64 / tick;
        let leaves_at = |at: f64| {
            let splits = self
                .level
                .splits
                .partition_point(|s| f64::from(s.time) < at);
            (splits as f64 + 1.0) / self.level.leaves.len() as f64
        };
        (0..SLICES)
            .map(|i| leaves_at(begin + (f64::from(i) + 0.5) / f64::from(SLICES) * self.ops / tick))
            .collect()
    }

    /// Operations since the last checkpoint when the measured part begins, at its pace.
    pub(super) fn phase(&self) -> f64 {
        let every = self.options.checkpoint_log_bytes as f64;
        let per_op = self.positions(self.log_per_op());
        if per_op == 0.0 {
            0.0
        } else {
            self.positions(self.warmup_log).rem_euclid(every) / per_op
        }
    }

    pub(super) fn checkpoints(&self) -> Vec<Checkpoint> {
        let period = self.checkpoint_ops();
        let mut at = period - self.phase();
        let mut list = Vec::new();
        while at < self.ops && at.is_finite() && list.len() < 10_000_000 {
            list.push(Checkpoint { at, since: period });
            at += period;
        }
        list
    }

    /// Pages written in the measured part.
    pub(super) fn pages_written(&self, cache: &CachePrediction, checkpoints: &[Checkpoint]) -> f64 {
        if let Some(buffer) = &self.buffer {
            // The merge that found no room made one page dirty; the new page is another.
            return buffer.pages_written + self.splits;
        }
        if self.fits() {
            return self.pages_written_if_all_fit(checkpoints);
        }
        let evicted = cache.evicted_dirty * self.ops;
        // A split makes two pages dirty instead of one.
        let split = self.splits * (1.0 - self.hit_ratio(cache));
        let swept = cache.dirty_at_checkpoint * checkpoints.len() as f64;
        evicted + split + swept + self.dirty_from_warmup()
    }

    /// Pages that the warm-up leaves dirty, minus the pages that are dirty in the steady state.
    /// They are written once in the measured part.
    pub(super) fn dirty_from_warmup(&self) -> f64 {
        let residents = self.shape.residents().min(self.level.count());
        let written = self
            .loaded_dirty_share()
            .max(self.loaded_since_checkpoint() / residents);
        let left = written.min(1.0) * residents;
        let phase = self.phase();
        let since = if phase > 0.0 { phase } else { f64::INFINITY };
        let steady = cache::clock(&self.classes, self.shape, since).dirty_at_checkpoint;
        if self.warmup_log > 0.0 {
            left - steady
        } else {
            -steady
        }
    }

    /// Time in ticks at which the last checkpoint of the warm-up began.
    pub(super) fn last_warmup_checkpoint(&self) -> f64 {
        let every = self.options.checkpoint_log_bytes as f64;
        let position = self.positions(self.warmup_log);
        if position <= 0.0 {
            return 0.0;
        }
        let warmup_ticks = self.workload.warmup.all_ops() as f64 / self.workload.tick as f64;
        warmup_ticks * ((position / every).floor() * every / position)
    }

    /// Warm-up operations after the start of its last checkpoint.
    pub(super) fn loaded_since_checkpoint(&self) -> f64 {
        let ticks = self.workload.warmup.all_ops() as f64 / self.workload.tick as f64;
        (ticks - self.last_warmup_checkpoint()) * self.workload.tick as f64
    }

    /// Share of leaves that were changed in the warm-up after its last checkpoint.
    pub(super) fn loaded_dirty_share(&self) -> f64 {
        let from = self.last_warmup_checkpoint();
        let changed =
            |l: &&crate::predict::leaf::Leaf| l.records > 0 && f64::from(l.last_insert) >= from;
        self.level.leaves.iter().filter(changed).count() as f64
            / self.level.leaves.len().max(1) as f64
    }

    /// Pages written if only checkpoints write: each writes the pages changed since the previous
    /// one. A leaf with `a` writes has none in a window of share `x` of the trace with probability
    /// `(1 - x)^a`.
    pub(super) fn pages_written_if_all_fit(&self, checkpoints: &[Checkpoint]) -> f64 {
        let from = self.last_warmup_checkpoint();
        let mut written = 0.0;
        for c in checkpoints {
            let window = c.since.min(c.at) / self.ops;
            let first = c.since > c.at;
            let untouched = (1.0 - window).max(0.0);
            for leaf in &self.level.leaves {
                let loaded = first && leaf.records > 0 && f64::from(leaf.last_insert) >= from;
                written += if loaded {
                    1.0
                } else {
                    1.0 - untouched.powf(leaf.writes)
                };
            }
        }
        written * self.level.weight
    }

    /// Bytes of an index snapshot, rounded up to whole pages.
    pub(super) fn snapshot_bytes(&self) -> f64 {
        let fences: f64 = self
            .level
            .leaves
            .iter()
            .map(|l| f64::from(l.fence_len))
            .sum();
        let mean = SNAPSHOT_ENTRY_BYTES + fences / self.level.leaves.len().max(1) as f64;
        let size = self.options.page_size as f64;
        let per_chunk = ((size - SNAPSHOT_HEADER_BYTES) / mean).floor().max(1.0);
        (self.level.count() / per_chunk).ceil() * size
    }

    /// Bytes of class `Extra`.
    pub(super) fn extra_bytes(
        &self,
        pages: f64,
        checkpoints: &[Checkpoint],
        device: &DeviceParams,
    ) -> f64 {
        let count = checkpoints.len() as f64;
        let block = BLOCK_SIZE as f64;
        let own = count * (self.snapshot_bytes() + block);
        let store = self.options.store;
        own + match store.table() {
            None if store.has_journal() => pages * self.options.page_size as f64,
            None => 0.0,
            Some(TablePersist::EachFlush) => pages * block,
            Some(TablePersist::Checkpoint) => block * self.table_blocks(pages, count, device),
        }
    }

    /// Page-table blocks written, if the table is written only by checkpoints or when there is no
    /// free place left.
    pub(super) fn table_blocks(&self, pages: f64, checkpoints: f64, device: &DeviceParams) -> f64 {
        let blocks = (self.level.count() / TABLE_ENTRIES).ceil().max(1.0);
        let events = self.table_writes(pages, checkpoints, device);
        if events <= 0.0 {
            return 0.0;
        }
        events * blocks * -(-pages / events / blocks).exp_m1()
    }

    /// How often the whole table is written: by checkpoints, or when there is no free place left
    /// because the old table holds places.
    pub(super) fn table_writes(&self, pages: f64, checkpoints: f64, device: &DeviceParams) -> f64 {
        let leaves = self.level.count();
        let spare = self.spare_places(device);
        // Distinct pages among k written, uniform over leaves: leaves (1 - exp(-k / leaves)).
        let until_short = if spare < leaves {
            -leaves * (-spare / leaves).ln_1p()
        } else {
            f64::INFINITY
        };
        checkpoints.max(pages / until_short)
    }

    /// Page places that hold neither a leaf nor a snapshot; at least one.
    pub(super) fn spare_places(&self, device: &DeviceParams) -> f64 {
        let space = device.capacity_blocks as f64 * BLOCK_SIZE as f64;
        let places = (space - self.options.log_bytes as f64) / self.place_bytes();
        let snapshots = 2.0 * self.snapshot_bytes() / self.options.page_size as f64;
        (places - snapshots - self.level.count() - self.overflow.places).max(1.0)
    }

    /// Bytes of space per page.
    pub(super) fn place_bytes(&self) -> f64 {
        (blocks_per_place(self.options) * BLOCK_SIZE as u64) as f64
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let deletes = self.workload.measured.of(treering_traces::OpKind::Delete) as f64;
        if deletes > FEW_DELETES.high * self.ops {
            warnings.push(format!(
                "{:.0} % of the operations are deletes: the leaf model assumes that deleted \
                 records keep their space",
                100.0 * deletes / self.ops
            ));
        }
        if self.splits > LITTLE_GROWTH.high * self.level.count() {
            let grown = 100.0 * self.splits / self.level.count();
            warnings.push(format!(
                "{grown:.0} % of the leaves appear while measuring: the cache model assumes the \
                 final shape of the tree"
            ));
        }
        let in_runs = self.level.in_runs() / self.ops.max(1.0);
        if in_runs > FEW_RUNS.high {
            warnings.push(format!(
                "{:.0} % of the operations follow one on the preceding key: runs return to pages \
                 sooner than independent visits would, so the predicted page writes are too \
                 high",
                100.0 * in_runs
            ));
        }
        warnings.extend(self.workload.estimated());
        warnings
    }
}
