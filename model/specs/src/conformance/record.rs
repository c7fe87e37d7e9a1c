//! The recorder: records the events of the engine and of the clients in one order.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use treering_engine::device::{CrashDevice, Image};
use treering_engine::events::{Cow, Event, Leaf, Observer, Redo, Shadow, Snapshot};
use treering_engine::sync::Mutex;
use treering_engine::{Error, LogPacking, Survey};

use super::tears::Tears;
pub use super::trap::Caught;
use super::trap::{self, Trap};
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
    /// What the users of a store whose log is judged do.
    Log(LogUse),
    /// What the users of a store whose index snapshot is judged do.
    Tree(TreeUse),
    /// What the users of a store whose leaves' layouts are judged do.
    Leaf(LeafUse),
}

/// What clients and owners of a store do, in terms of its leaves' layouts.
#[derive(Clone, Debug, PartialEq)]
pub enum LeafUse {
    /// The store is opened. Its options allow dense leaves, or do not.
    Opens(bool),
    /// The value of the write that the next event calls has so many bytes.
    Sized(u64),
    /// A get returned this value, by its digest; 0 stands for `Absent`.
    Got(u64),
    /// A call returned this error.
    Failed(String),
}

/// What clients and owners of a store do, in terms of its tree.
#[derive(Clone, Debug, PartialEq)]
pub enum TreeUse {
    /// A client calls a scan of all keys; if set, downwards.
    Scans(bool),
    /// A client's scan goes on, for at most this many records.
    Fetches(u64),
    /// A client's scan returned these keys and versions.
    Scanned(Vec<(u8, u64)>),
    /// The device loses the write that the last event announced.
    Loses,
    /// The store is opened.
    Opens,
    /// The store refuses to open or to read, because of damage.
    Damaged(String),
}

/// What clients and owners of a store do, in terms of its log.
#[derive(Clone, Debug, PartialEq)]
pub enum LogUse {
    /// A client asks for a record of this many units.
    Appends(u32),
    /// A client does not wait for its record any more.
    Leaves,
    /// The store is opened. It will write its log in this form.
    Opens(LogPacking),
    /// The store was dropped in order.
    Dropped,
    /// The store refuses to open, because of damage.
    Damaged(String),
    /// A call returned an error.
    Refused(Why),
}

/// Why a store refused a call, by the error that it returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The device failed, now or earlier. Whether a request of this life did fail is known.
    DeviceFailed {
        /// Whether it did.
        really: bool,
    },
    /// The log is full, and no checkpoint makes room.
    LogFull,
    /// Something else, in its words.
    Other(String),
}

impl Why {
    /// The reason that an error gives, of a store whose device has failed or not.
    #[must_use]
    pub fn of(error: &Error, failed: bool) -> Why {
        match error {
            Error::Device(_) | Error::Poisoned { .. } => Why::DeviceFailed { really: failed },
            Error::LogFull { .. } => Why::LogFull,
            other => Why::Other(other.to_string()),
        }
    }
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
            Heard::Log(LogUse::Appends(_)) => "Appends",
            Heard::Log(LogUse::Leaves) => "Leaves",
            Heard::Log(LogUse::Dropped) => "Dropped",
            Heard::Log(LogUse::Damaged(_)) | Heard::Tree(TreeUse::Damaged(_)) => "Damaged",
            Heard::Log(LogUse::Opens(_)) | Heard::Tree(TreeUse::Opens) => "Opens",
            Heard::Tree(TreeUse::Scans(_)) => "Scans",
            Heard::Tree(TreeUse::Fetches(_)) => "Fetches",
            Heard::Tree(TreeUse::Scanned(_)) => "Scanned",
            Heard::Tree(TreeUse::Loses) => "Loses",
            Heard::Log(LogUse::Refused(_)) => "Refused",
            Heard::Leaf(LeafUse::Opens(_)) => "Opens",
            Heard::Leaf(LeafUse::Sized(_)) => "Sized",
            Heard::Leaf(LeafUse::Got(_)) => "Got",
            Heard::Leaf(LeafUse::Failed(_)) => "Failed",
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
        Event::Cow(Cow::WritesImage { .. }) => "WritesImage",
        Event::Cow(Cow::WritesTable) => "WritesTable",
        Event::Cow(Cow::TableWritten) => "TableWritten",
        Event::Redo(event) => redo_kind(event),
        Event::Snapshot(event) => snapshot_kind(event),
        Event::Leaf(Leaf::Refuses { .. }) => "Refuses",
        Event::Leaf(Leaf::Converts { .. }) => "Converts",
        Event::Leaf(Leaf::Has { .. }) => "Has",
    }
}

