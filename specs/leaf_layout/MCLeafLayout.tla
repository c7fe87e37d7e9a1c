---------------------------- MODULE MCLeafLayout ----------------------------
(* Bounds for model checking.  The number of writes is that of Values.     *)
EXTENDS LeafLayout

CONSTANTS
    Plan,           \* 10 n + k: the n-th write may go to key k
    Deletes,        \* which writes (of 1, 2, ...) are deletes
    Shorts,         \* the writes with a short value; all others are long
    Writers,        \* the clients that write
    Readers,        \* the clients that get, and the keys that they get
    ReadKeys,
    MaxLog,         \* a conversion or merge is logged only if the log is shorter
    Adapts,         \* whether pages get another general layout by their use
    Merges,         \* whether pages are merged
    MaxCrashes,     \* crashes and restarts together
    MaxRestarts     \* only this many of the first may be restarts

(* With 10 bytes for a page and 2 for a key, a general page takes two      *)
(* records, and a dense one three long or five short.                      *)
MCLength(v) == IF v \in Shorts THEN 2 ELSE 3

(* Fences of one byte, of which two neighbours have one in common: a page  *)
(* has less room, and its records take less.  In the other general layout  *)
(* they take two bytes more.  Splits are made before the median.           *)
FenceBytes(k) == IF k \in {Least, Top} THEN 0 ELSE 1

MCRoomIn(layout, lower, upper, records) == Room - FenceBytes(lower) - FenceBytes(upper)

MCRecordBytes(layout, lower, upper) ==
    KeySize + (IF layout = "other" THEN 2 ELSE 0)
            - (IF FenceBytes(lower) + FenceBytes(upper) = 2 THEN 1 ELSE 0)

(* The fence before key 2 is so long that a semi-dense page below it has   *)
(* no room.                                                                *)
MCRoomOfSemi(lower, upper) == Room - (upper - lower) - (IF upper = 2 THEN Room ELSE 0)

MCNear(keys, n) == IF n > 1 THEN n - 1 ELSE n

MCMayGet(c, k) == c \in Readers /\ k \in ReadKeys

MCMayWrite(c, k, v) ==
    /\ c \in Writers
    /\ asked + 1 \in Values
    /\ (v = Absent) <=> (asked + 1 \in Deletes)
    /\ 10 * (asked + 1) + k \in Plan

MCMayLayOut(n) == n < MaxLog

MCMayAdapt(n) == Adapts /\ n < MaxLog

MCMayMerge(n) == Merges /\ n < MaxLog

MCMayCrash(n) == n < MaxCrashes

MCMayRestart(n) == n < MaxRestarts

ContractProp == Contract!Spec

(* FairSpec, in which the log need not become durable.                     *)
UnfairSpec == Spec /\ ClientFairness /\ RecoveryFairness

-----------------------------------------------------------------------------
(* What must be reachable, so that the models show it.                     *)

Relayouts(layout) == {n \in 1..Len(log) : log[n].is = "relayout" /\ log[n].layout = layout}

(* A dense page becomes general, ...                                       *)
ReachBack == Relayouts("general") = {}

(* ... because it is nearly empty, ...                                     *)
ReachFew ==
    ~\E c \in Clients :
        /\ IsCalled(c) /\ ~IsTaken(c) /\ RemedyOf(c).is = "relayout"
        /\ leaf[LeafOf(c)].layout = "dense" /\ ~HasPlace(leaf[LeafOf(c)], call[c].key)

(* ... or is split behind its last place, ...                              *)
ReachDenseSplit ==
    \A n \in Splits : log[n].layout = "general" /\ KeysIn(log[n].map) = {}
                      => LayoutAt(log[n].page, n) # "dense"

(* ... or at the middle.                                                   *)
ReachDenseMiddle == \A n \in Splits : log[n].layout # "dense"

(* A general page is split where another page's places end.                *)
ReachPartition ==
    \A n \in Splits : LayoutAt(log[n].page, n) = "general" => log[n].key \in KeysIn(log[n].map)

(* A conversion is redone in a life whose options do not allow it.         *)
ReachOtherOptions ==
    phase = "up" \/ allows \/ ~\E n \in Relayouts("dense") : redoStart < n /\ n <= redone
=============================================================================
