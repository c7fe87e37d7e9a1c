//! An adapter for LMDB, through heed: a copy-on-write B+-tree in a memory map.
//!
//! Each call is a transaction of its own. By default LMDB makes every commit durable with two
//! `fsync`s. Here it is opened with `MDB_NOSYNC`, so that `mdb_env_sync` makes writes durable and
//! differential runs do not spend their time in `fsync`. Crashes cannot be judged either way, since
//! the kernel writes the map.
//!
//! The engine refuses empty keys and keys longer than `mdb_env_get_maxkeysize`, which is 511 bytes
//! in heed's build. Values may be empty.

use std::ops::Bound;
use std::sync::Arc;

use ::heed::types::Bytes;
use ::heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};
use treering_engine::{Batch, Error, Kv, Lsn, Result, Visitor};
use treering_oracle::{Disk, DiskKind, Limits, Promise};

use crate::adapter::Adapter;
use crate::common::{LARGE_RECORD, Writes, below, folder, foreign, visit_all};

const NAME: &str = "heed";

pub(crate) const ADAPTER: Adapter = Adapter {
    name: NAME,
    judged: "differential and concurrent runs; no crash runs, because it writes through a memory map; no empty keys, which it refuses",
    disk: DiskKind::Folder,
    promise: Promise::OnSync,
    limits: Limits {
        max_key: MAX_KEY,
        max_record: LARGE_RECORD,
        empty_key: false,
    },
    batches: true,
    open,
    damage: None,
};

/// The same as LMDB is by default: a commit is durable when it returns.
pub(crate) const DURABLE: Adapter = Adapter {
    name: "heed:sync",
    judged: "as heed, and power cuts of its files",
    promise: Promise::OnReturn,
    open: |disk| open_with(disk, EnvFlags::empty()),
    ..ADAPTER
};

/// LMDB's own limit. Checked against `Env::max_key_size` when a store is opened.
const MAX_KEY: usize = 511;

/// This is address space, not memory. The file grows as pages are used.
const MAP_BYTES: usize = 4 << 30;

fn open(disk: &Disk) -> Result<Arc<dyn Kv>> {
    open_with(disk, EnvFlags::NO_SYNC)
}

fn open_with(disk: &Disk, flags: EnvFlags) -> Result<Arc<dyn Kv>> {
    // Without TLS: a scan may call back into the store on its own thread.
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(MAP_BYTES);
    // SAFETY: these are no flags, or NO_SYNC, which puts only durability at stake, and only in a crash of the machine, until
    // `sync`.
    unsafe { options.flags(flags) };
    // SAFETY: the folder is the run's own: nothing else writes the map's file, and it is on a
    // local file system.
    let env = unsafe { options.open(folder(NAME, disk)?) }.map_err(told)?;
    if env.max_key_size() < MAX_KEY {
        let why = format!("its longest key is {} bytes", env.max_key_size());
        return Err(foreign(NAME, why));
    }
    let records = {
        let txn = env.write_txn().map_err(told)?;
        let made = env.create_databases_and_commit(txn, |opener, txn| {
            let records = opener.create_database::<Bytes, Bytes>(txn, None)?;
            Ok::<_, ::heed::Error>(CommitOrAbort::<_, ()>::Commit(records))
        });
        made.map_err(told)?.unwrap_commit()
    };
    Ok(Arc::new(Store {
        env,
        records,
        writes: Writes::default(),
    }))
}

fn told(error: ::heed::Error) -> Error {
    foreign(NAME, error)
}

struct Store {
    env: Env<WithoutTls>,
    records: Database<'static, Bytes, Bytes>,
    writes: Writes,
}

impl Kv for Store {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let txn = self.env.read_txn().map_err(told)?;
        let found = self.records.get(&txn, key).map_err(told)?;
        value.extend_from_slice(found.unwrap_or_default());
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        let mut txn = self.env.write_txn().map_err(told)?;
        self.records.put(&mut txn, key, value).map_err(told)?;
        txn.commit().map_err(told)?;
        Ok(self.writes.next())
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        let mut txn = self.env.write_txn().map_err(told)?;
        self.records.delete(&mut txn, key).map_err(told)?;
        txn.commit().map_err(told)?;
        Ok(self.writes.next())
    }

    fn write(&self, batch: &Batch) -> Result<Lsn> {
        let mut txn = self.env.write_txn().map_err(told)?;
        for (key, value) in batch.iter() {
            match value {
                Some(value) => self.records.put(&mut txn, key, value).map_err(told)?,
                None => drop(self.records.delete(&mut txn, key).map_err(told)?),
            }
        }
        txn.commit().map_err(told)?;
        Ok(self.writes.next())
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let start = match from {
            // LMDB cannot look up the empty key. Starting before it and after it is the same.
            [] => Bound::Unbounded,
            _ => Bound::Included(from),
        };
        let txn = self.env.read_txn().map_err(told)?;
        let range = (start, Bound::<&[u8]>::Unbounded);
        let records = self.records.range(&txn, &range).map_err(told)?;
        visit_all(records.map(|record| record.map_err(told)), visit)
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        if before == Some(b"") {
            // As above, and nothing is below the empty key.
            return Ok(());
        }
        let txn = self.env.read_txn().map_err(told)?;
        let range = (Bound::Unbounded, below(before));
        let records = self.records.rev_range(&txn, &range).map_err(told)?;
        visit_all(records.map(|record| record.map_err(told)), visit)
    }

    fn sync(&self, _lsn: Lsn) -> Result<()> {
        self.env.force_sync().map_err(told)
    }
}
