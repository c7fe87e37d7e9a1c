//! The whole: from trace and options to bytes written by class, per user byte.
//!
//! With `W` pages written by eviction and checkpoints (from [`super::cache`]), page size `s`, `N` checkpoints, `U` user
//! bytes, snapshots of `S` bytes (B⁻-tree §2.4 and eq. (1): `WA = WA_log + WA_pg + WA_e`):
//!
//! | store | page | extra |
//! |---|---|---|
//! | in place | `W s / U` | `(W s + N (S + 4096)) / U`: every page goes through the journal first |
//! | copy-on-write, table at each flush | `W s / U` | `(4096 W + N (S + 4096)) / U` |
//! | copy-on-write, table at checkpoints | `W s / U` | `(4096 N t + N (S + 4096)) / U`, `t` table blocks changed in a period |
//! | shadowing | `W s / U` | `N (S + 4096) / U` |
//!
//! Long values add their overflow blocks to the pages, each `4096 ceil(len / 4048)` bytes a put:
//! they are written once, beside journal, page table and log, and read past the page cache.
//!
//! With a modification log a share of the `W` is written whole ([`super::mod_log`]), and journal and table see only those; the others are 4 KiB
//! each. On a drive that compresses every kind of block has its α ([`super::content`]): `WA = α_log WA_log + α_pg WA_pg + α_e WA_e` (eq. (2)).
//!
//! Checkpoints are counted, not averaged: the log position at which each begins follows from the records alone. A trace
//! of few checkpoints has 2 or 3 of them, not 2.6.

mod flushes;
mod stored;
mod traffic;

use serde::Serialize;
use treering_engine::{BLOCK_SIZE, BfShape, LogPacking, Options, PageStoreKind, TablePersist};

use super::bf::{self, MiniPagesPrediction};
use super::cache::{self, CachePrediction, CacheShape, ClassBuilder, PageClass};
use super::device::{self, Before, DeviceParams, DeviceWa};
use super::leaf::LeafLevel;
use super::log::{self, Pace};
use super::tried::{Case, FEW_DELETES, FEW_RUNS, LITTLE_GROWTH, Untried, untried};
use super::workload::{Totals, Workload};
use flushes::Flushes;

/// Page-table entries in a block: 8 bytes each behind a header of 16.
const TABLE_ENTRIES: f64 = ((BLOCK_SIZE - 16) / 8) as f64;
/// Header of a chunk of the index snapshot.
const SNAPSHOT_HEADER_BYTES: f64 = 32.0;
/// Bytes of a split's log record beside page names, fences and records: its length, kind, and four short numbers.
const SPLIT_BYTES: f64 = 7.0;
/// Bytes of a snapshot entry beside the fence.
const SNAPSHOT_ENTRY_BYTES: f64 = 18.0;

/// Log positions a byte of records takes in the packed log: block headers count too.
const PACKED_STRETCH: f64 = BLOCK_SIZE as f64 / log::PAYLOAD_BYTES;

/// Bytes the engine writes, over user bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostWa {
    /// Redo log.
    pub log: f64,
    /// Pages at their home.
    pub page: f64,
    /// Journal, page table, snapshots, superblocks.
    pub extra: f64,
    /// All of them.
    pub total: f64,
}

impl HostWa {
    /// Of bytes by class: log, page, extra.
    fn new([log, page, extra]: [f64; 3], user: f64) -> HostWa {
        HostWa {
            log: log / user,
            page: page / user,
            extra: extra / user,
            total: (log + page + extra) / user,
        }
    }
}

