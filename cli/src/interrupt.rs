//! SIGINT and SIGTERM: a command that is told to stop ends within a second, leaves nothing half
//! made, and says how far it came.
//!
//! ```text
//! signal ──▶ flag ──▶ the command looks at `stopped()` between two operations, ends its work, calls `take_over()`, reports
//!              │
//!              └────▶ the watcher waits GRACE; then, unless the command has taken over, or at once if the command has left it
//!                     what to say (`at_end`): it says it, removes what is registered (`Ours`) and ends the process
//! ```
//!
//! So a command that is busy where nobody can interrupt it, or that waits for its input, still ends
//! in time. A second signal ends the process at once, reports or not. Exit statuses are those of
//! shells: 128 and the signal's number.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;

/// How long a command has to end by itself.
const GRACE: Duration = Duration::from_millis(700);

/// What told the command to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    fn of(number: i32) -> Option<Signal> {
        match number {
            SIGINT => Some(Signal::Interrupt),
            SIGTERM => Some(Signal::Terminate),
            _ => None,
        }
    }

    /// 130 or 143.
    pub(crate) fn status(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Signal::Interrupt => "SIGINT",
            Signal::Terminate => "SIGTERM",
        }
    }
}

/// Says what was done so far; its sentence goes to stderr.
type AtEnd = Box<dyn FnOnce() -> String + Send>;

/// What the watcher does.
#[derive(Default)]
struct Left {
    ours: Vec<PathBuf>,
    at_end: Option<AtEnd>,
}

static CAUGHT: AtomicI32 = AtomicI32::new(0);
static FLAG: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Who is about to end the process: nobody, [`BY_COMMAND`] or [`BY_WATCHER`].
static ENDING: AtomicU8 = AtomicU8::new(0);
const BY_COMMAND: u8 = 1;
const BY_WATCHER: u8 = 2;
static LEFT: Mutex<Left> = Mutex::new(Left {
    ours: Vec::new(),
    at_end: None,
});

fn left() -> MutexGuard<'static, Left> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to listen. Where signals cannot be caught they end the process as they always did.
pub(crate) fn listen() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    let listen = move || {
        for signal in signals.forever().filter_map(Signal::of) {
            let first = CAUGHT.swap(i32::from(signal.status()), Ordering::SeqCst) == 0;
            FLAG.store(true, Ordering::SeqCst);
            if first {
                std::thread::spawn(move || watch(signal));
            } else {
                // Told twice: whatever goes on is not waited for.
                remove_ours();
                std::process::exit(signal.status().into());
            }
        }
    };
    // Without a thread nobody listens, and nothing is lost but manners.
    let _ = std::thread::Builder::new().spawn(listen);
}

/// Ends the process if the command does not.
fn watch(signal: Signal) {
    let mut at_end = left().at_end.take();
    if at_end.is_none() {
        std::thread::sleep(GRACE);
        at_end = left().at_end.take();
    }
    if who_ends(BY_WATCHER) != BY_WATCHER {
        return;
    }
    let said = at_end.map_or_else(|| "nothing was finished".into(), |say| say());
    remove_ours();
    let line = format!(
        "treering: {}\n",
        Failure::interrupted(signal, &said).message
    );
    let _ = std::io::stderr().write_all(line.as_bytes());
    std::process::exit(signal.status().into());
}

/// Whoever comes first ends it.
fn who_ends(me: u8) -> u8 {
    match ENDING.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => me,
        Err(first) => first,
    }
}

fn remove_ours() {
    for path in std::mem::take(&mut left().ours) {
        // The command may be making another file in its folder this very moment.
        for _ in 0..3 {
            let removed = match path.symlink_metadata() {
                Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(&path),
                Ok(_) => std::fs::remove_file(&path),
                Err(_) => break,
            };
            if removed.is_ok() {
                break;
            }
        }
    }
}

/// The signal, once there was one.
pub(crate) fn stopped() -> Option<Signal> {
    match CAUGHT.load(Ordering::Relaxed) {
        0 => None,
        status if status == i32::from(Signal::Terminate.status()) => Some(Signal::Terminate),
        _ => Some(Signal::Interrupt),
    }
}

/// The same for libraries: set once there was a signal.
pub(crate) fn flag() -> Arc<AtomicBool> {
    Arc::clone(&FLAG)
}

/// What a command that was told to stop does before it reports: from here on the watcher lets it.
/// The process may end in here, for the watcher may have been first.
pub(crate) fn take_over() {
    while who_ends(BY_COMMAND) != BY_COMMAND {
        std::thread::park();
    }
}

/// Ends a command that was told to stop: `done` says how far it came.
///
/// # Errors
/// If there was a signal.
pub(crate) fn check(done: impl FnOnce() -> String) -> Result<(), Failure> {
    match stopped() {
        None => Ok(()),
        Some(signal) => {
            take_over();
            Err(Failure::interrupted(signal, &done()))
        }
    }
}

/// Says what is done so far when there is a signal, for a command that cannot look at [`stopped`]
/// itself. It is called on another thread while the command goes on.
pub(crate) fn at_end(say: impl FnOnce() -> String + Send + 'static) {
    left().at_end = Some(Box::new(say));
}

/// From here on the command reports by itself: it has done all, and has only to say so. The process
/// may end in here, for the watcher may be about to report.
pub(crate) fn finished() {
    left().at_end = None;
    while ENDING.load(Ordering::SeqCst) == BY_WATCHER {
        std::thread::park();
    }
}

/// A file or folder that is to go if the command is interrupted, until this is dropped.
#[derive(Debug)]
pub(crate) struct Ours(PathBuf);

impl Ours {
    /// Registers it. It need not be there yet.
    pub(crate) fn new(path: &Path) -> Ours {
        left().ours.push(path.to_owned());
        Ours(path.to_owned())
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let mut left = left();
        if let Some(at) = left.ours.iter().position(|path| *path == self.0) {
            left.ours.swap_remove(at);
        }
    }
}
