//! The folder of the specs, and what can be wrong with it.

use std::path::{Path, PathBuf};

use treering_specs::check::suite::SuiteError;

use crate::failure::Failure;

impl From<SuiteError> for Failure {
    fn from(error: SuiteError) -> Failure {
        match error {
            SuiteError::Missing(_) | SuiteError::Frontier(_) | SuiteError::Io { .. } => {
                Failure::cannot_run(error.to_string())
            }
            _ => Failure::usage(error.to_string()),
        }
    }
}

/// Finds the folder of the specs: the one that is named, else the nearest one, else the one that
/// this program was built from.
pub(crate) fn specs_folder(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let is_specs = |folder: &PathBuf| folder.join("pom.xml").is_file();
    if let Some(folder) = named {
        // Checkers run in other working directories, so the path must be absolute.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        return (is_specs(&folder).then_some(folder)).ok_or_else(|| {
            let named = named.unwrap_or(Path::new("")).display();
            Failure::usage(format!(
                "--specs {named}: expected a folder with a pom.xml and specs"
            ))
        });
    }
    let here = std::env::current_dir().unwrap_or_default();
    let above = here.ancestors().map(|folder| folder.join("specs"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs");
    (above.chain([source]))
        .find(is_specs)
        .ok_or_else(|| Failure::cannot_run("the specs are missing: name their folder with --specs"))
}
