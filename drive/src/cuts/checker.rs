//! Running the user's checker on a state.
//!
//! The checker gets the directory that is left after the cut as its working directory and in
//! `$TREERING_DIR`, and a file with the lines that were acknowledged before the cut in
//! `$TREERING_ACKS`. It exits 0 if it can live with what it finds. Whatever it prints is kept: it
//! says what went wrong, and tells failures apart.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::content::Store;
use super::laid;
use super::points::in_words;
use super::quick::{Quick, QuickMaker};
use super::tree::Tree;
use crate::error::DriveError;
use crate::face::{Face, MountOptions, PageCache};
use crate::janitor::{Directory, Janitor};
use crate::memory::map_large_blocks;
use crate::recording::{Nowhere, Sink};

/// The most that is kept of what a checker prints.
const PRINTED: u64 = 16 << 10;

/// What a checker said of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// How it ended.
    pub(super) end: End,
    /// What it printed, its beginning.
    pub(super) output: String,
}

/// How a checker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// With a status.
    Status(i32),
    /// By a signal.
    Signal(i32),
    /// Not in time.
    TooLate,
    /// Not begun: the real file system could not be mounted.
    NotMounted,
}

impl Verdict {
    /// Whether the checker can live with the state.
    pub(super) fn is_good(&self) -> bool {
        self.end == End::Status(0)
    }

    /// How it ended, in words.
    pub(super) fn words(&self) -> String {
        match self.end {
            End::Status(status) => format!("exit status {status}"),
            End::Signal(signal) => format!("ended by signal {signal}"),
            End::TooLate => "not done in time".into(),
            End::NotMounted => "the file system could not be mounted".into(),
        }
    }

    /// What tells failures apart: how it ended, and the first line that it printed without its
    /// numbers.
    pub(super) fn kind(&self) -> String {
        let mut kind = self.words();
        let mut lines = self.output.lines().filter(|line| !line.trim().is_empty());
        if let Some(line) = lines.next() {
            kind.push('\n');
            let line: String = line.chars().take(160).collect();
            kind.push_str(&in_words(&line));
        }
        kind
    }
}

/// What is run on every state.
#[derive(Clone, Debug)]
pub(super) struct Checker {
    pub(super) command: Vec<OsString>,
    /// Checks most states instead.
    pub(super) quick: Option<QuickMaker>,
    /// How long it may take.
    pub(super) limit: Duration,
    /// The face that was recorded.
    pub(super) face: Face,
    /// The drive's size.
    pub(super) capacity_blocks: u64,
    /// Variables for the command.
    pub(super) env: Vec<(OsString, OsString)>,
}

/// A place where states are mounted, one after the other.
pub(super) struct Mounting {
    dir: PathBuf,
    acks: PathBuf,
    checker: Arc<Checker>,
    quick: Option<RefCell<Box<dyn Quick>>>,
    store: Arc<Store>,
    _janitor: Janitor,
    _temporary: tempfile::TempDir,
}

impl Mounting {
    /// Makes the place.
    pub(super) fn new(checker: Arc<Checker>, store: Arc<Store>) -> Result<Mounting, DriveError> {
        map_large_blocks();
        let temporary = tempfile::Builder::new().prefix("treering-cut-").tempdir();
        let temporary = temporary.map_err(DriveError::system("a temporary directory"))?;
        // The checker may run the program as somebody else.
        let open = std::fs::set_permissions(temporary.path(), Permissions::from_mode(0o755));
        open.map_err(DriveError::system("a temporary directory"))?;
        let (dir, acks) = (temporary.path().join("dir"), temporary.path().join("acks"));
        let made = std::fs::create_dir(&dir);
        made.map_err(DriveError::system(dir.display().to_string()))?;
        Ok(Mounting {
            _janitor: Janitor::watch(&dir, Directory::Keep)?,
            dir,
            acks,
            quick: checker
                .quick
                .as_ref()
                .map(|quick| RefCell::new(quick.make())),
            checker,
            store,
            _temporary: temporary,
        })
    }

    /// The face that is mounted.
    pub(super) fn face(&self) -> Face {
        self.checker.face
    }

    /// How long the checker may take.
    pub(super) fn limit(&self) -> Duration {
        self.checker.limit
    }

    /// The size of the drive.
    pub(super) fn capacity_blocks(&self) -> u64 {
        self.checker.capacity_blocks
    }

    /// Runs the checker on a state.
    pub(super) fn check(&self, tree: &Tree, acks: &[u8]) -> Result<Verdict, DriveError> {
        let sink = || Arc::new(Nowhere);
        if let Some(quick) = &self.quick {
            let mut quick = quick.borrow_mut();
            let look = |dir: &Path, _: &Path| Ok(quick.is_good(dir, acks));
            let (good, is_free) = self.on(tree, acks, sink(), PageCache::WriteBack, look)?;
            if !is_free {
                quick.forget();
            } else if matches!(good, Looked::At(true)) {
                return Ok(Verdict {
                    end: End::Status(0),
                    output: String::new(),
                });
            }
        }
        self.run(tree, acks, sink(), PageCache::WriteBack)
    }