fn snapshot_kind(event: &Snapshot) -> &'static str {
    match event {
        Snapshot::Copies { .. } => "Copies",
        Snapshot::Splits { .. } => "Splits",
        Snapshot::Merges { .. } => "Merges",
        Snapshot::Indexed { .. } => "Indexed",
        Snapshot::FreesPage { .. } => "FreesPage",
        Snapshot::Begins { .. } => "Begins",
        Snapshot::ReadsFence { .. } => "ReadsFence",
        Snapshot::AddsEntry { .. } => "AddsEntry",
        Snapshot::WritesChunk { .. } => "WritesChunk",
        Snapshot::WritesSuper { .. } => "WritesSuper",
        Snapshot::FreesChunk { .. } => "FreesChunk",
        Snapshot::Takes { .. } => "Takes",
        Snapshot::ReadChunk { .. } => "ReadChunk",
        Snapshot::Built { .. } => "Built",
        Snapshot::Restored { .. } => "Restored",
    }
}

fn redo_kind(event: &Redo) -> &'static str {
    match event {
        Redo::WritesBlock { .. } => "WritesBlock",
        Redo::WritesWitness { .. } => "WritesWitness",
        Redo::WitnessWritten => "WitnessWritten",
        Redo::Read { .. } => "Read",
        Redo::Rewrites { .. } => "Rewrites",
        Redo::MarksEnd { .. } => "MarksEnd",
        Redo::RewritesSuperblock => "RewritesSuperblock",
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

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    writes: u64,
    trap: Option<Trap>,
    /// What the trap has caught. Nothing more is recorded once it is set.
    caught: Option<Caught>,
    /// The images that were announced and are not written, if they are the last entries.
    images: usize,
    /// The part whose own events are recorded too.
    part: Part,
    /// The blocks that a power failure may tear.
    tears: Option<Tears>,
    /// Random delays of the recorded threads, so that others come in between. `None` for no delays.
    dawdle: Option<Random>,
}

/// A part of the store with events of its own.
#[derive(Clone, Copy, Default, PartialEq)]
enum Part {
    #[default]
    Others,
    ShadowedPages,
    CopyOnWrite,
    Log,
    Tree,
    Layouts,
}

