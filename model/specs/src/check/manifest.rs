//! `specs/manifest.json`: the recorded result of every model, so that changes are noticed and no
//! check passes by accident.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::run::{Checker, Outcome, Verdict};

const SCHEMA: &str = "treering.specs/1";

/// The manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    schema: String,
    /// The release of TLC that recorded it.
    pub tlc: String,
    /// The release of `tla-mc` that recorded it.
    pub tla_mc: String,
    /// One entry for each model.
    pub models: Vec<Entry>,
}

/// The recorded result of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The spec.
    pub spec: String,
    /// The model or mutation.
    pub model: String,
    /// `holds` or `violated`.
    pub verdict: Verdict,
    /// The property that is violated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub property: Option<String>,
    /// Distinct states, if the model holds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub distinct: Option<u64>,
    /// Depth, if the model holds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub depth: Option<u64>,
    /// States of the counterexample, including the initial one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trace_length: Option<usize>,
    /// Processor time of TLC when this was recorded, in seconds; of the mirror for a large model.
    pub seconds: f64,
    /// Why `tla-mc` gives no verdict, if it gives none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tla_mc_refuses: Option<String>,
}

/// A manifest that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct ManifestError {
    path: PathBuf,
    why: String,
}

impl Manifest {
    /// An empty manifest.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            schema: SCHEMA.into(),
            tlc: "2.18".into(),
            tla_mc: super::tools::TLA_MC_VERSION.into(),
            models: Vec::new(),
        }
    }

    /// Reads `manifest.json` in the folder of the specs.
    ///
    /// # Errors
    /// The file cannot be read, or is malformed.
    pub fn read(specs: &Path) -> Result<Self, ManifestError> {
        let path = specs.join("manifest.json");
        let read = || -> Result<Self, String> {
            let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
            let manifest: Self = serde_json::from_str(&text).map_err(|e| e.to_string())?;
            if manifest.schema == SCHEMA {
                return Ok(manifest);
            }
            Err(format!(
                "expected schema {SCHEMA}, found {}",
                manifest.schema
            ))
        };
        read().map_err(|why| ManifestError { path, why })
    }

    /// Writes the manifest to a temporary file and renames that.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write(&self, specs: &Path) -> Result<(), ManifestError> {
        let path = specs.join("manifest.json");
        let write = || -> std::io::Result<()> {
            // Makes the file as readable as others: `NamedTempFile::new_in` would give access to
            // its owner only.
            let beside = tempfile::Builder::new()
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(specs)?;
            let mut text = serde_json::to_string_pretty(self)?;
            text.push('\n');
            std::fs::write(beside.path(), text)?;
            beside.persist(&path)?;
            Ok(())
        };
        write().map_err(|e| ManifestError {
            path: path.clone(),
            why: e.to_string(),
        })
    }

    /// The entry of a model.
    #[must_use]
    pub fn entry(&self, spec: &str, model: &str) -> Option<&Entry> {
        let mut entries = self.models.iter();
        entries.find(|e| e.spec == spec && e.model == model)
    }

    /// Records the results of TLC and `tla-mc` for a model.
    pub fn record(&mut self, tlc: &Outcome, tla_mc: Option<&Outcome>) {
        let holds = tlc.verdict == Verdict::Holds;
        let entry = Entry {
            spec: tlc.spec.clone(),
            model: tlc.model.clone(),
            verdict: if holds {
                Verdict::Holds
            } else {
                Verdict::Violated
            },
            property: tlc.property.clone(),
            distinct: tlc.distinct.filter(|_| holds),
            depth: tlc.depth.filter(|_| holds),
            // For an infinite behaviour, checkers do not agree on a shortest form.
            trace_length: tlc.trace_length.filter(|_| tlc.back_to.is_none()),
            seconds: tlc.cpu_seconds.unwrap_or(tlc.seconds),
            tla_mc_refuses: (tla_mc.filter(|o| o.verdict == Verdict::Error))
                .and_then(|o| o.error.clone()),
        };
        match (self.models.iter_mut()).find(|e| e.spec == entry.spec && e.model == entry.model) {
            Some(known) => *known = entry,
            None => self.models.push(entry),
        }
    }

    /// How a result differs from the recorded one, as a sentence.
    #[must_use]
    pub fn complaint(&self, outcome: &Outcome) -> Option<String> {
        let Some(known) = self.entry(&outcome.spec, &outcome.model) else {
            return Some("is not in the manifest".into());
        };
        if outcome.checker == Checker::TlaMc {
            match (&known.tla_mc_refuses, &outcome.error) {
                (Some(_), Some(_)) => return None,
                (Some(why), None) => {
                    return Some(format!("the checker is recorded as refusing it: {why}"));
                }
                _ => {}
            }
        }
        if let Some(error) = &outcome.error {
            return Some(format!("no verdict: {error}"));
        }
        if outcome.violated() != (known.verdict == Verdict::Violated) {
            return Some(format!("expected it {}", known.verdict.word()));
        }
        if outcome.violated() {
            let length = (outcome.trace_length, known.trace_length);
            return match length {
                _ if outcome.property != known.property => Some(format!(
                    "expected {} to be violated, found {}",
                    known.property.as_deref().unwrap_or("nothing"),
                    outcome.property.as_deref().unwrap_or("nothing")
                )),
                (Some(found), Some(expected)) if found != expected => Some(format!(
                    "expected a counterexample of {expected} states, found {found}"
                )),
                _ => None,
            };
        }
        let number = |what: &str, found: Option<u64>, expected: Option<u64>| {
            let told = |n: Option<u64>| n.map_or("none".into(), |n| n.to_string());
            (found != expected)
                .then(|| format!("expected {what} {}, found {}", told(expected), told(found)))
        };
        number("distinct states", outcome.distinct, known.distinct)
            .or_else(|| number("depth", outcome.depth, known.depth))
    }
}
