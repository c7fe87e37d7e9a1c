//! An adapter for redb, a copy-on-write B+-tree in one file. The file is on a block device here, so
//! that crashes can be judged.
//!
//! Each write is a transaction of its own with `Durability::None`, which redb promises to keep "if
//! followed by a commit with `Durability::Immediate`". `sync` is that commit, empty. Compared with
//! a durable commit for each write, this leaves many writes unflushed at once, so there is more to
//! lose, and it exercises both kinds of commit and the change from one to the other. A crash may
//! then lose the writes after the last `sync`, and only a suffix of them, since commits have one
//! order.
//!
//! redb has its own checksums and its own lock on the file. The lock is left out (`StorageBackend`
//! allows that), because a device is opened only once at a time.

mod backend;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use ::redb::{Builder, Database, Durability, ReadableDatabase, TableDefinition};
use treering_engine::device::{BlockDevice, OverlayDevice};
use treering_engine::{Batch, Error, Kv, Lsn, Result, Visitor};
use treering_oracle::{Disk, DiskKind, Limits, Promise};

use crate::adapter::Adapter;
use crate::common::{LARGE_RECORD, LONG_KEY, Writes, below, device, folder, foreign};
use backend::DeviceFile;

const NAME: &str = "redb";

pub(crate) const ADAPTER: Adapter = Adapter {
    name: NAME,
    judged: "differential, concurrent and crash runs, on a recording backend; writes torn within 4 KiB are not judged, nor is a \
             crash while the file is first made",
    disk: DiskKind::Blocks(BLOCKS),
    promise: Promise::OnSync,
    limits: Limits {
        max_key: LONG_KEY,
        max_record: LARGE_RECORD,
        empty_key: true,
    },
    batches: true,
    open,
    damage: Some(damage),
};

/// The same with redb's own file, in a folder.
pub(crate) const IN_FILE: Adapter = Adapter {
    judged: "differential and concurrent runs, and power cuts of its files",
    disk: DiskKind::Folder,
    open: open_file,
    damage: None,
    ..ADAPTER
};

/// A new file takes slightly more than 1 MiB, and doubles when it grows. There is space for growing
/// twice.
const BLOCKS: u64 = 2048;

/// Small enough that pages are read again. The default is 1 GiB.
const CACHE_BYTES: usize = 256 << 10;

const RECORDS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("records");

fn open(disk: &Disk) -> Result<Arc<dyn Kv>> {
    Ok(Arc::new(Store {
        database: database(device(NAME, disk)?)?,
        writes: Writes::default(),
    }))
}

/// redb's own file backend, which locks the file.
fn open_file(disk: &Disk) -> Result<Arc<dyn Kv>> {
    let database = Builder::new()
        .set_cache_size(CACHE_BYTES)
        .create(folder(NAME, disk)?.join("store.redb"))
        .map_err(told)?;
    let store = Store {
        database,
        writes: Writes::default(),
    };
    // Reads need a table.
    store.sync(Lsn(0))?;
    Ok(Arc::new(store))
}

fn damage(disk: &Disk) -> Result<Vec<String>> {
    // Opening repairs, and checking commits. Neither may change the disk under test.
    let overlay = Arc::new(OverlayDevice::new(device(NAME, disk)?));
    let checked = database(overlay)?.check_integrity();
    match checked.map_err(::redb::Error::from) {
        Ok(true) => Ok(Vec::new()),
        Ok(false) => Ok(vec![
            "its integrity check found damage that it could repair".into(),
        ]),
        Err(::redb::Error::Corrupted(what)) => Ok(vec![what]),
        Err(error) => Err(told(error)),
    }
}

/// Opens the database on `device`, or makes one with its table.
fn database(device: Arc<dyn BlockDevice>) -> Result<Database> {
    let file = Arc::new(DeviceFile::open(device)?);
    let database = Builder::new()
        .set_cache_size(CACHE_BYTES)
        .create_with_backend(backend::Shared(file.clone()))
        .map_err(told)?;
    if !file.is_made() {
        let txn = database.begin_write().map_err(told)?;
        txn.open_table(RECORDS).map_err(told)?;
        txn.commit().map_err(told)?;
        file.made()?;
    }
    Ok(database)
}

fn told(error: impl Into<::redb::Error>) -> Error {
    foreign(NAME, error.into())
}

struct Store {
    database: Database,
    writes: Writes,
}

impl Store {
    /// A transaction of these changes, not yet durable.
    fn change<'c>(
        &self,
        changes: impl IntoIterator<Item = (&'c [u8], Option<&'c [u8]>)>,
    ) -> Result<Lsn> {
        let mut txn = self.database.begin_write().map_err(told)?;
        txn.set_durability(Durability::None).map_err(told)?;
        {
            let mut records = txn.open_table(RECORDS).map_err(told)?;
            for (key, value) in changes {
                match value {
                    Some(value) => records.insert(key, value).map_err(told)?,
                    None => records.remove(key).map_err(told)?,
                };
            }
        }
        txn.commit().map_err(told)?;
        Ok(self.writes.next())
    }
}

impl Kv for Store {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let txn = self.database.begin_read().map_err(told)?;
        let records = txn.open_table(RECORDS).map_err(told)?;
        let found = records.get(key).map_err(told)?;
        if let Some(found) = &found {
            value.extend_from_slice(found.value());
        }
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.change([(key, Some(value))])
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        self.change([(key, None)])
    }

    fn write(&self, batch: &Batch) -> Result<Lsn> {
        self.change(batch.iter())
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let txn = self.database.begin_read().map_err(told)?;
        let records = txn.open_table(RECORDS).map_err(told)?;
        for record in records.range(from..).map_err(told)? {
            let (key, value) = record.map_err(told)?;
            if visit(key.value(), value.value()) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        let txn = self.database.begin_read().map_err(told)?;
        let records = txn.open_table(RECORDS).map_err(told)?;
        let range = (Bound::Unbounded, below(before));
        for record in records.range::<&[u8]>(range).map_err(told)?.rev() {
            let (key, value) = record.map_err(told)?;
            if visit(key.value(), value.value()) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn sync(&self, _lsn: Lsn) -> Result<()> {
        let mut txn = self.database.begin_write().map_err(told)?;
        txn.set_durability(Durability::Immediate).map_err(told)?;
        txn.open_table(RECORDS).map_err(told)?;
        txn.commit().map_err(told)
    }
}
