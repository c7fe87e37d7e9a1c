//! A device that crashes: it keeps, for every block written since the last good flush, whichever version a crash may leave.
//!
//! ```text
//!            write / trim               flush                 crash
//! durable ───────────────▶ versions ───────────▶ durable      any one of: durable, each version
//!                             │ failed flush
//!                             ▼
//!                         forgotten: no later flush makes them durable, only rewriting does (BUGS D5)
//! ```
//!
//! A trim is a version of zeros. Which version survives is the caller's choice block by block, so a seed, a model
//! checker or an exhaustive loop can drive it. Failures are injected at the n-th request of a kind
//! from now; and the medium can be full, as a thin volume or a file system is: then it takes what
//! goes to blocks that hold something, and no more.
//!
//! It can record its requests. Applied to another device one by one they lead through every state that the first one was
//! in, so a program need be run once only, however many crashes are to be tried.

use std::collections::BTreeMap;

use super::image::{Block, Image};
use super::{BlockDevice, DeviceError, check_range, check_request};
use crate::sync::Mutex;
use crate::types::{BLOCK_SIZE, IoClass, Lba};

/// A request that changed something or ordered changes.
#[derive(Clone, Debug)]
pub enum Request {
    /// A write.
    Write {
        /// First block.
        lba: Lba,
        /// What was written.
        blocks: Vec<Block>,
        /// What for.
        class: IoClass,
        /// Whether it failed: nothing of it was done by then, or half, or all.
        failed: bool,
    },
    /// A trim.
    Trim {
        /// First block.
        lba: Lba,
        /// How many.
        blocks: u64,
    },
    /// A flush.
    Flush {
        /// Whether it failed.
        failed: bool,
    },
}

/// A kind of request, as failures are injected into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// A write, whatever for.
    Write,
    /// A write of one class.
    WriteOf(IoClass),
    /// A flush.
    Flush,
    /// A read.
    Read,
    /// A trim.
    Trim,
}

impl RequestKind {
    /// All kinds.
    pub const ALL: [RequestKind; 7] = [
        RequestKind::Write,
        RequestKind::WriteOf(IoClass::Log),
        RequestKind::WriteOf(IoClass::Page),
        RequestKind::WriteOf(IoClass::Extra),
        RequestKind::Flush,
        RequestKind::Read,
        RequestKind::Trim,
    ];

    /// Its name in programs and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RequestKind::Write => "write",
            RequestKind::WriteOf(IoClass::Log) => "log-write",
            RequestKind::WriteOf(IoClass::Page) => "page-write",
            RequestKind::WriteOf(IoClass::Extra) => "extra-write",
            RequestKind::Flush => "flush",
            RequestKind::Read => "read",
            RequestKind::Trim => "trim",
        }
    }

    fn holds(self, asked: RequestKind) -> bool {
        let any_write = self == RequestKind::Write;
        self == asked || any_write && matches!(asked, RequestKind::WriteOf(_))
    }
}

/// What became of the requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Those that were done.
    pub done: u64,
    /// Those that failed because they were told to.
    pub failed: u64,
    /// Those that the medium had no room for.
    pub without_room: u64,
    /// Those that came when the power had gone.
    pub in_the_dark: u64,
}

/// What may be on the medium in place of the durable bytes; `None` is a trimmed block.
struct Version {
    block: Option<Block>,
    /// Written before a flush that failed, or by a write that failed.
    forgotten: bool,
}

struct State {
    durable: Image,
    current: Image,
    versions: BTreeMap<u64, Vec<Version>>,
    recording: Option<Vec<Request>>,
    requests: u64,
    writes: u64,
    flushes: u64,
    /// Requests that have failed, because they were told to.
    failed: u64,
    /// How many requests of a kind are let through before one fails; one entry a kind.
    failures: Vec<(RequestKind, u64)>,
    /// What became of requests, by kind.
    served: Vec<(RequestKind, Served)>,
    /// Requests of any kind until the power goes.
    power: Option<u64>,
    /// Whether there is no room for blocks that hold nothing.
    full: bool,
}

/// A small in-memory device with a volatile write cache.
pub struct CrashDevice {
    blocks: u64,
    state: Mutex<State>,
}

impl CrashDevice {
    /// A device of `blocks` zero blocks, all durable.
    pub fn new(blocks: u64) -> CrashDevice {
        CrashDevice::from_image(Image::zeroed(blocks))
    }

    /// A device that holds `image` durably, for instance what [`CrashDevice::crash`] left.
    pub fn from_image(image: impl Into<Image>) -> CrashDevice {
        let durable = image.into();
        let state = State {
            current: durable.clone(),
            versions: BTreeMap::new(),
            recording: None,
            requests: 0,
            writes: 0,
            flushes: 0,
            failed: 0,
            failures: Vec::new(),
            served: Vec::new(),
            power: None,
            full: false,
            durable,
        };
        CrashDevice {
            blocks: state.durable.blocks(),
            state: Mutex::new(state),
        }
    }

