//! Predicts how often the redo log is flushed in a run, and what that writes.

use treering_engine::{BLOCK_SIZE, Durability, LogPacking};

use super::run::{Checkpoint, Run};
use crate::predict::cache::CachePrediction;
use crate::predict::log::{self, Pace, Triggers};

/// The flushes of the log in the measured part.
pub(super) struct Flushes {
    /// Number of flushes, without those out of turn.
    pub(super) count: f64,
    pub(super) group: f64,
    /// Blocks per flush.
    pub(super) blocks: f64,
    pub(super) out_of_turn: f64,
    pub(super) device_bytes: f64,
}

impl Run<'_> {
    /// Predicts the flushes and the bytes that they write.
    pub(super) fn log(
        &self,
        cache: &CachePrediction,
        checkpoints: &[Checkpoint],
        pages: f64,
        pace: Option<&Pace>,
    ) -> Flushes {
        let writes = self.workload.measured.writes() as f64;
        let per_op = self.log_per_op();
        let record = self.measured_log / writes.max(1.0);
        let op_ns = pace.map_or(0.0, |pace| cache.misses * pace.read_ns);
        let commit = match (self.options.durability, pace) {
            (_, Some(pace)) if pace.commits => {
                // Between two writes, only operations with a cache miss take time.
                let share = writes / self.ops.max(1.0);
                let hit = (1.0 - cache.misses).clamp(0.0, 1.0);
                let at_once = share / (1.0 - (1.0 - share) * hit).max(1e-9);
                let gap = op_ns * (1.0 / share.max(1e-9) - 1.0);
                record * pace.commits_per_flush(gap, at_once)
            }
            (Durability::PerCommit, _) => record,
            _ => f64::INFINITY,
        };
        let interval = match (self.options.durability, pace) {
            (Durability::Grouped(interval), Some(pace)) if op_ns > 0.0 => {
                // The interval is checked when an operation ends, on average half an operation
                // late.
                let late = 0.5 * pace.read_ns / f64::from(pace.clients);
                (interval.0 as f64 + late) * f64::from(pace.clients) / op_ns * per_op
            }
            _ => f64::INFINITY,
        };
        // B + 1 pages miss between two write-backs. The first dirty page of the next turn requires
        // a flush.
        let between = (self.shape.batch + 1.0) / cache.misses.max(1e-300);
        let evicted = (cache.evicted_dirty / cache.misses.max(1e-300)).max(1e-9);
        let in_frame = cache.rotation_ops - 0.5 * between;
        let wait = in_frame + between * (1.0 / evicted - 1.0) / (self.shape.batch + 1.0);
        let wal_rule = match &self.buffer {
            Some(buffer) => self.measured_log / buffer.flushes.max(1e-9),
            None if pages > 0.0 => per_op * wait.max(between),
            None => f64::INFINITY,
        };
        let triggers = Triggers {
            buffer: self.options.log_buffer_bytes as f64 + 0.5 * record,
            interval,
            wal_rule,
            commit,
        };
        let group = triggers.group().min(self.measured_log.max(1.0));
        // The first step of each checkpoint and its end each flush once out of turn.
        let out_of_turn = checkpoints.len() as f64 * BLOCK_SIZE as f64;
        let blocks = match self.options.log_packing {
            LogPacking::Packed => log::blocks_per_flush(group),
            LogPacking::Sparse => log::sparse_blocks_per_flush(group),
        };
        let count = self.measured_log / group.max(1.0);
        Flushes {
            count,
            group,
            blocks,
            out_of_turn: checkpoints.len() as f64,
            device_bytes: count * blocks * BLOCK_SIZE as f64 + out_of_turn,
        }
    }
}
