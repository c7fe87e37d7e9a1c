//! A found state as a file, for `treering cuts --replay`.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::model::Model;
use super::subject::{Choice, Rules};
use crate::error::DriveError;

/// A state that a checker could not live with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Found {
    /// [`Found::SCHEMA`].
    pub(super) schema: String,
    /// The recording.
    pub(super) recording: PathBuf,
    /// When it began, which tells it from others, in milliseconds since 1970.
    pub(super) began_unix_ms: u64,
    pub(super) model: Model,
    /// Bytes that are durable as a whole.
    pub(super) torn_bytes: u64,
    /// The most effects that are volatile at once.
    pub(super) window: usize,
    pub(super) choice: Choice,
    /// The cut in the recovery from that state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) recovery: Option<FoundRecovery>,
}

/// A cut in a recovery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FoundRecovery {
    /// The recording of the recovery, beside this file.
    pub(super) recording: PathBuf,
    pub(super) choice: Choice,
}

impl Found {
    /// The name and version of the format.
    pub(super) const SCHEMA: &'static str = "treering.cut/1";

    /// The rules by which states are made.
    pub(super) fn rules(&self) -> Rules {
        Rules {
            model: self.model,
            unit: self.torn_bytes,
            tears: true,
            limit: self.window,
            seed: 0,
        }
    }

    /// Reads a found state.
    pub(super) fn read(path: &Path) -> Result<Found, DriveError> {
        let bad = |expected: &str, found: String| DriveError::Bad {
            file: path.to_owned(),
            place: "the found state".into(),
            expected: expected.into(),
            found,
        };
        let file = File::open(path).map_err(DriveError::system(path.display().to_string()))?;
        let found: serde_json::Result<Found> =
            serde_json::from_reader(std::io::BufReader::new(file));
        let found =
            found.map_err(|error| bad("a state written by `treering cuts`", error.to_string()))?;
        if found.schema != Found::SCHEMA {
            return Err(bad(Found::SCHEMA, found.schema));
        }
        if ![512, 4096].contains(&found.torn_bytes) || found.window == 0 {
            let what = format!("{} and {}", found.torn_bytes, found.window);
            return Err(bad(
                "torn_bytes of 512 or 4096, and a window of at least 1",
                what,
            ));
        }
        Ok(found)
    }

    /// Writes a found state, as a whole or not at all.
    pub(super) fn write(&self, path: &Path) -> Result<(), DriveError> {
        let failed = || DriveError::system(path.display().to_string());
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let file = tempfile::NamedTempFile::new_in(dir.unwrap_or(Path::new(".")));
        let mut file = file.map_err(failed())?;
        let written = serde_json::to_writer_pretty(file.as_file_mut(), self);
        written.map_err(|error| failed()(error.into()))?;
        file.persist(path).map_err(|error| failed()(error.error))?;
        Ok(())
    }
}
