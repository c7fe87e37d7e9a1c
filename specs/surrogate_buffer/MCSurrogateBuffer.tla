------------------------- MODULE MCSurrogateBuffer --------------------------
(* Bounds for model checking.  The number of writes is that of Values: a   *)
(* write is asked for if its number is one; numbers that a crash takes     *)
(* back are given out again.                                               *)
EXTENDS SurrogateBuffer

CONSTANTS
    To1, To2, To3,  \* which writes (of 1, 2, ...) may go to key 1, 2, 3
    Deletes,        \* which writes are deletes
    Readers,        \* who gets
    AnySpace,       \* whether a log goes to any room that is free, not just the first
    MaxCrashes,     \* crashes and restarts together
    MaxRestarts     \* only among so many first ones may be a restart

MCMayGet(c, k) == c \in Readers

MCMayWrite(c, k, v) ==
    /\ NextValue \in Values
    /\ (v = Absent) <=> (NextValue \in Deletes)
    /\ NextValue \in CASE k = 1 -> To1 [] k = 2 -> To2 [] OTHER -> To3

MCMayOpen(s) == AnySpace \/ \A other \in FreeSpaces : s <= other

MCMayCrash(n) == n < MaxCrashes

MCMayRestart(n) == n < MaxRestarts

(* Nobody is obliged to flush a buffer or to split a node.                 *)
UnfairSpec == Spec /\ ClientFairness /\ RecoveryFairness

ContractProp == Contract!Spec
=============================================================================
