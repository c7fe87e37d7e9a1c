//! The spec's device: a sequence of versions for every block, and a flush that keeps the last
//! version of each.
//!
//! Unlike [`treering_engine::device::CrashDevice`], it lets the driver read the versions, choose
//! among them block by block, and continue on a copy. Copies share their blocks.
//!
//! Pages are two blocks here. The page store's journal guards them from being torn, with a flush of
//! its own before the page is written to its home. The driver tears no page, so it may skip that
//! flush ([`StepDevice::ignore_flush`]). Otherwise every page write would make durable what the
//! spec leaves in the cache.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use treering_engine::device::{BlockDevice, DeviceError};
use treering_engine::sync::Mutex;
use treering_engine::{BLOCK_SIZE, IoClass, Lba};

use super::actors;

/// The bytes of a block.
pub(super) type Bytes = Arc<[u8]>;

#[derive(Clone)]
struct State {
    /// The versions of each block, oldest first. The first one is durable.
    blocks: Vec<Vec<Bytes>>,
    unflushed: BTreeSet<usize>,
    /// Blocks whose unflushed versions no flush makes durable.
    forgotten: BTreeSet<usize>,
    flush_fails: bool,
    /// The process that used the device has ended: no request has any effect any more.
    dead: bool,
}

/// The device: see the module's documentation.
pub(super) struct StepDevice {
    state: Mutex<State>,
}

thread_local! {
    /// The number of this thread's next flushes that do nothing.
    static IGNORED: Cell<u32> = const { Cell::new(0) };
}

fn gone(what: &'static str, lba: Lba) -> DeviceError {
    DeviceError::Io {
        what,
        lba,
        source: std::io::Error::other("as the driver wants it"),
    }
}

impl StepDevice {
    /// A device that holds `image` durably.
    pub(super) fn new(image: &[u8]) -> StepDevice {
        let zero: Bytes = Arc::from(vec![0; BLOCK_SIZE]);
        let block = |bytes: &[u8]| {
            let is_zero = bytes.iter().all(|b| *b == 0);
            vec![if is_zero {
                zero.clone()
            } else {
                Bytes::from(bytes)
            }]
        };
        StepDevice::of(image.chunks_exact(BLOCK_SIZE).map(block).collect())
    }

    fn of(blocks: Vec<Vec<Bytes>>) -> StepDevice {
        StepDevice {
            state: Mutex::new(State {
                blocks,
                unflushed: BTreeSet::new(),
                forgotten: BTreeSet::new(),
                flush_fails: false,
                dead: false,
            }),
        }
    }

    /// An independent copy, with all versions.
    pub(super) fn copy(&self) -> StepDevice {
        let state = State {
            dead: false,
            flush_fails: false,
            ..self.state.lock().clone()
        };
        StepDevice {
            state: Mutex::new(state),
        }
    }

    /// The device after a crash. `choose` picks the version to keep of every block with unflushed
    /// versions.
    pub(super) fn crash(&self, choose: impl Fn(usize, usize) -> usize) -> StepDevice {
        let state = self.state.lock();
        let left = state.blocks.iter().enumerate().map(|(lba, versions)| {
            let n = versions.len();
            let at = if n > 1 { choose(lba, n).min(n - 1) } else { 0 };
            vec![versions[at].clone()]
        });
        StepDevice::of(left.collect())
    }

    /// The versions of a block, oldest first.
    pub(super) fn versions(&self, lba: usize) -> Vec<Bytes> {
        self.state.lock().blocks[lba].clone()
    }

    /// Makes the next flush fail.
    pub(super) fn fail_next_flush(&self) {
        self.state.lock().flush_fails = true;
    }

    /// Makes all further requests ineffective.
    pub(super) fn kill(&self) {
        self.state.lock().dead = true;
    }

    /// Makes the next flush by this thread do nothing.
    pub(super) fn ignore_flush() {
        IGNORED.set(IGNORED.get() + 1);
    }

    /// Cancels [`StepDevice::ignore_flush`] for this thread.
    pub(super) fn ignore_none() {
        IGNORED.set(0);
    }
}

impl State {
    fn add(&mut self, lba: usize, bytes: Bytes) {
        self.blocks[lba].push(bytes);
        self.unflushed.insert(lba);
        self.forgotten.remove(&lba);
    }
}

impl BlockDevice for StepDevice {
    fn capacity_blocks(&self) -> u64 {
        self.state.lock().blocks.len() as u64
    }

    fn read(&self, lba: Lba, buf: &mut [u8], _class: IoClass) -> Result<(), DeviceError> {
        let state = self.state.lock();
        for (i, block) in buf.chunks_exact_mut(BLOCK_SIZE).enumerate() {
            let versions = &state.blocks[lba.0 as usize + i];
            block.copy_from_slice(versions.last().expect("one at least"));
        }
        Ok(())
    }

    fn write(&self, lba: Lba, bytes: &[u8], _class: IoClass) -> Result<(), DeviceError> {
        let mut state = self.state.lock();
        if state.dead {
            return Err(gone("write", lba));
        }
        for (i, block) in bytes.chunks_exact(BLOCK_SIZE).enumerate() {
            state.add(lba.0 as usize + i, Bytes::from(block));
        }
        Ok(())
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        let mut state = self.state.lock();
        if state.dead {
            return Err(gone("trim", lba));
        }
        let zero: Bytes = Arc::from(vec![0; BLOCK_SIZE]);
        (lba.0..lba.0 + blocks).for_each(|lba| state.add(lba as usize, zero.clone()));
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        if let Some(left) = IGNORED.get().checked_sub(1) {
            IGNORED.set(left);
            // A flush that is to fail is not skipped.
            if !self.state.lock().flush_fails {
                return Ok(());
            }
        }
        actors::stop_at(None);
        let mut state = self.state.lock();
        if state.dead {
            return Err(gone("flush", Lba(0)));
        }
        if std::mem::take(&mut state.flush_fails) {
            state.forgotten = state.unflushed.clone();
            return Err(gone("flush", Lba(0)));
        }
        let State {
            blocks,
            unflushed,
            forgotten,
            ..
        } = &mut *state;
        unflushed.retain(|lba| {
            let stays = forgotten.contains(lba);
            if !stays {
                let last = blocks[*lba].len() - 1;
                blocks[*lba].drain(..last);
            }
            stays
        });
        Ok(())
    }
}
