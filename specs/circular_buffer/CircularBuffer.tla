--------------------------- MODULE CircularBuffer ---------------------------
(***************************************************************************)
(* Bf-Tree's variable-length buffer pool (section 4 and "Copy mini-page to *)
(* tail" in 5.5): several threads, each working for one client, get, put   *)
(* and delete records in mini-pages that live in a circular buffer, and    *)
(* evict them to disk when it is full.                                     *)
(*                                                                         *)
(* The memory is RingMemory.tla, the mapping table with the page locks is  *)
(* MappingTable.tla, and here is what a thread does, step by step:         *)
(*                                                                         *)
(*   start -> look -------------------------------------------> done       *)
(*     ^       |    (in place)                                   ^         *)
(*     |       v                                                 |         *)
(*     |    allocate <-> popped -> copy -> publish -> free -> insert       *)
(*     |       | full                                                      *)
(*     |       v                                                           *)
(*     |    full -> victim <-> lock -> merge -> finish                     *)
(*     +--------------------------------------------+                      *)
(*                                                                         *)
(* What the model ignores: the tree above the leaves (who finds the page), *)
(* the disk's slowness and failures, the log; what is inside a mini-page   *)
(* (MiniPage.tla): here it holds one record, and how large it has to be is *)
(* chosen freely whenever it is written or copied; merging a mini-page     *)
(* that has become too large (it is the same writing to the leaf as in     *)
(* eviction).                                                              *)
(***************************************************************************)
EXTENDS RingMemory

CONSTANTS
    Clients,    \* who calls; each has its thread
    Values,     \* what is stored
    Absent,     \* the value of a record that is not there; deleting writes it
    Pending     \* the result of a read that has not happened yet

ASSUME Contents = Values \cup {Absent}

VARIABLES
    word,       \* the mapping table: where each page's mini-page is, its lock
    disk,       \* the leaf pages
    call,       \* what each client is waiting for
    phase,      \* where each thread is
    work,       \* what each thread holds
    open,       \* FALSE when no client calls any more
    written     \* ghost: what was last put into each page

INSTANCE MappingTable WITH Pointers <- Offsets

vars == <<memory, word, disk, call, phase, work, open, written>>

Phases == {"idle", "start", "look", "allocate", "popped", "copy", "publish", "free",
           "insert", "done", "full", "victim", "lock", "merge", "unmap", "finish"}

(* `old` is the pointer read when the page was locked, `new` the block     *)
(* that will take its place, `size` what that has to have; `victim` is the *)
(* block to evict, `page` the page that it seems to belong to.             *)
NoWork == [old |-> None, new |-> None, size |-> 0, victim |-> None, page |-> None]

Calls ==
    [op : {"none"}]
    \cup [op : {"get"}, key : Pages, got : Contents \cup {Pending}]
    \cup [op : {"write"}, key : Pages, value : Contents, done : BOOLEAN]

TypeInv ==
    /\ MemoryTypeInv
    /\ TableTypeInv
    /\ disk \in [Pages -> Contents]
    /\ call \in [Clients -> Calls]
    /\ phase \in [Clients -> Phases]
    /\ work \in [Clients -> [old : Offsets \cup {None}, new : Offsets \cup {None},
                             size : Sizes \cup {0}, victim : Offsets \cup {None},
                             page : Pages \cup {None}]]
    /\ open \in BOOLEAN
    /\ written \in [Pages -> Contents]

Init ==
    /\ MemoryInit
    /\ TableInit
    /\ disk = [p \in Pages |-> Absent]
    /\ call = [c \in Clients |-> [op |-> "none"]]
    /\ phase = [c \in Clients |-> "idle"]
    /\ work = [c \in Clients |-> NoWork]
    /\ open = TRUE
    /\ written = [p \in Pages |-> Absent]

Key(c) == call[c].key
Reads(c) == call[c].op = "get"
Writes(c) == call[c].op = "write"

Goto(c, p) == phase' = [phase EXCEPT ![c] = p]

(* The mini-page in the thread's hands is in the copy-on-access region.    *)
OnSecondChance(c) == work[c].old # None /\ InSecondChance(work[c].old)

(* The map that clients see: the disk overlaid by the mini-pages.          *)
Current ==
    [p \in Pages |-> IF At(p) = None \/ block[At(p)].rec = None THEN disk[p]
                     ELSE block[At(p)].rec]

-----------------------------------------------------------------------------
(* Which calls a client may make.  (The wrapper bounds it.)                *)
MayCall(c, request) == TRUE

(* Whether the clients may stop.  (Only the models for liveness let them.) *)
MayClose == TRUE

Requests ==
    [op : {"get"}, key : Pages, got : {Pending}]
    \cup [op : {"write"}, key : Pages, value : Contents, done : {FALSE}]

(* A client asks.                                                          *)
Call(c) ==
    /\ open
    /\ phase[c] = "idle"
    /\ \E request \in Requests :
          /\ MayCall(c, request)
          /\ call' = [call EXCEPT ![c] = request]
    /\ Goto(c, "start")
    /\ UNCHANGED <<memory, word, disk, work, open, written>>

(* No more calls: then the pending ones must come to an end.               *)
Close ==
    /\ MayClose
    /\ open
    /\ open' = FALSE
    /\ UNCHANGED <<memory, word, disk, call, phase, work, written>>

(* Section 3.3: a thread finds the mini-page and locks it in one step, to  *)
(* read or to write.                                                       *)
LockPage(c) ==
    /\ phase[c] = "start"
    /\ IF Reads(c)
       THEN IF Bug = "reader-without-lock" THEN UNCHANGED word ELSE Share(c, Key(c))
       ELSE Lock(c, Key(c))
    /\ work' = [work EXCEPT ![c].old = At(Key(c))]
    /\ Goto(c, "look")
    /\ UNCHANGED <<memory, disk, call, open, written>>

(* The instant at which a `get` takes effect: from the mini-page, or from  *)
(* the leaf page if it is not there (section 5.1).                         *)
Read(c) ==
    /\ phase[c] = "look"
    /\ Reads(c)
    /\ call[c].got = Pending
    /\ LET old == work[c].old
           cached == old # None /\ block[old].rec # None
       IN call' = [call EXCEPT ![c].got = IF cached THEN block[old].rec ELSE disk[Key(c)]]
    /\ UNCHANGED <<memory, word, disk, phase, work, open, written>>

(* The instant at which a `put` or `delete` takes effect, in a mini-page   *)
(* of the in-place-update region that has room, or in one that this thread *)
(* has just published (section 5.2).                                       *)
Write(c) ==
    /\ \/ /\ phase[c] = "look"
          /\ Writes(c)
          /\ work[c].old # None
          /\ ~OnSecondChance(c)
       \/ phase[c] = "insert"
    /\ block' = [block EXCEPT ![At(Key(c))].rec = call[c].value,
                              ![At(Key(c))].dirty = TRUE]
    /\ call' = [call EXCEPT ![c].done = TRUE]
    /\ written' = [written EXCEPT ![Key(c)] = call[c].value]
    /\ Goto(c, "done")
    /\ UNCHANGED <<head, claimed, secondChance, tail, freeList, word, disk, work, open>>

(* The answer; the lock is given back.  A `get` in the second-chance       *)
(* region that shares the page with others does not wait to copy it (the   *)
(* paper is silent; two readers that both waited would wait for ever).     *)
Return(c) ==
    /\ \/ phase[c] = "done"
       \/ /\ phase[c] = "look"
          /\ Reads(c)
          /\ call[c].got # Pending
          /\ \/ ~OnSecondChance(c)
             \/ Bug # "upgrade-waits" /\ OnSecondChance(c) /\ ~CanUpgrade(c, Key(c))
    /\ Unlock(c, Key(c))
    /\ call' = [call EXCEPT ![c] = [op |-> "none"]]
    /\ work' = [work EXCEPT ![c] = NoWork]
    /\ Goto(c, "idle")
    /\ UNCHANGED <<memory, disk, open, written>>

-----------------------------------------------------------------------------
(* A mini-page that has to move.  The thread holds its page alone from     *)
(* here on.                                                                *)

Want(c, size) ==
    /\ HoldAlone(c, Key(c))
    /\ work' = [work EXCEPT ![c].size = size]
    /\ Goto(c, "allocate")
    /\ UNCHANGED <<memory, disk, call, open, written>>

Looked(c) == phase[c] = "look" /\ (IF Reads(c) THEN call[c].got # Pending ELSE TRUE)

(* Sections 5.1, 5.2: a write creates the mini-page if there is none; a    *)
(* read may, "with a small probability", to cache what it found.           *)
Create(c) ==
    /\ Looked(c)
    /\ work[c].old = None
    /\ \E size \in Sizes : Want(c, size)

(* Section 5.2: the record does not fit.                                   *)
Grow(c) ==
    /\ Looked(c)
    /\ Writes(c)
    /\ work[c].old # None
    /\ ~OnSecondChance(c)
    /\ \E size \in Sizes : size > block[work[c].old].size /\ Want(c, size)

(* Section 5.5: a mini-page that is used while in the second-chance region *)
(* moves to the tail.  Without its cold records it may be smaller.         *)
CopyToTail(c) ==
    /\ Looked(c)
    /\ OnSecondChance(c)
    /\ \E size \in Sizes : size <= block[work[c].old].size /\ Want(c, size)

(* Section 4.2, Alloc: first the free list.                                *)
PopFreeList(c) ==
    /\ phase[c] = "allocate"
    /\ \E offset \in Offsets :
          /\ TakeFromList(work[c].size, offset)
          /\ work' = [work EXCEPT ![c].new = offset]
    /\ Goto(c, "popped")
    /\ UNCHANGED <<word, disk, call, open, written>>

(* The popped block is taken, unless it is not what it was.                *)
Reuse(c) ==
    /\ phase[c] = "popped"
    /\ ReuseBlock(Key(c), work[c].new)
    /\ Goto(c, "copy")
    /\ UNCHANGED <<word, disk, call, work, open, written>>

PassOver(c) ==
    /\ phase[c] = "popped"
    /\ LeaveToEvictor(work[c].new)
    /\ work' = [work EXCEPT ![c].new = None]
    /\ Goto(c, "allocate")
    /\ UNCHANGED <<word, disk, call, open, written>>

(* "When the free list has no memory, we allocate from the tail."          *)
Allocate(c) ==
    /\ phase[c] = "allocate"
    /\ freeList[work[c].size] = {}
    /\ AllocateAtTail(Key(c), work[c].size)
    /\ work' = [work EXCEPT ![c].new = OffsetOf(tail)]
    /\ Goto(c, "copy")
    /\ UNCHANGED <<word, disk, call, open, written>>

Pad(c) ==
    /\ phase[c] = "allocate"
    /\ freeList[work[c].size] = {}
    /\ PadAtTail(work[c].size)
    /\ UNCHANGED <<word, disk, call, phase, work, open, written>>

(* "The circular buffer returns an error.  The caller will then call       *)
(* eviction."  It must give its page back before (see FINDINGS): the block *)
(* at the head may be of this very page, or of the page of another thread  *)
(* that waits for this one.  The call then begins anew.                    *)
Full(c) ==
    /\ phase[c] = "allocate"
    /\ freeList[work[c].size] = {}
    /\ NoRoom(work[c].size)
    /\ IF Bug = "as-published-evict-under-lock"
       THEN UNCHANGED <<word, work>>
       ELSE /\ Unlock(c, Key(c))
            /\ work' = [work EXCEPT ![c] = NoWork]
    /\ Goto(c, IF Bug = "no-eviction" THEN "start" ELSE "full")
    /\ UNCHANGED <<memory, disk, call, open, written>>

-----------------------------------------------------------------------------
(* Grow, create or copy, once there is memory: "a read-copy-update".       *)

(* The old contents, or, for a read, the record of the leaf page.          *)
Copy(c) ==
    /\ phase[c] = "copy"
    /\ LET old == work[c].old
           new == work[c].new
           contents == IF old # None
                       THEN [rec |-> block[old].rec,
                             dirty |-> block[old].dirty /\ Bug # "dirty-bit-not-copied"]
                       ELSE IF Reads(c)
                       THEN [rec |-> IF Bug = "stale-promotion" THEN call[c].got
                                     ELSE disk[Key(c)],
                             dirty |-> FALSE]
                       ELSE [rec |-> None, dirty |-> FALSE]
       IN block' = [block EXCEPT ![new].rec = contents.rec, ![new].dirty = contents.dirty]
    /\ Goto(c, IF Bug = "freed-before-published" /\ work[c].old # None THEN "free"
               ELSE "publish")
    /\ UNCHANGED <<head, claimed, secondChance, tail, freeList,
                   word, disk, call, work, open, written>>

AfterMoving(c) == IF Reads(c) THEN "done" ELSE "insert"

(* The mapping table points at the new block, which is ready.              *)
Publish(c) ==
    /\ phase[c] = "publish"
    /\ block' = [block EXCEPT ![work[c].new].state = "ready"]
    /\ PointTo(Key(c), work[c].new)
    /\ work' = [work EXCEPT ![c].new = None, ![c].size = 0]
    /\ Goto(c, IF work[c].old # None THEN "free" ELSE AfterMoving(c))
    /\ UNCHANGED <<head, claimed, secondChance, tail, freeList,
                   disk, call, open, written>>

(* Section 4.2, Dealloc.                                                   *)
Deallocate(c) ==
    /\ phase[c] = "free"
    /\ FreeBlock(work[c].old)
    /\ work' = [work EXCEPT ![c].old = None]
    /\ Goto(c, IF Bug = "freed-before-published" THEN "publish" ELSE AfterMoving(c))
    /\ UNCHANGED <<word, disk, call, open, written>>

-----------------------------------------------------------------------------
(* Eviction (sections 4.2, 4.3).  The thread holds no lock when it begins. *)

AfterEviction == IF Bug = "as-published-evict-under-lock" THEN "allocate" ELSE "start"

Claim(c) ==
    /\ phase[c] = "full"
    /\ ClaimBlock
    /\ work' = [work EXCEPT ![c].victim = OffsetOf(claimed)]
    /\ Goto(c, "victim")
    /\ UNCHANGED <<word, disk, call, open, written>>

(* Others have claimed everything and are done.                            *)
Retry(c) ==
    /\ phase[c] = "full"
    /\ head = tail
    /\ Bug # "lost-wake-up"
    /\ Goto(c, AfterEviction)
    /\ UNCHANGED <<memory, word, disk, call, work, open, written>>

(* A tombstone or padding.                                                 *)
Skip(c) ==
    /\ phase[c] = "victim"
    /\ SkipBlock(work[c].victim)
    /\ Goto(c, "finish")
    /\ UNCHANGED <<word, disk, call, work, open, written>>

(* A free-listed block.                                                    *)
Unlist(c) ==
    /\ phase[c] = "victim"
    /\ UnlistBlock(work[c].victim)
    /\ Goto(c, "finish")
    /\ UNCHANGED <<word, disk, call, work, open, written>>

(* A mini-page: its header tells whose.                                    *)
FindPage(c) ==
    /\ phase[c] = "victim"
    /\ block[work[c].victim].state = "ready"
    /\ work' = [work EXCEPT ![c].page = block[work[c].victim].page]
    /\ Goto(c, "lock")
    /\ UNCHANGED <<memory, word, disk, call, open, written>>

IsVictim(c) == At(work[c].page) = work[c].victim

(* Before the lock is taken the mini-page may have moved away, and the     *)
(* block may even belong to another page.                                  *)
LockVictim(c) ==
    /\ phase[c] = "lock"
    /\ CanLock(work[c].page)
    /\ IF IsVictim(c) \/ Bug = "victim-unchecked"
       THEN /\ Lock(c, work[c].page)
            /\ Goto(c, "merge")
            /\ UNCHANGED work
       ELSE /\ Goto(c, "victim")
            /\ work' = [work EXCEPT ![c].page = None]
            /\ UNCHANGED word
    /\ UNCHANGED <<memory, disk, call, open, written>>

(* "A callback function is invoked to merge dirty records in the mini-page *)
(* to the leaf page on disk."                                              *)
WriteLeaf(c) ==
    /\ phase[c] = "merge"
    /\ block[work[c].victim].dirty
    /\ Bug # "dirty-skipped"
    /\ disk' = [disk EXCEPT ![work[c].page] = block[work[c].victim].rec]
    /\ IF Bug \in {"unlocked-while-writing", "changed-while-written"}
       THEN Unlock(c, work[c].page)
       ELSE UNCHANGED word
    /\ Goto(c, "unmap")
    /\ UNCHANGED <<memory, call, work, open, written>>

CanUnmap(c) == CanLock(work[c].page) /\ IsVictim(c)

(* "Then, the mapping table is updated to point to the leaf page": one     *)
(* store changes the pointer and gives the lock back.                      *)
Unmap(c) ==
    /\ \/ phase[c] = "unmap" /\ (Bug = "changed-while-written" => CanUnmap(c))
       \/ phase[c] = "merge" /\ (~block[work[c].victim].dirty \/ Bug = "dirty-skipped")
    /\ word' = [word EXCEPT ![work[c].page] =
                   IF Bug = "evicted-before-unmapped" THEN Free(@.at) ELSE Free(None)]
    /\ block' = [block EXCEPT ![work[c].victim] = Dead("evicted", @.size)]
    /\ work' = [work EXCEPT ![c].page = None]
    /\ Goto(c, "finish")
    /\ UNCHANGED <<head, claimed, secondChance, tail, freeList,
                   disk, call, open, written>>

(* "We require all threads to finish the eviction in order."  Then the     *)
(* call begins anew: there is more room now.                               *)
Finish(c) ==
    /\ phase[c] = "finish"
    /\ AdvanceHead(work[c].victim)
    /\ work' = [work EXCEPT ![c].victim = None]
    /\ Goto(c, AfterEviction)
    /\ UNCHANGED <<word, disk, call, open, written>>

-----------------------------------------------------------------------------
Evict(c) ==
    \/ Claim(c) \/ Retry(c) \/ Skip(c) \/ Unlist(c) \/ FindPage(c)
    \/ LockVictim(c) \/ WriteLeaf(c) \/ Unmap(c) \/ Finish(c)

Move(c) ==
    \/ Create(c) \/ Grow(c) \/ CopyToTail(c)
    \/ PopFreeList(c) \/ Reuse(c) \/ PassOver(c) \/ Allocate(c) \/ Pad(c) \/ Full(c)
    \/ Copy(c) \/ Publish(c) \/ Deallocate(c)

Step(c) == LockPage(c) \/ Read(c) \/ Write(c) \/ Return(c) \/ Move(c) \/ Evict(c)

Next == Close \/ \E c \in Clients : Call(c) \/ Step(c)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* A mapped page points at a live block of its own.                        *)
MappedInv ==
    \A p \in Pages : At(p) # None => /\ block[At(p)].state = "ready"
                                     /\ block[At(p)].page = p

(* A block that is ready can be reached, or its page is locked.            *)
ReachableInv ==
    \A o \in Offsets :
        block[o].state = "ready" =>
            \/ At(block[o].page) = o
            \/ word[block[o].page].writer # None

(* A pointer in a thread's hands is not used for anything else meanwhile.  *)
HolderInv ==
    \A c \in Clients :
        work[c].old # None => /\ block[work[c].old].state = "ready"
                              /\ block[work[c].old].page = Key(c)

(* No two threads are handed the same memory.                              *)
OwnerInv ==
    \A c \in Clients :
        phase[c] \in {"copy", "publish"} =>
            /\ block[work[c].new].state = "allocated"
            /\ \A d \in Clients \ {c} : work[d].new # work[c].new

(* A record that is not dirty is what the leaf page says.                  *)
CleanInv ==
    \A o \in Offsets :
        (block[o].rec # None /\ ~block[o].dirty) => block[o].rec = disk[block[o].page]

(* No dirty record is lost.                                                *)
NoLossInv == Current = written

-----------------------------------------------------------------------------
(* Liveness.                                                               *)

Fair == WF_vars(Close) /\ \A c \in Clients : WF_vars(Step(c))

FairSpec == Spec /\ Fair

(* Every call ends.                                                        *)
ReturnProp == \A c \in Clients : (phase[c] # "idle") ~> (phase[c] = "idle")

(* Every allocation succeeds, or is not needed any more.                   *)
WantsMemory(c) == phase[c] \in {"allocate", "full"}

AllocateProp ==
    \A c \in Clients : WantsMemory(c) ~> (phase[c] \in {"copy", "idle"})

-----------------------------------------------------------------------------
Contract == INSTANCE DurableMap WITH
    Keys <- Pages,
    base <- Current,
    tail <- <<>>,
    up <- TRUE

THEOREM Spec => Contract!Spec
THEOREM FairSpec => ReturnProp /\ AllocateProp
=============================================================================
