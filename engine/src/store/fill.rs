//! How full leaves are.

use crate::types::PageId;

/// How full one leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafFill {
    /// The leaf.
    pub page: PageId,
    /// Records in it.
    pub records: u32,
    /// Bytes in use, header and fences included.
    pub used_bytes: u32,
    /// Length of the truncated prefix.
    pub prefix_bytes: u32,
}
