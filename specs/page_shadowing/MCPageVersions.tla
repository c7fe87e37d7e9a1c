--------------------------- MODULE MCPageVersions ---------------------------
(* Bounds for model checking: those of MCPageShadowing, and of decay.      *)
EXTENDS MCPageShadowing, PageVersions

CONSTANTS
    MaxRots,        \* the maximum number of decayed blocks and lost writes
    Becomes,        \* what such a block may turn into
    MaxLostEnds     \* the log's end may be lost only after fewer losses than this; it is one more

MCMayRot(n) == n < MaxRots

MCMayBecome(kind) == kind \in Becomes

MCMayLoseEnd(n) == n < MaxLostEnds

(* A probe: each kind of damage must lead to a page that is told of.       *)
ReachTold == told = {}
=============================================================================
