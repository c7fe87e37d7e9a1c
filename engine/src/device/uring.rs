//! Batches of writes through io_uring: one system call for many writes, served at once by the drive's queues.
//!
//! The only `unsafe` of the devices: the kernel reads buffers that the compiler believes borrowed for
//! the length of a call, so no call returns before all that it submitted has completed.

use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{IoUring, opcode, types};

/// Writes in flight at most.
const DEPTH: u32 = 64;

/// One submission queue; used by one batch at a time.
pub(super) struct Ring(IoUring);

/// A positioned write.
pub(super) struct Piece<'a> {
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
}

impl Ring {
    /// A ring, or `None` where the kernel has none (too old, or forbidden).
    pub(super) fn new() -> Option<Ring> {
        IoUring::new(DEPTH).ok().map(Ring)
    }

    /// Starts all writes and waits for all of them. Calls `done` with the number of each piece and what the kernel says of it: bytes
    /// written or a negative error number.
    pub(super) fn write_all(
        &mut self,
        fd: BorrowedFd<'_>,
        pieces: &[Piece<'_>],
        done: &mut dyn FnMut(usize, i32),
    ) {
        for (round, group) in pieces.chunks(DEPTH as usize).enumerate() {
            for (i, piece) in group.iter().enumerate() {
                let number = round * DEPTH as usize + i;
                let len = u32::try_from(piece.bytes.len()).unwrap_or(u32::MAX);
                let entry =
                    opcode::Write::new(types::Fd(fd.as_raw_fd()), piece.bytes.as_ptr(), len)
                        .offset(piece.offset)
                        .build()
                        .user_data(number as u64);
                // SAFETY: `piece.bytes` and `fd` are borrowed until this function returns, and `wait` below returns only when
                // the kernel has completed every entry pushed.
                let pushed = unsafe { self.0.submission().push(&entry) };
                assert!(pushed.is_ok(), "the queue is empty before each group");
            }
            self.wait(group.len(), done);
        }
    }

    /// Waits for `pending` completions. Errors of the system call itself are transient (interrupted, queue busy): the entries stay
    /// queued, and leaving them would leave the kernel pointers into freed memory.
    fn wait(&mut self, mut pending: usize, done: &mut dyn FnMut(usize, i32)) {
        while pending > 0 {
            if self.0.submit_and_wait(pending).is_err() {
                std::thread::yield_now();
            }
            for entry in self.0.completion() {
                done(entry.user_data() as usize, entry.result());
                pending -= 1;
            }
        }
    }
}
