//! sled: a lock-free B-link tree over a log of pages.

use ::sled::{Config, Db, Mode};

use super::peer::{Backing, Durability, Open, Peer, Spec, failed};
use crate::peers::data::{Key, Value};
use crate::peers::{Failure, Result};

const NAME: &str = "sled";

pub(super) const SPEC: Spec = Spec {
    name: NAME,
    backing: Backing::PageCache,
    settings: "0.34, Mode::HighThroughput, cache of the given size on top of the page cache, \
               flush_every_ms off",
    relaxed: Some("in the log's buffer"),
    grouped: "on the drive: a group ends with flush(), which concurrent groups share",
    groups: super::peer::singly_if_relaxed,
    open: |open| Ok(Box::new(Store::open(open)?)),
};

struct Store {
    db: Db,
    durability: Durability,
}

impl Store {
    fn open(open: &Open) -> Result<Store> {
        let db = Config::new()
            .path(open.folder.join("sled"))
            .cache_capacity(open.cache_bytes)
            .mode(Mode::HighThroughput)
            .flush_every_ms(None)
            .open()
            .map_err(told)?;
        Ok(Store {
            db,
            durability: open.durability,
        })
    }
}

fn told(error: ::sled::Error) -> Failure {
    failed(NAME, error)
}

impl Peer for Store {
    fn get(&self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.db.get(key).map_err(told)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn write(&self, group: &[(Key, Value)]) -> Result<()> {
        self.fill(group)?;
        match self.durability {
            Durability::Relaxed => Ok(()),
            Durability::Grouped => self.sync(),
        }
    }

    fn fill(&self, group: &[(Key, Value)]) -> Result<()> {
        for (key, value) in group {
            self.db.insert(key, value).map_err(told)?;
        }
        Ok(())
    }

    fn scan(&self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for record in self.db.range(&from[..]..).take(limit as usize) {
            let (key, value) = record.map_err(told)?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.db.flush().map_err(told)?;
        Ok(())
    }
}
