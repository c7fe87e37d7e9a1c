//! One name for a tree: which tree, on which page store, with which log, layout and parameters.
//!
//! ```text
//! btree + shadow(T=2KiB,Ds=128) + sparse
//! |       |      |                |
//! tree    part   parameters       part        a part that is left out is the tree's own
//! ```
//!
//! A [`TreeSpec`] is read from and printed as one line. The command line, the replay, the oracle
//! and the predictors name trees by it, and it is the only place with defaults: what a spec leaves
//! out is what its entry in the registry ([`trees`]) says. [`table`] prints the registry as
//! documentation.
//!
//! ```
//! use treering_engine::{PageStoreKind, TreeSpec};
//!
//! let spec: TreeSpec = "btree+shadow(T=2KiB)+sparse".parse()?;
//! let pages = spec.pages().expect("btree is a page tree");
//! assert_eq!(pages.store, PageStoreKind::Shadow);
//! assert_eq!(pages.mod_log.map(|log| log.segment), Some(128));
//! // It prints as the shortest name that says the same.
//! assert_eq!(spec.to_string(), "bminus(page=4KiB)+adaptive");
//!
//! let wrong = "ccl(nbatch=9)".parse::<TreeSpec>().expect_err("buffers have six slots at most");
//! assert_eq!(wrong.to_string(), "ccl(nbatch=9): option nbatch: 9; expected 1 to 6");
//! # Ok::<(), treering_engine::SpecError>(())
//! ```

mod pages;
mod parse;
mod registry;
mod show;
mod table;

pub use crate::options::pm::part::Shown;
pub use pages::PageTree;
pub use registry::{Family, TreeEntry, parts, trees};
pub use show::parameters;
pub use table::table;

use crate::error::{Error, Result};
use crate::options::{Options, PmOptions, PmTreeKind};

/// A tree with everything that decides what it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeSpec {
    /// A tree of pages on a block device.
    Pages(PageTree),
    /// A tree in persistent memory.
    Pm(PmTreeKind),
}

/// A spec that names no tree, or one that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{spec}: {why}")]
pub struct SpecError {
    /// The spec as it was given.
    pub spec: String,
    /// What is wrong with it and what was expected.
    pub why: String,
}

impl TreeSpec {
    /// The tree of this name with its defaults, if there is one.
    ///
    /// ```
    /// use treering_engine::{Family, TreeSpec};
    ///
    /// assert_eq!(TreeSpec::named("bminus").map(|spec| spec.family()), Some(Family::Pages));
    /// assert_eq!(TreeSpec::named("lodge").map(|spec| spec.family()), Some(Family::Pm));
    /// assert_eq!(TreeSpec::named("lsm"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<TreeSpec> {
        let entry = trees().into_iter().find(|entry| entry.name == name)?;
        Some(entry.tree)
    }

    /// The names of all trees.
    pub fn names() -> impl Iterator<Item = &'static str> {
        trees().into_iter().map(|entry| entry.name)
    }

    /// The tree's name without parts and parameters: what reports call it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            TreeSpec::Pages(tree) => tree.name(),
            TreeSpec::Pm(tree) => tree.name(),
        }
    }

    /// Which kind of device it needs.
    #[must_use]
    pub fn family(&self) -> Family {
        match self {
            TreeSpec::Pages(_) => Family::Pages,
            TreeSpec::Pm(_) => Family::Pm,
        }
    }

    /// The tree of pages, if it is one.
    #[must_use]
    pub fn pages(&self) -> Option<&PageTree> {
        match self {
            TreeSpec::Pages(tree) => Some(tree),
            TreeSpec::Pm(_) => None,
        }
    }

    /// The tree in persistent memory, if it is one.
    #[must_use]
    pub fn pm(&self) -> Option<PmTreeKind> {
        match self {
            TreeSpec::Pages(_) => None,
            TreeSpec::Pm(tree) => Some(*tree),
        }
    }

    /// Options of a store on a block device, if the tree is one of pages: the defaults of
    /// [`Options`], with this tree.
    #[must_use]
    pub fn options(&self) -> Option<Options> {
        self.pages().map(PageTree::options)
    }

    /// Options of a store in persistent memory, if the tree is one there: the defaults of
    /// [`PmOptions`], with this tree.
    #[must_use]
    pub fn pm_options(&self) -> Option<PmOptions> {
        self.pm().map(|tree| PmOptions {
            tree,
            ..PmOptions::default()
        })
    }

    /// Refuses what does not go together, and parameters out of range.
    ///
    /// # Errors
    /// [`Error::BadOption`] names the parameter.
    pub fn check(&self) -> Result<()> {
        match self {
            TreeSpec::Pages(tree) => tree.check(),
            TreeSpec::Pm(tree) => PmOptions {
                tree: *tree,
                ..PmOptions::default()
            }
            .check(),
        }
    }
}