    /// What the medium holds if power fails now. For each block with unflushed versions, in order of address, `choose(n)`
    /// picks one of `n` outcomes: 0 is the durable bytes, `i` the i-th version since, oldest first.
    pub fn crash(&self, choose: &mut dyn FnMut(usize) -> usize) -> Image {
        let state = self.state.lock();
        let mut image = state.durable.clone();
        for (block, versions) in &state.versions {
            let pick = choose(versions.len() + 1);
            if let Some(version) = pick.checked_sub(1).and_then(|i| versions.get(i)) {
                image.set(Lba(*block), version.block.clone());
            }
        }
        image
    }

    /// For each block that a crash may leave in several ways, in order of address, in how many.
    pub fn outcomes(&self) -> Vec<usize> {
        let state = self.state.lock();
        state.versions.values().map(|v| v.len() + 1).collect()
    }

    /// As [`CrashDevice::crash`], choosing by a seed (splitmix64).
    pub fn crash_seeded(&self, seed: u64) -> Image {
        self.crash(&mut seeded(seed))
    }

    /// From now on every request is recorded.
    pub fn record(&self) {
        self.state.lock().recording = Some(Vec::new());
    }

    /// What was recorded; the recording goes on, empty.
    pub fn take_recording(&self) -> Vec<Request> {
        let mut state = self.state.lock();
        state
            .recording
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Writes, trims and flushes so far: the place of the next one in a recording that began at once.
    pub fn requests(&self) -> u64 {
        self.state.lock().requests
    }

    /// Does what another device did. The request must fit this one.
    pub fn apply(&self, request: &Request) {
        self.state.lock().apply(request);
    }

    /// The `n`-th write request from now fails (0: the next one), see [`CrashDevice::fail_in`].
    pub fn fail_write_in(&self, n: u64) {
        self.fail_in(RequestKind::Write, n);
    }

    /// The `n`-th flush from now fails (0: the next one).
    pub fn fail_flush_in(&self, n: u64) {
        self.fail_in(RequestKind::Flush, n);
    }

    /// The `n`-th request of a kind from now fails (0: the next one). A write has
    /// written nothing, its first half of blocks, or all of them, a third of the writes each; a read
    /// and a trim leave everything as it was. Of each kind one failure can be ahead: the one that was
    /// asked for last.
    pub fn fail_in(&self, kind: RequestKind, n: u64) {
        let failures = &mut self.state.lock().failures;
        failures.retain(|(other, _)| *other != kind);
        failures.push((kind, n));
    }

    /// The failures that are still ahead: kinds, and how many requests of each are let through
    /// before.
    pub fn failures_ahead(&self) -> Vec<(RequestKind, u64)> {
        self.state.lock().failures.clone()
    }

    /// Requests so far that have failed because they were told to.
    pub fn failed(&self) -> u64 {
        self.state.lock().failed
    }

    /// Whether a request that is still to come fails, or the power is to go.
    pub fn has_failures_ahead(&self) -> bool {
        let state = self.state.lock();
        !state.failures.is_empty() || state.power.is_some()
    }

    /// After `n` more requests the power goes: that request and all later ones fail and leave nothing behind.
    pub fn cut_power_in(&self, n: u64) {
        self.state.lock().power = Some(n);
    }

    /// Whether the power has gone.
    pub fn power_is_cut(&self) -> bool {
        self.state.lock().power == Some(0)
    }

    /// From now on there is no room for blocks that hold nothing, as they were never written or were
    /// trimmed since; or there is again. A write to one fails as a full file system's does, and the
    /// blocks before it are written.
    pub fn set_full(&self, full: bool) {
        self.state.lock().full = full;
    }

    /// What became of requests since this was asked last, by kind: those of which there were any.
    pub fn take_served(&self) -> Vec<(RequestKind, Served)> {
        std::mem::take(&mut self.state.lock().served)
    }

    /// Write requests so far.
    pub fn writes(&self) -> u64 {
        self.state.lock().writes
    }

    /// Flushes so far.
    pub fn flushes(&self) -> u64 {
        self.state.lock().flushes
    }
}

/// Choices among `n` by a seed (splitmix64).
pub(super) fn seeded(seed: u64) -> impl FnMut(usize) -> usize {
    let mut x = seed;
    move |n| {
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = x;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

fn injected(what: &'static str, lba: Lba) -> DeviceError {
    DeviceError::Io {
        what,
        lba,
        source: std::io::Error::other("injected failure"),
    }
}

impl State {
    fn served(&mut self, kind: RequestKind) -> &mut Served {
        let known = self.served.iter().position(|(other, _)| *other == kind);
        let at = known.unwrap_or_else(|| {
            self.served.push((kind, Served::default()));
            self.served.len() - 1
        });
        &mut self.served[at].1
    }

    /// Counts a request against the power that is left.
    fn draw_power(
        &mut self,
        kind: RequestKind,
        what: &'static str,
        lba: Lba,
    ) -> Result<(), DeviceError> {
        match &mut self.power {
            Some(0) => {
                self.served(kind).in_the_dark += 1;
                Err(injected(what, lba))
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether a request of this kind is one that fails.
    fn fails(&mut self, asked: RequestKind) -> bool {
        let mut fails = false;
        self.failures.retain_mut(|(kind, left)| {
            let now = kind.holds(asked) && *left == 0;
            *left -= u64::from(kind.holds(asked) && !now);
            fails |= now;
            !now
        });
        self.failed += u64::from(fails);
        let served = self.served(asked);
        served.failed += u64::from(fails);
        served.done += u64::from(!fails);
        fails
    }

    /// How many of these blocks there is room for, if not for all.
    fn room_for(&self, lba: Lba, blocks: u64) -> Option<u64> {
        let holds_nothing = |n: &u64| !self.current.holds(Lba(lba.0 + n));
        self.full.then(|| (0..blocks).find(holds_nothing)).flatten()
    }

    /// A write without room for all of its blocks.
    fn write_what_fits(
        &mut self,
        lba: Lba,
        blocks: &[Block],
        class: IoClass,
    ) -> Result<(), DeviceError> {
        if !blocks.is_empty() {
            self.take(Request::Write {
                lba,
                blocks: blocks.to_vec(),
                class,
                failed: false,
            });
        }
        Err(DeviceError::Io {
            what: "write",
            lba: Lba(lba.0 + blocks.len() as u64),
            source: std::io::ErrorKind::StorageFull.into(),
        })
    }

    /// Does a request and, if that is wanted, remembers it.
    fn take(&mut self, request: Request) {
        self.apply(&request);
        if let Some(recording) = &mut self.recording {
            recording.push(request);
        }
    }

    fn apply(&mut self, request: &Request) {
        self.requests += 1;
        match request {
            Request::Write {
                lba,
                blocks,
                failed,
                ..
            } => self.write(*lba, blocks, *failed),
            Request::Trim { lba, blocks } => {
                for block in lba.0..lba.0 + blocks {
                    self.add(block, None, false);
                    self.current.set(Lba(block), None);
                }
            }
            Request::Flush { failed } => self.flush(*failed),
        }
    }

    fn write(&mut self, lba: Lba, blocks: &[Block], failed: bool) {
        self.writes += 1;
        let done = match (failed, self.requests % 3) {
            (false, _) | (true, 0) => blocks.len(),
            (true, 1) => blocks.len() / 2,
            (true, _) => 0,
        };
        for (i, block) in blocks.iter().enumerate() {
            let at = lba.0 + i as u64;
            self.add(at, Some(block.clone()), failed);
            if i < done {
                self.current.set(Lba(at), Some(block.clone()));
            }
        }
    }

    fn flush(&mut self, failed: bool) {
        self.flushes += 1;
        if failed {
            let all = self.versions.values_mut().flatten();
            all.for_each(|version| version.forgotten = true);
            return;
        }
        let durable = &mut self.durable;
        self.versions
            .retain(|block, versions| match versions.last() {
                Some(last) if !last.forgotten => {
                    durable.set(Lba(*block), last.block.clone());
                    false
                }
                _ => true,
            });
    }

    fn add(&mut self, block: u64, bytes: Option<Block>, forgotten: bool) {
        let version = Version {
            block: bytes,
            forgotten,
        };
        self.versions.entry(block).or_default().push(version);
    }
}

impl BlockDevice for CrashDevice {
    fn capacity_blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&self, lba: Lba, buf: &mut [u8], _class: IoClass) -> Result<(), DeviceError> {
        check_request("read", lba, buf.len(), self.blocks)?;
        let state = &mut *self.state.lock();
        state.draw_power(RequestKind::Read, "read", lba)?;
        if state.fails(RequestKind::Read) {
            return Err(injected("read", lba));
        }
        state.current.read(lba, buf);
        Ok(())
    }

    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        check_request("write", lba, bytes.len(), self.blocks)?;
        let state = &mut *self.state.lock();
        state.draw_power(RequestKind::WriteOf(class), "write", lba)?;
        let failed = state.fails(RequestKind::WriteOf(class));
        let blocks: Vec<Block> = bytes.chunks_exact(BLOCK_SIZE).map(Block::new).collect();
        if let Some(room) = state.room_for(lba, blocks.len() as u64) {
            let served = state.served(RequestKind::WriteOf(class));
            served.without_room += 1;
            served.done -= u64::from(!failed);
            return state.write_what_fits(lba, &blocks[..room as usize], class);
        }
        state.take(Request::Write {
            lba,
            blocks,
            class,
            failed,
        });
        if failed {
            Err(injected("write", lba))
        } else {
            Ok(())
        }
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        check_range("trim", lba, blocks, self.blocks)?;
        let state = &mut *self.state.lock();
        state.draw_power(RequestKind::Trim, "trim", lba)?;
        if state.fails(RequestKind::Trim) {
            return Err(injected("trim", lba));
        }
        state.take(Request::Trim { lba, blocks });
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        let state = &mut *self.state.lock();
        state.draw_power(RequestKind::Flush, "flush", Lba(0))?;
        let failed = state.fails(RequestKind::Flush);
        state.take(Request::Flush { failed });
        if failed {
            Err(injected("flush", Lba(0)))
        } else {
            Ok(())
        }
    }
}
