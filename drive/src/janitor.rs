//! Unmounts a directory when this process dies without doing it.
//!
//! A mount outlives the process that serves it: after a `kill -9` the directory would stay, and
//! answer everything with an error. So a small shell waits for the end of a pipe whose other end
//! this process holds. If a line comes, all is well; if the pipe just ends, the process is gone, and
//! the shell detaches the mount. It is in a process group of its own, so that Ctrl-C spares it.
//!
//! The directory may be where something else is mounted already. So the device that it is on before
//! is remembered, and nothing is unmounted while it is on that one.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::error::DriveError;

/// Detaches what is mounted on `$1`, which was on the device `$3` before, and removes the directory
/// if `$2` says so.
const SCRIPT: &str = "trap '' HUP INT TERM; read -r _ && exit 0; \
    test \"$(stat -c %d -- \"$1\")\" = \"$3\" || \
    umount -l -- \"$1\" || fusermount3 -uz -- \"$1\" || fusermount -uz -- \"$1\"; \
    test \"$2\" = keep || rmdir -- \"$1\"";

/// Watches over one mount; on drop it is told that all is well.
#[derive(Debug)]
pub(crate) struct Janitor {
    shell: Child,
    /// The device that the directory is on when nothing is mounted on it.
    below: u64,
}

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
        let below = std::fs::metadata(dir).map(|found| found.dev());
        let below = below.map_err(DriveError::system(dir.display().to_string()))?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "treering-janitor"]).arg(dir);
        shell.arg(match directory {
            Directory::Keep => "keep",
            Directory::Remove => "remove",
        });
        shell.arg(below.to_string());
        shell.current_dir("/").process_group(0);
        shell
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let shell = shell.spawn();
        shell
            .map(|shell| Janitor { shell, below })
            .map_err(DriveError::system("/bin/sh, which unmounts after a crash"))
    }

    /// Whether nothing is mounted on the directory, or no longer.
    pub(crate) fn sees_nothing(&self, dir: &Path) -> bool {
        std::fs::metadata(dir).is_ok_and(|found| found.dev() == self.below)
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.shell.stdin.take() {
            // A shell that is gone has nothing to be told.
            let _ = pipe.write_all(b"done\n");
        }
        let _ = self.shell.wait();
    }
}
