//! Blocks of the redo log, with the records of some stretches of the trace.

use treering_engine::node;
use treering_engine::wal::Record;
use treering_engine::{BLOCK_SIZE, POINTER_BYTES, PageId, TreeKind, is_long};
use treering_traces::OpKind;

use super::{Sampler, Stored};
use crate::predict::leaf::LeafLevel;
use crate::predict::log::PAYLOAD_BYTES;
use crate::predict::workload::Step;

/// Bytes of records in the emptiest log blocks made. Fuller ones follow in even steps.
const FEW_BYTES: [usize; 5] = [0, 32, 64, 128, 192];
const FILLS: usize = 16;
/// Number of log blocks made of each fill.
const LOG_BLOCKS: usize = 8;

impl Sampler<'_> {
    pub(super) fn log(&mut self, stored: &mut Stored) {
        let stretches = self.stretches();
        if stretches.is_empty() {
            return;
        }
        let payload = PAYLOAD_BYTES as usize;
        let even = (1..=FILLS).map(|step| payload * step / FILLS);
        for fill in FEW_BYTES.into_iter().chain(even) {
            let sizes = stretches.iter().map(|steps| self.log_block(steps, fill));
            let size: f64 = sizes.sum();
            stored
                .log
                .push((fill as f64, size / stretches.len() as f64));
        }
    }

    /// Some stretches of writes that follow one another in the measured part of the trace, each
    /// enough for two blocks. If the list of accesses cannot be read, there are none.
    fn stretches(&self) -> Vec<Vec<Step>> {
        let writes = self.workload.measured.writes() as f64 / self.workload.sample_weight();
        let every = (writes / LOG_BLOCKS as f64).max(1.0) as u64;
        let warmup = self.workload.warmup.all_ops();
        let mut stretches: Vec<Vec<Step>> = Vec::new();
        let mut live = vec![false; self.workload.keys.len()];
        let logs_all = matches!(self.options.tree, TreeKind::Bf(_));
        let (mut number, mut left) = (0, 0);
        let read = self.workload.accesses.each(|step| {
            let is_put = step.kind == OpKind::Put;
            if !is_put && step.kind != OpKind::Delete {
                return;
            }
            let was_live = std::mem::replace(&mut live[step.key as usize], is_put);
            // Only a tree that does not look logs that a key without a record is deleted.
            if step.time < warmup || !(is_put || was_live || logs_all) {
                return;
            }
            if number % every == 0 && stretches.len() < LOG_BLOCKS {
                stretches.push(Vec::new());
                left = 2 * PAYLOAD_BYTES as i64;
            }
            number += 1;
            if left > 0
                && let Some(stretch) = stretches.last_mut()
            {
                stretch.push(step);
                left -= self.record(step).to_bytes().len() as i64;
            }
        });
        if read.is_err() {
            stretches.clear();
        }
        stretches
    }

    /// The log record of a write, with a value of zeros.
    fn record(&self, step: Step) -> Record<'_> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let key = self.workload.key(step.key);
        let page = PageId(self.leaf_of(key) as u64);
        if step.kind == OpKind::Delete {
            return Record::Delete { page, key };
        }
        let limits = node::limits(self.options.page_size);
        let len = match is_long(&limits, key.len(), step.len as usize) {
            true => POINTER_BYTES,
            false => step.len as usize,
        };
        let value = &ZEROS[..len.min(ZEROS.len())];
        Record::Put { page, key, value }
    }

    fn leaf_of(&self, key: &[u8]) -> usize {
        let LeafLevel { starts, order, .. } = self.level;
        let first = |start: &u32| self.workload.key(order[*start as usize]);
        let behind = starts.partition_point(|start| first(start) <= key);
        behind.saturating_sub(1)
    }

    /// The compressed size of a log block with `fill` bytes of these writes' records.
    fn log_block(&mut self, steps: &[Step], fill: usize) -> f64 {
        let mut block = vec![0; BLOCK_SIZE];
        let header = BLOCK_SIZE - PAYLOAD_BYTES as usize;
        // Checksum, and fields that grow from block to block: epoch, index, bytes in use.
        for at in [0, 1, 2, 3, 4, 8, 9, 10, 16, 17, 18] {
            block[at] = self.below(256) as u8;
        }
        // A flush ends with a record; a full block begins and ends anywhere.
        let is_full = fill == PAYLOAD_BYTES as usize;
        let mut bytes: Vec<u8> = Vec::new();
        for step in steps {
            if bytes.len() >= fill && !is_full {
                break;
            }
            let workload = self.workload;
            self.number += 1;
            match self.record(*step) {
                Record::Put { page, value, .. } => {
                    let value = match value.len() == step.len as usize {
                        true => self.values.make(self.number, value.len()).to_vec(),
                        false => self.pointer(step.len as usize).to_vec(),
                    };
                    let (key, value) = (workload.key(step.key), &value[..]);
                    bytes.extend(Record::Put { page, key, value }.to_bytes());
                }
                other => bytes.extend(other.to_bytes()),
            }
        }
        let more = bytes.len().saturating_sub(fill);
        let from = if is_full { self.below(more + 1) } else { more };
        let bytes = &bytes[from..(from + fill).min(bytes.len())];
        block[header..header + bytes.len()].copy_from_slice(bytes);
        self.size(&block).0
    }
}
