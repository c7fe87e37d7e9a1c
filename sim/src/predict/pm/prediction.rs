//! What is predicted of a tree in persistent memory.

use super::ccl::PmPrediction;
use super::lodge::LodgePrediction;
use crate::predict::Model;
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

    /// The model that made it. A model of independent draws gives no error bars.
    #[must_use]
    pub fn model(&self) -> Model {
        match self.pm().bars {
            Some(_) => Model::Played,
            None => Model::Independent,
        }
    }

    /// Widens the error bars by what several clients and the device's queues add.
    #[must_use]
    pub(crate) fn with_clients(mut self, clients: u32, queued: bool) -> TreePrediction {
        let pm = match &mut self {
            TreePrediction::Ccl(pm) => pm,
            TreePrediction::Lodge(lodge) => &mut lodge.pm,
        };
        pm.bars = pm.bars.map(|bars| bars.with_clients(clients, queued));
        self
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
