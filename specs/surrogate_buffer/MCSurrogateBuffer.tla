------------------------- MODULE MCSurrogateBuffer --------------------------
(* Bounds for model checking.  The number of writes is that of Values.  A  *)
(* write is made only if its number is in Values; numbers that a crash     *)
(* takes back are used again.                                              *)
EXTENDS SurrogateBuffer

CONSTANTS
    To1, To2, To3,  \* the writes (of 1, 2, ...) that may go to key 1, 2, others
    Deletes,        \* which writes are deletes
    Readers,        \* the clients that get
    AnySpace,       \* whether a log takes any free space, not just the first
    MaxCrashes,     \* crashes and restarts together
    MaxRestarts     \* only this many of the first may be restarts

MCMayGet(c, k) == c \in Readers

MCMayWrite(c, k, v) ==
    /\ NextValue \in Values
    /\ (v = Absent) <=> (NextValue \in Deletes)
    /\ NextValue \in CASE k = 1 -> To1 [] k = 2 -> To2 [] OTHER -> To3

MCMayOpen(s) == AnySpace \/ \A other \in FreeSpaces : s <= other

MCMayCrash(n) == n < MaxCrashes

MCMayRestart(n) == n < MaxRestarts

(* No fairness of flushing buffers and splitting nodes.                    *)
UnfairSpec == Spec /\ ClientFairness /\ RecoveryFairness

ContractProp == Contract!Spec
=============================================================================
