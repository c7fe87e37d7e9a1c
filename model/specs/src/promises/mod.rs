//! What each tree promises, and what stands behind each promise.
//!
//! ```text
//! specs/promises.toml ─ trees, promises, operators ─┐
//! MC*.cfg, manifest.json ─ what is checked ─────────┼──▶ Table: a cell for each tree and promise
//! reports of the oracle and of mutants ─────────────┘
//! ```
//!
//! Nothing is run here. `specs/promises.toml` says which operators of which spec state a promise. The
//! models that check them, and their numbers of states, are read from the `.cfg` files and from
//! `specs/manifest.json`. What the engine was heard to do, what the oracle has tried and which
//! mutants were killed is read from reports. So each number can be made again, and a promise without
//! evidence has an empty cell.

mod error;
mod evidence;
mod file;

use std::path::Path;

use serde::Serialize;

use crate::check::configs::{BoundedModel, discover};
use crate::check::manifest::{Entry, Manifest};
use crate::check::mirrors::SPECS;
use crate::check::run::Verdict;

pub use error::PromisesError;
pub use evidence::Reports;
use file::{File, Promise, Tree};

/// Everything, tree by tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// The trees, in the order of the file.
    pub trees: Vec<TreeRows>,
    /// The largest model of each spec that checks something here, with its bounds.
    pub bounds: Vec<Bounds>,
}

/// The promises of a tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TreeRows {
    /// The tree.
    pub tree: String,
    /// What it is, in a sentence.
    pub is: String,
    /// A row for each promise.
    pub rows: Vec<Row>,
}

/// A promise of a tree, with what stands behind it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The promise, in words.
    pub promise: String,
    /// The operators that state it: `Spec.Operator`.
    pub specified: Vec<String>,
    /// Models that must hold and check one of them.
    pub models: usize,
    /// Distinct states of these models together.
    pub states: u64,
    /// Seeded bugs of the specs that violate one of them, as they must.
    pub planted: usize,
    /// Mutants made by machine that violate one of them. `None` if no report was given.
    pub killed: Option<usize>,
    /// Seeded bugs of the engine that the oracle's checks found, of those that were tried. `None`
    /// if no report was given.
    pub bugs: Option<(usize, usize)>,
    /// How often the engine was heard to take one of the promise's steps, all of which the spec
    /// allowed. `None` if no report was given.
    pub heard: Option<u64>,
    /// What the oracle has tried without a finding, by what is counted. `None` if no report was
    /// given.
    pub attacked: Option<u64>,
}

/// A model and its bounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// The spec.
    pub spec: String,
    /// The model.
    pub model: String,
    /// Its distinct states.
    pub states: u64,
    /// Its constants, as in its `.cfg`.
    pub constants: Vec<(String, String)>,
}

/// Makes the table of the specs in `specs`, with what reports say.
///
/// # Errors
/// A file is missing or malformed, or `promises.toml` names what no spec has.
pub fn table(specs: &Path, reports: &Reports) -> Result<Table, PromisesError> {
    let path = specs.join("promises.toml");
    let file = File::read(&path)?;
    let models = discover(specs, &SPECS)?;
    let manifest = Manifest::read(specs)?;
    let checked = Checked {
        models: &models,
        manifest: &manifest,
    };
    checked.names_exist(&path, specs, &file)?;
    let trees = file.trees.iter().map(|tree| TreeRows {
        tree: tree.name.clone(),
        is: tree.is.clone(),
        rows: (file.promises.iter())
            .map(|promise| row(&checked, reports, &file, tree, promise))
            .collect(),
    });
    Ok(Table {
        trees: trees.collect(),
        bounds: checked.bounds(&file),
    })
}

fn row(
    checked: &Checked<'_>,
    reports: &Reports,
    file: &File,
    tree: &Tree,
    promise: &Promise,
) -> Row {
    let of_tree = |operator: &&(String, String)| tree.specs.contains(&operator.0);
    let operators: Vec<&(String, String)> = promise.operators.iter().filter(of_tree).collect();
    let (mut models, mut states, mut planted) = (0, 0, 0);
    for (model, entry) in checked.recorded() {
        let says =
            |name: &str| (operators.iter()).any(|named| named.0 == model.spec && named.1 == name);
        match (entry.verdict, &entry.property) {
            (Verdict::Holds, _) if checked_by(model).any(&says) => {
                models += 1;
                states += entry.distinct.unwrap_or(0);
            }
            (Verdict::Violated, Some(property)) if says(property) => planted += 1,
            _ => {}
        }
    }
    let is_of = |engine: &str| file.tree_of(engine) == Some(tree.name.as_str());
    Row {
        promise: promise.name.clone(),
        specified: (operators.iter())
            .map(|named| format!("{}.{}", named.0, named.1))
            .collect(),
        models,
        states,
        planted,
        killed: reports.killed(&operators),
        bugs: reports.bugs(&promise.checks, &is_of),
        heard: reports.heard(&promise.heard, &is_of),
        attacked: reports.attacked(&promise.attacked, &is_of),
    }
}

/// The properties that a model checks.
fn checked_by(model: &BoundedModel) -> impl Iterator<Item = &str> {
    let config = &model.config;
    (config.invariants.iter().chain(&config.properties)).map(String::as_str)
}

/// The models, and what the manifest says of them.
struct Checked<'a> {
    models: &'a [BoundedModel],
    manifest: &'a Manifest,
}

impl Checked<'_> {
    fn recorded(&self) -> impl Iterator<Item = (&BoundedModel, &Entry)> {
        (self.models.iter())
            .filter_map(|model| Some((model, self.manifest.entry(&model.spec, &model.name)?)))
    }

    /// Every spec of the file has models, and every operator is checked by one of them.
    fn names_exist(&self, path: &Path, specs: &Path, file: &File) -> Result<(), PromisesError> {
        let fail = |why: String| {
            Err(PromisesError::File {
                path: path.to_owned(),
                why,
            })
        };
        for tree in &file.trees {
            for spec in &tree.specs {
                if !self.models.iter().any(|model| model.spec == *spec) {
                    return fail(format!("tree {}: expected a spec, found {spec}", tree.name));
                }
            }
        }
        for promise in &file.promises {
            for (spec, operator) in &promise.operators {
                let mut of_spec = (self.models.iter()).filter(|model| model.spec == *spec);
                if !of_spec.any(|model| checked_by(model).any(|name| name == operator)) {
                    let folder = specs.display();
                    return fail(format!(
                        "promise “{}”: expected an operator that a model in {folder} checks, found \
                         {spec}.{operator}",
                        promise.name
                    ));
                }
            }
        }
        Ok(())
    }

    /// The largest model of each spec that a promise names.
    fn bounds(&self, file: &File) -> Vec<Bounds> {
        let named = |spec: &str| {
            let mut operators = file.promises.iter().flat_map(|promise| &promise.operators);
            operators.any(|(of, _)| of == spec)
        };
        let mut bounds: Vec<Bounds> = Vec::new();
        for (model, entry) in self.recorded() {
            let (Verdict::Holds, Some(states)) = (entry.verdict, entry.distinct) else {
                continue;
            };
            if !named(&model.spec) {
                continue;
            }
            let constants = model.config.constants.iter();
            let this = Bounds {
                spec: model.spec.clone(),
                model: model.name.clone(),
                states,
                constants: constants
                    .map(|(name, value)| (name.clone(), value.to_string()))
                    .collect(),
            };
            match bounds.iter_mut().find(|other| other.spec == model.spec) {
                Some(other) if other.states < states => *other = this,
                Some(_) => {}
                None => bounds.push(this),
            }
        }
        bounds
    }
}
