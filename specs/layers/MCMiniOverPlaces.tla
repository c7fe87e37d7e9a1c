-------------------------- MODULE MCMiniOverPlaces --------------------------
(* Bounds for MiniPage on any memory: which client may call what.          *)
EXTENDS MiniOverPlaces

CONSTANTS
    Getters,    \* clients that get,
    GetKeys,    \* and which keys
    Writers,    \* clients that put and delete,
    PutKeys,    \* which keys they put,
    DeleteKeys, \* and which they delete
    Keepers     \* clients that split pages ahead of need, and join them

MCMayGet(c, k)      == c \in Getters /\ k \in GetKeys
MCMayWrite(c, k, v) == c \in Writers /\ k \in IF v = Absent THEN DeleteKeys ELSE PutKeys
MCMayKeepHouse(c)   == c \in Keepers

ContractProp == Contract!Spec

(* As one action property, because TLC calls that by its name.             *)
ContractOfPlacesProp == [][Places!Next]_(Places!vars)
=============================================================================
