//! What a check has outside its process: checkers that run, and folders for what they write.
//!
//! A check that is told to stop cannot wait for either, so both are on a list while they are there,
//! and [`abandon`] ends the ones and removes the others.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

#[derive(Default)]
struct Outside {
    children: Vec<Pid>,
    folders: Vec<PathBuf>,
    abandoned: bool,
}

static OUTSIDE: Mutex<Outside> = Mutex::new(Outside {
    children: Vec::new(),
    folders: Vec::new(),
    abandoned: false,
});

fn outside() -> MutexGuard<'static, Outside> {
    OUTSIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every checker and removes every folder of a check that goes on in this process. No other
/// checker is started after that, so what the check itself returns is of no use any more.
pub fn abandon() {
    let mut outside = outside();
    outside.abandoned = true;
    for child in outside.children.drain(..) {
        // It may have ended by itself.
        let _ = kill_process(child, Signal::KILL);
    }
    for folder in outside.folders.drain(..) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// A temporary folder.
pub(super) struct Scratch(TempDir);

impl Scratch {
    pub(super) fn new() -> std::io::Result<Scratch> {
        let folder = tempfile::tempdir()?;
        outside().folders.push(folder.path().to_owned());
        Ok(Scratch(folder))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        outside().folders.retain(|folder| folder != self.0.path());
    }
}

/// Starts a process that does not outlive its check.
pub(super) fn spawn(command: &mut Command) -> std::io::Result<Child> {
    // Under the lock: one that starts now is ended by an `abandon` that comes next.
    let mut outside = outside();
    if outside.abandoned {
        return Err(std::io::ErrorKind::Interrupted.into());
    }
    let child = command.spawn()?;
    outside.children.push(Pid::from_child(&child));
    Ok(child)
}

/// A process has ended and is about to be waited for; then its number may be another's.
pub(super) fn ended(child: &Child) {
    let pid = Pid::from_child(child);
    outside().children.retain(|other| *other != pid);
}
