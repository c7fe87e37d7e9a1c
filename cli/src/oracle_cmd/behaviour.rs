//! `--tla FOLDER`: writes an event that `WalRecovery` refuses as a TLA+ behaviour.

use std::path::Path;

use treering_oracle::Engine;
use treering_specs::conformance::{self as events, Variant, finding};

use super::report::Row;
use super::runs::Mode;
use crate::failure::{self, Failure};
use crate::output::{Output, check_target, say};

/// Refuses a folder that cannot be written to.
pub(super) fn check_folder(folder: &Path) -> Result<(), Failure> {
    if !folder.is_dir() {
        return Err(Failure::usage(format!(
            "--tla {}: expected a folder",
            folder.display()
        )));
    }
    check_target("--tla", &folder.join("Finding.tla"))
}

/// Writes the behaviour of a finding, if the row has one.
pub(super) fn write(engine: &dyn Engine, row: &Row, folder: &Path) -> Result<(), Failure> {
    if row.mode != Mode::Events || row.finding.is_none() {
        return Ok(());
    }
    let variant = Variant::named(&engine.name());
    let (Some((setup, seed, threads)), Some(variant)) = (row.refused, variant) else {
        return say(
            b"--tla: no behaviour is written: only events of WalRecovery are, as of btree:in-place\n",
        );
    };
    if threads {
        return say(
            b"--tla: no behaviour is written: the episode had threads, so it does not repeat\n",
        );
    }
    let broken = |e| failure::engine("the test device", e);
    let setups = events::setups(variant).map_err(broken)?;
    let module = match finding::behaviour(&setups[setup], seed).map_err(broken)? {
        Ok(module) => module,
        Err(why) => {
            return say(format!("--tla: no behaviour is written: {why}\n").as_bytes());
        }
    };
    let path = folder.join(format!("{}.tla", module.name));
    Output::File(path.clone()).write(module.tla.as_bytes())?;
    Output::File(path.with_extension("cfg")).write(module.cfg.as_bytes())?;
    say(format!(
        "{}: {} events that the spec allows, and the one that it does not; see its first lines for \
         how to run TLC\n",
        path.display(),
        module.events
    )
    .as_bytes())
}
