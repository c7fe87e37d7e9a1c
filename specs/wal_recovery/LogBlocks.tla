----------------------------- MODULE LogBlocks ------------------------------
(***************************************************************************)
(* The bytes of the redo log: a ring of blocks, and how it is read back.   *)
(*                                                                         *)
(* A position counts record slots from the beginning of time, PerBlock to  *)
(* a block; every record takes one.  The LSN of a record is the position   *)
(* just behind it, so all records up to LSN n are the first n slots.       *)
(* Block `index` lies at place index % RingBlocks: laps overwrite each     *)
(* other.  A block that is not full is written again, with more records,   *)
(* by the next flush.                                                      *)
(*                                                                         *)
(* Every opening of the store begins a new *epoch* at a fresh block, so    *)
(* that what a crash left behind the end never joins what comes later      *)
(* (BUGS D9, D11).                                                         *)
(*                                                                         *)
(* Left out: record lengths, and records that span blocks (a flush always  *)
(* ends behind a whole record, so they are cut only where an epoch ends);  *)
(* the `unforced` count, by which the engine tells damage from a torn      *)
(* tail; blocks of a *greater* epoch than the superblock's, since every    *)
(* opening ends with a checkpoint and so none can be met; TRIM of blocks   *)
(* given up (a trimmed block, like an old one, is no part of the log).     *)
(*                                                                         *)
(* engine/src/wal/{block,replay}.rs.                                       *)
(***************************************************************************)
EXTENDS Device

CONSTANTS
    PerBlock,       \* record slots in a log block
    RingBlocks,     \* log blocks on the device
    Bug             \* the seeded bug, "none" for the protocol as it is meant

Places == 0..(RingBlocks - 1)

BlockOf(position) == position \div PerBlock
BlockStart(position) == BlockOf(position) * PerBlock
NextBlockStart(position) == BlockStart(position + PerBlock - 1)
Place(index) == index % RingBlocks

(* What a formatted device holds.                                          *)
NoBlock == [epoch |-> 0, index |-> 0, records |-> <<>>]

Block(epoch, index, records) == [epoch |-> epoch, index |-> index, records |-> records]

(* Blocks from position `start` (where a block begins) on, as a flush      *)
(* writes them: the function from index to block.                          *)
BlocksOf(epoch, start, records) ==
    LET first == BlockOf(start)
        last  == BlockOf(start + Len(records) - 1)
    IN [index \in first..last |->
           Block(epoch, index,
                 SubSeq(records, (index - first) * PerBlock + 1,
                        IF index = last THEN Len(records) ELSE (index - first + 1) * PerBlock))]

(* Whether a block on the device is the one to be read next.               *)
(* Header::read, Walk::judge.                                              *)
Continues(block, epoch, index) ==
    /\ block.epoch = epoch
    /\ block.index = index \/ Bug = "replays-old-lap"
    /\ block.records # <<>>

RECURSIVE ReadOn(_, _, _, _)
(* The records of the blocks from `index` on, `last` at most.  A block     *)
(* that is missing ends the log, and so does one that is not full, for     *)
(* then a later version of it was lost: what follows such a hole must not  *)
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
