//! A device in a file, or what a store looks like to an operating system.
//!
//! `O_DIRECT` keeps the page cache out of the way (and out of the figures); where the file system
//! refuses it, or the caller wants it so ([`FileIo::Buffered`]), I/O is buffered and
//! [`FileDevice::notice`] says so. Batches go through io_uring where the kernel has it. A flush is
//! `fdatasync`, and a lock keeps a second process out. Trimmed blocks become holes in batches
//! ([`punch`]), so that a file takes what its store holds and not what it has ever held. A new file
//! appears under its name when it has its length ([`create`]).

mod create;
mod grow;
mod kernel;
mod options;
mod punch;

pub use kernel::Kernel;
pub use options::{FileAccess, FileDiscards, FileIo, FileOptions, FileSpace};

use std::fs::{File, OpenOptions, TryLockError};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{
    Access, AlignedBuf, BlockDevice, BlockRead, BlockWrite, DeviceError, check_range, check_request,
};
use crate::mutation;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::types::{BLOCK_SIZE, IoClass, Lba};
use grow::Extent;
use kernel::Os;
use punch::Discards;

const B: u64 = BLOCK_SIZE as u64;

/// A regular file as a block device.
pub struct FileDevice {
    kernel: Box<dyn Kernel>,
    path: PathBuf,
    extent: Extent,
    asked: FileIo,
    direct: bool,
    /// Whether trimmed blocks are to become holes, and the file system can make some.
    punches: AtomicBool,
    discards: Discards,
}

impl FileDevice {
    /// Opens an existing file; its length says how many blocks it has.
    ///
    /// # Errors
    /// [`DeviceError::Open`] if it is missing, no regular file, not a whole number of blocks, not permitted, or in use
    /// for [`FileOptions::lock_wait`] more. The file is as it was, and not locked by this call.
    pub fn open(path: impl AsRef<Path>) -> Result<FileDevice, DeviceError> {
        FileDevice::open_with(path, &FileOptions::default())
    }

    /// As [`FileDevice::open`], with a choice of the page cache.
    ///
    /// # Errors
    /// As [`FileDevice::open`].
    pub fn open_for(path: impl AsRef<Path>, io: FileIo) -> Result<FileDevice, DeviceError> {
        FileDevice::open_with(path, &io.into())
    }

    /// As [`FileDevice::open`], with all choices.
    ///
    /// # Errors
    /// As [`FileDevice::open`].
    pub fn open_with(
        path: impl AsRef<Path>,
        choices: &FileOptions,
    ) -> Result<FileDevice, DeviceError> {
        let path = path.as_ref();
        let len = file_len(path)?;
        if len == 0 || !len.is_multiple_of(B) {
            let why = format!(
                "is {len} bytes long; expected a whole number of 4,096-byte blocks, at least one"
            );
            return Err(open_error(path, why));
        }
        FileDevice::open_blocks(path, choices, len)
    }

    /// As [`FileDevice::open`], of a file that was cut within a block: the device has the whole
    /// blocks before the cut. For those who look at what is left of a store.
    ///
    /// # Errors
    /// As [`FileDevice::open`], but for the length: one whole block is enough.
    pub fn open_cut(path: impl AsRef<Path>) -> Result<FileDevice, DeviceError> {
        let path = path.as_ref();
        let len = file_len(path)?;
        if len < B {
            let why = format!("is {len} bytes long; expected at least a block of 4,096");
            return Err(open_error(path, why));
        }
        FileDevice::open_blocks(path, &FileOptions::default(), len)
    }

