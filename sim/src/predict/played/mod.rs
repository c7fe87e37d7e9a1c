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
//! | `frames` | second chance, write-back in batches, sweeps of checkpoints | 16 B a frame |
//! | `redo` | end and durable end of the log, blocks of a flush | two numbers |
//! | `clients` | virtual time: reads, group commit, flush intervals | a turn per client |
//! | `homes` | in place, copy-on-write, shadowing: places, journal, table, snapshots | 12 B a page |
//! | `deltas` | segments that differ from a page's image | a bit a segment |
//!
//! Cost: some 50 to 100 ns per operation, without a look at the trace.

mod blocks;
mod clients;
mod deltas;
mod frames;
mod homes;
mod layout;
mod leaves;
mod marks;
mod redo;
mod tree;

use std::io;

use treering_engine::Options;

use self::blocks::{Blocks, Bytes};
pub(super) use self::blocks::{Flash, NoFlash, StoredSizes};
use self::clients::Clients;
use self::frames::Frames;
use self::homes::Homes;
use self::layout::Regions;
use self::redo::Redo;
pub(super) use self::tree::Counts;
use self::tree::{PageTree, Parts};
use super::cache::CacheShape;
use super::device::DeviceParams;
use super::leaf::LeafLevel;
use super::log::Pace;
use super::workload::Workload;

/// What a played run is like besides its counts.
pub(super) struct Run {
    pub(super) counts: Counts,
    /// Mean number of segments in a page's log block at the end.
    pub(super) held_segments: f64,
    /// Turns of the clock hand in the measured part.
    pub(super) turns: f64,
}

/// Plays a tree of pages without mini-pages.
///
/// # Errors
/// The list of accesses is in a file that cannot be read.
pub(super) fn play(
    (workload, level): (&Workload, &LeafLevel),
    options: &Options,
    device: &DeviceParams,
    pace: Option<&Pace>,
    (flash, sizes): (&mut dyn Flash, StoredSizes),
) -> io::Result<Run> {
    let scale = level.weight as u64;
    let regions = Regions::new(options, device.capacity_blocks, scale);
    let shape = CacheShape::new(
        options.frames() * options.page_size as u64,
        options.page_size,
        options.write_batch_pages,
    );
    let scaled = |count: f64| (count / level.weight).round().max(1.0) as usize;
    let pages = level.starts.len().max(1);
    let frames = Frames::new(scaled(shape.frames), scaled(shape.batch), pages);
    let parts = Parts {
        frames,
        redo: Redo::new(options.log_packing, regions.log),
        homes: Homes::new(options, regions, pages),
        deltas: None,
        blocks: Blocks {
            flash,
            sizes,
            bytes: Bytes::default(),
        },
        clients: Clients::new(pace),
    };
    let mut tree = PageTree::new(workload, level, options, parts);
    let warmup = workload.warmup.all_ops();
    let mut measuring = false;
    workload.accesses.each(|step| {
        if !measuring && step.time >= warmup {
            measuring = true;
            tree.begin_measuring();
        }
        tree.step(step);
    })?;
    let turns = tree.frames.counts.passed as f64 / tree.frames.len() as f64;
    let (counts, held_segments) = tree.finish();
    Ok(Run {
        counts,
        held_segments,
        turns,
    })
}
