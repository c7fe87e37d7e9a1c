//! LMDB, by `mdb_stat -ef`, which reads the meta pages and the list of free pages, and `mdb_dump`,
//! which reads all records of the main database. LMDB has no checksums.

use super::engine::{Engine, Place, Trouble};
use super::files::{FileKind, u32_at};
use super::tool;
use crate::acks::{Content, unhex};

pub(super) const ENGINE: Engine = Engine {
    name: "lmdb",
    tools: &[("mdb_dump", "lmdb-utils"), ("mdb_stat", "lmdb-utils")],
    version: &["mdb_dump", "-V"],
    build: None,
    find: |dir, named| match named {
        Some(named) if dir.join(named).is_dir() => DATA.find(dir, Some(&named.join("data.mdb"))),
        named => DATA.find(dir, named),
    },
    read,
};

const DATA: FileKind = FileKind {
    what: "LMDB environment",
    // Behind the page's header.
    is: |head| u32_at(head, 16) == Some(0xBEEF_C0DE),
    beside: &["lock.mdb", "-lock"],
};

fn read(place: &Place<'_>) -> Result<Content, Trouble> {
    // `-n`: a file, whatever its name. So the lock file is another, and nobody else has it.
    let store = place.store.display().to_string();
    tool::output(place.dir, "mdb_stat", &["-nef", &store])?;
    let said = tool::output(place.dir, "mdb_dump", &["-n", &store])?;
    rows(&said).ok_or_else(|| tool::not_understood("mdb_dump"))
}

/// After the header keys and values alternate, each a line that begins with a blank.
fn rows(text: &[u8]) -> Option<Content> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, rows) = text.split_once("HEADER=END\n")?;
    let rows = rows.strip_suffix("DATA=END\n")?;
    let words: Option<Vec<Vec<u8>>> = rows
        .lines()
        .map(|line| unhex(line.trim().as_bytes()))
        .collect();
    let words = words?;
    let pairs = words
        .chunks(2)
        .map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone())));
    pairs.collect()
}
