//! Outputs of commands: stdout, and files that are written completely or not at all.
//!
//! Output files are checked *before* a long run begins: the folder must exist, be writable and have
//! room. They are written beside their target and then renamed. A target that exists and is not a
//! regular file (`/dev/null`, a pipe) is written to directly.

use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::interrupt::Ours;

/// One output of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// `-`.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl Output {
    /// Parses `--flag VALUE`; fails early if the output cannot be written.
    pub(crate) fn new(flag: &str, value: &Path) -> Result<Output, Failure> {
        if value.as_os_str() == "-" {
            return Ok(Output::Stdout);
        }
        check_target(flag, value)?;
        Ok(Output::File(value.into()))
    }

    /// Parses `--flag VALUE` if it was given, as [`Output::new`] does. The output must be none of
    /// the inputs.
    pub(crate) fn if_given(
        flag: &str,
        value: Option<&Path>,
        inputs: &[&Path],
    ) -> Result<Option<Output>, Failure> {
        let Some(value) = value else { return Ok(None) };
        for input in inputs {
            check_not_input(flag, value, input)?;
        }
        Output::new(flag, value).map(Some)
    }

    /// Writes all of `bytes`.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Output::Stdout => say(bytes),
            Output::File(path) => write_file(path, bytes),
        }
    }
}

/// The documents that a command with charts can write.
#[derive(Clone, Debug)]
pub(crate) struct Documents {
    pub(crate) json: Option<Output>,
    pub(crate) html: Option<Output>,
    pub(crate) svg: Option<Output>,
}

impl Documents {
    /// Parses `--json`, `--html` and `--svg`: different files, and none of the inputs.
    pub(crate) fn new(
        [json, html, svg]: [Option<&Path>; 3],
        inputs: &[&Path],
    ) -> Result<Documents, Failure> {
        let documents = Documents {
            json: Output::if_given("--json", json, inputs)?,
            html: Output::if_given("--html", html, inputs)?,
            svg: Output::if_given("--svg", svg, inputs)?,
        };
        for (flag, output) in [("--html", &documents.html), ("--svg", &documents.svg)] {
            if *output == Some(Output::Stdout) {
                return Err(Failure::usage(format!("{flag} -: expected a file")));
            }
        }
        let files = [&documents.json, &documents.html, &documents.svg];
        let mut files: Vec<_> = files.into_iter().flatten().collect();
        while let Some(file) = files.pop() {
            if files.contains(&file) {
                return Err(Failure::usage(
                    "--json, --html, --svg: expected different files",
                ));
            }
        }
        Ok(documents)
    }
}

/// Refuses an output file that is a folder or whose folder is missing.
pub(crate) fn check_target(flag: &str, path: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::usage(format!("{flag} {}: {why}", path.display())));
    if path.is_dir() {
        return refuse("expected a file, found a directory");
    }
    if path.file_name().is_none() {
        return refuse("expected a file name");
    }
    match folder(path).metadata() {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return refuse("its folder is not a directory"),
        Err(_) => return refuse("its folder does not exist"),
    }
    check_writable(flag, path)?;
    check_room(
        &format!("{flag} {}", path.display()),
        folder(path),
        LEAST_ROOM,
    )
}

/// Minimum free space for a report.
const LEAST_ROOM: u64 = 64 << 10;

/// Whether the output becomes a new file beside its target, rather than writing to a pipe or
/// device.
pub(crate) fn makes_file(path: &Path) -> bool {
    path.metadata().map_or(true, |meta| meta.is_file())
}

/// Refuses a file that could not be written later, by creating a temporary file beside it.
fn check_writable(flag: &str, path: &Path) -> Result<(), Failure> {
    // Opening and closing a pipe would end its reader.
    if !makes_file(path) {
        return Ok(());
    }
    let tried = tempfile::Builder::new()
        .prefix(".treering-")
        .tempfile_in(folder(path));
    match tried {
        Ok(_) => Ok(()),
        Err(e) => Err(Failure::usage(format!(
            "{flag} {}: its folder cannot be written: {}",
            path.display(),
            e.kind()
        ))),
    }
}

