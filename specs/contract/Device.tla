------------------------------- MODULE Device -------------------------------
(***************************************************************************)
(* A block device with a volatile write cache.                             *)
(*                                                                         *)
(* A *place* holds one block: a log block, a page, the superblock.  Its    *)
(* value is the sequence of versions that a crash may leave there, oldest  *)
(* first: the first is on the medium, and the others were written since    *)
(* and are not flushed.  Reading returns the last.  A block is written     *)
(* completely or not at all (B⁻-tree §2.4); nothing else is promised about *)
(* unflushed writes.                                                       *)
(*                                                                         *)
(* A flush that fails forgets: unflushed blocks may or may not be on the   *)
(* medium, and no later flush will put them there.  Only writing them      *)
(* again will (BUGS D5).  Such places are called `lost` here.              *)
(*                                                                         *)
(* engine/src/device/crash.rs, CrashDevice.                                *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

(* A place whose only version is durable.                                  *)
Durably(block) == <<block>>

Newest(place) == place[Len(place)]

(* Any one of these may be there after a crash.                            *)
Survivors(place) == {place[i] : i \in 1..Len(place)}

(* The result of reading several places.                                   *)
NewestOf(places) == [p \in DOMAIN places |-> Newest(places[p])]

(* After a flush, which does not help the lost places.                     *)
Flushed(places, lost) ==
    [p \in DOMAIN places |-> IF p \in lost THEN places[p] ELSE Durably(Newest(places[p]))]

Unflushed(places) == {p \in DOMAIN places : Len(places[p]) > 1}

(* All that a crash may leave of several places.                           *)
AfterCrash(places) ==
    {left \in [DOMAIN places -> UNION {Survivors(places[p]) : p \in DOMAIN places}] :
        \A p \in DOMAIN places : left[p] \in Survivors(places[p])}

AllDurably(blocks) == [p \in DOMAIN blocks |-> Durably(blocks[p])]
=============================================================================
