--------------------------- MODULE MCIndexSnapshot ---------------------------
(* Bounds for model checking.  The number of writes is that of Values.     *)
EXTENDS IndexSnapshot

CONSTANTS
    Deletes,        \* which writes (of 1, 2, ...) are deletes
    WriteKeys,      \* the keys that are written
    Writers,        \* the clients that write
    ReadKeys,       \* the keys that are read with gets
    Readers,        \* the clients that get
    Scanners,       \* the clients that scan upwards
    BackScanners,   \* and downwards
    SplitKeys,      \* the keys at which leaves are split
    MaxSplits,      \* splits in the log
    MaxMerges,      \* merges in the log
    MaxCheckpoints, \* superblocks
    MaxCrashes,     \* crashes and restarts together
    MaxRestarts,    \* only this many of the first may be restarts
    MaxLosses,      \* writes that the device loses
    Apart           \* for small models: "no", or what is kept apart

(* "steps": clients call before a checkpoint begins, which waits for their *)
(* answers; only chunks of a tree that never changed are lost; and after a *)
(* crash there is recovery, and nothing else.                              *)
(* "lives": one thing after the other.  The first life has a checkpoint,   *)
(* which is cut off once its snapshot is written.  The second has writes,  *)
(* then merges, then a checkpoint, with splits beside it, whose last chunk *)
(* is lost; it ends once the superblock is written.  The last life reads.  *)
ASSUME Apart \in {"no", "steps", "lives"}

FirstLife == Apart = "steps" => crashes = 0

CallsMayCome ==
    FirstLife /\ (Apart = "steps" => super.number = 1 /\ checkpoint = NoCheckpoint)

MayRead == Apart = "lives" => crashes > 1

Changed(is) == Cardinality({n \in 1..Len(log) : log[n].is = is})

(* Whether the tree may change before, or after, all merges are made.      *)
MayChange(merged) ==
    Apart = "lives" => crashes = 1 /\ (merged <=> Changed("merge") = MaxMerges)

MCMayGet(c, k) == CallsMayCome /\ MayRead /\ c \in Readers /\ k \in ReadKeys

MCMayScan(c, back) == CallsMayCome /\ MayRead /\ c \in IF back THEN BackScanners ELSE Scanners

MCMayWrite(c, k, v) ==
    /\ CallsMayCome /\ MayChange(FALSE)
    /\ c \in Writers /\ k \in WriteKeys
    /\ NextValue \in Values
    /\ (v = Absent) <=> (NextValue \in Deletes)

MCMaySplit(fence) ==
    FirstLife /\ MayChange(TRUE) /\ fence \in SplitKeys /\ Changed("split") < MaxSplits

MCMayMerge == FirstLife /\ MayChange(FALSE) /\ Changed("merge") < MaxMerges

(* The engine takes the first free slot, too.                              *)
MCMayTake(s) == \A other \in free : s <= other

MCMayLose(n) ==
    /\ n < MaxLosses
    /\ Apart = "steps" => log = <<>>
    /\ Apart = "lives" =>
           crashes = 1 /\ checkpoint.at = "fence" /\ FencesFrom(index, checkpoint.next) = {}

MCMayCheckpoint ==
    /\ FirstLife
    /\ super.number <= MaxCheckpoints
    /\ Apart = "steps" => \A c \in Clients : ~Waits(c)
    /\ Apart = "lives" => crashes = 0 \/ MayChange(TRUE)

MCMayCrash(n) ==
    /\ n < MaxCrashes
    /\ Apart = "lives" =>
           IF n = 0 THEN checkpoint.at = "read"
           ELSE losses = MaxLosses /\ (checkpoint.at = "recorded" \/ super.number > 1)

MCMayRestart(n) == n < MaxRestarts

ContractProp == Contract!Spec

(* FairSpec, but pages need not be written.                                *)
UnfairSpec ==
    /\ Spec
    /\ ClientFairness /\ LogFairness /\ TreeFairness /\ CheckpointFairness /\ RecoveryFairness

-----------------------------------------------------------------------------
(* What must be reachable.                                                 *)

(* The index after the first n records.                                    *)
IndexAt(n) ==
    ReindexedFrom([k \in Keys |-> IF k \in Fences THEN CHOOSE i \in 1..Leaves : Nth(i) = k
                                  ELSE NoSlot], 1, n)

(* A snapshot that is no index of any instant.                             *)
ReachMixture ==
    ~(checkpoint.at = "none" /\ super.number > 1
      /\ \A n \in 0..Len(log) : IndexOf(ReadOf(super).entries) # IndexAt(n))

(* A page whose name an earlier page had.                                  *)
ReachNewOwner ==
    ~\E n \in 1..Len(log), m \in 1..Len(log) :
        n < m /\ IsMerge(n) /\ IsSplit(m) /\ log[n].right = log[m].right
        /\ version[log[m].right] >= m

(* Redo meets the record of a page in whose slot a chunk is.               *)
ReachUnderChunk ==
    ~(Recovering /\ \E n \in (redone + 1)..Len(log) : IsSplit(n) /\ log[n].right \in chain)

(* A leaf has moved from under a descent.                                  *)
ReachMoved == ~\E c \in Clients : Reached(c) /\ ~IsTheLeaf(c)

(* Recovery is cut off after it has written a page.                        *)
ReachCutOff == ~(Recovering /\ crashes = 2 /\ \E p \in Slots : page[p].lsn > super.redo)

(* A write that was lost is noticed.                                       *)
ReachDamage == phase # "damaged"
=============================================================================
