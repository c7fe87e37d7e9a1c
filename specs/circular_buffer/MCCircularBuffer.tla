-------------------------- MODULE MCCircularBuffer --------------------------
(* Bounds for model checking: addresses are kept small by forgetting whole *)
(* laps; nothing else grows.                                               *)
EXTENDS CircularBuffer

MCForgotten(h) == IF h >= Capacity THEN Capacity ELSE 0

Never == FALSE

ContractProp == Contract!Spec
=============================================================================
