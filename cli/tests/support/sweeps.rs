//! A small trace to sweep, and the tables that come out.
#![allow(dead_code)] // each test binary uses only a part

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use super::support::{ok, words};

/// A folder with a small trace, `z.trz`.
pub(crate) fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = "gen zipf --records 500 --ops 3000 --writes 0.5 --value-size 100 -o z.trz";
    ok(folder.path(), &words(trace));
    folder
}

pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("written");
}

pub(crate) fn read(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Both tables of a sweep; in a build without Parquet, the second one is empty.
pub(crate) fn tables(out: &Path) -> (Vec<u8>, Vec<u8>) {
    let parquet = match cfg!(feature = "parquet") {
        true => read(out, "results.parquet"),
        false => Vec::new(),
    };
    (read(out, "results.csv"), parquet)
}

/// The rows of a table, by column. Fields of this test have no commas but in quotes.
pub(crate) fn rows(out: &Path) -> Vec<BTreeMap<String, String>> {
    let text = String::from_utf8(read(out, "results.csv")).expect("text");
    let mut lines = text.lines().map(fields);
    let names = lines.next().expect("a header");
    lines
        .map(|fields| names.iter().cloned().zip(fields).collect())
        .collect()
}

pub(crate) fn fields(line: &str) -> Vec<String> {
    let (mut quoted, mut fields) = (false, vec![String::new()]);
    for c in line.chars() {
        match (c, fields.last_mut()) {
            ('"', _) => quoted = !quoted,
            (c, Some(last)) if c != ',' || quoted => last.push(c),
            _ => fields.push(String::new()),
        }
    }
    fields
}

/// The values of some columns, one text for each row.
pub(crate) fn values(rows: &[BTreeMap<String, String>], columns: &str) -> Vec<String> {
    let row = |row: &BTreeMap<String, String>| {
        let cells = columns.split(' ').map(|name| row[name].as_str());
        cells.collect::<Vec<_>>().join(" ")
    };
    rows.iter().map(row).collect()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
