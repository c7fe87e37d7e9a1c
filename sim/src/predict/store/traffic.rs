//! The writes that the drive below a store receives, by kind of block: pages by write rate, log,
//! snapshots, journal or page table, and the space that the store has not reached yet.

use treering_engine::{BLOCK_SIZE, TablePersist};

use super::run::{Checkpoint, Run, TABLE_ENTRIES, Written};
use super::stored::{Logged, Sizes};
use crate::predict::cache::{self, CachePrediction, PageClass};
use crate::predict::device::{Before, DeviceParams, Traffic};

/// Number of moments of the measured part at which the drive is evaluated. It is enough for the
/// saw-tooth of the live log.
const MOMENTS: u32 = 64;

/// Write rate of a page, up to a common factor.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteRate {
    by_eviction: f64,
    by_checkpoint: f64,
}

impl WriteRate {
    pub(super) fn sum(self) -> f64 {
        self.by_eviction + self.by_checkpoint
    }
}

impl Run<'_> {
    /// Old page images per page that survive only because the table of the last checkpoint refers
    /// to them, averaged over the time between two table writes. With `x` writes of each of `n`
    /// pages it is `n (1 - (1 - e^-x)/x)` in all.
    fn held_share(&self, writes_per_page: f64, tables: f64) -> f64 {
        let lazy = Some(TablePersist::Checkpoint);
        let each = writes_per_page / tables;
        if self.options.store.table() != lazy || !each.is_finite() || each <= 0.0 {
            return 0.0;
        }
        1.0 + (-each).exp_m1() / each
    }

    /// Blocks of a preconditioned drive that the store has not reached half-way through the
    /// measured part. The store takes the lowest free place, so it reaches as many places as are in
    /// use at the same time. The log runs through its whole region.
    pub(super) fn idle_blocks(
        &self,
        pages: f64,
        checkpoints: &[Checkpoint],
        device: &DeviceParams,
    ) -> f64 {
        if device.before == Before::Nothing {
            return 0.0;
        }
        let moved = match self.options.store.table() {
            None => 0.0,
            Some(TablePersist::EachFlush) => self.shape.batch,
            // Just before the table is written, the old places of all pages written since the last
            // time are still held.
            Some(TablePersist::Checkpoint) => {
                let leaves = self.level.count();
                let tables = self.table_writes(pages, checkpoints.len() as f64, device);
                let held = leaves * -(-pages / tables.max(1.0) / leaves).exp_m1();
                self.shape.batch + held
            }
        };
        let places = (self.spare_places(device) - moved).max(0.0);
        let log = self.positions(self.warmup_log + 0.5 * self.measured_log);
        let log = (self.options.log_bytes as f64 - log).max(0.0);
        (places * self.place_bytes() + log) / BLOCK_SIZE as f64
    }

    /// All blocks that the drive holds, by kind.
    pub(super) fn traffic(
        &self,
        cache: &CachePrediction,
        written: &Written<'_>,
        logged: &Logged,
        sizes: &Sizes,
        device: &DeviceParams,
    ) -> Traffic {
        let block = BLOCK_SIZE as f64;
        let Written {
            log_bytes,
            extra_bytes,
            checkpoints,
            ..
        } = *written;
        let pages = written.pages * logged.whole_share();
        let per_page = sizes.page;
        let mut traffic = Traffic::default();
        let rates: Vec<(&PageClass, WriteRate)> = (self.classes.iter())
            .map(|c| (c, self.page_write_rate(c, cache)))
            .collect();
        let sum: f64 = rates.iter().map(|(c, r)| c.pages * r.sum()).sum();
        let scale = if sum > 0.0 { pages / sum } else { 0.0 };
        let deltas = written.pages - pages;
        let (log_blocks, extra_blocks) = (log_bytes / block, extra_bytes / block);
        let host_blocks = pages * per_page
            + deltas * sizes.delta
            + log_blocks * sizes.log
            + extra_blocks * sizes.extra
            + self.overflow.written * sizes.overflow;
        let tables = self.table_writes(pages, checkpoints.len() as f64, device);
        for (class, rate) in &rates {
            let n = class.pages;
            // What a checkpoint replaces goes with its table, at once.
            let held = n * self.held_share(rate.by_eviction * scale, tables);
            let writes = n * rate.sum() * scale;
            let apart = cache::least_gap(class, cache.rotation_ops, self.checkpoint_ops());
            // By Little's law, two writes of a page are `mean` host writes apart, and an image
            // stays for `longer` after it was replaced.
            let (mean, longer) = if writes > 0.0 {
                (n / writes * host_blocks, held / writes * host_blocks)
            } else {
                (0.0, 0.0)
            };
            traffic.add_apart(
                (n + held) * per_page,
                writes * per_page,
                apart * mean + longer,
            );
        }
        let known: f64 = rates.iter().map(|(c, _)| c.pages).sum();
        traffic.add((self.level.count() - known).max(0.0) * per_page, 0.0);
        let overflow = self.overflow;
        traffic.add(
            overflow.live * sizes.overflow,
            overflow.written * sizes.overflow,
        );
        // A log block lives until the next Δ, or until its whole page is written.
        traffic.add(known * sizes.delta_held, deltas * sizes.delta);
        traffic.log_writes = log_blocks * sizes.log;
        let every = self.options.checkpoint_log_bytes as f64;
        let from = self.positions(self.warmup_log);
        let length = self.positions(self.measured_log);
        traffic.log_kept = length / block * sizes.log_kept;
        traffic.live_log = (0..MOMENTS)
            .map(|i| from + length * (f64::from(i) + 0.5) / f64::from(MOMENTS))
            .map(|position| position.rem_euclid(every) / block * sizes.log_kept)
            .collect();
        let count = checkpoints.len() as f64;
        let snapshot = self.snapshot_bytes() / block * sizes.extra;
        let snapshots = count * snapshot;
        traffic.add(snapshot, snapshots);
        let rest = (extra_blocks * sizes.extra - snapshots).max(0.0);
        let store = self.options.store;
        let places = match store.table() {
            None if store.has_journal() => self.shape.batch * per_page,
            None => 0.0,
            Some(_) => (self.level.count() / TABLE_ENTRIES).ceil(),
        };
        traffic.add((places * sizes.extra).max(1.0), rest);
        traffic
    }

    /// Write rate of one page of the class, up to a common factor.
    pub(super) fn page_write_rate(&self, class: &PageClass, cache: &CachePrediction) -> WriteRate {
        if cache.rotation_ops.is_infinite() {
            return WriteRate {
                by_eviction: 0.0,
                by_checkpoint: class.rate * class.write_share,
            };
        }
        let alone = cache::one_page(class, cache.rotation_ops, self.checkpoint_ops());
        WriteRate {
            by_eviction: alone.evicted_dirty,
            by_checkpoint: alone.dirty_at_checkpoint / self.checkpoint_ops(),
        }
    }
}
