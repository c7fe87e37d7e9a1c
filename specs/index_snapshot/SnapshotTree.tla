---------------------------- MODULE SnapshotTree ----------------------------
(***************************************************************************)
(* How clients find, change and scan leaves while these are split and      *)
(* merged, and how leaves are written and their slots freed.               *)
(*                                                                         *)
(*   AppendSplit:  latch the leaf, take a slot, log what moves             *)
(*   ChangeLeaves: both leaves                                             *)
(*   UpdateIndex:  the new fence; then the latches are released            *)
(*                                                                         *)
(* A merge likewise, and its right page is retired.  So whoever has latched*)
(* a leaf finds the index as that leaf says; whoever has descended and not *)
(* yet latched it must look again.                                         *)
(*                                                                         *)
(* engine/src/trees/btree/{mod,smo,merge,contention}.rs, engine/src/rows.rs*)
(***************************************************************************)
EXTENDS SnapshotState

(* Bounds, for the wrapper.                                                *)
MayGet(c, k)      == TRUE
MayScan(c, back)  == TRUE
MayWrite(c, k, v) == TRUE
MaySplit(fence)   == TRUE
MayMerge          == TRUE
MayTake(s)        == TRUE
MayLose(n)        == FALSE

Serving == phase = "up"

Take(s) == s \in free /\ MayTake(s)

-----------------------------------------------------------------------------
(* Clients.                                                                *)

CallGet(c) ==
    /\ Serving /\ ~Waits(c)
    /\ \E k \in Keys : MayGet(c, k) /\ call' = [call EXCEPT ![c] = GetCall(k)]
    /\ UNCHANGED <<logVars, leafVars, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

CallScan(c) ==
    /\ Serving /\ ~Waits(c)
    /\ \E back \in BOOLEAN :
          MayScan(c, back) /\ call' = [call EXCEPT ![c] = ScanCall(back)]
    /\ UNCHANGED <<logVars, leafVars, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

CallWrite(c) ==
    /\ Serving /\ ~Waits(c)
    /\ \E k \in Keys, v \in {NextValue, Absent} \cap Contents :
          MayWrite(c, k, v) /\ call' = [call EXCEPT ![c] = WriteCall(k, v)]
    /\ UNCHANGED <<logVars, leafVars, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

(* What a call still has to look for.                                      *)
LooksUp(c) ==
    /\ Serving
    /\ CASE call[c].op = "get"   -> call[c].got = Pending
         [] call[c].op = "write" -> call[c].lsn = 0
         [] call[c].op = "scan"  -> call[c].at # IF call[c].back THEN Least ELSE Top
         [] OTHER                -> FALSE

IsBack(c) == call[c].op = "scan" /\ call[c].back

(* The fence that a descent leads to.  A scan that goes down looks for the *)
(* greatest fence below its bound.  engine/src/index, Index::before.       *)
Aim(c) ==
    CASE IsBack(c)           -> FenceBefore(index, call[c].at)
      [] call[c].op = "scan" -> FenceOf(index, call[c].at)
      [] OTHER               -> FenceOf(index, call[c].key)

(* Without latches.                                                        *)
Descend(c) ==
    /\ LooksUp(c)
    /\ call[c].page = NoSlot
    /\ call' = [call EXCEPT ![c] =
           IF IsBack(c) THEN [@ EXCEPT !.page = index[Aim(c)], !.fence = Aim(c)]
           ELSE [@ EXCEPT !.page = index[Aim(c)]]]
    /\ UNCHANGED <<logVars, leafVars, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

Latched(p) ==
    /\ change.at # "none" /\ p \in {change.page, change.right}
    /\ change.at = "changed" => Bug # "unlatches-early"

(* The leaf that a descent has led to, if it can be latched.               *)
Reached(c) == LooksUp(c) /\ call[c].page # NoSlot /\ ~Latched(call[c].page)

TheLeaf(c) == page[call[c].page]

(* Whether, under its latch, it is the one that was looked for.  Upwards,  *)
(* its own fences say so.  Downwards they cannot, for a bound that no leaf *)
(* has as its fence any more; so the index is asked again.                 *)
(* BTree::leaf, BTree::scan_back.                                          *)
IsTheLeaf(c) ==
    /\ TheLeaf(c) # Gone
    /\ IF IsBack(c)
       THEN Bug = "back-trusts-index" \/ (call[c].fence = Aim(c) /\ call[c].page = index[Aim(c)])
       ELSE \/ Bug = "trusts-index"
            \/ Covers(TheLeaf(c), IF call[c].op = "scan" THEN call[c].at ELSE call[c].key)

