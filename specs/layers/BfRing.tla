------------------------------- MODULE BfRing -------------------------------
(***************************************************************************)
(* How mini-pages are made, moved and evicted: the steps of CircularBuffer *)
(* (Bf-Tree §4), those under one page's lock taken together.  Left out, as *)
(* checked there: that blocks of the free lists are used again.            *)
(***************************************************************************)
EXTENDS BfMinis

-----------------------------------------------------------------------------
(* Making and moving them.                                                 *)

Goto(c, where) == work' = [work EXCEPT ![c] = where]

(* The mini-page is missing, or too small, or near the head.               *)
MustMove(c) ==
    /\ Wants(c) /\ Fits(c)
    /\ NearHead(Home(c)) \/ (~HasRoom(c) /\ M!CanGrow(MiniOf(Home(c))))

SizeFor(c) ==
    IF NearHead(Home(c)) THEN MiniOf(Home(c)).size ELSE M!NextSize(MiniOf(Home(c)))

(* The thread begins to move the mini-page of its page to a new block.     *)
(* What is near the head is cooled.                                        *)
MoveTo(c, new) ==
    /\ work' = [work EXCEPT ![c] = [Rest EXCEPT !.at = "copy", !.page = Home(c), !.new = new,
                                                !.cools = NearHead(Home(c))]]
    /\ T!Lock(c, Home(c))

(* From the tail.  What is left up to the physical end may be too small.   *)
Allocate(c) ==
    /\ MustMove(c)
    /\ \/ /\ R!AllocateAtTail(Home(c), SizeFor(c))
          /\ MoveTo(c, R!OffsetOf(tail))
       \/ /\ R!PadAtTail(SizeFor(c))
          /\ UNCHANGED <<word, work>>
    /\ UNCHANGED <<vars, pushed>>

(* The page is not locked while room is made (CircularBuffer 1).           *)
Full(c) ==
    /\ MustMove(c)
    /\ R!NoRoom(SizeFor(c))
    /\ Goto(c, [Rest EXCEPT !.at = "full"])
    /\ UNCHANGED <<vars, ringVars, word, pushed>>

(* The new block is filled, and mapped.  One that was near the head loses  *)
(* its cold records, after a merge if any of them is dirty (§5.5).         *)
Publish(c) ==
    /\ work[c].at = "copy"
    /\ LET p == work[c].page
           old == T!At(p)
           new == work[c].new
           cools == work[c].cools
           merges == cools /\ IsDirty(p) /\ M!MustMerge(MiniOf(p))
           rec == IF old = None THEN NoRecords
                  ELSE IF cools THEN M!MiniAfterCooling(MiniOf(p)).rec
                  ELSE MiniOf(p).rec
       IN /\ IF merges
             THEN /\ ~poisoned
                  /\ page' = [page EXCEPT ![p].values = M!ImageAfterCooling(MiniOf(p), @),
                                          ![p].lsn = block[old].rec.lsn]
                  /\ dirtied' = DirtiedBy(p)
             ELSE UNCHANGED pageVars
          /\ block' = [block EXCEPT
                 ![new].state = "ready",
                 ![new].rec = [rec |-> rec, lsn |-> IF old = None THEN 0 ELSE block[old].rec.lsn],
                 ![new].dirty = AnyDirty(rec) /\ Bug # "dirty-bit-not-copied"]
          /\ word' = [word EXCEPT ![p].at = new, ![p].writer = IF old = None THEN None ELSE c]
          /\ Goto(c, IF old = None THEN Rest
                     ELSE [Rest EXCEPT !.at = "old", !.page = p, !.old = old])
    /\ UNCHANGED <<LogLeft, head, claimed, secondChance, tail, freeList, pushed>>

FreeOld(c) ==
    /\ work[c].at = "old"
    /\ R!FreeBlock(work[c].old)
    /\ T!Unlock(c, work[c].page)
    /\ Goto(c, Rest)
    /\ UNCHANGED <<vars, pushed>>

-----------------------------------------------------------------------------
(* Eviction.  The client holds no page.                                    *)

(* The block at the head, unless others have evicted everything.           *)
Claim(c) ==
    /\ work[c].at = "full"
    /\ IF head = tail THEN Goto(c, Rest) /\ UNCHANGED ringVars
       ELSE /\ R!ClaimBlock
            /\ Goto(c, [Rest EXCEPT !.at = "victim", !.victim = R!OffsetOf(claimed)])
    /\ UNCHANGED <<vars, word, pushed>>

(* A mini-page is merged, and then taken out of the mapping table.         *)
EvictMini(victim) ==
    LET p == block[victim].page
    IN /\ block[victim].state = "ready"
       /\ T!CanLock(p) /\ T!At(p) = victim
       /\ IF Bug = "dirty-skipped" THEN UNCHANGED pageVars ELSE Merge(p, MiniOf(p))
       /\ word' = [word EXCEPT ![p].at = IF Bug = "evicted-before-unmapped" THEN @ ELSE None]
       /\ block' = [block EXCEPT ![victim] = R!Dead("evicted", @.size)]
       /\ UNCHANGED <<head, claimed, secondChance, tail, freeList>>

(* Or the block is a tombstone, padding, or on a free list.                *)
Evict(c) ==
    /\ work[c].at = "victim"
    /\ \/ EvictMini(work[c].victim)
       \/ /\ R!SkipBlock(work[c].victim) \/ R!UnlistBlock(work[c].victim)
          /\ UNCHANGED <<pageVars, word>>
    /\ Goto(c, [work[c] EXCEPT !.at = "finish"])
    /\ UNCHANGED <<LogLeft, pushed>>

Finish(c) ==
    /\ work[c].at = "finish"
    /\ R!AdvanceHead(work[c].victim)
    /\ Goto(c, Rest)
    /\ UNCHANGED <<vars, word, pushed>>
=============================================================================
