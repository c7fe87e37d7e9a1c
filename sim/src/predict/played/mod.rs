//! Predictions from the order of accesses: cache, log and page store are *played*, on pages without
//! content, and the blocks that they write go through a miniature of the drive's flash.
//!
//! ```text
//! accesses in order ─▶ page of the key ─▶ frames ─▶ page store ─▶ blocks ─▶ miniature flash
//!   4 bytes each        order statistics   clock     homes, log    counted    a sample of LBAs
//! ```
//!
//! What independent draws lose is kept: when a page comes back, which pages are dirty together, and
//! which blocks that were written together are overwritten together. This is a *miniature
//! simulation* (Waldspurger, Saemundsson, Ahmad, Park, *Cache Modeling and Optimization using
//! Miniature Simulations*, USENIX ATC 2017). No engine runs, no byte of a page or of the log exists,
//! and nothing of the run that is predicted is seen.
//!
//! | module | what is played | state |
//! |---|---|---|
//! | `leaves` | which page a key is in at any time, by the splits of [`LeafLevel`] | 4 B a key |
//! | `thinned` | which accesses meet a sample of the pages | two bits a key |
//! | `frames` | second chance, write-back in batches, sweeps of checkpoints | 16 B a frame |
//! | `redo` | end and durable end of the log, blocks of a flush | two numbers |
//! | `clients` | virtual time: reads, group commit, flush intervals | a turn per client |
//! | `homes` | in place, copy-on-write, shadowing: places, journal, table, snapshots | 12 B a page |
//! | `fill`, `smo` | merges of sparse pages after deletes, and splits after these | 2 B a key |
//! | `later` | trims that wait for a flush, places that wait for the log | 8 B a page |
//! | `drives` | flash of drives below one store ([`super::flash`]) | 8 B a flash page |
//! | `bf` | mini-pages in their ring ([`super::bf`]) | their record sets |
//! | `bodies` | where records lie on their pages | 8 B a key |
//! | `deltas` | segments that differ from a page's image | two bits a segment |
//!
//! Cost: some 50 to 100 ns per operation of the sample, without a look at the trace.

mod bars;
mod bf;
mod blocks;
mod bodies;
#[cfg(test)]
mod bodies_tests;
mod btree;
mod clients;
mod deltas;
mod drives;
mod fill;
mod frames;
mod homes;
mod later;
mod layout;
mod leaves;
mod marks;
mod redo;
mod rounds;
mod smo;
mod store;
mod table;
mod thinned;
mod visits;

use std::io;

use treering_engine::{BLOCK_SIZE, BfShape, Options, TablePersist};
use treering_traces::OpKind;

use self::bf::BfTree;
use self::blocks::{Blocks, Bytes};
pub(super) use self::blocks::{DeltaSizes, InUse, PageSize, StoredSizes};
use self::bodies::Bodies;
use self::clients::Clients;
use self::deltas::Deltas;
use self::drives::{Below, Drive};
use self::frames::Frames;
use self::homes::Homes;
use self::layout::Regions;
pub(super) use self::marks::Marks;
use self::redo::Redo;
use self::rounds::Rounds;
use self::store::{Counts, PageTree, Parts};
use self::visits::Visits;
use super::bf::{MiniPageCounts, MiniPagesPrediction};
use super::cache::CacheShape;
use super::content;
use super::device::{DeviceParams, DeviceWa};
use super::estimate::{Method, Model};
use super::flash::{Effort, Forecast};
use super::leaf::LeafLevel;
use super::prediction::{HostWa, ModLogPrediction, Prediction};
use super::workload::{Accesses, Event, Workload};

/// What was counted in a played run.
struct Run {
    counts: Counts,
    mini_pages: Option<MiniPageCounts>,
    /// Turns of the clock hand in the measured part.
    turns: f64,
    visits: Visits,
    rounds: Rounds,
    /// Pages of the sample, if not all pages were played.
    sampled: Option<f64>,
    /// Mean number of segments in a page's log block at the end.
    held_segments: f64,
    /// Whether places were ever lacking on the drive.
    lacked_room: bool,
    /// Whether warm-up and measured part end with a drain.
    drained: bool,
}

/// What a played run is of.
type Played<'a> = (&'a Workload, &'a LeafLevel, &'a Options);

