----------------------------- MODULE MCOverflow -----------------------------
(* Bounds for model checking.  The number of writes is that of Values.     *)
EXTENDS Overflow

CONSTANTS
    Deletes,        \* which writes (of 1, 2, ...) are deletes
    Shorts,         \* which write a short value
    Pairs,          \* which write a value of two blocks; all others one of one block
    Home,           \* a key
    AtHome,         \* which writes go there; all others anywhere
    Writers,        \* who writes
    Readers,        \* who gets, and where
    ReadKeys,
    Moved,          \* which blocks redo may write pages to
    MaxCrashes

MCSize(v) == IF v \in Shorts THEN 0 ELSE IF v \in Pairs THEN 2 ELSE 1

MCMayGet(c, k) == c \in Readers /\ k \in ReadKeys

MCMayWrite(c, k, v) ==
    /\ c \in Writers
    /\ asked + 1 \in Values
    /\ (v = Absent) <=> (asked + 1 \in Deletes)
    /\ asked + 1 \in AtHome => k = Home

MCMayMove(b) == b \in Moved

MCMayCrash(n) == n < MaxCrashes

ContractProp == Contract!Spec

(* FairSpec, without fairness of freeing replaced values.                  *)
UnfairSpec == Spec /\ ClientFairness /\ LogFairness /\ RecoveryFairness
=============================================================================
