//! The steps of [`LeafLayout`] in TLA+.

use super::episode::CLIENTS;
use super::judge::Judge;
use super::setup::Leaves;
use crate::conformance::behaviour::{Constants, InTla, named, numbers};
use crate::conformance::led::Led;
use crate::mirror::wide::leaf_layout::{Action, LeafLayout, State};
use crate::{Mirror, Value};

impl Judge<'_> {
    /// The constants of the spec in this episode, and those of what the engine's pages take.
    pub(super) fn constants_of_spec(&self) -> Constants {
        let generals: &[&'static str] = match self.setup.leaves.is_adaptive() {
            false => &["general"],
            true => &["general", "other"],
        };
        let asked = self.state.asked();
        let length = |n: u64| Value::Int(self.mirror.length_of(n) as i64);
        let lengths = (1..=asked).map(|n| (Value::Int(n as i64), length(n)));
        let keys = self.setup.keys.iter();
        vec![
            ("Clients", named('c', CLIENTS.into())),
            ("Keys", Value::set(keys.map(|key| Value::int(*key)))),
            ("Values", numbers(asked as usize + 1)),
            ("Pages", numbers(LeafLayout::MOST_PAGES)),
            ("Room", Value::int(0)),
            ("KeySize", Value::int(0)),
            ("Fence", Value::int(0)),
            ("Few", Value::int(0)),
            ("Semi", Value::Bool(self.setup.leaves == Leaves::Semi)),
            (
                "Generals",
                Value::set(generals.iter().map(|name| Value::str(*name))),
            ),
            ("Choices", Value::set([true, false].map(Value::Bool))),
            ("Absent", Value::model("Absent")),
            ("Pending", Value::model("Pending")),
            ("Bug", Value::str("none")),
            ("Fixed", Value::int(self.setup.pages.fixed as u32)),
            ("Lengths", Value::fun(lengths)),
        ]
    }
}

impl Led for LeafLayout {
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

impl InTla for LeafLayout {
    const REPLACED: &'static str = "    Length <- EngineLength\n    \
        RoomIn <- EngineRoomIn\n    \
        RecordBytes <- EngineRecordBytes\n    \
        Places <- EnginePlaces\n    \
        RoomOfSemi <- EngineRoomOfSemi\n    \
        BesideInSemi <- EngineBesideInSemi\n    \
        EndOfPartition <- EngineEndOfPartition\n    \
        Separator <- EngineSeparator\n    \
        Near <- EngineNear\n    \
        IsNearlyEmpty <- EngineIsNearlyEmpty\n";

