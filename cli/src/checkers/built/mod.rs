//! Engines without a tool that dumps a store: a program of a few lines is built once for a campaign,
//! with the engine's own library.
//!
//! - bbolt, by Go: `Open`, `Tx.Check` as of `bbolt check`, and the pairs of the bucket `kv`, or of
//!   the only one.
//! - LevelDB, by `cc` and Debian's `libleveldb-dev`: `leveldb_open` with paranoid checks, and a scan
//!   that verifies checksums.
//!
//! Both print pairs of hexadecimal words and then `end`; without an argument, their version.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::engine::{Engine, Place, TOOL, Trouble};
use super::files::{FileKind, folder_with, u32_at};
use super::tool;
use crate::acks::Content;
use crate::failure::Failure;

pub(super) const BBOLT: Engine = Engine {
    name: "bbolt",
    tools: &[("go", "golang-go")],
    version: &[],
    build: Some(build_bbolt),
    find: |dir, named| BOLT_FILE.find(dir, named),
    read,
};

pub(super) const LEVELDB: Engine = Engine {
    name: "leveldb",
    tools: &[("cc", "gcc")],
    version: &[],
    build: Some(build_leveldb),
    find: |dir, named| folder_with("LevelDB store", "CURRENT", dir, named),
    read,
};

const BOLT_FILE: FileKind = FileKind {
    what: "bbolt database",
    // A meta page, behind the page's header, in page 0 or 1. Pages are those of the machine.
    is: |head| {
        [16, 4096 + 16, 16384 + 16]
            .iter()
            .any(|at| u32_at(head, *at) == Some(0xED0C_DAED))
    },
    beside: &[".lock"],
};

fn build_bbolt(folder: &Path) -> Result<PathBuf, Failure> {
    let files = [
        ("main.go", include_str!("bbolt/main.go")),
        ("go.mod", include_str!("bbolt/go.mod.txt")),
        ("go.sum", include_str!("bbolt/go.sum.txt")),
    ];
    let why = "go build, which fetches go.etcd.io/bbolt unless it is in Go's cache";
    build(folder, &files, &["go", "build", "-o", "tool", "."], why)
}

fn build_leveldb(folder: &Path) -> Result<PathBuf, Failure> {
    let files = [("main.c", include_str!("leveldb/main.c"))];
    let why = "cc with the library of LevelDB (Debian: libleveldb-dev)";
    let words = ["cc", "-O1", "-o", "tool", "main.c", "-lleveldb"];
    build(folder, &files, &words, why)
}

fn build(
    folder: &Path,
    files: &[(&str, &str)],
    words: &[&str],
    why: &str,
) -> Result<PathBuf, Failure> {
    for (name, text) in files {
        let written = std::fs::write(folder.join(name), text);
        written.map_err(|e| Failure::file(&folder.join(name).display().to_string(), &e))?;
    }
    let said = tool::run(
        Command::new(words[0]).args(&words[1..]).current_dir(folder),
        "",
    )?;
    match said.status.success() {
        true => Ok(folder.join("tool")),
        false => {
            let first = said
                .err
                .lines()
                .map(str::trim)
                .find(|line| !line.starts_with('#'));
            let first = first.unwrap_or("nothing printed");
            Err(Failure::cannot_run(format!(
                "--check: expected {why}; found: {first}"
            )))
        }
    }
}

fn read(place: &Place<'_>) -> Result<Content, Trouble> {
    let program = std::env::var_os(TOOL);
    let program = program.ok_or_else(|| Failure::usage(format!("${TOOL}: expected a program")))?;
    let said = tool::run(Command::new(program).arg(&place.store), "")?;
    match said.out.strip_suffix(b"end\n") {
        Some(pairs) if said.status.success() => {
            tool::pairs(pairs).ok_or_else(|| tool::not_understood(place.engine))
        }
        _ => Err(said.failed(place.dir, place.engine)),
    }
}