/// What the predictors say of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Whether keys were sampled, because there are too many for the memory: then all of this is
    /// estimated. Left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// By the engine, over user bytes.
    pub host: HostWa,
    /// Overflow blocks of long values among its pages, over user bytes.
    pub overflow: f64,
    /// By the drive, over user bytes.
    pub device: DeviceWa,
    /// After compression, over user bytes: α·WA of B⁻-tree eq. (2); `null` where nothing compresses.
    pub stored: Option<HostWa>,
    /// Share of page accesses that the cache answers.
    pub hit_ratio: f64,
    /// The same for an LRU cache of equal size, by Che's approximation.
    pub lru_hit_ratio: f64,
    /// Leaves at the end of the trace.
    pub leaves: f64,
    /// Mean number of records in a leaf.
    pub records_per_leaf: f64,
    /// Operations between two visits of the clock hand to a frame; infinite (JSON null) if all pages fit.
    pub rotation_ops: f64,
    /// Log bytes a flush writes, before rounding to blocks.
    pub log_group_bytes: f64,
    /// Checkpoints that begin within the measured part.
    pub checkpoints: u64,
    /// The mini-pages, if the tree has them.
    pub mini_pages: Option<MiniPagesPrediction>,
    /// The modification log, if pages have one.
    pub mod_log: Option<ModLogPrediction>,
    /// What lies outside the bounds between which predictions were held against measurements.
    pub untried: Vec<Untried>,
    /// Where the trace strays from what the models assume.
    pub warnings: Vec<String>,
}

/// What the predictors say of the modification log.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModLogPrediction {
    /// β at the end, B⁻-tree eq. (4).
    pub beta: f64,
    /// Mean |Δ| of a page at the end, in bytes.
    pub delta_bytes_mean: f64,
    /// Share of page writes that are whole.
    pub full_flush_share: f64,
}

/// Predicts what replaying `workload` on a store with `options` on `device` writes. Without a `pace` nothing is known of time: flush
/// intervals count as endless, and each commit as alone.
#[must_use]
pub fn predict(
    workload: &Workload,
    options: &Options,
    device: &DeviceParams,
    pace: Option<&Pace>,
) -> Prediction {
    let level = LeafLevel::grow(workload, options.page_size, options.leaf_layouts());
    let Settled {
        lru_hit_ratio,
        run,
        cache,
        checkpoints,
        pages,
        flushes,
    } = settle(workload, options, &level, pace);
    let logged = run.mod_log(&cache, pages);
    let whole = pages * logged.whole_share();
    let extra = run.extra_bytes(whole, &checkpoints, device);
    let user = (workload.measured.user_bytes as f64).max(1.0);
    let overflow = run.overflow.written * BLOCK_SIZE as f64;
    let leaf_bytes = whole * options.page_size as f64 + (pages - whole) * BLOCK_SIZE as f64;
    let page_bytes = leaf_bytes + overflow;
    let host = HostWa::new([flushes.device_bytes, page_bytes, extra], user);
    let written = Written {
        pages,
        log_bytes: flushes.device_bytes,
        extra_bytes: extra,
        checkpoints: &checkpoints,
    };
    let compressed = device
        .compression
        .map(|how| run.compressed(&written, &logged, &flushes, device, &how));
    let sizes = match &compressed {
        None => run.uncompressed(&logged),
        Some(compressed) => compressed.sizes,
    };
    let traffic = {
        let mut traffic = run.traffic(&cache, &written, &logged, &sizes, device);
        let idle = run.idle_blocks(whole, &checkpoints, device) * device.before_block;
        // Of a range of pages written in order all erase blocks but those at its ends hold nothing else.
        traffic.settled = match device.before {
            Before::InOrder => (idle - f64::from(device.pages_per_block)).max(0.0),
            Before::Nothing | Before::Scattered => 0.0,
        };
        traffic.add(idle - traffic.settled, 0.0);
        traffic
    };
    let packed = DeviceParams {
        pages_per_block: (f64::from(device.pages_per_block) / sizes.mean) as u32,
        ..*device
    };
    Prediction {
        estimated: workload.is_estimated(),
        host,
        overflow: overflow / user,
        device: device::predict(&packed, &traffic, user),
        stored: compressed.map(|c| HostWa::new(c.bytes, user)),
        hit_ratio: run.hit_ratio(&cache),
        lru_hit_ratio,
        leaves: level.count(),
        records_per_leaf: level.records_per_leaf(),
        rotation_ops: cache.rotation_ops,
        log_group_bytes: flushes.group,
        checkpoints: checkpoints.len() as u64,
        untried: untried(&Case::of_pages(workload, options, &level, (device, pace))),
        warnings: run.warnings(),
        mod_log: logged.prediction(options),
        mini_pages: run.buffer.map(|buffer| buffer.mini_pages),
    }
}

