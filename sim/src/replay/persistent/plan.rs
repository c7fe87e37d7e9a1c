//! The size of the device that a store in persistent memory needs.

use treering_engine::{LeafFormat, PmOptions};

use crate::predict::pm::growth::Growth;
use crate::predict::workload::Workload;

/// Bytes of a log entry (CCL-BTree §3.3).
pub(super) const ENTRY_BYTES: f64 = 24.0;

/// Chunks added to those expected for leaves, logs and records.
const SPARE_CHUNKS: f64 = 8.0;

/// Bytes for twice the leaves that these keys make in this order, for the longest log between two
/// cleanings, and for records outside leaves.
pub(super) fn device_bytes(options: &PmOptions, workload: &Workload) -> u64 {
    let tree = options.tree.facts();
    let grown = Growth::play(workload, tree.batch(), 0.0).leaves.len() as f64;
    let leaves = 2.0 * grown * workload.sample_weight() * LeafFormat::Block.bytes() as f64;
    let chunk = options.chunk_bytes as f64;
    // A larger leaf has the same bytes per slot, but it may be split earlier.
    let leaves = match tree.split_above {
        Some(most) => leaves * tree.leaves.slots() as f64 / most as f64,
        None => leaves,
    };
    let log = leaves * tree.log_share + 4.0 * chunk;
    // A record in bytes has a header and is rounded up, and a new version is written before the old
    // one is freed.
    let records = 4.0 * workload.data_bytes() + 64.0 * workload.records();
    (leaves + log + records + SPARE_CHUNKS * chunk) as u64
}
