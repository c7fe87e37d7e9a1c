//! How full leaves are.

use crate::types::PageId;

/// How full one leaf is; see [`super::Store::leaf_fill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafFill {
    /// The leaf.
    pub page: PageId,
    /// Number of records in it.
    pub records: u32,
    /// Bytes in use, including the header and the fences.
    pub used_bytes: u32,
    /// Bytes of the common key prefix that is not stored.
    pub prefix_bytes: u32,
}
