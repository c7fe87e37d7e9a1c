//! The steps of [`PageShadowing`] in TLA+.

use super::episode::CLIENTS;
use super::judge::Judge;
use crate::conformance::behaviour::{Constants, InTla, named, numbers};
use crate::conformance::led::Led;
use crate::mirror::wide::page_shadowing::{Action, PageShadowing, State};
use crate::{Mirror, Value};

impl Judge<'_> {
    /// The constants of the spec in this episode.
    pub(super) fn constants_of_spec(&self) -> Constants {
        vec![
            ("Clients", named('c', CLIENTS.into())),
            ("Pages", named('p', self.setup.pages.len())),
            ("Segments", numbers(self.setup.segments())),
            ("Values", numbers(self.state.log_len() as usize + 8)),
            ("Absent", Value::model("Absent")),
            ("Trimmed", Value::model("Trimmed")),
            ("Pending", Value::model("Pending")),
            ("Threshold", Value::int(self.setup.threshold())),
            ("Discards", Value::str("act")),
            ("Bug", Value::str("none")),
        ]
    }
}

impl Led for PageShadowing {
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

/// A key of the spec.
pub(super) fn key(of: u8) -> String {
    let (p, segment) = PageShadowing::page_and_segment(of);
    format!("<<p{}, {}>>", p + 1, segment + 1)
}

impl InTla for PageShadowing {
    const OPERATORS: &'static str = r#"
(* A crash, which leaves what the next state has. *)
CrashLeaving ==
    /\ CutLog
    /\ \A p \in Pages : \A spot \in Spots : Newest(dev'[p][spot]) \in Survivors(dev[p][spot])
    /\ dev' = [p \in Pages |-> AllDurably(NewestOf(dev'[p]))]
    /\ lost' = NoneLost
    /\ valid' = [p \in Pages |-> Unknown]
    /\ ForgetMemory
    /\ phase' = "cut"

(* A restart that reads the newest version of every block. *)
RestartReadingNewest ==
    LET read == [p \in Pages |-> AsRead(NewestOf(dev[p]))]
    IN /\ CutLog
       /\ valid' = [p \in Pages |-> IF Named(p) THEN KnownAfter(read[p]) ELSE Unknown]
       /\ dev' = [p \in Pages |-> WrittenAgain(p, read[p])]
       /\ lost' = [p \in Pages |-> lost[p] \ Rewritten(p, read[p])]
       /\ ForgetMemory
       /\ phase' = "killed"

(* A checkpoint that gives up no more of the log than the spec's: the engine's redo start is *)
(* where its checkpoint began. *)
CheckpointTo(n) ==
    /\ phase = "up" /\ Serving
    /\ redoStart < n /\ n <= Swept
    /\ redoStart' = n
    /\ DeviceFlush /\ valid' = AfterFlush(valid)
    /\ UNCHANGED <<call, log, durable, mem, lost, poisoned, recoveryVars>>

(* The engine redoes page by page, only what a page lacks, and counts nothing. Records of *)
(* different pages commute. *)
LsnOf(p) ==
    IF IsIn(p) THEN mem[p].lsn ELSE ReadBoth(AsRead(NewestOf(dev[p]))).image.lsn

Missing(p) == {n \in (redoStart + 1)..Len(log) : PageOf(log[n].key) = p /\ LsnOf(p) < n}

RedoOnPage(n) ==
    LET p == PageOf(log[n].key)
    IN /\ phase # "up"
       /\ IsIn(p)
       /\ n \in Missing(p) /\ \A m \in Missing(p) : n <= m
       /\ mem' = [mem EXCEPT ![p] = Changed(@, SegmentOf(log[n].key), log[n].value, n)]
       /\ UNCHANGED <<call, logVars, valid, deviceVars, recoveryVars>>

(* FinishRedo, when no page lacks a record. *)
FinishRedoOfPages ==
    /\ phase # "up"
    /\ \A p \in Pages : Missing(p) = {}
    /\ phase' = "up" /\ redone' = 0
    /\ UNCHANGED <<call, logVars, mem, valid, deviceVars, crashes>>
"#;

    fn formula(action: &Action) -> String {
        let label = Self::label(action);
        match *action {
            Action::CallGet(c, k) => {
                let key = key(k);
                format!("CallGet(c{0}) /\\ call'[c{0}].key = {key}", c + 1)
            }
            Action::CallWrite(c, k) => {
                let key = key(k);
                format!(
                    "CallWrite(c{0}) /\\ call'[c{0}].key = {key} /\\ call'[c{0}].value # Absent",
                    c + 1
                )
            }
            Action::ReadPage(c)
            | Action::AnswerGet(c)
            | Action::ChangePage(c)
            | Action::Acknowledge(c) => format!("{label}(c{})", c + 1),
            Action::CommitLog(n) => format!("CommitLog /\\ durable' = {n}"),
            Action::WriteDelta(p)
            | Action::WriteWhole(p)
            | Action::Trim(p)
            | Action::Evict(p)
            | Action::Load(p, _) => format!("{label}(p{})", p + 1),
            Action::Checkpoint => "\\E n \\in (redoStart + 1)..Swept : CheckpointTo(n)".into(),
            Action::Crash(..) => "CrashLeaving".into(),
            Action::Restart(n, _) => format!("RestartReadingNewest /\\ durable' = {n}"),
            Action::RedoRecord => "\\E n \\in (redoStart + 1)..Len(log) : RedoOnPage(n)".into(),
            Action::FinishRedo => "FinishRedoOfPages".into(),
            _ => label.into(),
        }
    }
}
