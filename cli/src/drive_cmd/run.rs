//! `treering drive run` and `treering drive mount`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::{NamedTempFile, TempDir};
use treering_drive::face::MountOptions;
use treering_drive::faults::{FaultPlan, Faults};
use treering_drive::program::{self as programs, Exit};
use treering_drive::recording::Contents;
use treering_drive::report::Ended;
use treering_drive::session::{Plan, Session};
use treering_engine::BLOCK_SIZE;

use super::measure::{self, measured, outputs, targets};
use crate::args::{DriveMountArgs, DriveRunArgs, MeasureArgs, MountArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::program::found_from_here;

/// Size of the drive for the program if nobody asks for another.
const CAPACITY: u64 = 8 << 30;
/// How often is asked whether the drive is still mounted.
const POLL: Duration = Duration::from_millis(100);

/// A recording, which is gone with this if nobody asked for it.
enum Log {
    Asked(PathBuf),
    Temporary(NamedTempFile),
}

impl Log {
    fn path(&self) -> &Path {
        match self {
            Log::Asked(path) => path,
            Log::Temporary(file) => file.path(),
        }
    }
}

/// Runs a program on a drive and reports; `again` is the command line that repeats it.
pub(super) fn run(args: &DriveRunArgs, again: &str) -> Result<(), Failure> {
    let outputs = outputs(&args.measure, &[])?;
    let parent = TempDir::with_prefix("treering-drive-");
    let parent = parent.map_err(|e| Failure::file("a temporary directory", &e))?;
    let dir = parent.path().join("drive");
    std::fs::create_dir(&dir).map_err(|e| Failure::file(&dir.display().to_string(), &e))?;
    let (plan, log) = plan(&args.mount, &args.measure, dir)?;
    let words = args
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    let plan = Plan {
        command: words.collect(),
        ..plan
    };
    // A signal is for the program, and what is mounted must be unmounted.
    interrupt::take_over();
    let session = Session::begin(&plan)?;
    let signal = || interrupt::stopped().map(|signal| signal.number());
    let command = found_from_here(&args.command);
    let ran = programs::run(&command, session.dir(), session.acks(), &[], &signal);
    end(session)?;
    let ran = ran?;
    for left in &ran.left {
        output::warn(&format!(
            "{left} was still running when the program ended; it was ended"
        ));
    }
    let mut report = measured(&measure::settings(
        &args.measure,
        log.path(),
        args.mount.capacity,
    )?)?;
    let (status, signal) = match ran.exit {
        Exit::Status(status) => (Some(status), None),
        Exit::Signal(signal) => (None, Some(signal)),
    };
    report.program.ended = Some(Ended {
        status,
        signal,
        wall_seconds: ran.wall_s,
        cpu_seconds: ran.cpu_s,
    });
    told(&mut report.recording.file, &log);
    measure::write(&report, &outputs, Some(again))?;
    interrupt::check(|| "the program was stopped; the report is of what it wrote".into())?;
    tell_faults(&plan.mount.faults)?;
    match (status, signal) {
        (Some(0), _) => Ok(()),
        (Some(status), _) => Err(Failure::cannot_run(format!(
            "{}: ended with exit status {status}; the report is of what it wrote",
            plan.command[0]
        ))),
        (None, signal) => Err(Failure::cannot_run(format!(
            "{}: ended by signal {}; the report is of what it wrote",
            plan.command[0],
            signal.unwrap_or(0)
        ))),
    }
}

/// Mounts a drive until it is unmounted or interrupted, and reports.
pub(super) fn mount(args: &DriveMountArgs, again: &str) -> Result<(), Failure> {
    let outputs = outputs(&args.measure, &[])?;
    let (plan, log) = plan(&args.mount, &args.measure, args.dir.clone())?;
    interrupt::take_over();
    let session = Session::begin(&plan)?;
    let acks = session.acks().map(|acks| acks.display().to_string());
    output::warn(&format!(
        "mounted on {}; TREERING_ACKS={}",
        args.dir.display(),
        acks.unwrap_or_default()
    ));
    while session.is_mounted() && interrupt::stopped().is_none() {
        std::thread::sleep(POLL);
    }
    end(session)?;
    let settings = measure::settings(&args.measure, log.path(), args.mount.capacity)?;
    let mut report = measured(&settings)?;
    told(&mut report.recording.file, &log);
    // Ctrl-C is how a drive is unmounted, so it is no failure.
    measure::write(&report, &outputs, Some(again))?;
    tell_faults(&plan.mount.faults)
}

/// A temporary recording has no name that would tell a reader anything.
fn told(file: &mut String, log: &Log) {
    if matches!(log, Log::Temporary(_)) {
        *file = "temporary".into();
    }
}

/// Unmounts, and waits for the end of the recording.
fn end(session: Session) -> Result<(), Failure> {
    let ended = session.end()?;
    if let Some(busy) = ended.busy {
        output::warn(&busy);
    }
    Ok(())
}

/// Tells what failed on purpose. A fault that never came is a failure.
fn tell_faults(faults: &Faults) -> Result<(), Failure> {
    let mut never = None;
    for (words, happened) in faults.told() {
        match happened {
            true => output::warn(&words),
            false => never = Some(words),
        }
    }
    never.map_or(Ok(()), |words| Err(Failure::not_reached(words)))
}

/// What to mount, and its recording.
fn plan(args: &MountArgs, measure: &MeasureArgs, dir: PathBuf) -> Result<(Plan, Log), Failure> {
    let capacity = args.capacity.unwrap_or(CAPACITY);
    let block = BLOCK_SIZE as u64;
    if capacity < block || !capacity.is_multiple_of(block) {
        return Err(Failure::usage(format!(
            "--capacity {capacity}: expected a multiple of {block} above 0"
        )));
    }
    // Wrong drives are refused before the program runs.
    let targets = targets(measure, args.capacity)?;
    let compresses = targets.iter().any(|target| target.kind() == "csd");
    let (log, contents) = match &args.record {
        Some(path) => {
            output::check_target("--record", path)?;
            (Log::Asked(path.clone()), Contents::All)
        }
        None => {
            let file = NamedTempFile::with_prefix("treering-drive-");
            let file = file.map_err(|e| Failure::file("a temporary recording", &e))?;
            let contents = match compresses {
                true => Contents::All,
                false => Contents::Watched,
            };
            (Log::Temporary(file), contents)
        }
    };
    let faults = FaultPlan {
        flush: args.fail_fsync,
        space: args.fail_space,
        read: args.fail_read,
    };
    let plan = Plan {
        face: args.fs.face(),
        mount: MountOptions {
            dir,
            capacity_blocks: capacity / block,
            keep: args.keep.clone(),
            page_cache: args.page_cache.mode(),
            threads: args.threads as usize,
            faults: Arc::new(Faults::on(args.fs.face(), faults)?),
        },
        log: log.path().into(),
        contents,
        command: Vec::new(),
    };
    Ok((plan, log))
}
