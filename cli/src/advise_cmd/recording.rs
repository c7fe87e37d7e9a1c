//! Advice for a program whose writes were recorded: which drive, how much over-provisioning, and
//! which garbage collection.
//!
//! More over-provisioning always means fewer writes of flash, and always costs flash. So a step is
//! *worth it* if it saves a larger share of the flash writes than it adds of the flash: then the
//! flash lasts longer by more than it costs. The advice is the last step from below that is worth
//! it. Collection and drive are those with the fewest flash writes there.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::objective::number;
use super::words::{figure, per_cent, quoted};
use crate::args::{AdviseArgs, Listed, Objective};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Output};

/// Name and version of the document.
const SCHEMA: &str = "treering.advise/1";

/// What is tried if it is not given.
const TRIED: [(&str, &str); 3] = [
    ("device", "ssd,csd"),
    ("op", "7%,15%,28%,50%"),
    ("gc", "greedy,cost-benefit,d-choices:8"),
];

/// Another collection, or another drive, is better by at least this.
const NEAR: f64 = 0.005;

/// A drive that took the recording.
#[derive(Clone, Debug, PartialEq)]
struct Drive {
    profile: String,
    gc: String,
    /// Over-provisioning in force.
    spare: f64,
    /// Bytes of flash per recorded byte, measured and predicted.
    written: f64,
    predicted: Value,
    years: Option<f64>,
}

impl Drive {
    fn of(report: &Value) -> Option<Drive> {
        let text = |path: &str| Some(report.pointer(path)?.as_str()?.to_owned());
        Some(Drive {
            profile: text("/device/profile")?,
            gc: text("/device/gc")?,
            spare: number(report, "device.over_provisioning")?,
            written: number(report, "wa.device.total")?,
            predicted: report["wa"]["predicted"]["device"]["total"].clone(),
            years: number(report, "lifetime.years_until_pe_limit"),
        })
    }

    fn said(&self) -> String {
        let spare = per_cent(self.spare);
        format!(
            "{} with {spare} over-provisioning, {}",
            self.profile, self.gc
        )
    }
}

/// A step to more over-provisioning.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    from: Drive,
    to: Drive,
    /// Share of the flash writes that it saves.
    saved: f64,
    /// Share of the flash that it adds.
    added: f64,
}

impl Step {
    fn new(from: &Drive, to: &Drive) -> Step {
        Step {
            saved: 1.0 - to.written / from.written,
            added: (1.0 + to.spare) / (1.0 + from.spare) - 1.0,
            from: from.clone(),
            to: to.clone(),
        }
    }

    fn is_worth_it(&self) -> bool {
        self.saved > self.added
    }
}

/// Whether the file is a recording of `treering drive`.
pub(super) fn is_one(args: &AdviseArgs) -> bool {
    treering_drive::recording::Reader::open(&args.trace).is_ok()
}

/// Advises.
pub(super) fn advise(args: &AdviseArgs, json: Option<&Output>) -> Result<(), Failure> {
    refuse(args)?;
    let report = replayed(args)?;
    let drives = report["devices"].as_array().into_iter().flatten();
    let mut drives: Vec<Drive> = drives.filter_map(Drive::of).collect();
    // On a small drive, one spare erase block may be more than was asked for, several times.
    drives.sort_by(|a, b| b.spare.total_cmp(&a.spare));
    let mut seen = BTreeSet::new();
    drives.retain(|d| seen.insert((d.profile.clone(), d.gc.clone(), d.written.to_bits())));
    let mut steps = Vec::new();
    let Some(best) = choose(&mut drives, &mut steps) else {
        return Err(Failure::not_reached(
            "nothing was written in the measured part of the recording, so nothing can be advised",
        ));
    };
    if let Some(json) = json {
        json.write(&output::json(&document(args, &best, &drives, &steps))?)?;
    }
    match json {
        Some(Output::Stdout) => Ok(()),
        _ => output::say(words(args, &report, &best, &drives, &steps).as_bytes()),
    }
}

/// Refuses flags of trees.
fn refuse(args: &AdviseArgs) -> Result<(), Failure> {
    let only = |flag: &str| {
        Err(Failure::usage(format!(
            "{flag}: {} is a recording of a program; the flag applies only to the advice for a trace",
            args.trace.display()
        )))
    };
    match (args.constraints.is_empty(), args.objective) {
        (false, _) => only("--constraint"),
        (_, Objective::Wa) => Ok(()),
        _ => only("--objective"),
    }
}

/// Has all drives take the recording, in a process of their own.
fn replayed(args: &AdviseArgs) -> Result<Value, Failure> {
    let cannot = |e: &dyn std::fmt::Display| Failure::cannot_run(format!("drive replay: {e}"));
    let program = std::env::current_exe().map_err(|e| cannot(&e))?;
    let mut command = Command::new(program);
    command.args(["drive", "replay"]).arg(&args.trace);
    command.args(["--json", "-"]);
    let mut flags: BTreeMap<&str, String> = TRIED.map(|(f, v)| (f, v.to_owned())).into();
    for Listed { flag, values } in &args.flags {
        flags.insert(flag, values.join(","));
    }
    for (flag, value) in flags {
        match value.as_str() {
            "true" => command.arg(format!("--{flag}")),
            value => command.arg(format!("--{flag}={value}")),
        };
    }
    command.env(interrupt::PARENT, std::process::id().to_string());
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| cannot(&e))?;
    interrupt::check(|| "no drive was tried".into())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().last().unwrap_or("it failed");
        return Err(Failure {
            status: output
                .status
                .code()
                .map_or(3, |code| code.clamp(1, 4) as u8),
            message: said.trim_start_matches("treering: ").to_owned(),
        });
    }
    serde_json::from_slice(&output.stdout).map_err(|e| cannot(&e))
}

