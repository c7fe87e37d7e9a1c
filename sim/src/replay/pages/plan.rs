//! Planning of a run with a tree of pages: relative sizes become bytes and blocks.
//!
//! Shares of the data set (`--cache 20%`) need the size of the data set; a drive that is neither
//! nearly empty nor too small needs the size of the store.

use treering_engine::node::LayoutChoice;
use treering_engine::{BLOCK_SIZE, Durability, Nanos, Options, required_blocks};

use crate::predict::leaf::LeafLevel;
use crate::predict::{Workload, blocks_per_place};
use crate::replay::config::{Acknowledge, ReplayConfig, Size};
use crate::replay::error::{ReplayError, setting};
use crate::replay::target::AskedDrive;

/// Spare pages in addition to the expected number, because the estimate for a small trace is
/// imprecise.
const SPARE_PAGES: f64 = 64.0;

/// Minimum size of a fitted log, in bytes and in pages.
const MIN_FITTED_LOG: u64 = 1 << 20;
const MIN_FITTED_LOG_PAGES: u64 = 64;

/// Size of the redo record of a put with an out-of-line value and a short key.
const LEAST_LONG_RECORD: f64 = 60.0;

/// A store with all sizes determined.
pub(super) struct PagePlan {
    pub(super) engine: Options,
    /// Blocks of the device.
    pub(super) device_blocks: u64,
    pub(super) warnings: Vec<String>,
}

/// Determines all sizes of a store on a simulated drive.
pub(super) fn on_drive(
    (config, base): (&ReplayConfig, &Options),
    workload: &Workload,
    asked: AskedDrive<'_>,
    leaves: &mut LeafCounts,
) -> Result<PagePlan, ReplayError> {
    let mut warnings = Vec::new();
    // The replay itself flushes for waiting clients, in virtual time.
    let commit = (Durability::Deferred, &mut warnings);
    let engine = engine_options((config, base), workload, commit)?;
    let places = leaves.of(&engine, workload) + overflow_places(&engine, workload);
    let device_blocks = drive_blocks(config, &engine, places, asked)?;
    warnings.extend(asked.profile.too_small(device_blocks));
    if config.predict {
        warnings.extend(asked.profile.unpredicted());
    }
    warnings.extend(not_as_dense(config, workload, engine.leaf_layouts()));
    Ok(PagePlan {
        engine,
        device_blocks,
        warnings,
    })
}

/// Determines all sizes of a store on a file.
pub(super) fn on_file(
    (config, base): (&ReplayConfig, &Options),
    workload: &Workload,
) -> Result<PagePlan, ReplayError> {
    let mut warnings = Vec::new();
    let commit = (Durability::PerCommit, &mut warnings);
    let engine = engine_options((config, base), workload, commit)?;
    let leaves = LeafCounts::default().of(&engine, workload);
    let places = leaves + overflow_places(&engine, workload);
    let device_blocks = fitted_blocks(config, &engine, places);
    warnings.extend(not_as_dense(config, workload, engine.leaf_layouts()));
    Ok(PagePlan {
        engine,
        device_blocks,
        warnings,
    })
}

/// Numbers of leaves of a workload, by page size and layout. Leaves take longer to grow than all
/// the rest of a plan, and plans that differ only in the cache or the drive share them.
#[derive(Default)]
pub(in crate::replay) struct LeafCounts(Vec<((usize, LayoutChoice), f64)>);

impl LeafCounts {
    fn of(&mut self, engine: &Options, workload: &Workload) -> f64 {
        let shape = (engine.page_size, engine.leaf_layouts());
        if let Some((_, count)) = self.0.iter().find(|(known, _)| *known == shape) {
            return *count;
        }
        let count = LeafLevel::kept(workload, shape.0, shape.1).count();
        self.0.push((shape, count));
        count
    }
}

