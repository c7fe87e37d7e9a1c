--------------------------- MODULE MCWalUnderTree ---------------------------
(* Bounds for WalRecovery under any tree that keeps PageHistory.           *)
EXTENDS WalUnderTree

CONSTANTS
    Readers,        \* the clients that get
    MaxCrashes,
    FlushesFail     \* whether a flush may fail

MCMayGet(c, k) == c \in Readers

MCMayWrite(c, k, v) == asked + 1 \in Values /\ v # Absent

MCMayCrash(n) == n < MaxCrashes

MCMayFail(n) == FlushesFail

ContractProp == Contract!Spec

(* As one action property, because TLC calls that by its name.             *)
ContractOfHistoryProp == [][History!Next]_(History!vars)
=============================================================================
