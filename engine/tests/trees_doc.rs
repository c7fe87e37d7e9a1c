//! `docs/TREES.md` matches the registry of trees.

use treering_engine::spec;

#[test]
fn the_tree_document_matches_the_registry() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/TREES.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let table = spec::table();
    assert!(
        page.ends_with(&table),
        "docs/TREES.md does not end with the registry; expected\n{table}"
    );
}
