//! `treering replay-together`: replays that differ only in the drive, with one run of the tree. A
//! sweep starts it; nobody else has to.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use treering_sim::replay;

use crate::args::{ReplayArgs, TogetherArgs};
use crate::failure::{self, Failure};
use crate::interrupt;
use crate::output;
use crate::replay_cmd;
use crate::replay_config;

/// A replay of the list.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Member {
    /// Where its report goes.
    pub(crate) json: PathBuf,
    /// The arguments of `treering replay`, without outputs.
    pub(crate) arguments: Vec<String>,
}

/// Replays the list. A replay that must be run alone has no report; nor has one that has not reached
/// what `--strict` demands.
///
/// # Errors
/// If the list cannot be read, or the replay fails.
pub(crate) fn run(args: &TogetherArgs) -> Result<(), Failure> {
    let name = args.list.display().to_string();
    let text = std::fs::read(&args.list).map_err(|e| Failure::file(&name, &e))?;
    let members: Vec<Member> = serde_json::from_slice(&text)
        .map_err(|e| Failure::usage(format!("{name}: {e}; expected a list of replays")))?;
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
        let bytes = output::json(&report)?;
        output::write_with(&member.json, |out| {
            out.write_all(&bytes)
                .map_err(|e| Failure::file(&member.json.display().to_string(), &e))
        })?;
    }
    Ok(())
}
