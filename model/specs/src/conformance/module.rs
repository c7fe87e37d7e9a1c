//! A module for TLC with a behaviour in it, and what a checker says of it.

use std::path::{Path, PathBuf};

use crate::Value;
use crate::check::output;
use crate::check::run::library;
use crate::check::tools::Tlc;

/// The two files that TLC reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The name of the module and of its file.
    pub name: &'static str,
    /// The spec that it extends.
    pub spec: &'static str,
    /// The text of the module.
    pub tla: String,
    /// The text of the configuration.
    pub cfg: String,
    /// The number of events in it.
    pub events: usize,
}

/// The folder of a spec, inside that of the specs.
pub(super) fn folder_of(spec: &str) -> String {
    let mut name = String::new();
    for c in spec.chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(c.to_lowercase());
    }
    name
}

/// The folders of the modules that a module extends.
fn folders(module: &Module, specs: &Path) -> Vec<PathBuf> {
    let own = specs.join(folder_of(module.spec));
    let own = std::path::absolute(&own).unwrap_or(own);
    std::iter::once(own).chain(library(specs)).collect()
}

/// The lines of a text as comments.
pub(super) fn wrapped(text: &str) -> Vec<String> {
    const WIDTH: usize = 92;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        // A star and a parenthesis would end the comment.
        let word = word.replace("*)", "* )").replace("(*", "( *");
        let last = lines.last_mut().expect("one at least");
        if !last.is_empty() && last.len() + word.len() >= WIDTH {
            lines.push(word);
        } else {
            let space = if last.is_empty() { "" } else { " " };
            last.push_str(space);
            last.push_str(&word);
        }
    }
    lines.iter().map(|line| format!("\\* {line}")).collect()
}

/// A checker's verdict on a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The recording is a behaviour of the spec, and its final state is the mirror's.
    Accepted,
    /// The checker cannot follow the recording to its end.
    Refused,
    /// As `Refused`, in front of the event with this number, from 1.
    RefusedAt(usize),
    /// The checker follows the recording to a different final state.
    EndsElsewhere,
    /// The checker follows the behaviour to its end, and allows what is claimed there.
    Followed,
    /// The checker gave another result, which is quoted.
    Unclear(String),
}

/// Writes the module and its configuration to a folder.
///
/// # Errors
/// The files cannot be written.
pub fn write(module: &Module, folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!("{}.tla", module.name));
    std::fs::write(&path, &module.tla)?;
    std::fs::write(path.with_extension("cfg"), &module.cfg)
}

/// Runs TLC on a recording.
///
/// # Errors
/// The files cannot be written, or TLC cannot be started.
pub fn check(module: &Module, tlc: &Tlc, specs: &Path) -> std::io::Result<Verdict> {
    let folder = tempfile::tempdir()?;
    write(module, folder.path())?;
    let mut command = tlc.deep_command(&folders(module, specs), folder.path())?;
    command
        .current_dir(folder.path())
        .args(["-workers", "1", "-metadir", "states", module.name]);
    let output = command.output()?;
    Ok(verdict(module, &String::from_utf8_lossy(&output.stdout)))
}

/// Runs `tla-mc` on a recording.
///
/// # Errors
/// The files cannot be written, or `tla-mc` cannot be started.
pub fn check_with_tla_mc(
    module: &Module,
    program: &Path,
    specs: &Path,
) -> std::io::Result<Verdict> {
    let folder = tempfile::tempdir()?;
    write(module, folder.path())?;
    let program = std::path::absolute(program)?;
    // It looks for modules in one folder.
    for part in folders(module, specs) {
        for entry in std::fs::read_dir(part)? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "tla")
                && let Some(name) = path.file_name()
            {
                std::fs::copy(&path, folder.path().join(name))?;
            }
        }
    }
    let output = std::process::Command::new(program)
        .args(["-workers", "1", "-metadir", "states", "-config"])
        .arg(format!("{}.cfg", module.name))
        .arg(format!("{}.tla", module.name))
        .current_dir(folder.path())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    Ok(verdict(module, &said))
}

/// The verdict in a checker's output.
fn verdict(module: &Module, said: &str) -> Verdict {
    let found = output::read(said);
    let at = |step: &crate::graph::Step| {
        step.state.iter().find_map(|(name, value)| match value {
            Value::Int(at) if ["at", "nth"].contains(&name.as_str()) => usize::try_from(*at).ok(),
            _ => None,
        })
    };
    match found.violated.as_deref() {
        Some("NotAtEnd") => Verdict::Accepted,
        Some("EndInv") => Verdict::EndsElsewhere,
        Some("deadlock") => match found.steps.last().and_then(at) {
            Some(at) => Verdict::RefusedAt(at),
            None => Verdict::Refused,
        },
        None if found.holds && module.cfg.contains("NotAtEnd") => Verdict::Refused,
        None if found.holds => Verdict::Followed,
        _ => {
            let last: Vec<&str> = said.lines().rev().take(40).collect();
            Verdict::Unclear(last.into_iter().rev().collect::<Vec<_>>().join("\n"))
        }
    }
}
