//! Running the user's command on a drive.
//!
//! The command gets the drive's directory as its working directory and in `$TREERING_DIR`, the file
//! for its acknowledgements in `$TREERING_ACKS`, and our standard input, output and error. It runs in
//! a process group of its own, which becomes the terminal's foreground group if we are: Ctrl-C then
//! reaches it and not us, and it may read from the terminal. A signal that we get is passed on to the
//! group once; if the command is still there after [`PATIENCE`], it is killed.
//!
//! When the command has ended, whatever is left of its group is ended, too, since background
//! processes would keep the drive busy: `SIGTERM` first, `SIGKILL` after [`GRACE`].
//!
//! Not seen are processes that have left the group (daemons do so with `setsid`): they run on, and
//! keep the drive busy.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::DriveError;

/// How long a command may go on after a signal was passed on to it.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long what is left of a command's group has to end after `SIGTERM`.
pub const GRACE: Duration = Duration::from_secs(3);
/// How often is asked whether there was a signal.
const POLL: Duration = Duration::from_millis(50);

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With an exit status.
    Status(i32),
    /// By a signal, with its number.
    Signal(i32),
}

/// What a command has used, and how it ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// How it ended.
    pub exit: Exit,
    /// Time that has passed, in seconds.
    pub wall_s: f64,
    /// Processor time of it and of those of its children that it has waited for, in seconds.
    pub cpu_s: f64,
    /// The most memory that one of them had, in KiB.
    pub max_rss_kib: u64,
    /// Names of processes that were left of its group and had to be ended.
    pub left: Vec<String>,
}

