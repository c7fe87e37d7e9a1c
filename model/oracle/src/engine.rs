//! The [`Engine`] trait: how the oracle opens an engine, what the engine promises, and what it
//! refuses.

use std::path::PathBuf;
use std::sync::Arc;

use treering_engine::device::{BlockDevice, PmDevice};
use treering_engine::{Kv, Lba, Result};

use crate::finding::Finding;
use crate::point::Point;
use crate::program::Program;

/// Where a store is kept.
#[derive(Clone)]
pub enum Disk {
    /// A device of 4 KiB blocks, often one that loses power.
    Blocks(Arc<dyn BlockDevice>),
    /// Persistent memory, often one that loses power.
    Pm(Arc<dyn PmDevice>),
    /// A folder of the file system. The oracle cannot crash it.
    Folder(PathBuf),
}

/// The kind of [`Disk`] that an engine runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskKind {
    /// A device of this many blocks.
    Blocks(u64),
    /// Persistent memory of this many bytes.
    Pm(u64),
    /// An empty folder.
    Folder,
}

/// When an engine promises that a write is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// As soon as the write has returned.
    OnReturn,
    /// Once a later `sync` has returned.
    OnSync,
}

/// A kind of write that a full store may refuse; see [`Engine::may_refuse`].
#[derive(Clone, Copy, Debug)]
pub enum Write<'k> {
    /// A put.
    Put,
    /// A delete of this key.
    Delete(&'k [u8]),
    /// A batch.
    Batch,
    /// A step of background work, or a checkpoint.
    Background,
}

/// The keys and values that an engine accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest key in bytes.
    pub max_key: usize,
    /// Longest key and value together, in bytes.
    pub max_record: usize,
    /// Whether the empty key is accepted.
    pub empty_key: bool,
}

/// Long values that an engine stores out of line, in pieces. All lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongValues {
    /// Values longer than this are stored out of line.
    pub above: usize,
    /// The longest value that programs write.
    pub to: usize,
    /// Length of one piece. Programs write values around its multiples, where another piece is
    /// needed.
    pub piece: usize,
}

/// What [`Engine::transactions`] did.
#[derive(Clone, Debug, Default)]
pub struct Transactions {
    /// Requests.
    pub requests: u64,
    /// How often the committed write of one met another that had read or written the same key.
    pub met: u64,
    /// Further counts, by name.
    pub counts: Vec<(&'static str, u64)>,
    /// What is wrong.
    pub finding: Option<Finding>,
}

/// What a change counts in a batch, for a key of `key` bytes; see [`Engine::batch_bytes`].
pub(crate) fn size_in_batch(key: usize, value: Option<u32>, long: Option<LongValues>) -> u64 {
    let inline = |len: &u32| long.is_none_or(|long| *len as usize <= long.above);
    32 + key as u64 + u64::from(value.filter(inline).unwrap_or(0))
}

/// An engine under test. An adapter implements this trait and [`Kv`], nothing else; see
/// `model/README.md`.
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
///         let options =
///             Options { log_bytes: 1 << 20, checkpoint_log_bytes: 1 << 19, ..Options::default() };
///         Ok(Arc::new(Store::open(device.clone(), Arc::new(SystemClock::new()), &options)?))
///     }
/// }
/// ```
pub trait Engine: Send + Sync {
    /// The engine's name in reports and program files.
    fn name(&self) -> String;

    /// The kind and size of disk that its stores need.
    fn disk(&self) -> DiskKind;

    /// When a write is durable.
    fn promise(&self) -> Promise;

    /// The keys and values that it accepts. Programs stay within these limits.
    fn limits(&self) -> Limits;

    /// Values beyond [`Engine::limits`] that it stores out of line, which programs then write as
    /// well. `None` if it has no such values.
    fn long_values(&self) -> Option<LongValues> {
        None
    }

    /// The size that a batch ([`Kv::write`]) may always have: the bytes of its keys and values, and
    /// 32 more for each change. [Long values](Engine::long_values) do not count. A larger batch may
    /// be refused, with [`treering_engine::Error::BatchTooLarge`], and then changes nothing. `None`
    /// if the engine has no batches: programs then contain none.
    fn batch_bytes(&self) -> Option<u64> {
        None
    }

    /// The bytes, aligned to their size, that a drive has to write as a whole for the engine to keep
    /// its promise: 512 or 4096. Drives may tear larger writes.
    fn atomic_bytes(&self) -> u64 {
        512
    }

    /// The number of batches that a power cut had cut short and that opening this store completed.
    /// `None` if the engine does not count them.
    fn batches_completed(&self, _store: &dyn Kv) -> Option<u64> {
        None
    }

    /// Crash points that this engine never reaches, so that reports do not list them as missed. An
    /// engine in persistent memory may, for example, use no non-temporal stores.
    fn avoids(&self) -> Vec<Point> {
        Vec::new()
    }

    /// Whether a lookup of a key longer than [`Limits::max_key`] answers "absent". If not, programs
    /// never ask for one.
    fn reads_any_key(&self) -> bool {
        false
    }

    /// Whether it merges leaves. If so, a run without a merge is reported as incomplete.
    fn merges_leaves(&self) -> bool {
        true
    }

