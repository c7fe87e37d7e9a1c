---------------------------- MODULE PageHistory -----------------------------
(***************************************************************************)
(* The history of pages: the interface between a log with redo and a tree  *)
(* that buffers changes above its pages.                                   *)
(*                                                                         *)
(* Redo looks at a page's LSN and passes over every record up to it.  So a *)
(* page gets an LSN only together with all changes that were logged for it *)
(* before: a merge takes all that is buffered, and a change that goes      *)
(* right into the page (a split) finds nothing buffered.  And redo must    *)
(* not begin after a change that is only buffered.                         *)
(*                                                                         *)
(* WalRecovery keeps its contract above any tree that keeps this           *)
(* (layers/WalUnderTree); BfTree keeps it (its model `history`).  What the *)
(* pages say is not in here: that redo makes the same of them as the tree  *)
(* did is an invariant of each (RedoInv of BfTree).                        *)
(***************************************************************************)
EXTENDS Naturals

CONSTANT
    Pages

VARIABLES
    up,         \* whether the store is up
    lsn,        \* the LSN of each page in memory
    lacks,      \* the LSNs of the changes that the log has, and the page in memory has not
    redo        \* where redo would begin

vars == <<up, lsn, lacks, redo>>

Init == up = TRUE /\ redo = 0 /\ \A p \in Pages : lsn[p] = 0 /\ lacks[p] = {}

(* What may happen to a page, from LSN l and changes b buffered to m and d *)
Same(l, b, m, d)   == m = l /\ d = b
Logged(l, b, m, d) == m = l /\ \E n \in d : d = b \cup {n} /\ n > l /\ \A other \in b : n > other
Merged(l, b, m, d) == d = {} /\ m \in b /\ \A other \in b : other <= m
Direct(l, b, m, d) == b = {} /\ d = {} /\ m > l

(* Bound variables, because checkers compute them once.                    *)
Step(p) ==
    \E l \in {lsn[p]}, b \in {lacks[p]}, m \in {lsn'[p]}, d \in {lacks'[p]} :
        Same(l, b, m, d) \/ Logged(l, b, m, d) \/ Merged(l, b, m, d) \/ Direct(l, b, m, d)

Next ==
    \/ up' = FALSE
    \/ up = FALSE /\ up' = TRUE /\ \A p \in Pages : lacks'[p] = {}
    \/ /\ up = TRUE /\ up' = TRUE
       /\ \A p \in Pages : Step(p)
       /\ \A p \in Pages, r \in {redo'} : \A n \in lacks'[p] : n > r

Spec == Init /\ [][Next]_vars
=============================================================================
