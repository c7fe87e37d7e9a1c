//! Predicts how much modification logs and compression reduce what a store writes.

use std::collections::BTreeMap;

use treering_engine::{BLOCK_SIZE, LogPacking, ModLog, Options, TablePersist};

use super::flushes::Flushes;
use super::run::{Run, Written};
use crate::predict::cache::{CachePrediction, PageClass};
use crate::predict::content::{self, Compression, Stored};
use crate::predict::device::DeviceParams;
use crate::predict::log::PAYLOAD_BYTES;
use crate::predict::mod_log::{self, Growth, Visits};
use crate::predict::prediction::ModLogPrediction;

/// Bytes of a superblock after compression, of which some 80 are in use.
const SUPERBLOCK_STORED: f64 = 80.0;

/// Bytes of a zero-filled overflow block after compression: the header, and a code for the zeros.
const EMPTY_OVERFLOW_BYTES: f64 = 80.0;

/// The modification logs of all pages, averaged over page writes.
pub(super) struct Logged {
    rule: Option<ModLog>,
    growth: Growth,
}

impl Logged {
    /// Share of page writes that write the whole page.
    pub(super) fn whole_share(&self) -> f64 {
        self.growth.whole_share
    }

    pub(super) fn prediction(&self, options: &Options) -> Option<ModLogPrediction> {
        let rule = self.rule?;
        let delta_bytes_mean = self.growth.last * f64::from(rule.segment);
        Some(ModLogPrediction {
            beta: delta_bytes_mean / options.page_size as f64,
            delta_bytes_mean,
            full_flush_share: self.growth.whole_share,
        })
    }

    /// Mean of `size` over the writes to log blocks; `size` depends on the number of segments.
    fn mean_delta(&self, size: impl Fn(usize) -> f64) -> f64 {
        let deltas = (1..).zip(&self.growth.by_segments[1..]);
        let (sum, share) = deltas.fold((0.0, 0.0), |(sum, all), (d, share)| {
            (sum + share * size(d), all + share)
        });
        if share > 0.0 { sum / share } else { 0.0 }
    }
}

/// Sizes on the medium, in units of 4 KiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// A page written whole.
    pub(super) page: f64,
    /// The log block of a page, averaged over its writes.
    pub(super) delta: f64,
    /// The current log block of a page, averaged over pages.
    pub(super) delta_held: f64,
    /// A block of the redo log, averaged over its writes.
    pub(super) log: f64,
    /// A block of the redo log that is no longer written.
    pub(super) log_kept: f64,
    /// A block of class `Extra`.
    pub(super) extra: f64,
    /// An overflow block of a long value.
    pub(super) overflow: f64,
    /// Mean over all blocks written.
    pub(super) mean: f64,
}

/// The result of compression.
pub(super) struct Compressed {
    /// Bytes by class: log, page, extra; without the headers of extents.
    pub(super) bytes: [f64; 3],
    pub(super) sizes: Sizes,
}

