//! The crate `bf-tree`, published by the authors of Bf-Tree.
//!
//! A write waits for the log: it holds its page until the log's thread has written the log's
//! buffer, which happens every millisecond. The buffer is written as a whole each time, so it has
//! the smallest size that the crate's own reader supports. It is never synced. Without the log,
//! only a snapshot of everything would count as a sync. None is taken, which favours this engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::bf_tree::{
    BfTree, Config, LeafInsertResult, LeafReadResult, ScanReturnField, StorageBackend, WalConfig,
};

use super::peer::{Backing, Durability, Open, Peer, Spec, failed};
use crate::peers::Result;
use crate::peers::data::{Data, Key, Value, WIDTH};

const NAME: &str = "bf-tree";

/// Reads between two looks at the buffer, for which the whole of it is locked.
const DRAIN_STEP: u64 = 1000;
/// How often all records are read at most.
const DRAIN_ROUNDS: u64 = 20;
/// A prime, so that reads that follow each other are far apart.
const DRAIN_STRIDE: u64 = 982_451_653;

/// The size that [`WalReader`](::bf_tree::WalReader) uses for recovery.
const LOG_BUFFER: usize = 4096;

/// Writes that wait for the log together while a store is filled. A writer that finds the buffer
/// full calls itself until the log's thread has written it, and overflows its stack. A buffer is
/// reused from the first write that finds it half full, and the other half has room for these
/// writes.
const FILLERS: usize = LOG_BUFFER / 2 / LOG_RECORD * 3 / 4;

/// Bytes of a record in the log.
const LOG_RECORD: usize = 29 + 2 * WIDTH;

pub(super) const STD: Spec = Spec {
    name: "bf-tree std",
    backing: Backing::PageCache,
    settings: "defaults: 4 KiB leaves, promotion 30 %, copy-on-access 10 %; \
               backend Std (pread, pwrite)",
    relaxed: Some("in the buffer, not logged; it has no sync, so only the file system is synced"),
    grouped: "with the operating system: a write waits for the log's buffer, \
              which is written every 1 ms and never synced",
    groups: super::peer::singly,
    open: |open| Store::open(open, StorageBackend::Std),
};

pub(super) const URING: Spec = Spec {
    name: "bf-tree io_uring",
    backing: Backing::Direct,
    settings: "as bf-tree std; backend IoUringBlocking (O_DIRECT), \
               which its documentation recommends",
    grouped: "with the drive: as bf-tree std, written with O_DIRECT and never flushed",
    open: |open| Store::open(open, StorageBackend::IoUringBlocking),
    ..STD
};

/// Of so many reads of a leaf, one promotes its record: the crate's default.
const PROMOTION: usize = 30;

struct Store {
    tree: BfTree,
    /// Records that are there in the end.
    records: u64,
    has_log: bool,
    /// Reads that drained it so far.
    drained: AtomicU64,
}

impl Store {
    fn open(open: &Open, backend: StorageBackend) -> Result<Box<dyn Peer>> {
        let mut config = Config::new(open.folder.join("pages"), open.cache_bytes as usize);
        config.storage_backend(backend.clone());
        if open.durability == Durability::Grouped {
            let mut log = WalConfig::new(open.folder.join("log"));
            log.storage_backend(backend).segment_size(LOG_BUFFER);
            config.enable_write_ahead_log(Arc::new(log));
        }
        let tree = BfTree::with_config(config, None);
        let tree = tree.map_err(|error| failed(NAME, format!("{error:?}")))?;
        Ok(Box::new(Store {
            tree,
            records: open.records,
            has_log: open.durability == Durability::Grouped,
            drained: AtomicU64::new(0),
        }))
    }

    /// Reads records until what reads promote has taken all of the buffer.
    fn fill_buffer(&self) -> Result<()> {
        let data = Data::new(self.records);
        let wanted = self.tree.get_buffer_metrics();
        let wanted = wanted.tail_addr + wanted.capacity;
        let mut value = Vec::new();
        for _ in 0..self.records / DRAIN_STEP * DRAIN_ROUNDS {
            for _ in 0..DRAIN_STEP {
                // Neighbours share a leaf, and reads of a mini-page promote nothing.
                let number = self.drained.fetch_add(1, Ordering::Relaxed);
                let record = number.wrapping_mul(DRAIN_STRIDE) % self.records;
                self.get(&data.key(record), &mut value)?;
            }
            if self.tree.get_buffer_metrics().tail_addr >= wanted {
                return Ok(());
            }
        }
        Err(failed(NAME, "reads of all records do not fill its buffer"))
    }
}

impl Peer for Store {
    fn get(&self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let mut buffer = [0; 64];
        match self.tree.read(key, &mut buffer) {
            LeafReadResult::Found(len) => {
                value.extend_from_slice(&buffer[..len as usize]);
                Ok(true)
            }
            LeafReadResult::Deleted | LeafReadResult::NotFound => Ok(false),
            LeafReadResult::InvalidKey => Err(failed(NAME, "the key is not valid")),
        }
    }

    fn write(&self, group: &[(Key, Value)]) -> Result<()> {
        for (key, value) in group {
            if let LeafInsertResult::InvalidKV(why) = self.tree.insert(key, value) {
                return Err(failed(NAME, why));
            }
        }
        Ok(())
    }

    fn fillers(&self) -> usize {
        FILLERS
    }

    fn scan(&self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut buffer = [0; 2 * WIDTH];
        let fields = ScanReturnField::KeyAndValue;
        let mut scan = (self.tree)
            .scan_with_count(from, limit as usize, fields)
            .map_err(|error| failed(NAME, format!("{error:?}")))?;
        while let Some((key_len, value_len)) = scan.next(&mut buffer) {
            let (key, rest) = buffer.split_at(key_len);
            visit(key, &rest[..value_len]);
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// The crate has no call for that. So records are read until those that reads promote have
    /// taken all of the buffer: by then, everything else in it was evicted, and written if it was
    /// dirty.
    fn drain(&self) -> Result<()> {
        self.tree.update_read_promotion_rate(100);
        let filled = self.fill_buffer();
        self.tree.update_read_promotion_rate(PROMOTION);
        filled
    }

    fn logged_bytes(&self) -> Option<u64> {
        (!self.has_log).then_some(0)
    }
}
