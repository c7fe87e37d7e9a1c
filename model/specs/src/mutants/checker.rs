//! Runs `tla-mc` on a model whose modules are replaced.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use super::mutant::MutantsError;
use crate::check::configs::BoundedModel;
use crate::check::output::{self, Findings};
use crate::check::process;
use crate::check::run::temporal_name;
use crate::check::scratch::Scratch;

/// The size of a state graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) distinct: u64,
    pub(super) generated: u64,
    pub(super) depth: u64,
}

/// `SIGXCPU` and `SIGKILL`: how a process ends that has used up its processor time.
const STOPS: [i32; 2] = [Signal::XCPU.as_raw(), Signal::KILL.as_raw()];

/// A folder with the modules of a spec, some of them replaced.
pub(super) struct Folder(Scratch);

/// The result of one run of `tla-mc`.
pub(super) struct Ran {
    pub(super) findings: Findings,
    generated: Option<u64>,
    pub(super) cpu: Duration,
    /// Whether it was stopped because it took too long.
    pub(super) unfinished: bool,
}

impl Ran {
    pub(super) fn counts(&self) -> Option<Counts> {
        Some(Counts {
            distinct: self.findings.distinct?,
            generated: self.generated?,
            depth: self.findings.depth?,
        })
    }

    /// The name of what is violated.
    pub(super) fn violated(&self, model: &BoundedModel) -> Option<String> {
        let found = self.findings.violated.as_deref()?;
        let temporal = || {
            let properties = model.config.properties.iter();
            let temporal = properties.filter(|name| !name.starts_with("Contract"));
            temporal.cloned().collect::<Vec<_>>().join(" or ")
        };
        let unnamed = || match found {
            "" => temporal(),
            found => found.to_owned(),
        };
        Some(temporal_name(model, found).unwrap_or_else(unnamed))
    }
}

pub(super) fn failed(what: &Path) -> impl Fn(std::io::Error) -> MutantsError {
    let what = what.display().to_string();
    move |source| MutantsError::Io {
        what: what.clone(),
        source,
    }
}

impl Folder {
    /// Makes a folder with the modules that `model` needs. `replaced` has names and texts.
    pub(super) fn new(
        model: &BoundedModel,
        replaced: &[(String, String)],
    ) -> Result<Folder, MutantsError> {
        let from = model.module.parent().unwrap_or(Path::new("."));
        let scratch = Scratch::new().map_err(failed(Path::new("a folder for a mutant")))?;
        for entry in std::fs::read_dir(from).map_err(failed(from))? {
            let path = entry.map_err(failed(from))?.path();
            let Some(name) = path
                .file_name()
                .filter(|_| path.extension().is_some_and(|e| e == "tla"))
            else {
                continue;
            };
            let to = scratch.path().join(name);
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            match replaced.iter().find(|(module, _)| Some(&**module) == stem) {
                Some((_, text)) => std::fs::write(&to, text).map_err(failed(&to))?,
                None => std::os::unix::fs::symlink(&path, &to).map_err(failed(&to))?,
            }
        }
        Ok(Folder(scratch))
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, MutantsError> {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).map_err(failed(&path))?;
        Ok(path)
    }

    /// Runs `tla-mc` with one worker, for at most `limit` of processor time.
    pub(super) fn run(
        &self,
        tla_mc: &Path,
        specs: &Path,
        model: &BoundedModel,
        config: &Path,
        limit: Option<Duration>,
    ) -> Result<Ran, MutantsError> {
        // The shell sets the limit and becomes the checker.
        let seconds = limit.map_or("unlimited".into(), |l| l.as_secs().max(1).to_string());
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -t \"$0\" && exec \"$@\"", &seconds])
            .arg(std::path::absolute(tla_mc).map_err(failed(tla_mc))?)
            .args(["-workers", "1", "-lib"])
            .arg(std::path::absolute(specs.join("contract")).map_err(failed(specs))?)
            .arg("-metadir")
            .arg(self.0.path().join("states"))
            .arg("-config")
            .arg(std::path::absolute(config).map_err(failed(config))?)
            .arg(model.module.file_name().unwrap_or_default())
            .current_dir(self.0.path());
        let done = process::run(&mut command, self.0.path()).map_err(failed(tla_mc))?;
        let mut findings = output::read(&done.output);
        if let Some(signal) = done.status.signal() {
            findings.error = Some(format!("the checker was ended by signal {signal}"));
        }
        let decided = findings.holds || findings.violated.is_some();
        Ok(Ran {
            generated: generated(&done.output),
            cpu: done.cpu.unwrap_or(done.elapsed),
            // Other signals, such as that of a recursion without end, come from the mutant.
            unfinished: !decided && done.status.signal().is_some_and(|s| STOPS.contains(&s)),
            findings,
        })
    }
}

/// The last count of `N states generated`.
fn generated(text: &str) -> Option<u64> {
    let count = |line: &str| line.split_once(" states generated")?.0.parse().ok();
    text.lines().rev().find_map(count)
}
