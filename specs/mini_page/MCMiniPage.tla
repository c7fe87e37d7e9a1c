----------------------------- MODULE MCMiniPage -----------------------------
(* Bounds for model checking: which client may call what.  The protocol    *)
(* itself is finite, whatever the clients do and for however long.         *)
EXTENDS MiniPage

CONSTANTS
    Getters,    \* clients that get,
    GetKeys,    \* and which keys
    Writers,    \* clients that put and delete,
    PutKeys,    \* which keys they put,
    DeleteKeys, \* and which they delete
    Scanners,   \* clients that scan
    Keepers     \* clients that split pages ahead of need, and join them

MCMayGet(c, k)      == c \in Getters /\ k \in GetKeys
MCMayWrite(c, k, v) == c \in Writers /\ k \in IF v = Absent THEN DeleteKeys ELSE PutKeys
MCMayScan(c)        == c \in Scanners
MCMayKeepHouse(c)   == c \in Keepers

ContractProp == Contract!Spec
=============================================================================
