//! Checkers that come along: `treering cuts LOG --check NAME`.
//!
//! ```text
//! treering cuts --check NAME ──▶ prepare: are the tools there? ──▶ campaign
//!                                                                    │ each state
//!          treering cuts --check NAME --check-state ◀────────────────┘
//!            find the store ──▶ the engine's tool: is it whole? its records ──▶ acks::judge
//! ```
//!
//! An engine is a row of [`ENGINES`]. Each module says how its store is recognised, what its tool
//! verifies, and where it keeps keys and values.

mod built;
mod engine;
mod exec;
mod files;
mod lmdb;
mod postgres;
mod rocksdb;
mod sqlite;
mod tool;
mod wiredtiger;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use treering_drive::cuts::QuickMaker;
use treering_oracle::exec::Command;

use engine::{Engine, HERE, Place, TOOL, TRIES, Trouble};

use crate::acks::{Acks, Content};
use crate::failure::Failure;

/// All engines.
const ENGINES: &[&Engine] = &[
    &sqlite::ENGINE,
    &rocksdb::ENGINE,
    &lmdb::ENGINE,
    &postgres::ENGINE,
    &wiredtiger::ENGINE,
    &built::BBOLT,
    &built::LEVELDB,
];

/// What `--check` names.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    name: String,
    by: By,
}

/// What reads the store.
#[derive(Clone, Debug)]
enum By {
    /// An engine's own tool.
    Engine(&'static Engine),
    /// An adapter of docs/EXEC.md.
    Exec(Command),
}

/// What a campaign needs besides the command.
pub(crate) struct Ready {
    /// Variables for the command.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The tool with its version.
    pub(crate) version: Option<String>,
    /// Keeps what was built.
    _built: Option<tempfile::TempDir>,
}

/// Parses the value of `--check`.
pub(crate) fn named(text: &str) -> Result<Check, String> {
    let by = match text.strip_prefix("exec:") {
        Some(adapter) => By::Exec(Command::parse(adapter).map_err(|e| e.to_string())?),
        None => {
            let engine = ENGINES.iter().find(|engine| engine.name == text);
            By::Engine(engine.ok_or_else(|| {
                let names: Vec<&str> = ENGINES.iter().map(|engine| engine.name).collect();
                format!("expected {} or exec:'ADAPTER ARGS'", names.join(", "))
            })?)
        }
    };
    let name = text.into();
    Ok(Check { name, by })
}

impl Check {
    /// An adapter's command, of which `line` is the text.
    pub(crate) fn by_adapter(line: &str, command: Command) -> Check {
        let (name, by) = (format!("exec:{line}"), By::Exec(command));
        Check { name, by }
    }

    /// The value of `--check`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Looks for the tools, and builds what has to be built.
    pub(crate) fn prepare(&self, acks: Option<&Acks>) -> Result<Ready, Failure> {
        let mut ready = Ready {
            env: Vec::new(),
            version: None,
            _built: None,
        };
        if acks.is_some_and(|acks| !acks.is_empty()) {
            ready.env.push((TRIES.into(), "1".into()));
        }
        match &self.by {
            By::Exec(command) => {
                let here = std::env::current_dir().map_err(|e| Failure::file("this folder", &e))?;
                ready.env.push((HERE.into(), here.into()));
                ready.version = Some(exec::name(command)?);
            }
            By::Engine(engine) => {
                let missing = engine
                    .tools
                    .iter()
                    .find(|(name, _)| tool::find(name).is_none());
                if let Some((name, package)) = missing {
                    return Err(Failure::cannot_run(format!(
                        "--check {}: expected the command {name} in $PATH (Debian: {package}), \
                         found none",
                        engine.name
                    )));
                }
                if let Some(build) = engine.build {
                    let folder = tempfile::Builder::new().prefix("treering-tool-").tempdir();
                    let folder = folder.map_err(|e| Failure::file("a folder for the tool", &e))?;
                    let built = build(folder.path())?;
                    ready.version = tool::first_line(&built, &[]);
                    ready.env.push((TOOL.into(), built.into()));
                    ready._built = Some(folder);
                }
                if let [program, arguments @ ..] = engine.version {
                    let program = tool::find(program).unwrap_or_default();
                    ready.version = tool::first_line(&program, arguments);
                }
            }
        }
        Ok(ready)
    }

    /// Checks most states without a process for each.
    pub(crate) fn quick(&self) -> Option<QuickMaker> {
        let By::Exec(command) = self.by.clone() else {
            return None;
        };
        let make = move || Box::new(exec::Staying::new(command.clone())) as _;
        Some(QuickMaker::new(make))
    }

    /// Checks the state in `$TREERING_DIR`. Returns what is wrong with it, if anything.
    pub(crate) fn state(&self) -> Result<Option<String>, Failure> {
        let (dir, acks) = (variable("TREERING_DIR")?, variable("TREERING_ACKS")?);
        let text = std::fs::read(&acks).map_err(|e| Failure::file("the acknowledgements", &e))?;
        let acks = Acks::read(&String::from_utf8_lossy(&text));
        let acks = acks.map_err(|e| Failure::usage(format!("acknowledgements: {e}")))?;
        let content = match &self.by {
            By::Exec(command) => exec::content(command, &dir, acks.store.as_deref()).map(Some),
            By::Engine(engine) => engine.content(&dir, &acks),
        };
        let content = match content {
            Ok(content) => content,
            Err(Trouble::State(wrong)) => return Ok(Some(wrong)),
            Err(Trouble::Failure(failure)) => return Err(failure),
        };
        let is_there = content.is_some();
        let wrong = acks.judge(&content.unwrap_or_default());
        Ok(wrong.map(|wrong| match is_there {
            true => wrong.to_string(),
            false => format!("{wrong}: there is no store"),
        }))
    }
}

impl Engine {
    fn content(&self, dir: &Path, acks: &Acks) -> Result<Option<Content>, Trouble> {
        let Some(store) = (self.find)(dir, acks.store.as_deref())? else {
            return Ok(None);
        };
        let place = Place {
            engine: self.name,
            dir,
            store,
            is_early: acks.is_empty() && std::env::var_os(TRIES).is_some(),
        };
        (self.read)(&place).map(Some)
    }
}

fn variable(name: &str) -> Result<PathBuf, Failure> {
    let value = std::env::var_os(name).map(PathBuf::from);
    value.ok_or_else(|| Failure::usage(format!("${name}: expected a path, found none")))
}
