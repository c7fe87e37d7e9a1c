//! Mounting the file system, and unmounting it whatever still uses it.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use parking_lot::RwLock;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use super::fuse::Files;
use super::state::{Counters, Shared, State};
use super::{keep, seek};
use crate::busy;
use crate::error::DriveError;
use crate::face::{MountOptions, Mounted, Unmounted};
use crate::fuse::{FUSERMOUNT, no_fuse, users};
use crate::image::Image;
use crate::janitor::{Directory, Janitor};
use crate::recording::Sink;

/// How long an unmount waits for users that are about to end.
const BUSY_WAIT: Duration = Duration::from_secs(2);

/// What was done on a drive, and what is on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes that were written to files.
    pub bytes_written: u64,
    /// Bytes that were read from files.
    pub bytes_read: u64,
    /// `fsync`, `fdatasync`, and `fsync` of directories.
    pub flushes: u64,
    /// Blocks of 4 KiB that are in use.
    pub used_blocks: u64,
    /// The most that were in use at once.
    pub peak_used_blocks: u64,
}

/// A drive that is mounted as a file system; it is unmounted when this is dropped.
pub struct FilesMount {
    dir: PathBuf,
    device: u64,
    shared: Arc<Shared>,
    /// `None` after the unmount.
    session: Option<BackgroundSession>,
    /// Unmounts if this process is killed; dropped after the session.
    _janitor: Option<Janitor>,
    /// The lock on the directory of a drive that is kept.
    _lock: Option<keep::Lock>,
}

impl std::fmt::Debug for FilesMount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilesMount")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

/// Mounts a drive as a file system, and serves it until it is unmounted.
///
/// # Errors
/// [`DriveError::Missing`] if the machine has no FUSE, [`DriveError::Parameter`] if an option
/// cannot be followed, [`DriveError::Bad`] if the drive that was kept is damaged,
/// [`DriveError::System`] if the kernel refuses.
pub fn mount(options: &MountOptions, sink: Arc<dyn Sink>) -> Result<FilesMount, DriveError> {
    check(options)?;
    let dir = options.dir.canonicalize();
    let dir = dir.map_err(DriveError::system(options.dir.display().to_string()))?;
    let blocks = options.capacity_blocks;
    let (state, lock) = match &options.keep {
        Some(kept) => keep::open(kept, blocks, sink).map(|(state, lock)| (state, Some(lock)))?,
        None => (State::new(Image::new(blocks)?, sink), None),
    };
    let janitor = Janitor::watch(&dir, Directory::Keep)?;
    serve(options, &dir, state, (Some(janitor), lock))
}

/// Serves a file system that is complete.
pub(super) fn serve(
    options: &MountOptions,
    dir: &Path,
    mut state: State,
    (janitor, lock): (Option<Janitor>, Option<keep::Lock>),
) -> Result<FilesMount, DriveError> {
    state.faults = Arc::clone(&options.faults);
    state.faults.arm();
    let state = RwLock::new(state);
    let shared = Arc::new(Shared {
        state,
        counters: Counters::default(),
    });
    let (seeks, questions) = mpsc::channel();
    let files = Files {
        shared: shared.clone(),
        page_cache: options.page_cache,
        seeks,
    };
    let mounting = || DriveError::system(format!("mounting {}", dir.display()));
    let session = fuser::spawn_mount(files, dir, &config(options));
    let session = session.map_err(|error| no_fuse(error, format!("mounting {}", dir.display())))?;
    let notifier = OnceLock::from(session.notifier());
    let (served, kernel) = (shared.clone(), Arc::new(notifier));
    let thread = thread::Builder::new().name("seeks".to_owned());
    thread
        .spawn(move || seek::serve(&questions, &served, &kernel))
        .map_err(mounting())?;
    let device = fs::metadata(dir).map_err(mounting())?.dev();
    Ok(FilesMount {
        dir: dir.to_owned(),
        device,
        shared,
        session: Some(session),
        _janitor: janitor,
        _lock: lock,
    })
}

pub(super) fn check(options: &MountOptions) -> Result<(), DriveError> {
    if options.capacity_blocks == 0 {
        let why = "expected at least one block of 4 KiB, found none".to_owned();
        return Err(DriveError::Parameter {
            name: "capacity",
            why,
        });
    }
    Ok(())
}

