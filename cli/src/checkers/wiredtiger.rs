//! WiredTiger, by `wt`: `verify` and `dump -x` of the table `kv`, or of the first, after
//! recovery (`-R`). Keys and values are of the formats `u` or `S`; others count as packed.

use std::path::Path;

use super::engine::{Engine, Place, Trouble};
use super::files::folder_with;
use super::tool;
use crate::acks::{Content, unhex};

pub(super) const ENGINE: Engine = Engine {
    name: "wiredtiger",
    tools: &[("wt", "wiredtiger")],
    version: &["wt", "-V"],
    build: None,
    // It is what makes a folder a database: `wiredtiger_open` begins anew without it.
    find: |dir, named| folder_with("WiredTiger database", "WiredTiger.turtle", dir, named),
    read,
};

fn read(place: &Place<'_>) -> Result<Content, Trouble> {
    let home = place.store.display().to_string();
    // How the program has configured its log is not kept in the database, and without that `wt`
    // does not recover.
    let log: &[&str] = match has_log(&place.store) {
        true => &["-C", "log=(enabled)"],
        false => &[],
    };
    let wt = |words: &[&str]| {
        let flags = [&["-R", "-h", &home], log, words].concat();
        tool::output(place.dir, "wt", &flags)
    };
    // A table's file may be there before the table is.
    if place.store.join("kv.wt").exists() && wt(&["verify", "table:kv"]).is_ok() {
        return dump(&wt(&["dump", "-x", "table:kv"])?);
    }
    let said = wt(&["list"])?;
    let said = String::from_utf8_lossy(&said).into_owned();
    let tables: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("table:"))
        .collect();
    let kv = tables.iter().find(|table| **table == "table:kv");
    let Some(table) = kv.or(tables.first()) else {
        return Ok(Content::new());
    };
    wt(&["verify", table])?;
    dump(&wt(&["dump", "-x", table])?)
}

/// Whether the database has a log, in its folder.
fn has_log(home: &Path) -> bool {
    let entries = std::fs::read_dir(home).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| name.as_encoded_bytes().starts_with(b"WiredTigerLog."))
}

fn dump(said: &[u8]) -> Result<Content, Trouble> {
    rows(said).ok_or_else(|| tool::not_understood("wt dump"))
}

/// After `Header`, the table's configuration, and `Data`, keys and values alternate.
fn rows(text: &[u8]) -> Option<Content> {
    let text = std::str::from_utf8(text).ok()?;
    let (header, rows) = text.split_once("\nData\n")?;
    // Strings end with a zero.
    let ends = |what: &str| header.contains(&format!("{what}_format=S"));
    let (key_ends, value_ends) = (ends("key"), ends("value"));
    let bytes = |line: &str, ends: bool| {
        let mut bytes = unhex(line.trim().as_bytes())?;
        if ends && bytes.last() == Some(&0) {
            bytes.pop();
        }
        Some(bytes)
    };
    let mut lines = rows.lines();
    let mut content = Content::new();
    while let Some(key) = lines.next() {
        content.insert(bytes(key, key_ends)?, bytes(lines.next()?, value_ends)?);
    }
    Some(content)
}
