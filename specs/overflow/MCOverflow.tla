----------------------------- MODULE MCOverflow -----------------------------
(* Bounds for model checking.  The number of writes is that of Values.     *)
EXTENDS Overflow

CONSTANTS
    Deletes,        \* which writes (of 1, 2, ...) are deletes
    Shorts,         \* the writes with a short value
    Pairs,          \* the writes with a value of two blocks; all others have one block
    Home,           \* a key
    AtHome,         \* the writes that go to Home; all others go anywhere
    Writers,        \* the clients that write
    Readers,        \* the clients that get, and the keys that they get
    ReadKeys,
    Moved,          \* the blocks to which redo may write pages
    MaxCrashes,     \* crashes and restarts together
    MaxRestarts     \* only this many of the first may be restarts

MCSize(v) == IF v \in Shorts THEN 0 ELSE IF v \in Pairs THEN 2 ELSE 1

MCMayGet(c, k) == c \in Readers /\ k \in ReadKeys

MCMayWrite(c, k, v) ==
    /\ c \in Writers
    /\ asked + 1 \in Values
    /\ (v = Absent) <=> (asked + 1 \in Deletes)
    /\ asked + 1 \in AtHome => k = Home

MCMayMove(b) == b \in Moved

MCMayCrash(n) == n < MaxCrashes

MCMayRestart(n) == n < MaxRestarts

ContractProp == Contract!Spec

(* Probes: what must be reachable.                                         *)

(* A checkpoint leaves nothing to redo.                                    *)
ReachNoRedo == ~(phase # "up" /\ redoStart > 0 /\ redoStart = Len(log))

(* Redo writes a page where a value was.                                   *)
ReachPage ==
    ~(phase # "up" /\ \E b \in Unflushed(blockDev) :
        Head(blockDev[b]) # NoPart /\ Newest(blockDev[b]) = NoPart)

(* A drive that ignores trims keeps what a dead value had.                 *)
ReachStale == ~(crashes = 0 /\ \E b \in free : Newest(blockDev[b]) # NoPart)

(* FairSpec, without fairness of freeing replaced values.                  *)
UnfairSpec == Spec /\ ClientFairness /\ LogFairness /\ RecoveryFairness
=============================================================================
