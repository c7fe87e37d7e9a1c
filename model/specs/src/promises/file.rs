//! `specs/promises.toml`.

use std::path::Path;

use serde::Deserialize;

use super::error::PromisesError;

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(rename = "tree")]
    pub(super) trees: Vec<Tree>,
    #[serde(rename = "promise")]
    pub(super) promises: Vec<Promise>,
}

/// A tree.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tree {
    pub(super) name: String,
    pub(super) is: String,
    /// The specs that it follows.
    pub(super) specs: Vec<String>,
    /// The oracle's names of it, alone or before `:`, `+` or `/`.
    pub(super) engines: Vec<String>,
}

/// A promise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Promise {
    pub(super) name: String,
    /// Spec and operator.
    #[serde(deserialize_with = "operators")]
    pub(super) operators: Vec<(String, String)>,
    /// Steps that the engine is heard to take, as reports name them.
    pub(super) heard: Vec<String>,
    pub(super) attacked: Vec<Attack>,
    /// Checks of the oracle that look for its seeded bugs.
    pub(super) checks: Vec<String>,
}

/// What a mode of the oracle counts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attack {
    pub(super) mode: String,
    #[serde(flatten)]
    pub(super) counted: Counted,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Counted {
    /// A field of a run.
    Field(String),
    /// Rows of `reach` whose names have this text.
    Reach(String),
}

fn operators<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, String)>, D::Error> {
    let names: Vec<String> = Vec::deserialize(deserializer)?;
    let split = |name: String| match name.split_once('.') {
        Some((spec, operator)) => Ok((spec.to_owned(), operator.to_owned())),
        None => Err(serde::de::Error::custom(format!(
            "expected Spec.Operator, found {name}"
        ))),
    };
    names.into_iter().map(split).collect()
}

impl File {
    pub(super) fn read(path: &Path) -> Result<File, PromisesError> {
        let fail = |why: String| PromisesError::File {
            path: path.to_owned(),
            why,
        };
        let text = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
        toml::from_str(&text).map_err(|e| {
            let line = e.span().map_or(1, |span| {
                text[..span.start.min(text.len())].matches('\n').count() + 1
            });
            fail(format!("line {line}: {}", e.message()))
        })
    }

    /// The tree that an engine of the oracle is a variant of: the longest name counts.
    pub(super) fn tree_of(&self, engine: &str) -> Option<&str> {
        let engine = engine.strip_prefix("exec:").unwrap_or(engine);
        let is_variant = |name: &str| {
            let rest = engine.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '+', '/', '(', ' ']))
        };
        let names = (self.trees.iter())
            .flat_map(|tree| tree.engines.iter().map(move |name| (name, tree)))
            .filter(|(name, _)| is_variant(name));
        let longest = names.max_by_key(|(name, _)| name.len());
        longest.map(|(_, tree)| tree.name.as_str())
    }
}
