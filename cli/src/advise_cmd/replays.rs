//! Replays the leading candidates, each in a process of its own, as a sweep does.

use std::path::PathBuf;

use serde_json::Value;

use super::predict::Trace;
use crate::failure::Failure;
use crate::interrupt;
use crate::sweep_cmd::{Folder, Kind, Outcome, Plan, Point, Work};

/// Part of the measured operations that a sample has.
const SAMPLE: u64 = 5;

/// What runs are done with.
#[derive(Clone, Debug)]
pub(super) struct Means {
    /// Folder for reports, and how it was typed.
    pub(super) folder: (PathBuf, PathBuf),
    pub(super) jobs: Option<u32>,
    pub(super) memory: Option<u64>,
    /// Whether runs have queues, which latencies need.
    pub(super) timed: bool,
}

impl Means {
    /// The point of a run. What it would predict is known.
    pub(super) fn run(&self, point: &Point) -> Point {
        let point = point.with("no-predict", "true");
        match self.timed {
            true => point.with("timing", "true"),
            false => point,
        }
    }

    /// The point of a run of a sample: the warm-up, and a part of the measured operations.
    pub(super) fn sample(&self, point: &Point, trace: &Trace) -> Point {
        let limit = trace.warmup_ops + (trace.ops - trace.warmup_ops) / SAMPLE;
        self.run(point).with("limit", &limit.max(1).to_string())
    }

    /// Replays points, and returns the report of each.
    ///
    /// # Errors
    /// If one fails, or a signal stops them.
    pub(super) fn replay(&self, points: &[Point]) -> Result<Vec<Value>, Failure> {
        let plan = Plan::of(points.to_vec())?;
        let folder = Folder::open(&self.folder.0, &self.folder.1)?;
        let mut work = Work::new(&plan, Vec::new(), folder);
        work.limit(self.jobs, self.memory);
        let ran = work.run(Kind::Replay, (0..plan.runs.len()).collect());
        interrupt::check(|| format!("{} of {} replays are done", work.done(), plan.runs.len()))?;
        ran?;
        let report = |point: &Point| {
            let run = plan.runs.iter().find(|run| run.point == *point);
            match run.and_then(|run| work.known(Kind::Replay, run)) {
                Some(Outcome::Done(report)) => Ok(*report),
                Some(Outcome::Failed(failed)) => Err(Failure {
                    status: failed.status,
                    message: format!("a replay of a leading design failed: {}", failed.reason),
                }),
                None => Err(Failure::cannot_run(
                    "a replay of a leading design is missing",
                )),
            }
        };
        points.iter().map(report).collect()
    }
}
