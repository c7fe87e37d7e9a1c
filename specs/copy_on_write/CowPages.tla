------------------------------ MODULE CowPages ------------------------------
(***************************************************************************)
(* How the copy-on-write store writes pages and its table, and when a slot *)
(* is free again.                                                          *)
(*                                                                         *)
(*   table written for each page           table written at checkpoints    *)
(*   WriteImage: image to a free slot      WriteImage: the same, and moved *)
(*   NameImage:  flush, table block        ...                             *)
(*   FinishTable: flush, old slot free     WriteTable: flush, all changed  *)
(*                                         blocks                          *)
(*                                         FinishTable: flush, held slots  *)
(*                                         free                            *)
(*                                                                         *)
(* engine/src/pages/cow.rs.                                                *)
(***************************************************************************)
EXTENDS CowState

(* Bounds, for the wrapper: which free slot is taken, and whether a flush  *)
(* may fail after n crashes.                                               *)
MayTake(s) == TRUE
MayFail(n) == TRUE

Serving == phase = "up" /\ ~poisoned

(* Pages may be written.                                                   *)
Running == phase # "clearing" /\ ~poisoned

-----------------------------------------------------------------------------
(* The device.                                                             *)

DeviceFlush ==
    /\ slotDev' = Flushed(slotDev, lost.slots)
    /\ tableDev' = Flushed(tableDev, lost.table)
    /\ superDev' = Flushed(superDev, lost.super)

SomethingWritten ==
    Unflushed(slotDev) # {} \/ Unflushed(tableDev) # {} \/ Unflushed(superDev) # {}

(* Somebody flushes the device: the log's flush does, for instance.        *)
FlushDevice ==
    /\ ~poisoned
    /\ SomethingWritten
    /\ DeviceFlush
    /\ UNCHANGED <<persist, call, logVars, memoryVars, stepVars, lost, poisoned, recoveryVars>>

(* What was unflushed may or may not be on the medium, and only writing it *)
(* again will put it there (see WalRecovery).                              *)
FailFlush ==
    /\ MayFail(crashes)
    /\ ~poisoned
    /\ SomethingWritten
    /\ lost' = [slots |-> Unflushed(slotDev), table |-> Unflushed(tableDev),
                super |-> Unflushed(superDev)]
    /\ poisoned' = TRUE
    /\ UNCHANGED <<persist, call, logVars, memoryVars, stepVars, slotDev, tableDev, superDev>>
    /\ UNCHANGED recoveryVars

(* The slots with these trimmed: a trim is a write of zeros, or nothing.   *)
ToTrim(slots) == IF Discards = "inert" THEN {} ELSE slots

Trimmed(places, slots) ==
    [s \in Slots |-> IF s \in ToTrim(slots) THEN Append(places[s], Zeros) ELSE places[s]]

-----------------------------------------------------------------------------
(* Writing a page.                                                         *)

Take(s) == s \in free /\ MayTake(s)