fn config(options: &MountOptions) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("treering".to_owned()),
        MountOption::Subtype("treering".to_owned()),
        MountOption::DefaultPermissions,
    ];
    config.acl = users();
    if config.acl == SessionACL::All {
        let as_elsewhere = [MountOption::Dev, MountOption::Suid];
        config.mount_options.extend(as_elsewhere);
    }
    config.n_threads = Some(options.threads.max(1));
    config.clone_fd = options.threads > 1;
    config
}

impl FilesMount {
    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let state = self.shared.state.read();
        let Counters {
            written,
            read,
            flushes,
        } = &self.shared.counters;
        Stats {
            bytes_written: written.load(Ordering::Relaxed),
            bytes_read: read.load(Ordering::Relaxed),
            flushes: flushes.load(Ordering::Relaxed),
            used_blocks: state.space.used(),
            peak_used_blocks: state.space.peak_used(),
        }
    }

    fn has_ended(&self) -> bool {
        self.session
            .as_ref()
            .is_none_or(|session| session.guard.is_finished())
    }

    /// Waits for the session to end; whether it did.
    fn wait(&self, limit: Duration) -> bool {
        let start = Instant::now();
        while !self.has_ended() && start.elapsed() < limit {
            thread::sleep(Duration::from_millis(1));
        }
        self.has_ended()
    }

    /// Detaches a busy mount. What uses it can no longer change anything.
    fn detach(&mut self) -> Result<Option<String>, DriveError> {
        let users = busy::users(self.device);
        write_back(&self.dir);
        detach(&self.dir, UnmountFlags::DETACH)?;
        if self.wait(BUSY_WAIT) {
            return Ok(None);
        }
        self.shared.state.write().close();
        Ok(Some(users.unwrap_or_else(|| {
            "a process that cannot be seen".to_owned()
        })))
    }

    fn end(&mut self) -> Result<Unmounted, DriveError> {
        let start = Instant::now();
        let mut busy = None;
        while !self.has_ended() {
            match detach(&self.dir, UnmountFlags::empty()) {
                Ok(()) => {
                    self.wait(BUSY_WAIT);
                    break;
                }
                // A program that has just ended may still have its files open.
                Err(_) if start.elapsed() < BUSY_WAIT / 4 => {
                    thread::sleep(Duration::from_millis(20));
                }
                Err(_) => {
                    busy = self.detach()?;
                    break;
                }
            }
        }
        let Some(session) = self.session.take() else {
            return Ok(Unmounted { busy });
        };
        if session.guard.is_finished() {
            // Whether it ended well no longer matters: it is unmounted.
            let _ = session.join();
            let mut state = self.shared.state.write();
            // Files that were removed, and open to the end.
            let _ = state.free_all_unused();
            state.close();
        } else {
            // Dropping it would unmount whatever is mounted there now.
            std::mem::forget(session);
            self.shared.state.write().close();
            busy.get_or_insert_with(|| "another mount of the same file system".to_owned());
        }
        Ok(Unmounted { busy })
    }
}

/// Lets the kernel write its dirty pages.
fn write_back(dir: &Path) {
    if let Ok(dir) = File::open(dir) {
        let _ = rustix::fs::syncfs(&dir);
    }
}

fn detach(dir: &Path, flags: UnmountFlags) -> Result<(), DriveError> {
    let failed =
        |error: std::io::Error| DriveError::system(format!("unmounting {}", dir.display()))(error);
    match unmount(dir, flags) {
        Ok(()) => return Ok(()),
        Err(Errno::PERM) => {}
        Err(error) => return Err(failed(error.into())),
    }
    let how = if flags.contains(UnmountFlags::DETACH) {
        "-uz"
    } else {
        "-u"
    };
    let attempt = |program| {
        let mut command = Command::new(program);
        command.arg(how).arg("--").arg(dir);
        command.stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    let mut attempts = FUSERMOUNT.into_iter().filter_map(|name| attempt(name).ok());
    match attempts.next() {
        Some(status) if status.success() => Ok(()),
        _ => Err(failed(Errno::BUSY.into())),
    }
}

impl Mounted for FilesMount {
    fn dir(&self) -> &Path {
        &self.dir
    }

    fn is_mounted(&self) -> bool {
        let there = fs::metadata(&self.dir).is_ok_and(|found| found.dev() == self.device);
        there && !self.has_ended()
    }

    fn unmount(mut self: Box<Self>) -> Result<Unmounted, DriveError> {
        self.end()
    }
}

impl Drop for FilesMount {
    fn drop(&mut self) {
        if self.session.is_some() {
            let _ = self.end();
        }
    }
}