/// A run whose log is as long as its flushes make it.
struct Settled<'a> {
    lru_hit_ratio: f64,
    run: Run<'a>,
    cache: CachePrediction,
    checkpoints: Vec<Checkpoint>,
    pages: f64,
    flushes: Flushes,
}

/// In the sparse log the flushes decide how fast positions grow, that how often there are checkpoints, and these have a say in flushes.
fn settle<'a>(
    workload: &'a Workload,
    options: &'a Options,
    level: &'a LeafLevel,
    pace: Option<&Pace>,
) -> Settled<'a> {
    let mut stretch = PACKED_STRETCH;
    let mut rounds = 0;
    loop {
        let run = Run::new(workload, options, level, stretch);
        let lru_hit_ratio = run.lru_hit_ratio();
        let run = match BfShape::of(options) {
            Some(shape) => run.below_mini_pages(&shape),
            None => run,
        };
        let cache = run.cache();
        let checkpoints = run.checkpoints();
        let pages = run.pages_written(&cache, &checkpoints);
        let flushes = run.log(&cache, &checkpoints, pages, pace);
        rounds += 1;
        let next = match options.log_packing {
            LogPacking::Packed => PACKED_STRETCH,
            LogPacking::Sparse => flushes.blocks * BLOCK_SIZE as f64 / flushes.group.max(1.0),
        };
        if rounds == 4 || (next / stretch - 1.0).abs() < 0.005 {
            return Settled {
                lru_hit_ratio,
                run,
                cache,
                checkpoints,
                pages,
                flushes,
            };
        }
        stretch = next;
    }
}

/// What a run writes in its measured part.
struct Written<'a> {
    pages: f64,
    log_bytes: f64,
    extra_bytes: f64,
    checkpoints: &'a [Checkpoint],
}

/// A checkpoint of the measured part.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    /// Measured operations before it began.
    at: f64,
    /// Measured operations since the one before it; more than `at` if that was in the warm-up.
    since: f64,
}

/// A run about to be predicted: inputs and what several steps need.
struct Run<'a> {
    workload: &'a Workload,
    options: &'a Options,
    level: &'a LeafLevel,
    classes: Vec<PageClass>,
    shape: CacheShape,
    /// Measured operations.
    ops: f64,
    /// Log bytes appended in the warm-up and in the measured part.
    warmup_log: f64,
    measured_log: f64,
    /// Splits of the measured part, in the whole tree.
    splits: f64,
    /// Log positions a byte of records takes.
    stretch: f64,
    /// What stands between the operations and the frames.
    buffer: Option<bf::Outcome>,
    overflow: Overflow,
}

/// The overflow blocks of a run. A value is written once, when it is put, and goes when it is put
/// again.
#[derive(Clone, Copy, Debug)]
struct Overflow {
    /// Written in the measured part.
    written: f64,
    /// Of all records at the end.
    live: f64,
    /// Places that these take.
    places: f64,
}

