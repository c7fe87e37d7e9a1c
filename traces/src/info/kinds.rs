//! Kinds of operations.

use serde::Serialize;

use crate::OpKind;

/// Whether an operation is a put or a delete.
pub(super) fn is_write(kind: OpKind) -> bool {
    matches!(kind, OpKind::Put | OpKind::Delete)
}

/// Operations by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OpCounts {
    /// Gets.
    pub get: u64,
    /// Puts.
    pub put: u64,
    /// Deletes.
    pub delete: u64,
    /// Scans.
    pub scan: u64,
}

impl OpCounts {
    /// Counts an operation.
    pub(super) fn add(&mut self, kind: OpKind) {
        match kind {
            OpKind::Get => self.get += 1,
            OpKind::Put => self.put += 1,
            OpKind::Delete => self.delete += 1,
            OpKind::Scan => self.scan += 1,
        }
    }

    /// Returns the sum over all kinds.
    pub fn total(&self) -> u64 {
        self.get + self.put + self.delete + self.scan
    }
}
