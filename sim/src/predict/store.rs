//! Predicts a whole store: bytes written by class per user byte, from a trace and options.
//!
//! Notation: `W` pages are written by eviction and checkpoints (from [`super::cache`]), `s` is the
//! page size, `N` the number of checkpoints, `U` the user bytes, `S` the bytes of a snapshot, `t`
//! the number of table blocks changed between checkpoints (B⁻-tree §2.4 and eq. (1):
//! `WA = WA_log + WA_pg + WA_e`).
//!
//! | store | page | extra |
//! |---|---|---|
//! | in place | `W s / U` | `(W s + N (S + 4096)) / U`: every page goes through the journal first |
//! | copy-on-write, table at each flush | `W s / U` | `(4096 W + N (S + 4096)) / U` |
//! | copy-on-write, table at checkpoints | `W s / U` | `(4096 N t + N (S + 4096)) / U` |
//! | shadowing | `W s / U` | `N (S + 4096) / U` |
//!
//! Long values add their overflow blocks to the pages, `4096 ceil(len / 4048)` bytes per put. These
//! are written once, without journal, page table or log, and read past the page cache.
//!
//! With a modification log, only a share of the `W` writes whole pages ([`super::mod_log`]), and
//! only these go through the journal and the table. The other writes take 4 KiB each. On a drive
//! that compresses, every kind of block has its own α ([`super::content`]):
//! `WA = α_log WA_log + α_pg WA_pg + α_e WA_e` (eq. (2)).
//!
//! The number of checkpoints is exact, not a mean: the log position at which each begins follows
//! from the records alone. A trace with few checkpoints has 2 or 3 of them, not 2.6.

mod flushes;
mod run;
mod stored;
mod traffic;

use treering_engine::{BLOCK_SIZE, BfShape, LogPacking, Options};

use super::cache::CachePrediction;
use super::device::{self, Before, DeviceParams};
use super::estimate::{Method, Model};
use super::leaf::LeafLevel;
use super::log::Pace;
use super::policies::OtherPolicies;
use super::prediction::{HostWa, Prediction};
use super::tried::{Case, untried};
use super::workload::Workload;
use flushes::Flushes;
use run::{Checkpoint, PACKED_STRETCH, Run, Written};

pub(crate) use run::blocks_per_place;

/// Predicts the bytes that a replay of `workload` writes on a store with `options` on `device`.
/// Without a `pace` the model has no notion of time: flush intervals never end, and commits share
/// no flush.
///
/// ```
/// use treering_engine::{Options, PageStoreKind, required_blocks};
/// use treering_sim::drive::{DriveProfile, SimDrive};
/// use treering_sim::predict::{Span, Workload, predict};
/// use treering_sim::ssd::{TimingMode, builtin};
/// use treering_traces::generate::{GenParams, Workload as Kind, build};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (header, mut source) = build(&GenParams::new(Kind::Zipf, 5_000))?;
/// let workload = Workload::analyze(&mut *source, Span::after(header.warmup_ops))?;
/// let (_, profile) = builtin("ssd").expect("a built-in profile");
/// let mut options = Options { cache_bytes: 64 * 4096, ..Options::default() };
/// let mut extra = |store| -> Result<f64, Box<dyn std::error::Error + Send + Sync>> {
///     options.store = store;
///     let blocks = required_blocks(&options, 2_000);
///     let drive = profile.build(blocks, TimingMode::Counting, 0)?;
///     Ok(predict(&workload, &options, &drive.params(), None).host.extra)
/// };
/// // A page journal writes each page once more.
/// let shadow = extra(PageStoreKind::Shadow).expect("a drive");
/// assert!(extra(PageStoreKind::InPlace).expect("a drive") > shadow);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn predict(
    workload: &Workload,
    options: &Options,
    device: &DeviceParams,
    pace: Option<&Pace>,
) -> Prediction {
    predict_by(Method::default(), workload, options, device, pace)
}

/// As [`predict`], by this method. What no played model covers is predicted by the independent one.
#[must_use]
pub fn predict_by(
    method: Method,
    workload: &Workload,
    options: &Options,
    device: &DeviceParams,
    pace: Option<&Pace>,
) -> Prediction {
    let played = played(method, workload, options, &[(device, pace)]);
    let prediction = played.and_then(|mut predictions| predictions.pop());
    prediction.unwrap_or_else(|| independent(workload, options, device, pace))
}

/// As [`predict_by`] for each of several drives, in their order. Drives that show the tree the same
/// share what is played of it, so many of them cost little more than their flash.
#[must_use]
pub fn predict_drives(
    method: Method,
    workload: &Workload,
    options: &Options,
    drives: &[(&DeviceParams, Option<&Pace>)],
) -> Vec<Prediction> {
    let each = |(device, pace): &(&DeviceParams, _)| independent(workload, options, device, *pace);
    played(method, workload, options, drives).unwrap_or_else(|| drives.iter().map(each).collect())
}

/// Predictions by playing the tree, if that was asked for and can be done.
fn played(
    method: Method,
    workload: &Workload,
    options: &Options,
    drives: &[(&DeviceParams, Option<&Pace>)],
) -> Option<Vec<Prediction>> {
    if method.model == Model::Independent {
        return None;
    }
    let level = LeafLevel::kept(workload, options.page_size, options.leaf_layouts());
    super::played::predict((workload, &*level, options), drives, method)
}

/// As [`predict`], from popularity alone: accesses to pages are taken for independent draws.
#[must_use]
fn independent(
    workload: &Workload,
    options: &Options,
    device: &DeviceParams,
    pace: Option<&Pace>,
) -> Prediction {
    let level = LeafLevel::grow(workload, options.page_size, options.leaf_layouts());
    let Settled {
        other_policies,
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
        // In a range that was written in order, all erase blocks but those at its ends hold nothing
        // else.
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
        other_policies,
        leaves: level.count(),
        records_per_leaf: level.records_per_leaf(),
        rotation_ops: cache.rotation_ops,
        log_group_bytes: flushes.group,
        checkpoints: checkpoints.len() as u64,
        model: Model::Independent,
        bars: None,
        untried: untried(&Case::of_pages(workload, options, &level, (device, pace))),
        warnings: run.warnings(),
        mod_log: logged.prediction(options),
        mini_pages: run.buffer.map(|buffer| buffer.mini_pages),
    }
}

/// A run in which log growth, checkpoints and flushes are consistent.
struct Settled<'a> {
    other_policies: OtherPolicies,
    run: Run<'a>,
    cache: CachePrediction,
    checkpoints: Vec<Checkpoint>,
    pages: f64,
    flushes: Flushes,
}

/// Finds a consistent state by iteration. In the sparse log the flushes determine how fast
/// positions grow, positions determine checkpoints, and checkpoints influence flushes.
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
        let other_policies = run.other_policies();
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
                other_policies,
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
