//! What the tree tells an observer ([`crate::pm::events::lodge`]).

use crate::pm::events::Event;
use crate::pm::events::lodge::{LodgeEvent, LodgeLeaf, LodgeNode, LodgePair};
use crate::pm::layout::Time;

use super::Lodge;
use super::node::Body;

impl Lodge {
    /// Reports an event, if there is an observer.
    pub(super) fn tell(&self, event: impl FnOnce() -> LodgeEvent) {
        self.medium.tell(|| Event::Lodge(event()));
    }

    pub(super) fn tell_buffered(&self, body: &Body) {
        self.tell(|| LodgeEvent::Buffered { node: body.image() });
    }

    pub(super) fn tell_flush(&self, body: &Body, leaves: &[usize]) {
        self.tell(|| LodgeEvent::Flushes {
            leaves: leaves.iter().map(|at| body.leaf(*at).0).collect(),
        });
    }

    pub(super) fn tell_replay(&self, number: Time, body: &Body) {
        self.tell(|| LodgeEvent::Replays {
            number: number.0,
            node: body.image(),
        });
    }
}

impl Body {
    /// Returns the contents for the observer.
    pub(super) fn image(&self) -> LodgeNode {
        let leaf = |at: usize| LodgeLeaf {
            leaf: self.leaf(at).0,
            low: self.low(at),
            keys: self.count(at),
        };
        let pair = |at: usize| {
            let pair = self.pair(at);
            LodgePair {
                key: pair.change.slot.key,
                value: pair.change.slot.value,
                delete: pair.change.delete,
                number: pair.number.0,
                log: pair.log,
            }
        };
        LodgeNode {
            leaves: (0..self.leaves()).map(leaf).collect(),
            pairs: self.pairs().map(pair).collect(),
        }
    }
}