/// Fails if the file system of `folder` has less than `needed` bytes free for `what`.
pub(crate) fn check_room(what: &str, folder: &Path, needed: u64) -> Result<(), Failure> {
    // If the file system cannot report its free space, assume that there is room.
    let Ok(stat) = rustix::fs::statvfs(folder) else {
        return Ok(());
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    // File systems in memory and of the kernel report no blocks at all.
    if stat.f_blocks == 0 || free >= needed {
        return Ok(());
    }
    Err(Failure::cannot_run(format!(
        "{what}: {} has {free} bytes free; expected at least {needed}",
        folder.display()
    )))
}

/// Refuses an output that is also an input.
pub(crate) fn check_not_input(flag: &str, output: &Path, input: &Path) -> Result<(), Failure> {
    let same = match (output.canonicalize(), input.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    };
    if same {
        return Err(Failure::usage(format!(
            "{flag} {}: would overwrite the input",
            output.display()
        )));
    }
    Ok(())
}

/// The folder that a file is in.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let name = path.display().to_string();
    write_with(path, |out| {
        out.write_all(bytes).map_err(|e| Failure::file(&name, &e))
    })
}

/// Writes a file by `fill`, completely or not at all.
pub(crate) fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let beside = Beside::begin(path)?;
    fill(&mut beside.file())?;
    beside.finish()
}

/// A file that is written beside its target and replaces it at the end; or the target itself, if
/// that is not a regular file.
pub(crate) struct Beside {
    name: String,
    target: PathBuf,
    to: To,
}

enum To {
    Itself(File),
    Temporary(NamedTempFile, Ours),
}

impl Beside {
    pub(crate) fn begin(path: &Path) -> Result<Beside, Failure> {
        let name = path.display().to_string();
        // A symbolic link stays; the file that it points to is replaced.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let to = if target.metadata().is_ok_and(|meta| !meta.is_file()) {
            let file = std::fs::OpenOptions::new().write(true).open(&target);
            file.map(To::Itself)
        } else {
            tempfile::Builder::new()
                .prefix(".treering-")
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(folder(&target))
                .map(|file| {
                    let ours = Ours::new(file.path());
                    To::Temporary(file, ours)
                })
        };
        let to = to.map_err(|e| Failure::file(&name, &e))?;
        Ok(Beside { name, target, to })
    }

    pub(crate) fn file(&self) -> &File {
        match &self.to {
            To::Itself(file) => file,
            To::Temporary(beside, _) => beside.as_file(),
        }
    }

    /// Replaces the target by what was written.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.to {
            To::Itself(_) => Ok(()),
            To::Temporary(beside, _ours) => match beside.persist(&self.target) {
                Ok(_) => Ok(()),
                Err(e) => Err(Failure::file(&self.name, &e.error)),
            },
        }
    }
}

/// Prints results. If the reader has gone away (`| head`), that is not an error.
pub(crate) fn say(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::file("stdout", &e)),
        _ => Ok(()),
    }
}

/// Prints a warning on stderr, on one line.
pub(crate) fn warn(sentence: &str) {
    let line = format!(
        "treering: warning: {}\n",
        crate::failure::one_line(sentence)
    );
    // Nothing can be reported if stderr is gone.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Serializes a document as JSON, in the format of all commands.
pub(crate) fn json(document: &impl serde::Serialize) -> Result<Vec<u8>, Failure> {
    let mut bytes = serde_json::to_vec_pretty(document)
        .map_err(|e| Failure::cannot_run(format!("--json: {e}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes an unfinished document when a command is stopped. Errors are ignored.
pub(crate) fn write_partial(to: Option<&Output>, document: &impl serde::Serialize) {
    if let (Some(to), Ok(bytes)) = (to, json(document))
        && let Err(failure) = to.write(&bytes)
    {
        warn(&failure.message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_room_is_named_with_what_is_expected() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(check_room("--json x", folder.path(), 1).is_ok());
        let refused = check_room("--json x", folder.path(), u64::MAX);
        let Err(failure) = refused else {
            panic!("no disk has that much room");
        };
        let sentence = failure.message;
        assert!(
            sentence.contains("bytes free; expected at least"),
            "{sentence}"
        );
    }
}
