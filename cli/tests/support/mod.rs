//! Runs the command and checks the basic rules of its output.
#![allow(dead_code)] // each test binary uses only a part

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The words of a command line. None of them contains a space.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// The command, to be run in `folder`.
pub(crate) fn treering(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_treering"))
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the command starts")
}

/// Runs the command, expects success, and returns its stdout.
pub(crate) fn ok(folder: &Path, args: &[&str]) -> String {
    let output = treering(folder, args);
    assert!(
        output.status.success(),
        "treering {}: expected success, found {:?}\n{}",
        args.join(" "),
        output.status.code(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// Copies the specs into a new folder, without what was downloaded.
pub(crate) fn copy_specs(to: &Path) {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir(to).expect("a folder");
        for entry in std::fs::read_dir(from).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name");
            if path.is_file() {
                std::fs::copy(&path, to.join(name)).expect("a copy");
            } else if name != "target" {
                copy(&path, &to.join(name));
            }
        }
    }
    copy(
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../specs")),
        to,
    );
}

/// The sorted names of everything in `folder`.
pub(crate) fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// Whether this machine has what a test needs; says so if not.
pub(crate) fn has(what: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let lacks = what.iter().find(|what| match **what {
        "root" => !is_root(),
        device if device.starts_with('/') => !Path::new(device).exists(),
        program => !std::env::split_paths(&path).any(|folder| folder.join(program).is_file()),
    });
    if let Some(lacks) = lacks {
        eprintln!("SKIPPED: this machine has no {lacks}");
    }
    lacks.is_none()
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id starts");
    id.stdout.trim_ascii() == b"0"
}

/// The path of a real trace, if it exists. Real traces are not part of the project.
pub(crate) fn real_trace(name: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("TREERING_TRACES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces"),
    };
    let path = folder.join(name);
    if path.is_file() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} does not exist", path.display());
    None
}
