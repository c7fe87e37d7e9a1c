//! The description of an adapter.

use std::sync::Arc;

use treering_engine::{Kv, Result};
use treering_oracle::{Disk, DiskKind, Engine, Limits, Promise};

/// Describes the damage to a closed store.
type Damage = fn(&Disk) -> Result<Vec<String>>;

/// The adapter of one engine in this build.
pub(crate) struct Adapter {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What can be judged of the engine and what cannot, in one line.
    pub(crate) judged: &'static str,
    /// The disk that the engine runs on.
    pub(crate) disk: DiskKind,
    /// When a write is durable.
    pub(crate) promise: Promise,
    /// The keys and values that it accepts.
    pub(crate) limits: Limits,
    /// Whether it writes batches, of any size.
    pub(crate) batches: bool,
    /// Opens a store, or makes one.
    pub(crate) open: fn(&Disk) -> Result<Arc<dyn Kv>>,
    /// The engine's own check, if it has one.
    pub(crate) damage: Option<Damage>,
}

impl Engine for &'static Adapter {
    fn name(&self) -> String {
        self.name.into()
    }

    fn disk(&self) -> DiskKind {
        self.disk
    }

    fn promise(&self) -> Promise {
        self.promise
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn batch_bytes(&self) -> Option<u64> {
        self.batches.then_some(u64::MAX)
    }

    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        (self.open)(disk)
    }

    fn damage(&self, disk: &Disk) -> Result<Vec<String>> {
        self.damage.map_or(Ok(Vec::new()), |damage| damage(disk))
    }
}
