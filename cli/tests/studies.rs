//! The studies that ship: their small versions run, and what they claim holds; their pages have
//! what the studies say.
//!
//! `.ci/studies` runs them at full size and compares the pages.

mod support;
#[path = "support/told.rs"]
#[allow(dead_code)] // the example tests use the rest
mod told;

use std::path::PathBuf;

use serde_json::Value;
use support::{ok, words};
use told::{read, root};

/// The studies, by name.
fn studies() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("studies")).expect("the folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_study = |path: &PathBuf| path.extension().is_some_and(|e| e == "toml");
    let name = |path: PathBuf| path.file_stem()?.to_str().map(str::to_owned);
    let mut names: Vec<String> = paths.filter(is_study).filter_map(name).collect();
    names.sort();
    assert!(names.len() >= 8, "{names:?}");
    names
}

fn study(name: &str) -> toml::Table {
    let text = read(&format!("studies/{name}.toml"));
    text.parse().unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The texts under a key of each table of a list.
fn texts(study: &toml::Table, list: &str, key: &str) -> Vec<String> {
    let tables = study.get(list).and_then(toml::Value::as_array);
    let text = |table: &toml::Value| table.get(key)?.as_str().map(str::to_owned);
    tables.into_iter().flatten().filter_map(text).collect()
}

/// Runs the small version of a study, which must end well, and returns its claims.
fn judged(name: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = root().join("studies").join(format!("{name}.toml"));
    let path = path.to_str().expect("a path").to_owned();
    let mut line = words("sweep --small --out out --json -");
    line.push(&path);
    let document: Value = serde_json::from_str(&ok(folder.path(), &line)).expect("JSON");
    assert_eq!(document["failed"], 0, "{name}");
    document["claims"].as_array().cloned().unwrap_or_default()
}

/// In the small version every claim is judged that does not say that it needs the whole one.
fn small_version_holds(name: &str) {
    let claims = judged(name);
    let study = study(name);
    let written = study["claim"].as_array().expect("claims");
    assert_eq!(claims.len(), written.len(), "{name}");
    for (claim, written) in claims.iter().zip(written) {
        let is_small = written.get("small").and_then(toml::Value::as_bool) != Some(false);
        let expected: &[&str] = match (is_small, written.get("differs")) {
            (false, _) => &["not-judged"],
            (true, None) => &["holds"],
            (true, Some(_)) => &["differs"],
        };
        let verdict = claim["verdict"].as_str().expect("a verdict");
        assert!(expected.contains(&verdict), "{name}: {claim}");
    }
}

macro_rules! holds {
    ($($test:ident $name:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            small_version_holds($name);
        })*

        #[test]
        fn every_study_is_tested() {
            assert_eq!(studies(), [$($name),*]);
        }
    };
}

holds! {
    bf "bf",
    bf_on_csd "bf-on-csd",
    bminus "bminus",
    ccl "ccl",
    layouts "layouts",
    life "life",
    lodge "lodge",
    trees_on_drives "trees-on-drives",
}

#[test]
fn a_page_has_the_tables_pictures_and_claims_of_its_study() {
    for name in studies() {
        let (study, page) = (study(&name), read(&format!("studies/{name}.md")));
        let list = read("studies/README.md");
        for file in ["toml", "md"] {
            assert!(
                list.contains(&format!("({name}.{file})")),
                "README: {name}.{file}"
            );
        }
        let command =
            format!("treering sweep studies/{name}.toml --out {name} --into studies/{name}.md");
        assert!(page.contains(&command), "{name}.md: no {command}");
        let mut tables = texts(&study, "table", "name");
        tables.push("claims".into());
        for table in tables {
            let (_, rest) = page
                .split_once(&format!("<!-- {table} -->\n"))
                .unwrap_or_else(|| panic!("{name}.md: no place for {table}"));
            let (rows, _) = rest.split_once("<!-- end -->").expect("an end");
            assert!(rows.lines().count() > 2, "{name}.md: {table} is empty");
        }
        for chart in texts(&study, "chart", "name") {
            assert!(
                page.contains(&format!("]({chart}.svg)")),
                "{name}.md: no {chart}.svg"
            );
            let svg = read(&format!("studies/{chart}.svg"));
            assert!(
                svg.starts_with("<svg") && svg.len() < 100_000,
                "{chart}.svg"
            );
        }
        // What was measured is in the page as the study says it now.
        for key in ["says", "paper", "differs"] {
            for text in texts(&study, "claim", key) {
                assert!(page.contains(&text), "{name}.md: {key}: {text}");
            }
        }
        assert!(!page.contains("| does not hold"), "{name}.md");
        assert!(!page.contains("listed as differing"), "{name}.md");
    }
}
