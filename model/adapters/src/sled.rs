//! An adapter for sled 0.34, a Bw-tree-like index on a log-structured page store.
//!
//! Segments and cache are kept small, so that pages are written, fetched and moved between
//! segments. Its background flush is off. `sync` is `flush`, after which "all previous writes will
//! be recovered if the system crashes".
//!
//! It documents no limit for keys and values, and accepts empty ones.
//!
//! A dropped store keeps its lock on the file until its last page is reclaimed, on another thread,
//! and an `open` fails until then (spacejam/sled#1234). The adapter retries it.

use std::ops::Bound;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ::sled::{Config, Db};
use treering_engine::{Batch, Error, Kv, Lsn, Result, Visitor};
use treering_oracle::{Disk, DiskKind, Limits, Promise};

use crate::adapter::Adapter;
use crate::common::{LARGE_RECORD, LONG_KEY, Writes, below, folder, foreign, visit_all};

const NAME: &str = "sled";

pub(crate) const ADAPTER: Adapter = Adapter {
    name: NAME,
    judged: "differential and concurrent runs; no crash runs, because it opens files itself",
    disk: DiskKind::Folder,
    promise: Promise::OnSync,
    limits: Limits {
        max_key: LONG_KEY,
        max_record: LARGE_RECORD,
        empty_key: true,
    },
    batches: true,
    open,
    damage: None,
};

/// An eighth of the default. Records of [`LARGE_RECORD`] still fit.
const SEGMENT_BYTES: usize = 64 << 10;

/// How long to wait for the previous store's lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(1);

fn open(disk: &Disk) -> Result<Arc<dyn Kv>> {
    let config = Config::new()
        .path(folder(NAME, disk)?)
        .segment_size(SEGMENT_BYTES)
        .cache_capacity(1 << 20)
        .flush_every_ms(None);
    let patience = Instant::now() + LOCK_PATIENCE;
    let db = loop {
        match config.open() {
            Ok(db) => break db,
            Err(error) if is_lock(&error) && Instant::now() < patience => sleep(LOCK_PAUSE),
            Err(error) => return Err(told(error)),
        }
    };
    Ok(Arc::new(Store {
        db,
        writes: Writes::default(),
    }))
}

fn told(error: ::sled::Error) -> Error {
    foreign(NAME, error)
}

/// Whether the error is about the lock. sled has no variant for that.
fn is_lock(error: &::sled::Error) -> bool {
    matches!(error, ::sled::Error::Io(error) if error.to_string().contains("could not acquire lock"))
}

struct Store {
    db: Db,
    writes: Writes,
}

impl Kv for Store {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.db.get(key).map_err(told)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.db.insert(key, value).map_err(told)?;
        Ok(self.writes.next())
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        self.db.remove(key).map_err(told)?;
        Ok(self.writes.next())
    }

    fn write(&self, batch: &Batch) -> Result<Lsn> {
        let mut all = ::sled::Batch::default();
        for (key, value) in batch.iter() {
            match value {
                Some(value) => all.insert(key, value),
                None => all.remove(key),
            }
        }
        self.db.apply_batch(all).map_err(told)?;
        Ok(self.writes.next())
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let records = self.db.range(from..);
        visit_all(records.map(|record| record.map_err(told)), visit)
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        let range = (Bound::Unbounded, below(before));
        let records = self.db.range::<&[u8], _>(range).rev();
        visit_all(records.map(|record| record.map_err(told)), visit)
    }

    fn sync(&self, _lsn: Lsn) -> Result<()> {
        self.db.flush().map_err(told)?;
        Ok(())
    }
}
