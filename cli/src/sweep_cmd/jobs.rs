//! The processes of a sweep: one for each run, or one for several.
//!
//! Replays that differ only in the drive run the tree once (`treering replay-together`,
//! [`treering_sim::replay::run_together`]). Predictions from the same statistics read these once, and
//! play a store once for all its drives (`treering predict-together`,
//! [`treering_sim::replay::forecast_each`]). The reports are the same. Runs whose report such a
//! process did not make are run alone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::plan::{Plan, Run};
use super::pool::{self, Job};
use super::runs::{Folder, Kind};
use crate::failure::Failure;
use crate::output;
use crate::replay_together_cmd::Member;

/// Flags of `replay` that `predict` does not take: they are about runs.
const OF_RUNS: [&str; 5] = [
    "contention-split",
    "daily",
    "no-predict",
    "strict",
    "timing",
];

/// The most replays of one process: all their drives are in memory together.
const MOST: usize = 16;
/// The most predictions of one process: when a sweep is killed, those of the running ones are lost.
const MOST_PREDICTED: usize = 256;
/// Processes for each that may run at a time, before runs share one: at the end of a sweep, none
/// should wait for long.
const ROUNDS: usize = 2;

/// What jobs are made of.
pub(super) struct Jobs<'a> {
    pub(super) plan: &'a Plan,
    pub(super) folder: &'a Folder,
    /// Number of runs that use the same statistics, by their name.
    pub(super) shared: &'a BTreeMap<&'a str, usize>,
    /// Number of processes that may run at a time.
    pub(super) at_a_time: usize,
}

impl Jobs<'_> {
    /// A process for each run.
    pub(super) fn alone(&self, kind: Kind, runs: &[usize]) -> Vec<Job> {
        runs.iter().map(|at| self.one(kind, *at)).collect()
    }

    /// Processes for all runs. Several share one where that saves work.
    ///
    /// # Errors
    /// If a list of runs cannot be written.
    pub(super) fn together(&self, kind: Kind, runs: &[usize]) -> Result<Vec<Job>, Failure> {
        let mut parts = match kind {
            Kind::Replay => groups(self.plan, runs),
            Kind::Predict => predicted_together(self.plan, runs),
        };
        let wanted = ROUNDS * self.at_a_time;
        while parts.len() < wanted && halve(&mut parts) {}
        parts.iter().map(|part| self.job(kind, part)).collect()
    }

    fn job(&self, kind: Kind, part: &[usize]) -> Result<Job, Failure> {
        let [first, _, ..] = part else {
            return Ok(self.one(kind, part[0]));
        };
        let members: Option<Vec<Member>> = part.iter().map(|at| self.member(kind, *at)).collect();
        let Some(members) = members else {
            // A path that is no text cannot be in the list.
            return Ok(self.one(kind, *first));
        };
        let run = &self.plan.runs[*first];
        let list = list(self.folder, kind, run);
        self.folder.write_whole(&list, &output::json(&members)?)?;
        let one = pool::guess(run.trace_bytes, has_tree(run));
        let (command, group, guess) = match kind {
            Kind::Replay => (
                "replay-together",
                format!("{} drives, {}", part.len(), run.point.trace),
                one / 2 * (part.len() as u64 + 1),
            ),
            Kind::Predict => ("predict-together", group(kind, run), one),
        };
        Ok(Job {
            runs: part.to_vec(),
            arguments: vec![command.into(), list.into_os_string()],
            group,
            guess,
        })
    }

    fn member(&self, kind: Kind, at: usize) -> Option<Member> {
        let run = &self.plan.runs[at];
        let mut arguments = self.statistics(run)?;
        arguments.extend(run.point.arguments(left_out(kind)));
        let json = self.folder.part(kind, &run.hash);
        Some(Member { json, arguments })
    }

    /// The flags that let runs share statistics; `None` if the path is no text.
    fn statistics(&self, run: &Run) -> Option<Vec<String>> {
        match &run.statistics {
            Some(name) if self.shared.get(name.as_str()).is_some_and(|n| *n > 1) => {
                let file = self.folder.statistics(name);
                let file = file.to_str()?.to_owned();
                Some(vec![
                    "--statistics".into(),
                    file,
                    "--save-statistics".into(),
                ])
            }
            _ => Some(Vec::new()),
        }
    }

    fn one(&self, kind: Kind, at: usize) -> Job {
        let run = &self.plan.runs[at];
        let mut words = vec![kind.command().into()];
        words.push("--json".into());
        words.push(self.folder.part(kind, &run.hash).into_os_string());
        let statistics = self.statistics(run).unwrap_or_default();
        words.extend(statistics.into_iter().map(Into::into));
        let flags = run.point.arguments(left_out(kind));
        words.extend(flags.into_iter().map(Into::into));
        Job {
            runs: vec![at],
            arguments: words,
            group: group(kind, run),
            guess: pool::guess(run.trace_bytes, has_tree(run)),
        }
    }
}

/// Flags of `replay` that the command does not take.
fn left_out(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Replay => &[],
        Kind::Predict => &OF_RUNS,
    }
}

/// The list of runs for a process whose first run is this one. It is a temporary file.
pub(super) fn list(folder: &Folder, kind: Kind, first: &Run) -> PathBuf {
    folder.part(kind, &format!("{}-together", first.hash))
}

