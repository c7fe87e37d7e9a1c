----------------------------- MODULE DurableMap -----------------------------
(***************************************************************************)
(* The contract of every store in this project: a map from keys to values  *)
(* that several clients use at once and that survives crashes.             *)
(*                                                                         *)
(*  - `get`, `put` and `delete` are linearizable: each takes effect in one *)
(*    step between its call and its return (Read, Write).                  *)
(*  - A scan is no snapshot.  It returns, for each key, a value that was   *)
(*    current at some instant within the scan (ReadSome).                  *)
(*  - Writes have an order, and a crash keeps a prefix of it: what is lost *)
(*    is a suffix of which nothing was ever acknowledged (Crash).  Nothing *)
(*    in the middle is missing, and nothing comes back.                    *)
(*  - The power may fail (Crash), or the process die and the device live   *)
(*    on (Kill), also during recovery.  The state shows which it was.      *)
(*  - A call ends in one of three ways, and the state shows which.         *)
(*      Return  the answer; of a write, the acknowledgement: every crash   *)
(*              keeps it                                                   *)
(*      Refuse  an error, and nothing has happened: a refused write never  *)
(*              shows                                                      *)
(*      Doubt   an error, and nobody knows: the write shows once and for   *)
(*              all, until a crash that may take it back, or it never      *)
(*              shows                                                      *)
(*    A write that is not durable yet can end in doubt only, whatever else *)
(*    has failed meanwhile.  So a protocol that acknowledges too early     *)
(*    takes a step that is none of these.                                  *)
(*                                                                         *)
(* A protocol refines this module by saying what `base`, `tail`, `call`    *)
(* and `phase` are in its state.   What the contract leaves open on        *)
(* purpose: a `get` may return a value that a crash then takes back, as    *)
(* long as its `put` was not acknowledged (see FINDINGS.md, WalRecovery).  *)
(***************************************************************************)
EXTENDS Naturals, Sequences

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
(* Calls.  One record for all kinds keeps refinement mappings short: a get *)
(* fills `got` at its key, a scan at every key, a write sets `done`.       *)

NotRead == [k \in Keys |-> Pending]

Idle == [op |-> "none"]

(* How the last call ended, if it did not return (Refuse, Doubt).          *)
Refused == [op |-> "refused"]
Unknown == [op |-> "unknown"]

(* The client waits for no answer, and may call.                           *)
Waits(c) == call[c] \notin {Idle, Refused, Unknown}

GetCall(k)      == [op |-> "get", key |-> k, got |-> Pending]
WriteCall(k, v) == [op |-> "write", key |-> k, value |-> v, done |-> FALSE]
ScanCall        == [op |-> "scan", got |-> NotRead]

AllCalls ==
    {Idle, Refused, Unknown}
    \cup [op : {"get"}, key : Keys, got : Contents \cup {Pending}]
    \cup [op : {"write"}, key : Keys, value : Contents, done : BOOLEAN]
    \cup [op : {"scan"}, got : [Keys -> Contents \cup {Pending}]]

(* A write in the tail.  `by` is the client still waiting for it.          *)
Nobody == "nobody"

Entry == [by : Clients \cup {Nobody}, key : Keys, value : Contents]

TypeInv ==
    /\ base \in [Keys -> Contents]
    /\ tail \in Seq(Entry)
    /\ call \in [Clients -> AllCalls]
    /\ phase \in {"up", "cut", "killed", "opening"}

-----------------------------------------------------------------------------
RECURSIVE Apply(_, _)
(* The map after the writes of a sequence.                                 *)
Apply(map, writes) ==
    IF writes = <<>> THEN map
    ELSE Apply([map EXCEPT ![Head(writes).key] = Head(writes).value], Tail(writes))

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
    /\ \E request \in {GetCall(k) : k \in Keys}
                 \cup {WriteCall(k, v) : k \in Keys, v \in Contents}
                 \cup {ScanCall} :
          call' = [call EXCEPT ![c] = request]
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

(* The instant at which a `put` or `delete` takes effect.  Some of the     *)
(* writes up to it may become durable in the same step.                    *)
Write(c) ==
    /\ phase = "up"
    /\ call[c].op = "write"
    /\ ~call[c].done
    /\ LET all == Append(tail, [by |-> c, key |-> call[c].key, value |-> call[c].value])
       IN \E n \in 0..Len(all) :
             /\ base' = Apply(base, First(all, n))
             /\ tail' = After(all, n)
    /\ call' = [call EXCEPT ![c].done = TRUE]
    /\ UNCHANGED phase

(* The oldest writes become durable, any number of them.                   *)
Harden ==
    /\ \E n \in 1..Len(tail) :
          /\ base' = Apply(base, First(tail, n))
          /\ tail' = After(tail, n)
    /\ UNCHANGED <<call, phase>>

