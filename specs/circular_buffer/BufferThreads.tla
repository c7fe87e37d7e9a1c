--------------------------- MODULE BufferThreads ---------------------------
(***************************************************************************)
(* What the threads of CircularBuffer.tla do for their clients while there *)
(* is memory (Bf-Tree, sections 3.3, 4.1, 4.2, 5.1, 5.2 and 5.5): find and *)
(* lock a page; read its record, or write it in place; and, if its         *)
(* mini-page is missing, too small or near the head, allocate a block,     *)
(* copy, publish it in the mapping table and free the old one.             *)
(*                                                                         *)
(*   start -> look ------------------------------------------> done        *)
(*              |    (in place)                                 ^          *)
(*              v                                               |          *)
(*           allocate <-> popped -> copy -> publish -> free -> insert      *)
(*              |                                                          *)
(*              v                                                          *)
(*            full                                                         *)
(***************************************************************************)
EXTENDS RingMemory

CONSTANTS
    Clients,    \* the clients, each of which has a thread
    Values,     \* what is stored
    Absent,     \* the value of a record that does not exist; deleting writes it
    Pending     \* the result of a read that has not happened yet

ASSUME Contents = Values \cup {Absent}

VARIABLES
    word,       \* the mapping table: where each page's mini-page is, its lock
    disk,       \* the leaf pages
    call,       \* what each client is waiting for
    phase,      \* where each thread is
    work,       \* what each thread holds
    open,       \* FALSE when clients make no more calls
    written     \* ghost: what was last put into each page

INSTANCE MappingTable WITH Pointers <- Offsets

vars == <<memory, word, disk, call, phase, work, open, written>>

Phases == {"idle", "start", "look", "allocate", "popped", "copy", "publish", "free",
           "insert", "done", "full", "victim", "lock", "merge", "unmap", "finish"}

(* `old` is the pointer read when the page was locked, `new` the block     *)
(* that will replace it, `size` the size that it must have; `victim` is    *)
(* the block to evict, `page` the page that it seems to belong to.         *)
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

(* The thread's mini-page is in the copy-on-access region.                 *)
OnSecondChance(c) == work[c].old # None /\ InSecondChance(work[c].old)

(* The map that clients see: the disk overlaid by the mini-pages.          *)
Current ==
    [p \in Pages |-> IF At(p) = None \/ block[At(p)].rec = None THEN disk[p]
                     ELSE block[At(p)].rec]

-----------------------------------------------------------------------------
(* Which calls a client may make.  (The wrapper bounds it.)                *)
MayCall(c, request) == TRUE

(* When the clients may stop.  (The wrapper bounds it, except for          *)
(* liveness.)                                                              *)
MayClose == TRUE

Requests ==
    [op : {"get"}, key : Pages, got : {Pending}]
    \cup [op : {"write"}, key : Pages, value : Contents, done : {FALSE}]

(* A client makes a call.                                                  *)
Call(c) ==
    /\ open
    /\ phase[c] = "idle"
    /\ \E request \in Requests :
          /\ MayCall(c, request)
          /\ call' = [call EXCEPT ![c] = request]
    /\ Goto(c, "start")
    /\ UNCHANGED <<memory, word, disk, work, open, written>>

(* No more calls are made: then the pending ones must come to an end.      *)
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

(* The answer; the lock is released.  A `get` in the second-chance region  *)
(* that shares the page with others does not wait to copy it (the paper is *)
(* silent; two readers that both waited would wait forever).               *)
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
(* A mini-page that has to move.  From here on the thread holds the page   *)
(* exclusively.                                                            *)

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

(* The popped block is taken, unless it has changed in the meantime.       *)
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
(* eviction."  It must release its page before that (FINDINGS.md): the     *)
(* block at the head may belong to this very page, or to the page of       *)
(* another thread that waits for this one.  The call then restarts.        *)
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

(* The mapping table now points to the new block, which is ready.          *)
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
=============================================================================
