//! Printing a spec: its tree, and what differs from the tree's entry in the registry.

use std::fmt;

use super::TreeSpec;
use super::pages::PageTree;
use crate::options::param::{differing, show_choice, show_size};
use crate::options::pm::part::{Shown, shown};
use crate::options::{
    BfOptions, ContentionSplit, ModLog, PageStoreKind, PmTreeKind, Policy, TablePersist, TreeKind,
};

impl fmt::Display for TreeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeSpec::Pm(tree) => f.write_str(&with(tree.name(), &tree.part().differing())),
            TreeSpec::Pages(tree) => f.write_str(&show_pages(tree)),
        }
    }
}

/// `name(parameter,parameter)`, or the name alone.
fn with(name: &str, parameters: &[String]) -> String {
    match parameters.is_empty() {
        true => name.into(),
        false => format!("{name}({})", parameters.join(",")),
    }
}

/// The shortest of the names that the tree has: a B⁻-tree is a composition of parts, and may be
/// said as what differs from `bminus` or from `btree`.
fn show_pages(tree: &PageTree) -> String {
    let names = match tree.tree {
        TreeKind::Bf(_) => vec![("bf", PageTree::bf())],
        TreeKind::BTree => vec![("btree", PageTree::btree()), ("bminus", PageTree::bminus())],
    };
    let said = names.into_iter().map(|(name, default)| {
        let parameters = tree_parameters(tree, &default);
        let of_store = store_parameters(tree, &default);
        let mut parts = vec![with(name, &parameters)];
        if !of_store.is_empty() || tree.store.name() != default.store.name() {
            parts.push(with(tree.store.name(), &of_store));
        }
        if tree.log_packing != default.log_packing {
            parts.push(tree.log_packing.name().into());
        }
        if tree.layout != default.layout {
            parts.push(tree.layout.name().into());
        }
        let words = parts.len() + parameters.len() + of_store.len();
        (words, parts.join("+"))
    });
    let shortest = said.min_by_key(|(words, _)| *words);
    shortest.map(|(_, name)| name).unwrap_or_default()
}

fn tree_parameters(tree: &PageTree, default: &PageTree) -> Vec<String> {
    let mut parameters = Vec::new();
    if tree.page_size != default.page_size {
        parameters.push(format!("page={}", show_size(tree.page_size as u64)));
    }
    if let TreeKind::Bf(bf) = &tree.tree {
        parameters.extend(mini_pages(bf));
    }
    if let Some(split) = &tree.contention_split {
        parameters.push("contention-split".into());
        let default = ContentionSplit::default();
        parameters.extend(differing(ContentionSplit::PARAMS, split, &default));
    }
    parameters
}

/// What differs from the policy that is nearer.
fn mini_pages(bf: &BfOptions) -> Vec<String> {
    let frugal = differing(BfOptions::PARAMS, bf, &BfOptions::default());
    let mut published = vec!["policy=published".to_string()];
    published.extend(differing(BfOptions::PARAMS, bf, &BfOptions::PUBLISHED));
    match published.len() < frugal.len() {
        true => published,
        false => frugal,
    }
}

fn store_parameters(tree: &PageTree, default: &PageTree) -> Vec<String> {
    let mut parameters = Vec::new();
    if PageStoreKind::named(tree.store.name()) != Some(tree.store) {
        parameters.extend(table(tree.store).map(|table| format!("table={table}")));
    }
    match (&tree.mod_log, &default.mod_log) {
        (None, Some(_)) => parameters.push("T=0".into()),
        (Some(log), None) => {
            parameters.push(format!("T={}", show_size(log.threshold.into())));
            parameters.extend(differing(&ModLog::PARAMS[1..], log, &ModLog::default()));
        }
        (Some(log), Some(default)) => {
            parameters.extend(differing(ModLog::PARAMS, log, default));
        }
        (None, None) => {}
    }
    parameters
}

/// When the page table of a store is persisted, by name.
fn table(store: PageStoreKind) -> Option<&'static str> {
    let named = TablePersist::NAMED.iter();
    let mut named = named.filter(|(_, table)| store.table() == Some(*table));
    named.next().map(|(name, _)| *name)
}

/// All parameters of trees and parts.
#[must_use]
pub fn parameters() -> Vec<Shown> {
    let one = |of, name, default: &str, about| Shown {
        of,
        name,
        default: default.into(),
        about,
    };
    let mut all = vec![
        one("btree, bf", "page", "4KiB", "page size; 8KiB with bminus"),
        one(
            "btree",
            "contention-split",
            "off",
            "leaves that writers wait for are split",
        ),
    ];
    all.extend(shown("btree", ContentionSplit::PARAMS));
    all.push(one(
        "bf",
        "policy",
        &show_choice(&Policy::default(), Policy::NAMED),
        "or published: the paper's copy-on-access, promote, relog, growth, spare and max-mini-page",
    ));
    all.extend(shown("bf", BfOptions::PARAMS));
    let about = "when the page table is persisted: at a checkpoint, or each-flush of pages";
    let cow = PageStoreKind::named("cow");
    let default = cow.and_then(table).unwrap_or_default();
    all.push(one("cow", "table", default, about));
    all.extend(shown("any store", ModLog::PARAMS));
    for tree in PmTreeKind::all() {
        all.extend(tree.part().shown());
    }
    all
}
