--------------------------- MODULE MCWalOverPages ---------------------------
(* Bounds for WalRecovery on any pages that keep AtomicPages.              *)
EXTENDS WeakCells

CONSTANTS
    Readers,        \* the clients that get
    MaxCrashes,
    FlushesFail     \* whether a flush may fail

MCMayGet(c, k) == c \in Readers

MCMayWrite(c, k, v) == asked + 1 \in Values /\ v # Absent

MCMayCrash(n) == n < MaxCrashes

MCMayFail(n) == FlushesFail

ContractProp == Contract!Spec

Pages == INSTANCE AtomicPages WITH
    Pages <- Keys,
    newest <- ImagesRead(pageDev),
    left <- [k \in Keys |-> ImagesLeft(pageDev[k])],
    cut <- [k \in Keys |-> pageDev[k].cut]

ContractOfPagesProp == Pages!Spec
=============================================================================
