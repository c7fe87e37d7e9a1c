//! The bounded models in `specs/`, and what each is for.
//!
//! A model is a file `MC<Spec>_<name>.cfg`. Its name and its first comment say what it is for:
//!
//! - `smoke`, `full`: must hold. A smoke model takes seconds, a full one minutes.
//! - `large`: must hold. It has tens of millions of states, which only the mirror visits.
//! - a file whose title is "TLC must find a counterexample to P" must violate P: a *mutation* if it
//!   sets `Bug` to anything but "none", else a *probe* (something that the paper's text allows, or
//!   a fairness condition that is needed).
//! - anything else must hold and is as quick as a smoke model.

use std::path::{Path, PathBuf};

use crate::{Config, ConfigError, Value};

/// The purpose of a model, which decides when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// The model runs in every check.
    Smoke,
    /// The model runs with `--model full`.
    Full,
    /// The model runs with `--model large`: the mirror visits all its states, and TLC walks.
    Large,
    /// The model runs with `--mutations`.
    Mutation,
}

/// A bounded model.
#[derive(Clone, Debug)]
pub struct BoundedModel {
    /// The spec, e.g. `WalRecovery`.
    pub spec: String,
    /// `smoke`, `full`, the name of the mutation, …
    pub name: String,
    /// When it runs.
    pub lane: Lane,
    /// The wrapper module, `MC<Spec>.tla`.
    pub module: PathBuf,
    /// The content of the configuration file.
    pub config: Config,
}

impl BoundedModel {
    /// The property that must be violated, if any.
    #[must_use]
    pub fn must_violate(&self) -> Option<&str> {
        self.config.must_violate()
    }

    /// Whether the property that must be violated is temporal. Only TLC's verdict counts for those.
    #[must_use]
    pub fn is_temporal(&self) -> bool {
        let property = self.must_violate();
        property.is_some_and(|name| !self.config.invariants.iter().any(|i| i == name))
    }

    /// Whether the model has a seeded bug.
    #[must_use]
    pub(crate) fn is_mutation(&self) -> bool {
        self.lane == Lane::Mutation && self.must_violate().is_some()
    }
}

/// A `specs` folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpecsError {
    /// A configuration file is malformed.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The folder cannot be read.
    #[error("{}: {why}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        why: String,
    },
}

/// Finds every model under `specs`: by spec in the order of `known`, `smoke` and `full` first, then
/// by name.
///
/// # Errors
/// A folder cannot be read, or a configuration is malformed.
pub fn discover(specs: &Path, known: &[&str]) -> Result<Vec<BoundedModel>, SpecsError> {
    let mut models = Vec::new();
    for folder in entries(specs)?.into_iter().filter(|path| path.is_dir()) {
        for path in entries(&folder)? {
            let name = path.file_name().and_then(|name| name.to_str());
            let parts = name.and_then(|name| {
                name.strip_prefix("MC")?
                    .strip_suffix(".cfg")?
                    .split_once('_')
            });
            if let Some((spec, name)) = parts {
                models.push(model(&folder, &path, spec, name)?);
            }
        }
    }
    let place = |spec: &str| known.iter().position(|k| *k == spec).unwrap_or(usize::MAX);
    let first = |name: &str| match name {
        "smoke" => 0,
        "full" => 1,
        "large" => 1,
        "mutation" => 3,
        _ => 2,
    };
    models.sort_by_cached_key(|m| {
        (
            place(&m.spec),
            m.spec.clone(),
            m.is_mutation(),
            first(&m.name),
            m.name.clone(),
        )
    });
    Ok(models)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, SpecsError> {
    let fail = |error: std::io::Error| SpecsError::Folder {
        path: folder.to_owned(),
        why: error.to_string(),
    };
    let read = std::fs::read_dir(folder).map_err(fail)?;
    read.map(|entry| entry.map(|e| e.path()).map_err(fail))
        .collect()
}

fn model(folder: &Path, path: &Path, spec: &str, name: &str) -> Result<BoundedModel, ConfigError> {
    let config = Config::read(path)?;
    let bug = config.constants.get("Bug");
    let seeded = bug.is_some_and(|bug| *bug != Value::str("none"));
    let lane = match name {
        "full" => Lane::Full,
        "large" => Lane::Large,
        "mutation" => Lane::Mutation,
        // Statements of the paper are checked with every change, although the constant that enables
        // them is the one for seeded bugs.
        _ if seeded && !name.starts_with("published") => Lane::Mutation,
        _ => Lane::Smoke,
    };
    // A statement of the paper may turn out to be harmless. A seeded bug must not.
    if lane == Lane::Mutation && seeded && config.must_violate().is_none() {
        return Err(config.wrong(
            "its first line",
            "expected `\\* TLC must find a counterexample to <Property>`, as Bug is not \"none\"",
        ));
    }
    Ok(BoundedModel {
        spec: spec.to_owned(),
        name: name.to_owned(),
        lane,
        module: folder.join(format!("MC{spec}.tla")),
        config,
    })
}
