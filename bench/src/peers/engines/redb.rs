//! redb: a copy-on-write B-tree.

use ::redb::{Builder, Database, Durability as Commit, ReadableDatabase, TableDefinition};

use super::peer::{Backing, Durability, Open, Peer, Spec, failed};
use crate::peers::data::{Key, Value, WIDTH};
use crate::peers::{Failure, Result};

const NAME: &str = "redb";

pub(super) const SPEC: Spec = Spec {
    name: NAME,
    backing: Backing::PageCache,
    settings: "fixed-width keys and values; cache of the given size on top of the page cache; \
               one transaction per group in both tables, of 1,000 writes while loading",
    relaxed: Some(
        "committed with Durability::None; the sync is a commit with Durability::Immediate",
    ),
    grouped: "on the drive: a group is a commit with Durability::Immediate",
    groups: super::peer::transactions,
    open: |open| Ok(Box::new(Store::open(open)?)),
};

const RECORDS: TableDefinition<'static, &[u8; WIDTH], &[u8; WIDTH]> =
    TableDefinition::new("records");

struct Store {
    database: Database,
    durability: Durability,
}

impl Store {
    fn open(open: &Open) -> Result<Store> {
        let database = Builder::new()
            .set_cache_size(open.cache_bytes as usize)
            .create(open.folder.join("redb"))
            .map_err(told)?;
        let store = Store {
            database,
            durability: open.durability,
        };
        store.commit(&[], Commit::Immediate)?;
        Ok(store)
    }

    fn commit(&self, group: &[(Key, Value)], durability: Commit) -> Result<()> {
        let mut txn = self.database.begin_write().map_err(told)?;
        txn.set_durability(durability).map_err(told)?;
        {
            let mut records = txn.open_table(RECORDS).map_err(told)?;
            for (key, value) in group {
                records.insert(key, value).map_err(told)?;
            }
        }
        txn.commit().map_err(told)
    }
}

fn told(error: impl Into<::redb::Error>) -> Failure {
    failed(NAME, error.into())
}

impl Peer for Store {
    fn get(&self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let txn = self.database.begin_read().map_err(told)?;
        let records = txn.open_table(RECORDS).map_err(told)?;
        let found = records.get(key).map_err(told)?;
        if let Some(found) = &found {
            value.extend_from_slice(found.value());
        }
        Ok(found.is_some())
    }

    fn write(&self, group: &[(Key, Value)]) -> Result<()> {
        let durability = match self.durability {
            Durability::Relaxed => Commit::None,
            Durability::Grouped => Commit::Immediate,
        };
        self.commit(group, durability)
    }

    fn fill(&self, group: &[(Key, Value)]) -> Result<()> {
        self.commit(group, Commit::None)
    }

    fn scan(&self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let txn = self.database.begin_read().map_err(told)?;
        let records = txn.open_table(RECORDS).map_err(told)?;
        for record in records
            .range::<&Key>(from..)
            .map_err(told)?
            .take(limit as usize)
        {
            let (key, value) = record.map_err(told)?;
            visit(key.value(), value.value());
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.commit(&[], Commit::Immediate)
    }
}
