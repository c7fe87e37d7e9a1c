--------------------------- MODULE MiniOverPlaces ---------------------------
(***************************************************************************)
(* MiniPage on any memory that keeps MiniPlaces.                           *)
(*                                                                         *)
(* That mini-pages may be evicted at any time, and copied without their    *)
(* cold records, MiniPage has itself (EvictMini, CopyToTail).  What it     *)
(* does not have is a memory that is full: there, a mini-page always       *)
(* grows.  A client that is refused lets go of its page, because somebody  *)
(* must be able to evict (CircularBuffer 1), and so it has to begin again. *)
(***************************************************************************)
EXTENDS MiniPage

MustGrow(c) == ~HasRecord(c) /\ ~HasRoom(MiniOfClient(c)) /\ CanGrow(MiniOfClient(c))

(* There is no place.  A write begins again: its key may be elsewhere by   *)
(* then.  A get has its answer, and goes without caching it: what it has   *)
(* read may be outdated when there is room (MiniPage 5).                   *)
(* trees/bf/mod.rs, Changed::RingFull, BfTree::promote.                    *)
Refused(c) ==
    /\ step[c] \in {"write", "promote"}
    /\ MustGrow(c)
    /\ IF step[c] = "promote" /\ Bug # "promotes-later" THEN Leave(c, "answered")
       ELSE IF step[c] = "write" /\ Bug # "waits-on-its-page" THEN Leave(c, "descend")
       ELSE lock' = Released(c, at[c]) /\ UNCHANGED <<step, at>>
    /\ UNCHANGED <<inner, innerLock, low, high, leaf, mini, call, right, outdated, ghosts>>

(* Scans are left out: they need no place.                                 *)
NextOverPlaces ==
    \/ \E c \in Clients :
          \/ CallGet(c) \/ CallPut(c) \/ CallDelete(c) \/ Return(c)
          \/ ReadVersion(c) \/ ReadChild(c) \/ LockPage(c) \/ Restart(c)
          \/ ReadMini(c) \/ ReadLeaf(c) \/ Decline(c) \/ Upgrade(c) \/ Promote(c)
          \/ WriteRecord(c) \/ Grow(c) \/ MergeToMirror(c) \/ EvictMirror(c)
          \/ LockInner(c) \/ AllocateRight(c) \/ ShortenLeft(c) \/ InsertSeparator(c)
          \/ LockRight(c) \/ LockInnerToJoin(c) \/ GiveUpJoin(c)
          \/ MoveRecords(c) \/ RemoveSeparator(c)
          \/ \E p \in Pages : LockLeft(c, p) \/ FindLeafFull(c, p)
          \/ Refused(c)
    \/ \E p \in Pages : EvictMini(p) \/ CopyToTail(p)

SpecOverPlaces == Init /\ [][NextOverPlaces]_vars

-----------------------------------------------------------------------------
(* The change that only the mini-page has.                                 *)
HeldOf(k) == LET r == mini[Home(k)].rec[k] IN IF IsDirty(r) THEN r.value ELSE Nobody

Places == INSTANCE MiniPlaces WITH
    Nothing <- Nobody,
    there   <- [k \in Keys |-> mini[Home(k)].size > 0],
    held    <- [k \in Keys |-> HeldOf(k)],
    stored  <- [k \in Keys |-> leaf[Home(k)][k]]

THEOREM SpecOverPlaces => Contract!Spec /\ Places!Spec
=============================================================================
