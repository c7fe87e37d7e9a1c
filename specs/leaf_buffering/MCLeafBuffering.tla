-------------------------- MODULE MCLeafBuffering ---------------------------
(* Bounds for model checking.  The number of writes is that of Values.     *)
EXTENDS LeafBuffering

CONSTANTS
    Deletes,        \* which writes (of 1, 2, ...) are deletes
    Plan,           \* 10 n + k: write n goes to key k, or another key of the plan; else to any
    Readers,        \* which clients get, and only key 2
    Flips,          \* the epochs in which log cleaning may begin
    MaxCrashes,     \* crashes and kills together
    MaxKills        \* only this many of the first may be kills

MCMayGet(c, k) == c \in Readers /\ k = 2

MCMayWrite(c, k, v) ==
    LET n == asked + 1
    IN /\ n \in Values
       /\ (v = Absent) <=> (n \in Deletes)
       /\ (\E o \in Keys : 10 * n + o \in Plan) => 10 * n + k \in Plan

MCMayClean(e) == e \in Flips

MCMayCrash(n) == n < MaxCrashes

MCMayKill(n) == n < MaxKills

ContractProp == Contract!Spec

(* For models without deletes: what took effect is never gone.  Weaker     *)
(* than KeptInv, which also forbids that a write appears that was never    *)
(* acknowledged.                                                           *)
NotGoneInv == \A k \in Keys : written[k] # Absent => found[k] # Absent
=============================================================================
