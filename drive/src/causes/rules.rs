//! Which cause a file's writes have, by the file's path: globs, those of the user first.
//!
//! The defaults know the files of well-known engines by the names that their sources give them:
//!
//! | engine | files |
//! |---|---|
//! | LevelDB, RocksDB, Pebble | `000012.log`, `000013.sst` or `.ldb`, `.blob`, `MANIFEST-000001` |
//! | SQLite | the database, `-wal`, `-journal`, `-shm` |
//! | PostgreSQL | `pg_wal`, `base/DATABASE/FILE`, `pg_xact`, `pgsql_tmp` |
//! | LMDB | `data.mdb`, `lock.mdb` |
//! | WiredTiger, MongoDB | `*.wt`, `WiredTigerLog.*`, `WiredTiger.turtle` |
//! | bbolt, etcd | `*.bolt`, `member/snap/db`, `member/wal` |
//! | Redis, Git | `*.aof`, `*.rdb`; `.git/objects`, `.git/index`, `.git/refs` |
//! | redb, sled, fjall, DuckDB | `*.redb`; `db`, `snap.*`; `*.jnl`, `tables`; `*.duckdb`, `*.wal` |
//!
//! What a name does not tell, the first bytes may: see [`super::sniff`]. Levels of sorted tables
//! come from the manifest: see [`super::manifest`].

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::error::DriveError;

/// Writes of files that no rule names.
pub const OTHER: &str = "other";
/// Sorted tables whose level is not known; with it, they are `L0` and so on.
pub const TABLES: &str = "sst";
/// Flushes and changes of directories themselves; the regions of real file systems are called so.
pub const DIRECTORY: &str = "directories";

/// The default rules, the first that matches decides: cause and globs of paths.
const DEFAULTS: &[(&str, &[&str])] = &[
    // SQLite appends these to the name of the database, whatever it is.
    ("wal", &["**/*-wal"]),
    ("journal", &["**/*-journal", "**/*-mj????????*"]),
    ("shared memory", &["**/*-shm"]),
    // PostgreSQL (src/backend/storage/file, access/transam): names of folders are fixed.
    ("wal", &["**/pg_wal/**"]),
    (
        "clog",
        &[
            "**/pg_xact/**",
            "**/pg_multixact/**",
            "**/pg_subtrans/**",
            "**/pg_commit_ts/**",
        ],
    ),
    ("temporary", &["**/pgsql_tmp/**", "**/pgsql_tmp*"]),
    (
        "free space map",
        &[
            "**/{base,global}/**/*_{fsm,vm}",
            "**/{base,global}/**/*_{fsm,vm}.*",
        ],
    ),
    (
        "control",
        &["**/global/pg_control*", "**/pg_logical/**", "**/pg_stat/**"],
    ),
    (
        "heap",
        &["**/{base,pg_tblspc}/**/[0-9]*", "**/global/[0-9]*"],
    ),
    // WiredTiger (src/include/meta.h, log.h). MongoDB calls its trees collection-* and index-*.
    (
        "wal",
        &[
            "**/WiredTigerLog.*",
            "**/WiredTigerPreplog.*",
            "**/WiredTigerTmplog.*",
        ],
    ),
    ("history", &["**/WiredTigerHS.wt", "**/WiredTigerLAS.wt"]),
    (
        "manifest",
        &["**/WiredTiger{,.wt,.turtle,.turtle.set,.lock,.basecfg}"],
    ),
    ("index", &["**/index-*.wt"]),
    ("table", &["**/*.wt"]),
    // LevelDB, RocksDB (db/filename.cc, file/filename.cc), Pebble.
    (
        "manifest",
        &[
            "**/MANIFEST-*",
            "**/CURRENT",
            "**/*.dbtmp",
            "**/CURRENT.*",
            "**/marker.*",
        ],
    ),
    ("wal", &["**/[0-9][0-9][0-9][0-9][0-9][0-9]*.log"]),
    (TABLES, &["**/*.sst", "**/*.ldb"]),
    ("blob", &["**/*.blob", "**/*.vlog"]),
    ("options", &["**/OPTIONS-*", "**/IDENTITY"]),
    ("info log", &["**/LOG", "**/LOG.old*"]),
    // LMDB.
    ("database", &["**/data.mdb", "**/*.mdb", "**/*.lmdb"]),
    (
        "shared memory",
        &["**/lock.mdb", "**/*.mdb-lock", "**/*.lmdb-lock"],
    ),
    // etcd and bbolt.
    ("wal", &["**/member/wal/**"]),
    (
        "database",
        &["**/member/snap/db", "**/*.bolt", "**/*.bbolt"],
    ),
    // fjall and its LSM-tree.
    ("wal", &["**/*.jnl", "**/journals/**"]),
    (TABLES, &["**/{segments,tables}/[0-9]*"]),
    ("manifest", &["**/keyspaces/*/{v[0-9]*,current,.tmp*}"]),
    // Redis and Valkey: names are fixed up to `appendfilename`.
    (
        "snapshot",
        &["**/*.rdb", "**/temp-rewriteaof-*.aof", "**/*.base.aof"],
    ),
    ("wal", &["**/*.aof"]),
    ("manifest", &["**/*.aof.manifest"]),
    // Git.
    ("pack", &["**/.git/objects/pack/*"]),
    ("objects", &["**/.git/objects/**"]),
    ("index", &["**/.git/index{,.lock}"]),
    ("log", &["**/.git/logs/**"]),
    ("refs", &["**/.git/{refs/**,HEAD*,ORIG_HEAD*,packed-refs*}"]),
    // DuckDB.
    ("wal", &["**/*.wal"]),
    ("temporary", &["**/*.tmp/**", "**/*.tmp", "**/tmp/**"]),
    (
        "database",
        &["**/*.{duckdb,redb,db,db3,sqlite,sqlite3,s3db,fossil}"],
    ),
    // sled: `conf`, `db`, `snap.*`, `blobs`.
    ("snapshot", &["**/snap.*"]),
    ("blob", &["**/blobs/**"]),
    ("database", &["**/db"]),
    ("log", &["**/*.log"]),
];

