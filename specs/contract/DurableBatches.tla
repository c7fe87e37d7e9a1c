--------------------------- MODULE DurableBatches ---------------------------
(***************************************************************************)
(* DurableMap with writes of several keys: the contract of a store that    *)
(* has atomic write batches.  What is said there holds here, too, and:     *)
(*                                                                         *)
(*  - A write changes any number of keys.  It takes effect in one step     *)
(*    (Write), and a crash keeps all of it or nothing (Crash).             *)
(*  - A write that has been called, but that nobody has seen yet, may take *)
(*    effect in the crash itself (Crash).  Its log record may be durable   *)
(*    before readers are shown what it does.                               *)
(*                                                                         *)
(* It is a module of its own so that the models of DurableMap stay small.  *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Clients,    \* the clients
    Keys,       \* the keys
    Values,     \* the values that are stored
    Absent,     \* the value of a key that does not exist; deleting writes it
    Pending     \* the result of a read that has not happened yet

ASSUME Absent \notin Values /\ Pending \notin Values /\ Absent # Pending

Contents == Values \cup {Absent}

VARIABLES
    base,       \* the part of the map that no crash can undo
    tail,       \* the writes after it, in order: a crash may cut a suffix off
    call,       \* what each client is waiting for
    phase       \* "up"; "cut" or "killed": how it ended; "opening": recovery is under way

vars == <<base, tail, call, phase>>

-----------------------------------------------------------------------------
(* What a write does: the new contents of some keys.                       *)
Changes == UNION {[some -> Contents] : some \in SUBSET Keys \ {{}}}

NotRead == [k \in Keys |-> Pending]

Idle == [op |-> "none"]

(* How the last call ended, if it did not return (Refuse, Doubt).          *)
Refused == [op |-> "refused"]
Unknown == [op |-> "unknown"]

(* The client waits for no answer, and may call.                           *)
Waits(c) == call[c] \notin {Idle, Refused, Unknown}

GetCall(k)         == [op |-> "get", key |-> k, got |-> Pending]
WriteCall(changes) == [op |-> "write", changes |-> changes, done |-> FALSE]
ScanCall           == [op |-> "scan", got |-> NotRead]

(* A write in the tail.  `by` is the client still waiting for it.          *)
Nobody == "nobody"

-----------------------------------------------------------------------------
RECURSIVE Apply(_, _)
(* The map after the writes of a sequence.                                 *)
Apply(map, writes) ==
    IF writes = <<>> THEN map
    ELSE LET changes == Head(writes).changes
         IN Apply([k \in Keys |-> IF k \in DOMAIN changes THEN changes[k] ELSE map[k]],
                  Tail(writes))

Current == Apply(base, tail)

First(writes, n) == SubSeq(writes, 1, n)
After(writes, n) == SubSeq(writes, n + 1, Len(writes))

Init ==
    /\ base = [k \in Keys |-> Absent]
    /\ tail = <<>>
    /\ call = [c \in Clients |-> Idle]
    /\ phase = "up"

(* A client makes a call.                                                  *)
Call(c) ==
    /\ phase = "up"
    /\ ~Waits(c)
    /\ LET requests == {GetCall(k) : k \in Keys}
                           \cup {WriteCall(changes) : changes \in Changes}
                           \cup {ScanCall}
           before   == call
       IN call' \in {[before EXCEPT ![c] = request] : request \in requests}
    /\ UNCHANGED <<base, tail, phase>>

(* The instant at which a `get` takes effect.                              *)
Read(c) ==
    /\ phase = "up"
    /\ call[c].op = "get"
    /\ call[c].got = Pending
    /\ call' = [call EXCEPT ![c].got = Current[call[c].key]]
    /\ UNCHANGED <<base, tail, phase>>

(* A scan reads some more keys, all at the same instant.                   *)
ReadSome(c) ==
    /\ phase = "up"
    /\ call[c].op = "scan"
    /\ \E seen \in SUBSET {k \in Keys : call[c].got[k] = Pending} :
          /\ seen # {}
          /\ call' = [call EXCEPT ![c].got =
                         [k \in Keys |-> IF k \in seen THEN Current[k] ELSE @[k]]]
    /\ UNCHANGED <<base, tail, phase>>

