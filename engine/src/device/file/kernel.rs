//! The system calls that a file device makes, one method each, so that a test can replace them.
//!
//! ```text
//! FileDevice ──▶ Kernel ──▶ Os: pwrite, pread, io_uring, fdatasync, fallocate
//!                    └────▶ another implementation: records calls, makes short writes
//! ```
//!
//! The device promises more than the system calls do: complete writes, correct order of writes and
//! holes, and that a flush has reached the medium. A test that checks these promises puts its own
//! `Kernel` underneath ([`FileDevice::over`]).
//!
//! [`FileDevice::over`]: super::FileDevice::over

use std::fs::File;
use std::io;
#[cfg(all(target_os = "linux", not(miri)))]
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::FallocateFlags;

#[cfg(all(target_os = "linux", not(miri)))]
use crate::device::uring::{Broken, Gap, Piece, Ring};
use crate::device::{BlockRead, BlockWrite};
#[cfg(all(target_os = "linux", not(miri)))]
use crate::sync::Mutex;
use crate::types::{BLOCK_SIZE, IoClass};

/// System calls on one file. All offsets and lengths are whole blocks of 4,096 bytes; with
/// [`super::FileIo::Direct`], all memory is aligned to them.
pub trait Kernel: Send + Sync {
    /// `pwrite`: writes at byte `offset` and returns how many bytes were written, which may be
    /// fewer than given. The class is for recorders; an operating system ignores it.
    ///
    /// # Errors
    /// The system's error. [`io::ErrorKind::Interrupted`] is retried.
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<usize>;

    /// `pread`: reads at byte `offset` and returns how many bytes were read, which may be fewer
    /// than asked for. 0 means the end of the file.
    ///
    /// # Errors
    /// The system's error.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Submits all writes at once, in any order. Returns for each the number of bytes written, or a
    /// negative error number. Returns `None` if batches are not supported.
    fn write_batch(&self, writes: &[BlockWrite<'_>]) -> Option<Vec<i32>> {
        let _ = writes;
        None
    }

    /// As [`Kernel::write_batch`], for reads.
    fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> Option<Vec<i32>> {
        let _ = reads;
        None
    }

    /// `fallocate` with `PUNCH_HOLE`: the bytes read as zeros from now on and occupy no space.
    ///
    /// # Errors
    /// The system's error.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;

    /// `fdatasync`: makes completed writes durable.
    ///
    /// # Errors
    /// The system's error.
    fn sync_data(&self) -> io::Result<()>;

    /// `ftruncate`: extends the file with zeros that occupy no space.
    ///
    /// # Errors
    /// The system's error. The default implementation does not support it.
    fn set_len(&self, len: u64) -> io::Result<()> {
        let _ = len;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns how many bytes are allocated for the file.
    ///
    /// # Errors
    /// The system's error.
    fn allocated_bytes(&self) -> io::Result<u64>;

    /// Returns whether batches are submitted in one system call.
    fn takes_batches(&self) -> bool {
        false
    }

    /// Returns whether there is no real file and everything must be reproducible. A store formatted
    /// on such a device does not draw its id from the system's randomness.
    fn is_simulated(&self) -> bool {
        false
    }

    /// Releases the file's lock, before the file is closed.
    fn unlock(&self) {}
}

/// Writes all of `bytes`, in as many calls as needed.
pub(super) fn write_all(
    kernel: &dyn Kernel,
    mut bytes: &[u8],
    mut offset: u64,
    class: IoClass,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match kernel.write_at(bytes, offset, class) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n.min(bytes.len())..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Reads all of `buf`, in as many calls as needed.
pub(super) fn read_all(kernel: &dyn Kernel, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buf.is_empty() {
        match kernel.read_at(buf, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                let rest = n.min(buf.len());
                buf = &mut buf[rest..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The operating system's calls.
pub(super) struct Os {
    file: File,
    #[cfg(all(target_os = "linux", not(miri)))]
    rings: Option<Rings>,
}

/// Two rings, so that reads need not wait for writes.
#[cfg(all(target_os = "linux", not(miri)))]
struct Rings {
    reads: Mutex<Option<Ring>>,
    writes: Mutex<Option<Ring>>,
}

#[cfg(all(target_os = "linux", not(miri)))]
impl Rings {
    fn new() -> Option<Rings> {
        Some(Rings {
            reads: Mutex::new(Some(Ring::new()?)),
            writes: Mutex::new(Some(Ring::new()?)),
        })
    }
}

impl Os {
    pub(super) fn new(file: File, direct: bool) -> Os {
        #[cfg(not(all(target_os = "linux", not(miri))))]
        let _ = direct;
        Os {
            file,
            // Writes to the page cache do not block, and through io_uring the kernel would give
            // each one to a thread of its own.
            #[cfg(all(target_os = "linux", not(miri)))]
            rings: direct.then(Rings::new).flatten(),
        }
    }
}

/// Runs `work` on the ring, if there still is one. A ring that the kernel refuses is given up.
#[cfg(all(target_os = "linux", not(miri)))]
fn with_ring(
    ring: &Mutex<Option<Ring>>,
    work: impl FnOnce(&mut Ring) -> Result<(), Broken>,
) -> Option<()> {
    let mut ring = ring.lock();
    if work(ring.as_mut()?).is_err() {
        *ring = None;
    }
    Some(())
}

impl Kernel for Os {
    fn write_at(&self, bytes: &[u8], offset: u64, _class: IoClass) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    fn write_batch(&self, writes: &[BlockWrite<'_>]) -> Option<Vec<i32>> {
        let ring = &self.rings.as_ref()?.writes;
        let pieces: Vec<Piece<'_>> = writes
            .iter()
            .map(|w| Piece {
                offset: w.lba.0 * BLOCK_SIZE as u64,
                bytes: w.bytes,
            })
            .collect();
        // A piece that the ring did not take counts as entirely unwritten.
        let mut results = vec![0i32; writes.len()];
        with_ring(ring, |ring| {
            ring.write_all(self.file.as_fd(), &pieces, &mut |i, result| {
                results[i] = result;
            })
        })?;
        Some(results)
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> Option<Vec<i32>> {
        let ring = &self.rings.as_ref()?.reads;
        let mut gaps: Vec<Gap<'_>> = reads
            .iter_mut()
            .map(|r| Gap {
                offset: r.lba.0 * BLOCK_SIZE as u64,
                bytes: r.buf,
            })
            .collect();
        let mut results = vec![0i32; gaps.len()];
        with_ring(ring, |ring| {
            ring.read_all(self.file.as_fd(), &mut gaps, &mut |i, result| {
                results[i] = result;
            })
        })?;
        Some(results)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, flags, offset, len)?)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * 512)
    }

    fn takes_batches(&self) -> bool {
        #[cfg(all(target_os = "linux", not(miri)))]
        return self.rings.is_some();
        #[cfg(not(all(target_os = "linux", not(miri))))]
        return false;
    }

    fn unlock(&self) {
        // No request is in flight. Closing alone would keep the lock until the kernel has torn down
        // what is left of the ring. If unlocking fails, the lock is merely released that much
        // later.
        let _ = self.file.unlock();
    }
}
