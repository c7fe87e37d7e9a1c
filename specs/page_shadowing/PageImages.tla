----------------------------- MODULE PageImages -----------------------------
(***************************************************************************)
(* The bytes of a page on the device (B⁻-tree §3.1, §3.2), and how they    *)
(* are read back.                                                          *)
(*                                                                         *)
(* A page has two slots and one block for its modification log.  It has a  *)
(* segment in each of its blocks; the first block also has the page's      *)
(* header, with its LSN and the checksum of all of it:                     *)
(*                                                                         *)
(*   slot 0:  [lsn, checksum, segment 1] [segment 2] ...                   *)
(*   log:     [base, lsn, segments that differ from the base image]        *)
(*   slot 1:  as slot 0                                                    *)
(*                                                                         *)
(* Each block is written whole or not at all, the blocks of a slot in any  *)
(* order.  A trimmed block reads as zeros, and so does a segment that has  *)
(* no record: a half-trimmed slot may well be whole.                       *)
(*                                                                         *)
(* The log block says which image its segments are to be laid over: that   *)
(* with LSN `base`.  The paper's has only the bit vector f and the         *)
(* segments (FINDINGS.md).                                                 *)
(*                                                                         *)
(* Left out: several segments in a block, so |Δ| is a number of segments;  *)
(* and blocks that decay on the medium, which PageVersions models.         *)
(***************************************************************************)
EXTENDS Device

CONSTANTS
    Pages,          \* the pages
    Segments,       \* 1, 2, ...: the segments of a page
    Absent,         \* the content of a segment that was never written, or deleted
    Trimmed,        \* a block that was never written, or trimmed
    Bug             \* the seeded bug, or "none" for the correct protocol

Slots == {0, 1}
Log   == <<2, 1>>

(* The blocks of a page, each by its name.                                 *)
Spots       == (Slots \X Segments) \cup {Log}
SpotsOf(s)  == {s} \X Segments

Nothing == [i \in Segments |-> Absent]

(* An image in memory.  LSN 0: the page was never written.                 *)
Empty == [lsn |-> 0, values |-> Nothing]

(* `all` is the block's own segment, and what the checksum covers.         *)
FirstBlock(image) == [lsn |-> image.lsn, all |-> image.values]

SlotBlock(image, i) == IF i = 1 THEN FirstBlock(image) ELSE image.values[i]

Delta(base, lsn, segments) == [base |-> base, lsn |-> lsn, segments |-> segments]

NeverWritten == [spot \in Spots |-> Durably(Trimmed)]

(* What a trimmed block reads as.                                          *)
Zeros(spot) ==
    IF spot = Log THEN Delta(0, 0, <<>>) ELSE SlotBlock(Empty, spot[2])

ReadAs(spot, block) == IF block = Trimmed THEN Zeros(spot) ELSE block

AsRead(blocks) == [spot \in Spots |-> ReadAs(spot, blocks[spot])]

-----------------------------------------------------------------------------
(* How a page's blocks, one version of each, are read.                     *)

(* Scenario (i) of §3.1: "B⁻-tree can easily identify the partially        *)
(* written slot by verifying the page checksum."                           *)
IsWhole(blocks, s) ==
    /\ blocks[<<s, 1>>].lsn # 0
    /\ \/ \A i \in Segments \ {1} : blocks[<<s, i>>] = blocks[<<s, 1>>].all[i]
       \/ Bug = "believes-torn-slot"

ImageIn(blocks, s) ==
    IF IsWhole(blocks, s)
    THEN [lsn    |-> blocks[<<s, 1>>].lsn,
          values |-> [i \in Segments |->
                         IF i = 1 THEN blocks[<<s, 1>>].all[1] ELSE blocks[<<s, i>>]]]
    ELSE Empty

(* Whether the log block was written over this image.                      *)
Fits(delta, image, s) ==
    CASE Bug = "nameless-log" -> delta.lsn # 0
      [] Bug = "names-slot"   -> image.lsn # 0 /\ delta.base = s + 1
      [] OTHER                -> image.lsn # 0 /\ delta.base = image.lsn

(* "We could easily construct the up-to-date page image through simple     *)
(* memory-copy operations" (§3.2).                                         *)
Overlay(image, delta) ==
    [lsn    |-> delta.lsn,
     values |-> [i \in Segments |->
                    IF i \in DOMAIN delta.segments THEN delta.segments[i] ELSE image.values[i]]]

(* The page, the LSN of its base image, and the segments that differ from  *)
(* it.                                                                     *)
ReadSlot(blocks, s) ==
    LET image == ImageIn(blocks, s)
        delta == blocks[Log]
    IN IF Fits(delta, image, s)
       THEN [image |-> Overlay(image, delta), base |-> image.lsn,
             dirty |-> DOMAIN delta.segments, logged |-> TRUE]
       ELSE [image |-> image, base |-> image.lsn, dirty |-> {}, logged |-> FALSE]

(* Scenario (ii): "B⁻-tree can identify the valid slot by comparing the    *)
(* page LSN (logical sequence number) of the pages on both slots".  That   *)
(* means the pages with their log block, not the images in the slots,      *)
(* since a torn slot may become whole when it is half trimmed.  Of two     *)
(* equal ones, it is the one with the log block.  For a page without an    *)
(* image it is slot 1, so that slot 0 is next.                             *)
Rank(blocks, s) ==
    IF Bug \in {"compares-images", "nameless-log"}
    THEN 2 * ImageIn(blocks, s).lsn
    ELSE LET found == ReadSlot(blocks, s)
         IN 2 * found.image.lsn + IF found.logged THEN 1 ELSE 0

ValidSlot(blocks) ==
    IF \/ Rank(blocks, 0) > Rank(blocks, 1)
       \/ Bug = "takes-first-slot" /\ IsWhole(blocks, 0)
    THEN 0 ELSE 1

(* The first read after a start: both slots.                               *)
ReadBoth(blocks) == ReadSlot(blocks, ValidSlot(blocks))

-----------------------------------------------------------------------------
(* What reading and crashing may yield of a page's places.                 *)

(* Until a flush, a trimmed block may read as it did before the trim.      *)
Readings(place) ==
    {Newest(place)}
    \cup IF Newest(place) = Trimmed /\ Len(place) > 1 THEN {place[Len(place) - 1]} ELSE {}

RECURSIVE Vary(_, _, _)
(* All functions that equal `blocks` except, at `spots`, one of the        *)
(* options.                                                                *)
Vary(blocks, spots, options) ==
    IF spots = {} THEN {blocks}
    ELSE LET spot == CHOOSE x \in spots : TRUE
         IN UNION {Vary([blocks EXCEPT ![spot] = block], spots \ {spot}, options) :
                      block \in options[spot]}

Choices(places, options) ==
    Vary(NewestOf(places), {spot \in Unflushed(places) : Cardinality(options[spot]) > 1}, options)

(* All that a crash may leave of a page ...                                *)
Left(places) == Choices(places, [spot \in Spots |-> Survivors(places[spot])])

(* ... and all that reading it may yield now.                              *)
Read(places) ==
    {AsRead(blocks) : blocks \in Choices(places, [spot \in Spots |-> Readings(places[spot])])}
=============================================================================
