---------------------------- MODULE MCWriteBatch ----------------------------
(* Bounds for model checking.  The number of writes is that of Values.     *)
EXTENDS WriteBatch

CONSTANTS
    Batched,        \* which writes (of 1, 2, ...) are batches; all others are of one key
    Deletes,        \* which writes delete: a batch its last key, others theirs
    Batchers,       \* who writes batches
    Writers,        \* who writes single keys, and which
    WriteKeys,
    Readers,        \* who gets, and where
    ReadKeys,
    Refuses,        \* whether a batch may be refused while its intent is logged
    Stopped,        \* whether a batch may be cut short
    MaxCrashes

MCMayGet(c, k) == c \in Readers /\ k \in ReadKeys

MCMayWrite(c, k, v) ==
    /\ c \in Writers /\ k \in WriteKeys
    /\ asked + 1 \in Values \ Batched
    /\ (v = Absent) <=> (asked + 1 \in Deletes)

MCMayBatch(c, n) == c \in Batchers /\ n + 1 \in Batched

MCChangesOf(n) ==
    [k \in Keys |->
        [key |-> k, value |-> IF n \in Deletes /\ k = Cardinality(Keys) THEN Absent ELSE n]]

MCMayRefuse(n) == Refuses

MCMayStop(n) == Stopped

MCMayCrash(n) == n < MaxCrashes

ContractProp == Contract!Spec

(* FairSpec, but nobody is obliged to run a checkpoint.                    *)
UnfairSpec == Spec /\ ClientFairness /\ BatchFairness /\ LogFairness /\ RecoveryFairness

(* Probes: each is violated, since what it denies can happen.              *)

ReachRenewal == ~(phase = "up" /\ batch.at = "moving")

ReachHelp == \A c \in Clients : ~(Writes(c, "finishing") /\ batch.at = "ended")

ReachSecondCrash == ~(phase = "completing" /\ batch.at = "ended" /\ crashes = 2)
=============================================================================
