//! PostgreSQL, by `postgres --single`: one process recovers the cluster and runs all queries, which
//! is faster than a server. `verify_heapam` and `bt_index_check` of the extension `amcheck` read
//! tables and indexes where Debian's `postgresql` has it, and then come all rows of the table `kv`
//! in the database `postgres`, whose first two columns are key and value.
//!
//! PostgreSQL does not run as root. Then the files are given to the user `postgres`, or `nobody`,
//! first, and the folder's mode is set: a cut cannot find fault with these.
//!
//! A cluster that `initdb` is making is not expected to survive. So if the program says what it
//! tries, states before its first `try` are not opened.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::engine::{Engine, Place, Trouble};
use super::files::folder_with;
use super::tool;
use crate::acks::Content;
use crate::failure::Failure;

pub(super) const ENGINE: Engine = Engine {
    name: "postgres",
    tools: &[("postgres", "postgresql")],
    version: &["postgres", "--version"],
    build: None,
    find: |dir, named| folder_with("PostgreSQL cluster", "PG_VERSION", dir, named),
    read,
};

/// Queries, a line each.
const QUERIES: &str = "\
CREATE EXTENSION IF NOT EXISTS amcheck
SELECT 'treering!' || c.relname || ' ' || v.msg AS row FROM pg_class c, LATERAL verify_heapam(c.oid) v \
WHERE c.relkind IN ('r', 't', 'm') AND c.relpersistence = 'p'
SELECT bt_index_check(c.oid) FROM pg_class c, pg_am a, pg_index i WHERE c.relam = a.oid AND \
a.amname = 'btree' AND i.indexrelid = c.oid AND i.indisvalid AND c.relkind = 'i' AND c.relpersistence = 'p'
SELECT 'treering:' || (CASE pg_typeof(t.k)::text WHEN 'bytea' THEN substr(t.k::text, 3) ELSE \
encode(convert_to(t.k::text, 'UTF8'), 'hex') END) || ':' || coalesce(CASE pg_typeof(t.v)::text \
WHEN 'bytea' THEN substr(t.v::text, 3) ELSE encode(convert_to(t.v::text, 'UTF8'), 'hex') END, '') \
AS row FROM kv AS t(k, v)
SELECT 'treering.' AS row
";

fn read(place: &Place<'_>) -> Result<Content, Trouble> {
    if place.is_early {
        return Ok(Content::new());
    }
    let cluster = &place.store;
    let mut command = Command::new(program(cluster)?);
    command.arg("--single").arg("-D").arg(cluster);
    for setting in [
        "log_min_messages=error",
        "logging_collector=off",
        "bytea_output=hex",
    ] {
        command.args(["-c", setting]);
    }
    command.arg("postgres").current_dir("/");
    if rustix::process::geteuid().is_root() {
        let (user, group) = user()?;
        give(cluster, user, group).map_err(|e| Failure::file("the cluster", &e))?;
        command.uid(user).gid(group);
    }
    let said = tool::run(&mut command, QUERIES)?;
    let out = String::from_utf8_lossy(&said.out);
    let rows = out
        .lines()
        .filter_map(|line| line.split_once("row = \"treering")?.1.split_once('"'));
    let (mut content, mut is_whole) = (Content::new(), false);
    for (row, _) in rows {
        match row.split_at_checked(1) {
            Some((":", pair)) => {
                let pair = pair.split_once(':').and_then(|(key, value)| {
                    let bytes = |text: &str| crate::acks::unhex(text.as_bytes());
                    Some((bytes(key)?, bytes(value)?))
                });
                content.extend([pair.ok_or_else(|| tool::not_understood("postgres"))?]);
            }
            Some((".", _)) => is_whole = true,
            _ => {
                let told = format!("verify_heapam finds damage\n{}", &row[1..]);
                return Err(Trouble::State(told));
            }
        }
    }
    match said.err.lines().find_map(error) {
        Some(error) => Err(Trouble::State(format!(
            "the store is damaged or does not open\n{}",
            tool::without(place.dir, error)
        ))),
        None if is_whole => Ok(content),
        None => Err(said.failed(place.dir, "postgres")),
    }
}

/// The message of a line of the log, if it is an error of the cluster's.
fn error(line: &str) -> Option<&str> {
    let at = ["ERROR:", "FATAL:", "PANIC:"]
        .iter()
        .find_map(|level| line.find(level))?;
    let line = &line[at..];
    // No table yet, or no package with amcheck.
    let fine = [
        "relation \"kv\" does not exist",
        "amcheck",
        "function verify_heapam",
        "function bt_index",
    ];
    (!fine.iter().any(|fine| line.contains(fine))).then_some(line)
}

/// The server of the cluster's version, or the one in `$PATH`.
fn program(cluster: &Path) -> Result<PathBuf, Trouble> {
    let version = std::fs::read_to_string(cluster.join("PG_VERSION")).unwrap_or_default();
    let of_version = format!("/usr/lib/postgresql/{}/bin/postgres", version.trim());
    if Path::new(&of_version).is_file() {
        return Ok(of_version.into());
    }
    let found = tool::find("postgres");
    found.ok_or_else(|| Failure::cannot_run("expected the command postgres, found none").into())
}

/// The numbers of a user who is not root.
fn user() -> Result<(u32, u32), Failure> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of = |name: &str| {
        let mut lines = users
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>());
        let fields = lines.find(|fields| fields[0] == name)?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    };
    let user = of("postgres").or_else(|| of("nobody"));
    user.ok_or_else(|| Failure::cannot_run("expected a user postgres or nobody, found none"))
}

/// Gives a folder with all that is in it to a user.
fn give(path: &Path, user: u32, group: u32) -> std::io::Result<()> {
    let kind = std::fs::symlink_metadata(path)?;
    if kind.is_symlink() {
        return Ok(());
    }
    chown(path, Some(user), Some(group))?;
    if kind.is_dir() {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
        for entry in std::fs::read_dir(path)? {
            give(&entry?.path(), user, group)?;
        }
    }
    Ok(())
}
