//! [`MemPm`], a persistent memory in ordinary memory that simulates crashes.
//!
//! It keeps the durable bytes, the bytes that loads see, and for each word in between all values
//! that a crash may leave. The caller chooses word by word which one survives, as with
//! [`super::super::CrashDevice`]. Like that device, it can record its requests: another device that
//! applies them one by one goes through every state that this one was in.

use super::doubt::Doubt;
use super::image::PmImage;
use super::{LINE_SIZE, PmDevice, WORD_SIZE, check_bytes};
use crate::device::DeviceError;
use crate::device::crash::seeded;
use crate::sync::Mutex;

/// A recorded request: one that changed data or ordered changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PmRequest {
    /// A store into the CPU cache.
    Store {
        /// First byte.
        offset: u64,
        /// The bytes stored.
        bytes: Box<[u8]>,
    },
    /// A write-back of a line.
    WriteBack {
        /// Any byte of the line.
        offset: u64,
    },
    /// A store that bypasses the cache.
    NtStore {
        /// First byte.
        offset: u64,
        /// The bytes stored.
        bytes: Box<[u8]>,
    },
    /// A fence.
    Fence,
}

struct State {
    durable: PmImage,
    current: PmImage,
    doubt: Doubt,
    recording: Option<Vec<PmRequest>>,
    requests: u64,
    /// Counts since the last call of `take_served`: stores, stores past the cache, write-backs,
    /// fences.
    served: [u64; 4],
    /// The number of requests until the power goes off.
    power: Option<u64>,
    /// Whether a request came after the power went off.
    dark: bool,
}

/// A small persistent memory, for simulating crashes.
///
/// ```
/// use treering_engine::device::{MemPm, PmDevice};
///
/// # fn main() -> Result<(), treering_engine::device::DeviceError> {
/// let memory = MemPm::new(4096);
/// memory.store(0, &1_u64.to_le_bytes())?;
/// memory.clwb(0)?;
/// memory.fence(); // the first word is persistent now
/// memory.store(0, &2_u64.to_le_bytes())?;
///
/// // A crash may leave the persistent value or the one that is still in the CPU cache.
/// assert_eq!(memory.in_doubt(), [(0, 2)]);
/// for (choice, expected) in [(0, 1), (1, 2)] {
///     let after = MemPm::from_image(memory.crash(&mut |_| choice));
///     let mut word = [0; 8];
///     after.load(0, &mut word)?;
///     assert_eq!(u64::from_le_bytes(word), expected);
/// }
/// # Ok(())
/// # }
/// ```
pub struct MemPm {
    len: u64,
    state: Mutex<State>,
}

impl MemPm {
    /// Creates a memory of `len` zero bytes, rounded up to whole lines.
    pub fn new(len: u64) -> MemPm {
        MemPm::from_image(PmImage::zeroed(len.next_multiple_of(LINE_SIZE as u64)))
    }

    /// Creates a memory that holds `image` persistently, for example what [`MemPm::crash`]
    /// returned. The image's length must be a whole number of lines.
    pub fn from_image(image: impl Into<PmImage>) -> MemPm {
        let durable = image.into();
        let len = durable.len();
        assert!(len.is_multiple_of(LINE_SIZE as u64), "whole lines");
        let state = State {
            current: durable.clone(),
            durable,
            doubt: Doubt::default(),
            recording: None,
            requests: 0,
            served: [0; 4],
            power: None,
            dark: false,
        };
        MemPm {
            len,
            state: Mutex::new(state),
        }
    }

    /// Returns what is persistent if power fails now. For each word in doubt, in order of address,
    /// `choose(n)` picks one of `n` outcomes: 0 is the durable value, the others are values stored
    /// since, the newest last.
    pub fn crash(&self, choose: &mut dyn FnMut(usize) -> usize) -> PmImage {
        let state = self.state.lock();
        let mut image = state.durable.clone();
        for (word, outcomes) in state.doubt.outcomes(&state.durable) {
            let pick = choose(outcomes.len() + 1);
            if let Some(value) = pick.checked_sub(1).and_then(|i| outcomes.get(i)) {
                image.set_word(word, *value);
            }
        }
        image
    }

    /// As [`MemPm::crash`], with choices generated from a seed (splitmix64).
    pub fn crash_seeded(&self, seed: u64) -> PmImage {
        self.crash(&mut seeded(seed))
    }

    /// Returns the number of possible outcomes of each word that has more than one, in order of
    /// address.
    pub fn outcomes(&self) -> Vec<usize> {
        self.in_doubt().into_iter().map(|(_, n)| n).collect()
    }

    /// Returns the offset and the number of possible outcomes of each word that has more than one,
    /// in order of address.
    pub fn in_doubt(&self) -> Vec<(u64, usize)> {
        let state = self.state.lock();
        let words = state.doubt.outcomes(&state.durable);
        let words = words.map(|(word, others)| (word * WORD_SIZE as u64, others.len() + 1));
        words.collect()
    }

    /// Starts recording all requests.
    pub fn record(&self) {
        self.state.lock().recording = Some(Vec::new());
    }

