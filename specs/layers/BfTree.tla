------------------------------- MODULE BfTree -------------------------------
(***************************************************************************)
(* The Bf-Tree as a whole: mini-pages (MiniPage) in the circular buffer    *)
(* (CircularBuffer) over leaf pages under a log (WalRecovery); Bf-Tree     *)
(* §3-§5.                                                                  *)
(*                                                                         *)
(*   a write:  log  ->  mini-page  ->  leaf in memory  ->  leaf on disk    *)
(*                  changed        merged            written back          *)
(*                                                                         *)
(*   BfLeaves   leaves as the log sees them                                *)
(*   BfMinis    mini-pages over them: reads, writes, merges, splits        *)
(*   BfRing     how mini-pages are made, moved and evicted                 *)
(*   BfTree     this module: checkpoints, ends, what must hold, contract   *)
(*                                                                         *)
(* The log, its flushes, checkpoints, crashes and recovery are the actions *)
(* of WalRecovery.  The ring's addresses, blocks and free lists are those  *)
(* of RingMemory, the mapping table is MappingTable, and a mini-page is    *)
(* merged and cooled by the functions of MiniRecords.  New here is what    *)
(* none of them has: which of these happen together, under which lock.     *)
(*                                                                         *)
(* What happens under a page's lock and touches nothing else is one step,  *)
(* as in MiniPage; CircularBuffer has the steps in between.  Left out, as  *)
(* checked there: readers that share a lock, records cached by gets,       *)
(* reference bits set by them, mirrors, scans, joins of leaves, several    *)
(* inner nodes and the optimistic way down.                                *)
(*                                                                         *)
(* engine/src/trees/bf.                                                    *)
(***************************************************************************)
EXTENDS BfRing

-----------------------------------------------------------------------------
(* Checkpoints push down what is buffered above the leaves, page by page,  *)
(* before the leaves are swept.  An operation in flight holds its page's   *)
(* lock; so when all pages were seen, all changes are in the leaves that   *)
(* were logged before the checkpoint began.  BfTree::push_down.            *)

NextToPush == CHOOSE p \in PageIds \ pushed : \A q \in PageIds \ pushed : p <= q

PushDown ==
    /\ phase = "up" /\ At("sweep")
    /\ pushed # PageIds
    /\ LET p == NextToPush
       IN /\ T!CanLock(p)
          /\ \/ /\ Merge(p, Merging(p))
                /\ block' = IF IsDirty(p)
                            THEN [block EXCEPT ![T!At(p)].rec.rec = LeftClean(p),
                                               ![T!At(p)].dirty = AnyDirty(LeftClean(p))]
                            ELSE block
                /\ UNCHANGED buffer
             \/ Bug \in SplitsInMerge /\ IsDirty(p) /\ SplitFirst(p)
          /\ pushed' = pushed \cup {p}
    /\ UNCHANGED <<clientVars, durable, flushing, epoch, oldest, poisoned, recoveryVars>>
    /\ UNCHANGED <<deviceVars, observerVars>>
    /\ UNCHANGED <<head, claimed, secondChance, tail, freeList, word, work>>

(* Only then are the pages swept and flushed.                              *)
FlushPushed ==
    /\ FlushPages
    /\ phase = "up" => pushed = PageIds \/ Bug = "checkpoint-skips-buffered"
    /\ pushed' = {}
    /\ UNCHANGED <<ringVars, word, work>>

-----------------------------------------------------------------------------
(* Ends.  The ring is memory.                                              *)

EmptyRing ==
    /\ head' = 0 /\ claimed' = 0 /\ secondChance' = 0 /\ tail' = 0
    /\ block' = [o \in R!Offsets |-> R!NoBlock]
    /\ freeList' = [s \in Sizes |-> {}]
    /\ word' = [p \in PageIds |-> T!Free(None)]
    /\ work' = [c \in Clients |-> Rest]
    /\ pushed' = {}

EndLife == (Crash \/ Restart) /\ EmptyRing

(* A client that is told about a failed flush stops making room.           *)
GiveUp(c) ==
    /\ work[c].at \in {"none", "full", "victim"}
    /\ ReportFailure(c)
    /\ Goto(c, Rest)
    /\ UNCHANGED <<ringVars, word, pushed>>

-----------------------------------------------------------------------------
(* The steps of WalRecovery that touch no mini-page.  A leaf is not        *)
(* latched between these steps.                                            *)
BfLatched(k) == FALSE

LogStep ==
    \/ \E c \in Clients :
          CallGet(c) \/ AnswerGet(c) \/ CallWrite(c) \/ FlushLog(c) \/ Acknowledge(c)
    \/ CompleteFlush \/ FailFlush
    \/ \E p \in PageIds : WriteBack(p) \/ Reload(p)
    \/ BeginCheckpoint \/ WriteSuperblock \/ FlushSuperblock \/ TruncateLog
    \/ LoadSuperblock \/ RedoRecord \/ FinishRedo \/ FinishRecovery

TreeStep(c) ==
    \/ ReadTree(c) \/ Log(c) \/ ChangeMini(c) \/ MergeForRoom(c) \/ Split(c) \/ GiveUp(c)
    \/ Allocate(c) \/ Full(c) \/ Publish(c) \/ FreeOld(c)
    \/ Claim(c) \/ Evict(c) \/ Finish(c)

NextBf ==
    \/ LogStep /\ UNCHANGED bufferVars
    \/ \E c \in Clients : TreeStep(c)
    \/ PushDown \/ FlushPushed
    \/ EndLife

SpecBf == InitBf /\ [][NextBf]_allVars

-----------------------------------------------------------------------------
(* What must hold, beside DurableInv, WalRuleInv, CleanInv, LogKeptInv,    *)
(* KeptInv, PrefixInv and StableInv of WalRecovery.                        *)

BfTypeInv ==
    /\ T!TableTypeInv
    /\ pushed \subseteq PageIds

(* Every key has one page.                                                 *)
PartitionInv ==
    phase = "up" => \A k \in Keys : Cardinality({p \in PageIds : Covers(page[p], k)}) = 1

(* No leaf is ever too full, also not in the middle of redo.               *)
RoomInv == ~Down => \A p \in PageIds : M!Count(page[p].values) <= LeafCapacity

(* Mini-pages and leaves hold all writes and nothing else.                 *)
TreeInv ==
    phase = "up" =>
        LET current == Apply(base, Tail_)
        IN \A k \in Keys :
              \/ \E c \in Clients : Writes(c, "logged") /\ call[c].key = k
              \/ LET p == HomeIn(page, k)
                 IN M!Says(MiniOf(p), page[p].values, k) = current[k]

(* The ring is in order.                                                   *)
RingInv == R!RegionsInv /\ R!NoOverlapInv /\ R!FreeListInv

(* A mapped page points to a live block of its own.                        *)
MappedInv ==
    \A p \in PageIds : T!At(p) # None =>
        block[T!At(p)].state = "ready" /\ block[T!At(p)].page = p

(* Clean mini-pages say what their leaves say.                             *)
CacheInv ==
    phase = "up" => \A p \in PageIds, k \in Keys :
        LET rec == MiniOf(p).rec[k]
        IN rec.kind # "none" /\ ~M!IsDirty(rec) => rec.value = page[p].values[k]

(* The client of a record that is not durable still waits (AckInv), unless *)
(* the record is that of a split.                                          *)
BfAckInv ==
    \A n \in (durable + 1)..End :
        \/ poisoned
        \/ IsSplit(Tail_[n - durable])
        \/ \E c \in Clients : call[c].op = "write" /\ call[c].lsn = n

(* Wherever redo may begin, every leaf that a crash may leave has all      *)
(* changes from before (RedoStartInv).                                     *)
BfRedoStartInv ==
    phase = "up" =>
        LET log == LiveLog
        IN \A super \in Survivors(superDev), p \in PageIds :
              \A image \in ImagesLeft(pageDev[p]), i \in 1..Len(log) :
                  ~ (p \in Concerns(log[i]) /\ image.lsn < oldest + i /\ oldest + i <= super.redo)

(* What the log must be able to assume of the tree: redo, from any image   *)
(* of a leaf that a crash may leave, or from the leaf in memory, makes     *)
(* what leaf and mini-page say together.                                   *)
RedoFrom(p, image) == RedoAll([page EXCEPT ![p] = image], LiveLog, oldest + 1)[p]

RedoInv ==
    phase = "up" =>
        \A p \in PageIds :
            \/ \E c \in Clients : Writes(c, "logged") /\ Home(c) = p
            \/ \A image \in ImagesLeft(pageDev[p]) \cup {page[p]} :
                  LET found == RedoFrom(p, image)
                  IN /\ found.values = M!Together(MiniOf(p), page[p].values)
                     /\ found.low = page[p].low /\ found.high = page[p].high

-----------------------------------------------------------------------------
(* The interfaces between the layers.                                      *)

(* What only a mini-page has, as long as there is no crash.                *)
HeldOf(k) ==
    LET rec == MiniOf(HomeIn(page, k)).rec[k]
    IN IF IsDirty(HomeIn(page, k)) /\ M!IsDirty(rec) THEN rec.value ELSE Pending

AsPlaces == INSTANCE MiniPlaces WITH
    Nothing <- Pending,
    there   <- [k \in Keys |-> T!At(HomeIn(page, k)) # None],
    held    <- [k \in Keys |-> HeldOf(k)],
    stored  <- [k \in Keys |-> page[HomeIn(page, k)].values[k]]

(* The record with LSN n, after `oldest`: in the buffer, or on the device. *)
(* (As LiveLog has it, without recursion.)                                 *)
RecordAt(n) ==
    IF n > BufferStart THEN buffer[n - BufferStart]
    ELSE Newest(logDev[Place(BlockOf(n - 1))]).records[n - BlockStart(n - 1)]

(* What the log has for a page, and the leaf in memory has not.            *)
Lacks(p) ==
    {n \in (oldest + 1)..End :
        phase = "up" /\ n > page[p].lsn /\ p \in Concerns(RecordAt(n))}

History == INSTANCE PageHistory WITH
    Pages <- PageIds,
    up    <- phase = "up",
    lsn   <- [p \in PageIds |-> page[p].lsn],
    lacks <- [p \in PageIds |-> Lacks(p)],
    redo  <- Newest(superDev).redo

-----------------------------------------------------------------------------
(* The contract: WalRecovery's, in which splits do not show.               *)

TailChanges ==
    SelectSeq([i \in 1..Len(Tail_) |-> [lsn |-> durable + i, record |-> Tail_[i]]],
              LAMBDA entry : ~IsSplit(entry.record))

BfTail ==
    [i \in 1..Len(TailChanges) |->
        [by |-> WriterOf(TailChanges[i].lsn), key |-> TailChanges[i].record.key,
         value |-> TailChanges[i].record.value]]

BfContract == INSTANCE DurableMap WITH
    tail <- BfTail, call <- AbstractCall, phase <- AbstractPhase

THEOREM SpecBf => BfContract!Spec /\ History!Spec
=============================================================================
