//! The list of everything that is compared.

use std::collections::BTreeMap;

use treering_engine::node::LayoutChoice;

use super::subject::{Entry, What};

/// Returns all layouts, and the maps of this build.
#[must_use]
pub fn all(keys_are_numbers: bool) -> Vec<Entry> {
    let mut all: Vec<Entry> = LayoutChoice::all().map(Entry::pages).collect();
    // The order in which the paper adds one optimisation to the next.
    let order = [
        "baseline",
        "prefix",
        "slotted",
        "compact",
        "hints",
        "fingerprint",
        "semi-dense",
        "fully-dense",
        "adaptive",
    ];
    all.sort_by_key(|entry| order.iter().position(|name| *name == entry.name));
    all.push(match keys_are_numbers {
        true => Entry::of("BTreeMap", What::Map, BTreeMap::<[u8; 4], u64>::new),
        false => Entry::of("BTreeMap", What::Map, BTreeMap::<Box<[u8]>, u64>::new),
    });
    #[cfg(feature = "maps")]
    all.extend(super::maps::all(keys_are_numbers));
    all
}