DescendAgain(c) ==
    /\ Reached(c)
    /\ ~IsTheLeaf(c)
    /\ call' = [call EXCEPT ![c] =
           IF @.op = "scan" THEN [@ EXCEPT !.page = NoSlot, !.fence = 0]
           ELSE [@ EXCEPT !.page = NoSlot]]
    /\ UNCHANGED <<logVars, leafVars, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

ReadLeaf(c) ==
    /\ Reached(c) /\ IsTheLeaf(c)
    /\ call[c].op = "get"
    /\ call' = [call EXCEPT ![c].got = TheLeaf(c).map[call[c].key], ![c].page = NoSlot]
    /\ UNCHANGED <<logVars, leafVars, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

(* A scan copies the records of a leaf under its latch.  It may end in the *)
(* middle: a range fetches some dozens of records, and goes on behind the  *)
(* last one.  Keys from `low` to below `high` have been seen then.         *)
(* engine/src/rows.rs, engine/src/range.rs.                                *)
Copied(c, low, high) ==
    [k \in Keys |-> IF low <= k /\ k < high THEN TheLeaf(c).map[k] ELSE call[c].got[k]]

CopyLeaf(c) ==
    /\ Reached(c) /\ IsTheLeaf(c)
    /\ call[c].op = "scan" /\ ~call[c].back
    /\ LET at     == call[c].at
           behind == {k + 1 : k \in {j \in Keys : j >= at /\ TheLeaf(c).map[j] # Absent}}
           end    == IF Bug = "skips-fence" /\ TheLeaf(c).upper # Top
                     THEN TheLeaf(c).upper + 1 ELSE TheLeaf(c).upper
       IN \E high \in behind \cup {end} :
             call' = [call EXCEPT ![c].got = Copied(c, at, high), ![c].at = high,
                                  ![c].page = NoSlot]
    /\ UNCHANGED <<logVars, leafVars, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

CopyBack(c) ==
    /\ Reached(c) /\ IsTheLeaf(c)
    /\ IsBack(c)
    /\ LET at    == call[c].at
           below == {k \in Keys : k >= call[c].fence /\ k < at /\ TheLeaf(c).map[k] # Absent}
       IN \E low \in below \cup {call[c].fence} :
             call' = [call EXCEPT ![c].got = Copied(c, low, at), ![c].at = low,
                                  ![c].page = NoSlot, ![c].fence = 0]
    /\ UNCHANGED <<logVars, leafVars, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

(* Get and scan return.                                                    *)
Answer(c) ==
    /\ Serving
    /\ \/ call[c].op = "get" /\ call[c].got # Pending
       \/ call[c].op = "scan" /\ ~LooksUp(c)
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<logVars, leafVars, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

(* Log record and leaf in one step, under the latch.  A leaf without room  *)
(* must be split first.                                                    *)
ChangeLeaf(c) ==
    /\ Reached(c) /\ IsTheLeaf(c)
    /\ call[c].op = "write"
    /\ LET p == call[c].page
           k == call[c].key
           v == call[c].value
       IN /\ HasRoomFor(page[p], k, v)
          /\ log' = Append(log, Put(p, k, v))
          /\ page' = [page EXCEPT ![p].map[k] = v, ![p].lsn = Len(log) + 1]
    /\ call' = [call EXCEPT ![c].lsn = Len(log) + 1, ![c].page = NoSlot]
    /\ UNCHANGED <<durable, oldest, version, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

Acknowledge(c) ==
    /\ Serving
    /\ call[c].op = "write" /\ call[c].lsn # 0
    /\ call[c].lsn <= durable \/ Bug = "acks-at-once"
    /\ call' = [call EXCEPT ![c] = Idle]
    /\ UNCHANGED <<logVars, leafVars, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

(* The log's flush, up to any record.  It also flushes the device, and so  *)
(* do others.  That only leaves less to a crash, so it is left out.        *)
CommitLog ==
    /\ Serving
    /\ \E n \in (durable + 1)..Len(log) : durable' = n
    /\ UNCHANGED <<call, log, oldest, leafVars, index, spaceVars, change, checkpoint, deviceVars>>
    /\ UNCHANGED <<recoveryVars, losses>>

-----------------------------------------------------------------------------
(* Splits and merges.                                                      *)

Begun(is, p, right) ==
    [at |-> "logged", is |-> is, page |-> p, right |-> right, lsn |-> Len(log) + 1]

(* A leaf may be split at any key, full or not: where writers wait for it, *)
(* it is split between the keys that they write (B-Trees Are Back §7.3).   *)
(* BTree::divide_at.                                                       *)
AppendSplit(p) ==
    /\ Serving /\ change = NoChange
    /\ p \in InIndex(index)
    /\ \E fence \in Keys, s \in Slots :
          /\ page[p].lower < fence /\ fence < page[p].upper
          /\ MaySplit(fence)
          /\ Take(s)
          /\ log' = Append(log, Split(p, s, fence))
          /\ free' = free \ {s}
          /\ change' = Begun("split", p, s)
    /\ UNCHANGED <<call, durable, oldest, leafVars, index, retired, chain, super, checkpoint>>
    /\ UNCHANGED <<deviceVars, recoveryVars, losses>>

(* A leaf absorbs its right neighbour, if both fit one page.  When that is *)
(* worth it is left open.  BTree::merge_right.                             *)
AppendMerge(p) ==
    /\ Serving /\ change = NoChange
    /\ p \in InIndex(index)
    /\ MayMerge
    /\ page[p].upper # Top
    /\ LET right == Find(index, page[p].upper)
       IN /\ Size(page[p].map) + Size(page[right].map) <= Room
          /\ log' = Append(log, Merge(p, right))
          /\ change' = Begun("merge", p, right)
    /\ UNCHANGED <<call, durable, oldest, leafVars, index, spaceVars, checkpoint>>
    /\ UNCHANGED <<deviceVars, recoveryVars, losses>>

ChangeLeaves ==
    /\ Serving /\ change.at = "logged"
    /\ LET record == log[change.lsn]
           left   == Applied(page[change.page], record, change.lsn)
       IN page' = IF change.is = "split"
                  THEN [page EXCEPT ![change.page] = left,
                                    ![change.right] = Built(record, change.lsn)]
                  ELSE [page EXCEPT ![change.page] = left]
    /\ change' = [change EXCEPT !.at = "changed"]
    /\ UNCHANGED <<call, logVars, version, index, spaceVars, checkpoint>>
    /\ UNCHANGED <<deviceVars, recoveryVars, losses>>

(* Of a merge, the right page is gone for everybody.  A crash brings it    *)
(* back until the record is durable.                                       *)
UpdateIndex ==
    /\ Serving /\ change.at = "changed"
    /\ LET fence == log[change.lsn].key
           right == change.right
       IN IF change.is = "split"
          THEN /\ index' = [index EXCEPT ![fence] = right]
               /\ UNCHANGED <<page, retired>>
          ELSE /\ index' = [index EXCEPT ![fence] = NoSlot]
               /\ page' = [page EXCEPT ![right] = Gone]
               /\ retired' = retired \cup {[page |-> right, lsn |-> change.lsn]}
    /\ change' = NoChange
    /\ UNCHANGED <<call, logVars, version, free, chain, super, checkpoint>>
    /\ UNCHANGED <<deviceVars, recoveryVars, losses>>

-----------------------------------------------------------------------------
(* Pages on the device.                                                    *)

IsDirty(p) == page[p] # Gone /\ page[p].lsn # version[p]

(* A page is written at any time, but not before its log record.  A drive  *)
(* may report a write as done and lose it; then only the version, which is *)
(* kept apart from the page, can tell.  engine/src/pager/write_back.rs.    *)
WritePage(p) ==
    /\ phase # "damaged"
    /\ IsDirty(p) /\ ~Latched(p)
    /\ page[p].lsn <= durable \/ Bug = "page-before-log"
    /\ \/ /\ slotDev' = [slotDev EXCEPT ![p] = Append(@, Image(page[p]))]
          /\ losses' = losses
       \/ /\ MayLose(losses)
          /\ slotDev' = slotDev
          /\ losses' = losses + 1
    /\ version' = [version EXCEPT ![p] = page[p].lsn]
    /\ UNCHANGED <<call, logVars, page, index, spaceVars, change, checkpoint, superDev>>
    /\ UNCHANGED recoveryVars

(* The slots with these trimmed: a trim is a write of zeros, or nothing.   *)
Trimmed(places, slots) ==
    [s \in Slots |-> IF Trims /\ s \in slots THEN Append(places[s], Zeros) ELSE places[s]]

(* The slot of a page that was merged away is free once no crash can bring *)
(* the page back.  Pager::free_retired.                                    *)
FreePage(p) ==
    /\ Serving
    /\ \E r \in retired :
          /\ r.page = p
          /\ r.lsn <= durable \/ Bug = "frees-at-once"
          /\ retired' = retired \ {r}
    /\ slotDev' = Trimmed(slotDev, {p})
    /\ version' = [version EXCEPT ![p] = 0]
    /\ free' = free \cup {p}
    /\ UNCHANGED <<call, logVars, page, index, chain, super, change, checkpoint, superDev>>
    /\ UNCHANGED <<recoveryVars, losses>>
=============================================================================