/// Predicts runs of a tree of pages on each of the drives by playing it, once for all drives that
/// show it the same; `None` if the order of the accesses was lost.
pub(super) fn predict(
    of: Played<'_>,
    drives: &[Drive<'_>],
    method: Method,
) -> Option<Vec<Prediction>> {
    let (workload, level, options) = of;
    if workload.accesses.lost().is_some() {
        return None;
    }
    let sample = match has_deletes(workload) {
        true => 1,
        false => sample_of(level, options, method.effort),
    };
    let scale = level.weight as u64 * sample;
    let mut predictions = vec![None; drives.len()];
    let mut groups = drives::groups(drives, options, scale);
    while let Some(group) = groups.pop() {
        let members: Vec<Drive<'_>> = group.iter().map(|at| drives[*at]).collect();
        let mut below = Below::new(&members, options, (scale, method.effort));
        let how = (sample, method.drain);
        let run = play(of, members[0], &mut below, how).ok()?;
        if run.lacked_room {
            // A drive with more places might have had room.
            let by_places = drives::by_places(&group, drives, options, scale);
            if by_places.len() > 1 {
                groups.extend(by_places);
                continue;
            }
        }
        let weight = level.weight * sample as f64;
        let flashes = below.forecasts();
        for ((at, (device, _)), flash) in group.into_iter().zip(members).zip(flashes) {
            predictions[at] = Some(prediction(of, (&run, weight), (device, flash.as_ref())));
        }
    }
    predictions.into_iter().collect()
}

/// The prediction that a played run gives for one of its drives. Each page stands for `weight`.
fn prediction(
    (workload, level, options): Played<'_>,
    (run, weight): (&Run, f64),
    (device, flash): (&DeviceParams, Option<&Forecast>),
) -> Prediction {
    let counts = &run.counts;
    let user = (workload.measured.user_bytes as f64).max(1.0);
    // The log is that of the whole run; pages are those of the sample.
    let [log, page, extra] = counts.bytes.host;
    let page = page * weight;
    let host = HostWa::new([log, page, extra * weight], user);
    let ops = workload.measured.all_ops() as f64;
    let mini_pages = run.mini_pages.as_ref().map(|mini| MiniPagesPrediction {
        page_reads: counts.frames.misses as f64 * weight / ops.max(1.0),
        page_writes: counts.writes as f64 * weight / ops.max(1.0),
        ..MiniPagesPrediction::of(workload, mini, weight)
    });
    let hit_ratio = match &mini_pages {
        // All accesses are counted, as the most popular pages may not be in the sample (SHARDS-adj,
        // Waldspurger et al., FAST'15 §4.2).
        None => {
            let accesses = counts.accesses as f64 * level.weight;
            (1.0 - counts.frames.misses as f64 * weight / accesses.max(1.0)).max(0.0)
        }
        Some(mini) => mini.memory_hit_ratio(),
    };
    Prediction {
        estimated: workload.is_estimated(),
        overflow: counts.overflow * weight / user,
        device: device_wa(flash, device, (host.total, weight), user),
        host,
        stored: device.compression.map(|_| {
            let [log, page, extra] = counts.bytes.stored;
            HostWa::new([log, page * weight, extra * weight], user)
        }),
        hit_ratio,
        other_policies: run.visits.other_policies(options, ops, weight),
        leaves: level.count(),
        records_per_leaf: level.records_per_leaf(),
        rotation_ops: ops / run.turns,
        log_group_bytes: counts.redo.flushed as f64 / (counts.redo.flushes as f64).max(1.0),
        checkpoints: counts.checkpoints,
        mini_pages,
        mod_log: mod_log(run, options),
        untried: Vec::new(),
        warnings: workload.estimated().into_iter().collect(),
        model: Model::Played,
        bars: Some(bars::of(
            run,
            flash,
            (workload.measured.of(OpKind::Scan) == 0).then_some(hit_ratio),
            device.compression.is_some(),
        )),
    }
}

fn mod_log(run: &Run, options: &Options) -> Option<ModLogPrediction> {
    let rule = options.mod_log?;
    let delta_bytes_mean = run.held_segments * f64::from(rule.segment);
    Some(ModLogPrediction {
        beta: delta_bytes_mean / options.page_size as f64,
        delta_bytes_mean,
        full_flush_share: run.counts.whole as f64 / (run.counts.writes as f64).max(1.0),
    })
}

fn device_wa(
    flash: Option<&Forecast>,
    device: &DeviceParams,
    (host, weight): (f64, f64),
    user: f64,
) -> DeviceWa {
    let Some(flash) = flash else {
        return DeviceWa::default();
    };
    // A drive that compresses stores less than it gets, and an extent header with it.
    let host = match device.compression {
        Some(_) => flash.host_bytes as f64 * weight / user,
        None => host,
    };
    let gc = host * flash.gc_per_host;
    DeviceWa {
        total: host + gc,
        gc,
        effective_alpha: device.physical_pages * BLOCK_SIZE as f64
            / (weight * flash.in_use_bytes).max(1.0),
    }
}

/// Least frames and pages in a sample: fewer would not behave like a large cache.
const LEAST_FRAMES: u64 = 64;
const LEAST_PAGES: u64 = 4096;
/// Greatest number of pages for one that is sampled: erase blocks get as much smaller.
const MOST_SAMPLED: u64 = 16;

/// Whether records are deleted. Leaves are merged then, in the sample and out of it, so all pages are
/// played with any effort.
fn has_deletes(workload: &Workload) -> bool {
    let parts = [&workload.warmup, &workload.measured];
    parts.iter().any(|totals| totals.of(OpKind::Delete) > 0)
}

/// Of how many pages one is played, a power of two: all with full effort.
fn sample_of(level: &LeafLevel, options: &Options, effort: Effort) -> u64 {
    let mut sample = 1;
    if effort == Effort::Full {
        return sample;
    }
    let frames = options.frames() / level.weight as u64;
    while sample < MOST_SAMPLED
        && frames / (2 * sample) >= LEAST_FRAMES
        && level.starts.len() as u64 / (2 * sample) >= LEAST_PAGES
    {
        sample *= 2;
    }
    sample
}

/// Plays a tree of pages on a drive like this one, or on several.
///
/// # Errors
/// The list of accesses is in a file that cannot be read.
fn play(
    (workload, level, options): Played<'_>,
    (device, pace): Drive<'_>,
    below: &mut Below,
    (sample, drained): (u64, bool),
) -> io::Result<Run> {
    let scale = level.weight as u64 * sample;
    let regions = Regions::new(options, device.capacity_blocks, scale);
    let shape = CacheShape::new(
        options.frames() * options.page_size as u64,
        options.page_size,
        options.write_batch_pages,
    );
    let scaled = |count: f64| (count / scale as f64).round().max(1.0) as usize;
    let pages = level.starts.len().max(1);
    let frames = Frames::new(scaled(shape.frames), scaled(shape.batch), pages);
    let flushes_before =
        options.store.has_journal() || options.store.table() == Some(TablePersist::EachFlush);
    // Without a modification log, only a drive that compresses sees what is in the pages.
    let has_content = options.mod_log.is_some() || device.compression.is_some();
    let deltas = has_content.then(|| {
        let general = options.leaf_layouts().general();
        let bodies = Bodies::new((workload, level), options.page_size, general);
        let rule = options.mod_log.as_ref();
        Deltas::new(rule, options.page_size, bodies, (pages, flushes_before))
    });
    let codec = device.compression.map(|how| how.codec);
    let parts = Parts {
        frames,
        redo: Redo::new(options.log_packing, regions.log),
        homes: Homes::new(options, regions, (pages, codec)),
        deltas,
        blocks: Blocks {
            flash: below,
            sizes: content::sizes(workload, level, options, device.compression.as_ref()),
            bytes: Bytes::default(),
        },
        clients: Clients::new(pace),
        sample,
    };
    let mut tree = PageTree::new(workload, level, options, parts);
    let ring = BfShape::of(options);
    let warmup = workload.warmup.all_ops();
    // Clients that commit need a turn for each operation.
    let may_thin = !pace.is_some_and(|pace| pace.commits);
    let thinned = match sample > 1 && may_thin {
        true => Some(thinned::kept(workload, level, sample)?),
        false => None,
    };
    let accesses = thinned.as_deref().unwrap_or(&workload.accesses);
    let (tree, mini_pages) = match &ring {
        None => {
            play_through(accesses, (warmup, drained), &mut tree)?;
            (tree, None)
        }
        Some(shape) => {
            let mut tree = BfTree::new(tree, shape, scale as f64);
            play_through(accesses, (warmup, drained), &mut tree)?;
            let (tree, mini_pages) = tree.finish();
            (tree, Some(mini_pages))
        }
    };
    let (counts, turns, held_segments) = (tree.counts(), tree.turns(), tree.held_segments());
    let (rounds, lacked_room) = (tree.rounds(), tree.homes.lacked_room());
    let visits = tree.into_visits();
    Ok(Run {
        counts,
        mini_pages,
        turns,
        visits,
        rounds,
        sampled: (scale > 1).then(|| pages as f64 / sample as f64),
        held_segments,
        lacked_room,
        drained,
    })
}

/// A tree that can be played.
trait Tree {
    /// Plays an event, and the background work that becomes due.
    fn play(&mut self, event: Event);

    /// Leaves no change in memory, by a checkpoint.
    fn drain(&mut self);

    /// Forgets what the warm-up counted.
    fn begin_measuring(&mut self);
}

fn play_through(
    accesses: &Accesses,
    (warmup, drained): (u64, bool),
    tree: &mut impl Tree,
) -> io::Result<()> {
    let mut measuring = false;
    accesses.each_event(|time, event| {
        if !measuring && time >= warmup {
            measuring = true;
            if drained {
                tree.drain();
            }
            tree.begin_measuring();
        }
        tree.play(event);
    })?;
    if drained {
        tree.drain();
    }
    Ok(())
}
