//! A device that simulates crashes: for every block written since the last good flush, it keeps all
//! versions that a crash may leave.
//!
//! ```text
//!            write / trim               flush                 crash
//! durable ───────────────▶ versions ───────────▶ durable      any one of: durable, each version
//!                             │ failed flush
//!                             ▼
//!                         forgotten: only rewriting makes them durable, no later flush (BUGS D5)
//! ```
//!
//! A trim is a version of zeros. The caller chooses block by block which version survives, so a
//! seed, a model checker or an exhaustive loop can drive the choice. Failures can be injected at
//! the n-th request of a kind from now. The medium can also be full, like a thin volume or a file
//! system: it then accepts writes to blocks that already hold data, and refuses all others.
//!
//! Trims are done at once, unless the device is told to take them for hints ([`Trims`]).
//!
//! The device can record its requests. Applied one by one to another device, they take it through
//! every state that this device was in. So a program has to run only once, however many crashes are
//! tried.

use std::collections::BTreeMap;

use super::hints::{Hints, Trims};
use super::image::{Block, Image};
use super::requests::{Request, RequestKind, Served};
use super::{BlockDevice, DeviceError, check_range, check_request};
use crate::sync::Mutex;
use crate::types::{BLOCK_SIZE, IoClass, Lba};

/// Contents that may be on the medium instead of the durable bytes. `None` is a trimmed block.
#[derive(Clone)]
struct Version {
    block: Option<Block>,
    /// Whether it was written before a failed flush, or by a failed write.
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
    /// Requests that have failed because of an injected failure.
    failed: u64,
    /// The number of requests of each kind that succeed before one fails. At most one entry per
    /// kind.
    failures: Vec<(RequestKind, u64)>,
    /// Outcomes of requests, by kind.
    served: Vec<(RequestKind, Served)>,
    /// The number of requests of any kind that are served before the power goes off.
    power: Option<u64>,
    /// Whether writes to blocks that hold no data are refused.
    full: bool,
    /// Trims, if they are taken for hints.
    hints: Option<Hints>,
}

/// A small in-memory device with a volatile write cache, for simulating crashes.
///
/// ```
/// use treering_engine::device::{BlockDevice, CrashDevice};
/// use treering_engine::{BLOCK_SIZE, IoClass, Lba};
///
/// # fn main() -> Result<(), treering_engine::device::DeviceError> {
/// let device = CrashDevice::new(2);
/// device.write(Lba(0), &[1; BLOCK_SIZE], IoClass::Page)?;
/// device.flush()?;
/// device.write(Lba(0), &[2; BLOCK_SIZE], IoClass::Page)?;
///
/// // Block 0 has two possible outcomes: the durable bytes, and the version that was not flushed.
/// assert_eq!(device.outcomes(), [2]);
/// for (choice, expected) in [(0, 1), (1, 2)] {
///     let after = CrashDevice::from_image(device.crash(&mut |_| choice));
///     let mut block = [0; BLOCK_SIZE];
///     after.read(Lba(0), &mut block, IoClass::Page)?;
///     assert_eq!(block[0], expected);
/// }
/// # Ok(())
/// # }
/// ```
pub struct CrashDevice {
    blocks: u64,
    state: Mutex<State>,
}

impl CrashDevice {
    /// Creates a device of `blocks` zero blocks, all durable.
    pub fn new(blocks: u64) -> CrashDevice {
        CrashDevice::from_image(Image::zeroed(blocks))
    }

    /// Creates a device that holds `image` durably, for example what [`CrashDevice::crash`]
    /// returned.
    pub fn from_image(image: impl Into<Image>) -> CrashDevice {
        let durable = image.into();
        CrashDevice::new_of(durable.clone(), durable, BTreeMap::new())
    }

    /// Returns what the next process finds if this one is killed now: a device with the same
    /// contents, of which the same is not durable yet. Nothing will fail on it, and it does trims
    /// at once.
    ///
    /// ```
    /// use treering_engine::device::{BlockDevice, CrashDevice};
    /// use treering_engine::{BLOCK_SIZE, IoClass, Lba};
    ///
    /// # fn main() -> Result<(), treering_engine::device::DeviceError> {
    /// let device = CrashDevice::new(1);
    /// device.write(Lba(0), &[1; BLOCK_SIZE], IoClass::Page)?;
    /// let next = device.fork();
    /// let mut block = [0; BLOCK_SIZE];
    /// next.read(Lba(0), &mut block, IoClass::Page)?;
    /// assert_eq!(block[0], 1);
    /// assert_eq!(next.outcomes(), [2], "a power cut may still lose it");
    /// # Ok(())
    /// # }
    /// ```
    pub fn fork(&self) -> CrashDevice {
        let state = self.state.lock();
        CrashDevice::new_of(
            state.durable.clone(),
            state.current.clone(),
            state.versions.clone(),
        )
    }

    fn new_of(
        durable: Image,
        current: Image,
        versions: BTreeMap<u64, Vec<Version>>,
    ) -> CrashDevice {
        let state = State {
            current,
            versions,
            recording: None,
            requests: 0,
            writes: 0,
            flushes: 0,
            failed: 0,
            failures: Vec::new(),
            served: Vec::new(),
            power: None,
            full: false,
            hints: None,
            durable,
        };
        CrashDevice {
            blocks: state.durable.blocks(),
            state: Mutex::new(state),
        }
    }

    /// Returns what the medium holds if power fails now. For each block with unflushed versions, in
    /// order of address, `choose(n)` picks one of `n` outcomes: 0 is the durable bytes, and `i` is
    /// the i-th version since, oldest first.
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

