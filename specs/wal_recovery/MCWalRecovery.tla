--------------------------- MODULE MCWalRecovery ----------------------------
(* Bounds for model checking.  The number of writes is that of Values.     *)
EXTENDS WalRecovery

CONSTANTS
    Deletes,        \* which writes (of 1, 2, ...) are deletes
    Odd,            \* {}: anybody writes anywhere; else these clients ask for
    OddKeys,        \*   writes 1, 3, ..., of these keys, and the others for the rest
    Readers,        \* who gets, and where
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

(* FairSpec, but nobody is obliged to write pages back.                    *)
UnfairSpec ==
    /\ Spec
    /\ ClientFairness /\ FlushFairness
    /\ CheckpointFairness /\ RecoveryFairness
=============================================================================
