//! SIGINT and SIGTERM: a command that gets one of them ends within a second, leaves no half-written
//! file, and reports how far it came.
//!
//! ```text
//! signal ──▶ flag ──▶ the command checks `stopped()` between two operations, ends its work,
//!              │      calls `take_over()` and reports
//!              │
//!              └────▶ the watcher waits GRACE, or not at all if the command has registered a
//!                     report with `at_end`; then, unless the command has taken over, it prints
//!                     the report, removes registered files (`Ours`) and ends the process
//! ```
//!
//! So a command that is busy where it cannot check the flag, or that waits for input, still ends in
//! time. A second signal ends the process at once, without waiting for reports. Exit statuses are
//! those of shells: 128 plus the signal's number.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;

/// Time that a command has to end by itself.
const GRACE: Duration = Duration::from_millis(700);

/// The signal that stopped the command.
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

    /// The exit status: 130 or 143.
    pub(crate) fn status(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }

    /// Its number.
    pub(crate) fn number(self) -> i32 {
        match self {
            Signal::Interrupt => SIGINT,
            Signal::Terminate => SIGTERM,
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

/// Reports what was done so far; the returned sentence goes to stderr.
type AtEnd = Box<dyn FnOnce() -> String + Send>;

/// What the watcher has to do when it ends the process.
#[derive(Default)]
struct Left {
    ours: Vec<PathBuf>,
    at_end: Option<AtEnd>,
}

static CAUGHT: AtomicI32 = AtomicI32::new(0);
static FLAG: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Who ends the process: nobody yet, [`BY_COMMAND`] or [`BY_WATCHER`].
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

/// The environment variable with the number of the process that this one is not to outlive.
pub(crate) const PARENT: &str = "TREERING_PARENT";

/// Ends this process as soon as the one named by [`PARENT`] ends, even by `kill -9`. Without that
/// variable, nothing happens.
pub(crate) fn end_with_parent() {
    let Some(parent) = std::env::var(PARENT)
        .ok()
        .and_then(|text| text.parse().ok())
    else {
        return;
    };
    // If the kernel cannot do it, the process runs to its end.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    // The parent may have ended before that.
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    if now != Some(parent) {
        std::process::exit(3);
    }
}

/// Starts to listen for signals. If they cannot be caught, they end the process by default.
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
                // This is the second signal: do not wait for anything.
                remove_ours();
                std::process::exit(signal.status().into());
            }
        }
    };
    // Without the thread, signals end the process by default and nothing is reported.
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

/// Decides who ends the process: whoever calls first. Returns the winner.
fn who_ends(me: u8) -> u8 {
    match ENDING.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => me,
        Err(first) => first,
    }
}

fn remove_ours() {
    for path in std::mem::take(&mut left().ours) {
        // The command may be creating another file in the folder at this moment, so retry.
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

/// The signal, if there was one.
pub(crate) fn stopped() -> Option<Signal> {
    match CAUGHT.load(Ordering::Relaxed) {
        0 => None,
        status if status == i32::from(Signal::Terminate.status()) => Some(Signal::Terminate),
        _ => Some(Signal::Interrupt),
    }
}

/// A flag for libraries that is true once there was a signal.
pub(crate) fn flag() -> Arc<AtomicBool> {
    Arc::clone(&FLAG)
}

/// A stopped command calls this before it reports: afterwards the watcher leaves the process to it.
/// If the watcher was first, this does not return, and the watcher ends the process.
pub(crate) fn take_over() {
    while who_ends(BY_COMMAND) != BY_COMMAND {
        std::thread::park();
    }
}

/// Fails a command that a signal has stopped; `done` says how far it came.
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

/// Registers a report of what is done so far, for a command that cannot check [`stopped`] itself.
/// On a signal it is called on another thread while the command continues.
pub(crate) fn at_end(say: impl FnOnce() -> String + Send + 'static) {
    left().at_end = Some(Box::new(say));
}

/// Removes the report of [`at_end`]: the command has finished and will report by itself. If the
/// watcher is already about to report, this does not return, and the watcher ends the process.
pub(crate) fn finished() {
    let taken = left().at_end.take().is_none();
    while taken && stopped().is_some() && ENDING.load(Ordering::SeqCst) != BY_COMMAND {
        std::thread::park();
    }
}

/// A file or folder that is removed if the command is interrupted before this is dropped.
#[derive(Debug)]
pub(crate) struct Ours(PathBuf);

impl Ours {
    /// Registers the path, which need not exist yet.
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