impl Run<'_> {
    /// Predicts the modification logs for `pages` page writes.
    pub(super) fn mod_log(&self, cache: &CachePrediction, pages: f64) -> Logged {
        let Some(rule) = self.options.mod_log else {
            return Logged {
                rule: None,
                growth: Growth {
                    whole_share: 1.0,
                    by_segments: vec![1.0],
                    last: 0.0,
                },
            };
        };
        let most = mod_log::most_segments(&rule, self.options.page_size);
        let mut sum = Growth {
            whole_share: 0.0,
            by_segments: vec![0.0; most + 1],
            last: 0.0,
        };
        let (mut writes, mut held) = (0.0, 0.0);
        for (visits, share, count) in self.visits(&rule, cache, pages) {
            let growth = mod_log::play(&rule, self.options.page_size, &visits);
            for (to, from) in sum.by_segments.iter_mut().zip(&growth.by_segments) {
                *to += share * from;
            }
            sum.last += count * growth.last;
            writes += share;
            held += count;
        }
        sum.by_segments
            .iter_mut()
            .for_each(|p| *p /= f64::max(writes, 1e-300));
        sum.last /= f64::max(held, 1e-300);
        if writes == 0.0 {
            sum.by_segments[0] = 1.0;
        }
        sum.whole_share = sum.by_segments[0];
        Logged {
            rule: Some(rule),
            growth: sum,
        }
    }

    /// Groups pages by write rate. Returns each group's visits, with its share of the page writes
    /// and its number of pages.
    fn visits(
        &self,
        rule: &ModLog,
        cache: &CachePrediction,
        pages: f64,
    ) -> Vec<(Visits, f64, f64)> {
        let rates: Vec<f64> = (self.classes.iter())
            .map(|c| self.page_write_rate(c, cache).sum())
            .collect();
        let all: f64 = self
            .classes
            .iter()
            .zip(&rates)
            .map(|(c, r)| c.pages * r)
            .sum();
        if all <= 0.0 || pages <= 0.0 {
            return Vec::new();
        }
        let measured = &self.workload.measured;
        let writes: f64 = self
            .classes
            .iter()
            .map(|c| c.pages * c.rate * c.write_share)
            .sum();
        // Below mini-pages a write visit is a merge of several records.
        let records_per_write = measured.writes() as f64 / (writes * self.ops).max(1.0);
        let touches = content::touches(self.workload, self.level, self.options, rule);
        let segments = (touches.segments * self.evenness()).max(1.0);
        let before = self.workload.rewrites_before / measured.writes().max(1) as f64;
        let popularity = self.popularity();
        // Pages are grouped in steps of 5 %.
        let step = |x: f64| (x.max(1e-3).ln() * 20.0).round() as i64;
        let mut kinds: BTreeMap<(i64, i64), (Visits, f64, f64)> = BTreeMap::new();
        for (class, rate) in self.classes.iter().zip(rates) {
            // Writes of one such page in the measured part.
            let during = rate / all * pages;
            let counted = class.rate * class.write_share * self.ops;
            let updates = (counted * records_per_write / during.max(1e-9)).max(1.0);
            let visits = Visits {
                segments,
                touched: touches.shares.clone(),
                updates,
                before: before * popularity(counted) * during / counted.max(1e-9),
                during,
            };
            let kind = kinds.entry((step(updates), step(during)));
            let kind = kind.or_insert((visits, 0.0, 0.0));
            kind.1 += class.pages * during;
            kind.2 += class.pages;
        }
        // Pages that are not visited in the measured part have log blocks too.
        let visited: f64 = self.classes.iter().map(|c| c.pages).sum();
        let first = kinds.values().next().map(|kind| kind.0.clone());
        if let (Some(like), true) = (first, self.level.count() - visited > 0.0) {
            let visits = Visits {
                before: before * popularity(0.0) * pages / (writes * self.ops).max(1e-9),
                during: 0.0,
                ..like
            };
            kinds.insert((i64::MIN, 0), (visits, 0.0, self.level.count() - visited));
        }
        kinds.into_values().collect()
    }

    /// Estimates a page's writes before the measured part, in an equally long stretch, from its
    /// count in the measured part. This is the mean for gamma-distributed popularity with the mean
    /// and variance of the counts. If pages are equally popular, counts differ by chance alone
    /// (variance = mean), and the estimate is the mean.
    fn popularity(&self) -> impl Fn(f64) -> f64 {
        let counts = || {
            let count = |c: &PageClass| c.rate * c.write_share * self.ops;
            self.classes.iter().map(move |c| (c.pages, count(c)))
        };
        let pages = self.level.count().max(1.0);
        let mean = counts().map(|(n, c)| n * c).sum::<f64>() / pages;
        let square = counts().map(|(n, c)| n * c * c).sum::<f64>() / pages;
        let beyond_chance = (square - mean * mean - mean).max(0.0);
        move |count| {
            if beyond_chance > 0.0 && mean > 0.0 {
                let shape = mean * mean / beyond_chance;
                (count + shape) * mean / (mean + shape)
            } else {
                mean
            }
        }
    }

    /// Factor by which the effective number of segments is smaller because some records are written
    /// more often. It is Simpson's index of the writes, corrected for the bias of counts.
    fn evenness(&self) -> f64 {
        let (mut alike, mut found) = (0.0, 0.0);
        for (i, from) in self.level.starts.iter().enumerate() {
            let end = self.level.starts.get(i + 1).map(|s| *s as usize);
            let keys = &self.level.order[*from as usize..end.unwrap_or(self.level.order.len())];
            let counts = (keys.iter()).map(|k| f64::from(self.workload.keys.writes(*k)));
            let (sum, pairs) = counts.fold((0.0, 0.0), |(s, p), c| (s + c, p + c * (c - 1.0)));
            alike += sum * (sum - 1.0) / (keys.len().max(1)) as f64;
            found += pairs;
        }
        if found > 0.0 {
            (alike / found).clamp(0.0, 1.0)
        } else {
            1.0
        }
    }

    /// Sizes on a drive that does not compress.
    pub(super) fn uncompressed(&self, logged: &Logged) -> Sizes {
        Sizes {
            page: self.options.page_size as f64 / BLOCK_SIZE as f64,
            delta: 1.0,
            delta_held: 1.0 - logged.whole_share(),
            log: 1.0,
            log_kept: 1.0,
            extra: 1.0,
            overflow: 1.0,
            mean: 1.0,
        }
    }

    /// Sizes after compression: B⁻-tree eq. (2).
    pub(super) fn compressed(
        &self,
        written: &Written<'_>,
        logged: &Logged,
        flushes: &Flushes,
        device: &DeviceParams,
        how: &Compression,
    ) -> Compressed {
        let block = BLOCK_SIZE as f64;
        let stored = content::sample(self.workload, self.level, self.options, how);
        let whole = written.pages * logged.whole_share();
        let deltas = written.pages - whole;
        let delta = logged.mean_delta(|d| stored.delta(d));
        let page_bytes = whole * stored.page + deltas * delta;
        let log_bytes = self.stored_log(flushes, &stored);
        let extra_bytes = self.stored_extra(whole, written, device, &stored);
        let log_blocks = written.log_bytes / block;
        let extra_blocks = written.extra_bytes / block;
        let each = |bytes: f64, blocks: f64| (bytes / blocks.max(1e-9) + how.extent_header) / block;
        let kept = match self.options.log_packing {
            LogPacking::Packed => stored.log(PAYLOAD_BYTES),
            LogPacking::Sparse => log_bytes / log_blocks.max(1e-9),
        };
        let overflow_blocks = self.overflow.written;
        let overflow_bytes = overflow_blocks * block * self.overflow_alpha();
        let extents =
            whole * stored.page_extents + deltas + log_blocks + extra_blocks + overflow_blocks;
        let page_bytes = page_bytes + overflow_bytes;
        let all = log_bytes + page_bytes + extra_bytes;
        Compressed {
            bytes: [log_bytes, page_bytes, extra_bytes],
            sizes: Sizes {
                page: (stored.page + stored.page_extents * how.extent_header) / block,
                delta: (delta + how.extent_header) / block,
                delta_held: (1.0 - logged.whole_share()) * (delta + how.extent_header) / block,
                log: each(log_bytes, log_blocks),
                log_kept: (kept + how.extent_header) / block,
                extra: each(extra_bytes, extra_blocks),
                overflow: self.overflow_alpha() + how.extent_header / block,
                mean: each(all, extents).max(0.01),
            },
        }
    }

    /// Compression ratio of overflow blocks: headers and values remain, except the zeros at the
    /// ends of values.
    fn overflow_alpha(&self) -> f64 {
        let (totals, page_size) = (&self.workload.measured, self.options.page_size);
        let written = totals.overflow_bytes(page_size) as f64;
        let values = totals.overflow_value_bytes(page_size) as f64;
        let headers = written / BLOCK_SIZE as f64 * EMPTY_OVERFLOW_BYTES;
        let left = values * (1.0 - self.workload.zeros) + headers;
        (left / written.max(1.0)).min(1.0)
    }

    fn stored_log(&self, flushes: &Flushes, stored: &Stored) -> f64 {
        let last = match self.options.log_packing {
            // The last block of a group has any fill, and holds earlier records too.
            LogPacking::Packed => stored.log_at_random(),
            LogPacking::Sparse if flushes.blocks <= 1.0 => stored.log(flushes.group),
            LogPacking::Sparse => stored.log_at_random(),
        };
        let full = (flushes.blocks - 1.0).max(0.0) * stored.log(PAYLOAD_BYTES);
        flushes.count * (full + last) + flushes.out_of_turn * stored.log_at_random()
    }

    fn stored_extra(
        &self,
        whole: f64,
        written: &Written<'_>,
        device: &DeviceParams,
        stored: &Stored,
    ) -> f64 {
        let count = written.checkpoints.len() as f64;
        let snapshots = self.snapshot_bytes() / BLOCK_SIZE as f64 * stored.snapshot;
        let own = count * (snapshots + SUPERBLOCK_STORED);
        let store = self.options.store;
        own + match store.table() {
            None if store.has_journal() => whole * stored.page,
            None => 0.0,
            Some(TablePersist::EachFlush) => whole * stored.table,
            Some(TablePersist::Checkpoint) => {
                self.table_blocks(whole, count, device) * stored.table
            }
        }
    }
}
