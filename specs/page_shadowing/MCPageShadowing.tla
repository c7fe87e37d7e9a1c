-------------------------- MODULE MCPageShadowing ---------------------------
(* Bounds for model checking.  The number of writes is that of Values.     *)
(* LSNs number the writes, and a write is made only if its number is in    *)
(* Values.                                                                 *)
EXTENDS PageShadowing

CONSTANTS
    Deletes,        \* which writes (of 1, 2, ...) are deletes
    Narrow,         \* the writes that go to the first segment of a page only
    Readers,        \* the clients that get
    Evicted,        \* the pages that may leave memory
    MaxCrashes,     \* crashes and restarts together
    MaxRestarts,    \* only this many of the first may be restarts
    FlushesFail     \* whether a flush may fail

MCMayGet(c, k) == c \in Readers /\ SegmentOf(k) = 1

MCMayWrite(c, k, v) ==
    /\ Len(log) + 1 \in Values
    /\ (v = Absent) <=> (Len(log) + 1 \in Deletes)
    /\ Len(log) + 1 \in Narrow => SegmentOf(k) = 1

MCMayEvict(p) == p \in Evicted

MCMayFail(n) == FlushesFail

MCMayCrash(n) == n < MaxCrashes

MCMayRestart(n) == n < MaxRestarts

ContractProp == Contract!Spec

(* Probes: what must be reachable.                                         *)

(* A checkpoint leaves nothing to redo.                                    *)
ReachNoRedo == ~(phase # "up" /\ redoStart > 0 /\ redoStart = Len(log))

(* A page leaves memory while the store is up.                             *)
ReachEvicted == ~(phase = "up" /\ crashes = 0 /\ \E p \in Pages : ~IsIn(p))

(* A trimmed block may still read as before.                               *)
ReachUntrimmed == ~(\E p \in Pages : Cardinality(Read(dev[p])) > 1)

(* The log block of an image that was replaced is trimmed.                 *)
ReachTrimmedLog ==
    ~(\E p \in Pages : valid[p].is = "alone" /\ Newest(dev[p][Log]) = Trimmed /\ Len(dev[p][Log]) > 1)

(* The pages, as a log protocol may see them.  What reading both slots     *)
(* yields is in doubt for a page that has not been read since it was       *)
(* opened; all readings are alike then (NotInMemoryInv, RecoveredInv).     *)
ImagesReadOf(p) ==
    {IF valid[p].is = "unknown" THEN ReadBoth(blocks).image
     ELSE ReadSlot(blocks, valid[p].slot).image : blocks \in Read(dev[p])}

ImagesLeft(p) == {ReadBoth(AsRead(blocks)).image : blocks \in Left(dev[p])}

(* Images of which at least the first block, with its header, may be there *)
(* without the others.                                                     *)
ImagesCut(p) ==
    {[lsn |-> block.lsn, values |-> block.all] :
        block \in UNION {Survivors(dev[p][<<slot, 1>>]) : slot \in Slots} \ {Trimmed}}

AsPages == INSTANCE AtomicPages WITH
    newest <- [p \in Pages |-> CHOOSE image \in ImagesReadOf(p) : TRUE],
    left <- [p \in Pages |-> ImagesLeft(p)],
    cut <- [p \in Pages |-> ImagesCut(p)]

ContractOfPagesProp == AsPages!Spec
=============================================================================
