---------------------------- MODULE MCBMinusTree ----------------------------
(* Bounds for the B⁻-tree as a whole: the log, checkpoints and recovery of *)
(* WalRecovery, on pages in two slots.                                     *)
EXTENDS SlotCells

CONSTANTS
    Readers,        \* the clients that get
    MaxCrashes,
    FlushesFail     \* whether a flush may fail

MCMayGet(c, k) == c \in Readers

MCMayWrite(c, k, v) == asked + 1 \in Values /\ v # Absent

MCMayCrash(n) == n < MaxCrashes

MCMayFail(n) == FlushesFail

ContractProp == Contract!Spec
=============================================================================
