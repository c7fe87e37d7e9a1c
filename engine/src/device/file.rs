//! [`FileDevice`], a block device in a regular file.
//!
//! `O_DIRECT` bypasses the page cache, so that it does not distort the figures. Where the file
//! system refuses it, or the caller asks for it ([`FileIo::Buffered`]), I/O is buffered, and
//! [`FileDevice::notice`] says so. Batches go through io_uring where the kernel supports it. A
//! flush is `fdatasync`, and a lock keeps other processes out. Trimmed blocks become holes in
//! batches ([`punch`]), so that a file occupies what its store holds now, not what it ever held. A
//! new file appears under its name only once it has its full length ([`create`]).

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
    Access, AlignedBuf, BlockDevice, BlockRead, BlockWrite, DeviceError, check_range, check_reads,
    check_request, check_writes,
};
use crate::mutation;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::types::{BLOCK_SIZE, IoClass, Lba};
use grow::Extent;
use kernel::Os;
use punch::Discards;

const B: u64 = BLOCK_SIZE as u64;

/// A block device in a regular file.
///
/// ```
/// use treering_engine::device::{BlockDevice, FileDevice};
/// use treering_engine::{BLOCK_SIZE, IoClass, Lba};
///
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let path = folder.path().join("blocks");
/// # fn main_in(path: &std::path::Path) -> Result<(), treering_engine::device::DeviceError> {
/// let device = FileDevice::create(path, 8)?;
/// device.write(Lba(3), &[7; BLOCK_SIZE], IoClass::Page)?;
/// device.flush()?;
/// drop(device); // closes and unlocks the file
///
/// let device = FileDevice::open(path)?;
/// let mut block = [0; BLOCK_SIZE];
/// device.read(Lba(3), &mut block, IoClass::Page)?;
/// assert_eq!((device.capacity_blocks(), block[0]), (8, 7));
/// # Ok(())
/// # }
/// # main_in(&path).expect("runs");
/// ```
pub struct FileDevice {
    kernel: Box<dyn Kernel>,
    path: PathBuf,
    extent: Extent,
    asked: FileIo,
    direct: bool,
    /// Whether trimmed blocks are to become holes. Cleared once the file system turns out not to
    /// support holes.
    punches: AtomicBool,
    discards: Discards,
}

impl FileDevice {
    /// Opens an existing file. Its length determines the number of blocks.
    ///
    /// # Errors
    /// [`DeviceError::Open`] if the file is missing, is not a regular file, is not a whole number
    /// of blocks, may not be accessed, or is still in use after [`FileOptions::lock_wait`]. The
    /// file is unchanged, and this call leaves no lock on it.
    pub fn open(path: impl AsRef<Path>) -> Result<FileDevice, DeviceError> {
        FileDevice::open_with(path, &FileOptions::default())
    }

    /// As [`FileDevice::open`], with a choice whether to bypass the page cache.
    ///
    /// # Errors
    /// As [`FileDevice::open`].
    pub fn open_for(path: impl AsRef<Path>, io: FileIo) -> Result<FileDevice, DeviceError> {
        FileDevice::open_with(path, &io.into())
    }

    /// As [`FileDevice::open`], with all options.
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

    /// As [`FileDevice::open`], but accepts a file that was truncated in the middle of a block: the
    /// device has the whole blocks before the cut. For examining the remains of a store.
    ///
    /// # Errors
    /// As [`FileDevice::open`], except that one whole block is long enough.
    pub fn open_cut(path: impl AsRef<Path>) -> Result<FileDevice, DeviceError> {
        let path = path.as_ref();
        let len = file_len(path)?;
        if len < B {
            let why = format!("is {len} bytes long; expected at least a block of 4,096");
            return Err(open_error(path, why));
        }
        FileDevice::open_blocks(path, &FileOptions::default(), len)
    }

