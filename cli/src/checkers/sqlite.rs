//! SQLite, by `sqlite3`: `PRAGMA integrity_check`, `PRAGMA foreign_key_check`, and all rows of the
//! table `kv`, whose first two columns are key and value.
//!
//! One process does it all. It opens the database as any program does, so a hot journal is rolled
//! back, and a log recovered, before anything is looked at. Text counts as its bytes, a number as
//! its digits, NULL as no bytes.

use std::process::Command;

use super::engine::{Engine, Place, Trouble};
use super::files::FileKind;
use super::tool;
use crate::acks::{Content, unhex};

pub(super) const ENGINE: Engine = Engine {
    name: "sqlite",
    tools: &[("sqlite3", "sqlite3")],
    version: &["sqlite3", "-version"],
    build: None,
    find: |dir, named| DATABASE.find(dir, named),
    read,
};

const DATABASE: FileKind = FileKind {
    what: "SQLite database",
    is: |head| head.starts_with(b"SQLite format 3\0"),
    beside: &["-journal", "-wal", "-shm"],
};

/// Printed between the checks and the rows.
const ROWS: &str = "'treering: rows'";
const SCRIPT: &str = "PRAGMA integrity_check; PRAGMA foreign_key_check; SELECT 'treering: rows'; \
                      SELECT * FROM kv;";

fn read(place: &Place<'_>) -> Result<Content, Trouble> {
    let said = tool::run(
        Command::new("sqlite3")
            .args([
                "-batch",
                "-bail",
                "-init",
                "/dev/null",
                "-cmd",
                ".mode quote",
            ])
            .arg(&place.store)
            .arg(SCRIPT),
        "",
    )?;
    let out = &said.out;
    let at = out
        .windows(ROWS.len())
        .position(|part| part == ROWS.as_bytes());
    let Some(at) = at else {
        return Err(said.failed(place.dir, "sqlite3"));
    };
    let checks = String::from_utf8_lossy(&out[..at]);
    if checks.trim() != "'ok'" {
        let lines = checks.lines().map(|line| line.trim_matches('\''));
        let lines = lines.filter(|line| !line.starts_with("***") && !line.is_empty());
        let lines: Vec<&str> = lines.take(6).collect();
        let told = format!("the integrity check fails\n{}", lines.join("\n"));
        return Err(Trouble::State(tool::without(place.dir, &told)));
    }
    if !said.status.success() {
        // A database before its table was made.
        return match said.err.contains("no such table: kv") {
            true => Ok(Content::new()),
            false => Err(said.failed(place.dir, "sqlite3")),
        };
    }
    rows(&out[at + ROWS.len()..]).ok_or_else(|| tool::not_understood("sqlite3"))
}

/// Rows as of `.mode quote`: `X'00'`, `'it''s'`, numbers and NULL, with commas.
fn rows(mut text: &[u8]) -> Option<Content> {
    let mut content = Content::new();
    let mut row = Vec::new();
    while let Some(first) = text.first() {
        match first {
            b'\n' => {
                text = &text[1..];
                let mut columns = std::mem::take(&mut row).into_iter();
                if let Some(key) = columns.next() {
                    content.insert(key, columns.next().unwrap_or_default());
                }
            }
            b',' => text = &text[1..],
            _ => row.push(value(&mut text)?),
        }
    }
    Some(content)
}

fn value(text: &mut &[u8]) -> Option<Vec<u8>> {
    if let Some(blob) = text.strip_prefix(b"X'") {
        let end = blob.iter().position(|byte| *byte == b'\'')?;
        *text = &blob[end + 1..];
        return unhex(&blob[..end]);
    }
    if let Some(mut quoted) = text.strip_prefix(b"'") {
        let mut value = Vec::new();
        loop {
            let end = quoted.iter().position(|byte| *byte == b'\'')?;
            value.extend_from_slice(&quoted[..end]);
            quoted = &quoted[end + 1..];
            let Some(more) = quoted.strip_prefix(b"'") else {
                break;
            };
            value.push(b'\'');
            quoted = more;
        }
        *text = quoted;
        return Some(value);
    }
    let end = text
        .iter()
        .position(|byte| b",\n".contains(byte))
        .unwrap_or(text.len());
    let word = &text[..end];
    *text = &text[end..];
    Some(if word == b"NULL" {
        Vec::new()
    } else {
        word.to_vec()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_the_shell_quotes_them() {
        let found = rows(b"\nX'6b31',X''\n'a''b\nc',12,'more'\n3,NULL\n4,1.5\n").expect("rows");
        let expected: [(&[u8], &[u8]); 4] = [
            (b"k1", b""),
            (b"a'b\nc", b"12"),
            (b"3", b""),
            (b"4", b"1.5"),
        ];
        let expected = expected.map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert_eq!(found, Content::from(expected));
    }
}
