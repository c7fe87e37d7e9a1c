//! The [`Engine`] implementation of the page trees.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use treering_engine::device::BlockDevice;
use treering_engine::{
    BLOCK_SIZE, Clock, Durability, Error, IoClass, Kv, Lba, Nanos, Options, Result, Store,
    SystemClock, node, verify,
};

use super::BTree;
use super::parts::GROUPED;
use crate::engine::{Disk, DiskKind, Engine, Limits, LongValues, Promise, Write};
use crate::engines::shared::owned;
use crate::system::in_a_file;

/// A clock that advances by one at each reading, so that programs are reproducible.
#[derive(Debug, Default)]
struct Looks(AtomicU64);

impl Clock for Looks {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

impl BTree {
    fn open_with(&self, disk: &Disk, options: &Options) -> Result<Arc<dyn Kv>> {
        let clock: Arc<dyn Clock> = match options.durability {
            Durability::Grouped(_) => Arc::new(Looks::default()),
            Durability::Deferred | Durability::PerCommit => Arc::new(SystemClock::new()),
        };
        let device = Arc::clone(blocks(disk));
        let device = match self.in_file {
            true => in_a_file(device),
            false => device,
        };
        let store = Store::open(device, clock, options)?;
        // The oracle drops a store as a killed process does: dropping it must not make unsynced
        // writes durable.
        if !self.closes {
            store.abandon_on_drop();
        }
        Ok(Arc::new(store))
    }
}

impl Engine for BTree {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn disk(&self) -> DiskKind {
        DiskKind::Blocks(self.blocks)
    }

    fn promise(&self) -> Promise {
        match self.options.durability {
            Durability::PerCommit => Promise::OnReturn,
            Durability::Deferred | Durability::Grouped(_) => Promise::OnSync,
        }
    }

    fn limits(&self) -> Limits {
        let limits = node::limits(self.options.page_size);
        Limits {
            max_key: limits.max_key,
            // A cramped store has no space for values stored out of line.
            max_record: match self.cramped {
                true => self.options.page_size / 4,
                false => limits.max_record,
            },
            empty_key: true,
        }
    }

    fn long_values(&self) -> Option<LongValues> {
        let quarter = self.options.page_size / 4;
        // Several pieces, of more than one block each.
        (!self.cramped).then_some(LongValues {
            above: quarter,
            to: quarter + 24_000,
            piece: 4_048,
        })
    }

    fn batch_bytes(&self) -> Option<u64> {
        // An eighth of the log, in which records and blocks have headers.
        Some(self.options.log_bytes / 8 / 16 * 15 - 64)
    }

    fn batches_completed(&self, store: &dyn Kv) -> Option<u64> {
        let store: &dyn Any = store;
        let store: &Store = store.downcast_ref()?;
        Some(store.recovery().batches_completed)
    }

    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        self.open_again(disk, 0)
    }

    fn vary(&self, seed: u64) -> Option<Box<dyn Engine>> {
        self.drawn(seed, false)
    }

    fn grown(&self, seed: u64) -> Option<Box<dyn Engine>> {
        self.drawn(seed, true)
    }

    fn open_again(&self, disk: &Disk, opening: u64) -> Result<Arc<dyn Kv>> {
        if opening > 0 {
            self.open_wrongly(blocks(disk), opening)?;
        }
        let options = self.options_again(opening);
        let other = match opening % 8 {
            _ if opening == 0 => None,
            // Without modification logs: existing ones are read, and disappear with the next write
            // of their page.
            0 if options.mod_log.is_some() => Some(Options {
                mod_log: None,
                ..options.clone()
            }),
            // A caller may open a store with default options, however small it was created.
            3 => Some(Options {
                tree: options.tree,
                layout: options.layout,
                store: options.store,
                mod_log: options.mod_log,
                page_size: options.page_size,
                durability: options.durability,
                ..Options::default()
            }),
            _ => None,
        };
        if let Some(other) = other {
            // If there is no store yet, these options would create a different one.
            let there = Options {
                create: false,
                ..other
            };
            match self.open_with(disk, &there) {
                Err(Error::NotAStore { .. }) => {}
                opened => return opened,
            }
        }
        self.open_with(disk, &options)
    }

    fn may_refuse(&self, write: &Write<'_>) -> bool {
        self.cramped && !matches!(write, Write::Delete(_))
    }

    fn reads_any_key(&self) -> bool {
        true
    }

    fn close(&self, store: Arc<dyn Kv>) -> Option<Result<()>> {
        owned::<Store>(store).map(Store::close)
    }

    fn keeps_all_when_dropped(&self) -> bool {
        self.closes
    }

    fn holds(&self, store: &dyn Kv) -> Vec<(&'static str, u64)> {
        let stats = store.stats();
        vec![
            ("leaves", stats.leaf_pages),
            ("places taken", stats.places_taken),
        ]
    }

    fn undurable_at_most(&self) -> Option<usize> {
        // Each write reads the clock at least once, and the clock advances by one with each
        // reading. So these are the writes of one interval, the one that finds it over, and one
        // more.
        (self.options.durability == GROUPED).then_some(8)
    }

    fn room(&self) -> Option<u64> {
        // The smallest store has about thirty leaves. In a full store no three neighbours fit in
        // two leaves, so two thirds of their bytes are in use. Records of a quarter of a page,
        // headers, and leaves that wait for a checkpoint reduce that.
        self.cramped.then_some(15 * self.options.page_size as u64)
    }

    fn leaves_of_nothing(&self, _before: u64) -> Option<u64> {
        Some(1)
    }

    fn loads(&self) -> u16 {
        // Three or four records for each leaf.
        match (self.large, self.options.page_size) {
            (false, _) => 0,
            (true, _) if self.huge => 17_000,
            (true, 4_096) => 2_200,
            (true, _) => 1_100,
        }
    }

    fn open_to_read(&self, disk: &Disk) -> Option<Result<Arc<dyn Kv>>> {
        let options = Options {
            read_only: true,
            ..self.options.clone()
        };
        Some(self.open_with(disk, &options))
    }

    fn guarded(&self, disk: &Disk) -> Vec<Lba> {
        guarded(&**blocks(disk), self.options.page_size)
    }

    fn damage(&self, disk: &Disk) -> Result<Vec<String>> {
        Ok(verify(Arc::clone(blocks(disk)))?.damage)
    }
}

fn blocks(disk: &Disk) -> &Arc<dyn BlockDevice> {
    let Disk::Blocks(device) = disk else {
        unreachable!("the oracle gives the kind of disk that was asked for");
    };
    device
}

/// The blocks of page images, of modification logs, of the journal, and of long values. If one of
/// them is missing, the page's version reveals it (`engine/src/pages/versioned.rs`), or the name of
/// the value does.
fn guarded(device: &dyn BlockDevice, page_size: usize) -> Vec<Lba> {
    let mut block = vec![0; BLOCK_SIZE];
    let mut found = Vec::new();
    for lba in (0..device.capacity_blocks()).map(Lba) {
        if device.read(lba, &mut block, IoClass::Page).is_err() {
            continue;
        }
        if &block[24..26] == b"TR" {
            let blocks = (page_size / BLOCK_SIZE) as u64;
            found.extend((0..blocks).map(|i| Lba(lba.0 + i)));
        } else if [*b"MLOG", *b"OVFL"].contains(&block[4..8].try_into().expect("four bytes")) {
            found.push(lba);
        }
    }
    found
}
