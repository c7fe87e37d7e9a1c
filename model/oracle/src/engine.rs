//! What the oracle needs to know of an engine: how to open it, what it promises, and what it refuses.

use std::path::PathBuf;
use std::sync::Arc;

use treering_engine::device::{BlockDevice, PmDevice};
use treering_engine::{Kv, Lba, Result};

use crate::point::Point;

/// Where a store lies.
#[derive(Clone)]
pub enum Disk {
    /// On a device of 4 KiB blocks, which may be one that crashes.
    Blocks(Arc<dyn BlockDevice>),
    /// In persistent memory, which may be one that crashes.
    Pm(Arc<dyn PmDevice>),
    /// In a folder of the file system, where nothing can be made to crash.
    Folder(PathBuf),
}

/// The kind of [`Disk`] that an engine asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskKind {
    /// A device of so many blocks.
    Blocks(u64),
    /// A persistent memory of so many bytes.
    Pm(u64),
    /// An empty folder.
    Folder,
}

/// When an engine promises that a write outlives a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// When the write has returned.
    OnReturn,
    /// When a later `sync` has returned.
    OnSync,
}

/// What may find no room.
#[derive(Clone, Copy, Debug)]
pub enum Write<'k> {
    /// A put.
    Put,
    /// A delete of this key.
    Delete(&'k [u8]),
    /// A step of background work, or a checkpoint.
    Background,
}

/// What an engine takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest key in bytes.
    pub max_key: usize,
    /// Longest key and value together, in bytes.
    pub max_record: usize,
    /// Whether the empty key is a key.
    pub empty_key: bool,
}

/// Values that an engine keeps out of line, in pieces. Lengths in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongValues {
    /// They are longer than this.
    pub above: usize,
    /// They are at most so long in programs.
    pub to: usize,
    /// Bytes of a piece, around multiples of which they take another one.
    pub piece: usize,
}

/// An engine under judgement. An adapter implements this and [`Kv`], nothing else; see `model/README.md`.
///
/// ```
/// use std::sync::Arc;
/// use treering_engine::{Options, Store, SystemClock};
/// use treering_oracle::{Disk, DiskKind, Engine, Limits, Promise};
///
/// struct Mine;
///
/// impl Engine for Mine {
///     fn name(&self) -> String {
///         "mine".into()
///     }
///     fn disk(&self) -> DiskKind {
///         DiskKind::Blocks(4096)
///     }
///     fn promise(&self) -> Promise {
///         Promise::OnSync
///     }
///     fn limits(&self) -> Limits {
///         Limits { max_key: 100, max_record: 1000, empty_key: true }
///     }
///     fn open(&self, disk: &Disk) -> treering_engine::Result<Arc<dyn treering_engine::Kv>> {
///         let Disk::Blocks(device) = disk else { unreachable!("asked for blocks") };
///         let options = Options { log_bytes: 1 << 20, checkpoint_log_bytes: 1 << 19, ..Options::default() };
///         Ok(Arc::new(Store::open(device.clone(), Arc::new(SystemClock::new()), &options)?))
///     }
/// }
/// ```
pub trait Engine: Send + Sync {
    /// What it is called in reports.
    fn name(&self) -> String;

    /// Where its stores lie.
    fn disk(&self) -> DiskKind;

    /// What it promises.
    fn promise(&self) -> Promise;

    /// What it takes; programs stay within.
    fn limits(&self) -> Limits;

    /// Values that it takes beside [`Engine::limits`], because it keeps them elsewhere. `None`: it
    /// takes none. Programs then write values of such lengths, too.
    fn long_values(&self) -> Option<LongValues> {
        None
    }

    /// The kinds of crash points that it has no request for, so that nobody waits for them: an engine in persistent memory may well do without
    /// non-temporal stores.
    fn avoids(&self) -> Vec<Point> {
        Vec::new()
    }

    /// Whether a key that is longer than any it takes can be asked for, and is absent.
    fn reads_any_key(&self) -> bool {
        false
    }

