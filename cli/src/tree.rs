//! `--tree`: a spec of the engine's registry, such as `bf` or `btree+shadow(T=2KiB)+sparse`.

use treering_engine::{Family, TreeSpec};

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
