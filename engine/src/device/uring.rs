//! Batches through io_uring: one system call for many requests, served at once by the drive's queues.
//!
//! All `unsafe` of the devices is here: the kernel reads and fills buffers that the compiler believes borrowed for
//! the length of a call, so no call returns before all that it submitted has completed.

use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{IoUring, opcode, squeue, types};

/// Requests in flight at most.
const DEPTH: u32 = 64;

/// One submission queue; used by one batch at a time.
pub(super) struct Ring(IoUring);

/// A positioned write.
pub(super) struct Piece<'a> {
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
}

/// A positioned read.
pub(super) struct Gap<'a> {
    pub(super) offset: u64,
    pub(super) bytes: &'a mut [u8],
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
        let fd = types::Fd(fd.as_raw_fd());
        let entries = pieces.iter().map(|piece| {
            opcode::Write::new(fd, piece.bytes.as_ptr(), len_of(piece.bytes))
                .offset(piece.offset)
                .build()
        });
        // SAFETY: `pieces` and `fd` are borrowed until this function returns.
        unsafe { self.run(entries, done) }
    }

    /// Starts all reads and waits for all of them; as [`Ring::write_all`].
    pub(super) fn read_all(
        &mut self,
        fd: BorrowedFd<'_>,
        gaps: &mut [Gap<'_>],
        done: &mut dyn FnMut(usize, i32),
    ) {
        let fd = types::Fd(fd.as_raw_fd());
        let entries = gaps.iter_mut().map(|gap| {
            opcode::Read::new(fd, gap.bytes.as_mut_ptr(), len_of(gap.bytes))
                .offset(gap.offset)
                .build()
        });
        // SAFETY: `gaps`, alone, and `fd` are borrowed until this function returns.
        unsafe { self.run(entries, done) }
    }

    /// Starts all requests and waits for all of them.
    ///
    /// # Safety
    /// The buffers and files that the entries name must be the kernel's to use until this function returns.
    unsafe fn run(
        &mut self,
        entries: impl Iterator<Item = squeue::Entry>,
        done: &mut dyn FnMut(usize, i32),
    ) {
        let mut pushed = 0;
        for (number, entry) in entries.enumerate() {
            if pushed == DEPTH as usize {
                self.wait(pushed, done);
                pushed = 0;
            }
            let entry = entry.user_data(number as u64);
            // SAFETY: the caller's promise, and `wait` returns only when the kernel has completed every entry pushed.
            let outcome = unsafe { self.0.submission().push(&entry) };
            assert!(outcome.is_ok(), "the queue is empty before each group");
            pushed += 1;
        }
        self.wait(pushed, done);
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

fn len_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}
