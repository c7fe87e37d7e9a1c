//! A simulated file system: a device in a file, on a device that crashes. A power cut may lose what
//! has reached the system below a [`FileDevice`] and was not synced.
//!
//! ```text
//! engine ──▶ FileDevice ──▶ System: pwrite, pread, fdatasync, … ──▶ CrashDevice, recorded
//! ```
//!
//! A flush that is not passed on, a hole punched over newer data, or a write that is partly
//! forgotten cannot be noticed by reading the file back, but a crash reveals it. And the system
//! does everything that a real system may do: it writes and reads less than it was given, is
//! interrupted, completes a batch in any order, and leaves some of it to be requested again. The
//! number of the call decides what it does, so that programs are reproducible.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use treering_engine::device::{
    BlockDevice, BlockRead, BlockWrite, DeviceError, FileDevice, FileIo, FileOptions, Kernel,
};
use treering_engine::{BLOCK_SIZE, IoClass, Lba};

use super::random::Random;

/// Error numbers, which are the same on all systems that we know of.
const EINTR: i32 = 4;
const EIO: i32 = 5;
const EAGAIN: i32 = 11;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;

/// The simulated system on a block device.
struct System {
    device: Arc<dyn BlockDevice>,
    calls: AtomicU64,
}

/// A file on `device`, of the same size.
#[must_use]
pub fn in_a_file(device: Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
    let blocks = device.capacity_blocks();
    let system = System {
        device,
        calls: AtomicU64::new(0),
    };
    // Through the page cache. With direct I/O the addresses of buffers would decide what is copied
    // first, and so what a program shows.
    let choices = FileOptions::from(FileIo::Buffered);
    Arc::new(FileDevice::over(Box::new(system), blocks, &choices))
}

/// The error number that the system returns for an error of the device.
fn errno(error: &DeviceError) -> i32 {
    match error {
        _ if error.is_no_space() => ENOSPC,
        DeviceError::Misaligned { .. } | DeviceError::OutOfRange { .. } => EINVAL,
        _ => EIO,
    }
}

fn failed(error: &DeviceError) -> io::Error {
    io::Error::from_raw_os_error(errno(error))
}

impl System {
    fn chance(&self) -> Random {
        Random::part(self.calls.fetch_add(1, Ordering::Relaxed), 4)
    }

    /// The number of bytes that a call handles, or an interruption.
    fn some(&self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.len().is_multiple_of(BLOCK_SIZE) {
            return Err(io::Error::from_raw_os_error(EINVAL));
        }
        let blocks = (bytes.len() / BLOCK_SIZE) as u64;
        let mut random = self.chance();
        match random.below(16) {
            0 => Err(io::Error::from_raw_os_error(EINTR)),
            1..4 if blocks > 1 => Ok((1 + random.below(blocks - 1)) as usize * BLOCK_SIZE),
            _ => Ok(bytes.len()),
        }
    }

    fn lba(offset: u64) -> io::Result<Lba> {
        match offset.is_multiple_of(BLOCK_SIZE as u64) {
            true => Ok(Lba(offset / BLOCK_SIZE as u64)),
            false => Err(io::Error::from_raw_os_error(EINVAL)),
        }
    }

    /// The result of one piece of a batch: a number of bytes, or a negative error number.
    fn piece(&self, done: io::Result<usize>) -> i32 {
        match done {
            Ok(n) => n as i32,
            // A queue reports an interruption in another way.
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                [-EINTR, -EAGAIN, 0][self.chance().below(3) as usize]
            }
            Err(e) => -e.raw_os_error().unwrap_or(EIO),
        }
    }

    /// The numbers below `n`, in an arbitrary order.
    fn any_order(&self, n: usize) -> Vec<usize> {
        let mut random = self.chance();
        let mut order: Vec<usize> = (0..n).collect();
        for at in (1..n).rev() {
            order.swap(at, random.below(at as u64 + 1) as usize);
        }
        order
    }
}

impl Kernel for System {
    fn write_at(&self, bytes: &[u8], offset: u64, class: IoClass) -> io::Result<usize> {
        let some = self.some(bytes)?;
        let done = (self.device).write(System::lba(offset)?, &bytes[..some], class);
        done.map(|()| some).map_err(|e| failed(&e))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let some = self.some(buf)?;
        let done = (self.device).read(System::lba(offset)?, &mut buf[..some], IoClass::Page);
        done.map(|()| some).map_err(|e| failed(&e))
    }

    fn write_batch(&self, writes: &[BlockWrite<'_>]) -> Option<Vec<i32>> {
        let mut results = vec![0; writes.len()];
        for at in self.any_order(writes.len()) {
            let write = &writes[at];
            let offset = write.lba.0 * BLOCK_SIZE as u64;
            results[at] = self.piece(self.write_at(write.bytes, offset, write.class));
        }
        Some(results)
    }

    fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> Option<Vec<i32>> {
        let mut results = vec![0; reads.len()];
        for at in self.any_order(reads.len()) {
            let read = &mut reads[at];
            let offset = read.lba.0 * BLOCK_SIZE as u64;
            results[at] = self.piece(self.read_at(read.buf, offset));
        }
        Some(results)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let blocks = len / BLOCK_SIZE as u64;
        let done = self.device.trim(System::lba(offset)?, blocks);
        done.map_err(|e| failed(&e))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.device.flush().map_err(|e| failed(&e))
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn takes_batches(&self) -> bool {
        true
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use treering_engine::device::CrashDevice;

    use super::*;

    #[test]
    fn whatever_the_system_leaves_out_is_asked_for_again() {
        let crash = Arc::new(CrashDevice::new(256));
        let file = in_a_file(Arc::clone(&crash) as Arc<dyn BlockDevice>);
        let mut random = Random::new(5);
        let mut expected = vec![0u8; 256 * BLOCK_SIZE];
        for round in 0..300u64 {
            let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
            let mut at = random.below(20);
            for _ in 0..random.below(5) {
                let blocks = 1 + random.below(6);
                pieces.push((at, vec![round as u8; blocks as usize * BLOCK_SIZE]));
                at += blocks + random.below(8);
            }
            for (lba, bytes) in &pieces {
                expected[*lba as usize * BLOCK_SIZE..][..bytes.len()].copy_from_slice(bytes);
            }
            let writes: Vec<BlockWrite<'_>> = (pieces.iter())
                .map(|(lba, bytes)| BlockWrite {
                    lba: Lba(*lba),
                    bytes,
                    class: IoClass::Page,
                })
                .collect();
            file.write_batch(&writes).unwrap();
        }
        let mut found = vec![0u8; 256 * BLOCK_SIZE];
        file.read(Lba(0), &mut found, IoClass::Page).unwrap();
        assert!(found == expected);
        file.flush().unwrap();
        let durable = CrashDevice::from_image(crash.crash(&mut |_| 0));
        durable.read(Lba(0), &mut found, IoClass::Page).unwrap();
        assert!(found == expected, "a flush reaches the medium");
        // Errors of the medium are passed on.
        crash.set_full(true);
        let full = file.write(Lba(250), &vec![1; BLOCK_SIZE], IoClass::Page);
        assert!(full.unwrap_err().is_no_space());
        crash.fail_flush_in(0);
        assert!(file.flush().is_err());
    }
}
