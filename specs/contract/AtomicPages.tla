---------------------------- MODULE AtomicPages -----------------------------
(***************************************************************************)
(* Pages that are written whole or not at all: the interface between a log *)
(* protocol and the store of its pages.                                    *)
(*                                                                         *)
(* WalRecovery relies on it, and changes its pages by these steps alone.   *)
(* PageShadowing keeps it, with pages of several blocks that are written   *)
(* in any order.  Each is checked by itself (ContractOfPagesProp); and     *)
(* WalRecovery runs on a store that does everything that is allowed here,  *)
(* and on slots (specs/layers).                                            *)
(*                                                                         *)
(* One thing was learned from running both layers together: a write that a *)
(* crash has cut off may be completed by a later write of the page, which  *)
(* supplies the block that was missing.  Then an image comes back that no  *)
(* flush ever covered (`cut`).  It is whole, it is newer than what was     *)
(* flushed, and its log record is durable, so redo can live with it.       *)
(***************************************************************************)
EXTENDS Naturals

CONSTANT
    Pages

VARIABLES
    newest,     \* the image that reading each page yields; it has an `lsn`
    left,       \* the images that a crash may leave of each page
    cut         \* images whose writing was cut off, and of which a part may be there

vars == <<newest, left, cut>>

Init == \A p \in Pages : left[p] = {newest[p]} /\ cut[p] = {}

(* How the step of a page can be understood: from image n, with the images *)
(* l left and c cut off, to m, k and d.                                    *)
WaysOf(n, l, c, m, k, d) ==
    \* Images that were cut off come back only if they are newer than one that may be left.
    LET back == {image \in c : \E old \in l : old.lsn < image.lsn}
    IN IF ~(d \subseteq c \cup l \cup {m}) THEN {}
       ELSE
         \* What may be left are images from before and the new one; a store may know that some
         \* are not possible any more.  Or nothing happens to this page.
         (IF (m \in k /\ k \subseteq l \cup back \cup {m}) \/ (m = n /\ k = l)
          THEN {"write"} ELSE {})
         \* Of pages that an earlier flush has forgotten, any image may still be left.
         \cup (IF m = n /\ k \in {l, {n}} THEN {"flush"} ELSE {})
         \* The power fails: the page is left in one of its images.
         \cup (IF m \in l /\ k = {m} THEN {"crash"} ELSE {})
         \* The process ends.  A page of which reading may yield two images, since a flush
         \* failed, shows one of them from now on; the others may still come back, unless the
         \* page is written again.
         \cup (IF m \in l /\ m \in k /\ k \subseteq l THEN {"reopen"} ELSE {})

(* Bound variables, because TLC computes them once, and other names each   *)
(* time they are used.                                                     *)
Ways(p) ==
    UNION {WaysOf(n, l, c, m, k, d) :
        n \in {newest[p]}, l \in {left[p]}, c \in {cut[p]},
        m \in {newest'[p]}, k \in {left'[p]}, d \in {cut'[p]}}

(* Some pages are written, or all are flushed, or cut off, or reopened.    *)
Next ==
    \E ways \in {UNION {{<<p, way>> : way \in Ways(p)} : p \in Pages}} :
        \E way \in {"write", "flush", "crash", "reopen"} : \A p \in Pages : <<p, way>> \in ways

Spec == Init /\ [][Next]_vars
=============================================================================
