//! The engines: what each was given, and what it promises.

use std::fmt::Display;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::data::{Key, Value};
use super::workload::Workload;
use super::{Failure, Result};

mod bf_tree;
mod fjall;
mod lmdb;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sled;
mod treering;

/// When a write is acknowledged; one table each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// When others see it: a crash may lose it. One sync at the end of a phase, which its time includes.
    Relaxed,
    /// When it survives a crash, a group of writes at a time.
    Grouped,
}

impl Durability {
    /// Both tables.
    pub const ALL: [Durability; 2] = [Durability::Relaxed, Durability::Grouped];

    /// Its name on the command line and in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Durability::Relaxed => "relaxed",
            Durability::Grouped => "grouped",
        }
    }
}

/// Where an engine keeps what does not fit its cache: decides whether the budget bounds its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Direct I/O: nothing but its own cache.
    Direct,
    /// The operating system's page cache, which no option bounds.
    PageCache,
    /// A memory map of its file, which no option bounds.
    Map,
}

impl Backing {
    /// For tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Backing::Direct => "direct",
            Backing::PageCache => "page cache",
            Backing::Map => "map",
        }
    }
}

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Open {
    /// An empty folder of its own.
    pub folder: PathBuf,
    /// Records that are to come.
    pub records: u64,
    /// Bytes of its cache.
    pub cache_bytes: u64,
    /// Which table.
    pub durability: Durability,
}

/// An engine under comparison, open on an empty folder.
pub trait Peer: Send + Sync {
    /// Copies the value of `key` to `value`, which is cleared first; `false` if it is absent.
    ///
    /// # Errors
    /// The engine's own.
    fn get(&self, key: &Key, value: &mut Vec<u8>) -> Result<bool>;

    /// Writes in order; on return they are acknowledged as the table wants it. No key comes twice.
    ///
    /// # Errors
    /// The engine's own.
    fn write(&self, group: &[(Key, Value)]) -> Result<()>;

    /// As `write`, when nobody looks at the clock: relaxed where the engine can.
    ///
    /// # Errors
    /// The engine's own.
    fn fill(&self, group: &[(Key, Value)]) -> Result<()> {
        self.write(group)
    }

    /// Threads to fill with.
    fn fillers(&self) -> usize {
        2
    }

    /// Visits up to `limit` records from `from` on.
    ///
    /// # Errors
    /// The engine's own.
    fn scan(&self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()>;

    /// Makes what was written survive a crash, as far as the engine can.
    ///
    /// # Errors
    /// The engine's own.
    fn sync(&self) -> Result<()>;

    /// What only the engine can count, in its own words; for whoever wants to know why.
    fn counters(&self) -> String {
        String::new()
    }
}

/// Writes that a client hands over at a time.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    /// While loading.
    pub load: usize,
    /// Afterwards.
    pub write: usize,
}

impl Groups {
    const ONE: Groups = Groups { load: 1, write: 1 };

    /// For a workload.
    #[must_use]
    pub fn of(self, workload: Workload) -> usize {
        match workload {
            Workload::Load => self.load,
            _ => self.write,
        }
    }
}

/// An engine and the settings it gets.
pub struct Spec {
    /// Its name on the command line and in tables.
    pub name: &'static str,
    /// Where its data is.
    pub backing: Backing,
    /// The settings, best to our knowledge.
    pub settings: &'static str,
    /// What an acknowledged write of the relaxed table is, if it is in that table.
    pub relaxed: Option<&'static str>,
    /// What an acknowledged write of the grouped table is.
    pub grouped: &'static str,
    /// Writes that it takes at a time, where the run's group is `n`.
    pub groups: fn(Durability, usize) -> Groups,
    /// Opens it.
    pub open: fn(&Open) -> Result<Box<dyn Peer>>,
}

/// All engines of this build; ours first.
pub const ENGINES: &[Spec] = &[
    treering::BF,
    treering::BF_BUFFERED,
    treering::BF_EACH,
    treering::BTREE,
    bf_tree::STD,
    bf_tree::URING,
    redb::SPEC,
    fjall::SPEC,
    sled::SPEC,
    lmdb::SPEC,
    #[cfg(feature = "rocksdb")]
    rocksdb::SPEC,
    #[cfg(feature = "rocksdb")]
    rocksdb::DIRECT,
];

impl Spec {
    /// Whether it is a Bf-Tree of ours, which the others are compared with.
    #[must_use]
    pub fn is_compared(&self) -> bool {
        let ours = [treering::BF, treering::BF_BUFFERED, treering::BF_EACH];
        ours.iter().any(|spec| spec.name == self.name)
    }

    /// What it promises in a table, if it is in it.
    #[must_use]
    pub fn promise(&self, durability: Durability) -> Option<&'static str> {
        match durability {
            Durability::Relaxed => self.relaxed,
            Durability::Grouped => Some(self.grouped),
        }
    }
}

/// Takes writes one by one in the relaxed table, `n` at a time in the other.
fn singly_if_relaxed(durability: Durability, n: usize) -> Groups {
    match durability {
        Durability::Relaxed => Groups::ONE,
        Durability::Grouped => Groups { load: n, write: n },
    }
}

/// Takes writes one by one.
fn singly(_: Durability, _: usize) -> Groups {
    Groups::ONE
}

/// Takes a thousand at a time while loading, and then `n`: each is a transaction, which costs much by itself.
fn transactions(_: Durability, n: usize) -> Groups {
    Groups {
        load: 1000,
        write: n,
    }
}

/// An engine's error in its own words.
fn failed(engine: &'static str, why: impl Display) -> Failure {
    Failure::Engine {
        engine,
        why: why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_ours_come_first() {
        let names: Vec<_> = ENGINES.iter().map(|spec| spec.name).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name} comes twice");
        }
        assert!(ENGINES[0].is_compared() && ENGINES.is_sorted_by_key(|spec| !spec.is_compared()));
    }
}
