//! The recorder: hears the engine and the clients, in one order.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use treering_engine::Survey;

use treering_engine::device::{CrashDevice, Image};
use treering_engine::events::{Event, Observer, Shadow};
use treering_engine::sync::Mutex;
use treering_oracle::random::Random;

/// What was heard.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// The engine did something.
    Engine(Event),
    /// A client asks for a key.
    CallGet(u8),
    /// A client asks for the next write, of a key: of a new version, or of `Absent`.
    CallWrite {
        /// Which key.
        key: u8,
        /// Whether it writes `Absent`.
        absent: bool,
    },
    /// A get has its answer: this version, 0 for `Absent`.
    Answered(u64),
    /// A call returns an error.
    Refused,
    /// The power went, and this is left.
    Crashed(Arc<Survey>),
    /// The process ended, and this is what its successor reads.
    Restarted(Arc<Survey>),
}

impl Heard {
    /// All kinds, in the order of a write's life.
    pub const KINDS: [&'static str; 33] = [
        "CallGet",
        "CallWrite",
        "Answered",
        "Refused",
        "Crashed",
        "Restarted",
        "LogAppended",
        "PageChanged",
        "LogFlushBegins",
        "LogWritten",
        "LogFlushed",
        "LogFlushFailed",
        "PageCopied",
        "PageWriting",
        "PageWritten",
        "PageLoaded",
        "PageRead",
        "Acknowledged",
        "Failed",
        "CheckpointFailed",
        "CheckpointBegins",
        "PagesWritten",
        "PagesFlushed",
        "SuperblockWriting",
        "SuperblockWritten",
        "SuperblockFlushed",
        "LogTruncated",
        "RecoveryBegins",
        "RecordRead",
        "PageRedone",
        "RedoEnds",
        "Opened",
        // Never heard in an episode, for the tree is built before it; heard, they are refused.
        "StructureAppended",
    ];

    /// The kind of this one.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Heard::CallGet(_) => "CallGet",
            Heard::CallWrite { .. } => "CallWrite",
            Heard::Answered(_) => "Answered",
            Heard::Refused => "Refused",
            Heard::Crashed(_) => "Crashed",
            Heard::Restarted(_) => "Restarted",
            Heard::Engine(event) => engine_kind(event),
        }
    }
}

fn engine_kind(event: &Event) -> &'static str {
    match event {
        Event::LogAppended { .. } => "LogAppended",
        Event::StructureAppended { .. } => "StructureAppended",
        Event::PageChanged { .. } => "PageChanged",
        Event::LogFlushBegins { .. } => "LogFlushBegins",
        Event::LogWritten { .. } => "LogWritten",
        Event::LogFlushed { .. } => "LogFlushed",
        Event::LogFlushFailed { .. } => "LogFlushFailed",
        Event::PageCopied { .. } => "PageCopied",
        Event::PageWriting { .. } => "PageWriting",
        Event::PageWritten { .. } => "PageWritten",
        Event::PageLoaded { .. } => "PageLoaded",
        Event::PageRead { .. } => "PageRead",
        Event::Acknowledged { .. } => "Acknowledged",
        Event::Failed => "Failed",
        Event::CheckpointFailed => "CheckpointFailed",
        Event::CheckpointBegins { .. } => "CheckpointBegins",
        Event::PagesWritten { .. } => "PagesWritten",
        Event::PagesFlushed { .. } => "PagesFlushed",
        Event::SuperblockWriting { .. } => "SuperblockWriting",
        Event::SuperblockWritten { .. } => "SuperblockWritten",
        Event::SuperblockFlushed { .. } => "SuperblockFlushed",
        Event::LogTruncated { .. } => "LogTruncated",
        Event::RecoveryBegins { .. } => "RecoveryBegins",
        Event::RecordRead { .. } => "RecordRead",
        Event::PageRedone { .. } => "PageRedone",
        Event::RedoEnds => "RedoEnds",
        Event::Opened => "Opened",
        Event::Shadow(event) => shadow_kind(event),
    }
}

fn shadow_kind(event: &Shadow) -> &'static str {
    match event {
        Shadow::Chose { .. } => "Chose",
        Shadow::Loaded { .. } => "Loaded",
        Shadow::WritesDelta { .. } => "WritesDelta",
        Shadow::WritesWhole { .. } => "WritesWhole",
        Shadow::Trims { .. } => "Trims",
        Shadow::Evicted { .. } => "Evicted",
        Shadow::DeviceFlushed => "DeviceFlushed",
        Shadow::DeviceFlushFailed => "DeviceFlushFailed",
    }
}