    const OPERATORS: &'static str = r#"
(* What the engine's pages of 4096 bytes take: see layout/pages.rs. A key is `Fixed` bytes that *)
(* all keys have, and then its number in four bytes. A fence is as long as it must be. *)
CONSTANTS Fixed, Lengths

EngineLength(v) == IF v \in DOMAIN Lengths THEN Lengths[v] ELSE 0

(* How many of the four bytes are the same in front. *)
Same(a, b) ==
    CASE a \div 16777216 # b \div 16777216 -> 0
      [] a \div 65536 # b \div 65536       -> 1
      [] a \div 256 # b \div 256           -> 2
      [] a # b                              -> 3
      [] OTHER                              -> 4

(* Without the zeros behind. The outer fences are empty. *)
FenceLength(f) ==
    IF f = Least \/ f = Top THEN 0
    ELSE Fixed + CASE f % 256 # 0      -> 4
                   [] f % 65536 # 0    -> 3
                   [] f % 16777216 # 0 -> 2
                   [] f # 0            -> 1
                   [] OTHER            -> 0

Less(a, b) == IF a < b THEN a ELSE b

Shared(lower, upper) ==
    Less(Fixed + Same(lower, upper), Less(FenceLength(lower), FenceLength(upper)))

PageRoom == 4096 - 48

IndexBytes(records) == IF records > 32 THEN 64 ELSE 0

EngineRoomIn(layout, lower, upper, records) ==
    PageRoom - FenceLength(lower) - FenceLength(upper)
    - IF layout = "general" THEN IndexBytes(records) ELSE 0

\* Without the fixed part in the lower fence, there is no place.
EngineRoomOfSemi(lower, upper) ==
    IF FenceLength(lower) < Fixed THEN 0 - 1
    ELSE PageRoom - FenceLength(lower) - FenceLength(upper) - 2 * (upper - lower)

EngineBesideInSemi == 2

EngineRecordBytes(layout, lower, upper) ==
    (IF layout = "other" THEN 7 ELSE 10) + Fixed + 4 - Shared(lower, upper)

RECURSIVE MostPlaces(_, _, _)
MostPlaces(n, room, len) ==
    IF (n + 7) \div 8 + n * len <= room THEN n ELSE MostPlaces(n - 1, room, len)

PlacesBeside(lower, len, tail) ==
    LET room == PageRoom - FenceLength(lower) - tail
    IN IF FenceLength(lower) < Fixed THEN 0
       ELSE Less(65535, MostPlaces((8 * room) \div (8 * len + 1), room, len))

EnginePlaces(lower, len) == PlacesBeside(lower, len, Fixed + 4)

EngineEndOfPartition(lower, len) == lower + PlacesBeside(lower, len, Fixed + 5)

EngineSeparator(left, right) ==
    LET unit == CASE Same(left, right) = 0 -> 16777216
                  [] Same(left, right) = 1 -> 65536
                  [] Same(left, right) = 2 -> 256
                  [] OTHER                 -> 1
    IN (right \div unit) * unit

EngineNear(keys, n) ==
    LET count  == Cardinality(keys)
        around == IF count \div 16 < 2 THEN 2 ELSE count \div 16
        first  == IF n > around \div 2 THEN n - (around \div 2) ELSE 0
        last   == Less(first + around, count) - 1
        same   == Same(Nth(keys, first), Nth(keys, last))
        others == {i \in (first + 1)..last : Same(Nth(keys, i), Nth(keys, first)) = same}
    IN IF others = {} THEN n ELSE Smallest(others)

EngineIsNearlyEmpty(page) ==
    LET records == Cardinality(KeysIn(page.map))
    IN FenceLength(page.lower) + FenceLength(page.upper) + IndexBytes(records)
       + records * (14 + page.len) <= PageRoom - 3072

(* A crash, which leaves what the next state has. *)
CrashLeaving ==
    /\ \E n \in durable..Len(log) : log' = SubSeq(log, 1, n) /\ durable' = n
    /\ \A p \in Pages : Newest(leafDev'[p]) \in Survivors(leafDev[p])
    /\ leafDev' = AllDurably(NewestOf(leafDev'))
    /\ leaf' = NewestOf(leafDev')
    /\ phase' = "cut"
    /\ ForgetMemory

(* A checkpoint that gives up no more of the log than the spec's: the engine's redo start is *)
(* where its checkpoint began. *)
CheckpointTo(n) ==
    /\ phase = "up"
    /\ redoStart <= n /\ n <= Swept
    /\ redoStart' = n
    /\ DeviceFlush
    /\ UNCHANGED <<call, asked, log, durable, leaf, allows, recoveryVars>>
"#;

    fn short(constants: &Constants) -> Vec<(Value, &'static str)> {
        let keys = constants.iter().find(|(name, _)| *name == "Keys");
        let Some((_, Value::Set(keys))) = keys else {
            return Vec::new();
        };
        let nothing = keys.iter().map(|key| (key.clone(), Value::model("Absent")));
        vec![(Value::fun(nothing), "Nothing")]
    }

    fn formula(action: &Action) -> String {
        let label = Self::label(action);
        match *action {
            Action::CallWrite(c, _)
            | Action::ChangeLeaf(c)
            | Action::LayOut(c)
            | Action::Acknowledge(c)
            | Action::CallGet(c, _)
            | Action::ReadLeaf(c)
            | Action::AnswerGet(c) => format!("{label}(c{})", c + 1),
            Action::Divide(c, layout) => format!(
                "Divide(c{}) /\\ log'[Len(log')].layout = \"{}\"",
                c + 1,
                <&str>::from(layout)
            ),
            Action::Adapt(p, layout) => format!(
                "Adapt({p}) /\\ leaf'[{p}].layout = \"{}\"",
                <&str>::from(layout)
            ),
            Action::Prepare(p) | Action::Merge(p) | Action::WritePage(p) => {
                format!("{label}({p})")
            }
            Action::Checkpoint => "\\E n \\in redoStart..Swept : CheckpointTo(n)".into(),
            Action::Crash(..) => "CrashLeaving".into(),
            Action::Restart(n, _) => format!("Restart /\\ durable' = {n}"),
            Action::CommitLog | Action::RedoRecord | Action::FinishRedo => label.into(),
        }
    }
}
