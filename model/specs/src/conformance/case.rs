//! A counterexample as a file: a test that the real engine runs.
//!
//! ```text
//! {"schema": "treering.counterexample/1", "spec": "WalRecovery", "model": "published_no-wal-rule",
//!  "property": "PrefixInv", "bug": "page-before-log", "engine_bug": "page-before-log",
//!  "violated_at": 9,
//!  "steps": [{"action": "CallWrite", "with": {"client": "c1", "key": "k1", "value": 1}}, ...],
//!  "loss": {...}, "config": "SPECIFICATION Spec\n..."}
//! ```
//!
//! The file has the model's configuration, so it needs no folder of specs. It is written by the
//! mirror of the spec, and what it says is checked against the mirror when it is read again.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The schema of the file.
pub const SCHEMA: &str = "treering.counterexample/1";

/// A step: an action of the spec, with what was chosen in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The action.
    pub action: String,
    /// Its parameters by name, and for a crash the version that each block was left with: 0 is the
    /// durable one, and the last is what a read returned before the crash.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<String, Value>,
}

impl Step {
    /// The step of an action without parameters.
    #[must_use]
    pub fn new(action: &str) -> Step {
        Step {
            action: action.to_owned(),
            with: BTreeMap::new(),
        }
    }

    /// With another parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Step {
        self.with.insert(name.to_owned(), value.into());
        self
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.action)?;
        let told = |(name, value): (&String, &Value)| match value {
            Value::String(text) => text.clone(),
            other => format!("{name} {other}"),
        };
        if self.with.is_empty() {
            return Ok(());
        }
        let with: Vec<String> = self.with.iter().map(told).collect();
        write!(f, "({})", with.join(", "))
    }
}

/// What is lost at the end of a counterexample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// What broke, in a sentence.
    pub what: String,
    /// The contents that the contract allows after the last step, as key and value.
    pub allowed: Vec<BTreeMap<String, String>>,
    /// The content that is left.
    pub found: BTreeMap<String, String>,
}

/// A counterexample as a test of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// [`SCHEMA`].
    pub schema: String,
    /// Always true: a file is written as a whole.
    pub complete: bool,
    /// The spec.
    pub spec: String,
    /// The model.
    pub model: String,
    /// What the model is for.
    pub title: String,
    /// How the model differs from the configuration of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapted: Option<String>,
    /// The property that the counterexample violates.
    pub property: String,
    /// The seeded bug of the spec.
    pub bug: String,
    /// The seeded bug of the engine that corresponds to it, if there is one.
    pub engine_bug: Option<String>,
    /// The number of the step, from 1, after which the property is violated. What follows leads to
    /// the loss.
    pub violated_at: usize,
    /// The steps from the initial state.
    pub steps: Vec<Step>,
    /// What is lost, unless the counterexample ends without a loss.
    pub loss: Option<Loss>,
    /// The text of the model's configuration.
    pub config: String,
}

impl Case {
    /// Whether a text is such a file, of whatever version.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        let head: String = text.chars().take(200).collect();
        head.contains("\"treering.counterexample/")
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Why it cannot be read, as a sentence.
    pub fn read(text: &str) -> Result<Case, String> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if head.schema != SCHEMA {
            let found = head.schema;
            return Err(format!("expected the schema {SCHEMA}, found {found}"));
        }
        serde_json::from_str(text).map_err(|e| e.to_string())
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("strings and numbers are JSON");
        text.push('\n');
        text
    }
}

/// Why a case cannot be made or run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaseError {
    /// The file or the model is not what it should be.
    #[error("{0}")]
    Bad(String),
    /// The model has no counterexample for the engine.
    #[error("{0}")]
    None(String),
}

/// How a run of the engine along a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The engine took all steps, and something is lost.
    Lost(Loss),
    /// The engine took all steps, and nothing is lost.
    Survived,
    /// The engine does not take this step of the protocol with the bug.
    Refused {
        /// Number of the step, from 1.
        step: usize,
        /// What the engine does instead, as a clause about "the engine".
        does: String,
        /// The difference that was seen.
        seen: String,
    },
    /// The engine cannot take this step separately.
    NotTakeable {
        /// Number of the step, from 1.
        step: usize,
        /// The reason.
        why: String,
    },
}

/// A content as text: `k1 = 1, k2 = Absent`.
#[must_use]
pub fn content(map: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = map.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    pairs.join(", ")
}
