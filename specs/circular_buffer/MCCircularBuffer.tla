-------------------------- MODULE MCCircularBuffer --------------------------
(* Bounds for model checking: addresses are kept small by forgetting whole *)
(* laps; nothing else grows.                                               *)
EXTENDS CircularBuffer

MCForgotten(h) == IF h >= Capacity THEN Capacity ELSE 0

Never == FALSE

CONSTANTS
    Writers,    \* the clients that put and delete
    Readers,    \* the clients that get
    ReadPages,  \* the pages that they get
    PutPages,   \* the pages that are put
    DelPages    \* the pages that are deleted too

MCMayCall(c, request) ==
    IF request.op = "get" THEN c \in Readers /\ request.key \in ReadPages
    ELSE /\ c \in Writers
         /\ request.key \in (IF request.value = Absent THEN DelPages ELSE PutPages)

AtRest == \A c \in Clients : phase[c] = "idle"

(* Threads may stop in the middle of an eviction.                          *)
UnfairSpec ==
    /\ Spec
    /\ WF_vars(Close)
    /\ \A c \in Clients :
          WF_vars(LockPage(c) \/ Read(c) \/ Write(c) \/ Return(c) \/ Move(c))

(* Everything is fair, but the other clients keep calling forever.         *)
BusySpec == Spec /\ \A c \in Clients : SF_vars(Step(c))

ContractProp == Contract!Spec

(* The ring, as the tree of mini-pages may see it.                         *)
AsPlaces == INSTANCE MiniPlaces WITH
    Keys    <- Pages,
    Nothing <- None,
    there   <- [p \in Pages |-> At(p) # None],
    held    <- [p \in Pages |-> IF At(p) # None /\ block[At(p)].dirty THEN block[At(p)].rec
                               ELSE None],
    stored  <- disk

(* As one action property, because TLC calls that by its name.             *)
ContractOfPlacesProp == [][AsPlaces!Next]_(AsPlaces!vars)
=============================================================================
