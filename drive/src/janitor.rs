//! Unmounts a directory when this process dies without doing it.
//!
//! A mount outlives the process that serves it: after a `kill -9` the directory would stay, and
//! answer everything with an error. So a small shell waits for the end of a pipe whose other end
//! this process holds. If a line comes, all is well; if the pipe just ends, the process is gone, and
//! the shell detaches the mount. It is in a process group of its own, so that Ctrl-C spares it.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::error::DriveError;

/// Detaches what is mounted on `$1`, and removes the directory if `$2` says so.
const SCRIPT: &str = "trap '' HUP INT TERM; read -r _ && exit 0; \
    umount -l -- \"$1\" || fusermount3 -uz -- \"$1\" || fusermount -uz -- \"$1\"; \
    test \"$2\" = keep || rmdir -- \"$1\"";

/// Watches over one mount; on drop it is told that all is well.
#[derive(Debug)]
pub(crate) struct Janitor(Child);

/// What becomes of the directory that something was mounted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Directory {
    /// It stays.
    Keep,
    /// It is ours, and is removed.
    Remove,
}

impl Janitor {
    /// Begins to watch; call it before mounting.
    pub(crate) fn watch(dir: &Path, directory: Directory) -> Result<Janitor, DriveError> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "treering-janitor"]).arg(dir);
        shell.arg(match directory {
            Directory::Keep => "keep",
            Directory::Remove => "remove",
        });
        shell.current_dir("/").process_group(0);
        shell
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = shell.spawn();
        child
            .map(Janitor)
            .map_err(DriveError::system("/bin/sh, which unmounts after a crash"))
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            // A shell that is gone has nothing to be told.
            let _ = pipe.write_all(b"done\n");
        }
        let _ = self.0.wait();
    }
}