/// Predictions that share a process: those from the same statistics. Those of one store follow one
/// another, so that most of its drives are in one process.
fn predicted_together(plan: &Plan, runs: &[usize]) -> Vec<Vec<usize>> {
    let mut firsts: BTreeMap<(&str, Option<&str>), usize> = BTreeMap::new();
    let mut by_statistics: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
    let mut parts = Vec::new();
    for &at in runs {
        let run = &plan.runs[at];
        let Some(statistics) = run.statistics.as_deref() else {
            parts.push(vec![at]);
            continue;
        };
        let store = run
            .together
            .as_ref()
            .map(|together| together.store.as_str());
        let first = *firsts.entry((statistics, store)).or_insert(at);
        by_statistics
            .entry(statistics)
            .or_default()
            .push((first, at));
    }
    for (_, mut runs) in by_statistics {
        runs.sort_unstable();
        let runs: Vec<usize> = runs.into_iter().map(|(_, at)| at).collect();
        parts.extend(runs.chunks(MOST_PREDICTED).map(<[usize]>::to_vec));
    }
    parts.sort_by_key(|part| part[0]);
    parts
}

/// Runs that may share a process, each group in the order of the plan, by its first. A drive without
/// compression can follow any other, so it is in the largest group of its tree.
fn groups(plan: &Plan, runs: &[usize]) -> Vec<Vec<usize>> {
    let mut by_tree: BTreeMap<&str, BTreeMap<Option<&str>, Vec<usize>>> = BTreeMap::new();
    let mut parts = Vec::new();
    for &at in runs {
        match &plan.runs[at].together {
            None => parts.push(vec![at]),
            Some(together) => {
                let of_tree = by_tree.entry(&together.tree).or_default();
                let codec = together.codec.as_deref();
                of_tree.entry(codec).or_default().push(at);
            }
        }
    }
    for (_, mut by_codec) in by_tree {
        let plain = by_codec.remove(&None).unwrap_or_default();
        let mut of_tree: Vec<Vec<usize>> = by_codec.into_values().collect();
        match of_tree.iter_mut().max_by_key(|part| part.len()) {
            Some(largest) => {
                largest.extend(plain);
                largest.sort_unstable();
            }
            None => of_tree.push(plain),
        }
        for part in of_tree {
            parts.extend(part.chunks(MOST).map(<[usize]>::to_vec));
        }
    }
    parts.sort_by_key(|part| part[0]);
    parts
}

/// Halves the largest part; `false` if it is too small for that.
fn halve(parts: &mut Vec<Vec<usize>>) -> bool {
    let largest = (0..parts.len()).max_by_key(|at| (parts[*at].len(), std::cmp::Reverse(*at)));
    match largest {
        Some(at) if parts[at].len() >= 4 => {
            let half = parts[at].len() / 2;
            let rest = parts[at].split_off(half);
            parts.insert(at + 1, rest);
            true
        }
        _ => false,
    }
}

/// Runs of a group need about the same memory.
pub(super) fn group(kind: Kind, run: &Run) -> String {
    let (command, has_tree) = (kind.command(), has_tree(run));
    format!("{command} {has_tree} {}", run.point.trace)
}

/// Whether a tree runs, and not the drive alone.
fn has_tree(run: &Run) -> bool {
    run.point.get("tree") != Some("none")
}

#[cfg(test)]
mod tests {
    use super::super::points::Point;
    use super::*;

    fn plan(points: &[&[(&str, &str)]]) -> Plan {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a.jsonl");
        let header = concat!(
            r#"{"schema":"treering.trace/1","name":"a","source":"by hand","ops":20,"#,
            r#""warmup_ops":10,"records":10,"zeros":0.5,"seed":0}"#
        );
        std::fs::write(&trace, header).unwrap();
        let point = |settings: &&[(&str, &str)]| {
            let mut point = Point::of(trace.to_str().unwrap());
            settings
                .iter()
                .for_each(|(flag, value)| point.set(flag, value));
            point
        };
        Plan::of(points.iter().map(point).collect()).unwrap()
    }

    #[test]
    fn runs_that_differ_in_the_drive_share_a_process() {
        let plan = plan(&[
            &[("device", "csd"), ("op", "7%")],
            &[("device", "csd"), ("op", "28%")],
            &[("device", "csd"), ("op", "28%"), ("cache", "5%")],
            &[("device", "ssd"), ("op", "28%")],
            &[("device", "ssd"), ("op", "7%")],
            &[("tree", "ccl"), ("device", "pm")],
            &[("device", "csd"), ("gc", "fifo")],
            &[("device", "ssd"), ("gc", "fifo"), ("op", "7%")],
        ]);
        assert!(plan.runs.iter().all(|run| run.refused.is_none()));
        // Drives without compression are rounded to erase blocks, by their spare flash.
        let all: Vec<usize> = (0..8).collect();
        let expected: [&[usize]; 5] = [&[0, 1, 6], &[2], &[3], &[4, 7], &[5]];
        assert_eq!(groups(&plan, &all), expected);
        assert_eq!(groups(&plan, &[6, 5]), [[5], [6]]);
    }

    #[test]
    fn with_a_capacity_all_drives_share_a_process() {
        let plan = plan(&[
            &[("device", "ssd"), ("op", "7%"), ("capacity", "1GiB")],
            &[("device", "ssd"), ("op", "28%"), ("capacity", "1GiB")],
            &[("device", "csd"), ("capacity", "1GiB")],
        ]);
        assert_eq!(groups(&plan, &[0, 1, 2]), [[0, 1, 2]]);
    }

    #[test]
    fn parts_are_halved_until_there_is_work_for_all() {
        let mut parts = vec![vec![0], (1..9).collect()];
        assert!(halve(&mut parts));
        assert!(halve(&mut parts));
        assert!(halve(&mut parts));
        assert!(!halve(&mut parts));
        assert_eq!(
            parts,
            [vec![0], vec![1, 2], vec![3, 4], vec![5, 6], vec![7, 8]]
        );
    }
}
