//! RocksDB, the distribution's library: a log-structured merge tree.

use ::rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DataBlockIndexType, Options, WriteBatch,
    WriteOptions,
};

use super::peer::{Backing, Durability, Open, Peer, Spec, failed};
use crate::peers::data::{Key, Value};
use crate::peers::{Failure, Result};

const NAME: &str = "rocksdb";

pub(super) const SPEC: Spec = Spec {
    name: NAME,
    backing: Backing::PageCache,
    settings: "7.8; Bloom filters of 10 bits and index blocks outside the cache, so never evicted; \
               hashed data blocks, no compression; block cache of the given size on top of the \
               page cache, plus two memtables of a quarter of that size each",
    relaxed: Some("in the log's file, which the operating system holds"),
    grouped: "on the drive: a group is a WriteBatch with sync, which concurrent groups share",
    groups: super::peer::singly_if_relaxed,
    open: |open| Ok(Box::new(Store::open(open, Backing::PageCache)?)),
};

pub(super) const DIRECT: Spec = Spec {
    name: "rocksdb direct",
    backing: Backing::Direct,
    settings: "as rocksdb, with direct I/O for reads, flushes and compactions",
    open: |open| Ok(Box::new(Store::open(open, Backing::Direct)?)),
    ..SPEC
};

struct Store {
    db: DB,
    acknowledge: WriteOptions,
}

impl Store {
    fn open(open: &Open, backing: Backing) -> Result<Store> {
        let cache = Cache::new_lru_cache(open.cache_bytes as usize).map_err(told)?;
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&cache);
        blocks.set_bloom_filter(10.0, false);
        blocks.set_format_version(5);
        blocks.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        options.set_compression_type(DBCompressionType::None);
        options.set_write_buffer_size(open.cache_bytes as usize / 4);
        options.set_max_write_buffer_number(2);
        options.set_max_background_jobs(2);
        if backing == Backing::Direct {
            options.set_use_direct_reads(true);
            options.set_use_direct_io_for_flush_and_compaction(true);
        }
        let mut acknowledge = WriteOptions::default();
        acknowledge.set_sync(open.durability == Durability::Grouped);
        let db = DB::open(&options, open.folder.join("rocksdb")).map_err(told)?;
        Ok(Store { db, acknowledge })
    }
}

fn told(error: ::rocksdb::Error) -> Failure {
    failed(NAME, error)
}

impl Peer for Store {
    fn get(&self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.db.get_pinned(key).map_err(told)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn write(&self, group: &[(Key, Value)]) -> Result<()> {
        if let [(key, value)] = group {
            return self.db.put_opt(key, value, &self.acknowledge).map_err(told);
        }
        let mut batch = WriteBatch::default();
        for (key, value) in group {
            batch.put(key, value);
        }
        self.db.write_opt(batch, &self.acknowledge).map_err(told)
    }

    fn fill(&self, group: &[(Key, Value)]) -> Result<()> {
        for (key, value) in group {
            self.db.put(key, value).map_err(told)?;
        }
        Ok(())
    }

    fn scan(&self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut cursor = self.db.raw_iterator();
        cursor.seek(from);
        for _ in 0..limit {
            let Some((key, value)) = cursor.item() else {
                break;
            };
            visit(key, value);
            cursor.next();
        }
        cursor.status().map_err(told)
    }

    fn sync(&self) -> Result<()> {
        self.db.flush_wal(true).map_err(told)
    }
}
