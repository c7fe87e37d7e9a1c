//! An adapter for the Bf-tree that its authors publish: mini-pages in a circular buffer over 4 KiB
//! leaf pages in a file.
//!
//! The adapter uses only what the crate documents as complete. Its log is "incomplete, internal use
//! only", so a store outlives its process only by snapshots. `sync` takes one, and so does dropping
//! a store; `open` recovers the last one. After recovery the engine writes to the file that it
//! recovered from, hence the copy:
//!
//! ```text
//! snapshot   the state at the last sync; the engine writes a new file and renames it
//! pages      the leaf pages of the open tree; created at every open
//! ```
//!
//! The engine refuses empty keys, empty values, and records under two bytes. The adapter puts one
//! byte in front of every value, so that empty values can be judged. The engine cannot scan
//! downwards. An iterator holds a page lock until it is dropped, so a scan reads in batches and
//! calls back between them.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ::bf_tree::{BfTree, Config, LeafInsertResult, LeafReadResult, ScanReturnField};
use treering_engine::{Error, Kv, Lsn, Result, Visitor};
use treering_oracle::{Disk, DiskKind, Limits, Promise};

use crate::adapter::Adapter;
use crate::common::{Writes, folder, foreign};

const NAME: &str = "bf-tree";

pub(crate) const ADAPTER: Adapter = Adapter {
    name: NAME,
    judged: "differential and concurrent runs, reopening from snapshots; no crash runs, because it opens files itself and its \
             log is unfinished; no empty keys, which it refuses",
    disk: DiskKind::Folder,
    promise: Promise::OnSync,
    limits: Limits {
        max_key: MAX_KEY,
        max_record: MAX_RECORD,
        empty_key: false,
    },
    batches: false,
    open,
    damage: None,
};

const MAX_KEY: usize = 128;
const MAX_RECORD: usize = 1600;

/// The byte in front of every value.
const MARK: u8 = b'=';

/// Small enough that mini-pages are evicted: sixteen leaf pages.
const BUFFER_BYTES: usize = 64 << 10;

/// The number of records in a batch of a scan.
const BATCH: usize = 64;

fn open(disk: &Disk) -> Result<Arc<dyn Kv>> {
    let folder = folder(NAME, disk)?;
    let (snapshot, pages) = (folder.join("snapshot"), folder.join("pages"));
    let tree = if snapshot.exists() {
        std::fs::copy(&snapshot, &pages).map_err(told)?;
        BfTree::new_from_cpr_snapshot(&pages, true, None, None, None)
    } else {
        if pages.exists() {
            std::fs::remove_file(&pages).map_err(told)?;
        }
        BfTree::with_config(config(&pages), None)
    };
    let tree = tree.map_err(|error| foreign(NAME, format!("{error:?}")))?;
    Ok(Arc::new(Store {
        tree,
        snapshot,
        one_snapshot: Mutex::new(()),
        writes: Writes::default(),
    }))
}

fn config(pages: &Path) -> Config {
    let mut config = Config::new(pages, BUFFER_BYTES);
    config
        .use_snapshot(true)
        .cb_min_record_size(2)
        .cb_max_record_size(MAX_RECORD + 1)
        // One more than a key has, since a scan continues from the last key with a zero appended.
        .cb_max_key_len(MAX_KEY + 1);
    config
}

fn told(error: std::io::Error) -> Error {
    foreign(NAME, error)
}

struct Store {
    tree: BfTree,
    snapshot: PathBuf,
    /// Held while a snapshot is taken. The engine skips a snapshot that is requested during another
    /// one, and the sync would then do nothing.
    one_snapshot: Mutex<()>,
    writes: Writes,
}

impl Store {
    /// Reads up to [`BATCH`] records from `from` on. The iterator's locks are released when it
    /// returns.
    fn batch(&self, from: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let fields = ScanReturnField::KeyAndValue;
        let mut records = Vec::new();
        let mut buffer = [0; MAX_KEY + 1 + MAX_RECORD + 1];
        let mut iter = self
            .tree
            .scan_with_count(from, BATCH, fields)
            .map_err(|error| foreign(NAME, format!("{error:?}")))?;
        while let Some((key_len, value_len)) = iter.next(&mut buffer) {
            let (key, rest) = buffer.split_at(key_len);
            records.push((key.to_vec(), unmark(&rest[..value_len])?.to_vec()));
        }
        Ok(records)
    }

    fn take_snapshot(&self) {
        let _one = self
            .one_snapshot
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.tree.cpr_snapshot(&self.snapshot);
    }
}

fn unmark(value: &[u8]) -> Result<&[u8]> {
    match value {
        [MARK, value @ ..] => Ok(value),
        _ => Err(foreign(
            NAME,
            format!("gave back {value:02x?}, which was never written"),
        )),
    }
}

impl Kv for Store {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let mut buffer = [0; MAX_RECORD + 1];
        match self.tree.read(key, &mut buffer) {
            LeafReadResult::Found(len) => {
                value.extend_from_slice(unmark(&buffer[..len as usize])?);
                Ok(true)
            }
            LeafReadResult::Deleted | LeafReadResult::NotFound => Ok(false),
            LeafReadResult::InvalidKey => Err(foreign(NAME, "the key is not valid")),
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        let mut marked = Vec::with_capacity(value.len() + 1);
        marked.push(MARK);
        marked.extend_from_slice(value);
        match self.tree.insert(key, &marked) {
            LeafInsertResult::Success => Ok(self.writes.next()),
            LeafInsertResult::InvalidKV(why) => Err(foreign(NAME, why)),
        }
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        self.tree.delete(key);
        Ok(self.writes.next())
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        // The empty key cannot be looked up. The smallest key that can exist is a single zero.
        let mut from = if from.is_empty() {
            vec![0]
        } else {
            from.to_vec()
        };
        loop {
            let records = self.batch(&from)?;
            for (key, value) in &records {
                if visit(key, value) == ControlFlow::Break(()) {
                    return Ok(());
                }
            }
            match records.last() {
                Some((last, _)) if records.len() == BATCH => {
                    from.clone_from(last);
                    from.push(0);
                }
                _ => return Ok(()),
            }
        }
    }

    fn sync(&self, _lsn: Lsn) -> Result<()> {
        self.take_snapshot();
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // After a panic of the engine its locks may never be released.
        if !std::thread::panicking() {
            self.take_snapshot();
        }
    }
}
