//! Reads TLC's configuration files, as far as the models of `specs/` use them.
//!
//! A mirror reads its constants from the same file as TLC, so that both have the same bounds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Value;

/// The content of a `.cfg` file.
///
/// ```
/// use treering_specs::Config;
///
/// let text = r#"
/// \* Two clients, one write each.
/// SPECIFICATION Spec
/// CONSTANTS
///     Clients = {c1, c2}
///     Bug = "none"
/// INVARIANTS TypeInv
/// "#;
/// let config = Config::parse("MCX_smoke.cfg".as_ref(), text).unwrap();
/// assert_eq!(config.title, "Two clients, one write each.");
/// assert_eq!(config.invariants, ["TypeInv"]);
/// assert_eq!(config.string("Bug").unwrap(), "none");
/// assert_eq!(config.members("Clients", 9).unwrap().len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The path of the file, for messages.
    pub path: PathBuf,
    /// The `SPECIFICATION`: the name of the temporal formula to check.
    pub specification: Option<String>,
    /// `INVARIANT`, in the order of the file.
    pub invariants: Vec<String>,
    /// `PROPERTY`, in the order of the file.
    pub properties: Vec<String>,
    /// The names of the `CONSTRAINT`s on states.
    pub constraints: Vec<String>,
    /// Constants with values, given as `name = value`.
    pub constants: BTreeMap<String, Value>,
    /// Operators that replace others, given as `name <- definition`.
    pub overrides: BTreeMap<String, String>,
    /// The first comment, which says what the model is for.
    pub title: String,
}

/// A configuration file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}, {place}: {why}", path.display())]
pub struct ConfigError {
    /// The file.
    pub path: PathBuf,
    /// The line, or the constant.
    pub place: String,
    /// What was found and what was expected.
    pub why: String,
}

/// Sections whose entries are names.
const SECTIONS: [(&str, Section); 13] = [
    ("SPECIFICATION", Section::Specification),
    ("INVARIANT", Section::Invariants),
    ("INVARIANTS", Section::Invariants),
    ("PROPERTY", Section::Properties),
    ("PROPERTIES", Section::Properties),
    ("CONSTRAINT", Section::Constraints),
    ("CONSTRAINTS", Section::Constraints),
    ("CONSTANT", Section::Constants),
    ("CONSTANTS", Section::Constants),
    ("CHECK_DEADLOCK", Section::Ignored),
    ("INIT", Section::Unsupported),
    ("NEXT", Section::Unsupported),
    ("SYMMETRY", Section::Unsupported),
];

