----------------------------- MODULE PageCells ------------------------------
(***************************************************************************)
(* What a log protocol may assume of the pages below it.                   *)
(*                                                                         *)
(* A *cell* is one page with all that its store keeps of it.  The log      *)
(* protocol reads and changes it through these operators and in no other   *)
(* way.  Here a page is one block of the device, which is written as a     *)
(* whole.  A model of two layers replaces the operators by those of a real *)
(* page store (`specs/layers/SlotCells`), and nothing else.                *)
(*                                                                         *)
(* A store must keep what AtomicPages says: a crash leaves the last image  *)
(* that was flushed, or one that was written since.                        *)
(***************************************************************************)
EXTENDS Device

(* A page that is durable.                                                 *)
NewCell(image) == Durably(image)

(* The page after it was written: there may be several ways.               *)
Written(cell, image) == {Append(cell, image)}

(* The page after a flush of the device.                                   *)
Forced(cell) == Durably(Newest(cell))

(* Whether a flush would change anything.                                  *)
IsForced(cell) == Len(cell) = 1

(* The image that reading yields.                                          *)
ImageRead(cell) == Newest(cell)

(* What a crash may leave of it.                                           *)
LeftOf(cell) == {Durably(image) : image \in Survivors(cell)}

(* After the end of the process, which is not that of the device: what is  *)
(* read is written again, if it must be, and flushed.                      *)
ReopenedAs(cell) == {Durably(Newest(cell))}

-----------------------------------------------------------------------------
ImagesLeft(cell) == {ImageRead(left) : left \in LeftOf(cell)}

ImagesRead(cells) == [k \in DOMAIN cells |-> ImageRead(cells[k])]

ForcedCells(cells, lost) == [k \in DOMAIN cells |-> IF k \in lost THEN cells[k] ELSE Forced(cells[k])]

NotForced(cells) == {k \in DOMAIN cells : ~IsForced(cells[k])}

(* One choice for each page.  Only pages that have one are enumerated:     *)
(* recordings of the engine have many pages.                               *)
EachIn(options) ==
    LET open  == {k \in DOMAIN options : Cardinality(options[k]) > 1}
        only  == [k \in DOMAIN options |-> CHOOSE cell \in options[k] : TRUE]
        picks == {pick \in [open -> UNION {options[k] : k \in open}] :
                     \A k \in open : pick[k] \in options[k]}
    IN {[k \in DOMAIN options |-> IF k \in open THEN pick[k] ELSE only[k]] : pick \in picks}

CellsLeft(cells)     == EachIn([k \in DOMAIN cells |-> LeftOf(cells[k])])
CellsReopened(cells) == EachIn([k \in DOMAIN cells |-> ReopenedAs(cells[k])])
=============================================================================