    /// Whether it ever merges leaves, so that a run in which it does not has missed something.
    fn merges_leaves(&self) -> bool {
        true
    }

    /// Steps of [`super::reach::steps`] that it does not have, so that nobody waits for them.
    fn never_does(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Opens the store that is on `disk`, recovering it if need be, or makes one. The store that was open before has been dropped.
    ///
    /// # Errors
    /// The engine's own.
    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>>;

    /// This engine with options that `seed` draws: a campaign gives every program another. `None`:
    /// there is nothing to choose. Its name must be one that names it again.
    fn vary(&self, _seed: u64) -> Option<Box<dyn Engine>> {
        None
    }

    /// The same with a disk for hundreds or thousands of leaves, with which programs begin
    /// ([`Engine::loads`]). `None`: it has no such.
    fn grown(&self, _seed: u64) -> Option<Box<dyn Engine>> {
        None
    }

    /// As [`Engine::open`], for the `opening`-th time (0: the store is new, as far as the oracle
    /// knows) with options as `opening` draws them, of those that may differ from one opening to
    /// the next.
    ///
    /// # Errors
    /// The engine's own; and if an option was taken that does not fit the store.
    fn open_again(&self, disk: &Disk, _opening: u64) -> Result<Arc<dyn Kv>> {
        self.open(disk)
    }

    /// Whether its disk is so small that programs fill it: then this may be refused as
    /// [`treering_engine::Error::Full`] or [`treering_engine::Error::PmFull`], and has changed
    /// nothing.
    fn may_refuse(&self, _write: &Write<'_>) -> bool {
        false
    }

    /// Of writes that have returned, and that nobody has synced, so many are not durable at the most:
    /// the store flushes by itself. `None`: any number.
    fn undurable_at_most(&self) -> Option<usize> {
        None
    }

    /// What a store that nobody is writing to holds, by name: room that is in use, which a store
    /// that is closed and opened again must not have more or less of. If the first of them differs,
    /// as openings may tidy up, nothing is said of the others.
    fn holds(&self, _store: &dyn Kv) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Closes a store as a user does who wants to hear of errors: if that returns `Ok`, all that was
    /// written is durable, whatever happens then. `None`: stores can only be let go of.
    fn close(&self, _store: Arc<dyn Kv>) -> Option<Result<()>> {
        None
    }

    /// Whether a store that is let go of, with the power on, has made durable all that it had
    /// returned from.
    fn keeps_all_when_dropped(&self) -> bool {
        false
    }

    /// Bytes of keys and values that a store on its disk always has room for: no put is refused that
    /// leaves no more than this live. `None`: nothing is promised.
    fn room(&self) -> Option<u64> {
        None
    }

    /// Whether a store that has refused writes for want of room takes deletes, of one key or another,
    /// until it is empty.
    fn can_be_emptied(&self) -> bool {
        true
    }

    /// Leaves that a store has at most from which all was deleted, when all background work is done,
    /// if it had so many `before`; as [`Engine::holds`] counts them. `None`: nothing is promised.
    fn leaves_of_nothing(&self, _before: u64) -> Option<u64> {
        None
    }

    /// Keys that a program of this engine writes before all else, so that it has hundreds of leaves;
    /// 0: a program begins with nothing.
    fn loads(&self) -> u16 {
        0
    }

    /// Opens what is on `disk` for reading only, which writes nothing, and works where a medium has
    /// no room for what recovery would write. `None`: the engine cannot.
    fn open_to_read(&self, _disk: &Disk) -> Option<Result<Arc<dyn Kv>>> {
        None
    }

    /// Blocks of a store that nobody has open, each of which may be damaged: what is read is right all the same, or an error tells. An engine that
    /// promises nothing of the kind names none.
    fn guarded(&self, _disk: &Disk) -> Vec<Lba> {
        Vec::new()
    }

    /// Checks the structure of a store that nobody has open: one sentence for each damage found. An engine that cannot says
    /// nothing.
    ///
    /// # Errors
    /// The engine's own.
    fn damage(&self, _disk: &Disk) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}