#[derive(Clone, Copy, PartialEq)]
enum Section {
    None,
    Specification,
    Invariants,
    Properties,
    Constraints,
    Constants,
    Ignored,
    Unsupported,
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// The file cannot be read, or a line is malformed.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError {
            path: path.to_owned(),
            place: "the file".into(),
            why: format!("cannot be read: {error}"),
        })?;
        Self::parse(path, &text)
    }

    /// Parses `text`, the content of the file `path`.
    ///
    /// # Errors
    /// A line is malformed.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let mut config = Self {
            path: path.to_owned(),
            ..Self::default()
        };
        let mut section = Section::None;
        for (number, line) in (1..).zip(text.lines()) {
            let (code, comment) = line.split_once("\\*").unwrap_or((line, ""));
            if config.title.is_empty() {
                config.title = comment.trim().to_owned();
            }
            let fail = |why: String| ConfigError {
                path: path.to_owned(),
                place: format!("line {number}"),
                why,
            };
            let mut code = code.trim();
            let (word, rest) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
            if let Some((_, found)) = SECTIONS.iter().find(|(name, _)| *name == word) {
                section = *found;
                code = rest.trim();
            }
            if !code.is_empty() {
                config.entries(section, code).map_err(fail)?;
            }
        }
        Ok(config)
    }

    fn entries(&mut self, section: Section, code: &str) -> Result<(), String> {
        let names = || code.split_whitespace().map(str::to_owned);
        match section {
            Section::Specification => self.specification = Some(code.to_owned()),
            Section::Invariants => self.invariants.extend(names()),
            Section::Properties => self.properties.extend(names()),
            Section::Constraints => self.constraints.extend(names()),
            Section::Constants => return self.constant(code),
            Section::Ignored => {}
            Section::None | Section::Unsupported => {
                return Err(format!("expected a section that is known, found `{code}`"));
            }
        }
        Ok(())
    }

    fn constant(&mut self, code: &str) -> Result<(), String> {
        if let Some((name, definition)) = code.split_once("<-") {
            self.overrides
                .insert(name.trim().to_owned(), definition.trim().to_owned());
            return Ok(());
        }
        let (name, value) = code
            .split_once('=')
            .ok_or_else(|| format!("expected `name = value`, found `{code}`"))?;
        let value = Value::parse(value).map_err(|e| e.to_string())?;
        if self
            .constants
            .insert(name.trim().to_owned(), value)
            .is_some()
        {
            return Err(format!("{} is given twice", name.trim()));
        }
        Ok(())
    }

    /// An error about a constant.
    pub fn wrong(&self, constant: &str, why: impl Into<String>) -> ConfigError {
        ConfigError {
            path: self.path.clone(),
            place: constant.to_owned(),
            why: why.into(),
        }
    }

    /// A constant's value.
    ///
    /// # Errors
    /// The constant is not given.
    pub fn constant_value(&self, name: &str) -> Result<&Value, ConfigError> {
        self.constants
            .get(name)
            .ok_or_else(|| self.wrong(name, "is not given a value"))
    }

    /// A constant that is an integer from 0 to `most`.
    ///
    /// # Errors
    /// The constant is not given, or has another type.
    pub fn int(&self, name: &str, most: u8) -> Result<u8, ConfigError> {
        match self.constant_value(name)? {
            Value::Int(n) if (0..=i64::from(most)).contains(n) => Ok(*n as u8),
            other => Err(self.wrong(
                name,
                format!("expected an integer 0 to {most}, found {other}"),
            )),
        }
    }

    /// A constant that is `TRUE` or `FALSE`.
    ///
    /// # Errors
    /// The constant is not given, or has another type.
    pub fn bool(&self, name: &str) -> Result<bool, ConfigError> {
        match self.constant_value(name)? {
            Value::Bool(yes) => Ok(*yes),
            other => Err(self.wrong(name, format!("expected TRUE or FALSE, found {other}"))),
        }
    }

    /// A constant that is a string.
    ///
    /// # Errors
    /// The constant is not given, or has another type.
    pub fn string(&self, name: &str) -> Result<&str, ConfigError> {
        match self.constant_value(name)? {
            Value::Str(text) => Ok(text),
            other => Err(self.wrong(name, format!("expected a string, found {other}"))),
        }
    }

    /// A constant that is a set of at most `most` members, in the order in which mirrors number
    /// them.
    ///
    /// # Errors
    /// The constant is not given, is not a set, or is too large.
    pub fn members(&self, name: &str, most: usize) -> Result<Vec<Value>, ConfigError> {
        match self.constant_value(name)? {
            Value::Set(members) if members.len() <= most => Ok(members.iter().cloned().collect()),
            Value::Set(_) => Err(self.wrong(
                name,
                format!("the mirror takes at most {most} members here"),
            )),
            other => Err(self.wrong(name, format!("expected a set, found {other}"))),
        }
    }

    /// The property that the checker must find violated: the title of a model with a seeded bug is
    /// "TLC must find a counterexample to `Property`".
    #[must_use]
    pub fn must_violate(&self) -> Option<&str> {
        self.title
            .strip_prefix("TLC must find a counterexample to ")
            .map(|name| name.trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(Path::new("m.cfg"), text)
    }

    #[test]
    fn sections_may_share_a_line_or_have_many() {
        let config = parse(
            "\\* TLC must find a counterexample to AckInv\nSPECIFICATION Spec\nCONSTANTS\n  Keys = {k1, k2}\n  Max = 3\n  \
             Bug = \"none\" \\* none\n  May <- MCMay\nINVARIANTS TypeInv\n AckInv\nPROPERTY P\nCHECK_DEADLOCK FALSE\n",
        )
        .unwrap();
        assert_eq!(config.must_violate(), Some("AckInv"));
        assert_eq!(config.invariants, ["TypeInv", "AckInv"]);
        assert_eq!(config.members("Keys", 2).unwrap().len(), 2);
        assert_eq!(config.int("Max", 3), Ok(3));
        assert_eq!(config.string("Bug"), Ok("none"));
        assert_eq!(config.overrides["May"], "MCMay");
        assert_eq!(config.properties, ["P"]);
    }

    #[test]
    fn configuration_errors_name_file_and_position() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(message("CONSTANT\nA = {1").starts_with("m.cfg, line 2: "));
        assert!(message("CONSTANT A = 1\nA = 2").contains("given twice"));
        assert!(message("SYMMETRY Perms").starts_with("m.cfg, line 1: "));
        assert!(message("Spec").starts_with("m.cfg, line 1: "));
        let config = parse("CONSTANT A = 300").unwrap();
        assert_eq!(
            config.int("A", 255).unwrap_err().to_string(),
            "m.cfg, A: expected an integer 0 to 255, found 300"
        );
        assert!(config.int("B", 1).is_err() && config.string("A").is_err());
    }
}
