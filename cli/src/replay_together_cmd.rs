//! `treering replay-together`: replays that differ only in the drive, with one run of the tree. A
//! sweep starts it; nobody else has to.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use treering_sim::replay;

use crate::args::{ReplayArgs, TogetherArgs};
use crate::failure::{self, Failure};
use crate::interrupt;
use crate::output;
use crate::replay_cmd;
use crate::replay_config;

/// A run of the list.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Member {
    /// Where its report goes.
    pub(crate) json: PathBuf,
    /// The arguments of its command, without outputs.
    pub(crate) arguments: Vec<String>,
}

impl Member {
    /// Writes its report, completely or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, report: &impl Serialize) -> Result<(), Failure> {
        let bytes = output::json(report)?;
        output::write_with(&self.json, |out| {
            out.write_all(&bytes)
                .map_err(|e| Failure::file(&self.json.display().to_string(), &e))
        })
    }
}

/// The runs of a list.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn members(list: &Path) -> Result<Vec<Member>, Failure> {
    let name = list.display().to_string();
    let text = std::fs::read(list).map_err(|e| Failure::file(&name, &e))?;
    serde_json::from_slice(&text)
        .map_err(|e| Failure::usage(format!("{name}: {e}; expected a list of runs")))
}

/// Replays the list. A replay that must be run alone has no report; nor has one that has not reached
/// what `--strict` demands.
///
/// # Errors
/// If the list cannot be read, or the replay fails.
pub(crate) fn run(args: &TogetherArgs) -> Result<(), Failure> {
    let members = members(&args.list)?;
    let parsed: Result<Vec<ReplayArgs>, Failure> = (members.iter())
        .map(|member| ReplayArgs::of(&member.arguments).map_err(|e| failure::clap(&e)))
        .collect();
    let parsed = parsed?;
    let configs: Result<Vec<_>, Failure> = parsed.iter().map(replay_config::of).collect();
    let reports = replay::run_together(&configs?, &mut |_| {})?;
    for ((member, args), report) in members.iter().zip(&parsed).zip(reports) {
        let Some(report) = report else { continue };
        if !report.complete {
            return interrupt::check(|| format!("{} operations were replayed", report.trace.ops));
        }
        if args.strict && replay_cmd::check_reached(&report).is_err() {
            continue;
        }
        member.write(&report)?;
    }
    Ok(())
}