impl Part {
    /// Whether an event is recorded.
    fn has(self, event: &Event) -> bool {
        match event {
            Event::Shadow(Shadow::DeviceFlushed | Shadow::DeviceFlushFailed) => {
                self != Part::Others
            }
            Event::Shadow(_) => self == Part::ShadowedPages,
            Event::Cow(_) => self == Part::CopyOnWrite,
            Event::Redo(_) => self == Part::Log,
            Event::Snapshot(Snapshot::WritesChunk { .. }) => {
                matches!(self, Part::CopyOnWrite | Part::Tree)
            }
            Event::Snapshot(
                Snapshot::Splits { .. } | Snapshot::Merges { .. } | Snapshot::Restored { .. },
            ) => matches!(self, Part::Tree | Part::Layouts),
            Event::Snapshot(_) => self == Part::Tree,
            Event::Leaf(_) => self == Part::Layouts,
            Event::PageChanged { .. }
            | Event::PageCopied { .. }
            | Event::PageWriting { .. }
            | Event::PageWritten { .. }
            | Event::PageLoaded { .. }
            | Event::PageRead { .. }
            | Event::PageRedone { .. } => self != Part::Log,
            _ => true,
        }
    }
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
        recorder.state.lock().part = Part::ShadowedPages;
        recorder
    }

    /// A recorder that also records [`Event::Cow`], and flushes of the device.
    #[must_use]
    pub(crate) fn of_cow() -> Recorder {
        let recorder = Recorder::default();
        recorder.state.lock().part = Part::CopyOnWrite;
        recorder
    }

    /// A recorder that also records [`Event::Redo`] and flushes of the device, and no events of
    /// pages.
    #[must_use]
    pub(crate) fn of_log() -> Recorder {
        let recorder = Recorder::default();
        recorder.state.lock().part = Part::Log;
        recorder
    }

    /// A recorder that also records [`Event::Snapshot`], and flushes of the device.
    #[must_use]
    pub(crate) fn of_tree() -> Recorder {
        let recorder = Recorder::default();
        recorder.state.lock().part = Part::Tree;
        recorder
    }

    /// A recorder that also records [`Event::Leaf`], splits and merges, and flushes of the device.
    #[must_use]
    pub(crate) fn of_layouts() -> Recorder {
        let recorder = Recorder::default();
        recorder.state.lock().part = Part::Layouts;
        recorder
    }

    /// Makes power failures tear blocks from now on.
    pub(crate) fn tear(&self, tears: Tears) {
        self.state.lock().tears = Some(tears);
    }

    /// One of the contents that `device` may have after a power failure, chosen by `seed`.
    pub(crate) fn cut_power(&self, device: &CrashDevice, seed: u64) -> Image {
        self.state.lock().cut_power(device, seed)
    }

    /// Records that a client asks for a record of `len` units. Returns the record's number.
    pub(crate) fn call_append(&self, client: u8, len: u32) -> u32 {
        let mut state = self.state.lock();
        if state.caught.is_none() {
            state.writes += 1;
        }
        state.hear(Some(client), Heard::Log(LogUse::Appends(len)));
        state.writes as u32
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
        if state.caught.is_none() {
            state.writes += 1;
        }
        state.hear(Some(client), Heard::CallWrite { key, absent });
        state.writes
    }

    /// Makes the power of `device` fail after `events` more events. The recorder then takes one of
    /// the possible contents, chosen by `seed`, and records nothing more until
    /// [`Recorder::sprung`].
    pub(crate) fn set_trap(&self, events: u64, device: Arc<CrashDevice>, seed: u64) {
        self.set(events, device, Some(seed));
    }

    /// As [`Recorder::set_trap`], but the process ends, and the device lives on: it has what was
    /// written last.
    pub(crate) fn set_kill(&self, events: u64, device: Arc<CrashDevice>) {
        self.set(events, device, None);
    }

    fn set(&self, events: u64, device: Arc<CrashDevice>, seed: Option<u64>) {
        self.state.lock().trap = Some(Trap {
            left: events,
            device,
            seed,
        });
    }

    /// Returns what the trap has caught, if it has sprung. Removes the trap, and records again.
    pub fn sprung(&self) -> Option<Caught> {
        let mut state = self.state.lock();
        state.caught.take().inspect(|_| state.trap = None)
    }

    /// Whether the trap has sprung.
    pub(crate) fn is_sprung(&self) -> bool {
        self.state.lock().caught.is_some()
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
        if self.caught.is_some() {
            return;
        }
        self.images = match &heard {
            Heard::Engine(event) if trap::is_image(*event) => self.images + 1,
            _ => 0,
        };
        self.entries.push(Entry { client, heard });
        let Some(trap) = self.trap.take_if(Trap::springs) else {
            return;
        };
        self.caught = Some(match trap.seed {
            Some(seed) => Caught::Power(self.cut_power(&trap.device, seed)),
            None => {
                self.forget_what_is_ahead();
                Caught::Killed(Arc::new(trap.device.fork()))
            }
        });
    }

    /// The process is killed before it can do what it has just announced. The images of a batch are
    /// announced together, and then written.
    fn forget_what_is_ahead(&mut self) {
        let announced = |entry: &mut Entry| match entry.heard {
            Heard::Engine(event) => trap::announces(event),
            _ => false,
        };
        let images = std::mem::take(&mut self.images);
        if self.entries.pop_if(announced).is_some() {
            let others = images.saturating_sub(1);
            self.entries.truncate(self.entries.len() - others);
        }
    }

    fn cut_power(&self, device: &CrashDevice, seed: u64) -> Image {
        match &self.tears {
            Some(tears) => tears.cut_power(device, seed),
            None => device.crash_seeded(seed),
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
        if matches!(event, Event::PageWritten { .. }) {
            state.images = 0;
        }
        if !state.part.has(&event) {
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