    /// Returns the number of possible outcomes of each block that has more than one, in order of
    /// address.
    pub fn outcomes(&self) -> Vec<usize> {
        let state = self.state.lock();
        state.versions.values().map(|v| v.len() + 1).collect()
    }

    /// As [`CrashDevice::crash`], with choices generated from a seed (splitmix64).
    pub fn crash_seeded(&self, seed: u64) -> Image {
        self.crash(&mut seeded(seed))
    }

    /// Starts recording all requests.
    pub fn record(&self) {
        self.state.lock().recording = Some(Vec::new());
    }

    /// Returns the requests recorded so far and clears the recording, which continues.
    pub fn take_recording(&self) -> Vec<Request> {
        let mut state = self.state.lock();
        state
            .recording
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Returns the number of writes, trims and flushes so far. In a recording started at once, it
    /// is the index of the next request.
    pub fn requests(&self) -> u64 {
        self.state.lock().requests
    }

    /// Performs a request recorded on another device. The request must fit within this device.
    pub fn apply(&self, request: &Request) {
        self.state.lock().apply(request);
    }

    /// Makes the `n`-th write from now fail (0 is the next one), see [`CrashDevice::fail_in`].
    pub fn fail_write_in(&self, n: u64) {
        self.fail_in(RequestKind::Write, n);
    }

    /// Makes the `n`-th flush from now fail (0 is the next one).
    pub fn fail_flush_in(&self, n: u64) {
        self.fail_in(RequestKind::Flush, n);
    }

    /// Makes the `n`-th request of a kind from now fail (0 is the next one). A failed write has
    /// written none of its blocks, the first half, or all of them, in a third of the cases each. A
    /// failed read or trim changes nothing. Only one failure of each kind can be pending; a new one
    /// replaces it.
    pub fn fail_in(&self, kind: RequestKind, n: u64) {
        let failures = &mut self.state.lock().failures;
        failures.retain(|(other, _)| *other != kind);
        failures.push((kind, n));
    }

    /// Returns the pending failures: their kinds, and how many requests of each kind succeed
    /// before.
    pub fn failures_ahead(&self) -> Vec<(RequestKind, u64)> {
        self.state.lock().failures.clone()
    }

    /// Returns the number of requests that have failed because of an injected failure.
    pub fn failed(&self) -> u64 {
        self.state.lock().failed
    }

    /// Returns whether a failure or a power cut is still pending.
    pub fn has_failures_ahead(&self) -> bool {
        let state = self.state.lock();
        !state.failures.is_empty() || state.power.is_some()
    }

    /// Cuts the power after `n` more requests: the next request and all later ones fail and change
    /// nothing.
    pub fn cut_power_in(&self, n: u64) {
        self.state.lock().power = Some(n);
    }

    /// Returns whether the power is off.
    pub fn power_is_cut(&self) -> bool {
        self.state.lock().power == Some(0)
    }

    /// Sets whether the medium is full. A full medium has no room for blocks that hold no data
    /// because they were never written or were trimmed. A write to such a block fails as on a full
    /// file system, after writing the blocks before it.
    pub fn set_full(&self, full: bool) {
        self.state.lock().full = full;
    }

    /// Sets what becomes of trims from here on. Trims that were to be done later are forgotten.
    pub fn set_trims(&self, trims: Trims) {
        self.state.lock().hints = match trims {
            Trims::Done => None,
            Trims::Hints(seed) => Some(Hints::new(seed)),
        };
    }

    /// Returns the outcomes of requests since the last call, for each kind that occurred.
    pub fn take_served(&self) -> Vec<(RequestKind, Served)> {
        std::mem::take(&mut self.state.lock().served)
    }

    /// Returns the number of writes so far.
    pub fn writes(&self) -> u64 {
        self.state.lock().writes
    }

    /// Returns the number of flushes so far.
    pub fn flushes(&self) -> u64 {
        self.state.lock().flushes
    }
}

/// Returns a generator of choices below `n` from a seed (splitmix64).
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

    /// Counts a request against the remaining power, and fails it if the power is off.
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

    /// Returns whether a request of this kind is to fail, and counts its outcome.
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

    /// Returns how many of these blocks fit, or `None` if all do.
    fn room_for(&self, lba: Lba, blocks: u64) -> Option<u64> {
        let holds_nothing = |n: &u64| !self.current.holds(Lba(lba.0 + n));
        self.full.then(|| (0..blocks).find(holds_nothing)).flatten()
    }

    /// Writes the blocks that fit and returns the error for the first that does not.
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

    /// Performs a request, and records it if recording is on.
    fn take(&mut self, request: Request) {
        self.apply(&request);
        if let Some(recording) = &mut self.recording {
            recording.push(request);
        }
    }

    fn trim(&mut self, blocks: std::ops::Range<u64>) {
        if !blocks.is_empty() {
            self.take(Request::Trim {
                lba: Lba(blocks.start),
                blocks: blocks.end - blocks.start,
            });
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
        if let Some(hints) = &mut self.hints {
            hints.written(lba.0..lba.0 + blocks.len() as u64);
        }
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
        let now = match &mut state.hints {
            None => lba.0..lba.0 + blocks,
            Some(hints) => hints.take(lba.0..lba.0 + blocks),
        };
        state.trim(now);
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        let state = &mut *self.state.lock();
        state.draw_power(RequestKind::Flush, "flush", Lba(0))?;
        let failed = state.fails(RequestKind::Flush);
        if let (Some(hints), false) = (&mut state.hints, failed) {
            let due = hints.due();
            due.into_iter()
                .for_each(|block| state.trim(block..block + 1));
        }
        state.take(Request::Flush { failed });
        if failed {
            Err(injected("flush", Lba(0)))
        } else {
            Ok(())
        }
    }
}
