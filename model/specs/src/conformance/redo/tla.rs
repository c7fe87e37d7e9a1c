//! The steps of [`RedoLog`] in TLA+.

use super::episode::CLIENTS;
use super::judge::Judge;
use super::setup::{UNITS, Variant};
use crate::conformance::behaviour::{Constants, InTla, named, numbers};
use crate::conformance::led::Led;
use crate::mirror::redo_log::{Action, RedoLog, State};
use crate::{Mirror, Value};

impl Judge<'_> {
    /// The constants of the spec in this episode.
    pub(super) fn constants_of_spec(&self) -> Constants {
        let tears = match self.setup.variant {
            Variant::Torn => "sector",
            Variant::Mixed => "block",
        };
        vec![
            ("Clients", named('c', CLIENTS.into())),
            ("Units", Value::int(UNITS)),
            ("Ring", Value::int(self.setup.ring())),
            ("Records", numbers(1)),
            ("Packings", Value::set(["packed", "sparse"].map(Value::str))),
            ("Tears", Value::str(tears)),
            ("Bug", Value::str("none")),
        ]
    }
}

impl Led for RedoLog {
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
        vec![self.situation(before, *action, after)]
    }
}

impl InTla for RedoLog {
    const OPERATORS: &'static str = r#"
(* A crash, which leaves what the next state has: any version of a block, or sectors of several. *)
IsLeft(block, place, super) ==
    \/ block \in Survivors(place)
    \/ /\ Tears = "sector"
       /\ \E v \in Survivors(place) :
             block.head = v.head /\ DOMAIN block.rest = DOMAIN v.rest
       /\ \A i \in DOMAIN block.rest : \E v \in Survivors(place) : block.rest[i] = v.rest[i]
    \* The log has given it up. It may have been trimmed, and nobody can tell it from zeros.
    \/ \E v \in Survivors(place) :
          /\ v.head.epoch = 0 \/ v.head.index < BlockOf(super.redo)
          /\ block.head \in {v.head, NoBlock}
          /\ \A i \in DOMAIN block.rest :
                block.rest[i] \in {Empty} \cup {w.rest[i] : w \in Survivors(place)}

CrashLeaving ==
    LET blocks == NewestOf(logDev')
        super  == Newest(superDev')
        walk   == ReadLog(blocks, super)
    IN /\ ~Down
       /\ \A p \in Places : IsLeft(blocks[p], logDev[p], super)
       /\ super \in Survivors(superDev)
       /\ logDev' = AllDurably(blocks)
       /\ superDev' = Durably(super)
       /\ history' = HistoryRead(super, walk)
       /\ durable' = walk.end
       /\ verdict' = Judge(blocks, super)
       /\ lost' = NothingLost
       /\ ForgetMemory
       /\ crashes' = crashes + 1
       /\ phase' = "cut"
       /\ UNCHANGED <<sure, rotten>>
"#;

    fn formula(action: &Action) -> String {
        let label = Self::label(action);
        match *action {
            Action::CallAppend(c, len) => {
                format!("CallAppend(c{0}) /\\ call'[c{0}].len = {len}", c + 1)
            }
            Action::AppendRecord(c)
            | Action::RefuseAppend(c)
            | Action::Acknowledge(c)
            | Action::Leave(c)
            | Action::FailCall(c) => format!("{label}(c{})", c + 1),
            Action::Crash(_) => "CrashLeaving".into(),
            Action::OpenLog(packing) => {
                format!("OpenLog /\\ packing' = \"{}\"", <&str>::from(packing))
            }
            Action::RecordEpoch(true) => "RecordEpoch /\\ Newest(superDev').redo = end".into(),
            Action::RecordEpoch(false) => {
                "RecordEpoch /\\ Newest(superDev').redo = Newest(superDev).redo".into()
            }
            _ => label.into(),
        }
    }
}