/// Runs a command in a drive's directory. `acks` is the file for `$TREERING_ACKS`, `env` are further
/// variables. `signal` is asked from time to time for the number of a signal to pass on.
///
/// # Errors
/// [`DriveError::Missing`] if there is no such command, [`DriveError::System`] if it cannot be run.
pub fn run(
    command: &[OsString],
    dir: &Path,
    acks: Option<&Path>,
    env: &[(OsString, OsString)],
    signal: &dyn Fn() -> Option<i32>,
) -> Result<Ended, DriveError> {
    let Some((program, arguments)) = command.split_first() else {
        let why = "a command, found none".into();
        return Err(DriveError::Parameter {
            name: "command",
            why,
        });
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(dir)
        .env("TREERING_DIR", dir)
        .process_group(0);
    if let Some(acks) = acks {
        command.env("TREERING_ACKS", acks);
    }
    command.envs(env.iter().map(|(name, value)| (name, value)));
    let began = Instant::now();
    let child = command
        .spawn()
        .map_err(|error| cannot_run(program, error))?;
    let what = || format!("waiting for {}", program.display());
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return Err(DriveError::system(what())(
            io::ErrorKind::InvalidData.into(),
        ));
    };
    let terminal = Terminal::give(group);
    let (sender, ended) = channel();
    let waiter = std::thread::Builder::new().name("drive-program".into());
    let waiter = waiter.spawn(move || sender.send(sys::wait(group)));
    waiter.map_err(DriveError::system("a thread that waits for the program"))?;
    let mut passed: Option<Instant> = None;
    let waited = loop {
        match ended.recv_timeout(POLL) {
            Ok(waited) => break waited,
            Err(RecvTimeoutError::Disconnected) => break Err(io::ErrorKind::BrokenPipe.into()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        match (passed, signal()) {
            (None, Some(number)) => {
                let number = Signal::from_named_raw(number).unwrap_or(Signal::TERM);
                // If it has ended meanwhile, the next turn says so.
                let _ = kill_process_group(group, number);
                passed = Some(Instant::now());
            }
            (Some(then), _) if then.elapsed() > PATIENCE => {
                let _ = kill_process_group(group, Signal::KILL);
            }
            _ => {}
        }
    };
    let wall_s = began.elapsed().as_secs_f64();
    drop(terminal);
    let left = end_group(group);
    let used = waited.map_err(DriveError::system(what()))?;
    Ok(Ended {
        exit: used.exit,
        wall_s,
        cpu_s: used.cpu_s,
        max_rss_kib: used.max_rss_kib,
        left,
    })
}

fn cannot_run(program: &OsStr, error: io::Error) -> DriveError {
    match error.kind() {
        io::ErrorKind::NotFound => DriveError::Missing {
            what: format!("the command {}", program.display()),
            needed: "it is neither a file nor in $PATH".into(),
        },
        _ => DriveError::system(program.display().to_string())(error),
    }
}

/// Ends what is left of a group whose first process has ended, and returns its names.
fn end_group(group: Pid) -> Vec<String> {
    let left = members(group);
    if left.is_empty() {
        return left;
    }
    // Errors mean that they have ended by themselves.
    let _ = kill_process_group(group, Signal::TERM);
    // A stopped process gets a signal only when it goes on.
    let _ = kill_process_group(group, Signal::CONT);
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline && !members(group).is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = kill_process_group(group, Signal::KILL);
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline && !members(group).is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    left
}

/// The living processes of a group.
fn members(group: Pid) -> Vec<String> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let stats = processes.flatten().filter_map(|process| {
        let number: u32 = process.file_name().to_string_lossy().parse().ok()?;
        let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
        let (name, fields) = stat.split_once('(')?.1.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        let (state, _, of) = (fields.next()?, fields.next()?, fields.next()?);
        let living = !matches!(state, "Z" | "X");
        let ours = of.parse() == Ok(group.as_raw_nonzero().get());
        (living && ours).then(|| format!("{name} (process {number})"))
    });
    stats.collect()
}

/// The terminal, lent to the command's group; dropped, it is taken back.
struct Terminal(Option<i32>);

impl Terminal {
    fn give(group: Pid) -> Terminal {
        let before = io::stdin().is_terminal().then(sys::foreground).flatten();
        let Some(ours) = before.filter(|before| *before == sys::own_group()) else {
            return Terminal(None);
        };
        sys::set_foreground(group.as_raw_nonzero().get());
        // It may have been stopped for reading too early.
        let _ = kill_process_group(group, Signal::CONT);
        Terminal(Some(ours))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(ours) = self.0 {
            sys::set_foreground(ours);
        }
    }
}

mod sys {
    //! `wait4` and the terminal's foreground group.

    use std::io;

    use rustix::process::Pid;

    use super::Exit;

    /// What `wait4` tells of a process.
    pub(super) struct Used {
        pub(super) exit: Exit,
        pub(super) cpu_s: f64,
        pub(super) max_rss_kib: u64,
    }

    /// Waits for a child to end.
    pub(super) fn wait(child: Pid) -> io::Result<Used> {
        let mut status = 0;
        // SAFETY: `rusage` is a structure of numbers, for which zeros are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let child = child.as_raw_nonzero().get();
        loop {
            // SAFETY: both pointers are to live variables of the types that `wait4` writes.
            let ended = unsafe { libc::wait4(child, &raw mut status, 0, &raw mut usage) };
            if ended == child {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
        Ok(Used {
            exit: match libc::WIFSIGNALED(status) {
                true => Exit::Signal(libc::WTERMSIG(status)),
                false => Exit::Status(libc::WEXITSTATUS(status)),
            },
            cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            max_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
        })
    }

    /// The foreground group of the terminal at standard input.
    pub(super) fn foreground() -> Option<i32> {
        // SAFETY: takes a number and touches no memory.
        let group = unsafe { libc::tcgetpgrp(0) };
        (group > 0).then_some(group)
    }

    pub(super) fn own_group() -> i32 {
        // SAFETY: cannot fail and touches no memory.
        unsafe { libc::getpgrp() }
    }

    /// Makes a group the terminal's foreground group, without being stopped for it if we are in the
    /// background ourselves.
    pub(super) fn set_foreground(group: i32) {
        // SAFETY: `set` and `before` are live signal sets; zeros are a valid one, and `sigemptyset`
        // makes it empty. Only this thread's mask changes, and it is restored.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGTTOU);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
            libc::tcsetpgrp(0, group);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
    }
}
