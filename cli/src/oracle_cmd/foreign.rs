//! Engines behind `--exec` and `--so`.

use std::io::Write as _;
use std::time::Duration;

use serde_json::json;
use treering_oracle::Engine;
use treering_oracle::exec::kit::{self, Outcome};
use treering_oracle::exec::so::So;
use treering_oracle::exec::{Command, Exec};

use crate::args::OracleArgs;
use crate::failure::Failure;
use crate::output::{Output, say};

/// The engine that `--exec` or `--so` names.
pub(super) struct Foreign {
    /// The flag and its value, as a shell reads them.
    flag: String,
    engine: Kind,
}

enum Kind {
    Exec(Exec),
    So(So),
}

pub(super) fn command(args: &OracleArgs) -> Option<Result<Command, Failure>> {
    let command = Command::parse(args.exec.as_deref()?);
    let with = |command: Command| match args.timeout {
        Some(nanos) => command.with_timeout(Duration::from_nanos(nanos)),
        None => command,
    };
    Some(command.map(with).map_err(|e| Failure::from(&e)))
}

impl Foreign {
    /// Starts the adapter or loads the library, if one is given.
    pub(super) fn of(args: &OracleArgs) -> Result<Option<Foreign>, Failure> {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
        if let Some(file) = &args.so {
            let engine = So::load(file).map_err(|e| Failure::from(&e))?;
            return Ok(Some(Foreign {
                flag: format!("--so {}", quoted(&file.to_string_lossy())),
                engine: Kind::So(engine),
            }));
        }
        let Some(command) = command(args) else {
            return Ok(None);
        };
        let engine = Exec::start(command?).map_err(|e| Failure::from(&e))?;
        Ok(Some(Foreign {
            flag: format!(
                "--exec {}",
                quoted(args.exec.as_deref().unwrap_or_default())
            ),
            engine: Kind::Exec(engine),
        }))
    }

    /// The engine, for the oracle.
    pub(super) fn engine(&self) -> Box<dyn Engine> {
        match &self.engine {
            Kind::Exec(engine) => Box::new(engine.clone()),
            Kind::So(engine) => Box::new(engine.clone()),
        }
    }

    /// The engine in the variant on which a program was found.
    pub(super) fn named(&self, name: &str) -> Result<Box<dyn Engine>, Failure> {
        let Kind::Exec(engine) = &self.engine else {
            return Ok(self.engine());
        };
        if !name.ends_with("/processes") {
            return Ok(self.engine());
        }
        match engine.in_several_processes() {
            Some(several) => Ok(Box::new(several)),
            None => Err(Failure::usage(format!(
                "the program was found on {name}, but {} does not claim \"processes\"",
                engine.name()
            ))),
        }
    }

    /// What to pass to `--replay`.
    pub(super) fn again(&self, file: &str) -> String {
        format!("{file} {}", self.flag)
    }

    /// Fails if the adapter has broken the protocol.
    pub(super) fn unbroken(&self) -> Result<(), Failure> {
        match &self.engine {
            Kind::Exec(engine) => engine.broken().map_or(Ok(()), |e| Err(Failure::from(&e))),
            Kind::So(_) => Ok(()),
        }
    }
}

/// Runs `--self-test`.
pub(super) fn self_test(args: &OracleArgs, json: Option<&Output>) -> Result<(), Failure> {
    let Some(command) = command(args) else {
        return Err(Failure::usage(
            "--self-test: expected --exec 'PROGRAM ARGS'",
        ));
    };
    let report = kit::run(&command?, args.seed).map_err(|e| Failure::from(&e))?;
    let mut wrong = Vec::new();
    let mut broken = false;
    for check in &report.checks {
        let (verdict, why) = check.outcome.in_words();
        if matches!(check.outcome, Outcome::Wrong(_) | Outcome::Broken(_)) {
            wrong.push(format!("{}: {why}", check.name));
        }
        broken |= matches!(check.outcome, Outcome::Broken(_));
        let line = format!("{:<22} {verdict:<8}  {why}", check.name);
        say(format!("{}\n", line.trim_end()).as_bytes())?;
    }
    say(format!(
        "{}: {} requests; {:.0} a second if many are written before answers are read, {:.0} if each \
         waits for its answer\n",
        report.name, report.requests, report.batched_per_second, report.single_per_second
    )
    .as_bytes())?;
    if let Some(json) = json {
        let checks = report.checks.iter().map(|check| {
            let (verdict, why) = check.outcome.in_words();
            json!({"name": check.name, "verdict": verdict, "why": why})
        });
        let document = json!({
            "schema": "treering.oracle/1",
            "complete": true,
            "runs": [{
                "engine": format!("exec:{}", report.name),
                "mode": "self-test",
                "verdict": if wrong.is_empty() { "holds" } else { "violated" },
                "operations": report.requests,
                "batched_per_second": report.batched_per_second,
                "single_per_second": report.single_per_second,
                "checks": checks.collect::<Vec<_>>(),
            }],
            "mutations": [],
        });
        let mut text = serde_json::to_vec_pretty(&document).expect("numbers and strings are JSON");
        text.push(b'\n');
        json.write(&text)?;
    }
    // Nothing can be reported if stdout is gone.
    let _ = std::io::stdout().flush();
    match (wrong.first(), broken) {
        (None, _) => Ok(()),
        (Some(first), true) => Err(Failure::usage(first.clone())),
        (Some(first), false) => Err(Failure::found(first.clone())),
    }
}
