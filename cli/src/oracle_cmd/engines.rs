//! Finds engines by name: ours, and foreign ones that were built in.

use std::str::FromStr as _;

use treering_engine::TreeSpec;
use treering_oracle::Engine;
use treering_oracle::engines::{BTree, Geometry, PmTree};

use crate::failure::Failure;

/// Foreign engines that a build can include.
const FOREIGN: [&str; 5] = ["bf-tree", "fjall", "heed", "redb", "sled"];

#[cfg(feature = "adapters")]
fn foreign(name: &str) -> Option<Box<dyn Engine>> {
    treering_adapters::engine(name)
}

#[cfg(not(feature = "adapters"))]
fn foreign(_: &str) -> Option<Box<dyn Engine>> {
    None
}

/// Returns the engine with this name.
pub(super) fn named(name: &str) -> Result<Box<dyn Engine>, Failure> {
    if let Some(ours) = BTree::named(name, Geometry::Tiny) {
        return Ok(Box::new(ours));
    }
    if let Some(ours) = PmTree::named(name, Geometry::Tiny) {
        return Ok(Box::new(ours));
    }
    if let Some(theirs) = foreign(name) {
        return Ok(theirs);
    }
    if FOREIGN.contains(&name) {
        return Err(Failure::cannot_run(format!(
            "engine {name} is not in this build: `cargo run --release --features {name} -- oracle …` builds it in"
        )));
    }
    if name.starts_with("so:") {
        return Err(Failure::usage(format!(
            "engine {name} is in a shared library: load it with --so FILE"
        )));
    }
    if name.starts_with("exec:") {
        return Err(Failure::usage(format!(
            "engine {name} is behind an adapter: start it with --exec 'PROGRAM ARGS'"
        )));
    }
    let ours = BTree::names().chain(PmTree::names());
    let known: Vec<&str> = ours.chain(FOREIGN).collect();
    Err(Failure::usage(format!(
        "--engine {name}: expected one of {}",
        known.join(", ")
    )))
}

/// Returns the engines that `--tree` and `--engine` select.
pub(super) fn selected(
    tree: Option<&str>,
    engine: Option<&str>,
) -> Result<Vec<Box<dyn Engine>>, Failure> {
    let ours = || BTree::names().chain(PmTree::names());
    match (tree, engine) {
        (_, Some(name)) => Ok(vec![named(name)?]),
        (None, None) => ours().map(named).collect(),
        // With every recipe.
        (Some(tree), None) if TreeSpec::named(tree).is_some() => {
            let recipes: Vec<_> = ours().filter(|name| is_of(name, tree)).collect();
            match recipes.is_empty() {
                true => Ok(vec![named(tree)?]),
                false => recipes.into_iter().map(named).collect(),
            }
        }
        // Any other spec of the registry.
        (Some(spec), None) if TreeSpec::from_str(spec).is_ok() => Ok(vec![named(spec)?]),
        (Some(other), None) => Err(Failure::usage(format!(
            "--tree {other}: expected btree, bf, bminus, ccl, lodge or pmtree, or a spec such as \
             btree+cow+hints"
        ))),
    }
}

/// Whether the engine's name begins with that of the tree: `bminus-small`, `bf+hints:in-place`.
fn is_of(name: &str, tree: &str) -> bool {
    let rest = name.strip_prefix(tree);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '+', '-']))
}
