--------------------------- MODULE MCCopyOnWrite ----------------------------
(* Bounds for model checking.  The number of writes is that of Values.     *)
EXTENDS CopyOnWrite

CONSTANTS
    Second,         \* the pages whose entry is in the second block of the table
    Deletes,        \* which writes (of 1, 2, ...) are deletes
    Either,         \* the writes that are puts or deletes
    Home,           \* a page
    AtHome,         \* the writes that go to Home; all others go anywhere
    Readers,        \* the clients that get
    MaxCrashes,     \* crashes and restarts together
    MaxRestarts,    \* only this many of the first may be restarts
    FlushesFail     \* whether a flush may fail

MCBlockOf(p) == IF p \in Second THEN 2 ELSE 1

MCMayGet(c, p) == c \in Readers

MCMayWrite(c, p, v) ==
    /\ Len(log) + 1 \in Values
    /\ Len(log) + 1 \in Deletes => v = Absent
    /\ v = Absent => Len(log) + 1 \in Deletes \cup Either
    /\ Len(log) + 1 \in AtHome => p = Home

(* The engine takes the first free slot, too.                              *)
MCMayTake(s) == \A other \in free : s <= other

MCMayCheckpoint == super.redo < Len(log)

MCMayFail(n) == FlushesFail

MCMayCrash(n) == n < MaxCrashes

MCMayRestart(n) == n < MaxRestarts

ContractProp == Contract!Spec

(* FairSpec, but the table need not be written.                            *)
UnfairSpec ==
    /\ Spec
    /\ ClientFairness /\ LogFairness /\ PageFairness /\ CheckpointFairness /\ RecoveryFairness

(* What must be reachable.                                                 *)
ReachHeld ==
    ~\E p \in Pages : table[p] # NoSlot /\ OnDevice[p] \notin {NoSlot, table[p]}

ReachOlderPlace == Cardinality(MayChoose) = 1

ReachTornTaken == ~(phase = "cut" /\ \E i \in SuperPlaces : superDev[i][1].number = 0)

ReachDead == ~(phase = "clearing" /\ Held # {})

ReachNewOwner ==
    ~\E p, q \in Pages : p # q /\ \E s \in Slots :
        /\ slotDev[s][1].is = "image" /\ slotDev[s][1].page = p
        /\ Newest(slotDev[s]).is = "image" /\ Newest(slotDev[s]).page = q
=============================================================================
