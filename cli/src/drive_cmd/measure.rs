//! `treering drive replay`: a recording on simulated drives, measured beside predicted.

use std::path::Path;

use treering_drive::measure::Settings;
use treering_drive::report::{DriveReport, html, text};
use treering_sim::predict::{Method, Model};
use treering_sim::replay::Target;

use crate::args::{DriveReplayArgs, MeasureArgs};
use crate::devices_cmd::{self, Adjusted};
use crate::failure::Failure;
use crate::output::{self, Documents, Output};
use crate::progress::Progress;

/// Replays and writes the report; `again` is the command line that repeats the run.
pub(super) fn replay(args: &DriveReplayArgs, again: &str) -> Result<(), Failure> {
    let measure = &args.measure;
    let outputs = outputs(measure, &[&args.log])?;
    let settings = settings(measure, &args.log, args.capacity)?;
    let report = measured(&settings)?;
    write(&report, &outputs, Some(again))
}

/// The requested outputs.
pub(super) fn outputs(args: &MeasureArgs, inputs: &[&Path]) -> Result<Documents, Failure> {
    Documents::new([args.json.as_deref(), args.html.as_deref(), None], inputs)
}

/// What is to be measured of a recording.
pub(super) fn settings(
    args: &MeasureArgs,
    log: &Path,
    capacity: Option<u64>,
) -> Result<Settings, Failure> {
    let devices = targets(args, capacity)?;
    let first = devices.first().cloned();
    let first = first.ok_or_else(|| Failure::usage("--device: expected a drive"))?;
    let method = Method {
        model: Model::Played,
        effort: args.effort.effort(),
        ..Method::default()
    };
    Ok(Settings {
        devices,
        causes: args.cause.clone(),
        fill: args.fill.unwrap_or(0.9),
        discards: !args.no_discard,
        warmup: args.warmup(),
        user_bytes: args.user_bytes,
        daily_bytes: args.daily,
        timing: args.timing,
        predict: (!args.no_predict).then_some(method),
        seed: args.seed,
        ..Settings::new(log, first)
    })
}

/// Every combination of drive, over-provisioning and policy.
pub(super) fn targets(args: &MeasureArgs, capacity: Option<u64>) -> Result<Vec<Target>, Failure> {
    let ops = options(&args.over_provisioning);
    let policies = options(&args.gc);
    let mut all: Vec<Target> = Vec::new();
    for name in &args.device {
        for op in &ops {
            for policy in &policies {
                let target = target(args, name, (*op, policy.as_deref()), capacity)?;
                if all.contains(&target) {
                    return Err(Failure::usage(format!(
                        "--device {name}: given twice; expected different drives"
                    )));
                }
                all.push(target);
            }
        }
    }
    Ok(all)
}

/// The values, or that none was given.
fn options<T: Clone>(values: &[T]) -> Vec<Option<T>> {
    match values {
        [] => vec![None],
        values => values.iter().cloned().map(Some).collect(),
    }
}

fn target(
    args: &MeasureArgs,
    name: &str,
    (op, policy): (Option<f64>, Option<&str>),
    capacity: Option<u64>,
) -> Result<Target, Failure> {
    let mut target = devices_cmd::find(name)?;
    if matches!(target, Target::Pm { .. } | Target::File(..)) {
        return Err(Failure::usage(format!(
            "--device {name}: expected a simulated drive of blocks, such as ssd, csd or a \
             PROFILE.toml of that kind"
        )));
    }
    let adjusted = Adjusted {
        over_provisioning: op,
        gc: policy,
        capacity,
        precondition: args.precondition,
    };
    adjusted.apply(&mut target);
    Ok(target)
}

/// Replays with a progress bar.
pub(super) fn measured(settings: &Settings) -> Result<DriveReport, Failure> {
    let mut progress = Progress::new();
    let tell = &mut |what, done, all| progress.tell(what, done, all);
    Ok(DriveReport::measure(settings, tell)?)
}

/// Writes the report.
pub(super) fn write(
    report: &DriveReport,
    outputs: &Documents,
    again: Option<&str>,
) -> Result<(), Failure> {
    if let Some(to) = &outputs.html {
        to.write(html::render(report, again).as_bytes())?;
    }
    if let Some(to) = &outputs.json {
        to.write(&output::json(report)?)?;
    }
    if outputs.json == Some(Output::Stdout) {
        report.all_warnings().iter().for_each(|w| output::warn(w));
        return Ok(());
    }
    output::say(text::render(report).as_bytes())?;
    output::say(crate::glossary::SEE.as_bytes())
}
