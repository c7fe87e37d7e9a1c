//! The leaf layouts, one file each. A layout knows nothing of the others but what they share:
//! slotted layouts share the trait [`super::format::LeafFormat`] and the header of `slotted`, dense
//! ones the trait [`super::dense::DenseFormat`].

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
