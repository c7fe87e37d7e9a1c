//! Records events into a file, beside the threads that serve the program.
//!
//! ```text
//! threads of the face ──▶ queue, at most 4 MiB ──▶ one thread: hash, find equal pieces,
//!        (copy only)      full: they wait          compress, checksum, write ──▶ file
//! ```
//!
//! # What survives
//!
//! If the process is killed, the recording holds a prefix of the events: all up to some event, and
//! none after it. An event is in the file at the latest about [`LINGER_NS`] after it was taken,
//! plus the time in which the queue of that moment is written. A flush does not wait for the
//! recording: waiting would add a thread switch and a chunk to each `fsync` of the program (tens
//! of microseconds, where the whole `fsync` has about forty), and a power cut on the *simulated*
//! drive needs only that the recording is a prefix. The file itself is not synced before
//! [`Recorder::finish`]: after a power cut of the real machine its end may be missing.
//!
//! If the recording's own disk is full, events are refused with [`Stopped`] from then on, and
//! [`Recorder::finish`] returns the reason. Up to a queue of events that were taken before is then
//! missing too; what is in the file remains a readable prefix.
//!
//! # Memory
//!
//! Two queues (one being filled, one being written) of 4 MiB of bytes, or one write if it is larger,
//! and 32,768 events, about 8 MiB; 24 MiB for the table of equal pieces; 3 MiB for chunks and zstd:
//! at most 64 MiB, however long the recording. `files` over 1 GiB of data takes 42 MiB more than the
//! data, see `docs/RECORDING.md`.
//!
//! A byte is copied once, by the face into the queue. From there it is hashed, and written if it
//! cannot be compressed; queues are used again, so that their pages are not made anew.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashSet;

use super::event::{Event, NodeId, Write};
use super::header::{Contents, Header, Summary, WATCHED};
use super::sink::{Sink, Stopped};
use super::stream::Stream;
use crate::error::DriveError;

/// How long an event may wait for others to share its chunk.
pub const LINGER_NS: u64 = 200_000_000;

/// The most bytes in the queue, unless one write alone has more. With 8 or 16 MiB, writes of 1 MiB
/// were not faster.
const MOST_BYTES: usize = 4 << 20;

/// The most events in the queue.
const MOST_EVENTS: usize = 1 << 15;

/// Bytes from which the writing thread is woken.
const WAKE_BYTES: usize = 1 << 20;

/// Events from which the writing thread is woken.
const WAKE_EVENTS: usize = 1 << 13;

/// The longest rest of the writing thread.
const REST: Duration = Duration::from_millis(50);

/// The most bytes that are recorded of a watched file.
const MOST_WATCHED: u64 = 64 << 20;

/// What tells the time.
enum Clock {
    Since(Instant),
    /// Set by hand, for tests.
    #[cfg_attr(not(test), allow(dead_code))]
    Set(Arc<AtomicU64>),
}

impl Clock {
    fn now(&self) -> u64 {
        match self {
            Clock::Since(start) => start.elapsed().as_nanos() as u64,
            Clock::Set(time) => time.load(Ordering::Relaxed),
        }
    }
}

/// An event in the queue. Its bytes, if it has some that are recorded, follow those of the event
/// before.
struct Item {
    wall_ns: u64,
    event: Event,
    has_bytes: bool,
}

struct Batch {
    items: Vec<Item>,
    bytes: Vec<u8>,
}

impl Default for Batch {
    fn default() -> Self {
        // Not grown by doubling: its room is what the memory bound counts.
        Batch {
            items: Vec::new(),
            bytes: Vec::with_capacity(MOST_BYTES),
        }
    }
}

impl Batch {
    fn is_full_for(&self, more: usize) -> bool {
        !self.items.is_empty()
            && (self.bytes.len() + more > MOST_BYTES || self.items.len() >= MOST_EVENTS)
    }

    fn wakes(&self) -> bool {
        self.bytes.len() >= WAKE_BYTES || self.items.len() >= WAKE_EVENTS
    }
}

#[derive(Default)]
struct State {
    batch: Batch,
    watched: FxHashSet<NodeId>,
    last_ns: u64,
    writer_rests: bool,
    finished: bool,
    stopped: bool,
}

struct Shared {
    state: Mutex<State>,
    filled: Condvar,
    emptied: Condvar,
    clock: Clock,
    contents: Contents,
}

