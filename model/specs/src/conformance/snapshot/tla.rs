//! The steps of [`IndexSnapshot`] in TLA+.

use super::episode::CLIENTS;
use super::judge::Judge;
use super::setup::{KEYS, PER_CHUNK, ROOM, SLOTS};
use crate::conformance::behaviour::{Constants, InTla, named, numbers};
use crate::conformance::led::Led;
use crate::mirror::wide::index_snapshot::{Action, IndexSnapshot, State};
use crate::{Mirror, Value};

impl Judge<'_> {
    /// The constants of the spec in this episode.
    pub(super) fn constants_of_spec(&self) -> Constants {
        vec![
            ("Clients", named('c', CLIENTS.into())),
            ("Keys", numbers(KEYS.into())),
            ("Slots", numbers(SLOTS)),
            ("Values", numbers(self.state.puts() as usize + 8)),
            ("Absent", Value::model("Absent")),
            ("Pending", Value::model("Pending")),
            ("Fences", numbers(1)),
            ("Room", Value::int(ROOM as u32)),
            ("PerChunk", Value::int(PER_CHUNK as u32)),
            ("Trims", Value::Bool(true)),
            ("Bug", Value::str("none")),
        ]
    }
}

impl Led for IndexSnapshot {
    fn try_take(&self, state: &mut State, action: &Action) -> bool {
        self.try_take(state, *action)
    }

    fn enabled(&self, state: &State) -> Vec<Action> {
        self.steps(state)
    }

    fn violated(&self, state: &State) -> Option<&'static str> {
        self.broken(state)
    }

    fn met(&self, before: &State, action: &Action, after: &State) -> Vec<String> {
        self.situations(before, *action, after)
    }
}

/// Whether the device loses a write.
fn losing(lost: bool) -> &'static str {
    match lost {
        true => "losses' = losses + 1",
        false => "losses' = losses",
    }
}

impl InTla for IndexSnapshot {
    const REPLACED: &'static str = "    MayLose <- AnyLoss\n";

    const OPERATORS: &'static str = r#"
AnyLoss(n) == TRUE

(* A crash, which leaves what the next state has. *)
CrashLeaving ==
    LET blocks == NewestOf(slotDev')
        chosen == Newest(superDev')
    IN /\ CutLog
       /\ \A s \in Slots : blocks[s] \in Survivors(slotDev[s])
       /\ chosen \in Survivors(superDev)
       /\ Reads(blocks, chosen)
       /\ slotDev' = AllDurably(blocks)
       /\ superDev' = Durably(chosen)
       /\ ForgetMemory
       /\ phase' = "cut"
"#;

    fn formula(action: &Action) -> String {
        let label = Self::label(action);
        match *action {
            Action::CallGet(c, k) => {
                format!("CallGet(c{0}) /\\ call'[c{0}].key = {k}", c + 1)
            }
            Action::CallScan(c, back) => {
                let back = Value::Bool(back);
                format!("CallScan(c{0}) /\\ call'[c{0}].back = {back}", c + 1)
            }
            Action::CallWrite(c, k, absent) => {
                let is = if absent { "=" } else { "#" };
                format!(
                    "CallWrite(c{0}) /\\ call'[c{0}].key = {k} /\\ call'[c{0}].value {is} Absent",
                    c + 1
                )
            }
            Action::Descend(c)
            | Action::DescendAgain(c)
            | Action::ReadLeaf(c)
            | Action::Answer(c)
            | Action::ChangeLeaf(c)
            | Action::Acknowledge(c) => format!("{label}(c{})", c + 1),
            Action::CopyLeaf(c, at) | Action::CopyBack(c, at) => {
                format!("{label}(c{0}) /\\ call'[c{0}].at = {at}", c + 1)
            }
            Action::CommitLog(n) => format!("CommitLog /\\ durable' = {n}"),
            Action::AppendSplit(p, fence, right) => format!(
                "AppendSplit({p}) /\\ change'.right = {right} /\\ log'[Len(log')].key = {fence}"
            ),
            Action::AppendMerge(p) | Action::FreePage(p) => format!("{label}({p})"),
            Action::WritePage(p, lost) => format!("WritePage({p}) /\\ {}", losing(lost)),
            Action::BeginSnapshot(slot) => {
                format!("BeginSnapshot /\\ checkpoint'.head = {slot}")
            }
            Action::AddChunk(slot, lost) => {
                format!(
                    "AddChunk /\\ checkpoint'.last = {slot} /\\ {}",
                    losing(lost)
                )
            }
            Action::EndSnapshot(lost) => format!("EndSnapshot /\\ {}", losing(lost)),
            Action::Crash(..) => "CrashLeaving".into(),
            Action::Restart(n) => format!("Restart /\\ durable' = {n}"),
            _ => label.into(),
        }
    }
}
