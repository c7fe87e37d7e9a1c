//! Bf-Tree as its authors publish it.
//!
//! Its log waits: a write holds its page until the log's thread has written the log's buffer, every millisecond. The buffer is written
//! whole each time, so it is as small as the crate's own reader has it, and never synced. Without the log nothing but a snapshot of everything
//! could be called a sync, and none is taken: the comparison errs in its favour.

use std::sync::Arc;

use ::bf_tree::{
    BfTree, Config, LeafInsertResult, LeafReadResult, ScanReturnField, StorageBackend, WalConfig,
};

use super::{Backing, Durability, Open, Peer, Result, Spec, failed};
use crate::peers::data::{Key, Value, WIDTH};

const NAME: &str = "bf-tree";

/// As [`WalReader`](::bf_tree::WalReader) is used for recovery.
const LOG_BUFFER: usize = 4096;

/// Writes that wait for the log together while a store is filled. Whoever finds the buffer full calls himself until the log's thread has
/// written it, and overflows his stack; a buffer is reused from the first write on that finds it half full, and the other half has room for these.
const FILLERS: usize = LOG_BUFFER / 2 / LOG_RECORD * 3 / 4;

/// Bytes of a record in the log.
const LOG_RECORD: usize = 29 + 2 * WIDTH;

pub(super) const STD: Spec = Spec {
    name: "bf-tree std",
    backing: Backing::PageCache,
    settings: "defaults: 4 KiB leaves, promotion 30 %, copy-on-access 10 %; backend Std (pread, pwrite)",
    relaxed: Some("in the buffer, not logged; its sync is the file system's, for it has none"),
    grouped: "with the operating system: a write waits for the log's buffer, written every 1 ms and never synced",
    groups: super::singly,
    open: |open| Store::open(open, StorageBackend::Std),
};

pub(super) const URING: Spec = Spec {
    name: "bf-tree io_uring",
    backing: Backing::Direct,
    settings: "as bf-tree std; backend IoUringBlocking (O_DIRECT), which its documentation recommends",
    grouped: "with the drive: as bf-tree std, written with O_DIRECT and never flushed",
    open: |open| Store::open(open, StorageBackend::IoUringBlocking),
    ..STD
};

struct Store(BfTree);

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
        Ok(Box::new(Store(tree)))
    }
}

impl Peer for Store {
    fn get(&self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let mut buffer = [0; 64];
        match self.0.read(key, &mut buffer) {
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
            if let LeafInsertResult::InvalidKV(why) = self.0.insert(key, value) {
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
        let mut scan = (self.0)
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
}
