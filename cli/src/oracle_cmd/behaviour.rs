//! `--tla FOLDER`: writes an event that a mirror refuses as a TLA+ behaviour.

use std::path::Path;

use treering_oracle::Engine;
use treering_specs::conformance::module::Module;
use treering_specs::conformance::{self as events, Variant, finding};

use super::report::Row;
use super::runs::Mode;
use crate::behaviour::say_module;
use crate::failure::{self, Failure};

/// Writes the behaviour of a finding, if the row has one.
pub(super) fn write(engine: &dyn Engine, row: &Row, folder: &Path) -> Result<(), Failure> {
    if row.mode != Mode::Events || row.finding.is_none() {
        return Ok(());
    }
    let behaviour = match &row.behaviour {
        Some(behaviour) => behaviour.clone(),
        None => of_recovery(engine, row)?,
    };
    say_module(&behaviour, folder)
}

/// The behaviour of an event that `WalRecovery` refuses.
fn of_recovery(engine: &dyn Engine, row: &Row) -> Result<Result<Module, String>, Failure> {
    let variant = Variant::named(&engine.name());
    let (Some((setup, seed, threads)), Some(variant)) = (row.refused, variant) else {
        return Ok(Err("no event was refused".into()));
    };
    if threads {
        return Ok(Err("the episode had threads, so it does not repeat".into()));
    }
    let broken = |e| failure::engine("the test device", e);
    let setups = events::setups(variant).map_err(broken)?;
    finding::behaviour(&setups[setup], seed).map_err(broken)
}
