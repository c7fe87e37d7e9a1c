------------------------------ MODULE BfMinis -------------------------------
(***************************************************************************)
(* Mini-pages over the leaves of BfLeaves (Bf-Tree §3.1, §5.1-§5.5): the   *)
(* state of the tree, reads, writes, merges and splits of leaves.          *)
(*                                                                         *)
(* A mini-page is a block of the ring.  Its contents are its records and   *)
(* the LSN of its newest change.  All of the ring is memory, so a crash    *)
(* empties it.                                                             *)
(***************************************************************************)
EXTENDS BfLeaves

CONSTANTS
    Capacity,       \* the size of the ring, in records
    InPlace,        \* the size of its region next to the tail
    None            \* no page, no block

VARIABLES
    head, claimed, secondChance, tail, block, freeList,     \* RingMemory
    word,           \* MappingTable: where each mini-page is, and the page's lock
    work,           \* what each client's thread is doing in the ring
    pushed          \* the pages that the checkpoint has pushed down

R == INSTANCE RingMemory WITH Pages <- PageIds, Contents <- {}
T == INSTANCE MappingTable WITH Pages <- PageIds, Pointers <- 0..(Capacity - 1)

ringVars == <<head, claimed, secondChance, tail, block, freeList>>
bufferVars == <<ringVars, word, work, pushed>>
allVars == <<vars, bufferVars>>

(* "none", or: a block is to be filled ("copy"), or the "old" one to be    *)
(* freed; the ring was "full"; a "victim" was claimed; the head is to move *)
(* over it ("finish").                                                     *)
Rest == [at |-> "none", page |-> None, new |-> None, old |-> None, cools |-> FALSE,
         victim |-> None]

InitBf ==
    /\ Init
    /\ R!MemoryInit
    /\ T!TableInit
    /\ work = [c \in Clients |-> Rest]
    /\ pushed = {}

-----------------------------------------------------------------------------
(* Mini-pages.                                                             *)

Home(c) == HomeIn(page, call[c].key)

MiniIn(contents) ==
    [size |-> contents.size, mirror |-> FALSE, rec |-> contents.rec.rec]

MiniOf(p) == IF T!At(p) = None THEN M!NoMini ELSE MiniIn(block[T!At(p)])

IsDirty(p) == T!At(p) # None /\ block[T!At(p)].dirty

NoRecords == M!NoMini.rec

AnyDirty(rec) == \E k \in Keys : M!IsDirty(rec[k])

HasRecord(c)   == MiniOf(Home(c)).rec[call[c].key].kind # "none"
HasRoom(c)     == HasRecord(c) \/ M!HasRoom(MiniOf(Home(c)))
NearHead(p)    == T!At(p) # None /\ R!InSecondChance(T!At(p))

(* Redo has no mini-pages: it repeats changes one by one on the leaf.  So  *)
(* a change is logged only if the leaf has room for it and for all that is *)
(* in the mini-page already.  The paper leaves it to the merge to find     *)
(* that there is no room (§5.5; FINDINGS.md, BfTree 1).                    *)
(* engine/src/mini/mod.rs, `MiniRef::leaf`.                                *)
SplitsInMerge == {"as-published-split-first", "split-logs-merged"}

Fits(c) ==
    LET p == Home(c)
        all == [M!Merged(MiniOf(p), page[p].values) EXCEPT ![call[c].key] = call[c].value]
    IN \/ M!Count(all) <= LeafCapacity
       \/ call[c].value = Absent
       \/ Bug \in SplitsInMerge

-----------------------------------------------------------------------------
(* Merging.  The leaf gets the LSN of the newest change, which says that   *)
(* it has all of them.  So all dirty records are merged, or none.          *)
(* trees/bf/merge.rs, BfTree::merge_into.                                  *)

(* The first record alone.                                                 *)
FirstOf(rec) ==
    [k \in Keys |-> IF \A j \in Keys : M!IsDirty(rec[j]) => k <= j THEN rec[k] ELSE M!NoRecord]

Merging(p) ==
    IF Bug = "merges-some" THEN [MiniOf(p) EXCEPT !.rec = FirstOf(@)] ELSE MiniOf(p)

(* The records that stay, if the mini-page does.                           *)
LeftClean(p) ==
    [k \in Keys |-> IF Merging(p).rec[k].kind # "none" THEN M!Cleaned(Merging(p).rec[k])
                    ELSE MiniOf(p).rec[k]]

(* The mini-page does not say when its first change was made.  It was not  *)
(* before the log that is kept.                                            *)
DirtiedBy(p) ==
    [dirtied EXCEPT ![p] =
        IF @ # 0 THEN @
        ELSE IF Bug = "dirty-since-newest" THEN block[T!At(p)].rec.lsn ELSE oldest + 1]

(* The leaf in memory gets the records, if the mini-page is dirty.         *)
Merge(p, mini) ==
    IF IsDirty(p)
    THEN /\ ~poisoned
         /\ M!Fits(mini, page[p].values)
         /\ page' = [page EXCEPT ![p].values = M!Merged(mini, @),
                                 ![p].lsn = block[T!At(p)].rec.lsn]
         /\ dirtied' = DirtiedBy(p)
    ELSE UNCHANGED pageVars

LogLeft == <<clientVars, logVars, recoveryVars, deviceVars, observerVars>>

-----------------------------------------------------------------------------
(* Reads and writes.                                                       *)

(* The mini-page over the leaf.  §5.1.                                     *)
ReadTree(c) ==
    /\ phase = "up"
    /\ call[c].op = "get" /\ call[c].got = Pending
    /\ T!CanShare(Home(c))
    /\ call' = [call EXCEPT ![c].got =
                   M!Says(MiniOf(Home(c)), page[Home(c)].values, call[c].key)]
    /\ UNCHANGED <<asked, logVars, pageVars, recoveryVars, deviceVars, observerVars, bufferVars>>