InTail(c) == \E i \in 1..Len(tail) : tail[i].by = c

Answered(c) ==
    CASE call[c].op = "get"   -> call[c].got # Pending
      [] call[c].op = "write" -> call[c].done /\ ~InTail(c)
      [] call[c].op = "scan"  -> \A k \in Keys : call[c].got[k] # Pending
      [] OTHER                -> FALSE

(* A client gets its answer.  For a write, this is the acknowledgement.    *)
Return(c) ==
    /\ phase = "up"
    /\ Answered(c)
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<base, tail, phase>>

(* A client is told that nothing has happened, and nothing will.           *)
Refuse(c) ==
    /\ phase = "up"
    /\ Waits(c)
    /\ call[c].op = "write" => ~call[c].done
    /\ call' = [call EXCEPT ![c] = Refused]
    /\ UNCHANGED <<base, tail, phase>>

(* A client is told that nobody knows whether its write has happened.  A   *)
(* write that has not never will; one that has is like any other write,    *)
(* but nobody waits for it any more.                                       *)
Doubt(c) ==
    /\ phase = "up"
    /\ call[c].op = "write"
    /\ call' = [call EXCEPT ![c] = Unknown]
    /\ tail' = [i \in 1..Len(tail) |->
                   IF tail[i].by = c THEN [tail[i] EXCEPT !.by = Nobody] ELSE tail[i]]
    /\ UNCHANGED <<base, phase>>

(* Memory is lost.  Of the tail the oldest n writes survive.               *)
KeepOnly(n) ==
    /\ base' = Apply(base, First(tail, n))
    /\ tail' = <<>>
    /\ call' = [c \in Clients |-> Idle]

(* The power fails; the oldest writes of the tail survive, any number.     *)
Crash ==
    /\ phase' = "cut"
    /\ \E n \in 0..Len(tail) : KeepOnly(n)

(* The process dies, and the device keeps what it was given.  For the map  *)
(* that is the same, because some of the tail may not have left memory.    *)
Kill ==
    /\ phase' = "killed"
    /\ \E n \in 0..Len(tail) : KeepOnly(n)

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

-----------------------------------------------------------------------------
(* What follows from the above, repeated for the reader.                   *)

(* A client waits for at most one write.                                   *)
OneWriteInv ==
    \A i, j \in 1..Len(tail) :
        tail[i].by = tail[j].by /\ tail[i].by # Nobody => i = j

(* Only a write that has taken effect can be waiting in the tail.          *)
WaitingInv ==
    \A c \in Clients : InTail(c) => call[c].op = "write" /\ call[c].done

(* After a crash every client must call again, and no call is half done.   *)
DownInv == phase # "up" => tail = <<>> /\ \A c \in Clients : call[c] = Idle

(* An acknowledged write is durable.                                       *)
AckProp ==
    [][\A c \in Clients :
          call[c].op = "write" /\ call'[c] = Idle /\ phase' = "up" =>
              call[c].done /\ ~InTail(c)]_vars

(* A refused write has not taken effect ...                                *)
RefusedProp ==
    [][\A c \in Clients : call[c].op = "write" /\ call'[c] = Refused => ~call[c].done]_vars

(* ... and while the store is up nothing shows but the writes of clients   *)
(* that wait for them, each once.                                          *)
OnceProp ==
    [][phase' = "up" /\ Current' # Current =>
          \E c \in Clients :
              /\ call[c].op = "write" /\ ~call[c].done
              /\ call'[c] = [call[c] EXCEPT !.done = TRUE]]_vars

(* No end loses what is durable, and so nothing that was acknowledged.     *)
KeptProp ==
    [][phase' # "up" => \E n \in 0..Len(tail) : base' = Apply(base, First(tail, n))]_vars

(* A read returns what the map has at that instant, durable or not, and    *)
(* what it has returned stays.                                             *)
ReadOnce(before, after, now) == after # before => before = Pending /\ after = now

ReadProp ==
    [][\A c \in Clients :
          /\ call[c].op = "get" /\ call'[c].op = "get" =>
                ReadOnce(call[c].got, call'[c].got, Current[call[c].key])
          /\ call[c].op = "scan" /\ call'[c].op = "scan" =>
                \A k \in Keys : ReadOnce(call[c].got[k], call'[c].got[k], Current[k])]_vars

THEOREM Spec => [](TypeInv /\ OneWriteInv /\ WaitingInv /\ DownInv)
THEOREM Spec => AckProp /\ RefusedProp /\ OnceProp /\ KeptProp /\ ReadProp
=============================================================================
