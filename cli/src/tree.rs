//! `--tree`: a spec of the engine's registry, such as `bf` or `btree+shadow(T=2KiB)+sparse`.

use std::fmt;

use treering_engine::{Family, Options, PmTreeKind, TreeSpec};

/// What `treering replay` runs: a tree, or a drive alone.
#[derive(Clone, Debug)]
pub(crate) enum Replayed {
    /// A tree of the registry.
    Tree(Box<TreeSpec>),
    /// `none`: the trace's own writes go straight to the drive.
    Direct,
}

impl Replayed {
    /// Parses a spec or `none`.
    ///
    /// # Errors
    /// If it is neither, a message that says what was expected.
    pub(crate) fn parse(text: &str) -> Result<Replayed, String> {
        match text {
            "none" => Ok(Replayed::Direct),
            spec => self::spec(spec).map(|tree| Replayed::Tree(Box::new(tree))),
        }
    }

    /// The tree, if it is in persistent memory.
    pub(crate) fn pm(&self) -> Option<PmTreeKind> {
        match self {
            Replayed::Tree(tree) => tree.pm(),
            Replayed::Direct => None,
        }
    }

    /// The options of the spec, if it is a tree of pages.
    pub(crate) fn options(&self) -> Option<Options> {
        match self {
            Replayed::Tree(tree) => tree.options(),
            Replayed::Direct => None,
        }
    }
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Replayed::Tree(tree) => tree.fmt(f),
            Replayed::Direct => f.write_str("none"),
        }
    }
}

/// Parses a spec.
///
/// # Errors
/// If the spec is invalid, a message that says what was expected.
pub(crate) fn spec(text: &str) -> Result<TreeSpec, String> {
    text.parse::<TreeSpec>().map_err(|error| error.why)
}

/// Parses the spec of a tree of pages.
///
/// # Errors
/// If the spec is invalid, a message that says what was expected.
pub(crate) fn of_pages(text: &str) -> Result<TreeSpec, String> {
    let tree = spec(text)?;
    if tree.family() == Family::Pages {
        return Ok(tree);
    }
    let pages = TreeSpec::names()
        .filter(|name| TreeSpec::named(name).is_some_and(|tree| tree.family() == Family::Pages));
    let names: Vec<_> = pages.collect();
    Err(format!("expected a tree of pages: {}", names.join(", ")))
}
