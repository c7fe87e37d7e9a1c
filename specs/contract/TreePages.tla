----------------------------- MODULE TreePages ------------------------------
(***************************************************************************)
(* What a log protocol may assume of the tree above it.                    *)
(*                                                                         *)
(* The protocol keeps pages in memory, names them in log records, and      *)
(* redoes records on them.  What a page holds, and which keys, only the    *)
(* tree knows: the protocol asks it through these operators, and sees of a *)
(* page itself no more than `lsn`.  Here each key has a page of its own,   *)
(* and a change goes right into it.  A model with a tree replaces the      *)
(* operators (`specs/layers/BfLeaves`).                                    *)
(*                                                                         *)
(* A tree must keep what PageHistory says: a page with LSN n has all       *)
(* changes that the log has for it up to n, and redo, which repeats them   *)
(* one by one, never finds a page that has no room.                        *)
(***************************************************************************)
EXTENDS Naturals

(* A page that was never written.                                          *)
EmptyPage(p, absent) == [value |-> absent, lsn |-> 0]

(* The value of a key in pages that lack no change.                        *)
ValueIn(pages, k) == pages[k].value

(* "The log entry points to a page on disk and describes an operation."    *)
RecordOf(pages, k, v) == [key |-> k, value |-> v]

(* What a record changes in the map of all keys.                           *)
Effect(map, record) == [map EXCEPT ![record.key] = record.value]

(* The record with LSN n, redone on its page, unless the page is newer.    *)
Redone(pages, record, n, always) ==
    IF pages[record.key].lsn < n \/ always
    THEN [pages EXCEPT ![record.key] = [value |-> record.value, lsn |-> n]]
    ELSE pages
=============================================================================
