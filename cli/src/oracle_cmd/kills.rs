//! `treering oracle --mutations`: checks that each seeded bug is caught, and prints the kill table.

use crate::args::OracleArgs;
use crate::failure::Failure;
use crate::output::Output;

#[cfg(not(feature = "mutations"))]
pub(super) fn run(_: &OracleArgs, _: Option<&Output>) -> Result<(), Failure> {
    Err(Failure::cannot_run(
        "this build has no seeded bugs; build with them: \
         `cargo run --release --features mutations -- oracle --mutations`",
    ))
}

#[cfg(feature = "mutations")]
pub(super) use table::run;

#[cfg(feature = "mutations")]
mod table {
    use std::io::Write as _;

    use serde_json::json;
    use treering_specs::mutations::{self, Kill};

    use super::{Failure, OracleArgs, Output};
    use crate::output::say;

    fn line(kill: &Kill) -> String {
        let verdict = match (kill.is_right(), kill.benign, kill.killed) {
            (true, true, _) => "spared",
            (true, false, _) => "killed",
            (false, true, _) => "ACCUSED",
            (false, false, false) => "MISSED",
            (false, false, true) => "TWIN FAILS",
        };
        let by = kill.by.map_or("-", |check| check.name());
        let expected = kill.expected_check.map_or("nothing", |check| check.name());
        let operations = kill
            .operations
            .map_or_else(|| "-".into(), |n| n.to_string());
        format!(
            "{:<28} {verdict:<10} {:>6.1} s  by {by:<18} expected {expected:<18} {operations:>4} operations  {}\n",
            kill.name, kill.seconds, kill.bug
        )
    }

    /// Runs all mutations, or those that are named.
    pub(in super::super) fn run(args: &OracleArgs, json: Option<&Output>) -> Result<(), Failure> {
        let known: Vec<&str> = (mutations::TABLE.iter().map(|m| m.name))
            .chain(mutations::harmless().iter().copied())
            .collect();
        if let Some(unknown) = args
            .only
            .iter()
            .find(|name| !known.contains(&name.as_str()))
        {
            return Err(Failure::usage(format!(
                "--only {unknown}: expected one of {}",
                known.join(", ")
            )));
        }
        let wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = args.threads.map_or(processors, |n| n as usize);
        let mut kills = Vec::new();
        let mut note = |kill: Kill| -> Result<(), Failure> {
            say(line(&kill).as_bytes())?;
            if !kill.is_right()
                && let Some(finding) = &kill.finding
            {
                // Nothing can be reported if stderr is gone.
                let _ = writeln!(std::io::stderr(), "  {}: {finding}", kill.name);
            }
            kills.push(kill);
            Ok(())
        };
        for mutation in mutations::TABLE.iter().filter(|m| wanted(m.name)) {
            note(mutations::kill(mutation, args.seed, threads))?;
        }
        for name in mutations::harmless().iter().filter(|name| wanted(name)) {
            note(mutations::spare(name, args.seed, threads))?;
        }
        let mut seconds: Vec<f64> = (kills.iter().filter(|k| !k.benign))
            .map(|k| k.seconds)
            .collect();
        seconds.sort_by(f64::total_cmp);
        let wrong: Vec<&str> = kills
            .iter()
            .filter(|k| !k.is_right())
            .map(|k| k.name)
            .collect();
        let median = seconds.get(seconds.len() / 2).copied().unwrap_or_default();
        say(format!(
            "{} of {} mutations gave the expected result; median {median:.1} s\n",
            kills.len() - wrong.len(),
            kills.len()
        )
        .as_bytes())?;
        if let Some(json) = json {
            let document = json!({
                "schema": "treering.oracle/1",
                "complete": true,
                "runs": [],
                "mutations": kills,
            });
            let mut text =
                serde_json::to_vec_pretty(&document).expect("numbers and strings are JSON");
            text.push(b'\n');
            json.write(&text)?;
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Failure::found(format!(
            "these mutations gave an unexpected result: {}",
            wrong.join(", ")
        )))
    }
}
