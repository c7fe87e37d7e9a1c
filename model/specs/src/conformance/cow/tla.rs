//! The steps of [`CopyOnWrite`] in TLA+.

use super::episode::CLIENTS;
use super::judge::Judge;
use crate::conformance::behaviour::{Constants, InTla, named, numbers};
use crate::conformance::led::Led;
use crate::mirror::wide::copy_on_write::{Action, CopyOnWrite, State};
use crate::{Mirror, Value};

impl Judge<'_> {
    /// The constants of the spec in this episode.
    pub(super) fn constants_of_spec(&self) -> Constants {
        let persists = ["each", "checkpoints"].map(Value::str);
        vec![
            ("Clients", named('c', CLIENTS.into())),
            ("Pages", named('p', self.setup.pages.len())),
            ("Blocks", numbers(1)),
            ("Slots", numbers(CopyOnWrite::MOST_SLOTS)),
            ("Values", numbers(self.state.log_len() as usize + 8)),
            ("Absent", Value::model("Absent")),
            ("Pending", Value::model("Pending")),
            ("Persists", Value::set(persists)),
            ("Tears", Value::Bool(false)),
            ("Discards", Value::str("act")),
            ("Bug", Value::str("none")),
        ]
    }
}

impl Led for CopyOnWrite {
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

impl InTla for CopyOnWrite {
    const OPERATORS: &'static str = r#"
(* A crash, which leaves what the next state has. *)
CrashLeaving ==
    LET slots  == NewestOf(slotDev')
        blocks == NewestOf(tableDev')
        supers == NewestOf(superDev')
    IN /\ CutLog
       /\ \A s \in Slots : slots[s] \in Survivors(slotDev[s])
       /\ \A b \in Blocks : blocks[b] \in Survivors(tableDev[b])
       /\ \A i \in SuperPlaces : supers[i] \in SuperSurvivors(i)
       /\ Reads(slots, blocks, Chosen(supers))
       /\ slotDev' = AllDurably(slots)
       /\ tableDev' = AllDurably(blocks)
       /\ superDev' = AllDurably(supers)
       /\ lost' = NothingLost
       /\ ForgetMemory
       /\ phase' = "cut"

(* The engine redoes page by page, only what a page lacks, and counts nothing. Records of *)
(* different pages commute. *)
Missing(p) == {n \in (super.redo + 1)..Len(log) : log[n].page = p /\ page[p].lsn < n}

RedoOnPage(n) ==
    LET record == log[n]
        p      == record.page
    IN /\ Redoing
       /\ n \in Missing(p) /\ \A m \in Missing(p) : n <= m
       /\ page' = [page EXCEPT ![p] = RedoOne(@, record, n)]
       /\ index' = Reindexed(index, record)
       /\ UNCHANGED <<persist, call, logVars, table, free, retired, super>>
       /\ UNCHANGED <<stepVars, deviceVars, recoveryVars>>

(* FinishRedo, when no page lacks a record. *)
FinishRedoOfPages ==
    /\ Redoing
    /\ \A p \in Pages : Missing(p) = {}
    /\ writing = Quiet
    /\ page' = [p \in Pages |-> IF p \in index THEN page[p] ELSE Gone]
    /\ table' = [p \in Pages |-> IF p \in index THEN table[p] ELSE NoSlot]
    /\ LET left == Some({table[p] : p \in Pages \ index}) \ Persisted
       IN /\ slotDev' = Trimmed(slotDev, left)
          /\ lost' = [lost EXCEPT !.slots = @ \ ToTrim(left)]
          /\ free' = free \cup left
    /\ phase' = "clearing"
    /\ redone' = 0
    /\ UNCHANGED <<persist, call, logVars, index, retired, super, stepVars>>
    /\ UNCHANGED <<tableDev, superDev, poisoned, crashes>>
"#;

    fn formula(action: &Action) -> String {
        let label = Self::label(action);
        match *action {
            Action::CallGet(c, p) => {
                format!("CallGet(c{0}) /\\ call'[c{0}].key = p{1}", c + 1, p + 1)
            }
            Action::CallWrite(c, p, absent) => {
                let is = if absent { "=" } else { "#" };
                format!(
                    "CallWrite(c{0}) /\\ call'[c{0}].key = p{1} /\\ call'[c{0}].value {is} Absent",
                    c + 1,
                    p + 1
                )
            }
            Action::ReadPage(c)
            | Action::AnswerGet(c)
            | Action::BuildPage(c)
            | Action::ChangePage(c)
            | Action::DropPage(c)
            | Action::Acknowledge(c)
            | Action::FailCall(c) => format!("{label}(c{})", c + 1),
            Action::CommitLog(n) => format!("CommitLog /\\ durable' = {n}"),
            Action::WriteImage(p, slot) => format!(
                "WriteImage(p{}) /\\ Len(slotDev'[{slot}]) > Len(slotDev[{slot}])",
                p + 1
            ),
            Action::FreePage(p) => format!("FreePage(p{})", p + 1),
            Action::WriteSnapshot(slot) => {
                format!("WriteSnapshot /\\ checkpoint'.slot = {slot}")
            }
            Action::Crash(..) => "CrashLeaving".into(),
            Action::Restart(n) => format!("Restart /\\ durable' = {n}"),
            Action::RedoRecord => "\\E n \\in 1..Len(log) : RedoOnPage(n)".into(),
            Action::FinishRedo => "FinishRedoOfPages".into(),
            _ => label.into(),
        }
    }
}
