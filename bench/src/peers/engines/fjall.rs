//! fjall: a log-structured merge tree.

use ::fjall::config::{CompressionPolicy, PartitioningPolicy, PinningPolicy};
use ::fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::peer::{Backing, Durability, Open, Peer, Spec, failed};
use crate::peers::data::{Key, Value};
use crate::peers::{Failure, Result};

const NAME: &str = "fjall";

pub(super) const SPEC: Spec = Spec {
    name: NAME,
    backing: Backing::PageCache,
    settings: "filters and index blocks pinned at every level and unpartitioned, no compression; \
               block cache of the given size on top of the page cache, \
               plus a memtable of half that size",
    relaxed: Some("in the journal's file, which the operating system holds"),
    grouped: "on the drive: a group is a batch with PersistMode::SyncData",
    groups: super::peer::singly_if_relaxed,
    open: |open| Ok(Box::new(Store::open(open)?)),
};

struct Store {
    /// Declared before the database, so that it is dropped first.
    records: Keyspace,
    database: Database,
    durability: Durability,
}

impl Store {
    fn open(open: &Open) -> Result<Store> {
        let database = Database::builder(&open.folder)
            .cache_size(open.cache_bytes)
            .open()
            .map_err(told)?;
        let memtable = open.cache_bytes / 2;
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(memtable)
                .filter_block_pinning_policy(PinningPolicy::all(true))
                .index_block_pinning_policy(PinningPolicy::all(true))
                .filter_block_partitioning_policy(PartitioningPolicy::all(false))
                .index_block_partitioning_policy(PartitioningPolicy::all(false))
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
        };
        let records = database.keyspace("records", options).map_err(told)?;
        Ok(Store {
            records,
            database,
            durability: open.durability,
        })
    }
}

fn told(error: ::fjall::Error) -> Failure {
    failed(NAME, error)
}

impl Peer for Store {
    fn get(&self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.records.get(key).map_err(told)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn write(&self, group: &[(Key, Value)]) -> Result<()> {
        if self.durability == Durability::Relaxed {
            return self.fill(group);
        }
        let mut batch = self
            .database
            .batch()
            .durability(Some(PersistMode::SyncData));
        for (key, value) in group {
            batch.insert(&self.records, key, value);
        }
        batch.commit().map_err(told)
    }

    fn fill(&self, group: &[(Key, Value)]) -> Result<()> {
        for (key, value) in group {
            self.records.insert(key, value).map_err(told)?;
        }
        Ok(())
    }

    fn scan(&self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for record in self.records.range(&from[..]..).take(limit as usize) {
            let (key, value) = record.into_inner().map_err(told)?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.database.persist(PersistMode::SyncData).map_err(told)
    }
}
