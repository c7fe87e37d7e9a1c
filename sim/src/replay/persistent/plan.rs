//! The size of the device that a store in persistent memory needs.

use treering_engine::{PmOptions, PmTreeKind};

use crate::predict::pm::growth::Growth;
use crate::predict::workload::Workload;

/// Bytes of a leaf and of a log entry (CCL-BTree §3.3, §4.1).
const LEAF_BYTES: f64 = 256.0;
pub(super) const ENTRY_BYTES: f64 = 24.0;

/// Slots of a LodgeTree's leaf (LodgeTree §IV-A).
pub(super) const LODGE_SLOTS: f64 = 27.0;

/// Chunks added to those expected for leaves, logs and records.
const SPARE_CHUNKS: f64 = 8.0;

/// Slots of a leaf's buffer node; 0 for trees without.
pub(super) fn batch(tree: &PmTreeKind) -> usize {
    match tree {
        PmTreeKind::PmTree | PmTreeKind::Global(_) | PmTreeKind::Lodge(_) => 0,
        PmTreeKind::Ccl(ccl) => ccl.batch,
    }
}

/// Bytes for twice the leaves that these keys make in this order, for the longest log between two
/// cleanings, and for records outside leaves.
pub(super) fn device_bytes(options: &PmOptions, workload: &Workload) -> u64 {
    let grown = Growth::play(workload, batch(&options.tree), 0.0)
        .leaves
        .len() as f64;
    let leaves = 2.0 * grown * workload.sample_weight() * LEAF_BYTES;
    let chunk = options.chunk_bytes as f64;
    // Bytes of log per byte of leaves.
    let longest = match options.tree {
        PmTreeKind::PmTree => 0.0,
        PmTreeKind::Ccl(ccl) => {
            let buffered = 4.0 * ENTRY_BYTES * ccl.batch as f64 / LEAF_BYTES;
            buffered.max(2.0 * f64::from(ccl.log_percent) / 100.0)
        }
        // One entry for each change of sixteen bytes.
        PmTreeKind::Global(global) => 2.0 * 1.5 * f64::from(global.buffer_percent) / 100.0,
        // A node has at most one entry per slot, and at least two leaves.
        PmTreeKind::Lodge(lodge) => {
            let buffered = ENTRY_BYTES * lodge.slots as f64 / (4.0 * LEAF_BYTES);
            buffered.max(2.0 * f64::from(lodge.log_percent) / 100.0)
        }
    };
    // The same bytes per slot; but leaves may be split earlier.
    let leaves = match options.tree {
        PmTreeKind::Lodge(lodge) => leaves * LODGE_SLOTS / lodge.t_split as f64,
        _ => leaves,
    };
    let log = leaves * longest + 4.0 * chunk;
    // A record in bytes has a header and is rounded up, and a new version is written before the old
    // one is freed.
    let records = 4.0 * workload.data_bytes() + 64.0 * workload.records();
    (leaves + log + records + SPARE_CHUNKS * chunk) as u64
}
