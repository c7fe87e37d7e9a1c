//! The mode `events` for trees in persistent memory.

use std::fmt::Debug;

use treering_oracle::Engine;
use treering_specs::conformance::refused::{Refusal, Report};
use treering_specs::conformance::{Budget, leaf, lodge};

use super::judged::Judged;

/// A tree whose every step is one of its spec.
#[derive(Clone, Copy)]
pub(super) enum Tree {
    /// A CCL-BTree with so many slots in a buffer node, or as many as each episode chooses. The tree
    /// without buffers has none.
    Leaves(Option<u8>),
    /// A LodgeTree, whose sizes each episode chooses.
    Lodge,
}

impl Tree {
    /// The tree of an engine.
    pub(super) fn of(engine: &dyn Engine) -> Option<Tree> {
        match engine.name().as_str() {
            "pmtree" => Some(Tree::Leaves(Some(0))),
            "ccl" => Some(Tree::Leaves(None)),
            "ccl:1" => Some(Tree::Leaves(Some(1))),
            "ccl:6" => Some(Tree::Leaves(Some(6))),
            "lodge" => Some(Tree::Lodge),
            _ => None,
        }
    }
}

/// Runs episodes.
pub(super) fn run(tree: Tree, seed: u64, budget: Budget) -> Judged {
    match tree {
        Tree::Leaves(batch) => {
            let actions: &[&str] = match batch {
                Some(0) => &leaf::UNBUFFERED,
                _ => leaf::LABELS,
            };
            judged("leaves", actions, leaf::run_mixed(batch, seed, budget))
        }
        Tree::Lodge => judged("lodge", lodge::LABELS, lodge::run_mixed(seed, budget)),
    }
}

fn judged<E: Debug, H: Debug, A: Debug>(
    part: &'static str,
    actions: &[&'static str],
    report: Report<E, Refusal<H, A>>,
) -> Judged {
    let what = |episode| format!("{part}, {episode:?}");
    Judged::new(part, actions.to_vec(), report, what)
}
