//! Tracks what a check has outside its process: running checkers, and temporary folders.
//!
//! A check that is told to stop cannot wait for either. So both are listed while they exist, and
//! [`abandon`] ends the checkers and removes the folders.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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

/// How long [`abandon`] tries to remove a folder into which a checker may still write.
const PATIENCE: Duration = Duration::from_secs(2);

/// Ends every checker and removes every folder of a check that runs in this process. After that no
/// checker can be started and no folder made, so the check's own result is useless.
pub fn abandon() {
    let mut outside = outside();
    outside.abandoned = true;
    for child in outside.children.drain(..) {
        // It may have exited already.
        let _ = kill_process(child, Signal::KILL);
    }
    // A checker that was killed may write for a moment more, and a folder that has just got a new
    // file is not removed.
    let until = Instant::now() + PATIENCE;
    for folder in outside.folders.drain(..) {
        while std::fs::remove_dir_all(&folder).is_err() && folder.exists() && Instant::now() < until
        {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A temporary folder.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> std::io::Result<Scratch> {
        // Under the lock, so that the next `abandon` also removes a folder that is made now.
        let mut outside = outside();
        if outside.abandoned {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let folder = tempfile::tempdir()?;
        outside.folders.push(folder.path().to_owned());
        Ok(Scratch(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        outside().folders.retain(|folder| folder != self.0.path());
    }
}

/// Starts a process that ends with its check.
pub(super) fn spawn(command: &mut Command) -> std::io::Result<Child> {
    // Under the lock, so that the next `abandon` also ends a process that starts now.
    let mut outside = outside();
    if outside.abandoned {
        return Err(std::io::ErrorKind::Interrupted.into());
    }
    let child = command.spawn()?;
    outside.children.push(Pid::from_child(&child));
    Ok(child)
}

/// Notes that a process has ended and is about to be waited for. After that its id may belong to
/// another process.
pub(super) fn ended(child: &Child) {
    let pid = Pid::from_child(child);
    outside().children.retain(|other| *other != pid);
}
