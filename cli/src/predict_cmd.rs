//! `treering predict`: predicts every combination of the given options, without a run.

use std::sync::{Arc, Mutex, PoisonError};

use treering_sim::replay::{self, ReplayConfig};
use treering_sim::report::{PREDICT_SCHEMA, PredictReport, TraceInfo, html, predict};

use crate::args::{PredictArgs, ReplayArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Documents, Output};
use crate::progress::Progress;
use crate::replay_config;

/// The requested outputs.
#[derive(Clone)]
struct Outputs {
    documents: Documents,
    /// The command line that repeats the run.
    again: String,
}

/// Predicts and writes the report; `again` is the command line that repeats the run.
pub(crate) fn run(args: &PredictArgs, again: &str) -> Result<(), Failure> {
    check(args)?;
    let configs = configs(args)?;
    let outputs = outputs(args, again)?;
    if outputs.documents.svg.is_some() && configs.len() == 1 {
        return Err(Failure::usage(
            "--svg: one value has no curve; expected a list, such as --cache 1%,5%,20%",
        ));
    }
    let report = forecast(args, &configs, &outputs)?;
    write(&report, &outputs)
}

/// The configuration, if there is only one.
///
/// # Errors
/// If a flag is refused, or there are several configurations.
pub(crate) fn config(args: &PredictArgs) -> Result<ReplayConfig, Failure> {
    check(args)?;
    let configs: [ReplayConfig; 1] = configs(args)?
        .try_into()
        .map_err(|_| Failure::usage("expected one configuration, found a list"))?;
    let [config] = configs;
    Ok(config)
}

/// Refuses flags that have no meaning without a run, and values given twice.
fn check(args: &PredictArgs) -> Result<(), Failure> {
    if let Some(flag) = &args.of_runs {
        return Err(Failure::usage(format!(
            "{flag}: nothing is run by `treering predict`; the flag applies only to `treering replay`"
        )));
    }
    if let Some((flag, word)) = &args.twice {
        return Err(Failure::usage(format!(
            "{flag} {}: given twice; expected different values",
            word.display()
        )));
    }
    Ok(())
}

/// Every combination of the lists, as `treering replay` would be configured.
fn configs(args: &PredictArgs) -> Result<Vec<ReplayConfig>, Failure> {
    if let Some(path) = args
        .replay
        .device
        .as_deref()
        .and_then(|d| d.strip_prefix("file:"))
    {
        return Err(Failure::usage(format!(
            "--device file:{path}: the drive below a file is not known; expected a simulated device"
        )));
    }
    let mut all = vec![args.replay.clone()];
    vary(&mut all, &args.pages, |a, page| a.page = Some(page));
    vary(&mut all, &args.over_provisionings, |a, op| {
        a.over_provisioning = Some(op)
    });
    vary(&mut all, &args.thresholds, |a, threshold| {
        a.threshold = Some(threshold)
    });
    vary(&mut all, &args.nbatches, |a, nbatch| {
        a.pm.nbatch = Some(nbatch)
    });
    vary(&mut all, &args.caches, |a, cache| a.cache = Some(cache));
    all.iter().map(replay_config::of).collect()
}

/// Replaces each by one for each of the values.
fn vary<T: Copy>(all: &mut Vec<ReplayArgs>, values: &[T], set: impl Fn(&mut ReplayArgs, T)) {
    if values.is_empty() {
        return;
    }
    let with = |args: &ReplayArgs, value: &T| {
        let mut args = args.clone();
        set(&mut args, *value);
        args
    };
    *all = (all.iter())
        .flat_map(|args| values.iter().map(move |value| with(args, value)))
        .collect();
}

/// Predicts with a progress bar. A prediction cannot be interrupted, so on a signal the watcher
/// writes what is predicted so far.
fn forecast(
    args: &PredictArgs,
    configs: &[ReplayConfig],
    outputs: &Outputs,
) -> Result<PredictReport, Failure> {
    let begun = begun(args, configs)?;
    let so_far = Arc::new(Mutex::new(begun));
    let (told, to) = (Arc::clone(&so_far), outputs.clone());
    interrupt::at_end(move || {
        let report = told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(failure) = write(&report, &to) {
            output::warn(&failure.message);
        }
        let (done, all) = (report.configurations.len(), report.requested);
        format!("{done} of {all} configurations were predicted")
    });
    let progress = Mutex::new(Progress::new());
    let tell = |what, done, all| {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.tell(what, done, all);
    };
    let report = replay::forecast(
        configs,
        &mut |at| match at {
            replay::Progress::Survey(done, all) => tell("reading the initial keys", done, all),
            replay::Progress::Analyse(done, all) => tell("analysing", done, all),
            replay::Progress::Replay(..) => {}
            replay::Progress::Ignored(why) => replay_config::warn_of_statistics(&args.replay, why),
        },
        &mut |report| {
            let done = report.configurations.len() as u64;
            tell("predicting", done, report.requested);
            *so_far.lock().unwrap_or_else(PoisonError::into_inner) = report.clone();
        },
    );
    interrupt::finished();
    Ok(report?)
}

/// The report before anything is known but the trace's header.
fn begun(args: &PredictArgs, configs: &[ReplayConfig]) -> Result<PredictReport, Failure> {
    let trace = treering_traces::open(&args.replay.trace)?;
    let header = trace.header();
    Ok(PredictReport {
        schema: PREDICT_SCHEMA,
        trace: TraceInfo {
            name: header.name.clone(),
            source: header.source.clone(),
            ..TraceInfo::default()
        },
        requested: configs.len() as u64,
        ..PredictReport::default()
    })
}

fn outputs(args: &PredictArgs, again: &str) -> Result<Outputs, Failure> {
    let replay = &args.replay;
    let files = [&replay.json, &replay.html, &args.svg].map(Option::as_deref);
    Ok(Outputs {
        documents: Documents::new(files, &[&replay.trace])?,
        again: again.into(),
    })
}

fn write(report: &PredictReport, Outputs { documents, again }: &Outputs) -> Result<(), Failure> {
    if let Some(to) = &documents.html {
        to.write(html::predict_page(report, Some(again)).as_bytes())?;
    }
    if let (Some(to), Some(svg)) = (&documents.svg, html::predict_svg(report)) {
        to.write((svg + "\n").as_bytes())?;
    }
    if let Some(to) = &documents.json {
        to.write(&output::json(report)?)?;
    }
    if documents.json == Some(Output::Stdout) {
        let warnings = report.configurations.iter().flat_map(|run| &run.warnings);
        let mut warnings: Vec<&String> = warnings.collect();
        warnings.sort_unstable();
        warnings.dedup();
        warnings.into_iter().for_each(|w| output::warn(w));
        return Ok(());
    }
    output::say(predict::render(report).as_bytes())?;
    output::say(crate::glossary::SEE.as_bytes())
}
