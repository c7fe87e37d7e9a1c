-------------------------- MODULE MCPageShadowing ---------------------------
(* Bounds for model checking.  The number of writes is that of Values: a   *)
(* write is asked for if its number is one, and numbers are LSNs.          *)
EXTENDS PageShadowing

CONSTANTS
    Deletes,        \* which writes (of 1, 2, ...) are deletes
    Narrow,         \* which writes go to the first segment of a page, no other
    Readers,        \* who gets
    Evicted,        \* which pages may leave memory
    MaxCrashes,     \* crashes and restarts together
    MaxRestarts,    \* only the first so many of them may be restarts
    FlushesFail     \* whether a flush may fail

MCMayGet(c, k) == c \in Readers /\ SegmentOf(k) = 1

MCMayWrite(c, k, v) ==
    /\ Len(log) + 1 \in Values
    /\ (v = Absent) <=> (Len(log) + 1 \in Deletes)
    /\ Len(log) + 1 \in Narrow => SegmentOf(k) = 1

MCMayEvict(p) == p \in Evicted

MCMayFail(n) == FlushesFail

MCMayCrash(n) == n < MaxCrashes

MCMayRestart(n) == n < MaxRestarts

ContractProp == Contract!Spec
=============================================================================
