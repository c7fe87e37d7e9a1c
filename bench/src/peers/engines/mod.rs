//! The engines, one file each, with their settings and promises.

mod bf_tree;
mod fjall;
mod lmdb;
mod peer;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sled;
mod treering;

pub use peer::{Backing, Durability, Groups, Open, Peer, Spec};

/// All engines of this build, ours first.
pub const ENGINES: &[Spec] = &[
    treering::BF,
    treering::BF_BUFFERED,
    treering::BF_EACH,
    treering::BTREE,
    bf_tree::STD,
    bf_tree::URING,
    redb::SPEC,
    fjall::SPEC,
    sled::SPEC,
    lmdb::SPEC,
    #[cfg(feature = "rocksdb")]
    rocksdb::SPEC,
    #[cfg(feature = "rocksdb")]
    rocksdb::DIRECT,
];

/// Whether an engine is a Bf-Tree of ours, with which the others are compared.
#[must_use]
pub fn is_compared(spec: &Spec) -> bool {
    let ours = [treering::BF, treering::BF_BUFFERED, treering::BF_EACH];
    ours.iter().any(|our| our.name == spec.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_ours_come_first() {
        let names: Vec<_> = ENGINES.iter().map(|spec| spec.name).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "two engines are named {name}");
        }
        assert!(is_compared(&ENGINES[0]) && ENGINES.is_sorted_by_key(|spec| !is_compared(spec)));
    }
}