/// Rules in their order.
#[derive(Clone, Debug)]
pub struct Rules {
    set: GlobSet,
    /// The cause of each glob of the set.
    causes: Vec<String>,
}

impl Rules {
    /// The user's rules, each a cause and a glob, then the defaults.
    ///
    /// # Errors
    /// [`DriveError::Parameter`] for a glob that is none.
    pub fn new(own: &[(String, String)]) -> Result<Rules, DriveError> {
        let own = own
            .iter()
            .map(|(cause, glob)| (cause.as_str(), glob.as_str()));
        let defaults = DEFAULTS.iter();
        let defaults = defaults.flat_map(|(cause, globs)| globs.iter().map(move |g| (*cause, *g)));
        let mut set = GlobSetBuilder::new();
        let mut causes = Vec::new();
        for (cause, glob) in own.chain(defaults) {
            let parsed = Glob::new(glob).map_err(|e| DriveError::Parameter {
                name: "cause",
                why: format!("{cause}={glob}: expected a glob, found {}", e.kind()),
            })?;
            set.add(parsed);
            causes.push(cause.to_string());
        }
        let set = set.build().map_err(|e| DriveError::Parameter {
            name: "cause",
            why: e.to_string(),
        })?;
        Ok(Rules { set, causes })
    }

    /// The cause of a path from the root, without a slash at its begin.
    #[must_use]
    pub fn of(&self, path: &str) -> &str {
        let first = self.set.matches(path).into_iter().min();
        first.map_or(OTHER, |at| &self.causes[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_known_engines_are_told_apart() {
        let rules = Rules::new(&[]).expect("defaults are globs");
        for (path, cause) in [
            ("db/000012.log", "wal"),
            ("000013.sst", TABLES),
            ("MANIFEST-000004", "manifest"),
            ("a/b/app.db-wal", "wal"),
            ("notes-journal", "journal"),
            ("notes.sqlite3", "database"),
            ("pg/base/5/16384", "heap"),
            ("pg/base/5/16384.1", "heap"),
            ("base/5/16384_vm", "free space map"),
            ("pg/pg_wal/000000010000000000000001", "wal"),
            ("pg/pg_xact/0000", "clog"),
            ("base/pgsql_tmp/pgsql_tmp12.0", "temporary"),
            ("global/1262", "heap"),
            ("data.mdb", "database"),
            ("m/collection-0--1.wt", "table"),
            ("m/index-1--1.wt", "index"),
            ("WiredTiger.turtle", "manifest"),
            ("WiredTigerLog.0000000001", "wal"),
            ("x.redb", "database"),
            ("etcd/member/snap/db", "database"),
            ("db/LOG", "info log"),
            ("fjall/0.jnl", "wal"),
            ("fjall/keyspaces/1/tables/7", TABLES),
            ("fjall/keyspaces/1/v11", "manifest"),
            ("fjall/keyspaces/1/.tmpmfoU05", "manifest"),
            ("appendonlydir/appendonly.aof.3.incr.aof", "wal"),
            ("appendonlydir/appendonly.aof.3.base.aof", "snapshot"),
            ("temp-rewriteaof-20610.aof", "snapshot"),
            ("appendonlydir/temp-appendonly.aof.manifest", "manifest"),
            ("src/.git/objects/pack/tmp_pack_BX40AN", "pack"),
            (".git/objects/4f/2e", "objects"),
            (".git/index.lock", "index"),
            (".git/refs/heads/master.lock", "refs"),
            ("whatever.bin", OTHER),
        ] {
            assert_eq!(rules.of(path), cause, "{path}");
        }
    }

    #[test]
    fn a_rule_of_the_user_comes_before_the_defaults() {
        let own = [("hot".to_string(), "**/*.db".to_string())];
        let rules = Rules::new(&own).expect("a glob");
        assert_eq!(rules.of("a.db"), "hot");
        let bad = [("hot".to_string(), "[".to_string())];
        let error = Rules::new(&bad).expect_err("no glob").to_string();
        assert!(error.contains("hot=[") && error.contains("glob"), "{error}");
    }
}
