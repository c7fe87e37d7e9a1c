//! Running an engine's tool.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use super::engine::Trouble;
use crate::acks::{Content, unhex};
use crate::failure::Failure;

/// What a tool has printed, and how it ended.
pub(super) struct Said {
    /// How it ended.
    pub(super) status: ExitStatus,
    /// Its standard output.
    pub(super) out: Vec<u8>,
    /// Its standard error.
    pub(super) err: String,
}

/// The path of a program; `None` if it is not installed.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // Debian keeps the servers of PostgreSQL out of $PATH, the newest last.
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut versions: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    versions.sort();
    folders.extend(versions.into_iter().rev());
    let files = folders.into_iter().map(|folder| folder.join(name));
    files.into_iter().find(|file| file.is_file())
}

/// The first line that a command prints.
pub(super) fn first_line(program: &Path, arguments: &[&str]) -> Option<String> {
    let said = run(Command::new(program).args(arguments), "").ok()?;
    let said = String::from_utf8_lossy(&said.out).into_owned();
    said.lines().next().map(|line| line.trim().to_owned())
}

/// Runs a tool to its end with this input.
pub(super) fn run(command: &mut Command, input: &str) -> Result<Said, Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error| Failure::cannot_run(format!("{program}: {error}"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // One that ends without reading its input is judged by what it says.
    let _ = child
        .stdin
        .take()
        .map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(failed)?;
    Ok(Said {
        status: output.status,
        out: output.stdout,
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Runs a tool. Returns its output; its failure is one of the state.
pub(super) fn output<S: AsRef<OsStr>>(
    dir: &Path,
    program: &str,
    arguments: &[S],
) -> Result<Vec<u8>, Trouble> {
    let said = run(Command::new(program).args(arguments), "")?;
    match said.status.success() {
        true => Ok(said.out),
        false => Err(said.failed(dir, program)),
    }
}

impl Said {
    /// The state's failure that the tool has told.
    pub(super) fn failed(&self, dir: &Path, program: &str) -> Trouble {
        let out = String::from_utf8_lossy(&self.out);
        let lines = self.err.lines().chain(out.lines());
        let mut lines = lines.map(str::trim).filter(|line| !line.is_empty());
        let first = lines.next().map(str::to_owned);
        let first = first.unwrap_or_else(|| self.status.to_string());
        let rest: Vec<&str> = lines.take(6).collect();
        let name = Path::new(program).file_name().unwrap_or_default().display();
        let told = format!("the store is damaged or does not open\n{name}: {first}\n");
        Trouble::State(without(dir, &(told + &rest.join("\n"))))
    }
}

/// A message without the place where the state happens to be mounted.
pub(super) fn without(dir: &Path, text: &str) -> String {
    let dir = dir.display().to_string();
    text.replace(&format!("{dir}/"), "").replace(&dir, ".")
}

/// Records as pairs of hexadecimal words, `-` for no bytes, of which each line has two.
pub(super) fn pairs(text: &[u8]) -> Option<Content> {
    let bytes = |word: &[u8]| match word {
        b"-" => Some(Vec::new()),
        word => unhex(word),
    };
    let lines = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let pair = |line: &[u8]| {
        let at = line.iter().position(|byte| *byte == b' ')?;
        Some((bytes(&line[..at])?, bytes(&line[at + 1..])?))
    };
    lines.map(pair).collect()
}

/// The failure of a tool whose output is not of the form that this version knows.
pub(super) fn not_understood(program: &str) -> Trouble {
    Failure::cannot_run(format!(
        "{program}: expected records as pairs, found another output"
    ))
    .into()
}
