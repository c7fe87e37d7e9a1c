--------------------------- MODULE CircularBuffer ---------------------------
(***************************************************************************)
(* Bf-Tree's variable-length buffer pool (section 4 and "Copy mini-page to *)
(* tail" in 5.5): several threads, each working for one client, get, put   *)
(* and delete records in mini-pages that live in a circular buffer, and    *)
(* evict them to disk when it is full.                                     *)
(*                                                                         *)
(*   RingMemory     where blocks stand, their states, the addresses        *)
(*   MappingTable   where each page is, and its lock                       *)
(*   BufferThreads  a thread's steps while there is memory                 *)
(*   this module    eviction, what must hold, and the contract             *)
(*                                                                         *)
(* What the model ignores: the tree above the leaves (who finds the page); *)
(* the disk's slowness and failures; the log; what is inside a mini-page   *)
(* (MiniPage.tla): here it holds one record, and how large it has to be is *)
(* chosen freely whenever it is written or copied; the merging of a        *)
(* mini-page that has become too large (to the leaf it is what eviction    *)
(* does).                                                                  *)
(***************************************************************************)
EXTENDS BufferThreads

-----------------------------------------------------------------------------
(* Eviction (sections 4.2, 4.3).  The thread holds no lock when it begins. *)
(*                                                                         *)
(*   full -> victim <-> lock -> merge -> unmap -> finish -> start          *)

AfterEviction == IF Bug = "as-published-evict-under-lock" THEN "allocate" ELSE "start"

Claim(c) ==
    /\ phase[c] = "full"
    /\ ClaimBlock
    /\ work' = [work EXCEPT ![c].victim = OffsetOf(claimed)]
    /\ Goto(c, "victim")
    /\ UNCHANGED <<word, disk, call, open, written>>

(* Other threads have claimed everything and are done.                     *)
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

(* A mini-page: its header says which page it belongs to.                  *)
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
(* store changes the pointer and releases the lock.                        *)
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
(* call restarts: there is more room now.                                  *)
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
(* A mapped page points to a live block of its own.                        *)
MappedInv ==
    \A p \in Pages : At(p) # None => /\ block[At(p)].state = "ready"
                                     /\ block[At(p)].page = p

(* A block that is ready can be reached, or its page is locked.            *)
ReachableInv ==
    \A o \in Offsets :
        block[o].state = "ready" =>
            \/ At(block[o].page) = o
            \/ word[block[o].page].writer # None

(* A pointer that a thread holds is not used for anything else meanwhile.  *)
HolderInv ==
    \A c \in Clients :
        work[c].old # None => /\ block[work[c].old].state = "ready"
                              /\ block[work[c].old].page = Key(c)

(* Memory that was handed to one thread belongs to no other thread, and no *)
(* other thread even holds a pointer to it, popped long ago (ABA).         *)
OwnerInv ==
    \A c \in Clients :
        phase[c] \in {"copy", "publish"} =>
            /\ block[work[c].new].state = "allocated"
            /\ \A d \in Clients \ {c} : work[d].new # work[c].new

(* A record that is not dirty equals the leaf page's record.               *)
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

(* Every allocation succeeds, or is no longer needed.                      *)
WantsMemory(c) == phase[c] \in {"allocate", "full"}

AllocateProp ==
    \A c \in Clients : WantsMemory(c) ~> (phase[c] \in {"copy", "idle"})

-----------------------------------------------------------------------------
Contract == INSTANCE DurableMap WITH
    Keys <- Pages,
    base <- Current,
    tail <- <<>>,
    phase <- "up"

THEOREM Spec => Contract!Spec
THEOREM FairSpec => ReturnProp /\ AllocateProp
=============================================================================
