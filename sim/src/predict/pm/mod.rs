//! Predictors of trees in persistent memory, and the parameters that they need.
//!
//! | module | contents |
//! |---|---|
//! | [`ccl`] | CCL-BTree, and a tree without buffers |
//! | [`lodge`] | LodgeTree |
//! | [`growth`] | how leaves fill and split |
//! | [`buffer`] | which writes to an XPLine the XPBuffer combines |
//! | `played` | all of it, in the order of the trace |
//!
//! The first four take writes for independent draws, and need only counts of keys. They are used if
//! the order of the accesses was lost.

mod bars;
pub mod buffer;
pub mod ccl;
pub mod growth;
pub mod lodge;
mod played;
mod prediction;
mod slots;

use treering_engine::{
    CclOptions, Cleaning, LodgeOptions, Logging, NodeSplit, PmOptions, PmTreeKind,
};

use self::buffer::XpBuffer;
use self::lodge::LodgeShape;
use crate::pm::PmProfile;
use crate::predict::workload::Workload;

pub use self::bars::PmBars;
pub use self::prediction::TreePrediction;
pub use ccl::{LogCleaning, Logged, PmPrediction, PmTree, fits_leaves, predict};

/// Predicts the measured part of a trace on such a tree with this many clients, on a device of this
/// many bytes: from the order of the accesses or, if that was lost, from independent draws. `None`
/// if it was lost and no model of independent draws applies.
#[must_use]
pub fn predict_tree(
    workload: &Workload,
    (options, clients): (&PmOptions, u32),
    (profile, device_bytes): (&PmProfile, u64),
) -> Option<TreePrediction> {
    let tree = (options, clients);
    let played = match workload.accesses.lost() {
        None => played::play(workload, tree, (profile, device_bytes)).ok(),
        Some(_) => None,
    };
    played
        .or_else(|| predict_independent(workload, (&options.tree, clients), &XpBuffer::of(profile)))
}

/// Predicts the same, taking writes for independent draws from the counts of their keys. `None` if
/// no such model applies: records lie outside the leaves, or one buffer for all leaves is flushed
/// as a whole.
#[must_use]
pub fn predict_independent(
    workload: &Workload,
    (tree, clients): (&PmTreeKind, u32),
    buffer: &XpBuffer,
) -> Option<TreePrediction> {
    if !fits_leaves(workload) {
        return None;
    }
    let of_pm = |tree: PmTree| TreePrediction::Ccl(predict(workload, &tree, buffer));
    match tree {
        PmTreeKind::Global(_) => None,
        PmTreeKind::PmTree => Some(of_pm(unbuffered(clients))),
        PmTreeKind::Ccl(ccl) => Some(of_pm(ccl_tree(ccl, clients))),
        PmTreeKind::Lodge(lodge) => {
            let prediction = lodge::predict(workload, &shape(lodge), buffer);
            Some(TreePrediction::Lodge(prediction))
        }
    }
}

fn unbuffered(clients: u32) -> PmTree {
    PmTree {
        batch: 0,
        logged: Logged::Nothing,
        cleaning: LogCleaning::LocalityAware,
        log_share: f64::INFINITY,
        garbage_share: 0.0,
        logs: 1.0,
        clients: f64::from(clients),
    }
}

fn ccl_tree(ccl: &CclOptions, clients: u32) -> PmTree {
    PmTree {
        batch: ccl.batch,
        logged: match ccl.logging {
            Logging::WriteConservative => Logged::WriteConservative,
            Logging::EveryWrite => Logged::Naive,
        },
        cleaning: match ccl.cleaning {
            Cleaning::LocalityAware => LogCleaning::LocalityAware,
            Cleaning::Naive => LogCleaning::Naive,
        },
        log_share: f64::from(ccl.log_percent) / 100.0,
        garbage_share: f64::from(ccl.garbage_percent) / 100.0,
        ..unbuffered(clients)
    }
}

fn shape(lodge: &LodgeOptions) -> LodgeShape {
    LodgeShape {
        slots: lodge.slots,
        t_node: lodge.t_node,
        t_split: lodge.t_split,
        burst_factor: match lodge.node_split {
            NodeSplit::Double => None,
            NodeSplit::HotnessAware => Some(f64::from(lodge.burst_factor)),
        },
        log_entries: f64::from(lodge.log_entries),
        entitled_entries: lodge.logs as f64 * f64::from(lodge.log_entries),
        log_share: f64::from(lodge.log_percent) / 100.0,
    }
}