    /// Opens the whole blocks of a file of `len` bytes.
    fn open_blocks(
        path: &Path,
        choices: &FileOptions,
        len: u64,
    ) -> Result<FileDevice, DeviceError> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(choices.access == FileAccess::ReadWrite);
        let (file, direct) = open_file(path, &options, choices)?;
        let kernel = Box::new(Os::new(file, direct));
        let device = FileDevice::with(kernel, direct, path, len / B, choices);
        if device.allocated_bytes()? >= len {
            // Reserved: what is given back could not be had again.
            device.punches.store(false, Ordering::Relaxed);
        }
        Ok(device)
    }

    /// Makes a new file of `blocks` blocks of zeros, sparse where the file system can. Whoever dies
    /// meanwhile leaves nothing of that name, but perhaps one with `.new` behind it, which the next
    /// call takes over.
    ///
    /// # Errors
    /// [`DeviceError::Open`] if it exists already, cannot be made, or `blocks` is 0. A file that is there already is not touched, and no other is
    /// left.
    pub fn create(path: impl AsRef<Path>, blocks: u64) -> Result<FileDevice, DeviceError> {
        FileDevice::create_with(path, blocks, &FileOptions::default())
    }

    /// As [`FileDevice::create`], with a choice of the page cache.
    ///
    /// # Errors
    /// As [`FileDevice::create`].
    pub fn create_for(
        path: impl AsRef<Path>,
        blocks: u64,
        io: FileIo,
    ) -> Result<FileDevice, DeviceError> {
        FileDevice::create_with(path, blocks, &io.into())
    }

    /// As [`FileDevice::create`], with all choices.
    ///
    /// # Errors
    /// As [`FileDevice::create`]; with [`FileSpace::Reserved`] also if there is no room for so many
    /// blocks.
    pub fn create_with(
        path: impl AsRef<Path>,
        blocks: u64,
        choices: &FileOptions,
    ) -> Result<FileDevice, DeviceError> {
        let path = path.as_ref();
        let Some(len) = blocks.checked_mul(B).filter(|len| *len > 0) else {
            let why = format!("cannot be made with {blocks} blocks");
            return Err(open_error(path, why));
        };
        if path.exists() {
            return Err(open_error(path, "exists already".into()));
        }
        let unfinished = create::unfinished(path);
        let (file, direct) = open_file(&unfinished, &create::options(), choices)?;
        if !create::names(&unfinished, &file) {
            // Whoever was making one has finished, or given up, between our opening and our lock.
            return Err(open_error(path, "is being made by somebody else".into()));
        }
        let made = create::size(&file, len, choices.space)
            .and_then(|()| create::publish(&unfinished, path));
        if let Err(e) = made {
            // Ours and new: leave no half-made file behind.
            let _ = std::fs::remove_file(&unfinished);
            return Err(refused(path, "cannot be made", &e));
        }
        let kernel = Box::new(Os::new(file, direct));
        let device = FileDevice::with(kernel, direct, path, blocks, choices);
        if choices.space == FileSpace::Reserved {
            device.punches.store(false, Ordering::Relaxed);
        }
        Ok(device)
    }

    /// A device of `blocks` blocks whose system calls go to `kernel`: for those who record what
    /// reaches it, or judge what the device makes of what it answers.
    #[must_use]
    pub fn over(kernel: Box<dyn Kernel>, blocks: u64, choices: &FileOptions) -> FileDevice {
        let direct = choices.io == FileIo::Direct;
        FileDevice::with(kernel, direct, Path::new("a file"), blocks, choices)
    }

    fn with(
        kernel: Box<dyn Kernel>,
        direct: bool,
        path: &Path,
        blocks: u64,
        choices: &FileOptions,
    ) -> FileDevice {
        let writes = choices.access == FileAccess::ReadWrite;
        let punches = writes && choices.discards == FileDiscards::Punch;
        FileDevice {
            kernel,
            path: path.to_owned(),
            extent: Extent::fixed(blocks),
            asked: choices.io,
            direct,
            punches: AtomicBool::new(punches),
            discards: Discards::default(),
        }
    }

    /// What the user should know about this file before trusting its figures.
    pub fn notice(&self) -> Option<String> {
        let why = match (self.direct, self.asked) {
            (true, _) => return None,
            (false, FileIo::Direct) => "the file system refuses O_DIRECT; ",
            (false, FileIo::Buffered) => "",
        };
        let path = self.path.display();
        Some(format!("{path}: {why}I/O goes through the page cache"))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that the file system has allocated for the file now.
    ///
    /// # Errors
    /// [`DeviceError::Open`] if it does not say.
    pub fn allocated_bytes(&self) -> Result<u64, DeviceError> {
        let bytes = self.kernel.allocated_bytes();
        bytes.map_err(|e| refused(&self.path, "cannot be seen", &e))
    }

    /// Makes holes of what was trimmed and is worth it, but for `keep`.
    fn punch_holes(&self, keep: &Range<u64>) {
        if !self.punches.load(Ordering::Relaxed) || mutation::on("trims-not-punched") {
            return;
        }
        let punched = self.discards.reclaim(keep, |range| {
            let (at, len) = (range.start * B, (range.end - range.start) * B);
            self.kernel.punch(at, len)
        });
        let refuses = |e: &std::io::Error| {
            [Errno::OPNOTSUPP, Errno::NOSYS]
                .map(|errno| errno.raw_os_error())
                .iter()
                .any(|errno| e.raw_os_error() == Some(*errno))
        };
        if punched.is_err_and(|e| refuses(&e)) {
            // Others may pass: a full file system has no room to note a hole in.
            self.punches.store(false, Ordering::Relaxed);
        }
    }

    /// Says that blocks are about to be written, which must be before they are.
    ///
    /// # Errors
    /// The file must grow for them and cannot.
    fn about_to_write<'a>(
        &self,
        writes: impl Iterator<Item = (Lba, &'a [u8])> + Clone,
    ) -> Result<(), DeviceError> {
        let blocks = |(lba, bytes): (Lba, &[u8])| lba.0..lba.0 + bytes.len() as u64 / B;
        if let Some(last) = writes.clone().map(blocks).max_by_key(|blocks| blocks.end) {
            let grown = (self.extent).make_room(last.end, |blocks| self.kernel.set_len(blocks * B));
            grown.map_err(|source| DeviceError::Io {
                what: "write",
                lba: Lba(last.start),
                source,
            })?;
        }
        self.discards.about_to_write(writes.map(blocks));
        Ok(())
    }

    /// Whether batches go through io_uring.
    pub fn uses_io_uring(&self) -> bool {
        self.kernel.takes_batches()
    }

    fn pass_as_is(&self, bytes: &[u8]) -> bool {
        !self.direct || AlignedBuf::is_aligned(bytes)
    }

    fn write_one(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        let written = if self.pass_as_is(bytes) {
            kernel::write_all(&*self.kernel, bytes, lba.0 * B, class)
        } else {
            let mut copy = AlignedBuf::zeroed(bytes.len());
            copy.copy_from_slice(bytes);
            kernel::write_all(&*self.kernel, &copy, lba.0 * B, class)
        };
        written.map_err(|source| DeviceError::Io {
            what: "write",
            lba,
            source,
        })
    }

    /// One system call for the batch. `None` if it has to go the ordinary way.
    fn write_at_once(&self, writes: &[BlockWrite<'_>]) -> Option<Result<(), DeviceError>> {
        if writes.len() < 2 || !writes.iter().all(|w| self.pass_as_is(w.bytes)) {
            return None;
        }
        let results = self.kernel.write_batch(writes)?;
        let finish = |(w, result): (&BlockWrite<'_>, i32)| match usize::try_from(result) {
            Ok(n) if n == w.bytes.len() => Ok(()),
            Ok(n) if n > 0 && mutation::on("short-write-is-whole") => Ok(()),
            // Short, interrupted or not supported: the ordinary way either finishes it or says why not.
            _ if result >= 0 || retryable(-result) => self.write_one(w.lba, w.bytes, w.class),
            _ => {
                let source = std::io::Error::from_raw_os_error(-result);
                Err(DeviceError::Io {
                    what: "write",
                    lba: w.lba,
                    source,
                })
            }
        };
        Some(writes.iter().zip(results).try_for_each(finish))
    }

    fn read_one(&self, lba: Lba, buf: &mut [u8]) -> Result<(), DeviceError> {
        // Behind the file's end nothing has been written yet.
        let there = self.extent.end().saturating_sub(lba.0) * B;
        let there = buf.len().min(usize::try_from(there).unwrap_or(usize::MAX));
        let (buf, behind) = buf.split_at_mut(there);
        behind.fill(0);
        if buf.is_empty() {
            return Ok(());
        }
        let read = if self.pass_as_is(buf) {
            kernel::read_all(&*self.kernel, buf, lba.0 * B)
        } else {
            let mut copy = AlignedBuf::zeroed(buf.len());
            let read = kernel::read_all(&*self.kernel, &mut copy, lba.0 * B);
            buf.copy_from_slice(&copy);
            read
        };
        read.map_err(|source| DeviceError::Io {
            what: "read",
            lba,
            source,
        })
    }

    /// One system call for the batch; says which pieces it has read. `None` if all have to go the ordinary way.
    fn read_at_once(&self, reads: &mut [BlockRead<'_>]) -> Option<Vec<bool>> {
        let end = self.extent.end();
        let is_there = |r: &BlockRead<'_>| r.lba.0 + r.buf.len() as u64 / B <= end;
        let at_once = |r: &BlockRead<'_>| self.pass_as_is(r.buf) && is_there(r);
        if reads.len() < 2 || !reads.iter().all(at_once) {
            return None;
        }
        let results = self.kernel.read_batch(reads)?;
        let whole =
            |(r, result): (&BlockRead<'_>, &i32)| usize::try_from(*result) == Ok(r.buf.len());
        Some(reads.iter().zip(&results).map(whole).collect())
    }
}

/// Opens and locks a file; says whether it is past the page cache.
fn open_file(
    path: &Path,
    options: &OpenOptions,
    choices: &FileOptions,
) -> Result<(File, bool), DeviceError> {
    let wanted = choices.io == FileIo::Direct;
    let flag = if wanted { OFlags::DIRECT.bits() } else { 0 };
    let (opened, direct) = match options.clone().custom_flags(flag as i32).open(path) {
        Err(e) if e.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            (options.open(path), false)
        }
        opened => (opened, wanted),
    };
    let file = opened.map_err(|e| refused(path, "cannot be opened", &e))?;
    lock(&file, path, choices)?;
    Ok((file, direct))
}

/// How often a lock is tried again.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Locks the file, which has one user at a time, or some that only read. The kernel finishes a dead
/// process's io_uring requests in its own time, and until then they hold the lock: whoever starts
/// anew at once after a kill must wait for that, and for no longer than that takes.
fn lock(file: &File, path: &Path, choices: &FileOptions) -> Result<(), DeviceError> {
    let began = Instant::now();
    loop {
        let locked = match choices.access {
            FileAccess::ReadWrite => file.try_lock(),
            FileAccess::ReadOnly => file.try_lock_shared(),
        };
        match locked {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(refused(path, "cannot be locked", &e)),
            Err(TryLockError::WouldBlock) if began.elapsed() >= choices.lock_wait => {
                return Err(open_error(path, "is in use by another process".into()));
            }
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(LOCK_PAUSE.min(choices.lock_wait));
            }
        }
    }
}

/// Errors that say nothing about the medium.
fn retryable(errno: i32) -> bool {
    [Errno::INTR, Errno::AGAIN, Errno::INVAL, Errno::OPNOTSUPP]
        .iter()
        .any(|e| e.raw_os_error() == errno)
}

fn open_error(path: &Path, why: String) -> DeviceError {
    DeviceError::Open {
        path: path.to_owned(),
        why,
    }
}

/// The length of a regular file.
fn file_len(path: &Path) -> Result<u64, DeviceError> {
    let meta = std::fs::metadata(path).map_err(|e| refused(path, "cannot be opened", &e))?;
    match meta.is_file() {
        true => Ok(meta.len()),
        false => Err(open_error(path, "is not a regular file".into())),
    }
}

fn refused(path: &Path, what: &str, e: &std::io::Error) -> DeviceError {
    open_error(path, format!("{what}: {e}"))
}

impl Drop for FileDevice {
    fn drop(&mut self) {
        self.kernel.unlock();
    }
}

impl BlockDevice for FileDevice {
    fn capacity_blocks(&self) -> u64 {
        self.extent.capacity()
    }

    fn access(&self) -> Access {
        if self.kernel.is_simulated() {
            return Access::Memory;
        }
        Access::File {
            direct: self.direct,
            io_uring: self.uses_io_uring(),
        }
    }

    fn read(&self, lba: Lba, buf: &mut [u8], _class: IoClass) -> Result<(), DeviceError> {
        check_request("read", lba, buf.len(), self.extent.capacity())?;
        self.read_one(lba, buf)
    }

    fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> Result<(), DeviceError> {
        for r in reads.iter() {
            check_request("read", r.lba, r.buf.len(), self.extent.capacity())?;
        }
        let read = self.read_at_once(reads);
        let read = read.unwrap_or_else(|| vec![false; reads.len()]);
        // What is short, interrupted, refused or failed goes the ordinary way, which finishes it or says why not.
        reads
            .iter_mut()
            .zip(read)
            .filter(|(_, whole)| !whole)
            .try_for_each(|(r, _)| self.read_one(r.lba, r.buf))
    }

    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        check_request("write", lba, bytes.len(), self.extent.capacity())?;
        self.about_to_write(std::iter::once((lba, bytes)))?;
        self.write_one(lba, bytes, class)
    }

    fn write_batch(&self, writes: &[BlockWrite<'_>]) -> Result<(), DeviceError> {
        for w in writes {
            check_request("write", w.lba, w.bytes.len(), self.extent.capacity())?;
        }
        self.about_to_write(writes.iter().map(|w| (w.lba, w.bytes)))?;
        if let Some(outcome) = self.write_at_once(writes) {
            return outcome;
        }
        writes
            .iter()
            .try_for_each(|w| self.write_one(w.lba, w.bytes, w.class))
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        check_range("trim", lba, blocks, self.extent.capacity())?;
        if self.punches.load(Ordering::Relaxed) {
            self.discards.add(lba.0..lba.0 + blocks);
        }
        Ok(())
    }

    fn reclaim(&self, keep: Range<Lba>) {
        self.punch_holes(&(keep.start.0..keep.end.0));
    }

    fn extend_to(&self, blocks: u64) -> bool {
        self.extent.extend_to(blocks);
        true
    }

    fn durable_blocks(&self) -> u64 {
        self.extent.durable()
    }

    fn flush(&self) -> Result<(), DeviceError> {
        let end = self.extent.end();
        if !mutation::on("flush-reaches-nobody") {
            self.kernel.sync_data().map_err(|source| DeviceError::Io {
                what: "flush",
                lba: Lba(0),
                source,
            })?;
        }
        self.extent.flushed(end);
        if self.discards.are_many() {
            self.punch_holes(&(0..0));
        }
        Ok(())
    }
}
