//! Treering's own trees on a file. One thread pumps the I/O, as a real device needs.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use treering_engine::device::{
    Access, BlockDevice, BlockRead, BlockWrite, DeviceError, FileDevice, FileIo,
};
use treering_engine::{
    Durability as Acknowledge, IoClass, Kv, Lba, Lsn, Options, Store, SystemClock, required_blocks,
};

use super::peer::{Backing, Durability, Open, Peer, Spec, failed};
use crate::peers::data::{Key, Value};
use crate::peers::{Failure, Result};

const SETTINGS: &str = "pages of 4 KiB, copy-on-write, page table persisted by checkpoints; \
                        O_DIRECT; the cache is frames and ring together; log of 512 MiB, \
                        a checkpoint every 256 MiB, one pump thread";

pub(super) const BF: Spec = Spec {
    name: "bf",
    backing: Backing::Direct,
    settings: SETTINGS,
    relaxed: Some(
        "logged in the file, which is synced only when the phase ends \
         (like LMDB with NOSYNC and engines without a log)",
    ),
    grouped: "on the drive: a group is acknowledged after fdatasync of the log, \
              which concurrent groups share",
    groups: super::peer::singly_if_relaxed,
    open: |open| Ours::open(open, "bf", FileIo::Direct),
};

/// Uses the page cache, for comparison with engines that do.
pub(super) const BF_BUFFERED: Spec = Spec {
    name: "bf-buffered",
    backing: Backing::PageCache,
    settings: "as bf, without O_DIRECT",
    open: |open| Ours::open(open, "bf", FileIo::Buffered),
    ..BF
};

/// Acknowledges every write by itself, for comparison with engines that do.
pub(super) const BF_EACH: Spec = Spec {
    name: "bf-each",
    settings: "as bf",
    relaxed: None,
    grouped: "on the drive: each write is acknowledged after fdatasync of the log, \
              which concurrent writes share",
    groups: super::peer::singly,
    ..BF
};

pub(super) const BTREE: Spec = Spec {
    name: "btree",
    open: |open| Ours::open(open, "btree", FileIo::Direct),
    ..BF
};

/// A file that may never be synced. A crash of the machine may then leave a store that does not
/// open, as with the other engines in that table.
struct Unsynced {
    device: FileDevice,
    never: bool,
}

impl BlockDevice for Unsynced {
    fn capacity_blocks(&self) -> u64 {
        self.device.capacity_blocks()
    }

    fn access(&self) -> Access {
        self.device.access()
    }

    fn read(
        &self,
        lba: Lba,
        buf: &mut [u8],
        class: IoClass,
    ) -> std::result::Result<(), DeviceError> {
        self.device.read(lba, buf, class)
    }

    fn write(
        &self,
        lba: Lba,
        bytes: &[u8],
        class: IoClass,
    ) -> std::result::Result<(), DeviceError> {
        self.device.write(lba, bytes, class)
    }

    fn write_batch(&self, writes: &[BlockWrite<'_>]) -> std::result::Result<(), DeviceError> {
        self.device.write_batch(writes)
    }

    fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> std::result::Result<(), DeviceError> {
        self.device.read_batch(reads)
    }

    fn trim(&self, lba: Lba, blocks: u64) -> std::result::Result<(), DeviceError> {
        self.device.trim(lba, blocks)
    }

    fn reclaim(&self, keep: std::ops::Range<Lba>) {
        self.device.reclaim(keep);
    }

    fn flush(&self) -> std::result::Result<(), DeviceError> {
        if self.never {
            return Ok(());
        }
        self.device.flush()
    }
}

struct Ours {
    store: Arc<Store>,
    durability: Durability,
    stop: Arc<AtomicBool>,
    pump: Option<JoinHandle<treering_engine::Result<()>>>,
}

impl Ours {
    fn open(open: &Open, tree: &str, io: FileIo) -> Result<Box<dyn Peer>> {
        let options = Options {
            cache_bytes: open.cache_bytes,
            durability: Acknowledge::Deferred,
            log_bytes: 512 << 20,
            log_buffer_bytes: 1 << 20,
            write_batch_pages: usize::try_from(open.cache_bytes >> 18)
                .map_err(told)?
                .clamp(8, 512),
            checkpoint_log_bytes: 256 << 20,
            ..Options::of_tree(&format!("{tree}+cow")).map_err(told)?
        };
        // A leaf has room for about ninety such records and is more than a third full.
        let blocks = required_blocks(&options, open.records / 30 + 1024);
        let device = FileDevice::create_for(open.folder.join("store"), blocks, io);
        let device = device.map_err(told)?;
        if let Some(notice) = device.notice().filter(|_| io == FileIo::Direct) {
            return Err(told(notice));
        }
        let device = Arc::new(Unsynced {
            device,
            never: open.durability == Durability::Relaxed,
        });
        let clock = Arc::new(SystemClock::new());
        let store = Arc::new(Store::open(device, clock, &options).map_err(told)?);
        let stop = Arc::new(AtomicBool::new(false));
        let pump = std::thread::spawn({
            let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
            move || store.pump_until(&stop)
        });
        Ok(Box::new(Ours {
            store,
            durability: open.durability,
            stop,
            pump: Some(pump),
        }))
    }
}

fn told(error: impl std::fmt::Display) -> Failure {
    failed("treering", error)
}

impl Peer for Ours {
    fn get(&self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        self.store.get(key, value).map_err(told)
    }

    fn write(&self, group: &[(Key, Value)]) -> Result<()> {
        let mut last = None;
        for (key, value) in group {
            last = Some(self.store.put(key, value).map_err(told)?);
        }
        match last.filter(|_| self.durability == Durability::Grouped) {
            Some(lsn) => self.store.sync(lsn).map_err(told),
            None => Ok(()),
        }
    }

    fn fill(&self, group: &[(Key, Value)]) -> Result<()> {
        for (key, value) in group {
            self.store.put(key, value).map_err(told)?;
        }
        Ok(())
    }

    fn scan(&self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut left = limit;
        let scanned = self.store.scan(from, &mut |key, value| {
            visit(key, value);
            left -= 1;
            if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        scanned.map_err(told)
    }

    fn sync(&self) -> Result<()> {
        self.store.sync(Lsn(u64::MAX)).map_err(told)
    }

    fn drain(&self) -> Result<()> {
        self.store.checkpoint().map_err(told)?;
        self.sync()
    }

    fn logged_bytes(&self) -> Option<u64> {
        Some(self.store.stats().written.log)
    }

    fn counters(&self) -> String {
        format!("{:?}", self.store.stats())
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(pump) = self.pump.take() {
            let _ = pump.join();
        }
    }
}
