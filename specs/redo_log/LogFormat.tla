------------------------------ MODULE LogFormat ------------------------------
(***************************************************************************)
(* The blocks of the redo log, packed and sparse (B⁻-tree §3.3, Figs. 7    *)
(* and 8), and how they are read back.                                     *)
(*                                                                         *)
(* Positions count *units* from the beginning of time, Units per block.  A *)
(* record has one unit or more, and may continue in the next block.  Its   *)
(* LSN is the position just behind it.  Block `index` lies at place        *)
(* index % Ring: laps overwrite each other.                                *)
(*                                                                         *)
(* A block's header says:                                                  *)
(*                                                                         *)
(*   epoch     every opening of the store begins a new one, at a fresh     *)
(*             block                                                       *)
(*   index     so that a block of an earlier lap is told                   *)
(*   first     where the first record begins; 0 if none does               *)
(*   unforced  how many blocks before this one belong to the same flush    *)
(*   starts    the block is the first of its epoch                         *)
(*   closed    the rest of the block stays empty: the sparse log ends each *)
(*             flush with such a block                                     *)
(*   witness   the block has no records, and says that all before it is    *)
(*             durable                                                     *)
(*                                                                         *)
(* The first unit and the header, with a checksum of the whole block, are  *)
(* in the first *sector*; each other unit is a sector.  A drive writes a   *)
(* sector whole.  What a crash leaves of a block may be sectors of several *)
(* versions.  The checksum tells, unless the sectors are alike.            *)
(*                                                                         *)
(* engine/src/wal/{block,buffer,replay}.rs.                                *)
(***************************************************************************)
EXTENDS Device

CONSTANTS
    Units,      \* units in a block
    Ring,       \* log blocks on the device
    Bug         \* the seeded bug, or "none" for the correct protocol

Places == 0..(Ring - 1)

BlockOf(position) == position \div Units
RoundUp(position) == BlockOf(position + Units - 1) * Units
Place(index)      == index % Ring

Larger(m, n) == IF m > n THEN m ELSE n

(* A unit of a record.  A record's first unit has its length.              *)
Unit(r, len, part) == [record |-> r, len |-> len, part |-> part]
Empty              == Unit(0, 0, 0)

UnitsOf(r, len) == [i \in 1..len |-> Unit(r, len, i)]

(* Where the first record begins.                                          *)
FirstIn(units) ==
    IF \E i \in 1..Len(units) : units[i].part = 1
    THEN CHOOSE i \in 1..Len(units) :
            units[i].part = 1 /\ \A j \in 1..(i - 1) : units[j].part # 1
    ELSE 0

NoBlock ==
    [epoch |-> 0, index |-> 0, first |-> 0, unforced |-> 0,
     starts |-> FALSE, closed |-> FALSE, witness |-> FALSE, endMark |-> FALSE, units |-> <<>>]

(* What is at a place: the first sector, which has a checksum of all units *)
(* and so stands for the block that it was written with; and the others.   *)
Sealed(block) ==
    [head |-> block,
     rest |-> [i \in 1..(Units - 1) |->
                  IF i < Len(block.units) THEN block.units[i + 1] ELSE Empty]]

(* The contents of a formatted device; and of a block that has decayed,    *)
(* which nobody can tell from it.                                          *)
Zeros == Sealed(NoBlock)

Witness(epoch, index) ==
    Sealed([NoBlock EXCEPT !.epoch = epoch, !.index = index, !.closed = TRUE, !.witness = TRUE])

(* Written by recovery where it finds the log's end.                       *)
EndMark(epoch, index) ==
    Sealed([NoBlock EXCEPT !.epoch = epoch, !.index = index, !.closed = TRUE, !.endMark = TRUE])

(* The blocks that a flush writes: a function from index to contents.      *)
(* Buffer::seal.                                                           *)
SealedBlocks(epoch, startsAt, packing, at, units) ==
    LET last == at + BlockOf(Len(units) - 1)
    IN [index \in at..last |->
           LET from == (index - at) * Units
               here == SubSeq(units, from + 1,
                              IF index = last THEN Len(units) ELSE from + Units)
           IN Sealed([epoch |-> epoch, index |-> index, first |-> FirstIn(here),
                      unforced |-> IF Bug = "counts-no-unforced" THEN 0 ELSE index - at,
                      starts |-> index = startsAt,
                      closed |-> index = last /\ packing = "sparse",
                      witness |-> FALSE, endMark |-> FALSE, units |-> here])]

-----------------------------------------------------------------------------
(* Reading.                                                                *)

(* The checksum matches.                                                   *)
Whole(content) == content = Sealed(content.head) \/ Bug = "believes-torn-block"

(* The units that are there.                                               *)
UnitsAt(content) ==
    [i \in 1..Len(content.head.units) |->
        IF i = 1 THEN content.head.units[1] ELSE content.rest[i - 1]]

IsMine(content, index) ==
    /\ Whole(content)
    /\ content.head.epoch # 0
    /\ \/ content.head.index = index
       \/ Bug = "replays-old-lap" /\ content.head.index % Ring = index % Ring

(* A record that began in an earlier block.  A *dead* one began before the *)
(* place where reading begins.                                             *)
NoCarry      == [is |-> "none", units |-> <<>>]
Dead         == [is |-> "dead", units |-> <<>>]
Begun(units) == [is |-> "begun", units |-> units]

(* The state of reading at its start.                                      *)
AtStart(from, epoch) ==
    [from |-> from, epoch |-> epoch, ended |-> TRUE, flush |-> BlockOf(RoundUp(from)),
     carry |-> NoCarry, end |-> from, found |-> <<>>, bad |-> FALSE, stop |-> 0]

(* Whether a block with this header is the next one.  A block that is      *)
(* neither full nor closed is written again before a later one is: if      *)
(* there is a later one, its last version is lost.  Walk::judge.           *)
Continues(walk, head) ==
    \/ /\ head.epoch > walk.epoch
       /\ head.starts
    \/ /\ head.epoch = walk.epoch
       /\ ~head.witness \/ Bug = "reads-witness"
       /\ ~head.endMark
       /\ walk.ended \/ Bug = "reads-past-hole"
    \/ head.epoch < walk.epoch /\ Bug = "reads-older-epoch"

(* A record, or what was taken for one: 0 if the units are not one's.      *)
RecordIn(units) ==
    IF units = UnitsOf(units[1].record, Len(units)) THEN units[1].record ELSE 0

Found(walk, lsn, r) ==
    [walk EXCEPT !.found = Append(@, [record |-> r, lsn |-> lsn]), !.end = lsn]

Bad(walk) == [walk EXCEPT !.bad = TRUE]

RECURSIVE Frames(_, _, _, _)
(* The records that begin at unit `at` of a block and behind it.           *)
Frames(walk, index, units, at) ==
    IF at > Len(units) \/ walk.bad THEN walk
    ELSE LET last == at + units[at].len - 1
         IN IF units[at].part # 1 THEN Bad(walk)
            ELSE IF last <= Len(units)
            THEN Frames(Found(walk, index * Units + last, RecordIn(SubSeq(units, at, last))),
                        index, units, last + 1)
            ELSE IF Len(units) = Units
            THEN [walk EXCEPT !.carry = Begun(SubSeq(units, at, Len(units)))]
            ELSE Bad(walk)

(* The next units of a record that began earlier.  Walk::carried.          *)
Carried(walk, index, units, endsHere) ==
    LET all  == walk.carry.units \o units
        done == [walk EXCEPT !.carry = NoCarry]
    IN IF walk.carry.is = "dead" THEN IF endsHere THEN done ELSE walk
       ELSE IF Len(all) = all[1].len THEN Found(done, index * Units + Len(units), RecordIn(all))
       ELSE IF Len(all) < all[1].len /\ ~endsHere THEN [walk EXCEPT !.carry = Begun(all)]
       ELSE Bad(walk)

(* Walk::take.  A record that an epoch's end has cut off is not continued  *)
(* by the next epoch.                                                      *)
Take(walk, index, content) ==
    LET head   == content.head
        units  == UnitsAt(content)
        full   == Len(units) = Units
        first  == head.first
        here   == index = BlockOf(walk.from)
        offset == IF here THEN walk.from % Units ELSE 0
        cut    == head.epoch > walk.epoch /\ Bug # "carries-into-epoch"
        carry  == IF cut THEN NoCarry
                  ELSE IF here /\ offset = 0 /\ first # 1 THEN Dead ELSE walk.carry
        next   == [walk EXCEPT !.epoch = head.epoch, !.carry = carry,
                      !.ended = full \/ (head.closed /\ Bug # "knows-no-closed"),
                      !.flush = Larger(index - head.unforced, BlockOf(walk.from))]
    IN IF offset > Len(units) THEN Bad(next)
       ELSE IF carry # NoCarry
       THEN LET before == IF first = 0 THEN Len(units) ELSE first - 1
            IN Frames(Carried(next, index, SubSeq(units, 1, before), first # 0 \/ ~full),
                      index, units, before + 1)
       ELSE IF offset = 0 /\ first # 1 THEN Bad(next)
       ELSE Frames(next, index, units, offset + 1)

RECURSIVE Walk(_, _, _)
(* Reads the blocks from `index` on.                                       *)
Walk(blocks, index, walk) ==
    LET content == blocks[Place(index)]
    IN IF \/ walk.bad
          \/ index = BlockOf(walk.from) + Ring
          \/ ~IsMine(content, index)
          \/ ~Continues(walk, content.head)
       THEN [walk EXCEPT !.stop = index]
       ELSE Walk(blocks, index + 1, Take(walk, index, content))

(* The log from a superblock's redo start on.  replay.rs, walk.            *)
ReadLog(blocks, super) ==
    Walk(blocks, BlockOf(super.redo), AtStart(super.redo, super.redoEpoch))

(* The log's end is legal, unless the log itself proves that more was      *)
(* durable: by a block behind it that was written in a later flush.  Only  *)
(* the newest epoch can prove it, and not what lies behind a newer end     *)
(* mark.  Walk::look_ahead.                                                *)
Proof(blocks, walk) ==
    LET ahead  == {index \in walk.stop..(BlockOf(walk.from) + Ring - 1) :
                      IsMine(blocks[Place(index)], index)}
        head   == [index \in ahead |-> blocks[Place(index)].head]
        counts == {index \in ahead :
                      /\ ~head[index].endMark
                      /\ \A other \in ahead : head[other].endMark /\ other < index =>
                             head[other].epoch <= head[index].epoch}
        newest == CHOOSE e \in {walk.epoch} \cup {head[index].epoch : index \in counts} :
                      /\ e >= walk.epoch
                      /\ \A index \in counts : head[index].epoch <= e
        ended  == walk.ended /\ Bug # "suspects-closed"
        lost(index) ==
            IF newest = walk.epoch /\ ~ended /\ ~head[index].witness
            THEN walk.stop - 1 ELSE walk.stop
    IN \E index \in counts :
           /\ head[index].epoch = newest
           /\ index - head[index].unforced > lost(index)

(* The block at the end is of a later lap: the log that begins here had    *)
(* been given up.  Walk::check_lap.                                        *)
LaterLap(blocks, walk) ==
    LET content == blocks[Place(walk.stop)]
    IN Whole(content) /\ content.head.index > walk.stop

(* Whether recovery refuses to open: the log lacks what it must have.      *)
Damaged(blocks, walk) ==
    \/ walk.bad
    \/ walk.stop = BlockOf(walk.from) /\ walk.from % Units # 0
    \/ LaterLap(blocks, walk)
    \/ Proof(blocks, walk) /\ Bug # "looks-not-ahead"
=============================================================================
