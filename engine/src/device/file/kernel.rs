//! What a file device asks of the operating system: a method for each system call.
//!
//! ```text
//! FileDevice ──▶ Kernel ──▶ Os: pwrite, pread, io_uring, fdatasync, fallocate
//!                    └────▶ somebody else's: records what reaches it, writes less than it was given
//! ```
//!
//! The device itself promises what no system call does: whole writes, writes in order with holes,
//! and that a flush has reached the medium. Whoever judges that stands here ([`FileDevice::over`]).
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
/// [`super::FileIo::Direct`] all memory is aligned to them.
pub trait Kernel: Send + Sync {
    /// `pwrite`: writes from byte `offset` on, and says how many bytes, which may be fewer than were
    /// given. The class is for those who record; a system has no use for it.
    ///
    /// # Errors
    /// The system's. [`io::ErrorKind::Interrupted`] is tried again.
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<usize>;

    /// `pread`: as [`Kernel::write_at`]; 0 is the end of the file.
    ///
    /// # Errors
    /// The system's.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// All writes at once, in any order. Of each, the bytes that were written, or a negative error
    /// number. `None`: there is nothing that takes batches.
    fn write_batch(&self, writes: &[BlockWrite<'_>]) -> Option<Vec<i32>> {
        let _ = writes;
        None
    }

    /// As [`Kernel::write_batch`], for reads.
    fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> Option<Vec<i32>> {
        let _ = reads;
        None
    }

    /// `fallocate` with `PUNCH_HOLE`: these bytes are zeros from now on, and take no room.
    ///
    /// # Errors
    /// The system's.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;

    /// `fdatasync`.
    ///
    /// # Errors
    /// The system's.
    fn sync_data(&self) -> io::Result<()>;

    /// `ftruncate`: makes the file longer, by zeros that take no room.
    ///
    /// # Errors
    /// The system's; a kernel that does not say otherwise cannot.
    fn set_len(&self, len: u64) -> io::Result<()> {
        let _ = len;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Bytes that are allocated for the file.
    ///
    /// # Errors
    /// The system's.
    fn allocated_bytes(&self) -> io::Result<u64>;

    /// Whether batches are one system call.
    fn takes_batches(&self) -> bool {
        false
    }

    /// Whether there is no file, and all is to repeat exactly: a store made there takes no chance
    /// from the system for its id.
    fn is_simulated(&self) -> bool {
        false
    }

    /// The file is let go of, before it is closed.
    fn unlock(&self) {}
}

/// All of `bytes`, in as many calls as it takes.
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

/// All of `buf`, in as many calls as it takes.
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

/// The operating system's.
pub(super) struct Os {
    file: File,
    #[cfg(all(target_os = "linux", not(miri)))]
    rings: Option<Rings>,
}

/// Two, so that reads need not wait for writes.
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
            // Writes into the page cache do not wait, and the kernel would give each to a thread of its own.
            #[cfg(all(target_os = "linux", not(miri)))]
            rings: direct.then(Rings::new).flatten(),
        }
    }
}

/// Lends the ring, if there still is one; it is given up when the kernel refuses it.
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
        // A piece that the ring did not take counts as short by all of it.
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
        // No request is under way. Closing alone would leave the lock to whatever of the ring the kernel still has to take down; an error
        // only means that it does.
        let _ = self.file.unlock();
    }
}
