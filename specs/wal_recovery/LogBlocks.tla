----------------------------- MODULE LogBlocks ------------------------------
(***************************************************************************)
(* The bytes of the redo log: a ring of blocks, and how it is read back.   *)
(*                                                                         *)
(* A position counts record slots from the beginning of time, PerBlock per *)
(* block; every record takes one.  The LSN of a record is the position     *)
(* just after it, so all records up to LSN n are the first n slots.  Block *)
(* `index` is at place index % RingBlocks: laps overwrite each other.  A   *)
(* block that is not full is written again, with more records, by the next *)
(* flush.                                                                  *)
(*                                                                         *)
(* Every opening of the store begins a new *epoch* at a fresh block, so    *)
(* that blocks that a crash left after the end never join later ones (BUGS *)
(* D9, D11).                                                               *)
(*                                                                         *)
(* Left out: record lengths; records that span blocks (a flush always ends *)
(* after a complete record, so they are cut only where an epoch ends); the *)
(* `unforced` count, by which the engine distinguishes damage from a torn  *)
(* tail; blocks of a *greater* epoch than the superblock's (every opening  *)
(* ends with a checkpoint, so there are none); TRIM of freed blocks (a     *)
(* trimmed block, like an old one, is not part of the log).                *)
(*                                                                         *)
(* engine/src/wal/{block,replay}.rs.                                       *)
(***************************************************************************)
EXTENDS PageCells

CONSTANTS
    PerBlock,       \* record slots in a log block
    RingBlocks,     \* log blocks on the device
    Bug             \* the seeded bug, or "none" for the correct protocol

Places == 0..(RingBlocks - 1)

BlockOf(position) == position \div PerBlock
BlockStart(position) == BlockOf(position) * PerBlock
NextBlockStart(position) == BlockStart(position + PerBlock - 1)
Place(index) == index % RingBlocks

(* The contents of a formatted device.                                     *)
NoBlock == [epoch |-> 0, index |-> 0, records |-> <<>>]

Block(epoch, index, records) == [epoch |-> epoch, index |-> index, records |-> records]

(* The blocks that a flush writes from position `start` on (where a block  *)
(* begins): a function from index to block.                                *)
BlocksOf(epoch, start, records) ==
    LET first == BlockOf(start)
        last  == BlockOf(start + Len(records) - 1)
    IN [index \in first..last |->
           Block(epoch, index,
                 SubSeq(records, (index - first) * PerBlock + 1,
                        IF index = last THEN Len(records) ELSE (index - first + 1) * PerBlock))]

(* Whether a block on the device is the next one to be read.               *)
(* Header::read, Walk::judge.                                              *)
Continues(block, epoch, index) ==
    /\ block.epoch = epoch
    /\ block.index = index \/ Bug = "replays-old-lap"
    /\ block.records # <<>>

RECURSIVE ReadOn(_, _, _, _)
(* The records of the blocks from `index` to `last`. The log ends at a     *)
(* missing block, and also after a block that is not full, because then a  *)
(* later version of that block was lost: blocks after such a hole must not *)
(* be reached (BUGS D7).                                                   *)
ReadOn(blocks, epoch, index, last) ==
    LET block == blocks[Place(index)]
        next  == ReadOn(blocks, epoch, index + 1, last)
    IN IF index > last THEN <<>>
       ELSE IF ~Continues(block, epoch, index)
            THEN IF Bug = "reads-past-hole" THEN next ELSE <<>>
       ELSE IF Bug = "stops-before-last" /\ ~Continues(blocks[Place(index + 1)], epoch, index + 1)
            THEN <<>>
       ELSE IF Len(block.records) = PerBlock \/ Bug = "reads-past-hole"
            THEN block.records \o next
       ELSE block.records

(* The log from position `from` to its end: its records, in order.         *)
(* engine/src/wal/replay.rs, walk.                                         *)
ReadLog(blocks, epoch, from) ==
    LET first == BlockOf(from)
        all   == ReadOn(blocks, epoch, first, first + RingBlocks - 1)
    IN SubSeq(all, from - BlockStart(from) + 1, Len(all))
=============================================================================
