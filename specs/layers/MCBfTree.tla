------------------------------ MODULE MCBfTree ------------------------------
(* Bounds for the Bf-Tree as a whole.                                      *)
EXTENDS BfTree

CONSTANTS
    Deletes,        \* which writes (of 1, 2, ...) are deletes
    Narrow,         \* the writes that go to key 1 only
    Readers,        \* the clients that get
    MaxCrashes,
    FlushesFail     \* whether a flush may fail

MCMayGet(c, k) == c \in Readers

MCMayWrite(c, k, v) ==
    /\ asked + 1 \in Values
    /\ (v = Absent) <=> (asked + 1 \in Deletes)
    /\ asked + 1 \in Narrow => k = 1

MCMayCrash(n) == n < MaxCrashes

MCMayFail(n) == FlushesFail

ContractProp == BfContract!Spec

(* Each as one action property, because TLC calls that by its name.        *)
ContractOfPlacesProp == [][AsPlaces!Next]_(AsPlaces!vars)

ContractOfHistoryProp == [][History!Next]_(History!vars)
=============================================================================
