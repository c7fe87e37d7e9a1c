//! Persistent memory in ordinary memory, which crashes when it is told to.
//!
//! It keeps what is durable, what loads see, and for each word between the two every value that a crash may leave. Which one survives
//! is the caller's choice word by word, as with [`super::super::CrashDevice`]; and like that device it can record its requests, so that
//! another one that applies them one by one goes through every state that this one was in.

use super::doubt::Doubt;
use super::image::PmImage;
use super::{LINE_SIZE, PmDevice, WORD_SIZE, check_bytes};
use crate::device::DeviceError;
use crate::device::crash::seeded;
use crate::sync::Mutex;

/// A request that changed something or ordered changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PmRequest {
    /// A store into the CPU cache.
    Store {
        /// First byte.
        offset: u64,
        /// What was stored.
        bytes: Box<[u8]>,
    },
    /// A write-back of a line.
    WriteBack {
        /// A byte of the line.
        offset: u64,
    },
    /// A store past the cache.
    NtStore {
        /// First byte.
        offset: u64,
        /// What was stored.
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
    /// Of them, since somebody asked last: stores, stores past the cache, write-backs, fences.
    served: [u64; 4],
    /// Requests until the power goes.
    power: Option<u64>,
    /// A request came when it had gone.
    dark: bool,
}

/// A small persistent memory. See the module's story.
pub struct MemPm {
    len: u64,
    state: Mutex<State>,
}

impl MemPm {
    /// `len` zero bytes, rounded up to whole lines.
    pub fn new(len: u64) -> MemPm {
        MemPm::from_image(PmImage::zeroed(len.next_multiple_of(LINE_SIZE as u64)))
    }

    /// Holds `image` persistently, for instance what [`MemPm::crash`] left. Its length must be a whole number of lines.
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

    /// What is persistent if power fails now. For each word in doubt, in order of address, `choose(n)` picks one of `n` outcomes: 0 is
    /// the durable value, the others what was stored since, the newest last.
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

    /// As [`MemPm::crash`], choosing by a seed (splitmix64).
    pub fn crash_seeded(&self, seed: u64) -> PmImage {
        self.crash(&mut seeded(seed))
    }

    /// For each word that a crash may leave in several ways, in order of address, in how many.
    pub fn outcomes(&self) -> Vec<usize> {
        self.in_doubt().into_iter().map(|(_, n)| n).collect()
    }

    /// For each word that a crash may leave in several ways, in order of address: its offset, and in how many.
    pub fn in_doubt(&self) -> Vec<(u64, usize)> {
        let state = self.state.lock();
        let words = state.doubt.outcomes(&state.durable);
        let words = words.map(|(word, others)| (word * WORD_SIZE as u64, others.len() + 1));
        words.collect()
    }

    /// From now on every request is recorded.
    pub fn record(&self) {
        self.state.lock().recording = Some(Vec::new());
    }

    /// What was recorded; the recording goes on, empty.
    pub fn take_recording(&self) -> Vec<PmRequest> {
        let mut state = self.state.lock();
        let recording = state.recording.as_mut().map(std::mem::take);
        recording.unwrap_or_default()
    }

    /// Stores, write-backs and fences so far: the place of the next one in a recording that began at once.
    pub fn requests(&self) -> u64 {
        self.state.lock().requests
    }

    /// Requests since this was asked last, by kind: stores, stores past the cache, write-backs and
    /// fences.
    pub fn take_served(&self) -> [u64; 4] {
        std::mem::take(&mut self.state.lock().served)
    }

    /// Does what another device did. The request must fit this one.
    pub fn apply(&self, request: &PmRequest) {
        self.state.lock().apply(request);
    }

    /// After `n` more requests the power goes. As nobody tells a store so, later requests return as ever and loads see them, but they leave
    /// nothing behind.
    pub fn cut_power_in(&self, n: u64) {
        self.state.lock().power = Some(n);
    }

    /// Whether the power has gone and a request has come after that.
    pub fn power_is_cut(&self) -> bool {
        self.state.lock().dark
    }

    fn check(&self, what: &'static str, offset: u64, len: usize) -> Result<(), DeviceError> {
        check_bytes(what, offset, len, self.len)
    }
}

/// The words that `len` bytes at `offset` touch.
fn words(offset: u64, len: usize) -> std::ops::Range<u64> {
    if len == 0 {
        return 0..0;
    }
    let word = WORD_SIZE as u64;
    offset / word..(offset + len as u64).div_ceil(word)
}

/// A word with those bytes replaced that a store at `offset` brings.
fn merged(word: u64, before: u64, offset: u64, bytes: &[u8]) -> u64 {
    let mut merged = before.to_le_bytes();
    for (at, byte) in (word * WORD_SIZE as u64..).zip(&mut merged) {
        let stored = at.checked_sub(offset).and_then(|i| bytes.get(i as usize));
        *byte = stored.copied().unwrap_or(*byte);
    }
    u64::from_le_bytes(merged)
}

impl State {
    /// Counts a request against the power that is left; whether there was any.
    fn draw_power(&mut self) -> bool {
        match &mut self.power {
            Some(0) => self.dark = true,
            Some(left) => *left -= 1,
            None => {}
        }
        !self.dark
    }

    /// Does a request and, if that is wanted, remembers it.
    fn take(&mut self, request: PmRequest) {
        if !self.draw_power() {
            // Only those who still look see it.
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
                // These words only: what the cache holds of the rest of their lines stays there.
                self.doubt.write_back(words(*offset, bytes.len()));
            }
            PmRequest::WriteBack { offset } => {
                self.doubt.write_back_line(offset / LINE_SIZE as u64);
            }
            PmRequest::Fence => self.doubt.fence(&mut self.durable),
        }
    }

    /// Stores what loads see, and tells `note` of each word that changed. One that did not is in no more doubt than it was.
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