/// The engine's options; `commit` says how the engine flushes for waiting clients.
fn engine_options(
    (config, base): (&ReplayConfig, &Options),
    workload: &Workload,
    (commit, warnings): (Durability, &mut Vec<String>),
) -> Result<Options, ReplayError> {
    let least = base.least_cache_bytes();
    let cache_bytes = match config.cache {
        Size::Bytes(bytes) => bytes,
        Size::Share(share) => {
            let bytes = (workload.data_set_bytes() * share) as u64;
            if bytes < least {
                warnings.push(format!(
                    "The cache has {least} bytes, the minimum; {:.1} % of the data set would be \
                     {bytes} bytes.",
                    share * 100.0
                ));
            }
            bytes.max(least)
        }
    };
    let durability = match config.acknowledge {
        Acknowledge::Commit => commit,
        Acknowledge::Deferred => Durability::Deferred,
        Acknowledge::Interval(Nanos(0)) => {
            return Err(setting(
                "durability",
                "an interval of 0; expected a longer one, or `commit`",
            ));
        }
        Acknowledge::Interval(interval) => Durability::Grouped(interval),
    };
    let mut options = Options {
        cache_bytes,
        durability,
        ..base.clone()
    };
    if config.fit_log {
        fit_log(&mut options, workload.data_bytes());
    }
    Ok(options)
}

/// Sizes the log to half of the data set, at most to the configured size, with a checkpoint after
/// each half of it. A short trace over few records then wraps its log, and its drive, as often as a
/// long trace over many.
pub(super) fn fit_log(options: &mut Options, data_bytes: f64) {
    let page = options.page_size as u64;
    let least = MIN_FITTED_LOG.max(MIN_FITTED_LOG_PAGES * page);
    let half = (data_bytes / 2.0) as u64 / page * page;
    options.log_bytes = half.max(least).min(options.log_bytes);
    options.checkpoint_log_bytes = options.log_bytes / 2;
    options.log_buffer_bytes = options.log_buffer_bytes.min(options.log_bytes / 4);
}

/// Page places for the long values of all records, and for replaced ones whose log is not flushed
/// yet.
fn overflow_places(engine: &Options, workload: &Workload) -> f64 {
    let per_place = blocks_per_place(engine);
    let live = workload.overflow_sum(engine.page_size, |blocks| blocks.div_ceil(per_place));
    if live == 0.0 {
        return 0.0;
    }
    let values = workload.overflow_sum(engine.page_size, |_| 1);
    // A log record has at least 60 bytes.
    let unflushed = engine.log_buffer_bytes as f64 / LEAST_LONG_RECORD;
    live + (live / values * unflushed).min(live)
}

/// Blocks for a store of this many pages, with a reserve.
fn fitted_blocks(config: &ReplayConfig, engine: &Options, places: f64) -> u64 {
    let pages = (places / config.fill + SPARE_PAGES).ceil() as u64;
    required_blocks(engine, pages)
}

/// Blocks of the drive: the configured capacity, or what the store needs.
fn drive_blocks(
    config: &ReplayConfig,
    engine: &Options,
    places: f64,
    asked: AskedDrive<'_>,
) -> Result<u64, ReplayError> {
    let Some(bytes) = asked.capacity_bytes else {
        let fitted = fitted_blocks(config, engine, places);
        return Ok(asked.profile.fitted_blocks(fitted));
    };
    let blocks = bytes / BLOCK_SIZE as u64;
    let needed = required_blocks(engine, places.ceil() as u64);
    if blocks < needed {
        let why = format!(
            "{bytes} bytes; expected at least {}, the size of the store for this trace",
            needed * BLOCK_SIZE as u64
        );
        return Err(setting("capacity", why));
    }
    Ok(blocks)
}

/// A warning for sampled keys: which leaves become dense depends on all keys, but of a trace with
/// too many keys for the memory only a sample is known.
fn not_as_dense(
    config: &ReplayConfig,
    workload: &Workload,
    layouts: LayoutChoice,
) -> Option<String> {
    let unknown = layouts.may_be_dense() && workload.sample_weight() > 1.0;
    (unknown && config.predict).then(|| {
        format!(
            "Leaves are predicted as if none became dense: one key in {:.0} does not say which do.",
            workload.sample_weight()
        )
    })
}
