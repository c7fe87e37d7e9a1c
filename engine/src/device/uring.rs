//! Batched I/O through io_uring: one system call submits many requests, which the drive's queues
//! serve concurrently.
//!
//! All `unsafe` code of the devices is here. The kernel reads and fills buffers that the compiler
//! considers borrowed only for the length of a call, so no call returns before everything that it
//! submitted has completed.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::Errno;

use crate::mutation;

/// The greatest number of requests in flight.
const DEPTH: u32 = 64;

/// The pause between polls for requests that a refused ring still completes.
const PAUSE: Duration = Duration::from_micros(100);

/// The kernel refuses to serve the ring. Requests that have not completed have not been started and
/// have to be made by other means, and so do all later ones.
#[derive(Debug)]
pub(super) struct Broken;

/// A submission queue, used by one batch at a time.
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
    /// Creates a ring. Returns `None` where the kernel does not support it (too old, or forbidden).
    pub(super) fn new() -> Option<Ring> {
        IoUring::new(DEPTH).ok().map(Ring)
    }

    /// Starts all writes and waits for all of them. Calls `done` with the index of each piece and
    /// the kernel's result: the number of bytes written, or a negative error number.
    ///
    /// # Errors
    /// [`Broken`]; `done` is not called for pieces that were not started.
    pub(super) fn write_all(
        &mut self,
        fd: BorrowedFd<'_>,
        pieces: &[Piece<'_>],
        done: &mut dyn FnMut(usize, i32),
    ) -> Result<(), Broken> {
        let fd = types::Fd(fd.as_raw_fd());
        let entries = pieces.iter().map(|piece| {
            opcode::Write::new(fd, piece.bytes.as_ptr(), len_of(piece.bytes))
                .offset(piece.offset)
                .build()
        });
        // SAFETY: `pieces` and `fd` are borrowed until this function returns.
        unsafe { self.run(entries, done) }
    }

    /// Starts all reads and waits for all of them, as [`Ring::write_all`].
    pub(super) fn read_all(
        &mut self,
        fd: BorrowedFd<'_>,
        gaps: &mut [Gap<'_>],
        done: &mut dyn FnMut(usize, i32),
    ) -> Result<(), Broken> {
        let fd = types::Fd(fd.as_raw_fd());
        let entries = gaps.iter_mut().map(|gap| {
            opcode::Read::new(fd, gap.bytes.as_mut_ptr(), len_of(gap.bytes))
                .offset(gap.offset)
                .build()
        });
        // SAFETY: `gaps` (exclusively) and `fd` are borrowed until this function returns.
        unsafe { self.run(entries, done) }
    }

    /// Starts all requests and waits for all of them.
    ///
    /// # Safety
    /// The kernel must be allowed to use the buffers and files named by the entries until this
    /// function returns.
    unsafe fn run(
        &mut self,
        entries: impl Iterator<Item = squeue::Entry>,
        done: &mut dyn FnMut(usize, i32),
    ) -> Result<(), Broken> {
        let mut pushed = 0;
        for (number, entry) in entries.enumerate() {
            if pushed == DEPTH as usize {
                self.wait(pushed, done)?;
                pushed = 0;
            }
            let entry = entry.user_data(number as u64);
            // SAFETY: the caller's promise holds until this function returns, and `wait` returns
            // only when the kernel has completed every entry pushed.
            let outcome = unsafe { self.0.submission().push(&entry) };
            assert!(outcome.is_ok(), "the queue is empty before each group");
            pushed += 1;
        }
        self.wait(pushed, done)
    }

    /// Waits for `pending` completions. If the system call is only interrupted or the kernel busy,
    /// the call is repeated: the entries stay queued, and leaving now would leave the kernel with
    /// pointers into freed memory. If the system call is refused, it is not repeated, so the kernel
    /// never takes the entries that it has not taken yet. Entries that it has taken complete by
    /// themselves and are waited for.
    fn wait(&mut self, pending: usize, done: &mut dyn FnMut(usize, i32)) -> Result<(), Broken> {
        let mut completed = 0;
        while completed < pending {
            let outcome = self.0.submit_and_wait(pending - completed);
            completed += self.collect(done);
            match outcome {
                Ok(_) => {}
                Err(e) if is_transient(&e) || mutation::on("uring-tries-for-ever") => {
                    std::thread::yield_now();
                }
                Err(_) => {
                    let untaken = self.0.submission().len();
                    while completed + untaken < pending {
                        std::thread::sleep(PAUSE);
                        completed += self.collect(done);
                    }
                    return Err(Broken);
                }
            }
        }
        Ok(())
    }

    /// Passes on all completions, and returns their number.
    fn collect(&mut self, done: &mut dyn FnMut(usize, i32)) -> usize {
        let entries = self.0.completion();
        entries
            .map(|entry| done(entry.user_data() as usize, entry.result()))
            .count()
    }
}

/// Returns whether an error of the system call is temporary: a signal, no memory for a request just
/// now, or completions that must be collected first.
fn is_transient(e: &std::io::Error) -> bool {
    [Errno::INTR, Errno::AGAIN, Errno::BUSY]
        .iter()
        .any(|errno| e.raw_os_error() == Some(errno.raw_os_error()))
}

fn len_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::ManuallyDrop;
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};
    use std::sync::mpsc;

    #[test]
    fn a_ring_that_the_kernel_refuses_is_given_up_and_not_asked_for_ever() {
        let Some(mut ring) = Ring::new() else {
            eprintln!("skipped: no io_uring here");
            return;
        };
        let (told, outcome) = mpsc::channel();
        std::thread::spawn(move || {
            // Replace the ring's descriptor by something that is not a ring.
            let other = std::fs::File::open("/dev/null").expect("there is one");
            // SAFETY: the descriptor is the ring's and stays open; this second owner of it is never
            // dropped.
            let mut place = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(ring.0.as_raw_fd()) });
            rustix::io::dup2(&other, &mut place).expect("replaced");
            let file = std::fs::File::open("/dev/zero").expect("there is one");
            let (mut a, mut b) = ([1; 512], [1; 512]);
            let mut gaps = [&mut a, &mut b].map(|bytes| Gap { offset: 0, bytes });
            let mut begun = 0;
            let read = ring.read_all(file.as_fd(), &mut gaps, &mut |_, _| begun += 1);
            told.send((read.is_err(), begun)).expect("somebody waits");
        });
        let told = outcome.recv_timeout(Duration::from_secs(20));
        assert_eq!(told, Ok((true, 0)), "broken, and nothing begun");
    }
}
