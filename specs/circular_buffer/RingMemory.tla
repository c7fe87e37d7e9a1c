---------------------------- MODULE RingMemory ----------------------------
(***************************************************************************)
(* The memory of the circular buffer (Bf-Tree, section 4): where blocks    *)
(* stand, what state each is in, and how the addresses move.               *)
(*                                                                         *)
(*      head      claimed   secondChance                    tail           *)
(*       |           |           |                            |            *)
(*       v           v           v                            v            *)
(*       [ being evicted | copy on access | updated in place  ]  free      *)
(*                                                                         *)
(* Addresses only grow; the byte at address a is at offset a mod Capacity, *)
(* so that the buffer wraps.  Pointers (mapping table, free lists) are     *)
(* offsets: a pointer does not tell on which lap it was made, and that is  *)
(* what makes stale pointers dangerous.  The unit of size is the smallest  *)
(* block; a block's header (section 4.3: "metadata that stores its size    *)
(* and state") is part of it, and its contents are those of a mini-page    *)
(* with one record.                                                        *)
(*                                                                         *)
(* Each action here is one that the buffer does under its own short lock   *)
(* or with one compare-and-swap; CircularBuffer.tla says which thread does *)
(* it and when.  Headers that the head has passed are garbage that nobody  *)
(* reads: here they are wiped.                                             *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    Capacity,   \* the size of the buffer
    InPlace,    \* the size of the region next to the tail (90 % in the paper)
    Sizes,      \* the size classes of blocks
    Pages,      \* the pages that blocks may belong to
    Contents,   \* what a record may say
    None,       \* no page, no record, no pointer
    Bug         \* "none", or the name of a seeded bug

ASSUME /\ Sizes \subseteq 1..Capacity
       /\ InPlace \in 1..Capacity
       /\ None \notin Pages \cup Contents

Offsets == 0..(Capacity - 1)

Largest == CHOOSE s \in Sizes : \A other \in Sizes : other <= s

VARIABLES
    head,           \* the oldest address that is still in use
    claimed,        \* eviction has been started up to here
    secondChance,   \* a block below this address is copied when it is used
    tail,           \* the next address to be allocated
    block,          \* the header and contents of the block at each offset
    freeList        \* for each size class, the offsets of blocks to be used again

memory == <<head, claimed, secondChance, tail, block, freeList>>

(* The life of a block:                                                    *)
(*                                                                         *)
(*   none -> allocated -> ready -> listed -> allocated ...   (Free, Reuse) *)
(*                        ready -> tombstone               (copied away)   *)
(*   padding is born a tombstone                                           *)
(*   ready, listed, tombstone -> evicted -> none           (the head)      *)
States == {"none", "allocated", "ready", "listed", "tombstone", "evicted"}

NoBlock == [state |-> "none", size |-> 0, page |-> None, rec |-> None, dirty |-> FALSE]

Dead(state, size) == [NoBlock EXCEPT !.state = state, !.size = size]

Fresh(page, size) == [NoBlock EXCEPT !.state = "allocated", !.size = size, !.page = page]

MemoryTypeInv ==
    /\ {head, claimed, secondChance, tail} \subseteq Nat
    /\ block \in [Offsets -> [state : States, size : 0..Capacity,
                              page : Pages \cup {None},
                              rec : Contents \cup {None}, dirty : BOOLEAN]]
    /\ freeList \in [Sizes -> SUBSET Offsets]

MemoryInit ==
    /\ head = 0
    /\ claimed = 0
    /\ secondChance = 0
    /\ tail = 0
    /\ block = [o \in Offsets |-> NoBlock]
    /\ freeList = [s \in Sizes |-> {}]

-----------------------------------------------------------------------------
Max(a, b) == IF a >= b THEN a ELSE b

OffsetOf(address) == address % Capacity

(* The address that a pointer refers to now.                               *)
AddressOf(offset) == head + ((offset - head) % Capacity)

InUse(offset) == AddressOf(offset) < tail

Claimed(offset) == AddressOf(offset) < claimed

(* Section 4.1: in the copy-on-access region.                              *)
InSecondChance(offset) == AddressOf(offset) < secondChance

(* How many laps' worth of addresses to forget once the head is at `h`.    *)
(* (The wrapper forgets whole laps, so that addresses stay small: only     *)
(* their differences and their offsets matter.)                            *)
Forgotten(h) == 0

-----------------------------------------------------------------------------
(* Allocation (section 4.2): "advancing the tail address by the requested  *)
(* size".  The second-chance address follows at a fixed distance.          *)

(* "When the circular buffer is full ... returns an error."                *)
NoRoom(size) == IF Bug = "full-ignored" THEN tail >= head + Capacity
                ELSE tail + size > head + Capacity

(* The paper does not mention it: a block must not cross the physical end  *)
(* of the buffer.                                                          *)
Straddles(size) == Bug # "as-published-no-padding" /\ OffsetOf(tail) + size > Capacity

MoveTail(size, new) ==
    /\ block' = [block EXCEPT ![OffsetOf(tail)] = new]
    /\ tail' = tail + size
    /\ secondChance' = Max(secondChance, tail' - InPlace)
    /\ UNCHANGED <<head, claimed, freeList>>

AllocateAtTail(page, size) ==
    /\ ~NoRoom(size)
    /\ ~Straddles(size)
    /\ MoveTail(size, Fresh(page, size))

(* The rest up to the physical end becomes a tombstone.                    *)
PadAtTail(size) ==
    /\ ~NoRoom(size)
    /\ Straddles(size)
    /\ LET rest == Capacity - OffsetOf(tail)
       IN MoveTail(rest, Dead("tombstone", rest))

-----------------------------------------------------------------------------
(* Free lists (sections 4.1, 4.2).  Taking a pointer off its list and      *)
(* taking the block it points at are two steps, with other threads between *)
(* them.                                                                   *)

TakeFromList(size, offset) ==
    /\ offset \in freeList[size]
    /\ freeList' = [freeList EXCEPT ![size] =
                       IF Bug = "pop-unchecked" THEN @ ELSE @ \ {offset}]
    /\ UNCHANGED <<head, claimed, secondChance, tail, block>>

(* The block is still what the list said, and no evictor waits for it.     *)
Reusable(offset) ==
    \/ Bug = "pop-unchecked"
    \/ /\ block[offset].state = "listed"
       /\ ~Claimed(offset)

ReuseBlock(page, offset) ==
    /\ Reusable(offset)
    /\ block' = [block EXCEPT ![offset] = Fresh(page, @.size)]
    /\ freeList' = IF Bug = "pop-unchecked"
                   THEN [s \in Sizes |-> freeList[s] \ {offset}] ELSE freeList
    /\ UNCHANGED <<head, claimed, secondChance, tail>>

(* Otherwise it is left to the evictor.                                    *)
LeaveToEvictor(offset) ==
    /\ ~Reusable(offset)
    /\ block' = [block EXCEPT ![offset] =
                    IF @.state = "listed" THEN Dead("tombstone", @.size) ELSE @]
    /\ UNCHANGED <<head, claimed, secondChance, tail, freeList>>

(* Deallocation: "simply adds the memory region to the corresponding free  *)
(* list", or, after a copy to the tail (section 5.5), "the old address is  *)
(* marked as a tombstone".  A block that comes near the head while it is   *)
(* grown out of is not worth listing either.                               *)
FreeBlock(offset) ==
    LET size == block[offset].size
    IN IF InSecondChance(offset)
       THEN /\ block' = [block EXCEPT ![offset] =
                            IF Bug = "copy-without-tombstone" THEN @
                            ELSE Dead("tombstone", size)]
            /\ UNCHANGED <<head, claimed, secondChance, tail, freeList>>
       ELSE /\ block' = [block EXCEPT ![offset] = Dead("listed", size)]
            /\ freeList' = [freeList EXCEPT ![size] = @ \cup {offset}]
            /\ UNCHANGED <<head, claimed, secondChance, tail>>

-----------------------------------------------------------------------------
(* Eviction (sections 4.2, 4.3).  Several threads claim blocks one after   *)
(* the other, beginning at the head, and evict them side by side; the head *)
(* moves over a block only after all blocks before it.                     *)

ClaimBlock ==
    /\ claimed < tail
    /\ claimed' = claimed + block[OffsetOf(claimed)].size
    /\ UNCHANGED <<head, secondChance, tail, block, freeList>>

(* Nothing in the block is needed any more.                                *)
SkipBlock(offset) ==
    /\ \/ block[offset].state = "tombstone"
       \/ /\ Bug = "as-published-free-list"
          /\ block[offset].state = "listed"
       \/ /\ Bug = "popped-block-evicted"
          /\ block[offset].state = "listed"
          /\ offset \notin freeList[block[offset].size]
    /\ block' = [block EXCEPT ![offset] = Dead("evicted", @.size)]
    /\ UNCHANGED <<head, claimed, secondChance, tail, freeList>>

(* A free-listed block leaves its list first.  If it is not on the list,   *)
(* an allocating thread has just taken it: the evictor waits until that    *)
(* thread has published or freed it.                                       *)
UnlistBlock(offset) ==
    /\ Bug \notin {"as-published-free-list", "list-waited-for"}
    /\ block[offset].state = "listed"
    /\ offset \in freeList[block[offset].size]
    /\ block' = [block EXCEPT ![offset] = Dead("evicted", @.size)]
    /\ freeList' = [freeList EXCEPT ![block[offset].size] = @ \ {offset}]
    /\ UNCHANGED <<head, claimed, secondChance, tail>>

(* The head moves over the block that it stands at.                        *)
AdvanceHead(offset) ==
    /\ OffsetOf(head) = offset \/ Bug = "head-out-of-order"
    /\ LET next == AddressOf(offset) + block[offset].size
           gone == Forgotten(next)
       IN /\ head' = next - gone
          /\ claimed' = claimed - gone
          /\ tail' = tail - gone
          /\ secondChance' = (IF Bug = "second-chance-left-behind" THEN secondChance
                              ELSE Max(secondChance, next)) - gone
    /\ block' = [block EXCEPT ![offset] = NoBlock]
    /\ UNCHANGED freeList

-----------------------------------------------------------------------------
(* head <= second chance <= tail <= head + capacity.                       *)
RegionsInv ==
    /\ head <= claimed /\ claimed <= tail
    /\ head <= secondChance /\ secondChance <= tail
    /\ tail <= head + Capacity

(* No block crosses the physical end.                                      *)
NoStraddleInv == \A o \in Offsets : o + block[o].size <= Capacity

Cells(offset) == offset..(offset + block[offset].size - 1)

(* Blocks never overlap, and from head to tail there is no gap.            *)
NoOverlapInv ==
    \A cell \in Offsets :
        LET owners == {o \in Offsets : cell \in Cells(o)}
        IN Cardinality(owners) = IF InUse(cell) THEN 1 ELSE 0

(* Every block on a free list is a free block of the list's size class.    *)
FreeListInv ==
    \A s \in Sizes : \A o \in freeList[s] : block[o] = Dead("listed", s)
=============================================================================
