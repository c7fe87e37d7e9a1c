//! LMDB, through heed: a copy-on-write B+-tree in a memory map.

use std::ops::Bound;

use ::heed::types::Bytes;
use ::heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithTls};

use super::peer::{Backing, Durability, Open, Peer, Spec, failed};
use crate::peers::data::{Key, Value};
use crate::peers::{Failure, Result};

const NAME: &str = "lmdb";

/// Size of the address space, not of memory. The file grows as pages are used.
const MAP_BYTES: usize = 16 << 30;

pub(super) const SPEC: Spec = Spec {
    name: NAME,
    backing: Backing::Map,
    settings: "WRITEMAP; no cache of its own, so the given size does not apply; \
               one transaction per group in both tables, of 1,000 writes while loading",
    relaxed: Some("committed with NOSYNC; the sync is mdb_env_sync"),
    grouped: "on the drive: a group is a commit, which syncs",
    groups: super::peer::transactions,
    open: |open| Ok(Box::new(Store::open(open)?)),
};

struct Store {
    env: Env<WithTls>,
    records: Database<'static, Bytes, Bytes>,
}

impl Store {
    fn open(open: &Open) -> Result<Store> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES);
        let flags = match open.durability {
            Durability::Relaxed => EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP,
            Durability::Grouped => EnvFlags::WRITE_MAP,
        };
        // SAFETY: no code in this process writes through stray pointers, so only the environment
        // changes the writable map. NO_SYNC risks durability only, and only if the machine crashes
        // before `sync`.
        unsafe { options.flags(flags) };
        // SAFETY: the folder belongs to this run, so nothing else writes the map's file. It is on a
        // local file system.
        let env = unsafe { options.open(&open.folder) }.map_err(told)?;
        let txn = env.write_txn().map_err(told)?;
        let made = env.create_databases_and_commit(txn, |opener, txn| {
            let records = opener.create_database::<Bytes, Bytes>(txn, None)?;
            Ok::<_, ::heed::Error>(CommitOrAbort::<_, ()>::Commit(records))
        });
        let records = made.map_err(told)?.unwrap_commit();
        Ok(Store { env, records })
    }
}

fn told(error: ::heed::Error) -> Failure {
    failed(NAME, error)
}

impl Peer for Store {
    fn get(&self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let txn = self.env.read_txn().map_err(told)?;
        let found = self.records.get(&txn, key).map_err(told)?;
        value.extend_from_slice(found.unwrap_or_default());
        Ok(found.is_some())
    }

    fn write(&self, group: &[(Key, Value)]) -> Result<()> {
        let mut txn = self.env.write_txn().map_err(told)?;
        for (key, value) in group {
            self.records.put(&mut txn, key, value).map_err(told)?;
        }
        txn.commit().map_err(told)
    }

    fn scan(&self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let txn = self.env.read_txn().map_err(told)?;
        let range = (Bound::Included(&from[..]), Bound::<&[u8]>::Unbounded);
        let found = self.records.range(&txn, &range).map_err(told)?;
        for record in found.take(limit as usize) {
            let (key, value) = record.map_err(told)?;
            visit(key, value);
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.env.force_sync().map_err(told)
    }
}
