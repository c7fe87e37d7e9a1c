//! The folder of a sweep, which makes it resumable:
//!
//! ```text
//! DIR/runs/HASH.json          a replay's report, or treering.sweep-failure/1
//! DIR/predictions/HASH.json   the same of `treering predict`
//! DIR/statistics/NAME.stats   statistics of traces, shared by runs; may be removed at any time
//! DIR/costs.csv               seconds and memory of each run; not part of the results
//! DIR/results.csv, .parquet   the table
//! DIR/.lock                   held by the sweep that works here
//! ```
//!
//! A file appears complete or not at all: it is written beside its place and renamed. What a killed
//! sweep leaves beside is removed by the next one.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::output;

/// Name and version of the document of a failed run.
const FAILURE: &str = "treering.sweep-failure/1";

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// With a report.
    Done(Box<Value>),
    /// With an error; with `--strict` there is a report all the same.
    Failed(Failed),
}

/// The document of a failed run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failed {
    schema: String,
    complete: bool,
    /// Exit status of the run.
    pub(crate) status: u8,
    /// What it said.
    pub(crate) reason: String,
    /// Its report, if it wrote one.
    pub(super) report: Option<Box<Value>>,
}

impl Failed {
    pub(super) fn new(status: u8, reason: String, report: Option<Value>) -> Failed {
        Failed {
            schema: FAILURE.into(),
            complete: true,
            status,
            reason,
            report: report.map(Box::new),
        }
    }
}

/// What a run cost. This differs each time, so it is kept out of the results.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    pub(super) seconds: f64,
    pub(super) peak_bytes: u64,
}

/// Reports of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Replay,
    Predict,
}

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Kind::Replay => "runs",
            Kind::Predict => "predictions",
        }
    }

    /// The command.
    pub(super) fn command(self) -> &'static str {
        match self {
            Kind::Replay => "replay",
            Kind::Predict => "predict",
        }
    }

    /// How the schema of its reports begins.
    fn schema(self) -> &'static str {
        match self {
            Kind::Replay => "treering.replay/",
            Kind::Predict => "treering.predict/",
        }
    }
}

/// The folder of a sweep.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Held as long as the sweep works.
    _lock: Option<File>,
}

impl Folder {
    /// A folder that is only looked at, and may be missing.
    pub(super) fn look(path: &Path) -> Folder {
        Folder {
            path: path.to_owned(),
            _lock: None,
        }
    }

