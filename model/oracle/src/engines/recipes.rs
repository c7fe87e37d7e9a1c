//! The engines of our own that the oracle judges, as names and specs.
//!
//! A name says what is special; the spec says the tree. A tree or part of the registry that has no
//! recipe is judged with its defaults. Sizes (cache, log, device) are the [`super::Geometry`]'s. A
//! spec is a name too, so every combination of the registry can be judged:
//! `btree+shadow(T=512,Ds=64)+fingerprint`.

use std::sync::LazyLock;

use treering_engine::spec::parts;
use treering_engine::{Family, PageTree, TreeSpec};

/// The names of page trees and their specs. Small modification logs: a few operations fill them.
/// Pages of 16 KiB are written in several blocks, so they can be torn.
const PAGES: &[(&str, &str)] = &[
    ("btree:in-place", "btree+slotted"),
    ("btree:in-place-16k", "btree(page=16KiB)+slotted"),
    (
        "btree:in-place-logged",
        "btree+in-place(T=1KiB,Ds=64)+slotted",
    ),
    ("btree:cow", "btree+cow(table=each-flush)+slotted"),
    ("btree:cow-lazy", "btree+cow+slotted"),
    (
        "btree:cow-logged",
        "btree+cow(table=each-flush,T=1KiB,Ds=64)+slotted",
    ),
    ("btree:shadow", "btree+shadow+slotted"),
    ("btree:shadow-16k", "btree(page=16KiB)+shadow+slotted"),
    ("bminus", "bminus"),
    ("bminus-small", "bminus(page=4KiB)+shadow(T=1KiB,Ds=64)"),
    ("bf:in-place", "bf(policy=published)"),
    ("bf:in-place-16k", "bf(policy=published,page=16KiB)"),
    ("bf:cow", "bf(policy=published)+cow(table=each-flush)"),
    ("bf:cow-lazy", "bf+cow"),
    ("bf:bminus", "bf(page=8KiB)+shadow(T=1KiB,Ds=64)+sparse"),
    ("btree+baseline:in-place", "btree+baseline"),
    (
        "btree+prefix:cow-logged",
        "btree+cow(table=each-flush,T=1KiB,Ds=64)+prefix",
    ),
    ("btree+compact:shadow", "btree+shadow+compact"),
    ("btree+hints:in-place", "btree+hints"),
    (
        "btree+fingerprint:cow",
        "btree+cow(table=each-flush)+fingerprint",
    ),
    (
        "btree+semi-dense:in-place-logged",
        "btree+in-place(T=1KiB,Ds=64)+semi-dense",
    ),
    (
        "btree+fully-dense:cow",
        "btree+cow(table=each-flush)+fully-dense",
    ),
    ("btree+adaptive:in-place", "btree+adaptive"),
    ("bf+hints:in-place", "bf+hints"),
    ("bf+fingerprint:cow", "bf+cow(table=each-flush)+fingerprint"),
    ("bf+semi-dense:cow-lazy", "bf+cow+semi-dense"),
    ("bf+fully-dense:in-place", "bf+fully-dense"),
    ("bf+adaptive:in-place", "bf+adaptive"),
    // Every write is sampled, and few are enough for a split.
    (
        "btree+contention-split:in-place",
        "btree(contention-split,sample-one-in=1,period=10)+slotted",
    ),
];

/// The names of trees in persistent memory and their specs. Two logs, with few entries, so that
/// threads share them and they are cleaned soon.
const MEMORY: &[(&str, &str)] = &[
    ("pmtree", "pmtree"),
    ("pmtree:global", "pmtree-global(logs=2)"),
    ("ccl", "ccl(logs=2)"),
    ("ccl:1", "ccl(nbatch=1,logs=2)"),
    ("ccl:6", "ccl(nbatch=6,logs=2)"),
    ("ccl:every-write", "ccl(logging=naive,logs=2)"),
    ("ccl:naive", "ccl(cleaning=naive,logs=2)"),
    ("lodge", "lodge(logs=2,log-entries=16)"),
    (
        "lodge:small",
        "lodge(slots=8,t-split=6,logs=2,log-entries=8,log-share=4%)",
    ),
    (
        "lodge:smallest",
        "lodge(slots=4,t-node=1,t-split=2,logs=2,log-entries=2,log-share=4%)",
    ),
    (
        "lodge:double",
        "lodge(slots=8,t-node=4,t-split=6,node-split=double,logs=2,log-entries=8,log-share=4%)",
    ),
    (
        "lodge:full",
        "lodge(slots=12,t-split=27,logs=2,log-entries=8,log-share=4%)",
    ),
];

/// The names of all engines for this kind of device: those of the recipes, and trees and parts of
/// the registry that no recipe has.
pub(super) fn names(family: Family) -> impl Iterator<Item = &'static str> {
    static NEW: LazyLock<Vec<String>> = LazyLock::new(without_recipe);
    let recipes = match family {
        Family::Pages => PAGES,
        Family::Pm => MEMORY,
    };
    let new = NEW.iter().map(String::as_str);
    let new = new.filter(move |name| spec(name).is_some_and(|spec| spec.family() == family));
    recipes.iter().map(|(name, _)| *name).chain(new)
}

/// Specs of the trees and parts of the registry that no recipe has.
fn without_recipe() -> Vec<String> {
    let recipes = PAGES.iter().chain(MEMORY);
    let recipes: Vec<_> = recipes.filter_map(|(name, _)| spec(name)).collect();
    let lacking = |name: &&str| !recipes.iter().any(|spec| has(spec, name));
    let parts = parts().into_iter().flat_map(|(_, names)| names);
    let parts = parts.filter(lacking).map(|part| format!("btree+{part}"));
    let trees = TreeSpec::names().filter(lacking).map(str::to_owned);
    trees.chain(parts).collect()
}

/// Whether this is the name of the tree or of one of its parts.
fn has(spec: &TreeSpec, name: &str) -> bool {
    let part = |tree: &PageTree| {
        let parts = [tree.store.name(), tree.log_packing.name()];
        parts.contains(&name) || tree.layout.name() == name
    };
    spec.name() == name || spec.pages().is_some_and(part)
}

/// The spec of a name, or the spec that the name is.
pub(super) fn spec(name: &str) -> Option<TreeSpec> {
    let known = PAGES.iter().chain(MEMORY);
    let known = known.into_iter().find(|(known, _)| *known == name);
    known.map_or(name, |(_, spec)| spec).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_is_a_spec_and_none_is_there_twice() {
        let mut seen = Vec::new();
        for (name, text) in PAGES.iter().chain(MEMORY) {
            let spec: TreeSpec = text.parse().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(!seen.contains(&spec), "{name} is another name of {spec}");
            seen.push(spec);
        }
    }

    #[test]
    fn every_tree_and_part_of_the_registry_is_judged() {
        let judged = names(Family::Pages).chain(names(Family::Pm));
        let judged: Vec<_> = judged
            .map(|name| spec(name).unwrap_or_else(|| panic!("{name} is no tree")))
            .collect();
        let parts = parts().into_iter().flat_map(|(_, names)| names);
        for name in TreeSpec::names().chain(parts) {
            assert!(judged.iter().any(|spec| has(spec, name)), "{name}");
        }
    }
}
