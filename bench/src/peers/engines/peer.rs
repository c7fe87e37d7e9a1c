//! What an engine under comparison is: its interface, its settings and its promises.

use std::fmt::Display;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::peers::data::{Key, Value};
use crate::peers::workload::Workload;
use crate::peers::{Failure, Result};

/// When a write is acknowledged. Each has a table of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// When others can see it; a crash may lose it. There is one sync at the end of a phase, which
    /// counts as time of the phase.
    Relaxed,
    /// When it would survive a crash. Writes are acknowledged in groups.
    Grouped,
}

impl Durability {
    /// Both, in the order of the tables.
    pub const ALL: [Durability; 2] = [Durability::Relaxed, Durability::Grouped];

    /// Returns the name on the command line and in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Durability::Relaxed => "relaxed",
            Durability::Grouped => "grouped",
        }
    }
}

/// Where an engine caches data. It decides whether the cache size bounds the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Direct I/O: only the engine's own cache.
    Direct,
    /// The operating system's page cache too, which no option bounds.
    PageCache,
    /// A memory map of its file, which no option bounds.
    Map,
}

impl Backing {
    /// Returns the name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Backing::Direct => "direct",
            Backing::PageCache => "page cache",
            Backing::Map => "map",
        }
    }
}

/// The parameters for opening a store.
#[derive(Clone, Debug)]
pub struct Open {
    /// An empty folder for the store.
    pub folder: PathBuf,
    /// Number of records that will be loaded.
    pub records: u64,
    /// Size of the engine's cache in bytes.
    pub cache_bytes: u64,
    /// When writes are acknowledged.
    pub durability: Durability,
}

/// An engine under comparison, open on an empty folder.
pub trait Peer: Send + Sync {
    /// Clears `value` and copies the value of `key` to it. Returns `false` if the key is absent.
    ///
    /// # Errors
    /// Errors of the engine.
    fn get(&self, key: &Key, value: &mut Vec<u8>) -> Result<bool>;

    /// Writes the records in order. They are acknowledged on return. No key occurs twice.
    ///
    /// # Errors
    /// Errors of the engine.
    fn write(&self, group: &[(Key, Value)]) -> Result<()>;

    /// Like `write`, but off the clock and relaxed if the engine can.
    ///
    /// # Errors
    /// Errors of the engine.
    fn fill(&self, group: &[(Key, Value)]) -> Result<()> {
        self.write(group)
    }

    /// Returns the number of threads to fill with.
    fn fillers(&self) -> usize {
        2
    }

    /// Visits up to `limit` records, starting at `from`.
    ///
    /// # Errors
    /// Errors of the engine.
    fn scan(&self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()>;

    /// Makes all writes survive a crash, as far as the engine can.
    ///
    /// # Errors
    /// Errors of the engine.
    fn sync(&self) -> Result<()>;

    /// Writes what it holds in memory to where it stays: dirty pages and buffers, not the log
    /// alone. An engine whose sync does that does nothing else.
    ///
    /// # Errors
    /// Errors of the engine.
    fn drain(&self) -> Result<()> {
        self.sync()
    }

    /// Returns the bytes of log written since it was opened, if the engine counts them apart.
    fn logged_bytes(&self) -> Option<u64> {
        None
    }

    /// Returns the engine's own counters as text, for diagnosis.
    fn counters(&self) -> String {
        String::new()
    }
}

/// How many writes a client passes to the engine in one call.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    /// While loading.
    pub load: usize,
    /// Afterwards.
    pub write: usize,
}

impl Groups {
    const ONE: Groups = Groups { load: 1, write: 1 };

    /// Returns the size of a group for a workload.
    #[must_use]
    pub fn of(self, workload: Workload) -> usize {
        match workload {
            Workload::Load => self.load,
            _ => self.write,
        }
    }
}

/// An engine and its settings.
pub struct Spec {
    /// The name on the command line and in tables.
    pub name: &'static str,
    /// Where it caches data.
    pub backing: Backing,
    /// The settings, the best that we know of.
    pub settings: &'static str,
    /// What an acknowledged write means in the relaxed table; `None` if it is not in that table.
    pub relaxed: Option<&'static str>,
    /// What an acknowledged write means in the grouped table.
    pub grouped: &'static str,
    /// The sizes of groups, given the durability and the run's group size.
    pub groups: fn(Durability, usize) -> Groups,
    /// Opens the engine on an empty folder.
    pub open: fn(&Open) -> Result<Box<dyn Peer>>,
}

impl Spec {
    /// Returns what an acknowledged write means in a table; `None` if it is not in that table.
    #[must_use]
    pub fn promise(&self, durability: Durability) -> Option<&'static str> {
        match durability {
            Durability::Relaxed => self.relaxed,
            Durability::Grouped => Some(self.grouped),
        }
    }
}

/// Groups of one write in the relaxed table, and of `n` in the other.
pub(super) fn singly_if_relaxed(durability: Durability, n: usize) -> Groups {
    match durability {
        Durability::Relaxed => Groups::ONE,
        Durability::Grouped => Groups { load: n, write: n },
    }
}

/// Groups of one write.
pub(super) fn singly(_: Durability, _: usize) -> Groups {
    Groups::ONE
}

/// Groups of 1000 writes while loading, then of `n`. Each is a transaction, which is expensive.
pub(super) fn transactions(_: Durability, n: usize) -> Groups {
    Groups {
        load: 1000,
        write: n,
    }
}

/// Returns an engine's error with its own message.
pub(super) fn failed(engine: &'static str, why: impl Display) -> Failure {
    Failure::Engine {
        engine,
        why: why.to_string(),
    }
}