(* A write that has not begun, and whose page is free.                     *)
Wants(c) ==
    /\ phase = "up"
    /\ Writes(c, "called")
    /\ ~poisoned
    /\ work[c].at = "none"
    /\ T!CanLock(Home(c))

(* The mini-page has room, and the leaf: log it, under the page's lock.    *)
Log(c) ==
    /\ Wants(c)
    /\ HasRoom(c) /\ ~NearHead(Home(c)) /\ Fits(c)
    /\ AppendLog(c)
    /\ T!Lock(c, Home(c))
    /\ UNCHANGED <<ringVars, work, pushed>>

(* ... then change the mini-page.  §5.2, §5.4.                             *)
ChangeMini(c) ==
    /\ Writes(c, "logged")
    /\ AwaitFlush(c)
    /\ LET k == call[c].key
           rec == M!Written(call[c].value, HasRecord(c))
       IN block' = [block EXCEPT ![T!At(Home(c))].rec.rec[k] = rec,
                                 ![T!At(Home(c))].rec.lsn = call[c].lsn,
                                 ![T!At(Home(c))].dirty = TRUE]
    /\ T!Unlock(c, Home(c))
    /\ UNCHANGED <<asked, logVars, pageVars, recoveryVars, deviceVars, observerVars>>
    /\ UNCHANGED <<head, claimed, secondChance, tail, freeList, work, pushed>>

(* The largest mini-page is full, or the leaf has no room: it is merged    *)
(* first, and begins again empty.  §5.5; merge_and_reshape.                *)
MergeForRoom(c) ==
    /\ Wants(c)
    /\ LET p == Home(c)
           m == MiniOf(p)
       IN /\ \/ ~HasRoom(c) /\ m.size > 0 /\ ~M!CanGrow(m)
             \/ ~Fits(c) /\ IsDirty(p)
          /\ ~(Bug = "divides-dirty" /\ ~Fits(c))
          /\ Merge(p, m)
          /\ block' = [block EXCEPT ![T!At(p)].rec.rec = NoRecords, ![T!At(p)].dirty = FALSE]
    /\ UNCHANGED <<LogLeft, head, claimed, secondChance, tail, freeList, word, work, pushed>>

-----------------------------------------------------------------------------
(* Leaf split: one step, under the latches of both leaves.                 *)

LogHasRoom == BlockOf(End) < BlockOf(oldest) + RingBlocks

FreePage == CHOOSE q \in PageIds : ~IsUsed(page[q]) /\ \A r \in PageIds : ~IsUsed(page[r]) => q <= r

(* Page p is split at key s.  `values` are the records that the two leaves *)
(* have afterwards; the log record has those of `logged` that move.        *)
SplitAt(p, s, values, logged) ==
    LET q == FreePage
        n == End + 1
        leaf == page[p]
    IN /\ buffer' = Append(buffer, SplitRecord(p, s, q, leaf.high, logged))
       /\ page' = [page EXCEPT ![p] = Leaf(leaf.low, s, M!Below(values, s, Absent), n),
                               ![q] = Leaf(s, leaf.high, M!NotBelow(values, s, Absent), n)]
       /\ dirtied' = [r \in PageIds |->
                         IF r \in {p, q} /\ dirtied[r] = 0 THEN n ELSE dirtied[r]]

SplitKeys(p, keys) ==
    {s \in (page[p].low + 1)..(page[p].high - 1) : \E i, j \in keys : i < s /\ s <= j}

(* The leaf has no room for the change.  The mini-page is clean (or was    *)
(* merged: MergeForRoom), so the leaf may get a newer LSN.  Of the         *)
(* mini-page the right half is dropped.  merge_or_split.                   *)
Split(c) ==
    /\ Wants(c)
    /\ ~Fits(c) /\ LogHasRoom
    /\ LET p == Home(c)
       IN /\ ~IsDirty(p) \/ Bug = "divides-dirty"
          /\ \E s \in SplitKeys(p, M!KeysOf(page[p].values) \cup M!RecordsOf(MiniOf(p))
                                   \cup {call[c].key}) :
                /\ ~AnyDirty(M!NotBelow(MiniOf(p).rec, s, M!NoRecord))
                /\ SplitAt(p, s, page[p].values, page[p].values)
                /\ block' = IF T!At(p) = None THEN block
                            ELSE [block EXCEPT ![T!At(p)].rec.rec = M!Below(@, s, M!NoRecord)]
    /\ UNCHANGED <<clientVars, durable, flushing, epoch, oldest, poisoned, recoveryVars>>
    /\ UNCHANGED <<deviceVars, observerVars>>
    /\ UNCHANGED <<head, claimed, secondChance, tail, freeList, word, work, pushed>>

(* "If the leaf page does not have enough space, we first split the leaf   *)
(* page and then insert the records of the mini-page into the              *)
(* corresponding leaf pages" (§5.5).  The log has the split of the leaf,   *)
(* or, in another attempt, that of leaf and mini-page together.            *)
SplitFirst(p) ==
    /\ ~poisoned /\ LogHasRoom
    /\ LET merged == M!Merged(MiniOf(p), page[p].values)
       IN /\ M!Count(merged) > LeafCapacity
          /\ \E s \in SplitKeys(p, M!KeysOf(merged)) :
                SplitAt(p, s, merged, IF Bug = "split-logs-merged" THEN merged ELSE page[p].values)
    /\ block' = [block EXCEPT ![T!At(p)].rec.rec = NoRecords, ![T!At(p)].dirty = FALSE]
=============================================================================
