//! Predicts candidates, many with one pass over the trace.

use std::cell::RefCell;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use treering_sim::predict::Effort;
use treering_sim::replay::{self, ReplayConfig, Statistics};
use treering_sim::report::{PredictReport, PredictedRun};

use super::objective::number;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::replay_config;
use crate::sweep_cmd::Point;

/// A candidate, with what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) point: Point,
    pub(super) config: ReplayConfig,
    /// Its prediction, with the figures of a replay's report at their paths.
    pub(super) predicted: Value,
    /// Half-width of the interval of the device's total, as a share of it.
    pub(super) half_width: Option<f64>,
    /// The report of a replay of the whole trace.
    pub(super) measured: Option<Value>,
}

/// What the trace is.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    pub(super) name: String,
    pub(super) ops: u64,
    pub(super) warmup_ops: u64,
    /// Operations after warm-up by kind, and user bytes.
    ops_by_kind: Value,
}

/// Predicts candidates.
#[derive(Debug)]
pub(super) struct Predictor {
    /// File for the trace's statistics.
    statistics: PathBuf,
    /// Number of predictions so far.
    pub(super) count: usize,
    pub(super) trace: Trace,
}

/// Why points have no prediction, each with its point.
pub(super) type Refused = Vec<(Point, Failure)>;

impl Predictor {
    /// A predictor that keeps the trace's statistics in this file.
    pub(super) fn new(statistics: PathBuf) -> Predictor {
        Predictor {
            statistics,
            count: 0,
            trace: Trace::default(),
        }
    }

    /// Predicts the points. Those that a replay would refuse are in the second list.
    pub(super) fn predict(&mut self, points: Vec<Point>) -> (Vec<Candidate>, Refused) {
        let (mut accepted, mut refused) = (Vec::new(), Vec::new());
        for point in points {
            match point.parsed().and_then(|args| replay_config::of(&args)) {
                Ok(config) => accepted.push((point, self.prepared(config))),
                Err(failure) => refused.push((point, failure)),
            }
        }
        let configs: Vec<ReplayConfig> = accepted.iter().map(|(_, c)| c.clone()).collect();
        let mut candidates = Vec::new();
        match self.forecast(&configs) {
            Ok(report) => self.add(&report, accepted, &mut candidates),
            // One of them is refused: which?
            Err(_) if accepted.len() > 1 => {
                for (point, config) in accepted {
                    match self.forecast(std::slice::from_ref(&config)) {
                        Ok(report) => self.add(&report, vec![(point, config)], &mut candidates),
                        Err(failure) => refused.push((point, failure)),
                    }
                }
            }
            Err(failure) => refused.extend(accepted.into_iter().map(|(p, _)| (p, failure.clone()))),
        }
        (candidates, refused)
    }

    fn prepared(&self, mut config: ReplayConfig) -> ReplayConfig {
        config.method.effort = Effort::Fast;
        config.statistics = Statistics {
            file: Some(self.statistics.clone()),
            save: true,
        };
        config
    }

    fn forecast(&self, configs: &[ReplayConfig]) -> Result<PredictReport, Failure> {
        if configs.is_empty() {
            return Ok(PredictReport::default());
        }
        let progress = RefCell::new(Progress::new());
        let tell = |what, done, all| progress.borrow_mut().tell(what, done, all);
        let report = replay::forecast(
            configs,
            &mut |at| match at {
                replay::Progress::Survey(done, all) => tell("reading the initial keys", done, all),
                replay::Progress::Analyse(done, all) => tell("analysing", done, all),
                // The file is this command's own.
                replay::Progress::Replay(..) | replay::Progress::Ignored(_) => {}
            },
            &mut |report| {
                let done = report.configurations.len() as u64;
                tell("predicting", done, report.requested);
            },
        )?;
        Ok(report)
    }

    fn add(
        &mut self,
        report: &PredictReport,
        points: Vec<(Point, ReplayConfig)>,
        candidates: &mut Vec<Candidate>,
    ) {
        if report.passes > 0 {
            self.trace = Trace {
                name: report.trace.name.clone(),
                ops: report.trace.ops,
                warmup_ops: report.trace.warmup_ops,
                ops_by_kind: json!(report.ops),
            };
        }
        // A signal leaves the last ones without a prediction.
        for ((point, config), run) in points.into_iter().zip(&report.configurations) {
            self.count += 1;
            candidates.push(Candidate {
                point,
                config,
                predicted: document(run, &self.trace.ops_by_kind),
                half_width: half_width(run),
                measured: None,
            });
        }
    }
}

/// Half-width of the interval of what the device writes.
fn half_width(run: &PredictedRun) -> Option<f64> {
    let device = run.wa.as_ref().and_then(|wa| wa.device);
    let of = |value: f64, high: Option<f64>| high.filter(|_| value > 0.0).map(|h| h / value - 1.0);
    match (device, &run.pm) {
        (Some(device), _) => of(device.total.value(), device.total.estimate.high),
        (None, Some(pm)) => of(pm.xbi.value(), pm.xbi.estimate.high),
        (None, None) => None,
    }
}

/// The prediction as a replay's report has its figures.
fn document(run: &PredictedRun, ops: &Value) -> Value {
    let mut report = json!({
        "wa": plain(&json!(run.wa)),
        "pm": plain(&json!(run.pm)),
        "cache": { "hit_ratio": run.hit_ratio.map(|ratio| ratio.value()) },
        "options": run.options,
        "user_bytes": run.user_bytes,
        "ops": ops,
    });
    if let Some(bytes) = space(&report) {
        report["space"] = json!({ "physical_bytes": bytes });
    }
    report
}

/// Replaces each `{value, low, high, model}` by its value.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => match fields.get("value") {
            Some(value) => value.clone(),
            None => {
                let fields = fields
                    .iter()
                    .map(|(name, value)| (name.clone(), plain(value)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        },
        other => other.clone(),
    }
}

/// Bytes of the store: the drive is fitted to it. On a compressing drive, they are as much smaller
/// as what is written.
fn space(report: &Value) -> Option<f64> {
    let of = |name: &str| number(report, &format!("options.{name}"));
    let pages = of("capacity")? * of("fill")? - of("log-size")?;
    let written = number(report, "wa.csd.total").zip(number(report, "wa.host.total"));
    let compressed = written.map_or(1.0, |(after, before)| after / before);
    Some(pages * compressed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_become_values() {
        let wa = json!({"host": {"log": {"value": 2.5, "low": 2.0, "high": 3.0}}, "csd": null});
        assert_eq!(plain(&wa), json!({"host": {"log": 2.5}, "csd": null}));
    }

    #[test]
    fn a_compressing_drive_takes_less_space() {
        let options = json!({"capacity": 1000, "fill": 0.9, "log-size": 100});
        let mut report = json!({"options": options, "wa": {"host": {"total": 4.0}}});
        assert_eq!(space(&report), Some(800.0));
        report["wa"]["csd"] = json!({"total": 1.0});
        assert_eq!(space(&report), Some(200.0));
    }
}
