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
    /\ ~Waits(c)
    /\ call' = [call EXCEPT ![c] = ScanCall]
    /\ UNCHANGED <<base, tail, phase>>

(* A write is acknowledged as soon as it has taken effect.                 *)
ReturnEarly(c) ==
    /\ phase = "up"
    /\ Answered(c) \/ (call[c].op = "write" /\ call[c].done)
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<base, tail, phase>>

(* A get misses the writes that are not durable yet.                       *)
ReadDurable(c) ==
    /\ phase = "up"
    /\ call[c].op = "get"
    /\ call[c].got = Pending
    /\ call' = [call EXCEPT ![c].got = base[call[c].key]]
    /\ UNCHANGED <<base, tail, phase>>

(* A scan does.                                                            *)
ReadSomeDurable(c) ==
    /\ phase = "up"
    /\ call[c].op = "scan"
    /\ \E seen \in SUBSET {k \in Keys : call[c].got[k] = Pending} :
          /\ seen # {}
          /\ call' = [call EXCEPT ![c].got =
                         [k \in Keys |-> IF k \in seen THEN base[k] ELSE @[k]]]
    /\ UNCHANGED <<base, tail, phase>>

(* A write that has taken effect is refused.                               *)
RefuseDone(c) ==
    /\ phase = "up"
    /\ Waits(c)
    /\ call' = [call EXCEPT ![c] = Refused]
    /\ tail' = [i \in 1..Len(tail) |->
                   IF tail[i].by = c THEN [tail[i] EXCEPT !.by = Nobody] ELSE tail[i]]
    /\ UNCHANGED <<base, phase>>

(* A write in doubt stays attributed to its client, whose next write is    *)
(* mistaken for it.                                                        *)
DoubtKeepsName(c) ==
    /\ phase = "up"
    /\ call[c].op = "write"
    /\ call' = [call EXCEPT ![c] = Unknown]
    /\ UNCHANGED <<base, tail, phase>>

(* A write in doubt is retried after its client was told.                  *)
DoubtTwice(c) ==
    /\ phase = "up"
    /\ call[c].op = "write"
    /\ call' = [call EXCEPT ![c] = Unknown]
    /\ LET nameless == [i \in 1..Len(tail) |->
                           IF tail[i].by = c THEN [tail[i] EXCEPT !.by = Nobody] ELSE tail[i]]
           again    == [by |-> Nobody, key |-> call[c].key, value |-> call[c].value]
       IN tail' = IF call[c].done THEN Append(nameless, again) ELSE nameless
    /\ UNCHANGED <<base, phase>>

(* Once the store has ended like this, nothing durable is left.            *)
LosesAll(n, how) ==
    /\ base' = IF phase' = how THEN [k \in Keys |-> Absent] ELSE Apply(base, First(tail, n))
    /\ tail' = <<>>
    /\ call' = [c \in Clients |-> Idle]

CrashLosesAll(n) == LosesAll(n, "cut")

KillLosesAll(n) == LosesAll(n, "killed")

(* A write takes effect twice, as with a retry that does not check.        *)
WriteTwice(c) ==
    /\ phase = "up"
    /\ call[c].op = "write"
    /\ ~call[c].done
    /\ LET entry == [by |-> c, key |-> call[c].key, value |-> call[c].value]
       IN tail' = tail \o <<entry, entry>>
    /\ call' = [call EXCEPT ![c].done = TRUE]
    /\ UNCHANGED <<base, phase>>
=============================================================================
