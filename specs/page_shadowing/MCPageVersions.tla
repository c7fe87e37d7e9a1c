--------------------------- MODULE MCPageVersions ---------------------------
(* Bounds for model checking: those of MCPageShadowing, and how much rots. *)
EXTENDS MCPageShadowing, PageVersions

CONSTANTS
    MaxRots,        \* so many blocks rot, or writes are lost
    Becomes,        \* what such a block may turn into
    MaxLostEnds     \* only behind fewer may the log's end be lost, which is one more

MCMayRot(n) == n < MaxRots

MCMayBecome(kind) == kind \in Becomes

MCMayLoseEnd(n) == n < MaxLostEnds
=============================================================================