/// The reason of an error of [`TreeSpec::check`], as a spec's error says it.
fn reason(error: &Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(spec: &str) {
        let read: TreeSpec = spec.parse().expect(spec);
        assert_eq!(read.to_string(), spec, "is printed as it was read");
    }

    #[test]
    fn specs_are_printed_as_they_are_read() {
        for name in TreeSpec::names() {
            round_trip(name);
        }
        for spec in [
            "btree+cow",
            "btree+cow(table=each-flush)",
            "btree+shadow(T=2KiB)",
            "btree+shadow(T=1KiB,Ds=64,reset=above-threshold)",
            "btree(page=16KiB)+hints",
            "btree(contention-split,period=12)",
            "bf(copy-on-access=20%,promote=7%)+cow+hints",
            "bf(policy=published)+cow",
            "bf(policy=published,relog=10%)",
            "bf(relog=0%,spare=50%)",
            "bminus+cow",
            "bminus+packed+adaptive",
            "ccl(nbatch=4,logging=naive)",
            "lodge(slots=12,node-split=double)",
            "pmtree-global(buffer-share=30%)",
        ] {
            round_trip(spec);
        }
    }

    #[test]
    fn what_is_said_twice_or_as_the_default_is_printed_once() {
        for (spec, short) in [
            ("btree+in-place", "btree"),
            ("btree+cow(table=checkpoint)", "btree+cow"),
            ("bminus+shadow(T=2KiB,Ds=128)+sparse", "bminus"),
            ("btree+shadow(T=2048)", "btree+shadow(T=2KiB)"),
            ("ccl(nbatch=2)", "ccl"),
            ("bf(policy=frugal,spare=75)", "bf"),
            ("bf(relog=0,policy=published)", "bf(policy=published)"),
            (
                "bf(promote=30,relog=0,growth=100,spare=0,max-mini-page=50)",
                "bf(policy=published)",
            ),
            (" btree + cow ", "btree+cow"),
        ] {
            let read: TreeSpec = spec.parse().expect(spec);
            assert_eq!(read.to_string(), short);
        }
    }

    #[test]
    fn a_wrong_spec_says_what_was_expected() {
        for (spec, why) in [
            ("", "expected one of btree, bf, bminus"),
            ("lsm", "expected one of btree, bf, bminus"),
            (
                "btree+lsm",
                "expected in-place, cow, shadow, packed, sparse, slotted",
            ),
            ("btree+cow+shadow", "a page store is named twice"),
            ("btree+cow+cow", "a page store is named twice"),
            ("btree(page=5KiB)", "page"),
            ("btree(page=4KiB,page=8KiB)", "page is given twice"),
            ("btree(nbatch=2)", "nbatch: expected page"),
            (
                "btree+cow(table=never)",
                "expected each-flush or checkpoint",
            ),
            ("btree+in-place(table=checkpoint)", "table"),
            ("btree+shadow(T=9KiB)", "threshold"),
            ("btree(", "expected ) at the end"),
            ("btree)", "expected one of btree, bf, bminus"),
            ("ccl+cow", "expected no parts"),
            ("ccl(nbatch=0)", "nbatch"),
            ("ccl(nbatch)", "expected nbatch=VALUE"),
            ("bf(contention-split)", "contention-split"),
            ("pmtree(nbatch=2)", "nbatch: expected no parameters"),
        ] {
            let error = spec.parse::<TreeSpec>().expect_err(spec);
            assert!(error.to_string().contains(why), "{spec}: {error}");
        }
    }

    #[test]
    fn the_b_minus_tree_is_a_composition() {
        let long: TreeSpec = "btree(page=8KiB)+shadow(T=2KiB)+sparse+slotted"
            .parse()
            .expect("is a spec");
        assert_eq!(Some(long), TreeSpec::named("bminus"));
    }

    #[test]
    fn options_of_a_spec_are_the_defaults_with_its_tree() {
        let spec = TreeSpec::named("btree").expect("is there");
        assert_eq!(spec.options(), Some(Options::default()));
        let spec = TreeSpec::named("bminus").expect("is there");
        assert_eq!(spec.options(), Some(Options::bminus()));
        let spec = TreeSpec::named("ccl").expect("is there");
        assert_eq!(spec.pm_options(), Some(PmOptions::default()));
    }
}
