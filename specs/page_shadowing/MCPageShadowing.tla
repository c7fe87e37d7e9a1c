-------------------------- MODULE MCPageShadowing ---------------------------
(* Bounds for model checking.  The number of writes is that of Values.     *)
(* LSNs number the writes, and a write is made only if its number is in    *)
(* Values.                                                                 *)
EXTENDS PageShadowing

CONSTANTS
    Deletes,        \* which writes (of 1, 2, ...) are deletes
    Narrow,         \* the writes that go to the first segment of a page only
    Readers,        \* the clients that get
    Evicted,        \* the pages that may leave memory
    MaxCrashes,     \* crashes and restarts together
    MaxRestarts,    \* only this many of the first may be restarts
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
