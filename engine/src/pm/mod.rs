//! What trees in persistent memory are made of: space, leaves, records, buffer nodes, logs.
//!
//! ```text
//! DRAM   index: fence -> leaf        buffer nodes: one a leaf
//! PM     superblock, directory | chunks of leaves | chunks of log entries | chunks of records
//! ```
//!
//! The order in which words become durable is the whole of crash consistency here; each file says which orders it keeps and why. The contract is that of
//! [`crate::device::PmDevice`]: an aligned word is atomic, and nothing else has an order but by a fence.

pub(crate) mod entries;
pub(crate) mod layout;
pub(crate) mod leaf;
pub(crate) mod logs;
pub(crate) mod medium;
pub(crate) mod nodes;
pub(crate) mod records;
pub(crate) mod space;
