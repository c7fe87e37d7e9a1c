//! Trees in persistent memory, and their parts: space, leaves, records, buffer nodes, logs.
//!
//! ```text
//! DRAM   index: fence -> leaf        buffer nodes: one per leaf
//! PM     superblock, directory | chunks of leaves | chunks of log entries | chunks of records
//! ```
//!
//! **Reclaiming space.** A leaf that deletes empty is merged into its left neighbour. A chunk
//! without leaves, without needed log entries, or without records in use is free for other uses.
//! Sparse leaves wait for [`crate::PmTask::MergeLeaves`], at most until the store would otherwise
//! be full, and opening the store finds those that still wait. Records do not move, so a chunk of
//! records stays while one of them is in use, and its free space can only be used for records.
//!
//! **Full.** A put is refused before it takes the last leaf, the last few bytes for records or,
//! where logs are cleaned by copying, the last chunk: a delete may need them ([`space::Room`]). How
//! much of a device the live rows can take therefore depends on their sizes; `tests/pm_space.rs`
//! states bounds.
//!
//! **Detection of damage** that no crash leaves. It is reported when the store is opened or the
//! bytes are read ([`crate::Error::PmDamaged`]):
//!
//! | damaged | a flipped bit | zeros | another place's line | an older line |
//! |---|---|---|---|---|
//! | superblock, log floor, directory | detected | detected | detected | no |
//! | records (keys and values not of eight bytes) | detected | detected | detected | no |
//! | leaves: headers, keys and values of eight bytes | no | no | no | no |
//! | entries of a log | treated as torn by a crash | the same | the same | no |
//!
//! The leaves are those of the papers: one word commits a change, and all of its bits are used, so
//! there is no room for a checksum (CCL-BTree §4.1). Detecting damage in a leaf is left to the
//! medium, whose lines carry error-correcting codes: it fails the load, and a failed load is an
//! error here. A flipped bit that the medium does not detect leads to a wrong key or value, or to a
//! leaf that is not found, but never to a panic or an endless wait (`tests/pm_damage.rs`,
//! `treering oracle --mode damage`).
//!
//! Crash consistency depends entirely on the order in which words become durable. Each file states
//! which orders it maintains, and why. The contract is that of [`crate::device::PmDevice`]: an
//! aligned word is atomic, and only fences order anything else.

pub(crate) mod bytes;
pub(crate) mod entries;
pub mod events;
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