    /// Runs the checker on a state; what it does to it goes to the sink, when it does it.
    pub(super) fn check_recorded(
        &self,
        tree: &Tree,
        acks: &[u8],
        sink: Arc<dyn Sink>,
    ) -> Result<Verdict, DriveError> {
        let page_cache = match self.checker.face {
            Face::Files => PageCache::WriteThrough,
            Face::Disk(_) => PageCache::WriteBack,
        };
        self.run(tree, acks, sink, page_cache)
    }

    fn run(
        &self,
        tree: &Tree,
        acks: &[u8],
        sink: Arc<dyn Sink>,
        page_cache: PageCache,
    ) -> Result<Verdict, DriveError> {
        let look = |dir: &Path, acks: &Path| run(&self.checker, dir, acks);
        match self.on(tree, acks, sink, page_cache, look)?.0 {
            Looked::At(verdict) => Ok(verdict),
            Looked::NotMounted(why) => Ok(Verdict {
                end: End::NotMounted,
                output: why,
            }),
        }
    }

    /// Looks at a state while it is mounted. Returns also whether nothing was open in the end.
    fn on<T>(
        &self,
        tree: &Tree,
        acks: &[u8],
        sink: Arc<dyn Sink>,
        page_cache: PageCache,
        look: impl FnOnce(&Path, &Path) -> Result<T, DriveError>,
    ) -> Result<(Looked<T>, bool), DriveError> {
        let checker = &self.checker;
        let options = MountOptions {
            dir: self.dir.clone(),
            capacity_blocks: checker.capacity_blocks,
            keep: None,
            page_cache,
            threads: 1,
            faults: Arc::default(),
        };
        let written = std::fs::write(&self.acks, acks);
        written.map_err(DriveError::system(self.acks.display().to_string()))?;
        let mounted = laid::mount(tree, checker.face, &self.store, &options, sink);
        let mounted = match mounted {
            Ok(mounted) => mounted,
            // What the kernel's file system does not take is a finding, not our failure.
            Err(error @ DriveError::System { .. }) if checker.face != Face::Files => {
                return Ok((Looked::NotMounted(error.to_string()), true));
            }
            Err(error) => return Err(error),
        };
        let seen = look(&self.dir, &self.acks);
        let unmounted = mounted.unmount()?;
        Ok((Looked::At(seen?), unmounted.busy.is_none()))
    }
}

/// A look at a state.
enum Looked<T> {
    At(T),
    /// The real file system could not be mounted; why.
    NotMounted(String),
}

/// Runs the checker in a directory.
fn run(checker: &Checker, dir: &Path, acks: &Path) -> Result<Verdict, DriveError> {
    let Some((program, arguments)) = checker.command.split_first() else {
        let why = "a command, found none".into();
        let name = "checker";
        return Err(DriveError::Parameter { name, why });
    };
    let failed = || DriveError::system(program.display().to_string());
    let output = memfd_create("treering-checker", MemfdFlags::CLOEXEC);
    let mut output = File::from(output.map_err(|error| failed()(error.into()))?);
    let clone = || output.try_clone().map(Stdio::from).map_err(failed());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(dir)
        .env("TREERING_DIR", dir)
        .env("TREERING_ACKS", acks)
        .envs(checker.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(clone()?)
        .stderr(clone()?)
        .process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => DriveError::Missing {
            what: format!("the command {}", program.display()),
            needed: "it is neither a file nor in $PATH".into(),
        },
        _ => failed()(error),
    })?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let in_time = group.is_none_or(|group| ends_in_time(group, checker.limit));
    if let Some(group) = group {
        // The child is not yet waited for, so nobody else has its number. Whatever it has left
        // behind would keep the directory busy.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait().map_err(failed())?;
    let end = match (in_time, status.code(), status.signal()) {
        (false, ..) => End::TooLate,
        (_, Some(code), _) => End::Status(code),
        (_, None, signal) => End::Signal(signal.unwrap_or(0)),
    };
    let mut printed = Vec::new();
    output.seek(SeekFrom::Start(0)).map_err(failed())?;
    let read = output.take(PRINTED).read_to_end(&mut printed);
    read.map_err(failed())?;
    Ok(Verdict {
        end,
        output: String::from_utf8_lossy(&printed).into_owned(),
    })
}

/// Waits for a process to end, at most so long; whether it did.
fn ends_in_time(process: Pid, limit: Duration) -> bool {
    let Ok(handle) = pidfd_open(process, PidfdFlags::empty()) else {
        return true;
    };
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left)) {
            Ok(0) => return false,
            Err(rustix::io::Errno::INTR) => {}
            _ => return true,
        }
    }
}
