---------------------------- MODULE MCDurableMap ----------------------------
(***************************************************************************)
(* Bounds for model checking: the tail is cut at MaxTail writes.           *)
(*                                                                         *)
(* The contract itself has no switch for bugs.  Each bug below replaces an *)
(* action (`Call <- CallWhenDown` in its .cfg).  Bug only names it, for    *)
(* the mirror.                                                             *)
(***************************************************************************)
EXTENDS DurableMap

CONSTANTS
    MaxTail,    \* the maximum number of writes that a crash may undo
    Bug         \* "none", or the bug seeded by the configuration

TailLimit == Len(tail) <= MaxTail

(* A client may call while the store is down.                              *)
CallWhenDown(c) ==
    /\ call[c] = Idle
    /\ call' = [call EXCEPT ![c] = ScanCall]
    /\ UNCHANGED <<base, tail, up>>

(* A failed client's write stays attributed to the client, so its next     *)
(* write is mistaken for the old one.                                      *)
FailKeepsName(c) ==
    /\ up
    /\ call[c] # Idle
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<base, tail, up>>

(* A write takes effect twice, as with a retry that does not check.        *)
WriteTwice(c) ==
    /\ up
    /\ call[c].op = "write"
    /\ ~call[c].done
    /\ LET entry == [by |-> c, key |-> call[c].key, value |-> call[c].value]
       IN tail' = tail \o <<entry, entry>>
    /\ call' = [call EXCEPT ![c].done = TRUE]
    /\ UNCHANGED <<base, up>>
=============================================================================