/// What was heard, and on behalf of which client; `None`: of none, a pump or a recovery.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The client.
    pub client: Option<u8>,
    /// What.
    pub heard: Heard,
}

thread_local! {
    /// The client that this thread works for.
    static CLIENT: Cell<Option<u8>> = const { Cell::new(None) };
}

/// Works for `client` while `work` runs.
pub fn on_behalf_of<T>(client: u8, work: impl FnOnce() -> T) -> T {
    CLIENT.set(Some(client));
    let done = work();
    CLIENT.set(None);
    done
}

/// The power fails at an event.
struct Trap {
    /// Events until then.
    left: u64,
    device: Arc<CrashDevice>,
    seed: u64,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    writes: u64,
    trap: Option<Trap>,
    /// What the trap's crash left; nothing is heard any more.
    image: Option<Image>,
    /// Whether the store of shadowed pages is heard, too.
    shadows: bool,
    /// Where whoever is heard waits a little, for others to come in between; none: nobody does.
    dawdle: Option<Random>,
}

/// Hears an engine. The order of entries is the order in which things happened.
#[derive(Default)]
pub struct Recorder {
    state: Mutex<State>,
}

impl Recorder {
    /// One that also hears what is [`Event::Shadow`].
    #[must_use]
    pub fn of_shadows() -> Recorder {
        let recorder = Recorder::default();
        recorder.state.lock().shadows = true;
        recorder
    }

    /// Hears something that the engine cannot tell.
    pub fn hear(&self, client: Option<u8>, heard: Heard) {
        self.state.lock().hear(client, heard);
    }

    /// From now on whoever is heard sometimes waits a little, under whatever latch it holds:
    /// threads then meet in more ways.
    pub fn dawdle(&self, seed: u64) {
        self.state.lock().dawdle = Some(Random::new(seed));
    }

    /// Whoever dawdles sometimes comes late to tell that a flush has ended.
    fn listen_late(&self) {
        let late = {
            let mut state = self.state.lock();
            state.dawdle.as_mut().is_some_and(|rng| rng.one_in(8))
        };
        if late {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// A client asks for a write; returns the number of the write, which is its version.
    pub fn call_write(&self, client: u8, key: u8, absent: bool) -> u64 {
        let mut state = self.state.lock();
        if state.image.is_none() {
            state.writes += 1;
        }
        state.hear(Some(client), Heard::CallWrite { key, absent });
        state.writes
    }

    /// After `events` more events the power of `device` fails: the recorder takes what is left, by
    /// `seed`, and hears nothing more until [`Recorder::sprung`].
    pub fn set_trap(&self, events: u64, device: Arc<CrashDevice>, seed: u64) {
        self.state.lock().trap = Some(Trap {
            left: events,
            device,
            seed,
        });
    }

    /// What the trap caught, if it has sprung; sets it no more and listens again.
    pub fn sprung(&self) -> Option<Image> {
        let mut state = self.state.lock();
        state.image.take().inspect(|_| state.trap = None)
    }

    /// Takes the trap away.
    pub fn clear_trap(&self) {
        self.state.lock().trap = None;
    }

    /// All that was heard since the last call.
    pub fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.state.lock().entries)
    }
}

impl State {
    fn hear(&mut self, client: Option<u8>, heard: Heard) {
        if self.image.is_some() {
            return;
        }
        self.entries.push(Entry { client, heard });
        let Some(trap) = &mut self.trap else { return };
        match trap.left.checked_sub(1) {
            Some(left) => trap.left = left,
            None => self.image = Some(trap.device.crash_seeded(trap.seed)),
        }
    }
}

/// What others write from the flush on until this is heard, the flush did not cover.
fn ends_a_flush(event: &Event) -> bool {
    matches!(
        event,
        Event::LogFlushed { .. } | Event::PagesFlushed { .. } | Event::SuperblockFlushed { .. }
    )
}

impl Observer for Recorder {
    fn event(&self, event: Event) {
        if ends_a_flush(&event) {
            self.listen_late();
        }
        let mut state = self.state.lock();
        if matches!(event, Event::Shadow(_)) && !state.shadows {
            return;
        }
        state.hear(CLIENT.get(), Heard::Engine(event));
        let choice = state.dawdle.as_mut().map(|rng| rng.below(40));
        drop(state);
        match choice {
            Some(0) => std::thread::sleep(Duration::from_micros(30)),
            Some(1..=8) => std::thread::yield_now(),
            _ => {}
        }
    }
}
