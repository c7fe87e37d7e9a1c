//! The steps of [`SurrogateBuffer`] in TLA+.

use super::judge::{Judge, N};
use crate::conformance::behaviour::{Constants, InTla, named, numbers};
use crate::mirror::wide::surrogate_buffer::unbounded::NOTHING;
use crate::mirror::wide::surrogate_buffer::{Action, SurrogateBuffer};
use crate::{Mirror, Value};

impl Judge {
    /// The constants of the spec in this episode.
    pub(super) fn constants_of_spec(&self) -> Constants {
        let (leaves, leaf_slots) = SurrogateBuffer::MOST_PLACES;
        let (keys, t_node, t_split) = self.sizes;
        let int = |n: usize| Value::int(n as u32);
        vec![
            ("Clients", named('c', self.clients.into())),
            ("Keys", numbers(keys)),
            ("Values", numbers(self.writes() + 1)),
            ("Leaves", numbers(leaves)),
            ("LeafSlots", int(leaf_slots)),
            ("Spaces", numbers(self.logs.places.len())),
            ("LogSize", int(self.logs.entries)),
            ("Absent", Value::model("Absent")),
            ("Pending", Value::model("Pending")),
            ("Slots", int(self.slots)),
            ("Fanout", int(self.slots - 1)),
            ("TNode", int(t_node)),
            ("TSplit", int(t_split)),
            ("Lows", Value::set([int(0)])),
            ("Bug", Value::str("none")),
        ]
    }
}

impl Judge {
    /// What `LodgeState.tla` assumes of its constants.
    pub(super) fn is_assumed(&self) -> bool {
        let (_, leaf_slots) = SurrogateBuffer::MOST_PLACES;
        let (keys, _, t_split) = self.sizes;
        let twice = 2 * t_split + 2 - t_split.div_ceil(2);
        (self.slots - 2 <= leaf_slots || keys <= 2 * leaf_slots)
            && (leaf_slots < twice
                || self.slots - 2 < twice
                || self.slots < 4
                || keys < 2 * t_split + 2)
    }
}

/// Whether the engine takes a step as the spec does. Otherwise it chooses what the spec does not:
/// numbers, slots, leaves, where leaves and nodes are split, what is flushed together.
pub(super) fn is_exact(action: &Action) -> bool {
    matches!(
        action,
        Action::CallGet(..)
            | Action::CallWrite(..)
            | Action::ReadKey(_)
            | Action::AnswerGet(_)
            | Action::WriteBackEntry(_)
            | Action::BufferPair(_)
            | Action::Acknowledge(_)
            | Action::FinishMerge(_)
            | Action::LinkLeaf(_)
            | Action::SwitchSibling(_)
            | Action::FinishReplay
    )
}

/// A value of the spec.
pub(super) fn content(of: N) -> String {
    match of {
        NOTHING => "Absent".into(),
        n => n.to_string(),
    }
}

impl InTla for SurrogateBuffer {
    fn formula(action: &Action) -> String {
        let label = Self::label(action);
        match *action {
            Action::CallGet(c, k) | Action::CallWrite(c, k) => {
                format!("{label}(c{0}) /\\ call'[c{0}].key = {k}", c + 1)
            }
            Action::OpenLog(c, log) => format!(
                "OpenLog(c{}) /\\ versions'[{1}] # versions[{1}]",
                c + 1,
                log + 1
            ),
            Action::ReadKey(c)
            | Action::AnswerGet(c)
            | Action::AppendEntry(c)
            | Action::WriteBackEntry(c)
            | Action::BufferPair(c)
            | Action::Acknowledge(c) => format!("{label}(c{})", c + 1),
            Action::StartFlush(n)
            | Action::ClearSlots(n)
            | Action::WritePairs(n)
            | Action::SetBitmap(n)
            | Action::FinishMerge(n)
            | Action::PrepareLeaf(n)
            | Action::LinkLeaf(n)
            | Action::SwitchSibling(n)
            | Action::FinishSplit(n)
            | Action::SplitNode(n) => format!("{label}({})", n + 1),
            Action::ReplayEntry(log, at) => {
                format!("ReplayEntry /\\ <<{}, {}>> \\in replayed'", log + 1, at + 1)
            }
            Action::Crash(..) | Action::Restart | Action::FinishReplay => label.into(),
        }
    }
}
