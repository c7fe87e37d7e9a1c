//! Counterexamples as tests of the engine, for the specs along whose steps it can be driven.

use super::case::{Case, CaseError, Ending};
use super::cover::retrace as wal;
use super::ring::cover::retrace as ring;
use crate::mirror::circular_buffer::CircularBuffer;
use crate::mirror::wal_recovery::WalRecovery;
use crate::{Config, Mirror as _};

/// The specs along whose steps the engine can be driven.
pub const SPECS: [&str; 2] = [CircularBuffer::SPEC, WalRecovery::SPEC];

/// Makes a test of the shortest counterexample of a model. `text` is that of its configuration.
///
/// ```
/// use treering_specs::Config;
/// use treering_specs::conformance::case::Ending;
/// use treering_specs::conformance::retrace::{Stage, case};
///
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/wal_recovery");
/// let path = format!("{folder}/MCWalRecovery_published_no-wal-rule.cfg");
/// let text = std::fs::read_to_string(&path).unwrap();
/// let config = Config::parse(path.as_ref(), &text).unwrap();
/// let case = case("WalRecovery", "published_no-wal-rule", &config, &text).unwrap();
/// // The engine has no such bug, so it does not take the step in which the page is written.
/// let ending = Stage::new(&case).unwrap().run().unwrap();
/// let Ending::Refused { step, .. } = ending else { panic!("{ending:?}") };
/// assert_eq!(case.steps[step - 1].action, "WriteBack");
/// ```
///
/// # Errors
/// The engine cannot be driven along this spec, the configuration does not fit the mirror, or there
/// is no counterexample.
pub fn case(spec: &str, model: &str, config: &Config, text: &str) -> Result<Case, CaseError> {
    match spec {
        CircularBuffer::SPEC => ring::case(model, config, text),
        WalRecovery::SPEC => wal::case(model, config, text),
        _ => Err(unknown(spec)),
    }
}

fn unknown(spec: &str) -> CaseError {
    let known = SPECS.join(", ");
    CaseError::Bad(format!(
        "{spec}: expected a spec along whose steps the engine can be driven: {known}"
    ))
}

/// The place where a case runs.
pub struct Stage(Which);

enum Which {
    Ring(Box<ring::Stage>),
    Wal(Box<wal::Stage>),
}

impl Stage {
    /// Reads the steps of a case, and prepares the engine. No bug may be switched on.
    ///
    /// # Errors
    /// The engine cannot be driven along its spec, or the steps are not those of the spec.
    pub fn new(case: &Case) -> Result<Stage, CaseError> {
        match case.spec.as_str() {
            CircularBuffer::SPEC => Ok(Stage(Which::Ring(Box::new(ring::Stage::new(case)?)))),
            WalRecovery::SPEC => Ok(Stage(Which::Wal(Box::new(wal::Stage::new(case)?)))),
            other => Err(unknown(other)),
        }
    }

    /// Drives the engine through the steps.
    ///
    /// # Errors
    /// The engine's own, before the first step.
    pub fn run(&self) -> Result<Ending, String> {
        match &self.0 {
            Which::Ring(stage) => stage.run(),
            Which::Wal(stage) => stage.run().map_err(|e| e.to_string()),
        }
    }

    /// As [`Stage::run`], on the engine with the seeded bug that the case names.
    ///
    /// # Errors
    /// As [`Stage::run`].
    #[cfg(feature = "mutations")]
    pub fn run_with_bug(&self) -> Result<Ending, String> {
        match &self.0 {
            Which::Ring(stage) => {
                treering_engine::choose_mutation(stage.engine_bug());
                let ending = stage.run_with_bug();
                treering_engine::choose_mutation(None);
                ending
            }
            Which::Wal(stage) => stage.run_with_bug().map_err(|e| e.to_string()),
        }
    }
}