impl Shared {
    /// Takes an event; its bytes are recorded if `choose` says so.
    fn take(
        &self,
        event: Event,
        bytes: &[u8],
        choose: impl FnOnce(&State) -> bool,
    ) -> Result<(), Stopped> {
        let mut state = self.state.lock();
        let has_bytes = choose(&state);
        let more = if has_bytes { bytes.len() } else { 0 };
        while !state.stopped && state.batch.is_full_for(more) {
            self.emptied.wait(&mut state);
        }
        if state.stopped || state.finished {
            return Err(Stopped);
        }
        if self.contents == Contents::Watched {
            watch(&mut state.watched, &event);
        }
        let wall_ns = self.clock.now().max(state.last_ns);
        state.last_ns = wall_ns;
        if has_bytes {
            state.batch.bytes.extend_from_slice(bytes);
        }
        state.batch.items.push(Item {
            wall_ns,
            event,
            has_bytes,
        });
        if state.writer_rests && state.batch.wakes() {
            state.writer_rests = false;
            drop(state);
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Waits for events and takes all that are there. `None` after the last.
    fn drain(&self, spare: Batch) -> Option<Batch> {
        let mut state = self.state.lock();
        if !state.finished && !state.batch.wakes() {
            state.writer_rests = true;
            self.filled.wait_for(&mut state, REST);
            state.writer_rests = false;
        }
        if state.finished && state.batch.items.is_empty() {
            return None;
        }
        let batch = std::mem::replace(&mut state.batch, spare);
        drop(state);
        self.emptied.notify_all();
        Some(batch)
    }

    fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        state.batch.items.clear();
        state.batch.bytes.clear();
        drop(state);
        self.emptied.notify_all();
    }
}

/// Notices which files have names that are watched.
fn watch(watched: &mut FxHashSet<NodeId>, event: &Event) {
    let is_watched = |name: &[u8]| WATCHED.iter().any(|w| name.starts_with(w.as_bytes()));
    match event {
        Event::Link { name, node, .. }
        | Event::Rename {
            to_name: name,
            node,
            ..
        } if is_watched(name) => {
            watched.insert(*node);
        }
        Event::Free { node } => {
            watched.remove(node);
        }
        _ => {}
    }
}

/// Records what it takes, as a [`Sink`].
pub struct Recorder {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<io::Result<Summary>>>>,
    path: PathBuf,
}

impl Recorder {
    /// Begins a recording. The header's field `contents` is set to `contents`. A file that is
    /// there is replaced.
    ///
    /// # Errors
    /// [`DriveError::System`] if the file cannot be made or written.
    pub fn create(
        path: impl AsRef<Path>,
        header: Header,
        contents: Contents,
    ) -> Result<Recorder, DriveError> {
        let path = path.as_ref();
        let what = || format!("record to {}", path.display());
        let file = File::create(path).map_err(DriveError::system(what()))?;
        let out = Synced(file);
        Recorder::start(
            path,
            Box::new(out),
            header,
            contents,
            Clock::Since(Instant::now()),
        )
    }

    fn start(
        path: &Path,
        out: Box<dyn io::Write + Send>,
        header: Header,
        contents: Contents,
        clock: Clock,
    ) -> Result<Recorder, DriveError> {
        let what = || format!("record to {}", path.display());
        let header = Header { contents, ..header };
        let stream = Stream::create(out, &header).map_err(DriveError::system(what()))?;
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            clock,
            contents,
        });
        let of_thread = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("recording".into())
            .spawn(move || {
                let _stops = StopsAtEnd(&of_thread);
                write_all(&of_thread, stream)
            })
            .map_err(DriveError::system(what()))?;
        Ok(Recorder {
            shared,
            writer: Mutex::new(Some(writer)),
            path: path.into(),
        })
    }

    /// Writes what was taken, and ends the recording. Later events are refused.
    ///
    /// # Errors
    /// [`DriveError::System`] if it could not be written, now or earlier, or was finished before.
    pub fn finish(&self) -> Result<Summary, DriveError> {
        let what = format!("record to {}", self.path.display());
        let Some(writer) = self.writer.lock().take() else {
            return Err(DriveError::System {
                what,
                source: io::Error::other("the recording was finished before"),
            });
        };
        self.shared.state.lock().finished = true;
        self.shared.filled.notify_one();
        let written = writer.join();
        written
            .unwrap_or_else(|_| Err(io::Error::other("the recording thread panicked")))
            .map_err(DriveError::system(what))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Whoever wants to know how it ended has asked; a second answer would be an error.
        let _ = self.finish();
    }
}

impl Sink for Recorder {
    fn note(&self, event: Event) -> Result<(), Stopped> {
        self.shared.take(event, &[], |_| false)
    }

    fn write(&self, write: Write, bytes: &[u8]) -> Result<(), Stopped> {
        let (node, end) = (
            write.node,
            write.offset.saturating_add(u64::from(write.len)),
        );
        let fits = bytes.len() == write.len as usize;
        debug_assert!(fits, "{} bytes of a write of {}", bytes.len(), write.len);
        let contents = self.shared.contents;
        self.shared.take(Event::Write(write), bytes, |state| {
            fits && match contents {
                Contents::All => true,
                Contents::Watched => end <= MOST_WATCHED && state.watched.contains(&node),
                Contents::None => false,
            }
        })
    }
}

/// Refuses events when the writing thread ends, for whatever reason: nobody may wait for it.
struct StopsAtEnd<'a>(&'a Shared);

impl Drop for StopsAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The writing thread: until the recording is finished or its file cannot be written.
fn write_all(shared: &Shared, mut stream: Stream) -> io::Result<Summary> {
    let mut spare = Batch::default();
    while let Some(mut batch) = shared.drain(spare) {
        let (bytes, mut at) = (&batch.bytes[..], 0);
        for item in &batch.items {
            if stream
                .oldest()
                .is_some_and(|old| item.wall_ns - old >= LINGER_NS)
            {
                stream.flush(bytes)?;
            }
            let Event::Write(write) = &item.event else {
                stream.event(item.wall_ns, &item.event, bytes)?;
                continue;
            };
            let mut place = None;
            if item.has_bytes {
                let end = at + write.len as usize;
                (place, at) = (Some(at..end), end);
            }
            stream.write(item.wall_ns, write, place, bytes)?;
        }
        stream.carry(bytes);
        batch.items.clear();
        batch.bytes.clear();
        spare = batch;
        let now = shared.clock.now();
        if stream
            .oldest()
            .is_some_and(|old| now.saturating_sub(old) >= LINGER_NS)
        {
            stream.flush(&[])?;
        }
    }
    stream.finish()
}

/// A file that is synced at its end.
struct Synced(File);

impl io::Write for Synced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.0.write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        // A pipe cannot be synced, and need not be.
        self.0.sync_data().or_else(|error| match error.kind() {
            io::ErrorKind::InvalidInput => Ok(()),
            _ => Err(error),
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
