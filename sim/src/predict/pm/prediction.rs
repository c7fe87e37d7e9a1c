//! What is predicted of a tree in persistent memory.

use super::ccl::PmPrediction;
use super::lodge::LodgePrediction;
use crate::predict::tried::Family;

/// The prediction for a tree in persistent memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TreePrediction {
    /// CCL-BTree, or a tree without buffers.
    Ccl(PmPrediction),
    /// LodgeTree.
    Lodge(LodgePrediction),
}

impl TreePrediction {
    /// The part of the prediction that all trees in persistent memory have.
    #[must_use]
    pub fn pm(&self) -> &PmPrediction {
        match self {
            TreePrediction::Ccl(pm) => pm,
            TreePrediction::Lodge(lodge) => &lodge.pm,
        }
    }

    /// The family whose tests bound the prediction's errors.
    #[must_use]
    pub fn family(&self) -> Family {
        match self {
            TreePrediction::Ccl(_) => Family::Ccl,
            TreePrediction::Lodge(_) => Family::Lodge,
        }
    }
}