(* A write that has been called and has had no effect so far.              *)
NotDone(c) == call[c].op = "write" /\ ~call[c].done

EntryOf(c) == [by |-> c, changes |-> call[c].changes]

(* The instant at which a write takes effect.  Some of the writes up to it *)
(* may become durable in the same step.                                    *)
Write(c) ==
    /\ phase = "up"
    /\ NotDone(c)
    /\ call' = [call EXCEPT ![c].done = TRUE]
    /\ LET all == Append(tail, EntryOf(c))
       IN \E n \in 0..Len(all) :
             /\ base' = Apply(base, First(all, n))
             /\ tail' = After(all, n)
    /\ UNCHANGED phase

(* The oldest writes become durable, any number of them.                   *)
Harden ==
    /\ UNCHANGED <<call, phase>>
    /\ LET all == tail
       IN \E n \in 1..Len(all) :
             /\ base' = Apply(base, First(all, n))
             /\ tail' = After(all, n)

InTail(c) == \E i \in 1..Len(tail) : tail[i].by = c

Answered(c) ==
    CASE call[c].op = "get"   -> call[c].got # Pending
      [] call[c].op = "write" -> call[c].done /\ ~InTail(c)
      [] call[c].op = "scan"  -> \A k \in Keys : call[c].got[k] # Pending
      [] OTHER                -> FALSE

(* A client gets its answer.  For a write that is the acknowledgement.     *)
Return(c) ==
    /\ phase = "up"
    /\ Answered(c)
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<base, tail, phase>>

(* A client is told that nothing has happened, and nothing will.           *)
Refuse(c) ==
    /\ phase = "up"
    /\ Waits(c)
    /\ call[c].op = "write" => NotDone(c)
    /\ call' = [call EXCEPT ![c] = Refused]
    /\ UNCHANGED <<base, tail, phase>>

(* A client is told that nobody knows whether its write has happened.      *)
Doubt(c) ==
    /\ phase = "up"
    /\ call[c].op = "write"
    /\ call' = [call EXCEPT ![c] = Unknown]
    /\ LET all == tail
       IN tail' = [i \in 1..Len(all) |->
                      IF all[i].by = c THEN [all[i] EXCEPT !.by = Nobody] ELSE all[i]]
    /\ UNCHANGED <<base, phase>>

(* Some of the writes under way, in any order, each once.                  *)
UnderWay ==
    LET these == {c \in Clients : NotDone(c)}
        orders == UNION {[1..n -> these] : n \in 0..Cardinality(these)}
        once   == {order \in orders :
                     \A i, j \in DOMAIN order : order[i] = order[j] => i = j}
    IN {[i \in DOMAIN order |-> EntryOf(order[i])] : order \in once}

(* Memory is lost.  The oldest writes of the tail survive, any number; if  *)
(* all of them do, so may writes under way.                                *)
CutTail ==
    /\ call' = [c \in Clients |-> Idle]
    /\ tail' = <<>>
    /\ LET before == base
           all    == tail
       IN base' \in UNION {{Apply(before, First(all \o more, n)) : n \in 0..Len(all \o more)} :
                             more \in UnderWay}

(* The power fails.                                                        *)
Crash ==
    /\ phase' = "cut"
    /\ CutTail

(* The process dies, and the device keeps what it was given.  For the map  *)
(* that is the same, because some of the tail may not have left memory.    *)
Kill ==
    /\ phase' = "killed"
    /\ CutTail

(* Recovery begins ...                                                     *)
Reopen ==
    /\ phase \in {"cut", "killed"}
    /\ phase' = "opening"
    /\ UNCHANGED <<base, tail, call>>

(* ... and ends.  A protocol whose recovery has no beginning of its own,   *)
(* because it begins in the step that ends the life before, or is a single *)
(* step, leaves Reopen out: what its state then shows is how it ended.     *)
Recover ==
    /\ phase # "up"
    /\ phase' = "up"
    /\ UNCHANGED <<base, tail, call>>

Next ==
    \/ \E c \in Clients :
          Call(c) \/ Read(c) \/ ReadSome(c) \/ Write(c)
          \/ Return(c) \/ Refuse(c) \/ Doubt(c)
    \/ Harden
    \/ Crash \/ Kill
    \/ Reopen \/ Recover

Spec == Init /\ [][Next]_vars
=============================================================================
