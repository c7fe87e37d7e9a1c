//! Written by `treering check`: a behaviour of DurableMap that violates DownInv.

use treering_specs::check::story::replay;

const CONFIG: &str = r##"\* TLC must find a counterexample to DownInv
\* A client is let in while the store is down.
SPECIFICATION Spec
CONSTANTS
    Clients = {c1, c2}
    Keys = {k1}
    Values = {v1}
    Absent = Absent
    Pending = Pending
    MaxTail = 2
    Bug = "call-when-down"
    Call <- CallWhenDown
CONSTRAINT TailLimit
INVARIANTS TypeInv OneWriteInv WaitingInv DownInv
CHECK_DEADLOCK FALSE
"##;

/// Each step is an action and the state that it leads to.
const STEPS: [(&str, &str); 3] = [
    (
        "",
        r##"/\ base = (k1 :> Absent)
/\ call = (c1 :> [op |-> "none"] @@ c2 :> [op |-> "none"])
/\ phase = "up"
/\ tail = <<>>
"##,
    ),
    (
        "Crash",
        r##"/\ base = (k1 :> Absent)
/\ call = (c1 :> [op |-> "none"] @@ c2 :> [op |-> "none"])
/\ phase = "cut"
/\ tail = <<>>
"##,
    ),
    (
        "Call",
        r##"/\ base = (k1 :> Absent)
/\ call = (c1 :> [got |-> (k1 :> Pending), op |-> "scan"] @@ c2 :> [op |-> "none"])
/\ phase = "cut"
/\ tail = <<>>
"##,
    ),
];

#[test]
fn durablemap_call_when_down() {
    replay("DurableMap", CONFIG, &STEPS, "DownInv").unwrap();
}