    /// Steps of [`crate::reach::steps`] that this engine does not have, so that reports do not list
    /// them as missed.
    fn never_does(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Opens the store on `disk`, recovering it if necessary, or creates one on an empty disk. Any
    /// store opened there before has been dropped.
    ///
    /// # Errors
    /// The engine's own.
    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>>;

    /// This engine with options chosen by `seed`; a campaign uses another seed for each program.
    /// `None` if there is nothing to choose. The name of the result must identify its options.
    fn vary(&self, _seed: u64) -> Option<Box<dyn Engine>> {
        None
    }

    /// This engine with a disk for hundreds or thousands of leaves, which its programs fill first
    /// ([`Engine::loads`]). `None` if there is no such variant.
    fn grown(&self, _seed: u64) -> Option<Box<dyn Engine>> {
        None
    }

    /// As [`Engine::open`], with options chosen by `opening` among those that may change from one
    /// opening to the next. The first opening of a store has number 0.
    ///
    /// # Errors
    /// The engine's own, or one that says that the engine accepted an option that does not fit the
    /// store.
    fn open_again(&self, disk: &Disk, _opening: u64) -> Result<Arc<dyn Kv>> {
        self.open(disk)
    }

    /// Whether a full store may refuse this write, with [`treering_engine::Error::Full`] or
    /// [`treering_engine::Error::PmFull`]. A refused write must change nothing. Return `true` for
    /// engines whose disk is so small that programs fill it.
    fn may_refuse(&self, _write: &Write<'_>) -> bool {
        false
    }

    /// The most writes that have returned and are not yet durable, for a store that flushes by
    /// itself. `None` if there is no bound.
    fn undurable_at_most(&self) -> Option<usize> {
        None
    }

    /// The space that an idle store uses, as named counters. Closing and reopening the store must
    /// not change them, or space has leaked. If the first counter changes, because opening cleans
    /// up, the others are not compared.
    fn holds(&self, _store: &dyn Kv) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Closes a store and reports errors. After `Ok` every write must be durable, whatever happens
    /// to the disk. `None` if stores can only be dropped.
    fn close(&self, _store: Arc<dyn Kv>) -> Option<Result<()>> {
        None
    }

    /// Whether dropping a store, while the power is on, makes every returned write durable.
    fn keeps_all_when_dropped(&self) -> bool {
        false
    }

    /// Bytes of live keys and values that always fit on its disk. A put may be refused as full only
    /// if it would exceed this. `None` if nothing is promised.
    fn room(&self) -> Option<u64> {
        None
    }

    /// Whether a full store accepts deletes, in some order, until it is empty.
    fn can_be_emptied(&self) -> bool {
        true
    }

    /// The most leaves that may remain once every key is deleted and all background work is done,
    /// in a store that had `before` leaves, as [`Engine::holds`] counts them. `None` if nothing is
    /// promised.
    fn leaves_of_nothing(&self, _before: u64) -> Option<u64> {
        None
    }

    /// The number of keys that a program writes first, so that the store has hundreds of leaves. 0
    /// means that programs begin with an empty store.
    fn loads(&self) -> u16 {
        0
    }

    /// Opens the store on `disk` read-only. This must write nothing, and must work even if the
    /// medium has no room for what recovery would write. `None` if the engine has no read-only
    /// mode.
    fn open_to_read(&self, _disk: &Disk) -> Option<Result<Arc<dyn Kv>>> {
        None
    }

    /// Whether its stores live in processes of their own, which can be killed; see
    /// [`Engine::kill`]. Power cuts of programs then do that.
    fn can_be_killed(&self) -> bool {
        false
    }

    /// Kills the process of a store, as `kill -9` does: at once, or in the middle of the call after
    /// this many more. What the process has handed to the system is not lost.
    fn kill(&self, _store: &dyn Kv, _after: Option<u64>) {}

    /// Whether [`Engine::kill`] has killed the store's process. Its calls then fail.
    fn is_killed(&self, _store: &dyn Kv) -> bool {
        false
    }

    /// This engine after it has run `program` without anybody looking at its answers, and which now
    /// gives them. An engine behind a pipe is faster that way. `None` if there is no such way.
    fn ahead(&self, _program: &Program) -> Option<Box<dyn Engine>> {
        None
    }

    /// Whether single calls that overlap are claimed to be linearizable. If not, they are not
    /// judged.
    fn is_linearizable(&self) -> bool {
        true
    }

    /// Runs and judges many transactions at a time, with about so many requests. `None` if it has
    /// no transactions.
    ///
    /// # Errors
    /// The engine's own.
    fn transactions(&self, _seed: u64, _requests: u64) -> Option<Result<Transactions>> {
        None
    }

    /// Blocks of a closed store that checksums protect: after damage to one of them, each read is
    /// right or fails with an error. Empty if the engine does not promise that.
    fn guarded(&self, _disk: &Disk) -> Vec<Lba> {
        Vec::new()
    }

    /// Checks the structure of a closed store and returns a sentence for each damage found. Empty
    /// if the engine has no such check.
    ///
    /// # Errors
    /// The engine's own.
    fn damage(&self, _disk: &Disk) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}
