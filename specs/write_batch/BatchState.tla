----------------------------- MODULE BatchState -----------------------------
(***************************************************************************)
(* What the protocol of write batches keeps in memory, in the log and on   *)
(* the device, and what the log says about batches.  The steps are in      *)
(* WriteBatch.                                                             *)
(*                                                                         *)
(*   log  | part 0 | part 1 (last) | put | put | end |                     *)
(*        '------- intent ---------'                                       *)
(*                                                                         *)
(* A part holds one change.  A record takes one unit of room.              *)
(*                                                                         *)
(* engine/src/wal/intent.rs, engine/src/store/open_batch.rs.               *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Clients,    \* the clients
    Keys,       \* 1, 2, ...: the keys; each key has its own leaf
    Values,     \* 1, 2, ...: the n-th write of all puts n, so no two are alike
    Absent,     \* the value of a key that does not exist; deleting writes it
    Pending,    \* the result of a read that has not happened yet
    Room,       \* records that fit the log
    Spare,      \* room kept free while a batch is open, besides that of two intents
    Resumes,    \* whether recovery uses an intent at the end of the log as it is
    Bug         \* the seeded bug, or "none" for the correct protocol

VARIABLES
    call,       \* what each client is waiting for, and how far it is
    asked,      \* number of writes asked for so far
    \* Batches
    gate,       \* who has closed it
    batch,      \* the batch that is being logged or made; unfinished if the gate is open
    shown,      \* changes at which readers look first
    version,    \* of `shown`: odd while there are changes
    \* The log: its records from the beginning of time; the n-th has LSN n
    log,
    durable,    \* up to here every crash keeps it
    pin,        \* LSN at which the intent of the open batch begins; 0: none
    checkpoint, \* the running one: redo will begin behind this LSN; 0: none
    redoStart,  \* redo begins behind this LSN; the log up to here is free
    \* Leaves, in memory and on the device
    leaf,
    leafDev,
    \* Crash and recovery
    epoch,      \* records are appended under it
    superEpoch, \* the one that the superblock names
    phase,      \* "up"; "down" after a crash; "completing" the batch that it cut short
    crashes,    \* number of crashes so far
    \* For the observer
    effects     \* what has taken effect, in order, and with which record

clientVars   == <<call, asked>>
batchVars    == <<gate, batch, shown, version>>
logVars      == <<log, durable, pin, checkpoint, redoStart>>
leafVars     == <<leaf, leafDev>>
recoveryVars == <<epoch, superEpoch, phase, crashes>>

vars == <<clientVars, batchVars, logVars, leafVars, recoveryVars, effects>>

Contents == Values \cup {Absent}
Lsns     == Nat

Nobody   == "nobody"
Recovery == "recovery"

Change  == [key : Keys, value : Contents]
Batches == Seq(Change)

(* No call; or the last one failed, with or without an effect.             *)
Idle    == [op |-> "none"]
Refused == [op |-> "refused"]
Unknown == [op |-> "unknown"]

Waits(c) == call[c] \notin {Idle, Refused, Unknown}

(* A get is "called"; if no change is shown for its key it has "looked" at *)
(* the version; then it has "read".  A write is "called"; it is "passing"  *)
(* the gate, or "finishing" another's batch first; once it has taken       *)
(* effect, it is "waiting" for its LSN to be durable.  A batch is          *)
(* "called"; its client has "closed" the gate; it is being written, which  *)
(* is `batch`; it is "waiting" for its end to be durable.                  *)
Calls ==
    {Idle, Refused, Unknown}
    \cup [op : {"get"}, key : Keys, at : {"called", "looked", "read"}, version : Nat,
          got : Contents \cup {Pending}]
    \cup [op : {"write"}, key : Keys, value : Contents,
          at : {"called", "finishing", "passing", "waiting"}, lsn : Lsns]
    \cup [op : {"batch"}, changes : Batches, at : {"called", "closed", "writing", "waiting"},
          lsn : Lsns]

(* The first intent is "logging", then "logged" whole, and the batch is    *)
(* bound to happen; its changes are shown, and "making" one after the      *)
(* other; if the log runs short, the intent is "renewing" and then         *)
(* "moving", until what comes before it is free; once its end is logged,   *)
(* the batch is "ended".  In recovery it begins with a new "epoch".        *)
NoBatch == [at |-> "none"]

OpenBatches ==
    [at : {"epoch", "logging", "logged", "making", "renewing", "moving", "ended"},
     changes : Batches,
     made : Nat,        \* changes that have been made
     parts : Nat,       \* parts of the newest intent in the log
     begin : Lsns]      \* LSN of the first of them

(* Fields that a kind of record does not have are left at their defaults.  *)
Records == [kind : {"put", "part", "end"}, epoch : Nat, change : Change, number : Nat,
            last : BOOLEAN]

Leaf == [value : Contents, lsn : Lsns]

(* A put takes effect with its record.  A batch is bound to happen with    *)
(* the last part of its first intent.                                      *)
Effects == [lsn : Lsns, changes : Batches]

TypeInv ==
    /\ call \in [Clients -> Calls]
    /\ asked \in Nat
    /\ gate \in Clients \cup {Nobody, Recovery}
    /\ batch \in {NoBatch} \cup OpenBatches
    /\ shown \in Batches /\ version \in Nat
    /\ log \in Seq(Records)
    /\ redoStart <= durable /\ durable <= Len(log)
    /\ pin \in Lsns /\ checkpoint \in Lsns
    /\ leaf \in [Keys -> Leaf] /\ leafDev \in [Keys -> Leaf]
    /\ epoch \in Nat /\ superEpoch \in Nat
    /\ phase \in {"up", "down", "completing"}
    /\ crashes \in Nat
    /\ effects \in Seq(Effects)

EmptyMap    == [k \in Keys |-> Absent]
EmptyLeaves == [k \in Keys |-> [value |-> Absent, lsn |-> 0]]

Init ==
    /\ call = [c \in Clients |-> Idle] /\ asked = 0
    /\ gate = Nobody /\ batch = NoBatch /\ shown = <<>> /\ version = 0
    /\ log = <<>> /\ durable = 0 /\ pin = 0 /\ checkpoint = 0 /\ redoStart = 0
    /\ leaf = EmptyLeaves /\ leafDev = EmptyLeaves
    /\ epoch = 1 /\ superEpoch = 1 /\ phase = "up" /\ crashes = 0
    /\ effects = <<>>

-----------------------------------------------------------------------------
(* Records.                                                                *)

NoChange == [key |-> 1, value |-> Absent]

Put(change) ==
    [kind |-> "put", epoch |-> epoch, change |-> change, number |-> 0, last |-> FALSE]

Part(number, last, change) ==
    [kind |-> "part", epoch |-> epoch, change |-> change, number |-> number, last |-> last]

End == [kind |-> "end", epoch |-> epoch, change |-> NoChange, number |-> 0, last |-> FALSE]

(* Room that is left in the log.                                           *)
Left == Room - (Len(log) - redoStart)

-----------------------------------------------------------------------------
(* What the log says.                                                      *)

RECURSIVE After(_, _)
(* The map after some changes.                                             *)
After(map, changes) ==
    IF changes = <<>> THEN map
    ELSE After([map EXCEPT ![Head(changes).key] = Head(changes).value], Tail(changes))

RECURSIVE AfterAll(_, _)
AfterAll(map, some) ==
    IF some = <<>> THEN map ELSE AfterAll(After(map, Head(some).changes), Tail(some))

EffectsUpTo(n) == LET IsBefore(effect) == effect.lsn <= n IN SelectSeq(effects, IsBefore)

(* The map after the first n records, as it should be.                     *)
MapAfter(n) == AfterAll(EmptyMap, EffectsUpTo(n))

(* The parts of the intent that is being read, how many these are, and the *)
(* changes of the batch that has a complete intent, but no end.            *)
NoIntent == [begun |-> <<>>, parts |-> 0, pending |-> <<>>]

(* One more record.  Without its first parts, because a crash cut them     *)
(* off, an intent never happens.  Intents::take.                           *)
Take(intents, record) ==
    CASE record.kind = "put" -> intents
      [] record.kind = "end" ->
           IF Bug = "batch-never-ends" THEN intents ELSE [intents EXCEPT !.pending = <<>>]
      [] record.kind = "part" /\ record.number # 0 /\ record.number # intents.parts ->
           [intents EXCEPT !.begun = <<>>, !.parts = 0]
      [] OTHER ->
           LET before == IF record.number = 0 THEN <<>> ELSE intents.begun
               all    == Append(before, record.change)
           IN [begun   |-> IF record.last THEN <<>> ELSE all,
               parts   |-> IF record.last THEN 0 ELSE record.number + 1,
               pending |-> IF record.last \/ Bug = "batch-happens-incomplete"
                           THEN all ELSE intents.pending]

RECURSIVE Follow(_, _, _)
(* The batches of the records from n to m.                                 *)
Follow(intents, n, m) ==
    IF n > m THEN intents ELSE Follow(Take(intents, log[n]), n + 1, m)

RECURSIVE Redone(_, _, _)
(* The leaves after redoing the records from n to m that they lack.        *)
(* engine/src/store/recovery.rs, Redo::take.                               *)
Redone(leaves, n, m) ==
    IF n > m THEN leaves
    ELSE LET k == log[n].change.key
         IN Redone(IF log[n].kind = "put" /\ leaves[k].lsn < n
                   THEN [leaves EXCEPT ![k] = [value |-> log[n].change.value, lsn |-> n]]
                   ELSE leaves,
                   n + 1, m)

(* The batch that recovery has to complete, if the log ends at m.          *)
(* Intents::into_pending.                                                  *)
PendingAt(m) ==
    IF Bug = "recovery-forgets-batch" THEN <<>>
    ELSE Follow(NoIntent, redoStart + 1, m).pending

(* What recovery makes of leaves on the device and a log that ends at m.   *)
Recovered(m) ==
    LET leaves == Redone(leafDev, redoStart + 1, m)
    IN After([k \in Keys |-> leaves[k].value], PendingAt(m))
=============================================================================
