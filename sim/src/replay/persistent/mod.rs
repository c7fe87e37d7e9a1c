//! Trees in simulated persistent memory.
//!
//! ```text
//! client free ──▶ its operation runs on the real engine ──▶ pm.submit(client, now)
//!      ▲                                                     │ lines of all clients interleave
//!      └──────────── pm.next_done(): who is done first ◀─────┘
//!                    store.due()? one step of cleaning, on a client of its own
//! ```
//!
//! As on drives, operations run one after another on the engine, and their requests to the device
//! are served in virtual time. To the engine all virtual clients are one thread, so they share a
//! log. A write is durable when it returns, so `--durability` does not apply.

mod backend;
mod forecast;
mod plan;
mod report;

use std::sync::Arc;

use treering_engine::PmOptions;

use self::backend::PmBackend;
use super::config::ReplayConfig;
use super::error::ReplayError;
use super::progress::Progress;
use super::virtual_time;
use crate::pm::{PmProfile, SimPm};
use crate::report::ReplayReport;
use crate::ssd::TimingMode;

pub(super) use forecast::{check, forecast};

/// Replays on persistent memory of this many bytes, or as many as the store needs.
pub(super) fn run(
    config: &ReplayConfig,
    options: &PmOptions,
    (profile, capacity_bytes): (&PmProfile, Option<u64>),
    progress: &mut dyn FnMut(Progress),
) -> Result<ReplayReport, ReplayError> {
    let looked = super::look::look_through(config, progress)?;
    let bytes = capacity_bytes.unwrap_or_else(|| plan::device_bytes(options, &looked.workload));
    let mode = match config.timing {
        true => TimingMode::Queued,
        false => TimingMode::Counting,
    };
    let pm = Arc::new(SimPm::new(profile, bytes, mode, config.seed)?);
    let name = config.target.name();
    let mut backend = PmBackend::open(pm, options, config).map_err(|e| e.on(&name))?;
    let run = virtual_time::replay((config, &looked), &mut backend, progress);
    let outcome = run.map_err(|e| e.on(&name))?;
    let cleaning_bytes = backend.cleaning_bytes();
    drop(backend);
    // Predictions cover the whole trace.
    let complete = outcome.done_ops == looked.ops;
    let predicted = (config.predict && complete)
        .then(|| forecast::predict((config, options), (profile, bytes), &looked))
        .flatten();
    let material = report::Material {
        config,
        options,
        profile,
        looked: &looked,
        capacity_bytes: bytes,
        cleaning_bytes,
        predicted,
    };
    Ok(report::report(&material, outcome))
}
