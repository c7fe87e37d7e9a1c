//! Runs a checker as a process, and records its output, exit status and time.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{cpu, scratch};

/// The result of a process.
pub(crate) struct Done {
    /// Standard output, then standard error.
    pub(crate) output: String,
    pub(crate) status: ExitStatus,
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Option<Duration>,
}

/// Runs `command` to its end. Standard error goes to a file in `folder`, so that no pipe fills up.
pub(crate) fn run(command: &mut Command, folder: &Path) -> io::Result<Done> {
    run_and_drop(command, folder, |_| false)
}

/// Likewise, without the lines of standard output for which `drops` is true.
pub(crate) fn run_and_drop(
    command: &mut Command,
    folder: &Path,
    mut drops: impl FnMut(&[u8]) -> bool,
) -> io::Result<Done> {
    let err = folder.join("stderr");
    let clock = Instant::now();
    let command = (command.stdin(Stdio::null()))
        .stdout(Stdio::piped())
        .stderr(File::create(&err)?);
    let mut child = scratch::spawn(command)?;
    let mut kept = Vec::new();
    let mut out = child.stdout.take().map(BufReader::new);
    while let Some(out) = &mut out {
        let start = kept.len();
        if out.read_until(b'\n', &mut kept)? == 0 {
            break;
        }
        if drops(kept[start..].trim_ascii_end()) {
            kept.truncate(start);
        }
    }
    // A child that has exited and was not waited for still has its times in /proc.
    let pid = Pid::from_child(&child);
    let ended = waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    );
    let elapsed = clock.elapsed();
    let cpu = ended.ok().and_then(|_| cpu::of(pid.as_raw_pid()));
    scratch::ended(&child);
    let status = child.wait()?;
    let mut output = String::from_utf8_lossy(&kept).into_owned();
    output.push_str(&String::from_utf8_lossy(&std::fs::read(err)?));
    Ok(Done {
        output,
        status,
        elapsed,
        cpu,
    })
}
