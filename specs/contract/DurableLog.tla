----------------------------- MODULE DurableLog -----------------------------
(***************************************************************************)
(* The contract of a redo log alone, without the pages that it is for:     *)
(* records in an order, which survive crashes.                             *)
(*                                                                         *)
(*  - A record that was appended and acknowledged is read by every         *)
(*    recovery from then on, until it is given up (Forget).                *)
(*  - Records have an order, and a crash keeps a prefix of it: what is     *)
(*    lost is a suffix of which nothing was acknowledged (Crash).  Nothing *)
(*    is read that was not appended, nothing twice, nothing that was lost  *)
(*    before.                                                              *)
(*  - What a dead process has written may be read and still be lost, or    *)
(*    not be read and still be there, until a recovery has settled it      *)
(*    (Kill, Read, Settle).  From then on, neither happens.                *)
(*  - Recovery may be cut off and begin again.  It reads the same, or,     *)
(*    after a Kill, more or less of what was not acknowledged.             *)
(*  - A call ends as in DurableMap: by Return, Refuse or Doubt.            *)
(*                                                                         *)
(* A protocol refines this module by saying what these variables are in    *)
(* its state.                                                              *)
(***************************************************************************)
EXTENDS Naturals, Sequences

CONSTANTS
    Clients,    \* the clients
    Records     \* what may be appended

VARIABLES
    kept,       \* the records that no crash can undo, in order
    tail,       \* those after them: a crash may cut a suffix off
    given,      \* so many of `kept` have been given up: recovery need not read them
    call,       \* what each client is waiting for
    phase,      \* "up"; "cut" or "killed": how it ended; "opening": recovery is under way
    seen        \* the records that the recovery under way has read

vars == <<kept, tail, given, call, phase, seen>>

-----------------------------------------------------------------------------
Idle    == [op |-> "none"]
Refused == [op |-> "refused"]
Unknown == [op |-> "unknown"]

Waits(c) == call[c] \notin {Idle, Refused, Unknown}

AppendCall(r) == [op |-> "append", record |-> r, done |-> FALSE]

(* A record in the tail.  `by` is the client still waiting for it.         *)
Nobody == "nobody"

TypeInv ==
    /\ kept \in Seq(Records)
    /\ tail \in Seq([by : Clients \cup {Nobody}, record : Records])
    /\ given \in 0..Len(kept)
    /\ call \in [Clients -> {Idle, Refused, Unknown}
                            \cup [op : {"append"}, record : Records, done : BOOLEAN]]
    /\ phase \in {"up", "cut", "killed", "opening"}
    /\ seen \in Seq(Records)

Init ==
    /\ kept = <<>> /\ tail = <<>> /\ given = 0
    /\ call = [c \in Clients |-> Idle]
    /\ phase = "up" /\ seen = <<>>

-----------------------------------------------------------------------------
First(entries, n) == SubSeq(entries, 1, n)
After(entries, n) == SubSeq(entries, n + 1, Len(entries))
RecordsOf(entries) == [i \in 1..Len(entries) |-> entries[i].record]

Call(c) ==
    /\ phase = "up"
    /\ ~Waits(c)
    /\ \E r \in Records : call' = [call EXCEPT ![c] = AppendCall(r)]
    /\ UNCHANGED <<kept, tail, given, phase, seen>>

(* The record gets its place in the order.                                 *)
Add(c) ==
    /\ phase = "up"
    /\ call[c].op = "append"
    /\ ~call[c].done
    /\ tail' = Append(tail, [by |-> c, record |-> call[c].record])
    /\ call' = [call EXCEPT ![c].done = TRUE]
    /\ UNCHANGED <<kept, given, phase, seen>>

(* The oldest records of the tail become durable, any number of them.      *)
Harden ==
    /\ \E n \in 1..Len(tail) :
          /\ kept' = kept \o RecordsOf(First(tail, n))
          /\ tail' = After(tail, n)
    /\ UNCHANGED <<given, call, phase, seen>>

InTail(c) == \E i \in 1..Len(tail) : tail[i].by = c

(* The acknowledgement.                                                    *)
Return(c) ==
    /\ phase = "up"
    /\ call[c].op = "append"
    /\ call[c].done /\ ~InTail(c)
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<kept, tail, given, phase, seen>>

(* A client is told that nothing has happened, and nothing will ...        *)
Refuse(c) ==
    /\ phase = "up"
    /\ call[c].op = "append"
    /\ ~call[c].done
    /\ call' = [call EXCEPT ![c] = Refused]
    /\ UNCHANGED <<kept, tail, given, phase, seen>>

(* ... or that nobody knows whether its record will survive.               *)
Doubt(c) ==
    /\ phase = "up"
    /\ call[c].op = "append"
    /\ call' = [call EXCEPT ![c] = Unknown]
    /\ tail' = [i \in 1..Len(tail) |->
                   IF tail[i].by = c THEN [tail[i] EXCEPT !.by = Nobody] ELSE tail[i]]
    /\ UNCHANGED <<kept, given, phase, seen>>

(* Records that nobody needs any more are given up.                        *)
Forget ==
    /\ \E n \in (given + 1)..Len(kept) : given' = n
    /\ UNCHANGED <<kept, tail, call, phase, seen>>

ForgetCalls == call' = [c \in Clients |-> Idle]

(* The power fails.  Of the tail the oldest n records survive.  What was   *)
(* given up may be needed again.                                           *)
Crash ==
    /\ phase' = "cut"
    /\ \E n \in 0..Len(tail) : kept' = kept \o RecordsOf(First(tail, n))
    /\ tail' = <<>>
    /\ \E n \in 0..given : given' = n
    /\ ForgetCalls
    /\ seen' = <<>>

(* The process dies, and the device keeps what it was given, but a crash   *)
(* may still take it.                                                      *)
Kill ==
    /\ phase' = "killed"
    /\ \E n \in 0..Len(tail) :
          tail' = [i \in 1..n |-> [tail[i] EXCEPT !.by = Nobody]]
    /\ ForgetCalls
    /\ seen' = <<>>
    /\ UNCHANGED <<kept, given>>

(* Recovery reads the records in order, without some that are given up.    *)
(* Of the tail it may not read all.                                        *)
Read ==
    /\ phase \in {"cut", "killed"}
    /\ phase' = "opening"
    /\ \E n \in 0..given, m \in 0..Len(tail) :
          seen' = After(kept \o RecordsOf(First(tail, m)), n)
    /\ UNCHANGED <<kept, tail, given, call>>

(* What it has read becomes durable, and what it has not read is gone.     *)
Settle ==
    /\ phase = "opening"
    /\ \E n \in 0..Len(tail) : kept' = kept \o RecordsOf(First(tail, n))
    /\ \E n \in 0..given : seen = After(kept', n)
    /\ tail' = <<>>
    /\ UNCHANGED <<given, call, phase, seen>>

(* It is complete once that is settled.                                    *)
Recover ==
    /\ phase = "opening"
    /\ tail = <<>>
    /\ phase' = "up"
    /\ seen' = <<>>
    /\ UNCHANGED <<kept, tail, given, call>>

Next ==
    \/ \E c \in Clients : Call(c) \/ Add(c) \/ Return(c) \/ Refuse(c) \/ Doubt(c)
    \/ Harden \/ Forget
    \/ Crash \/ Kill
    \/ Read \/ Settle \/ Recover

Spec == Init /\ [][Next]_vars
=============================================================================
