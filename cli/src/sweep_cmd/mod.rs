//! `treering sweep`: replays every point of a study and makes one table of the results.
//!
//! ```text
//! flags or STUDY.toml ──study──▶ Study ──points──▶ points ──plan──▶ runs, known by hashes
//!                                                                     │
//!        DIR/runs, DIR/predictions ◀──runs── what is already there ───┤
//!                    ▲                                                ▼
//!                    └── reports ◀── processes of this program ◀──pool── what is missing
//!                    │
//!                    └──table──▶ results.csv, results.parquet, treering.sweep/1
//! ```
//!
//! A run is a process, so that one that fails, or takes too much memory, ends alone. Runs that differ
//! only in the drive share a process and a run of the tree ([`jobs`]). The table
//! is made of the files of DIR and nothing else, so it does not matter which call of the command
//! has run what.

mod columnar;
mod jobs;
mod plan;
mod points;
mod pool;
mod report;
mod runs;
mod study;
mod table;
mod work;

use std::path::{Path, PathBuf};

pub(crate) use plan::Plan;
pub(crate) use points::{Point, check};
pub(crate) use runs::{Folder, Kind, Outcome};
pub(crate) use work::Work;

use crate::args::{Extent, SweepArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Documents, Output};

/// Sweeps, and writes the table.
pub(crate) fn run(args: &SweepArgs) -> Result<(), Failure> {
    let (study, base) = study::of(args)?;
    let out = absolute(&args.out)?;
    let documents = documents(args)?;
    if let Some(base) = base.filter(|base| !base.as_os_str().is_empty()) {
        // Paths in a study start from its folder, and runs get them as they are written, so that
        // reports do not depend on where the command was started.
        std::env::set_current_dir(base)
            .map_err(|e| Failure::file(&base.display().to_string(), &e))?;
    }
    let points = study.points();
    if points.is_empty() {
        return Err(Failure::usage(
            "exclude: leaves no point; expected at least one",
        ));
    }
    let parameters = points::varied(&points);
    let plan = Plan::of(points)?;
    if plan.duplicates > 0 {
        output::warn(&format!(
            "{} of the points are the same runs as earlier ones, and are left out",
            plan.duplicates
        ));
    }
    if args.dry_run {
        let work = Work::new(&plan, parameters, Folder::look(&out));
        return report::dry_run(&work, args.extent, documents.json.as_ref());
    }
    let folder = Folder::open(&out, &args.out)?;
    output::check_room(&format!("--out {}", args.out.display()), &out, 1 << 20)?;
    let mut work = Work::new(&plan, parameters, folder);
    work.limit(args.jobs, args.memory);
    let swept = sweep(&mut work, args.extent);
    finish(swept, &work, args, &documents)
}

/// Runs what is missing.
fn sweep(work: &mut Work, extent: Extent) -> Result<(), Failure> {
    let all = || 0..work.plan.runs.len();
    match extent {
        Extent::Replay => {
            let all = all().collect();
            work.run(Kind::Replay, all)
        }
        Extent::Predict => {
            let all = all().collect();
            work.run(Kind::Predict, all)
        }
        Extent::PredictFirst(best) => {
            let all = all().collect();
            work.run(Kind::Predict, all)?;
            if interrupt::stopped().is_some() {
                return Ok(());
            }
            let best = work.best(usize::try_from(best).unwrap_or(usize::MAX));
            work.run(Kind::Replay, best)
        }
    }
}

/// Writes the table of what there is, also if the sweep was stopped.
fn finish(
    swept: Result<(), Failure>,
    work: &Work,
    args: &SweepArgs,
    documents: &Documents,
) -> Result<(), Failure> {
    if interrupt::stopped().is_some() {
        interrupt::take_over();
    }
    let has_parquet = work.write()?;
    let complete = swept.is_ok() && interrupt::stopped().is_none();
    report::write(work, complete, documents.json.as_ref())?;
    if let Some(html) = &documents.html {
        let out = absolute(&args.out)?;
        html.write(report::page(work, html, &out).as_bytes())?;
    }
    swept?;
    interrupt::check(|| {
        let (done, all) = (work.done(), work.plan.runs.len());
        format!("{done} of {all} runs are done; the same command goes on")
    })?;
    if !has_parquet {
        output::warn(
            "results.parquet is left out, because this build is without the feature parquet",
        );
    }
    if ![&documents.json, &documents.html].contains(&&Some(Output::Stdout)) {
        report::say(work, &args.out)?;
    }
    work.failure().map_or(Ok(()), Err)
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|e| Failure::file(&path.display().to_string(), &e))
}

fn documents(args: &SweepArgs) -> Result<Documents, Failure> {
    let inputs: Vec<&Path> = args.inputs.iter().map(PathBuf::as_path).collect();
    let files = [&args.json, &args.html, &None].map(|file: &Option<PathBuf>| file.as_deref());
    let Documents { json, html, svg } = Documents::new(files, &inputs)?;
    // Paths in a study start from its folder; these do not.
    let placed = |output| -> Result<Option<Output>, Failure> {
        match output {
            Some(Output::File(path)) => Ok(Some(Output::File(absolute(&path)?))),
            other => Ok(other),
        }
    };
    Ok(Documents {
        json: placed(json)?,
        html: placed(html)?,
        svg,
    })
}
