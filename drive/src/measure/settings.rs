//! What is asked of a replay.

use std::path::PathBuf;

use treering_sim::predict::Method;
use treering_sim::replay::Target;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The recording.
    pub log: PathBuf,
    /// The drives, at least one; all of them simulated.
    pub devices: Vec<Target>,
    /// Causes of the user, each with a glob of paths; they come before the known ones.
    pub causes: Vec<(String, String)>,
    /// Share of a fitted drive that the most live data takes.
    pub fill: f64,
    /// Whether the drive is told what is no longer needed.
    pub discards: bool,
    /// What comes before the measured part.
    pub warmup: Warmup,
    /// The program's own bytes; `None`: those that its lines `user_bytes N` said, or the bytes of
    /// its files.
    pub user_bytes: Option<u64>,
    /// The user's bytes a day, for the lifetime.
    pub daily_bytes: Option<u64>,
    /// Whether queues are modelled.
    pub timing: bool,
    /// How to predict; `None`: not at all.
    pub predict: Option<Method>,
    /// Seed of everything random.
    pub seed: u64,
}

/// What comes before the measured part.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Warmup {
    /// Nothing of the program; the making of a real file system, or what a kept drive held.
    #[default]
    Nothing,
    /// A share of the bytes that the host writes.
    Share(f64),
    /// All up to the first line of this text in `$TREERING_ACKS`.
    Mark(String),
}

impl Settings {
    /// A recording on a device, all of it measured.
    #[must_use]
    pub fn new(log: impl Into<PathBuf>, device: Target) -> Settings {
        Settings {
            log: log.into(),
            devices: vec![device],
            causes: Vec::new(),
            fill: 0.9,
            discards: true,
            warmup: Warmup::Nothing,
            user_bytes: None,
            daily_bytes: None,
            timing: false,
            predict: Some(Method::default()),
            seed: 0,
        }
    }
}

/// How far a replay has come: a phase, and events of all events.
pub type Progress<'a> = &'a mut dyn FnMut(&'static str, u64, u64);