    /// Opens the whole blocks in a file of `len` bytes.
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
            // The space is reserved: once given back, it might not be available again.
            device.punches.store(false, Ordering::Relaxed);
        }
        Ok(device)
    }

    /// Creates a file of `blocks` zero blocks, sparse where the file system supports it. If the
    /// process dies meanwhile, no file of that name is left, but perhaps one with the suffix
    /// `.new`, which the next call takes over.
    ///
    /// # Errors
    /// [`DeviceError::Open`] if the file already exists, cannot be created, or `blocks` is 0. An
    /// existing file is not touched, and no new file is left.
    pub fn create(path: impl AsRef<Path>, blocks: u64) -> Result<FileDevice, DeviceError> {
        FileDevice::create_with(path, blocks, &FileOptions::default())
    }

    /// As [`FileDevice::create`], with a choice whether to bypass the page cache.
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

    /// As [`FileDevice::create`], with all options.
    ///
    /// # Errors
    /// As [`FileDevice::create`]. With [`FileSpace::Reserved`], also if the file system has no room
    /// for that many blocks.
    pub fn create_with(
        path: impl AsRef<Path>,
        blocks: u64,
        choices: &FileOptions,
    ) -> Result<FileDevice, DeviceError> {
        let path = path.as_ref();
        let Some(len) = blocks.checked_mul(B).filter(|len| *len > 0) else {
            let why = format!("cannot be created with {blocks} blocks");
            return Err(open_error(path, why));
        };
        if path.exists() {
            return Err(open_error(path, "exists already".into()));
        }
        let unfinished = create::unfinished(path);
        let (file, direct) = open_file(&unfinished, &create::options(), choices)?;
        if !create::names(&unfinished, &file) {
            // Between our opening and our lock, another creator finished or gave up.
            return Err(open_error(
                path,
                "is being created by another process".into(),
            ));
        }
        let made = create::size(&file, len, choices.space)
            .and_then(|()| create::publish(&unfinished, path));
        if let Err(e) = made {
            // The unfinished file is ours and new: do not leave it behind.
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

    /// Creates a device of `blocks` blocks whose system calls go to `kernel`. For recording what
    /// reaches the system, or for testing how the device handles its answers.
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

    /// Returns what the user should know about this file before trusting its figures.
    pub fn notice(&self) -> Option<String> {
        let why = match (self.direct, self.asked) {
            (true, _) => return None,
            (false, FileIo::Direct) => "the file system refuses O_DIRECT; ",
            (false, FileIo::Buffered) => "",
        };
        let path = self.path.display();
        Some(format!("{path}: {why}I/O goes through the page cache"))
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns how many bytes the file system has allocated for the file now.
    ///
    /// # Errors
    /// [`DeviceError::Open`] if the file system does not report it.
    pub fn allocated_bytes(&self) -> Result<u64, DeviceError> {
        let bytes = self.kernel.allocated_bytes();
        bytes.map_err(|e| refused(&self.path, "cannot be seen", &e))
    }

    /// Punches holes for trimmed ranges that are worth it, except within `keep`.
    fn punch_holes(&self, keep: &Range<u64>) {
        if !self.punches.load(Ordering::Relaxed) || mutation::on("trims-not-punched") {
            return;
        }
        let is = |e: &std::io::Error, any: &[Errno]| {
            any.iter()
                .any(|errno| e.raw_os_error() == Some(errno.raw_os_error()))
        };
        // A full file system may have no room to record a hole, and gets some later. After any
        // other error the blocks stay as they are, or some are zeros: a trim is a hint.
        let no_room = |e: &std::io::Error| {
            !mutation::on("full-disk-forgets-holes") && is(e, &[Errno::NOSPC, Errno::DQUOT])
        };
        let punched = self.discards.reclaim(keep, no_room, |range| {
            let (at, len) = (range.start * B, (range.end - range.start) * B);
            loop {
                match self.kernel.punch(at, len) {
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    done => break done,
                }
            }
        });
        if punched.is_err_and(|e| is(&e, &[Errno::OPNOTSUPP, Errno::NOSYS])) {
            self.punches.store(false, Ordering::Relaxed);
        }
    }

    /// Prepares for a write to these blocks. Must be called before the write.
    ///
    /// # Errors
    /// If the file must grow for the write and cannot.
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

    /// Returns whether batches go through io_uring.
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

    /// Submits the batch in one system call. Returns `None` if it has to be written piece by piece.
    fn write_at_once(&self, writes: &[BlockWrite<'_>]) -> Option<Result<(), DeviceError>> {
        if writes.len() < 2 || !writes.iter().all(|w| self.pass_as_is(w.bytes)) {
            return None;
        }
        let results = self.kernel.write_batch(writes)?;
        let finish = |(w, result): (&BlockWrite<'_>, i32)| match usize::try_from(result) {
            Ok(n) if n == w.bytes.len() => Ok(()),
            Ok(n) if n > 0 && mutation::on("short-write-is-whole") => Ok(()),
            // Short, interrupted or unsupported: writing piece by piece either completes it or
            // reports the error.
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
        // Nothing has been written beyond the file's end yet.
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

    /// Submits the batch in one system call, and returns which pieces were read. Returns `None` if
    /// all have to be read one by one.
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

/// Opens and locks a file. Returns whether it bypasses the page cache.
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

/// The pause between attempts to lock a file.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Locks the file for one user, or for several that only read. After a kill, the kernel finishes
/// the dead process's io_uring requests in its own time, and they hold the lock until then. A
/// process that restarts immediately has to wait for that, but no longer.
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

/// Returns whether an error says nothing about the medium, so that the request may be retried.
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

/// Returns the length of a regular file.
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
        check_reads(reads, self.extent.capacity())?;
        let read = self.read_at_once(reads);
        let read = read.unwrap_or_else(|| vec![false; reads.len()]);
        // Pieces that were short, interrupted, refused or failed are read one by one, which either
        // completes them or reports the error.
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
        check_writes(writes, self.extent.capacity())?;
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
