----------------------------- MODULE SlotCells ------------------------------
(***************************************************************************)
(* The cells of PageCells, by deterministic page shadowing: two slots of   *)
(* two blocks and a log block for each page (B⁻-tree §3.1, §3.2).          *)
(*                                                                         *)
(* The rules are those of PageShadowing, as functions of one page: there   *)
(* they stand beside a log that is only a sequence, here below the log of  *)
(* WalRecovery.  A cell has the page's blocks on the device, and what the  *)
(* store knows of them in memory.                                          *)
(*                                                                         *)
(* A page of WalRecovery has one value, its image here has two segments    *)
(* (Spread).  The first of them tells the value; the second changes every  *)
(* other time.  So some writes are small enough for the log block, and a   *)
(* slot of which one block is missing is torn.                             *)
(*                                                                         *)
(* Left out: that only pages which the log names are written again when    *)
(* the process ends (PageShadowing has it; here all are); a trim that the  *)
(* device ignores.                                                         *)
(***************************************************************************)
EXTENDS WalRecovery

CONSTANT
    Trimmed         \* a block that was never written, or trimmed

Threshold == 1

S == INSTANCE PageImages WITH
    Pages <- Keys, Segments <- {1, 2}

-----------------------------------------------------------------------------
(* Images.                                                                 *)

Spread(value) == <<value, IF value = Absent THEN Absent ELSE value \div 2>>

Slotted(image) == [lsn |-> image.lsn, values |-> Spread(image.value)]

(* What the log protocol sees of an image.                                 *)
Told(image) == [lsn |-> image.lsn, value |-> image.values[1]]

-----------------------------------------------------------------------------
(* What is known of the blocks after both slots were read.                 *)
Known(blocks) ==
    LET slot  == S!ValidSlot(blocks)
        found == S!ReadSlot(blocks, slot)
        other == S!SpotsOf(1 - slot) \cup IF found.logged THEN {} ELSE {S!Log}
    IN [slot   |-> slot,
        is     |-> IF \E spot \in other : blocks[spot] # S!Zeros(spot) THEN "durable" ELSE "alone",
        logged |-> found.logged,
        base   |-> found.base,
        dirty  |-> found.dirty]

CellOf(blocks) == [dev |-> [spot \in S!Spots |-> Durably(blocks[spot])], known |-> Known(S!AsRead(blocks))]

(* A page that is durable, in slot 0; or one that was never written.       *)
SlotNew(image) ==
    CellOf([spot \in S!Spots |->
               IF image.lsn = 0 \/ spot \notin S!SpotsOf(0) THEN Trimmed
               ELSE S!SlotBlock(Slotted(image), spot[2])])

(* All that reading the blocks may yield now: until a flush, those that    *)
(* were trimmed may read as before.                                        *)
BlocksRead(places) ==
    LET doubtful == {spot \in S!Spots : Cardinality(S!Readings(places[spot])) > 1}
        reading(stale) ==
            [spot \in S!Spots |->
                IF spot \in stale THEN places[spot][Len(places[spot]) - 1] ELSE Newest(places[spot])]
    IN {S!AsRead(reading(stale)) : stale \in SUBSET doubtful}

(* What a crash may leave of them: any version of each.                    *)
BlocksLeft(places) ==
    LET may == [spot \in S!Spots |-> Survivors(places[spot])]
    IN {[spot \in S!Spots |->
            CASE spot = <<0, 1>> -> a
              [] spot = <<0, 2>> -> b
              [] spot = <<1, 1>> -> c
              [] spot = <<1, 2>> -> d
              [] OTHER           -> e] :
            a \in may[<<0, 1>>], b \in may[<<0, 2>>],
            c \in may[<<1, 1>>], d \in may[<<1, 2>>], e \in may[S!Log]}

(* All that reading the valid slot may yield.  SlotsReadAlikeInv: one.     *)
Readings(cell) == {S!ReadSlot(blocks, cell.known.slot).image : blocks \in BlocksRead(cell.dev)}

SlotRead(cell) == Told(CHOOSE image \in Readings(cell) : TRUE)

-----------------------------------------------------------------------------
(* Writing: PageShadowing, WriteDelta and WriteWhole.                      *)

Put(cell, blocks) ==
    [spot \in S!Spots |->
        IF spot \in DOMAIN blocks THEN Append(cell.dev[spot], blocks[spot]) ELSE cell.dev[spot]]

(* The segments that differ from the base image.                           *)
DirtyWith(cell, image) ==
    LET stored == (CHOOSE found \in Readings(cell) : TRUE).values
    IN cell.known.dirty \cup {i \in {1, 2} : stored[i] # Slotted(image).values[i]}

IsSmall(cell, image) ==
    /\ cell.known.base # 0
    /\ Cardinality(DirtyWith(cell, image)) <= Threshold
    /\ cell.known.is # "written" \/ Bug = "delta-at-once"

WithDelta(cell, image) ==
    LET dirty == DirtyWith(cell, image)
        delta == S!Delta(IF Bug = "names-slot" THEN cell.known.slot + 1 ELSE cell.known.base,
                         image.lsn, [i \in dirty |-> Slotted(image).values[i]])
    IN [dev   |-> Put(cell, [spot \in {S!Log} |-> delta]),
        known |-> [cell.known EXCEPT !.logged = TRUE, !.dirty = dirty]]

WithWhole(cell, image) ==
    LET slot   == IF cell.known.is = "written" /\ Bug # "ping-pong-at-once"
                  THEN cell.known.slot ELSE 1 - cell.known.slot
        resets == IF Bug = "resets-log-at-once" THEN {S!Log} ELSE {}
        blocks == [spot \in S!SpotsOf(slot) \cup resets |->
                      IF spot = S!Log THEN S!Zeros(S!Log) ELSE S!SlotBlock(Slotted(image), spot[2])]
    IN [dev   |-> Put(cell, blocks),
        known |-> [slot |-> slot, is |-> "written", logged |-> FALSE,
                   base |-> image.lsn, dirty |-> {}]]

SlotWritten(cell, image) ==
    {IF IsSmall(cell, image) THEN WithDelta(cell, image) ELSE WithWhole(cell, image)}

SlotForced(cell) ==
    [dev   |-> Flushed(cell.dev, {}),
     known |-> IF cell.known.is = "written" THEN [cell.known EXCEPT !.is = "durable"] ELSE cell.known]

SlotIsForced(cell) == Unflushed(cell.dev) = {}

-----------------------------------------------------------------------------
(* Ends.  What is known is lost; opening reads both slots.                 *)

SlotLeft(cell) == {CellOf(blocks) : blocks \in BlocksLeft(cell.dev)}

(* What is read is written again and flushed: the valid slot, and the log  *)
(* block if it belongs to it.                                              *)
Again(cell, blocks) ==
    LET known == Known(blocks)
        spots == S!SpotsOf(known.slot) \cup IF known.logged THEN {S!Log} ELSE {}
    IN [dev   |-> [spot \in S!Spots |->
                      Durably(IF spot \in spots THEN blocks[spot] ELSE Newest(cell.dev[spot]))],
        known |-> known]

SlotReopened(cell) == {Again(cell, blocks) : blocks \in BlocksRead(cell.dev)}

-----------------------------------------------------------------------------
(* The step that WalRecovery does not have: the slot that is not valid is  *)
(* trimmed, once the other is durable.                                     *)
Trim(k) ==
    /\ Serving
    /\ LET cell  == pageDev[k]
           spots == S!SpotsOf(1 - cell.known.slot)
                    \cup IF cell.known.logged /\ Bug # "trims-live-log" THEN {} ELSE {S!Log}
           old   == {spot \in spots : Newest(cell.dev[spot]) # Trimmed}
       IN /\ cell.known.is = "durable" \/ (Bug = "trims-at-once" /\ cell.known.is = "written")
          /\ pageDev' = [pageDev EXCEPT ![k] =
                 [dev   |-> Put(cell, [spot \in old |-> Trimmed]),
                  known |-> [cell.known EXCEPT !.is = "alone"]]]
    /\ UNCHANGED <<clientVars, logVars, pageVars, recoveryVars, logDev, superDev, lost, observerVars>>

NextOverSlots == Next \/ \E k \in Keys : Trim(k)

SpecOverSlots == Init /\ [][NextOverSlots]_vars

-----------------------------------------------------------------------------
SlotTypeInv ==
    /\ call \in [Clients -> Calls]
    /\ page \in [Keys -> Image]
    /\ \A k \in Keys :
          /\ DOMAIN pageDev[k].dev = S!Spots
          /\ pageDev[k].known.is \in {"written", "durable", "alone"}

(* However a page is read, it is the same; ...                             *)
SlotsReadAlikeInv == ~Down => \A k \in Keys : Cardinality(Readings(pageDev[k])) = 1

(* ... and an image of it was whole once.                                  *)
SlotsWholeInv ==
    ~Down => \A k \in Keys : \A found \in Readings(pageDev[k]) :
        found.values = Spread(found.values[1])
=============================================================================
