//! Runs a checker as a process, and records its output, exit status and time.

use std::fs::File;
use std::io;
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

/// Runs `command` to its end. Output goes to files in `folder`, so that no pipe fills up.
pub(crate) fn run(command: &mut Command, folder: &Path) -> io::Result<Done> {
    let (out, err) = (folder.join("stdout"), folder.join("stderr"));
    let clock = Instant::now();
    let command = (command.stdin(Stdio::null()))
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?);
    let mut child = scratch::spawn(command)?;
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
    let mut output = String::from_utf8_lossy(&std::fs::read(out)?).into_owned();
    output.push_str(&String::from_utf8_lossy(&std::fs::read(err)?));
    Ok(Done {
        output,
        status,
        elapsed,
        cpu,
    })
}
