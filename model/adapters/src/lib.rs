//! Other people's engines, for the oracle to judge.
//!
//! Each adapter is one file behind a cargo feature of its name. It opens the engine in the way that
//! its documentation recommends, and maps [`treering_engine::Kv`] to the engine's own calls.
//! [`Limits`](treering_oracle::Limits) say what the engine refuses, and [`judged`] says what cannot
//! be judged. An adapter adds no cache and no repair of its own, so that every answer is the
//! engine's.
//!
//! | feature | engine | disk | a write is durable | an LSN is |
//! |---|---|---|---|---|
//! | `redb` | redb | blocks | after `sync` | the number of writes so far |
//! | `fjall` | fjall | folder | after `sync` | the same |
//! | `sled` | sled | folder | after `sync` | the same |
//! | `heed` | LMDB | folder | after `sync` | the same |
//! | `bf-tree` | Microsoft's Bf-Tree | folder | after `sync` | the same |
//!
//! Each engine syncs everything or nothing, so an LSN need only order a write before a later
//! `sync`. Dropping a store closes it in the way that the engine intends, and keeps its content.

mod adapter;
#[cfg(feature = "bf-tree")]
mod bf_tree;
#[cfg(feature = "any")]
// Each engine uses only a part of it.
#[cfg_attr(not(feature = "all"), allow(dead_code))]
mod common;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "heed")]
mod heed;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "sled")]
mod sled;

use treering_oracle::Engine;

use adapter::Adapter;

const ADAPTERS: &[Adapter] = &[
    #[cfg(feature = "bf-tree")]
    bf_tree::ADAPTER,
    #[cfg(feature = "fjall")]
    fjall::ADAPTER,
    #[cfg(feature = "heed")]
    heed::ADAPTER,
    #[cfg(feature = "redb")]
    redb::ADAPTER,
    #[cfg(feature = "sled")]
    sled::ADAPTER,
];

/// The engines of this build, in alphabetical order.
pub const NAMES: &[&str] = &names();

const fn names() -> [&'static str; ADAPTERS.len()] {
    let mut names = [""; ADAPTERS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = ADAPTERS[i].name;
        i += 1;
    }
    names
}

fn find(name: &str) -> Option<&'static Adapter> {
    ADAPTERS.iter().find(|adapter| adapter.name == name)
}

/// The engine of that name, if it is in this build.
#[must_use]
pub fn engine(name: &str) -> Option<Box<dyn Engine>> {
    find(name).map(|adapter| Box::new(adapter) as Box<dyn Engine>)
}

/// Engines of this build that keep their own files in a folder, to be served over a pipe
/// ([`treering_oracle::exec::serve`]) and cut off by power cuts. redb has its own file here, and
/// `heed:sync` makes each commit durable, as LMDB does by default.
#[must_use]
pub fn in_folders() -> Vec<Box<dyn Engine>> {
    const IN_FILES: &[Adapter] = &[
        #[cfg(feature = "heed")]
        heed::DURABLE,
        #[cfg(feature = "redb")]
        redb::IN_FILE,
    ];
    let folder = |adapter: &&Adapter| adapter.disk == treering_oracle::DiskKind::Folder;
    let all = ADAPTERS.iter().filter(folder).chain(IN_FILES);
    all.map(|adapter| Box::new(adapter) as Box<dyn Engine>)
        .collect()
}

/// What can be judged of that engine and what cannot, in one line.
#[must_use]
pub fn judged(name: &str) -> &'static str {
    find(name).map_or("nothing: it is not in this build", |adapter| adapter.judged)
}
