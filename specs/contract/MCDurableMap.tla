---------------------------- MODULE MCDurableMap ----------------------------
(* Bounds for model checking: the tail is cut at MaxTail writes.           *)
EXTENDS DurableMap

CONSTANT MaxTail

TailLimit == Len(tail) <= MaxTail
=============================================================================
