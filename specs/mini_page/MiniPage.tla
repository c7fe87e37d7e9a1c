------------------------------ MODULE MiniPage ------------------------------
(***************************************************************************)
(* What gets, puts, deletes and scans do with mini-pages, and what evicts  *)
(* them (Bf-Tree, sections 3.1 and 5.1-5.6).                               *)
(*                                                                         *)
(*   MiniRecords   records, pages, merging: functions of values            *)
(*   MiniTree      state, calls, descent, leaf split, leaf merge           *)
(*   MiniPage      this module: operations on a page, invariants, Spec     *)
(*                                                                         *)
(* Everything that happens under one page's lock and touches nothing else  *)
(* is one step: nobody can see it half done.  The lock is held over        *)
(* several steps if something else is involved: a second lock, the inner   *)
(* node, or a decision that needs the lock upgraded.                       *)
(***************************************************************************)
EXTENDS MiniTree

Key(c)  == call[c].key
Page(c) == at[c]
MiniOfClient(c) == mini[at[c]]

-----------------------------------------------------------------------------
(* Get (section 5.1, listing 1), with the page locked for reading.         *)

Answer(c, v) ==
    /\ call' = [call EXCEPT ![c].got = v]
    /\ honest' = (honest /\ v = store[Key(c)])

MiniAnswers(c) ==
    LET m == MiniOfClient(c)
    IN /\ Hits(m, Key(c))
       /\ ~(Bug = "tombstone-read-through" /\ m.rec[Key(c)].kind = "tombstone")

Touched(m, keys) ==
    [m EXCEPT !.rec = [k \in Keys |-> IF k \in keys /\ @[k].kind # "none"
                                      THEN [@[k] EXCEPT !.hot = TRUE] ELSE @[k]]]

(* The mini-page knows the answer: the leaf is not read.                   *)
ReadMini(c) ==
    /\ step[c] = "get"
    /\ MiniAnswers(c)
    /\ Answer(c, Says(MiniOfClient(c), leaf[Page(c)], Key(c)))
    /\ mini' = [mini EXCEPT ![Page(c)] = Touched(@, {Key(c)})]
    /\ Leave(c, "answered")
    /\ UNCHANGED <<inner, innerLock, low, high, leaf, right, outdated, store>>

(* It does not: read the leaf.  The lock is kept until it is decided       *)
(* whether the record gets into the mini-page.  Listing 1 says nothing     *)
(* about locks; releasing the page in between loses writes (finding 5).    *)
ReadLeaf(c) ==
    /\ step[c] = "get"
    /\ ~MiniAnswers(c)
    /\ Answer(c, leaf[Page(c)][Key(c)])
    /\ Go(c, "loaded")
    /\ lock' = IF Bug = "as-published-late-promotion" THEN Released(c, Page(c)) ELSE lock
    /\ UNCHANGED <<inner, innerLock, treeVars, at, right, outdated, store>>

(* Usually the record is not promoted.                                     *)
Decline(c) ==
    /\ step[c] = "loaded"
    /\ Leave(c, "answered")
    /\ UNCHANGED <<inner, innerLock, treeVars, call, right, outdated, ghosts>>

(* With a small probability it is, if there is room or room can be made,   *)
(* and if the lock can be upgraded for writing at once.                    *)
Upgrade(c) ==
    /\ step[c] = "loaded"
    /\ HasRoom(MiniOfClient(c)) \/ CanGrow(MiniOfClient(c))
    /\ lock[Page(c)].writer = Nobody
    /\ \/ lock[Page(c)].readers \subseteq {c}
       \/ Bug = "upgrade-among-readers"
    /\ lock' = [lock EXCEPT ![Page(c)] = [writer |-> c, readers |-> @.readers \ {c}]]
    /\ Go(c, "promote")
    /\ UNCHANGED <<inner, innerLock, treeVars, call, at, right, outdated, ghosts>>

Promote(c) ==
    /\ step[c] = "promote"
    /\ HasRoom(MiniOfClient(c)) \/ Hits(MiniOfClient(c), Key(c))
    /\ mini' = [mini EXCEPT ![Page(c)].rec[Key(c)] = Cached(call[c].got, FALSE)]
    /\ Leave(c, "answered")
    /\ UNCHANGED <<inner, innerLock, low, high, leaf, call, right, outdated, ghosts>>

-----------------------------------------------------------------------------
(* Put and delete (sections 5.2, 5.4, listing 2), with the page locked for *)
(* writing.  A delete writes a tombstone, whether or not the key exists.   *)

HasRecord(c) == MiniOfClient(c).rec[Key(c)].kind # "none"

(* Here the write takes effect.                                            *)
WriteRecord(c) ==
    /\ step[c] = "write"
    /\ HasRecord(c) \/ HasRoom(MiniOfClient(c))
    /\ LET p == Page(c)  k == Key(c)  v == call[c].value
           bypass == Bug = "mirror-bypassed" /\ mini[p].mirror
       IN /\ mini' = IF bypass THEN mini
                     ELSE [mini EXCEPT ![p].rec[k] = Written(v, HasRecord(c))]
          /\ leaf' = IF bypass THEN [leaf EXCEPT ![p][k] = v] ELSE leaf
          /\ store' = [store EXCEPT ![k] = v]
    /\ Leave(c, "answered")
    /\ UNCHANGED <<inner, innerLock, low, high, call, right, outdated, honest>>

(* Create a mini-page of the smallest size, or grow to the next size. A    *)
(* promotion also grows it.                                                *)
Grow(c) ==
    /\ step[c] \in {"write", "promote"}
    /\ ~HasRecord(c) /\ ~HasRoom(MiniOfClient(c))
    /\ CanGrow(MiniOfClient(c))
    /\ mini' = [mini EXCEPT ![Page(c)].size = NextSize(MiniOfClient(c))]
    /\ UNCHANGED <<inner, innerLock, lock, low, high, leaf, call, step, at, right, outdated, ghosts>>

(* The mini-page is full and has the largest size: merge it, and keep it   *)
(* as a mirror of the leaf page.  If the leaf page has no room for that,   *)
(* it is split (LockInner).                                                *)
MergeToMirror(c) ==
    /\ step[c] = "write"
    /\ LET p == Page(c)  m == mini[p]
       IN /\ ~HasRecord(c) /\ ~HasRoom(m) /\ ~m.mirror /\ ~CanGrow(m)
          /\ Fits(m, leaf[p])
          /\ leaf' = [leaf EXCEPT ![p] = Merged(m, @)]
          /\ mini' = [mini EXCEPT ![p] = MirrorOf(m, Merged(m, leaf[p]))]
    /\ UNCHANGED <<inner, innerLock, lock, low, high, call, step, at, right, outdated, ghosts>>

(* A full mirror is evicted, and if that leaves the leaf page full, split. *)
EvictMirror(c) ==
    /\ step[c] = "write"
    /\ LET p == Page(c)  m == mini[p]
       IN /\ ~HasRecord(c) /\ ~HasRoom(m) /\ m.mirror
          /\ leaf' = [leaf EXCEPT ![p] = Merged(m, @)]
          /\ mini' = [mini EXCEPT ![p] = NoMini]
          /\ Go(c, IF Count(Merged(m, leaf[p])) = LeafCapacity THEN "full" ELSE "write")
    /\ UNCHANGED <<inner, innerLock, lock, low, high, call, at, right, outdated, ghosts>>

-----------------------------------------------------------------------------
(* Range scan (section 5.3), page by page.  A page is read under its lock, *)
(* the mini-page over the leaf, starting at the scan's position. The high  *)
(* fence key says where it continues: by a new descent, since the          *)
(* neighbour may have been split, joined or freed meanwhile.               *)

Row(c, k) ==
    LET p == Page(c)
    IN <<k, IF Bug = "scan-reads-leaf" /\ ~mini[p].mirror THEN leaf[p][k]
            ELSE Says(mini[p], leaf[p], k)>>

IsThere(row) == row[2] # Absent

ScanPage(c) ==
    /\ step[c] = "scan"
    /\ LET p     == Page(c)
           from  == IF Bug = "scan-from-low-fence" THEN low[p] ELSE call[c].cursor
           read  == [i \in 1..high[p] - from |-> Row(c, from + i - 1)]
       IN /\ call' = [call EXCEPT ![c] =
                         [@ EXCEPT !.cursor = high[p],
                                   !.rows = @ \o SelectSeq(read, IsThere)]]
          /\ honest' = (honest /\ \A i \in DOMAIN read : read[i][2] = store[read[i][1]])
          /\ mini' = [mini EXCEPT ![p] = Touched(@, from..high[p] - 1)]
          /\ Leave(c, IF high[p] > MaxKey THEN "answered" ELSE "descend")
    /\ UNCHANGED <<inner, innerLock, low, high, leaf, right, outdated, store>>

(* A mini-page that is scanned often becomes a mirror, so that the next    *)
(* scan need not read the leaf.                                            *)
GrowToMirror(c) ==
    /\ step[c] = "scan"
    /\ LET p == Page(c)  m == mini[p]
       IN /\ lock[p].readers = {c} \/ Bug = "scan-writes-among-readers"
          /\ ~m.mirror /\ Fits(m, leaf[p])
          /\ leaf' = [leaf EXCEPT ![p] = Merged(m, @)]
          /\ mini' = [mini EXCEPT ![p] = MirrorOf(m, Merged(m, leaf[p]))]
    /\ UNCHANGED <<inner, innerLock, lock, low, high, call, step, at, right, outdated, ghosts>>

-----------------------------------------------------------------------------
(* What the circular buffer requests (section 5.5): a cold mini-page is    *)
(* merged and discarded; one that is accessed in the second-chance region  *)
(* is copied to the tail without its cold records.  Whoever does it holds  *)
(* the page's lock, for this step only.                                    *)

EvictMini(p) ==
    /\ Free(p)
    /\ mini[p].size > 0 /\ Fits(mini[p], leaf[p])
    /\ leaf' = [leaf EXCEPT ![p] = Merged(mini[p], @)]
    /\ mini' = [mini EXCEPT ![p] = NoMini]
    /\ UNCHANGED <<inner, innerLock, lock, low, high, call, step, at, right, outdated, ghosts>>

CopyToTail(p) ==
    /\ Free(p)
    /\ RecordsOf(mini[p]) # {}
    /\ MustMerge(mini[p]) => Fits(mini[p], leaf[p])
    /\ leaf' = [leaf EXCEPT ![p] = ImageAfterCooling(mini[p], @)]
    /\ mini' = [mini EXCEPT ![p] = MiniAfterCooling(@)]
    /\ UNCHANGED <<inner, innerLock, lock, low, high, call, step, at, right, outdated, ghosts>>

(* Either of the two finds that the leaf has no room for the merge.        *)
FindLeafFull(c, p) ==
    /\ step[c] = "idle" /\ MayKeepHouse(c)
    /\ Free(p)
    /\ ~Fits(mini[p], leaf[p])
    /\ lock' = LockedFor(c, p)
    /\ at' = [at EXCEPT ![c] = p]
    /\ Go(c, "full")
    /\ UNCHANGED <<inner, innerLock, treeVars, call, right, outdated, ghosts>>

-----------------------------------------------------------------------------
Next ==
    \/ \E c \in Clients :
          \/ CallGet(c) \/ CallPut(c) \/ CallDelete(c) \/ CallScan(c) \/ Return(c)
          \/ ReadVersion(c) \/ ReadChild(c) \/ LockPage(c) \/ Restart(c)
          \/ ReadMini(c) \/ ReadLeaf(c) \/ Decline(c) \/ Upgrade(c) \/ Promote(c)
          \/ WriteRecord(c) \/ Grow(c) \/ MergeToMirror(c) \/ EvictMirror(c)
          \/ ScanPage(c) \/ GrowToMirror(c)
          \/ LockInner(c) \/ AllocateRight(c) \/ ShortenLeft(c) \/ InsertSeparator(c)
          \/ LockRight(c) \/ LockInnerToJoin(c) \/ GiveUpJoin(c)
          \/ MoveRecords(c) \/ RemoveSeparator(c)
          \/ \E p \in Pages : LockLeft(c, p) \/ FindLeafFull(c, p)
    \/ \E p \in Pages : EvictMini(p) \/ CopyToTail(p)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* Invariants.  Pages in use, without duplicates: the right-hand page of a *)
(* split until the left one is cut, and that of a join once it is moved.   *)

Copies == {right[c] : c \in {d \in Clients : step[d] \in {"divided", "joined"}}}
Actual == {p \in Pages : high[p] # 0} \ Copies

Covers(p, k) == low[p] <= k /\ k < high[p]
Home(k)      == CHOOSE p \in Actual : Covers(p, k)

(* Fences partition the key space.                                         *)
PartitionInv == \A k \in Keys : Cardinality({p \in Actual : Covers(p, k)}) = 1

(* The inner node leads to the page whose fences enclose the key.          *)
RouteInv == innerLock = Nobody => \A k \in Keys : Covers(Child(k), k)

(* A writer has its page exclusively.                                      *)
LockInv == \A p \in Pages : lock[p].writer # Nobody => lock[p].readers = {}

(* A page is rewritten only by who holds it alone: no other reader sees it *)
(* half done.                                                              *)
Alone(p) == lock[p].writer # Nobody \/ Cardinality(lock[p].readers) <= 1

AloneProp ==
    [][\A p \in Pages :
          \/ leaf'[p] # leaf[p]
          \/ mini'[p].size # mini[p].size
          \/ mini'[p].mirror # mini[p].mirror
          => Alone(p)]_vars

(* A client works on the page that its key belongs to.                     *)
ArrivalInv ==
    \A c \in Clients : step[c] \in {"get", "write", "scan"} => Covers(at[c], Target(c))

(* Every record lies within its page's fences.                             *)
RecordInv ==
    \A p \in Pages, k \in Keys :
        leaf[p][k] # Absent \/ mini[p].rec[k].kind # "none" => Covers(p, k)

CapacityInv ==
    \A p \in Pages : Used(mini[p]) <= mini[p].size /\ Count(leaf[p]) <= LeafCapacity

(* A cache record equals the leaf's.                                       *)
CacheInv ==
    \A p \in Pages, k \in Keys :
        mini[p].rec[k].kind = "cache" => leaf[p][k] = mini[p].rec[k].value

(* A phantom's key is absent from the leaf.                                *)
PhantomInv ==
    \A p \in Pages, k \in Keys : mini[p].rec[k].kind = "phantom" => leaf[p][k] = Absent

(* A mirror knows all of its leaf.                                         *)
MirrorInv ==
    \A p \in Pages : mini[p].mirror => KeysOf(leaf[p]) \subseteq RecordsOf(mini[p])

(* No dirty record is lost: the pages together hold what was written.      *)
Map == [k \in Keys |-> Says(mini[Home(k)], leaf[Home(k)], k)]
NoLossInv == Map = store

(* A scan returns no key twice, and no key that it has not reached.        *)
ScanInv ==
    \A c \in Clients : call[c].op = "scan" =>
        LET rows == call[c].rows
        IN \A i \in 1..Len(rows) :
              rows[i][1] < IF i = Len(rows) THEN call[c].cursor ELSE rows[i + 1][1]

(* Every read returned what the map held at that instant.                  *)
AnswerInv == honest

(* No circular wait.  Only clients that hold something count.              *)
Holders(p) == lock[p].readers \cup ({lock[p].writer} \ {Nobody})

WaitsFor(c) ==
    CASE WantsSplit(c) \/ step[c] = (IF Bug = "inner-before-right" THEN "left" ELSE "both")
            -> {innerLock} \ {Nobody}
      [] step[c] = (IF Bug = "inner-before-right" THEN "inner first" ELSE "left")
            -> Holders(Child(high[at[c]]))
      [] OTHER -> {}

DeadlockInv ==
    \A S \in SUBSET Clients : S # {} => \E c \in S : WaitsFor(c) \cap S = {}

(* Who starts again reads the version again: nobody restarts for ever.     *)
OutdatedInv == outdated \subseteq OnTheWay

-----------------------------------------------------------------------------
(* Refinement.  Nothing crashes here: the map is the base, the tail empty. *)

Found(rows, k) ==
    IF \E i \in 1..Len(rows) : rows[i][1] = k
    THEN rows[CHOOSE i \in 1..Len(rows) : rows[i][1] = k][2] ELSE Absent

ContractCall(c) ==
    CASE call[c].op = "write" ->
            [op |-> "write", key |-> Key(c), value |-> call[c].value,
             done |-> step[c] = "answered"]
      [] call[c].op = "scan" ->
            [op |-> "scan", got |-> [k \in Keys |->
                IF k < call[c].cursor THEN Found(call[c].rows, k) ELSE Pending]]
      [] OTHER -> call[c]

Contract == INSTANCE DurableMap WITH
                base <- Map,
                tail <- <<>>,
                call <- [c \in Clients |-> ContractCall(c)],
                phase <- "up"

THEOREM Spec => Contract!Spec
THEOREM Spec => AloneProp
THEOREM Spec => [](TypeInv /\ PartitionInv /\ RouteInv /\ LockInv /\ ArrivalInv
                   /\ RecordInv /\ CapacityInv /\ CacheInv /\ PhantomInv /\ MirrorInv
                   /\ NoLossInv /\ ScanInv /\ AnswerInv /\ DeadlockInv /\ OutdatedInv)
=============================================================================
