--------------------------- MODULE MCWalRecovery ----------------------------
(* Bounds for model checking.  The number of writes is that of Values.     *)
EXTENDS WalRecovery

CONSTANTS
    Deletes,        \* which writes (of 1, 2, ...) are deletes
    Odd,            \* {}: any client writes anywhere; else these clients make
    OddKeys,        \*   writes 1, 3, ..., of these keys, and the others for the rest
    Readers,        \* the clients that get, and the keys that they get
    ReadKeys,
    MaxCrashes,
    FlushesFail     \* whether a flush may fail

MCMayGet(c, k) == c \in Readers /\ k \in ReadKeys

MCMayWrite(c, k, v) ==
    /\ asked + 1 \in Values
    /\ (v = Absent) <=> (asked + 1 \in Deletes)
    /\ Odd # {} => /\ (c \in Odd) <=> (asked % 2 = 0)
                   /\ (k \in OddKeys) <=> (asked % 2 = 0)

MCMayCrash(n) == n < MaxCrashes

MCMayFail(n) == FlushesFail

ContractProp == Contract!Spec

(* FairSpec, without the obligation to write pages back.                   *)
UnfairSpec ==
    /\ Spec
    /\ ClientFairness /\ FlushFairness
    /\ CheckpointFairness /\ RecoveryFairness
=============================================================================