/// The advised drive. The drives come out with the fewest flash writes first, and the steps of its
/// profile and collection from below.
fn choose(drives: &mut [Drive], steps: &mut Vec<Step>) -> Option<Drive> {
    drives.sort_by(|a, b| a.written.total_cmp(&b.written));
    let first = drives.first().filter(|drive| drive.written > 0.0)?;
    let same = |drive: &&Drive| drive.profile == first.profile && drive.gc == first.gc;
    let mut ladder: Vec<&Drive> = drives.iter().filter(same).collect();
    ladder.sort_by(|a, b| a.spare.total_cmp(&b.spare));
    steps.extend(ladder.windows(2).map(|pair| Step::new(pair[0], pair[1])));
    let worth = steps.iter().take_while(|step| step.is_worth_it());
    worth
        .last()
        .map(|step| step.to.clone())
        .or_else(|| ladder.first().copied().cloned())
}

fn document(args: &AdviseArgs, best: &Drive, drives: &[Drive], steps: &[Step]) -> Value {
    let ranking = drives.iter().map(|drive| {
        json!({
            "tree": null,
            "options": { "device": drive.profile, "op": drive.spare, "gc": drive.gc },
            "predicted": drive.predicted,
            "measured": drive.written,
            "years_until_pe_limit": drive.years,
            "why": why(best, drive),
        })
    });
    let steps = steps.iter().map(|step| {
        json!({
            "from": step.from.spare,
            "to": step.to.spare,
            "saved": step.saved,
            "added": step.added,
            "worth_it": step.is_worth_it(),
        })
    });
    json!({
        "schema": SCHEMA,
        "complete": true,
        "recording": args.trace.display().to_string(),
        "objective": "wa",
        "unit": "bytes of flash per recorded byte",
        "use": best.said(),
        "ranking": ranking.collect::<Vec<_>>(),
        "over_provisioning": steps.collect::<Vec<_>>(),
    })
}

/// Why a drive is not the advised one.
fn why(best: &Drive, drive: &Drive) -> String {
    let more = drive.written / best.written - 1.0;
    match () {
        () if drive == best => String::new(),
        () if more < -NEAR => format!(
            "{} fewer flash writes for {} more flash",
            per_cent(-more),
            per_cent((1.0 + drive.spare) / (1.0 + best.spare) - 1.0)
        ),
        () => format!("{} more flash writes", per_cent(more)),
    }
}

fn words(
    args: &AdviseArgs,
    report: &Value,
    best: &Drive,
    drives: &[Drive],
    steps: &[Step],
) -> String {
    let bytes = number(report, "chain.host_bytes").unwrap_or_default();
    let mut text = format!(
        "{}: {} written\n\nUse      {}\n         {} bytes of flash per byte",
        quoted(&args.trace.display().to_string()),
        super::words::size(bytes),
        best.said(),
        figure(best.written)
    );
    if let Some(years) = best.years {
        text += &format!("; the flash lasts {} years", figure(years));
    }
    text.push('\n');
    for step in steps {
        let verdict = if step.is_worth_it() {
            "worth it"
        } else {
            "not worth it"
        };
        text += &format!(
            "Spare    {} instead of {}: {} fewer flash writes for {} more flash, {verdict}\n",
            per_cent(step.to.spare),
            per_cent(step.from.spare),
            per_cent(step.saved),
            per_cent(step.added)
        );
    }
    let alike = |drive: &&Drive| (drive.spare - best.spare).abs() < 1e-9;
    let others = drives
        .iter()
        .filter(alike)
        .filter(|d| d.profile == best.profile && d.gc != best.gc);
    for other in others {
        let more = other.written / best.written - 1.0;
        text += &match more {
            more if more.abs() < NEAR => format!("Collect  {} does as well\n", other.gc),
            more if more > 0.0 => format!(
                "Collect  {}: {} more flash writes\n",
                other.gc,
                per_cent(more)
            ),
            more => format!(
                "Collect  {}: {} fewer flash writes\n",
                other.gc,
                per_cent(-more)
            ),
        };
    }
    let other = drives.iter().find(|drive| drive.profile != best.profile);
    if let Some(other) = other {
        let more = per_cent(other.written / best.written - 1.0);
        text += &format!(
            "Drive    {}: {more} more flash writes at best\n",
            other.profile
        );
    }
    text += "\nbytes of flash   predicted  drive\n";
    for drive in drives {
        let predicted = number(&drive.predicted, "value").map_or("-".into(), figure);
        text += &format!(
            "{:>14}  {predicted:>10}  {}\n",
            figure(drive.written),
            drive.said()
        );
    }
    text + "\n" + crate::glossary::SEE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(gc: &str, spare: f64, written: f64) -> Drive {
        Drive {
            profile: "ssd".into(),
            gc: gc.into(),
            spare,
            written,
            predicted: Value::Null,
            years: None,
        }
    }

    #[test]
    fn over_provisioning_is_added_as_long_as_it_is_worth_it() {
        let mut drives = [
            drive("greedy", 0.0, 4.0),
            drive("greedy", 0.25, 2.0),
            drive("greedy", 0.5, 1.9),
            drive("fifo", 0.5, 3.0),
        ];
        let mut steps = Vec::new();
        let best = choose(&mut drives, &mut steps).expect("an advice");
        assert_eq!((best.spare, best.gc.as_str()), (0.25, "greedy"));
        let worth: Vec<bool> = steps.iter().map(Step::is_worth_it).collect();
        assert_eq!(worth, [true, false]);
        assert_eq!(choose(&mut [], &mut Vec::new()), None);
    }
}