    /// Makes the folder if it is missing, locks it, and removes what a killed sweep left; `asked` is
    /// the folder as it was typed.
    ///
    /// # Errors
    /// If it cannot be written, or another sweep works there.
    pub(crate) fn open(path: &Path, asked: &Path) -> Result<Folder, Failure> {
        let failure = |e| Failure::file(&format!("--out {}", asked.display()), &e);
        fs::create_dir_all(path).map_err(failure)?;
        for kind in [Kind::Replay, Kind::Predict] {
            fs::create_dir_all(path.join(kind.folder())).map_err(failure)?;
        }
        fs::create_dir_all(path.join("statistics")).map_err(failure)?;
        let lock = File::create(path.join(".lock")).map_err(failure)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::cannot_run(format!(
                    "--out {}: another sweep works there; expected it to end first",
                    asked.display()
                )));
            }
            Err(TryLockError::Error(e)) => return Err(failure(e)),
        }
        let folder = Folder {
            path: path.to_owned(),
            _lock: Some(lock),
        };
        for inner in ["", "runs", "predictions", "statistics"] {
            folder.clean(inner);
        }
        Ok(folder)
    }

    /// Removes temporary files. That one stays is harmless.
    fn clean(&self, inner: &str) {
        let entries = fs::read_dir(self.path.join(inner));
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_ours = [".treering-", ".part-", ".stats-"];
            if is_ours.iter().any(|prefix| name.starts_with(prefix)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// A file of the results.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn statistics(&self, name: &str) -> PathBuf {
        self.path.join("statistics").join(format!("{name}.stats"))
    }

    fn place(&self, kind: Kind, hash: &str) -> PathBuf {
        self.path.join(kind.folder()).join(format!("{hash}.json"))
    }

    /// Where a run writes its report before it counts.
    pub(super) fn part(&self, kind: Kind, hash: &str) -> PathBuf {
        let name = format!(".part-{hash}.json");
        self.path.join(kind.folder()).join(name)
    }

    /// The outcome of an earlier run. A failure that may be gone by now (exit status 3) is as if
    /// there had been no run.
    pub(super) fn outcome(&self, kind: Kind, hash: &str) -> Option<Outcome> {
        match read(&self.place(kind, hash), kind)? {
            Outcome::Failed(failed) if failed.status == 3 => None,
            outcome => Some(outcome),
        }
    }

    /// Takes over the report of a run that has ended well.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub(super) fn take(&self, kind: Kind, hash: &str) -> Result<Option<Outcome>, Failure> {
        let (part, place) = (self.part(kind, hash), self.place(kind, hash));
        let Some(outcome) = read(&part, kind) else {
            return Ok(None);
        };
        fs::rename(&part, &place).map_err(|e| Failure::file(&place.display().to_string(), &e))?;
        Ok(Some(outcome))
    }

    /// Records a failed run, with its report if it wrote one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn fail(
        &self,
        kind: Kind,
        hash: &str,
        status: u8,
        reason: String,
    ) -> Result<Outcome, Failure> {
        let part = self.part(kind, hash);
        let report = match read(&part, kind) {
            Some(Outcome::Done(report)) => Some(*report),
            _ => None,
        };
        let failed = Failed::new(status, reason, report);
        self.write_whole(&self.place(kind, hash), &output::json(&failed)?)?;
        let _ = fs::remove_file(part);
        Ok(Outcome::Failed(failed))
    }

    /// Writes a file, completely or not at all.
    pub(super) fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        output::write_with(path, |out| {
            out.write_all(bytes)
                .map_err(|e| Failure::file(&path.display().to_string(), &e))
        })
    }

    /// Writes a file of the results.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.write_whole(&self.file(name), bytes)
    }

    /// The costs of earlier runs, by hash; a line that does not read is left out.
    pub(super) fn costs(&self) -> BTreeMap<String, Cost> {
        let text = fs::read_to_string(self.file("costs.csv")).unwrap_or_default();
        let cost = |line: &str| {
            let mut fields = line.split(',');
            let hash = fields.next()?.to_owned();
            let seconds = fields.next()?.parse().ok()?;
            let peak_bytes = fields.next()?.parse().ok()?;
            let cost = Cost {
                seconds,
                peak_bytes,
            };
            Some((hash, cost))
        };
        text.lines().skip(1).filter_map(cost).collect()
    }

    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write_costs(&self, costs: &BTreeMap<String, Cost>) -> Result<(), Failure> {
        let mut text = "run,seconds,peak_bytes\n".to_owned();
        for (hash, cost) in costs {
            text += &format!("{hash},{:.3},{}\n", cost.seconds, cost.peak_bytes);
        }
        self.write("costs.csv", text.as_bytes())
    }
}

/// Reads a report or a failure. Anything else, also an incomplete report, is as if it were not
/// there.
fn read(path: &Path, kind: Kind) -> Option<Outcome> {
    let bytes = fs::read(path).ok()?;
    let document: Value = serde_json::from_slice(&bytes).ok()?;
    if document["complete"] != Value::Bool(true) {
        return None;
    }
    let schema = document["schema"].as_str()?;
    if schema == FAILURE {
        return serde_json::from_value(document).ok().map(Outcome::Failed);
    }
    let fits = schema.starts_with(kind.schema());
    fits.then(|| Outcome::Done(Box::new(document)))
}
