//! The steps of [`SurrogateBuffer`] in TLA+.

use crate::conformance::behaviour::{Constants, InTla, named, numbers};
use crate::mirror::wide::surrogate_buffer::unbounded::NOTHING;
use crate::mirror::wide::surrogate_buffer::{Action, SurrogateBuffer};
use crate::{Mirror, Value};

/// The sizes of an episode, besides those of the mirror's state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) clients: usize,
    pub(super) keys: usize,
    /// The number of puts that were asked for.
    pub(super) puts: usize,
    /// Slots of a node.
    pub(super) slots: usize,
    /// The number of logs, and of the entries of each.
    pub(super) logs: (usize, usize),
    /// The most leaves of a flush, and the most pairs of a leaf.
    pub(super) most: (usize, usize),
}

/// The constants of the spec.
pub(super) fn constants(of: Sizes) -> Constants {
    let (leaves, leaf_slots) = SurrogateBuffer::MOST_PLACES;
    let int = |n: usize| Value::int(n as u32);
    vec![
        ("Clients", named('c', of.clients)),
        ("Keys", numbers(of.keys)),
        ("Values", numbers(of.puts + 1)),
        ("Leaves", numbers(leaves)),
        ("LeafSlots", int(leaf_slots)),
        ("Spaces", numbers(of.logs.0)),
        ("LogSize", int(of.logs.1)),
        ("Absent", Value::model("Absent")),
        ("Pending", Value::model("Pending")),
        ("Slots", int(of.slots)),
        ("Fanout", int(of.slots - 1)),
        ("TNode", int(of.most.0)),
        ("TSplit", int(of.most.1)),
        ("Lows", Value::set([int(0)])),
        ("Bug", Value::str("none")),
    ]
}

/// What `LodgeState.tla` assumes of its constants.
pub(super) fn is_assumed(of: Sizes) -> bool {
    let (_, leaf_slots) = SurrogateBuffer::MOST_PLACES;
    let (_, t_split) = of.most;
    let twice = 2 * t_split + 2 - t_split.div_ceil(2);
    (of.slots - 2 <= leaf_slots || of.keys <= 2 * leaf_slots)
        && (leaf_slots < twice || of.slots - 2 < twice || of.slots < 4 || of.keys < 2 * t_split + 2)
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
pub(super) fn content(of: u16) -> String {
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