    /// Returns the requests recorded so far and clears the recording, which continues.
    pub fn take_recording(&self) -> Vec<PmRequest> {
        let mut state = self.state.lock();
        let recording = state.recording.as_mut().map(std::mem::take);
        recording.unwrap_or_default()
    }

    /// Returns the number of stores, write-backs and fences so far. In a recording started at once,
    /// it is the index of the next request.
    pub fn requests(&self) -> u64 {
        self.state.lock().requests
    }

    /// Returns the number of requests since the last call, by kind: stores, stores past the cache,
    /// write-backs and fences.
    pub fn take_served(&self) -> [u64; 4] {
        std::mem::take(&mut self.state.lock().served)
    }

    /// Performs a request recorded on another device. The request must fit within this device.
    pub fn apply(&self, request: &PmRequest) {
        self.state.lock().apply(request);
    }

    /// Cuts the power after `n` more requests. A store is not told: later requests return as usual,
    /// and loads see their effect, but they leave nothing behind.
    pub fn cut_power_in(&self, n: u64) {
        self.state.lock().power = Some(n);
    }

    /// Returns whether the power is off and a request has come since.
    pub fn power_is_cut(&self) -> bool {
        self.state.lock().dark
    }

    fn check(&self, what: &'static str, offset: u64, len: usize) -> Result<(), DeviceError> {
        check_bytes(what, offset, len, self.len)
    }
}

/// Returns the words that `len` bytes at `offset` touch.
fn words(offset: u64, len: usize) -> std::ops::Range<u64> {
    if len == 0 {
        return 0..0;
    }
    let word = WORD_SIZE as u64;
    offset / word..(offset + len as u64).div_ceil(word)
}

/// Returns word number `word` after a store of `bytes` at `offset`, if it was `before` until then.
fn merged(word: u64, before: u64, offset: u64, bytes: &[u8]) -> u64 {
    let mut merged = before.to_le_bytes();
    for (at, byte) in (word * WORD_SIZE as u64..).zip(&mut merged) {
        let stored = at.checked_sub(offset).and_then(|i| bytes.get(i as usize));
        *byte = stored.copied().unwrap_or(*byte);
    }
    u64::from_le_bytes(merged)
}

impl State {
    /// Counts a request against the remaining power. Returns whether there was any.
    fn draw_power(&mut self) -> bool {
        match &mut self.power {
            Some(0) => self.dark = true,
            Some(left) => *left -= 1,
            None => {}
        }
        !self.dark
    }

    /// Performs a request, and records it if recording is on.
    fn take(&mut self, request: PmRequest) {
        if !self.draw_power() {
            // The power is off: only loads see the store.
            if let PmRequest::Store { offset, bytes } | PmRequest::NtStore { offset, bytes } =
                &request
            {
                self.store(*offset, bytes, |_, _, _| {});
            }
            return;
        }
        self.apply(&request);
        if let Some(recording) = &mut self.recording {
            recording.push(request);
        }
    }

    fn apply(&mut self, request: &PmRequest) {
        self.requests += 1;
        let kind = match request {
            PmRequest::Store { .. } => 0,
            PmRequest::NtStore { .. } => 1,
            PmRequest::WriteBack { .. } => 2,
            PmRequest::Fence => 3,
        };
        self.served[kind] += 1;
        match request {
            PmRequest::Store { offset, bytes } => self.store(*offset, bytes, Doubt::store),
            PmRequest::NtStore { offset, bytes } => {
                self.store(*offset, bytes, Doubt::store);
                // Only these words: the cache keeps what it holds of the rest of their lines.
                self.doubt.write_back(words(*offset, bytes.len()));
            }
            PmRequest::WriteBack { offset } => {
                self.doubt.write_back_line(offset / LINE_SIZE as u64);
            }
            PmRequest::Fence => self.doubt.fence(&mut self.durable),
        }
    }

    /// Stores bytes that loads then see, and calls `note` for each word that changed. A word that
    /// did not change is in no more doubt than before.
    fn store(&mut self, offset: u64, bytes: &[u8], note: impl Fn(&mut Doubt, u64, u64)) {
        for word in words(offset, bytes.len()) {
            let before = self.current.word(word);
            let after = merged(word, before, offset, bytes);
            if after != before {
                note(&mut self.doubt, word, after);
                self.current.set_word(word, after);
            }
        }
    }
}

impl PmDevice for MemPm {
    fn len(&self) -> u64 {
        self.len
    }

    fn load(&self, offset: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        self.check("load", offset, buf.len())?;
        self.state.lock().current.read(offset, buf);
        Ok(())
    }

    fn store(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check("store", offset, bytes.len())?;
        let bytes = bytes.into();
        self.state.lock().take(PmRequest::Store { offset, bytes });
        Ok(())
    }

    fn clwb(&self, offset: u64) -> Result<(), DeviceError> {
        self.check("clwb", offset, 1)?;
        self.state.lock().take(PmRequest::WriteBack { offset });
        Ok(())
    }

    fn ntstore(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check("ntstore", offset, bytes.len())?;
        let bytes = bytes.into();
        self.state.lock().take(PmRequest::NtStore { offset, bytes });
        Ok(())
    }

    fn fence(&self) {
        self.state.lock().take(PmRequest::Fence);
    }
}
