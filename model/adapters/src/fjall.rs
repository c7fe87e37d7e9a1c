//! An adapter for fjall, a log-structured merge tree with a journal.
//!
//! The memtable is kept small, so that programs of a few thousand operations reach flushes and
//! compactions. A write reaches the operating system before it returns, and the disk by `persist`
//! (README, "Durability"), which is `sync` here.
//!
//! The engine refuses empty keys (it panics) and keys over 65,535 bytes. Values may be empty.

use std::ops::Bound;
use std::sync::Arc;

use ::fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use treering_engine::{Batch, Error, Kv, Lsn, Result, Visitor};
use treering_oracle::{Disk, DiskKind, Limits, Promise};

use crate::adapter::Adapter;
use crate::common::{LARGE_RECORD, LONG_KEY, Writes, below, folder, foreign, visit_all};

const NAME: &str = "fjall";

pub(crate) const ADAPTER: Adapter = Adapter {
    name: NAME,
    judged: "differential and concurrent runs; no crash runs, because it opens files itself; no empty keys, which it refuses",
    disk: DiskKind::Folder,
    promise: Promise::OnSync,
    limits: Limits {
        max_key: LONG_KEY,
        max_record: LARGE_RECORD,
        empty_key: false,
    },
    batches: true,
    open,
    damage: None,
};

/// Small enough that a few hundred writes flush it.
const MEMTABLE_BYTES: u64 = 64 << 10;

fn open(disk: &Disk) -> Result<Arc<dyn Kv>> {
    let database = Database::builder(folder(NAME, disk)?)
        .cache_size(1 << 20)
        .open()
        .map_err(told)?;
    let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
    let records = database.keyspace("records", options).map_err(told)?;
    Ok(Arc::new(Store {
        records,
        database,
        writes: Writes::default(),
    }))
}

fn told(error: ::fjall::Error) -> Error {
    foreign(NAME, error)
}

struct Store {
    /// Declared before the database, so that it is dropped first.
    records: Keyspace,
    database: Database,
    writes: Writes,
}

impl Kv for Store {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.records.get(key).map_err(told)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.records.insert(key, value).map_err(told)?;
        Ok(self.writes.next())
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        self.records.remove(key).map_err(told)?;
        Ok(self.writes.next())
    }

    fn write(&self, batch: &Batch) -> Result<Lsn> {
        let mut all = self.database.batch();
        for (key, value) in batch.iter() {
            match value {
                Some(value) => all.insert(&self.records, key, value),
                None => all.remove(&self.records, key),
            }
        }
        all.commit().map_err(told)?;
        Ok(self.writes.next())
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let range = (Bound::Included(from), Bound::Unbounded);
        let records = self.records.range::<&[u8], _>(range);
        visit_all(
            records.map(|record| record.into_inner().map_err(told)),
            visit,
        )
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        let range = (Bound::Unbounded, below(before));
        let records = self.records.range::<&[u8], _>(range).rev();
        visit_all(
            records.map(|record| record.into_inner().map_err(told)),
            visit,
        )
    }

    fn sync(&self, _lsn: Lsn) -> Result<()> {
        self.database.persist(PersistMode::SyncAll).map_err(told)
    }
}
