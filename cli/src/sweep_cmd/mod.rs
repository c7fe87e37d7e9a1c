//! `treering sweep`: replays every point of a study and makes one table of the results.
//!
//! ```text
//! flags or STUDY.toml ──study──▶ Study ──points──▶ points ──plan──▶ runs, known by hashes
//!                                                                     │
//!        DIR/runs, DIR/predictions ◀──runs── what is already there ───┤
//!                    ▲                                                ▼
//!                    └── reports ◀── processes of this program ◀──pool── what is missing
//!                    │
//!                    ├──table──▶ results.csv, results.parquet, treering.sweep/1
//!                    └──found──▶ tables, pictures and claims of the study ──document──▶ its page
//! ```
//!
//! A run is a process, so that one that fails, or takes too much memory, ends alone. Runs that differ
//! only in the drive share a process and a run of the tree ([`jobs`]). The table is made of the files
//! of DIR and nothing else, so it does not matter which call of the command has run what.

mod changes;
mod claims;
mod columnar;
mod document;
mod file;
mod found;
mod generated;
mod jobs;
mod plan;
mod points;
mod pool;
mod report;
mod runs;
mod shown;
mod study;
mod table;
mod work;

use std::path::{Path, PathBuf};

pub(crate) use plan::Plan;
pub(crate) use points::{Point, check};
pub(crate) use runs::{Folder, Kind, Outcome};
pub(crate) use work::Work;

use document::Made;
use found::Found;
use generated::Placed;
use study::Whole;

use crate::args::{Changes, Extent, SweepArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Documents, Output};

/// Sweeps, and writes the table and what the study makes of it.
pub(crate) fn run(args: &SweepArgs) -> Result<(), Failure> {
    let whole = study::of(args)?;
    let out = absolute(&args.out)?;
    let documents = documents(args)?;
    let fill = args.into.as_deref().map(absolute).transpose()?;
    if fill.is_some() && whole.shown.is_empty() {
        return Err(Failure::usage(
            "--into: expected a study with tables, charts or claims",
        ));
    }
    if fill.is_some() && args.changes != Changes::default() {
        return Err(Failure::usage(
            "--into: expected the whole study, found --small, --scale, --set or --only",
        ));
    }
    if let Some(page) = &fill {
        document::check_page(page, &whole.shown)?;
    }
    if !whole.base.as_os_str().is_empty() {
        // Paths in a study start from its folder, and runs get them as they are written, so that
        // reports do not depend on where the command was started.
        std::env::set_current_dir(&whole.base)
            .map_err(|e| Failure::file(&whole.base.display().to_string(), &e))?;
    }
    let generated = whole.generated.iter();
    let generated = generated.map(|trace| Placed::new(trace, whole.scale, &out));
    let generated: Vec<Placed> = generated.collect::<Result<_, _>>()?;
    let (parts, points) = points_of(&whole, &generated)?;
    let parameters = points::varied(&points);
    let plan = Plan::with(points.clone(), &generated)?;
    if plan.duplicates > 0 && whole.parts.len() == 1 {
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
    let swept = make(&work, &generated).and_then(|()| sweep(&mut work, args.extent));
    let making = Making {
        whole: &whole,
        parts: &parts,
        points: &points,
        fill,
        is_small: args.changes.small,
    };
    finish(swept, &work, args, &documents, &making)
}

/// The points of all parts, and the part of each.
fn points_of<'a>(
    whole: &'a Whole,
    generated: &[Placed],
) -> Result<(Vec<&'a str>, Vec<Point>), Failure> {
    let (mut parts, mut points) = (Vec::new(), Vec::new());
    for part in &whole.parts {
        for mut point in part.points() {
            let trace = generated.iter().find(|trace| trace.name == point.trace);
            point.file = trace.map(|trace| trace.path.to_string_lossy().into_owned());
            parts.push(part.name.as_str());
            points.push(point);
        }
    }
    match points.is_empty() {
        true => Err(Failure::usage(
            "exclude: leaves no point; expected at least one",
        )),
        false => Ok((parts, points)),
    }
}

/// Writes the generated traces that a run needs.
fn make(work: &Work, generated: &[Placed]) -> Result<(), Failure> {
    for trace in generated {
        let runs = work.plan.runs.iter();
        let mut needed = runs.filter(|run| run.point.trace == trace.name);
        if needed.any(|run| work.known(Kind::Replay, run).is_none()) {
            trace.make()?;
        }
    }
    Ok(())
}

/// What the study makes of its results.
struct Making<'a> {
    whole: &'a Whole,
    /// The part of each point.
    parts: &'a [&'a str],
    points: &'a [Point],
    /// The page to fill in.
    fill: Option<PathBuf>,
    is_small: bool,
}

impl Making<'_> {
    fn made(&self, work: &Work) -> Result<Made, Failure> {
        let runs: Vec<_> = (work.plan.runs.iter())
            .map(|run| match work.known(Kind::Replay, run) {
                Some(Outcome::Done(report)) => Some(report),
                _ => None,
            })
            .collect();
        let places = work.plan.places.iter().enumerate();
        let found = places.map(|(i, at)| Found {
            part: self.parts[i],
            point: &self.points[i],
            report: runs[*at].as_deref(),
        });
        let found: Vec<Found> = found.collect();
        Made::of(&self.whole.shown, &found, self.is_small)
    }

    /// Makes and writes it.
    fn write(&self, work: &Work) -> Result<Made, Failure> {
        let made = self.made(work)?;
        if !self.whole.shown.is_empty() {
            work.write_file("tables.md", made.text().as_bytes())?;
            made.save(&work.folder())?;
        }
        if let Some(page) = &self.fill {
            made.fill(page)?;
        }
        Ok(made)
    }

    /// The failure of the sweep if a claim needs the study to be changed.
    fn failure(&self, made: &Made) -> Option<Failure> {
        let wrong: Vec<&claims::Judged> = made.claims.iter().filter(|it| it.is_wrong()).collect();
        let first = wrong.first()?;
        Some(Failure::found(format!(
            "{} of {} claims need attention, first {}: {} ({})",
            wrong.len(),
            made.claims.len(),
            first.name,
            first.verdict_in_words(),
            first.measured
        )))
    }
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
    making: &Making,
) -> Result<(), Failure> {
    if interrupt::stopped().is_some() {
        interrupt::take_over();
    }
    let has_parquet = work.write()?;
    let complete = swept.is_ok() && interrupt::stopped().is_none();
    let made = match complete && args.extent == Extent::Replay && work.failure().is_none() {
        true => making.write(work)?,
        false => Made::default(),
    };
    report::write(work, complete, &made.claims, documents.json.as_ref())?;
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
        report::say(work, &made.claims, &args.out)?;
    }
    let failure = work.failure().or_else(|| making.failure(&made));
    failure.map_or(Ok(()), Err)
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
