------------------------------ MODULE MCRedoLog ------------------------------
(* Bounds for model checking.                                              *)
EXTENDS RedoLog

CONSTANTS
    Lengths,        \* their lengths
    Leaves,         \* whether clients may go without an answer
    Checkpoints,    \* a checkpoint may begin once this many records were asked for; 0: none
    Closes,         \* whether the store may be closed in order
    MaxCrashes,     \* crashes and restarts together
    MaxRestarts,    \* only this many of the first may be restarts
    Switches,       \* whether the power fails only once a sparse log has been opened
    FlushesFail,    \* whether a flush, or the write of one, may fail
    MaxRotten       \* blocks that decay

MCMayAppend(n, len) == n \in Records /\ len \in Lengths
MCMayLeave          == Leaves
MCMayCheckpoint     == Checkpoints # 0 /\ asked >= Checkpoints
MCMayClose          == Closes
MCMayFail(n)        == FlushesFail
MCMayCrash(n)       == n < MaxCrashes /\ (Switches => packing = "sparse" /\ phase # "read")
MCMayRestart(n)     == n < MaxRestarts
MCMayRot(n)         == n < MaxRotten

ContractProp == Contract!Spec

(* FairSpec, but a flush need not end.                                     *)
UnfairSpec ==
    /\ Spec
    /\ ClientFairness /\ CheckpointFairness /\ RecoveryFairness

(* What must be reachable.                                                 *)

(* What recovery reads, or would.                                          *)
Reading == ReadLog(NewestOf(logDev), Newest(superDev))

(* A crash leaves the beginning of a record and not its end.               *)
ReachDeadRecord == ~(phase = "cut" /\ Reading.carry # NoCarry)

(* A crash leaves sectors of several versions.                             *)
ReachTorn == ~(phase = "cut" /\ \E p \in Places : ~Whole(Newest(logDev[p])))

(* A block of an older epoch lies where the new one may write.             *)
ReachLeftOver ==
    ~(phase = "up" /\ \E p \in Places :
         LET head == Newest(logDev[p]).head
         IN head.epoch \in 1..(epoch - 1) /\ head.index > startsAt)

(* Recovery reads a packed and a sparse log, one behind the other.         *)
ReachBothForms ==
    ~ /\ phase = "read"
      /\ Len(found) > 1
      /\ Reading.epoch > Newest(superDev).redoEpoch
      /\ \E p \in Places : Newest(logDev[p]).head.closed
      /\ \E p \in Places : LET head == Newest(logDev[p]).head
                           IN head.epoch # 0 /\ ~head.closed /\ Len(head.units) < Units

(* The log ends before a witness.                                          *)
ReachWitness ==
    ~(phase = "killed" /\ LET content == Newest(logDev[Place(Reading.stop)])
                          IN content.head.witness /\ content.head.index = Reading.stop)

(* Damage is noticed; and it is not, because it is in the last flush.      *)
ReachNoticed   == phase # "damaged"
ReachUnnoticed == ~(phase = "read" /\ rotten > 0 /\ acked > end)
=============================================================================
