//! RocksDB, by `ldb`: `checkconsistency` opens the store with paranoid checks, which recovers it
//! and compares its files with the manifest; `scan` reads all records of the default column family,
//! and with them every checksum.

use super::engine::{Engine, Place, Trouble};
use super::files::folder_with;
use super::tool;
use crate::acks::{Content, unhex};

pub(super) const ENGINE: Engine = Engine {
    name: "rocksdb",
    tools: &[("ldb", "rocksdb-tools")],
    version: &["ldb", "--version"],
    build: None,
    // Without `CURRENT`, the store counts as one that was never made.
    find: |dir, named| folder_with("RocksDB store", "CURRENT", dir, named),
    read,
};

fn read(place: &Place<'_>) -> Result<Content, Trouble> {
    let db = format!("--db={}", place.store.display());
    tool::output(place.dir, "ldb", &[&db, "checkconsistency"])?;
    let said = tool::output(place.dir, "ldb", &[&db, "scan", "--hex"])?;
    rows(&said).ok_or_else(|| tool::not_understood("ldb scan"))
}

/// Lines `0x6B31 : 0x7631`.
fn rows(text: &[u8]) -> Option<Content> {
    let text = std::str::from_utf8(text).ok()?;
    let bytes = |word: &str| unhex(word.trim().strip_prefix("0x")?.as_bytes());
    let pair = |line: &str| {
        let (key, value) = line.split_once(" : ")?;
        Some((bytes(key)?, bytes(value)?))
    };
    text.lines().map(pair).collect()
}
