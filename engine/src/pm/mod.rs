//! What trees in persistent memory are made of: space, leaves, records, buffer nodes, logs.
//!
//! ```text
//! DRAM   index: fence -> leaf        buffer nodes: one a leaf
//! PM     superblock, directory | chunks of leaves | chunks of log entries | chunks of records
//! ```
//!
//! **What is given back.** A leaf that deletes empty is merged into its left neighbour; a chunk
//! without leaves, without needed entries, or without records in use is free for other uses. Leaves
//! wait for [`crate::PmTask::MergeLeaves`] at most until the store would be full, and the next
//! opening finds those that wait. Records do not move, so a chunk of them stays while one is in
//! use, and what is free in it is for records only.
//!
//! **Full.** A put is refused before the last leaf, the last few bytes for records and, where logs
//! are cleaned by copying, the last chunk are taken: a delete may need them ([`space::Room`]). How
//! much of a device live rows take then depends on their sizes; `tests/pm_space.rs` states bounds.
//!
//! **What is told of damage that no crash leaves**, at opening or by whoever reads it
//! ([`crate::Error::PmDamaged`]):
//!
//! | harmed | a flipped bit | zeros | another place's line | an older line |
//! |---|---|---|---|---|
//! | superblock, log floor, directory | told | told | told | no |
//! | records (keys and values of other than eight bytes) | told | told | told | no |
//! | leaves: headers, keys and values of eight bytes | no | no | no | no |
//! | entries of a log | taken for one that a crash tore | the same | the same | no |
//!
//! The leaves are the papers': a word commits a change, and every bit of it is taken, so there is
//! none for a checksum (CCL-BTree §4.1). What rots in a leaf is for the medium to tell, whose lines
//! bear error-correcting codes: it fails the load, and a failed load is an error here. A flipped
//! bit that nobody tells of is a wrong key or value, or a leaf that is missed; never a panic, nor a
//! wait without end (`tests/pm_damage.rs`, `treering oracle --mode damage`).
//!
//! The order in which words become durable is the whole of crash consistency here; each file says which orders it keeps and why. The contract is that of
//! [`crate::device::PmDevice`]: an aligned word is atomic, and nothing else has an order but by a fence.

pub(crate) mod bytes;
pub(crate) mod entries;
pub(crate) mod layout;
pub(crate) mod leaf;
pub(crate) mod leaves;
pub(crate) mod logs;
pub(crate) mod medium;
pub(crate) mod nodes;
pub(crate) mod places;
pub(crate) mod records;
pub(crate) mod room;
pub(crate) mod space;
pub(crate) mod store;
pub(crate) mod tree;
pub(crate) mod trees;