(* A slot that a page has left at a checkpointed table's time: unless that *)
(* table names it, nothing on the device does, and it is free at once.     *)
(* CowStore::leave_places.                                                 *)
LeftAtOnce(old) ==
    IF old = NoSlot \/ (old \in Persisted /\ Bug # "reuses-persisted") THEN {} ELSE {old}

(* A dirty page is written to a free slot, once the log is durable up to   *)
(* its last change.  If the table is written at checkpoints only, the page *)
(* has moved, in memory.  CowStore::write_whole.                           *)
WriteImage(p) ==
    /\ Running
    /\ writing = Quiet
    /\ IsDirty(p)
    /\ page[p].lsn <= durable \/ Bug = "page-before-log"
    /\ \E s \in Slots :
          /\ Take(s)
          /\ LET image    == Image(p, page[p])
                 versions == IF Bug = "trims-late" /\ Newest(slotDev[s]) = Zeros
                             THEN <<image, Zeros>> ELSE <<image>>
                 left     == IF persist = "checkpoints" THEN LeftAtOnce(table[p]) ELSE {}
             IN /\ slotDev' = Trimmed([slotDev EXCEPT ![s] = @ \o versions], left)
                /\ lost' = [lost EXCEPT !.slots = @ \ ({s} \cup ToTrim(left))]
                /\ free' = (free \ {s}) \cup left
          /\ IF persist = "each"
             THEN writing' = Imaging(p, s) /\ table' = table
             ELSE table' = [table EXCEPT ![p] = s] /\ writing' = writing
    /\ UNCHANGED <<persist, call, logVars, page, index, retired, super, checkpoint>>
    /\ UNCHANGED <<tableDev, superDev, poisoned, recoveryVars>>

(* The device is flushed, and then these blocks of a table are written.    *)
FlushThenWrite(map, blocks) ==
    LET flushed == IF Bug = "table-before-page" THEN tableDev ELSE Flushed(tableDev, lost.table)
    IN /\ tableDev' = [b \in Blocks |->
              IF b \in blocks THEN Append(flushed[b], Entries(map, b)) ELSE flushed[b]]
       /\ lost' = [lost EXCEPT !.table = @ \ blocks]
       /\ IF Bug = "table-before-page" THEN UNCHANGED <<slotDev, superDev>>
          ELSE /\ slotDev' = Flushed(slotDev, lost.slots)
               /\ superDev' = Flushed(superDev, lost.super)

(* "We persist the page table after each page flush" (§4): the image is    *)
(* flushed, then the page's block of the table is written.                 *)
NameImage ==
    /\ Running
    /\ writing.at = "image"
    /\ LET p     == writing.page
           moved == [table EXCEPT ![p] = writing.slot]
       IN /\ table' = moved
          /\ FlushThenWrite(moved, {BlockOf(p)})
          /\ writing' = Naming(Some({table[p]}))
    /\ UNCHANGED <<persist, call, logVars, page, index, free, retired, super, checkpoint, poisoned>>
    /\ UNCHANGED recoveryVars

(* The changed blocks of the table are written: for a checkpoint, for want *)
(* of free slots, and at the end of recovery.  CowStore::write_table.      *)
WriteTable ==
    /\ ~poisoned
    /\ writing = Quiet
    /\ DirtyBlocks # {}
    /\ FlushThenWrite(table, DirtyBlocks)
    /\ writing' = Naming(Held)
    /\ UNCHANGED <<persist, call, logVars, memoryVars, checkpoint, poisoned, recoveryVars>>

(* The table is flushed.  The slots that only the table before it named    *)
(* are trimmed, and free.                                                  *)
FinishTable ==
    /\ ~poisoned
    /\ writing.at = "table"
    /\ IF Bug = "frees-before-table"
       THEN /\ slotDev' = Trimmed(slotDev, writing.left)
            /\ UNCHANGED <<tableDev, superDev>>
       ELSE /\ slotDev' = Trimmed(Flushed(slotDev, lost.slots), writing.left)
            /\ tableDev' = Flushed(tableDev, lost.table)
            /\ superDev' = Flushed(superDev, lost.super)
    /\ lost' = [lost EXCEPT !.slots = @ \ ToTrim(writing.left)]
    /\ free' = free \cup writing.left
    /\ writing' = Quiet
    /\ UNCHANGED <<persist, call, logVars, page, index, table, retired, super, checkpoint>>
    /\ UNCHANGED <<poisoned, recoveryVars>>

(* A page that was dropped is freed, once that is durable: the table names *)
(* it no more.  With a table that is written each time, its slot is free   *)
(* after the write.  CowStore::free.                                       *)
FreePage(p) ==
    /\ Serving
    /\ writing = Quiet
    /\ \E r \in retired :
          /\ r.page = p
          /\ r.lsn <= durable \/ Bug = "frees-before-log"
          /\ retired' = retired \ {r}
    /\ LET old     == table[p]
           without == [table EXCEPT ![p] = NoSlot]
       IN /\ table' = without
          /\ IF persist = "each" /\ old # NoSlot
             THEN /\ FlushThenWrite(without, {BlockOf(p)})
                  /\ writing' = Naming({old})
                  /\ free' = free
             ELSE LET left == LeftAtOnce(old)
                  IN /\ slotDev' = Trimmed(slotDev, left)
                     /\ lost' = [lost EXCEPT !.slots = @ \ ToTrim(left)]
                     /\ free' = free \cup left
                     /\ UNCHANGED <<writing, tableDev, superDev>>
    /\ UNCHANGED <<persist, call, logVars, page, index, super, checkpoint, poisoned, recoveryVars>>
=============================================================================
