//! The leaf layouts, a file each. None of them knows of another but for what they share: the slotted
//! ones the trait [`super::format::LeafFormat`] and the header of `slotted`, the dense ones the trait
//! [`super::dense::DenseFormat`].

pub(crate) mod compact;
pub(super) mod fingerprint;
pub(super) mod fully_dense;
pub(super) mod hints;
pub(super) mod plain;
pub(super) mod semi_dense;
pub(super) mod slotted;

pub(super) use compact::CompactLeaf;
pub(super) use fingerprint::Fingerprint;
pub(super) use fully_dense::FullyDense;
pub(super) use hints::Hints;
pub(super) use plain::{Baseline, Prefix};
pub(super) use semi_dense::SemiDense;
pub(super) use slotted::Slotted;
