//! A store file that is created completely or not at all: the store is filled in a temporary folder
//! beside its destination, closed, and then renamed.
//!
//! A store has a fixed size, and the number of records is not known in advance. When the store is
//! full, its records are copied to a store of twice the size, which is then filled further.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use treering_engine::device::FileDevice;
use treering_engine::{
    Durability, Error, Kv, Options, PageStoreKind, Store, SystemClock, TreeSpec, required_blocks,
};

use crate::args::NewStoreArgs;
use crate::failure::{self, Failure};
use crate::interrupt::Ours;
use crate::output;

/// Minimum number of pages of a store.
const LEAST_PAGES: u64 = 1_000;

/// A store that is being filled.
pub(crate) struct NewStore {
    target: PathBuf,
    name: String,
    /// The temporary folder, which is removed with its contents.
    beside: TempDir,
    /// Declared after `beside`, so that the folder is removed before it is unregistered.
    _ours: Ours,
    options: Options,
    pages: u64,
    store: Store,
    rows: u64,
}

/// The options of a new store: those of `tree`, modified by the flags.
pub(crate) fn options(tree: &TreeSpec, args: &NewStoreArgs) -> Result<Options, Failure> {
    changed(tree.options().unwrap_or_default(), args)
}

/// `base`, modified by the flags.
pub(crate) fn changed(base: Options, args: &NewStoreArgs) -> Result<Options, Failure> {
    let store = args.store_kind.as_deref().and_then(PageStoreKind::named);
    let store = store.unwrap_or(base.store);
    let page = args.page.unwrap_or(base.page_size as u64);
    let too_large = |_| Failure::usage("--page: larger than this machine can address");
    Ok(Options {
        store,
        page_size: usize::try_from(page).map_err(too_large)?,
        // No durability is needed until the store is closed: it has no name before.
        durability: Durability::Deferred,
        create: true,
        ..base
    })
}

impl NewStore {
    /// Creates an empty store beside `target`, sized for about `bytes` of keys and values.
    pub(crate) fn begin(
        flag: &str,
        target: &Path,
        options: Options,
        bytes: u64,
    ) -> Result<NewStore, Failure> {
        output::check_target(flag, target)?;
        let name = target.display().to_string();
        if target.symlink_metadata().is_ok() {
            let why = format!("{name}: the file exists already; expected the name of a new file");
            return Err(Failure::usage(why));
        }
        let beside = tempfile::Builder::new()
            .prefix(".treering-")
            .tempdir_in(output::folder(target))
            .map_err(|e| Failure::file(&name, &e))?;
        let ours = Ours::new(beside.path());
        // Leaves that are filled in key order end up half full.
        let pages = (bytes / options.page_size as u64 * 5 / 2).max(LEAST_PAGES);
        let store = make(&beside, &options, pages).map_err(|e| failure::engine(&name, e))?;
        Ok(NewStore {
            target: target.to_owned(),
            name,
            beside,
            _ours: ours,
            options,
            pages,
            store,
            rows: 0,
        })
    }

    /// Number of records put so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether the store has the key.
    pub(crate) fn has(&self, key: &[u8]) -> Result<bool, Failure> {
        let mut value = Vec::new();
        (self.store.get(key, &mut value)).map_err(|e| failure::engine(&self.name, e))
    }

    /// Adds a record; fails with the engine's error if the record does not fit into a page.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        loop {
            match put(&self.store, key, value) {
                Err(Error::Full { .. }) => self.grow()?,
                done => {
                    self.rows += 1;
                    return done;
                }
            }
        }
    }

    /// Copies the records to a store of twice the size.
    fn grow(&mut self) -> Result<(), Error> {
        self.pages *= 2;
        let larger = make(&self.beside, &self.options, self.pages)?;
        let mut failed = None;
        self.store
            .scan(b"", &mut |key, value| match put(&larger, key, value) {
                Ok(()) => ControlFlow::Continue(()),
                Err(e) => {
                    failed = Some(e);
                    ControlFlow::Break(())
                }
            })?;
        if let Some(e) = failed {
            return Err(e);
        }
        let smaller = std::mem::replace(&mut self.store, larger);
        smaller.abandon();
        Ok(())
    }

    /// Closes the store and renames it to its destination.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let name = self.name;
        self.store.close().map_err(|e| failure::engine(&name, e))?;
        let made = place(&self.beside, self.pages);
        // A link, unlike a rename, fails if a file was created there meanwhile; some file systems
        // have no links.
        std::fs::hard_link(&made, &self.target)
            .or_else(|e| match e.kind() {
                std::io::ErrorKind::AlreadyExists => Err(e),
                _ => std::fs::rename(&made, &self.target),
            })
            .and_then(|()| std::fs::File::open(output::folder(&self.target))?.sync_all())
            .map_err(|e| Failure::file(&name, &e))
    }
}

fn place(beside: &TempDir, pages: u64) -> PathBuf {
    beside.path().join(pages.to_string())
}

fn make(beside: &TempDir, options: &Options, pages: u64) -> Result<Store, Error> {
    let blocks = required_blocks(options, pages);
    let device = FileDevice::create(place(beside, pages), blocks)?;
    Store::open(Arc::new(device), Arc::new(SystemClock::new()), options)
}

fn put(store: &Store, key: &[u8], value: &[u8]) -> Result<(), Error> {
    store.put(key, value)?;
    while store.pump_due()? {}
    Ok(())
}