impl Overflow {
    fn of(workload: &Workload, options: &Options) -> Overflow {
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

/// Blocks of a place for a page: of its one image or two, and of its log block if it has one.
pub(crate) fn blocks_per_place(options: &Options) -> u64 {
    let images = match options.store {
        PageStoreKind::Shadow => 2,
        PageStoreKind::InPlace | PageStoreKind::CopyOnWrite { .. } => 1,
    };
    images * (options.page_size / BLOCK_SIZE) as u64 + u64::from(options.mod_log.is_some())
}

impl<'a> Run<'a> {
    fn new(
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
            let each = |s: &super::leaf::Split| {
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

    /// The same, with mini-pages between the operations and the frames: a leaf is visited when they do not know, and when they are merged.
    fn below_mini_pages(self, shape: &BfShape) -> Self {
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
            buffer: Some(buffer),
            ..self
        }
    }

    /// Of a cache of frames only, of the same size.
    fn lru_hit_ratio(&self) -> f64 {
        let frames = self.options.cache_bytes / self.options.page_size as u64;
        cache::che_lru_hit_ratio(&self.classes, frames as f64)
    }

    /// Log positions count block headers, and what is padded, too.
    fn positions(&self, log_bytes: f64) -> f64 {
        log_bytes * self.stretch
    }

    fn log_per_op(&self) -> f64 {
        self.measured_log / self.ops.max(1.0)
    }

    /// Measured operations between two checkpoints.
    fn checkpoint_ops(&self) -> f64 {
        let every = self.options.checkpoint_log_bytes as f64;
        every / self.positions(self.log_per_op())
    }

    fn fits(&self) -> bool {
        self.shape.holds_all(self.level.count())
    }

    /// What a sample of keys lacks of the accesses goes to keys so popular that a single one matters: hits (SHARDS-adj, Waldspurger
    /// et al., FAST'15 §4.2).
    ///
    /// Runs within a leaf are hits but for their first operation.
    fn hit_ratio(&self, cache: &CachePrediction) -> f64 {
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

    /// The cache over the measured part. A tree that grows meanwhile is taken in slices of time, each with the leaves it has then
    /// and the accesses spread over fewer leaves.
    fn cache(&self) -> CachePrediction {
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
            // What counts is how often the hand comes by.
            rotation_ops: 1.0 / mean(|c| 1.0 / c.rotation_ops),
            hit_ratio: mean(|c| c.hit_ratio),
            misses: mean(|c| c.misses),
            evicted_dirty: mean(|c| c.evicted_dirty),
            dirty_at_checkpoint: mean(|c| c.dirty_at_checkpoint),
        }
    }

    /// Leaves in each slice of the measured part, as a share of those at its end; one slice if hardly any appear.
    fn sizes(&self) -> Vec<f64> {
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

    /// Operations since the last checkpoint when measuring begins, at the measured part's pace.
    fn phase(&self) -> f64 {
        let every = self.options.checkpoint_log_bytes as f64;
        let per_op = self.positions(self.log_per_op());
        if per_op == 0.0 {
            0.0
        } else {
            self.positions(self.warmup_log).rem_euclid(every) / per_op
        }
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
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
    fn pages_written(&self, cache: &CachePrediction, checkpoints: &[Checkpoint]) -> f64 {
        if let Some(buffer) = &self.buffer {
            // The merge that found no room has made one page dirty; the new one is another.
            return buffer.pages_written + self.splits;
        }
        if self.fits() {
            return self.pages_written_if_all_fit(checkpoints);
        }
        let evicted = cache.evicted_dirty * self.ops;
        // A split makes two pages dirty where the put that caused it made one.
        let split = self.splits * (1.0 - self.hit_ratio(cache));
        let swept = cache.dirty_at_checkpoint * checkpoints.len() as f64;
        evicted + split + swept + self.dirty_from_warmup()
    }

    /// Pages that the warm-up leaves dirty, less those that the steady state has dirty at that time: they are written
    /// once in the measured part.
    fn dirty_from_warmup(&self) -> f64 {
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

    /// Number of the warm-up operation at which its last checkpoint began, in ticks.
    fn last_warmup_checkpoint(&self) -> f64 {
        let every = self.options.checkpoint_log_bytes as f64;
        let position = self.positions(self.warmup_log);
        if position <= 0.0 {
            return 0.0;
        }
        let warmup_ticks = self.workload.warmup.all_ops() as f64 / self.workload.tick as f64;
        warmup_ticks * ((position / every).floor() * every / position)
    }

    /// Warm-up operations after its last checkpoint began.
    fn loaded_since_checkpoint(&self) -> f64 {
        let ticks = self.workload.warmup.all_ops() as f64 / self.workload.tick as f64;
        (ticks - self.last_warmup_checkpoint()) * self.workload.tick as f64
    }

    /// Share of leaves that a put of the warm-up changed after the warm-up's last checkpoint.
    fn loaded_dirty_share(&self) -> f64 {
        let from = self.last_warmup_checkpoint();
        let changed = |l: &&super::leaf::Leaf| l.records > 0 && f64::from(l.last_insert) >= from;
        self.level.leaves.iter().filter(changed).count() as f64
            / self.level.leaves.len().max(1) as f64
    }

    /// Only checkpoints write: each the pages changed since the one before it. Of `a` writes to a leaf none falls into a window of
    /// `x` of the trace with probability `(1 - x)^a`.
    fn pages_written_if_all_fit(&self, checkpoints: &[Checkpoint]) -> f64 {
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

    /// Bytes of one index snapshot: whole pages.
    fn snapshot_bytes(&self) -> f64 {
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
    fn extra_bytes(&self, pages: f64, checkpoints: &[Checkpoint], device: &DeviceParams) -> f64 {
        let count = checkpoints.len() as f64;
        let block = BLOCK_SIZE as f64;
        let own = count * (self.snapshot_bytes() + block);
        own + match self.options.store {
            PageStoreKind::InPlace => pages * self.options.page_size as f64,
            PageStoreKind::Shadow => 0.0,
            PageStoreKind::CopyOnWrite {
                table: TablePersist::EachFlush,
            } => pages * block,
            PageStoreKind::CopyOnWrite {
                table: TablePersist::Checkpoint,
            } => block * self.table_blocks(pages, count, device),
        }
    }

    /// Page-table blocks written when only checkpoints write them, or when the places held for the old table run out.
    fn table_blocks(&self, pages: f64, checkpoints: f64, device: &DeviceParams) -> f64 {
        let blocks = (self.level.count() / TABLE_ENTRIES).ceil().max(1.0);
        let events = self.table_writes(pages, checkpoints, device);
        if events <= 0.0 {
            return 0.0;
        }
        events * blocks * -(-pages / events / blocks).exp_m1()
    }

    /// How often the whole table is written: by checkpoints, or when the places held for the old one run out.
    fn table_writes(&self, pages: f64, checkpoints: f64, device: &DeviceParams) -> f64 {
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
    fn spare_places(&self, device: &DeviceParams) -> f64 {
        let space = device.capacity_blocks as f64 * BLOCK_SIZE as f64;
        let places = (space - self.options.log_bytes as f64) / self.place_bytes();
        let snapshots = 2.0 * self.snapshot_bytes() / self.options.page_size as f64;
        (places - snapshots - self.level.count() - self.overflow.places).max(1.0)
    }

    /// What a page takes of the space.
    fn place_bytes(&self) -> f64 {
        (blocks_per_place(self.options) * BLOCK_SIZE as u64) as f64
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let deletes = self.workload.measured.of(treering_traces::OpKind::Delete) as f64;
        if deletes > FEW_DELETES.high * self.ops {
            warnings.push(format!(
                "{:.0} % of the operations are deletes: the leaf model keeps the room of deleted records",
                100.0 * deletes / self.ops
            ));
        }
        if self.splits > LITTLE_GROWTH.high * self.level.count() {
            let grown = 100.0 * self.splits / self.level.count();
            warnings.push(format!(
                "{grown:.0} % of the leaves appear while measuring: the cache model takes the tree's shape from its end"
            ));
        }
        let in_runs = self.level.in_runs() / self.ops.max(1.0);
        if in_runs > FEW_RUNS.high {
            warnings.push(format!(
                "{:.0} % of the operations follow one on the key right before theirs: a trace of runs comes back to its pages sooner than \
                 independent visits would, so the predicted page writes are too high",
                100.0 * in_runs
            ));
        }
        warnings.extend(self.workload.estimated());
        warnings
    }
}
