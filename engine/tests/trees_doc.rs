//! `docs/TREES.md` matches the registry of trees. Run with `TREERING_WRITE_API=1` to rewrite it.

use treering_engine::spec;

#[test]
fn the_tree_document_matches_the_registry() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/TREES.md");
    let mut page = std::fs::read_to_string(path).expect("the page is there");
    let table = spec::table();
    let head = table.lines().next().expect("a heading");
    if std::env::var_os("TREERING_WRITE_API").is_some() {
        let (words, _) = page.split_once(head).expect("the page has the table");
        page = format!("{words}{table}");
        std::fs::write(path, &page).expect("writes");
    }
    assert!(
        page.ends_with(&table),
        "docs/TREES.md does not end with the registry; expected\n{table}"
    );
}
