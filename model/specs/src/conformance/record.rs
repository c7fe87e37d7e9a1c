//! The recorder: records the events of the engine and of the clients in one order.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use treering_engine::Survey;

use treering_engine::device::{CrashDevice, Image};
use treering_engine::events::{Event, Observer, Shadow};
use treering_engine::sync::Mutex;
use treering_oracle::random::Random;

/// A recorded event.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// An event of the engine.
    Engine(Event),
    /// A client calls a get of a key.
    CallGet(u8),
    /// A client calls the next write, of a key: with a new version, or with `Absent`.
    CallWrite {
        /// The key.
        key: u8,
        /// Whether it writes `Absent`.
        absent: bool,
    },
    /// A get returned this version. 0 stands for `Absent`.
    Answered(u64),
    /// A call returned an error.
    Refused,
    /// The power failed, and this is what remained.
    Crashed(Arc<Survey>),
    /// The process was ended, and this is what the next process reads.
    Restarted(Arc<Survey>),
}

impl Heard {
    /// The kinds of all events, in the order of a write's life.
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
        // These do not occur in an episode, whose tree is built before it. If they do, they are
        // refused.
        "StructureAppended",
    ];

    /// The kind of this event.
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

/// A recorded event and its client. The client of a pump or a recovery is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The client.
    pub client: Option<u8>,
    /// The event.
    pub heard: Heard,
}

thread_local! {
    /// The client that this thread works for.
    static CLIENT: Cell<Option<u8>> = const { Cell::new(None) };
}

/// Runs `work` on behalf of `client`.
pub(crate) fn on_behalf_of<T>(client: u8, work: impl FnOnce() -> T) -> T {
    CLIENT.set(Some(client));
    let done = work();
    CLIENT.set(None);
    done
}

/// Makes the power fail at an event.
struct Trap {
    /// The number of events until then.
    left: u64,
    device: Arc<CrashDevice>,
    seed: u64,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    writes: u64,
    trap: Option<Trap>,
    /// What the crash of the trap left. Nothing more is recorded once it is set.
    image: Option<Image>,
    /// Whether the events of the store of shadowed pages are recorded too.
    shadows: bool,
    /// Random delays of the recorded threads, so that others come in between. `None` for no delays.
    dawdle: Option<Random>,
}

/// Records the events of an engine. The order of the entries is the order in which things happened.
#[derive(Default)]
pub struct Recorder {
    state: Mutex<State>,
}

impl Recorder {
    /// A recorder that also records [`Event::Shadow`].
    #[must_use]
    pub(crate) fn of_shadows() -> Recorder {
        let recorder = Recorder::default();
        recorder.state.lock().shadows = true;
        recorder
    }

    /// Records an event that the engine cannot report.
    pub(crate) fn hear(&self, client: Option<u8>, heard: Heard) {
        self.state.lock().hear(client, heard);
    }

    /// From now on, sometimes delays a thread that reports an event, with whatever latch it holds,
    /// so that threads interleave in more ways.
    pub(crate) fn dawdle(&self, seed: u64) {
        self.state.lock().dawdle = Some(Random::new(seed));
    }

    /// With delays on, sometimes delays the report that a flush has ended.
    fn listen_late(&self) {
        let late = {
            let mut state = self.state.lock();
            state.dawdle.as_mut().is_some_and(|rng| rng.one_in(8))
        };
        if late {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Records that a client calls a write. Returns the number of the write, which is its version.
    pub(crate) fn call_write(&self, client: u8, key: u8, absent: bool) -> u64 {
        let mut state = self.state.lock();
        if state.image.is_none() {
            state.writes += 1;
        }
        state.hear(Some(client), Heard::CallWrite { key, absent });
        state.writes
    }

    /// Makes the power of `device` fail after `events` more events. The recorder then takes one of
    /// the possible contents, chosen by `seed`, and records nothing more until
    /// [`Recorder::sprung`].
    pub(crate) fn set_trap(&self, events: u64, device: Arc<CrashDevice>, seed: u64) {
        self.state.lock().trap = Some(Trap {
            left: events,
            device,
            seed,
        });
    }

    /// Returns what the trap has caught, if it has sprung. Removes the trap, and records again.
    pub fn sprung(&self) -> Option<Image> {
        let mut state = self.state.lock();
        state.image.take().inspect(|_| state.trap = None)
    }

    /// Removes the trap.
    pub(crate) fn clear_trap(&self) {
        self.state.lock().trap = None;
    }

    /// Takes all entries since the last call.
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

/// Whether an event ends a flush. The flush does not cover what other threads write between its
/// start and this event.
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
