//! Runs `tla-mc`, and TLC for its coverage, on a model whose modules are replaced.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use super::mutant::MutantsError;
use super::scope::Scope;
use super::steps::{self, Graph, Steps};
use crate::check::configs::BoundedModel;
use crate::check::output::{self, Findings};
use crate::check::process;
use crate::check::run::{library, temporal_name};
use crate::check::scratch::Scratch;
use crate::check::tools::Tlc;

/// The size of a state graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) distinct: u64,
    pub(super) generated: u64,
    pub(super) depth: u64,
}

/// `SIGXCPU` and `SIGKILL`: how a process ends that has used up its processor time.
const STOPS: [i32; 2] = [Signal::XCPU.as_raw(), Signal::KILL.as_raw()];

/// The checkers that judge mutants.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    pub(super) tla_mc: PathBuf,
    pub(super) tlc: Tlc,
}

/// The configuration of a model.
fn config_of(model: &BoundedModel) -> Result<String, MutantsError> {
    let path = &model.config.path;
    std::fs::read_to_string(path).map_err(failed(path))
}

/// The configuration of `model` without what it checks.
pub(super) fn bare(model: &BoundedModel) -> Result<String, MutantsError> {
    const CHECKED: [&str; 4] = ["INVARIANT", "INVARIANTS", "PROPERTY", "PROPERTIES"];
    const OTHERS: [&str; 6] = [
        "SPECIFICATION",
        "CONSTANT",
        "CONSTANTS",
        "CONSTRAINT",
        "CONSTRAINTS",
        "CHECK_DEADLOCK",
    ];
    let mut kept = String::new();
    let mut keeps = true;
    for line in config_of(model)?.lines() {
        let word = line.split_whitespace().next().unwrap_or_default();
        keeps = OTHERS.contains(&word) || (keeps && !CHECKED.contains(&word));
        if keeps {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    Ok(kept)
}

/// A folder with the modules of a spec, some of them replaced, and one that shows the steps.
pub(super) struct Folder(Scratch);

/// The result of one run of `tla-mc`.
pub(super) struct Ran {
    pub(super) findings: Findings,
    generated: Option<u64>,
    /// The steps, if they were asked for.
    pub(super) graph: Option<Graph>,
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
        scope: &Scope,
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
        let folder = Folder(scratch);
        folder.write(&format!("{}.tla", steps::MODULE), &steps::module(scope))?;
        Ok(folder)
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
        limit: Option<Duration>,
    ) -> Result<Ran, MutantsError> {
        let module = model.module.file_name().unwrap_or_default();
        self.run_module(tla_mc, specs, module, &config_of(model)?, limit)
    }

    /// Likewise, and notes the steps of a model that has no violation by intention.
    pub(super) fn run_noting_steps(
        &self,
        tla_mc: &Path,
        specs: &Path,
        model: &BoundedModel,
        limit: Option<Duration>,
    ) -> Result<Ran, MutantsError> {
        let module = format!("{}.tla", steps::MODULE);
        let config = steps::config(&bare(model)?);
        self.run_module(tla_mc, specs, OsStr::new(&module), &config, limit)
    }

    fn run_module(
        &self,
        tla_mc: &Path,
        specs: &Path,
        module: &OsStr,
        config: &str,
        limit: Option<Duration>,
    ) -> Result<Ran, MutantsError> {
        let mut command = limited(limit);
        command
            .arg(std::path::absolute(tla_mc).map_err(failed(tla_mc))?)
            .args(["-workers", "1"])
            .args(
                library(specs)
                    .iter()
                    .flat_map(|part| [Path::new("-lib"), part]),
            )
            .arg("-metadir")
            .arg(self.0.path().join("states"))
            .arg("-config")
            .arg(self.write("judge.cfg", config)?)
            .arg(module)
            .current_dir(self.0.path());
        let mut steps = Steps::default();
        let done = process::run_and_drop(&mut command, self.0.path(), |line| steps.note(line));
        let done = done.map_err(failed(tla_mc))?;
        let mut findings = output::read(&done.output);
        if let Some(signal) = done.status.signal() {
            findings.error = Some(format!("the checker was ended by signal {signal}"));
        }
        let decided = findings.holds || findings.violated.is_some();
        Ok(Ran {
            generated: generated(&done.output),
            graph: findings.holds.then(|| steps.graph()),
            cpu: done.cpu.unwrap_or(done.elapsed),
            // Other signals, such as that of a recursion without end, come from the mutant.
            unfinished: !decided && done.status.signal().is_some_and(|s| STOPS.contains(&s)),
            findings,
        })
    }

    /// The actions that some behaviour takes, as TLC counts them, and the processor time. `None` if
    /// it could not visit all states within `limit`. `config` has no properties.
    pub(super) fn taken(
        &self,
        tlc: &Tlc,
        specs: &Path,
        model: &BoundedModel,
        config: &Path,
        limit: Option<Duration>,
    ) -> Result<(Option<BTreeSet<String>>, Duration), MutantsError> {
        let java = (tlc.brief_command(&library(specs), self.0.path())).map_err(failed(specs))?;
        let mut command = limited(limit);
        command
            .arg(java.get_program())
            .args(java.get_args())
            .args(["-workers", "1", "-coverage", "9999", "-metadir"])
            .arg(self.0.path().join("counted"))
            .arg("-config")
            .arg(std::path::absolute(config).map_err(failed(config))?)
            .arg(model.module.file_name().unwrap_or_default())
            .current_dir(self.0.path());
        let done = process::run(&mut command, self.0.path()).map_err(failed(Path::new("TLC")))?;
        let findings = output::read(&done.output);
        let taken = findings.taken.into_iter().collect();
        let spent = done.cpu.unwrap_or(done.elapsed);
        Ok((findings.holds.then_some(taken), spent))
    }
}

/// A command to which the caller adds a program and its arguments, which then may take `limit` of
/// processor time. The shell sets the limit and becomes the program.
fn limited(limit: Option<Duration>) -> Command {
    let seconds = limit.map_or("unlimited".into(), |l| l.as_secs().max(1).to_string());
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -t \"$0\" && exec \"$@\"", &seconds]);
    command
}

/// The last count of `N states generated`.
fn generated(text: &str) -> Option<u64> {
    let count = |line: &str| line.split_once(" states generated")?.0.parse().ok();
    text.lines().rev().find_map(count)
}
